//! Counters: per tree since the start, and per node of the newest passes (scheduling.md 19.5, 20).
//!
//! There are no durations here, because the scheduler has no clock; whoever calls it may measure.

use crate::preemption::{PreemptionGroup, PreemptionKind, PreemptionPriority, PreemptionRecord, Stage};
use crate::reasons::Deactivation;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{OperationId, Resources, Span, Time};
use yson::{Map, Value};

/// Why a starvation ended (scheduling.md 6.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StarvationEnd {
    /// The fair share is smaller than when it began.
    FairShareDecreased,
    /// It got something.
    UsageIncreased,
}

impl StarvationEnd {
    /// The public name.
    pub const fn as_str(self) -> &'static str {
        match self {
            StarvationEnd::FairShareDecreased => "fair_share_decreased",
            StarvationEnd::UsageIncreased => "usage_increased",
        }
    }
}

/// An operation began to starve, or does not any more (events `operation_starvation_started` and
/// `operation_starvation_finished`, scheduling.md 20).
#[derive(Clone, PartialEq, Debug)]
pub struct StarvationNotice {
    /// When.
    pub time: Time,
    /// Where.
    pub tree: Arc<str>,
    /// Who.
    pub operation: OperationId,
    /// How it ended after how long; none: it began.
    pub ended: Option<(StarvationEnd, Span)>,
}

/// Intervals of starvation that are over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StarvationIntervals {
    /// How many.
    pub count: u64,
    /// How long together.
    pub duration: Span,
}

/// Counters of a tree since the start of the scheduler (scheduling.md 20).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TreeMetrics {
    /// Operations passed over, by reason ([`Deactivation::ALL`]).
    pub deactivations: [u64; Deactivation::ALL.len()],
    /// Allocations started, by stage ([`Stage::ALL`]).
    pub scheduled_allocations: [u64; Stage::ALL.len()],
    /// Their resources.
    pub scheduled_resources: [Resources; Stage::ALL.len()],
    /// Allocations preempted and their resources, by pool and kind.
    pub preempted: BTreeMap<(Arc<str>, PreemptionKind), (u64, Resources)>,
    /// Resources preempted for operations that had the priority of the stage only through their pools.
    pub improperly_preempted_resources: Resources,
    /// Passes over nodes, without and with preemptive stages.
    pub passes: [u64; 2],
    /// Times that a stage was run, and operations tried in it.
    pub stages: [(u64, u64); Stage::ALL.len()],
    /// Starvation of operations that ended with less fair share, with more usage.
    pub starvation: [StarvationIntervals; 2],
    /// Operations by priority of preemption at the newest update ([`PreemptionPriority::ALL`]).
    pub operation_count_by_preemption_priority: [i64; 3],
}

/// Pools that are named in counters; what comes after is counted under `<other>`.
const POOLS_IN_COUNTERS: usize = 4_096;

impl TreeMetrics {
    pub(crate) fn preempted(
        &mut self,
        pool: &Arc<str>,
        kind: PreemptionKind,
        resources: Resources,
        improper: bool,
    ) {
        // A user may make pools at will; counters must not grow with them for ever.
        let full = self.preempted.len() >= POOLS_IN_COUNTERS;
        let known = self.preempted.contains_key(&(pool.clone(), kind));
        let name = if full && !known { Arc::from("<other>") } else { pool.clone() };
        let (count, sum) = self.preempted.entry((name, kind)).or_default();
        *count += 1;
        *sum += resources;
        if improper {
            self.improperly_preempted_resources += resources;
        }
    }

    /// A preemption that did not happen after all.
    pub(crate) fn spared(&mut self, record: &PreemptionRecord) {
        if let Some((count, sum)) = self.preempted.get_mut(&(record.pool.clone(), record.cause.kind())) {
            *count -= 1;
            *sum -= record.resources;
        }
        if record.is_improper() {
            self.improperly_preempted_resources -= record.resources;
        }
    }

    pub(crate) fn starved(&mut self, end: StarvationEnd, duration: Span) {
        let intervals = &mut self.starvation[end as usize];
        intervals.count += 1;
        intervals.duration = Span(intervals.duration.0.saturating_add(duration.0));
    }

