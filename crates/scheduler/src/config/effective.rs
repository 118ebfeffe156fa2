//! Options as they are in force: what was specified, and the defaults of the rest (http-api.md 11.1, 11.2).

use super::{BatchScheduling, NamePattern, PriorityScope, SchedulerConfig, TreeConfig};
use crate::amounts::Amounts;
use crate::formula::TagFilter;
use std::collections::BTreeMap;
use vocab::{Resource, Resources, Span};
use yson::{Map, Value};

/// All fields by their names; the compiler sees to it that none is left out.
macro_rules! fields {
    ($config:expr, $type:ident { $($field:ident),* $(,)? }) => {{
        let $type { specified: _, $($field),* } = $config;
        let mut map = Map::new();
        $( map.insert(stringify!($field), $field.shown()); )*
        map
    }};
}

impl TreeConfig {
    /// Every option with its value.
    pub fn effective(&self) -> Map {
        let mut map = fields!(
            self,
            TreeConfig {
                nodes_filter,
                default_parent_pool,
                forbid_immediate_operations_in_root,
                max_operation_count,
                max_running_operation_count,
                max_operation_count_per_pool,
                max_running_operation_count_per_pool,
                max_ephemeral_pools_per_user,
                use_user_default_parent_pool_map,
                fair_share_starvation_timeout,
                fair_share_aggressive_starvation_timeout,
                fair_share_starvation_tolerance,
                enable_aggressive_starvation,
                enable_pool_starvation,
                allocation_count_preemption_timeout_coefficient,
                preemption_satisfaction_threshold,
                aggressive_preemption_satisfaction_threshold,
                non_preemptible_resource_usage_threshold,
                preemptive_scheduling_backoff,
                allocation_preemption_timeout,
                allocation_graceful_preemption_timeout,
                waiting_for_resources_on_node_timeout,
                scheduling_preemption_priority_scope,
                allow_preemption_from_starving_operations,
                allow_aggressive_preemption_for_gang_operations,
                allow_gang_operations_only_in_fifo_pools,
                consider_allocation_on_fair_share_bound_preemptible,
                enable_guarantee_priority_scheduling,
                batch_operation_scheduling,
                max_schedulable_element_count_in_fifo_pool,
                min_child_heap_size,
                allowed_resource_usage_staleness,
                cached_allocation_preemption_statuses_update_period,
                tentative_tree_saturation_deactivation_period,
                enable_limiting_ancestor_check,
                node_reconnection_timeout,
                best_allocation_share_update_period,
                main_resource,
                pool_config_presets,
                integral_smooth_period,
                integral_pool_capacity_saturation_period,
                integral_relaxed_share_multiplier_limit,
                should_distribute_free_volume_among_children,
                infer_weight_from_guarantees_share_multiplier,
                enable_step_function_for_gang_operations,
                enable_improved_fair_share_by_fit_factor_computation,
                enable_improved_fair_share_by_fit_factor_computation_distribution_gap,
                enable_fifo_children_reordering_for_guarantee_utilization,
                consider_single_allocation_vanilla_operations_as_gang,
                enable_detailed_logs_for_starving_operations,
                enable_detailed_starvation_logs,
            }
        );
        // These three are options of a map.
        let mut integral = Map::new();
        for name in ["smooth_period", "pool_capacity_saturation_period", "relaxed_share_multiplier_limit"] {
            integral.insert(name, map.remove(format!("integral_{name}")).unwrap_or_default());
        }
        map.insert("integral_guarantees", integral);
        over(map, &self.specified)
    }
}

impl SchedulerConfig {
    /// Every option with its value.
    pub fn effective(&self) -> Map {
        let map = fields!(
            self,
            SchedulerConfig {
                fair_share_update_period,
                watchers_update_period,
                max_operation_count,
                pending_by_pool_operation_scan_period,
                min_spare_allocation_resources_on_node,
                max_started_allocations_per_heartbeat,
                allowed_node_resources_overcommit_duration,
                enable_allocation_abort_on_zero_user_slots,
                consider_disk_quota_in_preemptive_scheduling_discount,
                send_preemption_reason_in_node_heartbeat,
                schedule_allocation_time_limit,
                schedule_allocations_timeout,
                schedule_allocation_start_backoff_time,
                schedule_allocation_backoff_multiplier,
                schedule_allocation_max_backoff_time,
                schedule_allocation_fail_backoff_time,
                max_concurrent_controller_schedule_allocation_calls,
                concurrent_controller_schedule_allocation_calls_regularization,
                min_needed_resources_update_period,
                soft_concurrent_heartbeat_limit,
                hard_concurrent_heartbeat_limit,
                node_shard_count,
                node_heartbeat_timeout,
                node_registration_timeout,
                max_node_unseen_period_to_abort_allocations,
                pool_change_is_allowed,
                operation_hangup_check_period,
                operation_hangup_safe_timeout,
                operation_hangup_min_schedule_allocation_attempts,
                operation_hangup_deactivation_reasons,
                operation_hangup_due_to_limiting_ancestor_safe_timeout,
                ephemeral_pool_name_regex,
                enable_schedule_in_single_tree,
                require_specified_operation_pools_existence,
                missing_allocations_check_period,
                node_shard_submit_allocations_to_strategy_period,
                fair_share_log_period,
                fair_share_profiling_period,
                accumulated_usage_log_period,
                fair_share_update_thread_count,
            }
        );
        over(map, &self.specified)
    }
}

