//! Large values are answered as they are, without a copy.

use crate::console::Console;
use kernel::{Body, Command};
use yson::ypath::YPath;
use yson::{Map, Value};

fn path(text: &str) -> YPath {
    YPath::parse(text.as_bytes()).expect("a good path")
}

fn ask(c: &mut Console, command: Command) -> Body {
    c.world.ask("root", command).expect("an answer").expect("it is there")
}

fn set(c: &mut Console, at: &str, value: Value) {
    ask(c, Command::Set { path: path(at), value, recursive: false, force: false });
}

fn get(c: &mut Console, at: &str) -> Body {
    ask(c, Command::Get { path: path(at), attributes: Vec::new(), max_size: None, fields: None })
}

/// S14. Keys did not count, and the part of a document was copied whatever its size: in both cases the thread of the kernel
/// copied the value for each of any number of questions, and nothing had counted it before.
#[test]
fn large_values_are_shared_wherever_their_bytes_are() {
    let mut c = Console::new();
    let create = Command::Create {
        object_type: "document".into(),
        path: Some(path("//tmp/d")),
        attributes: Map::new(),
        recursive: false,
        ignore_existing: false,
        force: false,
        ignore_type_mismatch: false,
        lock_existing: false,
    };
    ask(&mut c, create);
    let keys: Value = (0..40).map(|i| (format!("{i:02000}"), Value::Entity)).collect::<Map>().into();
    let text = Value::from("x".repeat(80_000));
    let value = yson::map! {"keys" => keys.clone(), "list" => vec![text.clone()], "small" => 1};
    set(&mut c, "//tmp/d", value.clone().into());
    set(&mut c, "//tmp/@keys", yson::map! {"in" => keys.clone()}.into());
    for (at, expected) in [
        ("//tmp/d", Value::from(value)),
        ("//tmp/d/keys", keys.clone()),
        ("//tmp/d/list/0", text),
        ("//tmp/@keys", yson::map! {"in" => keys.clone()}.into()),
        ("//tmp/@keys/in", keys),
    ] {
        match get(&mut c, at) {
            Body::Shared(shared) => assert!(*shared.value() == expected, "{at}"),
            other => panic!("{at} was copied: {other:?}"),
        }
    }
    for (at, expected) in [("//tmp/d/small", Value::from(1)), ("//tmp/d/keys/@", Map::new().into())] {
        match get(&mut c, at) {
            Body::Value(value) => assert_eq!(value, expected, "{at}"),
            other => panic!("{at}: {other:?}"),
        }
    }
}
