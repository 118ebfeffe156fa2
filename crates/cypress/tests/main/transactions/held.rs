//! Accounts are charged for contents that snapshot locks and branches hold, also when the nodes of these contents are gone.

use std::collections::BTreeSet;

use super::desk::{Desk, Tx, code, place};
use cypress::transactions::locks::Mode;
use cypress::*;
use proptest::prelude::*;
use vocab::code::ACCOUNT_LIMIT;
use vocab::{Failure, ObjectId};

/// What is made in `//tmp` belongs to an account with room for so many bytes; each content has one.
fn with_room(bytes: i64) -> Desk {
    let mut desk = Desk::new();
    desk.create(None, NodeType::Account, "//sys/accounts/team").expect("an account");
    desk.set(None, "//tmp/@account", "team").expect("an account");
    let limits = format!("{{disk_space={bytes}}}");
    desk.set(None, "//sys/accounts/team/@resource_limits", &limits).expect("good limits");
    desk
}

fn disk(desk: &Desk, account: &str) -> i64 {
    desk.forest.trunk().account_usage(account).disk_space
}

fn file(desk: &mut Desk, blob: u64) {
    desk.create(None, NodeType::File, "//tmp/f").expect("a file");
    desk.write(None, "//tmp/f", blob).expect("room for it");
}

fn snapshot(desk: &mut Desk, parent: Tx) -> ObjectId {
    let tx = desk.start(parent);
    desk.lock(Some(tx), "//tmp/f", Mode::Snapshot, false).expect("snapshots are in nobody's way");
    tx
}

fn copy(desk: &mut Desk, at: Tx, from: &str, to: &str) -> Result<ObjectId, Failure> {
    desk.run(at, |forest, context| {
        let (from, to) = (place(forest, from, Last::Follow)?, place(forest, to, Last::Stay)?);
        forest.edit(context, |edit| edit.copy(&from, &to, CopyOptions::default()))
    })
}

/// S15: a user filled the disk by removing what a transaction of the user had locked.
#[test]
fn a_content_that_snapshot_locks_need_stays_charged_once() {
    let mut desk = with_room(2);
    file(&mut desk, 1);
    let (first, second) = (snapshot(&mut desk, None), snapshot(&mut desk, None));
    desk.remove(None, "//tmp/f").expect("locks of this kind do not keep the node");
    assert_eq!(disk(&desk, "team"), 1, "two locks need it, and it is there once");
    desk.create(None, NodeType::File, "//tmp/g").expect("a file");
    desk.write(None, "//tmp/g", 2).expect("room for one more");
    desk.create(None, NodeType::File, "//tmp/h").expect("a file");
    assert_eq!(code(desk.write(None, "//tmp/h", 3)), ACCOUNT_LIMIT);
    let refused = desk.remove(None, "//sys/accounts/team").expect_err("nodes belong to it");
    assert!(refused.message.contains("cannot be removed"), "{refused}");
    desk.abort(first);
    assert_eq!(disk(&desk, "team"), 2);
    desk.commit(second).expect("it has changed nothing");
    assert_eq!(disk(&desk, "team"), 1);
    assert_eq!(desk.released, BTreeSet::from([1]));
}

/// S15: an overwrite gives no room while the old content is needed, however often it is done.
#[test]
fn overwriting_what_is_locked_needs_room_for_both() {
    let mut desk = with_room(3);
    file(&mut desk, 1);
    let mut locks = Vec::new();
    for blob in 2..=3 {
        locks.push(snapshot(&mut desk, None));
        desk.write(None, "//tmp/f", blob).expect("room for both");
    }
    locks.push(snapshot(&mut desk, None));
    assert_eq!(disk(&desk, "team"), 3);
    assert_eq!(code(desk.write(None, "//tmp/f", 4)), ACCOUNT_LIMIT);
    desk.unlock(Some(locks[2]), "//tmp/f").expect("it has a lock");
    desk.write(None, "//tmp/f", 4).expect("the content before this one is needed no more");
    desk.abort(locks[0]);
    desk.abort(locks[1]);
    assert_eq!((disk(&desk, "team"), desk.released.len()), (1, 3));
}

/// S15.
#[test]
fn a_content_of_a_transaction_stays_charged_when_one_inside_has_it_locked() {
    let mut desk = with_room(3);
    file(&mut desk, 1);
    let outer = desk.start(None);
    desk.write(Some(outer), "//tmp/f", 2).expect("room for both");
    let inner = snapshot(&mut desk, Some(outer));
    desk.write(Some(outer), "//tmp/f", 3).expect("room for three");
    assert_eq!(disk(&desk, "team"), 3);
    let second = snapshot(&mut desk, Some(outer));
    assert_eq!(code(desk.write(Some(outer), "//tmp/f", 4)), ACCOUNT_LIMIT);
    desk.abort(second);
    desk.write(Some(outer), "//tmp/f", 4).expect("nothing needs the content before this one");
    desk.abort(inner);
    assert_eq!(disk(&desk, "team"), 2);
    desk.commit(outer).expect("nothing is in the way");
    assert_eq!((disk(&desk, "team"), desk.forest.trunk().uncommitted("team")), (1, Usage::NONE));
}

/// S15.
#[test]
fn a_content_that_was_removed_is_charged_to_its_copy_alone() {
    let mut desk = with_room(1);
    file(&mut desk, 1);
    let id = place(&desk.forest, "//tmp/f", Last::Stay).expect("it is there").node;
    let tx = snapshot(&mut desk, None);
    desk.remove(None, "//tmp/f").expect("locks of this kind do not keep the node");
    copy(&mut desk, Some(tx), &format!("#{id}"), "//tmp/g").expect("it needs no more room");
    assert_eq!(disk(&desk, "team"), 1);
    desk.commit(tx).expect("nothing is in the way");
    assert_eq!((disk(&desk, "team"), desk.forest.trunk().uncommitted("team")), (1, Usage::NONE));
}

