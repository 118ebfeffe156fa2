//! What accounts use and may use, how many transactions and locks users have, and how much one command may change.

use super::desk::{Desk, Tx, code, place};
use cypress::transactions::locks::Mode;
use cypress::*;
use vocab::code::{ACCOUNT_LIMIT, LOCK_CONFLICT};
use vocab::{Failure, ObjectId, Span};

fn nodes(desk: &Desk) -> i64 {
    desk.forest.account_usage("team").nodes
}

/// What is made in `//tmp` belongs to an account that users do not share.
fn with_account(mut desk: Desk) -> Desk {
    desk.create(None, NodeType::Account, "//sys/accounts/team").expect("an account");
    desk.set(None, "//tmp/@account", "team").expect("an account");
    desk
}

fn set_limits(desk: &mut Desk, limits: &str) {
    desk.set(None, "//sys/accounts/team/@resource_limits", limits).expect("good limits");
}

fn copy(desk: &mut Desk, at: Tx, from: &str, to: &str) -> Result<ObjectId, Failure> {
    desk.run(at, |forest, context| {
        let (from, to) = (place(forest, from, Last::Follow)?, place(forest, to, Last::Stay)?);
        forest.edit(context, |edit| edit.copy(&from, &to, CopyOptions::default()))
    })
}

/// S15.
#[test]
fn an_account_is_charged_for_nodes_contents_and_values() {
    let mut desk = with_account(Desk::new());
    let before = desk.forest.account_usage("team");
    desk.create(None, NodeType::File, "//tmp/f").expect("a file");
    desk.write(None, "//tmp/f", 1).expect("a content");
    copy(&mut desk, None, "//tmp/f", "//tmp/g").expect("a copy");
    let after = desk.forest.account_usage("team");
    assert_eq!((after.nodes - before.nodes, after.disk_space, after.chunks), (2, 2, 2), "copies count each");
    desk.set(None, "//tmp/f/@text", &"x".repeat(1000)).expect("an attribute");
    let with_text = desk.forest.account_usage("team").memory;
    assert!((1000..1100).contains(&(with_text - after.memory)), "{with_text} after {}", after.memory);
    desk.set(None, "//tmp/f/@text", "y").expect("an attribute");
    desk.set(None, "//tmp/f/@acl", "[{action=allow;subjects=[root];permissions=[read]}]").expect("a list");
    desk.set(None, "//tmp/g/@account", "intermediate").expect("an account");
    assert_eq!(desk.forest.account_usage("intermediate").disk_space, 1, "it moves with all that it has");
    desk.remove(None, "//tmp/f").expect("it is there");
    desk.remove(None, "//tmp/g").expect("it is there");
    assert_eq!(desk.forest.account_usage("team"), before);
    assert_eq!(desk.forest.account_usage("intermediate"), Usage::NONE);
}

/// S15.
#[test]
fn more_than_an_account_may_have_is_refused() {
    let mut desk = with_account(Desk::new());
    desk.create(None, NodeType::File, "//tmp/f").expect("a file");
    let limit = nodes(&desk) + 1;
    set_limits(&mut desk, &format!("{{node_count={limit};disk_space=1;master_memory={{total=3000}}}}"));
    let refused = desk.create(None, NodeType::MapNode, "//tmp/a/b").map(drop);
    assert_eq!(code(refused), 500, "other errors come first");
    desk.create(None, NodeType::MapNode, "//tmp/a").expect("room for one");
    let refused = desk.create(None, NodeType::MapNode, "//tmp/b").expect_err("no room");
    assert_eq!(refused.code, ACCOUNT_LIMIT);
    let said = format!(
        "Account \"team\" is over node count limit: it would use {}, the limit is {limit}",
        limit + 1
    );
    assert!(refused.message.starts_with(&said), "{refused}");
    desk.write(None, "//tmp/f", 1).expect("room for a byte");
    assert_eq!(code(copy(&mut desk, None, "//tmp/f", "//tmp/a/f")), ACCOUNT_LIMIT);
    let large = "x".repeat(3000);
    let refused = desk.set(None, "//tmp/a/@text", &large).expect_err("no room for so much text");
    assert!(refused.message.contains("master memory limit"), "{refused}");
    // What has too much may have less, and goes on to be changed.
    set_limits(&mut desk, "{node_count=1}");
    desk.set(None, "//tmp/a/@inherit_acl", "%false").expect("nothing more");
    desk.remove(None, "//tmp/a").expect("less");
    assert_eq!(code(desk.create(None, NodeType::MapNode, "//tmp/a")), ACCOUNT_LIMIT);
}

