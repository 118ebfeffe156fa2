//! Options: defaults, aliases, ranges, round trips (scheduling.md 18).

use crate::common::*;
use scheduler::config::*;
use vocab::{Resource, Span};
use yson::Map;

#[test]
fn defaults_of_the_tables() {
    let t = TreeConfig::default();
    assert!(t.specified.is_empty() && t.nodes_filter.is_empty());
    assert_eq!(t.default_parent_pool, "<Root>");
    assert_eq!((t.max_operation_count, t.max_running_operation_count), (50_000, 2_000));
    assert_eq!((t.max_operation_count_per_pool, t.max_running_operation_count_per_pool), (50, 50));
    assert_eq!(t.fair_share_starvation_timeout, Span::from_secs(30));
    assert_eq!(t.fair_share_aggressive_starvation_timeout, Span::from_secs(120));
    assert_eq!(
        (t.preemption_satisfaction_threshold, t.aggressive_preemption_satisfaction_threshold),
        (1.0, 0.2)
    );
    assert!(t.forbid_immediate_operations_in_root && t.enable_pool_starvation);
    assert!(!t.enable_aggressive_starvation && !t.allow_preemption_from_starving_operations);
    assert_eq!(t.main_resource, Resource::Cpu);
    let s = SchedulerConfig::default();
    assert_eq!(s.missing_allocations_check_period, Span::from_secs(10));
    assert_eq!(s.node_shard_submit_allocations_to_strategy_period, Span::from_millis(100));
    assert_eq!(s.fair_share_update_period, Span::from_millis(200));
    assert_eq!(s.max_operation_count, 5_000);
    assert_eq!(
        s.min_spare_allocation_resources_on_node,
        vocab::Resources { memory: 256 << 20, ..cores(1.0) }
    );
    let p = PoolConfig::default();
    assert_eq!(p.fifo_sort_parameters, [FifoSortParameter::Weight, FifoSortParameter::StartTime]);
    assert!(p.allow_normal_preemption && p.integral_guarantees.can_accept_free_volume);
}

/// Canonical form is a fixed point, and it reads as the same configuration.
#[track_caller]
fn round_trip<C: PartialEq + std::fmt::Debug>(
    given: &str,
    canonical: &str,
    parse: impl Fn(&Map) -> Result<(C, Map), vocab::Failure>,
    specified: impl Fn(&C) -> &Map,
) {
    let (config, rest) = parse(&map(given)).expect("good options");
    assert!(rest.is_empty(), "{rest:?}");
    assert_eq!(specified(&config), &map(canonical), "{given}");
    let (again, _) = parse(specified(&config)).expect("canonical options are good");
    assert_eq!(again, config);
}

#[test]
fn canonical_forms() {
    let tree = |given, canonical| round_trip(given, canonical, TreeConfig::parse, |c| &c.specified);
    tree("node_tag_filter=\" a & b \"", "nodes_filter=\"a & b\"");
    tree("fair_share_preemption_timeout=\"1m\"", "fair_share_starvation_timeout=60000");
    tree("fair-share-starvation-tolerance=1", "fair_share_starvation_tolerance=1.0");
    tree(
        "integral_guarantees={smooth_period=2000;relaxed_share_multiplier_limit=2}",
        "integral_guarantees={smooth_period=2000;relaxed_share_multiplier_limit=2.0}",
    );
    tree("prioritized_regular_scheduling={batch_size=5}", "batch_operation_scheduling={batch_size=5}");
    tree("preemption_check_satisfaction=%false", "preemption_check_satisfaction=%false");
    tree("pool_config_presets={a={weight=1};b={}}", "pool_config_presets={a={weight=1.0};b={}}");
    let scheduler = |given, canonical| round_trip(given, canonical, SchedulerConfig::parse, |c| &c.specified);
    scheduler(
        "min_spare_job_resources_on_node={cpu=0.5};max_started_jobs_per_heartbeat=3",
        "min_spare_allocation_resources_on_node={cpu=0.5};max_started_allocations_per_heartbeat=3",
    );
    let pool = |given, canonical| round_trip(given, canonical, PoolConfig::parse, |c| &c.specified);
    pool(
        "fifo_sort_parameters=[pending_allocation_count;weight]",
        "fifo_sort_parameters=[pending_job_count;weight]",
    );
    pool("integral-guarantees={\"resource-flow\"={cpu=1u}}", "integral_guarantees={resource_flow={cpu=1.0}}");
    pool("weight=#", "");
    pool("waiting_job_timeout=\"1s\"", "waiting_for_resources_on_node_timeout=1000");
}

