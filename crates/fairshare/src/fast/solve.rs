//! Where a pool stands at one place, without everything on the way there.
//!
//! `by_fit` of a pool is straight between the breakpoints of its children. So the fit factor at which it
//! leaves a bound is found by Newton's method on the sums, kept between two places of which one is too low
//! and the other too high; the last step is exact as soon as the straight part that contains the place is
//! found, or the two parts between which there is a jump over it. It starts where the last search ended. A
//! child that is a pool is searched in the same way, unless the piece that it was last found on still
//! contains the place.
//!
//! What is found must not depend on where the search started. Therefore a straight part is described by
//! numbers at its left end, which are a function of the subtree, and a place too near to the end of a part
//! (or of the part of any child) is not accepted: nobody could tell on which side rounding puts it. Where
//! that is so, the caller follows the functions from the start (see [`super::merge`]).

use super::knots::{Knot, NONE};
use super::lanes::{Lanes, ZERO, between, map2, max, min, top, within};
use super::leaf::Place;
use super::{Engine, on_line};

/// What a search is for: places of different searches are far from each other, and each has its own memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Search {
    /// The fair share.
    Near = 0,
    /// The limited demand of a pool above.
    Far = 1,
    /// An integral guarantee.
    Trial = 2,
    /// Fit factor 0, where everything starts.
    Start = 3,
    /// Where a pool leaves its own guarantee, which is its suggestion 0.
    Zero = 4,
}
pub(super) const SEARCHES: usize = 5;

/// So many operations are added up together; those that have not changed since then stay so.
pub(super) const BLOCK: usize = 16;
/// Pools with more levels below would multiply the steps of each.
const LEVELS: u8 = 6;
const STEPS: usize = 96;
/// After so many steps a search only halves.
const NEWTON: usize = 24;
/// Distance from the end of a part that rounding cannot bridge: in proportion to the place, and of shares.
const MARGIN: f64 = 1e-9;
const SHARE_MARGIN: f64 = 1e-12;
/// Between the lane that is ahead and any other.
const LANE_MARGIN: f64 = 1e-15;
/// Suggestions below this are as good as 0.
const FIRST: f64 = 1e-11;
/// A search that so often comes to a place where nothing can be said is given up.
const MISSES: u32 = 6;
/// Lanes that differ by no more than this from beginning to end are the same.
const NOISE: f64 = 1e-13;
/// Relative distance between two places that only rounding has made two.
const SAME_PLACE: f64 = 1e-14;
/// Relative distance to a place where nothing can be said to one where it can.
const NUDGE: f64 = 1e-8;
/// Nothing between two places that are so near to each other could be accepted.
const CLOSE: f64 = 1e-10;

/// A straight part of a function of a fit factor.
#[derive(Clone, Copy)]
pub(super) struct Part {
    from: f64,
    to: f64,
    /// At `from`.
    y: Lanes,
    slope: Lanes,
    /// The numbers are those of this part, and not of a place near it.
    plain: bool,
}

/// A straight piece of a function of a suggestion, with the fit factor on it.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    from: f64,
    to: f64,
    y: Lanes,
    slope: Lanes,
    x: f64,
    pace: f64,
    plain: bool,
}

/// Contains nothing.
pub(super) const NO_PART: Part =
    Part { from: f64::INFINITY, to: f64::NEG_INFINITY, y: ZERO, slope: ZERO, plain: false };
/// Contains nothing.
pub(super) const NO_PIECE: Piece = Piece {
    from: f64::INFINITY,
    to: f64::NEG_INFINITY,
    y: ZERO,
    slope: ZERO,
    x: 0.0,
    pace: 0.0,
    plain: false,
};

impl Part {
    fn at(&self, x: f64) -> Lanes {
        map2(&self.y, &self.slope, |y, slope| y + slope * (x - self.from))
    }
    /// Where it leaves a bound, rounded as where functions are followed.
    fn leave(&self, bound: &Lanes) -> (f64, Lanes) {
        let (a, b) = (self.y, self.at(self.to));
        let mut t = 1.0;
        for r in 0..5 {
            if b[r] > bound[r] {
                t = f64::min(t, (bound[r] - a[r]) / (b[r] - a[r]));
            }
        }
        let x = on_line(self.from, self.to, t);
        (x, between(&a, &b, (x - self.from) / (self.to - self.from)))
    }
    /// Well inside; `slope` is that of the lane that decides.
    fn holds(&self, x: f64, slope: f64) -> bool {
        let margin = MARGIN * x + SHARE_MARGIN / slope;
        self.plain && self.from + margin < x && x < self.to - margin
    }
}