/// S15.
#[test]
fn what_a_transaction_makes_counts_before_its_commit() {
    let mut desk = with_account(Desk::new());
    desk.create(None, NodeType::File, "//tmp/f").expect("a file");
    desk.write(None, "//tmp/f", 1).expect("a content");
    let limit = nodes(&desk) + 2;
    set_limits(&mut desk, &format!("{{node_count={limit};disk_space=2}}"));
    let (first, second) = (Some(desk.start(None)), Some(desk.start(None)));
    desk.create(first, NodeType::MapNode, "//tmp/a").expect("room for two");
    desk.create(second, NodeType::MapNode, "//tmp/b").expect("room for two");
    assert_eq!(desk.forest.trunk().uncommitted("team").nodes, 2);
    for at in [None, first, second] {
        assert_eq!(code(desk.create(at, NodeType::MapNode, "//tmp/c")), ACCOUNT_LIMIT, "{at:?}");
    }
    // A new content of a file takes room beside the old one, an attribute does not.
    desk.set(first, "//tmp/f/@x", "1").expect("no more room is needed");
    assert_eq!(desk.forest.account_usage("team").disk_space, 1);
    desk.write(first, "//tmp/f", 2).expect("room for another byte");
    assert_eq!(desk.forest.account_usage("team").disk_space, 2);
    desk.commit(first.expect("it runs")).expect("nothing is in the way");
    desk.abort(second.expect("it runs"));
    assert_eq!(desk.forest.trunk().uncommitted("team"), Usage::NONE);
    assert_eq!((nodes(&desk), desk.forest.account_usage("team").disk_space), (limit - 1, 1));
    let outer = desk.start(None);
    let inner = desk.start(Some(outer));
    desk.create(Some(inner), NodeType::MapNode, "//tmp/d").expect("room for one");
    desk.commit(inner).expect("nothing is in the way");
    assert_eq!(desk.forest.trunk().uncommitted("team").nodes, 1, "it is the outer one's");
    desk.commit(outer).expect("nothing is in the way");
    assert_eq!(nodes(&desk), limit);
}

/// S15.
#[test]
fn users_have_so_many_transactions_and_locks() {
    let limits = Limits { max_transactions_per_user: 3, max_locks_per_user: 4, ..Limits::default() };
    let mut desk = Desk::with_limits(limits);
    let all: Vec<ObjectId> = (0..3).map(|_| desk.start(None)).collect();
    let start = |desk: &mut Desk| {
        let options = StartOptions { timeout: Span::from_secs(30), ..StartOptions::default() };
        desk.run(None, |forest, context| forest.start(context, options))
    };
    let refused = start(&mut desk).expect_err("three are enough");
    assert_eq!(refused.message, "Number of transactions of user \"alice\" is 4, more than the limit of 3");
    desk.abort(all[0]);
    start(&mut desk).expect("one has ended");
    let at = Some(all[1]);
    desk.create(None, NodeType::MapNode, "//tmp/m").expect("a map");
    for _ in 0..2 {
        desk.lock(at, "//tmp/m", Mode::Snapshot, false).expect("room for locks");
    }
    let refused = desk.create(at, NodeType::MapNode, "//tmp/a/b").expect_err("no such map");
    assert_eq!(refused.code, 500);
    desk.create(at, NodeType::MapNode, "//tmp/a").expect("the node, and its key in the map");
    let said = |refused: Failure| {
        assert!(
            refused.message.contains("locks of user \"alice\" is 5, more than the limit of 4"),
            "{refused}"
        );
    };
    said(desk.lock(at, "//tmp/m", Mode::Snapshot, false).expect_err("four are enough"));
    desk.set(at, "//tmp/a/@x", "1").expect("it is covered by what there is");
    desk.unlock(at, "//tmp/m").expect("they go");
    desk.lock(at, "//tmp/m", Mode::Snapshot, false).expect("room for locks");
}

