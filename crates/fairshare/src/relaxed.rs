//! Relaxed pools (fair-share.md 6.7).

use vocab::Share;

use crate::input::GuaranteeType;
use crate::integral::Taking;
use crate::numbers::last_true;
use crate::state::Update;

/// Divides what the used guarantees of the first level leave over among the relaxed pools, in proportion
/// to their volumes.
pub(crate) fn grant_relaxed_guarantees<'a>(taking: &mut impl Taking<'a>, competitors: &mut Vec<Competitor>) {
    let update = taking.update();
    if update.relaxed_pools.is_empty() {
        return;
    }
    let available = update.unused_by_guarantees();
    competitors.clear();
    update.collect_competitors(competitors);
    if competitors.is_empty() {
        return;
    }
    let smallest = competitors.iter().map(|c| c.share_by_volume).fold(f64::INFINITY, f64::min);
    let mut taken = |c: &Competitor, k: f64| {
        let suggestion = (k * (c.share_by_volume / smallest)).min(1.0);
        let share = taking.under(c.pool, c.limits_share, suggestion);
        (share - c.strong_guarantee_share).max(Share::ZERO)
    };
    // D9: rounding may break the predicate at 0 already; then nothing to speak of is given.
    let k = last_true(0.0, 1.0, |k| {
        let sum = competitors.iter().fold(Share::ZERO, |sum, c| sum + taken(c, k));
        available.dominates(&sum)
    });
    for c in competitors.iter_mut() {
        c.granted = taken(c, k.unwrap_or(0.0));
        if k.is_none() {
            c.granted = c.granted.min(available);
        }
    }
    let update = taking.update();
    for c in competitors {
        let granted = c.granted.min(update.available(c.pool));
        update.raise(c.pool, granted);
        update.integral_state(c.pool).last_share = granted.max_component();
    }
}

/// A relaxed pool with volume, while it competes.
pub(crate) struct Competitor {
    pool: usize,
    share_by_volume: f64,
    /// Lower than its own: what volume and flow allow.
    limits_share: Share,
    strong_guarantee_share: Share,
    granted: Share,
}

impl Update<'_> {
    /// Cluster minus guarantees of the first level, as far as there is demand for them.
    fn unused_by_guarantees(&self) -> Share {
        // Operations have no guarantees.
        self.child_pools(0).iter().fold(Share::ONES, |available, &c| {
            let used = self.guarantee_share(c).min(self.out[c].demand_share);
            (available - used).max(Share::ZERO)
        })
    }

    /// The pools that have any volume, with the limits that it sets.
    fn collect_competitors(&mut self, competitors: &mut Vec<Competitor>) {
        for &pool in self.relaxed_pools {
            let share_by_volume = self.share_by_volume(pool);
            if share_by_volume == 0.0 {
                // D1: in the reference such a pool goes on spending what it was given long ago.
                if !self.input.options.compat_strict {
                    self.integral_state(pool).last_share = 0.0;
                }
                continue;
            }
            let limit = share_by_volume.min(self.relaxed_share_limit(pool));
            let out = &self.out[pool];
            let strong_guarantee_share = out.strong_guarantee_share;
            let limits_share = out.limits_share.min(Share::splat(limit) + strong_guarantee_share);
            let granted = Share::ZERO;
            competitors.push(Competitor {
                pool,
                share_by_volume,
                limits_share,
                strong_guarantee_share,
                granted,
            });
        }
    }

    /// D1 for pools that are not integral any more: they spend nothing.
    pub(crate) fn forget_shares_without_guarantee(&mut self) {
        if self.input.options.compat_strict {
            return;
        }
        for (state, guarantee) in self.state.iter_mut().zip(self.guarantees) {
            if guarantee.guarantee_type == GuaranteeType::None {
                state.last_share = 0.0;
            }
        }
    }

    /// `integral_share_limit`: flow ratio x multiplier limit.
    pub(crate) fn relaxed_share_limit(&self, p: usize) -> f64 {
        let own = self.guarantees[self.row(p)].relaxed_share_multiplier_limit;
        let multiplier = own.unwrap_or(self.input.options.relaxed_share_multiplier_limit);
        self.out[p].resource_flow_ratio * multiplier
    }
}
