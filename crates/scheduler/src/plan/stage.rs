//! Which operation is next (scheduling.md 9.3), and the regular stages (11).
//!
//! Presence (9.2) is checked when an operation is first reached, not for all of them at the start of a
//! stage: nothing that it depends on changes in between.

use super::trial::Trial;
use super::{Misfit, Plan, Refusal};
use crate::candidates::{Candidate, Class, ClassKey};
use crate::preemption::Stage;
use crate::slab::LeafIdx;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, btree_set};
use vocab::Resources;

/// What preemption would free on the node in a stage.
#[derive(Default)]
pub(super) struct Discount {
    pub total: Resources,
    /// Part of it that an operation itself holds: it cannot preempt itself [D4].
    pub own: FxHashMap<LeafIdx, Resources>,
}

impl Discount {
    fn of(&self, leaf: LeafIdx) -> Resources {
        self.total - self.own.get(&leaf).copied().unwrap_or(Resources::ZERO)
    }
}

/// Operations to choose from: all members of a class, or some of any class.
pub(super) struct Source<'a> {
    class: Option<ClassKey>,
    members: Members<'a>,
    refused: Vec<LeafIdx>,
    closed: bool,
}

enum Members<'a> {
    Class(btree_set::Iter<'a, Candidate>),
    Batch(std::vec::IntoIter<Candidate>),
}

impl Source<'_> {
    fn next(&mut self) -> Option<Candidate> {
        match &mut self.members {
            Members::Class(members) => members.next().copied(),
            Members::Batch(members) => members.next(),
        }
    }
}

impl<'a> Trial<'a> {
    /// `regular_high_priority` and `regular_medium_priority`: nothing is taken away.
    pub(super) fn regular_stages(&mut self, plan: &mut Plan) {
        let by_guarantee = self.tree.config.enable_guarantee_priority_scheduling;
        if by_guarantee {
            self.regular_stage(plan, Stage::RegularHighPriority, |class| class.high);
        }
        self.regular_stage(plan, Stage::RegularMediumPriority, |class| !by_guarantee || !class.high);
    }

    fn regular_stage(&mut self, plan: &mut Plan, stage: Stage, wanted: impl Fn(&ClassKey) -> bool) {
        let mut spare = self.scheduler.config.min_spare_allocation_resources_on_node;
        let none = Discount::default();
        // A stage is not even prepared if nothing could be started.
        if !self.may_go_on(plan, &spare, &none) {
            return;
        }
        let Some(batches) = &self.tree.config.batch_operation_scheduling else {
            let sources = self.sources(plan, &none, wanted);
            self.run(plan, stage, sources, &none, &spare);
            return;
        };
        // In the order of the newest update, batch after batch (scheduling.md 11.3).
        let classes = self.tree.candidates.classes().filter(|(key, _)| wanted(key));
        let mut all: Vec<Candidate> = classes.flat_map(|(_, class)| class.members.iter().copied()).collect();
        all.sort_by_key(|c| (self.tree.leaves[c.2].published.scheduling_index, *c));
        for batch in all.chunks(usize::try_from(batches.batch_size).unwrap_or(usize::MAX)) {
            let before = plan.starts.len();
            let mut batch = batch.to_vec();
            batch.sort_unstable();
            let members = Members::Batch(batch.into_iter());
            let source = Source { class: None, members, refused: Vec::new(), closed: false };
            self.run(plan, stage, vec![source], &none, &spare);
            if plan.starts.len() > before {
                spare = batches.fallback_min_spare_allocation_resources;
            }
            if !self.may_go_on(plan, &spare, &none) {
                return;
            }
        }
    }

    /// Scheduling.md 8.3: there is room for more, and more may be started.
    pub(super) fn may_go_on(&self, plan: &Plan, spare: &Resources, discount: &Discount) -> bool {
        let limit = self.scheduler.config.max_started_allocations_per_heartbeat;
        (self.free + discount.total).dominates(spare) && limit.is_none_or(|l| (plan.starts.len() as i64) < l)
    }

    /// The classes that fit; those that do not are noted in the plan.
    pub(super) fn sources(
        &self,
        plan: &mut Plan,
        discount: &Discount,
        wanted: impl Fn(&ClassKey) -> bool,
    ) -> Vec<Source<'a>> {
        let room = self.free + discount.total;
        let mut sources = Vec::new();
        for (key, class) in self.tree.candidates.classes() {
            if !wanted(key) {
                continue;
            }
            match key.shortage(&room) {
                Some(short) => plan.misfits.push(misfit(key, class, short, Vec::new())),
                None => sources.push(Source {
                    class: Some(*key),
                    members: Members::Class(class.members.iter()),
                    refused: Vec::new(),
                    closed: false,
                }),
            }
        }
        sources
    }

    /// The loop of scheduling.md 9.3 over the sources. A preemptive stage ends with its first success; the
    /// operation that had it is given back.
    pub(super) fn run(
        &mut self,
        plan: &mut Plan,
        stage: Stage,
        mut sources: Vec<Source<'a>>,
        discount: &Discount,
        spare: &Resources,
    ) -> Option<LeafIdx> {
        // The heads of all sources, and operations that were given something, with their new satisfaction.
        let mut heap: BinaryHeap<Reverse<(Candidate, usize, bool)>> = BinaryHeap::new();
        for (i, source) in sources.iter_mut().enumerate() {
            heap.extend(source.next().map(|head| Reverse((head, i, true))));
        }
        while self.may_go_on(plan, spare, discount) {
            let Reverse((candidate, i, first_time)) = heap.pop()?;
            let source = &mut sources[i];
            if source.closed {
                continue;
            }
            if let Some(class) = &source.class
                && let Some(short) = class.shortage(&(self.free + discount.total))
            {
                source.closed = true;
                let refused = std::mem::take(&mut source.refused);
                if let Some(members) = self.tree.candidates.class(class) {
                    plan.misfits.push(misfit(class, members, short, refused));
                }
                continue;
            }
            if first_time {
                heap.extend(source.next().map(|head| Reverse((head, i, true))));
            }
            let (_, rank, leaf) = candidate;
            plan.statistics.attempts[stage as usize] += 1;
            let present = if first_time { self.presence(leaf, stage) } else { Ok(()) };
            let result = match present {
                Ok(()) => self.attempt(leaf, stage, discount.of(leaf)),
                Err(reason) => Err((reason, [false; 5])),
            };
            match result {
                Ok(start) => {
                    plan.starts.push(start);
                    plan.statistics.started += 1;
                    if stage.target().is_some() {
                        return Some(leaf);
                    }
                    let bits = self.tree.satisfaction_bits(leaf, self.usage(leaf));
                    heap.push(Reverse(((bits, rank, leaf), i, false)));
                }
                Err((reason, unsatisfied)) => {
                    source.refused.push(leaf);
                    plan.refusals.push(Refusal {
                        operation: self.tree.leaves[leaf].desc.id,
                        reason,
                        unsatisfied,
                        leaf,
                    });
                }
            }
        }
        None
    }
}

fn misfit(key: &ClassKey, class: &Class, unsatisfied: [bool; 5], except: Vec<LeafIdx>) -> Misfit {
    Misfit { needed: key.need(), unsatisfied, operations: class.members.len(), class: *key, except }
}
