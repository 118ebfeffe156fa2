//! Relaxed pools (fair-share.md 6.7).

use vocab::Share;

use crate::input::GuaranteeType;
use crate::numbers::last_true;
use crate::state::Update;

/// A relaxed pool with volume, while it competes.
struct Competitor {
    pool: usize,
    share_by_volume: f64,
    /// Its limits, which are lower for the time being.
    limits_share: Share,
}

impl Update<'_> {
    /// Divides what the used guarantees of the first level leave over among the relaxed pools, in
    /// proportion to their volumes.
    pub(crate) fn grant_relaxed_guarantees(&mut self) {
        if self.relaxed_pools.is_empty() {
            return;
        }
        let available = self.unused_by_guarantees();
        let competitors = self.limit_by_volume();
        if competitors.is_empty() {
            return;
        }
        let smallest = competitors.iter().map(|c| c.share_by_volume).fold(f64::INFINITY, f64::min);
        let taken = |update: &Update, c: &Competitor, k: f64| {
            let suggestion = (k * (c.share_by_volume / smallest)).min(1.0);
            let share = update.by_suggestion(c.pool, suggestion);
            (share - update.out[c.pool].strong_guarantee_share).max(Share::ZERO)
        };
        // D9: rounding may break the predicate at 0 already; then nothing to speak of is given.
        let k = last_true(0.0, 1.0, |k| {
            let sum = competitors.iter().fold(Share::ZERO, |sum, c| sum + taken(self, c, k));
            available.dominates(&sum)
        });
        for c in &competitors {
            let mut granted = taken(self, c, k.unwrap_or(0.0));
            if k.is_none() {
                granted = granted.min(available);
            }
            let p = c.pool;
            self.out[p].limits_share = c.limits_share;
            let granted = granted.min(self.available(p));
            self.raise(p, granted);
            self.drop_own_functions(p);
            self.state[p].last_share = granted.max_component();
        }
    }

    /// Cluster minus guarantees of the first level, as far as there is demand for them.
    fn unused_by_guarantees(&self) -> Share {
        self.tree.children[0].iter().fold(Share::ONES, |available, &c| {
            let used = self.guarantee_share(c).min(self.out[c].demand_share);
            (available - used).max(Share::ZERO)
        })
    }

    /// Lowers the limits of the pools that have any volume to what it allows, and builds their functions.
    fn limit_by_volume(&mut self) -> Vec<Competitor> {
        let mut competitors = Vec::new();
        for i in 0..self.relaxed_pools.len() {
            let pool = self.relaxed_pools[i];
            let share_by_volume = self.share_by_volume(pool);
            if share_by_volume == 0.0 {
                // D1: in the reference such a pool goes on spending what it was given long ago.
                if !self.input.options.compat_strict {
                    self.state[pool].last_share = 0.0;
                }
                continue;
            }
            let limit = share_by_volume.min(self.relaxed_share_limit(pool));
            let out = &mut self.out[pool];
            let limits_share = out.limits_share;
            out.limits_share = limits_share.min(Share::splat(limit) + out.strong_guarantee_share);
            self.build_below(pool);
            self.build(pool);
            competitors.push(Competitor { pool, share_by_volume, limits_share });
        }
        competitors
    }

    /// D1 for pools that are not integral any more: they spend nothing.
    pub(crate) fn forget_shares_without_guarantee(&mut self) {
        if self.input.options.compat_strict {
            return;
        }
        for e in 0..self.out.len() {
            if self.guarantee_type(e) == GuaranteeType::None {
                self.state[e].last_share = 0.0;
            }
        }
    }

    /// `integral_share_limit`: flow ratio x multiplier limit.
    pub(crate) fn relaxed_share_limit(&self, p: usize) -> f64 {
        let own = self.pool(p).and_then(|pool| pool.integral_guarantees.relaxed_share_multiplier_limit);
        let multiplier = own.unwrap_or(self.input.options.relaxed_share_multiplier_limit);
        self.out[p].resource_flow_ratio * multiplier
    }
}
