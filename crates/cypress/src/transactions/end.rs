//! The end of a transaction: its branches go to its parent, or are forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vocab::{Failure, ObjectId, Time, code};

use super::Forest;
use super::charges::fewer;
use super::locks::{Lock, Mode};
use super::node_locks::Turn;
use super::transaction::Branch;
use super::view::merged;
use crate::edit::{Committed, Context, Edit};
use crate::node::{Body, Node};
use crate::record::Change;
use crate::tree::Tree;

/// What locks were against that are gone from nodes.
type Freed = BTreeMap<ObjectId, BTreeSet<Mode>>;

impl Forest {
    /// `commit_transaction`: the transactions inside it are aborted, what it changed becomes part of
    /// its parent. Before that becomes true of the trunk, `check` may refuse the new trunk.
    pub fn commit(
        &mut self,
        context: Context<'_>,
        id: ObjectId,
        check: impl FnOnce(&Tree) -> Result<(), Failure>,
    ) -> Result<Committed<()>, Failure> {
        let (parent, prerequisites) = self.expect(id).map(|t| (t.parent, t.prerequisites.clone()))?;
        self.check_prerequisites(&prerequisites)?;
        let (mut done, freed) = match parent {
            Some(parent) => {
                let changed: Vec<ObjectId> = self.expect(id)?.branches.keys().copied().collect();
                self.refuse_more_branches(parent, changed.into_iter())?;
                self.refuse_locks_of(parent, id)?;
                self.commit_to_parent(id, parent)
            }
            None => (self.commit_to_trunk(context, id, check)?, Freed::new()),
        };
        self.abandon(id, freed, &mut done);
        Ok(done)
    }

    /// `abort_transaction`, with everything inside it.
    pub fn abort(&mut self, id: ObjectId) -> Result<Committed<()>, Failure> {
        self.expect(id)?;
        let mut done = Committed::of(());
        self.abandon(id, Freed::new(), &mut done);
        Ok(done)
    }

    /// Aborts what has expired; the ids of what was.
    pub fn expire(&mut self, now: Time) -> Committed<Vec<ObjectId>> {
        let mut done = Committed::of(Vec::new());
        while let Some((time, id)) = self.expiry.first().copied()
            && time <= now
        {
            let gone = self.abandon(id, Freed::new(), &mut done);
            done.value.extend(gone);
        }
        done
    }

    /// Forgets a transaction and what is inside it, inner ones first; gives back who they were.
    /// `freed` are locks that it has had and that are somebody else's by now.
    fn abandon<T>(&mut self, id: ObjectId, mut freed: Freed, done: &mut Committed<T>) -> Vec<ObjectId> {
        let mut family = self.family(id);
        family.reverse();
        for id in &family {
            let Some(entry) = self.transactions.get(id) else { continue };
            let (branches, locked): (Vec<_>, Vec<_>) =
                (entry.branches.keys().copied().collect(), entry.locked.iter().copied().collect());
            for node in branches {
                self.set_branch(*id, node, None, &mut done.released_blobs);
            }
            for node in locked {
                let dropped = self.drop_locks_of(*id, node, |_| true, done);
                freed.entry(node).or_default().extend(dropped);
            }
            if let Some(entry) = self.transactions.remove(id) {
                self.expiry.remove(&(entry.expires(), *id));
                fewer(&mut self.started_by, &entry.owner, 1);
                if let Some(parent) = entry.parent.and_then(|parent| self.transactions.get_mut(&parent)) {
                    parent.nested.remove(id);
                }
            }
            self.release_charges(*id);
            self.of_operations.remove(id);
            done.ended.push(*id);
        }
        // Nobody waits for what is gone: its records go as a whole.
        let ended: BTreeSet<ObjectId> = family.iter().copied().collect();
        self.parked.retain(|view| !ended.contains(&view.of));
        done.transactions.retain(|change| change.transaction().is_none_or(|id| !ended.contains(&id)));
        for (node, dropped) in freed {
            self.grant(node, &dropped, done);
        }
        self.version += 1;
        family
    }

    /// Branches and locks pass to the transaction around.
    fn commit_to_parent(&mut self, id: ObjectId, parent: ObjectId) -> (Committed<()>, Freed) {
        let mut done = Committed::of(());
        self.look_at(parent);
        let mut above = self.view.as_ref().map_or_else(|| self.view_of(parent), |view| view.tree.clone());
        above.seen_by = Some(id);
        let branches: Vec<(ObjectId, Branch)> =
            self.transactions.get(&id).map(|t| t.branches.clone()).unwrap_or_default().into_iter().collect();
        for (node, branch) in branches {
            let before = self.transactions.get(&parent).and_then(|t| t.branches.get(&node));
            let by_parent = matches!(before, Some(Branch::Changed { created: true, .. }));
            let merged = match &branch {
                Branch::Pinned { .. } => continue,
                Branch::Removed if by_parent => None,
                Branch::Removed => Some(Branch::Removed),
                Branch::Changed { node, created } => {
                    let mut shown = merged(above.node(node.id), node, above.own_locks(node.id));
                    if !*created && !self.has_whole(id, node.id) && !self.has_whole(parent, node.id) {
                        let rows = [self.own_rows(parent, node.id), self.own_rows(id, node.id)].concat();
                        if let Some(table) = Arc::make_mut(&mut shown).table_mut() {
                            table.chunks = rows;
                        }
                    }
                    Some(Branch::Changed { node: shown, created: *created || by_parent })
                }
            };
            done.transactions.push(Change::of_branch(parent, node, merged.as_ref()));
            self.set_branch(parent, node, merged, &mut done.released_blobs);
        }
        let freed = self.pass_locks(id, parent, &mut done);
        (done, freed)
    }

