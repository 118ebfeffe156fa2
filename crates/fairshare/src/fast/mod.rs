//! The shipped form of the functions and of the distribution (fair-share.md 4, 8).
//!
//! The same functions as in the specification, but followed upwards together and only as far as somebody
//! asks, kept from update to update where nothing changed, and without memory of their own. In reading
//! order: [`leaf`] is what an operation takes, in closed form; [`curve`] turns what a pool takes at a fit
//! factor into what it takes at a suggestion; [`merge`] follows the children of a pool together, [`few`]
//! does so at once where they are a few operations; [`solve`] finds a place without that, wherever it can, on
//! the straight parts of [`part`]; [`distribute`] goes down with the result. [`lanes`] and
//! [`knots`] are what they are made of.
//!
//! What is found does not depend on how it is found: a breakpoint is a function of the subtree alone,
//! whoever asked for it, and whether it was kept or computed again; and so is the stretch of a straight part
//! on which a search may be trusted ([`part`]). So an update of what changed gives the same bits as one of
//! everything.

// The same lane of several arrays is what nearly every loop is about.
#![allow(clippy::needless_range_loop)]

mod curve;
mod distribute;
mod few;
mod knots;
mod lanes;
mod leaf;
mod merge;
mod part;
mod solve;

use vocab::Share;

use crate::burst::grant_burst_guarantees;
use crate::cumulative::OperationShares;
use crate::integral::Taking;
use crate::output::FairShare;
use crate::relaxed::{Competitor, grant_relaxed_guarantees};
use crate::state::{Scope, Update};
use distribute::Told;
pub(crate) use few::FEW;
use few::{Segment, Tables};
use knots::{Knot, NONE, Reader, Store};
use lanes::{Lanes, between, within};
use leaf::Leaf;
use merge::{Cursor, Event, Stream};
use part::{NO_PART, NO_PIECE, Part, Piece};
#[cfg(doc)]
use solve::SEGMENT;
use solve::{BLOCK, DEMAND, INFEASIBLE, SEARCHES, Search};

/// Functions of all pools of a tree and the room to compute them in.
#[derive(Default)]
pub(crate) struct Engine {
    /// The one that counts of each pool, then a try of each integral pool.
    streams: Vec<Stream>,
    store: Store,
    tables: Tables,
    /// By element: its stream, [`NONE`] for operations.
    stream_of: Vec<u32>,
    /// By element: the stream to try other bounds with, [`NONE`] if it is not an integral pool.
    trial_of: Vec<u32>,
    /// By slot.
    stream_of_slot: Vec<u32>,
    /// By slot.
    leaves: Vec<Leaf>,
    /// By slot: weight over the smallest weight among the siblings.
    ratios: Vec<f64>,
    /// By slot: the i-th child served, as an offset among its siblings.
    served: Vec<u32>,
    /// By place of the children of a stream that is followed.
    cursors: Vec<Cursor>,
    heap: Vec<Event>,
    pending: Vec<u32>,
    stack: Vec<u32>,
    competitors: Vec<Competitor>,
    /// Pools inside of integral pools, bottom-up: nothing that they are given changes during an update.
    inner: Vec<usize>,
    /// By element: its function is not that of the previous update.
    renewed: Vec<bool>,
    /// By stream: levels of pools below and including it, as far as that matters.
    levels: Vec<u8>,
    /// By stream: how many of the operations below jump somewhere.
    jumping: Vec<u32>,
    /// By search and stream: the piece around the place where the search ended. Children that have no pools
    /// below lie side by side here, as their parent looks at them.
    pieces: Vec<Piece>,
    /// By stream: what is that of the present function, a bit for each search, [`SEGMENT`]
    /// and those behind it. A large tree is
    /// bound by its memory: to forget a function must not touch more of it than this.
    found: Vec<u16>,
    /// By stream: where a pool of few operations stood the last time.
    segments: Vec<Segment>,
    /// By search and block of children: their sum where it was last looked at.
    blocks: Vec<Part>,
    /// By block: their sum of demands.
    demands: Vec<Lanes>,
    /// By block: what of it is that of the present children, a bit for each search and [`DEMAND`].
    known: Vec<u8>,
    /// By row.
    told: Vec<Told>,
    /// The same for the promised shares.
    promised: Vec<Told>,
    improved: bool,
}

