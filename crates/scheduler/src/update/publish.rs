//! Results of an update back into the tree, and the snapshot for readers (scheduling.md 5.1, steps
//! 5 to 9).

use super::arena::{Arena, Item};
use super::priority::{self, Priorities};
use super::starvation::{self, Hunger};
use super::status::{SchedulingStatus, above_non_blocked, operation_tolerance, status};
use crate::allocations::Allocation;
use crate::config::Mode;
use crate::groups::Bounds;
use crate::messages::Admission;
use crate::nodes::Node;
use crate::operations::Operation;
use crate::reasons::Unschedulable;
use crate::slab::{AllocIdx, Key, LeafIdx, NodeIdx, OpIdx, PoolIdx, Slab};
use crate::snapshot::{ElementInfo, KindInfo, OperationInfo, Outcome, PoolInfo, Spare, TreeSnapshot};
use crate::tree::leaf::Tally;
use crate::tree::{Published, Tree};
use fairshare::{OperationOutput, local_satisfaction};
use std::ops::Range;
use std::sync::Arc;
use vocab::{Resources, Time};

/// What this module works out for each element before it is written anywhere.
struct Derived {
    unschedulable: Vec<Option<Unschedulable>>,
    schedulable: Vec<bool>,
    local_satisfaction: Vec<f64>,
    satisfaction: Vec<f64>,
    schedulable_operations: Vec<i64>,
    rank: Vec<u32>,
}

/// The children of each element, in one list.
struct Children {
    /// Where those of an element begin; one more than there are elements.
    begins: Vec<usize>,
    all: Vec<usize>,
}

impl Children {
    fn of(arena: &Arena) -> Children {
        let parents = || arena.input.elements.iter().map(|e| e.parent).enumerate().skip(1);
        let mut begins = vec![0; arena.items.len() + 1];
        parents().for_each(|(_, parent)| begins[parent + 1] += 1);
        for i in 1..begins.len() {
            begins[i] += begins[i - 1];
        }
        let mut next = begins.clone();
        let mut all = vec![0; begins.last().copied().unwrap_or_default()];
        for (i, parent) in parents() {
            all[next[parent]] = i;
            next[parent] += 1;
        }
        Children { begins, all }
    }

    fn range(&self, element: usize) -> Range<usize> {
        self.begins[element]..self.begins[element + 1]
    }

    fn of_pool(&self, element: usize) -> &[usize] {
        &self.all[self.range(element)]
    }

    fn of_pool_mut(&mut self, element: usize) -> &mut [usize] {
        let range = self.range(element);
        &mut self.all[range]
    }
}

/// What an update reads besides the tree.
#[derive(Clone, Copy)]
pub(super) struct Books<'a> {
    pub operations: &'a Slab<OpIdx, Operation>,
    pub nodes: &'a Slab<NodeIdx, Node>,
    pub allocations: &'a Slab<AllocIdx, Allocation>,
}

