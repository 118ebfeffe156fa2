//! Inferred strong guarantees: components that are not configured follow the main resource
//! (fair-share.md 6.2).

use vocab::{Cpu, RESOURCES, Resource, Resources};

use crate::input::Configured;
use crate::state::Update;

impl Update<'_> {
    /// Amounts, top-down.
    pub(crate) fn infer_strong_guarantees(&mut self) {
        self.out[0].inferred_strong_guarantee_resources = *self.total();
        for &e in &self.tree.pools {
            self.infer_for_children(e);
        }
    }

    fn configured(&self, e: usize) -> Configured {
        self.pool(e).map_or(Configured::NONE, |pool| pool.strong_guarantee_resources)
    }

    fn infer_for_children(&mut self, e: usize) {
        let main = self.input.options.main_resource;
        let parent = self.out[e].inferred_strong_guarantee_resources;
        // Operations have no main component, so they would get 0 anyway.
        let children = self.child_pools(e);
        let mut explicit = Resources::ZERO;
        for &c in children {
            let configured = self.configured(c).or_zero();
            self.out[c].inferred_strong_guarantee_resources = configured;
            explicit += configured;
        }
        let rest = (parent - explicit).max(Resources::ZERO);
        for r in RESOURCES.into_iter().filter(|r| *r != main) {
            let derived = |update: &Self, c: usize| {
                update.configured(c).raw(r).is_none().then(|| {
                    let own = update.out[c].inferred_strong_guarantee_resources.get(main);
                    let q = if parent.get(main) > 0.0 { own / parent.get(main) } else { 0.0 };
                    q * parent.get(r)
                })
            };
            let sum: f64 = children.iter().filter_map(|c| derived(self, *c)).sum();
            // On the first level overcommitment is allowed here; 6.4 deals with it.
            let scale = if e != 0 && sum > rest.get(r) { rest.get(r) / sum } else { 1.0 };
            for &c in children {
                if let Some(amount) = derived(self, c) {
                    set(&mut self.out[c].inferred_strong_guarantee_resources, r, amount * scale);
                }
            }
        }
    }
}

/// Truncates toward zero; `cpu` is rounded to hundredths.
fn set(amounts: &mut Resources, r: Resource, value: f64) {
    amounts.set_raw(r, if r == Resource::Cpu { Cpu::from_f64(value).0 } else { value as i64 });
}