/// A tree `top/0/0` ... with so many nodes below the top one.
fn grow(desk: &mut Desk, top: &str, maps: usize, each: usize) {
    desk.create(None, NodeType::MapNode, top).expect("a map");
    for map in 0..maps {
        let value: String = (0..each).map(|n| format!("k{n}={n};")).collect();
        desk.set(None, &format!("{top}/m{map}"), &format!("{{{value}}}")).expect("a map of numbers");
    }
}

fn small() -> Desk {
    let limits = Limits { max_nodes_per_request: 12, max_nodes_per_transaction: 8, ..Limits::default() };
    with_account(Desk::with_limits(limits))
}

fn take_discarded(desk: &mut Desk, limit: usize) -> usize {
    desk.run(None, |forest, context| forest.overrule(context, |edit| Ok(edit.take_discarded(limit))))
        .expect("it cannot fail")
}

/// S13.
#[test]
fn a_command_changes_so_many_nodes() {
    let mut desk = small();
    grow(&mut desk, "//tmp/t", 3, 8);
    let refused = copy(&mut desk, None, "//tmp/t", "//tmp/u").expect_err("28 nodes");
    let said =
        "The request changes more than 12 nodes, which is the limit (max_nodes_per_request): do it in parts";
    assert_eq!(refused.message, said);
    copy(&mut desk, None, "//tmp/t/m0", "//tmp/u").expect("nine nodes");
    let value: String = (0..20).map(|n| format!("k{n}=1;")).collect();
    assert_eq!(desk.set(None, "//tmp/v", &format!("{{{value}}}")).expect_err("20 nodes").message, said);
    // Of a transaction the commit is bounded.
    let at = Some(desk.start(None));
    let refused = copy(&mut desk, at, "//tmp/t/m0", "//tmp/w").expect_err("nine nodes and a map");
    assert!(refused.message.contains("changes more than 8 nodes"), "{refused}");
    desk.create(at, NodeType::MapNode, "//tmp/w").expect("two nodes");
}

/// S13.
#[test]
fn a_large_subtree_is_gone_at_once_and_removed_in_slices() {
    let mut desk = small();
    let before = desk.forest.account_usage("team");
    grow(&mut desk, "//tmp/t", 3, 8);
    desk.set(None, "//tmp/t/list", "[1;{a=2};[3]]").expect("a list");
    desk.create(None, NodeType::File, "//tmp/t/file").expect("a file");
    desk.write(None, "//tmp/t/file", 7).expect("a content");
    let trunk = desk.forest.trunk();
    let tmp = trunk.child(trunk.root(), b"tmp").expect("a map");
    let inside = trunk.child(trunk.child(tmp, b"t").expect("a map"), b"m1").expect("a map");
    assert!(!trunk.is_discarded(inside));
    desk.remove(None, "//tmp/t").expect("it may be removed");
    assert!(desk.forest.is_discarded(inside) && !desk.forest.is_discarded(tmp));
    assert_eq!(desk.get(None, "//tmp/t"), "500", "it is gone");
    assert!(desk.forest.has_discarded() && desk.released.is_empty());
    desk.create(None, NodeType::MapNode, "//tmp/t").expect("its place is free");
    let mut all = 0;
    loop {
        let taken = take_discarded(&mut desk, 5);
        all += taken;
        if taken < 5 {
            break;
        }
    }
    assert_eq!(all, 1 + 3 * 9 + 6 + 1);
    assert!(!desk.forest.has_discarded() && desk.released.contains(&7));
    desk.remove(None, "//tmp/t").expect("an empty map");
    assert_eq!(desk.forest.account_usage("team"), before);
}