impl Piece {
    fn ahead(&self, s: f64) -> Lanes {
        map2(&self.y, &self.slope, |y, slope| y + slope * (s - self.from))
    }
    /// Fit factor and value, rounded as where functions are followed.
    fn at(&self, s: f64) -> (f64, Lanes) {
        if self.to == f64::INFINITY {
            return (self.x, self.y);
        }
        let t = (s - self.from) / (self.to - self.from);
        let x = on_line(self.x, self.x + self.pace * (self.to - self.from), t);
        (x, between(&self.y, &self.ahead(self.to), t))
    }
    /// A piece that starts at suggestion 0 starts where the pool is there, whatever rounding makes of it.
    fn starting(self, (x, y): (f64, Lanes)) -> Piece {
        let same = (0..5).all(|r| (self.y[r] + self.slope[r] * -self.from - y[r]).abs() < FIRST);
        if self.from < SHARE_MARGIN && same { Piece { from: 0.0, x, y, ..self } } else { self }
    }
    /// Well inside.
    fn holds(&self, s: f64) -> bool {
        let margin = MARGIN * s + SHARE_MARGIN;
        self.plain && self.from + margin < s && s < self.to - margin
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
            plain: true,
        }
    }
    /// Behind the last breakpoint.
    pub(super) fn last(knot: &Knot) -> Piece {
        Piece { x: knot.x, ..Piece::flat(knot.s, &knot.y) }
    }
    pub(super) fn flat(from: f64, y: &Lanes) -> Piece {
        Piece { from, to: f64::INFINITY, y: *y, slope: ZERO, x: 1.0, pace: 0.0, plain: true }
    }
}

/// Where a pool leaves a bound.
pub(super) enum Found {
    /// Nowhere: it may have everything.
    All,
    /// At this fit factor of a straight part, with this value.
    Here(f64, Lanes, Part),
    /// It jumps over the bound at this fit factor, from the first value to the second one.
    Jump(f64, Lanes, Lanes),
    /// Too near to a breakpoint. What it takes in front of that.
    Unclear(Lanes),
}

impl Engine {
    /// Whether this is the way to find places of a pool.
    pub(super) fn is_searched(&self, id: u32) -> bool {
        let stream = &self.streams[id as usize];
        !stream.few
            && !stream.fifo
            && !self.improved
            && stream.offered
            && self.levels[stream.main as usize] <= LEVELS
    }

    /// Everything that children would take.
    pub(super) fn sum_of_demands(&mut self, id: u32) -> Lanes {
        let stream = &self.streams[id as usize];
        if let Some(sum) = stream.sum {
            return sum;
        }
        let (slot, count, fifo, block) =
            (stream.slot as usize, stream.count as usize, stream.fifo, stream.block);
        let mut sum = ZERO;
        if fifo {
            for place in slot..slot + count {
                let full = &self.leaves[slot + self.served[place] as usize].full;
                sum = map2(&sum, full, |a, b| a + b);
            }
        } else {
            for (i, start) in (slot..slot + count).step_by(BLOCK).enumerate() {
                let (known, kept) = &mut self.demands[block as usize + i];
                if !*known {
                    let leaves = &self.leaves[start..(start + BLOCK).min(slot + count)];
                    *kept = leaves.iter().fold(ZERO, |sum, leaf| map2(&sum, &leaf.full, |a, b| a + b));
                    *known = true;
                }
                sum = map2(&sum, kept, |a, b| a + b);
            }
        }
        self.streams[id as usize].sum = Some(sum);
        sum
    }

