//! `by_fit` of pools, followed upwards as far as somebody asks (fair-share.md 4.2, 4.3, 4.6).
//!
//! A fair-share pool moves all children at once: the next breakpoint of the sum is the nearest one of a
//! child, found with a heap. A FIFO pool moves one child after another. A child that is a pool gives its
//! breakpoints at the same pace: [`Engine::pull`] goes down for those that are missing. What nobody asks
//! for is never computed; most of it is not, because a cluster is full long before everybody is.

use super::few::{self, Table};
use super::knots::{NONE, Reader};
use super::lanes::{Lanes, Sums, ZERO};
use super::leaf::Place;
use super::solve::{INFEASIBLE, SEARCHES};
use super::{Engine, curve::Curve};

/// A pool whose function is being followed: either the one that counts, or a try with other bounds.
///
/// What is looked at in every pool comes first, and what only those need that are followed comes last: a large
/// tree is many times the size of the caches.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Stream {
    /// The function is that of the present children and of these bounds.
    pub(crate) valid: bool,
    pub(crate) fifo: bool,
    /// A pool of few operations, whose breakpoints are in the table.
    pub(super) few: bool,
    /// There are operations among the children.
    pub(super) operations: bool,
    /// At the right bound everybody is offered everything; beside much heavier siblings it may not be so.
    pub(super) offered: bool,
    /// First child slot of the pool, in which weights and leaves are kept.
    pub(crate) slot: u32,
    pub(crate) count: u32,
    /// First of the blocks of children (see [`super::solve`]).
    pub(super) block: u32,
    /// The stream that counts, for a try.
    pub(super) main: u32,
    /// Cursors of the children, once it is followed.
    pub(crate) first: u32,
    pub(super) table: Table,
    pub(crate) guarantee: Lanes,
    pub(crate) limits: Lanes,
    /// Limited demand, once that is known.
    pub(super) full: Lanes,
    /// Sum of what children would take, once that is found.
    pub(super) sum: Lanes,
    /// What is taken at suggestion 0, and the fit factor, once that is found.
    pub(super) zero: (f64, Lanes),
    /// What is taken at fit factor 0, once that is found.
    pub(super) begun: Lanes,
    /// Empty where breakpoints are in the table.
    pub(crate) curve: Curve,
    /// Where searches ended.
    pub(super) guess: [f64; SEARCHES],
    /// Where the last search ended.
    pub(super) near: Reader,
    stage: Stage,
    x: f64,
    /// What is taken at `x`, and how fast that grows.
    value: Sums,
    slope: Lanes,
    /// Largest slope since it was added up from the children, and how many of them changed since.
    steepest: Lanes,
    changes: u32,
    /// The value before the jumps at `x`.
    left: Lanes,
    heap: u32,
    /// Children whose next part is wanted, and how many of them have it.
    pending: u32,
    done: u32,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Stage {
    /// Values at suggestion 0 are being collected.
    #[default]
    Start,
    /// Under way.
    Merge,
}

/// How far a child has been followed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cursor {
    /// Its value at the end of the present part, and how fast it gets there.
    y: Lanes,
    slope: Lanes,
    reader: Reader,
    place: Place,
}

/// A child's next breakpoint, by argument of the sum.
#[derive(Clone, Copy, Default)]
pub(crate) struct Event {
    x: f64,
    child: u32,
}

impl Event {
    #[inline]
    fn before(&self, other: &Event) -> bool {
        self.x < other.x || (self.x == other.x && self.child < other.child)
    }
}

/// A sum of slopes that has become smaller by this factor is added up anew.
pub(super) const STEEP: f64 = 64.0;

/// What became of an attempt to go on.
enum Step {
    /// There is at least one more breakpoint, or the function has ended.
    Done,
    /// A child has to go on first.
    Needs(u32),
}

impl Default for Stream {
    fn default() -> Stream {
        Stream {
            curve: Curve::default(),
            valid: false,
            guarantee: ZERO,
            limits: ZERO,
            first: 0,
            count: 0,
            slot: 0,
            block: 0,
            main: 0,
            operations: true,
            offered: false,
            full: ZERO,
            guess: [0.0; SEARCHES],
            sum: ZERO,
            begun: ZERO,
            zero: (0.0, ZERO),
            fifo: false,
            few: false,
            table: few::EMPTY,
            near: Reader::default(),
            stage: Stage::Start,
            x: 0.0,
            value: Sums::default(),
            slope: ZERO,
            steepest: ZERO,
            changes: 0,
            left: ZERO,
            heap: 0,
            pending: 0,
            done: 0,
        }
    }
}

