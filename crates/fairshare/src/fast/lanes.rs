//! Values of five resources side by side, and sums of them that do not lose what is small.

/// One number for each resource.
pub(crate) type Lanes = [f64; 5];

pub(crate) const ZERO: Lanes = [0.0; 5];

/// Lane by lane.
#[inline]
pub(crate) fn map2(a: &Lanes, b: &Lanes, f: impl Fn(f64, f64) -> f64) -> Lanes {
    std::array::from_fn(|r| f(a[r], b[r]))
}
#[inline]
pub(crate) fn max(a: &Lanes, b: &Lanes) -> Lanes {
    map2(a, b, |x, y| if y > x { y } else { x })
}
#[inline]
pub(crate) fn min(a: &Lanes, b: &Lanes) -> Lanes {
    map2(a, b, |x, y| if y < x { y } else { x })
}
/// No lane of `a` is above that of `b`.
#[inline]
pub(crate) fn within(a: &Lanes, b: &Lanes) -> bool {
    // All at once: this is asked for at every bend, and the answer is nearly always yes.
    (0..5).fold(true, |within, r| within & (a[r] <= b[r]))
}
/// Largest lane.
#[inline]
pub(crate) fn top(a: &Lanes) -> f64 {
    a[1..].iter().fold(a[0], |x, y| if *y > x { *y } else { x })
}
/// A point of the straight line from `a` (`t = 0`) to `b` (`t = 1`), exact at both ends and monotone
/// (fair-share.md 3.2).
#[inline]
pub(crate) fn between(a: &Lanes, b: &Lanes, t: f64) -> Lanes {
    map2(a, b, |a, b| if t < 0.5 { a + (b - a) * t } else { b - (b - a) * (1.0 - t) })
}

/// A sum that keeps the rounding error of what is added to it in a second number.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sums {
    pub(crate) sum: Lanes,
    error: Lanes,
}

impl Sums {
    /// What is far from rounding errors: nothing is lost if this is added as it is.
    #[inline]
    pub(crate) fn advance(&mut self, slope: &Lanes, dx: f64) {
        for r in 0..5 {
            self.sum[r] += slope[r] * dx;
        }
    }
    #[inline]
    pub(crate) fn add(&mut self, x: &Lanes) {
        for r in 0..5 {
            let a = self.sum[r];
            let s = a + x[r];
            let b = s - a;
            let lost = (a - (s - b)) + (x[r] - b) + self.error[r];
            // Back to a pair that does not overlap.
            self.sum[r] = s + lost;
            self.error[r] = lost - (self.sum[r] - s);
        }
    }
    /// Replaces one lane by an exact value.
    #[inline]
    pub(crate) fn set(&mut self, r: usize, x: f64) {
        self.sum[r] = x;
        self.error[r] = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_parts_make_a_whole() {
        let mut sums = Sums::default();
        for _ in 0..10_000 {
            sums.add(&[1e-4; 5]);
        }
        assert_eq!(sums.sum, [1.0; 5]);
    }

    #[test]
    fn lines_are_exact_at_their_ends() {
        let (a, b) = ([0.1; 5], [0.7; 5]);
        assert_eq!(between(&a, &b, 0.0), a);
        assert_eq!(between(&a, &b, 1.0), b);
    }
}