    fn pass_locks(&mut self, id: ObjectId, parent: ObjectId, done: &mut Committed<()>) -> Freed {
        let locked: Vec<ObjectId> =
            self.transactions.get(&id).into_iter().flat_map(|t| t.locked.iter().copied()).collect();
        let mut freed = Freed::new();
        let mut passed = 0;
        for node in locked {
            let Some(locks) = self.trunk.locks.get_mut(&node) else { continue };
            let mine = |lock: &Lock| lock.acquired && lock.mode != Mode::Snapshot;
            let turns: Vec<Turn> =
                locks.of(id).filter(|(_, lock)| mine(lock)).map(|(turn, _)| turn).collect();
            passed += turns.len();
            for turn in turns {
                done.transactions.extend(locks.get(turn).map(Change::without_lock));
                if let Some(lock) = locks.change(turn, |lock| lock.transaction = parent) {
                    done.transactions.push(Change::of_lock(&lock));
                    freed.entry(node).or_default().insert(lock.mode);
                }
            }
            if locks.has_any_of(parent)
                && let Some(entry) = self.transactions.get_mut(&parent)
            {
                entry.locked.insert(node);
            }
        }
        let owner = |id: ObjectId| self.transactions.get(&id).map(|t| t.owner.clone());
        if let (Some(own), Some(above)) = (owner(id), owner(parent)) {
            fewer(&mut self.locked_by, &own, passed);
            if passed > 0 {
                *self.locked_by.entry(above).or_default() += passed;
            }
        }
        freed
    }

    fn commit_to_trunk(
        &mut self,
        context: Context<'_>,
        id: ObjectId,
        check: impl FnOnce(&Tree) -> Result<(), Failure>,
    ) -> Result<Committed<()>, Failure> {
        let branches = self.expect(id)?.branches.clone();
        // Its own locks say what of its nodes counts.
        self.trunk.seen_by = Some(id);
        let ran = self.trunk.run(context, |edit| {
            // What goes makes room for what comes.
            let goes = |branch: &Branch| *branch == Branch::Removed;
            for (node, _) in branches.iter().filter(|(_, branch)| goes(branch)) {
                edit.take(*node);
            }
            for (node, branch) in branches.iter().filter(|(_, branch)| !goes(branch)) {
                edit.graft(*node, branch)?;
            }
            edit.check_grafts(&branches)?;
            check(edit)
        });
        self.trunk.seen_by = None;
        let ((), journal) = ran?;
        self.note_trunk(&journal);
        let mut done = journal.settle(&mut self.trunk, ());
        done.released_blobs.retain(|blob| !self.holds_blob(*blob));
        Ok(done)
    }
}

impl Edit<'_> {
    /// Makes a branch part of the tree; what is new in it is as new as this edit.
    fn graft(&mut self, id: ObjectId, branch: &Branch) -> Result<(), Failure> {
        let Branch::Changed { node, created } = branch else { return Ok(()) };
        let there = self.child(node.parent, &node.key).filter(|_| !node.key.is_empty());
        if there.is_some_and(|there| there != id) || self.node(id).is_none() != *created {
            return Err(outdated(id));
        }
        // Others may have filled the map in the meantime.
        if *created && self.node(node.parent).is_some_and(|parent| matches!(parent.body, Body::Map)) {
            let path = || self.path(node.parent);
            self.limits.check_child_count(self.child_count(node.parent) + 1, path)?;
        }
        let mut node: Node = Arc::unwrap_or_clone(merged(self.node(id), node, self.own_locks(id)));
        let (old, stamp) = (self.node(id), self.stamp());
        if old.is_none_or(|old| old.attribute_revision != node.attribute_revision) {
            node.attribute_revision = stamp;
        }
        // Of a table that others have put rows into as well, the newer revision may be theirs.
        let other_rows = |old: &Node| old.table() != node.table();
        if old.is_none_or(|old| old.content_revision != node.content_revision || other_rows(old)) {
            node.content_revision = stamp;
        }
        self.put(node);
        // A transaction may last longer than what it has made may lie unused.
        self.renew(id);
        Ok(())
    }

    /// Locks see to it that nothing of this ever happens; a tree that is not one would be worse than
    /// a commit that is refused.
    fn check_grafts(&self, branches: &BTreeMap<ObjectId, Branch>) -> Result<(), Failure> {
        for (id, branch) in branches {
            let sound = match branch {
                Branch::Removed => self.child_count(*id) == 0,
                Branch::Changed { node, .. } => node.is_root() || self.node(node.parent).is_some(),
                Branch::Pinned { .. } => true,
            };
            if !sound {
                return Err(outdated(*id));
            }
        }
        Ok(())
    }
}

/// 402: a branch that does not fit the tree any more.
fn outdated(id: ObjectId) -> Failure {
    let message = format!("Node {id} was changed in a way that the transaction cannot be committed over");
    Failure::coded(code::LOCK_CONFLICT, message).with("node_id", id)
}
