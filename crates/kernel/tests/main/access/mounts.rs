//! Lists of access of the nodes below which the tree shows other things than nodes.

use super::*;

const PLACES: &[&str] = &[
    "//sys/pool_trees",
    "//sys/operations",
    "//sys/cluster_nodes",
    "//sys/exec_nodes",
    "//sys/scheduler/orchid",
    "//sys/transactions",
    "//sys/locks",
    "//sys/estimated_creation_time",
];

/// docs/access.md has named `//sys/operations/@acl` as one of the lists of an operation, and it could not be set.
#[test]
fn the_list_of_all_operations_can_be_set_and_counts() {
    let mut guarded = Guarded::new();
    let operation = OperationRef::Id(guarded.operation);
    let check = Command::CheckOperationPermission {
        operation: operation.clone(),
        user: "bob".into(),
        permission: "read".into(),
    };
    let may = |guarded: &mut Guarded| {
        let answer = guarded.done("root", check.clone());
        answer.get("action").and_then(Value::as_str).expect("an action").to_owned()
    };
    assert_eq!(may(&mut guarded), "deny");
    let list =
        "[{action=allow; subjects=[bob]; permissions=[read]; inheritance_mode=object_and_descendants}]";
    let set_list = set("//sys/operations/@acl", list);
    for user in ["bob", "ann"] {
        let refused = guarded.ask(user, set_list.clone()).expect_err("only who administers it");
        assert_eq!(refused.code, 901, "{user}: {refused}");
    }
    guarded.done("adm", set_list);
    assert_eq!(may(&mut guarded), "allow");
    let shown = guarded.done("root", get("//sys/operations/@acl"));
    assert_eq!(shown, value(list));
    // It is durable.
    guarded.world.crash(usize::MAX);
    guarded.world.restart();
    assert_eq!(may(&mut guarded), "allow");
    guarded.done("root", set("//sys/operations/@acl", "[]"));
    assert_eq!(may(&mut guarded), "deny");
}

#[test]
fn lists_and_attributes_of_all_such_nodes_can_be_set() {
    let mut guarded = Guarded::new();
    let list = "[{action=allow; subjects=[team]; permissions=[read]; inheritance_mode=object_only}]";
    for place in PLACES {
        let at = |name: &str| format!("{place}/@{name}");
        guarded.done("root", set(&at("acl"), list));
        assert_eq!(guarded.done("root", get(&at("acl"))), value(list), "{place}");
        guarded.done("root", set(&at("mine"), "7"));
        assert_eq!(guarded.done("root", get(&at("mine"))), value("7"), "{place}");
        guarded.done("root", remove(&at("mine")));
        guarded.ask("root", get(&at("mine"))).expect_err("removed");
        let refused = guarded.ask("bob", set(&at("acl"), "[]")).expect_err("bob does not administer it");
        assert_eq!(refused.code, 901, "{place}: {refused}");
        // What is told of it cannot be set, and neither can what it shows.
        guarded.ask("root", set(&at("id"), "7")).expect_err("a system attribute");
        guarded.ask("root", set(place, "{}")).expect_err("what it shows");
    }
    for place in PLACES.iter().filter(|place| **place != "//sys/pool_trees") {
        guarded.done("root", multiset(place, "{mine=8; yours=9}"));
        assert_eq!(guarded.done("root", get(&format!("{place}/@yours"))), value("9"), "{place}");
    }
}
