//! Allocations: start, usage, end (scheduling.md 8.2, 16.4, 21).

use crate::messages::{RevivedAllocation, SettleFailure};
use crate::preemption::{PreemptionGroup, PreemptionRecord};
use crate::scheduler::Scheduler;
use crate::slab::{AllocIdx, Key, LeafIdx, NodeIdx, OpIdx, TreeIdx};
use std::sync::Arc;
use vocab::planted::{Bug, strikes};
use vocab::{AllocationId, Cpu, Failure, OperationId, Resources, Span, Time, code};

/// A place on a node that an operation holds.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    pub id: AllocationId,
    pub operation: OpIdx,
    pub tree: TreeIdx,
    pub leaf: LeafIdx,
    pub node: NodeIdx,
    pub task: u32,
    /// What it holds on its node.
    pub held: Resources,
    /// CPU that was ordered; the CPU monitor may have lowered `held` since.
    pub ordered_cpu: Cpu,
    /// Order of last job start; key in the lists of operation and node.
    pub sequence: u64,
    /// Start of the current job, as far as the scheduler knows.
    pub since: Time,
    /// The node has reported it.
    pub confirmed: bool,
    /// The node was told to abort it.
    pub abort_ordered: bool,
    /// It must give way. From then on its operation is not charged for it (scheduling.md 16.4).
    pub preempted: Option<Arc<PreemptionRecord>>,
}

impl Allocation {
    /// What counts in the pool tree.
    pub fn charged(&self) -> Resources {
        if self.preempted.is_some() { Resources::ZERO } else { self.held }
    }

    /// Its CPU is below what was ordered (scheduling.md 13).
    pub fn has_cpu_gap(&self) -> bool {
        self.held.cpu < self.ordered_cpu
    }

    /// It is on its way out already.
    pub fn is_ending(&self) -> bool {
        self.preempted.is_some() || self.abort_ordered
    }
}

/// Public view of an allocation.
#[derive(Clone, PartialEq, Debug)]
pub struct AllocationState {
    /// Whose it is.
    pub operation: OperationId,
    /// Where it runs.
    pub node: Arc<str>,
    /// The tree it is charged to.
    pub tree: Arc<str>,
    /// Task of the operation.
    pub task: u32,
    /// What it holds on its node.
    pub resource_usage: Resources,
    /// Its preemption group now.
    pub group: PreemptionGroup,
    /// Its level now (scheduling.md 7.4).
    pub level: u8,
    /// Who took it away, if somebody did.
    pub preempted: Option<Arc<PreemptionRecord>>,
}

/// Numbers of an operation's allocations in the three groups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupSizes {
    /// In this tree.
    pub tree: Arc<str>,
    /// By group, in the order of [`PreemptionGroup::ALL`].
    pub sizes: [i64; 3],
}

/// What is needed to enter an allocation into the books.
pub(crate) struct NewAllocation {
    pub id: AllocationId,
    pub operation: OpIdx,
    pub tree: TreeIdx,
    pub leaf: LeafIdx,
    pub node: NodeIdx,
    pub task: u32,
    pub resources: Resources,
    pub now: Time,
}

impl Scheduler {
    /// One allocation, while it is known.
    pub fn allocation(&self, id: AllocationId) -> Option<AllocationState> {
        let a = &self.allocations[self.allocation_index(id)?];
        let leaf = &self.trees[a.tree.index()].leaves[a.leaf];
        let group = leaf.groups.group(a.sequence);
        Some(AllocationState {
            operation: self.operations[a.operation].desc.id,
            node: self.nodes[a.node].name.clone(),
            tree: self.trees[a.tree.index()].name.clone(),
            task: a.task,
            resource_usage: a.held,
            group,
            level: group.level(leaf.published.aggressive_preemption_allowed),
            preempted: a.preempted.clone(),
        })
    }

    /// Numbers of an operation's allocations in the three groups at this moment, tree by tree.
    pub fn preemption_groups_of(&self, id: OperationId) -> Result<Vec<GroupSizes>, Failure> {
        let index = self.operation_index(id)?;
        let leaves = self.operations[index].leaves.iter();
        Ok(leaves
            .map(|(tree, leaf)| {
                let tree = &self.trees[tree.index()];
                let leaf = &tree.leaves[*leaf];
                GroupSizes { tree: tree.name.clone(), sizes: leaf.groups.counts(leaf.allocations.len()) }
            })
            .collect())
    }

