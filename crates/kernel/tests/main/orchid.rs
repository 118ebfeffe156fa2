//! `//sys/scheduler/orchid`: every name of http-api.md 11.1 to 11.5.

use crate::console::{Console, run};
use expect_test::expect;

const ORCHID: &str = "//sys/scheduler/orchid";

/// Does each of the names lead somewhere?
fn all_exist(console: &mut Console, base: &str, names: &str) {
    let missing: Vec<&str> =
        names.split_whitespace().filter(|name| !console.exists(&format!("{base}/{name}"))).collect();
    assert!(missing.is_empty(), "{base} has none of {missing:?}");
}

fn busy_cluster() -> Console {
    let mut console = Console::new();
    console.run(
        "node n1 cpu=4
         pool create p strong.cpu=2
         pool create q parent=p
         pool create r integral_guarantees={guarantee_type=burst;resource_flow={cpu=1.0};burst_guarantee_resources={cpu=2.0}}
         pool create f mode=fifo
         op start q jobs=9 as o1
         op start f as o2
         tick 2s",
    );
    console
}

#[test]
fn the_root() {
    let mut console = busy_cluster();
    all_exist(&mut console, ORCHID, "scheduler service service/version service/start_time");
    all_exist(
        &mut console,
        &format!("{ORCHID}/scheduler"),
        "connected default_pool_tree default_fair_share_tree cell cluster config operations operations/o1 \
         operations/o1/progress operations/o1/brief_progress operations/o1/spec operations/o1/state nodes nodes/n1 \
         suspicious_jobs controller_agents scheduling_info_per_pool_tree pool_trees",
    );
    for name in ["cell", "cluster"] {
        let base = format!("{ORCHID}/scheduler/{name}");
        all_exist(
            &mut console,
            &base,
            "resource_limits resource_usage exec_node_count total_node_count resource_limits_by_tags",
        );
    }
    all_exist(
        &mut console,
        &format!("{ORCHID}/scheduler/controller_agents/server:9013"),
        "state incarnation_id operation_ids",
    );
    all_exist(
        &mut console,
        "//sys/scheduler/instances/server:9013/orchid",
        "scheduler/connected service/version",
    );
}

#[test]
fn a_tree_in_both_forms() {
    let mut console = busy_cluster();
    let common = "config resource_usage resource_limits node_count node_addresses ";
    let rest = "pools operations operations/o1 operations_by_pool/q operations_by_pool/q/o1 child_pools_by_pool/p \
                child_pools_by_pool/p/q child_pools_by_pool/<Root>/p child_pools_by_pool/q pool_count \
                resource_distribution_info";
    all_exist(&mut console, &format!("{ORCHID}/scheduler/pool_trees/physical"), &(common.to_owned() + rest));
    all_exist(
        &mut console,
        &format!("{ORCHID}/scheduler/pool_trees/physical/resource_distribution_info"),
        "distributed_resources undistributed_resources distributed_burst_guarantee_resources \
         undistributed_burst_guarantee_resources distributed_resource_flow undistributed_resource_flow",
    );
    let old = "user_to_ephemeral_pools fair_share_info fair_share_info/pool_count fair_share_info/pools \
               fair_share_info/pools/q fair_share_info/operations fair_share_info/operations/o1 \
               fair_share_info/resource_distribution_info";
    all_exist(
        &mut console,
        &format!("{ORCHID}/scheduler/scheduling_info_per_pool_tree/physical"),
        &(common.to_owned() + old),
    );
}

/// Of pools and operations alike; `lowest_starving_ancestor` only exists where somebody starves.
const COMMON: &str = "scheduling_status starvation_status fair_share_starvation_tolerance fair_share_starvation_timeout \
    effective_fair_share_starvation_tolerance effective_fair_share_starvation_timeout \
    dominant_resource resource_usage usage_share \
    usage_ratio dominant_usage_share resource_demand demand_share demand_ratio dominant_demand_share resource_limits \
    limits_share specified_resource_limits scheduling_tag_filter_resource_limits limited_resource_demand \
    limited_demand_share strong_guarantee_resources min_share_resources effective_strong_guarantee_resources \
    effective_min_share_resources inferred_strong_guarantee_resources strong_guarantee_share min_share \
    min_share_ratio fair_share_ratio detailed_fair_share detailed_fair_share/strong_guarantee \
    detailed_fair_share/integral_guarantee detailed_fair_share/weight_proportional detailed_fair_share/total \
    detailed_dominant_fair_share fair_resources promised_guarantee_share detailed_promised_guarantee_fair_share \
    detailed_dominant_promised_guarantee_fair_share promised_fair_share estimated_guarantee_share \
    estimated_guarantee_resources proposed_integral_share best_allocation_share satisfaction_ratio \
    local_satisfaction_ratio schedulable";

