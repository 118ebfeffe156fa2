//! Pools of a few operations: the whole function at once.
//!
//! Most pools have only operations below, and not many. A search of the pools above comes back to such a
//! pool again and again, each time at another suggestion, and most updates do not touch it. So it is worth
//! having its breakpoints side by side: they are worked out in one sweep the first time somebody asks, as
//! far as was needed the last time, stay until the pool changes, and a suggestion is looked up by halving.
//!
//! The sweep takes the same steps in the same order as following the pool would (see [`super::merge`]), so
//! that the numbers are the same to the last bit; only the queue of children is a list sorted beforehand. A
//! FIFO pool has its queue already.

use super::curve::Curve;
use super::knots::{Knot, List, Sink};
use super::lanes::{Lanes, Sums, ZERO, between, map2};
use super::leaf::{Leaf, Place};
use super::merge::STEEP;
use super::part::{FIRST, Piece};
use super::solve::{SEGMENT, Search};
use super::{Engine, NONE, on_line};

/// Children of such a pool. A sweep of more takes longer than the searches that it saves when only some of
/// them change.
pub(crate) const FEW: u32 = 64;

/// Where the breakpoints of a pool are kept.
#[derive(Clone, Copy)]
pub(super) struct Table {
    start: u32,
    len: u32,
    /// Of this stretch of all tables, for more breakpoints in later updates.
    room: u32,
    /// Suggestions below this can be looked up; all of them if the function has ended.
    below: f64,
    /// The highest suggestion that was asked for, of this function and of the one before.
    asked: f64,
    asked_before: f64,
}

/// Of a pool that nobody has asked for yet.
pub(super) const EMPTY: Table =
    Table { start: 0, len: 0, room: 0, below: f64::NEG_INFINITY, asked: 0.0, asked_before: 0.0 };

impl Table {
    /// The place, for another function.
    pub(super) fn emptied(self) -> Table {
        Table { len: 0, below: f64::NEG_INFINITY, asked: 0.0, asked_before: self.asked, ..self }
    }
    pub(super) fn is_known(&self) -> bool {
        self.below > f64::NEG_INFINITY
    }
    /// All breakpoints are here.
    pub(super) fn has_ended(&self) -> bool {
        self.below == f64::INFINITY
    }
}

/// Two breakpoints side by side, in two lines of the cache.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub(super) struct Segment {
    s: [f64; 2],
    x: [f64; 2],
    y: [Lanes; 2],
    /// Suggestions below this are looked up here.
    to: f64,
    number: u32,
}

impl Segment {
    fn new(a: &Knot, b: &Knot, number: u32) -> Segment {
        Segment { s: [a.s, b.s], x: [a.x, b.x], y: [a.y, b.y], to: b.s, number }
    }

    #[inline]
    fn at(&self, s: f64) -> (f64, Lanes, u32) {
        let Segment { s: [a, b], x, y, number, .. } = self;
        let t = (s - a) / (b - a);
        (on_line(x[0], x[1], t), between(&y[0], &y[1], t), *number)
    }
}

/// End of a straight part of an operation, by fit factor of the pool.
#[derive(Clone, Copy)]
struct Bend {
    x: f64,
    /// Growth on the part that ends here.
    slope: Lanes,
    /// Value here.
    y: Lanes,
    child: u32,
    /// The next one is of the same operation.
    goes_on: bool,
    /// The part has no length: it is a jump.
    jumps: bool,
}

/// Tables of all pools, and the room for a sweep.
#[derive(Default)]
pub(super) struct Tables {
    all: Vec<Knot>,
    bends: Vec<Bend>,
    /// Bends by fit factor.
    order: Vec<u32>,
    keys: Vec<u64>,
    /// By child: the bend that it is heading for, or the last one; [`NONE`] if there is none.
    heading: Vec<u32>,
    knots: Vec<Knot>,
}

impl Tables {
    pub(super) fn get(&self, table: &Table) -> &[Knot] {
        &self.all[table.start as usize..(table.start + table.len) as usize]
    }

    /// Puts the breakpoints that were found in place of the old ones. A pool that needs more room than it
    /// has moves behind all others; in the long run none does.
    fn store(&mut self, table: &mut Table, ended: bool) {
        let len = self.knots.len() as u32;
        if len > table.room {
            table.start = self.all.len() as u32;
            table.room = len + len / 2 + 4;
            self.all.resize((table.start + table.room) as usize, Knot::default());
        }
        table.len = len;
        table.below = if ended { f64::INFINITY } else { self.knots.last().map_or(0.0, |last| last.s) };
        self.all[table.start as usize..(table.start + len) as usize].copy_from_slice(&self.knots);
    }
}

