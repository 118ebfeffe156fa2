//! Users of the host that jobs of this cluster run as: claimed before a job starts.
//!
//! Another cluster on the host may have the same uids. Then no job starts here: one cluster's jobs could read what the other's
//! have written. The claim is tried again, since the other cluster may be stopped.

use vocab::{Failure, Span, Time};
use wire::JobUids;

use crate::{NodeCore, NodeEffect};

/// Between two attempts.
const PERIOD: Span = Span::from_secs(5);

/// What is known of the claim.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct UidClaim {
    /// As the server said last.
    wanted: Option<JobUids>,
    /// Why the last attempt failed, and the time of the next one.
    refused: Option<(Failure, Time)>,
}

impl UidClaim {
    pub fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    pub fn next_claim(&self) -> Option<Time> {
        self.refused.as_ref().map(|(_, time)| *time)
    }

    pub fn alert(&self) -> Option<Failure> {
        let (why, _) = self.refused.as_ref()?;
        let text = "Job environment is disabled: users of this host for jobs cannot be claimed; it is tried again every few seconds";
        Some(Failure::new(text).because(why.clone()).with("alert_type", "job_uids_refused"))
    }
}

impl NodeCore {
    /// The server has named them.
    pub(crate) fn claim_uids(&mut self, uids: Option<JobUids>, fx: &mut Vec<NodeEffect>) {
        self.uids.wanted = uids;
        if uids.is_none() {
            // A server of an older version: each job without a uid is refused by itself.
            self.uids.refused = None;
        }
        fx.extend(uids.map(NodeEffect::ClaimUids));
    }

    pub(crate) fn uids_claimed(&mut self, now: Time, result: Result<(), Failure>) {
        let was_refused = self.uids.is_refused();
        self.uids.refused = result.err().map(|why| (why, now + PERIOD));
        if was_refused != self.uids.is_refused() {
            self.look_at_waiting = true;
            self.tell_limits_soon(now);
        }
    }

    pub(crate) fn claim_uids_again(&mut self, now: Time, fx: &mut Vec<NodeEffect>) {
        if let Some((_, time)) = &mut self.uids.refused
            && *time <= now
        {
            *time = now + PERIOD;
            fx.extend(self.uids.wanted.map(NodeEffect::ClaimUids));
        }
    }
}
