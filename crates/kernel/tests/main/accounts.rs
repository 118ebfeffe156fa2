//! Accounts: what they use is shown, and more than they may use is refused.

use crate::console::Console;
use kernel::{Body, Chunk, Command, OperationRef, TableRows, TreeLimits};
use vocab::{Failure, OperationType, code};
use yson::ypath::YPath;
use yson::{Map, Value};

fn path(text: &str) -> YPath {
    YPath::parse(text.as_bytes()).expect("a good path")
}

fn ask(c: &mut Console, command: Command) -> Result<Value, Failure> {
    match c.world.ask("root", command).expect("an answer")? {
        Body::Value(value) => Ok(value),
        other => panic!("{other:?}"),
    }
}

fn create(c: &mut Console, at: &str, object_type: &str) -> Result<Value, Failure> {
    let command = Command::Create {
        object_type: object_type.into(),
        path: Some(path(at)),
        attributes: Map::new(),
        recursive: false,
        ignore_existing: false,
        force: false,
        ignore_type_mismatch: false,
        lock_existing: false,
    };
    ask(c, command)
}

fn set(c: &mut Console, at: &str, value: Value) -> Result<(), Failure> {
    ask(c, Command::Set { path: path(at), value, recursive: false, force: false }).map(drop)
}

fn get(c: &mut Console, at: &str) -> Value {
    let command = Command::Get { path: path(at), attributes: Vec::new(), max_size: None, fields: None };
    ask(c, command).expect("it is there")
}

fn written(at: &str, blob: u64, size: u64) -> Command {
    Command::FileWritten { path: path(at), blob, size, md5: None, behind: None }
}

/// S15.
#[test]
fn usage_limits_and_violations_are_shown_and_survive() {
    let mut c = Console::new();
    let usual = get(&mut c, "//sys/accounts/tmp/@resource_limits");
    assert_eq!(
        usual.get("node_count").and_then(Value::as_i64),
        Some(TreeLimits::default().account_node_count)
    );
    let before = get(&mut c, "//sys/accounts/tmp/@resource_usage/node_count").as_i64().expect("a count");
    create(&mut c, "//tmp/f", "file").expect("a file");
    ask(&mut c, written("//tmp/f", 5, 1000)).expect("a content");
    c.run("crash\nrestart");
    let usage = get(&mut c, "//sys/accounts/tmp/@resource_usage");
    let amount = |name: &str| usage.get(name).and_then(Value::as_i64);
    assert_eq!(
        [amount("node_count"), amount("disk_space"), amount("chunk_count")],
        [Some(before + 1), Some(1000), Some(1)]
    );
    let limits = yson::map! {"disk_space_per_medium" => yson::map! {"default" => 1500}};
    set(&mut c, "//sys/accounts/tmp/@resource_limits", limits.into()).expect("good limits");
    create(&mut c, "//tmp/g", "file").expect("a file");
    let refused = ask(&mut c, written("//tmp/g", 6, 501)).expect_err("too large");
    assert_eq!(refused.code, code::ACCOUNT_LIMIT);
    assert_eq!(refused.find_attribute("limit").and_then(Value::as_i64), Some(1500));
    let may = Command::LocateFile { path: path("//tmp/g"), to_write: true };
    let located = ask(&mut c, may).expect("a file");
    let room = located.get("room").and_then(|room| room.get("account \"tmp\"")).and_then(Value::as_u64);
    assert_eq!(room, Some(500));
    ask(&mut c, written("//tmp/g", 7, 500)).expect("just enough");
    let violated = |c: &mut Console| {
        let told = get(c, "//sys/accounts/tmp/@violated_resource_limits");
        told.get("disk_space").and_then(Value::as_bool)
    };
    assert_eq!(violated(&mut c), Some(false));
    set(&mut c, "//sys/accounts/tmp/@resource_limits/disk_space_per_medium/default", 1.into())
        .expect("a limit");
    assert_eq!(violated(&mut c), Some(true));
    let refused = set(&mut c, "//sys/accounts/tmp/@resource_limits", yson::map! {"nodes" => 1}.into());
    assert!(refused.expect_err("a typing error").message.contains("expected one of node_count"));
    assert_eq!(c.world.kernel().check_invariants(), [""; 0]);
}