pub(super) fn publish(
    tree: &mut Tree,
    books: Books<'_>,
    arena: Arena,
    outcomes: Vec<Outcome>,
    before: Option<&Arc<TreeSnapshot>>,
    mut spare: Spare,
    now: Time,
) -> TreeSnapshot {
    let Books { operations, nodes, allocations } = books;
    let derived = derive(tree, operations, &arena, &outcomes);
    let statuses: Vec<SchedulingStatus> = (0..arena.items.len())
        .map(|i| status_of(i, &arena, &outcomes[i], derived.unschedulable[i]))
        .collect();
    let starving = starvation::check(tree, &arena, &outcomes, &statuses, now);
    let priorities = priority::of_elements(tree, &arena, &starving, &derived.schedulable);
    publish_to_leaves(tree, allocations, &arena, &outcomes, &derived, &statuses, &priorities);
    number_candidates(tree);

    let positions = queue_positions(tree);
    let mut elements = std::mem::take(&mut spare.elements);
    elements.reserve(tree.pools.len() + tree.leaves.len());
    let mut element_of_pool = vec![0; tree.pools.capacity()];
    let mut in_arena = vec![false; tree.leaves.capacity()];
    for (i, outcome) in outcomes.into_iter().enumerate() {
        let parent = (i > 0).then(|| arena.input.elements[i].parent);
        let kind = match arena.items[i] {
            Item::Pool(pool) => {
                element_of_pool[pool.index()] = i;
                let limits = if i == 0 { tree.total } else { arena.input.elements[i].resource_limits };
                let schedulable = derived.schedulable_operations[i];
                KindInfo::Pool(spare.pools.put(pool_info(tree, pool, limits, schedulable)))
            }
            Item::Leaf(leaf) => {
                in_arena[leaf.index()] = true;
                let info = operation_info(tree, operations, leaf, derived.unschedulable[i], &positions);
                KindInfo::Operation(spare.operations.put(info))
            }
        };
        elements.push(ElementInfo {
            parent,
            settings: arena.settings[i].clone(),
            filter_limits: Some(arena.filter_limits[i]).filter(|l| *l != tree.total).map(Box::new),
            scheduling_status: statuses[i],
            starvation: starving.of[i],
            lowest_starving_ancestor: starving.lowest[i],
            lowest_aggressively_starving_ancestor: starving.lowest_aggressive[i],
            satisfaction: derived.satisfaction[i],
            local_satisfaction: derived.local_satisfaction[i],
            schedulable: derived.schedulable[i],
            enabled: true,
            outcome,
            kind,
        });
    }
    // Operations that wait or do not run yet are shown too, without a share.
    for leaf in tree.leaves.keys() {
        if in_arena[leaf.index()] {
            continue;
        }
        let parent = element_of_pool[tree.leaves[leaf].pool.index()];
        let info = operation_info(tree, operations, leaf, Some(Unschedulable::IsNotRunning), &positions);
        let l = &tree.leaves[leaf];
        elements.push(ElementInfo {
            parent: Some(parent),
            settings: arena.settings[parent].clone(),
            filter_limits: None,
            scheduling_status: SchedulingStatus::Normal,
            starvation: Hunger::default(),
            lowest_starving_ancestor: starving.lowest[parent],
            lowest_aggressively_starving_ancestor: starving.lowest_aggressive[parent],
            satisfaction: fairshare::NO_FAIR_SHARE,
            local_satisfaction: fairshare::NO_FAIR_SHARE,
            schedulable: false,
            enabled: false,
            outcome: Outcome::Operation(OperationOutput {
                weight: l.parameters.weight.unwrap_or(1.0),
                resource_usage: l.usage,
                resource_demand: l.usage,
                ..OperationOutput::default()
            }),
            kind: KindInfo::Operation(spare.operations.put(info)),
        });
    }
    // The same name in memory: the same tree, and not one that was removed and made again.
    let same =
        |b: &&Arc<TreeSnapshot>| Arc::ptr_eq(&b.name, &tree.name) && b.nodes_version == tree.nodes_version;
    let node_names = match before.filter(same) {
        Some(before) => before.node_names.clone(),
        None => tree.nodes.iter().map(|n| nodes[*n].name.clone()).collect(),
    };
    TreeSnapshot::new(tree, now, elements, node_names)
}

fn status_of(
    i: usize,
    arena: &Arena,
    outcome: &Outcome,
    unschedulable: Option<Unschedulable>,
) -> SchedulingStatus {
    let (fair, demand, usage) = (&outcome.fair_share(), &outcome.demand_share(), &outcome.usage_share());
    let tolerance = arena.settings[i].fair_share_starvation_tolerance;
    match arena.items[i] {
        _ if i == 0 || unschedulable.is_some() => SchedulingStatus::Normal,
        Item::Pool(_) => status(fair, demand, usage, tolerance),
        Item::Leaf(_) => status(fair, demand, usage, operation_tolerance(fair, demand, tolerance)),
    }
}

