//! The books as they would be if what was planned so far were real, with a way back.

use crate::preemption::LimitedElement;
use crate::scheduler::Scheduler;
use crate::slab::{AllocIdx, Key, LeafIdx, NodeIdx, PoolIdx, TreeIdx};
use crate::tree::Tree;
use rustc_hash::{FxHashMap, FxHashSet};
use vocab::{Resources, Time};

/// What a plan has done to an operation so far.
#[derive(Default)]
struct Progress {
    /// Change of its usage.
    usage: Resources,
    /// Allocations taken from each group of its demand.
    taken: Vec<i64>,
}

/// A step that can be taken back.
enum Step {
    Start { leaf: LeafIdx, group: usize, resources: Resources },
    Preempt { index: AllocIdx },
}

/// A moment to go back to.
#[derive(Clone, Copy)]
pub(super) struct Checkpoint(usize);

/// The books of an attempt: those of the scheduler and what was given and taken since.
pub(crate) struct Trial<'a> {
    pub now: Time,
    pub scheduler: &'a Scheduler,
    pub tree: &'a Tree,
    pub node: NodeIdx,
    /// Free resources of the node; what is taken away counts until it is gone.
    pub free: Resources,
    /// What is taken on the node when all that must give way is gone.
    pub lasting: Resources,
    operations: FxHashMap<LeafIdx, Progress>,
    /// Change of the usage of pools; only those with limits.
    pools: FxHashMap<PoolIdx, Resources>,
    preempted: FxHashSet<AllocIdx>,
    steps: Vec<Step>,
}