impl Engine {
    /// For a tree of this shape.
    pub(crate) fn new(update: &Update, few: u32) -> Engine {
        let tree = update.tree;
        let n = update.input.elements.len();
        let children = tree.all_children();
        let mut engine = Engine {
            stream_of: vec![NONE; n],
            trial_of: vec![NONE; n],
            stream_of_slot: vec![NONE; children.len()],
            leaves: vec![Leaf::default(); children.len()],
            ratios: vec![1.0; children.len()],
            served: vec![0; children.len()],
            renewed: vec![true; n],
            told: vec![Told::default(); tree.pools.len()],
            promised: vec![Told::default(); tree.pools.len()],
            improved: update.improved(),
            ..Engine::default()
        };
        let mut block = 0;
        for &e in &tree.pools {
            engine.stream_of[e] = engine.streams.len() as u32;
            engine.add_stream(update, e, block);
            block += tree.slots(e).len().div_ceil(BLOCK);
            if let Some(slot) = tree.slot_of(e) {
                engine.stream_of_slot[slot] = engine.stream_of[e];
            }
        }
        for e in update.integral_pools() {
            engine.trial_of[e] = engine.streams.len() as u32;
            let block = engine.streams[engine.stream_of[e] as usize].block as usize;
            engine.add_stream(update, e, block);
            let inside = tree.subtree(e).skip(1).map(|place| tree.preorder[place]);
            engine.inner.extend(inside.filter(|c| update.pool(*c).is_some()));
        }
        engine.inner.sort_by_key(|e| std::cmp::Reverse(tree.position[*e]));
        engine.jumping = vec![0; engine.streams.len()];
        engine.levels = vec![1; engine.streams.len()];
        for &e in tree.pools.iter().rev() {
            let below = tree.child_pools(e).iter().map(|c| engine.levels[engine.stream_of[*c] as usize]);
            engine.levels[engine.stream_of[e] as usize] =
                below.max().map_or(1, |levels| levels.saturating_add(1));
        }
        for stream in &mut engine.streams {
            let levels = engine.levels[stream.main as usize];
            stream.few = levels == 1 && stream.count <= few;
        }
        engine.pieces = vec![NO_PIECE; SEARCHES * engine.streams.len()];
        engine.found = vec![0; engine.streams.len()];
        engine.segments = vec![Segment::default(); engine.streams.len()];
        engine.blocks = vec![NO_PART; SEARCHES * block];
        engine.demands = vec![lanes::ZERO; block];
        engine.known = vec![0; block];
        engine.stack.reserve(tree.pools.len() + 1);
        // Which pools have to be followed changes from update to update; room for all of them does not.
        let room =
            engine.streams.iter().map(|stream| if stream.fifo { 1 } else { stream.count as usize }).sum();
        engine.cursors.reserve(room);
        engine.heap.reserve(room);
        engine.pending.reserve(room);
        engine.store.reserve(children.len());
        engine.competitors.reserve(update.relaxed_pools.len());
        engine
    }

    fn add_stream(&mut self, update: &Update, e: usize, block: usize) {
        let slots = update.tree.slots(e);
        let fifo = update.is_fifo(e);
        let mut stream = Stream::new(&slots, fifo, block, self.stream_of[e]);
        stream.operations = update.tree.child_pools(e).len() < slots.len();
        self.streams.push(stream);
    }

    /// An operation that may be new or have changed.
    pub(crate) fn take_operation(
        &mut self,
        update: &Update,
        scope: Scope,
        e: usize,
        shares: &OperationShares,
    ) {
        let (Some(operation), Some(slot)) = (update.operation(e), update.tree.slot_of(e)) else { return };
        let step = update.steps(e, operation);
        let leaf = Leaf::new(&shares.usage, &shares.demand, &shares.limits, step);
        let old = std::mem::replace(&mut self.leaves[slot], leaf);
        if let Scope::Changed { .. } = scope {
            let block = self.block_of(update.parent(e), slot);
            self.known[block] = 0;
        }
        if leaf.jumps != old.jumps {
            let mut e = e;
            while e != 0 {
                e = update.parent(e);
                let jumping = &mut self.jumping[self.stream_of[e] as usize];
                *jumping = *jumping + u32::from(leaf.jumps) - u32::from(old.jumps);
            }
        }
    }

