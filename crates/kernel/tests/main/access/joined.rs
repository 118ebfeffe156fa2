//! `concatenate` of files: who may, and what was changed while the edge joined contents.

use super::*;
use kernel::{FileParts, Joined};

type Parts = &'static [(u64, u64)];

/// Of `//tmp/a` and `//tmp/b`.
fn concatenate(append: bool, joined: Option<(Parts, u64)>) -> Command {
    let joined = joined.map(|(of, blob)| {
        Box::new(Joined { of: of.to_vec(), blob, size: of.iter().map(|(_, size)| size).sum() })
    });
    let sources = vec![path("//tmp/a"), path("//tmp/b")];
    Command::Concatenate { sources, destination: path("//tmp/all"), append, joined }
}

/// A file `a` with blob 1 and a file `b` with blob 2, of as many bytes, and an empty one for all.
fn with_files() -> Guarded {
    let mut guarded = Guarded::new();
    for name in ["a", "b", "all"] {
        guarded.done("root", create("file", Some(&format!("//tmp/{name}")), "{}"));
    }
    write(&mut guarded, "a", 1);
    write(&mut guarded, "b", 2);
    guarded
}

fn write(guarded: &mut Guarded, name: &str, blob: u64) {
    let path = path(&format!("//tmp/{name}"));
    guarded.done(
        "root",
        Command::FileWritten { path, blob, size: blob, md5: Some("0".repeat(32)), behind: None },
    );
}

fn parts(answer: Result<Body, Failure>) -> Vec<(u64, u64)> {
    match answer {
        Ok(Body::FilesToJoin(FileParts { contents, .. })) => contents,
        other => panic!("nothing to join: {other:?}"),
    }
}

#[test]
fn what_was_joined_is_taken_only_of_what_is_there() {
    let mut guarded = with_files();
    assert_eq!(parts(guarded.ask("root", concatenate(false, None))), [(1, 1), (2, 2)]);
    write(&mut guarded, "a", 3);
    let late = concatenate(false, Some((&[(1, 1), (2, 2)], 4)));
    assert_eq!(parts(guarded.ask("root", late)), [(3, 3), (2, 2)]);
    let joined = concatenate(false, Some((&[(3, 3), (2, 2)], 5)));
    assert_eq!(guarded.done("root", joined.clone()).as_u64(), Some(5), "the blob that was taken");
    assert_eq!(guarded.done("root", get("//tmp/all/@uncompressed_data_size")).as_u64(), Some(5));
    assert_eq!(parts(guarded.ask("root", concatenate(true, None))), [(5, 5), (3, 3), (2, 2)]);
    write(&mut guarded, "all", 6);
    let behind = concatenate(true, Some((&[(5, 5), (3, 3), (2, 2)], 7)));
    assert_eq!(parts(guarded.ask("root", behind)), [(6, 6), (3, 3), (2, 2)]);
    guarded.done("root", get("//tmp/all/@md5"));
    guarded.done("root", joined);
    assert!(guarded.ask("root", get("//tmp/all/@md5")).is_err(), "nobody knows it");
}

#[test]
fn who_appends_reads_the_sources_and_not_the_destination() {
    let mut guarded = with_files();
    let list =
        "[{action=deny;subjects=[bob];permissions=[read]};{action=allow;subjects=[bob];permissions=[write]}]";
    guarded.done("root", set("//tmp/all/@acl", list));
    assert_eq!(parts(guarded.ask("bob", concatenate(true, None))), [(0, 0), (1, 1), (2, 2)]);
    guarded.done("root", set("//tmp/a/@acl", list));
    let joined = concatenate(true, Some((&[(0, 0), (1, 1), (2, 2)], 3)));
    for command in [concatenate(true, None), joined] {
        assert_eq!(guarded.ask("bob", command).expect_err("not to be read").code, 901);
    }
}

/// Names and types are told, and what is expected.
#[test]
fn files_and_tables_are_not_mixed() {
    let mut guarded = with_files();
    guarded.done("root", remove("//tmp/b"));
    guarded.done("root", create("table", Some("//tmp/b"), "{}"));
    let message =
        |guarded: &mut Guarded| guarded.ask("root", concatenate(false, None)).expect_err("refused").message;
    assert_eq!(message(&mut guarded), "//tmp/b is of type table, expected a file");
    for (kind, expected) in [
        ("table", "//tmp/a is of type file, expected a table"),
        ("map_node", "//tmp/all is of type map_node, expected a file or a table"),
    ] {
        guarded.done("root", remove("//tmp/all"));
        guarded.done("root", create(kind, Some("//tmp/all"), "{}"));
        assert_eq!(message(&mut guarded), expected);
    }
}
