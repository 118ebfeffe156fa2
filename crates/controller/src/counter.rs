//! Job counters, with the shape that the API shows (jobs-and-nodes.md 6.6, http-api.md 9.2, 9.3).

use crate::units::UnitPool;
use std::collections::BTreeMap;
use vocab::{AbortReason, InterruptionReason};
use yson::{Map, Value};

/// Attempts and ends of a task's jobs. What is pending or running is the unit pool's knowledge.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobCounter {
    /// Units done, by the reason of the interruption of their last run (`none`: it was not).
    pub completed: BTreeMap<InterruptionReason, u64>,
    /// Runs that ended well because they were asked to stop; their units are run again
    /// (jobs-and-nodes.md 6.8). They stay under completed, and the total grows by each.
    pub made_room: BTreeMap<InterruptionReason, u64>,
    /// Runs that failed.
    pub failed: u64,
    /// Runs that were aborted, by reason.
    pub aborted: BTreeMap<AbortReason, u64>,
    /// Completed runs whose unit had to be run again.
    pub lost: u64,
}

/// Sums over tasks, with pending and running.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Ends.
    pub ends: JobCounter,
    /// To be started.
    pub pending: u64,
    /// At work.
    pub running: u64,
}

impl JobCounter {
    /// All units done and runs that made room.
    pub fn completed_total(&self) -> u64 {
        self.completed.values().chain(self.made_room.values()).sum()
    }
    /// All aborted runs.
    pub fn aborted_total(&self) -> u64 {
        self.aborted.values().sum()
    }
    /// All done units are lost (a new incarnation of a gang).
    pub(crate) fn lose_all(&mut self) {
        self.lost += self.completed.values().sum::<u64>();
        self.completed.clear();
    }
    fn merge(&mut self, other: &JobCounter) {
        fn add<K: Ord + Copy>(into: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
            from.iter().for_each(|(k, n)| *into.entry(*k).or_default() += n);
        }
        add(&mut self.completed, &other.completed);
        add(&mut self.made_room, &other.made_room);
        add(&mut self.aborted, &other.aborted);
        self.failed += other.failed;
        self.lost += other.lost;
    }
}

impl Totals {
    /// Of one task.
    pub fn of(counter: &JobCounter, units: &UnitPool) -> Totals {
        Totals { ends: counter.clone(), pending: units.pending().into(), running: units.running().into() }
    }
    /// Adds another task.
    pub fn add(&mut self, other: &Totals) {
        self.ends.merge(&other.ends);
        self.pending += other.pending;
        self.running += other.running;
    }
    /// Jobs that must complete, and those that have.
    pub fn total(&self) -> u64 {
        self.ends.completed_total() + self.running + self.pending
    }

    /// The full shape. Reasons of aborts are listed when they occurred.
    pub fn to_value(&self) -> Map {
        yson::map! {
            "total" => count(self.total()),
            "running" => count(self.running),
            "pending" => count(self.pending),
            "suspended" => 0i64,
            "failed" => count(self.ends.failed),
            "lost" => count(self.ends.lost),
            "invalidated" => 0i64,
            "uncategorized" => 0i64,
            "blocked" => 0i64,
            "completed" => self.completed(),
            "aborted" => self.aborted(),
        }
    }

    /// Plain integers, for `brief_progress`.
    pub fn to_brief(&self) -> Map {
        yson::map! {
            "total" => count(self.total()),
            "running" => count(self.running),
            "completed" => count(self.ends.completed_total()),
            "pending" => count(self.pending),
            "failed" => count(self.ends.failed),
            "aborted" => count(self.ends.aborted_total()),
            "lost" => count(self.ends.lost),
            "suspended" => 0i64,
            "invalidated" => 0i64,
            "uncategorized" => 0i64,
            "blocked" => 0i64,
        }
    }

    fn completed(&self) -> Map {
        let of = |reason: InterruptionReason| {
            let by = |map: &BTreeMap<_, u64>| map.get(&reason).copied().unwrap_or(0);
            by(&self.ends.completed) + by(&self.ends.made_room)
        };
        let interrupted = InterruptionReason::ALL.iter().filter(|r| **r != InterruptionReason::None);
        let mut shown: Map = interrupted.clone().map(|r| (r.as_str(), count(of(*r)))).collect();
        shown.insert("total", count(interrupted.map(|r| of(*r)).sum()));
        let plain = of(InterruptionReason::None);
        yson::map! {
            "total" => count(self.ends.completed_total()),
            "interrupted" => shown,
            "non-interrupted" => yson::map! {"none" => count(plain), "total" => count(plain)},
        }
    }

    fn aborted(&self) -> Map {
        let side = |scheduling: bool| {
            let mine = self.ends.aborted.iter().filter(move |(r, _)| r.is_scheduling() == scheduling);
            let mut shown: Map = mine.clone().map(|(r, n)| (r.as_str(), count(*n))).collect();
            shown.insert("total", count(mine.map(|(_, n)| n).sum()));
            shown
        };
        yson::map! {
            "total" => count(self.ends.aborted_total()),
            // Scheduled are those that did start on a node.
            "scheduled" => side(false),
            "non_scheduled" => side(true),
        }
    }
}

/// Counts are shown as int64 (http-api.md 4.2).
fn count(n: u64) -> Value {
    Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
}
