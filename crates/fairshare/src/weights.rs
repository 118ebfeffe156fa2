//! Effective weights (fair-share.md 5.3).

use crate::numbers::EPS;
use crate::state::Update;

impl Update<'_> {
    /// Of the children of a pool; guarantees are final now. And how far the heaviest are from the lightest.
    pub(crate) fn compute_weights_below(&mut self, e: usize) {
        let slots = self.tree.slots(e);
        for (slot, &c) in slots.clone().zip(self.children(e)) {
            self.weights[slot] = self.weight(c);
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
        let own = self.guaranteed(e);
        let parent = if e == 0 { 1.0 } else { self.guaranteed(self.parent(e)) };
        if own < EPS || parent < EPS { 1.0 } else { own * k / parent }
    }

    fn guaranteed(&self, e: usize) -> f64 {
        self.out[e].strong_guarantee_share.max_component() + self.out[e].total_resource_flow_ratio
    }
}
