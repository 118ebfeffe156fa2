//! What stays of operations that are over, for how long, and how it is listed.

use crate::console::Console;
use crate::world::Event;
use kernel::command::{AccessFilter, ListOperations};
use kernel::{Body, Command, EventsOfOperation, OperationRef, Retention};
use vocab::batch::Table;
use vocab::{Span, Time};
use yson::{Map, Value};

/// A cluster that keeps so much.
fn keeping(retention: Retention) -> Console {
    let mut c = Console::with(|config| config.retention = retention);
    c.run("node n1 cpu=4\npool create p");
    c
}

fn anything() -> Retention {
    Retention { max_operations: usize::MAX, max_age: None, max_bytes: None, ..Retention::default() }
}

/// Starts an operation of one job and lets it end.
fn finish_one(c: &mut Console, name: &str) {
    c.run(&format!("op start p jobs=1 as {name}\nfinish {name}/0"));
}

fn page(c: &mut Console, query: ListOperations) -> (Vec<String>, Map) {
    let query = ListOperations { limit: 1000, include_counters: true, ..query };
    match c.world.ask("root", Command::ListOperations(Box::new(query))).expect("an answer") {
        Ok(Body::OperationList { rows, rest, .. }) => {
            let ids = rows.into_iter().map(|row| match row {
                kernel::OperationRow::Live(map) => {
                    map.get("id").and_then(Value::as_str).expect("an id").to_owned()
                }
                kernel::OperationRow::Archived(id) => id.to_string(),
            });
            (ids.collect(), rest)
        }
        other => panic!("{other:?}"),
    }
}

fn listed(c: &mut Console) -> Vec<String> {
    let (ids, _) = page(c, ListOperations::default());
    let names: Vec<String> = ids.iter().map(|id| c.named(id)).collect();
    names
}

fn rows(c: &Console, table: Table) -> usize {
    c.world.durable.keys().filter(|(t, _)| *t == table).count()
}

#[test]
fn the_first_that_ended_goes_first_with_all_that_it_had() {
    let mut c = keeping(Retention { max_operations: 2, ..anything() });
    // `a` begins first and ends last.
    c.run("op start p jobs=1 as a");
    for name in ["b", "c"] {
        finish_one(&mut c, name);
    }
    c.run("finish a/0");
    c.world.pass(Span::from_secs(2));
    assert_eq!(listed(&mut c), ["c", "a"]);
    let forgotten = c.operation_id("b");
    let gone = c
        .world
        .events
        .iter()
        .any(|e| matches!(e, Event::Deleted(what) if *what == format!("operation {forgotten}")));
    assert!(gone, "its jobs and stderrs are ordered away");
    let counts = [Table::OperationArchive, Table::OperationIndex, Table::JobArchive].map(|t| rows(&c, t));
    assert_eq!(counts, [4, 2, 2], "two records for each that stays, one of the index, one of its job");
    let question = Command::GetOperation { operation: OperationRef::Id(forgotten), attributes: None };
    c.world.ask("root", question).expect("an answer").expect_err("it is not kept");
    // The bound holds over a restart, and so does what is within it.
    c.run("crash\nrestart\nconnect n1");
    assert_eq!(listed(&mut c), ["c", "a"]);
}

#[test]
fn age_counts_from_the_end() {
    let mut c = keeping(Retention { max_age: Some(Span::from_secs(100)), ..anything() });
    finish_one(&mut c, "a");
    c.run("op start p jobs=1 as b");
    c.world.pass(Span::from_secs(80));
    assert_eq!(listed(&mut c), ["b", "a"]);
    c.world.pass(Span::from_secs(40));
    assert_eq!(listed(&mut c), ["b"], "a running one has no age");
    c.run("finish b/0\ncrash\nrestart\nconnect n1");
    c.world.pass(Span::from_secs(80));
    assert_eq!(listed(&mut c), ["b"]);
    c.world.pass(Span::from_secs(40));
    assert!(listed(&mut c).is_empty());
    assert_eq!(
        [Table::OperationArchive, Table::OperationIndex, Table::JobArchive].map(|t| rows(&c, t)),
        [0; 3]
    );
}

