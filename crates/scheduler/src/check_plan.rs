//! What must hold of every plan, by name (scheduling.md 24, 7 to 9), worked out from the definitions
//! without the planner's own machinery.

use crate::allocations::Allocation;
use crate::plan::{Plan, PlannedCause};
use crate::preemption::{PreemptionGroup, PreemptionPriority, Stage};
use crate::scheduler::Scheduler;
use crate::slab::{AllocIdx, Key, NodeIdx};
use crate::tree::Tree;
use crate::update::StarvationStatus;
use std::collections::BTreeSet;
use vocab::{AllocationId, OperationId, Resources};

impl Scheduler {
    /// Violated invariants of a plan that was just made from this state: name, then what was found.
    ///
    /// - `PREEMPT-7`: after the plan what stays on the node fits into it, if it did before; at most one
    ///   start is in a preemptive stage, and it needed its victims.
    /// - `PREEMPT-8`: victims for a start are of a level that its stage may take, of no forbidden operation
    ///   and not its own, and whoever is more expendable is a victim too.
    /// - `PREEMPT-9`: regular stages take nothing, and nothing is taken without a reason.
    pub fn check_plan(&self, plan: &Plan) -> Vec<String> {
        let mut found = Vec::new();
        let node = self.node_by_name.get(&plan.node).copied();
        let Some((node, tree)) = node.and_then(|n| Some((n, self.nodes[n].tree?))) else {
            if !plan.starts.is_empty() || !plan.preemptions.is_empty() {
                found
                    .push(format!("PREEMPT-9: something is planned for node {} outside of trees", plan.node));
            }
            return found;
        };
        let case = Case { scheduler: self, tree: &self.trees[tree.index()], node, plan };
        case.check_fit(&mut found);
        case.check_victims(&mut found);
        case.check_reasons(&mut found);
        found
    }
}

struct Case<'a> {
    scheduler: &'a Scheduler,
    tree: &'a Tree,
    node: NodeIdx,
    plan: &'a Plan,
}

