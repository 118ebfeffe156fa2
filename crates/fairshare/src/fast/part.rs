//! Straight parts of functions, and how far from their ends a place can be told for sure.
//!
//! A part is described by numbers at its left end, which are a function of the subtree and not of the place
//! that was asked for. The same goes for the stretch of it that is *sure*: nearer to an end rounding could
//! put a place on either side. So whether a place is found on a part does not depend on where one came from.

use super::knots::Knot;
use super::lanes::{Lanes, ZERO, between, map2};
use super::on_line;

/// Distance from the end of a part that rounding cannot bridge: in proportion to the place, and of shares.
pub(super) const MARGIN: f64 = 1e-9;
pub(super) const SHARE_MARGIN: f64 = 1e-12;
/// Between the lane that is ahead and any other.
const LANE_MARGIN: f64 = 1e-15;
/// Suggestions below this are as good as 0. There may be breakpoints among them (a guarantee may be the least
/// number that there is), on pieces too short to have a slope: what is asked for is the piece behind them.
pub(super) const FIRST: f64 = 1e-11;
/// Lanes that differ by no more than this from beginning to end are the same.
pub(super) const NOISE: f64 = 1e-13;

/// From one place to another, ends excluded.
#[derive(Clone, Copy)]
pub(super) struct Stretch {
    pub(super) from: f64,
    pub(super) to: f64,
}

/// Contains nothing.
pub(super) const NOWHERE: Stretch = Stretch { from: f64::INFINITY, to: f64::NEG_INFINITY };

impl Stretch {
    pub(super) fn contains(&self, x: f64) -> bool {
        self.from < x && x < self.to
    }
    pub(super) fn and(self, other: Stretch) -> Stretch {
        Stretch { from: self.from.max(other.from), to: self.to.min(other.to) }
    }
    pub(super) fn map(self, f: impl Fn(f64) -> f64) -> Stretch {
        Stretch { from: f(self.from), to: if self.to == f64::INFINITY { self.to } else { f(self.to) } }
    }
    /// Well inside; `slope` is that of the lane that decides.
    pub(super) fn inside(self, slope: f64) -> Stretch {
        let margin = |x: f64| MARGIN * x + SHARE_MARGIN / slope;
        let to = if self.to == f64::INFINITY { self.to } else { self.to - margin(self.to) };
        Stretch { from: self.from + margin(self.from), to }
    }
}

/// A straight part of a function of a fit factor.
#[derive(Clone, Copy)]
pub(super) struct Part {
    pub(super) from: f64,
    pub(super) to: f64,
    /// At `from`.
    pub(super) y: Lanes,
    pub(super) slope: Lanes,
    /// Where this is the part, whatever rounding does to it and to those below.
    pub(super) sure: Stretch,
    /// The numbers are those of this part, and not of a place near it.
    pub(super) plain: bool,
}

/// A straight piece of a function of a suggestion, with the fit factor on it.
///
/// What the pool above adds up is in two lines of the cache, the fit factor in a third one.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Piece {
    pub(super) from: f64,
    pub(super) to: f64,
    /// As of parts.
    pub(super) sure: Stretch,
    pub(super) y: Lanes,
    pub(super) slope: Lanes,
    pub(super) plain: bool,
    /// It is that of suggestion 0.
    first: bool,
    /// Where it was in the table of the pool, if it has one: the next one is looked for from there.
    pub(super) knot: u32,
    x: f64,
    pace: f64,
}

/// Contains nothing.
pub(super) const NO_PART: Part =
    Part { from: f64::INFINITY, to: f64::NEG_INFINITY, y: ZERO, slope: ZERO, sure: NOWHERE, plain: false };

/// Contains nothing.
pub(super) const NO_PIECE: Piece = Piece {
    from: f64::INFINITY,
    to: f64::NEG_INFINITY,
    y: ZERO,
    slope: ZERO,
    x: 0.0,
    pace: 0.0,
    sure: NOWHERE,
    knot: 0,
    plain: false,
    first: false,
};

impl Part {
    /// Of one operation.
    pub(super) fn of_operation(from: f64, to: f64, y: Lanes, slope: Lanes) -> Part {
        Part { from, to, y, slope, sure: Stretch { from, to }, plain: true }
    }

