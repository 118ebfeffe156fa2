//! What a pool takes at one far place, without everything on the way there.
//!
//! `limited_demand_share` of a pool that its children would bring beyond its limits lies far behind the
//! place where the cluster is full: following the functions of all pools below up to there would be most
//! of the work of an update. Pools whose children are operations are followed, for they are small; above
//! them the place is found by Newton's method on the sums. The functions are piecewise linear, so the last
//! step is exact as soon as the straight part that contains the place is found. Where there is none,
//! because a child jumps over it, or after too many steps, the caller follows the functions after all.
//!
//! The search starts at 0 and looks at nothing but the subtree: its result is a function of that.

use super::Engine;
use super::knots::NONE;
use super::lanes::{Lanes, ZERO, map2};
use super::leaf::Place;

/// Pools with more levels below would multiply the steps of each.
pub(super) const LEVELS: u8 = 3;
const STEPS: usize = 48;

/// A straight part of a function around an argument.
#[derive(Clone, Copy)]
struct Part {
    y: Lanes,
    slope: Lanes,
    from: f64,
    to: f64,
}

/// Where all lanes are still within a bound, and one is at it.
pub(super) struct Found {
    x: f64,
    pub(super) y: Lanes,
    part: Part,
}

impl Found {
    /// All lanes go on straight there, and none has been at suggestion 1 before, where the function ends.
    pub(super) fn is_plain(&self, guarantee: &Lanes) -> bool {
        let inside = self.part.from < self.x && self.x < self.part.to && self.x < 1.0;
        inside && (0..5).all(|r| self.part.slope[r] > 0.0 || self.y[r] - guarantee[r] < 1.0)
    }
}

impl Engine {
    /// The last place of `by_fit` within a bound, for a pool with pools below.
    pub(super) fn last_within(&mut self, id: u32, bound: &Lanes) -> Option<Found> {
        let (mut lo, mut hi) = (0.0, f64::INFINITY);
        let mut x = self.guess[id as usize];
        for _ in 0..STEPS {
            let part = self.sum_part(id, x)?;
            let beyond = (0..5).any(|r| part.y[r] > bound[r]);
            // Signed: how far to the bound in the lane that gets there first, or has to go back most.
            let mut step = if beyond { 0.0 } else { f64::INFINITY };
            for r in 0..5 {
                let rest = bound[r] - part.y[r];
                if part.slope[r] > 0.0 && (!beyond || rest < 0.0) {
                    step = f64::min(step, rest / part.slope[r]);
                } else if rest < 0.0 {
                    step = f64::NEG_INFINITY;
                }
            }
            let there = x + step;
            if there.is_finite() && part.from <= there && there <= part.to && there <= 1.0 {
                self.guess[id as usize] = x.min(there);
                let y = std::array::from_fn(|r| part.y[r] + part.slope[r] * step);
                return Some(Found { x: there, y, part });
            }
            if beyond {
                hi = x;
            } else {
                lo = x;
            }
            x = match beyond {
                _ if lo < there && there < hi.min(1.0) => there,
                false if !hi.is_finite() => 1.0,
                _ => lo + (hi - lo) / 2.0,
            };
            if x == lo || x == hi {
                return None;
            }
        }
        None
    }

    /// The part of `by_fit` of a fair-share pool at and right behind a fit factor.
    fn sum_part(&mut self, id: u32, x: f64) -> Option<Part> {
        let stream = &self.streams[id as usize];
        let slots = stream.slot as usize..(stream.slot + stream.count) as usize;
        let mut sum = Part { y: ZERO, slope: ZERO, from: 0.0, to: 1.0 };
        for slot in slots {
            let ratio = self.ratios[slot];
            let part = self.child_part(slot, (x * ratio).min(1.0))?;
            sum.y = map2(&sum.y, &part.y, |a, b| a + b);
            sum.slope = map2(&sum.slope, &part.slope, |a, b| a + b * ratio);
            sum.from = sum.from.max(part.from / ratio);
            sum.to = sum.to.min(part.to / ratio);
        }
        Some(sum)
    }

