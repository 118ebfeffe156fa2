//! Nodes: what they have, what is taken, to which tree they belong (scheduling.md 2.1, 8).

use crate::messages::{NodeReport, NodeUpdate};
use crate::preemption::{Order, PreemptionRecord};
use crate::scheduler::Scheduler;
use crate::slab::{AllocIdx, Key, NodeIdx, TreeIdx};
use crate::statistics::{HeartbeatStatistics, RunningJobStatistics};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::{AllocationId, Failure, Resources, Time};

/// A node that has reported.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub name: Arc<str>,
    pub tree: Option<TreeIdx>,
    /// In which it is or was last, also before the scheduler began anew.
    pub was_in: Option<TreeIdx>,
    /// Trees whose filter it satisfies; more than one raises an alert.
    pub matching_trees: usize,
    pub limits: Resources,
    pub tags: Arc<BTreeSet<String>>,
    pub has_waiting_allocations: bool,
    /// Allocations on it, by sequence number.
    pub allocations: BTreeMap<u64, AllocIdx>,
    /// Sum of their usages.
    pub booked: Resources,
    /// Part of `booked` that the node has reported already; the rest is on its way there.
    pub confirmed: Resources,
    /// What the node holds for allocations that the scheduler has forgotten: being released or aborted.
    pub releasing: Resources,
    /// Part of `booked` that preempted allocations hold until they are gone.
    pub leaving: Resources,
    /// Number of preempted allocations that are not gone yet.
    pub preempted: usize,
    /// An allocation that was started by preemption and waits there until its victims have left.
    pub waiting: Option<AllocationId>,
    /// When the preemptive part of a pass ran last (scheduling.md 12.1).
    pub last_preemptive: Option<Time>,
    /// Of the newest pass without and the newest with preemptive stages (19.5).
    pub statistics: [Option<Box<HeartbeatStatistics>>; 2],
    /// Its usage has been above its limits since then.
    pub overcommitted_since: Option<Time>,
    pub last_report: Time,
    /// Its connection is gone; it may come back with what it runs.
    pub away: bool,
    /// Key in the tree's set of nodes with room.
    pub room: Option<i64>,
}

impl Node {
    /// All that is taken on the node.
    pub fn usage(&self) -> Resources {
        self.booked + self.releasing
    }
    /// What will still be taken when the preempted allocations are gone.
    pub fn lasting(&self) -> Resources {
        self.usage() - self.leaving
    }
    /// Nothing may be put here now: an accepted allocation waits for resources (scheduling.md 8.2,
    /// rule 6). What the node says may be older than what was started since.
    pub fn must_wait(&self) -> bool {
        self.has_waiting_allocations || self.waiting.is_some()
    }
    /// All that is free; negative components if it is overcommitted.
    pub fn free(&self) -> Resources {
        self.limits - self.usage()
    }
}

/// Public view of a node.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeState {
    /// Its number: of nodes with equally much room the one with the highest comes first.
    pub index: u32,
    /// Its tree.
    pub tree: Option<Arc<str>>,
    /// What it has.
    pub resource_limits: Resources,
    /// What is taken, by the books of the scheduler.
    pub resource_usage: Resources,
    /// Number of allocations on it.
    pub allocation_count: usize,
    /// Its usage has been above its limits since then.
    pub overcommitted_since: Option<Time>,
    /// Its newest pass without preemptive stages.
    pub last_non_preemptive_heartbeat_statistics: Option<HeartbeatStatistics>,
    /// Its newest pass with preemptive stages.
    pub last_preemptive_heartbeat_statistics: Option<HeartbeatStatistics>,
    /// CPU time of what runs there.
    pub running_job_statistics: RunningJobStatistics,
}

