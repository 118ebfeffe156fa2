//! One task of a running operation: its units, counters, statistics, and what a job of it needs.

use crate::backoff::FirstStart;
use crate::copies::Copies;
use crate::counter::{JobCounter, Totals};
use crate::cut::UnitRows;
use crate::environment;
use crate::memory::{Factors, Group, MemoryReserve, reserve_of};
use crate::open::OpenJobs;
use crate::options::ControllerOptions;
use crate::spec::{RootOptions, TaskSpec};
use crate::statistics::TaskStatistics;
use crate::units::UnitPool;
use std::ops::Range;
use std::sync::Arc;
use vocab::{Artifact, OperationId, Resources, Span, TableIo, Time};

/// State of one task.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Task {
    pub spec: TaskSpec,
    /// Files of the sandbox; resolved by the owner of the metadata tree.
    pub artifacts: Vec<Artifact>,
    /// Variables that all of its jobs have.
    pub environment: Arc<[(String, String)]>,
    /// Resolved `layer_paths`, topmost first.
    pub layers: Vec<Artifact>,
    pub memory: MemoryReserve,
    pub units: UnitPool,
    /// Jobs wanted; the spec's until it is changed at run time.
    pub job_count: u32,
    pub counter: JobCounter,
    pub statistics: TaskStatistics,
    /// `task_job_index` of the next job.
    pub next_job_index: u64,
    /// Jobs whose end has not been counted. What is below `next_job_index` and not here is over; that
    /// is how a repeated report is told from a new one.
    pub open: OpenJobs,
    /// Units that are run twice at once.
    pub copies: Copies,
    pub start_time: Option<Time>,
    pub completion_time: Option<Time>,
    /// Since the first start: when units waited to be started.
    pub ready: ReadyTime,
    /// Its tables, once they are resolved.
    pub tables: Option<TaskTables>,
    /// Units whose job was interrupted in the middle, and the row with which a new unit begins; oldest first.
    pub splits: Vec<(u32, u64)>,
    /// Whether a job of it has ever started, and the aborts before that.
    pub first_start: FirstStart,
    /// Changed since its state was last taken.
    pub dirty: bool,
}

/// Tables of a task's jobs.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TaskTables {
    /// What every job is told; the rows of the input are those of its unit.
    pub io: TableIo,
    /// Which rows each unit has; none: the jobs read no tables.
    pub rows: Option<UnitRows>,
}

impl Task {
    pub fn new(id: OperationId, spec: TaskSpec, root: &RootOptions, options: &ControllerOptions) -> Task {
        Task {
            artifacts: Vec::new(),
            environment: environment::common(id, &spec, root),
            layers: Vec::new(),
            memory: reserve_of(&spec.script, root, options),
            units: UnitPool::new(spec.job_count),
            job_count: spec.job_count,
            counter: JobCounter::default(),
            statistics: TaskStatistics::default(),
            next_job_index: 0,
            open: OpenJobs::default(),
            copies: Copies::default(),
            start_time: None,
            completion_time: None,
            ready: ReadyTime::default(),
            tables: None,
            splits: Vec::new(),
            first_start: FirstStart::default(),
            dirty: true,
            spec,
        }
    }

    /// Nothing is to be done, nothing is at work, and nothing more is to come.
    pub fn is_complete(&self) -> bool {
        self.units.is_complete() && self.job_count >= self.spec.expected_job_count
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

    /// What a job of this group needs, and how many are pending. Retries may need different amounts;
    /// what is asked for is enough for each of them.
    pub fn demand(&self, group: Group) -> Option<(Resources, u32)> {
        let (needed, count) = match group {
            Group::Usual => {
                let pending = self.units.available() - self.pending_retries().count() as u32;
                (self.needed(self.memory.current_factors()), pending)
            }
            Group::Retries => self.most_needed(self.pending_retries())?,
            Group::Copies => self.most_needed(self.copies.wanted_units())?,
        };
        (count > 0).then_some((needed, count))
    }

    /// What is enough for each of these units, and how many they are.
    fn most_needed(&self, units: impl Iterator<Item = u32>) -> Option<(Resources, u32)> {
        let needed = units.map(|cookie| (self.needed(self.memory.factors(cookie)), 1));
        needed.reduce(|(most, count), (needed, one)| (most.max(needed), count + one))
    }

    /// The smallest unit of a group.
    pub fn peek(&self, group: Group) -> Option<u32> {
        match group {
            Group::Usual => self.units.peek_where(|cookie| !self.memory.is_overdrafted(cookie)),
            Group::Retries => self.pending_retries().next(),
            Group::Copies => self.copies.peek().map(|(cookie, _)| cookie),
        }
    }

    /// Rows that a unit has; none in tasks that read no tables.
    pub fn rows_of(&self, cookie: u32) -> Option<Range<u64>> {
        self.tables.as_ref()?.rows.as_ref().map(|rows| rows.of(cookie))
    }

    /// The rest of a unit, from this row on, is a unit of its own from now on. False: there is no rest.
    pub fn split(&mut self, cookie: u32, row: u64) -> bool {
        let Some(fresh) = self.tables.as_mut().and_then(|tables| tables.rows.as_mut()?.split(cookie, row))
        else {
            return false;
        };
        self.splits.push((cookie, row));
        self.units.add(fresh);
        self.job_count += 1;
        true
    }

    pub fn totals(&self) -> Totals {
        Totals::of(&self.counter, &self.units)
    }

    /// Rank of a cookie's job in the gang: cookies above the gang's size are reserved and have none
    /// (jobs-and-nodes.md 6.9).
    pub fn rank_of(&self, cookie: u32) -> Option<u32> {
        self.spec.gang_size.filter(|size| cookie < *size).map(|_| cookie)
    }

    /// Keeps `completion_time` and the time with pending units in step with the units.
    pub fn note_time(&mut self, now: Time) {
        match (self.is_complete(), self.completion_time) {
            (true, None) => self.completion_time = Some(now),
            (false, Some(_)) => self.completion_time = None,
            _ => {}
        }
        if self.start_time.is_some() {
            self.ready.note(now, self.units.pending() > 0);
        }
    }

    /// Of the time since the first start, until the task was complete: with pending units, and without
    /// (`ready_time`, `exhaust_time`).
    pub fn times(&self, now: Time) -> (Span, Span) {
        let Some(start) = self.start_time else { return (Span::ZERO, Span::ZERO) };
        let (all, ready) = (self.completion_time.unwrap_or(now).since(start), self.ready.total(now));
        (ready, Span(all.0.saturating_sub(ready.0)))
    }
}

/// How long something has been so, as far as it was noted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct ReadyTime {
    /// Until it was not so any more.
    pub past: Span,
    /// It is so.
    pub since: Option<Time>,
}

impl ReadyTime {
    fn note(&mut self, now: Time, ready: bool) {
        match (self.since, ready) {
            (None, true) => self.since = Some(now),
            (Some(_), false) => *self = ReadyTime { past: self.total(now), since: None },
            _ => {}
        }
    }
    fn total(&self, now: Time) -> Span {
        self.past + self.since.map_or(Span::ZERO, |since| now.since(since))
    }
}
