//! Shares that pools may count on, without a look at demand (fair-share.md 6.5). Information only.

use vocab::Share;

use crate::output::ElementOutput;
use crate::state::{Rests, Update};

/// One of the three estimates: which attribute it is, and what a pool claims before the rest is divided by
/// weight. Operations claim nothing.
pub(crate) struct Estimate {
    value: fn(&mut ElementOutput) -> &mut Share,
    claim: fn(&ElementOutput) -> Share,
}

fn strong(out: &ElementOutput) -> Share {
    out.strong_guarantee_share
}
fn strong_and_flow(out: &ElementOutput) -> Share {
    out.strong_guarantee_share + Share::splat(out.total_resource_flow_ratio)
}

pub(crate) const ESTIMATES: [Estimate; 3] = [
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
        let weights: f64 = self.weights[self.tree.slots(e)].iter().sum();
        let rests = Rests { shares: rests, weights };
        for &c in self.child_pools(e) {
            let out = &mut self.out[c];
            for (Estimate { value, .. }, part) in ESTIMATES.iter().zip(rests.parts(out.weight)) {
                *value(out) += part;
            }
        }
        let row = self.row(e);
        self.rests[row] = rests;
    }

    /// Estimates of an operation, which claims nothing, in the order of [`ESTIMATES`].
    pub(crate) fn estimates_of_operation(&self, parent: usize, weight: f64) -> [Share; 3] {
        self.rests[self.row(parent)].parts(weight)
    }
}

impl Rests {
    /// What falls to a child. Nobody has a weight: nobody has a part.
    fn parts(&self, weight: f64) -> [Share; 3] {
        let part = |x: f64| if self.weights > 0.0 { x * weight / self.weights } else { 0.0 };
        self.shares.map(|rest| Share(rest.0.map(part)))
    }
}
