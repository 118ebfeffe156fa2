//! Locks: who may change what while others have begun to (http-api.md 8.2).
//!
//! A lock is on a node. An *exclusive* one is against every change by others; a *shared* one against
//! exclusive ones, and, when it names a child or an attribute, against others with the same name; a
//! *snapshot* lock is against nobody, it keeps what its transaction sees. A transaction is never in
//! the way of itself or of the transactions inside it.

use vocab::{Failure, ObjectId, Time, code};
use yson::{Bytes, Map, Value};

use super::node_locks::NodeLocks;
use crate::tree::Tree;

/// What a lock is against.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mode {
    /// Nothing: the node is seen as it was when the lock was taken.
    Snapshot,
    /// Exclusive ones, and shared ones of the same part.
    Shared(Part),
    /// Everything but snapshots.
    Exclusive,
}

/// What of a node a shared lock names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Part {
    /// Nothing in particular: shared locks of this kind do not hinder each other.
    Unnamed,
    /// The child with this key, there or not.
    Child(Bytes),
    /// The attribute of this name.
    Attribute(Bytes),
    /// Rows behind those of a table: others may put theirs there, too. Only changes take such locks.
    Rows,
}

/// A lock, taken or waited for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lock {
    /// Its own id.
    pub id: ObjectId,
    /// Whose it is.
    pub transaction: ObjectId,
    /// On what.
    pub node: ObjectId,
    /// Against what.
    pub mode: Mode,
    /// Taken by a change, not by the command `lock`.
    pub implicit: bool,
    /// Taken; otherwise it waits for others to go.
    pub acquired: bool,
    /// When it was asked for.
    pub creation_time: Time,
}

impl Mode {
    /// The public name.
    pub fn name(&self) -> &'static str {
        match self {
            Mode::Snapshot => "snapshot",
            Mode::Shared(_) => "shared",
            Mode::Exclusive => "exclusive",
        }
    }

    /// Of the parameters `mode`, `child_key` and `attribute_key`.
    pub fn parse(mode: &str, child: Option<Bytes>, attribute: Option<Bytes>) -> Result<Mode, Failure> {
        let part = match (child, attribute) {
            (None, None) => Part::Unnamed,
            (Some(key), None) => Part::Child(key),
            (None, Some(name)) => Part::Attribute(name),
            (Some(_), Some(_)) => {
                return Err(Failure::new("\"child_key\" and \"attribute_key\" exclude each other"));
            }
        };
        match (mode, part) {
            ("shared", part) => Ok(Mode::Shared(part)),
            ("snapshot", Part::Unnamed) => Ok(Mode::Snapshot),
            ("exclusive", Part::Unnamed) => Ok(Mode::Exclusive),
            ("snapshot" | "exclusive", _) => Err(Failure::new(format!(
                "\"child_key\" and \"attribute_key\" are for locks of mode \"shared\", not \"{mode}\""
            ))),
            _ => Err(Failure::new(format!(
                "Unknown lock mode {mode:?}: expected one of snapshot, shared, exclusive"
            ))),
        }
    }
}

impl Lock {
    /// As `@locks` of the node shows it.
    pub fn to_map(&self) -> Map {
        let (child, attribute) = match &self.mode {
            Mode::Shared(Part::Child(key)) => (Some(key), None),
            Mode::Shared(Part::Attribute(name)) => (None, Some(name)),
            _ => (None, None),
        };
        yson::map! {
            "id" => self.id,
            "state" => if self.acquired { "acquired" } else { "pending" },
            "transaction_id" => self.transaction,
            "mode" => self.mode.name(),
        }
        .with_some("child_key", child.map(|key| Value::String(key.clone())))
        .with_some("attribute_key", attribute.map(|name| Value::String(name.clone())))
    }
}

impl Tree {
    /// Locks on a node, taken or waited for, in the order in which they were asked for.
    pub fn locks(&self, node: ObjectId) -> impl Iterator<Item = &Lock> {
        self.node_locks(node).into_iter().flat_map(NodeLocks::iter)
    }

    /// How many locks are on a node.
    pub fn lock_count(&self, node: ObjectId) -> usize {
        self.node_locks(node).map_or(0, NodeLocks::len)
    }

    pub(crate) fn node_locks(&self, node: ObjectId) -> Option<&NodeLocks> {
        self.locks.get(&node)
    }

    /// The locks on a node, with the transaction through which this tree is seen.
    pub(crate) fn own_locks(&self, node: ObjectId) -> Option<(ObjectId, &NodeLocks)> {
        Some((self.seen_by?, self.node_locks(node)?))
    }

    /// The strongest lock that the transaction through which this tree is seen has on a node.
    pub(crate) fn own_mode(&self, node: ObjectId) -> Option<&Mode> {
        self.node_locks(node)?.strongest_of(self.seen_by?)
    }

    /// The lock that keeps a transaction (or a change outside of all) from taking another.
    pub(crate) fn lock_in_the_way(&self, line: &[ObjectId], node: ObjectId, mode: &Mode) -> Option<&Lock> {
        self.node_locks(node)?.in_the_way(line, mode)
    }
}

/// 402: somebody else was first.
pub(crate) fn conflict(path: &str, wanted: &Mode, found: &Lock, winner: Map) -> Failure {
    let message = format!(
        "Cannot take {} lock for node {path} since {} lock is taken by transaction {}",
        wanted.name(),
        found.mode.name(),
        found.transaction
    );
    Failure::coded(code::LOCK_CONFLICT, message).with("path", path).with("winner_transaction", winner)
}