impl Stream {
    /// Of a pool whose children are in these slots.
    pub(crate) fn new(slots: &std::ops::Range<usize>, fifo: bool, block: usize, main: u32) -> Stream {
        Stream {
            first: NONE,
            count: slots.len() as u32,
            slot: slots.start as u32,
            block: block as u32,
            main,
            offered: true,
            fifo,
            ..Stream::default()
        }
    }

    /// No breakpoint follows those that are known.
    pub(super) fn has_ended(&self) -> bool {
        self.curve.ended || self.table.has_ended()
    }

    /// The fit factor at which everybody is offered everything.
    pub(super) fn right_bound(&self) -> f64 {
        if self.fifo { f64::from(self.count.max(1)) } else { 1.0 }
    }
}

enum Next {
    Knot(f64, Lanes),
    End,
    Needs(u32),
}

impl Engine {
    /// Back to fit factor 0.
    pub(crate) fn reset(&mut self, id: u32, guarantee: &Lanes, limits: &Lanes) {
        let stream = &mut self.streams[id as usize];
        (stream.valid, stream.guarantee, stream.limits) = (true, *guarantee, *limits);
        stream.table = stream.table.emptied();
        // Most pools are never followed, and this is most of a stream.
        if stream.first != NONE {
            self.store.clear(&mut stream.curve.knots);
            stream.curve = Curve::default();
            stream.near = Reader::default();
            stream.stage = Stage::Start;
            (stream.value, stream.slope, stream.steepest, stream.left) = (Sums::default(), ZERO, ZERO, ZERO);
            (stream.x, stream.changes, stream.heap, stream.pending, stream.done) = (0.0, 0, 0, 0, 0);
        }
        // Where the pieces were stays with them: the new ones are looked for from there.
        self.found[id as usize] = 0;
    }

    /// Goes on until there is one more breakpoint or the function has ended.
    pub(crate) fn pull(&mut self, id: u32) {
        // A stack of its own: trees may be deeper than the stack of a thread.
        let bottom = self.stack.len();
        self.stack.push(id);
        while self.stack.len() > bottom {
            let id = self.stack[self.stack.len() - 1];
            match self.step(id) {
                Step::Done => {
                    self.stack.pop();
                }
                Step::Needs(child) => self.stack.push(child),
            }
        }
    }

    /// Makes room for following a pool.
    fn open(&mut self, id: u32) {
        let stream = &mut self.streams[id as usize];
        stream.first = self.cursors.len() as u32;
        // A FIFO pool moves one child at a time.
        let room = self.cursors.len() + if stream.fifo { 1 } else { stream.count as usize };
        self.cursors.resize(room, Cursor::default());
        self.heap.resize(room, Event::default());
        self.pending.resize(room, 0);
    }

    fn step(&mut self, id: u32) -> Step {
        if self.is_swept(id) {
            self.table(id, f64::MAX);
            return Step::Done;
        }
        if self.streams[id as usize].first == NONE {
            self.open(id);
        }
        let had = self.streams[id as usize].curve.knots.len();
        loop {
            let stream = &self.streams[id as usize];
            if stream.curve.ended || stream.curve.knots.len() > had {
                return Step::Done;
            }
            let needs = match (stream.fifo, stream.stage) {
                (true, _) => self.step_fifo(id),
                (false, Stage::Start) => self.start(id),
                (false, Stage::Merge) => self.merge(id),
            };
            if let Some(child) = needs {
                return Step::Needs(child);
            }
        }
    }

    /// Takes what children bring at the present place, then goes to the next one.
    #[inline]
    fn merge(&mut self, id: u32) -> Option<u32> {
        let needs = self.collect(id);
        if needs.is_none() {
            self.advance(id);
        }
        needs
    }

