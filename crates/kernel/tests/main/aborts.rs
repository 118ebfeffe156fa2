//! Jobs that nodes abort before they start, in a whole cluster on virtual time (S4, S12, S20).

use crate::console::Console;
use crate::node::Node;
use kernel::{Command, OperationRef};
use vocab::{AbortReason, Cpu, Failure, JobOutcome, OperationType, Resources, Span};
use yson::{Map, Value};

fn no_disk() -> JobOutcome {
    let reason = AbortReason::Other;
    JobOutcome::Aborted { reason, error: Failure::new("no such disk").with("abort_reason", reason) }
}

/// A node with 50 places; with `prevents`, no job starts on it.
fn node(c: &mut Console, name: &str, prevents: Option<JobOutcome>) {
    let limits = Resources { user_slots: 50, cpu: Cpu(5000), memory: 1 << 40, ..Resources::ZERO };
    c.world.nodes.insert(name.to_owned(), Node { prevents, ..Node::new(name, limits) });
    c.world.connect(name);
    c.world.settle();
}

fn start(c: &mut Console, name: &str, task: Map, options: Map) -> Result<(), Failure> {
    let spec = options.with("tasks", yson::map! { "t" => task.with("command", "x") });
    let start = Command::StartOperation { operation_type: OperationType::Vanilla, spec };
    let answer = c.world.ask("ann", start).expect("an answer")?;
    let answer = c.read(answer).expect("an id");
    c.name_operation(name, &answer);
    Ok(())
}

fn attributes(c: &mut Console, name: &str) -> Map {
    let operation = OperationRef::Id(c.operation_id(name));
    let names = ["state", "result", "alerts"].map(String::from).to_vec();
    let body = c.world.ask("root", Command::GetOperation { operation, attributes: Some(names) });
    let value = c.read(body.expect("an answer").expect("it is known")).expect("it can be read");
    value.as_map().cloned().expect("a map")
}

fn state(c: &mut Console, name: &str) -> String {
    attributes(c, name).get("state").and_then(Value::as_str).expect("a state").to_owned()
}

fn result(c: &mut Console, name: &str) -> String {
    let text = yson::to_text(attributes(c, name).get("result").expect("a result"));
    String::from_utf8_lossy(&text).into_owned()
}

fn explanation(c: &mut Console, name: &str) -> Value {
    let command = Command::ExplainOperation { operation: OperationRef::Id(c.operation_id(name)) };
    let body = c.world.ask("root", command).expect("an answer").expect("it is known");
    c.read(body).expect("it can be read")
}

/// Starts that nodes were told of.
fn starts(c: &Console) -> usize {
    c.world.nodes.values().map(|node| node.finished.len() + node.running.len()).sum()
}

/// S12: one operation whose jobs are aborted before they start took three nodes from everybody, 17 s after its
/// submission.
#[test]
fn s12_an_operation_that_can_start_nowhere_backs_off_says_why_and_fails() {
    let mut c = Console::new();
    for name in ["n1", "n2", "n3"] {
        node(&mut c, name, Some(no_disk()));
    }
    start(&mut c, "o", yson::map! { "job_count" => 100 }, Map::new()).expect("accepted");
    let begun = c.world.now;
    let mut told = 0;
    let mut orders = Vec::new();
    while state(&mut c, "o") == "running" {
        c.world.pass(Span::from_millis(500));
        let value = explanation(&mut c, "o");
        let text = String::from_utf8_lossy(&yson::to_text(&value)).into_owned();
        told += usize::from(
            text.contains("No job of task \\\"t\\\" has started") && text.contains("no such disk"),
        );
        orders.push(c.world.now);
        assert!(c.world.now.since(begun) < Span::from_secs(3600), "{text}");
    }
    let took = c.world.now.since(begun);
    assert!((Span::from_secs(600)..Span::from_secs(1800)).contains(&took), "{took}");
    assert!(told * 2 > orders.len(), "explain names the reason most of the time: {told} of {}", orders.len());
    let result = result(&mut c, "o");
    assert!(
        result.contains("No job of the task could be started") && result.contains("no such disk"),
        "{result}"
    );
    assert!(c.world.violations.is_empty(), "{:?}", c.world.violations);
}

/// The bound is the operation's own, and rounds are few: 100 units are not 100 tries.
#[test]
fn s12_the_bound_is_an_option_of_the_operation() {
    let mut c = Console::new();
    node(&mut c, "n1", Some(no_disk()));
    let options = yson::map! { "max_aborts_before_start" => 3 };
    start(&mut c, "o", yson::map! { "job_count" => 40 }, options).expect("accepted");
    c.world.pass(Span::from_millis(900));
    assert_eq!((state(&mut c, "o").as_str(), starts(&c)), ("running", 0), "released ends are forgotten");
    c.world.pass(Span::from_secs(3));
    assert_eq!(state(&mut c, "o"), "failed");
}

/// A node that cannot start jobs which start elsewhere pauses for their operation, and the others go on.
#[test]
fn s12_a_bad_node_pauses_for_an_operation_that_runs_elsewhere() {
    let mut c = Console::new();
    node(&mut c, "good", None);
    start(&mut c, "o", yson::map! { "job_count" => 80 }, Map::new()).expect("accepted");
    c.world.pass(Span::from_secs(1));
    assert_eq!(c.world.nodes["good"].running.len(), 50);
    assert!(c.world.nodes["good"].running.values().all(|job| !job.start.has_started_elsewhere));
    node(&mut c, "bad", Some(no_disk()));
    c.world.pass(Span::from_secs(10));
    let text = String::from_utf8_lossy(&yson::to_text(&explanation(&mut c, "o"))).into_owned();
    assert!(
        text.contains("Jobs on node \\\"bad\\\" were aborted") && text.contains("no such disk"),
        "{text}"
    );
    assert_eq!(state(&mut c, "o"), "running");
    // It is well again: the pause ends within a minute, and the orders say that the jobs run elsewhere.
    c.world.nodes.get_mut("bad").expect("there").prevents = None;
    c.world.pass(Span::from_secs(61));
    assert_eq!(c.world.nodes["bad"].running.len(), 30);
    assert!(c.world.nodes["bad"].running.values().all(|job| job.start.has_started_elsewhere));
    assert_eq!(state(&mut c, "o"), "running", "no bound once a job has started");
}
