//! Which pools want to know what guarantees alone give (fair-share.md 8.3).

use crate::output::Problem;
use crate::state::Update;
use crate::tree::Tree;

impl<'a> Update<'a> {
    fn wants_promises(&self, e: usize) -> bool {
        self.pool(e).is_some_and(|pool| pool.compute_promised_guarantee_fair_share)
    }

    /// The topmost ones, from which a pass goes down.
    pub(crate) fn promising_pools(&self) -> impl Iterator<Item = usize> + use<'a> {
        let (input, tree): (_, &'a Tree) = (self.input, self.tree);
        let mut end = 0;
        tree.pools.iter().copied().filter(move |&e| {
            let wants = match &input.elements[e].kind {
                crate::Kind::Pool(pool) => pool.compute_promised_guarantee_fair_share,
                crate::Kind::Operation(_) => false,
            };
            let topmost = wants && tree.position[e] >= end;
            if topmost {
                end = tree.subtree(e).end;
            }
            topmost
        })
    }

    /// Those below another one are passed over (11.2).
    pub(crate) fn report_nested_promises(&mut self) {
        let mut topmost = self.promising_pools().peekable();
        let mut end = 0;
        let mut pools = Vec::new();
        for &e in &self.tree.pools {
            if topmost.next_if_eq(&e).is_some() {
                end = self.tree.subtree(e).end;
            } else if self.wants_promises(e) && self.tree.position[e] < end {
                pools.push(e);
            }
        }
        if !pools.is_empty() {
            self.problems.push(Problem::NestedPromisedGuaranteeFairSharePools { pools });
        }
    }
}