    /// As a map by the names of scheduling.md 20.
    pub fn to_map(&self) -> Map {
        let by_stage = |f: &dyn Fn(usize) -> Value| -> Map {
            Stage::ALL.iter().map(|s| (s.as_str(), f(*s as usize))).collect()
        };
        let mut preempted: BTreeMap<&'static str, Map> = BTreeMap::new();
        for ((pool, kind), (count, resources)) in &self.preempted {
            let entry = yson::map! { "count" => *count as i64, "resources" => resources.to_value() };
            preempted.entry(kind.as_str()).or_default().insert(&**pool, entry);
        }
        let starvation: Map = [StarvationEnd::FairShareDecreased, StarvationEnd::UsageIncreased]
            .into_iter()
            .map(|end| {
                let i = &self.starvation[end as usize];
                let entry = yson::map! {
                    "count" => i.count as i64, "total_duration" => i.duration.as_millis() as i64,
                };
                (end.as_str(), entry)
            })
            .collect();
        yson::map! {
            "deactivation_count" => deactivations(&self.deactivations),
            "scheduled_job_count" => by_stage(&|s| (self.scheduled_allocations[s] as i64).into()),
            "scheduled_job_resources" => by_stage(&|s| self.scheduled_resources[s].to_value()),
            "preempted_job_resources" => preempted.into_iter().collect::<Map>(),
            "improperly_preempted_job_resources" => self.improperly_preempted_resources.to_value(),
            "non_preemptive_pass_count" => self.passes[0] as i64,
            "preemptive_pass_count" => self.passes[1] as i64,
            "stage_count" => by_stage(&|s| (self.stages[s].0 as i64).into()),
            "stage_attempt_count" => by_stage(&|s| (self.stages[s].1 as i64).into()),
            "starvation_intervals" => starvation,
            "operation_count_by_preemption_priority" => priorities(&self.operation_count_by_preemption_priority),
        }
    }
}

/// Counters by reason, those above zero.
pub(crate) fn deactivations(counts: &[u64; Deactivation::ALL.len()]) -> Map {
    let counted = Deactivation::ALL.iter().zip(counts).filter(|(_, n)| **n > 0);
    counted.map(|(reason, n)| (reason.as_str(), *n as i64)).collect()
}

fn priorities(counts: &[i64; 3]) -> Map {
    PreemptionPriority::ALL.iter().zip(counts).map(|(p, n)| (p.as_str(), *n)).collect()
}

/// What one pass over a node did (scheduling.md 19.5).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HeartbeatStatistics {
    /// When.
    pub time: Time,
    /// Operations by priority of preemption at that time ([`PreemptionPriority::ALL`]).
    pub operation_count_by_preemption_priority: [i64; 3],
    /// Allocations started in all stages.
    pub started: u32,
    /// Of these, in preemptive stages: 0 or 1.
    pub scheduled_during_preemption: u32,
    /// Allocations told to give way, for whatever reason.
    pub preempted: u32,
    /// Allocations that the last preemptive stage could have taken. Zero as well if there was no need to
    /// look: nobody starves, and no limits are exceeded.
    pub preemptible_allocation_count: u32,
    /// What these held.
    pub resource_usage_discount: Resources,
    /// What was taken on the node before.
    pub resource_usage: Resources,
    /// What the node has.
    pub resource_limits: Resources,
    /// Operations tried, by stage ([`Stage::ALL`]).
    pub attempts: [u32; Stage::ALL.len()],
}

impl HeartbeatStatistics {
    /// As a map, by the names of scheduling.md 19.5.
    pub fn to_map(&self) -> Map {
        let attempts: Map =
            Stage::ALL.iter().zip(self.attempts).map(|(s, n)| (s.as_str(), i64::from(n))).collect();
        yson::map! {
            "time" => self.time,
            "operation_count_by_preemption_priority" =>
                priorities(&self.operation_count_by_preemption_priority),
            "started_allocation_count" => i64::from(self.started),
            "scheduled_during_preemption" => i64::from(self.scheduled_during_preemption),
            "preempted_allocation_count" => i64::from(self.preempted),
            "preemptible_allocation_count" => i64::from(self.preemptible_allocation_count),
            "resource_usage_discount" => self.resource_usage_discount.to_value(),
            "resource_usage" => self.resource_usage.to_value(),
            "resource_limits" => self.resource_limits.to_value(),
            "attempt_count_by_stage" => attempts,
        }
    }
}

/// CPU time of what runs on a node (scheduling.md 19.5), since the start of the current jobs.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct RunningJobStatistics {
    /// Core-seconds by group ([`PreemptionGroup::ALL`]).
    pub cpu_time: [f64; PreemptionGroup::ALL.len()],
}

impl RunningJobStatistics {
    /// As a map, by the names of scheduling.md 19.5.
    pub fn to_map(&self) -> Map {
        let [protected, aggressively, preemptible] = self.cpu_time;
        yson::map! {
            "total_cpu_time" => protected + aggressively + preemptible,
            "aggressively_preemptible_cpu_time" => aggressively,
            "preemptible_cpu_time" => preemptible,
        }
    }
}
