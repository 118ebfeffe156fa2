//! Making a plan real.

use super::{Plan, PlannedCause, PlannedPreemption, PlannedStart};
use crate::allocations::NewAllocation;
use crate::messages::{DemandGroup, Start};
use crate::preemption::{Order, PreemptionCause, PreemptionGroup, PreemptionRecord, Preemptor};
use crate::reasons::Deactivation;
use crate::scheduler::Scheduler;
use crate::slab::{AllocIdx, Key, NodeIdx, TreeIdx};
use std::sync::Arc;
use vocab::{AllocationId, OperationId, Resources, Span, Time};

impl Scheduler {
    /// Makes a plan real: reserves, counts, names the allocations. Orders for allocations that must give
    /// way are to be taken with [`Scheduler::drain_orders`].
    ///
    /// What is not possible any more since the plan was made is left out: each regular start by itself,
    /// the start of a preemptive stage together with its victims, each other preemption by itself.
    pub fn apply(&mut self, plan: Plan, mut new_id: impl FnMut() -> AllocationId) -> Vec<Start> {
        let Some(tree) = plan.tree else { return Vec::new() };
        let node = self.node_by_name.get(&plan.node).copied();
        let Some(node) = node.filter(|n| self.nodes[*n].tree == Some(tree)) else { return Vec::new() };
        self.latest = self.latest.max(plan.time);
        for id in &plan.aborts {
            self.order_abort(*id);
        }
        self.count_refusals(tree, &plan);

        let (graceful, others): (Vec<_>, Vec<_>) =
            plan.preemptions.iter().partition(|p| p.cause == PlannedCause::Graceful);
        for p in graceful {
            self.preempt_alone(&plan, tree, node, p);
        }
        let mut started = Vec::with_capacity(plan.starts.len());
        for (i, start) in plan.starts.iter().enumerate() {
            let done = if start.stage.target().is_none() {
                self.start_regular(&plan, tree, node, start, &mut new_id)
            } else {
                let of_start = |p: &&PlannedPreemption| matches!(p.cause, PlannedCause::Start { start, .. } if start == i);
                let victims: Vec<&PlannedPreemption> = others.iter().copied().filter(of_start).collect();
                self.start_preemptive(&plan, tree, node, start, &victims, &mut new_id)
            };
            started.extend(done);
        }
        for p in others {
            if !matches!(p.cause, PlannedCause::Start { .. }) {
                self.preempt_alone(&plan, tree, node, p);
            }
        }
        self.note_pass(tree, node, &plan);
        self.refresh_room(node);
        started
    }

    /// Plans and applies.
    pub fn schedule(&mut self, now: Time, node: &str, new_id: impl FnMut() -> AllocationId) -> Vec<Start> {
        let plan = self.plan(now, node);
        self.apply(plan, new_id)
    }

    fn order_abort(&mut self, id: AllocationId) {
        let Some(index) = self.allocation_index(id) else { return };
        if !std::mem::replace(&mut self.allocations[index].abort_ordered, true) {
            let order = self.abort_order(&self.allocations[index]);
            self.orders.push(order);
        }
    }

    fn count_refusals(&mut self, tree: TreeIdx, plan: &Plan) {
        let tree = &mut self.trees[tree.index()];
        for refusal in &plan.refusals {
            tree.metrics.deactivations[refusal.reason as usize] += 1;
            if tree.leaves.get(refusal.leaf).is_some_and(|l| l.desc.id == refusal.operation) {
                let counts = tree.leaves[refusal.leaf].refusals.get_mut();
                counts.by_reason[refusal.reason as usize] += 1;
                for (count, short) in counts.unsatisfied.iter_mut().zip(refusal.unsatisfied) {
                    *count = count.wrapping_add(u64::from(short));
                }
            }
        }
        let reason = Deactivation::MinNeededResourcesUnsatisfied as usize;
        for misfit in &plan.misfits {
            let members = tree.candidates.misfit(&misfit.class, misfit.unsatisfied);
            tree.metrics.deactivations[reason] += members.saturating_sub(misfit.except.len()) as u64;
            for leaf in &misfit.except {
                let Some(l) = tree.leaves.get(*leaf) else { continue };
                if l.membership.is_some_and(|m| m.class == misfit.class) {
                    // Its class has just counted it; it has been counted by itself.
                    let counts = tree.leaves[*leaf].refusals.get_mut();
                    counts.by_reason[reason] = counts.by_reason[reason].wrapping_sub(1);
                    for (count, short) in counts.unsatisfied.iter_mut().zip(misfit.unsatisfied) {
                        *count = count.wrapping_sub(u64::from(short));
                    }
                }
            }
        }
    }