/// What was specified is shown as it was, and so is what has no effect here.
fn over(mut map: Map, specified: &Map) -> Map {
    for (name, value) in specified.iter() {
        match (map.get(name).and_then(Value::as_map), value.as_map()) {
            (Some(whole), Some(part)) => {
                let both: Map = whole.clone().into_iter().chain(part.clone()).collect();
                map.insert(name, both);
            }
            _ => drop(map.insert(name, value.clone())),
        }
    }
    map
}

/// A value as an option is written.
trait Shown {
    fn shown(&self) -> Value;
}

macro_rules! shown {
    ($($type:ty => |$x:ident| $value:expr),* $(,)?) => {
        $( impl Shown for $type { fn shown(&self) -> Value { let $x = self; $value.into() } } )*
    };
}
shown! {
    bool => |x| *x,
    i64 => |x| *x,
    f64 => |x| *x,
    String => |x| x.as_str(),
    Vec<String> => |x| x.clone(),
    Span => |x| x.as_millis() as i64,
    TagFilter => |x| x.as_str(),
    NamePattern => |x| x.as_str(),
    Resource => |x| x.as_str(),
    Resources => |x| x.to_value(),
    Amounts => |x| x.to_map(),
    PriorityScope => |x| match x {
        PriorityScope::OperationOnly => "operation_only",
        PriorityScope::OperationAndAncestors => "operation_and_ancestors",
    },
    BatchScheduling => |x| yson::map! {
        "batch_size" => x.batch_size,
        "fallback_min_spare_allocation_resources" => x.fallback_min_spare_allocation_resources.to_value(),
    },
    BTreeMap<String, super::PoolConfig> => |x| {
        x.iter().map(|(name, preset)| (name.as_str(), Value::from(preset.specified.clone()))).collect::<Map>()
    },
}

/// Not set.
impl<T: Shown> Shown for Option<T> {
    fn shown(&self) -> Value {
        self.as_ref().map_or(Value::Entity, Shown::shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is shown can be written back, and says the same.
    #[test]
    fn the_configuration_in_force_is_one() {
        let given = yson::parse(
            b"{fair_share_starvation_timeout=5000; integral_guarantees={smooth_period=1000}; max_operation_count=7;\
              fair_share_update_period=500}",
        )
        .expect("YSON");
        for options in [Map::new(), given.as_map().expect("a map").clone()] {
            let (tree, _) = TreeConfig::parse(&options).expect("good");
            let again = TreeConfig::parse(&tree.effective()).expect("what is in force is good").0;
            assert_eq!(
                TreeConfig { specified: Map::new(), ..again },
                TreeConfig { specified: Map::new(), ..tree }
            );
            let (scheduler, _) = SchedulerConfig::parse(&options).expect("good");
            let again = SchedulerConfig::parse(&scheduler.effective()).expect("what is in force is good").0;
            let bare = |config| SchedulerConfig { specified: Map::new(), ..config };
            assert_eq!(bare(again), bare(scheduler));
        }
        // What is missing is an old name of something else, or has no effect.
        let all = TreeConfig::default().effective();
        let known = TreeConfig::options().into_iter().filter(|option| !option.allowed.is_empty());
        let missing: Vec<_> = known.filter(|option| !all.contains(&option.names[0])).collect();
        let missing: Vec<_> = missing.iter().map(|option| option.names[0].as_str()).collect();
        assert_eq!(missing, ["max_unpreemptible_running_allocation_count", "preemption_check_starvation"]);
        let period = SchedulerConfig::default().effective().get("fair_share_update_period").cloned();
        assert_eq!(period, Some(200.into()));
    }
}
