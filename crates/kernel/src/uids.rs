//! Users of the host that jobs run as (S9).
//!
//! Each user of the cluster has one uid of the cluster's range on all nodes, from the first submission on. So jobs of one user
//! share files, and jobs of different users do not. A uid is never 0, for no user. The uid of a removed user stays the removed
//! user's: files with it may still lie on nodes. Only without access control, where users are but names that clients give, a
//! uid of a name without operations is used again when the range has no other left.

use crate::Kernel;
use crate::operation::Operation;
use std::collections::{BTreeMap, BTreeSet};
use vocab::batch::{Batch, Table};
use vocab::{Failure, ObjectId, OperationId, Time, UidRange};
use wire::JobUids;
use yson::Value;

/// No uid yet: jobs never run as root.
pub(crate) const NO_UID: u32 = 0;

/// A uid and its user.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    user: String,
    /// The user's node; `None` for a user without one, on a server without authentication.
    user_id: Option<ObjectId>,
    /// The user was removed, or has another uid now.
    is_gone: bool,
}

/// All uids that were ever given. Uids outside of the range are from before a change of the configuration.
#[derive(Default)]
pub(crate) struct Uids {
    by_uid: BTreeMap<u32, Owner>,
    /// Users that are not gone.
    by_user: BTreeMap<String, u32>,
    /// There is no smaller uid of the range that was never given.
    never_given_from: u32,
    /// Where the search for a uid to use again goes on.
    again_from: u32,
    /// Unfinished operations that had no uid of the range at the start.
    adopted: usize,
}

/// Whose uid a user has. Names are not enough where users are told apart: an account may have been removed and made again, or
/// made after somebody had used its name without authentication.
#[derive(Clone, Copy)]
struct Named<'a> {
    user: &'a str,
    user_id: Option<ObjectId>,
    /// A uid that was given to the name alone is not the user's.
    is_strict: bool,
}

impl Uids {
    /// The uid of a user, unless it is outside of the range or of another user with the same name.
    fn of(&self, named: Named<'_>, range: UidRange) -> Option<u32> {
        let uid = *self.by_user.get(named.user).filter(|uid| range.contains(**uid))?;
        let owner = self.by_uid.get(&uid)?;
        // Without access control the node of the user may have been made after the first submission.
        let is_by_name = owner.user_id.is_none() && !named.is_strict;
        (is_by_name || owner.user_id == named.user_id).then_some(uid)
    }

    /// A uid of the range that was never given.
    fn never_given(&mut self, range: UidRange) -> Option<u32> {
        let mut given = self.by_uid.range(range.first()..=range.last());
        let next = given.next_back().map_or(Some(range.first()), |(last, _)| last.checked_add(1));
        if let Some(next) = next.filter(|uid| range.contains(*uid)) {
            return Some(next);
        }
        // Of ranges that overlap each other there may be gaps. Those that were passed once never come back.
        let mut expected = self.never_given_from.max(range.first());
        if expected > range.last() {
            return None;
        }
        for uid in self.by_uid.range(expected..=range.last()).map(|(uid, _)| *uid) {
            if expected < uid {
                break;
            }
            expected = uid.saturating_add(1);
        }
        self.never_given_from = expected;
        range.contains(expected).then_some(expected)
    }

    /// A uid whose user has no unfinished operation (these have those that are `used`), and is gone or no more than a name. The
    /// one that was used again last comes last.
    fn again(&mut self, range: UidRange, used: &BTreeSet<u32>) -> Option<u32> {
        let from = self.again_from.clamp(range.first(), range.last());
        let mut candidates =
            self.by_uid.range(from..=range.last()).chain(self.by_uid.range(range.first()..from));
        let is_free = |(uid, owner): &(&u32, &Owner)| {
            !used.contains(*uid) && (owner.is_gone || owner.user_id.is_none())
        };
        let uid = *candidates.find(is_free)?.0;
        self.again_from = uid.saturating_add(1);
        Some(uid)
    }

