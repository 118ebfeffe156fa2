//! Transactions: views, locks, commits, and the way back from records.

mod append;
mod bounds;
mod desk;
mod expiration;
mod held;
mod model;
mod waiting;

use std::collections::BTreeSet;

use cypress::transactions::locks::Mode;
use cypress::*;
use desk::{Desk, code, place};
use vocab::{Failure, ObjectId, Span};
use yson::{Map, Value};

const CONFLICT: i64 = vocab::code::LOCK_CONFLICT;

#[test]
fn what_is_inside_is_seen_outside_after_the_commit_only() {
    let mut desk = Desk::new();
    let tx = desk.start(None);
    desk.create(Some(tx), NodeType::MapNode, "//tmp/m").expect("a map");
    desk.set(Some(tx), "//tmp/m/a", "1").expect("a child");
    assert_eq!(desk.get(None, "//tmp/m"), "500");
    assert_eq!(desk.get(Some(tx), "//tmp/m"), "{\"a\"=1;}");
    desk.commit(tx).expect("nothing is in the way");
    assert_eq!(desk.get(None, "//tmp/m"), "{\"a\"=1;}");
    assert_eq!(code(desk.commit(tx)), 11000, "it has ended");
}

#[test]
fn an_aborted_transaction_leaves_nothing() {
    let mut desk = Desk::new();
    desk.create(None, NodeType::MapNode, "//tmp/m").expect("a map");
    let before = desk.picture(None);
    let tx = desk.start(None);
    desk.set(Some(tx), "//tmp/m/a", "1").expect("a child");
    desk.set(Some(tx), "//tmp/m/@x", "1").expect("an attribute");
    desk.remove(Some(tx), "//tmp/m").expect("it can go");
    desk.abort(tx);
    assert_eq!(desk.picture(None), before);
}

#[test]
fn nested_transactions_pass_their_changes_and_locks_upwards() {
    let mut desk = Desk::new();
    let outer = desk.start(None);
    let inner = desk.start(Some(outer));
    desk.create(Some(inner), NodeType::StringNode, "//tmp/s").expect("a string");
    assert_eq!(desk.get(Some(outer), "//tmp/s"), "500");
    desk.commit(inner).expect("nothing is in the way");
    assert_eq!(desk.get(Some(outer), "//tmp/s"), "\"\"");
    assert_eq!(desk.get(None, "//tmp/s"), "500");
    assert_eq!(code(desk.create(None, NodeType::MapNode, "//tmp/s")), CONFLICT, "outer has the key now");
    let inner = desk.start(Some(outer));
    desk.set(Some(inner), "//tmp/s", "x").expect("its own family");
    desk.remove(Some(inner), "//tmp/s").expect("its own family");
    desk.commit(inner).expect("nothing is in the way");
    assert_eq!(desk.get(Some(outer), "//tmp/s"), "500");
    desk.commit(outer).expect("nothing is in the way");
    assert_eq!(desk.get(None, "//tmp/s"), "500");
}

#[test]
fn the_end_of_a_transaction_is_the_end_of_those_inside() {
    let mut desk = Desk::new();
    let outer = desk.start(None);
    let inner = desk.start(Some(outer));
    desk.set(Some(inner), "//tmp/a", "1").expect("a child");
    desk.set(Some(outer), "//tmp/b", "1").expect("a child");
    desk.commit(outer).expect("inner is aborted");
    assert!(!desk.forest.is_active(inner));
    assert_eq!((desk.get(None, "//tmp/a"), desk.get(None, "//tmp/b")), ("500".into(), "1".into()));
}

