//! Which allocations to start on a node: the regular stage (scheduling.md 8.3, 9, 10, 11.1).
//!
//! The specification finds the next operation by going down from the root: each pool offers its least
//! satisfied active child, ties by a fixed order. A pool's satisfaction is the minimum over its
//! subtree, so the operation found is the one with the smallest (satisfaction, rank) of the whole
//! tree, where rank numbers the operations depth-first in that fixed order [D3]. The tree keeps its
//! schedulable operations sorted by just that pair, always up to date. A plan therefore walks a list:
//! what is not tried costs nothing, and operations that cannot be scheduled are not in it. (A test
//! compares with the walk from the root.)
//!
//! A plan changes nothing. What it has given away so far is kept beside the books, in [`Trial`];
//! [`Scheduler::apply`] makes it real after looking at everything again, so that plans may be made
//! from an older state.
//!
//! The preemptive stages (scheduling.md 12 to 14) will come after the regular one in
//! [`Scheduler::plan`]: with a discount in [`Trial::free`] and victims beside the starts.

use crate::messages::{PreemptionMode, Start};
use crate::operations::Operation;
use crate::reasons::Deactivation;
use crate::scheduler::Scheduler;
use crate::slab::{Key, LeafIdx, NodeIdx, PoolIdx, TreeIdx};
use crate::tree::Tree;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use vocab::{AllocationId, OperationId, RESOURCES, Resources, Time};

/// Starts for one node, not yet real.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The node.
    pub node: Arc<str>,
    /// Why nothing was even looked at.
    pub skipped: Option<Skipped>,
    /// What to start, in order.
    pub starts: Vec<PlannedStart>,
    /// Operations that were tried in vain, each once, in order.
    pub refusals: Vec<Refusal>,
    tree: Option<TreeIdx>,
}

/// Why a node was not planned for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Skipped {
    /// It has not reported, or no tree wants it.
    NotInTree,
    /// An allocation waits there for resources (scheduling.md 8.2, rule 6).
    WaitingAllocations,
}

/// One allocation to start.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedStart {
    /// For this operation.
    pub operation: OperationId,
    /// For this task of it.
    pub task: u32,
    /// So much.
    pub resources: Resources,
    leaf: LeafIdx,
}

/// An operation that was passed over for the rest of the plan.
#[derive(Clone, PartialEq, Debug)]
pub struct Refusal {
    /// Which.
    pub operation: OperationId,
    /// Why.
    pub reason: Deactivation,
    /// Resources that were short, if that is why.
    pub unsatisfied: [bool; 5],
    leaf: LeafIdx,
}

/// Place in the order of candidates: bits of satisfaction, rank, operation.
type Candidate = (u64, u32, LeafIdx);

/// What a plan has done to an operation so far.
#[derive(Default)]
struct Progress {
    usage: Resources,
    /// Allocations taken from each group.
    taken: Vec<i64>,
}

/// The books as they would be if the starts so far were real.
struct Trial<'a> {
    now: Time,
    scheduler: &'a Scheduler,
    tree: &'a Tree,
    node: NodeIdx,
    /// Free resources of the node.
    free: Resources,
    operations: FxHashMap<LeafIdx, Progress>,
    /// Given away below a pool; only pools with limits.
    pools: FxHashMap<PoolIdx, Resources>,
}

impl Scheduler {
    /// Finds what to start on a node now. Changes nothing.
    pub fn plan(&self, now: Time, node: &str) -> Plan {
        let mut plan =
            Plan { node: node.into(), skipped: None, starts: Vec::new(), refusals: Vec::new(), tree: None };
        let index = self.node_by_name.get(node).copied();
        let Some((index, tree)) = index.and_then(|i| Some((i, self.nodes[i].tree?))) else {
            plan.skipped = Some(Skipped::NotInTree);
            return plan;
        };
        if self.nodes[index].has_waiting_allocations {
            plan.skipped = Some(Skipped::WaitingAllocations);
            return plan;
        }
        plan.tree = Some(tree);
        let mut trial = Trial {
            now,
            scheduler: self,
            tree: &self.trees[tree.index()],
            node: index,
            free: self.nodes[index].free(),
            operations: FxHashMap::default(),
            pools: FxHashMap::default(),
        };
        trial.regular_stage(&mut plan);
        plan
    }

