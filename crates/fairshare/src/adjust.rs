//! Strong guarantees made to fit: into the cluster, into limits, into those of the parent
//! (fair-share.md 6.4).

use vocab::{Resources, Share};

use crate::numbers::{EPS_SHARE, last_true};
use crate::output::{Problem, Tiers};
use crate::state::Update;

impl Update<'_> {
    /// Scales what does not fit and reports overcommitment of the first level.
    pub(crate) fn adjust_guarantees(&mut self) {
        self.resolve_overcommitment();
        self.collect_tiers();
        for &e in &self.tree.pools {
            self.fit_children(e);
        }
    }

    /// The first level against the whole cluster. One factor for all resources.
    fn resolve_overcommitment(&mut self) {
        let total = *self.total();
        let strong = self
            .child_pools(0)
            .iter()
            .fold(Resources::ZERO, |sum, c| sum + self.out[*c].inferred_strong_guarantee_resources);
        let flow = total * self.out[0].total_resource_flow_ratio;
        let burst = total * self.out[0].total_burst_ratio;
        if !total.dominates(&(strong + flow)) {
            self.problems.push(Problem::OvercommitStrongAndFlow {
                total_strong_guarantee_resources: strong,
                total_resource_flow: flow,
            });
        }
        if !total.dominates(&(strong + burst)) {
            self.problems.push(Problem::OvercommitStrongAndBurst {
                total_strong_guarantee_resources: strong,
                total_burst_resources: burst,
            });
            let root = self.out[0].strong_guarantee_share;
            let sum = |k: f64| {
                self.burst_pools
                    .iter()
                    .fold(root * k, |sum, p| sum + Share::splat(self.out[*p].burst_ratio) * k)
            };
            let k = last_true(0.0, 1.0, |k| Share::ONES.dominates(&sum(k))).unwrap_or(0.0);
            self.out[0].strong_guarantee_share = root * k;
            for &p in self.burst_pools {
                self.out[p].burst_ratio *= k;
            }
        }
    }

    /// Bottom-up: how much of each guarantee belongs to priority pools.
    fn collect_tiers(&mut self) {
        let without_donor = self.priority_pools_without_donor();
        for &e in self.tree.pools.iter().rev() {
            let Some(pool) = self.pool(e) else { continue };
            let own = self.out[e].strong_guarantee_share;
            let priority = if pool.enable_priority_strong_guarantee_adjustment
                && without_donor.binary_search(&e).is_err()
            {
                own
            } else if pool.enable_priority_strong_guarantee_adjustment_donorship {
                Share::ZERO
            } else {
                self.child_pools(e).iter().fold(Share::ZERO, |sum, c| {
                    sum + self.out[*c].strong_guarantee_share_by_tier.priority_pools
                })
            };
            self.out[e].strong_guarantee_share_by_tier =
                Tiers { priority_pools: priority, regular_pools: own - priority };
        }
        if !without_donor.is_empty() {
            self.problems
                .push(Problem::PriorityStrongGuaranteeAdjustmentPoolsWithoutDonor { pools: without_donor });
        }
    }

    /// In ascending order (11.2).
    fn priority_pools_without_donor(&self) -> Vec<usize> {
        let is_priority =
            |e: &usize| self.pool(*e).is_some_and(|pool| pool.enable_priority_strong_guarantee_adjustment);
        let pools = 0..self.input.elements.len();
        pools.filter(|e| is_priority(e) && !self.has_donor_above(*e)).collect()
    }

    /// A donor, with no other priority pool in between.
    fn has_donor_above(&self, mut e: usize) -> bool {
        while e != 0 {
            e = self.parent(e);
            let Some(pool) = self.pool(e) else { return false };
            if pool.enable_priority_strong_guarantee_adjustment_donorship {
                return true;
            }
            if pool.enable_priority_strong_guarantee_adjustment {
                return false;
            }
        }
        false
    }

    /// Cuts a guarantee to the limits, and those of the children to it: the priority tier is served
    /// first, the first tier that does not fit is scaled, what is behind it gets nothing.
    fn fit_children(&mut self, e: usize) {
        let own = self.out[e].strong_guarantee_share.min(self.out[e].limits_share);
        self.out[e].strong_guarantee_share = own;
        let children = self.child_pools(e);
        let mut fixed = Share::ZERO;
        let mut exhausted = false;
        for tier in [Tiers::priority_mut, Tiers::regular_mut] {
            if exhausted {
                for &c in children {
                    *tier(&mut self.out[c].strong_guarantee_share_by_tier) = Share::ZERO;
                }
                continue;
            }
            let sum = |update: &mut Self, k: f64| {
                children.iter().fold(Share::ZERO, |sum, c| {
                    sum + *tier(&mut update.out[*c].strong_guarantee_share_by_tier) * k
                })
            };
            let available = own - fixed;
            self.require(
                (available + EPS_SHARE).dominates(&Share::ZERO),
                e,
                "tiers of children stay within the strong guarantee",
            );
            let available = available.max(Share::ZERO);
            let all = sum(self, 1.0);
            if !available.dominates(&all) {
                let k = last_true(0.0, 1.0, |k| available.dominates(&sum(self, k))).unwrap_or(0.0);
                for &c in children {
                    let value = tier(&mut self.out[c].strong_guarantee_share_by_tier);
                    *value = *value * k;
                }
                exhausted = true;
            }
            fixed += all;
        }
        for &c in children {
            let tiers = self.out[c].strong_guarantee_share_by_tier;
            self.out[c].strong_guarantee_share = tiers.priority_pools + tiers.regular_pools;
        }
    }
}

impl Tiers {
    fn priority_mut(&mut self) -> &mut Share {
        &mut self.priority_pools
    }
    fn regular_mut(&mut self) -> &mut Share {
        &mut self.regular_pools
    }
}
