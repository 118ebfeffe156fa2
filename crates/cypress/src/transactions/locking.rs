//! The commands `lock` and `unlock` (http-api.md 8.1).

use std::collections::BTreeSet;
use std::sync::Arc;

use vocab::{Failure, ObjectId, object_type};

use super::Forest;
use super::charges::fewer;
use super::locks::{Lock, Mode, conflict};
use super::node_locks::Turn;
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
        if self.trunk.lock_count(node) >= MAX_LOCKS {
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
        self.refuse_more_locked(transaction, node)?;
        self.refuse_locks(transaction, 1)?;
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
        // What it sees is what it saw: the view goes on.
        self.keep_view();
        Ok(done)
    }

    /// The transaction sees the node as it is now until it ends.
    fn pin<T>(&mut self, transaction: ObjectId, id: ObjectId, done: &mut Committed<T>) {
        let pinned = |t: &super::Transaction| matches!(t.branches.get(&id), Some(Branch::Pinned { .. }));
        if self.transactions.get(&transaction).is_some_and(pinned) {
            return;
        }
        let seen = match &self.view {
            Some(view) if self.inside && view.of == transaction => None,
            _ => Some(self.view_of(transaction)),
        };
        let tree = seen.as_ref().unwrap_or(&**self);
        let Some(node) = tree.nodes.get(&id) else { return };
        let children = matches!(node.body, Body::Map).then(|| tree.children.get(&id).cloned()).flatten();
        let branch = Branch::Pinned { node: Arc::clone(node), children };
        done.transactions.push(Change::of_branch(transaction, id, Some(&branch)));
        let keeps_children = branch.keeps_children();
        self.set_branch(transaction, id, Some(branch), &mut done.released_blobs);
        if let Some(view) = self.view.as_mut().filter(|view| view.of == transaction) {
            view.keeps_children |= keeps_children;
        }
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
        let dropped = self.drop_locks_of(transaction, node, |lock| !lock.implicit, &mut done);
        self.grant(node, &dropped, &mut done);
        self.version += 1;
        Ok(done)
    }

    /// Drops locks of a transaction on a node, with their records; what those that were taken were against.
    pub(super) fn drop_locks_of<T>(
        &mut self,
        transaction: ObjectId,
        node: ObjectId,
        which: impl Fn(&Lock) -> bool,
        done: &mut Committed<T>,
    ) -> BTreeSet<Mode> {
        let mut dropped = BTreeSet::new();
        let Some(locks) = self.trunk.locks.get_mut(&node) else { return dropped };
        let gone: Vec<Turn> =
            locks.of(transaction).filter(|(_, lock)| which(lock)).map(|(turn, _)| turn).collect();
        let mut count = 0;
        for lock in gone.into_iter().filter_map(|turn| locks.remove(turn)) {
            count += 1;
            self.lock_nodes.remove(&lock.id);
            done.transactions.push(Change::without_lock(&lock));
            if lock.acquired {
                dropped.insert(lock.mode.clone());
            }
        }
        let has_more = locks.has_any_of(transaction);
        if locks.len() == 0 {
            self.trunk.locks.remove(&node);
        }
        if let Some(owner) = self.transactions.get(&transaction).map(|t| t.owner.as_str()) {
            fewer(&mut self.locked_by, owner, count);
        }
        if !has_more && let Some(entry) = self.transactions.get_mut(&transaction) {
            entry.locked.remove(&node);
        }
        dropped
    }

    /// Gives locks that wait, in the order in which they were asked for, as far as nothing is in
    /// their way any more now that locks of these modes are gone.
    pub(super) fn grant<T>(&mut self, node: ObjectId, dropped: &BTreeSet<Mode>, done: &mut Committed<T>) {
        let mut after = None;
        while let Some((turn, free)) = self.next_waiting(node, after, dropped) {
            after = Some(turn);
            if !free {
                continue;
            }
            let taken = self.trunk.locks.get_mut(&node).and_then(|l| l.change(turn, |l| l.acquired = true));
            let Some(lock) = taken else { continue };
            done.transactions.push(Change::of_lock(&lock));
            if lock.mode == Mode::Snapshot {
                self.pin(lock.transaction, node, done);
            }
        }
    }

    /// The next that waits and may perhaps be taken, and whether nothing is in its way.
    fn next_waiting(
        &self,
        node: ObjectId,
        after: Option<Turn>,
        dropped: &BTreeSet<Mode>,
    ) -> Option<(Turn, bool)> {
        let locks = self.trunk.node_locks(node).filter(|locks| locks.any_waits())?;
        let turn = locks.next_waiting(after, dropped, &|id| self.family(id))?;
        let lock = locks.get(turn)?;
        let line = self.line(Some(lock.transaction));
        Some((turn, locks.in_the_way(&line, &lock.mode).is_none()))
    }
}