    /// Makes a plan real: reserves, counts, and names the allocations. A start that is not possible any
    /// more since the plan was made is left out.
    pub fn apply(&mut self, plan: Plan, mut new_id: impl FnMut() -> AllocationId) -> Vec<Start> {
        let Some(tree) = plan.tree else { return Vec::new() };
        let node = self.node_by_name.get(&plan.node).copied();
        let Some(node) = node.filter(|n| self.nodes[*n].tree == Some(tree)) else { return Vec::new() };
        for refusal in &plan.refusals {
            let tree = &mut self.trees[tree.index()];
            if tree.leaves.get(refusal.leaf).is_some_and(|l| l.desc.id == refusal.operation) {
                let counts = &mut tree.leaves[refusal.leaf].refusals;
                counts.by_reason[refusal.reason as usize] += 1;
                for (count, short) in counts.unsatisfied.iter_mut().zip(refusal.unsatisfied) {
                    *count += u64::from(short);
                }
            }
        }
        let mut started = Vec::with_capacity(plan.starts.len());
        for start in plan.starts {
            if self.still_possible(tree, node, &start) {
                let allocation = new_id();
                self.start(tree, node, &start, allocation);
                started.push(Start {
                    allocation,
                    operation: start.operation,
                    task: start.task,
                    resources: start.resources,
                });
            }
        }
        if !started.is_empty() {
            self.refresh_room(node);
        }
        started
    }

    /// Plans and applies.
    pub fn schedule(&mut self, now: Time, node: &str, new_id: impl FnMut() -> AllocationId) -> Vec<Start> {
        let plan = self.plan(now, node);
        self.apply(plan, new_id)
    }

    /// Step 8 of scheduling.md 10, and once more steps 3 and 7.
    fn still_possible(&self, tree: TreeIdx, node: NodeIdx, start: &PlannedStart) -> bool {
        let tree = &self.trees[tree.index()];
        let Some(leaf) = tree.leaves.get(start.leaf).filter(|l| l.desc.id == start.operation) else {
            return false;
        };
        let wanted =
            |g: &crate::DemandGroup| g.task == start.task && g.count > 0 && g.min_needed == start.resources;
        leaf.live
            && leaf.is_running()
            && self.operations[leaf.operation].groups.iter().any(wanted)
            && self.nodes[node].free().dominates(&start.resources)
            && tree.available(start.leaf, |_| Resources::ZERO).dominates(&start.resources)
    }

    fn start(&mut self, tree: TreeIdx, node: NodeIdx, start: &PlannedStart, id: AllocationId) {
        let operation = self.trees[tree.index()].leaves[start.leaf].operation;
        let op = &mut self.operations[operation];
        op.throttling_backoff = vocab::Span::ZERO;
        if let Some(group) = op.groups.iter_mut().find(|g| g.task == start.task) {
            group.count -= 1;
            op.pending_count -= 1;
        }
        let exhausted = op.pending_count == 0;
        self.insert_allocation(id, operation, tree, start.leaf, node, start.task, start.resources);
        if exhausted {
            self.refresh_live(operation);
        }
    }
}