/// S13.
#[test]
fn what_is_locked_below_keeps_a_large_subtree() {
    let mut desk = small();
    grow(&mut desk, "//tmp/t", 3, 8);
    let started = desk.start(None);
    let at = Some(started);
    desk.set(at, "//tmp/t/m1/k1", "5").expect("a change");
    let refused = desk.remove(None, "//tmp/t").expect_err("it is locked");
    assert_eq!(refused.code, LOCK_CONFLICT);
    let refused = desk.remove(at, "//tmp/t").expect_err("too large for a transaction");
    assert!(refused.message.contains("more than 12, the limit inside of a transaction"), "{refused}");
    desk.commit(started).expect("nothing is in the way");
    assert_eq!(desk.get(None, "//tmp/t/m1/k1"), "5");
    desk.remove(None, "//tmp/t").expect("nothing is locked");
    // What is built in does not go, however large it is.
    grow(&mut desk, "//tmp/t", 3, 8);
    assert!(desk.remove(None, "//tmp").is_err());
    assert!(desk.forest.has_discarded());
}

/// S13.
#[test]
fn a_question_shows_so_many_nodes() {
    let mut desk = Desk::with_limits(Limits { max_values_per_read: 20, ..Limits::default() });
    grow(&mut desk, "//tmp/t", 3, 8);
    let get = |desk: &Desk, path: &str, attributes: &[&str], max_size: Option<usize>| {
        let place = place(&desk.forest, path, Last::Follow).expect("it is there");
        let attributes = attributes.iter().map(|name| (*name).to_owned()).collect();
        let options = GetOptions { attributes, max_size, ..GetOptions::default() };
        desk.forest.get(&place, &options).map(drop)
    };
    let refused = get(&desk, "//tmp/t", &[], None).expect_err("28 nodes");
    assert!(
        refused.message.starts_with("//tmp/t has more than 20 nodes and attributes to show"),
        "{refused}"
    );
    assert_eq!(get(&desk, "//tmp/t/m0", &[], None), Ok(()));
    assert!(get(&desk, "//tmp/t/m0", &["type", "id"], None).is_err(), "27 values");
    assert_eq!(get(&desk, "//tmp/t", &[], Some(3)), Ok(()));
    let list = place(&desk.forest, "//tmp/t/m0", Last::Follow).expect("it is there");
    let options =
        GetOptions { attributes: vec!["type".to_owned(), "id".to_owned()], ..GetOptions::default() };
    assert!(desk.forest.list(&list, &options).is_err(), "24 values");
    assert!(desk.forest.list(&list, &GetOptions::default()).is_ok());
}

/// S13. What is copied into the answer counts, however few attributes were asked for.
#[test]
fn a_question_is_weighed_by_what_its_answer_copies() {
    let mut desk = Desk::with_limits(Limits { max_values_per_read: 60, ..Limits::default() });
    grow(&mut desk, "//tmp/t", 1, 8);
    let ask = |desk: &Desk, path: &str, attribute: &str| {
        let place = place(&desk.forest, path, Last::Follow).expect("it is there");
        let options = GetOptions { attributes: vec![attribute.to_owned()], ..GetOptions::default() };
        let (get, list) = (desk.forest.get(&place, &options), desk.forest.list(&place, &options));
        assert_eq!(get.is_ok(), list.is_ok(), "{attribute}: {get:?}, {list:?}");
        get.is_ok()
    };
    for attribute in ["type", "path", "acl", "user_attributes", "x", "recursive_resource_usage"] {
        assert!(ask(&desk, "//tmp/t/m0", attribute), "{attribute}");
    }
    assert!(!ask(&desk, "//tmp/t/m0", "effective_acl"), "eight times the lists of the root and of //tmp");
    let numbers = "1;".repeat(60);
    desk.set(None, "//tmp/t/m0/k3/@x", &format!("[{numbers}]")).expect("numbers");
    for attribute in ["x", "user_attributes"] {
        assert!(!ask(&desk, "//tmp/t/m0", attribute), "{attribute}");
    }
    let entry = "{action=allow;subjects=[root];permissions=[read]};".repeat(10);
    desk.set(None, "//tmp/t/m0/k4/@acl", &format!("[{entry}]")).expect("a list");
    assert!(!ask(&desk, "//tmp/t/m0", "acl"));
    assert_eq!(desk.get(None, "//tmp/t/m0/k3/@x").len(), numbers.len() + 2, "by itself it is shown");
    // Names count by their bytes.
    desk.create(None, NodeType::MapNode, "//tmp/l").expect("a map");
    let names: Vec<String> = (0..20).map(|n| format!("{}{n}", "k".repeat(4_000))).collect();
    names.iter().for_each(|name| desk.set(None, &format!("//tmp/l/{name}"), "1").expect("a node"));
    let list = place(&desk.forest, "//tmp/l", Last::Follow).expect("it is there");
    let refused = desk.forest.list(&list, &GetOptions::default()).expect_err("80 kilobytes");
    assert!(refused.message.contains("give \"max_size\""), "{refused}");
    let some = GetOptions { max_size: Some(3), ..GetOptions::default() };
    assert!(desk.forest.list(&list, &some).is_ok());
}

