//! The invariants of scheduling.md 24 in production: a little at a time, for ever.
//!
//! [`Scheduler::check_invariants`] compares everything with everything, which a large cluster cannot
//! afford. Here each call looks at one node, one pool and one operation of every tree, then moves on.
//! After much of that (an operation of many allocations) the next calls look at nothing until it is
//! made up for: so the audit of a cluster with few large operations takes no more time than any other.
//! What is wrong once stays wrong, so it is found within one round.

use crate::groups::Groups;
use crate::scheduler::Scheduler;
use crate::slab::{Key, LeafIdx, NodeIdx, PoolIdx, Slab};
use crate::tree::counts::running_counts;
use crate::tree::{Counts, Tree};
use vocab::Resources;

/// Allocations, pools and operations that a call looks at on average, at most.
const LOOKS_PER_CALL: usize = 100;

/// Where the next call goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    step: usize,
    /// What calls before this one have looked at in advance.
    debt: usize,
}

impl Scheduler {
    /// Checks the next few facts; gives back what is wrong, as [`Scheduler::check_invariants`] names it.
    pub fn audit(&mut self) -> Vec<String> {
        let Cursor { step, debt } = self.audit_cursor;
        if debt > LOOKS_PER_CALL {
            self.audit_cursor.debt -= LOOKS_PER_CALL;
            return Vec::new();
        }
        let (mut found, mut looks) = (Vec::new(), 0);
        if let Some(node) = nth::<NodeIdx, _>(&self.nodes, step) {
            looks += self.nodes[node].allocations.len();
            self.audit_node(node, &mut found);
        }
        for tree in &self.trees {
            if let Some(pool) = nth::<PoolIdx, _>(&tree.pools, step) {
                looks += tree.pools[pool].children.len() + tree.pools[pool].leaves.len();
                audit_pool(tree, pool, &mut found);
            }
            if let Some(leaf) = nth::<LeafIdx, _>(&tree.leaves, step) {
                looks += tree.leaves[leaf].allocations.len();
                self.audit_operation(tree, leaf, &mut found);
            }
        }
        self.audit_cursor = Cursor { step: step.wrapping_add(1), debt: looks };
        found
    }

    /// Sums of a node are those of its allocations (`SCHED-10`).
    fn audit_node(&self, index: NodeIdx, found: &mut Vec<String>) {
        let node = &self.nodes[index];
        let (mut booked, mut leaving) = (Resources::ZERO, Resources::ZERO);
        for a in node.allocations.values().filter_map(|a| self.allocations.get(*a)) {
            booked += a.held;
            if a.preempted.is_some() {
                leaving += a.held;
            }
        }
        if (booked, leaving) != (node.booked, node.leaving) {
            found.push(format!(
                "SCHED-10: node {} has booked {} and {} leaving, should be {booked} and {leaving}",
                node.name, node.booked, node.leaving
            ));
        }
    }

    /// What an operation is charged and how it is grouped follow from its allocations (`SCHED-2`,
    /// `SCHED-10`).
    fn audit_operation(&self, tree: &Tree, index: LeafIdx, found: &mut Vec<String>) {
        let leaf = &tree.leaves[index];
        let all = leaf.allocations.values().filter_map(|a| self.allocations.get(*a));
        let sum = all.fold(Resources::ZERO, |sum, a| sum + a.charged());
        if sum != leaf.usage {
            found
                .push(format!("SCHED-10: operation {} uses {}, allocations {sum}", leaf.desc.id, leaf.usage));
        }
        let (bounds, total) = (&leaf.published.bounds, &tree.published_total);
        let (counts, _) = Groups::from_scratch(&leaf.allocations, &self.allocations, bounds, total);
        let have = leaf.groups.counts(leaf.allocations.len());
        if have != counts {
            found.push(format!("SCHED-2: groups of {} are {have:?}, should be {counts:?}", leaf.desc.id));
        }
    }
}