    /// Gives a uid to a user, in the record as well.
    fn give(&mut self, user: &str, user_id: Option<ObjectId>, uid: u32, batch: &mut Batch) {
        if let Some(before) = self.by_uid.get(&uid).filter(|before| before.user != user)
            && self.by_user.get(&before.user) == Some(&uid)
        {
            self.by_user.remove(&before.user);
        }
        self.forget(user, batch);
        self.put(uid, Owner { user: user.to_owned(), user_id, is_gone: false }, batch);
        self.by_user.insert(user.to_owned(), uid);
    }

    /// An unfinished operation has this uid, whoever has the name of its user now.
    fn keep_for_operation(&mut self, uid: u32, user: &str, user_id: Option<ObjectId>, batch: &mut Batch) {
        if !self.by_uid.contains_key(&uid) {
            self.put(uid, Owner { user: user.to_owned(), user_id, is_gone: true }, batch);
        }
    }

    /// The user is gone. Gives the user's node.
    fn forget(&mut self, user: &str, batch: &mut Batch) -> Option<ObjectId> {
        let uid = self.by_user.remove(user)?;
        let owner = self.by_uid.get(&uid)?.clone();
        let user_id = owner.user_id;
        self.put(uid, Owner { is_gone: true, ..owner }, batch);
        user_id
    }

    fn put(&mut self, uid: u32, owner: Owner, batch: &mut Batch) {
        let record = yson::map! {"user" => owner.user.as_str()}
            .with_some("user_id", owner.user_id)
            .with_some("gone", owner.is_gone.then_some(true));
        batch.put(Table::JobUids, uid.to_be_bytes(), yson::to_binary(&record.into()));
        self.by_uid.insert(uid, owner);
    }

    fn restore(&mut self, key: &[u8], record: &Value) -> Option<()> {
        let uid = u32::from_be_bytes(key.try_into().ok()?);
        let user_id = match record.get("user_id") {
            Some(id) => Some(id.as_str()?.parse().ok()?),
            None => None,
        };
        let user = record.get("user")?.as_str()?.to_owned();
        let is_gone = record.get("gone").and_then(Value::as_bool).unwrap_or(false);
        if !is_gone {
            self.by_user.insert(user.clone(), uid);
        }
        self.by_uid.insert(uid, Owner { user, user_id, is_gone });
        Some(())
    }
}

