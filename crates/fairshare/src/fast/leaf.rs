//! What an operation takes, in closed form (fair-share.md 4.1, 4.4, 4.5).
//!
//! An operation has no guarantee, so its suggestion `s` is its largest share. First the usage is filled,
//! every resource up to `min(s, U)`. Then the way goes on along the straight line from usage to demand,
//! up to the first point at which a resource is at its limit; that point takes the place of the demand.

use vocab::Share;

use super::lanes::{Lanes, ZERO, between, top};

/// `by_sugg` of an operation. Of a pool only [`Leaf::full`] and [`Leaf::top`] are used.
#[derive(Clone, Copy, Default)]
pub(crate) struct Leaf {
    /// Limited demand: what is taken at suggestion 1.
    pub(crate) full: Lanes,
    /// Its largest lane: from this suggestion on nothing grows.
    pub(crate) top: f64,
    base_top: f64,
    /// Usage within limits: where the straight line starts.
    base: Lanes,
    /// Everything or nothing.
    step: bool,
    /// There is a suggestion at which it jumps.
    pub(crate) jumps: bool,
}

/// How far the breakpoints of an operation have been read.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    s: f64,
    /// On the line from usage to demand.
    t: f64,
    lane: u8,
    phase: Phase,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Phase {
    #[default]
    Usage,
    Demand,
    Done,
}

impl Leaf {
    pub(crate) fn new(usage: &Share, demand: &Share, limits: &Share, step: bool) -> Leaf {
        let (usage, demand, limits) = (&usage.0, &demand.0, &limits.0);
        if step {
            // A jump to the limit exactly is taken, one beyond is not, nor is one at suggestion 1.
            let fits = super::lanes::within(demand, limits) && top(demand) < 1.0;
            let full = if fits { *demand } else { ZERO };
            return Leaf { full, top: top(&full), base_top: 0.0, base: ZERO, step, jumps: step };
        }
        // While usage is filled all resources that are not full are equal, so one limit stops them all.
        let lowest = (0..5).filter(|r| usage[*r] > limits[*r]).map(|r| limits[r]).reduce(f64::min);
        let (base, full) = match lowest {
            Some(limit) => {
                let base = usage.map(|u| if limit < u { limit } else { u });
                (base, base)
            }
            // At suggestion 1 functions do not jump any more (4.4).
            None if top(usage) >= 1.0 => (*usage, *usage),
            None => (*usage, line_within(usage, demand, limits)),
        };
        let mut leaf = Leaf { full, top: top(&full), base_top: top(&base), base, step, jumps: false };
        // Behind the usage the suggestion may stand still until something that grows is at the top.
        leaf.jumps = leaf.base_top > 0.0 && leaf.full != leaf.base && leaf.reaching(leaf.base_top).0 > 0.0;
        leaf
    }

    /// Nothing is used: one straight line up to the demand.
    #[inline]
    pub(super) fn is_straight(&self) -> bool {
        self.base_top == 0.0 && !self.step
    }

    /// The value at a suggestion: the limit from the left where there is a jump.
    #[inline]
    pub(crate) fn at(&self, s: f64) -> Lanes {
        if self.step {
            return if s > self.top { self.full } else { ZERO };
        }
        if s <= self.base_top {
            return self.base.map(|u| if s < u { s } else { u });
        }
        if s >= self.top {
            return self.full;
        }
        if self.base_top == 0.0 {
            let t = s / self.top;
            return self.full.map(|x| x * t);
        }
        between(&self.base, &self.full, self.reaching(s).0)
    }

    /// Where the line from usage to demand reaches `s` in its first lane, and which lane that is. Of equal
    /// lanes the one that grows most stays ahead.
    fn reaching(&self, s: f64) -> (f64, usize) {
        let mut first = (1.0, 5);
        for r in 0..5 {
            let grows = self.full[r] - self.base[r];
            if grows > 0.0 {
                let t = (s - self.base[r]) / grows;
                let ahead = |lane: usize| lane < 5 && grows <= self.full[lane] - self.base[lane];
                if t < first.0 || (t == first.0 && !ahead(first.1)) {
                    first = (t, r);
                }
            }
        }
        first
    }

