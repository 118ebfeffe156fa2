//! The tree with its transactions (http-api.md 8.2).
//!
//! A transaction is a view over its parent, in the end over the *trunk*: a [`Forest`] keeps the trunk
//! and, of each transaction, only the nodes that are different there. A view is made by putting them
//! into a clone of what is below, which costs as much as there are differences; trees share what is
//! the same. So nothing that reads or edits a tree knows of transactions:
//!
//! ```ignore
//! forest.enter(transaction)?;               // from now on the forest looks like the view
//! let place = forest.resolve(&path, Last::Follow)?;
//! forest.edit(context, |edit| edit.set(&place, value, options))?;   // a branch, with its locks
//! forest.leave();
//! forest.commit(context, transaction, |trunk| Ok(()))?;
//! ```
//!
//! Locks are not asked for by commands either: they follow from what an edit has changed ([`edit`]),
//! and a conflict takes the edit back.
//!
//! Reading order: [`locks`], `transaction`, [`edit`], [`end`], `record`.

mod charges;
mod edit;
mod end;
mod held;
mod locking;
pub mod locks;
pub(crate) mod node_locks;
mod record;
mod start;
mod transaction;
mod view;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Deref;

use vocab::{Failure, ObjectId, Time, code};
use yson::Map;

use crate::edit::{Committed, Context};
use crate::layout::Layout;
use crate::node::Node;
use crate::resolve::MountId;
use crate::tree::Tree;
use charges::Charge;
use held::Holders;
use locks::Lock;
use node_locks::Turn;
use transaction::{Branch, Transaction};
use view::{Trail, View};

pub use held::Hold;
pub use locking::{LockOptions, Locked};
pub use start::StartOptions;

/// The trunk and the transactions over it. Reads go to the trunk, or to the view of the transaction
/// that was entered.
#[derive(Clone, Debug)]
pub struct Forest {
    trunk: Tree,
    transactions: BTreeMap<ObjectId, Transaction>,
    /// When transactions expire, soonest first.
    expiry: BTreeSet<(Time, ObjectId)>,
    /// Nodes of locks and their places there, by the locks' ids.
    lock_nodes: BTreeMap<ObjectId, (ObjectId, Turn)>,
    /// Contents that branches and operations need.
    holders: BTreeMap<u64, Holders>,
    /// What branches and running jobs add to the usage of accounts, by transaction and node.
    charges: BTreeMap<(ObjectId, ObjectId), Charge>,
    /// Contents in these charges, and how often they are there.
    charged: BTreeMap<u64, usize>,
    /// Transactions of operations, whose locks have no limit.
    of_operations: BTreeSet<ObjectId>,
    /// Transactions of each user.
    started_by: BTreeMap<String, usize>,
    /// Locks of the transactions of each user.
    locked_by: BTreeMap<String, usize>,
    /// Counts whatever may change a view.
    version: u64,
    /// What views have not seen yet.
    trail: Trail,
    /// The view that was entered last.
    view: Option<View>,
    /// Others that were, the latest first.
    parked: VecDeque<View>,
    /// Reads go to the view.
    inside: bool,
}

impl Deref for Forest {
    type Target = Tree;
    fn deref(&self) -> &Tree {
        match &self.view {
            Some(view) if self.inside => &view.tree,
            _ => &self.trunk,
        }
    }
}

impl Forest {
    /// A trunk without transactions.
    pub fn new(trunk: Tree) -> Forest {
        Forest {
            trunk,
            transactions: BTreeMap::new(),
            expiry: BTreeSet::new(),
            lock_nodes: BTreeMap::new(),
            holders: BTreeMap::new(),
            charges: BTreeMap::new(),
            charged: BTreeMap::new(),
            of_operations: BTreeSet::new(),
            started_by: BTreeMap::new(),
            locked_by: BTreeMap::new(),
            version: 0,
            trail: Trail::default(),
            view: None,
            parked: VecDeque::new(),
            inside: false,
        }
    }

    /// What is outside of all transactions.
    pub fn trunk(&self) -> &Tree {
        &self.trunk
    }

    /// [`Tree::mount`].
    pub fn mount(&mut self, id: ObjectId, mount: MountId) {
        self.trunk.mount(id, mount);
        self.version += 1;
    }

    /// [`Tree::tell_uid`].
    pub fn tell_uid(&mut self, id: ObjectId, uid: Option<u32>) {
        self.trunk.tell_uid(id, uid);
        self.version += 1;
    }

    /// [`Tree::ensure_layout`] of the trunk.
    pub fn ensure_layout(&mut self, context: Context<'_>, layout: &Layout) -> Result<Committed<()>, Failure> {
        self.leave();
        self.overrule(context, |edit| edit.ensure_layout(layout))
    }

