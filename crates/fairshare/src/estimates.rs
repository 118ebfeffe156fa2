//! Shares that pools may count on, without a look at demand (fair-share.md 6.5). Information only.

use vocab::Share;

use crate::output::ElementOutput;
use crate::state::Update;

/// One of the three estimates: which attribute it is, and what a pool claims before the rest is divided by
/// weight. Operations claim nothing.
struct Estimate {
    value: fn(&mut ElementOutput) -> &mut Share,
    claim: fn(&ElementOutput) -> Share,
}

fn strong(out: &ElementOutput) -> Share {
    out.strong_guarantee_share
}
fn strong_and_flow(out: &ElementOutput) -> Share {
    out.strong_guarantee_share + Share::splat(out.total_resource_flow_ratio)
}

const ESTIMATES: [Estimate; 3] = [
    Estimate { value: |out| &mut out.promised_fair_share, claim: strong_and_flow },
    Estimate { value: |out| &mut out.estimated_guarantee_share, claim: strong },
    Estimate { value: |out| &mut out.estimated_guarantee_share_with_flow, claim: strong_and_flow },
];

impl Update<'_> {
    /// Weights and estimates, top-down; guarantees are final.
    pub(crate) fn compute_weights_and_estimates(&mut self) {
        let guaranteed = self.out[0].strong_guarantee_share;
        let root = &mut self.out[0];
        root.promised_fair_share = self.input.total.share_of(&self.input.total);
        root.estimated_guarantee_share = guaranteed;
        root.estimated_guarantee_share_with_flow = guaranteed;
        self.out[0].weight = self.weight(0);
        for &e in &self.tree.pools {
            self.compute_weights_below(e);
            self.estimate_below(e);
        }
    }

    /// Claims in child order as long as there is something, then the rest by weight.
    fn estimate_below(&mut self, e: usize) {
        let mut rests = ESTIMATES.map(|Estimate { value, .. }| *value(&mut self.out[e]));
        for &c in self.child_pools(e) {
            for (Estimate { value, claim }, rest) in ESTIMATES.iter().zip(&mut rests) {
                let claimed = claim(&self.out[c]).min(*rest);
                *value(&mut self.out[c]) = claimed;
                *rest -= claimed;
            }
        }
        let slots = self.tree.slots(e);
        let weights: f64 = self.weights[slots.clone()].iter().sum();
        for (slot, &c) in slots.zip(self.children(e)) {
            let is_pool = self.pool(c).is_some();
            let weight = self.weights[slot];
            let out = &mut self.out[c];
            out.weight = weight;
            for (Estimate { value, .. }, rest) in ESTIMATES.iter().zip(&rests) {
                // Nobody has a weight: nobody has a part.
                let part = Share(rest.0.map(|x| if weights > 0.0 { x * weight / weights } else { 0.0 }));
                if is_pool {
                    *value(out) += part;
                } else {
                    *value(out) = part;
                }
            }
        }
    }
}