#[test]
fn bytes_count_over_restarts_and_from_the_end_of_an_operation_on() {
    // How large one is with a hundred jobs.
    let mut c = keeping(anything());
    let hundred = |c: &mut Console, name: &str| {
        c.run(&format!("op start p jobs=100 cpu=0.01 as {name}"));
        for job in 0..100 {
            c.run(&format!("finish {name}/{job}"));
        }
    };
    hundred(&mut c, "a");
    let record = &c.world.durable[&(Table::OperationIndex, c.operation_id("a").0.to_bytes().to_vec())];
    let one = yson::parse(record)
        .expect("readable")
        .get("archived_bytes")
        .and_then(Value::as_u64)
        .expect("counted");
    let stored = |table: Table| -> usize {
        let of = c.world.durable.iter().filter(|((t, _), _)| *t == table);
        of.map(|((_, key), value)| key.len() + value.len()).sum()
    };
    let tables = [Table::JobArchive, Table::JobIndex, Table::Stderr, Table::OperationArchive];
    let real: usize = tables.into_iter().map(stored).sum();
    assert!((one as usize).abs_diff(real) < 2000, "{one} are counted, {real} are there");

    let mut c = keeping(Retention { max_bytes: Some(one * 5 / 2), ..anything() });
    for name in ["a", "b"] {
        hundred(&mut c, name);
    }
    c.world.pass(Span::from_secs(2));
    assert_eq!(listed(&mut c), ["b", "a"]);
    // Nobody's past is forgotten because somebody's operation still writes; at its end all its jobs count,
    // those from before the restart, too.
    c.run("op start p jobs=101 cpu=0.01 as c");
    for job in 0..50 {
        c.run(&format!("finish c/{job}"));
    }
    c.run("crash\nrestart\nconnect n1");
    for job in 50..100 {
        c.run(&format!("finish c/{job}"));
    }
    c.world.pass(Span::from_secs(2));
    assert_eq!(listed(&mut c), ["c", "b", "a"]);
    c.run("finish c/100");
    c.world.pass(Span::from_secs(2));
    assert_eq!(listed(&mut c), ["c", "b"]);
}

#[test]
fn events_of_running_and_finished_operations() {
    let mut c = keeping(anything());
    c.run("op start p jobs=1 as a");
    let id = c.operation_id("a");
    let ask = |c: &mut Console, query: EventsOfOperation| {
        let command = Command::ListOperationEvents { operation: OperationRef::Id(id), query };
        c.world.ask("root", command).expect("an answer").expect("a known operation")
    };
    let states = |events: &Value| -> Vec<String> {
        let events = events.as_list().expect("a list").iter();
        events
            .map(|event| {
                let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                assert_eq!(text("event_type"), "state_changed");
                assert!(Time::parse(&text("timestamp")).is_some());
                text("state")
            })
            .collect()
    };
    let Body::Value(live) = ask(&mut c, EventsOfOperation::default()) else { panic!("it runs") };
    let begin =
        ["starting", "waiting_for_agent", "initializing", "preparing", "pending", "materializing", "running"];
    assert_eq!(states(&live), begin);
    let Body::Value(two) = ask(&mut c, EventsOfOperation { limit: Some(2), ..Default::default() }) else {
        panic!("it runs")
    };
    assert_eq!(states(&two), begin[..2]);
    let other = EventsOfOperation { event_type: Some("incarnation_started".into()), limit: None };
    let Body::Value(none) = ask(&mut c, other) else { panic!("it runs") };
    assert!(states(&none).is_empty());

    c.run("finish a/0");
    let Body::ArchivedEvents { id: asked, query } = ask(&mut c, EventsOfOperation::default()) else {
        panic!("it is in the archive")
    };
    assert_eq!(asked, id);
    let record = &c.world.durable[&(Table::OperationArchive, id.0.to_bytes().to_vec())];
    let all = yson::parse(record).expect("readable");
    let events = all.get("events").and_then(Value::as_list).expect("events");
    assert_eq!(states(&query.of(events)), [&begin[..], &["completing", "completed"]].concat());
}

#[test]
fn the_listed_record_has_what_is_listed() {
    let mut c = keeping(anything());
    finish_one(&mut c, "a");
    let id = c.operation_id("a");
    let read =
        |key: Vec<u8>| yson::parse(&c.world.durable[&(Table::OperationArchive, key)]).expect("readable");
    let (all, listed) = (read(id.0.to_bytes().to_vec()), read(kernel::listed_key(id)));
    let listed = listed.as_map().expect("a map");
    for name in
        ["id", "state", "brief_progress", "brief_spec", "runtime_parameters", "start_time", "finish_time"]
    {
        assert_eq!(listed.get(name), all.get(name), "{name}");
        assert!(listed.contains(name) && kernel::is_listed(Some(&[name.to_owned()])), "{name}");
    }
    assert!(!listed.contains("spec") && !kernel::is_listed(Some(&["spec".to_owned()])));
    assert!(!kernel::is_listed(None), "everything");
}

