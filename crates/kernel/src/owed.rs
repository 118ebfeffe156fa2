//! Jobs that were ended here, and what their nodes have still to tell of their ends (jobs-and-nodes.md 5.4): they
//! are archived at once with what was known. What is left of a job comes with the report of its node, which may be
//! one to the next life of this server; the record is made complete then.

use crate::job_archive::{Left, Stderr};
use crate::records::job_key;
use crate::{Effect, Kernel};
use controller::JobRecord;
use std::collections::{BTreeMap, BTreeSet};
use vocab::batch::Table;
use vocab::{JobId, Time};
use wire::{FinishedJob, JobReport};

/// Records of jobs whose stderr has a place in the archive, until their nodes have spoken or are lost.
#[derive(Default)]
pub(crate) struct Owed {
    by_job: BTreeMap<JobId, JobRecord>,
    by_node: BTreeMap<String, BTreeSet<JobId>>,
}

impl Owed {
    fn insert(&mut self, record: JobRecord) {
        let job_id = record.identity.job_id;
        self.by_node.entry(record.address.clone()).or_default().insert(job_id);
        self.by_job.insert(job_id, record);
    }
    pub fn get(&self, job: JobId) -> Option<&JobRecord> {
        self.by_job.get(&job)
    }
    pub fn remove(&mut self, job: JobId) -> Option<JobRecord> {
        let record = self.by_job.remove(&job)?;
        if let Some(jobs) = self.by_node.get_mut(&record.address) {
            jobs.remove(&job);
            if jobs.is_empty() {
                self.by_node.remove(&record.address);
            }
        }
        Some(record)
    }
    pub fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.by_job.keys().copied()
    }
}

impl Kernel {
    /// Its node will tell more of it.
    pub(crate) fn expect_end(&mut self, record: JobRecord) {
        let key = job_key(record.identity.operation_id, record.identity.job_id);
        self.open.batch.put(Table::OwedEnds, key, record.encode());
        self.owed.insert(record);
    }

    /// From the store.
    pub(crate) fn restore_owed(&mut self, value: &[u8]) {
        // One that cannot be read is none: the job stays in the archive as it is.
        if let Ok(record) = JobRecord::decode(value) {
            self.owed.insert(record);
        }
    }

    /// The node has told the end of a job, or will never do so: that is all that there is to know of it.
    pub(crate) fn settle_owed(
        &mut self,
        mut record: JobRecord,
        end: Option<&FinishedJob>,
        mut left: Left,
        out: &mut Vec<Effect>,
    ) {
        let operation_id = record.identity.operation_id;
        let key = job_key(operation_id, record.identity.job_id);
        self.open.batch.delete(Table::OwedEnds, key.clone());
        let is_kept = self.operations.contains_key(&operation_id) || self.finished.contains(operation_id);
        if !is_kept {
            return self.drop_left(left, out);
        }
        if let Some(too_much) = self.take_without_room(self.events.now(), operation_id, &mut left) {
            self.drop_left(too_much, out);
        }
        let before = record.encode();
        let stderr = left.stderr.take().filter(|stderr| stderr.size() > 0);
        record.stderr_size = stderr.as_ref().map_or(0, Stderr::size);
        if let Some(end) = end {
            record.complete(end.start_time, &end.statistics, end.slot_index);
        }
        let after = record.encode();
        let mut bytes = (after.len() as u64).saturating_sub(before.len() as u64);
        if after != before {
            self.open.batch.put(Table::JobArchive, key.clone(), after);
        }
        let has_stderr = stderr.is_some();
        if let Some(stderr) = stderr {
            bytes += key.len() as u64 + record.stderr_size;
            self.open.batch.put(Table::Stderr, key, stderr.encode());
        }
        self.drop_left(left, out);
        if let Some(operation) = self.operations.get_mut(&operation_id) {
            operation.archived_bytes += bytes;
            operation.has_archived = true;
            if !has_stderr {
                operation.controller.give_back_stderr();
            }
            self.pending_work.dirty.insert(operation_id);
        } else if bytes > 0
            && let Some(summary) = self.finished.grow(operation_id, bytes)
        {
            let record = yson::to_binary(&summary.to_value());
            self.open.batch.put(Table::OperationIndex, operation_id.0.to_bytes(), record);
        }
    }

    /// A node that registers says all that it has: of other jobs it will never tell anything.
    pub(crate) fn forget_unknown_to(&mut self, address: &str, running: &[JobReport], out: &mut Vec<Effect>) {
        let Some(owed) = self.owed.by_node.get(address) else { return };
        let there: BTreeSet<JobId> = running.iter().map(|report| report.identity.job_id).collect();
        let unknown: Vec<JobId> = owed.difference(&there).copied().collect();
        self.forget_owed(unknown, out);
    }

    /// Nodes that are lost will tell nothing; after a restart they have some time to come back.
    pub(crate) fn forget_owed_by_lost_nodes(&mut self, now: Time, out: &mut Vec<Effect>) {
        if now < self.started + self.config.node_recovery_grace {
            return;
        }
        let is_lost =
            |address: &str| self.nodes.get(address).is_none_or(|node| node.register_time == Time::ZERO);
        let lost = self.owed.by_node.iter().filter(|(address, _)| is_lost(address));
        let jobs = lost.flat_map(|(_, jobs)| jobs.iter().copied()).collect();
        self.forget_owed(jobs, out);
    }

    fn forget_owed(&mut self, jobs: Vec<JobId>, out: &mut Vec<Effect>) {
        for job in jobs {
            let stderr = self.jobs.uploaded.remove(&job).map(|(size, blob)| Stderr::Blob(size, blob));
            if let Some(record) = self.owed.remove(job) {
                self.settle_owed(record, None, Left { stderr, fail_context: None }, out);
            }
        }
    }
}
