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

fn disk(bytes: i64) -> Map {
    yson::map! { "job_count" => 1, "disk_request" => yson::map! { "disk_space" => bytes } }
}

/// S4: a request of 1 EB was accepted, and its jobs were aborted and tried again without end.
#[test]
fn s4_more_disk_than_any_node_has_is_refused_at_submission() {
    let mut c = Console::new();
    start(&mut c, "early", disk(1 << 60), Map::new()).expect("no node is known yet");
    for (name, capacity) in [("n1", 1000), ("n2", 3000)] {
        let limits = Resources { user_slots: 5, cpu: Cpu(500), memory: 1 << 40, ..Resources::ZERO };
        c.world.nodes.insert(name.to_owned(), Node::new(name, limits));
        c.world.nodes.get_mut(name).expect("there").disk_capacity = Some(capacity);
        c.world.connect(name);
        c.world.settle();
    }
    let refused = start(&mut c, "o", disk(3001), Map::new()).expect_err("too much");
    let text = String::from_utf8_lossy(&yson::to_text(&refused.to_value())).into_owned();
    for part in ["/tasks/t/disk_request/disk_space", "3000", "3001", "n2"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let limit = yson::map! { "job_count" => 1, "disk_space_limit" => 3001 };
    let refused = start(&mut c, "o", limit, Map::new()).expect_err("too much").to_value();
    assert!(String::from_utf8_lossy(&yson::to_text(&refused)).contains("/tasks/t/disk_space_limit"));
    // What one of them can hold goes there, without an abort on the way.
    start(&mut c, "fits", disk(2000), Map::new()).expect("accepted");
    c.world.pass(Span::from_secs(2));
    assert_eq!((c.world.nodes["n1"].running.len(), c.world.nodes["n2"].running.len()), (0, 1));
    assert!(c.world.nodes.values().all(|node| node.finished.is_empty()));
    // A node that does not count disk takes everything.
    node(&mut c, "n3", None);
    start(&mut c, "o", disk(1 << 60), Map::new()).expect("accepted");
    c.world.pass(Span::from_secs(2));
    assert_eq!(c.world.nodes["n3"].running.len(), 2, "with the one that came before all nodes");
}

/// An operation that came before the nodes did has an alert, and fails when it lasts.
#[test]
fn s4_more_disk_than_the_nodes_have_fails_an_accepted_operation() {
    let mut c = Console::new();
    start(&mut c, "o", disk(1 << 60), Map::new()).expect("no node is known yet");
    node(&mut c, "n1", None);
    c.world.disconnect("n1");
    c.world.nodes.get_mut("n1").expect("there").disk_capacity = Some(1000);
    // It may have taken the job before it was known to be too small.
    c.world.nodes.get_mut("n1").expect("there").running.clear();
    c.world.settle();
    c.world.connect("n1");
    c.world.pass(Span::from_secs(5));
    let alerts = attributes(&mut c, "o");
    assert!(
        alerts.get("alerts").is_some_and(|alerts| alerts.get("no_suitable_node").is_some()),
        "{alerts:?}"
    );
    c.world.pass(Span::from_secs(700));
    assert_eq!(state(&mut c, "o"), "failed");
    assert!(result(&mut c, "o").contains("disk_space"));
}

/// S20: a job whose file had no content waited for ever, in silence.
#[test]
fn s20_a_file_without_content_fails_the_operation_with_its_path_and_blob() {
    let mut c = Console::new();
    node(&mut c, "n1", None);
    c.run("file //tmp/f 77");
    let task = yson::map! { "job_count" => 1, "file_paths" => vec![Value::from("//tmp/f")] };
    // The node says what it has been told: which file and which revision.
    start(&mut c, "probe", task.clone(), Map::new()).expect("accepted");
    c.world.pass(Span::from_secs(1));
    let artifact =
        c.world.nodes["n1"].running.values().next().expect("a job").start.description.files[0].clone();
    c.run("op abort probe");
    let reason = AbortReason::FailedChunks;
    let error = Failure::new("Cannot download file \"f\": blob 77")
        .with("missing_blob", true)
        .with("file_id", artifact.file_id)
        .with("revision", artifact.revision);
    let error = Failure::new("Failed to download artifacts").because(error);
    c.world.nodes.get_mut("n1").expect("there").prevents = Some(JobOutcome::Aborted { reason, error });
    start(&mut c, "o", task, Map::new()).expect("accepted");
    c.world.pass(Span::from_secs(1));
    assert_eq!(state(&mut c, "o"), "failed");
    let result = result(&mut c, "o");
    assert!(result.contains("The content of file //tmp/f is missing on the server: blob 77"), "{result}");
    let alerts = |c: &mut Console| {
        let path = "//sys/scheduler/@alerts".parse().expect("a path");
        let get = Command::Get { path, attributes: Vec::new(), max_size: None, fields: None };
        let body = c.world.ask("root", get).expect("an answer").expect("there");
        String::from_utf8_lossy(&yson::to_text(&c.read(body).expect("a list"))).into_owned()
    };
    let told = alerts(&mut c);
    assert!(told.contains("file_content_lost") && told.contains("//tmp/f") && told.contains("77"), "{told}");
    // The file is written again: the alert goes.
    let path = "//tmp/f".parse().expect("a path");
    let written = Command::FileWritten { path, blob: 78, size: 5, md5: None, behind: None };
    c.world.ask("root", written).expect("an answer").expect("written");
    let told = alerts(&mut c);
    assert!(!told.contains("file_content_lost"), "{told}");
}

/// S5: an operation that waits for a node which cannot isolate jobs was told to look at `millpond node list`.
#[test]
fn s5_explain_says_why_nodes_offer_no_slots() {
    let mut c = Console::new();
    let why = Failure::new("This node cannot isolate jobs").because(Failure::new("no namespaces"));
    let limits = Resources { cpu: Cpu(5000), memory: 1 << 40, ..Resources::ZERO };
    for (name, alert) in [
        ("n1", Failure::new("Clock is late")),
        ("n2", why.clone().with("alert_type", "job_environment_disabled")),
        ("n3", why.with("alert_type", "job_environment_disabled")),
        ("n4", Failure::new("uid 7 is taken").with("alert_type", "job_uids_refused")),
    ] {
        let alerts = vec![Failure::new("Another thing"), alert];
        c.world.nodes.insert(name.to_owned(), Node { alerts, ..Node::new(name, limits) });
        c.world.connect(name);
    }
    c.world.settle();
    start(&mut c, "o", yson::map! { "job_count" => 1 }, Map::new()).expect("accepted");
    c.world.pass(Span::from_secs(2));
    let told = explanation(&mut c, "o");
    let text = String::from_utf8_lossy(&yson::to_text(&told)).into_owned();
    for words in [
        r#"Nodes \"n2\", \"n3\" offer no slots: This node cannot isolate jobs: no namespaces"#,
        r#"Node \"n4\" offers no slots: uid 7 is taken"#,
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("Clock is late") && !text.contains("Another thing"), "{text}");
    let reasons = told.get("disabled_nodes").and_then(Value::as_list).expect("a list");
    let counts: Vec<_> =
        reasons.iter().map(|reason| reason.get("node_count").and_then(Value::as_i64)).collect();
    assert_eq!(counts, [Some(2), Some(1)]);
    // A node that takes the job: nobody is to be blamed.
    node(&mut c, "n5", None);
    c.world.pass(Span::from_secs(2));
    assert!(explanation(&mut c, "o").get("disabled_nodes").is_none());
}

/// S20: the error named neither table nor blob, and there was no alert.
#[test]
fn s20_a_table_that_lost_a_chunk_fails_the_operation_with_its_path_and_blob() {
    let mut c = Console::new();
    node(&mut c, "n1", None);
    for table in ["//tmp/a", "//tmp/b", "//tmp/out"] {
        c.run(&format!("create table {table}"));
    }
    let write = |c: &mut Console, table: &str, blob: u64| {
        let chunk = cypress::Chunk { blob, size: 10, rows: 5, row_bytes: 10, weight: 10, bounds: None };
        let rows = Box::new(kernel::TableRows { chunks: vec![chunk], ..kernel::TableRows::default() });
        let written = Command::TableWritten { path: table.parse().expect("a path"), rows };
        c.world.ask("root", written).expect("an answer").expect("written");
    };
    write(&mut c, "//tmp/a", 77);
    write(&mut c, "//tmp/b", 78);
    let lost = |blob: u64| {
        let error = Failure::new("Cannot fetch the rows of the job").with("missing_blob", blob);
        let error = Failure::new("Failed to download artifacts").because(error);
        JobOutcome::Aborted { reason: AbortReason::FailedChunks, error }
    };
    let map = |c: &mut Console, name: &str, blob: u64| {
        c.world.nodes.get_mut("n1").expect("there").prevents = Some(lost(blob));
        let spec = yson::map! {
            "mapper" => yson::map! {"command" => "cat", "format" => "json"},
            "input_table_paths" => vec!["//tmp/a", "//tmp/b"],
            "output_table_paths" => vec!["//tmp/out"],
        };
        let start = Command::StartOperation { operation_type: OperationType::Map, spec };
        let answer = c.world.ask("ann", start).expect("an answer").expect("accepted");
        let answer = c.read(answer).expect("an id");
        c.name_operation(name, &answer);
        c.world.pass(Span::from_secs(1));
        assert_eq!(state(c, name), "failed");
        result(c, name)
    };
    let alerts = |c: &mut Console| {
        let path = "//sys/scheduler/@alerts".parse().expect("a path");
        let get = Command::Get { path, attributes: Vec::new(), max_size: None, fields: None };
        let body = c.world.ask("root", get).expect("an answer").expect("there");
        String::from_utf8_lossy(&yson::to_text(&c.read(body).expect("a list"))).into_owned()
    };
    // A node cannot say that of data which the operation does not read.
    let told = map(&mut c, "other", 79);
    assert!(!told.contains("//tmp/"), "{told}");
    assert!(!alerts(&mut c).contains("table_content_lost"));
    let told = map(&mut c, "o", 78);
    assert!(told.contains("Rows of table //tmp/b are missing or damaged on the server: blob 78"), "{told}");
    let told = alerts(&mut c);
    assert!(told.contains("table_content_lost") && told.contains("//tmp/b") && told.contains("78"), "{told}");
    // The table is written again: the alert goes.
    write(&mut c, "//tmp/b", 80);
    let told = alerts(&mut c);
    assert!(!told.contains("table_content_lost"), "{told}");
}