impl Kernel {
    fn named<'a>(&self, user: &'a str) -> Named<'a> {
        Named { user, user_id: self.user_node(user), is_strict: self.config.access_control }
    }

    /// The uid that jobs of a user run as: the user's, or the next one of the range, which [`Kernel::keep_uid`] must be told.
    pub(crate) fn uid_for(&mut self, user: &str) -> Result<u32, Failure> {
        let range = self.config.job_uids;
        match self.uids.of(self.named(user), range) {
            Some(uid) => Ok(uid),
            None => self.free_uid(user),
        }
    }

    fn free_uid(&mut self, user: &str) -> Result<u32, Failure> {
        let range = self.config.job_uids;
        if let Some(uid) = self.uids.never_given(range) {
            return Ok(uid);
        }
        if !self.config.access_control {
            let used = self.operations.values().map(|operation| operation.uid).collect();
            if let Some(uid) = self.uids.again(range, &used) {
                return Ok(uid);
            }
        }
        let message = format!(
            "User \"{user}\" cannot run jobs: all {} uids of the range {range} belong to other users, also to removed ones, \
             whose files may still be there; give option job_uids of the server a larger range",
            range.count()
        );
        Err(Failure::new(message).with("user", user).with("job_uids", range.to_string()))
    }

    /// The uid is the user's from now on.
    pub(crate) fn keep_uid(&mut self, user: &str, uid: u32) {
        let user_id = self.user_node(user);
        let is_known = self.uids.of(self.named(user), self.config.job_uids) == Some(uid)
            && self.uids.by_uid.get(&uid).is_some_and(|owner| owner.user_id == user_id);
        if is_known {
            return;
        }
        self.uids.give(user, user_id, uid, &mut self.open.batch);
        if let Some(id) = user_id {
            self.tree.tell_uid(id, Some(uid));
        }
    }

    /// These users are gone.
    pub(crate) fn forget_uids(&mut self, gone: &[String]) {
        for user in gone {
            if let Some(id) = self.uids.forget(user, &mut self.open.batch) {
                self.tree.tell_uid(id, None);
            }
        }
    }

    /// What nodes are told of them.
    pub(crate) fn job_uids(&self) -> JobUids {
        let range = self.config.job_uids;
        let newest = self.uids.by_uid.range(range.first()..=range.last()).next_back();
        let claim = match self.config.claim_all_uids {
            true => range,
            false => range.up_to_block_of(newest.map_or(range.first(), |(uid, _)| *uid)),
        };
        JobUids { cluster_id: self.config.cluster_id, range, claim }
    }

    /// Reads a record back.
    pub(crate) fn restore_uid(&mut self, key: &[u8], record: &Value) -> Result<(), Failure> {
        self.uids
            .restore(key, record)
            .ok_or_else(|| Failure::new(format!("Malformed record of a user id of jobs: key {key:02x?}")))
    }

    /// Shows users their uids, when all records were read.
    pub(crate) fn show_uids(&mut self) {
        let range = self.config.job_uids;
        for uid in self.uids.by_user.values().filter(|uid| range.contains(**uid)) {
            let node = self.uids.by_uid.get(uid).and_then(|owner| owner.user_id);
            if let Some(id) = node.filter(|id| self.tree.node(*id).is_some()) {
                self.tree.tell_uid(id, Some(*uid));
            }
        }
    }

    /// The node that a user had at a time, if it is the one that the name has now. Operations of older versions do not say
    /// whose they are but by the name.
    pub(crate) fn user_node_at(&self, user: &str, time: Time) -> Option<ObjectId> {
        let node = self.tree.node(self.user_node(user)?)?;
        (node.creation_time <= time).then_some(node.id)
    }

    /// Gives uids to operations of the life before that have none: those of release 0.1, and all after a change of the range.
    /// First all uids that operations have are noted, so that none of them is given to another user. An error leaves the
    /// store as it is: no operation is lost because the range is too small for it.
    pub(crate) fn give_uids_to_restored(&mut self) -> Result<(), Failure> {
        let mut without: BTreeMap<(String, Option<ObjectId>), Vec<OperationId>> = BTreeMap::new();
        for (id, operation) in &self.operations {
            let Operation { user, user_id, uid, .. } = operation;
            match *uid {
                NO_UID => without.entry((user.clone(), *user_id)).or_default().push(*id),
                uid => self.uids.keep_for_operation(uid, user, *user_id, &mut self.open.batch),
            }
        }
        let (range, needed) = (self.config.job_uids, without.len());
        for ((user, user_id), operations) in without {
            let given = self.uid_of_restored(&user, user_id).map_err(|why| {
                let text = format!(
                    "job_uids: expected a range with a uid for each of {needed} users of unfinished operations that have none of \
                     it, found {range}, which has {} uids, not enough of them unused: give option job_uids of the server a larger \
                     range; the operations go on with that",
                    range.count()
                );
                Failure::new(text).with("job_uids", range.to_string()).because(why)
            });
            let uid = given?;
            self.uids.adopted += operations.len();
            for id in operations {
                if let Some(operation) = self.operations.get_mut(&id) {
                    operation.uid = uid;
                    // Jobs start with it when it is durable.
                    operation.spec_seq = None;
                    operation.dirty = true;
                    self.pending_work.dirty.insert(id);
                }
            }
        }
        Ok(())
    }

    /// A user who is gone, and whose name may be another user's now, gets a uid for these operations alone.
    fn uid_of_restored(&mut self, user: &str, user_id: Option<ObjectId>) -> Result<u32, Failure> {
        let is_by_name = user_id.is_none() && !self.config.access_control;
        if is_by_name || self.user_node(user) == user_id {
            let uid = self.uid_for(user)?;
            self.keep_uid(user, uid);
            return Ok(uid);
        }
        let uid = self.free_uid(user)?;
        let owner = Owner { user: user.to_owned(), user_id, is_gone: true };
        self.uids.put(uid, owner, &mut self.open.batch);
        Ok(uid)
    }

    /// Unfinished operations whose users got uids at the start: of a store of release 0.1, or after a change of the range.
    pub fn operations_with_new_uids(&self) -> usize {
        self.uids.adopted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range() -> UidRange {
        UidRange::new(5000, 5002).expect("a range")
    }

    fn id(n: u32) -> Option<ObjectId> {
        Some(ObjectId(vocab::Guid([n, 0, 0, 1])))
    }

    fn of(uids: &Uids, user: &str, user_id: Option<ObjectId>) -> [Option<u32>; 2] {
        [false, true].map(|is_strict| uids.of(Named { user, user_id, is_strict }, range()))
    }

    /// S9.
    #[test]
    fn a_uid_of_a_name_is_used_again_only_when_there_is_no_other() {
        let (mut uids, mut batch) = (Uids::default(), Batch::new());
        for (user, uid) in [("ann", 5000), ("bob", 5001)] {
            assert_eq!(uids.never_given(range()), Some(uid));
            uids.give(user, None, uid, &mut batch);
        }
        uids.forget("ann", &mut batch);
        assert_eq!(of(&uids, "ann", None), [None, None]);
        assert_eq!(uids.never_given(range()), Some(5002), "there is an unused one");
        uids.give("carl", id(1), 5002, &mut batch);
        assert_eq!(uids.never_given(range()), None);
        assert_eq!(
            uids.again(range(), &[5000, 5001].into()),
            None,
            "they have operations, and carl is an account"
        );
        assert_eq!(uids.again(range(), &[5001].into()), Some(5000));
        uids.give("dora", None, 5000, &mut batch);
        assert_eq!(uids.again(range(), &[].into()), Some(5001), "the last one comes last");
        uids.give("emil", None, 5001, &mut batch);
        assert_eq!(uids.again(range(), &[].into()), Some(5000));
        assert_eq!(of(&uids, "bob", None), [None, None], "emil has it");
        assert_eq!(of(&uids, "dora", None), [Some(5000), Some(5000)]);
    }

    #[test]
    fn gaps_are_found_once() {
        let (mut uids, mut batch) = (Uids::default(), Batch::new());
        uids.give("ann", None, 5002, &mut batch);
        for (user, uid) in [("bob", 5000), ("carl", 5001)] {
            assert_eq!(uids.never_given(range()), Some(uid));
            uids.give(user, None, uid, &mut batch);
        }
        for _ in 0..2 {
            assert_eq!(uids.never_given(range()), None);
            assert_eq!(uids.never_given_from, 5003);
        }
    }

    /// S9: an account inherited the uid, and with it the files, of whoever had used its name without authentication.
    #[test]
    fn a_user_of_the_same_name_is_another_one() {
        let (mut uids, mut batch) = (Uids::default(), Batch::new());
        uids.give("ann", None, 5000, &mut batch);
        assert_eq!(of(&uids, "ann", id(1)), [Some(5000), None], "the node came later");
        uids.give("ann", id(1), 5000, &mut batch);
        assert_eq!(of(&uids, "ann", id(1)), [Some(5000), Some(5000)]);
        assert_eq!(of(&uids, "ann", id(2)), [None, None]);
        assert_eq!(of(&uids, "ann", None), [None, None]);
        let other = UidRange::new(7000, 8000).expect("a range");
        let named = Named { user: "ann", user_id: id(1), is_strict: false };
        assert_eq!(uids.of(named, other), None, "the range was changed");
        assert_eq!(uids.never_given(other), Some(7000));
    }

    #[test]
    fn records_come_back() {
        let (mut uids, mut batch) = (Uids::default(), Batch::new());
        uids.give("ann", Some(ObjectId(vocab::Guid([1, 2, 3, 4]))), 5000, &mut batch);
        uids.give("bob", None, 5001, &mut batch);
        uids.forget("bob", &mut batch);
        let mut kept = BTreeMap::new();
        for op in batch.ops {
            if let vocab::Op::Put { table: Table::JobUids, key, value } = op {
                kept.insert(key, value);
            }
        }
        let mut again = Uids::default();
        for (key, value) in kept {
            again.restore(&key, &yson::parse_record(&value).expect("YSON")).expect("a record");
        }
        assert_eq!((again.by_uid, again.by_user), (uids.by_uid, uids.by_user));
        assert_eq!(Uids::default().restore(b"abc", &Value::Entity), None);
    }
}