impl<'a> Trial<'a> {
    pub fn new(scheduler: &'a Scheduler, now: Time, tree: TreeIdx, node: NodeIdx) -> Trial<'a> {
        let n = &scheduler.nodes[node];
        Trial {
            now,
            scheduler,
            tree: &scheduler.trees[tree.index()],
            node,
            free: n.free(),
            lasting: n.lasting(),
            operations: FxHashMap::default(),
            pools: FxHashMap::default(),
            preempted: FxHashSet::default(),
            steps: Vec::new(),
        }
    }

    pub(super) fn checkpoint(&self) -> Checkpoint {
        Checkpoint(self.steps.len())
    }

    /// Takes back everything since the checkpoint.
    pub(super) fn rollback(&mut self, to: Checkpoint) {
        while self.steps.len() > to.0 {
            match self.steps.pop() {
                Some(Step::Start { leaf, group, resources }) => {
                    self.free += resources;
                    self.lasting -= resources;
                    self.change(leaf, Resources::ZERO - resources);
                    if let Some(progress) = self.operations.get_mut(&leaf) {
                        progress.taken[group] -= 1;
                    }
                }
                Some(Step::Preempt { index }) => {
                    let a = &self.scheduler.allocations[index];
                    self.preempted.remove(&index);
                    self.lasting += a.held;
                    self.change(a.leaf, a.held);
                }
                None => return,
            }
        }
    }

    /// Change of an operation's usage in this attempt.
    pub fn change_of(&self, leaf: LeafIdx) -> Resources {
        self.operations.get(&leaf).map_or(Resources::ZERO, |p| p.usage)
    }

    /// Usage of an operation.
    pub fn usage(&self, leaf: LeafIdx) -> Resources {
        self.tree.leaves[leaf].usage + self.change_of(leaf)
    }

    /// Allocations taken from the groups of an operation's demand.
    pub fn taken(&self, leaf: LeafIdx) -> &[i64] {
        self.operations.get(&leaf).map_or(&[], |p| &p.taken)
    }

    /// The allocation is or will be on its way out.
    pub fn is_ending(&self, index: AllocIdx) -> bool {
        self.scheduler.allocations[index].is_ending() || self.preempted.contains(&index)
    }

    /// Reserves along the chain for one allocation and takes it off the node (scheduling.md 10, steps 4
    /// to 8). The caller has looked at [`Tree::available`].
    pub fn start(&mut self, leaf: LeafIdx, group: usize, resources: Resources) {
        self.free -= resources;
        self.lasting += resources;
        self.change(leaf, resources);
        let taken = &mut self.operations.entry(leaf).or_default().taken;
        if taken.len() <= group {
            taken.resize(group + 1, 0);
        }
        taken[group] += 1;
        self.steps.push(Step::Start { leaf, group, resources });
    }

    /// Takes an allocation away: its operation is no longer charged, its node waits for it to leave
    /// (scheduling.md 16.4).
    pub fn preempt(&mut self, index: AllocIdx) {
        let a = &self.scheduler.allocations[index];
        self.preempted.insert(index);
        self.lasting -= a.held;
        self.change(a.leaf, Resources::ZERO - a.held);
        self.steps.push(Step::Preempt { index });
    }

    fn change(&mut self, leaf: LeafIdx, change: Resources) {
        self.operations.entry(leaf).or_default().usage += change;
        let tree = self.tree;
        for pool in tree.chain(tree.leaves[leaf].pool) {
            if !tree.pools[pool].config.resource_limits.is_empty() {
                *self.pools.entry(pool).or_default() += change;
            }
        }
    }

    /// What limits along the chain still allow (scheduling.md 16.3), with what was given and taken here.
    pub fn available(&self, leaf: LeafIdx, with_tolerance: bool) -> Resources {
        self.tree.available(leaf, with_tolerance, |pool| match pool {
            None => self.change_of(leaf),
            Some(p) => self.pools.get(&p).copied().unwrap_or(Resources::ZERO),
        })
    }

    /// The lowest element of the chain whose specified limits are exceeded (scheduling.md 14.2).
    pub fn violated(&self, leaf: LeafIdx) -> Option<LimitedElement> {
        self.tree.violated(leaf, |pool| match pool {
            None => self.change_of(leaf),
            Some(p) => self.pools.get(&p).copied().unwrap_or(Resources::ZERO),
        })
    }
}

impl Tree {
    /// What the limits of an operation and of the pools above it still allow (scheduling.md 16.3);
    /// `extra` is what a plan has already given to a pool or to the operation (`None`). Preemptive stages
    /// have the tolerance of the pools on top (12.4).
    pub fn available(
        &self,
        leaf: LeafIdx,
        with_tolerance: bool,
        extra: impl Fn(Option<PoolIdx>) -> Resources,
    ) -> Resources {
        let l = &self.leaves[leaf];
        let own = &l.parameters.resource_limits;
        let mut available = Resources::INFINITE;
        if !own.is_empty() {
            available = available.min(own.as_limits() - l.usage - extra(None));
        }
        for pool in self.chain(l.pool) {
            let p = &self.pools[pool];
            let limits = &p.config.resource_limits;
            if limits.is_empty() {
                continue;
            }
            let mut limits = limits.as_limits();
            if with_tolerance {
                limits += p.config.resource_limits_overcommit_tolerance.or_zero();
            }
            available = available.min(limits - p.usage - extra(Some(pool)));
        }
        available
    }

    /// The lowest element of an operation's chain whose specified limits are exceeded.
    pub fn violated(
        &self,
        leaf: LeafIdx,
        extra: impl Fn(Option<PoolIdx>) -> Resources,
    ) -> Option<LimitedElement> {
        let l = &self.leaves[leaf];
        let own = &l.parameters.resource_limits;
        if !own.is_empty() && !own.as_limits().dominates(&(l.usage + extra(None))) {
            return Some(LimitedElement::Operation(l.desc.id));
        }
        self.chain(l.pool)
            .find(|pool| {
                let p = &self.pools[*pool];
                let limits = &p.config.resource_limits;
                !limits.is_empty() && !limits.as_limits().dominates(&(p.usage + extra(Some(*pool))))
            })
            .map(|pool| LimitedElement::Pool(self.pools[pool].name.clone()))
    }
}
