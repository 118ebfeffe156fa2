//! What transactions add to the usage of accounts, and how many transactions and locks users have.
//!
//! A branch is charged for what it adds to the node of the trunk: all of a node that is new, and of another one the
//! contents and values that the trunk's version has not. Its account is that of the branch. The charge ends with the
//! branch: after a commit the node of the trunk is counted instead. Contents that lose their node are in `held`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;
use std::sync::Arc;

use vocab::{Failure, ObjectId};

use super::locks::{Mode, Part};
use super::transaction::{Branch, Transaction};
use super::{Forest, Hold};
use crate::accounts::{Payer, Usage};
use crate::edit::journal::{Difference, Journal};
use crate::node::{Body, Chunk, Node};
use crate::tree::Tree;

/// By how much an edit of the trunk has changed the usage of each account and owner. Nodes of the system are not counted.
pub(super) fn grown_accounts(journal: &Journal, tree: &Tree) -> BTreeMap<Payer, Usage> {
    let mut grown: BTreeMap<Payer, Usage> = BTreeMap::new();
    for Difference { id, old, new } in journal.differences(tree) {
        if new.is_some() && tree.is_exempt(id) {
            continue;
        }
        if let Some(new) = new {
            *grown.entry(Payer::of(new)).or_default() += new.usage();
        }
        if let Some(old) = old {
            *grown.entry(Payer::of(old)).or_default() += -old.usage();
        }
    }
    grown
}

/// What a branch or the running jobs of an operation add to the usage of an account.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Charge {
    pub payer: Payer,
    pub usage: Usage,
    /// The contents among it, and how often they are there.
    pub contents: BTreeMap<u64, usize>,
}

impl Charge {
    fn nothing(payer: Payer) -> Charge {
        Charge { payer, usage: Usage::NONE, contents: BTreeMap::new() }
    }

    /// Of a branch with this version of a node over that one.
    fn of(node: &Node, below: Option<&Node>) -> Charge {
        let known: BTreeSet<u64> = below.iter().flat_map(|below| below.blobs()).collect();
        let mut contents = BTreeMap::new();
        for blob in node.blobs().filter(|blob| !known.contains(blob)) {
            *contents.entry(blob).or_default() += 1;
        }
        Charge { payer: Payer::of(node), usage: added(node, below, &known), contents }
    }

    fn is_nothing(&self) -> bool {
        self.usage == Usage::NONE && self.contents.is_empty()
    }
}

/// What a branch adds to the node of the trunk, which may have rows of others that the branch has not. `known` are the
/// contents of the latter.
fn added(node: &Node, below: Option<&Node>, known: &BTreeSet<u64>) -> Usage {
    let usage = node.usage();
    let Some(below) = below else { return usage };
    let is_new = |blob: u64| !known.contains(&blob);
    let (disk_space, chunks) = match &node.body {
        Body::Table(table) => {
            let new = table.chunks.iter().filter(|chunk| is_new(chunk.blob));
            new.fold((0, 0), |(space, count), chunk| (space + chunk.size as i64, count + 1))
        }
        _ => node.content().filter(|content| is_new(content.blob)).map_or((0, 0), |c| (c.size as i64, 1)),
    };
    let memory = (usage.memory - below.usage().memory).max(0);
    Usage { nodes: 0, chunks, disk_space, memory }
}

/// One node that an edit of a view has changed.
pub(super) struct Changed {
    pub id: ObjectId,
    /// What it is now; `None` if it is gone.
    new: Option<Arc<Node>>,
    /// It was not there before.
    is_new: bool,
}

/// The nodes that an edit of a view has changed.
pub(super) fn changed_nodes(journal: &Journal, tree: &Tree) -> Vec<Changed> {
    let changed = journal.differences(tree);
    changed.map(|d| Changed { id: d.id, new: d.new.cloned(), is_new: d.old.is_none() }).collect()
}

/// By how much the usage of an account or an owner grows.
#[derive(Clone, Copy, Default)]
struct Growth {
    more: Usage,
    /// The part of it that is not charged yet.
    pending: Usage,
}

impl AddAssign for Growth {
    fn add_assign(&mut self, other: Growth) {
        self.more += other.more;
        self.pending += other.pending;
    }
}

/// Counts `count` less under a name.
pub(super) fn fewer(counts: &mut BTreeMap<String, usize>, name: &str, count: usize) {
    let Some(left) = counts.get_mut(name) else { return };
    *left = left.saturating_sub(count);
    if *left == 0 {
        counts.remove(name);
    }
}

