//! What the Orchid shows: scheduling.md 19, http-api.md 11.2 to 11.4.

use crate::common::*;
use scheduler::*;
use yson::Value;

/// Names of http-api.md 11.3 that exist from now on (preemption groups come later).
const POOL: &str = "operation_count total_operation_count running_operation_count \
    lightweight_running_operation_count pool_operation_count schedulable_operation_count child_pool_count \
    max_operation_count max_running_operation_count forbid_immediate_operations \
    lightweight_operations_enabled effective_lightweight_operations_enabled aggressive_starvation_enabled \
    gang_operations_allowed full_path integral_guarantee_type total_resource_flow_ratio total_burst_ratio";
const NOT_OF_ROOT: &str = "parent mode is_ephemeral";
const INTEGRAL: &str = "specified_resource_flow_ratio specified_resource_flow specified_burst_ratio \
    specified_burst_guarantee_resources accumulated_resource_ratio_volume accumulated_resource_volume \
    integral_pool_capacity integral_pool_ratio_capacity estimated_burst_usage_duration_seconds \
    estimated_burst_usage_duration_sec";
const COMMON: &str = "scheduling_status starvation_status fair_share_starvation_tolerance fair_share_starvation_timeout \
    effective_fair_share_starvation_tolerance effective_fair_share_starvation_timeout \
    effective_aggressive_starvation_enabled effective_non_preemptible_resource_usage_threshold \
    effective_waiting_for_resources_on_node_timeout aggressive_preemption_allowed \
    effective_aggressive_preemption_allowed weight dominant_resource resource_usage usage_share usage_ratio \
    dominant_usage_share resource_demand demand_share demand_ratio dominant_demand_share resource_limits \
    limits_share specified_resource_limits specified_resource_limits_overcommit_tolerance \
    scheduling_tag_filter_resource_limits limited_resource_demand limited_demand_share \
    strong_guarantee_resources min_share_resources effective_strong_guarantee_resources \
    effective_min_share_resources inferred_strong_guarantee_resources strong_guarantee_share min_share \
    min_share_ratio fair_share_ratio dominant_fair_share detailed_fair_share detailed_dominant_fair_share \
    fair_resources promised_guarantee_share detailed_promised_guarantee_fair_share \
    detailed_dominant_promised_guarantee_fair_share promised_fair_share estimated_guarantee_share \
    estimated_guarantee_resources proposed_integral_share best_allocation_share satisfaction_ratio \
    local_satisfaction_ratio schedulable enabled";
const OPERATION: &str = "pool slot_index start_time fifo_index grouped_needed_resources \
    detailed_min_needed_job_resources aggregated_min_needed_job_resources tentative probing offloading \
    lightweight starving_since is_gang disk_request_media unschedulable_reason allocation_preemption_timeout \
    allocation_graceful_preemption_timeout user type title scheduling_index scheduling_priority \
    deactivation_reasons min_needed_resources_unsatisfied_count disk_quota_usage";

fn world() -> World {
    let mut w = World::new();
    w.pool("line", "", "mode=fifo").unwrap();
    let integral =
        "integral_guarantees={guarantee_type=burst;resource_flow={cpu=1};burst_guarantee_resources={cpu=2}}";
    w.pool("burst", "", integral).unwrap();
    w.node("n", 10.0, 10);
    w.run(1, "line", 1.0, 4);
    w.run(2, "line", 2.0, 9);
    w.register(3, "burst").unwrap();
    w.update();
    w
}

#[track_caller]
fn has(attributes: &yson::Map, names: &[&str]) {
    for name in names.iter().flat_map(|n| n.split_whitespace()) {
        assert!(attributes.contains(name), "{name} is missing");
    }
}

#[test]
fn all_the_names_are_there() {
    let mut w = world();
    let snapshot = w.update();
    let tree = snapshot.tree(TREE).unwrap();
    has(&tree.pool_attributes("line", None).unwrap(), &[POOL, NOT_OF_ROOT, COMMON, "fifo_sort_parameters"]);
    has(&tree.pool_attributes("burst", None).unwrap(), &[POOL, NOT_OF_ROOT, COMMON, INTEGRAL]);
    has(&tree.operation_attributes(op(1), None).unwrap(), &[OPERATION, COMMON]);
    let root = tree.pool_attributes("<Root>", None).unwrap();
    has(&root, &[POOL, COMMON]);
    assert!(NOT_OF_ROOT.split_whitespace().all(|n| !root.contains(n)), "the root has none of these");
    assert_eq!(tree.pool_attributes("nobody", None), None);
    assert_eq!(tree.operation_attributes(op(9), None), None);
    // An operation that does not run yet is listed too.
    let waiting = tree.operation_attributes(op(3), Some(&["enabled", "unschedulable_reason", "pool"]));
    assert_eq!(waiting, Some(map("pool=burst;unschedulable_reason=is_not_running;enabled=%false")));
}