    pub(super) fn at(&self, x: f64) -> Lanes {
        map2(&self.y, &self.slope, |y, slope| y + slope * (x - self.from))
    }

    /// Where it leaves a bound, rounded as where functions are followed.
    pub(super) fn leave(&self, bound: &Lanes) -> (f64, Lanes) {
        let (a, b) = (self.y, self.at(self.to));
        let mut t = 1.0;
        for r in 0..5 {
            if b[r] > bound[r] && b[r] > a[r] {
                t = f64::min(t, (bound[r] - a[r]) / (b[r] - a[r]));
            }
        }
        let x = on_line(self.from, self.to, t);
        (x, between(&a, &b, (x - self.from) / (self.to - self.from)))
    }

    /// Whether a place is surely here; `slope` is that of the lane that decides.
    pub(super) fn holds(&self, x: f64, slope: f64) -> bool {
        self.plain && self.sure.inside(slope).contains(x)
    }

    /// Adds what another one takes from the start of this one on.
    #[inline]
    pub(super) fn add(&mut self, part: &Part) {
        self.add_straight(part.from, &part.y, &part.slope);
    }

    /// The same for what takes `y` at `from`.
    #[inline]
    pub(super) fn add_straight(&mut self, from: f64, y: &Lanes, slope: &Lanes) {
        let on = self.from - from;
        for r in 0..5 {
            self.y[r] += y[r] + slope[r] * on;
            self.slope[r] += slope[r];
        }
    }

    /// All lanes go on straight at a place where one is at a limit, and none has been at suggestion 1 before,
    /// where the function ends.
    pub(super) fn goes_on(&self, guarantee: &Lanes, y: &Lanes) -> bool {
        (0..5).all(|r| self.slope[r] > 0.0 || y[r] - guarantee[r] < 1.0)
    }

    /// By suggestion, which is the largest lane above the guarantee: as far as the part goes and the lane
    /// that is ahead at `x` is so.
    pub(super) fn to_piece(self, guarantee: &Lanes, x: f64, end: f64) -> Piece {
        let y = self.at(x);
        let ahead = |r: usize| y[r] - guarantee[r];
        let mut lead = 0;
        for r in 1..5 {
            if ahead(r) > ahead(lead) || (ahead(r) == ahead(lead) && self.slope[r] > self.slope[lead]) {
                lead = r;
            }
        }
        let first = |r: usize| self.y[r] - guarantee[r];
        // Which of equal lanes it is must not depend on the place.
        let same = |r: usize, s: usize| {
            (first(r) - first(s)).abs() <= NOISE
                && (self.slope[r] - self.slope[s]).abs() <= NOISE * self.slope[s]
        };
        lead = (0..lead).find(|r| same(*r, lead)).unwrap_or(lead);
        let pace = self.slope[lead];
        if pace <= 0.0 {
            return Piece::unknown(ahead(lead), &y);
        }
        let (mut from, mut to) = (self.from, self.to);
        let mut sure = self.sure.inside(pace);
        for r in 0..5 {
            let (behind, faster) = (first(lead) - first(r), self.slope[r] - pace);
            // Lanes that start together part at once or never.
            if r == lead || same(r, lead) || (behind == 0.0 && faster <= 0.0) {
                continue;
            }
            // Where the lane is well behind the one that leads: `so_far` behind at the start of the part, and
            // nearer to it with every step at this speed.
            let so_far = behind - MARGIN * first(lead) - LANE_MARGIN;
            let speed = faster + MARGIN * pace;
            let meet = self.from + so_far / speed;
            if speed > 0.0 {
                sure.to = sure.to.min(meet);
            } else if speed < 0.0 {
                sure.from = sure.from.max(meet);
            } else if so_far <= 0.0 {
                sure = NOWHERE;
            }
            if faster > 0.0 {
                to = to.min(self.from + behind / faster);
            } else if faster < 0.0 && behind < 0.0 {
                from = from.max(self.from + behind / faster);
            }
        }
        let s = |x: f64| first(lead) + pace * (x - self.from);
        let per_unit = 1.0 / pace;
        let (from_s, to_s) = (s(from), s(to).min(end));
        let sure = sure.map(s);
        Piece {
            from: from_s,
            to: to_s,
            y: self.at(from),
            slope: self.slope.map(|slope| slope * per_unit),
            x: from,
            pace: per_unit,
            sure: Stretch { to: sure.to.min(end), ..sure },
            plain: self.plain,
            ..NO_PIECE
        }
    }
}