impl Sink for Vec<Knot> {
    #[inline]
    fn append(&mut self, _: &mut List, knot: Knot) {
        self.push(knot);
    }
}

impl Engine {
    /// Whether breakpoints of a pool are worked out all at once.
    #[inline]
    pub(super) fn is_swept(&self, id: u32) -> bool {
        let stream = &self.streams[id as usize];
        stream.few && !self.improved
    }

    /// Breakpoints of a pool of few operations, at least up to the next one behind a suggestion. How many
    /// there are beyond that depends on what was asked for before; the numbers do not.
    #[inline]
    pub(super) fn table(&mut self, id: u32, s: f64) -> &[Knot] {
        let table = &mut self.streams[id as usize].table;
        table.asked = table.asked.max(s);
        if s >= table.below {
            self.work_out(id, s);
        }
        self.tables.get(&self.streams[id as usize].table)
    }

    /// Fit factor, value and number of segments up to a suggestion.
    pub(super) fn look_up(&mut self, id: u32, s: f64) -> (f64, Lanes, u32) {
        let near = self.pieces[id as usize + Search::Near as usize * self.streams.len()].knot;
        let knots = self.table(id, s);
        let i = place(knots, near, |knot| knot.s < s);
        match knots.get(i) {
            Some(b) if b.s > s && i > 0 => {
                let segment = Segment::new(&knots[i - 1], b, i as u32);
                self.remember(id, segment);
                segment.at(s)
            }
            Some(knot) => (knot.x, knot.y, i as u32),
            None => knots.last().map_or((1.0, ZERO, 0), |knot| (knot.x, knot.y, i as u32)),
        }
    }

    fn remember(&mut self, id: u32, segment: Segment) {
        let end = self.end(id);
        self.segments[id as usize] = Segment { to: segment.to.min(end).min(1.0), ..segment };
        self.found[id as usize] |= SEGMENT;
    }

    /// What [`Engine::place`] and [`Engine::look_up`] would say, if the suggestion is on the segment that it was
    /// on the last time. In most updates not much more of a large tree is looked at.
    #[inline]
    pub(super) fn look_up_again(&self, id: u32, s: f64) -> Option<(f64, Lanes, u32)> {
        let segment = &self.segments[id as usize];
        let known = self.found[id as usize] & SEGMENT != 0;
        (known && segment.s[0] < s && s < segment.to).then(|| segment.at(s))
    }

    /// The straight piece at and right behind a suggestion.
    /// `near` is where it was the last time.
    pub(super) fn look_up_piece(&mut self, id: u32, s: f64, near: u32) -> Piece {
        let s = s.max(FIRST);
        let knots = self.table(id, s);
        let i = place(knots, near, |knot| knot.s <= s).max(1);
        let a = &knots[i - 1];
        let piece = match knots.get(i) {
            Some(b) => Piece::from_to(a, b),
            None => Piece::last(a),
        };
        piece.in_table(i)
    }

    #[inline(never)]
    fn work_out(&mut self, id: u32, s: f64) {
        let mut tables = std::mem::take(&mut self.tables);
        let stream = &mut self.streams[id as usize];
        let slots = stream.slot as usize..(stream.slot + stream.count) as usize;
        // As far as the function before this one was needed, and to the end if that was not enough. A try
        // with other bounds is asked for one place.
        let until = match stream.table.is_known() {
            _ if stream.main != id => s,
            false => s.max(stream.table.asked_before),
            true => f64::INFINITY,
        };
        let mut curve = Curve::default();
        curve.begin(&ZERO, &stream.guarantee, &stream.limits);
        let leaves = &self.leaves[slots.clone()];
        if stream.fifo {
            tables.serve(&mut curve, leaves, &self.served[slots], until);
        } else {
            tables.collect(leaves, &self.ratios[slots]);
            tables.sweep(&mut curve, until);
        }
        tables.store(&mut stream.table, curve.ended);
        self.tables = tables;
    }
}

#[cfg(test)]
impl Engine {
    /// Tables of which only the first breakpoints have been asked for.
    pub(crate) fn tables_begun(&self) -> usize {
        let tables = self.streams.iter().map(|stream| &stream.table);
        tables.filter(|table| table.is_known() && table.below < f64::INFINITY).count()
    }
}