/// S13.
#[test]
fn all_attributes_of_a_node_are_shown_up_to_a_limit() {
    let limits = Limits {
        max_values_per_read: 20,
        max_value_count: 30,
        max_attribute_size: 2_048,
        ..Limits::default()
    };
    let mut desk = Desk::with_limits(limits);
    desk.create(None, NodeType::MapNode, "//tmp/a").expect("a map");
    desk.set(None, "//tmp/a/@x", &format!("[{}]", "1;".repeat(15))).expect("numbers");
    assert!(desk.get(None, "//tmp/a/@").contains("\"x\"="));
    let entry = "{action=allow;subjects=[root];permissions=[read]};".repeat(4);
    desk.set(None, "//tmp/a/@acl", &format!("[{entry}]")).expect("a list");
    assert_eq!(desk.get(None, "//tmp/a/@"), "1", "it is refused");
    assert!(desk.get(None, "//tmp/a/@acl").contains("root"), "by name it is shown");
}

/// S13.
#[test]
fn lists_and_attributes_have_limits() {
    let limits = Limits {
        max_acl_entries: 2,
        max_acl_names: 6,
        max_attribute_count: 2,
        max_value_count: 20,
        ..Limits::default()
    };
    let mut desk = Desk::with_limits(limits);
    desk.create(None, NodeType::MapNode, "//tmp/a").expect("a map");
    let ace = |subjects: &str| format!("{{action=allow;subjects=[{subjects}];permissions=[read]}};");
    let mut refused = |at: &str, value: &str| desk.set(None, at, value).expect_err("too many").to_string();
    let text = refused("//tmp/a/@acl", &format!("[{}]", ace("root").repeat(3)));
    assert!(text.contains("entries of the access control list is 3, more than the limit of 2"), "{text}");
    let text = refused("//tmp/a/@acl", &format!("[{}]", ace("a;b;c;d;e;f")));
    assert!(text.contains("in the access control list is 7, more than the limit of 6"), "{text}");
    let text = refused("//tmp/a/@x", &format!("[{}]", "1;".repeat(20)));
    assert!(text.contains("has more than 20 values, which is the limit"), "{text}");
    desk.set(None, "//tmp/a/@x", "1").expect("the first");
    desk.set(None, "//tmp/a/@y", "[1;2;3;4]").expect("the second");
    let text = desk.set(None, "//tmp/a/@z", "1").expect_err("two are enough").to_string();
    assert!(text.contains("attributes of //tmp/a is 3, more than the limit of 2"), "{text}");
    desk.set(None, "//tmp/a/@x", "2").expect("it is there already");
}