    /// The demand of a child is another one.
    fn forget_demand(&mut self, parent: usize, slot: usize) {
        let block = self.block_of(parent, slot);
        self.known[block] &= !DEMAND;
    }

    fn block_of(&self, parent: usize, slot: usize) -> usize {
        let Stream { slot: first, block, .. } = self.streams[self.stream_of[parent] as usize];
        block as usize + (slot - first as usize) / BLOCK
    }

    /// What an operation takes at the place of its parent.
    fn share_at(&self, update: &Update, e: usize, told: &[Told]) -> Share {
        let Some(slot) = update.tree.slot_of(e) else { return Share::ZERO };
        let parent = update.parent(e);
        let fifo = update.is_fifo(parent);
        let first = update.tree.slots(parent).start;
        // In a FIFO pool suggestions go by the order in which children are served.
        let i = match update.places[slot] {
            [_, place] if fifo && place != NONE => place as usize,
            [place, _] if fifo => place as usize,
            _ => slot - first,
        };
        let s = self.suggestion(fifo, i, slot, &told[update.row(parent)]);
        Share(self.leaves[slot].at(s))
    }

    /// Of a pool; of the root only as it was told.
    fn share_of_pool(&self, update: &Update, e: usize) -> FairShare {
        update.out[e].split(self.told[update.row(e)].want)
    }

    /// What a pool was given, and the segments up to there.
    pub(crate) fn given(&self, update: &Update, e: usize) -> (FairShare, Option<u32>) {
        let share = if e == 0 { update.out[0].fair_share } else { self.share_of_pool(update, e) };
        (share, self.told[update.row(e)].size)
    }

    /// Of an operation.
    pub(crate) fn fair_share(&self, update: &Update, e: usize) -> Share {
        self.share_at(update, e, &self.told)
    }

    /// Of an operation, from guarantees alone.
    pub(crate) fn promised_share(&self, update: &Update, e: usize) -> Share {
        self.share_at(update, e, &self.promised)
    }

    /// Of an operation.
    pub(crate) fn limited_demand_share(&self, update: &Update, e: usize) -> Share {
        update.tree.slot_of(e).map_or(Share::ZERO, |slot| Share(self.leaves[slot].full))
    }

    /// All the steps behind [`Update::prepare`].
    pub(crate) fn run<'a>(&'a mut self, update: Update<'a>, scope: Scope) {
        let mut run = Run { u: update, engine: self };
        run.take_changes(scope);
        run.renew_inner_pools();
        grant_burst_guarantees(&mut run);
        let mut competitors = std::mem::take(&mut run.engine.competitors);
        grant_relaxed_guarantees(&mut run, &mut competitors);
        run.engine.competitors = competitors;
        run.u.forget_shares_without_guarantee();
        run.renew_pools(scope);
        run.limit_demands();
        run.distribute();
        run.distribute_promised();
        run.report_infeasible();
        run.engine.renewed.fill(false);
    }

    /// The last breakpoint before a suggestion and the first one at or behind it; the same one twice if it
    /// is met exactly or nothing follows. And how many there are before the suggestion: each starts a segment.
    fn around(&mut self, id: u32, s: f64) -> (Knot, Knot, u32) {
        let mut reader = self.near(id, s);
        let mut here = reader;
        let mut before: Option<Knot> = None;
        loop {
            let stream = &mut self.streams[id as usize];
            let next = reader;
            match self.store.read(&stream.curve.knots, &mut reader) {
                Some(knot) if knot.s < s => (before, here) = (Some(*knot), next),
                Some(knot) => {
                    stream.near = here;
                    let before = if knot.s == s { knot } else { before.as_ref().unwrap_or(knot) };
                    return (*before, *knot, next.count() as u32);
                }
                None => match before {
                    Some(last) if stream.curve.ended => {
                        stream.near = here;
                        return (last, last, reader.count() as u32);
                    }
                    _ => self.pull(id),
                },
            }
        }
    }

    /// The next breakpoint of a pool, as far as that is known.
    #[inline]
    fn read(&self, id: u32, reader: &mut Reader) -> Option<&Knot> {
        let stream = &self.streams[id as usize];
        if stream.table.is_known() {
            let knot = self.tables.get(&stream.table).get(reader.count());
            // What is not there yet is read again once it is.
            if knot.is_some() {
                reader.pass();
            }
            return knot;
        }
        self.store.read(&stream.curve.knots, reader)
    }

    /// A place to start reading from: the breakpoint where the last search ended if that is before the
    /// suggestion, else the first one. What is found is the same, but sooner.
    fn near(&self, id: u32, s: f64) -> Reader {
        let stream = &self.streams[id as usize];
        let mut reader = stream.near;
        match self.store.read(&stream.curve.knots, &mut reader) {
            Some(knot) if knot.s < s => stream.near,
            _ => Reader::default(),
        }
    }

    /// Where a pool stands at a suggestion, `max_fit(s)` and `by_sugg(s)`, and how many segments lead there.
    fn at(&mut self, id: u32, s: f64) -> (f64, Lanes, u32) {
        if self.is_swept(id) {
            return self.look_up(id, s);
        }
        let (a, b, count) = self.around(id, s);
        if a.s == b.s {
            return (a.x, a.y, count);
        }
        let t = (s - a.s) / (b.s - a.s);
        (on_line(a.x, b.x, t), between(&a.y, &b.y, t), count)
    }
}

