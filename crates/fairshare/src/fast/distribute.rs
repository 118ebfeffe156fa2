//! Top-down distribution (fair-share.md 8).

use vocab::Share;

use super::knots::NONE;
use super::lanes::{Lanes, ZERO, within};
use super::{Engine, Knot, Reader, Run};
use crate::numbers::{EPS, last_true};
use crate::output::FairShare;

/// What a pool was told and where that brings it.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) struct Told {
    /// Fit factor.
    x: f64,
    /// Improved mode: children before this one have passed their jumps at `x`.
    passed: u32,
    /// Improved mode: `x` is exactly at a breakpoint.
    exact: bool,
    /// What the pool takes; in improved mode told by the parent.
    pub(super) want: Lanes,
    /// Segments up to there, where they were counted.
    pub(super) size: Option<u32>,
}

/// Which attribute a pass fills in.
#[derive(Clone, Copy, PartialEq)]
enum Pass {
    Fair,
    /// Within guarantees only (8.3).
    Promised,
}

/// Rounding that a share may carry when it is looked up again (8.2 compares without a tolerance; there
/// both sides are the same floats).
const NOISE: f64 = 1e-13;
/// The least suggestion near `s` that is at the fit factor: not behind any breakpoint that is there.
fn in_front(mut s: f64, x: f64, ratio: f64) -> f64 {
    while s > 0.0 && s.next_down() / ratio >= x {
        s = s.next_down();
    }
    s
}

/// The least suggestion near `s` beyond the fit factor: behind every breakpoint that is there.
fn behind(mut s: f64, x: f64, ratio: f64) -> f64 {
    while s / ratio <= x {
        s = s.next_up();
    }
    s
}

impl Engine {
    /// What a child is offered at a fit factor.
    #[inline]
    pub(super) fn suggestion(&self, fifo: bool, i: usize, slot: usize, told: &Told) -> f64 {
        let s = if fifo { told.x - i as f64 } else { told.x * self.ratios[slot] };
        if self.improved && told.exact && !fifo {
            let ratio = self.ratios[slot];
            let s =
                if (i as u32) < told.passed { behind(s, told.x, ratio) } else { in_front(s, told.x, ratio) };
            return s.clamp(0.0, 1.0);
        }
        s.clamp(0.0, 1.0)
    }
}