#[test]
fn a_pool() {
    let mut console = busy_cluster();
    let pools = format!("{ORCHID}/scheduler/pool_trees/physical/pools");
    for pool in ["<Root>", "p", "q", "r", "f"] {
        let base = format!("{pools}/{pool}");
        all_exist(&mut console, &base, COMMON);
        all_exist(
            &mut console,
            &base,
            "operation_count total_operation_count running_operation_count lightweight_running_operation_count \
             pool_operation_count schedulable_operation_count child_pool_count max_operation_count \
             max_running_operation_count forbid_immediate_operations lightweight_operations_enabled \
             effective_lightweight_operations_enabled aggressive_starvation_enabled gang_operations_allowed \
             full_path integral_guarantee_type total_resource_flow_ratio total_burst_ratio",
        );
    }
    all_exist(&mut console, &format!("{pools}/q"), "parent mode weight is_ephemeral");
    all_exist(&mut console, &format!("{pools}/f"), "fifo_sort_parameters");
    all_exist(
        &mut console,
        &format!("{pools}/r"),
        "specified_resource_flow_ratio specified_resource_flow specified_burst_ratio \
         specified_burst_guarantee_resources accumulated_resource_ratio_volume accumulated_resource_volume \
         integral_pool_capacity integral_pool_ratio_capacity estimated_burst_usage_duration_seconds \
         estimated_burst_usage_duration_sec",
    );
    assert!(!console.exists(&format!("{pools}/<Root>/parent")), "the root has no parent");
}

#[test]
fn an_operation_and_a_node() {
    let mut console = busy_cluster();
    let operation = format!("{ORCHID}/scheduler/pool_trees/physical/operations/o1");
    all_exist(&mut console, &operation, COMMON);
    all_exist(
        &mut console,
        &operation,
        "pool slot_index start_time grouped_needed_resources \
         detailed_min_needed_job_resources aggregated_min_needed_job_resources tentative probing offloading \
         starving_since lightweight is_gang disk_request_media unschedulable_reason allocation_preemption_timeout \
         user type title scheduling_index scheduling_priority deactivation_reasons \
         min_needed_resources_unsatisfied_count disk_quota_usage scheduling_segment",
    );
    let in_fifo_pool = format!("{ORCHID}/scheduler/pool_trees/physical/operations/o2");
    all_exist(&mut console, &in_fifo_pool, "fifo_index");
    all_exist(
        &mut console,
        &format!("{ORCHID}/scheduler/nodes/n1"),
        "scheduler_state master_state state resource_usage resource_limits tags data_center infiniband_cluster \
         scheduling_heartbeat_complexity running_job_statistics last_preemptive_heartbeat_statistics \
         last_non_preemptive_heartbeat_statistics tree scheduling_segment",
    );
}

