//! Elements as the Orchid shows them (scheduling.md 19, fair-share.md 12, http-api.md 11.2 to 11.4).

use super::{ElementInfo, KindInfo, OperationInfo, PoolInfo, TreeSnapshot};
use crate::config::{GuaranteeType, Mode, fifo_parameter_name, guarantee_type_name, mode_name};
use crate::statistics::deactivations;
use fairshare::FairShare;
use vocab::{OperationId, RESOURCES, Resources, Share, Span};
use yson::{Map, Value};

/// Builds a map of the wanted fields only; what is not wanted is not even computed.
struct Writer<'a> {
    fields: Option<&'a [&'a str]>,
    map: Map,
}

impl Writer<'_> {
    fn put<V: Into<Value>>(&mut self, name: &str, value: impl FnOnce() -> V) {
        if self.fields.is_none_or(|f| f.contains(&name)) {
            self.map.insert(name, value());
        }
    }

    /// One value under its name and its older names.
    fn all<V: Into<Value>>(&mut self, names: &[&str], value: impl Fn() -> V) {
        for name in names {
            self.put(name, &value);
        }
    }

    fn some<V: Into<Value>>(&mut self, name: &str, value: Option<V>) {
        if let Some(value) = value {
            self.put(name, || value);
        }
    }
}

/// How much below `min_component` a difference of ratios is no burst (fair-share.md 12.2).
const LARGE_EPS: f64 = 1e-4;

impl TreeSnapshot {
    /// Attributes of a pool, or only the given ones; none if there is no such pool.
    pub fn pool_attributes(&self, name: &str, fields: Option<&[&str]>) -> Option<Map> {
        let element = &self.elements[self.pools.get(name)?];
        let mut w = Writer { fields, map: Map::new() };
        if let KindInfo::Pool(pool) = &element.kind {
            self.pool_part(&mut w, element, pool);
        }
        self.common_part(&mut w, element);
        Some(w.map)
    }

    /// Attributes of an operation in this tree, or only the given ones; none if it is not here.
    pub fn operation_attributes(&self, id: OperationId, fields: Option<&[&str]>) -> Option<Map> {
        let element = &self.elements[self.operations.get(&id)?];
        let mut w = Writer { fields, map: Map::new() };
        if let KindInfo::Operation(operation) = &element.kind {
            self.operation_part(&mut w, element, operation);
        }
        self.common_part(&mut w, element);
        Some(w.map)
    }

    /// `resource_distribution_info` of the tree: how much of the cluster is guaranteed to the pools of
    /// the first level.
    pub fn resource_distribution_info(&self) -> Map {
        let first_level = || self.elements.iter().filter(|e| e.parent == Some(0));
        let pools = || {
            first_level().filter_map(|e| match &e.kind {
                KindInfo::Pool(p) => Some((e, &p.config.integral_guarantees)),
                KindInfo::Operation(_) => None,
            })
        };
        let sum = |amounts: &mut dyn Iterator<Item = Resources>| amounts.fold(Resources::ZERO, |a, b| a + b);
        let strong = sum(&mut pools().map(|(e, _)| e.output().inferred_strong_guarantee_resources));
        let burst = sum(&mut pools().map(|(_, g)| g.burst_guarantee_resources.or_zero()));
        let flow = sum(&mut pools().map(|(_, g)| g.resource_flow.or_zero()));
        let rest = |used: Resources| (self.resource_limits - used).max(Resources::ZERO).to_value();
        yson::map! {
            "distributed_resources" => strong.to_value(),
            "undistributed_resources" => rest(strong),
            "distributed_burst_guarantee_resources" => burst.to_value(),
            "undistributed_burst_guarantee_resources" => rest(strong + burst),
            "distributed_resource_flow" => flow.to_value(),
            "undistributed_resource_flow" => rest(strong + flow),
        }
    }

    /// Every option of the tree with its value.
    pub fn config(&self) -> Map {
        self.config.effective()
    }

    fn parent_name(&self, element: &ElementInfo) -> Option<&str> {
        match &self.elements[element.parent?].kind {
            KindInfo::Pool(p) => Some(&p.name),
            KindInfo::Operation(_) => None,
        }
    }

    /// Name of a pool, id of an operation.
    fn element_id(&self, element: &ElementInfo) -> String {
        match &element.kind {
            KindInfo::Pool(p) => p.name.to_string(),
            KindInfo::Operation(o) => o.desc.id.to_string(),
        }
    }

