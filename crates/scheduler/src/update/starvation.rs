//! Who has been below the fair share for too long (scheduling.md 6.3 to 6.5).
//!
//! Statuses change only here, in updates. What follows from them is in [`super::priority`] (6.6) and in
//! the preemptive stages of plans.

use crate::snapshot::Outcome;
use crate::statistics::{StarvationEnd, StarvationNotice};
use crate::tree::Tree;
use crate::tree::leaf::Tally;
use vocab::{Share, Span, Time};

use super::Settings;
use super::arena::{Arena, Item};
use super::status::SchedulingStatus;
use crate::config::TreeConfig;
use crate::slab::LeafIdx;

/// Starving, and how much.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum StarvationStatus {
    #[default]
    NonStarving,
    Starving,
    AggressivelyStarving,
}

impl StarvationStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            StarvationStatus::NonStarving => "non_starving",
            StarvationStatus::Starving => "starving",
            StarvationStatus::AggressivelyStarving => "aggressively_starving",
        }
    }
}

/// What readers see of it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Hunger {
    pub status: StarvationStatus,
    pub below_fair_share_since: Option<Time>,
    /// Start of the present kind of starvation.
    pub starving_since: Option<Time>,
}

/// What an element remembers between updates (6.3).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Starvation {
    pub status: StarvationStatus,
    pub below_fair_share_since: Option<Time>,
    /// Start of the present kind of starvation.
    pub starving_since: Option<Time>,
    /// What it was entitled to and what it used at that time.
    pub at_start: (Share, Share),
}

/// What a step of the automaton did to an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Began,
    Ended { after: Span, end: StarvationEnd },
}

impl Starvation {
    pub fn hunger(&self) -> Hunger {
        let Starvation { status, below_fair_share_since, starving_since, .. } = *self;
        Hunger { status, below_fair_share_since, starving_since }
    }

    /// One step of the automaton (6.4). Comparisons are strict: with a timeout of zero an element
    /// starves from the second update below its fair share.
    fn step(
        &mut self,
        status: SchedulingStatus,
        timeout: Span,
        aggressive_timeout: Option<Span>,
        shares: (Share, Share),
        now: Time,
    ) -> Option<Change> {
        if status == SchedulingStatus::Normal {
            let before = std::mem::take(self);
            let decreased = before.at_start.0.0.iter().zip(shares.0.0).any(|(old, new)| new < *old);
            let end =
                if decreased { StarvationEnd::FairShareDecreased } else { StarvationEnd::UsageIncreased };
            return before.starving_since.map(|since| Change::Ended { after: now.since(since), end });
        }
        let Some(since) = self.below_fair_share_since else {
            self.below_fair_share_since = Some(now);
            return None;
        };
        let next = if aggressive_timeout.is_some_and(|t| now > since + t) {
            StarvationStatus::AggressivelyStarving
        } else if now > since + timeout {
            StarvationStatus::Starving
        } else {
            return None;
        };
        if self.status == next {
            return None;
        }
        let began = self.status == StarvationStatus::NonStarving;
        self.status = next;
        self.starving_since = Some(now);
        self.at_start = shares;
        began.then_some(Change::Began)
    }
}

/// Results by element.
pub(crate) struct Starving {
    pub of: Vec<Hunger>,
    /// Element itself or the lowest one above it that starves (6.5).
    pub lowest: Vec<Option<usize>>,
    /// The same for aggressive starvation.
    pub lowest_aggressive: Vec<Option<usize>>,
}

/// Moves all automata of the tree on by one update, parents before children.
pub(super) fn check(
    tree: &mut Tree,
    arena: &Arena,
    outcomes: &[Outcome],
    statuses: &[SchedulingStatus],
    now: Time,
) -> Starving {
    let n = arena.items.len();
    let mut result =
        Starving { of: vec![Hunger::default(); n], lowest: vec![None; n], lowest_aggressive: vec![None; n] };
    let config = tree.config.clone();
    // The root never starves.
    for (i, status) in statuses.iter().enumerate().skip(1) {
        let settings = &arena.settings[i];
        let (mut timeout, mut aggressive_timeout) = timeouts(&config, settings, None);
        let state = match arena.items[i] {
            Item::Pool(pool) => &mut tree.pools[pool].starvation,
            Item::Leaf(leaf) => {
                if let fairshare::Kind::Operation(operation) = &arena.input.elements[i].kind {
                    let pending = Some(operation.pending_allocation_count);
                    (timeout, aggressive_timeout) = timeouts(&config, settings, pending);
                }
                &mut tree.leaves[leaf].starvation
            }
        };
        if matches!(arena.items[i], Item::Pool(_)) && !config.enable_pool_starvation {
            *state = Starvation::default();
        } else {
            let aggressive = settings.aggressive_starvation_enabled.then_some(aggressive_timeout);
            let shares = (outcomes[i].fair_share(), outcomes[i].usage_share());
            let change = state.step(*status, timeout, aggressive, shares, now);
            if let (Item::Leaf(leaf), Some(change)) = (arena.items[i], change) {
                note(tree, leaf, change, now);
            }
        }
        let state = match arena.items[i] {
            Item::Pool(pool) => tree.pools[pool].starvation,
            Item::Leaf(leaf) => tree.leaves[leaf].starvation,
        };
        result.of[i] = state.hunger();
        let parent = arena.input.elements[i].parent;
        let starves = state.status != StarvationStatus::NonStarving;
        let aggressively = state.status == StarvationStatus::AggressivelyStarving;
        result.lowest[i] = if starves { Some(i) } else { result.lowest[parent] };
        result.lowest_aggressive[i] = if aggressively { Some(i) } else { result.lowest_aggressive[parent] };
    }
    result
}