impl Tables {
    /// All bends of all operations, in order.
    fn collect(&mut self, leaves: &[Leaf], ratios: &[f64]) {
        let Tables { bends, order, keys, heading, .. } = self;
        bends.clear();
        keys.clear();
        heading.clear();
        for (child, (leaf, ratio)) in leaves.iter().zip(ratios).enumerate() {
            let first = bends.len();
            let (mut place, mut from, mut before) = (Place::default(), 0.0, ZERO);
            while let Some((s, y)) = leaf.next(&mut place) {
                let x = s / ratio;
                let per_unit = 1.0 / (x - from);
                // Also where rounding has brought both ends together.
                let jumps = x <= from || !per_unit.is_finite();
                let per_unit = if jumps { 0.0 } else { per_unit };
                let slope = std::array::from_fn(|r| (y[r] - before[r]) * per_unit);
                keys.push(key(x, bends.len()));
                bends.push(Bend { x, slope, y, child: child as u32, goes_on: true, jumps });
                (from, before) = (if jumps { from } else { x }, y);
            }
            heading.push(if first < bends.len() { first as u32 } else { NONE });
            if let Some(last) = bends[first..].last_mut() {
                last.goes_on = false;
            }
        }
        sort(order, keys, bends);
    }

    /// From fit factor 0 to the end of the function, or to a breakpoint beyond a suggestion.
    fn sweep(&mut self, curve: &mut Curve, until: f64) {
        let Tables { bends, order, heading, knots, .. } = self;
        knots.clear();
        let mut sum = Sum { value: Sums::default(), slope: ZERO, steepest: ZERO };
        let (mut x, mut left, mut changes, mut at) = (0.0, ZERO, 0, 0);
        for bend in heading.iter_mut().filter(|bend| **bend != NONE) {
            *bend = sum.enter(bends, &ZERO, *bend);
        }
        loop {
            let value = sum.value.sum;
            if value != left {
                let slope = sum.slope;
                curve.jump(knots, x, &left, &value, u32::MAX, |r| slope[r] > 0.0);
                left = value;
            }
            if curve.ended || curve.s > until {
                return;
            }
            // A bend at the end of a jump was passed with it.
            while order.get(at).is_some_and(|bend| bends[*bend as usize].jumps) {
                at += 1;
            }
            let nearest = order.get(at).map_or(f64::INFINITY, |bend| bends[*bend as usize].x);
            let x1 = nearest.min(1.0);
            sum.value.advance(&sum.slope, x1 - x);
            let first = at;
            while let Some(bend) = order.get(at).map(|bend| &bends[*bend as usize])
                && bend.x == x1
            {
                if !bend.jumps {
                    sum.leave(&bend.slope);
                    changes += 1;
                }
                at += 1;
            }
            if sum.is_worn() || changes > heading.len().max(32) {
                sum.add_up(bends, heading, x1, &left);
                changes = 0;
            }
            let value = sum.value.sum;
            curve.rise(knots, x, &left, x1, &value);
            (x, left) = (x1, value);
            if nearest >= 1.0 {
                if !curve.ended {
                    curve.finish(knots, 1.0, &value);
                }
                return;
            }
            for at in &order[first..at] {
                let bend = &bends[*at as usize];
                if bend.goes_on && !bend.jumps {
                    heading[bend.child as usize] = sum.enter(bends, &bend.y, *at + 1);
                }
            }
        }
    }
}

impl Tables {
    /// The same for a FIFO pool, which satisfies one operation after another.
    fn serve(&mut self, curve: &mut Curve, leaves: &[Leaf], served: &[u32], until: f64) {
        let knots = &mut self.knots;
        knots.clear();
        let (mut x, mut left, mut before) = (0.0, ZERO, ZERO);
        for (start, child) in served.iter().enumerate() {
            let (start, leaf) = (start as f64, &leaves[*child as usize]);
            let mut place = Place::default();
            while let Some((s, y)) = leaf.next(&mut place) {
                let (x1, y) = (start + s, map2(&before, &y, |before, y| before + y));
                if x1 > x {
                    curve.rise(knots, x, &left, x1, &y);
                    x = x1;
                } else {
                    let next = leaf.next(&mut place.clone());
                    let grows = |r: usize| next.is_some_and(|(_, next)| before[r] + next[r] > y[r]);
                    curve.jump(knots, x, &left, &y, u32::MAX, grows);
                }
                left = y;
                if curve.ended || curve.s > until {
                    return;
                }
            }
            // Satisfied: nothing moves up to the next one.
            before = map2(&before, &leaf.full, |before, y| before + y);
            curve.rise(knots, x, &left, start + 1.0, &before);
            (x, left) = (start + 1.0, before);
            if curve.ended || curve.s > until {
                return;
            }
        }
        // Without operations it ends as any other pool does.
        curve.finish(knots, x.max(1.0), &before);
    }
}

