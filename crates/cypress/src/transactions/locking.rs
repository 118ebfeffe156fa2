//! The commands `lock` and `unlock` (http-api.md 8.1).

use std::sync::Arc;

use vocab::{Failure, ObjectId, object_type};

use super::Forest;
use super::locks::{Lock, Mode, conflict};
use super::transaction::Branch;
use crate::edit::{Committed, Context};
use crate::node::Body;
use crate::record::Change;

/// Locks that the command may put on one node.
const MAX_LOCKS: usize = 10_000;

/// Options of `lock`.
#[derive(Clone, Debug, PartialEq)]
pub struct LockOptions {
    /// Against what.
    pub mode: Mode,
    /// Wait for others instead of being refused.
    pub waitable: bool,
}

/// The answer of `lock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locked {
    /// The lock.
    pub lock: ObjectId,
    /// What is locked.
    pub node: ObjectId,
    /// Revision of its content as the transaction sees it.
    pub revision: u64,
}

impl Forest {
    /// `lock`, in the transaction that was entered.
    pub fn lock(
        &mut self,
        context: Context<'_>,
        node: ObjectId,
        options: LockOptions,
    ) -> Result<Committed<Locked>, Failure> {
        let Some(transaction) = self.entered() else {
            return Err(Failure::new("A lock needs a transaction: \"transaction_id\" is missing"));
        };
        let (path, revision) = (self.path(node), self.expect_node(node)?.revision());
        if self.trunk.locks(node).len() >= MAX_LOCKS {
            let message = format!("Node {path} has {MAX_LOCKS} locks, which is the limit");
            return Err(Failure::new(message).with("path", path));
        }
        let line = self.line(Some(transaction));
        let found = self.trunk.lock_in_the_way(&line, node, &options.mode).cloned();
        if let Some(found) = &found
            && !(options.waitable && found.transaction != transaction)
        {
            return Err(conflict(&path, &options.mode, found, self.winner(found)));
        }
        let lock = Lock {
            id: ObjectId(context.ids.next(object_type::LOCK)),
            transaction,
            node,
            mode: options.mode,
            implicit: false,
            acquired: found.is_none(),
            creation_time: context.now,
        };
        let mut done = Committed::of(Locked { lock: lock.id, node, revision });
        done.transactions.push(Change::of_lock(&lock));
        let pins = lock.acquired && lock.mode == Mode::Snapshot;
        self.insert_lock(lock);
        if pins {
            self.pin(transaction, node, &mut done);
        }
        Ok(done)
    }

    /// The transaction sees the node as it is now until it ends.
    fn pin<T>(&mut self, transaction: ObjectId, id: ObjectId, done: &mut Committed<T>) {
        let pinned = |t: &super::Transaction| matches!(t.branches.get(&id), Some(Branch::Pinned { .. }));
        if self.transactions.get(&transaction).is_some_and(pinned) {
            return;
        }
        let tree = self.view_of(transaction);
        let Some(node) = tree.nodes.get(&id) else { return };
        let children = matches!(node.body, Body::Map).then(|| tree.children.get(&id).cloned()).flatten();
        let branch = Branch::Pinned { node: Arc::clone(node), children };
        done.transactions.push(Change::of_branch(transaction, id, Some(&branch)));
        self.set_branch(transaction, id, Some(branch), &mut done.released_blobs);
        self.version += 1;
    }

    /// `unlock`: drops the explicit locks of the transaction that was entered on one node. What it has
    /// changed keeps the locks that came with the change.
    pub fn unlock(&mut self, node: ObjectId) -> Result<Committed<()>, Failure> {
        let Some(transaction) = self.entered() else {
            return Err(Failure::new("\"unlock\" needs a transaction: \"transaction_id\" is missing"));
        };
        let mut done = Committed::of(());
        let branch = self.expect(transaction)?.branches.get(&node);
        if matches!(branch, Some(Branch::Pinned { .. })) {
            done.transactions.push(Change::of_branch(transaction, node, None));
            self.set_branch(transaction, node, None, &mut done.released_blobs);
        }
        self.drop_locks_of(transaction, node, |lock| !lock.implicit, &mut done);
        self.grant(&[node], &mut done);
        self.version += 1;
        Ok(done)
    }

    /// Drops locks of a transaction on a node, with their records.
    pub(super) fn drop_locks_of<T>(
        &mut self,
        transaction: ObjectId,
        node: ObjectId,
        which: impl Fn(&Lock) -> bool,
        done: &mut Committed<T>,
    ) {
        let goes = |lock: &Lock| lock.transaction == transaction && which(lock);
        for lock in self.trunk.locks(node).iter().filter(|lock| goes(lock)) {
            self.lock_nodes.remove(&lock.id);
            done.transactions.push(Change::without_lock(lock));
        }
        self.trunk.drop_locks(node, goes);
        if !self.trunk.locks(node).iter().any(|lock| lock.transaction == transaction)
            && let Some(entry) = self.transactions.get_mut(&transaction)
        {
            entry.locked.remove(&node);
        }
    }

    /// Gives locks that wait, in the order in which they were asked for, as far as nothing is in
    /// their way any more.
    pub(super) fn grant<T>(&mut self, nodes: &[ObjectId], done: &mut Committed<T>) {
        for node in nodes {
            loop {
                let next = self.trunk.locks(*node).iter().position(|lock| {
                    let line = self.line(Some(lock.transaction));
                    !lock.acquired && self.trunk.lock_in_the_way(&line, *node, &lock.mode).is_none()
                });
                let Some(next) = next else { break };
                let Some(lock) = self.trunk.locks.get_mut(node).and_then(|locks| locks.get_mut(next)) else {
                    break;
                };
                lock.acquired = true;
                let lock = lock.clone();
                done.transactions.push(Change::of_lock(&lock));
                if lock.mode == Mode::Snapshot {
                    self.pin(lock.transaction, *node, done);
                }
            }
        }
    }
}