/// S13. Each change of a node, and of its children, copies all of its attributes.
#[test]
fn all_attributes_of_a_node_together_have_the_limits_of_one() {
    let limits = Limits { max_value_count: 20, max_attribute_size: 100, ..Limits::default() };
    let mut desk = Desk::with_limits(limits);
    desk.create(None, NodeType::MapNode, "//tmp/a").expect("a map");
    desk.set(None, "//tmp/a/@x", "[1;2;3;4;5;6;7;8]").expect("nine values");
    let refused =
        desk.set(None, "//tmp/a/@y", &format!("[{}]", "%true;".repeat(11))).expect_err("twelve more");
    let said = "Number of values in all attributes of //tmp/a is 21, more than the limit of 20";
    assert_eq!(refused.message, said);
    let refused = desk.set(None, "//tmp/a/@y", &"y".repeat(60)).expect_err("60 bytes more");
    assert!(refused.message.starts_with("Size of all attributes of //tmp/a is 11"), "{refused}");
    assert_eq!(refused.code, vocab::code::MAX_ATTRIBUTE_SIZE);
    desk.set(None, "//tmp/a/@y", "y").expect("a small one");
    desk.set(None, "//tmp/a/@x", "[1;2;3]").expect("fewer");
}

/// S15. A subtree that is removed in slices gets another key, which is longer.
#[test]
fn an_account_that_is_full_gets_room_by_the_removal_of_large_subtrees() {
    let mut desk = small();
    grow(&mut desk, "//tmp/t", 3, 8);
    set_limits(&mut desk, "{node_count=1;master_memory={total=1}}");
    let before = desk.forest.account_usage("team").nodes;
    desk.remove(None, "//tmp/t").expect("the change that makes the trash passes");
    assert!(desk.forest.has_discarded());
    while take_discarded(&mut desk, 5) > 0 {}
    assert_eq!(desk.forest.account_usage("team").nodes, before - 28);
}

/// S13. Release 0.1 let administrators make any node in `//sys`.
#[test]
fn a_node_with_the_key_of_the_trash_is_left_alone() {
    let mut desk = small();
    desk.create(None, NodeType::MapNode, "//sys/trash").expect("a map");
    grow(&mut desk, "//tmp/t", 3, 8);
    desk.remove(None, "//tmp/t").expect("another key is free");
    assert!(desk.forest.has_discarded());
    assert_eq!(desk.get(None, "//sys/trash"), "{}");
    while take_discarded(&mut desk, 5) > 0 {}
    assert!(!desk.forest.has_discarded());
}

/// S13.
#[test]
fn the_refusal_of_a_large_change_of_a_transaction_says_what_it_counts() {
    let mut desk = small();
    grow(&mut desk, "//tmp/t", 1, 6);
    let at = Some(desk.start(None));
    let refused = desk.run(at, |forest, context| {
        let (from, to) = (place(forest, "//tmp/t", Last::Follow)?, place(forest, "//tmp/u", Last::Stay)?);
        forest.edit(context, |edit| edit.move_node(&from, &to, CopyOptions::default()))
    });
    let message = refused.expect_err("8 nodes are made, and 8 removed").message;
    assert!(message.contains("//tmp/t besides the 9 that the command has changed already"), "{message}");
}

/// S13.
#[test]
fn the_refusal_to_clear_a_large_map_says_how_it_is_done() {
    let mut desk = small();
    desk.create(None, NodeType::MapNode, "//tmp/t").expect("a map");
    (0..13).for_each(|n| desk.set(None, &format!("//tmp/t/k{n}"), "1").expect("a number"));
    let message = desk.remove(None, "//tmp/t/*").expect_err("13 children").message;
    assert!(message.contains("//tmp/t has 13 children"), "{message}");
    assert!(message.contains("remove //tmp/t itself and make it again"), "{message}");
}

