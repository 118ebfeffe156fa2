//! Tolerances, and bisection over the bits of a float (fair-share.md 2.2, 2.3).

use vocab::Share;

/// Tolerance of shares where the specification names one.
pub(crate) const EPS: f64 = 1e-9;
/// The same in every component.
pub(crate) const EPS_SHARE: Share = Share::splat(EPS);
/// Tolerance of what is only shown.
pub(crate) const LARGE_EPS: f64 = 1e-4;
/// Tolerance of the removal of breakpoints (3.3).
#[cfg(test)]
pub(crate) const COMPRESS_EPS: f64 = 1e-15;

const SIGN: u64 = 1 << 63;

/// Order-preserving map of floats to integers; -0.0 comes just before 0.0.
fn key(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits & SIGN != 0 { !bits } else { bits ^ SIGN }
}

fn unkey(k: u64) -> f64 {
    f64::from_bits(if k & SIGN != 0 { k ^ SIGN } else { !k })
}

/// The exact largest `x` in `[lo, hi]` for which the monotone predicate holds; none if it does not hold
/// at `lo`.
pub(crate) fn last_true(lo: f64, hi: f64, mut holds: impl FnMut(f64) -> bool) -> Option<f64> {
    if !holds(lo) {
        return None;
    }
    if lo == hi || holds(hi) {
        return Some(hi);
    }
    let (mut a, mut b) = (key(lo), key(hi));
    while a + 1 < b {
        let middle = a + (b - a) / 2;
        if holds(unkey(middle)) {
            a = middle;
        } else {
            b = middle;
        }
    }
    Some(unkey(a))
}

/// The next float from a positive number toward 0; 0 stays.
pub(crate) fn next_toward_zero(x: f64) -> f64 {
    if x == 0.0 { x } else { f64::from_bits(x.to_bits() - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_the_order() {
        let ascending = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, f64::MIN_POSITIVE, 0.1, 1.0, f64::INFINITY];
        for pair in ascending.windows(2) {
            assert!(key(pair[0]) < key(pair[1]), "{pair:?}");
        }
        for x in ascending {
            assert_eq!(unkey(key(x)).to_bits(), x.to_bits());
        }
    }

    #[test]
    fn bisection_finds_the_last_float() {
        let third = 1.0 / 3.0;
        assert_eq!(last_true(0.0, 1.0, |x| x <= third), Some(third));
        assert_eq!(last_true(0.0, 1.0, |x| x < third), Some(next_toward_zero(third)));
        assert_eq!(last_true(0.0, 1.0, |_| true), Some(1.0));
        assert_eq!(last_true(0.0, 1.0, |_| false), None);
        assert_eq!(last_true(0.0, 1.0, |x| x <= 0.0), Some(0.0));
        assert_eq!(last_true(0.5, 0.5, |x| x <= 0.5), Some(0.5));
    }
}