    /// Step 8 of scheduling.md 10, and once more steps 3 and 7; `room` is what the node has for it.
    fn still_possible(&self, tree: TreeIdx, start: &PlannedStart, room: Resources) -> bool {
        let tree = &self.trees[tree.index()];
        let Some(leaf) = tree.leaves.get(start.leaf).filter(|l| l.desc.id == start.operation) else {
            return false;
        };
        let wanted = |g: &DemandGroup| g.task == start.task && g.count > 0 && g.min_needed == start.resources;
        let with_tolerance = start.stage.target().is_some();
        leaf.live
            && leaf.is_running()
            && self.operations[leaf.operation].groups.iter().any(wanted)
            && room.dominates(&start.resources)
            && tree.available(start.leaf, with_tolerance, |_| Resources::ZERO).dominates(&start.resources)
    }

    fn start_regular(
        &mut self,
        plan: &Plan,
        tree: TreeIdx,
        node: NodeIdx,
        start: &PlannedStart,
        new_id: &mut impl FnMut() -> AllocationId,
    ) -> Option<Start> {
        let possible =
            !self.nodes[node].must_wait() && self.still_possible(tree, start, self.nodes[node].free());
        possible.then(|| self.start(plan.time, tree, node, start, new_id()))
    }

    /// A start that needs victims, with just those of them that it still needs.
    fn start_preemptive(
        &mut self,
        plan: &Plan,
        tree: TreeIdx,
        node: NodeIdx,
        start: &PlannedStart,
        victims: &[&PlannedPreemption],
        new_id: &mut impl FnMut() -> AllocationId,
    ) -> Option<Start> {
        let n = &self.nodes[node];
        let mut lasting = n.lasting() + start.resources;
        let mut needed = Vec::new();
        for victim in
            victims.iter().filter(|v| self.is_victim_still(tree, node, v, start.stage.minimal_level()))
        {
            if n.limits.dominates(&lasting) {
                break;
            }
            lasting -= self.allocations[victim.index].held;
            needed.push(victim.index);
        }
        let fits = n.limits.dominates(&lasting) && !n.must_wait();
        if !fits || !self.still_possible(tree, start, Resources::INFINITE) {
            return None;
        }
        let started = self.start(plan.time, tree, node, start, new_id());
        let own_priority = self.trees[tree.index()].leaves[start.leaf].published.own_priority;
        for index in needed {
            let preemptor =
                Preemptor { allocation: started.allocation, operation: started.operation, own_priority };
            self.preempt(plan.time, index, PreemptionCause::Start { stage: start.stage, preemptor });
        }
        let n = &mut self.nodes[node];
        if !n.limits.dominates(&n.usage()) {
            n.waiting = Some(started.allocation);
        }
        Some(started)
    }

    /// The allocation is there as it was planned, and its level still allows to take it.
    fn is_victim_still(
        &self,
        tree: TreeIdx,
        node: NodeIdx,
        p: &PlannedPreemption,
        minimal_level: u8,
    ) -> bool {
        let Some(a) = self.allocations.get(p.index).filter(|a| a.id == p.allocation) else { return false };
        let leaf = &self.trees[tree.index()].leaves[a.leaf];
        let level = leaf.groups.group(a.sequence).level(leaf.published.aggressive_preemption_allowed);
        a.node == node && a.tree == tree && !a.is_ending() && level >= minimal_level
    }

