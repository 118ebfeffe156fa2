//! When alerts of an operation came and went: told, kept across restarts, and in the archive.

use crate::console::Console;
use kernel::{Command, OperationRef};
use vocab::{JobId, JobOutcome, OperationType, Span, Time};
use yson::{Map, Value};

const GIB: i64 = 1 << 30;
/// The second in which the clocks of these clusters start.
const BEGAN: u64 = 1_000_000;

fn attributes(c: &mut Console, name: &str) -> Map {
    let operation = OperationRef::Id(c.operation_id(name));
    let names = ["alerts", "alert_events", "finish_time"].map(String::from).to_vec();
    let body = c.world.ask("root", Command::GetOperation { operation, attributes: Some(names) });
    let value = c.read(body.expect("an answer").expect("it is known")).expect("it can be read");
    value.as_map().cloned().expect("a map")
}

/// `+name` of what came and `-name` of what went, each with the seconds since the cluster began.
fn story(c: &mut Console, name: &str) -> Vec<String> {
    let attributes = attributes(c, name);
    let events = attributes.get("alert_events").and_then(Value::as_list).expect("events");
    let text = |event: &Value, key: &str| event.get(key).and_then(Value::as_str).expect("a text").to_owned();
    let line = |event: &Value| {
        let code = event.get("error").and_then(|e| e.get("code")).and_then(Value::as_i64).expect("a code");
        let time = Time::parse(&text(event, "time")).expect("a time");
        let sign = if code == 0 { '-' } else { '+' };
        format!("{sign}{} {}", text(event, "alert_type"), time.as_micros() / 1_000_000 - BEGAN)
    };
    events.iter().map(line).collect()
}

fn present(c: &mut Console, name: &str) -> Vec<String> {
    let attributes = attributes(c, name);
    let alerts = attributes.get("alerts").and_then(Value::as_map).expect("alerts");
    alerts.key_strings().collect()
}

#[test]
fn they_come_and_go_across_restarts_and_into_the_archive() {
    let mut c = Console::new();
    c.run(
        "node n1 cpu=4
         pool create p max_running=1
         op start p as first
         op start p jobs=2 as o
         tick 10s
         finish first/0
         tick 10s
         op suspend o because of the moon",
    );
    let so_far = ["+operation_pending 0", "-operation_pending 10", "+operation_suspended 20"];
    assert_eq!(story(&mut c, "o"), so_far);
    c.run("tick 10s\ncrash\nrestart\nconnect n1");
    assert_eq!(story(&mut c, "o"), so_far, "the restart is no event");
    assert_eq!(present(&mut c, "o"), ["operation_suspended"]);
    c.run("op suspend o because of the tide\nop resume o\ntick 10s\nop complete o");
    assert_eq!(present(&mut c, "o"), ["operation_completed_by_user_request"]);
    let whole = [
        "+operation_pending 0",
        "-operation_pending 10",
        "+operation_suspended 20",
        "-operation_suspended 30",
        "+operation_completed_by_user_request 40",
    ];
    assert_eq!(story(&mut c, "o"), whole);
    let events = attributes(&mut c, "o");
    let suspended =
        events.get("alert_events").and_then(|e| e.as_list()?.get(2)?.get("error")?.get("message"));
    assert_eq!(
        suspended.and_then(Value::as_str),
        Some("Operation suspended by user request: because of the tide"),
        "it says what it said at last"
    );
    c.run("crash\nrestart");
    assert_eq!(story(&mut c, "o"), whole);
    assert_eq!(story(&mut c, "first"), [""; 0]);
}

#[test]
fn who_waits_before_a_restart_and_not_after_it_has_no_alert_of_waiting() {
    let mut c = Console::new();
    c.run(
        "node n1 cpu=4
         pool create p max_running=1
         op start p as first
         op start p as o
         tick 10s
         hold
         finish first/0
         tick 10s
         crash 1
         restart
         go
         connect n1
         tick 1s",
    );
    assert_eq!(present(&mut c, "o"), [""; 0]);
    assert_eq!(story(&mut c, "o").first().map(String::as_str), Some("+operation_pending 0"));
    assert!(story(&mut c, "o").last().is_some_and(|last| last.starts_with("-operation_pending")));
}

/// One task with two jobs, of which none ever uses much of its 20 GiB.
fn generous(c: &mut Console) -> JobId {
    let task = yson::map! { "command" => "x", "job_count" => 2, "memory_limit" => 20 * GIB };
    let spec = yson::map! { "pool" => "p", "tasks" => yson::map! { "t" => task } };
    let start = Command::StartOperation { operation_type: OperationType::Vanilla, spec };
    let answer = c.world.ask("ann", start).expect("an answer").expect("it starts");
    c.name_operation("o", &c.read(answer).expect("an id"));
    *c.world.nodes["n1"].running.keys().next().expect("a job runs")
}

fn finish(c: &mut Console, job: JobId) {
    let outcome = JobOutcome::Completed { interrupted: None, restart_needed: false };
    c.world.end_job("n1", job, outcome);
    c.world.settle();
}

#[test]
fn what_an_operation_should_do_better_is_found_within_ten_seconds_and_stays() {
    let mut c = Console::new();
    c.run("node n1 cpu=1\npool create p");
    let first = generous(&mut c);
    c.world.pass(Span::from_secs(20));
    assert_eq!(present(&mut c, "o"), [""; 0], "no job has told");
    finish(&mut c, first);
    c.world.pass(Span::from_secs(10));
    assert_eq!(present(&mut c, "o"), ["unused_memory"]);
    let told = story(&mut c, "o");
    assert_eq!(told.len(), 1, "{told:?}");
    c.run("crash\nrestart");
    assert_eq!(present(&mut c, "o"), ["unused_memory"], "before its jobs are back");
    c.run("connect n1\ntick 20s");
    assert_eq!(story(&mut c, "o"), told);
    let second = *c.world.nodes["n1"].running.keys().next().expect("the other job runs");
    finish(&mut c, second);
    assert!(attributes(&mut c, "o").contains("finish_time"));
    assert_eq!(present(&mut c, "o"), ["unused_memory"]);
    assert_eq!(story(&mut c, "o"), told);
}

#[test]
fn the_end_of_an_operation_is_the_last_look() {
    let mut c = Console::new();
    c.run("node n1 cpu=2\npool create p");
    generous(&mut c);
    let jobs: Vec<JobId> = c.world.nodes["n1"].running.keys().copied().collect();
    for job in jobs {
        finish(&mut c, job);
    }
    assert!(attributes(&mut c, "o").contains("finish_time"), "too short for a look meanwhile");
    assert_eq!(present(&mut c, "o"), ["unused_memory"]);
    assert_eq!(story(&mut c, "o"), ["+unused_memory 0"]);
}
