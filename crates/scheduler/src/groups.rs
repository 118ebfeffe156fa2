//! The three preemption groups of an operation's allocations (scheduling.md 7).
//!
//! The specification moves allocations between three lists. Walking from the oldest, an allocation is
//! left of a border as long as the usage *before* it is under the bound; usage only grows on the way,
//! so each border is one place in the order of last job start. Kept here is that place, the usage left
//! of it and the number of allocations left of it. An event moves a border past the few allocations
//! that changed sides, whatever the number of allocations; which group one is in is two comparisons.

use crate::allocations::Allocation;
use crate::amounts::Amounts;
use crate::config::TreeConfig;
use crate::preemption::PreemptionGroup;
use crate::slab::{AllocIdx, Slab};
use crate::update::EPS;
use std::collections::BTreeMap;
use vocab::{RESOURCES, Resources, Share};

/// Where the groups of an operation end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Groups {
    borders: [Border; 2],
}

/// One border: allocations with a sequence number up to `last` are left of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Border {
    last: u64,
    /// Charged usage left of it.
    usage: Resources,
    count: u32,
}

/// Up to where an operation's usage is protected: the result of an update (scheduling.md 7.3).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Bounds {
    /// Bound of the non-preemptible group.
    aggressive: Share,
    /// Bound of both protected groups; none: everything is protected from the normal stage.
    normal: Option<Share>,
    /// Nothing more of the resource is wanted (scheduling.md 1).
    blocked: [bool; 5],
    /// Usage strictly under this in every resource is protected anyway.
    threshold: Resources,
    /// `consider_allocation_on_fair_share_bound_preemptible`.
    crossing_is_preemptible: bool,
}

impl Bounds {
    /// Nothing is protected: before the first update.
    pub const NOTHING: Bounds = Bounds {
        aggressive: Share::ZERO,
        normal: Some(Share::ZERO),
        blocked: [true; 5],
        threshold: Resources::ZERO,
        crossing_is_preemptible: false,
    };

    pub fn new(config: &TreeConfig, fair_share: &Share, demand_share: &Share, threshold: &Amounts) -> Bounds {
        let covered = fair_share.0.iter().zip(demand_share.0).all(|(f, d)| (f - d).abs() <= EPS);
        let preemptible = !covered || demand_share.max_component() <= EPS;
        Bounds {
            aggressive: *fair_share * config.aggressive_preemption_satisfaction_threshold,
            normal: preemptible.then(|| *fair_share * config.preemption_satisfaction_threshold),
            blocked: RESOURCES.map(|r| fair_share[r] >= demand_share[r]),
            threshold: if threshold.is_empty() { Resources::ZERO } else { threshold.as_limits() },
            crossing_is_preemptible: config.consider_allocation_on_fair_share_bound_preemptible,
        }
    }

    /// Does an allocation stay left of a border, with this usage before it and after it?
    fn protects(&self, border: usize, before: &Resources, after: &Resources, total: &Resources) -> bool {
        if self.threshold.strictly_dominates(before) {
            return true;
        }
        let bound = match (border, &self.normal) {
            (0, _) => &self.aggressive,
            (_, Some(bound)) => bound,
            (_, None) => return true,
        };
        self.reaches(bound, before, total, EPS)
            && (!self.crossing_is_preemptible || self.reaches(bound, after, total, -EPS))
    }

    /// Is the bound above the usage, where it matters (scheduling.md 1, `above_non_blocked`)? A negative
    /// guard reads "at or above".
    fn reaches(&self, bound: &Share, usage: &Resources, total: &Resources, guard: f64) -> bool {
        let above = |i: usize| {
            let r = RESOURCES[i];
            let usage = if total.raw(r) == 0 { 0.0 } else { usage.get(r) / total.get(r) };
            bound.0[i] > usage + guard
        };
        match self.blocked.iter().all(|b| *b) {
            true => (0..5).any(above),
            false => (0..5).filter(|i| !self.blocked[*i]).all(above),
        }
    }
}

impl Groups {
    /// The group of an allocation by its place in the order.
    pub fn group(&self, sequence: u64) -> PreemptionGroup {
        if sequence <= self.borders[0].last {
            PreemptionGroup::NonPreemptible
        } else if sequence <= self.borders[1].last {
            PreemptionGroup::AggressivelyPreemptible
        } else {
            PreemptionGroup::Preemptible
        }
    }

    /// Numbers of allocations in the three groups, of `all`.
    pub fn counts(&self, all: usize) -> [i64; 3] {
        let [first, second] = self.borders.map(|b| i64::from(b.count));
        [first, second - first, all as i64 - second]
    }

    /// Charged usage of the three groups, of `all`.
    pub fn usages(&self, all: Resources) -> [Resources; 3] {
        let [first, second] = self.borders.map(|b| b.usage);
        [first, second - first, all - second]
    }

    /// The charged usage of an allocation changed.
    pub fn usage_changed(&mut self, sequence: u64, change: Resources) {
        for border in self.borders.iter_mut().filter(|b| sequence <= b.last) {
            border.usage += change;
        }
    }

    /// An allocation left the order.
    pub fn removed(&mut self, sequence: u64, usage: Resources) {
        for border in self.borders.iter_mut().filter(|b| sequence <= b.last) {
            border.usage -= usage;
            border.count -= 1;
        }
    }

    /// Moves the borders to where they belong. Doing it twice changes nothing.
    pub fn rebalance(
        &mut self,
        order: &BTreeMap<u64, AllocIdx>,
        allocations: &Slab<AllocIdx, Allocation>,
        bounds: &Bounds,
        total: &Resources,
    ) {
        for (i, border) in self.borders.iter_mut().enumerate() {
            let charged = |index: &AllocIdx| allocations[*index].charged();
            while let Some((sequence, index)) = order.range(..=border.last).next_back() {
                let before = border.usage - charged(index);
                if bounds.protects(i, &before, &border.usage, total) {
                    break;
                }
                border.last = sequence - 1;
                border.usage = before;
                border.count -= 1;
            }
            // A border that stands after an allocation that is gone says the same as one before it.
            while let Some((sequence, index)) = order.range(border.last + 1..).next() {
                let after = border.usage + charged(index);
                if !bounds.protects(i, &border.usage, &after, total) {
                    break;
                }
                border.last = *sequence;
                border.usage = after;
                border.count += 1;
            }
        }
    }

    /// The groups by the definition, without any history: for the invariant check.
    pub fn from_scratch(
        order: &BTreeMap<u64, AllocIdx>,
        allocations: &Slab<AllocIdx, Allocation>,
        bounds: &Bounds,
        total: &Resources,
    ) -> ([i64; 3], [Resources; 3]) {
        let mut counts = [0; 3];
        let mut usages = [Resources::ZERO; 3];
        let mut before = Resources::ZERO;
        for index in order.values() {
            let usage = allocations[*index].charged();
            let after = before + usage;
            let group = (0..2).find(|i| bounds.protects(*i, &before, &after, total)).unwrap_or(2);
            counts[group] += 1;
            usages[group] += usage;
            before = after;
        }
        (counts, usages)
    }
}

#[cfg(test)]
mod tests;
