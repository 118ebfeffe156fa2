//! The tests of the reference simulator, on our core (simulator.md 14, point 5), and life in general.

use crate::desk::{Desk, figure, rows};
use sim::Options;

#[test]
fn a_node_full_of_jobs() {
    let desk = Desk::new(
        1,
        100,
        3_600_000,
        &[
            r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":100,"cpu":1,"memory":1000000,"duration":120000}]}"#,
        ],
    );
    let ran = desk.checked("out", &[]);
    assert_eq!(figure(&ran, "cluster/counts/jobs_completed"), 100.0);
    assert_eq!(figure(&ran, "cluster/counts/jobs_preempted"), 0.0);
    assert_eq!(figure(&ran, "cluster/counts/operations/completed"), 1.0);
    let allocations = rows(&desk.read("out/allocations.csv"));
    assert_eq!(allocations.len(), 100);
    for row in &allocations {
        assert_eq!((&*row["start_ms"], &*row["end_ms"], &*row["outcome"]), ("0", "120000", "completed"));
    }
}

#[test]
fn complementary_needs_share_a_node() {
    let desk = Desk::new(
        1,
        100,
        3_600_000,
        &[
            r#"{"id":"cpu","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":9,"cpu":10,"memory":1000000,"duration":120000}]}"#,
            r#"{"id":"mem","at":0,"user":"v","pool":"b","tasks":[{"name":"t","job_count":9,"cpu":1,"memory":90000000000,"duration":120000}]}"#,
        ],
    );
    let ran = desk.checked("out", &[]);
    assert_eq!(figure(&ran, "cluster/counts/jobs_preempted"), 0.0);
    assert_eq!(figure(&ran, "cluster/counts/operations/completed"), 2.0);
}

/// Ten nodes of ten cores: one operation alone has all of them; another one comes after 20 s and gets its
/// half back: 20 to 22 of the jobs of the first one are preempted.
#[test]
fn a_newcomer_gets_its_share() {
    let desk = Desk::new(
        10,
        10,
        3_600_000,
        &[
            r#"{"id":"first","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":100,"cpu":2,"memory":1000000,"duration":250000}]}"#,
            r#"{"id":"second","at":20000,"user":"v","pool":"b","tasks":[{"name":"t","job_count":100,"cpu":2,"memory":1000000,"duration":250000}]}"#,
        ],
    );
    let ran = desk.checked("out", &[]);
    assert_eq!(figure(&ran, "cluster/counts/operations/completed"), 2.0);
    let operations = rows(&desk.read("out/operations.csv"));
    let preempted = |id: &str| {
        let row = operations.iter().find(|row| row["id"] == id).expect("a row");
        row["preempted_job_count"].parse::<u64>().expect("a number")
    };
    assert!((20..=22).contains(&preempted("first")), "{}", preempted("first"));
    assert_eq!(preempted("second"), 0);
}

/// Nodes go and come, the server restarts, pools change: nothing is lost, no invariant is violated, and
/// every unit of work is done once.
#[test]
fn a_bad_day() {
    let desk = Desk::new(
        6,
        10,
        36_000_000,
        &[
            r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":200,"cpu":1,"memory":1000000,"duration":{"uniform":[5000,60000]}}]}"#,
            r#"{"id":"y","at":10000,"user":"v","pool":"b","tasks":[{"name":"t","job_count":150,"cpu":2,"memory":1000000,"duration":{"exp":{"mean":30000,"max":200000}},"interruptible":true,"interrupt_time":1000}]}"#,
        ],
    );
    let events = r#"[
        {"at":20000,"type":"nodes_offline","group":"n","count":2},
        {"at":40000,"type":"set_pool","pool":"a","attributes":{"weight":3.0}},
        {"at":50000,"type":"nodes_online","group":"n","count":2},
        {"at":60000,"type":"scheduler_restart","downtime_ms":7000},
        {"at":90000,"type":"nodes_limits","nodes":["n-5"],"resource_limits":{"cpu":4,"memory":1000000000000,"user_slots":1000}},
        {"at":95000,"type":"create_pool","pool":"c","parent":"a"},
        {"at":100000,"type":"update_operation","operation":"y","parameters":{"pool":"c"}},
        {"at":110000,"type":"suspend","operation":"x"},
        {"at":130000,"type":"resume","operation":"x"},
        {"at":140000,"type":"nodes_offline","nodes":["n-3"],"graceful":false},
        {"at":150000,"type":"set_pool","pool":"a","attributes":{"weight":-1.0}},
        {"at":160000,"type":"remove_pool","pool":"nobody"}
    ]"#;
    let ran = desk.checked("out", &[("/events", events)]);
    assert_eq!(figure(&ran, "cluster/counts/operations/completed"), 2.0, "{:?}", ran.summary);
    let operations = rows(&desk.read("out/operations.csv"));
    let completed: Vec<u64> =
        operations.iter().map(|row| row["completed"].parse().expect("a number")).collect();
    let interrupted: Vec<u64> =
        operations.iter().map(|row| row["interrupted"].parse().expect("a number")).collect();
    let mut whole: Vec<u64> = completed.iter().zip(&interrupted).map(|(c, i)| c - i).collect();
    whole.sort_unstable();
    assert_eq!(whole, [150, 200], "{operations:?}");
    let refusals: Vec<String> = ran
        .summary
        .get("refusals")
        .and_then(|r| r.as_list())
        .expect("refusals")
        .iter()
        .map(|r| r.as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(refusals.len(), 2, "{refusals:?}");
    assert!(refusals[0].starts_with("events/10: "), "{refusals:?}");
    assert!(refusals[1].starts_with("events/11: "), "{refusals:?}");
    assert!(figure(&ran, "cluster/waste/jobs_lost_with_nodes") > 0.0);
}

