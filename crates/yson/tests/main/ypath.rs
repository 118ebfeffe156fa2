//! Paths: grammar, canonical text, suffixes.

use yson::ypath::{MAX_KEY_LENGTH, MAX_STEPS, Root, Step, YPath, YPathError, escape_literal};
use yson::{Map, Value, map};

fn child(key: &str) -> Step {
    Step::Child(key.as_bytes().to_vec())
}
fn attribute(name: &str) -> Step {
    Step::Attribute(name.as_bytes().to_vec())
}

#[test]
fn steps_and_canonical_text() {
    let check = |text: &str, steps: &[Step], canonical: &str| {
        let path = YPath::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!((&path.root, &path.steps[..]), (&Root::Tree, steps), "{text}");
        assert_eq!(path.text(), canonical);
        assert_eq!(YPath::parse(canonical.as_bytes()).as_ref(), Ok(&path));
    };
    check("/", &[], "/");
    check("//tmp", &[child("tmp")], "//tmp");
    check("//tmp/a b", &[child("tmp"), child("a b")], "//tmp/a b");
    check("//@", &[Step::AllAttributes], "//@");
    check("/&/@type", &[Step::NoFollow, attribute("type")], "/&/@type");
    check("//a/@", &[child("a"), Step::AllAttributes], "//a/@");
    check("//a/@b/c/0", &[child("a"), attribute("b"), child("c"), child("0")], "//a/@b/c/0");
    check("//a&/@target_path", &[child("a"), Step::NoFollow, attribute("target_path")], "//a&/@target_path");
    check("//a/@acl/end", &[child("a"), attribute("acl"), Step::ListEnd], "//a/@acl/end");
    check("//a/begin", &[child("a"), Step::ListBegin], "//a/begin");
    check("//a/before:-1", &[child("a"), Step::ListBefore(-1)], "//a/before:-1");
    check("//a/after:12", &[child("a"), Step::ListAfter(12)], "//a/after:12");
    check("//a/after:012", &[child("a"), child("after:012")], "//a/after:012");
    check("//a/before:", &[child("a"), child("before:")], "//a/before:");
    check("//a/\\x65nd", &[child("a"), child("end")], "//a/\\x65nd");
    check("//a/@end", &[child("a"), attribute("end")], "//a/@end");
    check("//a/*", &[child("a"), Step::AllChildren], "//a/*");
    check("//a/@*", &[child("a"), Step::AllUserAttributes], "//a/@*");
    check("//ops/\\*name", &[child("ops"), child("*name")], "//ops/\\*name");
    check("//\\\\\\/\\@\\&\\[\\{\\*", &[child("\\/@&[{*")], "//\\\\\\/\\@\\&\\[\\{\\*");
    check("//пул", &[child("пул")], "//\\xd0\\xbf\\xd1\\x83\\xd0\\xbb");
    check("//\\xD0\\xbf", &[child("п")], "//\\xd0\\xbf");
    check("//a]}=;#<>", &[child("a]}=;#<>")], "//a]}=;#<>");
    check("  //a", &[child("a")], "//a");
}