impl Scheduler {
    /// Takes in what a node says (scheduling.md 8.2, step 1).
    ///
    /// Call it after [`Scheduler::allocation_usage`] and [`Scheduler::allocation_finished`] for
    /// everything in the same message: what the node holds beyond the allocations that it has
    /// confirmed is taken for resources that are still being released, and nothing is put there. An
    /// allocation that was started but has not been confirmed yet counts as well: the report may be
    /// older than the order.
    pub fn heartbeat(&mut self, now: Time, name: &str, report: &NodeReport) -> NodeUpdate {
        let index = match self.node_by_name.get(name) {
            Some(index) => *index,
            None => self.add_node(name),
        };
        self.latest = self.latest.max(now);
        let waiting = self.waiting_usage(index);
        let node = &mut self.nodes[index];
        // What the node has heard of and what does not wait there.
        let running = node.confirmed - waiting;
        node.last_report = now;
        node.away = false;
        node.has_waiting_allocations = report.has_waiting_allocations;
        node.releasing = (report.resource_usage - running).max(Resources::ZERO);
        let limits = report.resource_limits.max(Resources::ZERO);
        let limits_changed = node.limits != limits;
        // As they hardly ever change, most comparisons are of one and the same set.
        let tags_changed = node.tags != report.tags;
        if !Arc::ptr_eq(&node.tags, &report.tags) {
            node.tags = Arc::clone(&report.tags);
        }
        if limits_changed {
            self.set_node_limits(index, limits);
        }
        let is_new = self.nodes[index].tree.is_none();
        let lost = if tags_changed || is_new { self.assign_node(index) } else { Vec::new() };
        let node = &mut self.nodes[index];
        // By what runs on the node (scheduling.md 8.2, step 1): an allocation that waits there, or that it
        // has not heard of yet, takes nothing.
        if node.limits.dominates(&report.resource_usage.max(running)) {
            node.overcommitted_since = None;
        } else {
            node.overcommitted_since.get_or_insert(now);
        }
        self.refresh_room(index);
        NodeUpdate { tree: self.nodes[index].tree.map(|t| self.trees[t.index()].name.clone()), lost }
    }

    /// The tree that a node is in.
    pub fn tree_of_node(&self, name: &str) -> Option<&Arc<str>> {
        let node = &self.nodes[*self.node_by_name.get(name)?];
        node.tree.map(|tree| &self.trees[tree.index()].name)
    }

    /// The tree that a node was in before the scheduler began anew. To be told before its first report.
    pub fn recall_tree(&mut self, name: &str, tree: &str) {
        let Some(tree) = self.tree_by_name.get(tree).copied() else { return };
        let index = match self.node_by_name.get(name) {
            Some(index) => *index,
            None => self.add_node(name),
        };
        self.nodes[index].was_in = Some(tree);
    }

    /// The connection of a node is gone: it keeps what it has, and nothing is started there until it
    /// reports again.
    pub fn set_away(&mut self, name: &str) {
        if let Some(index) = self.node_by_name.get(name).copied() {
            self.nodes[index].away = true;
        }
    }

    /// The last accepted allocation that waited for resources on a node has them, or is gone: known
    /// before the next report.
    pub fn nothing_waits(&mut self, name: &str) {
        if let Some(index) = self.node_by_name.get(name).copied() {
            self.nodes[index].has_waiting_allocations = false;
            self.refresh_room(index);
        }
    }

    /// What an allocation that waits for resources will hold on the node, if the node counts it already.
    fn waiting_usage(&self, node: NodeIdx) -> Resources {
        let waiting = self.nodes[node].waiting.and_then(|id| self.allocation_index(id));
        let waiting = waiting.map(|index| &self.allocations[index]).filter(|a| a.confirmed);
        waiting.map_or(Resources::ZERO, |a| a.held)
    }

    /// Forgets a node; gives back the allocations that were on it, which count as finished.
    pub fn remove_node(&mut self, name: &str) -> Vec<AllocationId> {
        let Some(index) = self.node_by_name.remove(name) else { return Vec::new() };
        let lost = self.leave_tree(index);
        self.nodes.remove(index);
        lost
    }

