//! Sampling at ascending arguments without a search for each.

use super::{Function, Lanes, Segment};

/// Remembers where in a function the last sample was taken. Each of the three questions keeps a place of
/// its own, and each must be asked with arguments that do not decrease.
pub(crate) struct Cursor<'a, V> {
    function: &'a Function<V>,
    left: usize,
    right: usize,
}

impl<'a, V: Lanes> Cursor<'a, V> {
    /// At the left bound.
    pub(crate) fn new(function: &'a Function<V>) -> Cursor<'a, V> {
        Cursor { function, left: 0, right: 0 }
    }

    #[inline]
    fn left_index(&mut self, x: f64) -> usize {
        let points = &self.function.points;
        while self.left + 2 < points.len() && points[self.left + 1].x < x {
            self.left += 1;
        }
        self.left
    }

    /// The value: limit from the left.
    #[inline]
    pub(crate) fn value(&mut self, x: f64) -> V {
        let i = self.left_index(x);
        self.function.segment(i).left_value(x)
    }

    /// Limits from the left and from the right.
    #[inline]
    pub(crate) fn limits(&mut self, x: f64) -> (V, V) {
        let i = self.left_index(x);
        let segment = self.function.segment(self.function.jump_or(i, x));
        if segment.start.x == segment.end.x {
            (segment.start.y, segment.end.y)
        } else {
            let y = segment.left_value(x);
            (y, y)
        }
    }

    /// The last segment that starts at `x` or before.
    #[inline]
    pub(crate) fn right_segment(&mut self, x: f64) -> Segment<V> {
        let points = &self.function.points;
        while self.right + 2 < points.len() && points[self.right + 1].x <= x {
            self.right += 1;
        }
        self.function.segment(self.right)
    }

    /// Limit from the right.
    #[inline]
    pub(crate) fn right_limit(&mut self, x: f64) -> V {
        self.right_segment(x).right_value(x)
    }
}