    /// Values of all children at suggestion 0, which they take whatever the fit factor is.
    fn start(&mut self, id: u32) -> Option<u32> {
        let Stream { first, slot, count, done, .. } = self.streams[id as usize];
        let (first, slot) = (first as usize, slot as usize);
        for i in done as usize..count as usize {
            self.cursors[first + i] = Cursor::default();
            self.pending[first + i] = i as u32;
            let child = self.stream_of_slot[slot + i];
            if child != NONE {
                let mut reader = Reader::default();
                let Some(knot) = self.read(child, &mut reader).copied() else {
                    self.streams[id as usize].done = i as u32;
                    return Some(child);
                };
                let cursor = &mut self.cursors[first + i];
                (cursor.y, cursor.reader) = (knot.y, reader);
                self.streams[id as usize].value.add(&knot.y);
            }
        }
        let stream = &mut self.streams[id as usize];
        stream.stage = Stage::Merge;
        (stream.done, stream.pending) = (0, stream.count);
        stream.left = stream.value.sum;
        stream.curve.begin(&stream.left, &stream.guarantee, &stream.limits);
        if stream.curve.infeasible {
            self.found[id as usize] |= INFEASIBLE;
        }
        None
    }

    /// The next breakpoint of a child.
    #[inline]
    fn next(&mut self, cursor: usize, slot: usize) -> Next {
        let child = self.stream_of_slot[slot];
        if child == NONE {
            let cursor = &mut self.cursors[cursor];
            return match self.leaves[slot].next(&mut cursor.place) {
                Some((s, y)) => Next::Knot(s, y),
                None => Next::End,
            };
        }
        let mut reader = self.cursors[cursor].reader;
        let next = match self.read(child, &mut reader) {
            Some(knot) => Next::Knot(knot.s, knot.y),
            None if self.streams[child as usize].has_ended() => Next::End,
            None => Next::Needs(child),
        };
        self.cursors[cursor].reader = reader;
        next
    }

    /// The next parts of all children that have come to the end of theirs; jumps at the present place.
    fn collect(&mut self, id: u32) -> Option<u32> {
        let at = id as usize;
        let Stream { first, slot, pending, x, .. } = self.streams[at];
        let (first, slot) = (first as usize, slot as usize);
        while self.streams[at].done < pending {
            let child = self.pending[first + self.streams[at].done as usize] as usize;
            loop {
                let (s, y) = match self.next(first + child, slot + child) {
                    Next::Needs(child) => return Some(child),
                    Next::End => break,
                    Next::Knot(s, y) => (s, y),
                };
                let x1 = s / self.ratios[slot + child];
                let per_unit = 1.0 / (x1 - x);
                let cursor = &mut self.cursors[first + child];
                let grows: Lanes = std::array::from_fn(|r| y[r] - cursor.y[r]);
                cursor.y = y;
                let stream = &mut self.streams[at];
                // Also where rounding has brought both ends together.
                if x1 <= x || !per_unit.is_finite() {
                    stream.value.add(&grows);
                    continue;
                }
                let slope = grows.map(|y| y * per_unit);
                cursor.slope = slope;
                for r in 0..5 {
                    let sum = stream.slope[r] + slope[r];
                    stream.slope[r] = sum;
                    stream.steepest[r] = if sum > stream.steepest[r] { sum } else { stream.steepest[r] };
                }
                push_event(&mut self.heap[first..], &mut stream.heap, Event { x: x1, child: child as u32 });
                break;
            }
            self.streams[at].done += 1;
            if self.improved {
                // 4.6: children that jump at the same place do so one after another.
                let last = self.streams[at].done == pending;
                self.take_jump(at, child as u32 + 1, last);
            }
        }
        self.take_jump(at, u32::MAX, true);
        let stream = &mut self.streams[at];
        (stream.done, stream.pending) = (0, 0);
        None
    }

    fn take_jump(&mut self, at: usize, passed: u32, goes_on: bool) {
        let stream = &mut self.streams[at];
        let value = stream.value.sum;
        if value == stream.left || stream.curve.ended {
            return;
        }
        let slope = stream.slope;
        stream
            .curve
            .jump(&mut self.store, stream.x, &stream.left, &value, passed, |r| goes_on && slope[r] > 0.0);
        stream.left = value;
    }

