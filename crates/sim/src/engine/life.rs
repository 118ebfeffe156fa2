//! An operation from its submission to its end, as far as the event log has told.

use crate::metrics::{Attempts, Starved};
use crate::workload::{Operation, Task};
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{Span, Time};

/// An operation on its way.
pub struct Life {
    pub operation: Arc<Operation>,
    pub(super) at: Time,
    pub(super) running_since: Option<Time>,
    pub(super) first_allocation: Option<Time>,
    pub(super) counts: Attempts,
    pub(super) tree: String,
    pub(super) pool: String,
    pub(super) starved: Starved,
    /// Attempts so far of units that have not completed.
    pub(super) attempts: BTreeMap<(String, u64), u32>,
    /// By task, how long the longest of its jobs runs at full speed.
    pub(super) longest: Vec<Span>,
    /// Largest part of a memory limit that was reserved for a job.
    pub(super) most_reserved: Option<f64>,
}

impl Life {
    pub fn pool(&self) -> &str {
        &self.pool
    }

    /// Allocations that it has.
    pub fn running(&self) -> u64 {
        let c = &self.counts;
        c.started - (c.completed + c.failed + c.aborted)
    }

    pub(super) fn task(&self, name: &str) -> Option<(usize, &Task)> {
        self.operation.tasks.iter().enumerate().find(|(_, task)| task.name == name)
    }

    /// When a job could run first. `freed`: the tasks that its task waits for were complete then.
    pub(super) fn ready(&self, task: &str, cookie: u64, freed: Option<Time>) -> Time {
        let task = self.task(task).map(|(_, task)| task);
        let arrives = task.and_then(|task| Some(task.explicit.get(cookie as usize)?.arrives));
        (self.at + arrives.unwrap_or_default()).max(freed.unwrap_or(self.at))
    }

    /// How long it takes with all that it wants: the longest chain of tasks, each with its longest job. Of jobs
    /// that have not run nothing is known.
    pub(super) fn ideal(&self) -> Option<Span> {
        let mut ends = vec![None; self.longest.len()];
        let tasks = 0..self.longest.len();
        let last = tasks.map(|task| self.ideal_end(task, &mut ends)).max();
        last.filter(|last| *last > Span::ZERO)
    }

    /// Tasks do not wait in circles.
    fn ideal_end(&self, task: usize, ends: &mut [Option<Span>]) -> Span {
        if let Some(end) = ends[task] {
            return end;
        }
        let before = self.operation.tasks[task].after.iter().map(|before| self.ideal_end(*before, ends));
        let end = before.max().unwrap_or_default() + self.longest[task];
        ends[task] = Some(end);
        end
    }
}
