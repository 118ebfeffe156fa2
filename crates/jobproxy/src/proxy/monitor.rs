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
mod tests;