impl Case<'_> {
    fn on_node(&self) -> impl DoubleEndedIterator<Item = (AllocIdx, &Allocation)> {
        let all = self.scheduler.nodes[self.node].allocations.values();
        all.map(|index| (*index, &self.scheduler.allocations[*index]))
    }

    /// What stays on the node if nothing happens.
    fn lasting(&self) -> Resources {
        let node = &self.scheduler.nodes[self.node];
        let staying = self.on_node().filter(|(_, a)| a.preempted.is_none());
        staying.fold(node.releasing, |sum, (_, a)| sum + a.held)
    }

    fn preemptive_start(&self) -> Option<(usize, &crate::plan::PlannedStart)> {
        self.plan.starts.iter().enumerate().find(|(_, s)| s.stage.target().is_some())
    }

    fn check_fit(&self, found: &mut Vec<String>) {
        let limits = self.scheduler.nodes[self.node].limits;
        let before = self.lasting();
        let given = self.plan.starts.iter().fold(Resources::ZERO, |sum, s| sum + s.resources);
        let taken = self.plan.preemptions.iter().fold(Resources::ZERO, |sum, p| sum + p.resources);
        let after = before + given - taken;
        if limits.dominates(&before) && !limits.dominates(&after) {
            found.push(format!("PREEMPT-7: {after} would stay on node {} of {limits}", self.plan.node));
        }
        let preemptive = self.plan.starts.iter().filter(|s| s.stage.target().is_some()).count();
        if preemptive > 1 {
            found.push(format!("PREEMPT-7: {preemptive} starts by preemption on node {}", self.plan.node));
        }
        let ids: BTreeSet<AllocationId> = self.plan.preemptions.iter().map(|p| p.allocation).collect();
        if ids.len() != self.plan.preemptions.len() {
            found.push("PREEMPT-7: somebody is preempted twice".to_owned());
        }
        // Without the last victim the node would not fit.
        let Some((i, _)) = self.preemptive_start() else { return };
        let of_start = |c: &PlannedCause| matches!(c, PlannedCause::Start { start, .. } if *start == i);
        let victims: Vec<_> = self.plan.preemptions.iter().filter(|p| of_start(&p.cause)).collect();
        if let Some(last) = victims.last() {
            let before_it = self.plan.preemptions.iter().take_while(|p| p.allocation != last.allocation);
            let taken = before_it.fold(Resources::ZERO, |sum, p| sum + p.resources);
            if limits.dominates(&(before + given - taken)) {
                found.push(format!("PREEMPT-7: victim {} is not needed", last.allocation));
            }
        }
    }

    /// Scheduling.md 12.3.
    fn is_candidate(&self, a: &Allocation, stage: Stage) -> bool {
        let leaf = &self.tree.leaves[a.leaf];
        let config = &self.tree.config;
        let level = leaf.groups.group(a.sequence).level(leaf.published.aggressive_preemption_allowed);
        let starving = leaf.starvation.status != StarvationStatus::NonStarving;
        let normal = stage.target() == Some(PreemptionPriority::Normal);
        level >= stage.minimal_level()
            && leaf.published.enabled
            && !leaf.is_graceful()
            && (!starving || config.allow_preemption_from_starving_operations)
            && (!normal || !leaf.published.normal_preemption_forbidden)
    }

    fn check_victims(&self, found: &mut Vec<String>) {
        let Some((i, start)) = self.preemptive_start() else { return };
        let stage = start.stage;
        let victims: BTreeSet<AllocationId> = self
            .plan
            .preemptions
            .iter()
            .filter(|p| matches!(p.cause, PlannedCause::Start { start, .. } if start == i))
            .map(|p| p.allocation)
            .collect();
        let all: BTreeSet<AllocationId> = self.plan.preemptions.iter().map(|p| p.allocation).collect();
        let own = |a: &Allocation| self.operation(a) == start.operation;
        let place = |a: &Allocation| {
            let group = self.tree.leaves[a.leaf].groups.group(a.sequence);
            (group, group != PreemptionGroup::Preemptible && a.has_cpu_gap(), a.sequence)
        };
        for (_, a) in self.on_node().filter(|(_, a)| victims.contains(&a.id)) {
            if !self.is_candidate(a, stage) || own(a) || a.is_ending() {
                found.push(format!("PREEMPT-8: {} may not be taken in {stage}", a.id));
            }
            let passed_over = self.on_node().find(|(_, b)| {
                place(b) > place(a)
                    && self.is_candidate(b, stage)
                    && !own(b)
                    && !b.is_ending()
                    && !all.contains(&b.id)
            });
            if let Some((_, b)) = passed_over {
                found.push(format!("PREEMPT-8: {} is taken before {}", a.id, b.id));
            }
        }
    }

    fn operation(&self, a: &Allocation) -> OperationId {
        self.scheduler.operations[a.operation].desc.id
    }

    fn check_reasons(&self, found: &mut Vec<String>) {
        let node = &self.scheduler.nodes[self.node];
        let graceful = self.on_node().any(|(_, a)| self.tree.leaves[a.leaf].is_graceful());
        let has_tolerance =
            self.tree.pools.values().any(|p| !p.config.resource_limits_overcommit_tolerance.is_empty());
        for p in &self.plan.preemptions {
            let justified = match &p.cause {
                PlannedCause::Start { start, .. } => {
                    self.plan.starts.get(*start).is_some_and(|s| s.stage.target().is_some())
                }
                PlannedCause::NodeLimits { .. } => !node.limits.dominates(&self.lasting()),
                PlannedCause::ResourceLimits { .. } => self.tree.over_limits > 0 || has_tolerance,
                PlannedCause::NodeOvercommit { since } => node.overcommitted_since == Some(*since),
                PlannedCause::Graceful => graceful,
            };
            if !justified {
                found.push(format!("PREEMPT-9: {} is taken without a reason: {:?}", p.allocation, p.cause));
            }
            let level_needed = match &p.cause {
                PlannedCause::NodeLimits { stage } | PlannedCause::ResourceLimits { stage, .. } => {
                    Some(*stage)
                }
                _ => None,
            };
            if let Some(stage) = level_needed
                && p.level < stage.minimal_level()
            {
                found.push(format!("PREEMPT-8: {} of level {} is taken in {stage}", p.allocation, p.level));
            }
        }
    }
}
