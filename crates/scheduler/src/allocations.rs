//! Allocations: start, usage, end (scheduling.md 8.2, 16.4, 21).

use crate::messages::{RevivedAllocation, SettleFailure};
use crate::scheduler::Scheduler;
use crate::slab::{Key, LeafIdx, NodeIdx, OpIdx, TreeIdx};
use vocab::{AllocationId, Failure, OperationId, Resources, Span, Time, code};

/// A place on a node that an operation holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    pub operation: OpIdx,
    pub tree: TreeIdx,
    pub leaf: LeafIdx,
    pub node: NodeIdx,
    pub task: u32,
    pub usage: Resources,
    /// Order of last job start; key in the lists of operation and node.
    pub sequence: u64,
    /// The node has reported it.
    pub confirmed: bool,
}

/// Public view of an allocation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AllocationState {
    /// Whose it is.
    pub operation: OperationId,
    /// Where it runs.
    pub node: std::sync::Arc<str>,
    /// The tree it is charged to.
    pub tree: std::sync::Arc<str>,
    /// Task of the operation.
    pub task: u32,
    /// What it holds.
    pub resource_usage: Resources,
}

impl Scheduler {
    /// One allocation, while it is known.
    pub fn allocation(&self, id: AllocationId) -> Option<AllocationState> {
        let a = self.allocations.get(&id)?;
        Some(AllocationState {
            operation: self.operations[a.operation].desc.id,
            node: self.nodes[a.node].name.clone(),
            tree: self.trees[a.tree.index()].name.clone(),
            task: a.task,
            resource_usage: a.usage,
        })
    }

    /// The node reports an allocation with what it holds now. False if it is not known.
    pub fn allocation_usage(&mut self, id: AllocationId, usage: Resources) -> bool {
        let Some(a) = self.allocations.get_mut(&id) else { return false };
        let usage = usage.max(Resources::ZERO);
        let change = usage - a.usage;
        let newly_confirmed = !std::mem::replace(&mut a.confirmed, true);
        if change.is_zero() && !newly_confirmed {
            return true;
        }
        a.usage = usage;
        let a = *a;
        let node = &mut self.nodes[a.node];
        node.booked += change;
        node.confirmed += if newly_confirmed { usage } else { change };
        if !change.is_zero() {
            self.trees[a.tree.index()].charge(a.leaf, change);
            self.refresh_room(a.node);
        }
        true
    }

    /// The next job began in an allocation, or its job declared its progress reset: it becomes the
    /// youngest of its operation (scheduling.md 7.1). False if it is not known.
    pub fn allocation_job_started(&mut self, id: AllocationId) -> bool {
        let sequence = self.next_sequence + 1;
        let Some(a) = self.allocations.get_mut(&id) else { return false };
        self.next_sequence = sequence;
        let old = std::mem::replace(&mut a.sequence, sequence);
        let of_leaf = &mut self.trees[a.tree.index()].leaves[a.leaf].allocations;
        of_leaf.remove(&old);
        of_leaf.insert(sequence, id);
        let on_node = &mut self.nodes[a.node].allocations;
        on_node.remove(&old);
        on_node.insert(sequence, id);
        true
    }

    /// The allocation is over and its resources are free. False if it is not known.
    pub fn allocation_finished(&mut self, id: AllocationId) -> bool {
        self.forget_allocation(id, true)
    }

    /// Nothing came of an allocation that was granted: all is given back, its demand too, and the
    /// operation pauses if its controller asks for it (scheduling.md 17.3). False if it is not known.
    ///
    /// Call [`Scheduler::set_demand`] afterwards if the demand is another one now.
    pub fn allocation_failed(&mut self, now: Time, id: AllocationId, failure: SettleFailure) -> bool {
        let Some(a) = self.allocations.get(&id).copied() else { return false };
        self.forget_allocation(id, true);
        let config = self.config.clone();
        let op = &mut self.operations[a.operation];
        if let Some(group) = op.groups.iter_mut().find(|g| g.task == a.task) {
            group.count += 1;
            op.pending_count += 1;
        }
        match failure {
            SettleFailure::Throttled => {
                let longer = op.throttling_backoff.0 as f64 * config.schedule_allocation_backoff_multiplier;
                op.throttling_backoff = Span(longer as u64)
                    .max(config.schedule_allocation_start_backoff_time)
                    .min(config.schedule_allocation_max_backoff_time);
                op.backoff_until = now + op.throttling_backoff;
            }
            SettleFailure::Backoff => {
                op.throttling_backoff = Span::ZERO;
                op.backoff_until = now + config.schedule_allocation_fail_backoff_time;
            }
            SettleFailure::Other => op.throttling_backoff = Span::ZERO,
        }
        let refusals = &mut self.trees[a.tree.index()].leaves[a.leaf].refusals;
        refusals.by_reason[crate::Deactivation::ScheduleAllocationFailed as usize] += 1;
        self.refresh_live(a.operation);
        true
    }