    /// One node.
    pub fn node(&self, name: &str) -> Option<NodeState> {
        let index = *self.node_by_name.get(name)?;
        let node = &self.nodes[index];
        let statistics = |i: usize| node.statistics[i].as_deref().cloned();
        Some(NodeState {
            index: index.0,
            tree: node.tree.map(|t| self.trees[t.index()].name.clone()),
            resource_limits: node.limits,
            resource_usage: node.usage(),
            allocation_count: node.allocations.len(),
            overcommitted_since: node.overcommitted_since,
            last_non_preemptive_heartbeat_statistics: statistics(0),
            last_preemptive_heartbeat_statistics: statistics(1),
            running_job_statistics: self.running_job_statistics(index),
        })
    }

    /// Allocations on a node, in the order of their start.
    pub fn allocations_on(&self, node: &str) -> Vec<AllocationId> {
        let node = self.node_by_name.get(node).map(|n| &self.nodes[*n]);
        node.map(|n| n.allocations.values().map(|a| self.allocations[*a].id).collect()).unwrap_or_default()
    }

    /// Orders that a node has been given and that are not carried out yet, oldest allocation first: to be
    /// sent again to a node that comes back, since what was on the way to it may be lost.
    pub fn standing_orders(&self, node: &str) -> Vec<Order> {
        let Some(index) = self.node_by_name.get(node) else { return Vec::new() };
        let node = &self.nodes[*index];
        let order = |a: &AllocIdx| {
            let a = &self.allocations[*a];
            if a.abort_ordered {
                return Some(self.abort_order(a));
            }
            a.preempted.as_ref().map(|record| self.preempt_order(record))
        };
        node.allocations.values().filter_map(order).collect()
    }

    /// The order that a record stands for; without its text if nodes are not to be told.
    pub(crate) fn preempt_order(&self, record: &Arc<PreemptionRecord>) -> Order {
        let mut order = record.order();
        if !self.config.send_preemption_reason_in_node_heartbeat {
            order.reason.clear();
        }
        Order::Preempt(order)
    }

    pub(crate) fn abort_order(&self, a: &crate::allocations::Allocation) -> Order {
        Order::Abort {
            allocation: a.id,
            operation: self.operations[a.operation].desc.id,
            node: self.nodes[a.node].name.clone(),
            reason: vocab::AbortReason::NodeWithDisabledJobs,
        }
    }

    fn running_job_statistics(&self, node: NodeIdx) -> RunningJobStatistics {
        let mut statistics = RunningJobStatistics::default();
        for index in self.nodes[node].allocations.values() {
            let a = &self.allocations[*index];
            let group = self.trees[a.tree.index()].leaves[a.leaf].groups.group(a.sequence);
            let ran = self.latest.since(a.since).as_secs_f64();
            statistics.cpu_time[group as usize] += a.held.cpu.as_f64() * ran;
        }
        statistics
    }