/// S13.
#[test]
fn a_large_removal_goes_on_after_a_crash() {
    let mut c = Console::with(|config| config.limits.max_nodes_per_request = 50);
    create(&mut c, "//tmp/t", "map_node").expect("a map");
    for n in 0..40 {
        let children: Map = (0..40).map(|k| (format!("k{k}"), k)).collect();
        set(&mut c, &format!("//tmp/t/m{n}"), children.into()).expect("a map");
    }
    let usage =
        |c: &mut Console| get(c, "//sys/accounts/tmp/@resource_usage/node_count").as_i64().expect("a count");
    let full = usage(&mut c);
    let remove = Command::Remove { path: path("//tmp/t"), recursive: true, force: false };
    ask(&mut c, remove).expect("it may be removed");
    let exists = ask(&mut c, Command::Exists { path: path("//tmp/t") }).expect("an answer");
    assert_eq!(exists.as_bool(), Some(false), "it is gone at once");
    c.run("crash\nrestart");
    for _ in 0..10 {
        c.world.pass(vocab::Span::from_secs(1));
    }
    assert_eq!(full - usage(&mut c), 1 + 40 * 41, "all of it is removed");
    assert_eq!(c.world.kernel().check_invariants(), [""; 0]);
}

/// S15: contents that an operation needs were charged to nobody once the user had removed or replaced their nodes.
#[test]
fn what_an_operation_needs_stays_charged_until_its_end() {
    let mut c = Console::new();
    c.run("node n1 cpu=4\npool create p");
    let make = |c: &mut Console, name: &str| {
        let attributes = yson::map! {"name" => name};
        let command = Command::Create {
            object_type: "account".into(),
            path: None,
            attributes,
            recursive: false,
            ignore_existing: false,
            force: false,
            ignore_type_mismatch: false,
            lock_existing: false,
        };
        ask(c, command).expect("a new name");
    };
    make(&mut c, "team");
    for (at, object_type) in [("//tmp/f", "file"), ("//tmp/in", "table"), ("//tmp/out", "table")] {
        create(&mut c, at, object_type).expect("nothing is there");
        set(&mut c, &format!("{at}/@account"), "team".into()).expect("an account");
    }
    ask(&mut c, written("//tmp/f", 5, 1000)).expect("a content");
    let rows = |blob: u64, size: u64| {
        let chunk = Chunk { blob, size, rows: 5, row_bytes: 10, weight: 10, bounds: None };
        let rows = TableRows { chunks: vec![chunk], ..TableRows::default() };
        Command::TableWritten { path: path("//tmp/in"), rows: Box::new(rows) }
    };
    ask(&mut c, rows(6, 100)).expect("rows");
    let mapper = yson::map! {"command" => "cat", "format" => "json", "file_paths" => vec!["//tmp/f"]};
    let spec = yson::map! {
        "pool" => "p", "mapper" => mapper,
        "input_table_paths" => vec!["//tmp/in"], "output_table_paths" => vec!["//tmp/out"],
    };
    let command = Command::StartOperation { operation_type: OperationType::Map, spec };
    let started = ask(&mut c, command).expect("a good operation");
    let id = started.get("operation_id").and_then(Value::as_str).expect("an id").to_owned();
    let disk = |c: &mut Console| {
        let usage = get(c, "//sys/accounts/team/@resource_usage/disk_space");
        assert_eq!(c.world.kernel().check_invariants(), [""; 0]);
        usage.as_i64().expect("an amount")
    };
    assert_eq!(disk(&mut c), 1100);
    let remove = |at: &str| Command::Remove { path: path(at), recursive: true, force: false };
    ask(&mut c, remove("//tmp/f")).expect("an operation locks no files");
    ask(&mut c, rows(7, 10)).expect("an operation locks no inputs");
    assert_eq!(disk(&mut c), 1110, "both are needed by the operation");
    // Room for nothing: what is removed gives none while it is needed.
    set(&mut c, "//sys/accounts/team/@resource_limits", yson::map! {"disk_space" => 1110i64}.into())
        .expect("good limits");
    create(&mut c, "//tmp/g", "file").expect("a file");
    set(&mut c, "//tmp/g/@account", "team".into()).expect("an account");
    assert_eq!(ask(&mut c, written("//tmp/g", 8, 1)).expect_err("no room").code, code::ACCOUNT_LIMIT);
    c.run("crash\nrestart\nconnect n1");
    assert_eq!(disk(&mut c), 1110, "a restart changes nothing");
    assert_eq!(ask(&mut c, written("//tmp/g", 8, 1)).expect_err("no room").code, code::ACCOUNT_LIMIT);
    let operation = OperationRef::Id(id.parse().expect("an id"));
    ask(&mut c, Command::AbortOperation { operation, message: None }).expect("it runs");
    assert_eq!(disk(&mut c), 10, "nothing needs them any more");
}
