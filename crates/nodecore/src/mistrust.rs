//! A node on which one job after another comes to nothing takes no more jobs for a while (jobs-and-nodes.md
//! 3.9): elsewhere they may do better, and here somebody is to look.

use vocab::{AbortReason, Failure, JobOutcome, Resources, Span, Time};

use crate::NodeCore;

/// How long, and how much less or more: nodes with one common trouble must not all come back at once.
const BACKOFF: Span = Span::from_secs(600);
const JITTER: Span = Span::from_secs(60);

/// What speaks against this node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Mistrust {
    aborts_in_a_row: u32,
    until: Option<Time>,
}

impl Mistrust {
    /// When the node tries again.
    pub fn ends(&self) -> Option<Time> {
        self.until
    }
}

impl NodeCore {
    /// A job was brought to an end here. Aborts that somebody ordered say nothing about the node.
    pub(crate) fn count_end(&mut self, outcome: &JobOutcome) {
        let count = &mut self.mistrust.aborts_in_a_row;
        match outcome {
            JobOutcome::Aborted { reason, .. } if is_trouble(*reason) => *count = count.saturating_add(1),
            JobOutcome::Aborted { .. } => {}
            JobOutcome::Completed { .. } | JobOutcome::Failed { .. } => *count = 0,
        }
    }

    /// Begins and ends the pause.
    pub(crate) fn watch_aborts(&mut self, now: Time) {
        match self.mistrust.until {
            Some(until) if until <= now => {
                self.mistrust = Mistrust::default();
                self.look_at_waiting = true;
            }
            None if self.mistrust.aborts_in_a_row > self.settings.max_consecutive_job_aborts => {
                let jitter = self.settings.incarnation % (2 * JITTER.0 + 1);
                self.mistrust.until = Some(now + BACKOFF + Span(jitter) - JITTER);
            }
            _ => {}
        }
    }

    pub(crate) fn starts_nothing(&self) -> bool {
        self.mistrust.until.is_some()
    }

    /// What the server may count on: during a pause the slots of the jobs that are here and no others. With
    /// fewer it would take them for too many and abort some.
    pub(crate) fn offered_limits(&self) -> Resources {
        let mut limits = self.settings.resource_limits;
        if self.starts_nothing() {
            limits.user_slots = limits.user_slots.min(self.ledger.usage().user_slots);
        }
        limits
    }

    pub(crate) fn alert_of_mistrust(&self) -> Option<Failure> {
        let until = self.mistrust.until?;
        let most = self.settings.max_consecutive_job_aborts;
        let text = format!("More than {most} jobs in a row were aborted here: no job starts for a while");
        Some(Failure::new(text).with("until", until).with("max_consecutive_job_aborts", i64::from(most)))
    }
}

/// Reasons that lie in the node or its host (3.8).
fn is_trouble(reason: AbortReason) -> bool {
    matches!(
        reason,
        AbortReason::Other | AbortReason::JobProxyFailed | AbortReason::RootVolumePreparationFailed
    )
}
