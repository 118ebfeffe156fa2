//! Top-down distribution (fair-share.md 8).

use vocab::Share;

use super::Plain;
use crate::numbers::{EPS, EPS_SHARE, last_true};
use crate::output::FairShare;

/// Which attribute a pass fills in.
#[derive(Clone, Copy, PartialEq)]
enum Pass {
    Fair,
    /// Within guarantees only (8.3).
    Promised,
}

/// What an element is told by its parent.
#[derive(Clone, Copy)]
enum Told {
    /// Standard mode: a suggestion.
    Suggestion(f64),
    /// Improved mode: the share itself.
    Share(Share),
}

impl Plain<'_> {
    /// Fair shares of all elements.
    pub(crate) fn distribute(&mut self) {
        self.pass(0, 1.0, Pass::Fair);
        self.split_root();
    }

    /// Shares within guarantees, below pools that asked for them.
    pub(crate) fn distribute_promised(&mut self) {
        for &e in self.u.promising {
            self.pass(e, 0.0, Pass::Promised);
        }
    }

    fn pass(&mut self, start: usize, suggestion: f64, pass: Pass) {
        let improved = self.u.improved();
        let subtree = self.u.tree.subtree(start);
        let mut told = vec![Told::Suggestion(suggestion); subtree.len()];
        if improved {
            told[0] = Told::Share(self.by_suggestion(start, suggestion));
        }
        for place in subtree.clone() {
            let e = self.u.tree.preorder[place];
            let here = told[place - subtree.start];
            let share = match here {
                Told::Suggestion(s) => self.by_suggestion(e, s),
                Told::Share(share) => share,
            };
            // A pool with nothing below takes nothing, and its functions say so.
            self.set(e, share, pass);
            if self.u.children(e).is_empty() {
                continue;
            }
            let fit = match here {
                Told::Suggestion(s) => self.fit(e, s, share),
                Told::Share(share) => self.improved_fit(e, share),
            };
            for (i, c) in self.served(e).iter().copied().enumerate() {
                told[self.u.tree.position[c] - subtree.start] = if improved {
                    Told::Share(self.improved_share(e, i, c, fit))
                } else {
                    Told::Suggestion(self.offer(e, i, c, fit))
                };
            }
        }
    }

    fn set(&mut self, e: usize, total: Share, pass: Pass) {
        let out = &mut self.u.out[e];
        let share = FairShare::split(total, out.strong_guarantee_share, out.proposed_integral_share);
        match pass {
            Pass::Fair => out.fair_share = share,
            Pass::Promised => out.promised_guarantee_fair_share = share,
        }
    }

    /// 8.4: what the first level was given, not what it was offered.
    fn split_root(&mut self) {
        let (mut total, mut strong) = (Share::ZERO, Share::ZERO);
        for &c in self.u.children(0) {
            total += self.u.out[c].fair_share.total;
            strong += self.u.out[c].fair_share.strong_guarantee;
        }
        self.u.out[0].fair_share = FairShare::split(total, strong, self.u.out[0].proposed_integral_share);
    }

    /// Children in the order in which sums are taken.
    fn served(&self, e: usize) -> &[usize] {
        self.u.served(e)
    }

    /// Suggestion to the `i`-th child served, at a fit factor of the pool.
    fn offer(&self, e: usize, i: usize, child: usize, fit: f64) -> f64 {
        if self.u.is_fifo(e) {
            (fit - i as f64).clamp(0.0, 1.0)
        } else {
            (fit * (self.u.out[child].weight / self.u.smallest_weight[e])).min(1.0)
        }
    }

    /// 8.1: the fit factor at which children take together what the pool takes, up to rounding.
    fn fit(&mut self, e: usize, suggestion: f64, want: Share) -> f64 {
        let enough = want + EPS_SHARE;
        let within = |update: &Plain, fit: f64| {
            let sum = update.sum_served(e, |i, c| update.by_suggestion(c, update.offer(e, i, c, fit)));
            enough.dominates(&sum)
        };
        let most = self.max_fit_at(e, suggestion);
        if within(self, most) {
            return most;
        }
        let fit = last_true(0.0, most, |f| within(self, f));
        self.u.require(fit.is_some(), e, "children take no more than the pool at fit factor 0");
        fit.unwrap_or(0.0)
    }

    /// 8.2: the same in improved mode, from what the pool was given.
    fn improved_fit(&mut self, e: usize, want: Share) -> f64 {
        let want = self.nudged(want);
        let largest = self.largest_fit(e);
        let sum = |update: &Plain, fit| update.sum_served(e, |i, c| update.improved_share(e, i, c, fit));
        let fit = last_true(0.0, largest, |f| want.dominates(&sum(self, f)));
        let closes_gap =
            self.u.input.options.enable_improved_fair_share_by_fit_factor_computation_distribution_gap;
        let enough = want + EPS_SHARE;
        // At 0 the sum may exceed by rounding.
        let mut fit = fit.unwrap_or(0.0);
        let at_fit = sum(self, fit);
        self.u.require(enough.dominates(&at_fit), e, "children take no more than the pool at fit factor 0");
        if closes_gap && !EPS_SHARE.dominates(&(want - at_fit)) {
            fit = last_true(fit, largest, |f| enough.dominates(&sum(self, f))).unwrap_or(fit);
        }
        if fit < EPS { 0.0 } else { fit }
    }

    fn improved_share(&self, e: usize, i: usize, child: usize, fit: f64) -> Share {
        match &self.functions[e].events {
            Some(events) => events.own(i, fit),
            None => self.by_suggestion(child, self.offer(e, i, child, fit)),
        }
    }

    fn sum_served(&self, e: usize, share: impl Fn(usize, usize) -> Share) -> Share {
        self.served(e).iter().enumerate().fold(Share::ZERO, |sum, (i, c)| sum + share(i, *c))
    }
}
