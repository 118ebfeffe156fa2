//! From the tree to the dense input of the fair-share crate.

use super::Settings;
use crate::config::{PoolConfig, TreeConfig};
use crate::formula::TagFilter;
use crate::messages::UpdateKind;
use crate::nodes::Node;
use crate::operations::Operation;
use crate::slab::{LeafIdx, NodeIdx, OpIdx, PoolIdx, Slab};
use crate::tree::{Leaf, ROOT, Tree};
use fairshare::{
    Configured, Element, Input, IntegralState, Kind, Operation as OperationInput, Pool as PoolInput,
    TreeOptions,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{Resources, Span, Time};

/// What an element of the input stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Item {
    Pool(PoolIdx),
    Leaf(LeafIdx),
}

/// An update's input, with what is needed to find the way back.
pub(crate) struct Arena {
    pub input: Input,
    /// By element.
    pub items: Vec<Item>,
    /// An operation shares those of its pool if it has no others.
    pub settings: Vec<Arc<Settings>>,
    /// Limits by tag filter, by element.
    pub filter_limits: Vec<Resources>,
}

impl Arena {
    /// Pools and their running operations, depth first: child pools, then operations, each in the
    /// order in which they came (fair-share.md 5.6).
    pub fn build(
        tree: &Tree,
        operations: &Slab<OpIdx, Operation>,
        nodes: &Slab<NodeIdx, Node>,
        still_connecting: bool,
    ) -> Arena {
        let root = Arc::new(Settings::of_root(&tree.config));
        let room = tree.pools.len() + tree.leaves.len();
        let mut builder = Builder {
            tree,
            operations,
            nodes,
            still_connecting,
            filters: BTreeMap::new(),
            arena: Arena {
                input: Input {
                    total: tree.total,
                    options: tree_options(&tree.config),
                    elements: Vec::with_capacity(room),
                },
                items: Vec::with_capacity(room),
                settings: Vec::with_capacity(room),
                filter_limits: Vec::with_capacity(room),
            },
        };
        builder.pool(ROOT, 0, root);
        builder.arena
    }

    /// Volumes by element; elements that are not integral pools have none.
    pub fn integral_states(&self, tree: &Tree) -> Vec<IntegralState> {
        let of = |item: &Item| match item {
            Item::Pool(pool) => tree.volumes.get(&tree.pools[*pool].id).copied().unwrap_or_default(),
            Item::Leaf(_) => IntegralState::default(),
        };
        self.items.iter().map(of).collect()
    }

    /// Takes the volumes back into the tree. An extra update does not change them.
    pub fn keep_volumes(&self, tree: &mut Tree, states: &[IntegralState], kind: UpdateKind) {
        if kind == UpdateKind::Extra {
            return;
        }
        for (item, state) in self.items.iter().zip(states) {
            if let Item::Pool(pool) = item {
                let id = tree.pools[*pool].id;
                if *state != IntegralState::default() || tree.volumes.contains_key(&id) {
                    tree.volumes.insert(id, *state);
                }
            }
        }
    }

    /// Name of an element, for errors.
    pub fn name(&self, tree: &Tree, element: usize) -> String {
        match self.items.get(element) {
            Some(Item::Pool(pool)) => tree.pools[*pool].name.to_string(),
            Some(Item::Leaf(leaf)) => tree.leaves[*leaf].desc.id.to_string(),
            None => format!("element {element}"),
        }
    }
}

struct Builder<'a> {
    tree: &'a Tree,
    operations: &'a Slab<OpIdx, Operation>,
    nodes: &'a Slab<NodeIdx, Node>,
    still_connecting: bool,
    /// Sum of limits of matching nodes, by filter.
    filters: BTreeMap<String, Resources>,
    arena: Arena,
}