impl Engine {
    /// The last value of `by_sugg` of a pool that would exceed its limits.
    fn limited_demand(&mut self, id: u32, search: Search) -> Option<Lanes> {
        if let Some((_, full)) = self.at_limits(id, search) {
            return Some(full);
        }
        if self.is_swept(id) {
            return self.table(id, f64::MAX).last().map(|knot| knot.y);
        }
        while !self.streams[id as usize].curve.ended {
            self.pull(id);
        }
        self.store.last(&self.streams[id as usize].curve.knots).map(|knot| knot.y)
    }
}

/// A point between two ends, exact at both and monotone (fair-share.md 3.2).
#[inline]
fn on_line(a: f64, b: f64, t: f64) -> f64 {
    if t < 0.5 { a + (b - a) * t } else { b - (b - a) * (1.0 - t) }
}

/// One update under way.
struct Run<'a> {
    u: Update<'a>,
    engine: &'a mut Engine,
}

impl Run<'_> {
    /// Functions of pools above operations that changed are not valid any more.
    fn take_changes(&mut self, scope: Scope) {
        match scope {
            Scope::All => {
                let (tree, engine) = (self.u.tree, &mut *self.engine);
                for &e in &tree.pools {
                    let smallest = self.u.smallest_weight[e];
                    for slot in tree.slots(e) {
                        engine.ratios[slot] = self.u.weights[slot] / smallest;
                    }
                }
                for stream in &mut engine.streams {
                    stream.valid = false;
                    stream.guess = [0.0; SEARCHES];
                    let slots = stream.slot as usize..(stream.slot + stream.count) as usize;
                    stream.offered = stream.fifo || engine.ratios[slots].iter().all(|ratio| *ratio >= 1.0);
                }
                engine.known.fill(0);
                engine.improved = self.u.improved();
                for &e in &tree.pools {
                    self.take_order(e);
                }
            }
            Scope::Changed { pools, .. } => {
                for &e in pools {
                    for id in [self.engine.stream_of[e], self.engine.trial_of[e]] {
                        if id != NONE {
                            self.engine.streams[id as usize].valid = false;
                        }
                    }
                    self.take_order(e);
                }
            }
        }
    }

    /// Without a look at the configuration, which is somewhere else for each pool.
    fn is_fifo(&self, e: usize) -> bool {
        self.engine.streams[self.engine.stream_of[e] as usize].fifo
    }

    fn take_order(&mut self, e: usize) {
        if !self.is_fifo(e) {
            return;
        }
        let slots = self.u.tree.slots(e);
        for (slot, c) in slots.clone().zip(self.u.served(e)) {
            let place = self.u.tree.slot_of(*c).unwrap_or(slots.start);
            self.engine.served[slot] = (place - slots.start) as u32;
        }
    }

    fn renew_inner_pools(&mut self) {
        for i in 0..self.engine.inner.len() {
            let e = self.engine.inner[i];
            self.renew(e);
            if self.engine.renewed[e] {
                self.limit_demand(e);
            }
        }
    }

    /// Bottom-up: a pool with other bounds or with a child that has another function starts again.
    fn renew_pools(&mut self, scope: Scope) {
        let tree = self.u.tree;
        match scope {
            Scope::All => tree.pools.iter().rev().for_each(|e| self.renew(*e)),
            // Nothing else has other children or, as limits are the same, other bounds.
            Scope::Changed { pools, .. } => {
                let mut raised = self.u.raised.iter().rev().peekable();
                for e in pools {
                    while let Some(e) = raised.next_if(|r| tree.row_of(**r) > tree.row_of(*e)) {
                        self.renew(*e);
                    }
                    self.renew(*e);
                }
                raised.for_each(|e| self.renew(*e));
            }
        }
    }

    /// 4.4 requires what is not so.
    fn report_infeasible(&mut self) {
        for &e in &self.u.tree.pools {
            let id = self.engine.stream_of[e];
            let holds = self.engine.found[id as usize] & INFEASIBLE == 0;
            self.u.require(holds, e, "what is taken at fit factor 0 lies within the limits");
        }
    }

    fn renew(&mut self, e: usize) {
        let (guarantee, limits) = (self.u.guarantee_share(e).0, self.u.out[e].limits_share.0);
        let id = self.engine.stream_of[e];
        let stream = &self.engine.streams[id as usize];
        if stream.valid && stream.guarantee == guarantee && stream.limits == limits {
            return;
        }
        self.engine.reset(id, &guarantee, &limits);
        self.engine.renewed[e] = true;
        if e != 0 {
            let parent = self.engine.stream_of[self.u.parent(e)];
            self.engine.streams[parent as usize].valid = false;
        }
    }

    /// Bottom-up.
    fn limit_demands(&mut self) {
        for &e in self.u.tree.pools.iter().rev() {
            if self.engine.renewed[e] {
                self.limit_demand(e);
            }
        }
    }

    /// `limited_demand_share` of a pool. Mostly it is the sum over the children; only a pool that they would
    /// bring beyond its limits has to be followed up to there.
    fn limit_demand(&mut self, e: usize) {
        let id = self.engine.stream_of[e];
        let mut full = self.engine.sum_of_demands(id);
        let Stream { guarantee, limits, offered, .. } = self.engine.streams[id as usize];
        let reaches_one = (0..5).any(|r| full[r] >= 1.0 + guarantee[r]);
        if !offered || reaches_one || !within(&full, &limits) {
            let search = self.engine.search_of_demand(id);
            full = self.engine.limited_demand(id, search).unwrap_or(full);
        }
        self.u.out[e].limited_demand_share = Share(full);
        self.engine.streams[id as usize].full = full;
        if let Some(slot) = self.u.tree.slot_of(e) {
            self.engine.leaves[slot].full = full;
            self.engine.forget_demand(self.u.parent(e), slot);
        }
    }
}