#[test]
fn changes_of_different_parts_do_not_hinder_each_other() {
    let mut desk = Desk::new();
    desk.create(None, NodeType::MapNode, "//tmp/m").expect("a map");
    let (one, two) = (desk.start(None), desk.start(None));
    desk.set(Some(one), "//tmp/m/a", "1").expect("a child");
    desk.set(Some(two), "//tmp/m/b", "2").expect("another child");
    desk.set(Some(one), "//tmp/m/@x", "1").expect("an attribute");
    desk.set(Some(two), "//tmp/m/@y", "2").expect("another attribute");
    desk.set(None, "//tmp/m/@z", "3").expect("yet another");
    assert_eq!(code(desk.set(Some(two), "//tmp/m/a", "2")), CONFLICT);
    assert_eq!(code(desk.set(Some(two), "//tmp/m/@x", "2")), CONFLICT);
    assert_eq!(code(desk.set(None, "//tmp/m/@x", "2")), CONFLICT);
    assert_eq!(code(desk.remove(None, "//tmp/m")), CONFLICT, "others have begun to change it");
    assert_eq!(desk.get(Some(one), "//tmp/m/@z"), "3", "what others may change is seen");
    desk.commit(two).expect("nothing is in the way");
    assert_eq!(desk.get(Some(one), "//tmp/m"), "{\"a\"=1;\"b\"=2;}");
    desk.commit(one).expect("nothing is in the way");
    assert_eq!(desk.get(None, "//tmp/m"), "{\"a\"=1;\"b\"=2;}");
    let attributes = yson::parse(desk.get(None, "//tmp/m/@user_attributes").as_bytes());
    assert_eq!(attributes, yson::parse(b"{x=1;y=2;z=3}"), "no change is lost");
}

#[test]
fn a_conflict_names_the_winner() {
    let mut desk = Desk::new();
    let one = desk.start(None);
    desk.set(Some(one), "//tmp/a", "1").expect("a child");
    let failure = desk.set(None, "//tmp/a", "2").expect_err("it is locked");
    let winner = failure.attributes.get("winner_transaction").and_then(Value::as_map).expect("a map");
    assert_eq!(winner.get("id"), Some(&Value::from(one)));
    assert!(failure.message.contains("//tmp"), "{}", failure.message);
}

#[test]
fn a_snapshot_shows_what_was_and_keeps_its_content() {
    let mut desk = Desk::new();
    let file = desk.create(None, NodeType::File, "//tmp/f").expect("a file");
    desk.write(None, "//tmp/f", 7).expect("content");
    let reader = desk.start(None);
    desk.lock(Some(reader), "//tmp/f", Mode::Snapshot, false).expect("nothing hinders a snapshot");
    desk.write(None, "//tmp/f", 8).expect("a snapshot hinders nobody");
    desk.remove(None, "//tmp/f").expect("a snapshot hinders nobody");
    let by_id = format!("#{file}/@uncompressed_data_size");
    assert_eq!(desk.get(Some(reader), &by_id), "1");
    assert_eq!(desk.get(None, &by_id), "500");
    assert_eq!(desk.released, BTreeSet::from([8]), "what is read is kept");
    assert_eq!(code(desk.write(Some(reader), &format!("#{file}"), 9)), CONFLICT, "it is to stay as it was");
    desk.abort(reader);
    assert_eq!(desk.released, BTreeSet::from([7, 8]));
}

#[test]
fn a_snapshot_of_a_map_keeps_its_children() {
    let mut desk = Desk::new();
    desk.create(None, NodeType::MapNode, "//tmp/m").expect("a map");
    desk.set(None, "//tmp/m/a", "1").expect("a child");
    let reader = desk.start(None);
    desk.lock(Some(reader), "//tmp/m", Mode::Snapshot, false).expect("a snapshot");
    desk.set(None, "//tmp/m/b", "2").expect("another child");
    assert_eq!(desk.get(Some(reader), "//tmp/m"), "{\"a\"=1;}");
    assert_eq!(desk.get(None, "//tmp/m"), "{\"a\"=1;\"b\"=2;}");
    desk.unlock(Some(reader), "//tmp/m").expect("its own lock");
    assert_eq!(desk.get(Some(reader), "//tmp/m"), "{\"a\"=1;\"b\"=2;}");
}

