//! How well an element is served (fair-share.md 12.3).

use vocab::{RESOURCES, Share};

use crate::numbers::EPS;

/// Satisfaction of an element without a fair share, and the cap of any other.
pub const NO_FAIR_SHARE: f64 = 1e9;

/// Satisfaction of an element by its own usage. A composite is as satisfied as the least satisfied of its
/// *schedulable* children; which these are the scheduler knows.
///
/// A resource is blocked if the fair share covers the demand: more of it would be of no use, so it says
/// something only if all resources are.
pub fn local_satisfaction(fair_share: &Share, usage_share: &Share, demand_share: &Share) -> f64 {
    let ratio = |r, zero_by_zero: f64| {
        let (usage, fair): (f64, f64) = (usage_share[r], fair_share[r]);
        match (usage == 0.0, fair == 0.0) {
            (true, true) => zero_by_zero,
            (false, true) => NO_FAIR_SHARE,
            _ => usage / fair,
        }
    };
    if fair_share.max_component() <= EPS {
        return NO_FAIR_SHARE;
    }
    if RESOURCES.into_iter().any(|r| usage_share[r] > fair_share[r]) {
        return RESOURCES.into_iter().map(|r| ratio(r, 0.0)).fold(0.0, f64::max).min(NO_FAIR_SHARE);
    }
    let blocked = |r| fair_share[r] >= demand_share[r];
    if RESOURCES.into_iter().all(blocked) {
        return RESOURCES.into_iter().map(|r| ratio(r, 1.0)).fold(f64::INFINITY, f64::min);
    }
    RESOURCES
        .into_iter()
        .filter(|r| !blocked(*r) && fair_share[*r] != 0.0)
        .map(|r| ratio(r, 0.0))
        .fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn satisfaction_of_vectors() {
        let check = |f: [f64; 5], u: [f64; 5], d: [f64; 5], expected: f64| {
            let got = local_satisfaction(&Share(f), &Share(u), &Share(d));
            assert!((got - expected).abs() < 1e-12, "{f:?} {u:?} {d:?}: {got} != {expected}");
        };
        let ones = [1.0; 5];
        check([0.0; 5], [0.5; 5], ones, NO_FAIR_SHARE);
        check([1e-10; 5], [0.0; 5], ones, NO_FAIR_SHARE);
        // Above the fair share somewhere: the largest ratio.
        check([0.5, 0.2, 0.0, 0.1, 0.0], [0.1, 0.3, 0.0, 0.1, 0.0], ones, 1.5);
        check([0.5, 0.0, 0.0, 0.0, 0.0], [0.1, 0.3, 0.0, 0.0, 0.0], ones, NO_FAIR_SHARE);
        // All blocked: the smallest ratio, an unused resource that nobody wants counts as served.
        check([0.5, 0.2, 0.0, 0.0, 0.0], [0.25, 0.2, 0.0, 0.0, 0.0], [0.5, 0.2, 0.0, 0.0, 0.0], 0.5);
        // Worked example 16.12, operation X: memory is blocked, cpu is the best of the others.
        check([0.4875, 0.5, 0.0, 0.1, 0.0], [0.15, 0.2, 0.0, 0.1, 0.0], [0.6, 0.6, 0.0, 0.1, 0.0], 0.4);
    }
}