    /// A preemption that stands alone, if its reason still holds.
    fn preempt_alone(&mut self, plan: &Plan, tree: TreeIdx, node: NodeIdx, p: &PlannedPreemption) {
        let minimal_level = match &p.cause {
            PlannedCause::NodeLimits { stage } | PlannedCause::ResourceLimits { stage, .. } => {
                stage.minimal_level()
            }
            _ => 0,
        };
        if !self.is_victim_still(tree, node, p, minimal_level) {
            return;
        }
        let n = &self.nodes[node];
        let a = &self.allocations[p.index];
        let t = &self.trees[tree.index()];
        let cause = match &p.cause {
            PlannedCause::Start { .. } => return,
            PlannedCause::NodeLimits { stage } => {
                (!n.limits.dominates(&n.lasting())).then_some(PreemptionCause::NodeLimits { stage: *stage })
            }
            // Looked at again for each one, after what has been taken off (scheduling.md 16.5).
            PlannedCause::ResourceLimits { stage, .. } => t
                .violated(a.leaf, |_| Resources::ZERO)
                .map(|violated| PreemptionCause::ResourceLimits { stage: *stage, violated }),
            PlannedCause::NodeOvercommit { since } => (n.overcommitted_since == Some(*since))
                .then_some(PreemptionCause::NodeOvercommit { since: *since }),
            PlannedCause::Graceful => (t.leaves[a.leaf].groups.group(a.sequence)
                == PreemptionGroup::Preemptible)
                .then_some(PreemptionCause::Graceful),
        };
        if let Some(cause) = cause {
            self.preempt(plan.time, p.index, cause);
        }
    }

    fn start(
        &mut self,
        now: Time,
        tree: TreeIdx,
        node: NodeIdx,
        start: &PlannedStart,
        id: AllocationId,
    ) -> Start {
        let t = &mut self.trees[tree.index()];
        let leaf = &mut t.leaves[start.leaf];
        leaf.last_success = Some(now);
        let waiting_timeout = leaf.published.waiting_timeout;
        let operation = leaf.operation;
        t.metrics.scheduled_allocations[start.stage as usize] += 1;
        t.metrics.scheduled_resources[start.stage as usize] += start.resources;
        let op = &mut self.operations[operation];
        op.throttling_backoff = Span::ZERO;
        let mut exhausted = false;
        if let Some(group) = Arc::make_mut(&mut op.groups).iter_mut().find(|g| g.task == start.task) {
            group.count -= 1;
            op.pending_count -= 1;
            exhausted = group.count == 0;
        }
        self.insert_allocation(NewAllocation {
            id,
            operation,
            tree,
            leaf: start.leaf,
            node,
            task: start.task,
            resources: start.resources,
            now,
        });
        if exhausted {
            self.refresh_live(operation);
        }
        Start {
            allocation: id,
            operation: start.operation,
            task: start.task,
            resources: start.resources,
            waiting_timeout,
        }
    }

    /// Takes an allocation away: from now on its operation and the pools above are not charged for it, and
    /// its node is told (scheduling.md 16.4).
    fn preempt(&mut self, now: Time, index: AllocIdx, cause: PreemptionCause) {
        let a = &self.allocations[index];
        let (tree_index, leaf_index, sequence, held) = (a.tree, a.leaf, a.sequence, a.held);
        let tree = &mut self.trees[tree_index.index()];
        let leaf = &tree.leaves[leaf_index];
        let group = leaf.groups.group(sequence);
        let timeout = match cause {
            PreemptionCause::Graceful => leaf
                .options
                .allocation_graceful_preemption_timeout
                .or(leaf.desc.allocation_graceful_preemption_timeout)
                .unwrap_or(tree.config.allocation_graceful_preemption_timeout),
            _ => leaf
                .options
                .allocation_preemption_timeout
                .or(leaf.desc.allocation_preemption_timeout)
                .unwrap_or(tree.config.allocation_preemption_timeout),
        };
        let pool = tree.pools[leaf.pool].name.clone();
        let record = Arc::new(PreemptionRecord {
            time: now,
            tree: tree.name.clone(),
            node: self.nodes[a.node].name.clone(),
            allocation: a.id,
            operation: leaf.desc.id,
            pool: pool.clone(),
            resources: held,
            group,
            level: group.level(leaf.published.aggressive_preemption_allowed),
            timeout,
            cause,
        });
        tree.metrics.preempted(&pool, record.cause.kind(), held, record.is_improper());
        let order = self.preempt_order(&record);
        self.orders.push(order);
        self.preemption_log.push(record.clone());
        self.mark_preempted(index, record);
    }