#[test]
fn who_waits_gets_the_lock_when_it_is_free() {
    let mut desk = Desk::new();
    desk.create(None, NodeType::MapNode, "//tmp/m").expect("a map");
    let (one, two, three) = (desk.start(None), desk.start(None), desk.start(None));
    desk.lock(Some(one), "//tmp/m", Mode::Exclusive, false).expect("free");
    assert_eq!(code(desk.lock(Some(two), "//tmp/m", Mode::Exclusive, false)), CONFLICT);
    let second = desk.lock(Some(two), "//tmp/m", Mode::Exclusive, true).expect("it waits");
    let third = desk.lock(Some(three), "//tmp/m", Mode::Exclusive, true).expect("it waits");
    let taken = |desk: &Desk, lock: &Locked| desk.forest.lock_by_id(lock.lock).expect("a lock").acquired;
    assert!(!taken(&desk, &second) && !taken(&desk, &third));
    desk.commit(one).expect("nothing is in the way");
    assert!(taken(&desk, &second) && !taken(&desk, &third), "in the order of asking");
    desk.unlock(Some(two), "//tmp/m").expect("its own lock");
    assert!(taken(&desk, &third));
    assert_eq!(desk.get(Some(three), "//tmp/m/@lock_mode"), "\"exclusive\"");
    assert_eq!(desk.get(None, "//tmp/m/@lock_count"), "1");
}

#[test]
fn what_was_changed_stays_locked() {
    let mut desk = Desk::new();
    desk.create(None, NodeType::File, "//tmp/f").expect("a file");
    let tx = desk.start(None);
    desk.lock(Some(tx), "//tmp/f", Mode::Exclusive, false).expect("free");
    desk.write(Some(tx), "//tmp/f", 1).expect("its own lock");
    desk.unlock(Some(tx), "//tmp/f").expect("its own lock");
    assert_eq!(code(desk.write(None, "//tmp/f", 2)), CONFLICT);
}

#[test]
fn nobody_heard_of_is_aborted() {
    let mut desk = Desk::new();
    let (quiet, lively) = (desk.start(None), desk.start(None));
    desk.set(Some(quiet), "//tmp/a", "1").expect("a child");
    let later = desk.now + Span::from_secs(20);
    desk.forest.ping(later, lively, false).expect("it is there");
    desk.now += Span::from_secs(29);
    let now = desk.now;
    assert_eq!(desk.run(None, |forest, _| Ok(forest.expire(now))).expect("no error"), vec![quiet]);
    assert!(desk.forest.is_active(lively));
    assert_eq!(desk.get(None, "//tmp/a"), "500");
    assert_eq!(code(desk.set(None, "//tmp/a", "2")), 0, "its locks are gone");
}

#[test]
fn a_trunk_that_is_refused_leaves_the_transaction_as_it_was() {
    let mut desk = Desk::new();
    let tx = desk.start(None);
    desk.set(Some(tx), "//tmp/a", "1").expect("a child");
    let refused = desk.run(None, |forest, context| {
        forest.commit(context, tx, |trunk| {
            assert!(
                place(&Forest::new(trunk.clone()), "//tmp/a", Last::Follow).expect("a place").rest.is_empty()
            );
            Err(Failure::new("not so"))
        })
    });
    assert_eq!(refused.expect_err("it was refused").message, "not so");
    assert_eq!((desk.get(Some(tx), "//tmp/a"), desk.get(None, "//tmp/a")), ("1".into(), "500".into()));
    desk.commit(tx).expect("nothing is in the way now");
}