    /// From now on the forest is seen through this transaction; 11000 if it does not exist.
    pub fn enter(&mut self, transaction: ObjectId) -> Result<(), Failure> {
        self.expect(transaction)?;
        self.look_at(transaction);
        self.inside = true;
        Ok(())
    }

    /// From now on the forest is seen from outside of all transactions.
    pub fn leave(&mut self) {
        self.inside = false;
    }

    /// The transaction that one is in.
    pub fn parent_of(&self, transaction: ObjectId) -> Option<ObjectId> {
        self.transactions.get(&transaction)?.parent
    }

    /// The transaction through which the forest is seen.
    pub fn entered(&self) -> Option<ObjectId> {
        self.view.as_ref().filter(|_| self.inside).map(|view| view.of)
    }

    /// Ids of all transactions.
    pub fn transactions(&self) -> impl Iterator<Item = ObjectId> {
        self.transactions.keys().copied()
    }

    /// Has it begun and not ended?
    pub fn is_active(&self, transaction: ObjectId) -> bool {
        self.transactions.contains_key(&transaction)
    }

    /// Who began it; 11000 if it does not exist.
    pub fn owner_of(&self, transaction: ObjectId) -> Result<&str, Failure> {
        Ok(&self.expect(transaction)?.owner)
    }

    /// The attributes of a transaction; 11000 if it does not exist.
    pub fn transaction(&self, id: ObjectId) -> Result<Map, Failure> {
        Ok(self.expect(id)?.to_map(id))
    }

    /// When a transaction began.
    pub fn transaction_start(&self, id: ObjectId) -> Option<Time> {
        self.transactions.get(&id).map(|transaction| transaction.start_time)
    }

    /// A lock by its id.
    pub fn lock_by_id(&self, id: ObjectId) -> Option<&Lock> {
        let (node, turn) = self.lock_nodes.get(&id)?;
        self.trunk.node_locks(*node)?.get(*turn)
    }

    /// Ids of all locks.
    pub fn lock_ids(&self) -> impl Iterator<Item = ObjectId> {
        self.lock_nodes.keys().copied()
    }

    /// Contents that must be kept: of the trunk, of transactions and of operations.
    pub fn all_blobs(&self) -> impl Iterator<Item = u64> {
        self.trunk.blobs().chain(self.holders.keys().copied().filter(|blob| !self.trunk.has_blob(*blob)))
    }

    /// Is a content still in use?
    pub fn holds_blob(&self, blob: u64) -> bool {
        self.trunk.has_blob(blob) || self.holders.contains_key(&blob)
    }

    fn expect(&self, id: ObjectId) -> Result<&Transaction, Failure> {
        self.transactions.get(&id).ok_or_else(|| no_such_transaction(id))
    }

    /// The transaction, the one around it, and so on.
    fn line(&self, transaction: Option<ObjectId>) -> Vec<ObjectId> {
        std::iter::successors(transaction, |id| self.transactions.get(id)?.parent).collect()
    }

    /// The transaction and those inside it, outer ones first.
    fn family(&self, id: ObjectId) -> Vec<ObjectId> {
        let mut family = vec![id];
        let mut next = 0;
        while let Some(member) = family.get(next) {
            family.extend(self.transactions.get(member).into_iter().flat_map(|t| t.nested.iter().copied()));
            next += 1;
        }
        family
    }

    /// Sets what a transaction has of a node, keeping count of contents. Contents that nobody refers
    /// to any more are added to `released`.
    fn set_branch(
        &mut self,
        transaction: ObjectId,
        node: ObjectId,
        branch: Option<Branch>,
        released: &mut Vec<u64>,
    ) {
        if !self.transactions.contains_key(&transaction) {
            return;
        }
        self.charge_branch(transaction, node, branch.as_ref());
        for hold in branch.iter().flat_map(Branch::holds) {
            self.add_hold(hold);
        }
        let held: Vec<u64> = branch.iter().flat_map(Branch::node).flat_map(Node::blobs).collect();
        let Some(entry) = self.transactions.get_mut(&transaction) else { return };
        let old = match branch {
            Some(branch) => entry.branches.insert(node, branch),
            None => entry.branches.remove(&node),
        };
        for hold in old.iter().flat_map(Branch::holds) {
            self.remove_hold(&hold, released);
        }
        held.into_iter().for_each(|blob| self.settle_content(blob));
        self.note(Some(transaction), node);
    }
}

/// 11000.
pub fn no_such_transaction(id: ObjectId) -> Failure {
    Failure::coded(code::NO_SUCH_TRANSACTION, format!("No such transaction {id}"))
        .with("transaction_id", id.to_string())
}
