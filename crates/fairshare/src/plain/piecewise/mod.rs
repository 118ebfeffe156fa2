//! Non-decreasing, left-continuous, piecewise linear functions of one argument (fair-share.md 3).
//!
//! A function is a list of points; each two neighbours are a segment, and two points with the same
//! argument are a jump. Values are numbers or shares ([`Lanes`]). Joints are exact by construction.
//!
//! Results are wanted to the last bit: the order of operations is that of the specification (9.1), and
//! nothing is contracted or rearranged. Ties are common with round numbers, and at a tie the last bit
//! decides on which side of a jump an element ends up.

mod compose;
mod compress;
mod cursor;
mod minimum;
mod sum;

pub(crate) use compose::compose;
pub(crate) use compress::compress;
pub(crate) use cursor::Cursor;
pub(crate) use minimum::pointwise_min;
pub(crate) use sum::sum;

use vocab::Share;

/// A value of a function: something that can be interpolated.
pub(crate) trait Lanes: Copy + PartialEq + std::fmt::Debug {
    /// Additive zero.
    const ZERO: Self;
    /// By lane.
    fn plus(self, other: Self) -> Self;
    /// By lane.
    fn minus(self, other: Self) -> Self;
    /// Every lane by the same factor.
    fn times(self, k: f64) -> Self;
}

impl Lanes for f64 {
    const ZERO: f64 = 0.0;
    #[inline]
    fn plus(self, other: f64) -> f64 {
        self + other
    }
    #[inline]
    fn minus(self, other: f64) -> f64 {
        self - other
    }
    #[inline]
    fn times(self, k: f64) -> f64 {
        self * k
    }
}

// Spelled out over the array: these are the innermost operations, and they have to be inlined.
impl Lanes for Share {
    const ZERO: Share = Share::ZERO;
    #[inline]
    fn plus(self, other: Share) -> Share {
        Share(std::array::from_fn(|r| self.0[r] + other.0[r]))
    }
    #[inline]
    fn minus(self, other: Share) -> Share {
        Share(std::array::from_fn(|r| self.0[r] - other.0[r]))
    }
    #[inline]
    fn times(self, k: f64) -> Share {
        Share(std::array::from_fn(|r| self.0[r] * k))
    }
}

/// A breakpoint.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Point<V> {
    /// Argument.
    pub(crate) x: f64,
    /// Value.
    pub(crate) y: V,
}

/// A stretch between two neighbouring points.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Segment<V> {
    pub(crate) start: Point<V>,
    pub(crate) end: Point<V>,
}

impl<V: Lanes> Segment<V> {
    /// Neither vertical nor horizontal nor a point.
    pub(crate) fn is_tilted(&self) -> bool {
        self.start.x != self.end.x && self.start.y != self.end.y
    }
    /// Value inside of a segment that is not vertical. Two formulas for the two halves keep it monotone
    /// and exact at both ends in spite of rounding (3.2).
    #[inline]
    fn interpolate(&self, x: f64) -> V {
        let t = (x - self.start.x) / (self.end.x - self.start.x);
        let rise = self.end.y.minus(self.start.y);
        if t < 0.5 { self.start.y.plus(rise.times(t)) } else { self.end.y.minus(rise.times(1.0 - t)) }
    }
    /// Value at `x`, the lower end if the segment is vertical.
    #[inline]
    pub(crate) fn left_value(&self, x: f64) -> V {
        if self.start.x == self.end.x { self.start.y } else { self.interpolate(x) }
    }
    /// Value at `x`, the upper end if the segment is vertical.
    #[inline]
    pub(crate) fn right_value(&self, x: f64) -> V {
        if self.start.x == self.end.x { self.end.y } else { self.interpolate(x) }
    }
}

/// See the module.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Function<V> {
    /// Never empty once built.
    points: Vec<Point<V>>,
}

impl<V: Lanes> Function<V> {
    /// Nothing yet; points follow.
    pub(crate) fn builder(capacity: usize) -> Function<V> {
        Function { points: Vec::with_capacity(capacity) }
    }
    /// The same value on the whole of `[lo, hi]`.
    pub(crate) fn constant(lo: f64, hi: f64, y: V) -> Function<V> {
        let mut f = Function::builder(2);
        f.add_point(lo, y);
        f.add_point(hi, y);
        f
    }

    /// Appends a segment from the last point to this one. Two jumps in a row become one, and so do two
    /// plateaus; a segment of no extent vanishes (3.1).
    #[inline]
    pub(crate) fn add_point(&mut self, x: f64, y: V) {
        if let [.., last] = self.points[..]
            && last.x == x
            && last.y == y
        {
            return;
        }
        if let [.., before, last] = self.points[..] {
            let both_vertical = before.x == last.x && last.x == x;
            let both_horizontal = before.y == last.y && last.y == y;
            if both_vertical || both_horizontal {
                self.points.pop();
            }
        }
        self.points.push(Point { x, y });
    }

