//! Options of a pool tree (scheduling.md 18.1, fair-share.md 13.2).

use super::options::{ANY_SPAN, FOREVER, OptionInfo, Options, number};
use super::pool::PoolConfig;
use crate::amounts::Amounts;
use crate::formula::TagFilter;
use std::collections::BTreeMap;
use vocab::{Cpu, Failure, RESOURCES, Resource, Resources, Span};
use yson::Map;

/// Name of the root of every tree.
pub const ROOT_NAME: &str = "<Root>";

/// On whose behalf an operation may preempt (scheduling.md 6.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PriorityScope {
    /// Only its own.
    OperationOnly,
    /// Also that of its starving ancestors.
    OperationAndAncestors,
}

/// `batch_operation_scheduling` (scheduling.md 11.3).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BatchScheduling {
    /// Operations in a batch.
    pub batch_size: i64,
    /// Spare resources that later batches want, once one has started something.
    pub fallback_min_spare_allocation_resources: Resources,
}

/// All options of a tree. Null in the tables is `None` here.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)] // the option table of scheduling.md 18.1 says what they do
pub struct TreeConfig {
    /// The options that were given, canonical.
    pub specified: Map,
    pub nodes_filter: TagFilter,
    pub default_parent_pool: String,
    pub forbid_immediate_operations_in_root: bool,
    pub max_operation_count: i64,
    pub max_running_operation_count: i64,
    pub max_operation_count_per_pool: i64,
    pub max_running_operation_count_per_pool: i64,
    pub max_ephemeral_pools_per_user: i64,
    pub use_user_default_parent_pool_map: bool,
    pub fair_share_starvation_timeout: Span,
    pub fair_share_aggressive_starvation_timeout: Span,
    pub fair_share_starvation_tolerance: f64,
    pub enable_aggressive_starvation: bool,
    pub enable_pool_starvation: bool,
    pub allocation_count_preemption_timeout_coefficient: f64,
    pub preemption_satisfaction_threshold: f64,
    pub aggressive_preemption_satisfaction_threshold: f64,
    pub non_preemptible_resource_usage_threshold: Amounts,
    pub preemptive_scheduling_backoff: Span,
    pub allocation_preemption_timeout: Span,
    pub allocation_graceful_preemption_timeout: Span,
    pub waiting_for_resources_on_node_timeout: Option<Span>,
    pub scheduling_preemption_priority_scope: PriorityScope,
    pub allow_preemption_from_starving_operations: bool,
    pub allow_aggressive_preemption_for_gang_operations: bool,
    pub allow_gang_operations_only_in_fifo_pools: bool,
    pub consider_allocation_on_fair_share_bound_preemptible: bool,
    pub enable_guarantee_priority_scheduling: bool,
    pub batch_operation_scheduling: Option<BatchScheduling>,
    pub max_schedulable_element_count_in_fifo_pool: Option<i64>,
    pub min_child_heap_size: i64,
    pub allowed_resource_usage_staleness: Span,
    pub cached_allocation_preemption_statuses_update_period: Span,
    pub tentative_tree_saturation_deactivation_period: Span,
    pub enable_limiting_ancestor_check: bool,
    pub node_reconnection_timeout: Span,
    pub best_allocation_share_update_period: Span,
    pub main_resource: Resource,
    pub pool_config_presets: BTreeMap<String, PoolConfig>,
    pub integral_smooth_period: Span,
    pub integral_pool_capacity_saturation_period: Span,
    pub integral_relaxed_share_multiplier_limit: f64,
    pub should_distribute_free_volume_among_children: bool,
    pub infer_weight_from_guarantees_share_multiplier: Option<f64>,
    pub enable_step_function_for_gang_operations: bool,
    pub enable_improved_fair_share_by_fit_factor_computation: bool,
    pub enable_improved_fair_share_by_fit_factor_computation_distribution_gap: bool,
    pub enable_fifo_children_reordering_for_guarantee_utilization: bool,
    pub consider_single_allocation_vanilla_operations_as_gang: bool,
    pub enable_detailed_logs_for_starving_operations: bool,
    pub enable_detailed_starvation_logs: bool,
}

impl Default for TreeConfig {
    fn default() -> Self {
        TreeConfig::parse(&Map::new()).expect("no options are good options").0
    }
}