impl Builder<'_> {
    fn push(
        &mut self,
        item: Item,
        settings: Arc<Settings>,
        filter_limits: Resources,
        element: Element,
    ) -> usize {
        self.arena.items.push(item);
        self.arena.settings.push(settings);
        self.arena.filter_limits.push(filter_limits);
        self.arena.input.elements.push(element);
        self.arena.items.len() - 1
    }

    fn pool(&mut self, index: PoolIdx, parent: usize, settings: Arc<Settings>) {
        let pool = &self.tree.pools[index];
        let config = &pool.config;
        let filter_limits = self.limits_by_filter(&config.scheduling_tag_filter);
        let mut limits = filter_limits.min(config.resource_limits.as_limits());
        if let Some(ratio) = config.max_share_ratio {
            limits = limits.min(filter_limits * ratio);
        }
        let element = Element {
            parent,
            weight: config.weight,
            historic_usage: self.historic_usage(pool.parent, pool.historic_usage.average()),
            resource_limits: limits,
            kind: Kind::Pool(Box::new(pool_input(config))),
        };
        let position = self.push(Item::Pool(index), settings.clone(), filter_limits, element);
        for child in &pool.children {
            let own = Settings::of_pool(&settings, &self.tree.pools[*child].config);
            self.pool(*child, position, Arc::new(own));
        }
        for leaf in pool.leaves.values() {
            self.leaf(*leaf, position, &settings);
        }
    }

    /// An operation that waits or does not run does not exist for the update (fair-share.md 1).
    fn leaf(&mut self, index: LeafIdx, parent: usize, above: &Arc<Settings>) {
        let leaf = &self.tree.leaves[index];
        let operation = &self.operations[leaf.operation];
        if !operation.enabled || !leaf.is_running() {
            return;
        }
        let filter_limits = self.limits_by_filter(&leaf.parameters.scheduling_tag_filter);
        let id = leaf.desc.id.0.0;
        let tie = id.iter().fold(0u128, |tie, part| tie << 32 | u128::from(*part));
        let config = &self.tree.config;
        let single = config.consider_single_allocation_vanilla_operations_as_gang
            && leaf.is_lightweight_eligible()
            && operation.pending_count + leaf.allocations.len() as i64 == 1;
        let element = Element {
            parent,
            weight: leaf.parameters.weight,
            historic_usage: self.historic_usage(Some(leaf.pool), leaf.historic_usage.average()),
            resource_limits: filter_limits.min(leaf.parameters.resource_limits.as_limits()),
            kind: Kind::Operation(OperationInput {
                usage: leaf.usage,
                demand: demand(leaf, operation),
                start_time: leaf.desc.start_time,
                pending_allocation_count: operation.total_needed().user_slots,
                gang: leaf.desc.is_gang || single,
                best_allocation_share: leaf.best_allocation_share,
                tie,
            }),
        };
        let own = Settings::of_operation(above, &leaf.desc, config);
        let settings = if own == **above { above.clone() } else { Arc::new(own) };
        self.push(Item::Leaf(index), settings, filter_limits, element);
    }

    /// Given exactly for children of a pool that infers weights from it (fair-share.md 5.4).
    fn historic_usage(&self, parent: Option<PoolIdx>, average: f64) -> Option<f64> {
        let infers =
            parent.is_some_and(|p| self.tree.pools[p].config.infer_children_weights_from_historic_usage);
        infers.then_some(average)
    }

    /// Limits of the nodes that match (fair-share.md 5.2).
    fn limits_by_filter(&mut self, filter: &TagFilter) -> Resources {
        if filter.is_empty() {
            return self.tree.total;
        }
        if self.still_connecting {
            return Resources::INFINITE;
        }
        if let Some(limits) = self.filters.get(filter.as_str()) {
            return *limits;
        }
        let matching = self.tree.nodes.iter().map(|n| &self.nodes[*n]).filter(|n| filter.matches(&n.tags));
        let limits = matching.fold(Resources::ZERO, |sum, n| sum + n.limits);
        self.filters.insert(filter.as_str().to_owned(), limits);
        limits
    }
}

