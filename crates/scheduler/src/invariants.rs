//! What must hold between any two calls, by name (scheduling.md 24).
//!
//! One definition for tests, the simulator and the debug mode of the kernel. Everything is recomputed
//! from the smallest facts, so this is slow.

use crate::candidates::ClassKey;
use crate::groups::Groups;
use crate::messages::Admission;
use crate::scheduler::Scheduler;
use crate::slab::{AllocIdx, Key, LeafIdx, PoolIdx, TreeIdx};
use crate::tree::counts::running_counts;
use crate::tree::{Counts, Standing, Tree};
use std::collections::BTreeSet;
use vocab::Resources;

impl Scheduler {
    /// Violated invariants: name, then what was found. Empty if all is well.
    ///
    /// - `SCHED-1`: the preemption groups of an operation are a partition of its allocations in the order of
    ///   last job start, with the right sums, and moving the borders again changes nothing.
    /// - `SCHED-2`: the groups are those that follow from order, usages, shares and thresholds alone.
    /// - `SCHED-5`: counters of operations equal those recomputed from the operations.
    /// - `SCHED-6`: nobody waits while every pool above has room; each queue holds just those who wait
    ///   for that pool.
    /// - `SCHED-10`: usage of operations, pools and nodes equals the sum over allocations (preempted ones
    ///   count on their nodes only), totals the sum over nodes; nothing is negative; exceeded limits are
    ///   known.
    /// - `SCHED-11`: candidates are just the schedulable operations, and the first of them is the one
    ///   that the walk from the root finds.
    /// - `SCHED-12`: the set of nodes with room is just those with room.
    pub fn check_invariants(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (i, tree) in self.trees.iter().enumerate() {
            self.check_counts(tree, &mut found);
            check_queues(tree, &mut found);
            self.check_books(TreeIdx::new(i as u32), tree, &mut found);
            self.check_groups(tree, &mut found);
            self.check_candidates(tree, &mut found);
        }
        self.check_nodes(&mut found);
        found
    }

    fn check_counts(&self, tree: &Tree, found: &mut Vec<String>) {
        for (index, pool) in tree.pools.iter() {
            let mut counts = Counts::default();
            for leaf in leaves_below(tree, index) {
                counts.operations += 1;
                let leaf = &tree.leaves[leaf];
                if leaf.is_running() {
                    counts.add(running_counts(leaf.lightweight));
                }
            }
            if counts != pool.counts {
                found
                    .push(format!("SCHED-5: pool {} has {:?}, should be {counts:?}", pool.name, pool.counts));
            }
        }
        for (index, leaf) in tree.leaves.iter() {
            let lightweight = leaf.is_running() && tree.is_lightweight_now(index);
            if leaf.lightweight != lightweight {
                found.push(format!("SCHED-5: operation {} lightweight: {}", leaf.desc.id, leaf.lightweight));
            }
            let op = self.operations.get(leaf.operation);
            if op.is_none_or(|o| o.desc.id != leaf.desc.id) {
                found.push(format!("SCHED-5: operation {} is in a tree only", leaf.desc.id));
            }
        }
    }

