//! The improved `by_fit` of a fair-share pool (fair-share.md 4.6).
//!
//! Where the plain sum jumps by several children at once, this one gives every breakpoint of every child
//! a unit of the fit factor for itself: children that jump at the same place do so one after another,
//! and some of them may fit where all of them would not.

use vocab::Share;

use super::piecewise::{Cursor, Function, Lanes};

/// Children of a pool and the order in which their breakpoints come.
pub(crate) struct Events {
    /// By place among the children: what the child takes at the common argument.
    children: Vec<Function<Share>>,
    /// Common argument and child, ascending. The fit factor counts them.
    events: Vec<(f64, usize)>,
}

impl Events {
    /// From the children's scaled functions on a common domain.
    pub(crate) fn new(children: Vec<Function<Share>>) -> Events {
        let mut events: Vec<(f64, usize)> = Vec::new();
        for (c, f) in children.iter().enumerate() {
            events.extend(f.critical_points().map(|x| (x, c)));
        }
        events.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        Events { children, events }
    }

    /// The pool's `by_fit`: at each event the sum before and after the child has passed its breakpoint.
    pub(crate) fn by_fit(&self) -> Function<Share> {
        let mut cursors: Vec<_> = self.children.iter().map(Cursor::new).collect();
        let mut result = Function::builder(2 * self.events.len());
        for (k, &(x, c)) in self.events.iter().enumerate() {
            let (mut before, mut after) = (Share::ZERO, Share::ZERO);
            for (j, cursor) in cursors.iter_mut().enumerate() {
                let (left, right) = cursor.limits(x);
                before = before.plus(if j < c { right } else { left });
                after = after.plus(if j <= c { right } else { left });
            }
            result.add_point(k as f64, before);
            result.add_point(k as f64, after);
        }
        result
    }

    /// What a child takes at a fit factor (`own_j` of the specification).
    pub(crate) fn own(&self, child: usize, fit: f64) -> Share {
        let k = (fit.floor() as usize).min(self.events.len() - 1);
        let (before, after) = self.around(k, child);
        let t = fit - k as f64;
        if t <= 0.0 || k + 1 == self.events.len() {
            return before;
        }
        let (next, _) = self.around(k + 1, child);
        // The same two formulas as in the interpolation of 3.2; the segment is one unit long.
        if t < 0.5 {
            after.plus(next.minus(after).times(t))
        } else {
            next.minus(next.minus(after).times(1.0 - t))
        }
    }

    /// Values of a child just before and just after an event.
    fn around(&self, k: usize, child: usize) -> (Share, Share) {
        let (x, c) = self.events[k];
        let f = &self.children[child];
        match child.cmp(&c) {
            std::cmp::Ordering::Less => {
                let y = f.right_limit(x);
                (y, y)
            }
            std::cmp::Ordering::Equal => (f.value(x), f.right_limit(x)),
            std::cmp::Ordering::Greater => {
                let y = f.value(x);
                (y, y)
            }
        }
    }
}