    fn pool_part(&self, w: &mut Writer<'_>, element: &ElementInfo, pool: &PoolInfo) {
        let config = &pool.config;
        let is_root = element.parent.is_none();
        w.all(&["operation_count", "total_operation_count"], || pool.counts.operations);
        w.put("running_operation_count", || pool.counts.running);
        w.put("lightweight_running_operation_count", || pool.counts.lightweight);
        w.put("schedulable_operation_count", || pool.schedulable_operation_count);
        w.put("pool_operation_count", || pool.pool_operation_count);
        w.put("child_pool_count", || pool.child_pool_count);
        w.put("max_operation_count", || pool.max_operation_count);
        w.put("max_running_operation_count", || pool.max_running_operation_count);
        w.put("forbid_immediate_operations", || match is_root {
            true => self.config.forbid_immediate_operations_in_root,
            false => config.forbid_immediate_operations,
        });
        w.put("lightweight_operations_enabled", || config.enable_lightweight_operations);
        w.put("effective_lightweight_operations_enabled", || {
            config.effective_lightweight_operations_enabled()
        });
        w.put("aggressive_starvation_enabled", || element.settings.aggressive_starvation_enabled);
        w.put("gang_operations_allowed", || {
            !self.config.allow_gang_operations_only_in_fifo_pools || config.mode == Mode::Fifo
        });
        w.put("full_path", || if is_root { "/".to_owned() } else { self.full_path(element) });
        if !is_root {
            w.put("parent", || self.parent_name(element).unwrap_or_default());
            w.put("mode", || mode_name(config.mode));
            w.put("is_ephemeral", || pool.is_ephemeral);
            w.some("abc", config.abc.clone());
        }
        if config.mode == Mode::Fifo {
            let names =
                || config.fifo_sort_parameters.iter().map(|p| fifo_parameter_name(*p)).collect::<Vec<_>>();
            w.put("fifo_sort_parameters", names);
        }
        w.put("priority_strong_guarantee_adjustment_enabled", || {
            config.enable_priority_strong_guarantee_adjustment
        });
        w.put("priority_strong_guarantee_adjustment_donorship_enabled", || {
            config.enable_priority_strong_guarantee_adjustment_donorship
        });
        self.integral_part(w, element, pool);
    }

    fn integral_part(&self, w: &mut Writer<'_>, element: &ElementInfo, pool: &PoolInfo) {
        let kind = pool.config.integral_guarantees.guarantee_type;
        let out = &element.output();
        w.put("integral_guarantee_type", || guarantee_type_name(kind));
        w.put("total_resource_flow_ratio", || out.total_resource_flow_ratio);
        w.put("total_burst_ratio", || out.total_burst_ratio);
        let Some(i) = out.integral.as_ref().filter(|_| kind != GuaranteeType::None) else { return };
        w.put("integral_pool_capacity", || i.capacity.to_value());
        w.put("integral_pool_ratio_capacity", || i.ratio_capacity);
        w.put("specified_burst_ratio", || i.specified_burst_ratio);
        w.put("specified_resource_flow_ratio", || i.specified_resource_flow_ratio);
        let times = |ratio: f64| (self.resource_limits * ratio).to_value();
        w.put("specified_burst_guarantee_resources", || times(i.specified_burst_ratio));
        w.put("specified_resource_flow", || times(i.specified_resource_flow_ratio));
        w.put("accumulated_resource_volume", || i.accumulated_volume.to_value());
        w.put("accumulated_resource_ratio_volume", || i.accumulated_ratio_volume);
        let surplus = i.specified_burst_ratio - i.specified_resource_flow_ratio;
        if surplus > LARGE_EPS {
            w.all(&["estimated_burst_usage_duration_seconds", "estimated_burst_usage_duration_sec"], || {
                i.accumulated_ratio_volume / surplus
            });
        }
    }