#[test]
fn a_list_for_those_who_may() {
    let mut c = keeping(anything());
    finish_one(&mut c, "mine");
    let acl = yson::map! {
        "action" => "allow", "subjects" => vec!["eve"], "permissions" => vec!["read"],
    };
    let task = yson::map! {"command" => "true", "job_count" => 1i64};
    let spec = yson::map! {
        "pool" => "p", "acl" => vec![Value::from(acl)], "tasks" => yson::map! {"t" => task},
    };
    let start = Command::StartOperation { operation_type: vocab::OperationType::Vanilla, spec };
    c.world.ask("root", start).expect("an answer").expect("a good operation");
    let mut with = |subject: &str, permissions: &[&str]| {
        let permissions = permissions.iter().map(|p| (*p).to_owned()).collect();
        let access = Some(AccessFilter { subject: subject.into(), permissions });
        let (ids, rest) = page(&mut c, ListOperations { access, ..Default::default() });
        let counted = rest.get("pool_counts").and_then(|counts| counts.get("p")).and_then(Value::as_i64);
        assert_eq!(ids.len() as i64, counted.unwrap_or(0), "counters are of those, too");
        ids.len()
    };
    assert_eq!(with("root", &["read", "manage"]), 2);
    assert_eq!(with("eve", &["read"]), 1);
    assert_eq!(with("eve", &["read", "manage"]), 0);
    assert_eq!(with("bob", &["read"]), 0);
    let access = AccessFilter { subject: "eve".into(), permissions: vec!["peek".into()] };
    let query = ListOperations { access: Some(access), limit: 1, ..Default::default() };
    let refused = c.world.ask("root", Command::ListOperations(Box::new(query))).expect("an answer");
    assert!(refused.expect_err("no such permission").message.contains("peek"));
}

#[test]
fn a_list_of_those_that_go_on_says_what_it_says_of_them_when_they_have_ended() {
    let mut c = keeping(anything());
    c.run("pool create q");
    for (name, pool) in [("a", "p"), ("b", "q"), ("c", "p"), ("d", "q")] {
        c.run(&format!("op start {pool} jobs=1 as {name}"));
        c.world.pass(Span::from_secs(1));
    }
    c.run("finish b/0");
    let id = c.operation_id("c").to_string();
    let all = |c: &mut Console| {
        let queries = [
            ListOperations::default(),
            ListOperations { pool: Some("p".into()), ..Default::default() },
            ListOperations {
                pool: Some("q".into()),
                pool_tree: Some("physical".into()),
                ..Default::default()
            },
            ListOperations { pool_tree: Some("other".into()), ..Default::default() },
            ListOperations { user: Some("ann".into()), ..Default::default() },
            ListOperations { user: Some("nobody".into()), ..Default::default() },
            ListOperations { operation_type: Some("vanilla".into()), ..Default::default() },
            ListOperations { filter: Some(id.to_uppercase()), ..Default::default() },
            ListOperations { filter: Some("Q".into()), ..Default::default() },
            ListOperations { with_failed_jobs: Some(true), ..Default::default() },
        ];
        queries.map(|query| {
            let (ids, rest) = page(c, query);
            let names: Vec<String> = ids.iter().map(|id| c.named(id)).collect();
            let counts =
                ["pool_tree_counts", "pool_counts", "user_counts", "type_counts", "failed_jobs_count"];
            (names.join(" "), counts.map(|name| rest.get(name).cloned()))
        })
    };
    let before = all(&mut c);
    let names = before.each_ref().map(|(names, _)| names.as_str());
    assert_eq!(names, ["d c b a", "c a", "d b", "", "d c b a", "", "d c b a", "c", "d b", ""]);
    let running = ListOperations { state: Some("running".into()), ..Default::default() };
    let (ids, rest) = page(&mut c, running);
    assert_eq!(ids.iter().map(|id| c.named(id)).collect::<Vec<_>>(), ["d", "c", "a"]);
    let states = rest.get("state_counts").cloned().expect("they are counted");
    assert_eq!(states, yson::map! { "completed" => 1i64, "running" => 3i64 }.into());
    c.run("finish a/0\nfinish c/0\nfinish d/0");
    assert_eq!(all(&mut c), before);
}
