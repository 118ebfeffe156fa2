//! Any command on any path: it may be refused, with a code that users know, and never leaves
//! anything half done (the console checks that after every command).

use crate::console::Console;
use proptest::prelude::*;

fn path() -> impl Strategy<Value = String> {
    let step = prop::sample::select(vec![
        "/a",
        "/b",
        "/l",
        "/d",
        "/f",
        "/link",
        "/0",
        "/-1",
        "/7",
        "/begin",
        "/end",
        "/before:0",
        "/after:-1",
        "/@",
        "/@x",
        "/@acl",
        "/@value",
        "/@id",
        "/@opaque",
        "/@expiration_timeout",
        "/@expiration_time",
        "/*",
        "/@*",
        "&",
    ]);
    let root = prop::sample::select(vec!["//tmp", "//tmp", "//tmp", "//sys", "//sys/scheduler/orchid", "/"]);
    (root, prop::collection::vec(step, 0..5)).prop_map(|(root, steps)| format!("{root}{}", steps.concat()))
}

fn line() -> impl Strategy<Value = String> {
    let value = prop::sample::select(vec![
        "1",
        "-1",
        "2.5",
        "{}",
        "{a=1;b={a=#}}",
        "{a={b=1}}",
        "[]",
        "[1;{a=2}]",
        "#",
        "text",
        "<x=1>5",
        "<id=1>5",
        "%true",
    ]);
    let kind = prop::sample::select(vec![
        "map_node",
        "list_node",
        "document",
        "file",
        "table",
        "int64_node",
        "group",
    ]);
    let flags = prop::collection::vec(
        prop::sample::select(vec![
            "recursive",
            "force",
            "ignore_existing",
            "ignore_type_mismatch",
            "preserve_acl",
            "preserve_expiration_timeout",
        ]),
        0..3,
    )
    .prop_map(|flags| flags.iter().map(|f| format!("{f}=%true;")).collect::<String>());
    prop_oneof![
        path().prop_map(|p| format!("get {p}")),
        path().prop_map(|p| format!("list {p}")),
        path().prop_map(|p| format!("exists {p}")),
        (path(), value, flags.clone()).prop_map(|(p, v, f)| format!("set {p} {v} -- {f}")),
        (path(), kind, flags.clone()).prop_map(|(p, k, f)| format!("create {k} {p} -- {f}")),
        (path(), flags.clone()).prop_map(|(p, f)| format!("remove {p} -- {f}")),
        (path(), path(), flags.clone()).prop_map(|(a, b, f)| format!("copy {a} {b} -- {f}")),
        (path(), path(), flags.clone()).prop_map(|(a, b, f)| format!("move {a} {b} -- {f}")),
        (path(), path(), flags).prop_map(|(a, b, f)| format!("link {a} {b} -- {f}")),
        path().prop_map(|p| format!("multiset {p} {{x=1;y=2}}")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_command_does_half_of_anything(lines in prop::collection::vec(line(), 1..30)) {
        let mut console = Console::new();
        for setup in ["set //tmp/l [1;{a=2}]", "create document //tmp/d", "link //tmp/a //tmp/link -- force=%true"] {
            console.run(setup).expect("a good beginning");
        }
        for line in lines {
            if let Err(failure) = console.run(&line) {
                prop_assert!([1, 500, 501].contains(&failure.code), "{}: {:?}", line, failure);
                prop_assert!(!failure.message.is_empty() && !failure.message.contains('\n'), "{}", line);
            }
        }
    }
}