    fn common_part(&self, w: &mut Writer<'_>, element: &ElementInfo) {
        let out = &element.output();
        let amount = |r: Resources| move || r.to_value();
        let share = |s: Share| move || s.to_value();
        w.put("scheduling_status", || element.scheduling_status.as_str());
        w.put("starvation_status", || element.starvation.status.as_str());
        w.put("below_fair_share_since", || element.starvation.below_fair_share_since);
        let name = |ancestor: Option<usize>| ancestor.map(|a| self.element_id(&self.elements[a]));
        w.some("lowest_starving_ancestor", name(element.lowest_starving_ancestor));
        w.some("lowest_aggressively_starving_ancestor", name(element.lowest_aggressively_starving_ancestor));
        self.settings_part(w, element);
        w.put("weight", || out.weight);
        w.put("dominant_resource", || out.dominant_resource.as_str());
        w.put("resource_usage", amount(out.resource_usage));
        w.put("usage_share", share(out.usage_share));
        w.all(&["dominant_usage_share", "usage_ratio"], || out.usage_share.max_component());
        w.put("resource_demand", amount(out.resource_demand));
        w.put("demand_share", share(out.demand_share));
        w.all(&["dominant_demand_share", "demand_ratio"], || out.demand_share.max_component());
        w.put("limited_resource_demand", amount(self.resource_limits * out.limited_demand_share));
        w.put("limited_demand_share", share(out.limited_demand_share));
        w.put("dominant_limited_demand_share", || out.limited_demand_share.max_component());
        w.put("resource_limits", amount(self.limits_of(element)));
        w.put("limits_share", share(out.limits_share));
        w.put("scheduling_tag_filter_resource_limits", amount(self.filter_limits(element)));
        self.guarantees_part(w, element);
        let fair = &out.fair_share;
        w.all(&["fair_share_ratio", "dominant_fair_share"], || fair.total.max_component());
        w.put("detailed_fair_share", || detailed(fair, Share::to_value));
        w.put("detailed_dominant_fair_share", || detailed(fair, |s| s.max_component().into()));
        w.put("fair_resources", || (self.resource_limits * fair.total).to_value());
        w.put("best_allocation_share", || self.best_allocation_share(element).to_value());
        w.put("fair_share_functions_statistics", || {
            // Nothing to tell where nothing was followed: operations, and most pools.
            yson::map! {
                "fair_share_by_suggestion_size" => out.function_size,
                "fair_share_by_fit_factor_size" => out.function_size,
                "max_fit_factor_by_suggestion_size" => out.function_size,
            }
        });
        w.put("satisfaction_ratio", || element.satisfaction);
        w.put("local_satisfaction_ratio", || element.local_satisfaction);
        w.put("schedulable", || element.schedulable);
        w.put("enabled", || element.enabled);
    }

    fn guarantees_part(&self, w: &mut Writer<'_>, element: &ElementInfo) {
        let out = &element.output();
        let (limits, tolerance, strong) = match &element.kind {
            KindInfo::Pool(p) => (
                p.config.resource_limits.to_map(),
                p.config.resource_limits_overcommit_tolerance.to_map(),
                p.config.strong_guarantee_resources.or_zero(),
            ),
            KindInfo::Operation(o) => (o.parameters.resource_limits.to_map(), Map::new(), Resources::ZERO),
        };
        let strong = if element.parent.is_none() { self.resource_limits } else { strong };
        w.put("specified_resource_limits", || limits);
        w.put("specified_resource_limits_overcommit_tolerance", || tolerance);
        w.all(&["strong_guarantee_resources", "min_share_resources"], || strong.to_value());
        w.put("inferred_strong_guarantee_resources", || out.inferred_strong_guarantee_resources.to_value());
        w.all(&["effective_strong_guarantee_resources", "effective_min_share_resources"], || {
            (self.resource_limits * out.strong_guarantee_share).to_value()
        });
        w.all(&["strong_guarantee_share", "min_share"], || out.strong_guarantee_share.to_value());
        w.put("min_share_ratio", || out.strong_guarantee_share.max_component());
        w.put("strong_guarantee_share_by_tier", || {
            let tiers = &out.strong_guarantee_share_by_tier;
            yson::map! {
                "priority_pools" => tiers.priority_pools.to_value(),
                "regular_pools" => tiers.regular_pools.to_value(),
            }
        });
        let promised = &out.promised_guarantee_fair_share;
        w.put("promised_guarantee_share", || promised.total.to_value());
        w.put("detailed_promised_guarantee_fair_share", || detailed(promised, Share::to_value));
        w.put("detailed_dominant_promised_guarantee_fair_share", || {
            detailed(promised, |s| s.max_component().into())
        });
        w.put("promised_fair_share", || out.promised_fair_share.to_value());
        w.put("estimated_guarantee_share", || out.estimated_guarantee_share.to_value());
        w.put("dominant_estimated_guarantee_share", || out.estimated_guarantee_share.max_component());
        w.put("estimated_guarantee_resources", || {
            (self.resource_limits * out.estimated_guarantee_share).to_value()
        });
        w.put("proposed_integral_share", || out.proposed_integral_share.to_value());
    }

    fn settings_part(&self, w: &mut Writer<'_>, element: &ElementInfo) {
        let settings = &element.settings;
        let (tolerance, timeout) = match &element.kind {
            KindInfo::Pool(p) => {
                (p.config.fair_share_starvation_tolerance, p.config.fair_share_starvation_timeout)
            }
            KindInfo::Operation(o) => {
                (o.desc.fair_share_starvation_tolerance, o.desc.fair_share_starvation_timeout)
            }
        };
        w.put("fair_share_starvation_tolerance", || tolerance);
        w.put("fair_share_starvation_timeout", || timeout.map(milliseconds));
        w.put("effective_fair_share_starvation_tolerance", || settings.fair_share_starvation_tolerance);
        w.put("effective_fair_share_starvation_timeout", || {
            milliseconds(settings.fair_share_starvation_timeout)
        });
        w.put("effective_aggressive_starvation_enabled", || settings.aggressive_starvation_enabled);
        w.put("effective_non_preemptible_resource_usage_threshold", || {
            settings.non_preemptible_resource_usage_threshold.to_map()
        });
        w.put("effective_waiting_for_resources_on_node_timeout", || {
            settings.waiting_for_resources_on_node_timeout.map(milliseconds)
        });
        w.put("aggressive_preemption_allowed", || match &element.kind {
            KindInfo::Pool(p) => p.config.allow_aggressive_preemption,
            KindInfo::Operation(_) => None,
        });
        w.put("effective_aggressive_preemption_allowed", || settings.aggressive_preemption_allowed);
    }