impl Piece {
    pub(super) fn ahead(&self, s: f64) -> Lanes {
        map2(&self.y, &self.slope, |y, slope| y + slope * (s - self.from))
    }

    /// Fit factor and value, rounded as where functions are followed.
    pub(super) fn at(&self, s: f64) -> (f64, Lanes) {
        if self.to == f64::INFINITY {
            return (self.x, self.y);
        }
        let t = (s - self.from) / (self.to - self.from);
        let x = on_line(self.x, self.x + self.pace * (self.to - self.from), t);
        (x, between(&self.y, &self.ahead(self.to), t))
    }

    /// Whether it starts at suggestion 0, where the pool has this value, up to rounding.
    pub(super) fn starts_at(&self, y: &Lanes) -> bool {
        let same = (0..5).all(|r| (self.y[r] + self.slope[r] * -self.from - y[r]).abs() < FIRST);
        self.from < SHARE_MARGIN && same
    }

    /// A piece that starts at suggestion 0 starts where the pool is there, whatever rounding makes of it.
    pub(super) fn starting(self, (x, y): (f64, Lanes)) -> Piece {
        if self.starts_at(&y) { Piece { from: 0.0, x, y, ..self } } else { self }
    }

    /// Whether a suggestion is surely here.
    pub(super) fn holds(&self, s: f64) -> bool {
        self.plain && self.sure.contains(s)
    }

    /// Whether this is what would be found again. All suggestions near 0 have the same piece.
    pub(super) fn is_again(&self, s: f64) -> bool {
        if s < FIRST { self.plain && self.first } else { self.holds(s) }
    }

    /// The piece of suggestion 0.
    pub(super) fn as_first(self) -> Piece {
        Piece { first: true, ..self }
    }

    /// Between two breakpoints.
    pub(super) fn from_to(a: &Knot, b: &Knot) -> Piece {
        let per_unit = 1.0 / (b.s - a.s);
        Piece {
            from: a.s,
            to: b.s,
            y: a.y,
            slope: map2(&a.y, &b.y, |a, b| (b - a) * per_unit),
            x: a.x,
            pace: (b.x - a.x) * per_unit,
            sure: Stretch { from: a.s, to: b.s },
            plain: true,
            first: a.s <= FIRST && FIRST < b.s,
            knot: 0,
        }
    }

    /// As found in a table.
    pub(super) fn in_table(self, knot: usize) -> Piece {
        Piece { knot: knot as u32, ..self }
    }

    /// Behind the last breakpoint.
    pub(super) fn last(knot: &Knot) -> Piece {
        Piece { x: knot.x, ..Piece::flat(knot.s, &knot.y) }
    }

    /// The same for all suggestions.
    pub(super) fn flat(from: f64, y: &Lanes) -> Piece {
        let to = f64::INFINITY;
        Piece { from, to, y: *y, x: 1.0, sure: Stretch { from, to }, plain: true, ..NO_PIECE }
    }

    /// Behind the end of the function. There may be a jump to it, so just behind the end nothing is sure.
    pub(super) fn behind(end: f64, y: &Lanes) -> Piece {
        let flat = Piece::flat(end, y);
        Piece { sure: flat.sure.inside(1.0), ..flat }
    }

    /// In front of a jump: the suggestion passes its height while the pool stays where it is.
    pub(super) fn waiting(from: f64, to: f64, x: f64, y: &Lanes) -> Piece {
        let sure = Stretch { from: from + SHARE_MARGIN, to: to - SHARE_MARGIN };
        Piece { to, x, sure, ..Piece::flat(from, y) }
    }

    /// Nothing can be said but about how much it is.
    pub(super) fn unknown(s: f64, y: &Lanes) -> Piece {
        Piece { to: s, plain: false, ..Piece::flat(s, y) }
    }
}
