//! What may not be looked at gives nothing away: not by other commands, not by links, not by asking about it.

use super::*;

fn link(target: &str, at: &str, force: bool) -> Command {
    Command::Link {
        target: path(target),
        link: path(at),
        recursive: false,
        ignore_existing: false,
        force,
        attributes: Map::new(),
    }
}

fn make_unless_there(at: &str) -> Command {
    match create("document", Some(at), "{}") {
        Command::Create { object_type, path, attributes, recursive, force, ignore_type_mismatch, .. } => {
            Command::Create {
                object_type,
                path,
                attributes,
                recursive,
                ignore_existing: true,
                force,
                ignore_type_mismatch,
            }
        }
        other => other,
    }
}

fn permission(user: &str, at: &str) -> Command {
    Command::CheckPermission { user: user.into(), permission: "read".into(), path: path(at) }
}

/// What is closed to `bob` and is there answers as what is closed and is not.
#[test]
fn what_is_there_answers_as_what_is_not() {
    let mut guarded = Guarded::new();
    type Ask = fn(&str) -> Command;
    let asks: [(&str, Ask); 4] = [
        ("no attributes", |at| multiset(at, "{}")),
        ("a link", |at| link(at, "//tmp/plain", false)),
        ("his own permission", |at| permission("bob", at)),
        ("somebody's permission", |at| permission("ann", at)),
    ];
    for (name, ask) in asks {
        let mut answer = |at: &str| match guarded.ask("bob", ask(at)) {
            Ok(Body::Value(value)) => format!("{value:?}"),
            Ok(_) => "something".to_owned(),
            Err(failure) => format!("{}", failure.code),
        };
        let there = answer("//home/ann/secret");
        assert_eq!(there, answer("//home/ann/nothing"), "{name}");
        assert_eq!(there, answer("//home/ann/secret/inside"), "{name}");
        assert!(!there.contains("home"), "{name}: {there}");
    }
    // Who may look is told as before.
    assert_eq!(guarded.ask("ann", permission("bob", "//home/ann/nothing")).expect_err("missing").code, 500);
    let told = guarded.done("ann", permission("ann", "//home/ann/secret"));
    assert_eq!(told.get("action").and_then(Value::as_str), Some("allow"));
    assert_eq!(told.get("object_name").and_then(Value::as_str), Some("//home/ann"));
}

/// The id of what a link leads to is an answer, too.
#[test]
fn a_link_opens_nothing() {
    let mut guarded = Guarded::new();
    guarded.done("bob", link("//home/ann/paper", "//tmp/door", true));
    assert_eq!(guarded.ask("bob", make_unless_there("//tmp/door")).expect_err("closed").code, 901);
    assert_eq!(guarded.ask("bob", get("//tmp/door")).expect_err("closed").code, 901);
    guarded.done("ann", make_unless_there("//tmp/door"));
}

/// Whoever may write users must not let in one who may do everything.
#[test]
fn who_may_do_everything_stays_banned() {
    let mut guarded = Guarded::new();
    guarded.done("root", set("//sys/users/sup/@banned", "%true"));
    let wipes =
        [set("//sys/users/sup/@", "{}"), remove("//sys/users/sup/@*"), multiset("//sys/users/sup", "{}")];
    for wipe in wipes {
        assert!(
            guarded.ask("adm", wipe.clone()).is_err() || matches!(wipe, Command::MultisetAttributes { .. })
        );
        let banned = guarded.done("root", get("//sys/users/sup/@banned"));
        assert_eq!(banned.as_bool(), Some(true), "{wipe:?}");
    }
}

/// A cache is a place as any other: what it leads to, and what would be replaced, has its own lists.
#[test]
fn a_cache_is_no_way_around() {
    const MD5: &str = "900150983cd24fb0d6963f7d28e17f72";
    let mut guarded = Guarded::new();
    let put = || Command::PutFileToCache {
        path: path("//tmp/file"),
        md5: MD5.to_owned(),
        cache_path: path("//tmp/cache"),
    };
    guarded.done("root", create("file", Some("//tmp/file"), "{}"));
    let written = Command::FileWritten {
        path: path("//tmp/file"),
        blob: 1,
        size: 3,
        md5: Some(MD5.to_owned()),
        append: false,
    };
    guarded.done("root", written);
    guarded.done("root", create("map_node", Some("//tmp/cache"), "{}"));
    guarded.done("root", link("//home/ann", "//tmp/cache/72", true));
    assert_eq!(guarded.ask("bob", put()).expect_err("ann's").code, 901);
    guarded.done("root", remove("//tmp/cache/72"));
    guarded.done("root", set("//tmp/cache/72", &format!("{{\"{MD5}\"={{inside=1}}}}")));
    guarded.done(
        "root",
        set(&format!("//tmp/cache/72/{MD5}/@acl"), "[{action=deny;subjects=[bob];permissions=[remove]}]"),
    );
    assert_eq!(guarded.ask("bob", put()).expect_err("not to be removed").code, 901);
    guarded.done("root", remove("//tmp/cache/72"));
    guarded.done("bob", put());
    // It is there now: to have it again is no change of it.
    guarded.done("bob", put());
}

/// All tokens share one map.
#[test]
fn nobody_fills_the_map_of_tokens() {
    let mut guarded = Guarded::new();
    let issue = |number: usize| Command::IssueToken {
        user: "bob".into(),
        token_sha256: format!("{number:064x}"),
        description: None,
    };
    for number in 0..1000 {
        guarded.done("bob", issue(number));
    }
    let refused = guarded.ask("bob", issue(1000)).expect_err("too many").to_string();
    assert!(refused.contains("has 1000 tokens, at most 1000"), "{refused}");
    guarded.done("bob", Command::RevokeToken { user: "bob".into(), token_sha256: format!("{:064x}", 7) });
    guarded.done("bob", issue(1000));
}
