//! The shipped form of the functions and of the distribution (fair-share.md 4, 8).
//!
//! The same functions as in the specification, but followed upwards together and only as far as somebody
//! asks, kept from update to update where nothing changed, and without memory of their own. In reading
//! order: [`leaf`] is what an operation takes, in closed form; [`curve`] turns what a pool takes at a fit
//! factor into what it takes at a suggestion; [`merge`] follows the children of a pool together;
//! [`solve`] looks far ahead; [`distribute`] goes down with the result. [`lanes`] and [`knots`] are what they are made of.
//!
//! What is found does not depend on how it is found: a breakpoint is a function of the subtree alone,
//! whoever asked for it, and whether it was kept or computed again. So an update of what changed gives the
//! same bits as one of everything.

// The same lane of several arrays is what nearly every loop is about.
#![allow(clippy::needless_range_loop)]

mod curve;
mod distribute;
mod knots;
mod lanes;
mod leaf;
mod merge;
mod solve;

use vocab::Share;

use crate::burst::grant_burst_guarantees;
use crate::integral::Taking;
use crate::relaxed::{Competitor, grant_relaxed_guarantees};
use crate::state::{Scope, Update};
use distribute::Told;
use knots::{Knot, NONE, Reader, Store};
use lanes::{Lanes, between, within};
use leaf::Leaf;
use merge::{Cursor, Event, Stream};

/// Functions of all pools of a tree and the room to compute them in.
#[derive(Default)]
pub(crate) struct Engine {
    /// The one that counts of each pool, then a try of each integral pool.
    streams: Vec<Stream>,
    store: Store,
    /// By element: its stream, [`NONE`] for operations.
    stream_of: Vec<u32>,
    /// By element: the stream to try other bounds with, [`NONE`] if it is not an integral pool.
    trial_of: Vec<u32>,
    /// By element: its place among all children (see [`crate::tree::Tree::slots`]).
    slot_of: Vec<u32>,
    /// By slot.
    stream_of_slot: Vec<u32>,
    /// By slot.
    leaves: Vec<Leaf>,
    /// By slot: weight over the smallest weight among the siblings.
    ratios: Vec<f64>,
    /// By slot: the i-th child served, as an offset among its siblings.
    served: Vec<u32>,
    /// By place of a stream's children.
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
    /// By stream: where a search goes on.
    guess: Vec<f64>,
    /// By element; of pools.
    told: Vec<Told>,
    /// The same for the promised shares.
    promised: Vec<Told>,
    improved: bool,
}

impl Engine {
    /// For a tree of this shape.
    pub(crate) fn new(update: &Update) -> Engine {
        let tree = update.tree;
        let n = update.input.elements.len();
        let children = tree.all_children();
        let mut engine = Engine {
            stream_of: vec![NONE; n],
            trial_of: vec![NONE; n],
            slot_of: vec![NONE; n],
            stream_of_slot: vec![NONE; children.len()],
            leaves: vec![Leaf::default(); children.len()],
            ratios: vec![1.0; children.len()],
            served: vec![0; children.len()],
            renewed: vec![true; n],
            told: vec![Told::default(); n],
            promised: vec![Told::default(); n],
            improved: update.improved(),
            ..Engine::default()
        };
        for (slot, c) in children.iter().enumerate() {
            engine.slot_of[*c] = slot as u32;
        }
        let mut first = 0;
        for &e in &tree.pools {
            engine.stream_of[e] = engine.add_stream(update, e, &mut first);
            if let Some(slot) = engine.stream_of_slot.get_mut(engine.slot_of[e] as usize) {
                *slot = engine.stream_of[e];
            }
        }
        for e in update.integral_pools() {
            engine.trial_of[e] = engine.add_stream(update, e, &mut first);
            let inside = tree.subtree(e).skip(1).map(|place| tree.preorder[place]);
            engine.inner.extend(inside.filter(|c| update.pool(*c).is_some()));
        }
        engine.inner.sort_by_key(|e| std::cmp::Reverse(tree.position[*e]));
        engine.guess = vec![0.0; engine.streams.len()];
        engine.levels = vec![1; engine.streams.len()];
        for &e in tree.pools.iter().rev() {
            let below = tree.child_pools(e).iter().map(|c| engine.levels[engine.stream_of[*c] as usize]);
            engine.levels[engine.stream_of[e] as usize] =
                below.max().map_or(1, |levels| levels.saturating_add(1));
        }
        engine.cursors = vec![Cursor::default(); first];
        engine.heap = vec![Event::default(); first];
        engine.pending = vec![0; first];
        engine.stack.reserve(tree.pools.len() + 1);
        engine.competitors.reserve(update.relaxed_pools.len());
        engine
    }

    fn add_stream(&mut self, update: &Update, e: usize, first: &mut usize) -> u32 {
        let slots = update.tree.slots(e);
        let fifo = update.is_fifo(e);
        self.streams.push(Stream::new(*first, &slots, fifo));
        // A FIFO pool moves one child at a time.
        *first += if fifo { 1 } else { slots.len() };
        self.streams.len() as u32 - 1
    }

    /// An operation that may be new or have changed.
    pub(crate) fn take_operation(&mut self, update: &mut Update, e: usize) {
        let Some(operation) = update.operation(e) else { return };
        let step = update.steps(e, operation);
        let out = &mut update.out[e];
        let leaf = Leaf::new(&out.usage_share, &out.demand_share, &out.limits_share, step);
        out.limited_demand_share = Share(leaf.full);
        self.leaves[self.slot_of[e] as usize] = leaf;
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
        run.renew_pools();
        run.limit_demands();
        run.distribute();
        run.distribute_promised();
        run.report_infeasible();
        run.u.publish_integral_attributes();
        run.engine.renewed.fill(false);
    }

