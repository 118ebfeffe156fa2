//! Tasks that wait for others: nothing of them runs before, and nothing waits longer than it must.

use crate::desk::{Desk, figure, rows};
use sim::Options;
use std::collections::BTreeMap;

fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// First start and last end of each task.
fn spans(desk: &Desk, out: &str) -> BTreeMap<String, (f64, f64)> {
    let mut spans: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for row in rows(&desk.read(&format!("{out}/allocations.csv"))) {
        let span = spans.entry(row["task"].clone()).or_insert((f64::INFINITY, 0.0));
        *span = (span.0.min(number(&row["start_ms"])), span.1.max(number(&row["end_ms"])));
    }
    spans
}

/// Two tasks at once, one that needs both of them, and one more after that.
const DIAMOND: &str = r#"{"id":"x","at":5000,"user":"u","pool":"a","tasks":[
    {"name":"join","job_count":3,"cpu":1,"duration":7000,"after":["left","right"]},
    {"name":"left","job_count":4,"cpu":1,"duration":{"list":[10000,20000]},"after":["first"]},
    {"name":"right","job_count":1,"cpu":1,"duration":31000,"after":["first"]},
    {"name":"first","job_count":2,"cpu":1,"duration":3000},
    {"name":"last","job_count":1,"cpu":1,"duration":1000,"after":["join","first"]}]}"#;

#[test]
fn a_task_begins_when_those_before_it_are_complete() {
    let desk = Desk::new(2, 10, 3_600_000, &[&DIAMOND.replace('\n', "")]);
    let ran = desk.checked("out", &[]);
    assert_eq!(figure(&ran, "cluster/counts/operations/completed"), 1.0);
    assert_eq!(figure(&ran, "cluster/counts/jobs_completed"), 11.0);
    // There is room for all: each begins when it is durable that the last one before it is done, which takes
    // 5 ms: that long the server lets records wait for others.
    let want = [
        ("first", (5_000.0, 8_000.0)),
        ("join", (39_010.0, 46_010.0)),
        ("last", (46_015.0, 47_015.0)),
        ("left", (8_005.0, 28_005.0)),
        ("right", (8_005.0, 39_005.0)),
    ];
    assert_eq!(spans(&desk, "out").into_iter().collect::<Vec<_>>(), want.map(|(t, s)| (t.to_owned(), s)));
}

/// One of the jobs before fails and is done again, and the server dies while others are on their way.
#[test]
fn what_is_done_again_is_waited_for() {
    let work = r#"{"id":"x","at":0,"user":"u","pool":"a","spec":{"max_failed_job_count":100},"tasks":[
        {"name":"a","job_count":40,"cpu":1,"duration":{"uniform":[5000,40000]},"fail_probability":0.3},
        {"name":"b","job_count":40,"cpu":1,"duration":{"uniform":[5000,40000]},"fail_probability":0.3,"after":["a"]},
        {"name":"c","job_count":2,"cpu":1,"duration":5000,"after":["b"]}]}"#
        .replace('\n', "");
    let desk = Desk::new(2, 10, 3_600_000, &[&work]);
    let changes = [
        (
            "/events",
            r#"[{"at":30000,"type":"scheduler_restart","downtime_ms":4000},{"at":150000,"type":"scheduler_restart","downtime_ms":4000}]"#,
        ),
        ("/cluster/failures", r#"{"node_mtbf_ms":400000,"node_mttr_ms":20000}"#),
    ];
    let ran = desk.checked("out", &changes);
    assert_eq!(figure(&ran, "cluster/counts/operations/completed"), 1.0);
    assert!(figure(&ran, "cluster/counts/jobs_failed") > 10.0, "nothing was done again");
    let spans = spans(&desk, "out");
    for (before, after) in [("a", "b"), ("b", "c")] {
        let wait = spans[after].0 - spans[before].1;
        assert!((0.0..15_000.0).contains(&wait), "{spans:?}");
    }
    let again = desk.run("again", &changes, Options::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(figure(&again, "virtual_ms"), figure(&ran, "virtual_ms"));
    assert_eq!(desk.read("again/allocations.csv"), desk.read("out/allocations.csv"));
}

/// Jobs that wait and arrive one by one: both must have happened.
#[test]
fn jobs_that_arrive_at_a_task_that_waits() {
    let work = r#"{"id":"x","at":1000,"user":"u","pool":"a","tasks":[
        {"name":"a","job_count":1,"cpu":1,"duration":10000},
        {"name":"b","job_count":4,"cpu":1,"duration":1,"after":["a"]}],
        "jobs":[["b",1000,1,1],["b",1000,1,1,5000],["b",1000,1,1,15000],["b",1000,1,1,20000]]}"#
        .replace('\n', "");
    let desk = Desk::new(1, 10, 3_600_000, &[&work]);
    desk.checked("out", &[]);
    let found = rows(&desk.read("out/allocations.csv"));
    let starts: Vec<(String, f64)> =
        found.iter().map(|r| (r["task"].clone(), number(&r["start_ms"]))).collect();
    let want = [("a", 1_000.0), ("b", 11_005.0), ("b", 11_005.0), ("b", 16_000.0), ("b", 21_000.0)];
    assert_eq!(starts, want.map(|(task, at)| (task.to_owned(), at)));
}
