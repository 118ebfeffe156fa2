//! Names in lists: of nobody, and of who is no more.

use super::*;

fn names_in(value: &Value) -> Vec<String> {
    let list = value.as_list().unwrap_or_default().iter();
    let subjects = list.flat_map(|ace| ace.get("subjects").and_then(Value::as_list).unwrap_or_default());
    subjects.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn a_name_that_nobody_has_is_refused() {
    let mut guarded = Guarded::new();
    let ace = |name: &str| format!("{{action=allow;subjects=[{name}];permissions=[read]}}");
    let nobody = || ace("nobody");
    let asks = [
        (set("//tmp/@acl", &format!("[{}]", nobody())), 907),
        (set("//tmp/@acl/end", &nobody()), 907),
        (set("//tmp/@owner", "nobody"), 907),
        (set("//tmp/@account", "nothing"), 905),
        (set("//tmp/note", &format!("<acl=[{}]>1", nobody())), 907),
        (set("//tmp/nested", &format!("{{a=<acl=[{}]>{{}}}}", nobody())), 907),
        (multiset("//tmp", &format!("{{title=x;acl=[{}]}}", nobody())), 907),
        (create("document", Some("//tmp/d"), &format!("{{acl=[{}]}}", nobody())), 907),
        (
            create("scheduler_pool", None, &format!("{{name=other;pool_tree=physical;acl=[{}]}}", nobody())),
            907,
        ),
        (set("//sys/pool_trees/physical/p/@acl", &format!("[{}]", nobody())), 907),
    ];
    for (command, code) in asks {
        let shown = format!("{command:?}");
        let failure = guarded.ask("root", command).err().unwrap_or_else(|| panic!("taken: {shown}"));
        assert_eq!(failure.code, code, "{shown}: {failure}");
        assert!(failure.message.contains("no such"), "{failure}");
    }
    assert_eq!(guarded.ask("root", get("//tmp/@title")).expect_err("all or nothing").code, 500);
    for name in ["ann", "team", "everyone", "root"] {
        guarded.done("root", set("//tmp/@acl/end", &ace(name)));
    }
    guarded.done("root", set("//tmp/@acl/0/subjects/end", "bob"));
    let failure = guarded.ask("root", set("//tmp/@acl/0/subjects/end", "nobody")).expect_err("a name");
    assert_eq!(failure.code, 907);
    let asked = Command::CheckPermission {
        user: "typo".into(),
        permission: "write".into(),
        path: path("//tmp"),
        columns: None,
    };
    assert_eq!(guarded.ask("root", asked).expect_err("no such user").code, 500);
}

/// Who gets the name of a removed user has nothing of what that one had.
#[test]
fn a_name_is_forgotten_with_its_bearer() {
    let mut guarded = Guarded::new();
    let both = "[{action=allow;subjects=[ann;bob];permissions=[read]};{action=allow;subjects=[ann];permissions=[write]}]";
    guarded.done("root", create("document", Some("//tmp/d"), &format!("{{acl={both}}}")));
    guarded.done("root", set("//sys/pool_trees/physical/p/@acl", both));
    guarded.done("root", remove("//sys/users/ann"));
    for at in ["//tmp/d/@acl", "//sys/pool_trees/physical/p/@acl"] {
        assert_eq!(names_in(&guarded.done("root", get(at))), ["bob"], "{at}");
        assert_eq!(guarded.done("root", get(at)).as_list().map(<[Value]>::len), Some(1), "{at}");
    }
    let members = guarded.done("root", get("//sys/groups/team/@members"));
    assert_eq!(members.as_list().map(<[Value]>::len), Some(0), "{members:?}");
    guarded.done("root", create("user", None, "{name=ann}"));
    let groups = guarded.done("root", get("//sys/users/ann/@member_of"));
    assert_eq!(
        groups.as_list().map(|l| l.iter().filter_map(Value::as_str).collect::<Vec<_>>()),
        Some(vec!["users"])
    );
    // Who is replaced is forgotten, and nobody's lock holds that up.
    guarded.done("root", set("//tmp/d/@acl", "[{action=allow;subjects=[eve];permissions=[read]}]"));
    let options = kernel::command::StartOptions::default();
    let transaction = guarded.done("root", Command::StartTransaction(Box::new(options)));
    let transaction =
        transaction.get("transaction_id").or(Some(&transaction)).and_then(Value::as_str).map(str::parse);
    let transaction = transaction.expect("an id").expect("an id");
    let lock = Command::Lock {
        path: path("//tmp/d"),
        options: kernel::command::LockOptions { mode: kernel::command::LockMode::Exclusive, waitable: false },
    };
    guarded.done("root", lock.through(Some(transaction)));
    let force = match create("user", Some("//sys/users/eve"), "{}") {
        Command::Create {
            object_type,
            path,
            attributes,
            recursive,
            ignore_existing,
            ignore_type_mismatch,
            lock_existing,
            ..
        } => Command::Create {
            object_type,
            path,
            attributes,
            recursive,
            ignore_existing,
            force: true,
            ignore_type_mismatch,
            lock_existing,
        },
        other => other,
    };
    guarded.done("root", force);
    assert_eq!(names_in(&guarded.done("root", get("//tmp/d/@acl"))), [""; 0]);
    let removed = remove("//sys/users/bob").through(Some(transaction));
    assert!(guarded.ask("root", removed).expect_err("outside").message.contains("outside of transactions"));
    guarded.done("root", Command::AbortTransaction { transaction });
    // A group is forgotten as well.
    guarded.done("root", set("//tmp/d/@acl", "[{action=allow;subjects=[team];permissions=[read]}]"));
    guarded.done("root", remove("//sys/groups/team"));
    assert_eq!(names_in(&guarded.done("root", get("//tmp/d/@acl"))), [""; 0]);
}

#[test]
fn root_cannot_lock_himself_out() {
    let mut guarded = Guarded::new();
    for command in [set("//sys/users/root/@banned", "%true"), multiset("//sys/users/root", "{banned=%true}")]
    {
        let failure = guarded.ask("root", command).expect_err("nobody could undo it");
        assert!(failure.to_string().contains("\"root\" cannot be banned"), "{failure}");
    }
    guarded.done("root", set("//sys/users/root/@banned", "%false"));
    guarded.done("root", set("//sys/users/bob/@banned", "%true"));
}

/// Whoever may change what is in a map needs not be able to change the map itself.
#[test]
fn children_may_be_all_that_one_may_change() {
    let mut guarded = Guarded::new();
    let children = "{inherit_acl=%false; acl=[{action=allow;subjects=[bob];permissions=[read;modify_children]};\
                    {action=allow;subjects=[bob];permissions=[remove];inheritance_mode=descendants_only}]}";
    guarded.done("root", create("map_node", Some("//tmp/mc"), children));
    guarded.done("bob", create("document", Some("//tmp/mc/a"), "{}"));
    guarded.done("bob", set("//tmp/mc/b", "1"));
    guarded.done("bob", remove("//tmp/mc/a"));
    guarded.done("bob", copy("//tmp/mc/b", "//tmp/mc/c"));
    for command in [set("//tmp/mc/@title", "1"), set("//tmp/mc/b", "2"), remove("//tmp/mc")] {
        let shown = format!("{command:?}");
        assert_eq!(guarded.ask("bob", command).expect_err(&shown).code, 901, "{shown}");
    }
}
