//! Operations that will never be scheduled (scheduling.md 20).

use crate::amounts::amount_value;
use crate::preemption::LimitedElement;
use crate::reasons::Deactivation;
use crate::scheduler::Scheduler;
use crate::slab::{Key, LeafIdx, OpIdx, TreeIdx};
use crate::tree::Tree;
use crate::update::StarvationStatus;
use vocab::{Failure, OperationId, RESOURCES, Resources, Time};
use yson::{Map, Value};

impl Scheduler {
    /// Operations that are stuck in all their trees; the caller fails them with this error. Looks only
    /// every `operation_hangup_check_period` and is empty in between.
    pub fn stuck_operations(&mut self, now: Time) -> Vec<(OperationId, Failure)> {
        if now < self.next_stuck_check {
            return Vec::new();
        }
        self.next_stuck_check = now + self.config.operation_hangup_check_period;
        let mut stuck = Vec::new();
        for index in self.operations.keys() {
            let operation = &self.operations[index];
            if !operation.enabled || operation.suspended {
                continue;
            }
            let id = operation.desc.id;
            let leaves = operation.leaves.clone();
            let errors: Vec<Option<Failure>> =
                leaves.iter().map(|(tree, leaf)| self.is_stuck(now, index, *tree, *leaf)).collect();
            if !errors.is_empty() && errors.iter().all(Option::is_some) {
                let mut error =
                    Failure::new(format!("Scheduling of operation {id} is stuck")).with("operation_id", id);
                error.inner_errors = errors.into_iter().flatten().collect();
                stuck.push((id, error));
            }
        }
        stuck
    }

    /// Why an operation is stuck in a tree, if it is.
    fn is_stuck(&mut self, now: Time, index: OpIdx, tree: TreeIdx, leaf: LeafIdx) -> Option<Failure> {
        let need = self.operations[index].need;
        let wants = self.operations[index].pending_count > 0;
        let t = &mut self.trees[tree.index()];
        if !t.leaves[leaf].is_running() || !wants {
            t.leaves[leaf].limited_since = None;
            return None;
        }
        self.is_limited(now, tree, leaf, need).or_else(|| self.is_starved_out(now, tree, leaf))
    }

    /// Limits above it do not even allow one allocation, for too long.
    fn is_limited(&mut self, now: Time, tree: TreeIdx, leaf: LeafIdx, need: Resources) -> Option<Failure> {
        let timeout = self.config.operation_hangup_due_to_limiting_ancestor_safe_timeout;
        let t = &mut self.trees[tree.index()];
        let checked =
            t.config.enable_limiting_ancestor_check && t.leaves[leaf].options.enable_limiting_ancestor_check;
        let limiting = if checked { t.too_small(leaf, &need) } else { None };
        let l = &mut t.leaves[leaf];
        let Some((element, limits)) = limiting else {
            l.limited_since = None;
            return None;
        };
        let since = *l.limited_since.get_or_insert(now);
        if now <= since + timeout || now <= l.activated + timeout {
            return None;
        }
        let short: Map = RESOURCES
            .into_iter()
            .filter(|r| need.raw(*r) > limits.raw(*r))
            .map(|r| {
                let entry = yson::map! {
                    "limit" => amount_value(r, limits.raw(r)), "needed" => amount_value(r, need.raw(r)),
                };
                (r.as_str(), Value::from(entry))
            })
            .collect();
        Some(
            Failure::new(format!(
                "Limits of {element} in tree \"{}\" do not allow a single allocation: it needs {need}",
                t.name
            ))
            .with("pool_tree", &*t.name)
            .with("limiting_element", element.to_string())
            .with("violated_resources", short)
            .with("period", now.since(since).as_millis() as i64),
        )
    }

    /// It starves, has nothing, and was refused again and again.
    fn is_starved_out(&self, now: Time, tree: TreeIdx, leaf: LeafIdx) -> Option<Failure> {
        let t = &self.trees[tree.index()];
        let l = &t.leaves[leaf];
        if l.starvation.status == StarvationStatus::NonStarving || !l.allocations.is_empty() {
            return None;
        }
        let last = [Some(l.activated), l.last_success, l.starvation.starving_since];
        let last = last.into_iter().flatten().max().unwrap_or(Time::ZERO);
        let refusals = t.refusals(leaf).since(&l.refusals_at_starvation.get());
        let names = &self.config.operation_hangup_deactivation_reasons;
        let reasons = names.iter().filter_map(|name| Deactivation::parse(name));
        let attempts: u64 = reasons.map(|r| refusals.by_reason[r as usize]).sum();
        let enough = self.config.operation_hangup_min_schedule_allocation_attempts as u64;
        if now <= last + self.config.operation_hangup_safe_timeout || attempts <= enough {
            return None;
        }
        Some(
            Failure::new(format!(
                "Nothing was started in tree \"{}\" for {} although it starves: refused {attempts} times",
                t.name,
                now.since(last)
            ))
            .with("pool_tree", &*t.name)
            .with("period", now.since(last).as_millis() as i64)
            .with("deactivation_count", attempts as i64)
            .with("deactivation_reasons", crate::statistics::deactivations(&refusals.by_reason))
            .with("last_success_time", l.last_success),
        )
    }
}

impl Tree {
    /// The lowest element of an operation's chain whose limits are smaller than what one allocation
    /// needs, with these limits.
    pub(crate) fn too_small(&self, leaf: LeafIdx, need: &Resources) -> Option<(LimitedElement, Resources)> {
        let l = &self.leaves[leaf];
        let own = l.parameters.resource_limits.as_limits();
        if !own.dominates(need) {
            return Some((LimitedElement::Operation(l.desc.id), own));
        }
        self.chain(l.pool).find_map(|pool| {
            let p = &self.pools[pool];
            let limits = p.config.resource_limits.as_limits();
            (!limits.dominates(need)).then(|| (LimitedElement::Pool(p.name.clone()), limits))
        })
    }

    /// The lowest element of an operation's chain whose limits do not leave room for one allocation, with
    /// its limits and its usage.
    pub(crate) fn limiting(
        &self,
        leaf: LeafIdx,
        need: &Resources,
    ) -> Option<(LimitedElement, Resources, Resources)> {
        let l = &self.leaves[leaf];
        let own = l.parameters.resource_limits.as_limits();
        if !(own - l.usage).dominates(need) {
            return Some((LimitedElement::Operation(l.desc.id), own, l.usage));
        }
        self.chain(l.pool).find_map(|pool| {
            let p = &self.pools[pool];
            let limits = p.config.resource_limits.as_limits();
            let is_full = !p.config.resource_limits.is_empty() && !(limits - p.usage).dominates(need);
            is_full.then(|| (LimitedElement::Pool(p.name.clone()), limits, p.usage))
        })
    }
}