    /// The books of an allocation that is on its way out: nobody is charged for it any more, its node
    /// holds it until it is gone.
    pub(crate) fn mark_preempted(&mut self, index: AllocIdx, record: Arc<PreemptionRecord>) {
        let a = &mut self.allocations[index];
        let (tree, leaf, sequence, held) = (a.tree, a.leaf, a.sequence, a.held);
        a.preempted = Some(record);
        let node = &mut self.nodes[a.node];
        node.leaving += held;
        node.preempted += 1;
        let tree = &mut self.trees[tree.index()];
        tree.leaves[leaf].groups.usage_changed(sequence, Resources::ZERO - held);
        tree.charge(leaf, Resources::ZERO - held);
        tree.rebalance(leaf, &self.allocations);
    }

    /// An allocation came to nothing before its victims were told: they stay. So do those that had to go
    /// for a limit which is kept without it (scheduling.md 12.4).
    pub(crate) fn spare_victims(&mut self, preemptor: AllocationId, node: NodeIdx) {
        let of_node = |order: &Order| match order {
            Order::Preempt(p) => {
                self.allocation_index(p.allocation).filter(|i| self.allocations[*i].node == node)
            }
            Order::Abort { .. } => None,
        };
        let told_nobody: Vec<AllocIdx> = self.orders.iter().filter_map(of_node).collect();
        for index in told_nobody {
            let a = &self.allocations[index];
            let is_spared = a.preempted.as_ref().is_some_and(|r| match &r.cause {
                PreemptionCause::Start { preemptor: p, .. } => p.allocation == preemptor,
                PreemptionCause::ResourceLimits { .. } => self.trees[a.tree.index()]
                    .available(a.leaf, false, |_| Resources::ZERO)
                    .dominates(&a.held),
                _ => false,
            });
            if is_spared {
                self.spare(index);
            }
        }
        self.refresh_room(node);
    }

    /// The opposite of [`Scheduler::preempt`].
    fn spare(&mut self, index: AllocIdx) {
        let a = &mut self.allocations[index];
        let Some(record) = a.preempted.take() else { return };
        let (tree, leaf, node, sequence, held) = (a.tree, a.leaf, a.node, a.sequence, a.held);
        let id = a.id;
        let node = &mut self.nodes[node];
        node.leaving -= held;
        node.preempted -= 1;
        let tree = &mut self.trees[tree.index()];
        tree.leaves[leaf].groups.usage_changed(sequence, held);
        tree.charge(leaf, held);
        tree.metrics.spared(&record);
        tree.rebalance(leaf, &self.allocations);
        self.preemption_log.remove(&record);
        self.orders.retain(|o| !matches!(o, Order::Preempt(p) if p.allocation == id));
    }

    fn note_pass(&mut self, tree: TreeIdx, node: NodeIdx, plan: &Plan) {
        let metrics = &mut self.trees[tree.index()].metrics;
        metrics.passes[usize::from(plan.preemptive)] += 1;
        for (stage, attempts) in metrics.stages.iter_mut().zip(plan.statistics.attempts) {
            stage.0 += u64::from(attempts > 0);
            stage.1 += u64::from(attempts);
        }
        let n = &mut self.nodes[node];
        if plan.preemptive {
            n.last_preemptive = Some(plan.time);
        }
        let kept = &mut n.statistics[usize::from(plan.preemptive)];
        match kept {
            Some(kept) => (**kept).clone_from(&plan.statistics),
            None => *kept = Some(Box::new(plan.statistics.clone())),
        }
    }

    /// An operation's preemption log: what it lost, newest last.
    pub fn preemptions_of(
        &self,
        operation: OperationId,
    ) -> impl DoubleEndedIterator<Item = &Arc<PreemptionRecord>> {
        self.preemption_log.iter().filter(move |r| r.operation == operation)
    }
}
