//! What accounts use and may use, how many transactions and locks users have, and how much one command may change.

use super::desk::{Desk, Tx, code, place};
use cypress::transactions::locks::Mode;
use cypress::*;
use vocab::code::{ACCOUNT_LIMIT, LOCK_CONFLICT};
use vocab::{Failure, ObjectId, Span};

fn nodes(desk: &Desk) -> i64 {
    desk.forest.account_usage("tmp").nodes
}

fn set_limits(desk: &mut Desk, limits: &str) {
    desk.set(None, "//sys/accounts/tmp/@resource_limits", limits).expect("good limits");
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
    let mut desk = Desk::new();
    let before = desk.forest.account_usage("tmp");
    desk.create(None, NodeType::File, "//tmp/f").expect("a file");
    desk.write(None, "//tmp/f", 1).expect("a content");
    copy(&mut desk, None, "//tmp/f", "//tmp/g").expect("a copy");
    let after = desk.forest.account_usage("tmp");
    assert_eq!((after.nodes - before.nodes, after.disk_space, after.chunks), (2, 2, 2), "copies count each");
    desk.set(None, "//tmp/f/@text", &"x".repeat(1000)).expect("an attribute");
    let with_text = desk.forest.account_usage("tmp").memory;
    assert!((1000..1100).contains(&(with_text - after.memory)), "{with_text} after {}", after.memory);
    desk.set(None, "//tmp/f/@text", "y").expect("an attribute");
    desk.set(None, "//tmp/f/@acl", "[{action=allow;subjects=[root];permissions=[read]}]").expect("a list");
    desk.set(None, "//tmp/g/@account", "intermediate").expect("an account");
    assert_eq!(desk.forest.account_usage("intermediate").disk_space, 1, "it moves with all that it has");
    desk.remove(None, "//tmp/f").expect("it is there");
    desk.remove(None, "//tmp/g").expect("it is there");
    assert_eq!(desk.forest.account_usage("tmp"), before);
    assert_eq!(desk.forest.account_usage("intermediate"), Usage::NONE);
}

/// S15.
#[test]
fn more_than_an_account_may_have_is_refused() {
    let mut desk = Desk::new();
    desk.create(None, NodeType::File, "//tmp/f").expect("a file");
    let limit = nodes(&desk) + 1;
    set_limits(&mut desk, &format!("{{node_count={limit};disk_space=1;master_memory={{total=3000}}}}"));
    let refused = desk.create(None, NodeType::MapNode, "//tmp/a/b").map(drop);
    assert_eq!(code(refused), 500, "other errors come first");
    desk.create(None, NodeType::MapNode, "//tmp/a").expect("room for one");
    let refused = desk.create(None, NodeType::MapNode, "//tmp/b").expect_err("no room");
    assert_eq!(refused.code, ACCOUNT_LIMIT);
    let said =
        format!("Account \"tmp\" is over node count limit: it would use {}, the limit is {limit}", limit + 1);
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
    let mut desk = Desk::new();
    desk.create(None, NodeType::File, "//tmp/f").expect("a file");
    desk.write(None, "//tmp/f", 1).expect("a content");
    let limit = nodes(&desk) + 2;
    set_limits(&mut desk, &format!("{{node_count={limit};disk_space=2}}"));
    let (first, second) = (Some(desk.start(None)), Some(desk.start(None)));
    desk.create(first, NodeType::MapNode, "//tmp/a").expect("room for two");
    desk.create(second, NodeType::MapNode, "//tmp/b").expect("room for two");
    assert_eq!(desk.forest.trunk().uncommitted("tmp").nodes, 2);
    for at in [None, first, second] {
        assert_eq!(code(desk.create(at, NodeType::MapNode, "//tmp/c")), ACCOUNT_LIMIT, "{at:?}");
    }
    // A new content of a file takes room beside the old one, an attribute does not.
    desk.set(first, "//tmp/f/@x", "1").expect("no more room is needed");
    assert_eq!(desk.forest.account_usage("tmp").disk_space, 1);
    desk.write(first, "//tmp/f", 2).expect("room for another byte");
    assert_eq!(desk.forest.account_usage("tmp").disk_space, 2);
    desk.commit(first.expect("it runs")).expect("nothing is in the way");
    desk.abort(second.expect("it runs"));
    assert_eq!(desk.forest.trunk().uncommitted("tmp"), Usage::NONE);
    assert_eq!((nodes(&desk), desk.forest.account_usage("tmp").disk_space), (limit - 1, 1));
    let outer = desk.start(None);
    let inner = desk.start(Some(outer));
    desk.create(Some(inner), NodeType::MapNode, "//tmp/d").expect("room for one");
    desk.commit(inner).expect("nothing is in the way");
    assert_eq!(desk.forest.trunk().uncommitted("tmp").nodes, 1, "it is the outer one's");
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
    Desk::with_limits(Limits { max_nodes_per_request: 12, max_nodes_per_transaction: 8, ..Limits::default() })
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
    let before = desk.forest.account_usage("tmp");
    grow(&mut desk, "//tmp/t", 3, 8);
    desk.set(None, "//tmp/t/list", "[1;{a=2};[3]]").expect("a list");
    desk.create(None, NodeType::File, "//tmp/t/file").expect("a file");
    desk.write(None, "//tmp/t/file", 7).expect("a content");
    desk.remove(None, "//tmp/t").expect("it may be removed");
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
    assert_eq!(desk.forest.account_usage("tmp"), before);
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
    assert!(refused.message.contains("more than 12 nodes"), "{refused}");
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