fn derive(tree: &Tree, operations: &Slab<OpIdx, Operation>, arena: &Arena, outcomes: &[Outcome]) -> Derived {
    let n = arena.items.len();
    let mut children = Children::of(arena);
    let mut unschedulable = vec![None; n];
    for (i, item) in arena.items.iter().enumerate() {
        if let Item::Leaf(leaf) = item {
            let operation = &operations[tree.leaves[*leaf].operation];
            unschedulable[i] = reason(operation);
        }
    }
    for (i, item) in arena.items.iter().enumerate() {
        if let Item::Pool(pool) = item
            && tree.pools[*pool].config.mode == Mode::Fifo
            && let Some(limit) = tree.config.max_schedulable_element_count_in_fifo_pool
        {
            cut_fifo(children.of_pool(i), limit, outcomes, &mut unschedulable);
        }
    }

    let mut local = vec![0.0; n];
    let mut satisfaction = vec![0.0; n];
    let mut schedulable = vec![false; n];
    let mut schedulable_operations = vec![0; n];
    for i in (0..n).rev() {
        let e = &outcomes[i];
        local[i] = local_satisfaction(&e.fair_share(), &e.usage_share(), &e.demand_share());
        match arena.items[i] {
            Item::Leaf(_) => {
                schedulable[i] = unschedulable[i].is_none();
                schedulable_operations[i] = i64::from(schedulable[i]);
                satisfaction[i] = local[i];
            }
            Item::Pool(_) => {
                let able = children.of_pool(i).iter().filter(|c| schedulable[**c]);
                let least = able.map(|c| satisfaction[*c]).reduce(f64::min);
                schedulable[i] = least.is_some();
                satisfaction[i] = least.unwrap_or(local[i]);
                schedulable_operations[i] =
                    children.of_pool(i).iter().map(|c| schedulable_operations[*c]).sum();
            }
        }
    }
    let rank = ranks(tree, arena, outcomes, &mut children);
    Derived {
        unschedulable,
        schedulable,
        local_satisfaction: local,
        satisfaction,
        schedulable_operations,
        rank,
    }
}

/// Why a running operation cannot be scheduled (scheduling.md 3.3).
fn reason(operation: &Operation) -> Option<Unschedulable> {
    if operation.suspended {
        Some(Unschedulable::Suspended)
    } else if operation.total_needed().user_slots == 0 {
        Some(Unschedulable::NoPendingAllocations)
    } else {
        None
    }
}

/// Behind the limit of a FIFO pool, operations without a fair share are not looked at
/// (scheduling.md 9.4).
fn cut_fifo(
    children: &[usize],
    limit: i64,
    outcomes: &[Outcome],
    unschedulable: &mut [Option<Unschedulable>],
) {
    let mut order: Vec<usize> = children.iter().copied().filter(|c| unschedulable[*c].is_none()).collect();
    order.sort_by_key(|c| outcomes[*c].fifo_index());
    for c in order.into_iter().skip(limit as usize) {
        if outcomes[c].fair_share().is_zero() {
            unschedulable[c] = Some(Unschedulable::FifoSchedulableElementCountLimitReached);
        }
    }
}

/// Numbers the elements depth first, children by the order that breaks ties [D3]: pools by name, then
/// operations by FIFO index, start time and id.
fn ranks(tree: &Tree, arena: &Arena, outcomes: &[Outcome], children: &mut Children) -> Vec<u32> {
    let mut rank = vec![0; arena.items.len()];
    let mut next = 0;
    let mut stack = vec![0];
    while let Some(i) = stack.pop() {
        rank[i] = next;
        next += 1;
        let order = children.of_pool_mut(i);
        order.sort_unstable_by(|a, b| match (arena.items[*a], arena.items[*b]) {
            (Item::Pool(a), Item::Pool(b)) => tree.pools[a].name.cmp(&tree.pools[b].name),
            (Item::Pool(_), Item::Leaf(_)) => std::cmp::Ordering::Less,
            (Item::Leaf(_), Item::Pool(_)) => std::cmp::Ordering::Greater,
            (Item::Leaf(la), Item::Leaf(lb)) => {
                let key = |e: usize, l: LeafIdx| {
                    let desc = &tree.leaves[l].desc;
                    (outcomes[e].fifo_index(), desc.start_time, desc.id)
                };
                key(*a, la).cmp(&key(*b, lb))
            }
        });
        stack.extend(order.iter().rev());
    }
    rank
}

