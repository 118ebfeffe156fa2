//! Shares that pools may count on, without a look at demand (fair-share.md 6.5). Information only.

use vocab::Share;

use crate::output::ElementOutput;
use crate::state::Update;

/// What a child claims before the rest is divided by weight.
type Claim = fn(&ElementOutput) -> Share;

fn strong(out: &ElementOutput) -> Share {
    out.strong_guarantee_share
}
fn strong_and_flow(out: &ElementOutput) -> Share {
    out.strong_guarantee_share + Share::splat(out.total_resource_flow_ratio)
}

impl Update<'_> {
    /// Guarantees and weights are final.
    pub(crate) fn estimate_guarantees(&mut self) {
        let whole = self.total().share_of(self.total());
        let guaranteed = self.out[0].strong_guarantee_share;
        let promised = self.divide(whole, strong_and_flow);
        let estimated = self.divide(guaranteed, strong);
        let with_flow = self.divide(guaranteed, strong_and_flow);
        for (e, out) in self.out.iter_mut().enumerate() {
            out.promised_fair_share = promised[e];
            out.estimated_guarantee_share = estimated[e];
            out.estimated_guarantee_share_with_flow = with_flow[e];
        }
    }

    /// Claims in child order as long as there is something, then the rest by weight; top-down.
    fn divide(&self, root: Share, claim: Claim) -> Vec<Share> {
        let mut value = vec![Share::ZERO; self.out.len()];
        value[0] = root;
        for &e in &self.tree.preorder {
            let children = &self.tree.children[e];
            let mut rest = value[e];
            for &c in children {
                value[c] = claim(&self.out[c]).min(rest);
                rest -= value[c];
            }
            let weights: f64 = children.iter().map(|c| self.out[*c].weight).sum();
            for &c in children {
                let by_weight = rest * self.out[c].weight;
                value[c] += Share::from_fn(|r| by_weight[r] / weights);
            }
        }
        value
    }
}
