//! Works out an explanation: looks, changes nothing.

use super::{Advice, Explanation, LOSSES_SHOWN, NodeReasons, Numbers, Starving, TreeExplanation, Verdict};
use crate::formula::TagFilter;
use crate::plan::trial::Trial;
use crate::preemption::{LimitedElement, PreemptionPriority, Stage};
use crate::reasons::{Deactivation, Unschedulable};
use crate::scheduler::Scheduler;
use crate::slab::{Key, LeafIdx, TreeIdx};
use crate::snapshot::{ElementInfo, KindInfo};
use crate::tree::{Leaf, ROOT, Standing, Tree};
use crate::update::StarvationStatus;
use vocab::{Failure, OperationId, RESOURCES, Resource, Resources, Time};

impl Scheduler {
    /// Says why an operation is pending, not scheduled, starving, or has lost something, and what would
    /// have to change. Looks at all nodes of its trees.
    pub fn explain(&self, id: OperationId, now: Time) -> Result<Explanation, Failure> {
        let operation = &self.operations[self.operation_index(id)?];
        let trees = operation.leaves.iter();
        let trees = trees.map(|(tree, leaf)| Case::new(self, *tree, *leaf, now).explain()).collect();
        Ok(Explanation { operation: id, time: now, trees })
    }
}

/// An operation in a tree, under the glass.
struct Case<'a> {
    scheduler: &'a Scheduler,
    tree_index: TreeIdx,
    tree: &'a Tree,
    index: LeafIdx,
    leaf: &'a Leaf,
    /// Its element in the newest snapshot.
    element: Option<&'a ElementInfo>,
    now: Time,
}

