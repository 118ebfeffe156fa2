//! Each job is a job of one node: no other node may report about it, hand something in for it, or take it over (S7).
//!
//! The kernel knows the node of every job that runs, and of every job whose end a node owes. The jobs of the life before it
//! knows from their nodes alone. So the order to start a job carries a ticket ([`vocab::JobTicket`]), which the node keeps with
//! the job and repeats with each report: a job is adopted from the node that the ticket was made for. Its key comes from the
//! edge ([`Config::job_ticket_keys`](crate::Config)), since the kernel has no random numbers.
//!
//! Jobs of operations that began under release 0.1 have no tickets and are adopted without.

use crate::operation::Pinned;
use crate::{Effect, Kernel, NodeProof};
use ring::hmac;
use std::collections::BTreeMap;
use vocab::{Failure, JobId, JobIdentity, JobTicket, Span, Time};

/// Key of the tickets of jobs. It is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct JobTicketKey(pub [u8; 32]);

impl std::fmt::Debug for JobTicketKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JobTicketKey")
    }
}

/// The alert about a node goes away this long after its newest report about a job of another node.
const SHOWN: Span = Span::from_secs(86_400);
/// Nodes in the alert.
const NODES: usize = 100;

/// Reports of nodes about jobs of other nodes, by the node that has sent them: how many, the newest, and one of the jobs.
#[derive(Default)]
pub(crate) struct ForeignReports(BTreeMap<String, (u64, Time, JobId)>);

/// What the ticket of a job is a code of. Lengths before texts: no two jobs have the same bytes.
fn bytes_of(identity: &JobIdentity, node: &str) -> Vec<u8> {
    let JobIdentity {
        job_id,
        allocation_id,
        operation_id,
        tree,
        task,
        cookie,
        job_index,
        task_job_index,
        ..
    } = identity;
    let mut bytes = b"millpond job ticket 1".to_vec();
    for id in [job_id.0, allocation_id.0, operation_id.0] {
        bytes.extend_from_slice(&id.to_bytes());
    }
    for text in [tree, task, node] {
        bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    for number in [u64::from(*cookie), *job_index, *task_job_index] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    bytes
}

fn ticket(key: &JobTicketKey, identity: &JobIdentity, node: &str) -> JobTicket {
    let code = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key.0), &bytes_of(identity, node));
    let mut ticket = [0; 16];
    ticket.copy_from_slice(&code.as_ref()[..16]);
    JobTicket(ticket)
}

impl Kernel {
    /// The identity of a job that starts on a node, with its ticket.
    pub(crate) fn with_ticket(&self, mut identity: JobIdentity, node: &str) -> JobIdentity {
        if self.config.node_identities {
            let key = self.config.job_ticket_keys.first();
            identity.ticket = key.map(|key| ticket(key, &identity, node));
        }
        identity
    }

    /// Whether a job that is not known here may be what its node says that it is.
    pub(crate) fn is_job_of(&self, identity: &JobIdentity, node: &str) -> bool {
        if !self.config.node_identities {
            return true;
        }
        match identity.ticket {
            // Tickets are compared in constant time: nothing of the right one can be measured.
            Some(shown) => self.config.job_ticket_keys.iter().any(|key| {
                let right = ticket(key, identity, node).0;
                right.iter().zip(shown.0).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
            }),
            None => self.operations.get(&identity.operation_id).is_some_and(|o| !o.has_job_tickets),
        }
    }

    /// The node of a job that runs, or was given up and has an end to be told.
    pub(crate) fn node_of_job(&self, job_id: JobId) -> Option<&str> {
        let running = self.jobs.get(job_id).map(|job| job.node.as_str());
        let owed = || self.owed.get(job_id).map(|record| record.address.as_str());
        running.or_else(owed).or_else(|| self.leases.node_of_fence(job_id))
    }

    /// Whether a report of a node is about a job of another one. It is noted and must have no effect.
    pub(crate) fn is_foreign_report(&mut self, now: Time, node: &str, job_id: JobId) -> bool {
        let is_foreign = self.node_of_job(job_id).is_some_and(|owner| owner != node);
        if is_foreign {
            self.note_foreign(now, node, job_id);
        }
        is_foreign
    }

    fn note_foreign(&mut self, now: Time, node: &str, job_id: JobId) {
        let ForeignReports(nodes) = &mut self.foreign_reports;
        if let Some(noted) = nodes.get_mut(node) {
            *noted = (noted.0 + 1, now, job_id);
            return;
        }
        if nodes.len() < NODES {
            nodes.insert(node.to_owned(), (1, now, job_id));
            let fields = yson::map! {"job_id" => job_id, "node_address" => node}
                .with_some("owner_address", self.node_of_job(job_id).map(str::to_owned));
            self.log("foreign_job_reported", fields);
        }
    }

