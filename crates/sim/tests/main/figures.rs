//! Figures of the summary: what they say of runs whose course is known, and that they add up.

use crate::desk::{Desk, figure, rows};
use std::collections::BTreeMap;

const FIRST: &str = r#"{"id":"first","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":60,"cpu":2,"gpu":1,"memory":1000000,"duration":250000}]}"#;
const SECOND: &str = r#"{"id":"second","at":20000,"user":"v","pool":"b","tasks":[{"name":"t","job_count":60,"cpu":2,"memory":1000000,"duration":{"uniform":[200000,300000]}}]}"#;
const NODE: &str = "/cluster/node_groups/0/resource_limits";

fn number(row: &BTreeMap<String, String>, name: &str) -> f64 {
    row[name].parse().unwrap_or_else(|_| panic!("{name}: {row:?}"))
}

/// Rows have whole milliseconds: of jobs of two cores each may be off by 0.002 core-seconds.
fn near(found: f64, want: f64, rows: usize) -> bool {
    (found - want).abs() <= 0.002 * rows as f64 + 0.001
}

/// Integrals are those of the rows: nothing is sampled.
#[test]
fn figures_are_those_of_the_rows() {
    let desk = Desk::new(5, 10, 3_600_000, &[FIRST, SECOND]);
    let ran =
        desk.checked("out", &[(NODE, r#"{"cpu":10,"memory":1000000000000,"user_slots":1000,"gpu":5}"#)]);
    let attempts = rows(&desk.read("out/allocations.csv"));
    let operations = rows(&desk.read("out/operations.csv"));
    let held = |row: &BTreeMap<String, String>| (number(row, "end_ms") - number(row, "ordered_ms")) / 1000.0;
    let sum =
        |pool: Option<&str>, reason: Option<&str>, per_second: &dyn Fn(&BTreeMap<String, String>) -> f64| {
            let of = |row: &&BTreeMap<String, String>| {
                pool.is_none_or(|pool| row["operation"] == if pool == "a" { "first" } else { "second" })
                    && reason.is_none_or(|reason| row["reason"] == reason)
            };
            attempts.iter().filter(of).map(|row| held(row) * per_second(row)).sum::<f64>()
        };
    let cpu = |row: &BTreeMap<String, String>| number(row, "cpu");
    for (path, pool) in [("<Root>", None), ("a", Some("a")), ("b", Some("b"))] {
        let found = figure(&ran, &format!("pools/physical/{path}/usage_cpu_s"));
        assert!(
            near(found, sum(pool, None, &cpu), attempts.len()),
            "{path}: {found} {}",
            sum(pool, None, &cpu)
        );
    }
    assert!(near(
        figure(&ran, "pools/physical/a/usage_gpu_s"),
        sum(Some("a"), None, &|_| 1.0),
        attempts.len()
    ));
    let lost = sum(None, Some("preemption"), &cpu);
    assert!(lost > 1000.0, "nobody was preempted");
    assert!(near(figure(&ran, "cluster/waste/preempted_cpu_s"), lost, attempts.len()));
    // Only the first one has GPUs, and only the first one loses.
    assert!(near(figure(&ran, "cluster/waste/preempted_gpu_s"), lost / 2.0, attempts.len()));
    assert!(near(figure(&ran, "pools/physical/a/waste/preempted_cpu_s"), lost, attempts.len()));
    assert!(near(figure(&ran, "users/u/waste/preempted_cpu_s"), lost, attempts.len()));
    assert_eq!(figure(&ran, "users/v/waste/preempted_cpu_s"), 0.0);
    let share = lost / sum(None, None, &cpu);
    assert!((figure(&ran, "cluster/waste/preemption_share") - share).abs() < 0.001);
    let preempted = attempts.iter().filter(|row| row["reason"] == "preemption").count() as f64;
    let kinds = ran
        .summary
        .get("cluster")
        .and_then(|c| c.get("counts")?.get("preemptions_by_kind")?.as_map().cloned());
    let kinds: f64 = kinds.expect("a map").iter().filter_map(|(_, count)| count.as_f64()).sum();
    assert_eq!(kinds, preempted);
    // Waits: of the first start of each job.
    for (path, pool) in [("cluster", None), ("pools/physical/b", Some("second")), ("users/u", Some("first"))]
    {
        let first =
            attempts.iter().filter(|row| row["attempt"] == "1" && pool.is_none_or(|p| row["operation"] == p));
        let at = |row: &BTreeMap<String, String>| if row["operation"] == "first" { 0.0 } else { 20_000.0 };
        let mut waits: Vec<f64> = first.map(|row| (number(row, "start_ms") - at(row)) / 1000.0).collect();
        waits.sort_by(f64::total_cmp);
        assert_eq!(figure(&ran, &format!("{path}/wait_s/count")), waits.len() as f64);
        for (name, part) in [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)] {
            let want = waits[(waits.len() as f64 * part).ceil() as usize - 1];
            let found = figure(&ran, &format!("{path}/wait_s/{name}"));
            assert!(found >= want - 0.001 && found <= want * 1.001 + 0.001, "{path} {name}: {found} {want}");
        }
    }
    // Starvation: of the operation, and of its pool, which has no other one.
    let second = operations.iter().find(|row| row["id"] == "second").expect("a row");
    let starving = number(second, "starving_ms") / 1000.0;
    assert!(starving > 0.0, "{second:?}");
    assert!(near(figure(&ran, "users/v/operation_starvation/s"), starving, 1));
    assert!(figure(&ran, "pools/physical/b/starvation/s") > 0.0);
    assert!(
        figure(&ran, "pools/physical/b/starvation/longest_s")
            <= figure(&ran, "pools/physical/b/starvation/s")
    );
    // The pool waits for cores from 20 s to the end of its starvation: all of that it has less than its share.
    assert!(figure(&ran, "pools/physical/b/underserved/longest_s") >= 30.0);
    assert!(figure(&ran, "cluster/windowed_deficit_cpu_s/5m/max") >= 25.0 * 30.0);
    // Who tries and who starts.
    let started = |stage: &str| figure(&ran, &format!("trees/physical/scheduling/started/{stage}"));
    let all: f64 = ["regular_medium_priority", "regular_high_priority"].map(started).iter().sum();
    assert!(all > 0.0 && all <= attempts.len() as f64);
    let ideal = operations.iter().map(|row| number(row, "ideal_ms")).collect::<Vec<_>>();
    assert!(
        ideal.contains(&250_000.0) && ideal.iter().all(|ms| (200_000.0..=300_000.0).contains(ms)),
        "{ideal:?}"
    );
}

/// One job after the other on one node: waits and slowdowns by hand.
#[test]
fn slowdown_and_weights() {
    let line = |id: &str, at: u64, cpu: u64, ms: u64| {
        format!(
            r#"{{"id":"{id}","at":{at},"user":"{id}","pool":"a","tasks":[{{"name":"t","job_count":1,"cpu":{cpu},"memory":1000000,"duration":{ms}}}]}}"#
        )
    };
    // The third one is shorter than ten seconds, and waits for 200 s less 50.
    let work = [line("x", 0, 10, 100_000), line("y", 0, 10, 100_000), line("z", 50_000, 1, 1_000)];
    let lines: Vec<&str> = work.iter().map(String::as_str).collect();
    let desk = Desk::new(1, 10, 3_600_000, &lines);
    let ran = desk.checked("out", &[("/node_config", "null")]);
    let of = |user: &str, name: &str| figure(&ran, &format!("users/{user}/{name}"));
    let second = if of("x", "wait_s/max") > of("y", "wait_s/max") { "x" } else { "y" };
    assert!((of(second, "wait_s/max") - 100.0).abs() < 0.2, "{:?}", ran.summary);
    assert!((of(second, "slowdown/max") - 2.0).abs() < 0.01);
    assert!((of(second, "operation_slowdown/max") - 2.0).abs() < 0.01);
    assert!((of("z", "wait_s/p50") - 150.0).abs() < 0.3);
    assert!((of("z", "slowdown/p50") - 15.1).abs() < 0.05);
    // Of three jobs the one in the middle waited 100 s; of 2,001 core-seconds half did not wait.
    assert!((figure(&ran, "cluster/wait_s/p50") - 100.0).abs() < 0.2);
    assert!(figure(&ran, "cluster/wait_s/by_core_seconds/p50") <= 100.2);
    assert!((figure(&ran, "cluster/wait_s/by_core_seconds/p99") - 100.0).abs() < 0.2);
    assert!((figure(&ran, "cluster/wait_s/max") - 150.0).abs() < 0.3);
    // While one runs the other one wants ten cores, and none is free; at the end there are nine for nobody.
    assert_eq!(figure(&ran, "cluster/fragmentation/unusable_cores"), 0.0);
}

/// A volume is what it was, what it was given, and what was spent or lost.
#[test]
fn volumes_add_up() {
    let desk = Desk::new(5, 10, 3_600_000, &[FIRST, SECOND]);
    let burst = r#"{"integral_guarantees":{"guarantee_type":"burst","resource_flow":{"cpu":5},"burst_guarantee_resources":{"cpu":20}}}"#;
    let changes = [
        ("/pool_trees/trees/physical/pools/b", burst),
        (
            "/pool_trees/trees/physical/config/integral_guarantees",
            r#"{"pool_capacity_saturation_period":600000}"#,
        ),
        ("/initial_state", r#"{"physical":{"pools":{"b":{"accumulated_resource_ratio_volume":60}}}}"#),
        ("/stop", r#""at_duration""#),
        ("/output", r#"{"pool_series_period_ms":1000}"#),
        (NODE, r#"{"cpu":10,"memory":1000000000000,"user_slots":1000,"gpu":5}"#),
    ];
    let ran = desk.checked("out", &changes);
    let of = |name: &str| figure(&ran, &format!("pools/physical/b/{name}"));
    // An hour of a flow of five cores, up to the last update.
    assert!((of("integral/granted_cpu_s") - 5.0 * 3600.0).abs() < 10.0, "{}", of("integral/granted_cpu_s"));
    assert!(of("integral/spent_cpu_s") > 2000.0, "{}", of("integral/spent_cpu_s"));
    assert!(of("integral/lost_at_cap_cpu_s") > 1000.0);
    let balance = 60.0 * 50.0 + of("integral/granted_cpu_s") + of("integral/accepted_cpu_s")
        - of("integral/spent_cpu_s")
        - of("integral/lost_at_cap_cpu_s");
    assert!((balance - of("final_volume_cpu_s")).abs() < 20.0, "{balance} {}", of("final_volume_cpu_s"));
    // It ends full: six hundred seconds of the flow.
    assert!((of("final_volume_cpu_s") - 3000.0).abs() < 10.0);
    assert!(of("integral/at_cap_s") > 1000.0 && of("integral/at_cap_s") < 3600.0);
    assert!(of("integral/full_burst_s") > 60.0);
    // Three minutes and a bit of the whole burst, then a quarter of it, until the work is done.
    let granted = of("integral/burst_granted_share_of_owed");
    assert!(granted > 0.25 && granted < 0.5, "{granted}");
}

/// What was online is what counts, also when nodes go.
#[test]
fn nodes_that_are_away_are_not_idle() {
    let work = r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":10,"cpu":5,"memory":1000000,"duration":100000000}]}"#;
    let desk = Desk::new(2, 10, 1_000_000, &[work]);
    let away = r#"[{"at":500000,"type":"nodes_offline","group":"n","count":1}]"#;
    let ran = desk.checked("out", &[("/events", away), ("/stop", r#""at_duration""#)]);
    let online = figure(&ran, "trees/physical/utilisation/online_cpu_s");
    assert!((online - 15_000.0).abs() < 50.0, "{online}");
    assert!(figure(&ran, "cluster/utilisation") > 0.98, "{:?}", ran.summary);
    assert_eq!(figure(&ran, "cluster/waste/jobs_lost_with_nodes"), 2.0);
    assert!((figure(&ran, "cluster/waste/lost_with_nodes_cpu_s") - 2.0 * 5.0 * 500.0).abs() < 60.0);
}

/// Three cores are wanted; on nodes of ten with two jobs of four there are two.
#[test]
fn cores_that_nobody_can_use() {
    let line = |id: &str, cpu: u64| {
        format!(
            r#"{{"id":"{id}","at":0,"user":"u","pool":"a","tasks":[{{"name":"t","job_count":6,"cpu":{cpu},"memory":1000000,"duration":100000000}}]}}"#
        )
    };
    let work = line("x", 4);
    // Before anybody starves.
    let desk = Desk::new(3, 10, 85_000, &[&work, &line("y", 3).replace("\"at\":0", "\"at\":60500")]);
    let ran =
        desk.checked("out", &[("/output", r#"{"pool_series_period_ms":10000,"pool_series_shift_ms":5500}"#)]);
    assert_eq!(figure(&ran, "cluster/fragmentation/unusable_share_of_free_cores"), 1.0, "{:?}", ran.summary);
    assert_eq!(figure(&ran, "cluster/fragmentation/unusable_cores"), 6.0);
}

/// Jobs that stop when they are asked to keep what they have done; the time after the order is lost.
#[test]
fn stopping_takes_time() {
    let first = FIRST.replace(r#""gpu":1,"#, r#""interruptible":true,"interrupt_time":3000,"#);
    let desk = Desk::new(5, 10, 3_600_000, &[&first, SECOND]);
    let ran = desk.checked("out", &[]);
    let interrupted = figure(&ran, "cluster/counts/jobs_interrupted");
    assert!(interrupted > 5.0, "{interrupted}");
    // Two cores for three seconds each.
    assert!(
        near(figure(&ran, "cluster/waste/stopping_cpu_s"), interrupted * 6.0, interrupted as usize),
        "{:?}",
        ran.summary
    );
    assert!(near(figure(&ran, "users/u/waste/stopping_cpu_s"), interrupted * 6.0, interrupted as usize));
}

/// What a job holds of its limit, and what it costs to go over it.
#[test]
fn memory_limits() {
    let work = r#"{"id":"x","at":0,"user":"u","pool":"a","spec":{"max_failed_job_count":100},"tasks":[{"name":"t","job_count":4,"cpu":2,"memory":1000000000,"duration":100000,"memory_usage":{"list":[1.5,0.5]}}]}"#;
    let desk = Desk::new(1, 8, 250_000, &[work]);
    let ran = desk.checked(
        "out",
        &[("/controller_config", r#"{"footprint_memory":1000000}"#), ("/stop", r#""at_duration""#)],
    );
    let failed = rows(&desk.read("out/allocations.csv"));
    let failed = failed.iter().filter(|row| row["outcome"] == "failed").collect::<Vec<_>>();
    assert!(!failed.is_empty());
    assert_eq!(figure(&ran, "cluster/waste/jobs_over_memory_limit"), failed.len() as f64);
    let lost: f64 = failed.iter().map(|row| 2.0 * number(row, "lost_ms") / 1000.0).sum();
    assert!(near(figure(&ran, "cluster/waste/over_memory_limit_cpu_s"), lost, failed.len()));
    let row = &rows(&desk.read("out/operations.csv"))[0];
    let most = number(row, "max_memory_reserve_fraction");
    assert!(most > 0.3 && most <= 1.0, "{row:?}");
}

/// A node that has less memory than before keeps its jobs for a while.
#[test]
fn more_memory_than_there_is() {
    let work = r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":1,"cpu":2,"memory":1000000000,"duration":100000,"memory_usage":0.2}]}"#;
    let desk = Desk::new(1, 8, 250_000, &[work]);
    let less = r#"[{"at":60000,"type":"nodes_limits","group":"n","count":1,"resource_limits":{"cpu":8,"memory":300000000,"user_slots":1000}}]"#;
    let ran =
        desk.checked("out", &[("/events", less), ("/controller_config", r#"{"footprint_memory":1000000}"#)]);
    let end = number(&rows(&desk.read("out/allocations.csv"))[0], "end_ms") / 1000.0;
    let found = figure(&ran, "cluster/memory/overcommitted_node_s");
    assert!(end > 61.0 && near(found, end - 60.0, 1), "{found} {end}");
    let plain = desk.checked("plain", &[]);
    assert_eq!(figure(&plain, "cluster/memory/overcommitted_node_s"), 0.0);
}

/// Who waits for other tasks does not wait for cores.
#[test]
fn chains_of_tasks() {
    let work = r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[
        {"name":"side","job_count":2,"cpu":1,"memory":1000000,"duration":20000},
        {"name":"last","job_count":3,"cpu":1,"memory":1000000,"duration":{"list":[30000,50000]},"after":["first","side"]},
        {"name":"first","job_count":4,"cpu":1,"memory":1000000,"duration":{"list":[100000,60000]}}]}"#;
    let work = work.replace('\n', " ");
    let desk = Desk::new(2, 10, 3_600_000, &[&work]);
    let ran = desk.checked("out", &[]);
    let row = &rows(&desk.read("out/operations.csv"))[0];
    assert_eq!((&*row["state"], number(row, "ideal_ms")), ("completed", 150_000.0), "{row:?}");
    assert!(figure(&ran, "cluster/wait_s/max") < 1.0, "{:?}", ran.summary);
    assert!(figure(&ran, "cluster/slowdown/max") < 1.05);
    assert!(figure(&ran, "cluster/operation_slowdown/max") < 1.05);
}

/// Nodes report when their group says, from the moment that it says.
#[test]
fn heartbeats_of_groups() {
    let line = r#"{"at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":1,"duration":59000}]}"#;
    let desk = Desk::new(2, 4, 60_000, &[line]);
    let group = "/cluster/node_groups/0";
    let (period, phases) = (format!("{group}/heartbeat_period"), format!("{group}/heartbeat_phases"));
    let heartbeats = |out: &str, changes: &[(&str, &str)]| {
        let changes = [changes, &[("/stop", r#""at_duration""#)]].concat();
        figure(&desk.checked(out, &changes), "cluster/counts/heartbeats")
    };
    // 2.5, 7.5, ..., 57.5, and 26, 31, ..., 56.
    assert_eq!(heartbeats("server", &[(&phases, "[2500,26000.5]")]), 12.0 + 7.0);
    // 3, 13, ..., 53, and 35, 45, 55.
    assert_eq!(heartbeats("own", &[(&period, "10000"), (&phases, "[3000,35000]")]), 6.0 + 3.0);
    let told = |value: &str| desk.load(&[(&phases, value)]).expect_err(value).to_string();
    let wrong = "heartbeat_phases: expected 2 numbers of milliseconds, one for each node";
    for value in ["[1]", "[1,-1]", "[1,\"2\"]"] {
        assert!(told(value).contains(wrong), "{}", told(value));
    }
}