    /// The last breakpoint before a suggestion and the first one at or behind it; the same one twice if it
    /// is met exactly or nothing follows. And how many there are up to it.
    fn around(&mut self, id: u32, s: f64) -> (Knot, Knot, usize) {
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
                    return (*before, *knot, reader.count());
                }
                None => match before {
                    Some(last) if stream.curve.ended => {
                        stream.near = here;
                        return (last, last, reader.count());
                    }
                    _ => self.pull(id),
                },
            }
        }
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

    /// Where a pool stands at a suggestion: `max_fit(s)` and `by_sugg(s)`.
    fn at(&mut self, id: u32, s: f64) -> (f64, Lanes, usize) {
        let (a, b, count) = self.around(id, s);
        if a.s == b.s {
            return (a.x, a.y, count);
        }
        let t = (s - a.s) / (b.s - a.s);
        let x = if t < 0.5 { a.x + (b.x - a.x) * t } else { b.x - (b.x - a.x) * (1.0 - t) };
        (x, between(&a.y, &b.y, t), count)
    }
}

impl Engine {
    /// The last value of `by_sugg` of a pool that would exceed its limits.
    fn limited_demand(&mut self, id: u32, far: bool) -> Option<Lanes> {
        if far && (2..=solve::LEVELS).contains(&self.levels[id as usize]) {
            let (guarantee, limits) = self.begun(id);
            self.forget_guesses(id);
            // At the end of a straight part it matters what comes next (4.4).
            if let Some(found) = self.last_within(id, &limits).filter(|found| found.is_plain(&guarantee)) {
                return Some(found.y);
            }
        }
        while !self.streams[id as usize].curve.ended {
            self.pull(id);
        }
        self.store.last(&self.streams[id as usize].curve.knots).map(|knot| knot.y)
    }

    fn forget_guesses(&mut self, id: u32) {
        self.guess[id as usize] = 0.0;
        let Stream { slot, count, .. } = self.streams[id as usize];
        for slot in slot..slot + count {
            match self.stream_of_slot[slot as usize] {
                NONE => {}
                child => self.forget_guesses(child),
            }
        }
    }
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
                }
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

    fn take_order(&mut self, e: usize) {
        if !self.u.is_fifo(e) {
            return;
        }
        let slots = self.u.tree.slots(e);
        for (slot, c) in slots.clone().zip(self.u.served(e)) {
            self.engine.served[slot] = self.engine.slot_of[*c] - slots.start as u32;
        }
    }

    fn renew_inner_pools(&mut self) {
        for i in 0..self.engine.inner.len() {
            self.renew(self.engine.inner[i]);
        }
    }

    /// Bottom-up: a pool with other bounds or with a child that has another function starts again.
    fn renew_pools(&mut self) {
        for &e in self.u.tree.pools.iter().rev() {
            self.renew(e);
        }
    }

    /// 4.4 requires what is not so.
    fn report_infeasible(&mut self) {
        for &e in &self.u.tree.pools {
            let id = self.engine.stream_of[e];
            let holds = !self.engine.streams[id as usize].curve.infeasible;
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

    /// `limited_demand_share` of pools, bottom-up. Mostly it is the sum over the children; only a pool that
    /// they would bring beyond its limits has to be followed up to there.
    fn limit_demands(&mut self) {
        for &e in self.u.tree.pools.iter().rev() {
            if !self.engine.renewed[e] {
                continue;
            }
            let id = self.engine.stream_of[e];
            let Stream { guarantee, limits, slot, count, fifo, .. } = self.engine.streams[id as usize];
            let slots = slot as usize..(slot + count) as usize;
            let mut sum = [0.0; 5];
            // Beside much heavier siblings a child may not be offered everything at the right bound.
            let mut offered = true;
            for s in slots.clone() {
                let child = if fifo { slots.start + self.engine.served[s] as usize } else { s };
                let full = &self.engine.leaves[child].full;
                for r in 0..5 {
                    sum[r] += full[r];
                }
                offered &= fifo || self.engine.ratios[s] >= 1.0;
            }
            let reaches_one = (0..5).any(|r| sum[r] >= 1.0 + guarantee[r]);
            if !offered || reaches_one || !within(&sum, &limits) {
                sum = self.engine.limited_demand(id, offered).unwrap_or(sum);
            }
            self.u.out[e].limited_demand_share = Share(sum);
            if let Some(leaf) = self.engine.leaves.get_mut(self.engine.slot_of[e] as usize) {
                leaf.full = sum;
            }
        }
    }
}

impl<'a> Taking<'a> for Run<'a> {
    fn update(&mut self) -> &mut Update<'a> {
        &mut self.u
    }

    fn within(&mut self, pool: usize, guarantee: Share) -> Share {
        let limits = self.u.out[pool].limits_share.0;
        Share(self.try_with(pool, &guarantee.0, &limits, 0.0))
    }

    fn under(&mut self, pool: usize, limits: Share, suggestion: f64) -> Share {
        let guarantee = self.u.guarantee_share(pool).0;
        Share(self.try_with(pool, &guarantee, &limits.0, suggestion))
    }
}

impl Run<'_> {
    /// What a pool would take with other bounds.
    fn try_with(&mut self, pool: usize, guarantee: &Lanes, limits: &Lanes, s: f64) -> Lanes {
        let id = self.engine.trial_of[pool];
        let stream = &self.engine.streams[id as usize];
        if !stream.valid || stream.guarantee != *guarantee || stream.limits != *limits {
            self.engine.reset(id, guarantee, limits);
        }
        self.engine.at(id, s).1
    }
}