    /// Takes in an allocation that runs already, without asking any limit (scheduling.md 21). Call it
    /// in the order of the start of the current jobs.
    pub fn revive_allocation(&mut self, revived: &RevivedAllocation) -> Result<(), Failure> {
        let id = revived.allocation;
        if self.allocations.contains_key(&id) {
            return Err(Failure::coded(code::ALREADY_EXISTS, format!("Allocation {id} is known already")));
        }
        let operation = self.operation_index(revived.operation)?;
        let tree = self.tree_index(&revived.tree)?;
        let node = self.node_by_name.get(revived.node.as_str()).copied();
        let node = node.filter(|n| self.nodes[*n].tree == Some(tree)).ok_or_else(|| {
            Failure::new(format!(
                "Allocation {id} cannot be revived: node \"{}\" is not in pool tree \"{}\"",
                revived.node, revived.tree
            ))
        })?;
        let leaf = self.leaf_in(operation, tree).ok_or_else(|| {
            Failure::new(format!(
                "Allocation {id} cannot be revived: operation {} is not in pool tree \"{}\"",
                revived.operation, revived.tree
            ))
        })?;
        self.insert_allocation(id, operation, tree, leaf, node, revived.task, revived.resources);
        // What the node holds for it is no longer "being released".
        let node = &mut self.nodes[node];
        node.confirmed += revived.resources;
        node.releasing = (node.releasing - revived.resources).max(Resources::ZERO);
        if let Some(a) = self.allocations.get_mut(&id) {
            a.confirmed = true;
        }
        self.refresh_room_of(id);
        Ok(())
    }

    fn refresh_room_of(&mut self, id: AllocationId) {
        if let Some(node) = self.allocations.get(&id).map(|a| a.node) {
            self.refresh_room(node);
        }
    }

    #[allow(clippy::too_many_arguments)]
    pub(crate) fn insert_allocation(
        &mut self,
        id: AllocationId,
        operation: OpIdx,
        tree: TreeIdx,
        leaf: LeafIdx,
        node: NodeIdx,
        task: u32,
        usage: Resources,
    ) {
        self.next_sequence += 1;
        let sequence = self.next_sequence;
        let confirmed = false;
        let previous = self
            .allocations
            .insert(id, Allocation { operation, tree, leaf, node, task, usage, sequence, confirmed });
        assert!(previous.is_none(), "allocation ids must be unique, {id} is used twice");
        let n = &mut self.nodes[node];
        n.allocations.insert(sequence, id);
        n.booked += usage;
        let t = &mut self.trees[tree.index()];
        t.leaves[leaf].allocations.insert(sequence, id);
        t.charge(leaf, usage);
    }

    /// Takes an allocation out of all books. `freed`: the node is done with it; otherwise its resources
    /// count there as being released until the node reports again.
    pub(crate) fn forget_allocation(&mut self, id: AllocationId, freed: bool) -> bool {
        let Some(a) = self.allocations.remove(&id) else { return false };
        let node = &mut self.nodes[a.node];
        node.allocations.remove(&a.sequence);
        node.booked -= a.usage;
        if a.confirmed {
            node.confirmed -= a.usage;
        }
        if !freed {
            node.releasing += a.usage;
        }
        let tree = &mut self.trees[a.tree.index()];
        tree.leaves[a.leaf].allocations.remove(&a.sequence);
        tree.charge(a.leaf, Resources::ZERO - a.usage);
        self.refresh_room(a.node);
        true
    }

    /// Forgets all allocations of an operation that still run on their nodes.
    pub(crate) fn drop_allocations(&mut self, operation: OpIdx) -> Vec<AllocationId> {
        let leaves = self.operations[operation].leaves.clone();
        leaves.into_iter().flat_map(|(tree, leaf)| self.drop_allocations_in(tree, leaf)).collect()
    }

    pub(crate) fn drop_allocations_in(&mut self, tree: TreeIdx, leaf: LeafIdx) -> Vec<AllocationId> {
        let ids: Vec<AllocationId> =
            self.trees[tree.index()].leaves[leaf].allocations.values().copied().collect();
        for id in &ids {
            self.forget_allocation(*id, false);
        }
        ids
    }
}
