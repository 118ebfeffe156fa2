//! Access control (http-api.md 8.4).

use std::collections::BTreeSet;

use crate::console::Console;
use cypress::{Last, Permission, Subjects};

/// Does this user get through?
fn allowed(console: &Console, user: &str, permission: Permission, path: &str) -> bool {
    let node = console.place(path, Last::Follow).expect("a node").node;
    let groups = console.tree.member_of_closure(user);
    console.tree.check_permission(Subjects { user, groups: &groups }, permission, node).is_allowed()
}

fn set_acl(console: &mut Console, path: &str, acl: &str) {
    console.run(&format!("set {path}/@acl {acl}")).expect("a good list");
}

#[test]
fn the_layout_lets_users_into_tmp_only() {
    let console = Console::new();
    use Permission::*;
    for (user, permission, path, expected) in [
        ("alice", Read, "/", true),
        ("alice", Write, "/", false),
        ("alice", Write, "//tmp", true),
        ("alice", Remove, "//home", true),
        ("alice", Write, "//sys", false),
        ("alice", Use, "//sys/pool_trees", true),
        ("alice", Administer, "//sys/pool_trees", false),
        ("guest", Read, "//tmp", true),
        ("guest", Write, "//tmp", false),
        ("root", Administer, "//sys", true),
    ] {
        assert_eq!(allowed(&console, user, permission, path), expected, "{user} {permission} {path}");
    }
}

#[test]
fn deny_beats_allow_wherever_it_stands() {
    let mut console = Console::new();
    console.say("set //tmp/a/b/c {} -- recursive=%true");
    set_acl(&mut console, "//tmp/a", "[{action=deny;subjects=[alice];permissions=[write]}]");
    set_acl(&mut console, "//tmp/a/b/c", "[{action=allow;subjects=[alice];permissions=[write]}]");
    assert!(!allowed(&console, "alice", Permission::Write, "//tmp/a/b/c"));
    assert!(allowed(&console, "bob", Permission::Write, "//tmp/a/b/c"));
    console.say("set //tmp/a/b/@inherit_acl %false");
    assert!(allowed(&console, "alice", Permission::Write, "//tmp/a/b/c"));
    assert!(!allowed(&console, "bob", Permission::Write, "//tmp/a/b/c"));
    assert!(!allowed(&console, "bob", Permission::Read, "//tmp/a/b/c"));
}

#[test]
fn inheritance_modes() {
    for (mode, on_object, on_child, on_grandchild) in [
        ("object_and_descendants", true, true, true),
        ("object_only", true, false, false),
        ("descendants_only", false, true, true),
        ("immediate_descendants_only", false, true, false),
    ] {
        let mut console = Console::new();
        console.say("set //tmp/a/b/c {} -- recursive=%true");
        console.say("set //tmp/a/@inherit_acl %false");
        let entry = format!("[{{action=allow;subjects=[x];permissions=[use];inheritance_mode={mode}}}]");
        set_acl(&mut console, "//tmp/a", &entry);
        let got =
            ["//tmp/a", "//tmp/a/b", "//tmp/a/b/c"].map(|path| allowed(&console, "x", Permission::Use, path));
        assert_eq!(got, [on_object, on_child, on_grandchild], "{mode}");
        // What is shown as effective decides in the same way.
        let shown = ["//tmp/a", "//tmp/a/b", "//tmp/a/b/c"].map(|path| {
            let list = console.run(&format!("get {path}/@effective_acl")).expect("a list");
            list.contains("\"object_and_descendants\"") || list.contains("\"object_only\"")
        });
        assert_eq!(shown, got, "{mode}");
    }
}

#[test]
fn entries_for_columns_decide_nothing_about_the_whole() {
    let mut console = Console::new();
    console.say("create table //tmp/t");
    set_acl(&mut console, "//tmp/t", "[{action=deny;subjects=[alice];permissions=[read];columns=[secret]}]");
    assert!(allowed(&console, "alice", Permission::Read, "//tmp/t"));
}

#[test]
fn the_decision_names_its_reason() {
    let mut console = Console::new();
    console.say("set //tmp/a {}");
    set_acl(&mut console, "//tmp/a", "[{action=deny;subjects=[friends];permissions=[write]}]");
    let groups = BTreeSet::from(["friends".to_owned(), "users".to_owned(), "everyone".to_owned()]);
    let node = console.place("//tmp/a", Last::Follow).expect("a node").node;
    let subjects = Subjects { user: "alice", groups: &groups };
    let decision = console.tree.check_permission(subjects, Permission::Write, node);
    assert_eq!((decision.object, decision.subject.as_deref()), (Some(node), Some("friends")));
    let decision = console.tree.check_permission(subjects, Permission::Manage, node);
    assert_eq!((decision.is_allowed(), decision.object), (false, None));
}

#[test]
fn groups_nest_but_not_in_circles() {
    let mut console = Console::new();
    for name in ["a", "b", "c"] {
        console.say(&format!("create group //sys/groups/{name}"));
    }
    let group = |console: &Console, name: &str| console.tree.group(name).expect("a group");
    let add = |console: &mut Console, to: &str, member: &str| {
        let id = group(console, to);
        console.edit(|edit| edit.add_member(id, member)).map_err(|f| f.code)
    };
    assert_eq!(add(&mut console, "a", "b"), Ok(()));
    assert_eq!(add(&mut console, "b", "c"), Ok(()));
    assert_eq!(add(&mut console, "c", "alice"), Ok(()));
    assert_eq!(add(&mut console, "c", "alice"), Err(908));
    assert_eq!(add(&mut console, "c", "a"), Err(1));
    assert_eq!(add(&mut console, "a", "a"), Err(1));
    assert_eq!(add(&mut console, "users", "alice"), Err(1));
    let closure = |console: &Console| console.tree.member_of_closure("alice").into_iter().collect::<Vec<_>>();
    assert_eq!(closure(&console), ["a", "b", "c", "everyone", "users"]);
    assert_eq!(console.run("get //sys/groups/c/@members"), Ok(r#"["alice";]"#.to_owned()));
    let b = group(&console, "b");
    console.edit(|edit| edit.remove_member(b, "c")).expect("c was a member");
    assert_eq!(console.edit(|edit| edit.remove_member(b, "c")).map_err(|f| f.code), Err(1));
    assert_eq!(closure(&console), ["c", "everyone", "users"]);
    assert_eq!(console.tree.member_of_closure("guest").into_iter().collect::<Vec<_>>(), ["everyone"]);
    console.say("remove //sys/groups/c");
    assert_eq!(console.tree.group("c"), None);
}
