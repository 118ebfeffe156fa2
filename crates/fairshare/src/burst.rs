//! Burst pools (fair-share.md 6.6).

use vocab::Share;

use crate::integral::Taking;

/// Grants burst guarantees one after another; each pool sees what those before it were given.
///
/// The integral share of a pool is what its demand takes between the strong guarantee and
/// strong + burst, and that is what it will be charged for.
pub(crate) fn grant_burst_guarantees<'a>(taking: &mut impl Taking<'a>) {
    for &p in taking.update().burst_pools {
        let update = taking.update();
        let ratio = update.out[p].burst_ratio.min(update.share_by_volume(p));
        let proposed = Share::splat(ratio).min(update.available(p));
        let proposed = update.fit_under_limits(p, proposed);
        let strong = update.out[p].strong_guarantee_share;
        let within = taking.within(p, strong + proposed);
        let update = taking.update();
        let granted = (within - strong).max(Share::ZERO);
        update.raise(p, granted);
        update.integral_state(p).last_share = granted.max_component();
    }
}