    /// The next breakpoint; the first one, where nothing is taken at suggestion 0, is left out. Two with the
    /// same suggestion are a jump.
    #[inline]
    pub(crate) fn next(&self, place: &mut Place) -> Option<(f64, Lanes)> {
        match place.phase {
            Phase::Done => None,
            // Nothing is used: one straight line.
            Phase::Usage if self.is_straight() => {
                place.phase = Phase::Done;
                (self.top > 0.0).then_some((self.top, self.full))
            }
            _ => self.next_bend(place),
        }
    }

    fn next_bend(&self, place: &mut Place) -> Option<(f64, Lanes)> {
        match place.phase {
            Phase::Done => None,
            _ if self.step => self.next_of_step(place),
            Phase::Usage if place.s < self.base_top => {
                let above = self.base.iter().copied().filter(|u| *u > place.s);
                place.s = above.fold(self.base_top, f64::min);
                Some((place.s, self.base.map(|u| if place.s < u { place.s } else { u })))
            }
            Phase::Usage => {
                let (t, lane) = self.reaching(self.base_top);
                (place.t, place.lane) = (t, lane as u8);
                if lane == 5 && self.full == self.base {
                    place.phase = Phase::Done;
                    return None;
                }
                place.phase = Phase::Demand;
                if t <= 0.0 {
                    return self.next_bend(place);
                }
                // Nothing that grows is at the top yet: the suggestion stays while it catches up.
                self.arrive(place, t, self.base_top)
            }
            Phase::Demand => {
                let lane = usize::from(place.lane);
                let (base, grows) = (self.base[lane], self.full[lane] - self.base[lane]);
                let mut next = (1.0, lane);
                for r in 0..5 {
                    let faster = (self.full[r] - self.base[r]) - grows;
                    if faster > 0.0 {
                        let t = (base - self.base[r]) / faster;
                        if t > place.t && t < next.0 {
                            next = (t, r);
                        }
                    }
                }
                place.lane = next.1 as u8;
                self.arrive(place, next.0, base + grows * next.0)
            }
        }
    }

    fn arrive(&self, place: &mut Place, t: f64, s: f64) -> Option<(f64, Lanes)> {
        place.t = t;
        if t >= 1.0 {
            place.phase = Phase::Done;
            place.s = self.top;
            return Some((self.top, self.full));
        }
        place.s = place.s.max(s);
        Some((place.s, between(&self.base, &self.full, t)))
    }

    fn next_of_step(&self, place: &mut Place) -> Option<(f64, Lanes)> {
        if self.top == 0.0 {
            return None;
        }
        if place.phase == Phase::Usage {
            place.phase = Phase::Demand;
            return Some((self.top, ZERO));
        }
        place.phase = Phase::Done;
        Some((self.top, self.full))
    }
}

/// The last point of the line from usage to demand at which no resource is above its limit.
fn line_within(usage: &Lanes, demand: &Lanes, limits: &Lanes) -> Lanes {
    let mut last = (1.0, 5);
    for r in 0..5 {
        if demand[r] > limits[r] {
            let t = (limits[r] - usage[r]) / (demand[r] - usage[r]);
            if t < last.0 || last.1 == 5 {
                last = (t, r);
            }
        }
    }
    if last.1 == 5 {
        return *demand;
    }
    // By way of the fit factor, which is between 1 and 2 here, so that the rounding is that of the plain
    // form: whether a lane has reached 1 or almost decides what happens above (see `Curve::push`).
    let x = if last.0 < 0.5 { 1.0 + last.0 } else { 2.0 - (1.0 - last.0) };
    between(usage, demand, x - 1.0)
}