/// Options of the reference that are accepted and have no effect (scheduling.md 12.3, 22;
/// fair-share.md 13.2).
const IGNORED: [&str; 11] = [
    "enable_fair_share_truncation_in_fifo_pool",
    "preemption_check_satisfaction",
    "enable_conditional_preemption",
    "packing",
    "scheduling_segments",
    "ssd_priority_preemption",
    "enable_resource_usage_snapshot",
    "enable_infinite_resource_limits_overcommit",
    "allow_idle_cpu_policy",
    "gpu_scheduling_policy",
    "fair_share_starvation_tolerance_absolute",
];

impl TreeConfig {
    /// Reads the options; gives back the unknown ones, which the caller keeps and raises the alert
    /// `unrecognized_pool_tree_config_options` for.
    pub fn parse(map: &Map) -> Result<(TreeConfig, Map), Failure> {
        let mut o = Options::new("pool tree option", map)?;
        let mut config = read(&mut o)?;
        for name in IGNORED {
            o.opaque(name)?;
        }
        let (specified, rest) = o.finish_with_rest();
        config.specified = specified;
        config.check()?;
        Ok((config, rest))
    }

    /// All options, in no particular order.
    pub fn options() -> Vec<OptionInfo> {
        let mut o = Options::recorder("pool tree option");
        // Nothing is given, so nothing can be refused.
        let _ = read(&mut o);
        for name in IGNORED {
            let _ = o.opaque(name);
        }
        o.recorded()
    }

    fn check(&self) -> Result<(), Failure> {
        let order = |small: &str, a: String, large: &str, b: String, good: bool| {
            if good {
                return Ok(());
            }
            Err(Failure::new(format!("\"{small}\" must be less than or equal to \"{large}\", but {a} > {b}"))
                .with("option", small))
        };
        let (t, at) = (self.fair_share_starvation_timeout, self.fair_share_aggressive_starvation_timeout);
        order(
            "fair_share_starvation_timeout",
            t.to_string(),
            "fair_share_aggressive_starvation_timeout",
            at.to_string(),
            t <= at,
        )?;
        let (p, ap) =
            (self.preemption_satisfaction_threshold, self.aggressive_preemption_satisfaction_threshold);
        order(
            "aggressive_preemption_satisfaction_threshold",
            number(ap),
            "preemption_satisfaction_threshold",
            number(p),
            ap <= p,
        )
    }
}