impl Run<'_> {
    /// Fair shares of all elements.
    pub(super) fn distribute(&mut self) {
        self.pass(0, 1.0, Pass::Fair);
        self.split_root();
    }

    /// Shares within guarantees, below pools that asked for them.
    pub(super) fn distribute_promised(&mut self) {
        for &e in self.u.promising {
            self.pass(e, 0.0, Pass::Promised);
        }
    }

    fn pass(&mut self, start: usize, suggestion: f64, pass: Pass) {
        let tree = self.u.tree;
        self.tell(start, suggestion, pass);
        let subtree = tree.subtree(start);
        let from = tree.pools.partition_point(|e| tree.position[*e] < subtree.start);
        let to = tree.pools.partition_point(|e| tree.position[*e] < subtree.end);
        for &e in &tree.pools[from..to] {
            self.divide(e, pass);
        }
    }

    fn told(&mut self, e: usize, pass: Pass) -> &mut Told {
        let row = self.u.row(e);
        match pass {
            Pass::Fair => &mut self.engine.told[row],
            Pass::Promised => &mut self.engine.promised[row],
        }
    }

    /// Brings a pool to a suggestion.
    fn tell(&mut self, e: usize, suggestion: f64, pass: Pass) -> Lanes {
        let id = self.engine.stream_of[e];
        let (x, want, size) = if let Some((x, want, size)) = self.engine.look_up_again(id, suggestion) {
            (x, want, Some(size))
        } else if let Some((x, want)) = self.engine.place(id, suggestion) {
            (x, want, None)
        } else {
            let (x, want, size) = self.engine.at(id, suggestion);
            (x, want, Some(size))
        };
        let mut told = Told { x, want, ..Told::default() };
        if self.engine.improved {
            told = self.find(e, want);
        }
        *self.told(e, pass) = Told { size, ..told };
        want
    }

    /// Improved mode: the last place at which a pool takes no more than this.
    fn find(&mut self, e: usize, want: Lanes) -> Told {
        let id = self.engine.stream_of[e];
        let enough = want.map(|x| x + NOISE);
        let mut reader = Reader::default();
        let mut last: Option<Knot> = None;
        loop {
            let curve = &self.engine.streams[id as usize].curve;
            match self.engine.store.read(&curve.knots, &mut reader) {
                Some(knot) if within(&knot.y, &enough) => last = Some(*knot),
                Some(knot) => {
                    let Some(a) = last.filter(|a| a.x < knot.x) else { break };
                    let t = (0..5)
                        .filter(|r| knot.y[*r] > enough[*r])
                        .map(|r| (want[r] - a.y[r]).max(0.0) / (knot.y[r] - a.y[r]))
                        .fold(1.0, f64::min);
                    if t <= 0.0 {
                        break;
                    }
                    let x = a.x + (knot.x - a.x) * t;
                    return Told { x, want, ..Told::default() };
                }
                None if curve.ended => break,
                None => self.engine.pull(id),
            }
        }
        let (x, passed) = last.map_or((0.0, 0), |knot| (knot.x, knot.passed));
        Told { x, want, passed, exact: true, ..Told::default() }
    }

    /// Offers the children of a pool their parts. Its own share is split for who asks for it.
    fn divide(&mut self, e: usize, pass: Pass) {
        let told = *self.told(e, pass);
        if pass == Pass::Promised {
            let out = &mut self.u.out[e];
            out.promised_guarantee_fair_share = out.split(told.want);
        }
        let id = self.engine.stream_of[e] as usize;
        let (levels, jumping) = (self.engine.levels[id], self.engine.jumping[id]);
        if levels == 1 && jumping == 0 && !self.engine.improved {
            // Operations that go on steadily take what their sum takes, and nobody waits to be told.
            return;
        }
        let sum = self.offer(e, &told, pass);
        let enough = told.want.map(|x| x + EPS);
        if !within(&sum, &enough) {
            // Rounding has brought a child beyond a jump at which the pool stands in front (8.1).
            let x = last_true(0.0, told.x, |x| within(&self.sum_at(e, x), &enough));
            self.u.require(x.is_some(), e, "children take no more than the pool at fit factor 0");
            let x = x.unwrap_or(0.0);
            self.told(e, pass).x = x;
            let told = Told { x, passed: 0, exact: false, ..told };
            self.offer(e, &told, pass);
        }
    }

    /// Offers all children of a pool their parts, and adds up what they take. Operations need not be told:
    /// what they take follows from the place of the pool.
    fn offer(&mut self, e: usize, told: &Told, pass: Pass) -> Lanes {
        let slots = self.u.tree.slots(e);
        let fifo = self.is_fifo(e);
        let mut sum = ZERO;
        for (i, place) in slots.clone().enumerate() {
            let slot = if fifo { slots.start + self.engine.served[place] as usize } else { place };
            let child = self.u.tree.all_children()[slot];
            let s = self.engine.suggestion(fifo, i, slot, told);
            let share = if self.engine.stream_of_slot[slot] == NONE {
                self.engine.leaves[slot].at(s)
            } else {
                self.tell(child, s, pass)
            };
            for r in 0..5 {
                sum[r] += share[r];
            }
        }
        sum
    }

    /// The same without telling anybody.
    fn sum_at(&mut self, e: usize, x: f64) -> Lanes {
        let slots = self.u.tree.slots(e);
        let fifo = self.is_fifo(e);
        let told = Told { x, ..Told::default() };
        let mut sum = ZERO;
        for (i, place) in slots.clone().enumerate() {
            let slot = if fifo { slots.start + self.engine.served[place] as usize } else { place };
            let s = self.engine.suggestion(fifo, i, slot, &told);
            let share = match self.engine.stream_of_slot[slot] {
                NONE => self.engine.leaves[slot].at(s),
                child => self.engine.at(child, s).1,
            };
            for r in 0..5 {
                sum[r] += share[r];
            }
        }
        sum
    }

    /// 8.4: what the first level was given, not what it was offered.
    fn split_root(&mut self) {
        let (mut total, mut strong) = (Share::ZERO, Share::ZERO);
        for &c in self.u.children(0) {
            if self.u.operation(c).is_some() {
                total += self.engine.fair_share(&self.u, c);
            } else {
                let share = self.engine.share_of_pool(&self.u, c);
                total += share.total;
                strong += share.strong_guarantee;
            }
        }
        self.u.out[0].fair_share = FairShare::split(total, strong, self.u.out[0].proposed_integral_share);
    }
}
