//! What transactions mean for operations, files and each other.

use crate::console::Console;
use cypress::{GetOptions, StartOptions};
use kernel::{Body, Command, OperationRef};
use vocab::{Failure, ObjectId, OperationType, Span, code};
use yson::ypath::YPath;
use yson::{Map, Value};

fn ask(c: &mut Console, command: Command) -> Result<Value, Failure> {
    match c.world.ask("root", command).expect("an answer")? {
        Body::Value(value) => Ok(value),
        other => panic!("{other:?}"),
    }
}

fn start(c: &mut Console, parent: Option<ObjectId>, prerequisites: &[ObjectId]) -> Result<ObjectId, Failure> {
    let options = StartOptions {
        parent,
        timeout: Span::from_secs(600),
        prerequisites: prerequisites.to_vec(),
        ..StartOptions::default()
    };
    let value = ask(c, Command::StartTransaction(Box::new(options)))?;
    Ok(value.get("transaction_id").and_then(|id| id.as_str()?.parse().ok()).expect("an id"))
}

fn path(text: &str) -> YPath {
    YPath::parse(text.as_bytes()).expect("a good path")
}

#[test]
fn prerequisites_are_checked_at_the_start_and_at_the_end() {
    let mut c = Console::new();
    let lease = start(&mut c, None, &[]).expect("nothing is wrong");
    let work = start(&mut c, None, &[lease]).expect("the lease lives");
    let other = start(&mut c, None, &[lease]).expect("the lease lives");
    ask(&mut c, Command::CommitTransaction { transaction: other }).expect("the lease lives");
    c.run("crash\nrestart");
    ask(&mut c, Command::AbortTransaction { transaction: lease }).expect("it is there");
    let refused =
        ask(&mut c, Command::CommitTransaction { transaction: work }).expect_err("the lease is gone");
    assert_eq!(
        (refused.code, refused.inner_errors[0].code),
        (code::PREREQUISITE_FAILED, code::NO_SUCH_TRANSACTION)
    );
    ask(&mut c, Command::AbortTransaction { transaction: work }).expect("it may still be dropped");
    let refused = start(&mut c, None, &[lease]).expect_err("the lease is gone");
    assert_eq!(refused.code, code::PREREQUISITE_FAILED);
}

#[test]
fn operations_pass_to_the_transaction_around() {
    let mut c = Console::new();
    c.run("node n1 cpu=4\npool create p");
    let outer = start(&mut c, None, &[]).expect("nothing is wrong");
    let inner = start(&mut c, Some(outer), &[]).expect("nothing is wrong");
    let task = yson::map! {"command" => "true", "job_count" => 1i64};
    let spec: Map = yson::map! {"pool" => "p", "tasks" => yson::map! {"t" => task}};
    let command = Command::StartOperation { operation_type: OperationType::Vanilla, spec };
    let started = ask(&mut c, command.through(Some(inner))).expect("a good operation");
    let id = started.get("operation_id").and_then(|id| id.as_str()?.parse().ok()).expect("an id");
    let state = |c: &mut Console| {
        let attributes = Some(vec!["state".to_owned()]);
        let command = Command::GetOperation { operation: OperationRef::Id(id), attributes };
        let body = c.world.ask("root", command).expect("an answer").expect("it is there");
        let value = c.read(body).expect("readable");
        value.get("state").and_then(Value::as_str).expect("a state").to_owned()
    };
    ask(&mut c, Command::CommitTransaction { transaction: inner }).expect("nothing is in the way");
    assert_eq!(state(&mut c), "running", "it outlives the one that was committed");
    c.run("crash\nrestart\nconnect n1");
    ask(&mut c, Command::AbortTransaction { transaction: outer }).expect("it is there");
    assert_eq!(state(&mut c), "aborted", "not the one around it");
}

#[test]
fn lists_of_locks_are_cut_where_they_are_asked_to() {
    let mut c = Console::new();
    let ids: Vec<ObjectId> = (0..5).map(|_| start(&mut c, None, &[]).expect("nothing is wrong")).collect();
    let options = |max_size| GetOptions { max_size, ..GetOptions::default() };
    for (max_size, shown) in [(None, 5), (Some(5), 5), (Some(3), 3)] {
        let GetOptions { attributes, max_size, .. } = options(max_size);
        let command = Command::Get { path: path("//sys/transactions"), attributes, max_size, fields: None };
        let value = ask(&mut c, command).expect("readable");
        let map = value.bare().as_map().expect("a map").clone();
        assert_eq!(map.len(), shown);
        let is_cut = value.attributes().and_then(|a| a.get("incomplete")).and_then(Value::as_bool);
        assert_eq!(is_cut.unwrap_or(false), shown < ids.len());
    }
}

