//! What burst and relaxed pools have in common: how a granted share rises through the tree
//! (fair-share.md 6.6, 9.2).

use vocab::{RESOURCES, Share};

use crate::numbers::{EPS_SHARE, next_toward_zero};
use crate::state::Update;

/// What integral guarantees need to know of demand: how much a pool would take. The answers depend on
/// nothing above the pool.
pub(crate) trait Taking<'a> {
    /// The update under way.
    fn update(&mut self) -> &mut Update<'a>;
    /// What a pool takes within a guarantee: `by_sugg(0)`.
    fn within(&mut self, pool: usize, guarantee: Share) -> Share;
    /// What the relaxed pool takes at a suggestion if its limits were these. All questions about one pool
    /// come with the same limits.
    fn under(&mut self, pool: usize, limits: Share, suggestion: f64) -> Share;
}

impl Update<'_> {
    /// What limits leave over beside guarantees on the way from a pool to the root.
    pub(crate) fn available(&mut self, pool: usize) -> Share {
        let mut available = Share::ONES;
        let mut e = pool;
        while e != 0 {
            available = available.min(self.out[e].limits_share - self.guarantee_share(e));
            e = self.parent(e);
        }
        self.require(available.dominates(&Share::ZERO), pool, "guarantees stay within limits");
        available.max(Share::ZERO)
    }

    /// Gives an integral share to a pool; its ancestors inherit it.
    pub(crate) fn raise(&mut self, pool: usize, granted: Share) {
        let mut e = pool;
        loop {
            let proposed = self.out[e].proposed_integral_share + granted;
            let fitted = if e == 0 { proposed } else { self.fit_under_limits(e, proposed) };
            self.out[e].proposed_integral_share = fitted;
            if e == 0 {
                return;
            }
            e = self.parent(e);
        }
    }

    /// Makes strong + proposed stay within the limits, exactly.
    pub(crate) fn fit_under_limits(&mut self, e: usize, proposed: Share) -> Share {
        let (limits, strong) = (self.out[e].limits_share, self.out[e].strong_guarantee_share);
        if limits.dominates(&(strong + proposed)) {
            return proposed;
        }
        self.require(
            (limits + EPS_SHARE).dominates(&(strong + proposed)) && limits.dominates(&strong),
            e,
            "an integral share exceeds the limits by rounding only",
        );
        let rest = limits - strong;
        // D10: the reference replaces all components, though only one may exceed its limit.
        let mut fitted = if self.input.options.compat_strict { rest } else { proposed.min(rest) };
        fitted = fitted.max(Share::ZERO);
        for r in RESOURCES {
            for _ in 0..32 {
                if limits[r] >= strong[r] + fitted[r] {
                    break;
                }
                fitted[r] = next_toward_zero(fitted[r]);
            }
        }
        fitted
    }
}