/// Puts the results where heartbeats find them, sorts the candidates anew and moves the borders of the
/// preemption groups (scheduling.md 5.1, step 7).
fn publish_to_leaves(
    tree: &mut Tree,
    allocations: &Slab<AllocIdx, Allocation>,
    arena: &Arena,
    outcomes: &[Outcome],
    derived: &Derived,
    statuses: &[SchedulingStatus],
    priorities: &[Priorities],
) {
    tree.published_total = tree.total;
    tree.ranks_are_fresh = true;
    tree.priorities = [0; 3];
    let config = tree.config.clone();
    let mut here = vec![false; tree.leaves.capacity()];
    for (i, item) in arena.items.iter().enumerate() {
        let Item::Leaf(leaf) = *item else { continue };
        here[leaf.index()] = true;
        let e = &outcomes[i];
        let (fair_share, demand_share) = (e.fair_share(), e.demand_share());
        let settings = &arena.settings[i];
        let threshold = &settings.non_preemptible_resource_usage_threshold;
        let high = config.enable_guarantee_priority_scheduling
            && above_non_blocked(&fair_share, &demand_share, &e.promised_guarantee(), &e.usage_share());
        tree.priorities[priorities[i].effective as usize] += 1;
        let normal_preemption_forbidden =
            tree.chain(tree.leaves[leaf].pool).any(|p| !tree.pools[p].config.allow_normal_preemption);
        tree.leaves[leaf].published = Published {
            enabled: true,
            schedulable: derived.unschedulable[i].is_none(),
            fair_share,
            demand_share,
            demand: e.resource_demand(),
            rank: derived.rank[i],
            scheduling_index: -1,
            has_its_share: statuses[i] == SchedulingStatus::Normal,
            priority: priorities[i].effective,
            own_priority: priorities[i].own,
            high,
            aggressive_preemption_allowed: settings.aggressive_preemption_allowed,
            normal_preemption_forbidden,
            waiting_timeout: settings.waiting_for_resources_on_node_timeout,
            bounds: Bounds::new(&config, &fair_share, &demand_share, threshold),
        };
    }
    for leaf in tree.leaves.keys() {
        if !here[leaf.index()] {
            tree.leaves[leaf].published = Published::NOTHING;
        }
        tree.refresh_candidate(leaf);
        tree.rebalance(leaf, allocations);
    }
}

/// Position of each schedulable operation in the order of this update (scheduling.md 9.5): those of
/// high priority first.
fn number_candidates(tree: &mut Tree) {
    let mut order = tree.candidates.sorted();
    order.sort_by_key(|(_, _, leaf)| !tree.leaves[*leaf].published.high);
    for (i, (_, _, leaf)) in order.into_iter().enumerate() {
        tree.leaves[leaf].published.scheduling_index = i as i64;
    }
}

fn pool_info(
    tree: &Tree,
    index: PoolIdx,
    resource_limits: Resources,
    schedulable_operation_count: i64,
) -> PoolInfo {
    let pool = &tree.pools[index];
    PoolInfo {
        name: pool.name.clone(),
        config: pool.config.clone(),
        is_ephemeral: pool.ephemeral.is_some(),
        resource_limits,
        counts: pool.counts,
        schedulable_operation_count,
        pool_operation_count: pool.leaves.len() as i64,
        child_pool_count: pool.children.len() as i64,
        max_operation_count: pool.max_operation_count(&tree.config),
        max_running_operation_count: pool.max_running_operation_count(&tree.config),
    }
}

/// Place of each waiting operation in its queue, by the number of its leaf; 0 = next. All in one go: to count
/// those before each of a hundred thousand would take minutes.
fn queue_positions(tree: &Tree) -> Vec<Option<i64>> {
    let mut positions = vec![None; tree.leaves.capacity()];
    for pool in tree.pools.keys() {
        for (position, leaf) in (0..).zip(tree.pools[pool].queue.values()) {
            positions[leaf.index()] = Some(position);
        }
    }
    positions
}

fn operation_info(
    tree: &Tree,
    operations: &Slab<OpIdx, Operation>,
    index: LeafIdx,
    unschedulable_reason: Option<Unschedulable>,
    positions: &[Option<i64>],
) -> OperationInfo {
    let leaf = &tree.leaves[index];
    let operation = &operations[leaf.operation];
    OperationInfo {
        desc: leaf.desc.clone(),
        pool: tree.pools[leaf.pool].name.clone(),
        slot_index: leaf.slot_index,
        parameters: leaf.parameters.clone(),
        groups: operation.groups.clone(),
        tentative: leaf.tentative,
        lightweight: leaf.lightweight,
        unschedulable_reason,
        scheduling_index: leaf.published.scheduling_index,
        high: leaf.published.high,
        priority: leaf.published.priority,
        refusals: Tally::new(tree.refusals(index)),
        options: leaf.options.clone(),
        allocation_count: leaf.allocations.len() as i64,
        groups_of_allocations: leaf.groups.counts(leaf.allocations.len()),
        queue_position: positions[index.index()],
        best_allocation_share: leaf.best_allocation_share,
        pending_by: match tree.admission(index) {
            Admission::Running => None,
            Admission::Pending { pool, limit } => Some((pool, limit)),
        },
    }
}