/// The same bytes each time, and without shortcuts, too.
#[test]
fn runs_repeat() {
    let desk = Desk::new(
        8,
        16,
        7_200_000,
        &[
            r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":300,"cpu":1,"memory":1000000000,"duration":{"lognormal":{"median":60000,"sigma":1}},"memory_usage":{"beta":{"a":5,"b":2,"max":1.02}},"fail_probability":0.01}]}"#,
            r#"{"id":"y","at":60000,"user":"v","pool":"b","tasks":[{"name":"t","job_count":100,"cpu":2,"memory":2000000000,"duration":{"exp":{"mean":90000}}}]}"#,
        ],
    );
    let failures = ("/cluster/failures", r#"{"node_mtbf_ms":1800000,"node_mttr_ms":60000}"#);
    let with_log = ("/output", r#"{"event_log":true}"#);
    let slow = Options { shortcuts: false, ..Options::default() };
    for (out, options) in [("one", Options::default()), ("two", Options::default()), ("slow", slow)] {
        desk.run(out, &[failures, with_log], options).unwrap_or_else(|e| panic!("{e}"));
    }
    for file in
        ["pools.csv", "operations.csv", "allocations.csv", "events.jsonl", "summary.json", "scenario.json"]
    {
        let first = desk.read(&format!("one/{file}"));
        assert!(first.len() > 100, "{file}: {first}");
        assert!(first == desk.read(&format!("two/{file}")), "{file} differs from run to run");
        assert!(first == desk.read(&format!("slow/{file}")), "{file} differs without shortcuts");
    }
    let other = desk.run("other", &[failures, ("/seed", "4")], Options::default());
    assert!(other.is_ok() && desk.read("other/operations.csv") != desk.read("one/operations.csv"));
}

/// A run that is ended early leaves files that can be read.
#[test]
fn an_early_end() {
    let desk = Desk::new(
        2,
        4,
        3_600_000,
        &[
            r#"{"id":"x","at":0,"user":"u","pool":"a","tasks":[{"name":"t","job_count":1000,"cpu":1,"memory":1000000,"duration":60000}]}"#,
        ],
    );
    let scenario = desk.load(&[]).unwrap_or_else(|e| panic!("{e}"));
    let out = desk.path().join("out");
    let ran = sim::run(&scenario, &out, Options::default(), &mut |_| false, &mut |_| yson::Map::new());
    let ran = ran.unwrap_or_else(|e| panic!("{e}"));
    assert!(ran.interrupted && ran.progress.elapsed < scenario.duration);
    let summary = crate::desk::json(&desk.read("out/summary.json"));
    assert_eq!(summary.get("interrupted").and_then(|v| v.as_bool()), Some(true));
    let running = rows(&desk.read("out/allocations.csv")).into_iter().filter(|r| r["outcome"] == "running");
    assert_eq!(running.count(), 8);
    assert_eq!(rows(&desk.read("out/operations.csv"))[0]["state"], "running");
}

/// Jobs that arrive one by one: none starts before its time, those of one task learn from each other, and the
/// operation is not over before the last of them, whatever befalls the server meanwhile.
#[test]
fn jobs_that_arrive_one_by_one() {
    let desk = Desk::new(
        2,
        10,
        3_600_000,
        &[
            r#"{"id":"x","at":10000,"user":"u","pool":"a","tasks":[{"name":"early","job_count":2,"memory":1000000,"duration":1},{"name":"late","job_count":3,"memory":1000000,"duration":1}],
               "jobs":[["early",5000,0.5,1],["early",5000,0.5,1,60000],["late",1000,0.5,1,30000],["late",1000,0.5,1,30000],["late",1000,0.5,1,90000]]}"#
                .replace('\n', "")
                .as_str(),
        ],
    );
    let restart = ("/events", r#"[{"at":99000,"type":"scheduler_restart","downtime_ms":4000}]"#);
    for (out, changes) in [("plain", vec![]), ("restart", vec![restart])] {
        let ran = desk.checked(out, &changes);
        assert_eq!(figure(&ran, "cluster/counts/operations/completed"), 1.0, "{:?}", ran.summary);
        assert_eq!(ran.summary.get("refusals").and_then(|r| r.as_list()).map(<[_]>::len), Some(0));
        let attempts = rows(&desk.read(&format!("{out}/allocations.csv")));
        let mut starts: Vec<(&str, u64)> = attempts
            .iter()
            .map(|row| (row["task"].as_str(), row["ordered_ms"].parse().expect("a time")))
            .collect();
        starts.sort_unstable();
        let last = starts.pop().expect("the last one");
        assert_eq!(starts, [("early", 10_000), ("early", 70_000), ("late", 40_000), ("late", 40_000)]);
        let due = if out == "plain" { 100_000..=100_000 } else { 103_000..=200_000 };
        assert!(last.0 == "late" && due.contains(&last.1), "{last:?}");
    }
}
