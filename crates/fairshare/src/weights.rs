//! Effective weights (fair-share.md 5.3).

use crate::numbers::EPS;
use crate::state::Update;

impl Update<'_> {
    /// Of the child pools of a pool; guarantees are final now, operations have theirs already. And how far the
    /// heaviest are from the lightest.
    pub(crate) fn compute_weights_below(&mut self, e: usize) {
        let slots = self.tree.slots(e);
        for &c in self.child_pools(e) {
            let weight = self.weight(c);
            self.out[c].weight = weight;
            if let Some(slot) = self.tree.slot_of(c) {
                self.weights[slot] = weight;
            }
        }
        let weights = self.weights[slots].iter().copied();
        self.smallest_weight[e] = weights.filter(|w| *w > EPS).reduce(f64::min).unwrap_or(1.0);
    }

    /// Of one element. For operations it depends on no guarantee and is known from the start.
    pub(crate) fn weight(&self, e: usize) -> f64 {
        let element = &self.input.elements[e];
        if let Some(usage) = element.historic_usage {
            return element.weight.unwrap_or(1.0) * (-usage).exp2();
        }
        if let Some(weight) = element.weight {
            return weight;
        }
        let Some(k) = self.input.options.infer_weight_from_guarantees_share_multiplier else { return 1.0 };
        if self.operation(e).is_some() {
            return 1.0;
        }
        let own = self.guaranteed(e);
        let parent = if e == 0 { 1.0 } else { self.guaranteed(self.parent(e)) };
        if own < EPS || parent < EPS { 1.0 } else { own * k / parent }
    }

    fn guaranteed(&self, e: usize) -> f64 {
        self.out[e].strong_guarantee_share.max_component() + self.out[e].total_resource_flow_ratio
    }
}