/// S15. The other half of a shared account is for other users.
#[test]
fn one_user_does_not_fill_a_shared_account() {
    let mut desk = Desk::new();
    desk.create(None, NodeType::File, "//tmp/f").expect("a file");
    desk.set(None, "//sys/accounts/tmp/@resource_limits", "{node_count=8;disk_space=4}").expect("limits");
    (0..3).for_each(|n| desk.set(None, &format!("//tmp/{n}"), "1").expect("room for four nodes"));
    let at = Some(desk.start(None));
    for tx in [None, at] {
        let refused = desk.set(tx, "//tmp/more", "1").expect_err("a half of eight is used");
        assert_eq!(refused.code, ACCOUNT_LIMIT);
        assert!(refused.message.contains("User \"alice\" is over node count limit"), "{refused}");
        assert!(refused.message.contains("would use 5, the limit is 4"), "{refused}");
    }
    let f = desk.forest.trunk().child(desk.forest.trunk().root(), b"tmp").expect("a map");
    let f = desk.forest.trunk().child(f, b"f").expect("a file");
    let room = [("account \"tmp\"".to_owned(), 4), ("user \"alice\" in account \"tmp\"".to_owned(), 2)];
    assert_eq!(desk.forest.disk_room(f), room);
    let chunk = Chunk { blob: 1, size: 3, rows: 1, row_bytes: 1, weight: 1, bounds: None };
    assert_eq!(code(desk.forest.check_chunk(f, &chunk)), ACCOUNT_LIMIT);
    desk.user = "bob";
    desk.set(None, "//tmp/bob", "1").expect("there is room for others");
    desk.user = "root";
    desk.set(None, "//tmp/root", "1").expect("superusers have all of it");
    // Another owner pays for what is given away.
    desk.set(None, "//tmp/0/@owner", "bob").expect("an owner");
    desk.user = "alice";
    desk.set(None, "//tmp/more", "1").expect("room for one");
}

/// S15. Users have no right to write below `//sys`.
#[test]
fn the_system_goes_on_when_its_account_is_full() {
    let mut desk = Desk::new();
    desk.set(None, "//home/@account", "sys").expect("an account");
    let limits = "{node_count=1;master_memory={total=1};disk_space=0}";
    desk.set(None, "//sys/accounts/sys/@resource_limits", limits).expect("limits");
    desk.set(None, "//sys/accounts/default/@resource_limits", limits).expect("limits");
    desk.set(None, "//sys/tokens/t", "1").expect("a token");
    desk.set(None, "//sys/scheduler/config", "{a=1}").expect("options");
    let over = desk.forest.accounts_over_limits();
    assert_eq!(over.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>(), ["default", "sys"]);
    let refused = desk.set(None, "//home/a", "1").expect_err("it is no node of the system");
    assert_eq!(refused.code, ACCOUNT_LIMIT);
}

/// S15.
#[test]
fn an_account_with_nodes_is_not_removed() {
    let mut desk = with_account(Desk::new());
    let refused = desk.remove(None, "//sys/accounts/team").expect_err("//tmp belongs to it");
    assert!(refused.message.contains("cannot be removed: 1 nodes belong to it"), "{refused}");
    desk.set(None, "//tmp/@account", "tmp").expect("an account");
    desk.remove(None, "//sys/accounts/team").expect("it is not used");
}

/// S15. In release 0.1 the nodes of users in `//home` belonged to the account of the system.
#[test]
fn nodes_of_users_leave_the_account_of_the_system() {
    let mut desk = Desk::new();
    let account = |desk: &mut Desk, path: &str| desk.get(None, &format!("{path}/@account"));
    assert_eq!(account(&mut desk, "//home"), "\"default\"");
    assert_eq!(account(&mut desk, "//sys/tokens"), "\"sys\"");
    desk.set(None, "//home/a", "{b={c=1}}").expect("nodes");
    desk.set(None, "//home/t", "1").expect("a node");
    for path in ["/", "//home", "//home/a", "//home/a/b", "//home/a/b/c"] {
        desk.set(None, &format!("{path}/@account"), "sys").expect("as release 0.1 has it");
    }
    desk.set(None, "//home/t/@account", "tmp").expect("chosen by a user");
    desk.set(None, "//sys/accounts/sys/@inherit_acl", "%true").expect("as release 0.1 has it");
    desk.set(None, "//sys/accounts/sys/@acl", "[]").expect("as release 0.1 has it");
    desk.run(None, |forest, context| forest.ensure_layout(context, &Layout::default())).expect("a start");
    for path in ["/", "//home", "//home/a", "//home/a/b", "//home/a/b/c"] {
        assert_eq!(account(&mut desk, path), "\"default\"", "{path}");
    }
    assert_eq!(account(&mut desk, "//home/t"), "\"tmp\"");
    assert_eq!(account(&mut desk, "//sys/tokens"), "\"sys\"");
    assert_eq!(desk.get(None, "//sys/accounts/sys/@inherit_acl"), "%false");
    assert_ne!(desk.get(None, "//sys/accounts/sys/@acl"), "[]");
}