    /// The breakpoints.
    pub(crate) fn points(&self) -> &[Point<V>] {
        &self.points
    }
    /// Number of segments; a function on a single argument has one.
    pub(crate) fn segment_count(&self) -> usize {
        (self.points.len() - 1).max(1)
    }
    /// Segment by index; the one segment of a function on a single argument starts and ends there.
    #[inline]
    pub(crate) fn segment(&self, i: usize) -> Segment<V> {
        let end = (i + 1).min(self.points.len() - 1);
        Segment { start: self.points[i], end: self.points[end] }
    }
    /// First point.
    pub(crate) fn first(&self) -> Point<V> {
        self.points[0]
    }
    /// Last point.
    pub(crate) fn last(&self) -> Point<V> {
        self.points[self.points.len() - 1]
    }

    /// Index of the first segment that ends at `x` or later; the last one if `x` is beyond the domain.
    #[inline]
    fn left_index(&self, x: f64) -> usize {
        let inner = &self.points[1..];
        inner.partition_point(|p| p.x < x).min(self.segment_count() - 1)
    }
    /// Index of the last segment that starts at `x` or earlier.
    #[inline]
    fn right_index(&self, x: f64) -> usize {
        self.points[..self.segment_count()].partition_point(|p| p.x <= x).max(1) - 1
    }
    /// Index of the jump at `x` if there is one, else as [`Function::left_index`].
    #[inline]
    fn index(&self, x: f64) -> usize {
        self.jump_or(self.left_index(x), x)
    }
    #[inline]
    fn jump_or(&self, i: usize, x: f64) -> usize {
        let next_is_jump =
            self.points.get(i + 2).is_some_and(|after| self.points[i + 1].x == x && after.x == x);
        if next_is_jump { i + 1 } else { i }
    }

    /// Value, which is the limit from the left.
    pub(crate) fn value(&self, x: f64) -> V {
        self.segment(self.left_index(x)).left_value(x)
    }
    /// Limit from the right.
    pub(crate) fn right_limit(&self, x: f64) -> V {
        self.segment(self.right_index(x)).right_value(x)
    }

    /// Left bound of the domain, then the end of each segment that is not a jump.
    pub(crate) fn critical_points(&self) -> impl Iterator<Item = f64> + '_ {
        let mut last = None;
        self.points.iter().map(|p| p.x).filter(move |x| last.replace(*x) != Some(*x))
    }

    /// Builds from both limits at each of the arguments, which come in ascending order.
    pub(crate) fn from_limits(points: &[f64], mut limits: impl FnMut(f64) -> (V, V)) -> Function<V> {
        let mut f = Function::builder(points.len() + 2);
        for &x in points {
            let (left, right) = limits(x);
            f.add_point(x, left);
            f.add_point(x, right);
        }
        f
    }

    /// The part on `[lo, hi]`; jumps at the bounds are kept (3.3).
    pub(crate) fn narrow(self, lo: f64, hi: f64) -> Function<V> {
        if lo == self.first().x && hi == self.last().x {
            return self;
        }
        let mut inside: Vec<f64> = Vec::with_capacity(self.points.len() + 2);
        inside.push(lo);
        inside.extend(self.critical_points().filter(|x| lo < *x && *x < hi));
        if lo < hi {
            inside.push(hi);
        }
        let mut cursor = Cursor::new(&self);
        Function::from_limits(&inside, |x| cursor.limits(x))
    }

    /// Removes a jump at the left bound.
    pub(crate) fn trim_left(mut self) -> Function<V> {
        if let [a, b, ..] = self.points[..]
            && a.x == b.x
        {
            self.points.remove(0);
        }
        self
    }
    /// Removes a jump at the right bound.
    pub(crate) fn trim(mut self) -> Function<V> {
        if let [.., a, b] = self.points[..]
            && a.x == b.x
        {
            self.points.pop();
        }
        self
    }
    /// Moves the function by `dx` along the arguments.
    pub(crate) fn shift(self, dx: f64) -> Function<V> {
        if dx == 0.0 { self } else { self.map_arguments(|x| x + dx) }
    }
    /// `x -> f(k x)`.
    pub(crate) fn scale_argument(self, k: f64) -> Function<V> {
        self.map_arguments(|x| x / k)
    }
    /// Rounding may bring arguments together: what was a steep slope is a jump then, and must become one
    /// with a jump beside it.
    fn map_arguments(self, map: impl Fn(f64) -> f64) -> Function<V> {
        let mut f = Function::builder(self.points.len() + 1);
        for p in &self.points {
            f.add_point(map(p.x), p.y);
        }
        f
    }
    /// Goes on with the last value up to `hi`.
    pub(crate) fn extend_right(mut self, hi: f64) -> Function<V> {
        let last = self.last();
        if last.x < hi {
            self.add_point(hi, last.y);
        }
        self
    }
}

impl Function<f64> {
    /// The inverse: plateaus become jumps and jumps plateaus.
    pub(crate) fn transpose(mut self) -> Function<f64> {
        for p in &mut self.points {
            (p.x, p.y) = (p.y, p.x);
        }
        self
    }
}

impl Function<Share> {
    /// One lane; plateaus of the lane become single segments.
    pub(crate) fn lane(&self, r: usize) -> Function<f64> {
        let mut f = Function::builder(self.points.len());
        for p in &self.points {
            f.add_point(p.x, p.y.0[r]);
        }
        f
    }
}

#[cfg(test)]
mod tests;