    /// Ones for pools (fair-share.md 12.1).
    fn best_allocation_share(&self, element: &ElementInfo) -> Share {
        match &element.kind {
            KindInfo::Pool(_) => Share::ONES,
            KindInfo::Operation(o) => o.best_allocation_share,
        }
    }

    fn operation_part(&self, w: &mut Writer<'_>, element: &ElementInfo, o: &OperationInfo) {
        w.put("pool", || &*o.pool);
        w.put("slot_index", || i64::from(o.slot_index));
        w.put("start_time", || o.desc.start_time);
        w.some("fifo_index", element.output().fifo_index);
        w.some("effective_fifo_index", element.output().effective_fifo_index);
        w.put("grouped_needed_resources", || {
            let groups = o.groups.iter().map(|g| {
                let value =
                    yson::map! { "min_needed_resources" => g.min_needed.to_value(), "count" => g.count };
                (g.task.to_string(), value)
            });
            groups.collect::<Map>()
        });
        w.put("detailed_min_needed_job_resources", || {
            o.groups.iter().map(|g| g.min_needed.to_value()).collect::<Vec<_>>()
        });
        w.put("aggregated_min_needed_job_resources", || o.aggregated_min_needed().to_value());
        w.put("tentative", || o.tentative);
        w.put("probing", || false);
        w.put("offloading", || false);
        w.put("lightweight", || o.lightweight);
        w.put("starving_since", || element.starvation.starving_since);
        w.put("is_gang", || o.desc.is_gang);
        w.put("disk_request_media", Vec::<Value>::new);
        w.put("unschedulable_reason", || o.unschedulable_reason);
        w.put("allocation_preemption_timeout", || {
            let own = o.options.allocation_preemption_timeout.or(o.desc.allocation_preemption_timeout);
            milliseconds(own.unwrap_or(self.config.allocation_preemption_timeout))
        });
        w.put("allocation_graceful_preemption_timeout", || {
            let changed = o.options.allocation_graceful_preemption_timeout;
            let own = changed.or(o.desc.allocation_graceful_preemption_timeout);
            milliseconds(own.unwrap_or(self.config.allocation_graceful_preemption_timeout))
        });
        w.put("user", || o.desc.user.as_str());
        w.put("type", || o.desc.operation_type);
        w.put("title", || o.desc.title.as_deref());
        w.put("allocation_count", || o.allocation_count);
        w.put("scheduling_index", || o.scheduling_index);
        w.put("scheduling_priority", || if o.high { "high" } else { "medium" });
        w.put("preemption_priority", || o.priority);
        let [protected, aggressively, preemptible] = o.groups_of_allocations;
        w.put("non_preemptible_job_count", || protected);
        w.put("aggressively_preemptible_job_count", || aggressively);
        w.put("preemptible_job_count", || preemptible);
        w.put("deactivation_reasons", || deactivations(&o.refusals.get().by_reason));
        w.put("min_needed_resources_unsatisfied_count", || {
            let unsatisfied = o.refusals.get().unsatisfied;
            let counts = RESOURCES.iter().map(|r| (r.as_str(), unsatisfied[*r as usize] as i64));
            counts.filter(|(_, n)| *n > 0).collect::<Map>()
        });
        // No job asks for disk space here.
        w.put("scheduling_segment", || "default");
        w.put("disk_quota_usage", || {
            yson::map! {"disk_space_per_medium" => Map::new(), "disk_space_without_medium" => 0i64}
        });
        if let Some((pool, limit)) = &o.pending_by {
            w.put("pending_by", || {
                yson::map! { "pool" => &**pool, "limit" => *limit, "queue_position" => o.queue_position }
            });
        }
    }
}

fn detailed(share: &FairShare, f: impl Fn(&Share) -> Value) -> Map {
    yson::map! {
        "strong_guarantee" => f(&share.strong_guarantee),
        "integral_guarantee" => f(&share.integral_guarantee),
        "weight_proportional" => f(&share.weight_proportional),
        "total" => f(&share.total),
    }
}

fn milliseconds(span: Span) -> i64 {
    span.as_millis() as i64
}
