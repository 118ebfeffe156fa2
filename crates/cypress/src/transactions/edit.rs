//! Edits of the trunk and of views: the locks that they need follow from what they changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use vocab::{Failure, GuidGenerator, ObjectId, Time};

use super::Forest;
use super::locks::{Lock, Mode, Part, conflict};
use super::transaction::Branch;
use super::view::changed_attributes;
use crate::edit::journal::{Difference, Journal};
use crate::edit::{Committed, Context, Edit};
use crate::node::{Body, Chunk, Node};
use crate::record::Change;
use crate::transactions::charges::{changed_nodes, grown_accounts};
use crate::tree::Tree;
use crate::types::NodeType;

impl Forest {
    /// [`Tree::edit`] of the trunk, or of the view of the transaction that was entered. 402 if a
    /// transaction has something locked that the edit changes.
    pub fn edit<T>(
        &mut self,
        context: Context<'_>,
        commands: impl FnOnce(&mut Edit<'_>) -> Result<T, Failure>,
    ) -> Result<Committed<T>, Failure> {
        let Context { now, user, ids } = context;
        let here = self.entered();
        let (line, revision) = (self.line(here), self.trunk.revision());
        let tree = self.here_mut();
        // Numbers of changes are never used twice, whoever sees them.
        tree.revision = revision;
        let before = tree.clone();
        let (value, journal) = tree.run(Context { now, user, ids: &mut *ids }, commands)?;
        let wanted = wanted_locks(&journal, tree);
        let in_the_way =
            first_conflict(tree, &line, &wanted).or_else(|| conflict_below(tree, &line, &journal));
        if let Some((node, mode, found)) = in_the_way {
            let found = found.clone();
            *tree = before;
            let path = tree.path(node);
            return Err(conflict(&path, &mode, &found, self.winner(&found)));
        }
        let outside = journal.differences(tree).find(is_outside).map(|difference| difference.id);
        if let (Some(_), Some(id)) = (here, outside) {
            let path = before.path(id);
            *tree = before;
            let message =
                format!("{path} cannot be changed in a transaction: users and groups are outside of all");
            return Err(Failure::new(message).with("path", path));
        }
        let refused = match here {
            None => {
                let grown = grown_accounts(&journal, tree);
                self.refuse_growth(None, &grown, self.grown_held(&journal))
            }
            Some(transaction) => {
                let changed = changed_nodes(&journal, tree);
                let (grown, held) = self.grown_charges(transaction, &changed);
                self.refuse_growth(here, &grown, held)
                    .and_then(|()| self.refuse_more_branches(transaction, changed.iter().map(|c| c.id)))
                    .and_then(|()| self.refuse_more_locks(transaction, &wanted))
            }
        };
        if let Err(failure) = refused {
            *self.here_mut() = before;
            return Err(failure);
        }
        match here {
            None => {
                self.note_trunk(&journal);
                let mut done = journal.settle(&mut self.trunk, value);
                done.released_blobs.retain(|blob| !self.holders.contains_key(blob));
                Ok(done)
            }
            Some(transaction) => {
                let mut done = self.keep_branches(transaction, &journal, &wanted);
                self.trunk.revision += u64::from(!done.transactions.is_empty());
                self.take_implicit(now, ids, transaction, wanted, &mut done);
                // The view has the change already; only what others see of it is new.
                self.version += 1;
                self.keep_view();
                Ok(done.with(value))
            }
        }
    }

    /// The tree that is read and edited at present.
    fn here_mut(&mut self) -> &mut Tree {
        match &mut self.view {
            Some(view) if self.inside => &mut view.tree,
            _ => &mut self.trunk,
        }
    }

    /// An edit of the trunk that asks no locks: the system's own nodes are there whatever others do.
    pub fn overrule<T>(
        &mut self,
        context: Context<'_>,
        commands: impl FnOnce(&mut Edit<'_>) -> Result<T, Failure>,
    ) -> Result<Committed<T>, Failure> {
        let (value, journal) = self.trunk.run(context, commands)?;
        self.note_trunk(&journal);
        let mut done = journal.settle(&mut self.trunk, value);
        done.released_blobs.retain(|blob| !self.holders.contains_key(blob));
        Ok(done)
    }

    /// Views are to see what an edit of the trunk has changed, and accounts are charged for contents that it has dropped
    /// and that are held.
    pub(super) fn note_trunk(&mut self, journal: &Journal) {
        let changed: Vec<ObjectId> =
            journal.differences(&self.trunk).map(|difference| difference.id).collect();
        changed.into_iter().for_each(|id| self.note(None, id));
        self.settle_contents(journal);
    }

    /// What an edit of the view has changed becomes branches of the transaction, under the locks that it has
    /// and those that it wants.
    fn keep_branches(
        &mut self,
        transaction: ObjectId,
        journal: &Journal,
        wanted: &[(ObjectId, Mode)],
    ) -> Committed<()> {
        let mut done = Committed::of(());
        let Some(view) = &self.view else { return done };
        let whole = wanted.iter().filter(|(_, mode)| *mode == Mode::Exclusive);
        let whole: BTreeSet<ObjectId> = whole.map(|(id, _)| *id).collect();
        let mut branches = Vec::new();
        for Difference { id, old, new } in journal.differences(&view.tree) {
            let before = self.transactions.get(&transaction).and_then(|t| t.branches.get(&id));
            let was_created = old.is_none() || matches!(before, Some(Branch::Changed { created: true, .. }));
            let branch = match new {
                Some(node) => {
                    let node = match old.and_then(Node::table) {
                        Some(table) if !whole.contains(&id) && !self.has_whole(transaction, id) => {
                            let inherited =
                                table.chunks.len().saturating_sub(self.own_rows(transaction, id).len());
                            with_rows_from(node, inherited)
                        }
                        _ => node.clone(),
                    };
                    Some(Branch::Changed { node, created: was_created })
                }
                None if was_created => None,
                None => Some(Branch::Removed),
            };
            branches.push((id, branch));
        }
        for (id, branch) in branches {
            done.transactions.push(Change::of_branch(transaction, id, branch.as_ref()));
            self.set_branch(transaction, id, branch, &mut done.released_blobs);
        }
        done
    }

    /// May a transaction have changed all of a node? Then its branch is all of it.
    pub(super) fn has_whole(&self, transaction: ObjectId, id: ObjectId) -> bool {
        self.trunk.node_locks(id).is_some_and(|locks| locks.has_implicit_exclusive(transaction))
    }

    /// The rows that a transaction has put behind those of a table under a shared lock: its branch has no others.
    pub(super) fn own_rows(&self, transaction: ObjectId, id: ObjectId) -> &[Chunk] {
        let appends = self.trunk.node_locks(id).is_some_and(|locks| locks.has_implicit_rows(transaction));
        if !appends || self.has_whole(transaction, id) {
            return &[];
        }
        let branch = self.transactions.get(&transaction).and_then(|entry| entry.branches.get(&id));
        let table = branch.and_then(Branch::node).and_then(Node::table);
        table.map_or(&[], |table| &table.chunks)
    }

    /// The view that was entered shows what is, but for locks.
    pub(super) fn keep_view(&mut self) {
        if let Some(view) = &mut self.view {
            view.tree.revision = self.trunk.revision;
            view.tree.locks = self.trunk.locks.clone();
            view.tree.take_sums(&self.trunk);
            view.version = self.version;
        }
    }

    fn take_implicit(
        &mut self,
        now: Time,
        ids: &mut GuidGenerator,
        transaction: ObjectId,
        wanted: Vec<(ObjectId, Mode)>,
        done: &mut Committed<()>,
    ) {
        for (node, mode) in wanted {
            // Those of the command `lock` do not count: they may be dropped while the change stays.
            if self.trunk.node_locks(node).is_some_and(|locks| locks.is_covered(transaction, &mode)) {
                continue;
            }
            let id = ObjectId(ids.next(vocab::object_type::LOCK));
            let lock =
                Lock { id, transaction, node, mode, implicit: true, acquired: true, creation_time: now };
            done.transactions.push(Change::of_lock(&lock));
            self.insert_lock(lock);
        }
    }

    pub(super) fn insert_lock(&mut self, lock: Lock) {
        if let Some(transaction) = self.transactions.get_mut(&lock.transaction) {
            transaction.locked.insert(lock.node);
        }
        if let Some(owner) = self.transactions.get(&lock.transaction).map(|t| t.owner.clone()) {
            *self.locked_by.entry(owner).or_default() += 1;
        }
        let id = lock.id;
        let node = lock.node;
        let turn = self.trunk.locks.entry(node).or_default().push(lock);
        self.lock_nodes.insert(id, (node, turn));
        self.version += 1;
    }

    /// The transaction that was first, for the error of the second.
    pub(super) fn winner(&self, lock: &Lock) -> yson::Map {
        let id = lock.transaction;
        self.transactions.get(&id).map(|transaction| transaction.brief(id)).unwrap_or_default()
    }
}

/// A table without its first chunks.
fn with_rows_from(node: &Arc<Node>, first: usize) -> Arc<Node> {
    let mut own = Node::clone(node);
    if let Some(table) = own.table_mut() {
        table.chunks.drain(..first.min(table.chunks.len()));
    }
    Arc::new(own)
}

/// Users, groups and accounts have no transactions (http-api.md 8.2).
fn is_outside(difference: &Difference<'_>) -> bool {
    let outside =
        |node: &Node| matches!(node.node_type, NodeType::User | NodeType::Group | NodeType::Account);
    difference.old.is_some_and(outside) || difference.new.is_some_and(|node| outside(node))
}

/// The first lock in the way of those that are wanted.
fn first_conflict<'a>(
    tree: &'a Tree,
    line: &[ObjectId],
    wanted: &[(ObjectId, Mode)],
) -> Option<(ObjectId, Mode, &'a Lock)> {
    wanted.iter().find_map(|(node, mode)| {
        tree.lock_in_the_way(line, *node, mode).map(|found| (*node, mode.clone(), found))
    })
}

/// The locks that a change needs (http-api.md 8.2): of a parent the key of the child that comes or
/// goes, of a node the attributes that differ, of a table the rows behind others, everything else as a whole.
fn wanted_locks(journal: &Journal, tree: &Tree) -> Vec<(ObjectId, Mode)> {
    let mut wanted = Vec::new();
    let child = |node: &Node| (node.parent, Mode::Shared(Part::Child(node.key.clone())));
    for Difference { id, old, new } in journal.differences(tree) {
        match (old, new) {
            (None, Some(new)) => {
                wanted.push((id, Mode::Exclusive));
                wanted.extend((!new.key.is_empty()).then(|| child(new)));
            }
            (Some(old), None) => {
                wanted.push((id, Mode::Exclusive));
                wanted.extend((!old.key.is_empty()).then(|| child(old)));
            }
            (Some(old), Some(new)) if has_other_content(old, new) && !appends(journal, old, new) => {
                wanted.push((id, Mode::Exclusive));
                let has_left = is_moved(old, new) && !old.key.is_empty();
                wanted.extend(has_left.then(|| child(old)));
            }
            (Some(old), Some(new)) => {
                wanted.extend(
                    (old.body != new.body && new.table().is_some()).then_some((id, Mode::Shared(Part::Rows))),
                );
                let names = changed_attributes(old, new).into_iter();
                wanted.extend(names.map(|name| (id, Mode::Shared(Part::Attribute(name)))));
                // Only stamps: still nobody may take the node away.
                wanted.push((id, Mode::Shared(Part::Unnamed)));
            }
            (None, None) => {}
        }
    }
    // What others cover needs not be taken.
    wanted.sort_by_key(|(_, mode)| *mode == Mode::Shared(Part::Unnamed));
    wanted
}

/// Is it where it was, a table with rows behind those that it had?
fn appends(journal: &Journal, old: &Node, new: &Node) -> bool {
    (old.parent, &old.key) == (new.parent, &new.key) && journal.is_append(new.id, old, new)
}

/// Is it at another place? Only what is discarded is: it goes with all that is below it.
fn is_moved(old: &Node, new: &Node) -> bool {
    (old.parent, &old.key) != (new.parent, &new.key)
}

/// The first lock on something below what an edit has discarded.
fn conflict_below<'a>(
    tree: &'a Tree,
    line: &[ObjectId],
    journal: &Journal,
) -> Option<(ObjectId, Mode, &'a Lock)> {
    let moved = |d: &Difference<'_>| d.old.zip(d.new).is_some_and(|(old, new)| is_moved(old, new));
    let tops: Vec<ObjectId> =
        journal.differences(tree).filter(moved).map(|difference| difference.id).collect();
    tops.into_iter().find_map(|top| {
        tree.locks
            .iter()
            .filter(|(id, _)| tree.is_within(**id, top))
            .find_map(|(id, locks)| Some((*id, Mode::Exclusive, locks.in_the_way(line, &Mode::Exclusive)?)))
    })
}

/// Is more different than attributes? Children of maps are not part of the map.
fn has_other_content(old: &Node, new: &Node) -> bool {
    let moved = is_moved(old, new);
    // Making a node of the layout built in is no change that anybody could lock.
    moved || (old.body != new.body && !matches!(new.body, Body::Map))
}
