//! From what a pool takes at a fit factor to what it takes at a suggestion (fair-share.md 4.4, 4.5).
//!
//! With guarantee `g` and limits `l` the suggestion at which a pool stands at `by_fit(x) = y` is the
//! largest lane of `y - g`; it starts where the first lane leaves `g`, and ends where the first lane leaves
//! `l`. So `by_fit`, `max_fit` and `by_sugg` are one polyline in `(s, x, y)`, which is followed upwards:
//! where `y` stands still in the leading lane, `s` stands and the rest jumps; where `by_fit` jumps, first
//! `s` passes the height of the jump, with the value in front of it, then the value follows.

use super::knots::{Knot, List, Sink};
use super::lanes::{Lanes, ZERO, between, max, min, within};
use super::on_line;
use super::part::NOISE;
use crate::numbers::EPS;

/// The polyline of one pool, as far as it has been followed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Curve {
    pub(crate) knots: List,
    /// Nothing follows; the last value holds up to suggestion 1.
    pub(crate) ended: bool,
    /// The guarantee is exhausted: there is a suggestion.
    started: bool,
    /// What is taken at fit factor 0 is beyond the limits.
    pub(crate) infeasible: bool,
    /// The lane that is ahead at the last breakpoint.
    lead: u8,
    /// Fit factor of the last jump, also of one within the guarantee; and who had jumped then (see [`Knot`]).
    jumped_at: f64,
    passed: u32,
    /// Suggestion at the last breakpoint.
    pub(super) s: f64,
    guarantee: Lanes,
    limits: Lanes,
}

impl Curve {
    /// At fit factor 0, where `y` is taken. Both bounds are pulled up to that.
    pub(crate) fn begin(&mut self, y: &Lanes, guarantee: &Lanes, limits: &Lanes) {
        self.infeasible = (0..5).any(|r| y[r] >= limits[r] + EPS);
        self.limits = max(limits, y);
        self.guarantee = min(&max(guarantee, y), &self.limits);
    }

    /// The straight part from `(x0, a)` to `(x1, b)`.
    #[inline]
    pub(crate) fn rise(&mut self, knots: &mut impl Sink, x0: f64, a: &Lanes, x1: f64, b: &Lanes) {
        if self.started && within(b, &self.limits) {
            // Mostly the lane that is ahead stays so up to the end, and so it was all the way.
            let s = self.ahead(b);
            let lead = usize::from(self.lead);
            if b[lead] - self.guarantee[lead] == s {
                self.push(knots, s, x1, b, 0);
            } else {
                self.climb(knots, x0, a, x1, b);
            }
            return;
        }
        self.rise_to_bound(knots, x0, a, x1, b);
    }

    /// A straight part in which guarantee or limit may end.
    fn rise_to_bound(&mut self, knots: &mut impl Sink, x0: f64, a: &Lanes, x1: f64, b: &Lanes) {
        let (mut x0, mut a, mut x1, mut b) = (x0, *a, x1, *b);
        let limit = leaves(&a, &b, &self.limits, |y, limit| y > limit);
        if let Some((t, _)) = limit {
            let x = on_line(x0, x1, t);
            b = between(&a, &b, (x - x0) / (x1 - x0));
            x1 = x;
        }
        if !self.started {
            match leaves(&a, &b, &self.guarantee, beyond) {
                Some((t, r)) => {
                    let mut y = between(&a, &b, t);
                    y[r] = self.guarantee[r];
                    (x0, a) = (on_line(x0, x1, t), y);
                    self.start(knots, x0, &a);
                }
                // The end may be here: then it is also the start.
                None if limit.is_some() => self.start(knots, x1, &b),
                None => {}
            }
        }
        if self.started && !self.ended {
            self.climb(knots, x0, &a, x1, &b);
        }
        self.ended |= limit.is_some();
    }

    /// A jump at `x` from `a` to `b`. `grows` tells which lanes go on growing right behind it: one that
    /// only touches its limit there would leave it at once, and so the jump is never made (4.4).
    pub(crate) fn jump(
        &mut self,
        knots: &mut impl Sink,
        x: f64,
        a: &Lanes,
        b: &Lanes,
        passed: u32,
        grows: impl Fn(usize) -> bool,
    ) {
        let stops = |r: usize| b[r] > self.limits[r] || (b[r] == self.limits[r] && grows(r));
        if (0..5).any(stops) {
            if !self.started {
                self.start(knots, x, a);
            }
            self.ended = true;
            return;
        }
        if !self.started {
            // The same at the guarantee: the place that it is exhausted at is in front of the jump.
            let guarantee = self.guarantee;
            if !(0..5).any(|r| beyond(b[r], guarantee[r]) || (b[r] >= guarantee[r] && grows(r))) {
                (self.jumped_at, self.passed) = (x, passed);
                return;
            }
            self.start(knots, x, a);
        }
        let s = self.ahead(b);
        self.arrive(knots, s, x, a);
        (self.jumped_at, self.passed) = (x, passed);
        self.arrive(knots, s, x, b);
        self.find_lead(b);
    }

