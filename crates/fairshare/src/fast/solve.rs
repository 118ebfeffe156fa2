//! Where a pool stands at one place, without everything on the way there.
//!
//! `by_fit` of a pool is straight between the breakpoints of its children. So the fit factor at which it
//! leaves a bound is found by Newton's method on the sums, kept between two places of which one is too low
//! and the other too high; the last step is exact as soon as the straight part that contains the place is
//! found, or the two parts between which there is a jump over it. It starts where the last search ended. A
//! child that is a pool is searched in the same way, unless the piece that it was last found on still
//! contains the place.
//!
//! What is found must not depend on where the search started. Therefore a place too near to the end of a
//! part (or of the part of any child) is not accepted: nobody could tell on which side rounding puts it (see
//! [`super::part`]). Where that is so, the caller follows the functions from the start ([`super::merge`]).

use super::Engine;
use super::knots::{Knot, NONE};
use super::lanes::{Lanes, ZERO, map2, max, min, top, within};
use super::leaf::Place;
#[cfg(doc)]
use super::merge::Stream;
use super::part::{FIRST, MARGIN, NO_PART, NOISE, NOWHERE, Part, Piece, SHARE_MARGIN};

/// What a search is for: places of different searches are far from each other, and each has its own memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Search {
    /// The fair share.
    Near = 0,
    /// The limited demand of the pool or of one above that has an even number of levels.
    Far = 1,
    /// An integral guarantee.
    Trial = 2,
    /// Fit factor 0, where everything starts.
    Start = 3,
    /// Where a pool leaves its own guarantee, which is its suggestion 0.
    Zero = 4,
    /// The limited demand of the pool or of one above that has an odd number of levels.
    Further = 5,
}
pub(super) const SEARCHES: usize = 6;
/// Beside the bits of searches: of blocks, that their sum of demands is known;
pub(super) const DEMAND: u8 = 1 << SEARCHES;
/// of streams, that there is a segment;
pub(super) const SEGMENT: u16 = 1 << SEARCHES;
/// that nothing is taken at suggestion 0, which is fit factor 0;
const NOTHING: u16 = 1 << (SEARCHES + 1);
/// that what is taken at fit factor 0 is beyond the limits;
pub(super) const INFEASIBLE: u16 = 1 << (SEARCHES + 2);
/// and that [`Stream::sum`], [`Stream::begun`] and [`Stream::zero`] are found.
const SUM: u16 = 1 << (SEARCHES + 3);
const BEGUN: u16 = 1 << (SEARCHES + 4);
const ZERO_IS_FOUND: u16 = 1 << (SEARCHES + 5);

impl Search {
    pub(super) fn bit(self) -> u8 {
        1 << self as u8
    }
    fn of_stream(self) -> u16 {
        u16::from(self.bit())
    }
}

/// So many operations are added up together; those that have not changed since then stay so.
pub(super) const BLOCK: usize = 16;
/// Pools with more levels below would multiply the steps of each.
const LEVELS: u8 = 6;
const STEPS: usize = 96;
/// After so many steps a search only halves.
const NEWTON: usize = 24;
/// Relative distance between two places that only rounding has made two.
const SAME_PLACE: f64 = 1e-14;
/// Relative distance from a place where nothing can be said to one where it can: margins of all levels.
const NUDGE: f64 = 2e-8;
/// Nothing between two places that are so near to each other could be accepted.
const CLOSE: f64 = MARGIN / 4.0;