impl<'a> Taking<'a> for Run<'a> {
    fn update(&mut self) -> &mut Update<'a> {
        &mut self.u
    }

    fn within(&mut self, pool: usize, guarantee: Share) -> Share {
        let limits = self.u.out[pool].limits_share.0;
        let id = self.try_with(pool, &guarantee.0, &limits);
        Share(self.engine.at_zero(id, Search::Trial).1)
    }

    fn under(&mut self, pool: usize, limits: Share, suggestion: f64) -> Share {
        let guarantee = self.u.guarantee_share(pool).0;
        let id = self.try_with(pool, &guarantee, &limits.0);
        if suggestion == 0.0 {
            return Share(self.engine.at_zero(id, Search::Trial).1);
        }
        let taken = self.engine.taken(id, suggestion, Search::Trial);
        Share(taken.unwrap_or_else(|| self.engine.at(id, suggestion).1))
    }
}

impl Run<'_> {
    /// A pool with other bounds.
    fn try_with(&mut self, pool: usize, guarantee: &Lanes, limits: &Lanes) -> u32 {
        let id = self.engine.trial_of[pool];
        let stream = &self.engine.streams[id as usize];
        if !stream.valid || stream.guarantee != *guarantee || stream.limits != *limits {
            self.engine.reset(id, guarantee, limits);
        }
        id
    }
}
