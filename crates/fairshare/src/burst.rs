//! Burst pools (fair-share.md 6.6).

use vocab::Share;

use crate::state::Update;

impl Update<'_> {
    /// Grants burst guarantees one after another; each pool sees what those before it were given.
    ///
    /// The integral share of a pool is what its demand takes between the strong guarantee and
    /// strong + burst, and that is what it will be charged for.
    pub(crate) fn grant_burst_guarantees(&mut self) {
        for i in 0..self.burst_pools.len() {
            let p = self.burst_pools[i];
            let ratio = self.out[p].burst_ratio.min(self.share_by_volume(p));
            let proposed = Share::splat(ratio).min(self.available(p));
            let proposed = self.fit_under_limits(p, proposed);
            self.build_below(p);
            self.build_by_fit(p);
            self.out[p].proposed_integral_share = proposed;
            let within = self.within_guarantees(p);
            self.out[p].proposed_integral_share = Share::ZERO;
            let granted = (within - self.out[p].strong_guarantee_share).max(Share::ZERO);
            self.raise(p, granted);
            self.state[p].last_share = granted.max_component();
        }
    }
}