/// Notices that nobody has taken; older ones are dropped.
const NOTICES_KEPT: usize = 10_000;

/// Counters of starvation of operations, and news of it.
fn note(tree: &mut Tree, leaf: LeafIdx, change: Change, now: Time) {
    let ended = match change {
        // Refusals are counted anew from here (17.4).
        Change::Began => {
            tree.leaves[leaf].refusals_at_starvation = Tally::new(tree.refusals(leaf));
            None
        }
        Change::Ended { after, end } => {
            tree.metrics.starved(end, after);
            Some((end, after))
        }
    };
    if tree.config.enable_detailed_starvation_logs {
        if tree.notices.len() >= NOTICES_KEPT {
            tree.notices.remove(0);
        }
        let operation = tree.leaves[leaf].desc.id;
        tree.notices.push(StarvationNotice { time: now, tree: tree.name.clone(), operation, ended });
    }
}

/// Timeouts of an element. Few pending allocations of an operation need not wait as long (6.4).
pub(crate) fn timeouts(config: &TreeConfig, settings: &Settings, pending: Option<i64>) -> (Span, Span) {
    let k = pending.map_or(1.0, |n| n as f64 / config.allocation_count_preemption_timeout_coefficient);
    (
        shortened(settings.fair_share_starvation_timeout, k),
        shortened(config.fair_share_aggressive_starvation_timeout, k),
    )
}

fn shortened(timeout: Span, k: f64) -> Span {
    if k < 1.0 { Span((timeout.0 as f64 * k) as u64) } else { timeout }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worked example 23.7: timeouts 30 s and 120 s, updates every 0.2 s.
    #[test]
    fn time_line() {
        let mut starvation = Starvation::default();
        let mut changes = Vec::new();
        for tick in 0..800u64 {
            let now = Time::from_secs(1_000) + Span::from_millis(200 * tick);
            let seconds = tick as f64 / 5.0;
            let below = !(125.0..126.0).contains(&seconds);
            let status = if below { SchedulingStatus::BelowFairShare } else { SchedulingStatus::Normal };
            let before = starvation.status;
            let shares = (Share::ONES, Share::ZERO);
            starvation.step(status, Span::from_secs(30), Some(Span::from_secs(120)), shares, now);
            if starvation.status != before {
                changes.push(format!("{seconds} {}", starvation.status.as_str()));
            }
        }
        let expected = ["30.2 starving", "120.2 aggressively_starving", "125 non_starving", "156.2 starving"];
        assert_eq!(changes, expected);
    }

    #[test]
    fn switching_aggressive_starvation() {
        let mut s = Starvation::default();
        let at = |s: &mut Starvation, seconds, aggressive: Option<u64>| {
            let aggressive = aggressive.map(Span::from_secs);
            let (below, shares) = (SchedulingStatus::BelowFairShare, (Share::ONES, Share::ZERO));
            s.step(below, Span::ZERO, aggressive, shares, Time::from_secs(seconds));
            s.status
        };
        assert_eq!(
            at(&mut s, 1, Some(5)),
            StarvationStatus::NonStarving,
            "the second update at the earliest"
        );
        assert_eq!(at(&mut s, 2, Some(5)), StarvationStatus::Starving);
        assert_eq!(at(&mut s, 7, Some(5)), StarvationStatus::AggressivelyStarving);
        assert_eq!(at(&mut s, 8, None), StarvationStatus::Starving);
        assert_eq!(at(&mut s, 9, Some(5)), StarvationStatus::AggressivelyStarving, "the clock went on");
    }

    /// A status never gets to a starving kind before its timeout has passed since the last normal update
    /// (24, 4).
    #[test]
    fn no_status_comes_too_early() {
        let mut state = 1u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for _ in 0..2_000 {
            let (timeout, aggressive) = (Span::from_secs(random(4)), Span::from_secs(3 + random(4)));
            let mut s = Starvation::default();
            let mut now = Time::from_secs(100);
            let mut last_normal = now;
            for _ in 0..60 {
                now += Span::from_millis(random(1_500));
                let normal = random(12) == 0;
                let status = if normal { SchedulingStatus::Normal } else { SchedulingStatus::BelowFairShare };
                let enabled = random(3) > 0;
                s.step(status, timeout, enabled.then_some(aggressive), (Share::ONES, Share::ZERO), now);
                if normal {
                    last_normal = now;
                }
                match s.status {
                    StarvationStatus::NonStarving => assert!(s.starving_since.is_none()),
                    StarvationStatus::Starving => assert!(now.since(last_normal) > timeout),
                    StarvationStatus::AggressivelyStarving => {
                        assert!(enabled && now.since(last_normal) > aggressive);
                    }
                }
            }
        }
    }
}
