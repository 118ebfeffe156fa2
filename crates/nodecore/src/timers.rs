//! Deadlines: one per job at most, and few of the node as a whole.

use std::collections::BTreeSet;

use vocab::{JobId, Time};

use crate::job::Job;

/// All deadlines of jobs, soonest first.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    queue: BTreeSet<(Time, JobId)>,
}

impl Timers {
    /// Gives the job a deadline instead of the one it had.
    pub fn set(&mut self, job: &mut Job, deadline: Option<Time>) {
        let id = job.id();
        if let Some(old) = job.deadline {
            self.queue.remove(&(old, id));
        }
        if let Some(new) = deadline {
            self.queue.insert((new, id));
        }
        job.deadline = deadline;
    }

    /// Takes a job whose deadline has come.
    pub fn pop_due(&mut self, now: Time) -> Option<JobId> {
        let &(time, id) = self.queue.first()?;
        if time > now {
            return None;
        }
        self.queue.pop_first();
        Some(id)
    }

    /// When the next one comes.
    pub fn next(&self) -> Option<Time> {
        self.queue.first().map(|(time, _)| *time)
    }
}
