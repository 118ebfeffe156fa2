//! What has been decided while one line was answered.

use scheduler::{Deactivation, Plan, PreemptionGroup, PreemptionKind, Skipped, Stage};
use std::collections::BTreeMap;
use vocab::{Resources, Span, Time};

/// Decisions, each list in the order in which they were made.
#[derive(Clone, Default, Debug)]
pub(super) struct Log {
    /// Updates of the fair share: periodic ones, extra ones.
    pub updates: [u32; 2],
    /// Passes over nodes: without and with preemptive stages.
    pub passes: [u32; 2],
    /// Elements whose starvation began, changed its kind or ended in an update.
    pub starvation: Vec<Starvation>,
    pub starts: Vec<Started>,
    pub preemptions: Vec<Preempted>,
    /// Allocations that must go at once, and why.
    pub aborts: Vec<(Time, String, &'static str)>,
    pub ends: Vec<End>,
    /// Operations that were stuck, and how.
    pub failures: Vec<(Time, String, String)>,
    /// Nodes on which nothing could be started, by the newest pass over each.
    pub skipped: BTreeMap<String, &'static str>,
    /// Operations that were passed over on a node, by reason.
    pub deactivations: BTreeMap<&'static str, u64>,
}

/// A new starvation status.
#[derive(Clone, Debug)]
pub(super) struct Starvation {
    pub time: Time,
    /// `operation` or `pool`.
    pub kind: &'static str,
    pub name: String,
    pub status: String,
}

/// An allocation that was started.
#[derive(Clone, Debug)]
pub(super) struct Started {
    pub time: Time,
    pub allocation: String,
    pub node: String,
    pub stage: Option<Stage>,
    pub resources: Resources,
}

/// An allocation that must give way.
#[derive(Clone, Debug)]
pub(super) struct Preempted {
    pub time: Time,
    pub allocation: String,
    pub node: String,
    pub kind: PreemptionKind,
    pub stage: Option<Stage>,
    pub group: Option<PreemptionGroup>,
    pub level: Option<u8>,
    /// The allocation that it gives way for.
    pub preemptor: Option<String>,
    pub timeout: Span,
    pub reason: String,
}

/// An allocation that is over.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub time: Time,
    pub allocation: String,
    pub outcome: &'static str,
}

impl Log {
    /// One pass over a node.
    pub fn note_pass(&mut self, plan: &Plan) {
        self.passes[usize::from(plan.preemptive)] += 1;
        let skipped = plan.skipped.map(|skipped| match skipped {
            Skipped::NotInTree => "not_in_tree",
            Skipped::WaitingAllocations => "waiting_allocations",
            Skipped::NoSlots => "no_slots",
        });
        match skipped {
            Some(why) => drop(self.skipped.insert(plan.node.to_string(), why)),
            None => drop(self.skipped.remove(&*plan.node)),
        }
        for refusal in &plan.refusals {
            *self.deactivations.entry(refusal.reason.as_str()).or_default() += 1;
        }
        let misfits: usize = plan.misfits.iter().map(|m| m.operations).sum();
        if misfits > 0 {
            let reason = Deactivation::MinNeededResourcesUnsatisfied.as_str();
            *self.deactivations.entry(reason).or_default() += misfits as u64;
        }
    }
}