impl Trial<'_> {
    /// `regular_medium_priority`, the only regular stage without guarantee priorities: no discount.
    ///
    /// Presence (scheduling.md 9.2) is checked when an operation is first reached, not for all of them
    /// at the start: nothing that it depends on changes in between.
    fn regular_stage(&mut self, plan: &mut Plan) {
        let limit = self.scheduler.config.max_started_allocations_per_heartbeat;
        let spare = self.scheduler.config.min_spare_allocation_resources_on_node;
        let mut fresh = self.tree.candidates.iter().copied().peekable();
        // Operations that were given something come back with their new satisfaction.
        let mut again: BinaryHeap<Reverse<Candidate>> = BinaryHeap::new();
        while self.free.dominates(&spare) && limit.is_none_or(|l| (plan.starts.len() as i64) < l) {
            let (candidate, first_time) = match (fresh.peek(), again.peek()) {
                (Some(f), Some(Reverse(a))) if a < f => (*a, false),
                (Some(f), _) => (*f, true),
                (None, Some(Reverse(a))) => (*a, false),
                (None, None) => break,
            };
            if first_time {
                fresh.next();
            } else {
                again.pop();
            }
            let (_, rank, leaf) = candidate;
            match self.attempt(leaf, first_time) {
                Ok(start) => {
                    plan.starts.push(start);
                    let usage = self.tree.leaves[leaf].usage + self.given(leaf);
                    again.push(Reverse((self.tree.satisfaction_bits(leaf, usage), rank, leaf)));
                }
                Err((reason, unsatisfied)) => plan.refusals.push(Refusal {
                    operation: self.tree.leaves[leaf].desc.id,
                    reason,
                    unsatisfied,
                    leaf,
                }),
            }
        }
    }

    fn given(&self, leaf: LeafIdx) -> Resources {
        self.operations.get(&leaf).map_or(Resources::ZERO, |p| p.usage)
    }

    /// Presence of an operation on this node (scheduling.md 9.2).
    fn presence(&self, leaf: LeafIdx, operation: &Operation) -> Result<(), Deactivation> {
        let l = &self.tree.leaves[leaf];
        if self.now < operation.backoff_until {
            return Err(Deactivation::RecentScheduleAllocationFailed);
        }
        if operation.desc.preemption_mode == PreemptionMode::Graceful && l.published.has_its_share {
            return Err(Deactivation::FairShareExceeded);
        }
        let tags = &self.scheduler.nodes[self.node].tags;
        let pools = self.tree.chain(l.pool).map(|p| &self.tree.pools[p].config.scheduling_tag_filter);
        if !std::iter::once(&l.parameters.scheduling_tag_filter).chain(pools).all(|f| f.matches(tags)) {
            return Err(Deactivation::UnmatchedSchedulingTag);
        }
        Ok(())
    }

    /// Tries to give one allocation to an operation (scheduling.md 10).
    fn attempt(
        &mut self,
        leaf: LeafIdx,
        first_time: bool,
    ) -> Result<PlannedStart, (Deactivation, [bool; 5])> {
        let because = |reason| (reason, [false; 5]);
        let l = &self.tree.leaves[leaf];
        let operation = &self.scheduler.operations[l.operation];
        if first_time {
            self.presence(leaf, operation).map_err(because)?;
        }
        let given = self.given(leaf);
        let taken = self.operations.get(&leaf).map_or(&[][..], |p| &p.taken);
        let left = |(i, g): (usize, &crate::DemandGroup)| g.count > taken.get(i).copied().unwrap_or(0);
        let wanted = || operation.groups.iter().enumerate().filter(|(i, g)| left((*i, g)));

        // Step 2: does any group fit into the node?
        let mut minimum = None;
        let mut any_fits = false;
        let mut unsatisfied = [false; 5];
        for (_, group) in wanted() {
            minimum = Some(minimum.map_or(group.min_needed, |m: Resources| m.min(group.min_needed)));
            if self.free.dominates(&group.min_needed) {
                any_fits = true;
            } else {
                for r in RESOURCES {
                    unsatisfied[r as usize] |= group.min_needed.raw(r) > self.free.raw(r);
                }
            }
        }
        let Some(minimum) = minimum else { return Err(because(Deactivation::NoAvailableDemand)) };
        if !any_fits {
            return Err((Deactivation::MinNeededResourcesUnsatisfied, unsatisfied));
        }

        // Steps 3 and 4: limits along the chain, demand of the last update.
        let available = self.tree.available(leaf, |pool| match pool {
            None => given,
            Some(p) => self.pools.get(&p).copied().unwrap_or(Resources::ZERO),
        });
        if !available.dominates(&minimum) {
            return Err(because(Deactivation::ResourceLimitsExceeded));
        }
        if !(l.published.demand - l.usage - given).dominates(&minimum) {
            return Err(because(Deactivation::NoAvailableDemand));
        }

        // Steps 5 to 7: the first group that can use what is available. The controller is not asked: its
        // needs are here as data.
        let available = available.min(self.free);
        let Some((index, group)) = wanted().find(|(_, g)| available.dominates(&g.min_needed)) else {
            return Err(because(Deactivation::ScheduleAllocationFailed));
        };
        let start = PlannedStart {
            operation: operation.desc.id,
            task: group.task,
            resources: group.min_needed,
            leaf,
        };
        self.record(leaf, index, group.min_needed);
        Ok(start)
    }

    /// Step 9: the books of the trial.
    fn record(&mut self, leaf: LeafIdx, group: usize, resources: Resources) {
        self.free -= resources;
        let progress = self.operations.entry(leaf).or_default();
        progress.usage += resources;
        if progress.taken.len() <= group {
            progress.taken.resize(group + 1, 0);
        }
        progress.taken[group] += 1;
        for pool in self.tree.chain(self.tree.leaves[leaf].pool) {
            if !self.tree.pools[pool].config.resource_limits.is_empty() {
                *self.pools.entry(pool).or_default() += resources;
            }
        }
    }
}
