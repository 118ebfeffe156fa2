//! Simulations that begin in the middle: jobs that run already, and what a live cluster says of itself.

use crate::desk::{Desk, json, rows};
use sim::live::{Assumptions, Cluster, Operation, Pool, Tree, Written, write};
use sim::what_if::{Plan, SideBySide, Variant, what_if};
use sim::{Options, Scenario};
use std::path::Path;
use vocab::{Span, Time};
use yson::{Map, Value};

/// Two jobs of `a` run on node 1 for 40 of 100 s, node 0 is free, and two more wait.
const HALF_DONE: &str = r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":4,"cpu":2,"memory":1000000,"duration":100000}],"running":[{"task":"t","node":"n-1","ran_ms":40000},{"task":"t","node":"n-1","ran_ms":10000}]}"#;

#[test]
fn running_jobs_go_on_where_they_are() {
    let desk = Desk::new(2, 4, 3_600_000, &[HALF_DONE]);
    desk.checked("out", &[]);
    let text = desk.read("out/allocations.csv");
    let mut found: Vec<_> = rows(&text)
        .iter()
        .map(|row| {
            (row["job_index"].clone(), row["node"].clone(), row["end_ms"].clone(), row["outcome"].clone())
        })
        .collect();
    found.sort();
    let want = [("0", "n-1", "60000"), ("1", "n-1", "90000"), ("2", "n-0", "100000"), ("3", "n-0", "100000")];
    let want: Vec<_> = want
        .iter()
        .map(|(job, node, end)| {
            ((*job).to_owned(), (*node).to_owned(), (*end).to_owned(), "completed".to_owned())
        })
        .collect();
    assert_eq!(found, want, "{text}");
}

/// With the long way or the short one, and the second time: the same bytes.
#[test]
fn a_beginning_in_the_middle_is_the_same_each_time() {
    let desk =
        Desk::new(3, 4, 3_600_000, &[HALF_DONE, &HALF_DONE.replace("\"x\"", "\"y\"").replace("n-1", "n-2")]);
    let outs = ["one", "two", "slow"].map(|out| {
        let options = Options { shortcuts: out != "slow", ..Options::default() };
        desk.run(out, &[], options).unwrap_or_else(|e| panic!("{e}"));
        ["pools.csv", "operations.csv", "allocations.csv"].map(|name| desk.read(&format!("{out}/{name}")))
    });
    assert!(outs[0] == outs[1] && outs[0] == outs[2]);
}

#[test]
fn what_ran_on_a_node_that_is_gone_begins_anew() {
    let desk = Desk::new(2, 4, 3_600_000, &[HALF_DONE]);
    let ran = desk.checked("out", &[("/cluster/node_groups/0/count", "1")]);
    assert_eq!(crate::desk::figure(&ran, "cluster/counts/jobs_completed"), 4.0);
    assert!(desk.read("out/summary.json").contains("which is not there"));
    assert!(rows(&desk.read("out/allocations.csv")).iter().all(|row| row["node"] == "n-0"));
}