    /// What an allocation holds on its node, while it is known.
    pub fn allocation_held(&self, id: AllocationId) -> Option<Resources> {
        Some(self.allocations[self.allocation_index(id)?].held)
    }

    pub(crate) fn allocation_index(&self, id: AllocationId) -> Option<AllocIdx> {
        self.allocation_by_id.get(&id).copied()
    }

    /// The node reports an allocation with what it holds now. False if it is not known.
    ///
    /// Of a preempted allocation only the node's books follow: it is not charged to its pool any more,
    /// whatever it says (scheduling.md 16.4 [D5]).
    pub fn allocation_usage(&mut self, id: AllocationId, usage: Resources) -> bool {
        let Some(index) = self.allocation_index(id) else { return false };
        let a = &mut self.allocations[index];
        let usage = usage.max(Resources::ZERO);
        let change = usage - a.held;
        let newly_confirmed = !std::mem::replace(&mut a.confirmed, true);
        if change.is_zero() && !newly_confirmed {
            return true;
        }
        a.held = usage;
        let (node_index, tree, leaf, sequence) = (a.node, a.tree, a.leaf, a.sequence);
        let is_preempted = a.preempted.is_some();
        let node = &mut self.nodes[node_index];
        node.booked += change;
        node.confirmed += if newly_confirmed { usage } else { change };
        if is_preempted {
            node.leaving += change;
        }
        if !change.is_zero() {
            if !is_preempted {
                let tree = &mut self.trees[tree.index()];
                if !strikes(Bug::GroupsForgetUsage, 1) {
                    tree.leaves[leaf].groups.usage_changed(sequence, change);
                }
                tree.charge(leaf, change);
                tree.rebalance(leaf, &self.allocations);
            }
            self.refresh_room(node_index);
        }
        true
    }

    /// The next job began in an allocation, or its job declared its progress reset: it becomes the
    /// youngest of its operation (scheduling.md 7.1). False if it is not known.
    pub fn allocation_job_started(&mut self, id: AllocationId) -> bool {
        let Some(index) = self.allocation_index(id) else { return false };
        self.next_sequence += 1;
        let sequence = self.next_sequence;
        let a = &mut self.allocations[index];
        let old = std::mem::replace(&mut a.sequence, sequence);
        a.since = self.latest;
        let (tree, leaf_index, node, charged) = (a.tree, a.leaf, a.node, a.charged());
        let tree = &mut self.trees[tree.index()];
        let leaf = &mut tree.leaves[leaf_index];
        leaf.allocations.remove(&old);
        leaf.allocations.insert(sequence, index);
        leaf.groups.removed(old, charged);
        tree.rebalance(leaf_index, &self.allocations);
        let on_node = &mut self.nodes[node].allocations;
        on_node.remove(&old);
        on_node.insert(sequence, index);
        true
    }

    /// The allocation is over and its resources are free. False if it is not known.
    pub fn allocation_finished(&mut self, id: AllocationId) -> bool {
        self.forget_allocation(id, true)
    }

