//! The lease of an exclusive job (S19): without word from the server the job stops by itself, whatever has become of the agent.

use std::time::{Duration, Instant};

use vocab::lease::{Lease, grace};
use vocab::{Failure, Span};

/// What the job has to do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Claim {
    /// It may go on.
    Holds,
    /// It is to stop by itself, in this time at most.
    Stop(Span),
    /// It is to be killed.
    Kill,
}

/// See the module page.
#[derive(Debug)]
pub(super) struct LeaseWatch(Option<Lease>);

impl LeaseWatch {
    pub fn new(lease: Option<Lease>) -> LeaseWatch {
        LeaseWatch(lease)
    }

    /// The server has confirmed that it hears the node. A lease that is over stays over: the server may have given the unit away.
    pub fn extend(&mut self, from: Span, since_boot: Span) {
        if let Some(lease) = self.0.as_mut().filter(|lease| !lease.is_over(since_boot)) {
            lease.extend(from);
        }
    }

    /// The error of a job whose lease is over.
    pub fn error(&self) -> Failure {
        vocab::lease::over(self.0.map_or(Span::ZERO, |lease| lease.length))
    }

    /// What follows at this time.
    pub fn claim(&self, since_boot: Span) -> Claim {
        let Some(lease) = self.0.filter(|lease| lease.is_over(since_boot)) else { return Claim::Holds };
        let killed_at = lease.ends() + grace(lease.length);
        match killed_at.0.saturating_sub(since_boot.0) {
            0 => Claim::Kill,
            left => Claim::Stop(Span(left)),
        }
    }

    /// An administrator has extended the leases, and the extension is not over.
    pub fn is_extended(&self, since_boot: Span) -> bool {
        self.0.is_some_and(|lease| lease.from > since_boot)
    }

    /// When the claim changes next.
    pub fn next(&self, now: Instant, since_boot: Span) -> Option<Instant> {
        let lease = self.0?;
        let changes = [lease.ends(), lease.ends() + grace(lease.length)];
        let next = changes.into_iter().find(|at| *at > since_boot)?;
        Some(now + Duration::from_micros(next.0 - since_boot.0))
    }
}

/// Time since the start of the host; goes on while it is suspended.
pub(super) fn since_boot() -> Span {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Span(time.tv_sec.unsigned_abs() * 1_000_000 + time.tv_nsec.unsigned_abs() / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Span {
        Span::from_secs(seconds)
    }

    /// S19.
    #[test]
    fn a_job_is_asked_to_stop_and_killed_a_grace_period_later() {
        let watch = LeaseWatch::new(Some(Lease { length: s(60), from: s(100) }));
        assert_eq!(watch.claim(s(159)), Claim::Holds);
        assert_eq!(watch.claim(s(160)), Claim::Stop(s(3)), "a twentieth of the lease");
        assert_eq!(watch.claim(s(162)), Claim::Stop(s(1)));
        assert_eq!(watch.claim(s(163)), Claim::Kill);
        assert_eq!(watch.claim(s(10_000)), Claim::Kill, "the host was suspended");
        assert_eq!(watch.error().find_attribute("lease_period"), Some(&yson::Value::Int(60_000)));
    }

    /// S19: a proxy that was stopped with its agent reads what the server confirms now before it looks at its clock.
    #[test]
    fn a_lease_that_is_over_is_not_extended() {
        let mut watch = LeaseWatch::new(Some(Lease { length: s(60), from: s(100) }));
        watch.extend(s(150), s(159));
        watch.extend(s(120), s(200));
        assert_eq!(watch.claim(s(209)), Claim::Holds, "an old word shortens nothing");
        watch.extend(s(209), s(210));
        assert_eq!(watch.claim(s(210)), Claim::Stop(s(3)));
        watch.extend(s(300), s(300));
        assert_eq!(watch.claim(s(300)), Claim::Kill);
    }

    /// S19.
    #[test]
    fn the_next_look_is_at_the_end_and_at_the_kill() {
        let watch = LeaseWatch::new(Some(Lease { length: s(60), from: s(100) }));
        let now = Instant::now();
        assert_eq!(watch.next(now, s(100)), Some(now + Duration::from_secs(60)));
        assert_eq!(watch.next(now, s(160)), Some(now + Duration::from_secs(3)));
        assert_eq!(watch.next(now, s(163)), None);
        assert!(watch.is_extended(s(99)) && !watch.is_extended(s(100)));
        let none = LeaseWatch::new(None);
        assert_eq!((none.next(now, s(1)), none.claim(s(1))), (None, Claim::Holds));
    }
}
