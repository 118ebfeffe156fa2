//! Leases of exclusive work (S19): how long a job may go on without word from the server.
//!
//! A unit of exclusive work must not run twice at once. The job proxy stops its job when the server has not heard its node
//! for the lease, so the server may give the unit away when the lease and a margin have passed since it heard the node last.
//!
//! Only what the server has *confirmed* extends a lease: a node stamps each heartbeat with its own clock, and the server
//! sends the stamp back. The stamp is older than the moment in which the server took note of the heartbeat, so the node's
//! count ends first, whichever direction of the connection is cut.

use crate::{Failure, Span};

/// Lease of exclusive work if nothing else is configured.
pub const DEFAULT_LEASE: Span = Span::from_secs(300);
/// Shortest lease; shorter ones count as this long.
pub const MIN_LEASE: Span = Span::from_secs(1);
/// Longest lease.
pub const MAX_LEASE: Span = Span::from_secs(7 * 86_400);

/// The lease of one job, on the clock of its node that counts from the start of the host and goes on while the host is
/// suspended (`CLOCK_BOOTTIME`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lease {
    /// Length.
    pub length: Span,
    /// The server has heard the node at this time or later; in the future if the server has extended the leases.
    pub from: Span,
}

impl Lease {
    /// The server has heard the node at this time. An earlier time than the known one changes nothing.
    pub fn extend(&mut self, from: Span) {
        self.from = self.from.max(from);
    }
    /// Time at which the lease is over.
    pub fn ends(&self) -> Span {
        self.from + self.length
    }
    /// Whether the lease is over at this time.
    pub fn is_over(&self, since_boot: Span) -> bool {
        since_boot >= self.ends()
    }
}

/// How long a job may take to stop by itself after its lease: a twentieth of the lease, 1 s to 15 s.
pub fn grace(lease: Span) -> Span {
    Span(lease.0 / 20).max(Span::from_secs(1)).min(Span::from_secs(15))
}

/// How much longer than the lease the server waits: the job's grace period, the same again for the agent and twice for the
/// kill, and a thousandth of the lease, since two clocks differ by less than that.
pub fn margin(lease: Span) -> Span {
    Span(grace(lease).0 * 4 + lease.0 / 1000)
}

/// Error of a job that has stopped at the end of its lease; the server knows it by the attribute `lease_period`.
pub fn over(lease: Span) -> Failure {
    Failure::new(format!(
        "The lease of the job is over: the server has not confirmed for {lease} that it hears the node"
    ))
    .with("lease_period", lease.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S19.
    #[test]
    fn a_lease_is_extended_and_never_shortened() {
        let mut lease = Lease { length: Span::from_secs(10), from: Span::from_secs(5) };
        assert_eq!(lease.ends(), Span::from_secs(15));
        assert!(!lease.is_over(Span::from_millis(14_999)) && lease.is_over(Span::from_secs(15)));
        lease.extend(Span::from_secs(7));
        lease.extend(Span::from_secs(6));
        assert_eq!(lease.ends(), Span::from_secs(17));
    }

    /// S19: proxy, agent and kill have their time before the server gives the unit away.
    #[test]
    fn the_margin_is_longer_than_all_that_follows_a_lease() {
        for seconds in [1, 3, 60, 300, 3600, 7 * 86_400] {
            let lease = Span::from_secs(seconds);
            assert!(margin(lease) >= Span(grace(lease).0 * 4), "{lease}");
            assert!(grace(lease) >= Span::from_secs(1) && grace(lease) <= Span::from_secs(15), "{lease}");
        }
        assert_eq!(margin(DEFAULT_LEASE), Span::from_millis(60_300));
    }
}
