//! How long finished operations are kept: a decision over three bounds, made for the one that ended
//! first. Whoever keeps them asks again until the answer is no.

use vocab::{Span, Time};

/// What the archive may hold. An operation takes its jobs and their stderrs with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// Finished operations, at most.
    pub max_operations: usize,
    /// After their end, at most so long; none: for ever.
    pub max_age: Option<Span>,
    /// Bytes of the records and stderrs of finished operations, at most; none: any number. Those of unfinished
    /// ones do not count: nobody's past is forgotten because another writes much.
    pub max_bytes: Option<u64>,
    /// Bytes of the records and stderrs of one user's unfinished operations: beyond that, long stderrs and fail contexts
    /// are not kept.
    pub max_unfinished_bytes_per_user: u64,
}

/// One operation may have this part of the bytes of all; one with more goes before others do.
const SHARE: u64 = 10;

impl Default for Retention {
    fn default() -> Retention {
        Retention {
            max_operations: 100_000,
            max_age: Some(Span::from_secs(30 * 86_400)),
            max_bytes: Some(16 << 30),
            max_unfinished_bytes_per_user: 8 << 30,
        }
    }
}

/// What the archive holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Held {
    /// Finished operations.
    pub operations: usize,
    /// Their bytes.
    pub bytes: u64,
    /// When the one that ended first did.
    pub first_end: Time,
}

impl Retention {
    /// Is it only the size that is exceeded? Then operations of more than so many bytes go first: nobody's past is
    /// forgotten because another's was large.
    pub(crate) fn share_exceeded(&self, now: Time, held: Held) -> Option<u64> {
        let others = Retention { max_bytes: None, ..*self };
        let most = self.max_bytes.filter(|most| held.bytes > *most && !others.is_exceeded(now, held))?;
        Some(most / SHARE)
    }

    /// Must the operation that ended first go?
    pub(crate) fn is_exceeded(&self, now: Time, held: Held) -> bool {
        held.operations > self.max_operations
            || self.max_bytes.is_some_and(|most| held.bytes > most)
            || self.max_age.is_some_and(|age| now.since(held.first_end) > age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Span = Span::from_secs(3600);

    fn check(limits: Retention, held: Held, expected: bool) {
        let now = Time::from_secs(1_000_000);
        assert_eq!(limits.is_exceeded(now, held), expected, "{limits:?} {held:?}");
    }

    #[test]
    fn each_bound_alone_is_enough() {
        let limits = Retention {
            max_operations: 3,
            max_age: Some(HOUR),
            max_bytes: Some(1000),
            ..Retention::default()
        };
        let fine = Held { operations: 3, bytes: 1000, first_end: Time::from_secs(1_000_000 - 3600) };
        check(limits, fine, false);
        check(limits, Held { operations: 4, ..fine }, true);
        check(limits, Held { bytes: 1001, ..fine }, true);
        check(limits, Held { first_end: Time::from_secs(1_000_000 - 3601), ..fine }, true);
    }

    #[test]
    fn the_share_of_one_counts_when_the_size_alone_is_exceeded() {
        let now = Time::from_secs(1_000_000);
        let limits = Retention {
            max_operations: 3,
            max_age: Some(HOUR),
            max_bytes: Some(1000),
            ..Retention::default()
        };
        let held = Held { operations: 3, bytes: 1001, first_end: now };
        assert_eq!(limits.share_exceeded(now, held), Some(100));
        assert_eq!(limits.share_exceeded(now, Held { bytes: 1000, ..held }), None);
        assert_eq!(limits.share_exceeded(now, Held { operations: 4, ..held }), None);
    }

    #[test]
    fn what_is_not_bounded_may_grow() {
        let limits =
            Retention { max_operations: usize::MAX, max_age: None, max_bytes: None, ..Retention::default() };
        check(limits, Held { operations: 1 << 40, bytes: u64::MAX, first_end: Time::default() }, false);
    }

    #[test]
    fn nothing_may_be_kept_at_all() {
        let limits = Retention { max_operations: 0, ..Retention::default() };
        check(limits, Held { operations: 1, bytes: 0, first_end: Time::from_secs(1_000_000) }, true);
    }

    #[test]
    fn an_end_in_the_future_is_not_old() {
        let limits = Retention { max_age: Some(HOUR), ..Retention::default() };
        check(limits, Held { operations: 1, bytes: 0, first_end: Time::from_secs(2_000_000) }, false);
    }
}
