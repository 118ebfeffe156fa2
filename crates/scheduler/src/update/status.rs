//! Scheduling status (scheduling.md 6.1) and the relation it is made of (1).

use vocab::{RESOURCES, Share};

/// Tolerance of comparisons of shares [D1].
pub(crate) const EPS: f64 = 1e-9;
/// Tolerance of "the demand is covered".
const LARGE_EPS: f64 = 1e-4;

/// Does an element get what it is due?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum SchedulingStatus {
    #[default]
    Normal,
    BelowFairShare,
}

impl SchedulingStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            SchedulingStatus::Normal => "normal",
            SchedulingStatus::BelowFairShare => "below_fair_share",
        }
    }
}

/// Is `a` above `b` where it matters: in some resource if nothing more is wanted of any, else in all
/// resources of which more is wanted?
pub(crate) fn above_non_blocked(fair_share: &Share, demand_share: &Share, a: &Share, b: &Share) -> bool {
    let above = |r: &vocab::Resource| a[*r] > b[*r] + EPS;
    let mut wanted = RESOURCES.into_iter().filter(|r| fair_share[*r] < demand_share[*r]).peekable();
    if wanted.peek().is_none() { RESOURCES.iter().any(above) } else { wanted.all(|r| above(&r)) }
}

/// Status of an element by its shares at the update.
pub(crate) fn status(fair_share: &Share, demand: &Share, usage: &Share, tolerance: f64) -> SchedulingStatus {
    let bound = (*fair_share * tolerance).min(*demand);
    if above_non_blocked(fair_share, demand, &bound, usage) {
        SchedulingStatus::BelowFairShare
    } else {
        SchedulingStatus::Normal
    }
}

/// Tolerance of an operation: none if it is promised all that it wants, so that it starves already one
/// allocation short.
pub(crate) fn operation_tolerance(fair_share: &Share, demand: &Share, effective: f64) -> f64 {
    let covered = (*fair_share + Share::splat(LARGE_EPS)).dominates(demand);
    if covered { 1.0 } else { effective }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked example 23.6: fair share 0.5, tolerance 0.8.
    #[test]
    fn tolerance() {
        let check = |demand: f64, usage: f64, is_operation: bool, below: bool| {
            let (f, d, u) = (Share::splat(0.5), Share::splat(demand), Share::splat(usage));
            let tolerance = if is_operation { operation_tolerance(&f, &d, 0.8) } else { 0.8 };
            let expected = if below { SchedulingStatus::BelowFairShare } else { SchedulingStatus::Normal };
            assert_eq!(status(&f, &d, &u, tolerance), expected, "demand {demand} usage {usage}");
        };
        check(0.9, 0.39, true, true);
        check(0.9, 0.40, true, false);
        check(0.5, 0.49, true, true);
        check(0.5, 0.50, true, false);
        check(0.5, 0.41, false, false);
        check(0.5, 0.39, false, true);
        check(0.0, 0.0, true, false);
    }

    /// More usage or less fair share never turns `normal` into `below_fair_share` (24, 3), as long as
    /// what is blocked stays so.
    #[test]
    fn status_is_monotone() {
        let mut state = 7u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % 11) as f64 / 10.0
        };
        for _ in 0..20_000 {
            let demand = Share::from_fn(|_| random());
            let fair = Share::from_fn(|_| random()).min(demand);
            let usage = Share::from_fn(|_| random());
            let tolerance = random();
            if status(&fair, &demand, &usage, tolerance) == SchedulingStatus::BelowFairShare {
                continue;
            }
            let more = usage + Share::from_fn(|_| random());
            assert_eq!(status(&fair, &demand, &more, tolerance), SchedulingStatus::Normal);
            // Less of what is not blocked anyway.
            let less = Share::from_fn(|r| if fair[r] < demand[r] { fair[r] * random() } else { fair[r] });
            assert_eq!(status(&less, &demand, &usage, tolerance), SchedulingStatus::Normal);
        }
    }
}
