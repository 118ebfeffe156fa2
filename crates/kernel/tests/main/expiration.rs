//! Nodes that are removed at a time, or when nobody has used them for so long.

use crate::console::Console;
use crate::world::World;
use cypress::transactions::locks::Mode;
use cypress::{LockOptions, StartOptions};
use kernel::command::CopyOptions;
use kernel::{Body, Command};
use vocab::{Failure, ObjectId, OperationType, Span, Time, code};
use yson::ypath::YPath;
use yson::{Map, Value};

fn path(text: &str) -> YPath {
    YPath::parse(text.as_bytes()).expect("a good path")
}

fn ask(world: &mut World, command: Command) -> Result<Value, Failure> {
    match world.ask("root", command).expect("an answer")? {
        Body::Value(value) => Ok(value),
        other => panic!("{other:?}"),
    }
}

fn exists(c: &mut Console, at: &str) -> bool {
    let found = ask(&mut c.world, Command::Exists { path: path(at) }).expect("always an answer");
    found.as_bool().expect("a Boolean")
}

fn made(object_type: &str, at: Option<&str>, attributes: Map, ignore_existing: bool) -> Command {
    Command::Create {
        object_type: object_type.into(),
        path: at.map(path),
        attributes,
        recursive: true,
        ignore_existing,
        force: false,
        ignore_type_mismatch: false,
        lock_existing: false,
    }
}

fn make(object_type: &str, at: &str, attributes: Map) -> Command {
    made(object_type, Some(at), attributes, false)
}

fn create(c: &mut Console, object_type: &str, at: &str, attributes: Map) {
    ask(&mut c.world, make(object_type, at, attributes)).expect("a good node");
}

fn set(at: &str, value: Value) -> Command {
    Command::Set { path: path(at), value, recursive: false, force: false }
}

fn get(at: &str) -> Command {
    Command::Get { path: path(at), attributes: Vec::new(), max_size: None, fields: None }
}

fn timeout(seconds: i64) -> Map {
    yson::map! {"expiration_timeout" => seconds * 1000}
}

fn pass(c: &mut Console, seconds: u64) {
    c.world.pass(Span::from_secs(seconds));
}

fn start(c: &mut Console) -> ObjectId {
    let options = StartOptions { timeout: Span::from_secs(10_000), ..StartOptions::default() };
    let value = ask(&mut c.world, Command::StartTransaction(Box::new(options))).expect("nothing is wrong");
    value.get("transaction_id").and_then(|id| id.as_str()?.parse().ok()).expect("an id")
}

#[test]
fn at_a_time_with_all_that_is_below() {
    let mut c = Console::new();
    let at: Time = c.world.now + Span::from_secs(10);
    create(&mut c, "table", "//tmp/a/b/deep/table", Map::new());
    create(&mut c, "table", "//tmp/a/other", timeout(1000));
    create(&mut c, "table", "//tmp/target", Map::new());
    c.run("create link //tmp/a/b/link target_path=//tmp/target");
    ask(&mut c.world, set("//tmp/a/b/@expiration_time", at.into())).expect("a good value");
    pass(&mut c, 9);
    assert!(exists(&mut c, "//tmp/a/b/deep/table"));
    pass(&mut c, 2);
    assert!(!exists(&mut c, "//tmp/a/b"));
    assert!(exists(&mut c, "//tmp/a/other") && exists(&mut c, "//tmp/target"));
    let last = c.world.log.last().expect("it is written down");
    let text = |key: &str| last.get(key).and_then(Value::as_str).unwrap_or_default();
    assert_eq!(
        ["event", "user", "action", "path", "reason"].map(text),
        ["audit", "root", "remove", "//tmp/a/b", "expired"]
    );
    // It is as durable as any other change.
    c.run("crash\nrestart");
    assert!(!exists(&mut c, "//tmp/a/b") && exists(&mut c, "//tmp/a/other"));
}

