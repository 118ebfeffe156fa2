//! Whom to preempt (scheduling.md 13), and preemption for nobody (14).

use super::trial::Trial;
use super::{Plan, PlannedCause, PlannedPreemption};
use crate::preemption::{PreemptionGroup, PreemptionPriority, Stage};
use crate::slab::{AllocIdx, Key, LeafIdx};
use crate::update::StarvationStatus;
use std::cmp::Reverse;
use vocab::Resources;

/// An allocation on the node that could be taken away.
#[derive(Clone, Copy)]
pub(super) struct Victim {
    pub index: AllocIdx,
    pub leaf: LeafIdx,
    pub group: PreemptionGroup,
    pub level: u8,
    pub has_cpu_gap: bool,
    pub sequence: u64,
    pub held: Resources,
}

/// Most expendable first (scheduling.md 13): by group; then, unless preemptible, with a CPU gap; then
/// the latest start. (The start of a job is never unknown here: sequence numbers are given in its
/// order, at revival too.)
fn expendability(v: &Victim) -> impl Ord + use<> {
    let gap_counts = v.group != PreemptionGroup::Preemptible && v.has_cpu_gap;
    Reverse((v.group, gap_counts, v.sequence))
}

impl Trial<'_> {
    fn victim(&self, index: AllocIdx) -> Victim {
        let a = &self.scheduler.allocations[index];
        let leaf = &self.tree.leaves[a.leaf];
        let group = leaf.groups.group(a.sequence);
        Victim {
            index,
            leaf: a.leaf,
            group,
            level: group.level(leaf.published.aggressive_preemption_allowed),
            has_cpu_gap: a.has_cpu_gap(),
            sequence: a.sequence,
            held: a.held,
        }
    }

    /// All allocations of the node that are not on their way out, most expendable first.
    fn running(&self) -> Vec<Victim> {
        let on_node = self.scheduler.nodes[self.node].allocations.values();
        let mut all: Vec<Victim> =
            on_node.filter(|index| !self.is_ending(**index)).map(|index| self.victim(*index)).collect();
        all.sort_by_key(expendability);
        all
    }

    /// The allocations that a stage may take (scheduling.md 12.3), most expendable first.
    pub(super) fn candidates(&self, stage: Stage) -> Vec<Victim> {
        let mut all = self.running();
        // Many allocations on a node are usually of few operations.
        let mut known: Vec<(LeafIdx, bool)> = Vec::new();
        all.retain(|v| {
            if v.level < stage.minimal_level() {
                return false;
            }
            match known.iter().find(|(leaf, _)| *leaf == v.leaf) {
                Some((_, allowed)) => *allowed,
                None => {
                    let allowed = !self.preemption_forbidden(v.leaf, stage);
                    known.push((v.leaf, allowed));
                    allowed
                }
            }
        });
        all
    }

    /// May allocations of the operation not be taken in the stage (scheduling.md 12.3)?
    fn preemption_forbidden(&self, leaf: LeafIdx, stage: Stage) -> bool {
        let tree = self.tree;
        let l = &tree.leaves[leaf];
        !l.published.enabled
            || l.is_graceful()
            || (l.starvation.status != StarvationStatus::NonStarving
                && !tree.config.allow_preemption_from_starving_operations)
            || (stage.target() == Some(PreemptionPriority::Normal) && l.published.normal_preemption_forbidden)
    }

    /// After a stage: makes the node fit again, then the pools (scheduling.md 13, 14.1, 14.2). False if
    /// the node does not fit even without any of them. Not `own`: nobody preempts himself [D4].
    pub(super) fn preempt_after(
        &mut self,
        plan: &mut Plan,
        stage: Stage,
        candidates: &[Victim],
        started: Option<LeafIdx>,
    ) -> bool {
        let limits = self.scheduler.nodes[self.node].limits;
        for v in candidates {
            if limits.dominates(&self.lasting) {
                break;
            }
            if started == Some(v.leaf) {
                continue;
            }
            let cause = match started {
                Some(_) => PlannedCause::Start { stage, start: plan.starts.len() - 1 },
                None => PlannedCause::NodeLimits { stage },
            };
            self.take(plan, v, cause);
        }
        let fits = limits.dominates(&self.lasting);
        // Without exceeded limits nobody needs to look; a start may have used a tolerance.
        if fits && (self.tree.over_limits > 0 || started.is_some()) {
            for v in candidates {
                if !self.is_ending(v.index)
                    && let Some(violated) = self.violated(v.leaf)
                {
                    self.take(plan, v, PlannedCause::ResourceLimits { stage, violated });
                }
            }
        }
        fits
    }

    /// What a node has had too little for too long is taken away from the most expendable, whatever
    /// protects it (scheduling.md 14.3).
    pub(super) fn long_overcommit(&mut self, plan: &mut Plan) {
        let node = &self.scheduler.nodes[self.node];
        let allowed = self.scheduler.config.allowed_node_resources_overcommit_duration;
        let Some(since) = node.overcommitted_since.filter(|since| self.now > *since + allowed) else {
            return;
        };
        let limits = node.limits;
        let mut sum = Resources::ZERO;
        for v in self.running().iter().rev() {
            if limits.dominates(&(sum + v.held)) {
                sum += v.held;
            } else {
                self.take(plan, v, PlannedCause::NodeOvercommit { since });
            }
        }
    }

    /// Graceful operations give back what they have beyond their share (scheduling.md 14.4), in every
    /// pass.
    pub(super) fn graceful(&mut self, plan: &mut Plan) {
        if self.tree.graceful == 0 {
            return;
        }
        let on_node = self.scheduler.nodes[self.node].allocations.values();
        let theirs: Vec<Victim> = on_node
            .filter(|index| {
                let leaf = &self.tree.leaves[self.scheduler.allocations[**index].leaf];
                leaf.is_graceful() && leaf.published.enabled && !self.is_ending(**index)
            })
            .map(|index| self.victim(*index))
            .filter(|v| v.group == PreemptionGroup::Preemptible)
            .collect();
        for v in theirs.iter().rev() {
            self.take(plan, v, PlannedCause::Graceful);
        }
    }

    fn take(&mut self, plan: &mut Plan, v: &Victim, cause: PlannedCause) {
        self.preempt(v.index);
        let a = &self.scheduler.allocations[v.index];
        plan.statistics.preempted += 1;
        plan.preemptions.push(PlannedPreemption {
            allocation: a.id,
            operation: self.scheduler.operations[a.operation].desc.id,
            resources: v.held,
            group: v.group,
            level: v.level,
            cause,
            index: v.index,
        });
        debug_assert_eq!(self.scheduler.trees[a.tree.index()].name, self.tree.name);
    }
}