    /// Guarantee and limits of a pool, pulled up to what it takes in any case.
    pub(super) fn bounds(&mut self, id: u32, search: Search) -> (Lanes, Lanes) {
        let stream = &self.streams[id as usize];
        if let Some((_, guarantee, limits)) = stream.begun {
            return (guarantee, limits);
        }
        let (slot, count) = (stream.slot as usize, stream.count as usize);
        let mut y = ZERO;
        if self.levels[stream.main as usize] > 1 {
            for slot in slot..slot + count {
                match self.stream_of_slot[slot] {
                    NONE => {}
                    child => y = map2(&y, &self.at_zero(child, search).1, |a, b| a + b),
                }
            }
        }
        let stream = &mut self.streams[id as usize];
        let limits = max(&stream.limits, &y);
        let guarantee = min(&max(&stream.guarantee, &y), &limits);
        stream.begun = Some((y, guarantee, limits));
        (guarantee, limits)
    }

    /// What a pool takes within its guarantee, `by_sugg(0)`, and the fit factor.
    pub(super) fn at_zero(&mut self, id: u32, search: Search) -> (f64, Lanes) {
        if let Some(zero) = self.streams[id as usize].zero {
            return zero;
        }
        let zero = self.find_at_zero(id, search);
        self.streams[id as usize].zero = Some(zero);
        zero
    }

    fn find_at_zero(&mut self, id: u32, search: Search) -> (f64, Lanes) {
        if self.is_swept(id) && self.bounds(id, search).0 == ZERO {
            return (0.0, ZERO);
        }
        if self.is_searched(id) {
            let (guarantee, _) = self.bounds(id, search);
            let y = self.streams[id as usize].begun.map_or(ZERO, |begun| begun.0);
            if y == guarantee {
                return (0.0, y);
            }
            let first = self.sum_part(id, 0.0, Search::Start);
            // A guarantee is often the sum of those below, up to rounding.
            if (0..5).any(|r| y[r] >= guarantee[r] - NOISE && first.slope[r] > 0.0) {
                return (0.0, y);
            }
            match self.settle(id, &guarantee, Search::Zero) {
                Found::All => return (1.0, self.sum_of_demands(id)),
                Found::Here(x, y, _) => return (x, y),
                Found::Jump(x, y, _) => return (x, y),
                Found::Unclear(_) => {}
            }
        }
        let (x, y, _) = self.at(id, 0.0);
        (x, y)
    }

    /// Where a pool stands at a suggestion. The limited demands of the pool and of those below must be known.
    pub(super) fn place(&mut self, id: u32, s: f64) -> Option<(f64, Lanes)> {
        if !self.is_searched(id) && !self.is_swept(id) {
            return None;
        }
        if s == 0.0 {
            return Some(self.at_zero(id, Search::Near));
        }
        let (guarantee, _) = self.bounds(id, Search::Near);
        let full = self.streams[id as usize].full;
        // At the end itself there may be a jump, behind which a suggestion of 1 never is.
        let end = top(&map2(&full, &guarantee, |y, g| y - g));
        if s >= 1.0 || s > end + MARGIN * end + SHARE_MARGIN {
            if full == self.sum_of_demands(id) {
                return Some((1.0, full));
            }
            if self.is_swept(id) {
                return None;
            }
            return self.at_limits(id, self.search_of_demand(id)).map(|(x, _)| (x, full));
        }
        if self.is_swept(id) {
            return None;
        }
        let piece = self.kept_piece(id, s, Search::Near);
        piece.holds(s).then(|| piece.at(s))
    }

    /// What a pool takes at a suggestion, whether that is beyond its limits or not.
    pub(super) fn taken(&mut self, id: u32, s: f64, search: Search) -> Option<Lanes> {
        if !self.is_searched(id) {
            return None;
        }
        let (guarantee, limits) = self.bounds(id, search);
        match self.settle(id, &min(&guarantee.map(|g| g + s), &limits), search) {
            Found::All => Some(self.sum_of_demands(id)),
            Found::Here(_, y, part) => Some(y).filter(|_| part.goes_on(&guarantee, &y)),
            Found::Jump(_, y, _) => Some(y),
            Found::Unclear(_) => None,
        }
    }

    /// The root is given all that it would take, so that is where it will stand.
    pub(super) fn search_of_demand(&self, id: u32) -> Search {
        if id == self.stream_of[0] { Search::Near } else { Search::Far }
    }

