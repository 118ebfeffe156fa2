//! Trying one operation on the node (scheduling.md 9.2, 10).

use super::PlannedStart;
use super::trial::Trial;
use crate::messages::DemandGroup;
use crate::preemption::{PreemptionPriority, Stage};
use crate::reasons::Deactivation;
use crate::slab::LeafIdx;
use crate::tree::ROOT;
use vocab::{RESOURCES, Resources};

/// Why an operation is passed over, and which resources were short if that is why.
pub(crate) type No = (Deactivation, [bool; 5]);

fn because(reason: Deactivation) -> No {
    (reason, [false; 5])
}

impl Trial<'_> {
    /// Presence of an operation in a stage on this node (scheduling.md 9.2).
    pub fn presence(&self, leaf: LeafIdx, stage: Stage) -> Result<(), Deactivation> {
        let l = &self.tree.leaves[leaf];
        let operation = &self.scheduler.operations[l.operation];
        if !l.live || !l.is_running() || !l.published.schedulable {
            return Err(Deactivation::IsNotAlive);
        }
        match stage.target() {
            Some(target) if l.published.priority != target => {
                return Err(match target {
                    PreemptionPriority::Aggressive => {
                        Deactivation::IsNotEligibleForAggressivelyPreemptiveScheduling
                    }
                    _ => Deactivation::IsNotEligibleForPreemptiveScheduling,
                });
            }
            _ => {}
        }
        if operation.backs_off(self.now, self.node) {
            return Err(Deactivation::RecentScheduleAllocationFailed);
        }
        if l.is_graceful() && l.published.has_its_share {
            return Err(Deactivation::FairShareExceeded);
        }
        let tags = &self.scheduler.nodes[self.node].tags;
        let filters = std::iter::once(&l.parameters.scheduling_tag_filter).chain(
            self.tree
                .chain(l.pool)
                .filter(|p| *p != ROOT)
                .map(|p| &self.tree.pools[p].config.scheduling_tag_filter),
        );
        for filter in filters {
            if !filter.is_empty() && !filter.matches(tags) {
                return Err(Deactivation::UnmatchedSchedulingTag);
            }
        }
        Ok(())
    }

    /// Tries to give one allocation to an operation that is present; `discount` is what preemption would
    /// free for it.
    pub fn attempt(&mut self, leaf: LeafIdx, stage: Stage, discount: Resources) -> Result<PlannedStart, No> {
        let (group, start) = self.consider(leaf, stage, discount)?;
        self.start(leaf, group, start.resources);
        Ok(start)
    }

    /// The same without doing it.
    pub fn consider(
        &self,
        leaf: LeafIdx,
        stage: Stage,
        discount: Resources,
    ) -> Result<(usize, PlannedStart), No> {
        let l = &self.tree.leaves[leaf];
        let operation = &self.scheduler.operations[l.operation];
        let free = self.free + discount;
        let taken = self.taken(leaf);
        let left = |(i, g): &(usize, &DemandGroup)| g.count > taken.get(*i).copied().unwrap_or(0);
        let wanted = || operation.groups.iter().enumerate().filter(left);

        // Step 2: does any group fit into the node?
        let mut minimum = None;
        let mut any_fits = false;
        let mut unsatisfied = [false; 5];
        for (_, group) in wanted() {
            minimum = Some(minimum.map_or(group.min_needed, |m: Resources| m.min(group.min_needed)));
            if free.dominates(&group.min_needed) {
                any_fits = true;
            } else {
                for r in RESOURCES {
                    unsatisfied[r as usize] |= group.min_needed.raw(r) > free.raw(r);
                }
            }
        }
        let Some(minimum) = minimum else { return Err(because(Deactivation::NoAvailableDemand)) };
        if !any_fits {
            return Err((Deactivation::MinNeededResourcesUnsatisfied, unsatisfied));
        }

        // Steps 3 and 4: limits along the chain, demand of the last update.
        let available = self.available(leaf, stage.target().is_some());
        if !available.dominates(&minimum) {
            return Err(because(Deactivation::ResourceLimitsExceeded));
        }
        if !(l.published.demand - self.usage(leaf)).dominates(&minimum) {
            return Err(because(Deactivation::NoAvailableDemand));
        }

        // Steps 5 to 7: the first group that can use what is available. The controller is not asked: its
        // needs are here as data.
        let available = available.min(free);
        let Some((index, group)) = wanted().find(|(_, g)| available.dominates(&g.min_needed)) else {
            return Err(because(Deactivation::ScheduleAllocationFailed));
        };
        let start = PlannedStart {
            operation: operation.desc.id,
            task: group.task,
            resources: group.min_needed,
            stage,
            leaf,
        };
        Ok((index, start))
    }
}