/// Counts and usage of a pool are the sums over its children and its operations (`SCHED-5`,
/// `SCHED-10`); nobody waits for a pool that has room (`SCHED-6`).
fn audit_pool(tree: &Tree, index: PoolIdx, found: &mut Vec<String>) {
    let pool = &tree.pools[index];
    let (mut counts, mut usage) = (Counts::default(), Resources::ZERO);
    for child in &pool.children {
        counts.add(tree.pools[*child].counts);
        usage += tree.pools[*child].usage;
    }
    for leaf in pool.leaves.values().map(|leaf| &tree.leaves[*leaf]) {
        counts.operations += 1;
        if leaf.is_running() {
            counts.add(running_counts(leaf.lightweight));
        }
        usage += leaf.usage;
    }
    if counts != pool.counts {
        found.push(format!("SCHED-5: pool {} has {:?}, should be {counts:?}", pool.name, pool.counts));
    }
    if usage != pool.usage {
        found.push(format!("SCHED-10: pool {} uses {}, operations {usage}", pool.name, pool.usage));
    }
    if let Some(leaf) = pool.queue.values().next()
        && tree.first_violated(tree.leaves[*leaf].pool).is_none()
    {
        let id = tree.leaves[*leaf].desc.id;
        found.push(format!("SCHED-6: operation {id} waits, and all pools have room"));
    }
}

/// The item whose turn it is; none if its place is empty.
fn nth<K: Key, T>(items: &Slab<K, T>, step: usize) -> Option<K> {
    let places = items.capacity();
    let key = (places > 0).then(|| K::new((step % places) as u32))?;
    items.get(key).map(|_| key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SchedulerConfig;
    use vocab::Time;

    /// Each kind of damage is found, and named.
    #[test]
    fn damage_is_found_within_a_round() {
        let mut s = Scheduler::new(SchedulerConfig::default(), Time::ZERO);
        s.create_tree("physical", &yson::Map::new()).expect("a good tree");
        let report = crate::NodeReport {
            resource_limits: Resources { user_slots: 4, ..Resources::ZERO },
            ..crate::NodeReport::default()
        };
        for node in ["a", "b", "c"] {
            s.heartbeat(Time::ZERO, node, &report);
        }
        let round = |s: &mut Scheduler| (0..8).flat_map(|_| s.audit()).collect::<Vec<_>>();
        assert_eq!(round(&mut s), [""; 0]);
        s.nodes[NodeIdx::new(1)].booked.user_slots = 1;
        assert!(round(&mut s).iter().any(|f| f.starts_with("SCHED-10: node b")));
        s.nodes[NodeIdx::new(1)].booked.user_slots = 0;
        s.trees[0].pools[crate::tree::ROOT].counts.running = 1;
        assert!(round(&mut s).iter().any(|f| f.starts_with("SCHED-5: pool <Root>")));
    }

    /// Large operations are audited as seldom as they are large, and their damage is found.
    #[test]
    fn much_is_looked_at_seldom() {
        const JOBS: usize = 1000;
        let now = Time::from_secs(1000);
        let mut s = Scheduler::new(SchedulerConfig::default(), now);
        s.create_tree("physical", &yson::Map::new()).expect("a good tree");
        let cpu = vocab::Cpu::from_f64(1.0);
        let one = Resources { user_slots: 1, cpu, memory: 1 << 30, ..Resources::ZERO };
        let resource_limits = one.times(JOBS as i64);
        s.heartbeat(now, "a", &crate::NodeReport { resource_limits, ..crate::NodeReport::default() });
        let id = vocab::OperationId(vocab::Guid([1, 0, 0x1_03e8, 7]));
        let place = crate::TreeParameters::new("physical", "pool");
        s.register_operation(crate::OperationDesc::new(id, "ann", now, place)).expect("admitted");
        s.set_enabled(id, true).expect("known");
        let demand = crate::DemandGroup { task: 0, min_needed: one, count: JOBS as i64 };
        s.set_demand(id, &[demand]).expect("good demand");
        s.update(now, crate::UpdateKind::Periodic);
        let mut next = 0;
        let starts = s.schedule(now, "a", || {
            next += 1;
            vocab::AllocationId(vocab::Guid([next, 0, 0, 1]))
        });
        assert_eq!(starts.len(), JOBS);
        let calls = 200;
        assert!((0..calls).all(|_| s.audit().is_empty()));
        // Each step looks at them twice, once for the node and once for the operation.
        let steps = s.audit_cursor.step;
        assert!((2..=1 + calls * LOOKS_PER_CALL / (2 * JOBS)).contains(&steps), "{steps}");
        s.trees[0].leaves[LeafIdx::new(0)].usage.user_slots -= 1;
        assert!((0..calls).flat_map(|_| s.audit()).any(|f| f.starts_with("SCHED-10: operation")));
    }
}