    /// Where a pool leaves its limits.
    pub(super) fn at_limits(&mut self, id: u32, search: Search) -> Option<(f64, Lanes)> {
        if !self.is_searched(id) {
            return None;
        }
        let (guarantee, limits) = self.bounds(id, search);
        match self.settle(id, &limits, search) {
            // At the end of a straight part it matters what comes next (4.4).
            Found::Here(x, y, part) if part.goes_on(&guarantee, &y) => Some((x, y)),
            Found::Jump(x, y, _) if top(&map2(&y, &guarantee, |y, g| y - g)) < 1.0 => Some((x, y)),
            _ => None,
        }
    }

    /// The last place of `by_fit` within a bound. What cannot be said from one side perhaps can from another.
    fn settle(&mut self, id: u32, bound: &Lanes, search: Search) -> Found {
        for guess in [None, Some(0.0), Some(1.0)] {
            if let Some(guess) = guess {
                self.streams[id as usize].guess[search as usize] = guess;
            }
            match self.solve(id, bound, search) {
                Found::Unclear(_) => {}
                found => return found,
            }
        }
        self.streams[id as usize].guess[search as usize] = 0.0;
        Found::Unclear(ZERO)
    }

    /// The same from where the last search ended.
    fn solve(&mut self, id: u32, bound: &Lanes, search: Search) -> Found {
        if within(&self.sum_of_demands(id), bound) {
            return Found::All;
        }
        let (mut lo, mut hi) = (0.0, 1.0);
        let mut misses = 0;
        let (mut below, mut left, mut right) = (ZERO, NO_PART, NO_PART);
        let mut x = self.streams[id as usize].guess[search as usize];
        for step in 0..STEPS {
            let mut part = self.sum_part(id, x, search);
            if !part.plain {
                // Just where a child bends or jumps; nearby it does not.
                x *= 1.0 + NUDGE;
                part = self.sum_part(id, x, search);
                misses += u32::from(!part.plain);
                if misses > MISSES {
                    break;
                }
            }
            let y = part.at(x);
            // Where this part leaves the bound, or has left it.
            let (mut there, mut slope) = (f64::INFINITY, 0.0);
            for r in 0..5 {
                if part.slope[r] > 0.0 {
                    let x = part.from + (bound[r] - part.y[r]) / part.slope[r];
                    if x < there {
                        (there, slope) = (x, part.slope[r]);
                    }
                } else if part.y[r] > bound[r] {
                    there = f64::NEG_INFINITY;
                }
            }
            if part.holds(there, slope) && there < 1.0 {
                self.streams[id as usize].guess[search as usize] = there;
                let (x, y) = part.leave(bound);
                return Found::Here(x, y, part);
            }
            if within(&y, bound) {
                (lo, below, left) = (x, y, part);
            } else {
                (hi, right) = (x, part);
            }
            let beside = left.to * (1.0 + NUDGE);
            let clear = left.plain && right.plain;
            if (clear && left.to >= right.from - CLOSE * hi) || hi - lo <= CLOSE * hi {
                break;
            }
            x = match step {
                _ if step < NEWTON && lo < there && there < hi => there,
                _ if step < NEWTON && lo < beside && beside < hi => beside,
                _ => lo + (hi - lo) / 2.0,
            };
        }
        // The parts are neighbours.
        let (a, b) = (left.at(left.to), right.at(right.from));
        let inside = (0..5).all(|r| a[r] < bound[r] - SHARE_MARGIN);
        let beyond = (0..5).any(|r| b[r] > bound[r] + SHARE_MARGIN);
        // Two jumps that are near to each other are not one.
        let one = (right.from - left.to).abs() <= SAME_PLACE * left.to;
        if left.plain && right.plain && one && inside && beyond {
            self.streams[id as usize].guess[search as usize] = left.to;
            return Found::Jump(left.to, a, b);
        }
        Found::Unclear(below)
    }

