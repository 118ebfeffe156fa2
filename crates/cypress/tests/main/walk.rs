//! Inside of values: what mounts that are "just YSON" rely on.

use cypress::walk::{value_exists, value_get, value_list, value_remove, value_set};
use yson::ypath::{Step, YPath};
use yson::{Value, to_text};

const SAMPLE: &str = r#"{a={b=1;c=[10;20;<n=5>30]};e=#;s=<x={y=2}>text}"#;

fn steps(path: &str) -> Vec<Step> {
    YPath::parse(format!("/{path}").as_bytes()).expect("a good path").steps
}

fn sample() -> Value {
    yson::parse(SAMPLE.as_bytes()).expect("a good value")
}

fn show(value: &Value) -> String {
    String::from_utf8_lossy(&to_text(value)).into_owned()
}

#[test]
fn get() {
    let ok = |text: &str| Ok(text.to_owned());
    let fails = |text: &str| Err(text.to_owned());
    for (path, expected) in [
        ("", ok(r#"{"a"={"b"=1;"c"=[10;20;<"n"=5;>30;];};"e"=#;"s"=<"x"={"y"=2;};>"text";}"#)),
        ("/a/b", ok("1")),
        ("/a/c/1", ok("20")),
        ("/a/c/-1", ok(r#"<"n"=5;>30"#)),
        ("/a/c/-1/@n", ok("5")),
        ("/a/c/-1/@", ok(r#"{"n"=5;}"#)),
        ("/a/@", ok("{}")),
        ("/s/@x/y", ok("2")),
        ("/e", ok("#")),
        ("/z", fails(r#"Node //m has no child with key "z""#)),
        ("/a/z/q", fails(r#"Node //m/a has no child with key "z""#)),
        ("/a/c/3", fails("Node //m/a/c has no child with index 3: it has 3 items")),
        ("/a/c/x", fails("Node //m/a/c has no child with index x: it has 3 items")),
        ("/a/b/z", fails(r#"//m/a/b cannot have children: it is of type "int64""#)),
        ("/s/@q", fails(r#"Attribute "q" of //m/s is not found"#)),
        ("/a/@q/r", fails(r#"Attribute "q" of //m/a is not found"#)),
    ] {
        let got = value_get(&sample(), "//m", &steps(path)).map(|v| show(&v));
        assert!(got.as_ref().err().is_none_or(|f| f.code == 500), "{path}");
        assert_eq!(got.map_err(|f| f.message), expected, "{path}");
        assert_eq!(value_exists(&sample(), &steps(path)), expected.is_ok(), "{path}");
    }
}

#[test]
fn list() {
    let keys = |path: &str| {
        value_list(&sample(), "//m", &steps(path))
            .map(|keys| keys.iter().map(|k| String::from_utf8_lossy(k).into_owned()).collect::<Vec<_>>())
            .map_err(|f| f.code)
    };
    assert_eq!(keys(""), Ok(vec!["a".into(), "e".into(), "s".into()]));
    assert_eq!(keys("/s/@"), Ok(vec!["x".into()]));
    assert_eq!(keys("/a/c"), Err(1));
    assert_eq!(keys("/q"), Err(500));
}

#[test]
fn set() {
    for (path, recursive, expected) in [
        ("/a/b", false, Ok(r#"{"b"=7;}"#)),
        ("/a/n", false, Ok(r#"{"b"=1;"n"=7;}"#)),
        ("/a/n/m", false, Err(500)),
        ("/a/n/m", true, Ok(r#"{"b"=1;"n"={"m"=7;};}"#)),
        ("/a/b/m", true, Err(500)),
        ("/a/@k", false, Ok(r#"<"k"=7;>{"b"=1;}"#)),
        ("/a/b/@k", false, Ok(r#"{"b"=<"k"=7;>1;}"#)),
        ("/a/@", false, Err(1)),
        ("/a/*", false, Err(1)),
    ] {
        let mut value = yson::parse(b"{a={b=1}}").expect("a good value");
        let got = value_set(&mut value, "//m", &steps(path), Value::from(7), recursive);
        let got = got.map(|()| value.get("a").map(show).unwrap_or_default()).map_err(|f| f.code);
        assert_eq!(got, expected.map(str::to_owned), "{path}");
    }
    for (path, expected) in [
        ("/begin", Ok("[7;1;2;]")),
        ("/end", Ok("[1;2;7;]")),
        ("/before:1", Ok("[1;7;2;]")),
        ("/after:-1", Ok("[1;2;7;]")),
        ("/0", Ok("[7;2;]")),
        ("/-1", Ok("[1;7;]")),
        ("/2", Err(500)),
        ("/after:2", Err(500)),
    ] {
        let mut value = yson::parse(b"[1;2]").expect("a good value");
        let got = value_set(&mut value, "//m", &steps(path), Value::from(7), false);
        assert_eq!(got.map(|()| show(&value)).map_err(|f| f.code), expected.map(str::to_owned), "{path}");
    }
}

#[test]
fn remove() {
    for (path, force, expected) in [
        ("/a/b", false, Ok(r#"{"a"={"l"=<"k"=1;>[1;2;];};}"#)),
        ("/a/l/0", false, Ok(r#"{"a"={"b"=1;"l"=<"k"=1;>[2;];};}"#)),
        ("/a/l/*", false, Ok(r#"{"a"={"b"=1;"l"=<"k"=1;>[];};}"#)),
        ("/a/*", false, Ok(r#"{"a"={};}"#)),
        ("/a/l/@k", false, Ok(r#"{"a"={"b"=1;"l"=[1;2;];};}"#)),
        ("/a/l/@*", false, Ok(r#"{"a"={"b"=1;"l"=[1;2;];};}"#)),
        ("/a/l/@q", false, Err(500)),
        ("/a/q", false, Err(500)),
        ("/q/r", false, Err(500)),
        ("/a/q", true, Ok(r#"{"a"={"b"=1;"l"=<"k"=1;>[1;2;];};}"#)),
        ("/q/r", true, Ok(r#"{"a"={"b"=1;"l"=<"k"=1;>[1;2;];};}"#)),
        ("", false, Err(1)),
    ] {
        let mut value = yson::parse(b"{a={b=1;l=<k=1>[1;2]}}").expect("a good value");
        let got = value_remove(&mut value, "//m", &steps(path), force);
        assert_eq!(got.map(|_| show(&value)).map_err(|f| f.code), expected.map(str::to_owned), "{path}");
    }
}