    /// Nothing came of an allocation that was granted: all is given back, its demand too, and the
    /// operation pauses if its controller asks for it (scheduling.md 17.3). Victims whose orders nobody
    /// has taken yet ([`Scheduler::drain_orders`]) stay. False if it is not known.
    ///
    /// Call [`Scheduler::set_demand`] afterwards if the demand is another one now.
    pub fn allocation_failed(&mut self, now: Time, id: AllocationId, failure: SettleFailure) -> bool {
        let Some(index) = self.allocation_index(id) else { return false };
        let a = &self.allocations[index];
        let (operation, tree, leaf, node, task) = (a.operation, a.tree, a.leaf, a.node, a.task);
        self.forget_allocation(id, true);
        self.spare_victims(id, node);
        let config = self.config.clone();
        let op = &mut self.operations[operation];
        if let Some(group) = Arc::make_mut(&mut op.groups).iter_mut().find(|g| g.task == task) {
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
        let tree = &mut self.trees[tree.index()];
        let reason = crate::Deactivation::ScheduleAllocationFailed as usize;
        tree.leaves[leaf].refusals.get_mut().by_reason[reason] += 1;
        tree.metrics.deactivations[reason] += 1;
        self.refresh_live(operation);
        true
    }

    /// Nothing is started for the operation on this node before `until`. A node or operation that is not known is no
    /// error: it may have gone meanwhile.
    pub fn back_off_on_node(&mut self, now: Time, id: OperationId, node: &str, until: Time) {
        let (Ok(operation), Some(node)) = (self.operation_index(id), self.node_by_name.get(node).copied())
        else {
            return;
        };
        let backoffs = &mut self.operations[operation].node_backoffs;
        backoffs.retain(|_, until| now < *until);
        let known = backoffs.entry(node).or_insert(until);
        *known = until.max(*known);
    }

    /// Takes in an allocation that runs already, without asking any limit (scheduling.md 21). Call it
    /// in the order of the start of the current jobs.
    pub fn revive_allocation(&mut self, revived: &RevivedAllocation) -> Result<(), Failure> {
        let id = revived.allocation;
        if self.allocation_by_id.contains_key(&id) {
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
        let index = self.insert_allocation(NewAllocation {
            id,
            operation,
            tree,
            leaf,
            node,
            task: revived.task,
            resources: revived.resources,
            now: self.latest,
        });
        let a = &mut self.allocations[index];
        a.ordered_cpu = revived.ordered_cpu;
        // What the node holds for it is no longer "being released".
        a.confirmed = true;
        let books = &mut self.nodes[node];
        books.confirmed += revived.resources;
        books.releasing = (books.releasing - revived.resources).max(Resources::ZERO);
        if let Some(record) = &revived.preempted {
            self.mark_preempted(index, record.clone());
        }
        self.refresh_room(node);
        Ok(())
    }

    pub(crate) fn insert_allocation(&mut self, new: NewAllocation) -> AllocIdx {
        let NewAllocation { id, operation, tree, leaf, node, task, resources, now } = new;
        self.next_sequence += 1;
        let sequence = self.next_sequence;
        let index = self.allocations.insert(Allocation {
            id,
            operation,
            tree,
            leaf,
            node,
            task,
            held: resources,
            ordered_cpu: resources.cpu,
            sequence,
            since: now,
            confirmed: false,
            abort_ordered: false,
            preempted: None,
        });
        let previous = self.allocation_by_id.insert(id, index);
        assert!(previous.is_none(), "allocation ids must be unique, {id} is used twice");
        let n = &mut self.nodes[node];
        n.allocations.insert(sequence, index);
        n.booked += resources;
        let t = &mut self.trees[tree.index()];
        t.leaves[leaf].allocations.insert(sequence, index);
        t.charge(leaf, resources);
        if !strikes(Bug::GroupsStay, 1) {
            t.rebalance(leaf, &self.allocations);
        }
        index
    }

    /// Takes an allocation out of all books. `freed`: the node is done with it; otherwise its resources
    /// count there as being released until the node reports again.
    pub(crate) fn forget_allocation(&mut self, id: AllocationId, freed: bool) -> bool {
        let Some(index) = self.allocation_by_id.remove(&id) else { return false };
        let a = self.allocations.remove(index);
        let node = &mut self.nodes[a.node];
        node.allocations.remove(&a.sequence);
        if !strikes(Bug::NodeKeepsResources, 10) {
            node.booked -= a.held;
        }
        if a.confirmed {
            node.confirmed -= a.held;
        }
        if a.preempted.is_some() {
            node.leaving -= a.held;
            node.preempted -= 1;
        }
        if node.waiting == Some(id) {
            node.waiting = None;
        }
        if !freed {
            node.releasing += a.held;
        }
        let tree = &mut self.trees[a.tree.index()];
        let leaf = &mut tree.leaves[a.leaf];
        leaf.allocations.remove(&a.sequence);
        leaf.groups.removed(a.sequence, a.charged());
        tree.charge(a.leaf, Resources::ZERO - a.charged());
        tree.rebalance(a.leaf, &self.allocations);
        if !strikes(Bug::RoomIsForgotten, 3) {
            self.refresh_room(a.node);
        }
        true
    }

    /// Forgets all allocations of an operation that still run on their nodes.
    pub(crate) fn drop_allocations(&mut self, operation: OpIdx) -> Vec<AllocationId> {
        let leaves = self.operations[operation].leaves.clone();
        leaves.into_iter().flat_map(|(tree, leaf)| self.drop_allocations_in(tree, leaf)).collect()
    }

    pub(crate) fn drop_allocations_in(&mut self, tree: TreeIdx, leaf: LeafIdx) -> Vec<AllocationId> {
        let all = self.trees[tree.index()].leaves[leaf].allocations.values();
        let ids: Vec<AllocationId> = all.map(|a| self.allocations[*a].id).collect();
        for id in &ids {
            self.forget_allocation(*id, false);
        }
        ids
    }
}