#[test]
fn odd_options_are_refused() {
    let mut desk = Desk::new();
    let many = Map::new().with("x", "y".repeat(70_000));
    let large = StartOptions { attributes: many, ..StartOptions::default() };
    assert_eq!(code(desk.run(None, |forest, context| forest.start(context, large))), 1);
    let deepest = (0..32).fold(None, |parent, _| Some(desk.start(parent)));
    let deeper = StartOptions { parent: deepest, ..StartOptions::default() };
    assert_eq!(code(desk.run(None, |forest, context| forest.start(context, deeper))), 1);
    let orphan = StartOptions { parent: Some(ObjectId::default()), ..StartOptions::default() };
    assert_eq!(code(desk.run(None, |forest, context| forest.start(context, orphan))), 11000);
    assert!(Mode::parse("exclusive", Some(b"k".to_vec()), None).is_err());
    assert!(Mode::parse("shared", Some(b"k".to_vec()), Some(b"a".to_vec())).is_err());
    assert!(Mode::parse("harsh", None, None).is_err());
    assert_eq!(code(desk.lock(None, "//tmp", Mode::Exclusive, false)), 1, "outside of all transactions");
}

#[test]
fn a_change_of_nothing_is_a_change() {
    let mut desk = Desk::new();
    desk.create(None, NodeType::File, "//tmp/f").expect("a file");
    desk.set(None, "//tmp/f/@x", "1").expect("an attribute");
    let tx = desk.start(None);
    desk.set(Some(tx), "//tmp/f/@x", "1").expect("it is so already");
    assert_eq!(code(desk.remove(None, "//tmp/f")), CONFLICT, "the commit would bring it back");
    desk.set(None, "//tmp/f/@y", "2").expect("other parts are free");
    desk.commit(tx).expect("nothing is in the way");
    assert_eq!(desk.get(None, "//tmp/f/@y"), "2");
}

#[test]
fn what_the_outer_keeps_the_inner_does_not_change() {
    let mut desk = Desk::new();
    desk.create(None, NodeType::MapNode, "//tmp/m").expect("a map");
    desk.set(None, "//tmp/m/a", "1").expect("a child");
    let outer = desk.start(None);
    desk.lock(Some(outer), "//tmp/m", Mode::Snapshot, false).expect("a snapshot");
    desk.set(None, "//tmp/m/z", "1").expect("a snapshot hinders nobody outside");
    let inner = desk.start(Some(outer));
    assert_eq!(
        code(desk.set(Some(inner), "//tmp/m/z", "2")),
        CONFLICT,
        "it does not see the one that is there"
    );
    assert_eq!(code(desk.remove(Some(inner), "//tmp/m")), CONFLICT);
    desk.set(Some(inner), "//tmp/other", "1").expect("the rest is free");
    desk.commit(inner).expect("nothing is in the way");
    desk.commit(outer).expect("nothing is in the way");
    assert_eq!(desk.get(None, "//tmp/m/z"), "1");
}

#[test]
fn a_lock_that_comes_later_does_not_bring_back_what_was() {
    let mut desk = Desk::new();
    desk.create(None, NodeType::MapNode, "//tmp/m").expect("a map");
    let tx = desk.start(None);
    desk.set(Some(tx), "//tmp/m/@x", "1").expect("an attribute");
    desk.set(None, "//tmp/m/@y", "2").expect("another attribute");
    desk.lock(Some(tx), "//tmp/m", Mode::Exclusive, false).expect("nobody has a part of it");
    assert_eq!(desk.get(Some(tx), "//tmp/m/@y"), "2");
    desk.commit(tx).expect("nothing is in the way");
    assert_eq!((desk.get(None, "//tmp/m/@x"), desk.get(None, "//tmp/m/@y")), ("1".into(), "2".into()));
}

#[test]
fn users_are_outside() {
    let mut desk = Desk::new();
    let tx = desk.start(None);
    let failure = desk.set(Some(tx), "//sys/users/guest/@note", "1").expect_err("not in a transaction");
    assert!(failure.message.contains("//sys/users/guest"), "{}", failure.message);
}
