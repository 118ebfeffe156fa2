//! Jobs that lose their pages as fast as they read them (jobs-and-nodes.md 4.8): they are killed by
//! nobody and get nowhere, and take the disk away from everybody else.

use crate::protocol::ThrashingDetector;
use std::time::{Duration, Instant};

pub(super) struct Thrashing {
    period: Duration,
    faults_allowed: i64,
    periods_allowed: i64,
    since: Instant,
    faults_then: i64,
    bad_periods: i64,
}

impl Thrashing {
    /// None if nobody wants to know.
    pub fn new(options: &ThrashingDetector, now: Instant) -> Option<Thrashing> {
        options.enabled.then(|| Thrashing {
            period: Duration::from_micros(options.check_period.as_micros().max(1)),
            faults_allowed: options.major_page_fault_count_threshold,
            periods_allowed: options.limit_overflow_count_threshold_to_abort_job,
            since: now,
            faults_then: 0,
            bad_periods: 0,
        })
    }

    /// Takes all major page faults so far; true when too many periods in a row were bad.
    pub fn look(&mut self, now: Instant, faults: i64) -> bool {
        if now.duration_since(self.since) < self.period {
            return false;
        }
        let bad = faults - self.faults_then > self.faults_allowed;
        self.bad_periods = if bad { self.bad_periods + 1 } else { 0 };
        (self.since, self.faults_then) = (now, faults);
        self.bad_periods > self.periods_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::Span;

    /// Faults at the end of each period; gives the period in which the job is given up.
    fn given_up(faults: &[i64]) -> Option<usize> {
        let options = ThrashingDetector {
            enabled: true,
            check_period: Span::from_secs(60),
            major_page_fault_count_threshold: 500,
            limit_overflow_count_threshold_to_abort_job: 2,
        };
        let start = Instant::now();
        let mut thrashing = Thrashing::new(&options, start).expect("enabled");
        (1..).zip(faults).find_map(|(period, faults)| {
            let at = start + Duration::from_secs(60 * period as u64);
            assert!(!thrashing.look(at - Duration::from_secs(1), 1_000_000), "the period is not over");
            thrashing.look(at, *faults).then_some(period)
        })
    }

    #[test]
    fn only_bad_periods_in_a_row_count() {
        assert_eq!(given_up(&[501, 1002, 1503]), Some(3));
        assert_eq!(given_up(&[500, 1000, 1500, 2000]), None, "strictly more");
        assert_eq!(given_up(&[501, 1002, 1002, 1503, 2004]), None, "a good one between");
        assert_eq!(given_up(&[501, 1002, 1002, 1503, 2004, 2505]), Some(6));
        assert!(Thrashing::new(&ThrashingDetector::default(), Instant::now()).is_none(), "off by default");
    }
}