/// S15: the account at the time of the lock is charged; the removal itself is not refused for that.
#[test]
fn a_locked_content_is_charged_to_the_account_that_its_node_had() {
    let mut desk = with_room(1);
    file(&mut desk, 1);
    let tx = snapshot(&mut desk, None);
    desk.set(None, "//tmp/f/@account", "intermediate").expect("an account");
    assert_eq!((disk(&desk, "team"), disk(&desk, "intermediate")), (0, 1));
    desk.create(None, NodeType::File, "//tmp/g").expect("a file");
    desk.write(None, "//tmp/g", 2).expect("room for it");
    desk.remove(None, "//tmp/f").expect("a removal needs no room");
    assert_eq!((disk(&desk, "team"), disk(&desk, "intermediate")), (2, 0));
    assert_eq!(code(desk.write(None, "//tmp/g", 3)), 0, "as much as before");
    desk.abort(tx);
    assert_eq!(disk(&desk, "team"), 1);
}

/// S15: an account is there as long as it is charged.
#[test]
fn an_account_with_contents_that_are_needed_is_not_removed() {
    let mut desk = Desk::new();
    desk.create(None, NodeType::Account, "//sys/accounts/team").expect("an account");
    file(&mut desk, 1);
    desk.set(None, "//tmp/f/@account", "team").expect("an account");
    let tx = snapshot(&mut desk, None);
    desk.remove(None, "//tmp/f").expect("locks of this kind do not keep the node");
    let refused = desk.remove(None, "//sys/accounts/team").expect_err("it is charged for a content");
    assert!(refused.message.contains("contents of removed nodes"), "{refused}");
    desk.abort(tx);
    desk.remove(None, "//sys/accounts/team").expect("it is charged for nothing");
}

#[derive(Clone, Debug)]
enum Step {
    Start,
    Commit,
    Abort,
    Create(usize),
    Write(usize),
    Touch(usize),
    Remove(usize),
    Copy(usize, usize),
    Lock(usize),
    Unlock(usize),
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let step = prop_oneof![
        3 => Just(Step::Start),
        1 => Just(Step::Commit),
        1 => Just(Step::Abort),
        2 => (0..2usize).prop_map(Step::Create),
        6 => (0..2usize).prop_map(Step::Write),
        1 => (0..2usize).prop_map(Step::Touch),
        3 => (0..2usize).prop_map(Step::Remove),
        2 => (0..2usize, 0..2usize).prop_map(|(from, to)| Step::Copy(from, to)),
        5 => (0..2usize).prop_map(Step::Lock),
        2 => (0..2usize).prop_map(Step::Unlock),
    ];
    (any::<usize>(), step)
}

const ROOM: i64 = 6;

fn is_there(desk: &mut Desk, at: Tx, path: &str) -> bool {
    desk.picture(at).lines().any(|line| line.starts_with(&format!("{path} ")))
}

/// After each step the desk compares all sums with a recount and with those after a restart, and looks whether each
/// content that is kept is charged.
fn play(steps: Vec<(usize, Step)>) {
    let mut desk = with_room(ROOM);
    let mut written = BTreeSet::new();
    let mut next = 0;
    for (choice, step) in steps {
        let all: Vec<Tx> = std::iter::once(None).chain(desk.forest.transactions().map(Some)).collect();
        let at = all[choice % all.len()];
        let path = |number: usize| format!("//tmp/f{number}");
        // Many are refused: nodes are missing, locks are in the way, or there is no room.
        match (step, at) {
            (Step::Start, _) if all.len() < 5 => {
                desk.start(at);
            }
            (Step::Start, _) => {}
            (Step::Commit, Some(id)) => drop(desk.commit(id)),
            (Step::Abort, Some(id)) => desk.abort(id),
            (Step::Create(number), _) => drop(desk.create(at, NodeType::File, &path(number))),
            (Step::Write(number), _) => {
                next += 1;
                if desk.write(at, &path(number), next).is_ok() {
                    written.insert(next);
                }
            }
            (Step::Touch(number), _) => drop(desk.set(at, &format!("{}/@x", path(number)), "1")),
            (Step::Remove(number), _) => drop(desk.remove(at, &path(number))),
            (Step::Copy(from, to), _) => drop(copy(&mut desk, at, &path(from), &path(to))),
            (Step::Lock(number), Some(_)) if is_there(&mut desk, at, &path(number)) => {
                drop(desk.lock(at, &path(number), Mode::Snapshot, false));
            }
            (Step::Unlock(number), Some(_)) => drop(desk.unlock(at, &path(number))),
            _ => {}
        }
        assert!(disk(&desk, "team") <= ROOM, "more than the account may have");
        let kept: BTreeSet<u64> = desk.forest.all_blobs().collect();
        assert!(kept.len() as i64 <= ROOM, "more on the disk than the account may have");
        assert_eq!(&kept | &desk.released, written, "each content is kept or released");
    }
    let outer: Vec<ObjectId> =
        desk.forest.transactions().filter(|id| desk.forest.parent_of(*id).is_none()).collect();
    outer.into_iter().for_each(|id| desk.abort(id));
    assert_eq!(desk.forest.trunk().uncommitted("team"), Usage::NONE);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// S15.
    #[test]
    fn whatever_is_kept_is_charged_and_within_the_limit(steps in prop::collection::vec(step(), 1..50)) {
        play(steps);
    }
}
