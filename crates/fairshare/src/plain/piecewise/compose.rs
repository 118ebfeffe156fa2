//! `x -> f(g(x))` (fair-share.md 3.3).

use super::{Cursor, Function, Lanes, Point};

/// Composition of any function with a scalar one whose values lie in the domain of the first.
pub(crate) fn compose<V: Lanes>(f: &Function<V>, g: &Function<f64>) -> Function<V> {
    let places = places(f, g);
    let (mut values, mut right_limits) = (Cursor::new(f), Cursor::new(f));
    let mut result = Function::builder(places.len() + 2);
    for (i, &Point { x, y }) in places.iter().enumerate() {
        if i == 0 || places[i - 1].x != x {
            result.add_point(x, values.value(y));
        }
        let next = places.get(i + 1);
        if next.is_none_or(|p| p.x != x) {
            // What follows decides the limit from the right: if g goes on growing, f is left behind y.
            let grows = next.is_some_and(|p| p.y > y);
            result.add_point(x, if grows { right_limits.right_limit(y) } else { values.value(y) });
        }
    }
    result.trim()
}

/// The points of `g`, and those inside of its slopes at which `f` has a breakpoint.
fn places<V: Lanes>(f: &Function<V>, g: &Function<f64>) -> Vec<Point<f64>> {
    let inverse = g.clone().transpose();
    let (lowest, highest) = (g.first().y, g.last().y);
    let mut places: Vec<Point<f64>> = g.points().to_vec();
    for y in f.critical_points().filter(|y| lowest <= *y && *y <= highest) {
        let segment = inverse.segment(inverse.index(y));
        if segment.is_tilted() && y != segment.start.x && y != segment.end.x {
            places.push(Point { x: segment.left_value(y), y });
        }
    }
    places.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
    places
}