impl Forest {
    /// By how much the charges of a transaction grow when an edit becomes its branches, and those for contents that
    /// are held.
    pub(super) fn grown_charges(
        &self,
        transaction: ObjectId,
        changed: &[Changed],
    ) -> (BTreeMap<Payer, Usage>, BTreeMap<Payer, Usage>) {
        let mut grown: BTreeMap<Payer, Usage> = BTreeMap::new();
        let mut contents = Vec::new();
        let branches = self.transactions.get(&transaction).map(|entry| &entry.branches);
        for node @ Changed { id, new, is_new } in changed {
            let branch = branches.and_then(|branches| branches.get(id));
            let created = *is_new || matches!(branch, Some(Branch::Changed { created: true, .. }));
            if new.is_some() && self.is_exempt(*id) {
                continue;
            }
            let mut charged = BTreeMap::new();
            if let Some(new) = new {
                let below = self.below(transaction, *id).filter(|_| !created);
                let charge = Charge::of(new, below);
                *grown.entry(charge.payer).or_default() += charge.usage;
                charged = charge.contents;
            }
            if let Some(charge) = self.charges.get(&(transaction, *id)) {
                *grown.entry(charge.payer.clone()).or_default() += -charge.usage;
            }
            contents.push((node, charged));
        }
        (grown, self.grown_held_by_branches(transaction, &contents))
    }

    /// 902 if an edit would give an account more than it may have. An edit of the trunk is in the trunk already; an edit of a
    /// view is not in the branches yet. `held` is what the edit adds to the charges for held contents, which are not made yet.
    pub(super) fn refuse_growth(
        &self,
        here: Option<ObjectId>,
        grown: &BTreeMap<Payer, Usage>,
        held: BTreeMap<Payer, Usage>,
    ) -> Result<(), Failure> {
        let disk: i64 = grown.values().chain(held.values()).map(|more| more.disk_space).sum();
        let mut all: BTreeMap<&Payer, Growth> = BTreeMap::new();
        for (payer, more) in grown {
            let pending = if here.is_some() { *more } else { Usage::NONE };
            *all.entry(payer).or_default() += Growth { more: *more, pending };
        }
        // A removal is not refused because another account was charged when the content was taken hold of.
        for (payer, more) in held.iter().filter(|(_, more)| disk > 0 || more.disk_space < 0) {
            *all.entry(payer).or_default() += Growth { more: *more, pending: *more };
        }
        let mut accounts: BTreeMap<&str, Growth> = BTreeMap::new();
        for (payer, growth) in &all {
            *accounts.entry(payer.account.as_str()).or_default() += *growth;
        }
        for (account, Growth { more, pending }) in accounts {
            self.trunk.check_account(account, more, self.trunk.account_usage(account) + pending)?;
        }
        for (payer, Growth { more, pending }) in all {
            self.trunk.check_share(payer, more, self.trunk.share(payer) + pending)?;
        }
        Ok(())
    }

    /// The node that a branch of a transaction is over: that of a transaction around it, or that of the trunk.
    fn below(&self, transaction: ObjectId, node: ObjectId) -> Option<&Node> {
        let around = self.line(Some(transaction)).into_iter().skip(1);
        let mut branches = around.filter_map(|id| self.transactions.get(&id)?.branches.get(&node));
        branches.find_map(Branch::node).or_else(|| self.trunk.node(node))
    }

    /// Charges for all branches, when they are all there: records come in any order.
    pub(super) fn charge_all(&mut self) {
        let of = |(id, entry): (&ObjectId, &Transaction)| {
            entry.branches.iter().map(|(node, branch)| (*id, *node, branch.clone())).collect::<Vec<_>>()
        };
        let all: Vec<_> = self.transactions.iter().flat_map(of).collect();
        for (transaction, node, branch) in all {
            self.charge_branch(transaction, node, Some(&branch));
        }
    }

    /// Charges the account of a branch that is about to replace the one that the transaction has of the node.
    pub(super) fn charge_branch(&mut self, transaction: ObjectId, node: ObjectId, branch: Option<&Branch>) {
        let charge = match branch {
            Some(Branch::Changed { node: version, created }) => {
                let below = self.below(transaction, node).filter(|_| !created);
                Some(Charge::of(version, below))
            }
            Some(Branch::Removed | Branch::Pinned { .. }) | None => None,
        };
        self.put_charge((transaction, node), charge);
    }

    fn put_charge(&mut self, key: (ObjectId, ObjectId), charge: Option<Charge>) {
        let charge = charge.filter(|charge| !charge.is_nothing());
        let mut contents = BTreeSet::new();
        if let Some(Charge { payer, usage, contents: new }) = &charge {
            self.trunk.charge_uncommitted(payer, *usage);
            for (blob, count) in new {
                *self.charged.entry(*blob).or_default() += count;
                contents.insert(*blob);
            }
        }
        let before = match charge {
            Some(charge) => self.charges.insert(key, charge),
            None => self.charges.remove(&key),
        };
        if let Some(Charge { payer, usage, contents: old }) = before {
            self.trunk.charge_uncommitted(&payer, -usage);
            for (blob, count) in old {
                self.uncount(blob, count);
                contents.insert(blob);
            }
        }
        contents.into_iter().for_each(|blob| self.settle_content(blob));
    }

