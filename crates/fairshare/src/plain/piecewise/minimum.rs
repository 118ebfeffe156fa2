//! The smaller of two functions at each argument (fair-share.md 3.3).

use super::{Cursor, Function};
use crate::numbers::last_true;

/// Pointwise minimum on the intersection of both domains.
pub(crate) fn pointwise_min(f: &Function<f64>, g: &Function<f64>) -> Function<f64> {
    let lo = f.first().x.max(g.first().x);
    let hi = f.last().x.min(g.last().x);
    let mut points: Vec<f64> =
        f.critical_points().chain(g.critical_points()).filter(|x| lo <= *x && *x <= hi).collect();
    points.sort_by(f64::total_cmp);
    points.dedup();
    let points = with_crossings(f, g, &points);
    let (mut f, mut g) = (Cursor::new(f), Cursor::new(g));
    Function::from_limits(&points, |x| {
        let ((fl, fr), (gl, gr)) = (f.limits(x), g.limits(x));
        (if gl < fl { gl } else { fl }, if gr < fr { gr } else { fr })
    })
}

/// Adds the places between neighbouring points where the functions change order.
fn with_crossings(f: &Function<f64>, g: &Function<f64>, points: &[f64]) -> Vec<f64> {
    let (mut f, mut g) = (Cursor::new(f), Cursor::new(g));
    let mut all = Vec::with_capacity(points.len() + 8);
    for pair in points.windows(2) {
        let (l, r) = (pair[0], pair[1]);
        all.push(l);
        let (a, b) = (f.right_segment(l), g.right_segment(l));
        let (low, high) = if a.left_value(l) <= b.left_value(l) { (a, b) } else { (b, a) };
        if low.left_value(l) < high.left_value(l) && low.left_value(r) > high.left_value(r) {
            let crossing = last_true(l, r, |m| low.left_value(m) <= high.left_value(m));
            all.extend(crossing.filter(|x| *x > l));
        }
    }
    all.extend(points.last());
    all
}
