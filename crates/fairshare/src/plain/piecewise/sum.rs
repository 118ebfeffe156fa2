//! Sum of many functions (fair-share.md 3.3).

use super::{Cursor, Function, Lanes};

/// Up to this number of samples (functions times breakpoints) the sum is taken at each breakpoint over
/// all functions in order, as the specification says. Beyond that the quadratic cost would matter, and
/// the sum is taken by halves: the same function, with another order of additions.
const IN_ORDER_SAMPLES: usize = 1 << 17;
/// Below this, halving does not pay.
const BY_HALVES_SAMPLES: usize = 1 << 12;

/// Sum on `[lo, hi]`, which must be inside of the domain of every function.
pub(crate) fn sum<V: Lanes>(functions: &[Function<V>], lo: f64, hi: f64) -> Function<V> {
    if samples(functions) <= IN_ORDER_SAMPLES {
        in_order(functions, lo, hi)
    } else {
        by_halves(functions, lo, hi)
    }
}

fn samples<V: Lanes>(functions: &[Function<V>]) -> usize {
    functions.len() * functions.iter().map(|f| f.points().len()).sum::<usize>()
}

fn in_order<V: Lanes>(functions: &[Function<V>], lo: f64, hi: f64) -> Function<V> {
    let mut points: Vec<f64> = vec![lo, hi];
    for f in functions {
        points.extend(f.critical_points().filter(|x| lo <= *x && *x <= hi));
    }
    points.sort_unstable_by(f64::total_cmp);
    points.dedup();
    let mut cursors: Vec<_> = functions.iter().map(Cursor::new).collect();
    Function::from_limits(&points, |x| {
        let (mut left, mut right) = (V::ZERO, V::ZERO);
        for cursor in &mut cursors {
            let (l, r) = cursor.limits(x);
            left = left.plus(l);
            right = right.plus(r);
        }
        (left, right)
    })
}

fn by_halves<V: Lanes>(functions: &[Function<V>], lo: f64, hi: f64) -> Function<V> {
    if functions.len() <= 2 || samples(functions) <= BY_HALVES_SAMPLES {
        return in_order(functions, lo, hi);
    }
    let (a, b) = functions.split_at(functions.len() / 2);
    in_order(&[by_halves(a, lo, hi), by_halves(b, lo, hi)], lo, hi)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::Share;

    /// Steps, slopes and plateaus at places that often coincide.
    fn sample(i: usize) -> Function<Share> {
        let a = (i % 7) as f64 / 8.0;
        let b = a + (i % 3 + 1) as f64 / 32.0;
        let mut f = Function::builder(8);
        f.add_point(0.0, Share::ZERO);
        f.add_point(a, Share::splat(0.25 * a));
        if i.is_multiple_of(2) {
            f.add_point(a, Share::splat(0.3));
        }
        f.add_point(b, Share([0.5, 0.3, 0.4, 0.5, 1.0 + i as f64]));
        f.add_point(1.0, Share([0.5, 0.3, 0.4, 0.5, 1.0 + i as f64]));
        f
    }

    #[test]
    fn halves_give_the_same_function() {
        let functions: Vec<_> = (0..200).map(sample).collect();
        let (a, b) = (in_order(&functions, 0.0, 1.0), by_halves(&functions, 0.0, 1.0));
        assert!(samples(&functions) > BY_HALVES_SAMPLES);
        assert_eq!(a.points().len(), b.points().len());
        for (p, q) in a.points().iter().zip(b.points()) {
            assert_eq!(p.x, q.x);
            for r in 0..5 {
                assert!((p.y.0[r] - q.y.0[r]).abs() <= 1e-12 * (1.0 + p.y.0[r]), "{p:?} {q:?}");
            }
        }
    }
}
