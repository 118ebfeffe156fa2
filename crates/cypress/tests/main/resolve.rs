//! Paths to places (http-api.md 5.2).

use crate::console::{Console, ORCHID, check};
use cypress::{Last, Resolved};
use expect_test::expect;
use yson::ypath::{Step, YPath};

fn resolve(console: &Console, path: &str) -> Resolved {
    let path = YPath::parse(path.as_bytes()).expect("a good path");
    console.tree.resolve(&path, Last::Follow).expect("a path that leads somewhere")
}

#[test]
fn mounts_take_what_is_below_them() {
    let mut console = Console::new();
    let child = |s: &str| Step::Child(s.into());
    console.say("link //sys/scheduler/orchid //tmp/o");
    for (path, rest) in [
        ("//sys/scheduler/orchid", vec![]),
        ("//sys/scheduler/orchid/scheduler/nodes", vec![child("scheduler"), child("nodes")]),
        ("//sys/scheduler/orchid/@type", vec![Step::Attribute("type".into())]),
        ("//tmp/o/x/@y", vec![child("x"), Step::Attribute("y".into())]),
    ] {
        let Resolved::Mount(mounted) = resolve(&console, path) else { panic!("{path} is in a mount") };
        assert_eq!((mounted.mount, &mounted.rest), (ORCHID, &rest), "{path}");
        assert_eq!(console.tree.path(mounted.node), "//sys/scheduler/orchid");
    }
    // The tree still answers for attributes of the mount's root, if the owner wants that.
    let Resolved::Mount(mounted) = resolve(&console, "//sys/scheduler/orchid/@type") else { panic!() };
    let kind = console.tree.get(&mounted.as_place(), &Default::default()).expect("an attribute");
    assert_eq!(kind.as_str(), Some("orchid"));
    assert!(!console.tree.is_broken_link(console.place("//tmp/o&", Last::Stay).expect("a link").node));
}

#[test]
fn ids() {
    let mut console = Console::new();
    console.say("set //tmp/a {b=1}");
    let id = console.place("//tmp/a", Last::Follow).expect("a node").node;
    assert_eq!(console.run(&format!("get #{id}/b")), Ok("1".to_owned()));
    assert_eq!(console.run(&format!("get #{id}/@path")), Ok("\"//tmp/a\"".to_owned()));
    let Resolved::Foreign(foreign) = resolve(&console, "#1-2-103e8-4/@state") else { panic!() };
    assert_eq!(foreign.id.to_string(), "1-2-103e8-4");
    assert_eq!(foreign.rest, [Step::Attribute("state".into())]);
    let failure = console.run("get #1-2-3-4").expect_err("nobody knows it");
    assert_eq!(failure.code, 500);
    assert_eq!(console.run("exists #1-2-3-4"), Ok("false".to_owned()));
}

#[test]
fn keys_are_bytes() {
    check(
        r#"
        set //tmp/a\/b 1
        set //tmp/\@x\*\& 2
        set //tmp/ключ 3
        list //tmp
        get //tmp/a\/b/@path
        get //tmp/\@x\*\&/@path
        get //tmp/ключ/@path
        get //tmp/\xd0\xba\xd0\xbb\xd1\x8e\xd1\x87
        get //tmp//a
        "#,
        expect![[r#"
            set //tmp/a\/b 1
                ok
            set //tmp/\@x\*\& 2
                ok
            set //tmp/ключ 3
                ok
            list //tmp
                ["@x*&";"a/b";"\xD0\xBA\xD0\xBB\xD1\x8E\xD1\x87";]
            get //tmp/a\/b/@path
                "//tmp/a\\/b"
            get //tmp/\@x\*\&/@path
                "//tmp/\\@x\\*\\&"
            get //tmp/ключ/@path
                "//tmp/\\xd0\\xba\\xd0\\xbb\\xd1\\x8e\\xd1\\x87"
            get //tmp/\xd0\xba\xd0\xbb\xd1\x8e\xd1\x87
                3
            get //tmp//a
                1: cannot parse path "//tmp//a": expected a key (empty keys are not allowed), found `/` at offset 6
        "#]],
    );
}

#[test]
fn errors_carry_the_path() {
    let mut console = Console::new();
    for (line, path) in [
        ("get //tmp/zz", "//tmp/zz"),
        ("get //tmp/@zz", "//tmp/@zz"),
        ("create map_node //tmp", "//tmp"),
        ("set //tmp/@id 1", "//tmp/@id"),
        ("get //tmp/zz/y", "//tmp/zz"),
        ("remove //sys", "//sys"),
    ] {
        let failure = console.run(line).expect_err(line);
        assert_eq!(failure.attributes.get("path").and_then(|p| p.as_str()), Some(path), "{line}");
    }
}
