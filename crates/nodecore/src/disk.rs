//! Disk space that jobs ask for (jobs-and-nodes.md 3.10): all that is promised must fit the disk of the
//! sandboxes, less what is left alone there.

use vocab::{AbortReason, Failure, JobOutcome, code};

use crate::core::aborted;
use crate::job::Job;

/// What the disk has for jobs, and what of it is promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct DiskLedger {
    /// None: nobody counts.
    capacity: Option<i64>,
    promised: i64,
}

impl DiskLedger {
    pub fn new(capacity: Option<i64>) -> DiskLedger {
        DiskLedger { capacity, promised: 0 }
    }
    /// Is there room for it beside all the others?
    pub fn fits(&self, job: &Job) -> bool {
        let wanted = wanted(job);
        wanted == 0 || self.capacity.is_none_or(|all| self.promised.saturating_add(wanted) <= all)
    }
    /// The end of a job that has no room here even if it is alone.
    pub fn refusal(&self, job: &Job) -> Option<JobOutcome> {
        let (wanted, capacity) = (wanted(job), self.capacity?);
        (wanted > capacity.max(0)).then(|| {
            let error =
                Failure::coded(code::NOT_ENOUGH_DISK_SPACE, "The job asks for more disk than the node has")
                    .with("disk_space", wanted)
                    .with("disk_capacity", capacity);
            aborted(AbortReason::Other, error)
        })
    }
    pub fn promise(&mut self, job: &Job) {
        self.promised = self.promised.saturating_add(wanted(job));
    }
    pub fn take_back(&mut self, job: &Job) {
        self.promised -= wanted(job);
    }
    pub fn promised(&self) -> i64 {
        self.promised
    }
}

fn wanted(job: &Job) -> i64 {
    job.start.description.file_system.disk_space.unwrap_or(0).max(0)
}
