//! Attributes that are sums over subtrees (fair-share.md 6.3), and dominant resources (2.2).

use vocab::{RESOURCES, Resource, Resources, Share};

use crate::input::{GuaranteeType, Kind};
use crate::state::{Scope, Update};

impl Update<'_> {
    /// Usage and demand, bottom-up; limits of operations, which may change with them.
    /// Each operation is shown once it has all that, while it is at hand: in a large tree that saves a
    /// way through all the memory.
    pub(crate) fn compute_usage_and_demand(&mut self, scope: Scope, mut show: impl FnMut(&mut Self, usize)) {
        match scope {
            Scope::All => {
                for place in (0..self.tree.preorder.len()).rev() {
                    let e = self.tree.preorder[place];
                    if self.operation(e).is_some() {
                        self.limit(e);
                        self.add_up(e);
                        show(self, e);
                    } else {
                        self.add_up(e);
                    }
                }
            }
            Scope::Changed { operations, pools } => {
                for &e in operations {
                    self.limit(e);
                    self.add_up(e);
                    show(self, e);
                }
                for &e in pools {
                    self.add_up(e);
                }
            }
        }
    }

    /// Limits do not depend on operations.
    pub(crate) fn compute_limits_of_pools(&mut self) {
        for &e in &self.tree.pools {
            self.limit(e);
        }
    }

    /// Ratios of integral guarantees and shares of strong ones, which no operation has, bottom-up.
    pub(crate) fn compute_guarantee_shares(&mut self) {
        let total = *self.total();
        for &e in self.tree.pools.iter().rev() {
            self.sum_up_ratios(e);
            let out = &mut self.out[e];
            out.strong_guarantee_share = out.inferred_strong_guarantee_resources.share_of(&total);
        }
        self.out[0].strong_guarantee_share =
            self.child_pools(0).iter().fold(Share::ZERO, |sum, c| sum + self.out[*c].strong_guarantee_share);
    }

    fn limit(&mut self, e: usize) {
        let total = *self.total();
        let element = &self.input.elements[e];
        let limits = if e == 0 { total } else { element.resource_limits.min(total) };
        let mut share = self.share(&limits);
        if let Kind::Operation(operation) = &element.kind {
            share = share.min(operation.best_allocation_share);
        }
        self.out[e].limits_share = share;
    }

    fn add_up(&mut self, e: usize) {
        let (usage, demand) = match &self.input.elements[e].kind {
            Kind::Operation(operation) => (operation.usage, operation.demand),
            Kind::Pool(_) => self.children(e).iter().fold((Resources::ZERO, Resources::ZERO), |sum, c| {
                let child = &self.out[*c];
                (sum.0 + child.resource_usage, sum.1 + child.resource_demand)
            }),
        };
        let shares = [self.share(&usage), self.share(&demand)];
        let out = &mut self.out[e];
        out.resource_usage = usage;
        out.resource_demand = demand;
        [out.usage_share, out.demand_share] = shares;
        let used = !usage.is_zero();
        out.dominant_resource = dominant_resource(if used { &out.usage_share } else { &out.demand_share });
    }

    /// As [`Resources::share_of`] the total, without looking at the total again each time.
    #[inline]
    fn share(&self, amounts: &Resources) -> Share {
        let t = &self.divisors;
        Share([
            amounts.user_slots as f64 / t[0],
            amounts.cpu.as_f64() / t[1],
            amounts.gpu as f64 / t[2],
            amounts.memory as f64 / t[3],
            amounts.network as f64 / t[4],
        ])
    }

    fn sum_up_ratios(&mut self, e: usize) {
        let total = self.total();
        let (mut burst, mut flow) = (0.0, 0.0);
        if self.guarantee_type(e) != GuaranteeType::None
            && let Some(pool) = self.pool(e)
        {
            burst = max_ratio(&pool.integral_guarantees.burst_guarantee_resources, total);
            flow = max_ratio(&pool.integral_guarantees.resource_flow, total);
        }
        self.out[e].burst_ratio = burst;
        self.out[e].resource_flow_ratio = flow;
        for &c in self.child_pools(e) {
            burst += self.out[c].total_burst_ratio;
            flow += self.out[c].total_resource_flow_ratio;
        }
        self.out[e].total_burst_ratio = burst;
        self.out[e].total_resource_flow_ratio = flow;
    }
}

/// Largest ratio to the total over the resources that the tree has.
pub(crate) fn max_ratio(amounts: &Resources, total: &Resources) -> f64 {
    RESOURCES
        .into_iter()
        .filter(|r| total.raw(*r) > 0)
        .map(|r| amounts.get(r) / total.get(r))
        .fold(0.0, f64::max)
}

/// The first resource with strictly the largest share; `cpu` if there is none.
fn dominant_resource(shares: &Share) -> Resource {
    let mut best = (Resource::Cpu, 0.0);
    for r in RESOURCES {
        if shares[r] > best.1 {
            best = (r, shares[r]);
        }
    }
    best.0
}