#[test]
fn what_is_there_is_locked_where_it_is_asked_for() {
    let mut c = Console::new();
    let transaction = start(&mut c, None, &[]).expect("nothing is wrong");
    let create = |lock_existing: bool, ignore_existing: bool| Command::Create {
        object_type: "map_node".into(),
        path: Some(path("//tmp/a")),
        attributes: Map::new(),
        recursive: false,
        ignore_existing,
        force: false,
        ignore_type_mismatch: false,
        lock_existing,
    };
    let refused = ask(&mut c, create(true, false)).expect_err("locks what must not be there");
    assert!(refused.to_string().contains("\"ignore_existing\""), "{refused}");
    ask(&mut c, create(true, true)).expect("there is nothing to lock");
    let set = || Command::Set { path: path("//tmp/a/@x"), value: 1.into(), recursive: false, force: false };
    ask(&mut c, create(false, true).through(Some(transaction))).expect("it is there");
    ask(&mut c, set()).expect("nothing is locked");
    let refused = ask(&mut c, create(true, true)).expect_err("outside of transactions");
    assert!(refused.to_string().contains("transaction"), "{refused}");
    ask(&mut c, create(true, true).through(Some(transaction))).expect("it is there");
    assert_eq!(ask(&mut c, set()).expect_err("it is locked").code, code::LOCK_CONFLICT);
    ask(&mut c, Command::AbortTransaction { transaction }).expect("it is there");
    ask(&mut c, set()).expect("nothing is locked any more");
}

#[test]
fn accounts_are_made_by_name() {
    let mut c = Console::new();
    let mut create = |attributes: Map| {
        let object_type = "account".into();
        let command = Command::Create {
            object_type,
            path: None,
            attributes,
            recursive: false,
            ignore_existing: false,
            force: false,
            ignore_type_mismatch: false,
            lock_existing: false,
        };
        ask(&mut c, command)
    };
    let limits = yson::map! {"disk_space" => 5i64};
    let made = create(yson::map! {"name" => "team", "resource_limits" => limits}).expect("a new name");
    assert!(made.get("object_id").is_some(), "{made:?}");
    assert_eq!(create(yson::map! {"name" => "team"}).expect_err("it is there").code, code::ALREADY_EXISTS);
    assert!(create(Map::new()).expect_err("no name").to_string().contains("\"name\""));
    // Accounts are no subjects: their names are free.
    create(yson::map! {"name" => "root"}).expect("a user is something else");
}

/// A map of the rows of `//tmp/a`, with its state once it has begun.
fn map_to(c: &mut Console, output: &str) -> (String, String) {
    let mapper = yson::map! {"command" => "cat", "format" => "json"};
    let spec = yson::map! {
        "pool" => "p", "mapper" => mapper, "input_table_paths" => vec!["//tmp/a"], "output_table_paths" => vec![output],
    };
    let started = ask(c, Command::StartOperation { operation_type: OperationType::Map, spec }).expect("good");
    let id = started.get("operation_id").and_then(Value::as_str).expect("an id").to_owned();
    let operation = OperationRef::Id(id.parse().expect("an id"));
    let command = Command::GetOperation { operation, attributes: Some(vec!["state".to_owned()]) };
    let body = c.world.ask("root", command).expect("an answer").expect("it is there");
    let value = c.read(body).expect("readable");
    (id, value.get("state").and_then(Value::as_str).expect("a state").to_owned())
}

#[test]
fn maps_that_append_to_one_table_go_on_side_by_side() {
    let mut c = Console::new();
    c.run("node n1 cpu=4\npool create p");
    for table in ["//tmp/a", "//tmp/b"] {
        let command = Command::Create {
            object_type: "table".into(),
            path: Some(path(table)),
            attributes: Map::new(),
            recursive: false,
            ignore_existing: false,
            force: false,
            ignore_type_mismatch: false,
            lock_existing: false,
        };
        ask(&mut c, command).expect("nothing is there");
    }
    let chunk = cypress::Chunk { blob: 1, size: 10, rows: 5, row_bytes: 10, weight: 10, bounds: None };
    let rows = kernel::TableRows { chunks: vec![chunk], ..kernel::TableRows::default() };
    ask(&mut c, Command::TableWritten { path: path("//tmp/a"), rows: Box::new(rows) }).expect("a table");
    let locks = |c: &mut Console| -> Vec<String> {
        let command =
            Command::Get { path: path("//tmp/b/@locks"), attributes: vec![], max_size: None, fields: None };
        let value = ask(c, command).expect("readable");
        let mode = |lock: &Value| lock.get("mode").and_then(Value::as_str).map(str::to_owned);
        value.as_list().expect("a list").iter().filter_map(mode).collect()
    };
    let (one, state) = map_to(&mut c, "<append=%true>//tmp/b");
    assert_eq!(state, "running");
    let (two, state) = map_to(&mut c, "<append=%true>//tmp/b");
    assert_eq!(state, "running", "its rows come behind those of the other");
    assert_eq!(locks(&mut c), ["shared", "shared"]);
    for alone in ["//tmp/b", "<append=%true;sorted_by=[k]>//tmp/b"] {
        assert_eq!(map_to(&mut c, alone).1, "failed", "{alone}: the table is not its own");
    }
    c.run("crash\nrestart\nconnect n1");
    assert_eq!(locks(&mut c), ["shared", "shared"]);
    for id in [one, two] {
        let operation = OperationRef::Id(id.parse().expect("an id"));
        ask(&mut c, Command::AbortOperation { operation, message: None }).expect("it goes on");
    }
    assert_eq!(locks(&mut c), [""; 0]);
    assert_eq!(map_to(&mut c, "//tmp/b").1, "running", "nobody is in its way any more");
    assert_eq!(map_to(&mut c, "<append=%true>//tmp/b").1, "failed", "what it would write to is replaced");
}