    fn uncount(&mut self, blob: u64, count: usize) {
        let Some(left) = self.charged.get_mut(&blob) else { return };
        *left = left.saturating_sub(count);
        if *left == 0 {
            self.charged.remove(&blob);
        }
    }

    /// A job has written a chunk that is to be one of a table when a transaction is committed.
    pub fn reserve_chunk(&mut self, transaction: ObjectId, table: ObjectId, chunk: &Chunk) {
        let Some(node) = self.trunk.node(table).filter(|_| self.transactions.contains_key(&transaction))
        else {
            return;
        };
        let (payer, more) = (Payer::of(node), Usage::of_chunk(chunk));
        let charge = self.charges.entry((transaction, table)).or_insert_with(|| Charge::nothing(payer));
        charge.usage += more;
        *charge.contents.entry(chunk.blob).or_default() += 1;
        self.trunk.charge_uncommitted(&charge.payer, more);
        *self.charged.entry(chunk.blob).or_default() += 1;
        self.settle_content(chunk.blob);
    }

    /// The chunk will not be one of the table.
    pub fn release_chunk(&mut self, transaction: ObjectId, table: ObjectId, chunk: &Chunk) {
        let key = (transaction, table);
        let Some(charge) = self.charges.get_mut(&key) else { return };
        // The owner of the transaction may have written the table in it, which has replaced the charge.
        let Some(count) = charge.contents.get_mut(&chunk.blob) else { return };
        *count -= 1;
        if *count == 0 {
            charge.contents.remove(&chunk.blob);
        }
        let less = Usage::of_chunk(chunk);
        charge.usage += -less;
        self.trunk.charge_uncommitted(&charge.payer, -less);
        if charge.is_nothing() {
            self.charges.remove(&key);
        }
        self.uncount(chunk.blob, 1);
        self.settle_content(chunk.blob);
    }

    /// What jobs have written is about to become rows of tables: these are charged for it. Also the end of a transaction.
    pub fn release_charges(&mut self, transaction: ObjectId) {
        let last = ObjectId(vocab::Guid([u32::MAX; 4]));
        let keys = self.charges.range((transaction, ObjectId::default())..=(transaction, last));
        let keys: Vec<_> = keys.map(|(key, _)| *key).collect();
        keys.into_iter().for_each(|key| self.put_charge(key, None));
    }

    /// Refuses to let a transaction change more nodes than its commit may.
    pub(super) fn refuse_more_branches(
        &self,
        transaction: ObjectId,
        changed: impl Iterator<Item = ObjectId>,
    ) -> Result<(), Failure> {
        let branches = &self.expect(transaction)?.branches;
        let new = changed.filter(|id| !branches.contains_key(id)).count();
        self.check_size_of_transaction("changes", branches.len() + new, new)
    }

    /// Refuses to let a transaction have locks on more nodes than its end may look at.
    pub(super) fn refuse_more_locked(&self, transaction: ObjectId, node: ObjectId) -> Result<(), Failure> {
        let locked = &self.expect(transaction)?.locked;
        let new = usize::from(!locked.contains(&node));
        self.check_size_of_transaction("locks", locked.len() + new, new)
    }

    /// Refuses to let the locks of a transaction inside another one pass to that one.
    pub(super) fn refuse_locks_of(&self, parent: ObjectId, inner: ObjectId) -> Result<(), Failure> {
        let (outside, inside) = (self.expect(parent)?, self.expect(inner)?);
        let new = inside.locked.difference(&outside.locked).count();
        self.check_size_of_transaction("locks", outside.locked.len() + new, new)?;
        if outside.owner == inside.owner {
            return Ok(());
        }
        let locks = inside.locked.iter().filter_map(|node| self.trunk.node_locks(*node));
        let count = locks.flat_map(|locks| locks.iter()).filter(|lock| lock.transaction == inner).count();
        self.refuse_locks(parent, count)
    }

    /// The locks of a transaction are taken whatever its owner may have. It is an operation's, which takes locks on its
    /// outputs alone, and must not lose the work of its jobs at their publication. Said again at every start.
    pub fn lift_lock_limit(&mut self, transaction: ObjectId) {
        if self.transactions.contains_key(&transaction) {
            self.of_operations.insert(transaction);
        }
    }

