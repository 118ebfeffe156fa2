//! Events of a scenario, and pools that nobody has made.

use crate::desk::{Desk, figure, json, rows};
use sim::Options;
use yson::Value;

const WORK: &str = r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":6,"cpu":2,"duration":60000}]}"#;

fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    let found = path.split('/').try_fold(value, |value, key| value.get(key));
    found.unwrap_or_else(|| panic!("nothing at {path}"))
}

/// A snapshot has pools, operations, nodes and allocations as they were; to take one changes nothing.
#[test]
fn snapshots() {
    let desk = Desk::new(2, 4, 600_000, &[WORK]);
    let events = r#"[{"at":30500,"type":"snapshot"},{"at":100000,"type":"set_pool","pool":"b","attributes":{"weight":2}},{"at":100000,"type":"snapshot"},{"at":110000,"type":"scheduler_restart","downtime_ms":5000},{"at":111000,"type":"snapshot"}]"#;
    let ran = desk.checked("out", &[("/events", events)]);
    let first = json(&desk.read("out/snapshot-30500-0.json"));
    let tree = at(&first, "scheduler/pool_trees/physical");
    assert_eq!(at(tree, "pools/a/resource_usage/cpu").as_f64(), Some(8.0));
    assert_eq!(at(tree, "pools/a/resource_demand/cpu").as_f64(), Some(12.0));
    let operations = at(tree, "operations").as_map().expect("a map");
    let (id, operation) = operations.iter().next().expect("an operation");
    assert_eq!(at(operation, "resource_usage/cpu").as_f64(), Some(8.0));
    let id = String::from_utf8_lossy(id);
    assert_eq!(at(&first, &format!("workload_ids/{id}")).as_str(), Some("x"));
    assert_eq!(at(&first, "scheduler/nodes/n-1/resource_usage/cpu").as_f64(), Some(4.0));
    assert_eq!(at(&first, "at_ms").as_u64(), Some(30_500));
    // The second wave has two jobs.
    let second = json(&desk.read("out/snapshot-100000-2.json"));
    assert_eq!(at(&second, "scheduler/pool_trees/physical/pools/a/resource_usage/cpu").as_f64(), Some(4.0));
    let refusals = ran.summary.get("refusals").and_then(Value::as_list).expect("refusals");
    assert_eq!(
        refusals.iter().map(|r| r.as_str().unwrap_or("?")).collect::<Vec<_>>(),
        ["events/4: the server is down"]
    );
    let without = events.replace(r#"{"at":30500,"type":"snapshot"},"#, "");
    desk.run("without", &[("/events", &without)], Options::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(desk.read("out/allocations.csv"), desk.read("without/allocations.csv"));
    assert_eq!(desk.read("out/pools.csv"), desk.read("without/pools.csv"));
}

/// Controllers begin anew, their jobs go on.
#[test]
fn a_restart_of_controllers() {
    let desk = Desk::new(2, 4, 600_000, &[WORK]);
    let events = r#"[{"at":30000,"type":"controller_restart","downtime_ms":5000}]"#;
    let ran = desk.checked("out", &[("/events", events), ("/output", r#"{"event_log":true}"#)]);
    assert_eq!(figure(&ran, "cluster/counts/jobs_completed"), 6.0);
    assert_eq!(figure(&ran, "cluster/counts/jobs_aborted"), 0.0);
    assert!(desk.read("out/events.jsonl").contains("job_adopted"));
    let ends: Vec<String> =
        rows(&desk.read("out/allocations.csv")).iter().map(|r| r["end_ms"].clone()).collect();
    assert_eq!(ends[..4], ["60000"; 4], "{ends:?}");
}

/// A pool that no tree has is ephemeral, below the pool that the scenario names for such.
#[test]
fn pools_that_nobody_has_made() {
    let work = WORK.replace(r#""pool":"a""#, r#""pool":"stranger""#);
    let desk = Desk::new(2, 4, 600_000, &[&work]);
    let end = |out: &str, changes: &[(&str, &str)]| {
        let ran = desk.checked(out, changes);
        assert_eq!(figure(&ran, "cluster/counts/jobs_completed"), 6.0);
        assert_eq!(rows(&desk.read(&format!("{out}/operations.csv")))[0]["pool"], "stranger");
        figure(&ran, "virtual_ms")
    };
    assert!(end("free", &[]) < 125_000.0);
    // What is below `b` has two cores together.
    let narrow = ("/pool_trees/trees/physical/pools/b", r#"{"resource_limits":{"cpu":2}}"#);
    assert!(end("free", &[narrow]) < 125_000.0);
    let slow = end("below", &[narrow, ("/import", r#"{"fallback_parent":"b"}"#)]);
    assert!(slow > 359_000.0, "{slow}");
}

/// Trees as a cluster exports them: `yt get //sys/pool_trees` with attributes.
#[test]
fn pools_of_a_cluster() {
    let desk = Desk::new(2, 4, 600_000, &[WORK]);
    desk.write(
        "trees.yson",
        "<default_tree=physical>{physical=<config={default_parent_pool=\"<Root>\"};id=\"1-2\">{
            above=<weight=2.;type=scheduler_pool;id=\"1-3\">{a=<resource_limits={cpu=2}>{}}}}",
    );
    let ran = desk.checked("out", &[("/pool_trees", "\"trees.yson\"")]);
    assert!(figure(&ran, "virtual_ms") > 359_000.0, "the limit of the pool was not heeded");
    let told = json(&desk.read("out/scenario.json"));
    assert_eq!(at(&told, "pool_trees/trees/physical/pools/above/weight").as_f64(), Some(2.0));
}