/// What all operations together take at a fit factor, and how fast that grows.
struct Sum {
    value: Sums,
    slope: Lanes,
    /// Largest slope since it was added up.
    steepest: Lanes,
}

impl Sum {
    /// A child enters the straight part that ends at a bend; what is at the present place is a jump. Where
    /// it is heading for.
    #[inline]
    fn enter(&mut self, bends: &[Bend], before: &Lanes, next: u32) -> u32 {
        let (mut at, mut before) = (next, before);
        loop {
            let bend = &bends[at as usize];
            if !bend.jumps {
                for r in 0..5 {
                    self.slope[r] += bend.slope[r];
                    if self.slope[r] > self.steepest[r] {
                        self.steepest[r] = self.slope[r];
                    }
                }
                return at;
            }
            self.value.add(&map2(&bend.y, before, |b, a| b - a));
            if !bend.goes_on {
                return at;
            }
            (at, before) = (at + 1, &bend.y);
        }
    }

    #[inline]
    fn leave(&mut self, slope: &Lanes) {
        for r in 0..5 {
            self.slope[r] -= slope[r];
        }
    }

    /// So much was subtracted that the rounding error of it may count.
    #[inline]
    fn is_worn(&self) -> bool {
        (0..5).fold(false, |worn, r| worn | (self.slope[r] * STEEP < self.steepest[r]))
    }

    /// Slopes from those of the children behind a fit factor. A lane in which nobody grows is what they
    /// have, exactly.
    fn add_up(&mut self, bends: &[Bend], heading: &[u32], x: f64, left: &Lanes) {
        let (mut slope, mut y) = (ZERO, ZERO);
        for bend in heading.iter().filter(|bend| **bend != NONE).map(|bend| &bends[*bend as usize]) {
            let grows = bend.x > x;
            for r in 0..5 {
                y[r] += bend.y[r];
                slope[r] += if grows { bend.slope[r] } else { 0.0 };
            }
        }
        for r in 0..5 {
            if slope[r] == 0.0 && self.steepest[r] > 0.0 {
                self.value.set(r, f64::max(y[r], left[r]));
            }
        }
        (self.slope, self.steepest) = (slope, slope);
    }
}

/// A bend by about its fit factor, then by its number: floats from 0 on are ordered as their bits are, and
/// small numbers are sorted without a jump of the program.
#[inline]
fn key(x: f64, bend: usize) -> u64 {
    x.to_bits() & !NUMBERS | bend as u64
}
/// Room for the number of a bend in a key. An operation has at most one for each resource on the way to its
/// usage and on the one to its demand, and one between them.
const NUMBERS: u64 = (1 << 10) - 1;
const _: () = assert!(FEW as u64 * 11 <= NUMBERS);

/// Bends by fit factor, then by number.
fn sort(order: &mut Vec<u32>, keys: &mut [u64], bends: &[Bend]) {
    keys.sort_unstable();
    order.clear();
    for key in keys {
        order.push((*key & NUMBERS) as u32);
        // Hardly ever are two that near to each other.
        let mut at = order.len() - 1;
        while at > 0 && bends[order[at - 1] as usize].x > bends[order[at] as usize].x {
            order.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// Number of breakpoints that are before a place, looked for from `near` on: each of them is a line of the
/// cache, and from update to update most places hardly move.
#[inline]
fn place(knots: &[Knot], near: u32, before: impl Fn(&Knot) -> bool) -> usize {
    let (mut low, mut high) = (0, knots.len());
    let mut at = (near as usize).min(high);
    let mut step = 1;
    // `low` are before, from `high` on none is.
    if at < high && before(&knots[at]) {
        while at < high && before(&knots[at]) {
            low = at + 1;
            at += step;
            step *= 2;
        }
        high = at.min(high);
    } else {
        high = at;
        while at > 0 {
            let next = at.saturating_sub(step);
            if before(&knots[next]) {
                low = next + 1;
                break;
            }
            (high, at) = (next, next);
            step *= 2;
        }
    }
    low + knots[low..high].partition_point(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_found_wherever_the_search_starts() {
        for count in 0..20 {
            // Some breakpoints are at the same suggestion.
            let knots: Vec<Knot> =
                (0..count).map(|i| Knot { s: f64::from(i / 2), ..Knot::default() }).collect();
            for s in -1..12 {
                let expected = knots.partition_point(|knot| knot.s <= f64::from(s));
                for near in 0..24 {
                    assert_eq!(place(&knots, near, |knot| knot.s <= f64::from(s)), expected);
                }
            }
        }
    }
}
