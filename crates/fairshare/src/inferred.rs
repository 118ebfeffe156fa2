//! Inferred strong guarantees: components that are not configured follow the main resource
//! (fair-share.md 6.2).

use vocab::{Cpu, RESOURCES, Resource, Resources};

use crate::input::Configured;
use crate::state::Update;

impl Update<'_> {
    /// Amounts, top-down.
    pub(crate) fn infer_strong_guarantees(&mut self) {
        self.out[0].inferred_strong_guarantee_resources = *self.total();
        for place in 0..self.tree.preorder.len() {
            self.infer_for_children(self.tree.preorder[place]);
        }
    }

    fn configured(&self, e: usize) -> Configured {
        self.pool(e).map_or(Configured::NONE, |pool| pool.strong_guarantee_resources)
    }

    fn infer_for_children(&mut self, e: usize) {
        let main = self.input.options.main_resource;
        let parent = self.out[e].inferred_strong_guarantee_resources;
        let mut explicit = Resources::ZERO;
        for i in 0..self.tree.children[e].len() {
            let c = self.tree.children[e][i];
            let configured = self.configured(c).or_zero();
            self.out[c].inferred_strong_guarantee_resources = configured;
            explicit += configured;
        }
        let rest = (parent - explicit).max(Resources::ZERO);
        for r in RESOURCES.into_iter().filter(|r| *r != main) {
            let mut derived: Vec<(usize, f64)> = Vec::new();
            let mut sum = 0.0;
            // Operations have no main component, so they would get 0 anyway.
            for &c in self.tree.children[e].iter().filter(|c| self.pool(**c).is_some()) {
                if self.configured(c).raw(r).is_none() {
                    let own = self.out[c].inferred_strong_guarantee_resources.get(main);
                    let q = if parent.get(main) > 0.0 { own / parent.get(main) } else { 0.0 };
                    let amount = q * parent.get(r);
                    sum += amount;
                    derived.push((c, amount));
                }
            }
            // On the first level overcommitment is allowed here; 6.4 deals with it.
            let scale = if e != 0 && sum > rest.get(r) { rest.get(r) / sum } else { 1.0 };
            for (c, amount) in derived {
                set(&mut self.out[c].inferred_strong_guarantee_resources, r, amount * scale);
            }
        }
    }
}

/// Truncates toward zero; `cpu` is rounded to hundredths.
fn set(amounts: &mut Resources, r: Resource, value: f64) {
    amounts.set_raw(r, if r == Resource::Cpu { Cpu::from_f64(value).0 } else { value as i64 });
}
