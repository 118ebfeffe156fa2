//! The schedulable operations of a tree, in the order in which heartbeats try them (scheduling.md 9).
//!
//! The specification finds the next operation by going down from the root: each pool offers its least
//! satisfied active child, ties by a fixed order. A pool's satisfaction is the minimum over its
//! subtree, so the operation found is the one with the smallest (satisfaction, rank) of the whole
//! tree, where rank numbers the operations depth-first in that fixed order [D3]. (A check compares with
//! the walk from the root.)
//!
//! Operations that need the same least amount for an allocation and have the same priorities form a
//! *class*, sorted by that pair. A plan merges the classes that fit into the node and that its stage
//! wants. A class that does not fit costs one comparison for all its members, and one counter says for
//! all of them how often that was so: an operation too large for every node costs nothing.

use crate::preemption::PreemptionPriority;
use crate::slab::LeafIdx;
use crate::tree::leaf::Tally;
use std::collections::{BTreeMap, BTreeSet};
use vocab::{RESOURCES, Resources};

/// Place in the order: bits of satisfaction, rank, operation.
pub(crate) type Candidate = (u64, u32, LeafIdx);

/// What the members of a class have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ClassKey {
    /// Least amount for one allocation, by resource in integer units.
    need: [i64; 5],
    pub priority: PreemptionPriority,
    /// Below what guarantees promise (scheduling.md 11.2).
    pub high: bool,
}

impl ClassKey {
    pub fn new(need: &Resources, priority: PreemptionPriority, high: bool) -> ClassKey {
        ClassKey { need: RESOURCES.map(|r| need.raw(r)), priority, high }
    }

    pub fn need(&self) -> Resources {
        Resources::from_raw(|r| self.need[r as usize])
    }

    /// Resources that are short if this much is free; none if it fits.
    pub fn shortage(&self, free: &Resources) -> Option<[bool; 5]> {
        let short = RESOURCES.map(|r| self.need[r as usize] > free.raw(r));
        short.contains(&true).then_some(short)
    }
}

/// How often nothing of a class fitted into a node, and what was short.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Misfits {
    pub count: u64,
    pub short: [u64; 5],
}

/// Where an operation stands among the candidates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Membership {
    pub bits: u64,
    pub rank: u32,
    pub class: ClassKey,
    /// Misfits of the class before the operation came.
    joined: Misfits,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Class {
    pub members: BTreeSet<Candidate>,
    pub misfits: Misfits,
}

/// All candidates of a tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidates {
    classes: BTreeMap<ClassKey, Class>,
    count: usize,
}

impl Candidates {
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn classes(&self) -> impl Iterator<Item = (&ClassKey, &Class)> {
        self.classes.iter()
    }

    pub fn class(&self, key: &ClassKey) -> Option<&Class> {
        self.classes.get(key)
    }

    /// Counts a pass over a node in which nothing of the class fitted; gives the number of members.
    pub fn misfit(&mut self, key: &ClassKey, short: [bool; 5]) -> usize {
        let Some(class) = self.classes.get_mut(key) else { return 0 };
        class.misfits.count += 1;
        for (count, short) in class.misfits.short.iter_mut().zip(short) {
            *count += u64::from(short);
        }
        class.members.len()
    }

    /// All candidates in the order of trial.
    pub fn sorted(&self) -> Vec<Candidate> {
        let mut all: Vec<Candidate> = self.classes.values().flat_map(|c| c.members.iter().copied()).collect();
        all.sort_unstable();
        all
    }

    /// Puts an operation where it belongs, or takes it out. What its class counted meanwhile goes to
    /// its own counters when it leaves the class.
    pub fn place(
        &mut self,
        leaf: LeafIdx,
        old: Option<Membership>,
        wanted: Option<(u64, u32, ClassKey)>,
        refusals: &mut Tally,
    ) -> Option<Membership> {
        match (old, wanted) {
            (None, None) => None,
            (Some(old), Some((bits, rank, class))) if old.class == class => {
                if (old.bits, old.rank) != (bits, rank) {
                    let members = &mut self.classes.get_mut(&class)?.members;
                    members.remove(&(old.bits, old.rank, leaf));
                    members.insert((bits, rank, leaf));
                }
                Some(Membership { bits, rank, ..old })
            }
            (old, wanted) => {
                if let Some(old) = old {
                    self.leave(leaf, &old, refusals);
                }
                let (bits, rank, key) = wanted?;
                let class = self.classes.entry(key).or_default();
                class.members.insert((bits, rank, leaf));
                self.count += 1;
                Some(Membership { bits, rank, class: key, joined: class.misfits })
            }
        }
    }

    fn leave(&mut self, leaf: LeafIdx, old: &Membership, refusals: &mut Tally) {
        let misfits = self.since(old);
        if misfits.count > 0 {
            refusals.get_mut().add_misfits(&misfits);
        }
        if let Some(class) = self.classes.get_mut(&old.class) {
            class.members.remove(&(old.bits, old.rank, leaf));
            self.count -= 1;
            if class.members.is_empty() {
                self.classes.remove(&old.class);
            }
        }
    }

    /// Misfits of the operation's class since it came.
    pub fn since(&self, membership: &Membership) -> Misfits {
        let now = self.classes.get(&membership.class).map_or(membership.joined, |c| c.misfits);
        let mut since = Misfits { count: now.count - membership.joined.count, short: [0; 5] };
        for i in 0..5 {
            since.short[i] = now.short[i] - membership.joined.short[i];
        }
        since
    }
}