impl<'a> Case<'a> {
    fn new(scheduler: &'a Scheduler, tree_index: TreeIdx, index: LeafIdx, now: Time) -> Case<'a> {
        let tree = &scheduler.trees[tree_index.index()];
        let leaf = &tree.leaves[index];
        let snapshot = scheduler.snapshot.trees.get(tree_index.index());
        let element = snapshot.and_then(|s| s.operations.get(&leaf.desc.id).map(|i| &s.elements[i]));
        Case { scheduler, tree_index, tree, index, leaf, element, now }
    }

    fn explain(&self) -> TreeExplanation {
        let mut nodes = None;
        let verdict = self.verdict(&mut nodes);
        let losses: Vec<_> = self.scheduler.preemptions_of(self.leaf.desc.id).collect();
        let losses: Vec<_> = losses.into_iter().filter(|r| r.tree == self.tree.name).collect();
        TreeExplanation {
            tree: self.tree.name.clone(),
            pool: match self.tree.full_path(self.leaf.pool) {
                path if path.is_empty() => "/".to_owned(),
                path => path,
            },
            numbers: self.numbers(),
            starvation: self.starvation(),
            advice: self.advice(&verdict, nodes.as_ref()),
            verdict,
            nodes,
            loss_count: losses.len(),
            losses: losses.iter().rev().take(LOSSES_SHOWN).rev().map(|r| (*r).clone()).collect(),
        }
    }

    fn numbers(&self) -> Numbers {
        let l = self.leaf;
        let mut groups = [0; 3];
        for a in l.allocations.values().map(|a| &self.scheduler.allocations[*a]).filter(|a| !a.is_ending()) {
            groups[l.groups.group(a.sequence) as usize] += 1;
        }
        let leaving = l.allocations.len() as i64 - groups.iter().sum::<i64>();
        let p = &l.published;
        Numbers {
            running: l.allocations.len() as i64 - leaving,
            leaving,
            wanted: self.scheduler.operations[l.operation].pending_count,
            usage: l.usage,
            fair_share: p.fair_share.max_component(),
            usage_share: l.usage.share_of(&self.tree.published_total).max_component(),
            demand_share: p.demand_share.max_component(),
            groups,
            graceful: l.is_graceful(),
        }
    }

    fn starvation(&self) -> Option<Starving> {
        let state = &self.leaf.starvation;
        let settings = &self.element?.settings;
        let (timeout, aggressive_timeout) = crate::update::starvation_timeouts(
            &self.tree.config,
            settings,
            Some(self.scheduler.operations[self.leaf.operation].pending_count),
        );
        Some(Starving {
            below_since: state.below_fair_share_since?,
            since: state.starving_since,
            aggressively: state.status == StarvationStatus::AggressivelyStarving,
            timeout,
            aggressive_timeout: settings.aggressive_starvation_enabled.then_some(aggressive_timeout),
        })
    }

    /// The first thing that stands in the way.
    fn verdict(&self, nodes: &mut Option<NodeReasons>) -> Verdict {
        let l = self.leaf;
        let operation = &self.scheduler.operations[l.operation];
        if let Standing::Pending { at, ticket } = l.standing {
            let pool = &self.tree.pools[at];
            return Verdict::WaitsForPool {
                pool: pool.name.clone(),
                limit: pool.max_running_operation_count(&self.tree.config),
                running: pool.counts.running,
                ahead: pool.queue.range(..ticket).count(),
            };
        }
        if !operation.enabled {
            return Verdict::NotRunning;
        }
        if operation.suspended {
            return Verdict::Suspended;
        }
        if operation.pending_count == 0 {
            return Verdict::NothingToStart;
        }
        if let Some(limit) = self.behind_in_fifo() {
            return Verdict::BehindInFifo { index: self.element.and_then(|e| e.output().fifo_index), limit };
        }
        if self.tree.nodes.is_empty() || self.tree.total.is_zero() {
            return Verdict::NoNodes;
        }
        let need = operation.need;
        if let Some(verdict) = self.no_matching_node().or_else(|| self.too_large()) {
            return verdict;
        }
        if let Some((element, limits)) = self.tree.too_small(self.index, &need) {
            return Verdict::LimitTooSmall { element, limits, needed: need };
        }
        if !l.published.schedulable {
            return Verdict::WaitsForUpdate;
        }
        if self.now < operation.backoff_until {
            return Verdict::Backoff { until: operation.backoff_until };
        }
        if let Some((element, limits, usage)) = self.tree.limiting(self.index, &need) {
            return Verdict::LimitReached { element, limits, usage, needed: need };
        }
        if !(l.published.demand - l.usage).dominates(&need) {
            return Verdict::WaitsForUpdate;
        }
        if l.is_graceful() && l.published.has_its_share {
            return Verdict::GracefulHasItsShare;
        }
        let reasons = self.ask_nodes();
        let ready = reasons.ready;
        *nodes = Some(reasons);
        if ready > 0 {
            return Verdict::Starts { nodes: ready };
        }
        match l.published.priority {
            PreemptionPriority::None if l.published.has_its_share => Verdict::HasItsShare,
            PreemptionPriority::None => Verdict::BelowShare,
            priority => {
                let for_ancestor =
                    (l.published.own_priority < priority).then(|| self.starving_ancestor(priority)).flatten();
                match nodes.as_ref().is_some_and(|n| n.preemptible + n.waiting > 0) {
                    true => Verdict::Preempts { priority, for_ancestor },
                    false => Verdict::CannotPreempt { priority, for_ancestor },
                }
            }
        }
    }

    fn behind_in_fifo(&self) -> Option<i64> {
        let KindInfo::Operation(info) = &self.element?.kind else { return None };
        let cut = info.unschedulable_reason == Some(Unschedulable::FifoSchedulableElementCountLimitReached);
        self.tree.config.max_schedulable_element_count_in_fifo_pool.filter(|_| cut)
    }

    fn starving_ancestor(&self, priority: PreemptionPriority) -> Option<std::sync::Arc<str>> {
        let enough = |status: StarvationStatus| match priority {
            PreemptionPriority::Aggressive => status == StarvationStatus::AggressivelyStarving,
            _ => status != StarvationStatus::NonStarving,
        };
        let mut chain = self.tree.chain(self.leaf.pool);
        let pool = chain.find(|p| enough(self.tree.pools[*p].starvation.status));
        pool.map(|p| self.tree.pools[p].name.clone())
    }

    /// Filters of the operation and of the pools above it.
    fn filters(&self) -> impl Iterator<Item = (LimitedElement, &TagFilter)> {
        let own = (LimitedElement::Operation(self.leaf.desc.id), &self.leaf.parameters.scheduling_tag_filter);
        let pools = self.tree.chain(self.leaf.pool).filter(|p| *p != ROOT).map(|p| {
            let pool = &self.tree.pools[p];
            (LimitedElement::Pool(pool.name.clone()), &pool.config.scheduling_tag_filter)
        });
        std::iter::once(own).chain(pools).filter(|(_, f)| !f.is_empty())
    }

    fn no_matching_node(&self) -> Option<Verdict> {
        let mut left: Vec<_> = self.tree.nodes.iter().map(|n| &self.scheduler.nodes[*n]).collect();
        for (element, filter) in self.filters() {
            left.retain(|n| filter.matches(&n.tags));
            if left.is_empty() {
                return Some(Verdict::NoMatchingNode { filter: filter.as_str().to_owned(), element });
            }
        }
        None
    }

    /// No node that it may use could hold any of its allocations, even if it were empty.
    fn too_large(&self) -> Option<Verdict> {
        let operation = &self.scheduler.operations[self.leaf.operation];
        let filters: Vec<_> = self.filters().map(|(_, f)| f).collect();
        let nodes = self.tree.nodes.iter().map(|n| &self.scheduler.nodes[*n]);
        let usable = nodes.filter(|n| filters.iter().all(|f| f.matches(&n.tags)));
        let (mut most, mut offering, mut seen) = (Resources::ZERO, 0, 0);
        for node in usable {
            seen += 1;
            // Nothing can be said of the size of a node that takes no jobs at all.
            if node.limits.user_slots == 0 {
                continue;
            }
            offering += 1;
            if operation.groups.iter().any(|g| g.count > 0 && node.limits.dominates(&g.min_needed)) {
                return None;
            }
            most = most.max(node.limits);
        }
        if offering == 0 {
            return Some(Verdict::NoSlots { nodes: seen });
        }
        let needed = operation.need;
        let short = RESOURCES.into_iter().filter(|r| needed.raw(*r) > most.raw(*r));
        Some(Verdict::TooLarge { needed, short: short.map(|r| (r, most.raw(r))).collect() })
    }

    /// Tries it on every node of the tree, one by one.
    fn ask_nodes(&self) -> NodeReasons {
        let spare = self.scheduler.config.min_spare_allocation_resources_on_node;
        let mut reasons = NodeReasons { total: self.tree.nodes.len(), ..NodeReasons::default() };
        let mut counts = [0; Deactivation::ALL.len()];
        let mut short = [0; 5];
        for index in &self.tree.nodes {
            let node = &self.scheduler.nodes[*index];
            if node.away {
                reasons.offline += 1;
                continue;
            }
            if node.limits.user_slots == 0 {
                reasons.disabled += 1;
                continue;
            }
            if node.must_wait() {
                reasons.waiting += 1;
                continue;
            }
            let trial = Trial::new(self.scheduler, self.now, self.tree_index, *index);
            let stage = Stage::RegularMediumPriority;
            let present = trial.presence(self.index, stage).map_err(|reason| (reason, [false; 5]));
            let preemptive = match self.leaf.published.priority {
                PreemptionPriority::None => None,
                PreemptionPriority::Normal => Some(Stage::PreemptiveNormal),
                PreemptionPriority::Aggressive => Some(Stage::PreemptiveAggressive),
            };
            if preemptive.is_some_and(|stage| trial.would_make_room(self.index, stage)) {
                reasons.preemptible += 1;
            }
            match present.and_then(|()| trial.consider(self.index, stage, Resources::ZERO)) {
                Ok(_) if !node.free().dominates(&spare) => reasons.no_spare += 1,
                Ok(_) => reasons.ready += 1,
                Err((reason, unsatisfied)) => {
                    counts[reason as usize] += 1;
                    for (count, is_short) in short.iter_mut().zip(unsatisfied) {
                        *count += usize::from(is_short);
                    }
                }
            }
        }
        let counted = Deactivation::ALL.iter().copied().zip(counts);
        reasons.by_reason = counted.filter(|(_, n)| *n > 0).collect();
        reasons.short = RESOURCES.into_iter().zip(short).filter(|(_, n)| *n > 0).collect();
        reasons
    }

    fn advice(&self, verdict: &Verdict, nodes: Option<&NodeReasons>) -> Vec<Advice> {
        match verdict {
            Verdict::CannotPreempt { priority, .. } => {
                let enabled = self.element.is_some_and(|e| e.settings.aggressive_starvation_enabled);
                let mut advice = vec![Advice::OthersFinish];
                if nodes.is_some_and(|n| n.no_spare > 0) {
                    advice.insert(0, Advice::LowerSpare);
                }
                if *priority == PreemptionPriority::Normal && !enabled && self.aggressive_would_help() {
                    advice.push(Advice::EnableAggressiveStarvation);
                }
                advice
            }
            Verdict::WaitsForPool { pool, running, ahead, .. } => {
                vec![Advice::RaiseRunningLimit { pool: pool.clone(), to: running + *ahead as i64 + 1 }]
            }
            Verdict::NotRunning | Verdict::WaitsForUpdate | Verdict::Starts { .. } => {
                vec![Advice::Wait { until: None }]
            }
            Verdict::Suspended => vec![Advice::Resume],
            Verdict::NothingToStart => Vec::new(),
            Verdict::BehindInFifo { .. } => vec![Advice::Wait { until: None }],
            Verdict::NoNodes => vec![Advice::AddNodes],
            Verdict::NoSlots { .. } => vec![Advice::EnableNodes],
            Verdict::NoMatchingNode { filter, .. } => vec![Advice::MatchFilter { filter: filter.clone() }],
            Verdict::TooLarge { short, .. } if short.is_empty() => vec![Advice::AddNodes],
            Verdict::TooLarge { short, .. } => short
                .iter()
                .map(|(resource, at_most)| Advice::NeedLess { resource: *resource, at_most: *at_most })
                .collect(),
            Verdict::LimitTooSmall { element, limits, needed } => {
                raise(element, limits, &Resources::ZERO, needed)
            }
            Verdict::LimitReached { element, limits, usage, needed } => raise(element, limits, usage, needed),
            Verdict::Backoff { until } => vec![Advice::Wait { until: Some(*until) }],
            Verdict::GracefulHasItsShare | Verdict::HasItsShare => vec![Advice::MoreShare],
            Verdict::BelowShare => vec![Advice::Wait { until: self.starves_at() }],
            Verdict::Preempts { priority, .. } => {
                let enabled = self.element.is_some_and(|e| e.settings.aggressive_starvation_enabled);
                let mut advice = vec![Advice::Wait { until: None }];
                if *priority == PreemptionPriority::Normal && !enabled {
                    advice.push(Advice::EnableAggressiveStarvation);
                }
                advice
            }
        }
    }

    fn aggressive_would_help(&self) -> bool {
        self.tree.nodes.iter().filter(|n| !self.scheduler.nodes[**n].away).any(|node| {
            let trial = Trial::new(self.scheduler, self.now, self.tree_index, *node);
            trial.would_make_room(self.index, Stage::PreemptiveAggressive)
        })
    }

    fn starves_at(&self) -> Option<Time> {
        self.starvation().map(|s| s.below_since + s.timeout)
    }
}

/// Each resource of which the limit leaves too little.
fn raise(element: &LimitedElement, limits: &Resources, usage: &Resources, needed: &Resources) -> Vec<Advice> {
    let to = |r: Resource| usage.raw(r).saturating_add(needed.raw(r));
    RESOURCES
        .into_iter()
        .filter(|r| limits.raw(*r) < to(*r))
        .map(|resource| Advice::RaiseLimit {
            element: element.clone(),
            // A limit below one allocation is too small whoever finishes.
            in_use: limits.raw(resource) >= needed.raw(resource),
            resource,
            to: to(resource),
        })
        .collect()
}
