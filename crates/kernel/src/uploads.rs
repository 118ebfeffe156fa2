//! What a node may upload for a job, and how much of it (S7).
//!
//! The machine of a node may be in the wrong hands. So the server asks here before it takes the first byte of an upload: the
//! node must have the job, and the upload has a limit. The limit of a stderr is the job's own; the others follow from the
//! protocol or are far above what a job can need. The edge enforces them and reports uploads that exceed them.

use crate::{Kernel, NodeProof};
use std::collections::BTreeMap;
use vocab::job::FAIL_CONTEXT_MAX;
use vocab::{Failure, JobId, Span, Time, code};
use yson::{Map, Value};

/// What is uploaded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Upload {
    /// The kept stderr of a job.
    Stderr,
    /// The rows that a failed job was given last.
    FailContext,
    /// Rows that a job has written to one of its output tables.
    Rows {
        /// Number of the table among the outputs of the job's task.
        table: u32,
    },
}

impl Upload {
    /// Name in metrics and alerts.
    pub const fn as_str(self) -> &'static str {
        match self {
            Upload::Stderr => "stderr",
            Upload::FailContext => "fail_context",
            Upload::Rows { .. } => "rows",
        }
    }
}

/// Largest `max_stderr_size` of a specification: the limit of a job whose operation is over and not known any more.
const STDERR_MAX: u64 = 1 << 30;
/// The kept stderr has a mark in the place of the bytes that were dropped.
const STDERR_MARK: u64 = 256;
/// Rows of one job for one table, where no account has a smaller limit: more than the disk of a job's sandbox has.
const ROWS_MAX: u64 = 1 << 40;

/// The alert about a node goes away this long after its newest upload that was too large.
const SHOWN: Span = Span::from_secs(86_400);
/// Nodes in the alert.
const NODES: usize = 100;

/// Uploads that exceeded their limits, by the node that has sent them: how many, the newest, its job and its kind.
#[derive(Default)]
pub(crate) struct OversizedUploads(BTreeMap<String, (u64, Time, JobId, Upload)>);

impl Kernel {
    /// `{is_expected; limit; room}`: whether the job has still something to hand in, the bytes that are taken at most, and for
    /// rows the room by account. Refuses a caller that does not have the job.
    pub(crate) fn locate_upload(
        &self,
        now: Time,
        from: &NodeProof,
        job_id: JobId,
        upload: Upload,
    ) -> Result<Value, Failure> {
        self.identify_node(now, from)?;
        let nothing = || Ok(yson::map! {"is_expected" => false, "limit" => 0u64}.into());
        let Some(owner) = self.node_of_job(job_id) else { return nothing() };
        if !self.speaks_for(now, from, owner) {
            let text = format!("Job {job_id} is not a job of this node");
            return Err(Failure::coded(code::ACCESS_DENIED, text).with("job_id", job_id));
        }
        let expected = |limit: u64, room: Map| {
            Ok(yson::map! {"is_expected" => true, "limit" => limit, "room" => room}.into())
        };
        match upload {
            Upload::Stderr => expected(self.stderr_limit(job_id) + STDERR_MARK, Map::new()),
            Upload::FailContext => expected(FAIL_CONTEXT_MAX, Map::new()),
            // The rows of a job that was given up count for nothing.
            Upload::Rows { .. } if self.jobs.get(job_id).is_none() => nothing(),
            Upload::Rows { table } => match self.room_of_output(job_id, table) {
                Some(room) => expected(ROWS_MAX, room),
                None => {
                    let text = format!("Job {job_id} has no output table {table} at present");
                    Err(Failure::coded(code::UNAVAILABLE, text).with("job_id", job_id))
                }
            },
        }
    }

    /// `max_stderr_size` of a job. The largest one of the operation if the task of the job is not known.
    fn stderr_limit(&self, job_id: JobId) -> u64 {
        let owed = self.owed.get(job_id).map(|record| &record.identity);
        let running = self.jobs.get(job_id).map(|job| job.operation);
        let of_fence = || self.leases.operation_of_fence(job_id);
        let id = running.or_else(|| owed.map(|identity| identity.operation_id)).or_else(of_fence);
        let Some(operation) = id.and_then(|id| self.operations.get(&id)) else { return STDERR_MAX };
        let of_controller = operation.controller.job(job_id);
        let identity = of_controller.as_ref().map(|view| view.identity()).or(owed);
        let tasks = operation.spec.spec.tasks.iter();
        let own = tasks.filter(|task| identity.is_none_or(|identity| *task.name == *identity.task));
        own.map(|task| task.script.max_stderr_size.max(1).unsigned_abs()).max().unwrap_or(STDERR_MAX)
    }

    /// An upload exceeded its limit and was dropped.
    pub(crate) fn note_oversized(&mut self, now: Time, from: &NodeProof, job_id: JobId, upload: Upload) {
        let name = match from {
            NodeProof::Certificate { key_sha256 } => {
                self.valid_identity(now, key_sha256).ok().map(|identity| identity.name.clone())
            }
            NodeProof::Insecure => self.node_of_job(job_id).map(str::to_owned),
        };
        let Some(name) = name else { return };
        let OversizedUploads(nodes) = &mut self.oversized_uploads;
        if let Some(noted) = nodes.get_mut(&name) {
            *noted = (noted.0 + 1, now, job_id, upload);
        } else if nodes.len() < NODES {
            nodes.insert(name, (1, now, job_id, upload));
        }
    }

    pub(crate) fn forget_old_oversized(&mut self, now: Time) {
        self.oversized_uploads.0.retain(|_, (_, newest, ..)| now.since(*newest) <= SHOWN);
    }

    /// `oversized_upload`.
    pub(crate) fn alert_of_oversized_uploads(&self) -> Option<Failure> {
        let nodes = &self.oversized_uploads.0;
        let (example, (_, _, job_id, upload)) = nodes.iter().max_by_key(|(_, (_, newest, ..))| *newest)?;
        let uploads: u64 = nodes.values().map(|(count, ..)| count).sum();
        let text = format!(
            "{} nodes have uploaded more for a job than the job can have, {uploads} times, {example} {} of job {job_id} for one. \
             The uploads were dropped. Nodes do not do this by themselves: look who else has the key of the node, and revoke it \
             with `millpond node revoke`",
            nodes.len(),
            upload.as_str()
        );
        let names: Vec<&str> = nodes.keys().map(String::as_str).collect();
        Some(Failure::new(text).with("nodes", names).with("alert_type", "oversized_upload"))
    }
}
