//! Attributes that are sums over subtrees (fair-share.md 6.3), and dominant resources (2.2).

use vocab::{RESOURCES, Resource, Resources, Share};

use crate::input::{GuaranteeType, Kind};
use crate::state::Update;

impl Update<'_> {
    /// Usage, demand, limits, ratios and shares of every element, bottom-up.
    pub(crate) fn compute_cumulative_attributes(&mut self) {
        let total = *self.total();
        for place in (0..self.tree.preorder.len()).rev() {
            let e = self.tree.preorder[place];
            let element = &self.input.elements[e];
            match &element.kind {
                Kind::Operation(operation) => {
                    self.out[e].resource_usage = operation.usage;
                    self.out[e].resource_demand = operation.demand;
                }
                Kind::Pool(_) => self.sum_up(e),
            }
            let limits = if e == 0 { total } else { element.resource_limits.min(total) };
            let out = &mut self.out[e];
            out.limits_share = limits.share_of(&total);
            if let Kind::Operation(operation) = &element.kind {
                out.limits_share = out.limits_share.min(operation.best_allocation_share);
            }
            out.usage_share = out.resource_usage.share_of(&total);
            out.demand_share = out.resource_demand.share_of(&total);
            out.strong_guarantee_share = out.inferred_strong_guarantee_resources.share_of(&total);
            let dominant =
                if out.resource_usage.is_zero() { &out.resource_demand } else { &out.resource_usage };
            out.dominant_resource = dominant_resource(dominant, &total);
        }
        self.out[0].strong_guarantee_share = self.tree.children[0]
            .iter()
            .fold(Share::ZERO, |sum, c| sum + self.out[*c].strong_guarantee_share);
    }

    fn sum_up(&mut self, e: usize) {
        let total = self.total();
        let (mut usage, mut demand) = (Resources::ZERO, Resources::ZERO);
        let (mut burst, mut flow) = (0.0, 0.0);
        if self.guarantee_type(e) != GuaranteeType::None
            && let Some(pool) = self.pool(e)
        {
            burst = max_ratio(&pool.integral_guarantees.burst_guarantee_resources, total);
            flow = max_ratio(&pool.integral_guarantees.resource_flow, total);
        }
        self.out[e].burst_ratio = burst;
        self.out[e].resource_flow_ratio = flow;
        for &c in &self.tree.children[e] {
            let child = &self.out[c];
            usage += child.resource_usage;
            demand += child.resource_demand;
            burst += child.total_burst_ratio;
            flow += child.total_resource_flow_ratio;
        }
        let out = &mut self.out[e];
        out.resource_usage = usage;
        out.resource_demand = demand;
        out.total_burst_ratio = burst;
        out.total_resource_flow_ratio = flow;
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

/// The first resource with strictly the largest ratio; `cpu` if there is none.
fn dominant_resource(amounts: &Resources, total: &Resources) -> Resource {
    let shares = amounts.share_of(total);
    let mut best = (Resource::Cpu, 0.0);
    for r in RESOURCES {
        if shares[r] > best.1 {
            best = (r, shares[r]);
        }
    }
    best.0
}
