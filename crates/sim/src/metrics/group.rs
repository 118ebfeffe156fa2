//! What came of operations and jobs that belong together: of the cluster, of a pool, of a user.

use super::{Spread, round};
use std::collections::BTreeMap;
use vocab::Span;
use yson::Map;

/// Sums over attempts of jobs.
#[derive(Clone, Copy, Default, Debug)]
pub struct Attempts {
    pub started: u64,
    pub completed: u64,
    pub failed: u64,
    pub aborted: u64,
    pub preempted: u64,
    pub interrupted: u64,
    pub overdrafted: u64,
    pub node_lost: u64,
    pub over_limit: u64,
    pub cpu_s: f64,
    pub gpu_s: f64,
    /// Cores in use, as jobs tell it at their ends.
    pub used_cpu_s: f64,
    /// Of attempts without a result.
    pub lost_cpu_s: f64,
    pub lost_gpu_s: f64,
    pub preempted_cpu_s: f64,
    pub preempted_gpu_s: f64,
    /// Between the order to stop and the end of jobs that did.
    pub stopping_cpu_s: f64,
    pub stopping_gpu_s: f64,
    pub overdrafted_cpu_s: f64,
    pub node_lost_cpu_s: f64,
    pub over_limit_cpu_s: f64,
    pub total_ms: u64,
    pub longest_ms: u64,
}

/// An attempt that is over.
pub struct End<'a> {
    /// `completed`, `failed` or `aborted`.
    pub outcome: &'a str,
    /// Of an abort.
    pub reason: &'a str,
    /// It stopped because it was asked to, and left the rest to the next one; this long after the order.
    pub stopped_after: Option<Span>,
    /// It failed at its memory limit.
    pub over_limit: bool,
    /// From the order to start it.
    pub ran: Span,
    pub cpu: f64,
    pub gpu: f64,
    pub used_cpu_s: f64,
}

impl Attempts {
    /// One more is over.
    pub fn add(&mut self, end: &End<'_>) {
        let (ms, seconds) = (end.ran.as_millis(), end.ran.as_secs_f64());
        let (cpu_s, gpu_s) = (seconds * end.cpu, seconds * end.gpu);
        match end.outcome {
            "completed" => self.completed += 1,
            "failed" => self.failed += 1,
            _ => self.aborted += 1,
        }
        match end.reason {
            "preemption" => {
                self.preempted += 1;
                self.preempted_cpu_s += cpu_s;
                self.preempted_gpu_s += gpu_s;
            }
            "resource_overdraft" => {
                self.overdrafted += 1;
                self.overdrafted_cpu_s += cpu_s;
            }
            "node_offline" => {
                self.node_lost += 1;
                self.node_lost_cpu_s += cpu_s;
            }
            _ => {}
        }
        if end.over_limit {
            self.over_limit += 1;
            self.over_limit_cpu_s += cpu_s;
        }
        if let Some(after) = end.stopped_after {
            self.interrupted += 1;
            self.stopping_cpu_s += after.as_secs_f64() * end.cpu;
            self.stopping_gpu_s += after.as_secs_f64() * end.gpu;
        }
        if end.outcome != "completed" {
            self.lost_cpu_s += cpu_s;
            self.lost_gpu_s += gpu_s;
        }
        self.cpu_s += cpu_s;
        self.gpu_s += gpu_s;
        self.used_cpu_s += end.used_cpu_s;
        self.total_ms += ms;
        self.longest_ms = self.longest_ms.max(ms);
    }