    fn check_size_of_transaction(&self, what: &str, found: usize, new: usize) -> Result<(), Failure> {
        let limit = self.trunk.limits.max_nodes_per_transaction;
        if new == 0 || found <= limit {
            return Ok(());
        }
        let message = format!(
            "The transaction {what} more than {limit} nodes, which is the limit (max_nodes_per_transaction): use several \
             transactions"
        );
        Err(Failure::new(message).with("limit", limit).with("option", "max_nodes_per_transaction"))
    }

    /// Refuses an edit that would take more locks than the owner of the transaction may have.
    pub(super) fn refuse_more_locks(
        &self,
        transaction: ObjectId,
        wanted: &[(ObjectId, Mode)],
    ) -> Result<(), Failure> {
        let unnamed = Mode::Shared(Part::Unnamed);
        let named = wanted.iter().filter(|(_, mode)| *mode != unnamed).map(|(node, _)| *node);
        let named: BTreeSet<ObjectId> = named.collect();
        let is_there = |(node, mode): &&(ObjectId, Mode)| {
            *mode == unnamed && named.contains(node)
                || self.trunk.node_locks(*node).is_some_and(|locks| locks.is_covered(transaction, mode))
        };
        let new = wanted.iter().filter(|lock| !is_there(lock)).count();
        if new == 0 { Ok(()) } else { self.refuse_locks(transaction, new) }
    }

    /// Refuses so many locks more if the owner of the transaction may not have them.
    pub(super) fn refuse_locks(&self, transaction: ObjectId, more: usize) -> Result<(), Failure> {
        let owner = &self.expect(transaction)?.owner;
        if self.of_operations.contains(&transaction) {
            return Ok(());
        }
        let limit = self.trunk.limits.max_locks_per_user;
        let found = self.locked_by.get(owner).copied().unwrap_or_default() + more;
        if found <= limit {
            return Ok(());
        }
        let message =
            format!("Number of locks of user \"{owner}\" is {found}, more than the limit of {limit}");
        Err(Failure::new(message)
            .with("user", owner.as_str())
            .with("limit", limit)
            .with("option", "max_locks_per_user"))
    }

    /// Compares what is kept of users and accounts with what there is; names what differs. `held` are the contents that
    /// operations need.
    pub fn check_sums(&self, held: impl IntoIterator<Item = Hold>) -> Vec<String> {
        let mut found = Vec::new();
        let held = self.recount_held(held, &mut found);
        let recounted = self.trunk.recounted_usage();
        let accounts: BTreeSet<&str> =
            recounted.keys().map(String::as_str).chain(self.trunk.used_accounts()).collect();
        for account in accounts {
            let counted = recounted.get(account).copied().unwrap_or_default();
            let kept = self.trunk.committed_usage(account);
            if counted != kept {
                found.push(format!("account {account:?} is kept to use {kept:?}, its nodes use {counted:?}"));
            }
        }
        let mut uncommitted: BTreeMap<&str, Usage> = BTreeMap::new();
        let mut shares = self.trunk.recounted_shares();
        let charges = self.charges.values().map(|charge| (&charge.payer, &charge.usage));
        for (payer, usage) in charges.chain(&held) {
            *uncommitted.entry(payer.account.as_str()).or_default() += *usage;
            *shares.entry(payer.clone()).or_default() += *usage;
        }
        shares.retain(|payer, usage| payer.is_in_shared_account() && *usage != Usage::NONE);
        if !shares.iter().eq(self.trunk.shares.iter()) {
            found.push(format!("owners have {shares:?} of shared accounts, kept is {:?}", self.trunk.shares));
        }
        for (account, usage) in &self.trunk.uncommitted {
            if uncommitted.remove(account.as_str()) != Some(*usage) {
                found.push(format!("account {account:?} is kept to have {usage:?} in transactions"));
            }
        }
        uncommitted.retain(|_, usage| *usage != Usage::NONE);
        found.extend(
            uncommitted
                .keys()
                .map(|account| format!("what account {account:?} has in transactions is not kept")),
        );
        for key in self.charges.keys().filter(|(transaction, _)| !self.transactions.contains_key(transaction))
        {
            found.push(format!("transaction {} has ended and is charged for node {}", key.0, key.1));
        }
        let (mut started, mut locked) = (BTreeMap::new(), BTreeMap::new());
        for transaction in self.transactions.values() {
            *started.entry(transaction.owner.clone()).or_insert(0usize) += 1;
        }
        for lock in self.trunk.locks.values().flat_map(|locks| locks.iter()) {
            if let Some(transaction) = self.transactions.get(&lock.transaction) {
                *locked.entry(transaction.owner.clone()).or_insert(0usize) += 1;
            }
        }
        if started != self.started_by {
            found.push(format!("users have transactions {started:?}, kept is {:?}", self.started_by));
        }
        if locked != self.locked_by {
            found.push(format!("users have locks {locked:?}, kept is {:?}", self.locked_by));
        }
        found
    }
}
