//! Users of the host that jobs run as (S9).
//!
//! Each user of the cluster has one uid of the cluster's range on all nodes, from the first submission on. So jobs of one user
//! share files, and jobs of different users do not. A uid is never 0, for no user. The uid of a removed user is given to
//! another one only when the range has no unused uid left: files with it may still lie on nodes.

use crate::Kernel;
use std::collections::{BTreeMap, BTreeSet};
use vocab::batch::{Batch, Table};
use vocab::{Failure, ObjectId, UidRange};
use wire::JobUids;
use yson::Value;

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
    /// Unfinished operations that had no uid of the range at the start.
    adopted: usize,
}

impl Uids {
    /// The uid of a user, unless it is outside of the range or of a removed user with the same name.
    fn of(&self, user: &str, user_id: Option<ObjectId>, range: UidRange) -> Option<u32> {
        let uid = *self.by_user.get(user).filter(|uid| range.contains(**uid))?;
        let owner = self.by_uid.get(&uid)?;
        // The node of the user may have been made after the first submission.
        (owner.user_id.is_none() || owner.user_id == user_id).then_some(uid)
    }

    /// The uid that the next new user gets. `used` are those of unfinished operations, whoever has them.
    fn free(&self, range: UidRange, used: impl FnOnce() -> BTreeSet<u32>) -> Option<u32> {
        let given = || self.by_uid.range(range.first()..=range.last());
        let next = given().next_back().map_or(Some(range.first()), |(last, _)| last.checked_add(1));
        if let Some(next) = next.filter(|uid| range.contains(*uid)) {
            return Some(next);
        }
        let used = used();
        let mut expected = range.first();
        for (uid, owner) in given() {
            if let Some(skipped) = (expected..*uid).find(|uid| !used.contains(uid)) {
                return Some(skipped);
            }
            if owner.is_gone && !used.contains(uid) {
                return Some(*uid);
            }
            expected = uid.saturating_add(1);
        }
        None
    }

    /// Gives a uid to a user, in the record as well.
    fn give(&mut self, user: &str, user_id: Option<ObjectId>, uid: u32, batch: &mut Batch) {
        self.forget(user, batch);
        self.put(uid, Owner { user: user.to_owned(), user_id, is_gone: false }, batch);
        self.by_user.insert(user.to_owned(), uid);
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
    /// The uid that jobs of a user run as: the user's, or the next one of the range, which [`Kernel::keep_uid`] must be told.
    pub(crate) fn uid_for(&self, user: &str) -> Result<u32, Failure> {
        let range = self.config.job_uids;
        if let Some(uid) = self.uids.of(user, self.user_node(user), range) {
            return Ok(uid);
        }
        let used = || self.operations.values().map(|operation| operation.uid).collect();
        self.uids.free(range, used).ok_or_else(|| {
            let message = format!(
                "User \"{user}\" cannot run jobs: all {} uids of the range {range} belong to other users; give option \
                 job_uids of the server a larger range",
                range.count()
            );
            Failure::new(message).with("user", user).with("job_uids", range.to_string())
        })
    }

    /// The uid is the user's from now on.
    pub(crate) fn keep_uid(&mut self, user: &str, uid: u32) {
        let user_id = self.user_node(user);
        let is_known = self.uids.of(user, user_id, self.config.job_uids) == Some(uid)
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

    /// The uid of an operation of the life before. One of release 0.1 has none; after a change of the range it has another one.
    pub(crate) fn uid_of_restored(&mut self, user: &str, uid: Option<u32>) -> Result<u32, Failure> {
        if let Some(uid) = uid.filter(|uid| self.config.job_uids.contains(*uid)) {
            return Ok(uid);
        }
        let uid = self.uid_for(user)?;
        self.keep_uid(user, uid);
        self.uids.adopted += 1;
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

    fn next(uids: &Uids, used: &[u32]) -> Option<u32> {
        uids.free(range(), || used.iter().copied().collect())
    }

    /// S9.
    #[test]
    fn a_uid_is_used_again_only_when_there_is_no_other() {
        let (mut uids, mut batch) = (Uids::default(), Batch::new());
        for (user, uid) in [("ann", 5000), ("bob", 5001)] {
            assert_eq!(next(&uids, &[]), Some(uid));
            uids.give(user, None, uid, &mut batch);
        }
        uids.forget("ann", &mut batch);
        assert_eq!(uids.of("ann", None, range()), None);
        assert_eq!(next(&uids, &[]), Some(5002), "there is an unused one");
        uids.give("carl", None, 5002, &mut batch);
        assert_eq!(next(&uids, &[5000]), None, "an operation of ann still runs");
        assert_eq!(next(&uids, &[]), Some(5000));
        uids.give("dora", None, 5000, &mut batch);
        assert_eq!(next(&uids, &[]), None);
        assert_eq!(uids.of("dora", None, range()), Some(5000));
        assert_eq!(uids.of("ann", None, range()), None);
    }

    #[test]
    fn a_user_of_the_same_name_is_another_one() {
        let (mut uids, mut batch) = (Uids::default(), Batch::new());
        let id = |n| Some(ObjectId(vocab::Guid([n, 0, 0, 1])));
        uids.give("ann", None, 5000, &mut batch);
        assert_eq!(uids.of("ann", id(1), range()), Some(5000), "the node came later");
        uids.give("ann", id(1), 5000, &mut batch);
        assert_eq!(uids.of("ann", id(1), range()), Some(5000));
        assert_eq!(uids.of("ann", id(2), range()), None);
        assert_eq!(uids.of("ann", None, range()), None);
        let other = UidRange::new(7000, 8000).expect("a range");
        assert_eq!(uids.of("ann", id(1), other), None, "the range was changed");
        assert_eq!(uids.free(other, BTreeSet::new), Some(7000));
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
