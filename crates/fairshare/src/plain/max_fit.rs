//! `max_fit`: the largest usable fit factor for a suggestion of the parent (fair-share.md 4.4).
//!
//! For each resource it is the inverse of that lane of `by_fit`, from the guarantee (suggestion 0) to the
//! limit; the element goes as far as the tightest resource lets it.

use vocab::Share;

use super::piecewise::{Function, Point, Segment, pointwise_min};
use crate::numbers::EPS;

/// One lane between guarantee and limit, both pulled into the range of the lane.
struct Range {
    guarantee: f64,
    limit: f64,
}

fn range(by_fit: &Function<Share>, r: usize, guarantee: Share, limits: Share) -> Range {
    let (lowest, highest) = (by_fit.first().y.0[r], by_fit.last().y.0[r]);
    let limit = limits.0[r].max(lowest).min(highest);
    Range { guarantee: guarantee.0[r].max(lowest).min(limit), limit }
}

/// Lanes that do not move limit nothing: their inverse is the constant right bound of `by_fit`.
fn moving_lanes(by_fit: &Function<Share>) -> impl Iterator<Item = usize> {
    let (first, last) = (by_fit.first().y, by_fit.last().y);
    (0..5).filter(move |r| first.0[*r] != last.0[*r])
}

/// What an element takes at once lies within its limits; otherwise nothing here is feasible.
pub(crate) fn starts_within(by_fit: &Function<Share>, limits: Share) -> bool {
    (0..5).all(|r| by_fit.first().y.0[r] < limits.0[r] + EPS)
}

/// The function on `[0, 1]`.
pub(crate) fn max_fit(by_fit: &Function<Share>, guarantee: Share, limits: Share) -> Function<f64> {
    moving_lanes(by_fit)
        .map(|r| {
            let Range { guarantee: g, limit: l } = range(by_fit, r, guarantee, limits);
            let inverse = by_fit.lane(r).transpose().narrow(g, l);
            inverse.trim_left().shift(-g).extend_right(1.0).trim()
        })
        .reduce(|a, b| pointwise_min(&a, &b))
        .unwrap_or_else(|| Function::constant(0.0, 1.0, by_fit.last().x))
}

/// Its value at 0 without the function: the largest fit factor within the guarantee. The same float.
pub(crate) fn max_fit_at_zero(by_fit: &Function<Share>, guarantee: Share, limits: Share) -> f64 {
    moving_lanes(by_fit)
        .map(|r| last_within(by_fit, r, range(by_fit, r, guarantee, limits).guarantee))
        .fold(by_fit.last().x, f64::min)
}

/// Its value at 1 without the function. If the range reaches up to exactly 1 this is the place where the
/// lane *reaches* its limit, otherwise the place where it *leaves* it.
pub(crate) fn max_fit_at_one(by_fit: &Function<Share>, guarantee: Share, limits: Share) -> f64 {
    moving_lanes(by_fit)
        .map(|r| {
            let Range { guarantee: g, limit: l } = range(by_fit, r, guarantee, limits);
            if l - g < 1.0 { last_within(by_fit, r, l) } else { first_reaching(by_fit, r, l) }
        })
        .fold(by_fit.last().x, f64::min)
}

/// Its value anywhere, from the equivalent form of 4.4; exact ties may fall on the other side.
#[cfg(test)]
pub(crate) fn closed_form(by_fit: &Function<Share>, guarantee: Share, limits: Share, s: f64) -> f64 {
    (0..5)
        .map(|r| {
            let Range { guarantee: g, limit: l } = range(by_fit, r, guarantee, limits);
            match s {
                0.0 => last_within(by_fit, r, g),
                s if s <= l - g => first_reaching(by_fit, r, g + s),
                _ => last_within(by_fit, r, l),
            }
        })
        .fold(f64::INFINITY, f64::min)
}

/// `sup { f : lane(f) <= y }`.
fn last_within(by_fit: &Function<Share>, r: usize, y: f64) -> f64 {
    let points = by_fit.points();
    let beyond = points.partition_point(|p| p.y.0[r] <= y);
    if beyond == points.len() { by_fit.last().x } else { argument(by_fit, beyond - 1, r, y) }
}

/// `inf { f : lane(f + 0) >= y }`.
fn first_reaching(by_fit: &Function<Share>, r: usize, y: f64) -> f64 {
    let reached = by_fit.points().partition_point(|p| p.y.0[r] < y);
    if reached == 0 { by_fit.first().x } else { argument(by_fit, reached - 1, r, y) }
}

/// Where a segment that rises in lane `r` passes the value.
fn argument(by_fit: &Function<Share>, segment: usize, r: usize, y: f64) -> f64 {
    let segment = by_fit.segment(segment);
    let inverse = |p: Point<Share>| Point { x: p.y.0[r], y: p.x };
    Segment { start: inverse(segment.start), end: inverse(segment.end) }.left_value(y)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A jump, slopes at different places in different lanes, plateaus, a lane that stays 0.
    fn by_fit() -> Function<Share> {
        let mut f = Function::builder(8);
        f.add_point(0.0, Share::ZERO);
        f.add_point(0.5, Share([0.1, 0.0, 0.0, 0.2, 0.0]));
        f.add_point(0.5, Share([0.3, 0.0, 0.0, 0.2, 0.0]));
        f.add_point(1.0, Share([0.3, 0.4, 0.0, 0.6, 0.0]));
        f.add_point(2.0, Share([1.25, 0.4, 0.0, 0.75, 0.0]));
        f
    }

    #[test]
    fn point_values_are_those_of_the_function() {
        let f = by_fit();
        let steps = [0.0, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75, 1.0];
        for g in steps {
            for l in steps {
                for other in steps {
                    let guarantee = Share([g, other, 0.0, g / 2.0, 0.0]);
                    let limits = Share([l, 1.0, other, 1.0, 1.0]);
                    let whole = max_fit(&f, guarantee, limits);
                    assert_eq!((whole.first().x, whole.last().x), (0.0, 1.0));
                    let context = format!("guarantee {guarantee:?}, limits {limits:?}");
                    assert_eq!(max_fit_at_zero(&f, guarantee, limits), whole.first().y, "{context}");
                    assert_eq!(max_fit_at_one(&f, guarantee, limits), whole.last().y, "{context}");
                }
            }
        }
    }

    #[test]
    fn the_function_never_decreases() {
        let f = max_fit(&by_fit(), Share::splat(0.05), Share([0.9, 1.0, 1.0, 0.7, 1.0]));
        for pair in f.points().windows(2) {
            assert!(pair[0].x <= pair[1].x && pair[0].y <= pair[1].y, "{pair:?}");
        }
    }
}
