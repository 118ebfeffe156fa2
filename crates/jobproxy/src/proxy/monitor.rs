//! The CPU monitor of a running job at work: reads the counters, writes the guarantee
//! (jobs-and-nodes.md 1.4, 1.5). The thinking is [`reserve::cpu_monitor`].

use cage::{CageError, Container, CpuUsage, sys};
use reserve::cpu_monitor::{Fate, Monitor, Options};
use std::time::{Duration, Instant};
use vocab::{Cpu, CpuMonitorChange, CpuMonitorReport, Span, Time};
use yson::Map;
use yson::fields::{FieldError, Fields};

/// The two things of a container that the monitor writes.
pub(super) trait Knobs {
    fn guarantee(&mut self, cores: Cpu) -> Result<(), CageError>;
    fn cap(&mut self, cores: Cpu) -> Result<(), CageError>;
}

impl Knobs for dyn Container {
    fn guarantee(&mut self, cores: Cpu) -> Result<(), CageError> {
        self.set_cpu_guarantee(cores)
    }
    fn cap(&mut self, cores: Cpu) -> Result<(), CageError> {
        self.set_cpu_cap(Some(cores))
    }
}

pub(super) struct CpuWatch {
    monitor: Monitor,
    started_at: Instant,
    period: Duration,
    /// None: a job without a guarantee has nothing that could be moved (1.3).
    next_check: Option<Instant>,
    sets_cap: bool,
    /// What the container has.
    guarantee: Cpu,
    last_change: Option<CpuMonitorChange>,
}

/// Does the cap of this job follow its monitor (4.5)? Without reclaim the limit of the monitor is only
/// an idea, and nothing may be bounded by it.
pub(super) fn caps(node_wants: bool, options: &Options) -> bool {
    node_wants && options.enable_cpu_reclaim
}

/// The options of an order to start.
pub(super) fn options(given: &Map) -> Result<Options, FieldError> {
    Options::read(&mut Fields::new(given, ""))
}

impl CpuWatch {
    pub fn new(options: Options, hard: Cpu, sets_cap: bool, started_at: Instant) -> CpuWatch {
        let period = duration(options.check_period);
        CpuWatch {
            sets_cap: caps(sets_cap, &options),
            monitor: Monitor::new(options, hard.as_f64()),
            started_at,
            period,
            next_check: (hard > Cpu(0)).then(|| started_at + period),
            guarantee: hard,
            last_change: None,
        }
    }

    /// When to call [`CpuWatch::check`] next.
    pub fn next_check(&self) -> Option<Instant> {
        self.next_check
    }

    /// One check. Says whether the guarantee is another one now; an error is that of the container,
    /// which keeps what it had.
    pub fn check(
        &mut self,
        now: Instant,
        wall: Time,
        used: Option<CpuUsage>,
        container: &mut (impl Knobs + ?Sized),
    ) -> Result<bool, CageError> {
        // A late check does not shift those after it, and missed ones are not made up for: the monitor
        // takes the true time between two readings.
        let mut next = self.next_check.unwrap_or(now);
        while next <= now {
            next += self.period;
        }
        self.next_check = Some(next);
        // What the job uses is its own and its proxy's.
        let own = sys::own_usage();
        let total = used.map(|cpu| span(cpu.user + cpu.system + own.user + own.system));
        let since_start = span(now.duration_since(self.started_at));

        let (before, sets_cap) = (self.guarantee, self.sets_cap);
        let mut written = Ok(before);
        let check = self.monitor.check(since_start, total, |limit| {
            written = write(container, before, Cpu::from_f64(limit), sets_cap);
            written.is_ok()
        });
        if let Some(change) = check.change {
            self.last_change = Some(CpuMonitorChange {
                time: wall,
                from: micros(change.from),
                to: micros(change.to),
                applied: change.fate != Fate::Refused,
            });
        }
        self.guarantee = written?;
        Ok(self.guarantee != before)
    }

    /// What the container has.
    pub fn guarantee(&self) -> Cpu {
        self.guarantee
    }

    /// State and figures; none before the first measurement (1.6).
    pub fn report(&self) -> Option<CpuMonitorReport> {
        let vote = |vote: i8| match vote {
            1 => '+',
            0 => '0',
            _ => '-',
        };
        Some(CpuMonitorReport {
            statistics: self.monitor.statistics()?,
            limit: micros(self.monitor.limit()),
            smoothed: micros(self.monitor.smoothed()?),
            reclaims: self.monitor.options().enable_cpu_reclaim,
            votes: self.monitor.votes().map(vote).collect(),
            last_change: self.last_change,
        })
    }
}

/// Gives what the container has then. A change is whole or is none.
fn write(
    container: &mut (impl Knobs + ?Sized),
    before: Cpu,
    new: Cpu,
    sets_cap: bool,
) -> Result<Cpu, CageError> {
    container.guarantee(new)?;
    if sets_cap && let Err(e) = container.cap(new) {
        // If this fails too there is no better word than the first error.
        let _ = container.guarantee(before);
        return Err(e);
    }
    Ok(new)
}