#[test]
fn values() {
    let mut w = world();
    assert_eq!(w.schedule("n").len(), 7, "4 x 1 + 3 x 2 cores");
    let snapshot = w.update();
    let tree = snapshot.tree(TREE).unwrap();
    let fields = ["usage_ratio", "demand_ratio", "schedulable_operation_count", "fair_share_ratio"];
    assert_eq!(
        tree.pool_attributes("line", Some(&fields)),
        Some(map("schedulable_operation_count=1;usage_ratio=1.0;demand_ratio=2.2;fair_share_ratio=1.0"))
    );
    let of = |n, fields: &[&str]| tree.operation_attributes(op(n), Some(fields)).unwrap();
    assert_eq!(of(1, &["fifo_index", "scheduling_index"]), map("fifo_index=0;scheduling_index=-1"));
    assert_eq!(of(2, &["fifo_index", "scheduling_index"]), map("fifo_index=1;scheduling_index=0"));
    assert_eq!(
        of(2, &["grouped_needed_resources"])
            .get("grouped_needed_resources")
            .and_then(|g| g.get("0")?.get("count")),
        Some(&Value::Int(6))
    );
    assert_eq!(tree.operations_of_pool("line"), Some(vec![op(1), op(2)]));
    assert_eq!(tree.child_pools("<Root>").unwrap().len(), 2);
    assert_eq!(tree.child_pools("line"), Some(Vec::new()));
    assert_eq!(tree.child_pools("nobody"), None);
    let info = tree.resource_distribution_info();
    assert_eq!(info.get("distributed_resource_flow").and_then(|f| f.get("cpu")), Some(&Value::Double(1.0)));
}

/// Nothing that is shown is infinite or not a number (http-api.md 11.3).
#[test]
fn numbers_are_finite() {
    let mut w = world();
    w.schedule("n");
    let snapshot = w.update();
    let tree = snapshot.tree(TREE).unwrap();
    let mut all: Vec<Value> =
        tree.pool_names().map(|p| tree.pool_attributes(p, None).unwrap().into()).collect();
    all.extend(tree.operation_ids().map(|o| Value::from(tree.operation_attributes(o, None).unwrap())));
    let mut seen = 0;
    while let Some(value) = all.pop() {
        match value {
            Value::Double(x) => {
                seen += 1;
                assert!(x.is_finite());
            }
            Value::Map(m) => all.extend(m.into_iter().map(|(_, v)| v)),
            Value::List(l) => all.extend(l),
            _ => {}
        }
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn an_extra_update_sees_new_demand() {
    let mut w = world();
    let group = |count| [DemandGroup { task: 0, min_needed: cores(1.0), count }];
    assert!(!w.s.set_demand(op(1), &group(4)).unwrap(), "as much as before");
    assert!(w.s.set_demand(op(1), &group(5)).unwrap(), "more than the update knew");
    w.s.update(w.now, UpdateKind::Extra);
    assert!(!w.s.set_demand(op(1), &group(5)).unwrap());
    assert!(!w.s.set_demand(op(3), &group(5)).unwrap(), "it does not run");
    w.s.set_enabled(op(3), true).unwrap();
    assert!(w.s.set_demand(op(3), &group(5)).unwrap(), "it was not schedulable");
}

/// A whole life of starvation: pool and operation are below their shares, then they are served.
#[test]
fn starvation_is_shown() {
    let mut w = World::with(&map(""), &map("enable_aggressive_starvation=%true"));
    w.pool("p", "", "fair_share_starvation_timeout=1000").unwrap();
    w.node("n", 10.0, 10);
    w.run(1, "p", 1.0, 4);
    w.update();
    let shown = |w: &mut World, seconds| {
        w.now += vocab::Span::from_secs(seconds);
        let snapshot = w.update();
        let tree = snapshot.tree(TREE).unwrap();
        let fields = ["starvation_status", "lowest_starving_ancestor", "scheduling_status"];
        let pool = tree.pool_attributes("p", Some(&fields[..1])).unwrap();
        let mut operation = tree.operation_attributes(op(1), Some(&fields)).unwrap();
        operation.insert("pool", pool.get("starvation_status").cloned().unwrap());
        operation
    };
    let below = "scheduling_status=below_fair_share";
    assert_eq!(shown(&mut w, 0), map(&format!("{below};starvation_status=non_starving;pool=non_starving")));
    let id = op(1);
    assert_eq!(
        shown(&mut w, 1),
        map(&format!("{below};starvation_status=starving;pool=starving;lowest_starving_ancestor=\"{id}\""))
    );
    assert_eq!(
        shown(&mut w, 120),
        map(&format!(
            "{below};starvation_status=aggressively_starving;pool=aggressively_starving;lowest_starving_ancestor=\"{id}\""
        ))
    );
    assert_eq!(w.schedule("n").len(), 4);
    assert_eq!(
        shown(&mut w, 0),
        map("scheduling_status=normal;starvation_status=non_starving;pool=non_starving")
    );
}