/// A command and its name.
type Case = (&'static str, fn() -> Command);

#[test]
fn what_lies_unused_goes() {
    let uses: [Case; 5] = [
        ("read", || get("//tmp/t")),
        ("set", || set("//tmp/t/@mine", 1.into())),
        ("listed", || Command::List { path: path("//tmp/t"), attributes: Vec::new(), max_size: None }),
        ("changed below", || set("//tmp/t/new", 1.into())),
        ("asked for again", || made("map_node", Some("//tmp/t"), Map::new(), true)),
    ];
    let questions: [Case; 3] = [
        ("nothing", || get("//tmp")),
        ("is it there", || Command::Exists { path: path("//tmp/t") }),
        ("its attributes", || get("//tmp/t/@")),
    ];
    let all = uses.iter().map(|u| (u, true)).chain(questions.iter().map(|q| (q, false)));
    for ((what, command), kept) in all {
        let mut c = Console::new();
        create(&mut c, "map_node", "//tmp/t", timeout(100));
        pass(&mut c, 90);
        ask(&mut c.world, command()).expect(what);
        pass(&mut c, 20);
        assert_eq!(exists(&mut c, "//tmp/t"), kept, "{what}");
        pass(&mut c, 100);
        assert!(!exists(&mut c, "//tmp/t"), "{what}");
    }
}

#[test]
fn reading_rows_and_locking_are_uses_in_transactions_too() {
    let mut c = Console::new();
    create(&mut c, "table", "//tmp/a", timeout(100));
    create(&mut c, "table", "//tmp/b", timeout(100));
    create(&mut c, "table", "//tmp/c", timeout(100));
    let transaction = start(&mut c);
    pass(&mut c, 90);
    let read = Command::LocateTable { path: path("//tmp/a"), to_write: false };
    ask(&mut c.world, read.through(Some(transaction))).expect("it is there");
    let options = LockOptions { mode: Mode::Snapshot, waitable: false };
    let lock = Command::Lock { path: path("//tmp/b"), options };
    ask(&mut c.world, lock.through(Some(transaction))).expect("nothing is in the way");
    ask(&mut c.world, Command::AbortTransaction { transaction }).expect("it is there");
    pass(&mut c, 20);
    let there = ["//tmp/a", "//tmp/b", "//tmp/c"].map(|at| exists(&mut c, at));
    assert_eq!(there, [true, true, false]);
}

#[test]
fn operations_use_their_inputs_and_files() {
    let mut c = Console::new();
    c.run("pool create p");
    for (object_type, at) in
        [("table", "//tmp/in"), ("table", "//tmp/out"), ("file", "//tmp/f"), ("file", "//tmp/g")]
    {
        create(&mut c, object_type, at, timeout(100));
    }
    pass(&mut c, 90);
    let mapper = yson::map! {"command" => "cat", "format" => "json", "file_paths" => vec!["//tmp/f"]};
    let spec = yson::map! {
        "pool" => "p",
        "input_table_paths" => vec!["//tmp/in"],
        "output_table_paths" => vec!["//tmp/out"],
        "mapper" => mapper,
    };
    ask(&mut c.world, Command::StartOperation { operation_type: OperationType::Map, spec })
        .expect("a good operation");
    pass(&mut c, 20);
    let there = ["//tmp/in", "//tmp/f", "//tmp/g"].map(|at| exists(&mut c, at));
    assert_eq!(there, [true, true, false]);
}

#[test]
fn without_the_attribute_it_stays() {
    let mut c = Console::new();
    let time = c.world.now + Span::from_secs(10);
    create(&mut c, "table", "//tmp/t", timeout(10).with("expiration_time", time));
    c.run("remove //tmp/t/@expiration_time\nremove //tmp/t/@expiration_timeout");
    pass(&mut c, 100);
    assert!(exists(&mut c, "//tmp/t"));
}

#[test]
fn a_restart_forgets_neither_the_end_nor_the_last_use() {
    let mut c = Console::new();
    create(&mut c, "table", "//tmp/a", timeout(100));
    create(&mut c, "table", "//tmp/b", timeout(100));
    let time = c.world.now + Span::from_secs(110);
    create(&mut c, "table", "//tmp/c", yson::map! {"expiration_time" => time});
    pass(&mut c, 90);
    ask(&mut c.world, Command::LocateTable { path: path("//tmp/a"), to_write: false }).expect("it is there");
    pass(&mut c, 1);
    c.run("crash\nrestart");
    pass(&mut c, 11);
    let there = |c: &mut Console| ["//tmp/a", "//tmp/b", "//tmp/c"].map(|at| exists(c, at));
    assert_eq!(there(&mut c), [true, false, true]);
    c.run("crash");
    c.world.now += Span::from_secs(1000);
    c.run("restart");
    pass(&mut c, 1);
    assert_eq!(there(&mut c), [false; 3], "what happened meanwhile");
}

#[test]
fn who_has_it_locked_keeps_it() {
    for (at, mode) in [
        ("//tmp/t", Mode::Exclusive),
        ("//tmp/t", Mode::Snapshot),
        ("//tmp/t/x/y", Mode::Exclusive),
        ("//tmp", Mode::Exclusive),
    ] {
        let mut c = Console::new();
        create(&mut c, "table", "//tmp/t/x/y", Map::new());
        let time = c.world.now + Span::from_secs(10);
        ask(&mut c.world, set("//tmp/t/@expiration_time", time.into())).expect("a good value");
        let transaction = start(&mut c);
        let lock =
            Command::Lock { path: path(at), options: LockOptions { mode: mode.clone(), waitable: false } };
        ask(&mut c.world, lock.through(Some(transaction))).expect("nothing is in the way");
        pass(&mut c, 60);
        assert!(exists(&mut c, "//tmp/t/x/y"), "{at} {mode:?}");
        ask(&mut c.world, Command::CommitTransaction { transaction }).expect("nothing is in the way");
        pass(&mut c, 1);
        assert!(!exists(&mut c, "//tmp/t"), "{at} {mode:?}");
    }
}

#[test]
fn what_a_transaction_has_changed_counts_after_its_commit() {
    let mut c = Console::new();
    let transaction = start(&mut c);
    let create = make("table", "//tmp/new", timeout(10)).through(Some(transaction));
    ask(&mut c.world, create).expect("a good node");
    pass(&mut c, 100);
    ask(&mut c.world, Command::CommitTransaction { transaction }).expect("nothing is in the way");
    pass(&mut c, 5);
    assert!(exists(&mut c, "//tmp/new"));
    pass(&mut c, 10);
    assert!(!exists(&mut c, "//tmp/new"));
}

#[test]
fn a_pass_is_short_and_those_that_wait_are_in_nobodys_way() {
    let mut c = Console::new();
    let transaction = start(&mut c);
    let time = c.world.now + Span::from_secs(10);
    for i in 0..2500 {
        let attributes = yson::map! {"expiration_time" => time + Span::from_millis(i)};
        let command = make("document", &format!("//tmp/m/{i}"), attributes);
        c.world.send("root", None, command);
    }
    c.world.settle();
    for i in 0..1200 {
        let options = LockOptions { mode: Mode::Exclusive, waitable: false };
        let lock = Command::Lock { path: path(&format!("//tmp/m/{i}")), options };
        c.world.send("root", None, lock.through(Some(transaction)));
    }
    c.world.settle();
    let count = |c: &mut Console| {
        ask(&mut c.world, get("//tmp/m/@count")).expect("it is there").as_i64().expect("a number")
    };
    c.world.now = time + Span::from_secs(1000);
    c.world.turn();
    assert_eq!(count(&mut c), 2500, "the first 1000 are locked");
    pass(&mut c, 1);
    assert_eq!(count(&mut c), 1200);
    ask(&mut c.world, Command::AbortTransaction { transaction }).expect("it is there");
    pass(&mut c, 2);
    assert_eq!(count(&mut c), 0);
}

#[test]
fn copies_do_not_expire_unless_asked_to() {
    let mut c = Console::new();
    let attributes = timeout(10).with("expiration_time", "2100-01-02T03:04:05Z");
    create(&mut c, "file", "//tmp/f", attributes);
    let md5 = "900150983cd24fb0d6963f7d28e17f72";
    let written = Command::FileWritten {
        path: path("//tmp/f"),
        blob: 1,
        size: 3,
        md5: Some(md5.to_owned()),
        behind: None,
    };
    ask(&mut c.world, written).expect("a file");
    for (name, preserve_expiration_time, preserve_expiration_timeout) in
        [("plain", false, false), ("time", true, false), ("timeout", false, true)]
    {
        let copy = Command::CopyMove {
            source: path("//tmp/f"),
            destination: path(&format!("//tmp/{name}")),
            remove_source: false,
            options: CopyOptions {
                preserve_expiration_time,
                preserve_expiration_timeout,
                ..CopyOptions::default()
            },
        };
        ask(&mut c.world, copy).expect("it can be copied");
        let has = ["time", "timeout"].map(|what| exists(&mut c, &format!("//tmp/{name}/@expiration_{what}")));
        assert_eq!(has, [preserve_expiration_time, preserve_expiration_timeout]);
    }
    for (cache, preserve_expiration_timeout) in [("//tmp/long", false), ("//tmp/short", true)] {
        create(&mut c, "map_node", cache, Map::new());
        let (path, md5) = (path("//tmp/f"), md5.to_owned());
        let cache_path = self::path(cache);
        let put = Command::PutFileToCache { path, md5, cache_path, preserve_expiration_timeout };
        ask(&mut c.world, put).expect("it is the file");
    }
    pass(&mut c, 30);
    let there = ["f", "plain", "time", "timeout"].map(|name| exists(&mut c, &format!("//tmp/{name}")));
    assert_eq!(there, [false, true, true, false]);
    let cached = |c: &mut Console, cache: &str| {
        let command = Command::GetFileFromCache { md5: md5.to_owned(), cache_path: path(cache) };
        !ask(&mut c.world, command).expect("an answer").as_str().expect("a path").is_empty()
    };
    assert!(cached(&mut c, "//tmp/long") && !cached(&mut c, "//tmp/short"));
}

#[test]
fn bad_values_are_refused() {
    let mut c = Console::new();
    create(&mut c, "table", "//tmp/t", Map::new());
    let mut refused = |command: Command, words: &[&str]| {
        let failure = ask(&mut c.world, command).expect_err("a bad value").to_string();
        assert!(words.iter().all(|word| failure.contains(word)), "{failure}");
    };
    refused(
        set("//tmp/t/@expiration_timeout", (-5).into()),
        &["//tmp/t/@expiration_timeout", "-5", "milliseconds"],
    );
    refused(set("//tmp/t/@expiration_time", "soon".into()), &["expiration_time", "soon", "1970"]);
    let attributes = yson::map! {"mine" => 1, "expiration_timeout" => 0};
    refused(Command::MultisetAttributes { path: path("//tmp/t"), attributes }, &["expiration_timeout", "0"]);
    for at in ["/", "//sys", "//tmp", "//sys/users/root"] {
        refused(set(&format!("{at}/@expiration_timeout"), 5.into()), &["expiration_timeout", "5", "system"]);
    }
    assert!(!exists(&mut c, "//tmp/t/@mine"), "all or nothing");
}

/// Else whoever may write could remove.
#[test]
fn who_may_not_remove_may_not_say_when() {
    let mut world = World::new(|config| config.access_control = true);
    let user = made("user", None, yson::map! {"name" => "bob"}, false);
    ask(&mut world, user).expect("a new user");
    ask(&mut world, make("map_node", "//tmp/m/inner", Map::new())).expect("a good node");
    let acl = yson::parse(b"[{action=deny;subjects=[bob];permissions=[remove]}]").expect("a list");
    ask(&mut world, set("//tmp/m/inner/@acl", acl)).expect("a good list");
    let mut as_bob = |command: Command| world.ask("bob", command).expect("an answer").map(drop);
    let end = || set("//tmp/m/@expiration_timeout", 1000.into());
    assert_eq!(as_bob(end()).expect_err("not what is below").code, code::ACCESS_DENIED);
    let attributes = yson::map! {"expiration_timeout" => 1000};
    let many = Command::MultisetAttributes { path: path("//tmp/m"), attributes };
    assert_eq!(as_bob(many).expect_err("not what is below").code, code::ACCESS_DENIED);
    as_bob(set("//tmp/m/@mine", 1.into())).expect("he may write");
    as_bob(make("table", "//tmp/own", timeout(1000))).expect("his own");
    ask(&mut world, end()).expect("root may");
    let cancel =
        Command::Remove { path: path("//tmp/m/@expiration_timeout"), recursive: false, force: false };
    assert!(world.ask("bob", cancel).expect("an answer").is_ok(), "to keep it is to write");
}
