//! The preemptive stages (scheduling.md 12).

use super::Plan;
use super::stage::Discount;
use super::trial::Trial;
use crate::preemption::{PreemptionPriority, Stage};
use crate::reasons::Deactivation;
use crate::slab::LeafIdx;
use vocab::{Resources, Span};

impl Trial<'_> {
    /// Runs the preemptive part of the pass if its time has come: at most one allocation is started.
    pub(super) fn preemptive_stages(&mut self, plan: &mut Plan) {
        if !self.is_preemption_due() {
            return;
        }
        plan.preemptive = true;
        let aggressive = self.tree.priorities[PreemptionPriority::Aggressive as usize] > 0;
        if aggressive && self.preemptive_stage(plan, Stage::PreemptiveAggressive) {
            return;
        }
        // The last stage also looks for exceeded limits.
        self.preemptive_stage(plan, Stage::PreemptiveNormal);
    }

    /// Would there be room here for an allocation of the operation, were everything gone that the stage may
    /// take from others?
    pub(crate) fn would_make_room(&self, leaf: LeafIdx, stage: Stage) -> bool {
        let others = self.candidates(stage).into_iter().filter(|v| v.leaf != leaf);
        let discount = others.fold(Resources::ZERO, |sum, v| sum + v.held);
        let spare = self.scheduler.config.min_spare_allocation_resources_on_node;
        let free = self.scheduler.nodes[self.node].free() + discount;
        free.dominates(&spare) && self.consider(leaf, stage, discount).is_ok()
    }

    /// Scheduling.md 12.1: at the first pass ever, then not more often than the backoff.
    fn is_preemption_due(&self) -> bool {
        let backoff = self.tree.config.preemptive_scheduling_backoff;
        let last = self.scheduler.nodes[self.node].last_preemptive;
        last.is_none_or(|last| backoff == Span::ZERO || self.now > last + backoff)
    }

    /// One stage (12.3). True if it has started an allocation.
    fn preemptive_stage(&mut self, plan: &mut Plan, stage: Stage) -> bool {
        let target = stage.target().unwrap_or(PreemptionPriority::None);
        let somebody_starves = self.tree.priorities[target as usize] > 0;
        let node = &self.scheduler.nodes[self.node];
        let node_fits = node.limits.dominates(&self.lasting);
        if !somebody_starves && node_fits && self.tree.over_limits == 0 {
            return false;
        }
        let candidates = self.candidates(stage);
        let mut discount = Discount::default();
        for v in &candidates {
            discount.total += v.held;
            *discount.own.entry(v.leaf).or_default() += v.held;
        }
        plan.statistics.preemptible_allocation_count = candidates.len() as u32;
        plan.statistics.resource_usage_discount = discount.total;
        let spare = self.scheduler.config.min_spare_allocation_resources_on_node;
        if somebody_starves && self.may_go_on(plan, &spare, &discount) {
            let sources = self.sources(plan, &discount, |class| class.priority == target);
            let before = self.checkpoint();
            if let Some(leaf) = self.run(plan, stage, sources, &discount, &spare) {
                let victims = plan.preemptions.len();
                if self.preempt_after(plan, stage, &candidates, Some(leaf)) {
                    plan.statistics.scheduled_during_preemption = 1;
                    return true;
                }
                // Its victims would not be enough. What fitted with the discount fits without the
                // victims, so this does not happen; if it did, nothing must be half done.
                self.rollback(before);
                plan.preemptions.truncate(victims);
                plan.statistics.started -= 1;
                if let Some(start) = plan.starts.pop() {
                    plan.refusals.push(super::Refusal {
                        operation: start.operation,
                        reason: Deactivation::MinNeededResourcesUnsatisfied,
                        unsatisfied: [false; 5],
                        leaf: start.leaf,
                    });
                }
            }
        }
        self.preempt_after(plan, stage, &candidates, None);
        debug_assert!(discount.total.dominates(&Resources::ZERO));
        false
    }
}