fn read(o: &mut Options<'_>) -> Result<TreeConfig, Failure> {
    let counts = 1..=i64::from(i32::MAX);
    let s = Span::from_secs;
    let positive = Span::from_millis(1)..=FOREVER;
    let resources = RESOURCES.map(|r| (r.as_str(), r));
    let scopes = [
        ("operation_only", PriorityScope::OperationOnly),
        ("operation_and_ancestors", PriorityScope::OperationAndAncestors),
    ];
    let any = 0.0..=f64::INFINITY;
    let threshold = "non_preemptible_resource_usage_threshold";
    if o.is_null(threshold) {
        return Err(o.refuse(threshold, &yson::Value::Entity, "a map of resources, not null"));
    }
    let integral = o.map(&["integral_guarantees"], |o| {
        Ok((
            o.span(&["smooth_period"], positive.clone())?,
            o.span(&["pool_capacity_saturation_period"], ANY_SPAN)?,
            o.double(&["relaxed_share_multiplier_limit"], 1.0..=f64::INFINITY)?,
        ))
    })?;
    let (smooth, saturation, relaxed) = integral.unwrap_or_default();
    let mut non_preemptible = o.amounts(&[threshold])?.unwrap_or_default();
    let old_threshold = o.int(
        &[
            "max_unpreemptible_running_allocation_count",
            "max_unpreemptible_running_job_count",
            "max_unpreemptable_running_job_count",
        ],
        0..=i64::from(i32::MAX),
    )?;
    // The old name means `user_slots`, unless that is given (scheduling.md 7.3).
    if non_preemptible.get(Resource::UserSlots).is_none() {
        non_preemptible.set(Resource::UserSlots, old_threshold);
    }
    let check_starvation = o.boolean(&["preemption_check_starvation"])?;
    Ok(TreeConfig {
        specified: Map::new(),
        nodes_filter: o.formula(&["nodes_filter", "node_tag_filter"])?.unwrap_or_default(),
        default_parent_pool: o.text(&["default_parent_pool"])?.unwrap_or_else(|| ROOT_NAME.to_owned()),
        forbid_immediate_operations_in_root: o
            .boolean(&["forbid_immediate_operations_in_root"])?
            .unwrap_or(true),
        max_operation_count: o.int(&["max_operation_count"], counts.clone())?.unwrap_or(50_000),
        max_running_operation_count: o
            .int(&["max_running_operation_count"], counts.clone())?
            .unwrap_or(2_000),
        max_operation_count_per_pool: o.int(&["max_operation_count_per_pool"], counts.clone())?.unwrap_or(50),
        max_running_operation_count_per_pool: o
            .int(&["max_running_operation_count_per_pool"], counts.clone())?
            .unwrap_or(50),
        max_ephemeral_pools_per_user: o.int(&["max_ephemeral_pools_per_user"], counts.clone())?.unwrap_or(1),
        use_user_default_parent_pool_map: o.boolean(&["use_user_default_parent_pool_map"])?.unwrap_or(false),
        fair_share_starvation_timeout: o
            .span(&["fair_share_starvation_timeout", "fair_share_preemption_timeout"], ANY_SPAN)?
            .unwrap_or(s(30)),
        fair_share_aggressive_starvation_timeout: o
            .span(&["fair_share_aggressive_starvation_timeout"], ANY_SPAN)?
            .unwrap_or(s(120)),
        fair_share_starvation_tolerance: o
            .double(&["fair_share_starvation_tolerance"], 0.0..=1.0)?
            .unwrap_or(0.8),
        enable_aggressive_starvation: o.boolean(&["enable_aggressive_starvation"])?.unwrap_or(false),
        enable_pool_starvation: o.boolean(&["enable_pool_starvation"])?.unwrap_or(true),
        allocation_count_preemption_timeout_coefficient: o
            .double(
                &[
                    "allocation_count_preemption_timeout_coefficient",
                    "job_count_preemption_timeout_coefficient",
                ],
                1.0..=f64::INFINITY,
            )?
            .unwrap_or(1.0),
        preemption_satisfaction_threshold: o
            .double(&["preemption_satisfaction_threshold"], f64::MIN_POSITIVE..=f64::INFINITY)?
            .unwrap_or(1.0),
        aggressive_preemption_satisfaction_threshold: o
            .double(&["aggressive_preemption_satisfaction_threshold"], any)?
            .unwrap_or(0.2),
        non_preemptible_resource_usage_threshold: non_preemptible,
        preemptive_scheduling_backoff: o.span(&["preemptive_scheduling_backoff"], ANY_SPAN)?.unwrap_or(s(5)),
        allocation_preemption_timeout: o
            .span(&["allocation_preemption_timeout", "job_interrupt_timeout"], ANY_SPAN)?
            .unwrap_or(s(10)),
        allocation_graceful_preemption_timeout: o
            .span(&["allocation_graceful_preemption_timeout", "job_graceful_interrupt_timeout"], ANY_SPAN)?
            .unwrap_or(s(60)),
        waiting_for_resources_on_node_timeout: o
            .span(&["waiting_for_resources_on_node_timeout", "waiting_job_timeout"], ANY_SPAN)?,
        scheduling_preemption_priority_scope: o
            .choice(&["scheduling_preemption_priority_scope"], &scopes)?
            .unwrap_or(PriorityScope::OperationAndAncestors),
        allow_preemption_from_starving_operations: o
            .boolean(&["allow_preemption_from_starving_operations"])?
            .unwrap_or(!check_starvation.unwrap_or(true)),
        allow_aggressive_preemption_for_gang_operations: o
            .boolean(&["allow_aggressive_preemption_for_gang_operations"])?
            .unwrap_or(true),
        allow_gang_operations_only_in_fifo_pools: o
            .boolean(&["allow_gang_operations_only_in_fifo_pools"])?
            .unwrap_or(false),
        consider_allocation_on_fair_share_bound_preemptible: o
            .boolean(&["consider_allocation_on_fair_share_bound_preemptible"])?
            .unwrap_or(false),
        enable_guarantee_priority_scheduling: o
            .boolean(&["enable_guarantee_priority_scheduling"])?
            .unwrap_or(false),
        batch_operation_scheduling: o
            .map(&["batch_operation_scheduling", "prioritized_regular_scheduling"], batch_scheduling)?,
        max_schedulable_element_count_in_fifo_pool: o
            .int(&["max_schedulable_element_count_in_fifo_pool"], counts)?,
        min_child_heap_size: o.int(&["min_child_heap_size"], 0..=i64::MAX)?.unwrap_or(16),
        allowed_resource_usage_staleness: o
            .span(&["allowed_resource_usage_staleness"], ANY_SPAN)?
            .unwrap_or(Span::from_millis(100)),
        cached_allocation_preemption_statuses_update_period: o
            .span(&["cached_allocation_preemption_statuses_update_period"], positive.clone())?
            .unwrap_or(s(15)),
        tentative_tree_saturation_deactivation_period: o
            .span(&["tentative_tree_saturation_deactivation_period"], ANY_SPAN)?
            .unwrap_or(s(10)),
        enable_limiting_ancestor_check: o.boolean(&["enable_limiting_ancestor_check"])?.unwrap_or(true),
        node_reconnection_timeout: o
            .span(&["node_reconnection_timeout", "total_resource_limits_consider_delay"], ANY_SPAN)?
            .unwrap_or(s(300)),
        best_allocation_share_update_period: o
            .span(&["best_allocation_share_update_period", "best_allocation_ratio_update_period"], positive)?
            .unwrap_or(s(60)),
        main_resource: o.choice(&["main_resource"], &resources)?.unwrap_or(Resource::Cpu),
        pool_config_presets: o.map_by_name(&["pool_config_presets"], presets)?.unwrap_or_default(),
        integral_smooth_period: smooth.unwrap_or(s(60)),
        integral_pool_capacity_saturation_period: saturation.unwrap_or(s(86_400)),
        integral_relaxed_share_multiplier_limit: relaxed.unwrap_or(3.0),
        should_distribute_free_volume_among_children: o
            .boolean(&["should_distribute_free_volume_among_children"])?
            .unwrap_or(false),
        infer_weight_from_guarantees_share_multiplier: o.double(
            &[
                "infer_weight_from_guarantees_share_multiplier",
                "infer_weight_from_strong_guarantee_share_multiplier",
                "infer_weight_from_min_share_ratio_multiplier",
            ],
            1.0..=f64::INFINITY,
        )?,
        enable_step_function_for_gang_operations: o
            .boolean(&["enable_step_function_for_gang_operations"])?
            .unwrap_or(false),
        enable_improved_fair_share_by_fit_factor_computation: o
            .boolean(&["enable_improved_fair_share_by_fit_factor_computation"])?
            .unwrap_or(false),
        enable_improved_fair_share_by_fit_factor_computation_distribution_gap: o
            .boolean(&["enable_improved_fair_share_by_fit_factor_computation_distribution_gap"])?
            .unwrap_or(false),
        enable_fifo_children_reordering_for_guarantee_utilization: o
            .boolean(&["enable_fifo_children_reordering_for_guarantee_utilization"])?
            .unwrap_or(false),
        consider_single_allocation_vanilla_operations_as_gang: o
            .boolean(&["consider_single_allocation_vanilla_operations_as_gang"])?
            .unwrap_or(false),
        enable_detailed_logs_for_starving_operations: o
            .boolean(&["enable_detailed_logs_for_starving_operations"])?
            .unwrap_or(false),
        enable_detailed_starvation_logs: o.boolean(&["enable_detailed_starvation_logs"])?.unwrap_or(false),
    })
}

fn batch_scheduling(o: &mut Options<'_>) -> Result<BatchScheduling, Failure> {
    let fallback = Resources { user_slots: 1, cpu: Cpu(500), memory: 1 << 30, ..Resources::ZERO };
    Ok(BatchScheduling {
        batch_size: o.int(&["batch_size"], 1..=i64::MAX)?.unwrap_or(1_000),
        fallback_min_spare_allocation_resources: o
            .amounts(&["fallback_min_spare_allocation_resources"])?
            .map_or(fallback, |a| a.or_zero()),
    })
}

fn presets(o: &mut Options<'_>) -> Result<BTreeMap<String, PoolConfig>, Failure> {
    let mut presets = BTreeMap::new();
    for name in o.names() {
        let preset = o.map(&[&name], PoolConfig::parse_nested)?;
        let specified = o.specified(&name).and_then(|v| v.as_map().cloned());
        if let (Some(mut preset), Some(specified)) = (preset, specified) {
            preset.specified = specified;
            presets.insert(name, preset);
        }
    }
    Ok(presets)
}