    pub(crate) fn forget_old_foreign_reports(&mut self, now: Time) {
        self.foreign_reports.0.retain(|_, (_, newest, _)| now.since(*newest) <= SHOWN);
    }

    /// `foreign_job_reported`.
    pub(crate) fn alert_of_foreign_reports(&self) -> Option<Failure> {
        let nodes = &self.foreign_reports.0;
        let (example, (_, _, job_id)) = nodes.iter().max_by_key(|(_, (_, newest, _))| *newest)?;
        let reports: u64 = nodes.values().map(|(count, _, _)| count).sum();
        let text = format!(
            "{} nodes have reported {reports} times about jobs of other nodes, {example} about job {job_id} for one. The reports \
             were ignored. Nodes do not do this by themselves: look who else has the key of the node, and revoke it with \
             `millpond node revoke`",
            nodes.len()
        );
        let names: Vec<&str> = nodes.keys().map(String::as_str).collect();
        Some(Failure::new(text).with("nodes", names).with("alert_type", "foreign_job_reported"))
    }

    /// Whether something that was uploaded is from the node of a job that has not told its end. The blob of anything else goes:
    /// nobody waits for it, or another node has sent it.
    pub(crate) fn takes_upload(
        &mut self,
        now: Time,
        (from, job_id): (&NodeProof, JobId),
        blob: u64,
        out: &mut Vec<Effect>,
    ) -> bool {
        let is_taken = self.node_of_job(job_id).is_some_and(|node| self.speaks_for(now, from, node));
        if !is_taken {
            self.delete_blob(blob, out);
        }
        is_taken
    }

    /// Refuses a caller that asks for what only the node of a running job may have.
    pub(crate) fn demand_node_of_job(
        &self,
        now: Time,
        from: &NodeProof,
        job_id: JobId,
    ) -> Result<(), Failure> {
        match self.jobs.get(job_id) {
            Some(job) if !self.speaks_for(now, from, &job.node) => {
                let text = format!("Job {job_id} is a job of another node");
                Err(Failure::coded(vocab::code::ACCESS_DENIED, text).with("job_id", job_id))
            }
            _ => Ok(()),
        }
    }

    /// Whether a job needs this content that runs on a node for which the caller speaks.
    pub(crate) fn is_file_of_caller(&self, now: Time, from: &NodeProof, file: &Pinned) -> bool {
        let needs = |job_id: &JobId| {
            let operation = self.jobs.get(*job_id).and_then(|job| self.operations.get(&job.operation));
            operation.is_some_and(|operation| {
                let task = operation.controller.job(*job_id).map(|view| &*view.identity().task);
                let of_task = |pinned: &Pinned| {
                    operation.spec.spec.tasks.get(pinned.task as usize).map(|task| task.name.as_str()) == task
                };
                let is_same = |pinned: &Pinned| {
                    (pinned.artifact.file_id, pinned.artifact.revision)
                        == (file.artifact.file_id, file.artifact.revision)
                };
                operation.pinned.iter().any(|pinned| is_same(pinned) && of_task(pinned))
            })
        };
        match from {
            NodeProof::Certificate { key_sha256 } => {
                let name = self.valid_identity(now, key_sha256).map(|identity| identity.name.as_str());
                let node = name.ok().and_then(|name| self.nodes.get(name));
                node.is_some_and(|node| node.jobs.iter().any(&needs))
            }
            NodeProof::Insecure => {
                let mut nodes = self.nodes.iter();
                nodes.any(|node| node.jobs.iter().any(&needs) && self.speaks_for(now, from, &node.address))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::{AllocationId, Guid, OperationId};

    /// S7: nodes keep tickets over updates of the server, and jobs with other tickets are run again. The code of the bytes that
    /// [`bytes_of`] describes, made by another program.
    #[test]
    fn tickets_of_jobs_that_run_stay_good() {
        let identity = JobIdentity {
            job_id: JobId(Guid([1, 2, 3, 4])),
            allocation_id: AllocationId(Guid([5, 6, 7, 8])),
            operation_id: OperationId(Guid([9, 10, 11, 12])),
            tree: "default".into(),
            task: "map".into(),
            cookie: 3,
            job_index: 4,
            task_job_index: 5,
            ticket: None,
        };
        let made = ticket(&JobTicketKey([1; 32]), &identity, "node:1");
        let known = [25, 107, 138, 231, 253, 214, 161, 165, 172, 175, 236, 15, 233, 133, 198, 247];
        assert_eq!(made, JobTicket(known));
        assert_ne!(ticket(&JobTicketKey([1; 32]), &identity, "node:2"), made);
    }
}
