//! Removal of breakpoints that are rounding noise (fair-share.md 3.3).
//!
//! Composition leaves points in the middle of straight lines. Without their removal the number of points
//! would grow by up to a factor of five from level to level of the tree.

use super::{Function, Point};
use vocab::Share;

/// A direction in the plane of argument and one lane.
#[derive(Clone, Copy)]
struct Direction {
    x: f64,
    y: f64,
}

fn cross(u: Direction, v: Direction) -> f64 {
    u.x * v.y - v.x * u.y
}

/// Lane `r` of the way from `a` to `b`, whose end is lifted by `e`.
fn direction(a: &Point<Share>, b: &Point<Share>, r: usize, e: f64) -> Direction {
    Direction { x: b.x - a.x, y: (b.y.0[r] + e) - a.y.0[r] }
}

/// The cone of directions, lane by lane, in which a straight line from the anchor stays within `e` of all
/// the points that it replaces.
struct Cone {
    top: [Direction; 5],
    bottom: [Direction; 5],
}

impl Cone {
    fn of(a: &Point<Share>, b: &Point<Share>, e: f64) -> Cone {
        Cone {
            top: std::array::from_fn(|r| direction(a, b, r, e)),
            bottom: std::array::from_fn(|r| direction(a, b, r, -e)),
        }
    }

    /// Narrows the cone by a further point and says whether that point is still inside.
    fn admit(&mut self, a: &Point<Share>, b: &Point<Share>, e: f64) -> bool {
        (0..5).all(|r| {
            let (top, bottom) = (direction(a, b, r, e), direction(a, b, r, -e));
            if cross(top, self.top[r]) > 0.0 {
                self.top[r] = top;
            }
            if cross(bottom, self.bottom[r]) < 0.0 {
                self.bottom[r] = bottom;
            }
            let straight = Direction { x: b.x - a.x, y: b.y.0[r] - a.y.0[r] };
            cross(self.bottom[r], straight) > 0.0 && cross(self.top[r], straight) < 0.0
        })
    }
}

/// Replaces runs of segments that are straight up to `e` by one segment each.
pub(crate) fn compress(f: &Function<Share>, e: f64) -> Function<Share> {
    let [first, second, rest @ ..] = f.points() else { return f.clone() };
    let mut result = Function::builder(f.points().len());
    result.add_point(first.x, first.y);
    let (mut anchor, mut end) = (first, second);
    let mut cone = Cone::of(anchor, end, e);
    for next in rest {
        if !cone.admit(anchor, next, e) {
            result.add_point(end.x, end.y);
            anchor = end;
            cone = Cone::of(anchor, next, e);
        }
        end = next;
    }
    result.add_point(end.x, end.y);
    result
}