fn span(d: Duration) -> Span {
    Span(u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
}

fn duration(span: Span) -> Duration {
    Duration::from_micros(span.as_micros().max(1))
}

/// Millionths; what does not fit saturates.
fn micros(cores: f64) -> i64 {
    (cores * 1e6).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A container that can be broken.
    #[derive(Default)]
    struct Fake {
        guarantee: Option<Cpu>,
        cap: Option<Cpu>,
        refuses: (bool, bool),
    }

    fn refused() -> CageError {
        CageError::Io {
            action: "write",
            path: "cpu.weight".into(),
            source: std::io::ErrorKind::NotFound.into(),
        }
    }

    impl Knobs for Fake {
        fn guarantee(&mut self, cores: Cpu) -> Result<(), CageError> {
            (!self.refuses.0).then(|| self.guarantee = Some(cores)).ok_or_else(refused)
        }
        fn cap(&mut self, cores: Cpu) -> Result<(), CageError> {
            (!self.refuses.1).then(|| self.cap = Some(cores)).ok_or_else(refused)
        }
    }

    /// Decides after two checks alike, once a second.
    fn watch(sets_cap: bool) -> CpuWatch {
        let options = Options {
            enable_cpu_reclaim: true,
            smoothing_factor: 1.0,
            vote_window_size: 2,
            vote_decision_threshold: 1,
            decrease_coefficient: 0.5,
            ..Options::default()
        };
        CpuWatch::new(options, Cpu(400), sets_cap, Instant::now())
    }

    /// So many checks of a job that uses nothing; the last answer.
    fn idle(watch: &mut CpuWatch, checks: u32, container: &mut Fake) -> Result<bool, CageError> {
        let mut last = Ok(false);
        for _ in 0..checks {
            // The proxy's own time goes on: idle is what it is, not zero.
            let at = watch.next_check().expect("a guarantee");
            last = watch.check(at, Time(7), Some(CpuUsage::default()), container);
        }
        last
    }

    #[test]
    fn a_change_is_written_and_told() {
        let (mut watch, mut container) = (watch(true), Fake::default());
        // Baseline, seed, two votes.
        assert!(!idle(&mut watch, 3, &mut container).expect("nothing yet"));
        assert_eq!((watch.guarantee(), container.guarantee), (Cpu(400), None));
        assert!(idle(&mut watch, 1, &mut container).expect("written"));
        assert_eq!((container.guarantee, container.cap), (Some(Cpu(200)), Some(Cpu(200))));
        let report = watch.report().expect("measured");
        let change = report.last_change.expect("a decision");
        assert_eq!(
            (change.from, change.to, change.applied, change.time),
            (4_000_000, 2_000_000, true, Time(7))
        );
        assert_eq!((report.limit, report.votes.as_str()), (2_000_000, ""));
    }

    /// 1.5: when the container refuses, the limit stays and the votes are gone all the same.
    #[test]
    fn what_cannot_be_written_does_not_count() {
        let (mut watch, mut container) = (watch(false), Fake { refuses: (true, false), ..Fake::default() });
        assert!(idle(&mut watch, 4, &mut container).is_err());
        assert_eq!(watch.guarantee(), Cpu(400));
        let report = watch.report().expect("measured");
        assert_eq!((report.limit, report.votes.as_str()), (4_000_000, ""));
        assert!(!report.last_change.expect("a decision").applied);
        assert_eq!(report.statistics.aggregated_preemptible_cpu_x100, 0);
        // It works again: the next window decides.
        container.refuses.0 = false;
        assert!(idle(&mut watch, 2, &mut container).expect("written"));
        assert_eq!(watch.guarantee(), Cpu(200));
    }

    /// A change is whole or is none.
    #[test]
    fn half_a_change_is_taken_back() {
        let (mut watch, mut container) = (watch(true), Fake { refuses: (false, true), ..Fake::default() });
        assert!(idle(&mut watch, 4, &mut container).is_err());
        assert_eq!((watch.guarantee(), container.guarantee), (Cpu(400), Some(Cpu(400))));
    }

    #[test]
    fn a_counter_that_cannot_be_read_or_goes_back_is_no_vote() {
        let (mut watch, mut container) = (watch(false), Fake::default());
        let mut check = |used: Option<u64>| {
            let at = watch.next_check().expect("a guarantee");
            let used = used.map(|s| CpuUsage { user: Duration::from_secs(s), ..CpuUsage::default() });
            let changed = watch.check(at, Time(0), used, &mut container).expect("nothing to refuse");
            (changed, watch.report().map(|report| report.votes))
        };
        assert_eq!(check(Some(100)), (false, None), "the baseline");
        assert_eq!(check(None), (false, None));
        assert_eq!(check(Some(108)), (false, Some("+".to_owned())), "the seed, over two seconds");
        assert_eq!(check(Some(50)), (false, Some("+".to_owned())), "a new baseline");
        assert_eq!(check(Some(50)), (false, Some("-".to_owned())), "the window slides");
    }

    /// A proxy that slept for a minute makes one check, not sixty, and the next one in time.
    #[test]
    fn late_checks_are_not_made_up_for() {
        let (mut watch, mut container) = (watch(false), Fake::default());
        let first = watch.next_check().expect("a guarantee");
        let late = first + Duration::from_millis(60_300);
        watch.check(late, Time(0), Some(CpuUsage::default()), &mut container).expect("nothing to refuse");
        assert_eq!(watch.next_check(), Some(first + Duration::from_secs(61)));
    }
}