/// Where a pool leaves a bound.
pub(super) enum Found {
    /// Nowhere: it may have everything.
    All,
    /// At this fit factor of a straight part, with this value.
    Here(f64, Lanes, Part),
    /// It jumps over the bound at this fit factor, from the first value to the second one.
    Jump(f64, Lanes, Lanes),
    /// About there on this straight part, too near to its end to be sure.
    Near(f64, Part),
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
        if self.found[id as usize] & SUM != 0 {
            return stream.sum;
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
                let block = block as usize + i;
                let kept = &mut self.demands[block];
                if self.known[block] & DEMAND == 0 {
                    let leaves = &self.leaves[start..(start + BLOCK).min(slot + count)];
                    *kept = leaves.iter().fold(ZERO, |sum, leaf| map2(&sum, &leaf.full, |a, b| a + b));
                    self.known[block] |= DEMAND;
                }
                sum = map2(&sum, kept, |a, b| a + b);
            }
        }
        self.streams[id as usize].sum = sum;
        self.found[id as usize] |= SUM;
        sum
    }

    /// Guarantee and limits of a pool, pulled up to what it takes in any case.
    pub(super) fn bounds(&mut self, id: u32, search: Search) -> (Lanes, Lanes) {
        let y = self.at_start(id, search);
        let stream = &self.streams[id as usize];
        let limits = max(&stream.limits, &y);
        let guarantee = min(&max(&stream.guarantee, &y), &limits);
        (guarantee, limits)
    }

    /// What a pool takes at fit factor 0: what children take within their guarantees.
    fn at_start(&mut self, id: u32, search: Search) -> Lanes {
        let stream = &self.streams[id as usize];
        if self.levels[stream.main as usize] == 1 {
            return ZERO;
        }
        if self.found[id as usize] & BEGUN != 0 {
            return stream.begun;
        }
        let mut y = ZERO;
        for slot in stream.slot as usize..(stream.slot + stream.count) as usize {
            match self.stream_of_slot[slot] {
                NONE => {}
                child if self.found[child as usize] & NOTHING != 0 => {}
                child => y = map2(&y, &self.at_zero(child, search).1, |a, b| a + b),
            }
        }
        self.streams[id as usize].begun = y;
        self.found[id as usize] |= BEGUN;
        y
    }

    /// What a pool takes within its guarantee, `by_sugg(0)`, and the fit factor.
    pub(super) fn at_zero(&mut self, id: u32, search: Search) -> (f64, Lanes) {
        let found = self.found[id as usize];
        if found & NOTHING != 0 {
            return (0.0, ZERO);
        }
        if found & ZERO_IS_FOUND != 0 {
            return self.streams[id as usize].zero;
        }
        let zero = self.find_at_zero(id, search);
        if zero == (0.0, ZERO) {
            self.found[id as usize] |= NOTHING;
        } else {
            self.streams[id as usize].zero = zero;
            self.found[id as usize] |= ZERO_IS_FOUND;
        }
        zero
    }

    fn find_at_zero(&mut self, id: u32, search: Search) -> (f64, Lanes) {
        if self.is_swept(id) && self.bounds(id, search).0 == ZERO {
            return (0.0, ZERO);
        }
        if self.is_searched(id) {
            let (guarantee, _) = self.bounds(id, search);
            let y = self.at_start(id, search);
            if y == guarantee {
                return (0.0, y);
            }
            let first = self.sum_part(id, 0.0, Search::Start);
            // A guarantee is often the sum of those below, up to rounding.
            if (0..5).any(|r| y[r] >= guarantee[r] - NOISE && first.slope[r] > 0.0) {
                return (0.0, y);
            }
            match self.solve(id, &guarantee, Search::Zero) {
                Found::All => return (1.0, self.sum_of_demands(id)),
                Found::Here(x, y, _) => return (x, y),
                Found::Jump(x, y, _) => return (x, y),
                Found::Near(..) | Found::Unclear(_) => {}
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
        let full = self.streams[id as usize].full;
        if s >= 1.0 || s > self.end(id) {
            if full == self.sum_of_demands(id) {
                return Some((self.streams[id as usize].right_bound(), full));
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

    /// Behind this suggestion a pool is at its limited demand. At the end itself there may be a jump, behind
    /// which a suggestion of 1 never is.
    #[inline]
    pub(super) fn end(&mut self, id: u32) -> f64 {
        let (guarantee, _) = self.bounds(id, Search::Near);
        let end = top(&map2(&self.streams[id as usize].full, &guarantee, |y, g| y - g));
        end + MARGIN * end + SHARE_MARGIN
    }

    /// What a pool takes at a suggestion, whether that is beyond its limits or not.
    pub(super) fn taken(&mut self, id: u32, s: f64, search: Search) -> Option<Lanes> {
        if !self.is_searched(id) {
            return None;
        }
        let (guarantee, limits) = self.bounds(id, search);
        match self.solve(id, &min(&guarantee.map(|g| g + s), &limits), search) {
            Found::All => Some(self.sum_of_demands(id)),
            Found::Here(_, y, part) => Some(y).filter(|_| part.goes_on(&guarantee, &y)),
            Found::Jump(_, y, _) => Some(y),
            Found::Near(..) | Found::Unclear(_) => None,
        }
    }

    /// The root is given all that it would take, so that is where it will stand. Where a pool leaves its own
    /// limits is far from where it stands when the pool above leaves its limits.
    pub(super) fn search_of_demand(&self, id: u32) -> Search {
        match self.levels[self.streams[id as usize].main as usize] % 2 {
            _ if id == self.stream_of[0] => Search::Near,
            0 => Search::Far,
            _ => Search::Further,
        }
    }

    /// Where a pool leaves its limits.
    pub(super) fn at_limits(&mut self, id: u32, search: Search) -> Option<(f64, Lanes)> {
        if !self.is_searched(id) {
            return None;
        }
        let (guarantee, limits) = self.bounds(id, search);
        match self.solve(id, &limits, search) {
            // At the end of a straight part it matters what comes next (4.4).
            Found::Here(x, y, part) if part.goes_on(&guarantee, &y) => Some((x, y)),
            Found::Jump(x, y, _) if top(&map2(&y, &guarantee, |y, g| y - g)) < 1.0 => Some((x, y)),
            _ => None,
        }
    }

    /// The last place of `by_fit` within a bound.
    ///
    /// Where the search starts decides how soon it ends, and nothing else. If the place is sure, the part
    /// that it is on is wider than `CLOSE`, and sure places of the pools below are around it: a search that
    /// has come so near finds it. If it is not, none does.
    ///
    /// A lane that stands still exactly at its bound is within, whatever rounding makes of it: a pool that is
    /// given what it takes at some place stands there in every lane.
    fn solve(&mut self, id: u32, bound: &Lanes, search: Search) -> Found {
        if within(&self.sum_of_demands(id), bound) {
            return Found::All;
        }
        let reach = bound.map(|y| y + NOISE);
        let (mut lo, mut hi) = (0.0, 1.0);
        let (mut below, mut left, mut right) = (ZERO, NO_PART, NO_PART);
        let mut x = self.streams[id as usize].guess[search as usize];
        let mut looked = false;
        for step in 0..STEPS {
            let part = self.sum_part(id, x, search);
            // Where this part leaves the bound, or has left it.
            let (mut there, mut slope) = (f64::INFINITY, 0.0);
            for r in 0..5 {
                if part.slope[r] > 0.0 {
                    let x = part.from + (bound[r] - part.y[r]) / part.slope[r];
                    if x < there {
                        (there, slope) = (x, part.slope[r]);
                    }
                } else if part.y[r] > reach[r] {
                    there = f64::NEG_INFINITY;
                }
            }
            let here = part.plain && part.from <= there && there < part.to.min(1.0);
            if here && part.holds(there, slope) {
                self.streams[id as usize].guess[search as usize] = there;
                let (x, y) = part.leave(bound);
                return Found::Here(x, y, part);
            }
            // Behind its end nothing that has come to its bound may grow any more.
            let passes = part.plain && part.to < 1.0 && within(&part.at(part.to), &reach);
            if here && !passes {
                if looked {
                    return Found::Near(there, part);
                }
                // Seen from there, the pools below may be surer of theirs.
                (x, looked) = (there, true);
                continue;
            }
            if passes || x <= there {
                (lo, below) = (x, part.at(x));
                left = if part.plain { part } else { left };
            } else {
                hi = x;
                right = if part.plain { part } else { right };
            }
            if meet(&left, &right) || hi - lo <= CLOSE * hi {
                break;
            }
            let beside = left.to * (1.0 + NUDGE);
            x = match part.plain && step < NEWTON {
                true if lo < there && there < hi && !here => there,
                true if lo < beside && beside < hi => beside,
                _ => lo + (hi - lo) / 2.0,
            };
        }
        match self.jump(id, bound, search, lo, left, right) {
            Some(found) => found,
            // What is said here is what searches of the pools above go by, so it has to be near the truth.
            None if left.plain && left.to <= hi => Found::Unclear(left.at(left.to)),
            None => Found::Unclear(below),
        }
    }

    /// Whether a pool jumps over a bound at the place that a search has come to: it does if the parts to
    /// both sides are neighbours.
    fn jump(
        &mut self,
        id: u32,
        bound: &Lanes,
        search: Search,
        lo: f64,
        left: Part,
        right: Part,
    ) -> Option<Found> {
        let near = if meet(&left, &right) { left.to } else { lo };
        let (before, after) = (near * (1.0 - NUDGE), near * (1.0 + NUDGE));
        let left = if left.sure.contains(before) { left } else { self.sum_part(id, before, search) };
        let right = if right.sure.contains(after) { right } else { self.sum_part(id, after, search) };
        // Wide enough that they are found from wherever the search has come near.
        let at = left.to;
        let around =
            |part: &Part, a: f64, b: f64| part.sure.from < at * (1.0 + a) && at * (1.0 + b) < part.sure.to;
        if !around(&left, -2.0 * NUDGE, -0.5 * NUDGE) || !around(&right, 0.5 * NUDGE, 2.0 * NUDGE) {
            return None;
        }
        let (a, b) = (left.at(left.to), right.at(right.from));
        let stays = |r: usize| b[r] <= bound[r] + NOISE;
        let jumps = |r: usize| a[r] < bound[r] - SHARE_MARGIN && bound[r] + SHARE_MARGIN < b[r];
        let beyond = !(0..5).all(stays);
        let inside = (0..5).all(|r| stays(r) || jumps(r));
        // Two jumps that are near to each other are not one.
        let one = (right.from - left.to).abs() <= SAME_PLACE * left.to;
        let clear = left.plain && right.plain && one && inside && beyond;
        if !clear || !self.jump_at_once(id, [left.to, right.from], search) {
            return None;
        }
        self.streams[id as usize].guess[search as usize] = left.to;
        Some(Found::Jump(left.to, a, b))
    }

    /// Whether those that jump at a place surely do so at once: one child, or operations at exactly the same
    /// place. If one of several is a pool, rounding may set them apart, and only who follows them can tell.
    /// Given are the first and the last place at which any of them bends.
    fn jump_at_once(&mut self, id: u32, [at, last]: [f64; 2], search: Search) -> bool {
        let stream = &self.streams[id as usize];
        if at == last && self.levels[stream.main as usize] == 1 {
            return true;
        }
        let slots = stream.slot as usize..(stream.slot + stream.count) as usize;
        let (before, after) = (at * (1.0 - NUDGE), at * (1.0 + NUDGE));
        let (mut pools, mut place) = (0, None);
        for slot in slots {
            let child = self.stream_of_slot[slot];
            if child == NONE {
                let left = self.leaf_part(slot, before);
                if jumps(&left.at(at), &self.leaf_part(slot, after).at(at))
                    && place.replace(left.to).is_some_and(|other| other != left.to)
                {
                    return false;
                }
            } else {
                let ratio = self.ratios[slot];
                let left = self.kept_piece(child, before * ratio, search).ahead(at * ratio);
                let right = self.kept_piece(child, after * ratio, search).ahead(at * ratio);
                pools += u32::from(jumps(&left, &right));
            }
        }
        pools == 0 || (pools == 1 && place.is_none())
    }

    /// The part of `by_fit` at and right behind a fit factor.
    fn sum_part(&mut self, id: u32, x: f64, search: Search) -> Part {
        let stream = &self.streams[id as usize];
        let (slot, count, block) = (stream.slot as usize, stream.count as usize, stream.block as usize);
        let pools = self.levels[stream.main as usize] > 1;
        let first = search as usize * self.demands.len() + block;
        let blocks = first..first + if stream.operations { count.div_ceil(BLOCK) } else { 0 };
        let mut sum = Part::of_operation(0.0, f64::INFINITY, ZERO, ZERO);
        for (i, b) in blocks.clone().enumerate() {
            let (part, known) = (&self.blocks[b], self.known[block + i] & search.bit() != 0);
            if !(known && part.from <= x && x < part.to) {
                let start = slot + i * BLOCK;
                self.blocks[b] = self.block_part(start, (start + BLOCK).min(slot + count), x);
                self.known[block + i] |= search.bit();
            }
            let part = &self.blocks[b];
            (sum.from, sum.to) = (sum.from.max(part.from), sum.to.min(part.to));
        }
        (sum.sure.from, sum.sure.to) = (sum.from, sum.to);
        let slots = if pools { slot..slot + count } else { slot..slot };
        for slot in slots.clone() {
            let (child, ratio) = (self.stream_of_slot[slot], self.ratios[slot]);
            if child == NONE {
                continue;
            }
            let piece = self.kept_piece(child, x * ratio, search);
            (sum.from, sum.to) = (sum.from.max(piece.from / ratio), sum.to.min(piece.to / ratio));
            (sum.sure, sum.plain) = (sum.sure.and(piece.sure.map(|s| s / ratio)), sum.plain && piece.plain);
        }
        for part in &self.blocks[blocks] {
            sum.add(part);
        }
        let kept = search as usize * self.streams.len();
        for slot in slots {
            let (child, ratio) = (self.stream_of_slot[slot], self.ratios[slot]);
            if child == NONE {
                continue;
            }
            let piece = &self.pieces[kept + child as usize];
            sum.add_straight(piece.from / ratio, &piece.y, &piece.slope.map(|slope| slope * ratio));
        }
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
        let mut sum = Part::of_operation(from, to, ZERO, ZERO);
        for part in &parts[..n] {
            sum.add(part);
        }
        sum
    }

    /// Of one operation, by fit factor of its parent. A call for each would make a search of a wide pool take a
    /// sixth longer.
    #[inline(always)]
    fn leaf_part(&self, slot: usize, x: f64) -> Part {
        let (leaf, ratio) = (&self.leaves[slot], self.ratios[slot]);
        let end = leaf.top / ratio;
        if x >= end {
            return Part::of_operation(end, f64::INFINITY, leaf.full, ZERO);
        }
        if leaf.is_straight() {
            let per_unit = 1.0 / end;
            return Part::of_operation(0.0, end, ZERO, leaf.full.map(|y| y * per_unit));
        }
        let (mut place, mut a) = (Place::default(), (0.0, ZERO));
        while let Some((s, y)) = leaf.next(&mut place) {
            let b = (s / ratio, y);
            if b.0 > x {
                let per_unit = 1.0 / (b.0 - a.0);
                let slope = map2(&a.1, &b.1, |a, b| (b - a) * per_unit);
                return Part::of_operation(a.0, b.0, a.1, slope);
            }
            a = b;
        }
        Part::of_operation(a.0, f64::INFINITY, a.1, ZERO)
    }

    /// The last piece that was found, if it is that.
    fn kept_piece(&mut self, id: u32, s: f64, search: Search) -> &Piece {
        let at = search as usize * self.streams.len() + id as usize;
        if self.found[id as usize] & search.of_stream() == 0 || !self.pieces[at].is_again(s) {
            self.pieces[at] = match self.is_swept(id) {
                true => self.look_up_piece(id, s, self.pieces[at].knot),
                false => self.piece(id, s, search),
            };
            self.found[id as usize] |= search.of_stream();
        }
        &self.pieces[at]
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
            return Piece::behind(end, &full);
        }
        let zero = self.at_zero(id, search);
        if s < FIRST {
            return self.first_piece(id, &guarantee, zero, end);
        }
        // Whether a suggestion is surely here is a matter of the piece: who has kept it asks nothing else.
        let piece = match self.solve(id, &guarantee.map(|g| g + s), search) {
            Found::Here(x, _, part) | Found::Near(x, part) => part.to_piece(&guarantee, x, end),
            Found::All => return Piece::unknown(s, &full),
            Found::Jump(x, a, b) => {
                // First the suggestion passes the height of the jump, with the value in front of it.
                let [from, to] = [a, b].map(|y| top(&map2(&y, &guarantee, |y, g| y - g)));
                Piece::waiting(from, to.min(end), x, &a)
            }
            Found::Unclear(y) => return Piece::unknown(s, &y),
        };
        // Where a pool starts is known more exactly than what rounding has made of it on the way back.
        piece.starting(zero)
    }

    /// The piece of `by_sugg` right behind suggestion 0.
    fn first_piece(&mut self, id: u32, guarantee: &Lanes, (x, y): (f64, Lanes), end: f64) -> Piece {
        let part = self.sum_part(id, x, if x == 0.0 { Search::Start } else { Search::Zero });
        let above = top(&map2(&part.at(x), guarantee, |y, g| y - g));
        if above > SHARE_MARGIN {
            // Anywhere else on it the jump is found by its own place, which rounding may have moved.
            let mut piece = Piece::waiting(0.0, above.min(end), x, &y).as_first();
            (piece.plain, piece.sure) = (part.plain, NOWHERE);
            return piece;
        }
        let steepest = top(&part.slope);
        let behind = if steepest > 0.0 { x + FIRST / steepest } else { x };
        part.to_piece(guarantee, behind, end).starting((x, y)).as_first()
    }

    /// Of a pool whose breakpoints are followed.
    fn followed_piece(&mut self, id: u32, s: f64) -> Piece {
        let s = s.max(FIRST);
        let mut reader = self.near(id, s);
        let mut here = reader;
        let mut before: Option<Knot> = None;
        loop {
            let next = reader;
            match (self.read(id, &mut reader).copied(), before) {
                (Some(knot), Some(before)) if knot.s > s => {
                    self.streams[id as usize].near = here;
                    return Piece::from_to(&before, &knot);
                }
                (Some(knot), _) => (before, here) = (Some(knot), next),
                (None, Some(before)) if self.streams[id as usize].curve.ended => {
                    self.streams[id as usize].near = here;
                    return Piece::last(&before);
                }
                (None, _) => self.pull(id),
            }
        }
    }
}

/// Whether two values differ by more than rounding.
fn jumps(a: &Lanes, b: &Lanes) -> bool {
    (0..5).any(|r| (b[r] - a[r]).abs() > SHARE_MARGIN)
}

/// Whether nothing is between two parts, up to rounding.
fn meet(left: &Part, right: &Part) -> bool {
    left.to >= right.from * (1.0 - CLOSE)
}