    /// The part of `by_fit` at and right behind a fit factor.
    fn sum_part(&mut self, id: u32, x: f64, search: Search) -> Part {
        let stream = &self.streams[id as usize];
        let (slot, count, block) = (stream.slot as usize, stream.count as usize, stream.block as usize);
        let pools = self.levels[stream.main as usize] > 1;
        let first = search as usize * self.demands.len() + block;
        let blocks = first..first + count.div_ceil(BLOCK);
        let (mut from, mut to, mut plain) = (0.0_f64, f64::INFINITY, true);
        for (i, b) in blocks.clone().enumerate() {
            let part = &self.blocks[b];
            if !(part.from <= x && x < part.to) {
                let start = slot + i * BLOCK;
                self.blocks[b] = self.block_part(start, (start + BLOCK).min(slot + count), x);
            }
            let part = &self.blocks[b];
            (from, to) = (from.max(part.from), to.min(part.to));
        }
        let bottom = self.parts.len();
        if pools {
            for slot in slot..slot + count {
                if self.stream_of_slot[slot] == NONE {
                    continue;
                }
                let ratio = self.ratios[slot];
                let piece = self.kept_piece(self.stream_of_slot[slot], x * ratio, search);
                let part = Part {
                    from: piece.from / ratio,
                    to: piece.to / ratio,
                    y: piece.y,
                    slope: piece.slope.map(|slope| slope * ratio),
                    plain: piece.plain,
                };
                (from, to, plain) = (from.max(part.from), to.min(part.to), plain && part.plain);
                self.parts.push(part);
            }
        }
        let mut sum = Part { from, to, y: ZERO, slope: ZERO, plain };
        for part in self.blocks[blocks].iter().chain(&self.parts[bottom..]) {
            for r in 0..5 {
                sum.y[r] += part.y[r] + part.slope[r] * (from - part.from);
                sum.slope[r] += part.slope[r];
            }
        }
        self.parts.truncate(bottom);
        sum
    }

    /// Some operations together.
    fn block_part(&self, start: usize, end: usize, x: f64) -> Part {
        let mut parts = [NO_PART; BLOCK];
        let mut n = 0;
        let (mut from, mut to) = (0.0_f64, f64::INFINITY);
        for slot in start..end {
            if self.stream_of_slot[slot] == NONE {
                let part = self.leaf_part(slot, x);
                (from, to) = (from.max(part.from), to.min(part.to));
                parts[n] = part;
                n += 1;
            }
        }
        let mut sum = Part { from, to, y: ZERO, slope: ZERO, plain: true };
        for part in &parts[..n] {
            for r in 0..5 {
                sum.y[r] += part.y[r] + part.slope[r] * (from - part.from);
                sum.slope[r] += part.slope[r];
            }
        }
        sum
    }

    /// Of one operation, by fit factor of its parent.
    #[inline]
    fn leaf_part(&self, slot: usize, x: f64) -> Part {
        let (leaf, ratio) = (&self.leaves[slot], self.ratios[slot]);
        let end = leaf.top / ratio;
        if x >= end {
            return Part { from: end, to: f64::INFINITY, y: leaf.full, slope: ZERO, plain: true };
        }
        if leaf.is_straight() {
            let per_unit = 1.0 / end;
            return Part { from: 0.0, to: end, y: ZERO, slope: leaf.full.map(|y| y * per_unit), plain: true };
        }
        let (mut place, mut a) = (Place::default(), (0.0, ZERO));
        while let Some((s, y)) = leaf.next(&mut place) {
            let b = (s / ratio, y);
            if b.0 > x {
                let per_unit = 1.0 / (b.0 - a.0);
                let slope = map2(&a.1, &b.1, |a, b| (b - a) * per_unit);
                return Part { from: a.0, to: b.0, y: a.1, slope, plain: true };
            }
            a = b;
        }
        Part { from: a.0, to: f64::INFINITY, y: a.1, slope: ZERO, plain: true }
    }

    /// The last piece that was found, if it is that.
    fn kept_piece(&mut self, id: u32, s: f64, search: Search) -> Piece {
        if self.is_swept(id) {
            return self.look_up_piece(id, s);
        }
        let kept = &self.streams[id as usize].kept[search as usize];
        if kept.from <= s && s < kept.to {
            return *kept;
        }
        let piece = self.piece(id, s, search);
        if piece.plain {
            self.streams[id as usize].kept[search as usize] = piece;
        }
        piece
    }

