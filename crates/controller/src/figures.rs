//! A running job in a few numbers that can be drawn over time: what it uses, what it is promised.

use crate::JobView;
use vocab::{JobStatistics, Span};

/// CPU in cores, memory in bytes. Where a job is not watched, what it is promised is what it ordered. What
/// never changes, its limits, is not among them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct JobFigures {
    /// Since the report before.
    pub cpu_usage: f64,
    /// As the CPU monitor sees it (jobs-and-nodes.md 1.2).
    pub cpu_smoothed: f64,
    /// What the CPU monitor leaves it at present; with reclaim off, what it would.
    pub cpu_guarantee: f64,
    /// Anonymous memory.
    pub memory_usage: f64,
    /// The most so far.
    pub memory_peak: f64,
    /// Reserved for the user's processes (jobs-and-nodes.md 2).
    pub memory_reserve: f64,
}

/// What a job has spent so far: two of them make a rate.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Spent {
    cpu: f64,
    running: f64,
}

impl Spent {
    fn of(statistics: &JobStatistics) -> Spent {
        let cpu = [
            statistics.user_job_cpu_user,
            statistics.user_job_cpu_system,
            statistics.job_proxy_cpu_user,
            statistics.job_proxy_cpu_system,
        ];
        Spent { cpu: cpu.into_iter().map(Span::as_secs_f64).sum(), running: statistics.exec.as_secs_f64() }
    }

    /// Cores; nothing if no time has passed.
    fn cores_since(&self, before: Spent) -> Option<f64> {
        let running = self.running - before.running;
        (running > 0.0).then(|| ((self.cpu - before.cpu) / running).max(0.0))
    }
}

impl JobView<'_> {
    /// As of its newest report; nothing spent before the first.
    pub fn spent(&self) -> Spent {
        self.joblet.statistics.as_deref().map(Spent::of).unwrap_or_default()
    }

    /// None if nothing has been reported since.
    pub fn figures(&self, before: Spent) -> Option<JobFigures> {
        let statistics = self.joblet.statistics.as_deref()?;
        let cores = |micro: i64| micro as f64 / 1e6;
        let cpu_usage = Spent::of(statistics).cores_since(before)?;
        let ordered = self.task.spec.script.cpu_limit.as_f64();
        let monitor = statistics.cpu_monitor.as_ref();
        Some(JobFigures {
            cpu_usage,
            cpu_smoothed: monitor.map_or(cpu_usage, |m| cores(m.smoothed)),
            cpu_guarantee: monitor.map_or(ordered, |m| cores(m.limit)),
            memory_usage: statistics.user_job_current_rss as f64,
            memory_peak: statistics.user_job_max_memory as f64,
            memory_reserve: self.joblet.reserve.user_job_reserve as f64,
        })
    }
}
