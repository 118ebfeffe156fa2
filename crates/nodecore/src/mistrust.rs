//! A node on which jobs of several operations are aborted, one after the other, although they start on other nodes, takes
//! no more jobs for a while (jobs-and-nodes.md 3.9): an administrator should look at it.
//!
//! Jobs that have started nowhere yet say nothing about the node: it may be that they can start nowhere (S4, S12). The
//! server knows, and tells it with the order to start.

use std::collections::BTreeMap;

use vocab::{Failure, JobId, JobOutcome, OperationId, Resources, Span, Time};

use crate::NodeCore;

/// Length of the pause, and the most that it is longer or shorter: nodes with one common trouble must not all come back
/// at once.
const BACKOFF: Span = Span::from_secs(600);
const JITTER: Span = Span::from_secs(60);
/// The aborts must be of so many different operations: one or two may have a fault that only some nodes bring out.
const OPERATIONS: usize = 3;

/// What speaks against this node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Mistrust {
    /// Aborts since the last job that ended by itself, by operation.
    aborts: BTreeMap<OperationId, u32>,
    until: Option<Time>,
}

impl Mistrust {
    /// When the node tries again.
    pub fn ends(&self) -> Option<Time> {
        self.until
    }

    fn count(&self) -> u32 {
        self.aborts.values().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

impl NodeCore {
    /// A job was brought to an end here. Aborts that were ordered say nothing about the node, and neither do failures in
    /// the preparation, which the job's specification causes.
    pub(crate) fn count_end(&mut self, id: JobId, outcome: &JobOutcome) {
        let Some(job) = self.jobs.get(&id) else { return };
        match outcome {
            JobOutcome::Aborted { reason, .. } if reason.consequences().counts_for_node => {
                if job.start.has_started_elsewhere {
                    let count = self.mistrust.aborts.entry(job.start.identity.operation_id).or_default();
                    *count = count.saturating_add(1);
                }
            }
            JobOutcome::Aborted { .. } => {}
            JobOutcome::Completed { .. } | JobOutcome::Failed { .. } => {
                if job.start_time.is_some() {
                    self.mistrust.aborts.clear();
                }
            }
        }
    }

    /// Begins and ends the pause.
    pub(crate) fn watch_aborts(&mut self, now: Time) {
        let too_many = self.mistrust.count() > self.settings.max_consecutive_job_aborts;
        match self.mistrust.until {
            Some(until) if until <= now => {
                self.mistrust = Mistrust::default();
                self.look_at_waiting = true;
            }
            None if too_many && self.mistrust.aborts.len() >= OPERATIONS => {
                let jitter = self.settings.incarnation % (2 * JITTER.0 + 1);
                self.mistrust.until = Some(now + BACKOFF + Span(jitter) - JITTER);
            }
            _ => {}
        }
    }

    pub(crate) fn starts_nothing(&self) -> bool {
        self.mistrust.until.is_some() || !self.uids.is_settled()
    }

    /// What the server may count on: during a pause the slots of the jobs that are here and no others. With
    /// fewer it would take them for too many and abort some.
    pub(crate) fn offered_limits(&self) -> Resources {
        let mut limits = self.settings.resource_limits;
        if self.mistrust.until.is_some() || self.uids.is_refused() {
            limits.user_slots = limits.user_slots.min(self.ledger.usage().user_slots);
        }
        limits
    }

    pub(crate) fn alert_of_mistrust(&self) -> Option<Failure> {
        let until = self.mistrust.until?;
        let most = self.settings.max_consecutive_job_aborts;
        let operations = self.mistrust.aborts.len();
        let text = format!(
            "More than {most} jobs in a row were aborted here, of {operations} operations whose jobs start on other nodes: no job \
             starts for a while"
        );
        Some(Failure::new(text).with("until", until).with("max_consecutive_job_aborts", i64::from(most)))
    }
}