    /// `waste` of the summary.
    pub fn waste(&self) -> Map {
        let part = |lost: f64, all: f64| round(if all > 0.0 { lost / all } else { 0.0 });
        yson::map! {
            "allocated_cpu_s" => round(self.cpu_s),
            "allocated_gpu_s" => round(self.gpu_s),
            "preempted_cpu_s" => round(self.preempted_cpu_s),
            "preempted_gpu_s" => round(self.preempted_gpu_s),
            "stopping_cpu_s" => round(self.stopping_cpu_s),
            "stopping_gpu_s" => round(self.stopping_gpu_s),
            "preemption_share" => part(self.preempted_cpu_s + self.stopping_cpu_s, self.cpu_s),
            "preemption_gpu_share" => part(self.preempted_gpu_s + self.stopping_gpu_s, self.gpu_s),
            "lost_cpu_s" => round(self.lost_cpu_s),
            "lost_gpu_s" => round(self.lost_gpu_s),
            "overdrafted_jobs" => self.overdrafted,
            "overdrafted_cpu_s" => round(self.overdrafted_cpu_s),
            "jobs_lost_with_nodes" => self.node_lost,
            "lost_with_nodes_cpu_s" => round(self.node_lost_cpu_s),
            "jobs_over_memory_limit" => self.over_limit,
            "over_memory_limit_cpu_s" => round(self.over_limit_cpu_s),
        }
    }

    fn counts(&self) -> Map {
        yson::map! {
            "started" => self.started,
            "completed" => self.completed,
            "failed" => self.failed,
            "aborted" => self.aborted,
            "preempted" => self.preempted,
            "interrupted" => self.interrupted,
        }
    }
}

/// Time in starvation.
#[derive(Clone, Copy, Default, Debug)]
pub struct Starved {
    /// In all, and of it aggressively.
    pub time: Span,
    pub aggressively: Span,
    pub episodes: u64,
    pub longest: Span,
}

impl Starved {
    /// An episode is over, or the run.
    pub fn add(&mut self, time: Span, aggressively: Span) {
        self.time = self.time + time;
        self.aggressively = self.aggressively + aggressively;
        self.episodes += 1;
        self.longest = self.longest.max(time);
    }

    /// Sums of both.
    pub fn merge(&mut self, other: &Starved) {
        self.time = self.time + other.time;
        self.aggressively = self.aggressively + other.aggressively;
        self.episodes += other.episodes;
        self.longest = self.longest.max(other.longest);
    }

    /// `starvation` of the summary.
    pub fn to_map(self) -> Map {
        yson::map! {
            "s" => round(self.time.as_secs_f64()),
            "aggressively_s" => round(self.aggressively.as_secs_f64()),
            "episodes" => self.episodes,
            "longest_s" => round(self.longest.as_secs_f64()),
        }
    }
}

/// See the module page.
#[derive(Clone, Default, Debug)]
pub struct Group {
    /// Operations by their state at the end.
    pub states: BTreeMap<&'static str, u64>,
    pub attempts: Attempts,
    /// Of operations: from the submission to the first allocation.
    pub operation_wait: Spread,
    /// Of operations: from the submission until they run.
    pub pending: Spread,
    /// Of jobs: from when they could run first to their first start; weights are core-seconds.
    pub job_wait: Spread,
    /// Of jobs and operations, thousandths.
    pub job_slowdown: Spread,
    pub operation_slowdown: Spread,
    /// Of operations.
    pub starved: Starved,
}

impl Group {
    /// Figures that the cluster, pools and users have.
    pub fn to_map(&self) -> Map {
        let states: Map = self.states.iter().map(|(state, count)| (*state, *count)).collect();
        yson::map! {
            "operations" => states,
            "jobs" => self.attempts.counts(),
            "waste" => self.attempts.waste(),
        }
        .into_iter()
        .chain(self.waits())
        .collect()
    }

    /// Waits, slowdown and starvation.
    pub fn waits(&self) -> Map {
        yson::map! {
            "operation_wait_s" => self.operation_wait.to_map(),
            "operation_pending_s" => self.pending.to_map(),
            "wait_s" => self.job_wait.to_weighted_map("by_core_seconds"),
            "slowdown" => self.job_slowdown.to_map(),
            "operation_slowdown" => self.operation_slowdown.to_map(),
            "operation_starvation" => self.starved.to_map(),
        }
    }
}