    /// To the nearest breakpoint of a child, or to the right bound.
    fn advance(&mut self, id: u32) {
        let at = id as usize;
        let stream = &mut self.streams[at];
        if stream.curve.ended {
            return;
        }
        let first = stream.first as usize;
        let heap = &mut self.heap[first..];
        let nearest = if stream.heap > 0 { heap[0].x } else { f64::INFINITY };
        let x1 = nearest.min(1.0);
        let dx = x1 - stream.x;
        stream.value.advance(&stream.slope, dx);
        while stream.heap > 0 && heap[0].x == x1 {
            let child = pop_event(heap, &mut stream.heap).child;
            let cursor = &mut self.cursors[first + child as usize];
            for r in 0..5 {
                stream.slope[r] -= cursor.slope[r];
            }
            cursor.slope = ZERO;
            self.pending[first + stream.pending as usize] = child;
            stream.pending += 1;
            stream.changes += 1;
        }
        // What was taken away again has left its rounding error behind: not much of it, and not for long. A
        // lane in which nobody grows any more is the sum of what children have. It has to be that exactly:
        // whether it has reached a limit or just not decides about the other lanes.
        let flat = (0..5).fold(false, |flat, r| flat | (stream.slope[r] * STEEP < stream.steepest[r]));
        if flat || stream.changes > stream.count.max(32) {
            let cursors = &self.cursors[first..first + stream.count as usize];
            let slope = cursors.iter().fold(ZERO, |sum, c| super::lanes::map2(&sum, &c.slope, |a, b| a + b));
            for r in 0..5 {
                if slope[r] == 0.0 && stream.steepest[r] > 0.0 {
                    let sum = cursors.iter().fold(0.0, |sum, c| sum + c.y[r]);
                    stream.value.set(r, if sum > stream.left[r] { sum } else { stream.left[r] });
                }
            }
            (stream.slope, stream.steepest, stream.changes) = (slope, slope, 0);
        }
        let value = stream.value.sum;
        stream.curve.rise(&mut self.store, stream.x, &stream.left, x1, &value);
        (stream.x, stream.left) = (x1, value);
        if nearest >= 1.0 && !stream.curve.ended {
            stream.curve.finish(&mut self.store, 1.0, &value);
        }
    }

    /// One breakpoint of the child that is being served.
    fn step_fifo(&mut self, id: u32) -> Option<u32> {
        let at = id as usize;
        let Stream { first, slot, count, done, .. } = self.streams[at];
        let cursor = first as usize;
        if self.streams[at].stage == Stage::Start {
            let stream = &mut self.streams[at];
            stream.stage = Stage::Merge;
            stream.curve.begin(&ZERO, &stream.guarantee, &stream.limits);
            if count == 0 {
                stream.curve.finish(&mut self.store, 1.0, &ZERO);
                return None;
            }
            self.cursors[cursor] = Cursor::default();
        }
        let child = slot as usize + self.served[slot as usize + done as usize] as usize;
        let leaf = &self.leaves[child];
        let stream = &mut self.streams[at];
        let before = stream.value.sum;
        let start = f64::from(done);
        let mut place = self.cursors[cursor].place;
        if let Some((s, y)) = leaf.next(&mut place) {
            let (x1, y) = (start + s, std::array::from_fn(|r| before[r] + y[r]));
            if x1 <= stream.x {
                let mut after = place;
                let next = leaf.next(&mut after);
                stream.curve.jump(&mut self.store, stream.x, &stream.left, &y, u32::MAX, |r| {
                    next.is_some_and(|(_, next)| before[r] + next[r] > y[r])
                });
            } else {
                stream.curve.rise(&mut self.store, stream.x, &stream.left, x1, &y);
                stream.x = x1;
            }
            stream.left = y;
            self.cursors[cursor].place = place;
            return None;
        }
        // Satisfied: nothing moves up to the next child.
        let full: Lanes = std::array::from_fn(|r| before[r] + leaf.full[r]);
        stream.curve.rise(&mut self.store, stream.x, &stream.left, start + 1.0, &full);
        stream.value = Sums::default();
        stream.value.add(&full);
        (stream.x, stream.left) = (start + 1.0, full);
        stream.done += 1;
        self.cursors[cursor].place = Place::default();
        if stream.done == count && !stream.curve.ended {
            stream.curve.finish(&mut self.store, f64::from(count), &full);
        }
        None
    }
}

#[inline]
fn push_event(heap: &mut [Event], len: &mut u32, event: Event) {
    let mut at = *len as usize;
    *len += 1;
    while at > 0 {
        let parent = (at - 1) / 2;
        if !event.before(&heap[parent]) {
            break;
        }
        heap[at] = heap[parent];
        at = parent;
    }
    heap[at] = event;
}

#[inline]
fn pop_event(heap: &mut [Event], len: &mut u32) -> Event {
    let top = heap[0];
    *len -= 1;
    let end = *len as usize;
    let last = heap[end];
    let mut at = 0;
    loop {
        let mut child = 2 * at + 1;
        if child >= end {
            break;
        }
        if child + 1 < end && heap[child + 1].before(&heap[child]) {
            child += 1;
        }
        if !heap[child].before(&last) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    top
}
