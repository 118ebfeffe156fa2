//! The operation's time limit, as data: the caller owns the clock (jobs-and-nodes.md 6.4).

use super::{OperationController, OperationEvent};
use crate::task::Task;
use vocab::{Failure, JobId, Time};

/// Where the operation is in its life, as far as starting jobs goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Life {
    /// Jobs are started.
    Running,
    /// The time limit has passed: running jobs may end, no more are started.
    Expired {
        /// When the operation fails at the latest.
        fails_at: Time,
    },
    /// Completed, failed or aborted.
    Over,
}

/// What a deadline asks for.
#[derive(Clone, PartialEq, Debug)]
pub enum Deadline {
    /// These jobs are to be failed; what is still there at the second deadline is aborted.
    EndJobs(Vec<JobId>),
    /// The operation is over.
    Operation(OperationEvent),
}

impl OperationController {
    /// When [`on_deadline`](Self::on_deadline) wants to be called next.
    pub fn next_deadline(&self) -> Option<Time> {
        match self.life {
            Life::Running => self.root.time_limit.map(|limit| self.start_time + limit),
            Life::Expired { fails_at } => Some(fails_at),
            Life::Over => None,
        }
    }

    /// Looks at the time limit; harmless when called too early.
    pub fn on_deadline(&mut self, now: Time) -> Option<Deadline> {
        if self.next_deadline().is_none_or(|deadline| now < deadline) {
            return None;
        }
        let timeout = self.root.time_limit_job_fail_timeout;
        if self.life == Life::Running && !self.jobs.is_empty() && timeout.as_micros() > 0 {
            self.life = Life::Expired { fails_at: now + timeout };
            return Some(Deadline::EndJobs(self.jobs.keys().copied().collect()));
        }
        self.close_operation();
        Some(Deadline::Operation(OperationEvent::Failed(self.expired())))
    }

    /// After the limit the operation does not wait for jobs that are gone already.
    pub(super) fn end_if_expired_and_idle(&self) -> Option<OperationEvent> {
        let expired = matches!(self.life, Life::Expired { .. }) && self.jobs.is_empty();
        expired.then(|| match self.tasks.iter().all(Task::is_complete) {
            true => OperationEvent::Completed,
            false => OperationEvent::Failed(self.expired()),
        })
    }

    fn expired(&self) -> Failure {
        let limit = self.root.time_limit.map(|limit| limit.as_millis() as i64);
        let failure = Failure::new("Operation is running for too long, aborted");
        limit.into_iter().fold(failure, |f, ms| f.with("time_limit", ms))
    }
}