    /// Nodes of a tree into which both `need` and the spare resources of option
    /// `min_spare_allocation_resources_on_node` fit, those with the most free CPU first. The kernel
    /// goes through them when new demand appears; full nodes cost nothing here.
    pub fn nodes_with_room<'a>(
        &'a self,
        tree: &str,
        need: Resources,
    ) -> Result<impl Iterator<Item = &'a Arc<str>> + 'a, Failure> {
        let tree = self.tree(tree)?;
        let enough = (need.cpu.0, NodeIdx(0))..;
        Ok(tree
            .room
            .range(enough)
            .rev()
            .map(|(_, index)| &self.nodes[*index])
            .filter(move |n| !n.away && n.free().dominates(&need))
            .map(|n| &n.name))
    }

    /// Is there an operation that a node of the tree could be planned for?
    pub fn has_candidates(&self, tree: &str) -> Result<bool, Failure> {
        Ok(!self.tree(tree)?.candidates.is_empty())
    }

    fn add_node(&mut self, name: &str) -> NodeIdx {
        let name: Arc<str> = name.into();
        let index = self.nodes.insert(Node {
            name: name.clone(),
            tree: None,
            was_in: None,
            matching_trees: 0,
            limits: Resources::ZERO,
            tags: Arc::default(),
            has_waiting_allocations: false,
            away: false,
            allocations: BTreeMap::new(),
            booked: Resources::ZERO,
            confirmed: Resources::ZERO,
            releasing: Resources::ZERO,
            leaving: Resources::ZERO,
            preempted: 0,
            waiting: None,
            last_preemptive: None,
            statistics: [None, None],
            overcommitted_since: None,
            last_report: Time::ZERO,
            room: None,
        });
        self.node_by_name.insert(name, index);
        index
    }

    fn set_node_limits(&mut self, index: NodeIdx, limits: Resources) {
        let node = &mut self.nodes[index];
        let old = std::mem::replace(&mut node.limits, limits);
        if let Some(tree) = node.tree {
            let tree = &mut self.trees[tree.index()];
            tree.total = tree.total - old + limits;
            tree.nodes_version += 1;
        }
    }

    /// Decides the tree of a node: the one whose filter it satisfies; if it satisfies several it stays
    /// where it is (scheduling.md 2.1).
    fn assign_node(&mut self, index: NodeIdx) -> Vec<AllocationId> {
        let tags = &self.nodes[index].tags;
        let matching = self.trees.iter().enumerate().filter(|(_, t)| t.config.nodes_filter.matches(tags));
        let matching: Vec<TreeIdx> = matching.map(|(i, _)| TreeIdx::new(i as u32)).collect();
        let node = &mut self.nodes[index];
        node.matching_trees = matching.len();
        let wanted = match matching.as_slice() {
            [] => None,
            [one] => Some(*one),
            several => node.was_in.filter(|tree| several.contains(tree)),
        };
        node.was_in = wanted.or(node.was_in);
        if wanted == node.tree {
            if let Some(tree) = wanted {
                // Tags may have changed: limits by filter must be looked at again.
                self.trees[tree.index()].nodes_version += 1;
            }
            return Vec::new();
        }
        let lost = self.leave_tree(index);
        self.nodes[index].tree = wanted;
        if let Some(tree) = wanted {
            let tree = &mut self.trees[tree.index()];
            tree.total += self.nodes[index].limits;
            tree.nodes.insert(index);
            tree.nodes_version += 1;
        }
        self.refresh_room(index);
        lost
    }

    pub(crate) fn assign_all_nodes(&mut self) -> Vec<AllocationId> {
        self.nodes.keys().into_iter().flat_map(|n| self.assign_node(n)).collect()
    }

    /// Takes a node out of its tree and forgets the allocations on it.
    fn leave_tree(&mut self, index: NodeIdx) -> Vec<AllocationId> {
        let on_node = self.nodes[index].allocations.values();
        let lost: Vec<AllocationId> = on_node.map(|a| self.allocations[*a].id).collect();
        for id in &lost {
            self.forget_allocation(*id, true);
        }
        if let Some(tree) = self.nodes[index].tree.take() {
            let tree = &mut self.trees[tree.index()];
            tree.total -= self.nodes[index].limits;
            tree.nodes.remove(&index);
            tree.nodes_version += 1;
            if let Some(room) = self.nodes[index].room.take() {
                tree.room.remove(&(room, index));
            }
        }
        lost
    }

    /// Puts a node into the set of those with room, or takes it out.
    pub(crate) fn refresh_room(&mut self, index: NodeIdx) {
        let spare = self.config.min_spare_allocation_resources_on_node;
        let node = &mut self.nodes[index];
        // What waited may start when it fits, or when those that it waits for are gone.
        if node.waiting.is_some() && (node.preempted == 0 || node.limits.dominates(&node.usage())) {
            node.waiting = None;
        }
        let Some(tree) = node.tree else { return };
        let free = node.free();
        let wanted = (!node.must_wait() && free.dominates(&spare)).then_some(free.cpu.0);
        if node.room != wanted {
            let room = &mut self.trees[tree.index()].room;
            if let Some(old) = node.room {
                room.remove(&(old, index));
            }
            if let Some(new) = wanted {
                room.insert((new, index));
            }
            node.room = wanted;
        }
    }
}
