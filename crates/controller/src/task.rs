//! One task of a running operation: its units, counters, statistics, and what a job of it needs.

use crate::counter::{JobCounter, Totals};
use crate::memory::{Factors, MemoryReserve};
use crate::options::ControllerOptions;
use crate::spec::TaskSpec;
use crate::statistics::TaskStatistics;
use crate::units::UnitPool;
use std::collections::BTreeSet;
use vocab::{Artifact, Resources, Time};

/// State of one task.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Task {
    pub spec: TaskSpec,
    /// Files of the sandbox; resolved by the owner of the metadata tree.
    pub artifacts: Vec<Artifact>,
    pub memory: MemoryReserve,
    pub units: UnitPool,
    /// Jobs wanted; the spec's until it is changed at run time.
    pub job_count: u32,
    pub counter: JobCounter,
    pub statistics: TaskStatistics,
    /// `task_job_index` of the next job.
    pub next_job_index: u64,
    /// `task_job_index` of every job whose end has not been counted: running ones, and after a
    /// restart those that their nodes have still to report. What is below `next_job_index` and not
    /// here is over; that is how a repeated report is told from a new one.
    pub open: BTreeSet<u64>,
    pub start_time: Option<Time>,
    pub completion_time: Option<Time>,
    /// Changed since its state was last taken.
    pub dirty: bool,
}

impl Task {
    pub fn new(spec: TaskSpec, options: &ControllerOptions) -> Task {
        Task {
            artifacts: Vec::new(),
            memory: MemoryReserve::new(&spec.script, options),
            units: UnitPool::new(spec.job_count),
            job_count: spec.job_count,
            counter: JobCounter::default(),
            statistics: TaskStatistics::default(),
            next_job_index: 0,
            open: BTreeSet::new(),
            start_time: None,
            completion_time: None,
            dirty: true,
            spec,
        }
    }

    /// Resources of one job with these factors.
    pub fn needed(&self, factors: Factors) -> Resources {
        Resources {
            user_slots: 1,
            cpu: self.spec.script.cpu_limit,
            gpu: self.spec.script.gpu_limit,
            memory: self.memory.request(factors).total,
            network: 0,
        }
    }

    pub fn totals(&self) -> Totals {
        Totals::of(&self.counter, &self.units)
    }

    /// Rank of a cookie's job in the gang: cookies above the gang's size are reserved and have none
    /// (jobs-and-nodes.md 6.9).
    pub fn rank_of(&self, cookie: u32) -> Option<u32> {
        self.spec.gang_size.filter(|size| cookie < *size).map(|_| cookie)
    }

    /// Keeps `completion_time` in step with the units.
    pub fn note_completion(&mut self, now: Time) {
        match (self.units.is_complete(), self.completion_time) {
            (true, None) => self.completion_time = Some(now),
            (false, Some(_)) => self.completion_time = None,
            _ => {}
        }
    }
}