    fn check_books(&self, tree_index: TreeIdx, tree: &Tree, found: &mut Vec<String>) {
        for (index, leaf) in tree.leaves.iter() {
            let of_leaf = leaf.allocations.values().filter_map(|a| self.allocations.get(*a));
            let sum = of_leaf.fold(Resources::ZERO, |sum, a| sum + a.charged());
            if sum != leaf.usage || !sum.dominates(&Resources::ZERO) {
                found.push(format!(
                    "SCHED-10: operation {} uses {}, allocations {sum}",
                    leaf.desc.id, leaf.usage
                ));
            }
            let is_stranger = |a: &AllocIdx| {
                self.allocations.get(*a).is_none_or(|a| a.leaf != index || a.tree != tree_index)
            };
            let strangers = leaf.allocations.values().filter(|a| is_stranger(a));
            found.extend(strangers.map(|a| format!("SCHED-10: allocation {a:?} is not of {}", leaf.desc.id)));
        }
        for (index, pool) in tree.pools.iter() {
            let below = leaves_below(tree, index).into_iter();
            let sum = below.fold(Resources::ZERO, |sum, l| sum + tree.leaves[l].usage);
            if sum != pool.usage {
                found.push(format!("SCHED-10: pool {} uses {}, operations {sum}", pool.name, pool.usage));
            }
        }
        let is_over = |amounts: &crate::Amounts, usage: &Resources| !amounts.as_limits().dominates(usage);
        let pools_over = tree.pools.values().filter(|p| is_over(&p.config.resource_limits, &p.usage)).count();
        let leaves = tree.leaves.values();
        let leaves_over = leaves.filter(|l| is_over(&l.parameters.resource_limits, &l.usage)).count();
        if pools_over + leaves_over != tree.over_limits {
            found.push(format!(
                "SCHED-10: tree {} counts {} exceeded limits, there are {}",
                tree.name,
                tree.over_limits,
                pools_over + leaves_over
            ));
        }
        let graceful = tree.leaves.values().filter(|l| l.is_graceful()).count();
        if graceful != tree.graceful {
            found.push(format!("SCHED-10: tree {} counts {} graceful operations", tree.name, tree.graceful));
        }
        let total = tree.nodes.iter().fold(Resources::ZERO, |sum, n| sum + self.nodes[*n].limits);
        if total != tree.total {
            found.push(format!("SCHED-10: tree {} has {}, nodes {total}", tree.name, tree.total));
        }
    }

    fn check_groups(&self, tree: &Tree, found: &mut Vec<String>) {
        for (_, leaf) in tree.leaves.iter() {
            let id = leaf.desc.id;
            let (order, bounds, total) = (&leaf.allocations, &leaf.published.bounds, &tree.published_total);
            for (sequence, index) in order {
                if self.allocations[*index].sequence != *sequence {
                    found.push(format!("SCHED-1: allocations of {id} are not in the order of last start"));
                }
            }
            let (counts, usages) = Groups::from_scratch(order, &self.allocations, bounds, total);
            let have = leaf.groups.counts(order.len());
            if have != counts {
                found.push(format!("SCHED-2: groups of {id} are {have:?}, should be {counts:?}"));
            }
            let have = leaf.groups.usages(leaf.usage);
            if have != usages {
                found.push(format!("SCHED-1: usages of groups of {id} are {have:?}, should be {usages:?}"));
            }
            let mut again = leaf.groups;
            again.rebalance(order, &self.allocations, bounds, total);
            if again.counts(order.len()) != leaf.groups.counts(order.len()) {
                found.push(format!("SCHED-1: rebalancing the groups of {id} again changes them"));
            }
        }
    }

    fn check_candidates(&self, tree: &Tree, found: &mut Vec<String>) {
        let mut wanted = BTreeSet::new();
        for (index, leaf) in tree.leaves.iter() {
            let op = &self.operations[leaf.operation];
            let live = op.enabled && !op.suspended && op.pending_count > 0;
            if live && leaf.is_running() && leaf.published.schedulable {
                let need = op.aggregated_min_needed();
                let class = ClassKey::new(&need, leaf.published.priority, leaf.published.high);
                wanted.insert((class, tree.satisfaction_bits(index, leaf.usage), leaf.published.rank, index));
            }
        }
        let classes = tree.candidates.classes();
        let have: BTreeSet<_> = classes
            .flat_map(|(key, class)| {
                class.members.iter().map(|(bits, rank, leaf)| (*key, *bits, *rank, *leaf))
            })
            .collect();
        let is_empty = tree.candidates.is_empty();
        if wanted != have || is_empty != wanted.is_empty() {
            found.push(format!("SCHED-11: candidates of tree {} are stale", tree.name));
        }
        if !tree.ranks_are_fresh {
            return;
        }
        let walked = best_leaf(tree, crate::tree::ROOT).map(|(_, leaf)| leaf);
        let first = tree.candidates.sorted().first().map(|(_, _, leaf)| *leaf);
        if walked != first {
            found.push(format!("SCHED-11: the walk finds {walked:?}, the list {first:?}"));
        }
    }

