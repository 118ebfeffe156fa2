//! Which pools want to know what guarantees alone give (fair-share.md 8.3).

use crate::input::{Input, Kind};
use crate::output::Problem;
use crate::state::Update;
use crate::tree::Tree;

fn wants_promises(input: &Input, e: usize) -> bool {
    match &input.elements[e].kind {
        Kind::Pool(pool) => pool.compute_promised_guarantee_fair_share,
        Kind::Operation(_) => false,
    }
}

/// The topmost ones, from which a pass goes down, in pre-order.
pub(crate) fn promising_pools(input: &Input, tree: &Tree) -> Vec<usize> {
    let mut end = 0;
    let topmost = |e: &usize| {
        let topmost = wants_promises(input, *e) && tree.position[*e] >= end;
        if topmost {
            end = tree.subtree(*e).end;
        }
        topmost
    };
    tree.pools.iter().copied().filter(topmost).collect()
}

impl Update<'_> {
    /// Those below another one are passed over (11.2).
    pub(crate) fn report_nested_promises(&mut self) {
        let mut topmost = self.promising.iter().peekable();
        let mut end = 0;
        let mut pools = Vec::new();
        for &e in &self.tree.pools {
            if topmost.next_if_eq(&&e).is_some() {
                end = self.tree.subtree(e).end;
            } else if wants_promises(self.input, e) && self.tree.position[e] < end {
                pools.push(e);
            }
        }
        if !pools.is_empty() {
            self.problems.push(Problem::NestedPromisedGuaranteeFairSharePools { pools });
        }
    }
}