    /// The piece of `by_sugg` of a pool at and right behind a suggestion. The limited demands of the pool and
    /// of those below must be known.
    fn piece(&mut self, id: u32, s: f64, search: Search) -> Piece {
        if !self.is_searched(id) {
            return self.followed_piece(id, s);
        }
        let (guarantee, _) = self.bounds(id, search);
        let full = self.streams[id as usize].full;
        let end = top(&map2(&full, &guarantee, |y, g| y - g));
        if s >= end {
            return Piece::flat(end, &full);
        }
        let zero = self.at_zero(id, search);
        if s < FIRST {
            return self.first_piece(id, &guarantee, zero, end);
        }
        let (x, part) = match self.solve(id, &guarantee.map(|g| g + s), search) {
            Found::Here(x, _, part) => (x, part),
            Found::All => return Piece { plain: false, ..Piece::flat(s, &full) },
            Found::Jump(x, a, b) => {
                // First the suggestion passes the height of the jump, with the value in front of it.
                let [from, to] = [a, b].map(|y| top(&map2(&y, &guarantee, |y, g| y - g)));
                return Piece { to: to.min(end), x, ..Piece::flat(from, &a) };
            }
            Found::Unclear(y) => return Piece { plain: false, to: s, ..Piece::flat(s, &y) },
        };
        part.to_piece(&guarantee, x, end).starting(zero)
    }

    /// The piece of `by_sugg` right behind suggestion 0.
    fn first_piece(&mut self, id: u32, guarantee: &Lanes, (x, y): (f64, Lanes), end: f64) -> Piece {
        let part = self.sum_part(id, x, if x == 0.0 { Search::Start } else { Search::Zero });
        let above = top(&map2(&part.at(x), guarantee, |y, g| y - g));
        if above > SHARE_MARGIN {
            return Piece { to: above.min(end), x, plain: part.plain, ..Piece::flat(0.0, &y) };
        }
        part.to_piece(guarantee, x, end).starting((x, y))
    }

    /// Of a pool whose breakpoints are followed.
    fn followed_piece(&mut self, id: u32, s: f64) -> Piece {
        let mut reader = self.near(id, s);
        let mut here = reader;
        let mut before: Option<(f64, f64, Lanes)> = None;
        loop {
            let stream = &mut self.streams[id as usize];
            let next = reader;
            match (self.store.read(&stream.curve.knots, &mut reader), before) {
                (Some(knot), Some((from, x, y))) if knot.s > s => {
                    stream.near = here;
                    let per_unit = 1.0 / (knot.s - from);
                    let slope = map2(&y, &knot.y, |a, b| (b - a) * per_unit);
                    let pace = (knot.x - x) * per_unit;
                    return Piece { from, to: knot.s, y, slope, x, pace, plain: true };
                }
                (Some(knot), _) => (before, here) = (Some((knot.s, knot.x, knot.y)), next),
                (None, Some((from, x, y))) if stream.curve.ended => {
                    stream.near = here;
                    return Piece { x, ..Piece::flat(from, &y) };
                }
                (None, _) => self.pull(id),
            }
        }
    }
}

impl Part {
    /// All lanes go on straight at a place where one is at a limit, and none has been at suggestion 1 before,
    /// where the function ends.
    fn goes_on(&self, guarantee: &Lanes, y: &Lanes) -> bool {
        (0..5).all(|r| self.slope[r] > 0.0 || y[r] - guarantee[r] < 1.0)
    }

    /// By suggestion, which is the largest lane above the guarantee: as far as the part goes and the lane
    /// that is ahead at `x` is so.
    fn to_piece(self, guarantee: &Lanes, x: f64, end: f64) -> Piece {
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
            let s = ahead(lead);
            return Piece { plain: false, to: s, ..Piece::flat(s, &y) };
        }
        let (mut from, mut to, mut plain) = (self.from, self.to, self.plain);
        for r in 0..5 {
            let (behind, faster) = (first(lead) - first(r), self.slope[r] - pace);
            // Lanes that start together part at once or never.
            if r == lead || same(r, lead) || (behind == 0.0 && faster <= 0.0) {
                continue;
            }
            plain &= ahead(lead) - ahead(r) > MARGIN * ahead(lead) + LANE_MARGIN;
            if faster > 0.0 {
                to = to.min(self.from + behind / faster);
            } else if faster < 0.0 && behind < 0.0 {
                from = from.max(self.from + behind / faster);
            }
        }
        let s = |x: f64| first(lead) + pace * (x - self.from);
        let per_unit = 1.0 / pace;
        Piece {
            from: s(from),
            to: s(to).min(end),
            y: self.at(from),
            slope: self.slope.map(|slope| slope * per_unit),
            x: from,
            pace: per_unit,
            plain,
        }
    }
}