    fn check_nodes(&self, found: &mut Vec<String>) {
        let spare = self.config.min_spare_allocation_resources_on_node;
        for (index, node) in self.nodes.iter() {
            let on_node = node.allocations.values().filter_map(|a| self.allocations.get(*a));
            let (mut booked, mut confirmed) = (Resources::ZERO, Resources::ZERO);
            let (mut leaving, mut preempted) = (Resources::ZERO, 0);
            for a in on_node {
                booked += a.held;
                if a.confirmed {
                    confirmed += a.held;
                }
                if a.preempted.is_some() {
                    leaving += a.held;
                    preempted += 1;
                }
            }
            if leaving != node.leaving || preempted != node.preempted {
                found.push(format!(
                    "SCHED-10: node {} has {} leaving, should be {leaving}",
                    node.name, node.leaving
                ));
            }
            if booked != node.booked || confirmed != node.confirmed {
                found.push(format!(
                    "SCHED-10: node {} has booked {}, should be {booked}",
                    node.name, node.booked
                ));
            }
            let room = node.tree.filter(|_| !node.must_wait() && node.free().dominates(&spare));
            let is_in = node
                .tree
                .is_some_and(|t| node.room.is_some_and(|r| self.trees[t.index()].room.contains(&(r, index))));
            if room.is_some() != is_in || (is_in && node.room != Some(node.free().cpu.0)) {
                found.push(format!("SCHED-12: node {} in the set of nodes with room: {is_in}", node.name));
            }
        }
    }
}

fn check_queues(tree: &Tree, found: &mut Vec<String>) {
    for (index, leaf) in tree.leaves.iter() {
        let Standing::Pending { at, ticket } = leaf.standing else { continue };
        let queued = tree.pools.get(at).and_then(|p| p.queue.get(&ticket)) == Some(&index);
        if !queued {
            found.push(format!("SCHED-6: operation {} waits in no queue", leaf.desc.id));
        }
        if tree.first_violated(leaf.pool).is_none() {
            let admission = tree.admission(index);
            debug_assert!(admission != Admission::Running);
            found.push(format!("SCHED-6: operation {} waits, and all pools have room", leaf.desc.id));
        }
    }
    for pool in tree.pools.values() {
        for (ticket, leaf) in &pool.queue {
            let standing = tree.leaves.get(*leaf).map(|l| l.standing);
            if !matches!(standing, Some(Standing::Pending { ticket: t, .. }) if t == *ticket) {
                found.push(format!("SCHED-6: queue of pool {} has a stranger", pool.name));
            }
        }
    }
}

fn leaves_below(tree: &Tree, pool: PoolIdx) -> Vec<LeafIdx> {
    let mut leaves = Vec::new();
    let mut stack = vec![pool];
    while let Some(index) = stack.pop() {
        let pool = &tree.pools[index];
        leaves.extend(pool.leaves.values());
        stack.extend(&pool.children);
    }
    leaves
}

/// The walk of scheduling.md 9.1 as it is written: a composite offers the best of its children.
fn best_leaf(tree: &Tree, pool: PoolIdx) -> Option<(f64, LeafIdx)> {
    let pool = &tree.pools[pool];
    let mut children: Vec<PoolIdx> = pool.children.clone();
    children.sort_by_key(|c| tree.pools[*c].name.clone());
    let from_pools = children.into_iter().filter_map(|c| best_leaf(tree, c));
    let mut leaves: Vec<LeafIdx> =
        pool.leaves.values().copied().filter(|l| tree.leaves[*l].membership.is_some()).collect();
    // Operations of one pool have their order in the rank.
    leaves.sort_by_key(|l| tree.leaves[*l].published.rank);
    let own = leaves.into_iter().map(|l| {
        let leaf = &tree.leaves[l];
        (f64::from_bits(tree.satisfaction_bits(l, leaf.usage)), l)
    });
    // The first of equals wins.
    from_pools.chain(own).reduce(|best, next| if next.0 < best.0 { next } else { best })
}