    /// The part of a child's `by_sugg`.
    fn child_part(&mut self, slot: usize, s: f64) -> Option<Part> {
        let id = self.stream_of_slot[slot];
        if id == NONE {
            return Some(self.leaf_part(slot, s));
        }
        if self.levels[id as usize] == 1 {
            return Some(self.followed_part(id, s));
        }
        let guarantee = self.begun(id).0;
        let full = self.leaves[slot].full;
        let end = super::lanes::top(&map2(&full, &guarantee, |y, g| y - g));
        if s >= end {
            return Some(Part { y: full, slope: ZERO, from: end, to: f64::INFINITY });
        }
        let Found { x, y, part } = self.last_within(id, &guarantee.map(|g| g + s))?;
        let above = |r: usize| y[r] - guarantee[r];
        let mut lead = 0;
        for r in 1..5 {
            if above(r) > above(lead) || (above(r) == above(lead) && part.slope[r] > part.slope[lead]) {
                lead = r;
            }
        }
        let pace = part.slope[lead];
        if pace <= 0.0 {
            return None;
        }
        // Up to where the part ends or another lane gets ahead.
        let (mut from, mut to) = (x - part.from, part.to - x);
        for r in 0..5 {
            let (behind, faster) = (above(lead) - above(r), part.slope[r] - pace);
            if faster > 0.0 {
                to = to.min(behind / faster);
            } else if faster < 0.0 {
                from = from.min(behind / -faster);
            }
        }
        let slope = part.slope.map(|slope| slope / pace);
        Some(Part { y, slope, from: s - from * pace, to: (s + to * pace).min(end) })
    }

    /// Of a pool whose breakpoints are followed.
    fn followed_part(&mut self, id: u32, s: f64) -> Part {
        let mut reader = self.near(id, s);
        let mut here = reader;
        let mut before: Option<(f64, Lanes)> = None;
        loop {
            let stream = &mut self.streams[id as usize];
            let next = reader;
            match (self.store.read(&stream.curve.knots, &mut reader), before) {
                (Some(knot), Some((from, y))) if knot.s > s => {
                    stream.near = here;
                    return straight((from, &y), (knot.s, &knot.y), s);
                }
                (Some(knot), _) => (before, here) = (Some((knot.s, knot.y)), next),
                (None, Some((from, y))) if stream.curve.ended => {
                    stream.near = here;
                    return flat(from, &y);
                }
                (None, _) => self.pull(id),
            }
        }
    }

    fn leaf_part(&self, slot: usize, s: f64) -> Part {
        let leaf = &self.leaves[slot];
        let (mut place, mut a) = (Place::default(), (0.0, ZERO));
        while let Some(b) = leaf.next(&mut place) {
            if b.0 > s {
                return straight((a.0, &a.1), (b.0, &b.1), s);
            }
            a = b;
        }
        flat(a.0, &a.1)
    }

    /// Guarantee and limits of a pool, pulled up to what it takes in any case.
    pub(super) fn begun(&mut self, id: u32) -> (Lanes, Lanes) {
        while self.streams[id as usize].curve.knots.len() == 0 {
            self.pull(id);
        }
        self.streams[id as usize].curve.bounds()
    }
}

fn straight(a: (f64, &Lanes), b: (f64, &Lanes), s: f64) -> Part {
    let per_unit = 1.0 / (b.0 - a.0);
    let slope = map2(a.1, b.1, |a, b| (b - a) * per_unit);
    let y = map2(a.1, &slope, |y, slope| y + slope * (s - a.0));
    Part { y, slope, from: a.0, to: b.0 }
}

fn flat(from: f64, y: &Lanes) -> Part {
    Part { y: *y, slope: ZERO, from, to: f64::INFINITY }
}
