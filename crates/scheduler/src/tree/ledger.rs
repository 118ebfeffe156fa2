//! Usage along the chain, limits, and the order of candidates (scheduling.md 16, 9.1).

use super::Tree;
use crate::slab::{LeafIdx, PoolIdx};
use fairshare::local_satisfaction;
use vocab::Resources;

impl Tree {
    /// Adds to the usage of a pool and of everything above it.
    pub fn charge_pools(&mut self, from: PoolIdx, change: Resources) {
        let mut at = Some(from);
        while let Some(pool) = at {
            let pool = &mut self.pools[pool];
            pool.usage += change;
            at = pool.parent;
        }
    }

    /// Adds to the usage of an operation and of everything above it; its place among the candidates
    /// follows.
    pub fn charge(&mut self, leaf: LeafIdx, change: Resources) {
        self.leaves[leaf].usage += change;
        self.charge_pools(self.leaves[leaf].pool, change);
        self.refresh_candidate(leaf);
    }

    /// What the limits of an operation and of the pools above it still allow (scheduling.md 16.3);
    /// `extra` is what a plan has already given to a pool or to the operation (`None`).
    pub fn available(&self, leaf: LeafIdx, extra: impl Fn(Option<PoolIdx>) -> Resources) -> Resources {
        let l = &self.leaves[leaf];
        let own = &l.parameters.resource_limits;
        let mut available = Resources::INFINITE;
        if !own.is_empty() {
            available = available.min(own.as_limits() - l.usage - extra(None));
        }
        for pool in self.chain(l.pool) {
            let p = &self.pools[pool];
            if !p.config.resource_limits.is_empty() {
                available = available.min(p.config.resource_limits.as_limits() - p.usage - extra(Some(pool)));
            }
        }
        available
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
        let wanted = (l.live && l.is_running() && l.published.schedulable)
            .then(|| (self.satisfaction_bits(leaf, l.usage), l.published.rank));
        let l = &mut self.leaves[leaf];
        if l.key != wanted {
            if let Some((bits, rank)) = l.key {
                self.candidates.remove(&(bits, rank, leaf));
            }
            if let Some((bits, rank)) = wanted {
                self.candidates.insert((bits, rank, leaf));
            }
            l.key = wanted;
        }
    }
}