#[test]
fn objects_by_id() {
    let path = YPath::parse(b"#1-A-0003e8-ffffffff/@state").unwrap();
    assert_eq!(path.root, Root::Object("1-A-0003e8-ffffffff".to_owned()));
    assert_eq!(path.steps, [attribute("state")]);
    assert_eq!(path.text(), "#1-A-0003e8-ffffffff/@state");
    for bad in ["#", "#1-2-3", "#1-2-3-4-5", "#1-2-3-", "#1-2-3-123456789", "#x-1-1-1", "#1-2-3-4x"] {
        assert!(YPath::parse(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn refusals_name_the_place() {
    let check = |text: &str, expected: &str| {
        assert_eq!(YPath::parse(text.as_bytes()).unwrap_err().to_string(), expected);
    };
    let wanted = |path: &str, expected: &str, found: &str, at: usize| {
        format!("cannot parse path \"{path}\": expected {expected}, found {found} at offset {at}")
    };
    let root = "a path that starts with `/` or `#`";
    let key = "a key (empty keys are not allowed)";
    check("", &wanted("", root, "end of input", 0));
    check("tmp", &wanted("tmp", root, "`t`", 0));
    check("//", &wanted("//", key, "end of input", 2));
    check("//a/", &wanted("//a/", key, "end of input", 4));
    check("//a//b", &wanted("//a//b", key, "`/`", 4));
    check("//a/&", &wanted("//a/&", key, "`&`", 4));
    check("//a/@/b", &wanted("//a/@/b", "an attribute name or the end of the path after `/@`", "`/`", 5));
    check("//a/*/b", &wanted("//a/*/b", "the end of the path after `*`", "`/`", 5));
    check("//a@b", &wanted("//a@b", "no unescaped `@` or `*` inside a key (write `\\@`, `\\*`)", "`@`", 3));
    check("//a\\q", &wanted("//a\\\\q", "an escape: `\\` and one of `\\/@&[{*`, or `\\xHH`", "`\\\\q`", 3));
    check("/a", &wanted("/a", "`/`, `&`, `{`, `[` or the end of the path", "`a`", 1));
    check("<a=1>", &wanted("<a=1>", root, "end of input", 5));
    check("<a>//b", &wanted("<a>//b", "`=` after a key", "`>`", 2));
    for bad in ["//a\\", "//a\\x4", "//a\\xg0", "//a&b", "//a/**", "//a/@@b", "<a=1", "//a/@*/b"] {
        assert!(YPath::parse(bad.as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn keys_have_a_length() {
    let path = |n: usize| format!("//a/{}", "x".repeat(n));
    assert!(YPath::parse(path(MAX_KEY_LENGTH).as_bytes()).is_ok());
    let error = YPath::parse(path(MAX_KEY_LENGTH + 1).as_bytes());
    assert_eq!(error, Err(YPathError::KeyTooLong { length: 4097, offset: 4 }));
}

#[test]
fn walks_have_a_length() {
    let path = |n: usize| format!("/{}", "/a".repeat(n));
    assert!(YPath::parse(path(MAX_STEPS).as_bytes()).is_ok());
    assert_eq!(YPath::parse(path(MAX_STEPS + 1).as_bytes()), Err(YPathError::TooManySteps { offset: 513 }));
    assert!(YPath::parse(format!("{}[#1:#2]", path(MAX_STEPS)).as_bytes()).is_ok());
}

#[test]
fn suffixes_are_taken_apart_as_by_the_client() {
    let mut seen = 0;
    for line in include_str!("../data/ypath_suffix.txt").lines().filter(|l| !l.starts_with("# ")) {
        let (text, expected) = line.split_once(" => ").expect(line);
        let mut got = YPath::parse(text.as_bytes()).map(|p| p.attributes);
        match (expected, &mut got) {
            ("error", Err(_)) => {}
            (_, Ok(attributes)) => {
                attributes.sort_keys();
                let text = yson::to_text(&Value::Map(attributes.clone()));
                assert_eq!(String::from_utf8_lossy(&text), expected, "{line}");
            }
            (_, Err(e)) => panic!("{line}: {e}"),
        }
        seen += 1;
    }
    assert!(seen > 45, "the corpus is there: {seen}");
}

#[test]
fn a_parameter_may_carry_attributes_outside_and_inside() {
    let value = Value::from("<append=%true; a=2>//t{x}").with_attributes(map! {"a" => 1i64, "b" => "x"});
    let path = YPath::from_value(&value).unwrap();
    assert_eq!(path.attributes, map! {"a" => 2i64, "b" => "x", "append" => true, "columns" => vec!["x"]});
    assert_eq!(path.text(), "//t");
    assert_eq!(path.to_string(), "<\"a\"=2;\"b\"=\"x\";\"append\"=%true;\"columns\"=[\"x\";];>//t");
    assert_eq!(YPath::from_value(&Value::Int(1)), Err(YPathError::NotAString { found: "int64" }));
}

#[test]
fn keys_and_indices_of_steps() {
    let key = |s: &Step| s.key().map(|k| String::from_utf8_lossy(&k).into_owned());
    for (step, expected) in [
        (child("a"), Some("a")),
        (Step::ListBegin, Some("begin")),
        (Step::ListEnd, Some("end")),
        (Step::ListBefore(-3), Some("before:-3")),
        (Step::ListAfter(0), Some("after:0")),
        (attribute("a"), None),
        (Step::NoFollow, None),
    ] {
        assert_eq!(key(&step).as_deref(), expected);
    }
    for (text, expected) in [
        ("0", Some(0)),
        ("17", Some(17)),
        ("-1", Some(-1)),
        ("-0", None),
        ("01", None),
        ("+1", None),
        ("a", None),
        ("", None),
    ] {
        assert_eq!(child(text).index(), expected, "{text}");
    }
    assert_eq!(child("99999999999999999999").index(), None);
    assert_eq!(Step::ListEnd.index(), None);
}

#[test]
fn building_and_escaping() {
    let path = YPath::root().child("sys").child("pool/s").attribute("x");
    assert_eq!(path.text(), "//sys/pool\\/s/@x");
    assert!(YPath::root().is_root() && !path.is_root());
    assert_eq!(escape_literal("a/b@c\n\x7f"), "a\\/b\\@c\\x0a\\x7f");
    assert_eq!(path.to_value(), Value::from("//sys/pool\\/s/@x"));
    let with_attributes = YPath { attributes: map! {"a" => 1i64}, ..YPath::root() };
    assert_eq!(with_attributes.to_value().attribute("a"), Some(&Value::Int(1)));
    assert_eq!("//a".parse::<YPath>(), Ok(YPath { attributes: Map::new(), ..YPath::root().child("a") }));
}