#[test]
fn what_is_not_there_and_what_cannot_be_done() {
    let transcript = run("pool create p
         tick 1s
         list //sys/scheduler/orchid/scheduler/pool_trees/physical/pools
         get //sys/scheduler/orchid/scheduler/moon
         get //sys/scheduler/orchid/scheduler/pool_trees/moon
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/pools/x
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/pools/p/x
         get //sys/scheduler/orchid/scheduler/operations/1-2-103e8-4
         get //sys/scheduler/orchid/scheduler/nodes/n9
         get //sys/scheduler/orchid/scheduler/connected/x
         exists //sys/scheduler/orchid/scheduler/pool_trees/physical/pools/x
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/child_pools_by_pool/p
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/child_pools_by_pool/x
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/operations_by_pool/x
         set //sys/scheduler/orchid/scheduler/connected %false
         remove //sys/scheduler/orchid/scheduler/pool_trees/physical/pools/p
         get //sys/scheduler/orchid/scheduler/default_pool_tree
         get //sys/scheduler/orchid/scheduler/cell");
    expect![[r#"
        > pool create p
          ok, an object
        > tick 1s
        > list //sys/scheduler/orchid/scheduler/pool_trees/physical/pools
          ["<Root>";"p";]
        > get //sys/scheduler/orchid/scheduler/moon
          error 500: Node //sys/scheduler/orchid/scheduler has no child with key "moon"
        > get //sys/scheduler/orchid/scheduler/pool_trees/moon
          error 500: Node //sys/scheduler/orchid/scheduler/pool_trees has no child with key "moon"
        > get //sys/scheduler/orchid/scheduler/pool_trees/physical/pools/x
          error 500: Node //sys/scheduler/orchid/scheduler/pool_trees/physical/pools has no child with key "x"
        > get //sys/scheduler/orchid/scheduler/pool_trees/physical/pools/p/x
          error 500: Node //sys/scheduler/orchid/scheduler/pool_trees/physical/pools/p has no child with key "x"
        > get //sys/scheduler/orchid/scheduler/operations/1-2-103e8-4
          error 500: Node //sys/scheduler/orchid/scheduler/operations has no child with key "1-2-103e8-4"
        > get //sys/scheduler/orchid/scheduler/nodes/n9
          error 500: Node //sys/scheduler/orchid/scheduler/nodes has no child with key "n9"
        > get //sys/scheduler/orchid/scheduler/connected/x
          error 500: //sys/scheduler/orchid/scheduler/connected cannot have children: it is of type "boolean"
        > exists //sys/scheduler/orchid/scheduler/pool_trees/physical/pools/x
          %false
        > get //sys/scheduler/orchid/scheduler/pool_trees/physical/child_pools_by_pool/p
          {}
        > get //sys/scheduler/orchid/scheduler/pool_trees/physical/child_pools_by_pool/x
          error 500: Node //sys/scheduler/orchid/scheduler/pool_trees/physical/child_pools_by_pool has no child with key "x"
        > get //sys/scheduler/orchid/scheduler/pool_trees/physical/operations_by_pool/x
          error 500: Node //sys/scheduler/orchid/scheduler/pool_trees/physical/operations_by_pool has no child with key "x"
        > set //sys/scheduler/orchid/scheduler/connected %false
          error 1: //sys/scheduler/orchid/scheduler/connected cannot be changed: it shows the state of the system
        > remove //sys/scheduler/orchid/scheduler/pool_trees/physical/pools/p
          error 1: //sys/scheduler/orchid/scheduler/pool_trees/physical/pools/p cannot be changed: it shows the state of the system
        > get //sys/scheduler/orchid/scheduler/default_pool_tree
          "physical"
        > get //sys/scheduler/orchid/scheduler/cell
          {"resource_limits"={"user_slots"=0;"cpu"=0.;"gpu"=0;"memory"=0;"user_memory"=0;"network"=0;};"resource_usage"={"user_slots"=0;"cpu"=0.;"gpu"=0;"memory"=0;"user_memory"=0;"network"=0;};"exec_node_count"=0;"total_node_count"=0;"resource_limits_by_tags"={};}
    "#]].assert_eq(&transcript);
}

#[test]
fn histories_and_explanations() {
    let mut console = busy_cluster();
    let tree = format!("{ORCHID}/scheduler/pool_trees/physical");
    for pool in ["<Root>", "p", "q", "r", "f"] {
        all_exist(
            &mut console,
            &tree,
            &format!(
                "pool_explanations/{pool} pool_explanations/{pool}/outcome/reason pool_explanations/{pool}/text \
                 pool_history/{pool} pool_history/{pool}/columns/demand pool_history/{pool}/-5s/columns/usage \
                 pool_history/{pool}/-5s/now/step pool_history/{pool}/-1m/-1s/10s/columns/fair_share"
            ),
        );
    }
    for missing in ["pool_explanations/nobody", "pool_history/nobody", "pool_history/q/columns/nothing"] {
        assert!(!console.exists(&format!("{tree}/{missing}")), "{missing}");
    }
    expect![[r#"
        > node n1 cpu=4
          n1 <- welcome
        > pool create p
          ok, an object
        > op start p jobs=2 as o1
          {"operation_id"="o1";}
          n1 <- start o1/0#0 o1/1#1
        > tick 3s
        > list //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_history
          ["<Root>";"p";]
        > get //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_history/p/-2s/now/1s/columns/fair_share
          [0.5;0.5;0.5;]
        > get //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_history/p/now/-2s
          error 1: Cannot read the history of pool "p": the end of the range must be after its start
        > get //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_history/p/-90d/now/1s
          error 1: Cannot read the history of pool "p": the range has 1000004 steps, at most 20000 are allowed: a step of 51s is long enough
        > set //sys/pools/p/@name q
          ok
        > tick 1s
        > list //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_history
          ["<Root>";"p";"q";]
        > get //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_history/q/-4s/-2s/1s/columns/fair_share
          [0.247475;0.5;0.5;]
        # a history lives as long as its server
        > crash
        > restart
        > tick 500ms
        > get //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_history/q/-5s/-2s/1s/columns/fair_share
          [#;#;#;#;]
    "#]].assert_eq(&run(
        "node n1 cpu=4
         pool create p
         op start p jobs=2 as o1
         tick 3s
         list //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_history
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_history/p/-2s/now/1s/columns/fair_share
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_history/p/now/-2s
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_history/p/-90d/now/1s
         set //sys/pools/p/@name q
         tick 1s
         list //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_history
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_history/q/-4s/-2s/1s/columns/fair_share
         # a history lives as long as its server
         crash
         restart
         tick 500ms
         get //sys/scheduler/orchid/scheduler/pool_trees/physical/pool_history/q/-5s/-2s/1s/columns/fair_share",
    ));
}

/// Large maps can be asked for in part, and what is in one of them alone.
#[test]
fn parts_of_large_maps() {
    let mut console = busy_cluster();
    let tree = format!("{ORCHID}/scheduler/pool_trees/physical");
    for map in ["pools", "operations", "child_pools_by_pool/<Root>", "operations_by_pool/q"] {
        for (max_size, is_cut) in [(0, true), (1, !map.ends_with("/q")), (100, false)] {
            let path = yson::ypath::YPath::parse(format!("{tree}/{map}").as_bytes()).expect("a good path");
            let fields = Some(vec!["weight".to_owned()]);
            let command =
                kernel::Command::Get { path, attributes: Vec::new(), max_size: Some(max_size), fields };
            let value = match console.world.ask("root", command).expect("an answer").expect("it is there") {
                kernel::Body::Value(value) => value,
                other => panic!("{other:?}"),
            };
            let shown = value.bare().as_map().expect("a map");
            assert!(shown.len() <= max_size, "{map}: {shown:?}");
            assert!(
                shown.iter().all(|(_, of)| of.as_map().is_some_and(|of| of.len() == 1)),
                "{map}: {shown:?}"
            );
            let says = value.attributes().and_then(|a| a.get("incomplete")).and_then(yson::Value::as_bool);
            assert_eq!(says.unwrap_or(false), is_cut, "{map} with {max_size}");
        }
    }
    all_exist(
        &mut console,
        &tree,
        "operations_by_pool/q/o1 operations_by_pool/q/o1/weight operations_by_pool/f/o2/pool",
    );
    for missing in ["operations_by_pool/f/o1", "operations_by_pool/q/o2/weight", "operations_by_pool/x/o1"] {
        assert!(!console.exists(&format!("{tree}/{missing}")), "{missing}");
    }
}

/// The kernel makes no large map; what lies inside of one is the same as alone.
#[test]
fn large_maps_are_made_by_others() {
    let mut console = busy_cluster();
    let mut ask = |list: bool, path: &str| {
        let path = yson::ypath::YPath::parse(path.as_bytes()).expect("a good path");
        let before = console.world.made_by_others;
        let command = match list {
            true => kernel::Command::List { path, attributes: Vec::new(), max_size: None },
            false => kernel::Command::Get { path, attributes: Vec::new(), max_size: None, fields: None },
        };
        let answer = match console.world.ask("root", command).expect("an answer").expect("it is there") {
            kernel::Body::Value(value) => value,
            other => panic!("{other:?}"),
        };
        (answer, console.world.made_by_others - before)
    };
    for tree in [
        "pool_trees/physical",
        "scheduling_info_per_pool_tree/physical",
        "scheduling_info_per_pool_tree/physical/fair_share_info",
    ] {
        for map in ["pools", "operations", "child_pools_by_pool/<Root>", "operations_by_pool/q"] {
            let path = format!("{ORCHID}/scheduler/{tree}/{map}");
            let (whole, made) = ask(false, &path);
            assert_eq!(made, 1, "{path}");
            let whole = whole.as_map().expect("a map");
            assert!(!whole.is_empty(), "{path}");
            let (names, made) = ask(true, &path);
            assert_eq!(made, 1, "names of {path}");
            let mut keys: Vec<yson::Value> =
                whole.keys().map(|key| yson::Value::String(key.to_vec())).collect();
            keys.sort_by(|a, b| a.as_bytes().cmp(&b.as_bytes()));
            assert_eq!(names, yson::Value::from(keys));
            for (name, value) in whole.iter() {
                let one = format!("{path}/{}", yson::ypath::escape_literal(name));
                assert_eq!(ask(false, &one), (value.clone(), 0), "{one}");
            }
        }
    }
}
