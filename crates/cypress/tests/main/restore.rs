//! Records and edits. That records restore to the same tree is checked by the console everywhere.

use crate::console::Console;
use cypress::Context;
use cypress::{Body, Chunk, Last, Layout, Limits, RestoreError, SetOptions, TableContent, Tree};
use vocab::Failure;
use yson::Value;

#[test]
fn an_edit_is_all_or_nothing() {
    let mut console = Console::new();
    let a = console.place("//tmp/a", Last::Follow).expect("a place");
    let b = console.place("//tmp/b", Last::Follow).expect("a place");
    let failure = console.edit(|edit| {
        edit.set(&a, Value::from(1), SetOptions::default())?;
        assert!(edit.child(a.node, b"a").is_some(), "an edit sees what it did");
        Err::<(), _>(Failure::new("a validator says no"))
    });
    assert!(failure.is_err());
    assert_eq!(console.run("exists //tmp/a"), Ok("false".to_owned()));
    // One command may fail and another be tried in its place: nothing of the first remains.
    let nested = yson::parse(b"{x=1;y=#}").expect("a value");
    console
        .edit(|edit| {
            edit.set(&a, nested, SetOptions::default()).expect_err("no node for an entity");
            edit.set(&b, Value::from(2), SetOptions::default())
        })
        .expect("the second way is good");
    assert_eq!(console.run("list //tmp"), Ok(r#"["b";]"#.to_owned()));
}

#[test]
fn a_place_can_be_taken_by_an_earlier_command_of_the_same_edit() {
    let mut console = Console::new();
    let place = console.place("//tmp/a", Last::Follow).expect("a place");
    let failure = console.edit(|edit| {
        edit.set(&place, Value::from(1), SetOptions::default())?;
        edit.set(&place, Value::from(2), SetOptions::default())
    });
    assert_eq!(failure.map_err(|f| f.code), Err(501));
}

#[test]
fn a_failed_replacement_brings_the_old_node_back() {
    let mut console = Console::new();
    // The order in which nodes are put back follows their ids, so one try would prove little.
    for _ in 0..20 {
        console.say("create table //tmp/a -- force=%true");
        let line = "create map_node //tmp/a -- force=%true;attributes={id=x}";
        assert_eq!(console.run(line).map_err(|f| f.code), Err(1));
        assert_eq!(console.run("get //tmp/a/@type"), Ok(r#""table""#.to_owned()));
    }
}

#[test]
fn revisions_count_edits_that_change_something() {
    let mut console = Console::new();
    let before = console.tree.revision();
    console.edit(|_| Ok(())).expect("nothing to go wrong");
    assert_eq!(console.tree.revision(), before);
    console.say("set //tmp/a {b=1;c=2}");
    assert_eq!(console.tree.revision(), before + 1);
}

#[test]
fn the_layout_is_made_once() {
    let mut console = Console::new();
    console.say("set //sys/scheduler/config/x 5");
    let context = Context { now: console.now, user: "root", ids: &mut console.ids };
    let done = console.tree.ensure_layout(context, &Layout::default()).expect("a sound layout");
    assert_eq!(done.changes, []);
    assert_eq!(console.run("get //sys/scheduler/config"), Ok(r#"{"x"=5;}"#.to_owned()));
    // Old clusters get what new versions bring.
    console.tree = Tree::restore(&console.records, Limits::default()).expect("good records");
    let layout = Layout { cluster_name: "north".to_owned(), ..Layout::default() };
    let context = Context { now: console.now, user: "root", ids: &mut console.ids };
    let done = console.tree.ensure_layout(context, &layout).expect("a sound layout");
    assert_eq!(done.changes.len(), 1);
    assert_eq!(console.run("get //sys/@cluster_name"), Ok(r#""north""#.to_owned()));
}

#[test]
fn clients_must_not_think_that_they_are_local() {
    let mut console = Console::new();
    for name in ["local_mode_fqdn", "local_mode_proxy_address"] {
        assert_eq!(console.run(&format!("get //sys/@{name}")).map_err(|f| f.code), Err(500));
    }
}

fn chunk(blob: u64, rows: u64) -> Chunk {
    let bounds = Some((vec![1.into()], vec!["x".into()]));
    Chunk { blob, size: 100, rows, row_bytes: 50, weight: 10, bounds }
}

#[test]
fn tables_restore() {
    let mut console = Console::new();
    console.say("create table //tmp/t -- attributes={schema=[{name=a;type=int64}]}");
    let id = console.place("//tmp/t", Last::Follow).expect("a table").node;
    let content = TableContent {
        chunks: vec![chunk(3, 7), chunk(4, 5), chunk(3, 7)],
        sorted_by: vec!["a".to_owned()],
        schema: yson::parse(b"[{name=a;type=int64;sort_order=ascending}]").expect("a schema"),
    };
    console.edit(|edit| edit.set_table_content(id, content)).expect("a table");
    assert_eq!(console.run("get //tmp/t/@sorted_by"), Ok(r#"["a";]"#.to_owned()));
    assert_eq!(console.run("get //tmp/t/@schema_mode"), Ok(r#""strong""#.to_owned()));
    assert_eq!(console.run("get //tmp/t/@data_weight"), Ok("30".to_owned()));
    assert_eq!(console.run("get //tmp/t/@row_count"), Ok("19".to_owned()));
    assert_eq!(console.run("get //tmp/t/@chunk_count"), Ok("3".to_owned()));
    assert_eq!(console.run("get //tmp/t/@compressed_data_size"), Ok("300".to_owned()));
    console.say("copy //tmp/t //tmp/u");
    console.say("remove //tmp/u");
    assert_eq!(console.released, [0; 0]);
    console.edit(|edit| edit.set_table_content(id, TableContent::default())).expect("a table");
    assert_eq!(console.released, [3, 4]);
    assert!(matches!(console.tree.node(id).map(|n| &n.body), Some(Body::Table(t)) if t.row_count() == 0));
}

#[test]
fn broken_records_are_refused() {
    let mut console = Console::new();
    console.say("set //tmp/a {b=1}");
    let good = console.records.clone();
    let restore = |records| Tree::restore::<Vec<u8>, Vec<u8>>(records, Limits::default());
    assert!(restore(good.clone()).is_ok());

    let mut records = good.clone();
    records.insert(vec![1, 2, 3], vec![]);
    assert_eq!(restore(records), Err(RestoreError::Key { length: 3 }));

    let root = console.tree.root();
    let mut records = good.clone();
    records.remove(&root.0.to_bytes()[..]);
    assert_eq!(restore(records), Err(RestoreError::Roots { count: 0 }));

    let a = console.place("//tmp/a", Last::Follow).expect("a node").node;
    let mut records = good.clone();
    records.remove(&a.0.to_bytes()[..]);
    assert!(matches!(restore(records), Err(RestoreError::Parent { parent, .. }) if parent == a));

    let key = a.0.to_bytes().to_vec();
    for broken in [&b""[..], b"5", b"{type=map_node}", b"{type=unheard_of}", b"{"] {
        let mut records = good.clone();
        records.insert(key.clone(), broken.to_vec());
        assert!(matches!(restore(records), Err(RestoreError::Record { id, .. }) if id == a));
    }
    // A field that a newer version wrote.
    let mut record = yson::parse(&good[&key]).expect("a record");
    record.as_map_mut().expect("a map").insert("color", "red");
    let mut records = good.clone();
    records.insert(key, yson::to_binary(&record));
    let error = restore(records).expect_err("an unknown field");
    assert!(error.to_string().contains("unknown field \"color\""), "{error}");
}

/// Work grows with what is changed, not with its square: that would be felt here.
#[test]
fn large_maps_and_lists() {
    let limits = Limits { max_nodes_per_request: 100_000, ..Limits::default() };
    let mut console = Console::with_limits(limits);
    let place = console.place("//tmp/a", Last::Follow).expect("a place");
    let many = 8_000;
    let items: Vec<Value> =
        (0..many).map(|i| Value::from(i).with_attributes(yson::map! {"k" => i})).collect();
    let map: yson::Map = (0..many).map(|i| (format!("key{i}"), i)).collect();
    let value = yson::map! {"list" => Value::List(items), "map" => map};
    console.edit(|edit| edit.set(&place, value.into(), SetOptions::default())).expect("a large value");
    assert_eq!(console.tree.subtree(place.node).len(), 4 + 2 * many as usize);
    assert_eq!(console.run("remove //tmp/a/list/*"), Ok("ok".to_owned()));
    let options = cypress::RemoveOptions { recursive: true, force: false };
    let place = console.place("//tmp/a", Last::Stay).expect("a place");
    console.edit(|edit| edit.remove(&place, options)).expect("nothing holds it");
    assert_eq!(console.run("get //tmp"), Ok("{}".to_owned()));
}