    /// The right bound of `by_fit`, where nothing jumps any more.
    pub(crate) fn finish(&mut self, knots: &mut impl Sink, x: f64, y: &Lanes) {
        if !self.started {
            self.start(knots, x, y);
        }
        self.ended = true;
    }

    fn start(&mut self, knots: &mut impl Sink, x: f64, y: &Lanes) {
        self.started = true;
        let y = min(y, &self.guarantee);
        self.arrive(knots, 0.0, x, &y);
        self.find_lead(&y);
    }

    fn find_lead(&mut self, y: &Lanes) {
        let s = self.ahead(y);
        self.lead = (0..5).find(|r| y[*r] - self.guarantee[*r] == s).unwrap_or(0) as u8;
    }

    /// The largest lane above the guarantee.
    #[inline]
    fn ahead(&self, y: &Lanes) -> f64 {
        super::lanes::top(&super::lanes::map2(y, &self.guarantee, |y, g| y - g))
    }

    /// Follows the largest lane; where another one overtakes it there is a breakpoint.
    fn climb(&mut self, knots: &mut impl Sink, x0: f64, a: &Lanes, x1: f64, b: &Lanes) {
        let guarantee = self.guarantee;
        let above = |r: usize| a[r] - guarantee[r];
        let grows = |r: usize| b[r] - a[r];
        let mut lead = 0;
        for r in 1..5 {
            if above(r) > above(lead) || (above(r) == above(lead) && grows(r) > grows(lead)) {
                lead = r;
            }
        }
        self.lead = lead as u8;
        let mut at = 0.0;
        loop {
            let mut next = (1.0, lead);
            for r in 0..5 {
                let faster = grows(r) - grows(lead);
                if faster > 0.0 {
                    let t = (above(lead) - above(r)) / faster;
                    if t > at && t < next.0 {
                        next = (t, r);
                    }
                }
            }
            if next.0 >= 1.0 {
                self.arrive(knots, self.ahead(b), x1, b);
                return;
            }
            let t = next.0;
            self.arrive(knots, above(lead) + grows(lead) * t, on_line(x0, x1, t), &between(a, b, t));
            (at, lead) = next;
            self.lead = lead as u8;
            if self.ended {
                return;
            }
        }
    }

    /// A breakpoint that may be where children have jumped: a straight part has no length if it begins at a
    /// limit, and a guarantee may end there.
    fn arrive(&mut self, knots: &mut impl Sink, s: f64, x: f64, y: &Lanes) {
        let passed = if x == self.jumped_at { self.passed } else { 0 };
        self.push(knots, s, x, y, passed);
    }

    /// A breakpoint. At suggestion 1 the function ends, with its limit from the left.
    #[inline]
    fn push(&mut self, knots: &mut impl Sink, s: f64, x: f64, y: &Lanes, passed: u32) {
        if self.ended || self.s >= 1.0 {
            self.ended = true;
            return;
        }
        // Rounding does not lead back, nor beyond the end.
        self.s = s.max(self.s).min(1.0);
        self.ended = self.s == 1.0;
        knots.append(&mut self.knots, Knot { s: self.s, x, y: *y, passed });
    }
}

impl Default for Knot {
    fn default() -> Knot {
        Knot { s: 0.0, x: 0.0, y: ZERO, passed: 0 }
    }
}

/// Whether a lane has left its bound. A pool that is given what it takes at some place stands there in every
/// lane, whatever rounding makes of it; and so says who searches ([`super::solve`]).
#[inline]
fn beyond(y: f64, bound: f64) -> bool {
    y > bound * (1.0 + NOISE)
}

/// Where the way from `a` to `b` leaves the bound in its first lane, and which lane that is.
#[inline]
fn leaves(a: &Lanes, b: &Lanes, bound: &Lanes, beyond: impl Fn(f64, f64) -> bool) -> Option<(f64, usize)> {
    if within(b, bound) {
        return None;
    }
    let mut first: Option<(f64, usize)> = None;
    for r in 0..5 {
        if beyond(b[r], bound[r]) {
            let t = ((bound[r] - a[r]) / (b[r] - a[r])).max(0.0);
            if first.is_none_or(|(other, _)| t < other) {
                first = Some((t, r));
            }
        }
    }
    first
}