/// Demand of an operation (scheduling.md 5.2).
pub(crate) fn demand(leaf: &Leaf, operation: &Operation) -> Resources {
    if operation.suspended {
        return leaf.usage;
    }
    let demand = leaf.usage + operation.total_needed();
    if leaf.desc.apply_specified_resource_limits_to_demand {
        let limits = leaf.parameters.resource_limits.as_limits();
        return leaf.usage + (demand.min(limits) - leaf.usage).max(Resources::ZERO);
    }
    demand
}

fn tree_options(config: &TreeConfig) -> TreeOptions {
    TreeOptions {
        main_resource: config.main_resource,
        smooth_period: config.integral_smooth_period,
        pool_capacity_saturation_period: config.integral_pool_capacity_saturation_period,
        relaxed_share_multiplier_limit: config.integral_relaxed_share_multiplier_limit,
        should_distribute_free_volume_among_children: config.should_distribute_free_volume_among_children,
        infer_weight_from_guarantees_share_multiplier: config.infer_weight_from_guarantees_share_multiplier,
        enable_step_function_for_gang_operations: config.enable_step_function_for_gang_operations,
        enable_improved_fair_share_by_fit_factor_computation: config
            .enable_improved_fair_share_by_fit_factor_computation,
        enable_improved_fair_share_by_fit_factor_computation_distribution_gap: config
            .enable_improved_fair_share_by_fit_factor_computation_distribution_gap,
        enable_fifo_children_reordering_for_guarantee_utilization: config
            .enable_fifo_children_reordering_for_guarantee_utilization,
        compat_strict: false,
    }
}

fn pool_input(config: &Arc<PoolConfig>) -> PoolInput {
    let integral = &config.integral_guarantees;
    PoolInput {
        mode: config.mode,
        strong_guarantee_resources: Configured(config.strong_guarantee_resources.0),
        integral_guarantees: fairshare::IntegralGuarantees {
            guarantee_type: integral.guarantee_type,
            resource_flow: integral.resource_flow.or_zero(),
            burst_guarantee_resources: integral.burst_guarantee_resources.or_zero(),
            relaxed_share_multiplier_limit: integral.relaxed_share_multiplier_limit,
            can_accept_free_volume: integral.can_accept_free_volume,
            should_distribute_free_volume_among_children: integral
                .should_distribute_free_volume_among_children,
        },
        fifo_sort_parameters: config.fifo_sort_parameters.clone(),
        compute_promised_guarantee_fair_share: config.compute_promised_guarantee_fair_share,
        enable_priority_strong_guarantee_adjustment: config.enable_priority_strong_guarantee_adjustment,
        enable_priority_strong_guarantee_adjustment_donorship: config
            .enable_priority_strong_guarantee_adjustment_donorship,
        enable_step_function_for_gang_operations: config.enable_step_function_for_gang_operations,
        enable_fifo_children_reordering_for_guarantee_utilization: config
            .enable_fifo_children_reordering_for_guarantee_utilization,
    }
}

/// Half-life of historic usage when the period is not given (fair-share.md 5.4).
const DEFAULT_HALF_LIFE: Span = Span::from_secs(10);

impl Tree {
    /// Feeds the averages of children whose weights depend on them (fair-share.md 5.4).
    pub(super) fn observe_historic_usage(&mut self, now: Time) {
        let pools: Vec<PoolIdx> = self
            .pools
            .iter()
            .filter(|(_, p)| p.config.infer_children_weights_from_historic_usage)
            .map(|(index, _)| index)
            .collect();
        for index in pools {
            let pool = &self.pools[index];
            let half_life = pool.config.historic_usage_aggregation_period.unwrap_or(DEFAULT_HALF_LIFE);
            let children = pool.children.clone();
            let leaves: Vec<LeafIdx> = pool.leaves.values().copied().collect();
            let total = self.total;
            for child in children {
                let pool = &mut self.pools[child];
                let share = pool.usage.share_of(&total).max_component();
                pool.historic_usage.observe(now, share, half_life);
            }
            for leaf in leaves {
                let leaf = &mut self.leaves[leaf];
                let share = leaf.usage.share_of(&total).max_component();
                leaf.historic_usage.observe(now, share, half_life);
            }
        }
    }
}