#[test]
fn refusals() {
    for (options, parts) in [
        ("max_operation_count=0", &["\"max_operation_count\"", "1..=", "0"][..]),
        ("fair_share_starvation_tolerance=1.5", &["0..=1", "1.5"]),
        (
            "fair_share_starvation_timeout=\"200s\"",
            &["200s > 120s", "fair_share_aggressive_starvation_timeout"],
        ),
        ("aggressive_preemption_satisfaction_threshold=1.1", &["1.1 > 1"]),
        ("non_preemptible_resource_usage_threshold=#", &["not null"]),
        ("scheduling_preemption_priority_scope=all", &["\"operation_only\", \"operation_and_ancestors\""]),
        ("main_resource=disk", &["\"user_slots\", \"cpu\", \"gpu\", \"memory\", \"network\""]),
        ("preemptive_scheduling_backoff=-1", &["duration", "-1"]),
        ("preemptive_scheduling_backoff=\"1 year\"", &["duration", "1 year"]),
        ("infer_weight_from_guarantees_share_multiplier=0.5", &["at least 1", "0.5"]),
        ("integral_guarantees={smooth_period=0}", &["integral_guarantees/smooth_period"]),
        (
            "node_tag_filter=a;nodes_filter=b",
            &["\"nodes_filter\" it is \"b\"", "\"node_tag_filter\" it is \"a\""],
        ),
        (
            "fair_share_preemption_timeout=10000;fair_share_starvation_timeout=\"11s\"",
            &["twice", "\"fair_share_starvation_timeout\" it is \"11s\"", "it is 10000"],
        ),
        ("preemption_satisfaction_threshold=0.", &["greater than 0", "0.0"]),
        ("aggressive_preemption_satisfaction_threshold=1e300", &["1e300 > 1"]),
        ("fair_share_starvation_tolerance=1e300", &["\"fair_share_starvation_tolerance\"", "0..=1", "1e300"]),
        (
            "non_preemptible_resource_usage_threshold={cpu=1e300}",
            &["\"non_preemptible_resource_usage_threshold/cpu\"", "0..=1e15", "double 1e300"],
        ),
    ] {
        refused(TreeConfig::parse(&map(options)), parts);
    }
    for (options, parts) in [
        ("fair_share_update_period=5", &["10ms..=60s", "5"][..]),
        ("soft_concurrent_heartbeat_limit=101", &["101 > 100"]),
        ("ephemeral_pool_name_regex=\"(a|b)\"", &["one class of characters"]),
        ("operation_hangup_deactivation_reasons=[nonsense]", &["a list of deactivation reasons"]),
        ("schedule_allocation_time_limit=0", &["schedule_allocation_time_limit", "0"][..]),
    ] {
        refused(SchedulerConfig::parse(&map(options)), parts);
    }
}

/// What a program writes back that has read all options and changed one of them by its other name.
#[test]
fn one_value_under_two_names() {
    for (given, canonical) in [
        (
            "fair_share_preemption_timeout=10000;fair_share_starvation_timeout=\"10s\"",
            "fair_share_starvation_timeout=10000",
        ),
        ("node_tag_filter=a;nodes_filter=a", "nodes_filter=a"),
        ("node_tag_filter=#;nodes_filter=a", "nodes_filter=a"),
        (
            "batch_operation_scheduling={batch_size=5};prioritized_regular_scheduling={batch_size=5}",
            "batch_operation_scheduling={batch_size=5}",
        ),
        ("\"main-resource\"=gpu;main_resource=gpu", "main_resource=gpu"),
    ] {
        let (config, rest) = TreeConfig::parse(&map(given)).unwrap_or_else(|e| panic!("{given}: {e}"));
        assert_eq!((config.specified, rest), (map(canonical), Map::new()), "{given}");
    }
}

/// Names of presets are the administrator's: no spelling of theirs is changed.
#[test]
fn names_of_presets_stay_as_they_are() {
    let text = "pool_config_presets={\"night-batch\"={\"max-operation-count\"=3};night_batch={weight=2}}";
    let (config, _) = TreeConfig::parse(&map(text)).expect("good");
    assert_eq!(config.pool_config_presets.keys().collect::<Vec<_>>(), ["night-batch", "night_batch"]);
    assert_eq!(config.pool_config_presets["night-batch"].max_operation_count, Some(3));
    let canonical = "pool_config_presets={\"night-batch\"={max_operation_count=3};night_batch={weight=2.}}";
    assert_eq!(config.specified, map(canonical));
}

#[test]
fn unknown_options_are_given_back() {
    let (_, rest) = TreeConfig::parse(&map("speed-limit=5;main_resource=gpu")).expect("good");
    assert_eq!(rest, map("\"speed-limit\"=5"));
    let (_, custom) = PoolConfig::parse(&map("owner=me;weight=1")).expect("good");
    assert_eq!(custom, map("owner=me"));
}

#[test]
fn old_name_of_the_threshold() {
    let threshold = |text: &str| {
        let (config, _) = TreeConfig::parse(&map(text)).expect("good");
        config.non_preemptible_resource_usage_threshold.get(Resource::UserSlots)
    };
    assert_eq!(threshold("max_unpreemptable_running_job_count=7"), Some(7));
    let both = "max_unpreemptible_running_allocation_count=7;non_preemptible_resource_usage_threshold={user_slots=3}";
    assert_eq!(threshold(both), Some(3));
}

#[test]
fn name_patterns() {
    for (pattern, good, bad) in [
        ("[-_a-z0-9:A-Z]+", &["a", "A-b_c:9"][..], &["", "a$b", "a b"][..]),
        ("^[a-c]*$", &["", "abc"], &["d"]),
        ("[a-]+", &["a-"], &["b"]),
    ] {
        let p = NamePattern::parse(pattern).expect("a good pattern");
        assert_eq!(p.as_str(), pattern);
        assert!(good.iter().all(|n| p.matches(n)), "{pattern}");
        assert!(!bad.iter().any(|n| p.matches(n)), "{pattern}");
    }
    for bad in ["", "a+", "[^a]+", "[z-a]+", "[]+", "[a]", "[a]+[b]+"] {
        assert!(NamePattern::parse(bad).is_err(), "{bad}");
    }
}
