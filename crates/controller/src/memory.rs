//! Memory of a task's jobs: what is reserved for a new one, learned from those that ended
//! (jobs-and-nodes.md 2).
//!
//! The machine is [`reserve::memory_digest`]; here it gets its settings from the spec and its samples
//! from the ends of jobs. A unit whose job was aborted for its memory needs more than the others of
//! its task, so such units are a group of their own in the demand ([`crate::Demand`]).

use crate::operation::OperationController;
use crate::options::ControllerOptions;
use crate::spec::{RootOptions, UserScript};
use crate::task::Task;
use reserve::memory_digest::{Bases, Ended, LogDigest, Peaks, Settings};
use vocab::{AbortReason, JobOutcome, JobStatistics};
use yson::{Map, Value};

use crate::job::Joblet;
pub use reserve::memory_digest::{Factors, Origins, Request as MemoryRequest, Reserves as MemoryReserve};

/// What the memory of a job was reserved with when it started, and what that came to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Reserved {
    pub factors: Factors,
    pub request: MemoryRequest,
}

impl Reserved {
    /// As a job that started now would have it.
    pub fn new(memory: &MemoryReserve, factors: Factors) -> Reserved {
        Reserved { factors, request: memory.request(factors) }
    }
}

/// A task that runs this script and has learned nothing yet.
pub(crate) fn reserve_of(
    script: &UserScript,
    root: &RootOptions,
    options: &ControllerOptions,
) -> MemoryReserve {
    MemoryReserve::new(settings_of(script, root, options))
}

/// How it is reserved and learned.
pub(crate) fn settings_of(script: &UserScript, root: &RootOptions, options: &ControllerOptions) -> Settings {
    let bases = Bases {
        footprint: options.footprint_memory,
        // Tables are what is buffered; a task without them has none (2.6).
        io_estimate: 0,
        memory_limit: script.memory_limit,
        tmpfs_size: script.tmpfs_size(),
    };
    Settings::new(
        bases,
        &options.memory_digest,
        &script.memory,
        &script.job_proxy_digest,
        (&root.job_proxy_memory_digest, root.job_proxy_overdraft_multiplier),
    )
}

/// Bars of a digest's picture, at most.
const BARS: u32 = 60;

/// A digest as the API shows it: what it says, and the picture of what taught it.
pub(crate) fn digest_value(digest: &LogDigest, quantile: f64) -> Map {
    let bounds = digest.bounds();
    let histogram: Vec<Value> = digest
        .histogram(BARS)
        .into_iter()
        .map(|(lower, upper, count)| yson::map! {"lower" => lower, "upper" => upper, "count" => count}.into())
        .collect();
    yson::map! {
        "samples" => digest.count(), "quantile" => quantile, "value" => digest.quantile(quantile),
        "lower_bound" => bounds.lower, "default_value" => bounds.default, "upper_bound" => bounds.upper,
        "histogram" => histogram,
    }
}

/// What a job was measured with, memory file systems included. Zero is what nodes report of a job that
/// never ran.
fn peaks(statistics: Option<&JobStatistics>) -> Peaks {
    let measured = |of: fn(&JobStatistics) -> i64| statistics.map(of).filter(|peak| *peak > 0);
    Peaks {
        user_job: measured(|s| s.user_job_peak_memory.max(s.user_job_max_memory)),
        job_proxy: measured(|s| s.job_proxy_max_memory),
    }
}

impl Task {
    /// A job is over: what its task learns from it (2.3). Its unit has not been moved yet.
    pub(crate) fn learn(&mut self, joblet: &Joblet, outcome: &JobOutcome) {
        let peaks = peaks(joblet.statistics.as_deref());
        match outcome {
            JobOutcome::Completed { .. } => self.memory.completed(peaks),
            JobOutcome::Aborted { reason: AbortReason::ResourceOverdraft, .. } => {
                self.memory.overdrafted(&Ended {
                    job_id: joblet.identity.job_id,
                    cookie: joblet.identity.cookie,
                    factors: joblet.factors,
                    reserve: joblet.reserve,
                    peaks,
                });
            }
            JobOutcome::Failed { .. } | JobOutcome::Aborted { .. } => {}
        }
    }

    /// A unit has been moved: when it is not to be run again, its past does not matter any more.
    pub(crate) fn forget_overdraft(&mut self, cookie: u32) {
        if !self.units.is_pending(cookie) && !self.units.is_running(cookie) {
            self.memory.unit_done(cookie);
        }
    }

    /// Pending units whose job was aborted for its memory, ascending.
    pub(crate) fn pending_retries(&self) -> impl Iterator<Item = u32> + '_ {
        self.memory.overdrafted_units().filter(|cookie| self.units.is_available(*cookie))
    }
}

impl OperationController {
    /// Tasks have three groups of units each: those that were never aborted for their memory, under the
    /// task's number, those that were, under the number of tasks more, and those at work that want a copy,
    /// under twice the number of tasks more. Gives task and group.
    pub(crate) fn group(&self, number: u32) -> Option<(u32, Group)> {
        let tasks = self.task_names().len() as u32;
        let group = match number.checked_div(tasks)? {
            0 => Group::Usual,
            1 => Group::Retries,
            2 => Group::Copies,
            _ => return None,
        };
        Some((number % tasks, group))
    }
}

/// One of the groups of units that a task wants jobs for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Group {
    /// They need what the task has learned.
    Usual,
    /// They need more.
    Retries,
    /// They are at work already, and slow.
    Copies,
}