#[test]
fn refusals() {
    let told = |line: &str| {
        let desk = Desk::new(1, 4, 1_000_000, &[line]);
        let error = desk.run("out", &[], Options::default()).expect_err(line);
        error.to_string().replace(&desk.path().display().to_string(), "DIR")
    };
    let with = |running: &str, at: u64| {
        told(&format!(
            r#"{{"at":{at},"user":"u","tasks":[{{"name":"t","job_count":1,"duration":1}}],"running":[{running}]}}"#
        ))
    };
    let found = [
        with(r#"{"task":"t","node":"n-0"}"#, 5),
        with(r#"{"task":"s","node":"n-0"}"#, 0),
        with(r#"{"task":"t"}"#, 0),
        with(r#"{"task":"t","node":"n-0","run_ms":5}"#, 0),
        with(r#"{"task":"t","node":"n-0"},{"task":"t","node":"n-0"}"#, 0),
    ];
    expect_test::expect![[r#"
        DIR/workload.jsonl, line 1: /running: only with "at" 0, found 5
        DIR/workload.jsonl, line 1: /running/0/task: no such task "s"
        DIR/workload.jsonl, line 1: /running/0/node: required, expected string
        DIR/workload.jsonl, line 1: /running/0/run_ms: unknown option
        DIR/workload.jsonl, line 1: /running/1/task: task "t" has only 1 jobs"#]]
    .assert_eq(&found.join("\n"));
}

fn map(text: &str) -> Map {
    json(text).as_map().cloned().unwrap_or_default()
}

fn operation(id: &str, state: &str, pool: &str, counts: (u64, u64), suspended: bool) -> Operation {
    let (running, pending) = counts;
    let attributes = format!(
        r#"{{"id":"{id}","state":"{state}","authenticated_user":"ann","start_time":"2026-03-01T10:00:00.000000Z","suspended":{suspended},
        "provided_spec":{{"title":"{id}","secure":"?","max_failed_job_count":7,"tasks":{{"t":{{"command":"sleep","job_count":9,"interruption_signal":"SIGTERM"}}}}}},
        "runtime_parameters":{{"scheduling_options_per_pool_tree":{{"physical":{{"pool":"{pool}","weight":2,"resource_limits":{{}},"tentative":false}}}}}},
        "progress":{{"tasks":[{{"task_name":"t","job_counter":{{"running":{running},"pending":{pending}}},"user_job_memory_reserve_factor":0.5,
        "user_job_options":{{"cpu_limit":2,"gpu_limit":0,"memory_limit":1000000000}}}}]}}}}"#
    );
    Operation { attributes: map(&attributes), completed: Vec::new() }
}

/// Nodes `h:1` and `h:2` of four cores, all in use by `prod`, and one that is away; `dev` waits.
fn cluster() -> Cluster {
    let node = |state: &str, index: u64, heartbeat: &str| {
        format!(
            r#"{{"state":"{state}","index":{index},"last_heartbeat_time":"2026-03-01T{heartbeat}Z","heartbeat_period":4000,"tags":["x"],"resource_limits":{{"cpu":4,"memory":64000000000,"user_slots":50,"gpu":0,"network":100}}}}"#
        )
    };
    // One has reported since the beginning.
    let nodes = format!(
        r#"{{"h:1":{},"h:2":{},"h:3":{}}}"#,
        node("online", 7, "12:00:00.250000"),
        node("online", 3, "11:59:57.500000"),
        node("offline", 5, "11:00:00.000000")
    );
    let row = |operation: &str, age: u64, leaving: bool| {
        format!(
            r#"{{"operation_id":"{operation}","task_name":"t","state":"running","age":{age},"preempting":{leaving},"resources":{{"cpu":2,"memory":600000000}}}}"#
        )
    };
    let allocations = format!(
        r#"{{"h:1":[{},{}],"h:2":[{},{},{}]}}"#,
        row("busy", 30_000, false),
        row("busy", 90_000, false),
        row("busy", 20_000, false),
        row("busy", 10_000, false),
        row("busy", 5_000, true)
    );
    let pool = |name: &str, parent: Option<&str>, attributes: &str| Pool {
        name: name.to_owned(),
        parent: parent.map(str::to_owned),
        attributes: map(attributes),
    };
    let tree = Tree {
        name: "physical".to_owned(),
        config: map(r#"{"default_parent_pool":"<Root>","fair_share_starvation_timeout":120000}"#),
        pools: vec![
            pool(
                "all",
                None,
                r#"{"id":"1-2-3-4","name":"all","creation_time":"2026-03-01T10:00:00.000000Z"}"#,
            ),
            pool("prod", Some("all"), r#"{"weight":3,"parent_name":"all"}"#),
            pool(
                "dev",
                None,
                r#"{"integral_guarantees":{"guarantee_type":"burst","resource_flow":{"cpu":1},"burst_guarantee_resources":{"cpu":2}}}"#,
            ),
        ],
        orchid: map(r#"{"dev":{"accumulated_resource_ratio_volume":12.5},"all":{}}"#),
        allocations: map(&allocations),
    };
    let mut busy = operation("busy", "running", "prod", (5, 6), false);
    let done = |ms: u64| {
        let end = Time::parse("2026-03-01T10:00:00Z").expect("a time") + Span::from_millis(ms);
        map(&format!(
            r#"{{"task_name":"t","start_time":"2026-03-01T10:00:00.000000Z","finish_time":"{end}"}}"#
        ))
    };
    busy.completed = vec![done(50_000), done(70_000)];
    let waits = operation("waits", "pending", "dev", (0, 2), false);
    let still = operation("still", "running", "dev", (0, 1), true);
    let over = operation("over", "completing", "dev", (0, 0), false);
    Cluster {
        taken: Time::parse("2026-03-01T12:00:00Z").expect("a time"),
        default_tree: "physical".to_owned(),
        scheduler_config: Map::new(),
        controller_config: Map::new(),
        nodes: map(&nodes),
        trees: vec![tree],
        operations: vec![waits, over, still, busy],
    }
}

const ASSUMED: Assumptions =
    Assumptions { job_duration: Span::from_secs(20), duration: Span::from_secs(600) };

#[test]
fn a_live_cluster_as_a_scenario() {
    let folder = tempfile::tempdir().expect("a directory");
    let written = write(&cluster(), &ASSUMED, folder.path()).unwrap_or_else(|e| panic!("{e}"));
    let want = Written { nodes: 2, operations: 3, running_jobs: 4, pending_jobs: 10, guessed_tasks: 2 };
    assert_eq!(written, want);
    let text = std::fs::read_to_string(folder.path().join("workload.jsonl")).expect("a workload");
    let lines: Vec<Value> = text.lines().map(json).collect();
    let ids: Vec<_> = lines.iter().filter_map(|line| line.get("id")?.as_str()).collect();
    // Who waits comes last.
    assert_eq!(ids, ["busy", "still", "waits"]);
    let rows = |key: &str| lines[0].get(key).and_then(Value::as_list).map_or(0, <[Value]>::len);
    // The one on its way out waits already: its unit is among the ten.
    assert_eq!((rows("running"), rows("jobs")), (4, 4));
    let durations: Vec<f64> = lines[0]
        .get("jobs")
        .and_then(Value::as_list)
        .into_iter()
        .flatten()
        .filter_map(|row| row.as_list()?[1].as_f64())
        .collect();
    // The mean of those that are done, but for the one that has run longer already.
    assert_eq!(durations, [1.25 * 90_000.0, 60_000.0, 60_000.0, 60_000.0]);
    let scenario =
        Scenario::load(&folder.path().join("scenario.json"), &[]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(scenario.total().cpu.as_f64(), 8.0);
    let [group] = &scenario.groups[..] else { panic!("{:?}", scenario.groups) };
    assert_eq!(group.heartbeat_period, Some(Span::from_millis(4001)));
    // The scheduler counts them in this order.
    assert_eq!(group.names, ["h:2", "h:1"]);
    assert_eq!(group.heartbeat_phases, [1501, 250].map(Span::from_millis));
    assert_eq!((scenario.trees[0].pools.len(), scenario.events.len()), (3, 1));
    let dev = scenario.trees[0].pools.iter().find(|pool| pool.name == "dev").expect("dev");
    assert_eq!(dev.ratio_volume, Some(12.5));
}

fn compared(variants: &[&str], check: impl FnOnce(&SideBySide, &Path)) {
    let folder = tempfile::tempdir().expect("a directory");
    write(&cluster(), &ASSUMED, &folder.path().join("now")).unwrap_or_else(|e| panic!("{e}"));
    let variants: Vec<Variant> = variants
        .iter()
        .enumerate()
        .map(|(i, text)| {
            let path = folder.path().join(format!("{i}.json"));
            std::fs::write(&path, text).expect("a file");
            Variant::load(&path).unwrap_or_else(|e| panic!("{e}"))
        })
        .collect();
    let scenario = folder.path().join("now/scenario.json");
    let out = folder.path().join("out");
    let options = Options { check_invariants: true, ..Options::default() };
    let found = what_if(&scenario, &[], &variants, &out, options, Plan::default(), &|_, _| true);
    check(&found.unwrap_or_else(|e| panic!("{e}")), &out);
}

/// A guarantee for `dev` takes jobs from `prod`; a node that goes takes time from everybody; and one more
/// operation is told when it would start.
#[test]
fn what_if_on_a_live_cluster() {
    let guarantee = r#"{"format":"millpond-variant/1","name":"guarantee","set":{
        "/pool_trees/trees/physical/pools/dev/strong_guarantee_resources":{"cpu":4},
        "/pool_trees/trees/physical/config/fair_share_starvation_timeout":1000,
        "/pool_trees/trees/physical/config/preemptive_scheduling_backoff":0}}"#;
    let nodes_gone = r#"{"format":"millpond-variant/1","name":"gone","set":{
        "/events/-":{"at":0,"type":"nodes_offline","nodes":["h:2"]}}}"#;
    let folder = tempfile::tempdir().expect("a directory");
    let line = r#"{"id":"new","at":0,"user":"bob","pool":"prod","tasks":[{"name":"t","job_count":1,"cpu":1,"memory":1000000,"duration":1000}]}"#;
    let more = folder.path().join("more.jsonl");
    std::fs::write(&more, format!("{line}\n")).expect("a file");
    let one_more = format!(
        r#"{{"format":"millpond-variant/1","name":"new","set":{{"/workload/-":"{}"}}}}"#,
        more.display()
    );
    compared(&[guarantee, nodes_gone, &one_more], |found, out| {
        let [base, guarantee, gone, new] = [0, 1, 2, 3];
        let of = |id: &str, run: usize| {
            let operation = found.operations.iter().find(|o| o.id == id).expect("an operation");
            operation.runs[run].clone()
        };
        let fate = |id: &str, run: usize| of(id, run).unwrap_or_else(|| panic!("no {id} in run {run}"));
        // What runs has started, what waits has not.
        assert_eq!(fate("busy", base).wait_ms, Some(0));
        assert!(fate("waits", guarantee).wait_ms < fate("waits", base).wait_ms, "{found:#?}");
        assert!(fate("busy", guarantee).preempted > fate("busy", base).preempted, "{found:#?}");
        assert!(fate("busy", gone).lasts_ms > fate("busy", base).lasts_ms, "{found:#?}");
        assert_eq!(of("new", base), None);
        assert!(fate("new", new).wait_ms.is_some() && fate("new", new).state == "completed");
        // It is suspended, and stays so.
        assert_eq!(fate("still", base).lasts_ms, None);
        let pool = found.pools.iter().find(|p| p.pool == "dev").expect("a pool");
        let cores = |run: usize| pool.runs[run].expect("a run").usage_cpu;
        assert!(cores(guarantee) > 0.0 && cores(base) > 0.0);
        let violations = found.rows.iter().any(|row| row.metric.starts_with("violations"));
        assert!(!violations);
        assert!(out.join("comparison_operations.csv").exists());
    });
}
