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
    /// Attempts whose results have not come. The last one counts.
    under_way: u32,
    /// Why the last attempt failed, and the time of the next one.
    refused: Option<(Failure, Time)>,
}

impl UidClaim {
    /// Jobs may start, as far as uids are concerned.
    pub fn is_settled(&self) -> bool {
        self.under_way == 0 && self.refused.is_none()
    }

    pub fn is_refused(&self) -> bool {
        self.refused.is_some()
    }

    pub fn next_claim(&self) -> Option<Time> {
        self.refused.as_ref().filter(|_| self.under_way == 0).map(|(_, time)| *time)
    }

    pub fn alert(&self) -> Option<Failure> {
        let (why, _) = self.refused.as_ref()?;
        let text = "Job environment is disabled: users of this host for jobs cannot be claimed; it is tried again every few seconds";
        Some(Failure::new(text).because(why.clone()).with("alert_type", "job_uids_refused"))
    }
}

impl NodeCore {
    /// The server has named them. Jobs wait for the answer: a claim may take a while on a host with other nodes.
    pub(crate) fn claim_uids(&mut self, uids: Option<JobUids>, fx: &mut Vec<NodeEffect>) {
        self.uids.wanted = uids;
        if uids.is_none() {
            // A server of an older version: each job without a uid is refused by itself.
            self.uids.refused = None;
        }
        self.begin_claim(fx);
    }

    fn begin_claim(&mut self, fx: &mut Vec<NodeEffect>) {
        if let Some(wanted) = self.uids.wanted {
            self.uids.under_way += 1;
            fx.push(NodeEffect::ClaimUids(wanted));
        }
    }

    pub(crate) fn uids_claimed(&mut self, now: Time, result: Result<(), Failure>) {
        self.uids.under_way = self.uids.under_way.saturating_sub(1);
        if self.uids.under_way > 0 {
            return;
        }
        self.look_at_waiting = true;
        let was_refused = self.uids.is_refused();
        self.uids.refused = result.err().map(|why| (why, now + PERIOD));
        if was_refused != self.uids.is_refused() {
            self.tell_limits_soon(now);
        }
    }

    pub(crate) fn claim_uids_again(&mut self, now: Time, fx: &mut Vec<NodeEffect>) {
        if self.uids.next_claim().is_some_and(|time| time <= now) {
            self.begin_claim(fx);
        }
    }
}
