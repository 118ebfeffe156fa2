//! Usage along the chain, limits, and the order of candidates (scheduling.md 16, 9.1).

use super::Tree;
use super::leaf::Refusals;
use crate::allocations::Allocation;
use crate::candidates::ClassKey;
use crate::slab::{AllocIdx, LeafIdx, PoolIdx, Slab};
use fairshare::local_satisfaction;
use vocab::Resources;
use vocab::planted::{Bug, strikes};

impl Tree {
    /// Adds to the usage of a pool and of everything above it.
    pub fn charge_pools(&mut self, from: PoolIdx, change: Resources) {
        let mut at = Some(from);
        while let Some(index) = at {
            let pool = &mut self.pools[index];
            pool.usage += change;
            at = pool.parent;
            self.watch_pool(index);
        }
    }

    /// Adds to the usage of an operation and of everything above it; its place among the candidates
    /// follows.
    pub fn charge(&mut self, leaf: LeafIdx, change: Resources) {
        self.leaves[leaf].usage += change;
        self.watch_leaf(leaf);
        self.charge_pools(self.leaves[leaf].pool, change);
        if !strikes(Bug::CandidatesStay, 1) {
            self.refresh_candidate(leaf);
        }
    }

    /// Keeps the count of exceeded limits right after the usage or the limits of a pool changed.
    pub fn watch_pool(&mut self, index: PoolIdx) {
        let pool = &mut self.pools[index];
        let limits = &pool.config.resource_limits;
        let over = !limits.is_empty() && !limits.as_limits().dominates(&pool.usage);
        if over != pool.over_limits {
            pool.over_limits = over;
            self.over_limits = if over { self.over_limits + 1 } else { self.over_limits - 1 };
        }
    }

    /// The same for an operation.
    pub fn watch_leaf(&mut self, index: LeafIdx) {
        let leaf = &mut self.leaves[index];
        let limits = &leaf.parameters.resource_limits;
        let over = !limits.is_empty() && !limits.as_limits().dominates(&leaf.usage);
        if over != leaf.over_limits {
            leaf.over_limits = over;
            self.over_limits = if over { self.over_limits + 1 } else { self.over_limits - 1 };
        }
    }

    /// The same for all pools: after a change of configuration.
    pub fn watch_pools(&mut self) {
        for pool in self.pools.keys() {
            self.watch_pool(pool);
        }
    }

    /// Satisfaction of an operation if it used this much, as bits that compare like the number.
    pub fn satisfaction_bits(&self, leaf: LeafIdx, usage: Resources) -> u64 {
        let p = &self.leaves[leaf].published;
        let usage = usage.share_of(&self.published_total);
        // Never negative and never NaN, so the order of the bits is the order of the numbers. Adding zero
        // turns -0.0 into 0.0.
        (local_satisfaction(&p.fair_share, &usage, &p.demand_share) + 0.0).to_bits()
    }

    /// Puts an operation where it belongs among the candidates, or takes it out.
    pub fn refresh_candidate(&mut self, leaf: LeafIdx) {
        let l = &self.leaves[leaf];
        let p = &l.published;
        let wanted = (l.live && l.is_running() && p.schedulable).then(|| {
            let class = ClassKey::new(&l.need, p.priority, p.high);
            (self.satisfaction_bits(leaf, l.usage), p.rank, class)
        });
        let l = &mut self.leaves[leaf];
        l.membership = self.candidates.place(leaf, l.membership, wanted, &mut l.refusals);
    }

    /// Refusals of an operation since it came, with those that its class counts for it.
    pub fn refusals(&self, leaf: LeafIdx) -> Refusals {
        let l = &self.leaves[leaf];
        let mut refusals = l.refusals.get();
        if let Some(membership) = &l.membership {
            refusals.add_misfits(&self.candidates.since(membership));
        }
        refusals
    }

    /// Moves the borders of an operation's preemption groups to where they belong (scheduling.md 7.3).
    pub fn rebalance(&mut self, leaf: LeafIdx, allocations: &Slab<AllocIdx, Allocation>) {
        let l = &mut self.leaves[leaf];
        l.groups.rebalance(&l.allocations, allocations, &l.published.bounds, &self.published_total);
    }
}
