//! The three functions of an element, built bottom-up (fair-share.md 4).
//!
//! - `by_fit(f)`: what the element takes at a fit factor, an abstract measure of "how far";
//! - `max_fit(s)`: how far it may go if the parent suggests `s` on top of its guarantee;
//! - `by_sugg(s) = by_fit(max_fit(s))`: what the element takes, all that the parent needs to know.

use vocab::Share;

use super::Plain;
use super::improved::Events;
use super::max_fit::{max_fit, max_fit_at_one, max_fit_at_zero, starts_within};
use super::piecewise::{Function, compose, compress, sum};
use crate::input::{Mode, Operation};
use crate::numbers::COMPRESS_EPS;

/// Functions of one element, as far as they are built.
#[derive(Default)]
pub(crate) struct Functions {
    by_fit: Option<Function<Share>>,
    max_fit: Option<Function<f64>>,
    by_sugg: Option<Function<Share>>,
    /// Of a fair-share pool in improved mode: needed again when the share is distributed.
    pub(crate) events: Option<Events>,
}

impl Plain<'_> {
    /// Of everything that has none yet. The root needs only `by_fit`: nobody suggests anything to it but
    /// 0 and 1, and at these places the other two can be evaluated without being built.
    pub(crate) fn build_tree(&mut self) {
        self.build_below(0);
        self.build_by_fit(0);
    }

    /// Of everything below an element.
    pub(crate) fn build_below(&mut self, e: usize) {
        for place in self.u.tree.subtree(e).skip(1).rev() {
            self.build(self.u.tree.preorder[place]);
        }
    }

    /// Of one element; its children have theirs.
    pub(crate) fn build(&mut self, e: usize) {
        if self.functions[e].by_sugg.is_some() {
            return;
        }
        self.build_by_fit(e);
        let (guarantee, limits) = (self.u.guarantee_share(e), self.u.out[e].limits_share);
        let by_fit = self.by_fit(e);
        let feasible = starts_within(by_fit, limits);
        let max_fit = max_fit(by_fit, guarantee, limits);
        let by_sugg = compress(&compose(by_fit, &max_fit), COMPRESS_EPS);
        self.functions[e].max_fit = Some(max_fit);
        self.functions[e].by_sugg = Some(by_sugg);
        self.u.require(feasible, e, "what is taken at fit factor 0 lies within the limits");
    }

    /// Only the first function. It depends neither on limits nor on guarantees of the element itself.
    pub(crate) fn build_by_fit(&mut self, e: usize) {
        if self.functions[e].by_fit.is_some() {
            return;
        }
        let by_fit = match (self.u.operation(e), self.u.pool(e).map(|pool| pool.mode)) {
            (Some(operation), _) => self.operation_by_fit(e, operation),
            (None, Some(Mode::Fifo)) => self.fifo_by_fit(e),
            (None, _) if self.u.improved() => self.improved_by_fit(e),
            (None, _) => self.fair_share_by_fit(e),
        };
        self.functions[e].by_fit = Some(by_fit);
    }

    /// After guarantee or limits of the element changed; children keep their functions.
    pub(crate) fn drop_own_functions(&mut self, e: usize) {
        self.functions[e].max_fit = None;
        self.functions[e].by_sugg = None;
    }

    /// 4.1: usage first, all resources equally, then the rest of the demand in proportion.
    fn operation_by_fit(&self, e: usize, operation: &Operation) -> Function<Share> {
        let (usage, demand) = (self.u.out[e].usage_share, self.u.out[e].demand_share);
        let mut f = Function::builder(8);
        f.add_point(0.0, Share::ZERO);
        if self.u.steps(e, operation) {
            f.add_point(1.0, Share::ZERO);
            f.add_point(1.0, demand);
            f.add_point(2.0, demand);
            return f;
        }
        let most = usage.max_component();
        if most > 0.0 {
            let mut ascending = usage.0;
            ascending.sort_unstable_by(f64::total_cmp);
            let mut last = 0.0;
            for u in ascending {
                let x = u / most;
                if x > last {
                    f.add_point(x, Share::splat(u).min(usage));
                    last = x;
                }
            }
        }
        f.add_point(1.0, usage);
        f.add_point(2.0, demand);
        f
    }

    /// 4.2: the sum of what children take, each offered in proportion to its weight.
    fn fair_share_by_fit(&self, e: usize) -> Function<Share> {
        // Children that never take anything add nothing.
        let children: Vec<_> = self.scaled_children(e, |by_sugg| !by_sugg.last().y.is_zero()).collect();
        if children.is_empty() {
            return Function::constant(0.0, 1.0, Share::ZERO);
        }
        sum(&children, 0.0, 1.0)
    }

    fn improved_by_fit(&mut self, e: usize) -> Function<Share> {
        if self.u.children(e).is_empty() {
            return Function::constant(0.0, 1.0, Share::ZERO);
        }
        let events = Events::new(self.scaled_children(e, |_| true).collect());
        let by_fit = events.by_fit();
        self.functions[e].events = Some(events);
        by_fit
    }

    fn scaled_children<'a>(
        &'a self,
        e: usize,
        keep: impl Fn(&Function<Share>) -> bool + 'a,
    ) -> impl Iterator<Item = Function<Share>> + 'a {
        let smallest = self.u.smallest_weight[e];
        self.u.children(e).iter().filter(move |c| keep(self.by_sugg(**c))).map(move |&c| {
            self.by_sugg(c).clone().scale_argument(self.u.out[c].weight / smallest).extend_right(1.0)
        })
    }

    /// 4.3: children occupy one unit of the fit factor each, so that their sum is a concatenation.
    fn fifo_by_fit(&self, e: usize) -> Function<Share> {
        let order = self.u.served(e);
        if order.is_empty() {
            return Function::constant(0.0, 1.0, Share::ZERO);
        }
        let size = order.iter().map(|c| self.by_sugg(*c).points().len()).sum();
        let mut result = Function::builder(size);
        let mut before = Share::ZERO;
        for (i, &c) in order.iter().enumerate() {
            let by_sugg = self.by_sugg(c);
            for p in by_sugg.points() {
                result.add_point(p.x + i as f64, before + p.y);
            }
            before += by_sugg.last().y;
        }
        result
    }

    fn by_fit(&self, e: usize) -> &Function<Share> {
        self.functions[e].by_fit.as_ref().expect("children are built before their parents")
    }
    fn by_sugg(&self, e: usize) -> &Function<Share> {
        self.functions[e].by_sugg.as_ref().expect("children are built before their parents")
    }

    /// `by_sugg(s)`. Of the root only at 0 and 1.
    pub(crate) fn by_suggestion(&self, e: usize, s: f64) -> Share {
        match &self.functions[e].by_sugg {
            Some(by_sugg) => by_sugg.value(s),
            None => self.by_fit(e).value(self.max_fit_at(e, s)),
        }
    }

    /// `max_fit(s)`. Of the root only at 0 and 1.
    pub(crate) fn max_fit_at(&self, e: usize, s: f64) -> f64 {
        match &self.functions[e].max_fit {
            Some(max_fit) => max_fit.value(s),
            None => {
                debug_assert!(s == 0.0 || s == 1.0, "element {e} has no functions to sample at {s}");
                let at = if s == 0.0 { max_fit_at_zero } else { max_fit_at_one };
                at(self.by_fit(e), self.u.guarantee_share(e), self.u.out[e].limits_share)
            }
        }
    }

    /// `by_sugg(0)` with a guarantee, from `by_fit` alone: what is taken within it.
    pub(crate) fn within_guarantee(&self, e: usize, guarantee: Share) -> Share {
        let by_fit = self.by_fit(e);
        by_fit.value(max_fit_at_zero(by_fit, guarantee, self.u.out[e].limits_share))
    }

    /// Right bound of `by_fit`.
    pub(crate) fn largest_fit(&self, e: usize) -> f64 {
        self.by_fit(e).last().x
    }

    /// Limited demand; sizes of whole functions are not what is published.
    pub(crate) fn publish_functions(&mut self) {
        for e in 0..self.u.input.elements.len() {
            self.u.out[e].limited_demand_share = self.by_suggestion(e, 1.0);
        }
    }
}

#[cfg(test)]
mod tests;