/// S15. The locks of an inner transaction pass to the owner of the outer one.
#[test]
fn locks_that_pass_to_another_transaction_count_there() {
    let limits = Limits { max_locks_per_user: 4, max_nodes_per_transaction: 5, ..Limits::default() };
    let mut desk = Desk::with_limits(limits);
    (0..8).for_each(|n| desk.set(None, &format!("//tmp/k{n}"), "1").expect("a node"));
    let outer = Some(desk.start(None));
    for n in 0..3 {
        desk.lock(outer, &format!("//tmp/k{n}"), Mode::Snapshot, false).expect("room");
    }
    desk.user = "bob";
    let inner = desk.start(outer);
    for n in 3..5 {
        desk.lock(Some(inner), &format!("//tmp/k{n}"), Mode::Exclusive, false).expect("room");
    }
    let refused = desk.commit(inner).expect_err("alice has three of four");
    assert!(refused.message.contains("locks of user \"alice\" is 5, more than the limit of 4"), "{refused}");
    desk.abort(inner);
    let inner = desk.start(outer);
    desk.lock(Some(inner), "//tmp/k3", Mode::Exclusive, false).expect("room");
    desk.commit(inner).expect("four of four");
}

/// S15. An operation takes implicit locks when the work of its jobs is done.
#[test]
fn an_operation_takes_its_locks_whatever_its_owner_has() {
    let mut desk = Desk::with_limits(Limits { max_locks_per_user: 1, ..Limits::default() });
    desk.create(None, NodeType::MapNode, "//tmp/a").expect("a map");
    let started = desk.start(None);
    let at = Some(started);
    desk.forest.lift_lock_limit(started);
    desk.lock(at, "//tmp/a", Mode::Exclusive, false).expect("its first lock");
    desk.set(at, "//tmp/a/@x", "1").expect("implicit locks");
    desk.commit(started).expect("nothing is in the way");
    let at = Some(desk.start(None));
    desk.lock(at, "//tmp/a", Mode::Exclusive, false).expect("its first lock");
    assert!(desk.set(at, "//tmp/a/@x", "1").is_err(), "others have a limit");
}

/// S13. A few nodes may have as many bytes as thousands.
#[test]
fn what_is_copied_and_removed_at_once_has_few_bytes() {
    let mut desk =
        with_account(Desk::with_limits(Limits { max_bytes_per_request: 10_000, ..Limits::default() }));
    let before = desk.forest.account_usage("team");
    desk.create(None, NodeType::MapNode, "//tmp/t").expect("a map");
    for n in 0..4 {
        desk.create(None, NodeType::Document, &format!("//tmp/t/d{n}")).expect("a document");
        desk.set(None, &format!("//tmp/t/d{n}"), &"x".repeat(3_000)).expect("a text");
    }
    let refused = copy(&mut desk, None, "//tmp/t", "//tmp/u").expect_err("12,000 bytes");
    assert!(
        refused.message.starts_with("//tmp/t and what is below it take more than 10000 bytes"),
        "{refused}"
    );
    copy(&mut desk, None, "//tmp/t/d0", "//tmp/u").expect("3,000 bytes");
    let at = desk.start(None);
    assert!(desk.remove(Some(at), "//tmp/t").is_err(), "it cannot leave in slices");
    desk.abort(at);
    desk.remove(None, "//tmp/t").expect("it may be removed");
    assert!(desk.forest.has_discarded(), "it leaves in slices");
    while take_discarded(&mut desk, 500) > 0 {}
    desk.set(None, "//tmp/u", &"x".repeat(20_000)).expect("one node may be larger");
    copy(&mut desk, None, "//tmp/u", "//tmp/v").expect("one node may be larger");
    desk.remove(None, "//tmp/u").expect("one node may be larger");
    desk.remove(None, "//tmp/v").expect("one node may be larger");
    assert!(!desk.forest.has_discarded());
    assert_eq!(desk.forest.account_usage("team"), before);
}
