//! What a transaction sees: a tree of its own.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use vocab::ObjectId;

use super::Forest;
use super::node_locks::NodeLocks;
use super::transaction::Branch;
use crate::node::Node;
use crate::tree::Tree;

/// Views that are kept beside the one that was entered last.
const PARKED: usize = 16;
/// Changes that are remembered for views that have not seen them yet.
const REMEMBERED: usize = 100_000;

/// A view that was made.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Of which transaction.
    pub of: ObjectId,
    /// State of the forest that it shows.
    pub version: u64,
    /// It shows the children that a map had when it was locked: it cannot be brought up to date node by node.
    pub keeps_children: bool,
    /// The nodes.
    pub tree: Tree,
}

/// What has changed, newest last, so that a view can follow without being made anew.
#[derive(Clone, Debug, Default)]
pub(super) struct Trail {
    /// Version, the transaction that has another branch (none: the trunk has another node), which node.
    steps: VecDeque<(u64, Option<ObjectId>, ObjectId)>,
    /// Steps up to this version are forgotten.
    forgotten: u64,
}

impl Forest {
    /// A node is not what it was, in the trunk or in a transaction.
    pub(super) fn note(&mut self, layer: Option<ObjectId>, node: ObjectId) {
        self.version += 1;
        if self.transactions.is_empty() {
            self.trail = Trail { steps: VecDeque::new(), forgotten: self.version };
            return;
        }
        self.trail.steps.push_back((self.version, layer, node));
        if self.trail.steps.len() > REMEMBERED
            && let Some((version, ..)) = self.trail.steps.pop_front()
        {
            self.trail.forgotten = version;
        }
    }

    /// The trunk with the branches of a transaction and of those around it.
    pub(super) fn view_of(&self, transaction: ObjectId) -> Tree {
        let mut tree = self.trunk.clone();
        for id in self.line(Some(transaction)).into_iter().rev() {
            let Some(entry) = self.transactions.get(&id) else { continue };
            tree.seen_by = Some(id);
            for (node, branch) in &entry.branches {
                apply(&mut tree, *node, branch);
            }
        }
        tree
    }

    /// Makes the view of a transaction the one that can be entered.
    pub(super) fn look_at(&mut self, transaction: ObjectId) {
        let old = match self.view.take() {
            Some(view) if view.of == transaction => Some(view),
            other => {
                self.park(other);
                let parked = self.parked.iter().position(|view| view.of == transaction);
                parked.and_then(|at| self.parked.remove(at))
            }
        };
        let view = match old.and_then(|view| self.follow(view)) {
            Some(view) => view,
            None => self.fresh_view(transaction),
        };
        let last = self.view.replace(view);
        self.park(last);
    }

    fn park(&mut self, view: Option<View>) {
        self.parked.extend(view);
        if self.parked.len() > PARKED {
            self.parked.pop_front();
        }
    }

    /// From the view of the transaction around it: those inside one that has changed much are many, and short.
    fn fresh_view(&mut self, of: ObjectId) -> View {
        let around = self.parent_of(of).and_then(|parent| {
            self.look_at(parent);
            self.view.as_ref().map(|view| (view.tree.clone(), view.keeps_children))
        });
        let (mut tree, mut keeps_children) = around.unwrap_or_else(|| (self.trunk.clone(), false));
        tree.seen_by = Some(of);
        for (node, branch) in self.transactions.get(&of).into_iter().flat_map(|entry| &entry.branches) {
            keeps_children |= branch.keeps_children();
            apply(&mut tree, *node, branch);
        }
        tree.take_sums(&self.trunk);
        View { of, version: self.version, keeps_children, tree }
    }

    /// The same view as of now. None if it is better made anew.
    fn follow(&self, mut view: View) -> Option<View> {
        if view.version == self.version {
            return Some(view);
        }
        if view.version < self.trail.forgotten || view.keeps_children {
            return None;
        }
        let mut line = self.line(Some(view.of));
        line.reverse();
        let first = self.trail.steps.partition_point(|(version, ..)| *version <= view.version);
        let branches: usize =
            line.iter().filter_map(|id| self.transactions.get(id)).map(|t| t.branches.len()).sum();
        let mut changed = BTreeSet::new();
        for (_, layer, node) in self.trail.steps.range(first..) {
            if layer.is_none_or(|id| line.contains(&id)) {
                changed.insert(*node);
            }
            if changed.len() > branches {
                return None;
            }
        }
        for id in changed {
            self.refresh(&mut view.tree, &line, id)?;
        }
        view.tree.locks = self.trunk.locks.clone();
        view.tree.take_sums(&self.trunk);
        view.tree.mounts = self.trunk.mounts.clone();
        view.tree.uids = self.trunk.uids.clone();
        view.tree.root = self.trunk.root;
        view.tree.revision = self.trunk.revision;
        view.version = self.version;
        Some(view)
    }

    /// Brings one node of a view up to date. None if it is kept as it was: then its place depends on others.
    fn refresh(&self, tree: &mut Tree, line: &[ObjectId], id: ObjectId) -> Option<()> {
        let place = |node: &Arc<Node>| (node.parent, node.key.clone());
        let mut shown = self.trunk.nodes.get(&id).cloned();
        let mut is_kept = false;
        for layer in line {
            match self.transactions.get(layer).and_then(|t| t.branches.get(&id)) {
                None => {}
                Some(Branch::Removed) => shown = None,
                Some(Branch::Changed { node, .. }) => {
                    let locks = self.trunk.node_locks(id).map(|locks| (*layer, locks));
                    shown = Some(merged(shown.as_deref(), node, locks));
                }
                Some(Branch::Pinned { node, .. }) => {
                    let below = shown.filter(|below| place(below) == place(node))?;
                    shown = Some(kept(node, Some(&below)));
                    is_kept = true;
                }
            }
        }
        if let Some(node) = shown.clone().filter(|_| is_kept) {
            let there = tree.nodes.get(&id).filter(|there| place(there) == place(&node));
            there?;
            tree.nodes.insert(id, node);
            return Some(());
        }
        match shown {
            Some(node) => tree.put_shared(node),
            None => drop(tree.take_node(id)),
        }
        Some(())
    }
}

/// Puts one branch of the transaction `tree.seen_by` into its view.
fn apply(tree: &mut Tree, id: ObjectId, branch: &Branch) {
    match branch {
        Branch::Removed => drop(tree.take_node(id)),
        Branch::Changed { node, .. } => {
            let shown = merged(tree.node(id), node, tree.own_locks(id));
            tree.put_shared(shown);
        }
        Branch::Pinned { node, children } => {
            // By path it is found where it still is, and by id in any case; never twice. Who may see it
            // is not part of what is kept.
            let shown = kept(node, tree.node(id));
            tree.nodes.insert(id, shown);
            match children {
                Some(children) => drop(tree.children.insert(id, children.clone())),
                None => drop(tree.children.remove(&id)),
            }
        }
    }
}

/// A node as it was when it was locked, for those who may see it now.
fn kept(node: &Arc<Node>, below: Option<&Node>) -> Arc<Node> {
    let mut shown = Arc::clone(node);
    if let Some(below) = below {
        let kept = Arc::make_mut(&mut shown);
        kept.acl.clone_from(&below.acl);
        kept.inherit_acl = below.inherit_acl;
        kept.owner.clone_from(&below.owner);
    }
    shown
}

/// The branch's node as it is over the one `below`: under an exclusive lock it replaces it, under
/// shared ones it brings only what they name. `locks` are those of the node, with whose branch it is.
pub(super) fn merged(
    below: Option<&Node>,
    branch: &Arc<Node>,
    locks: Option<(ObjectId, &NodeLocks)>,
) -> Arc<Node> {
    let Some(below) = below else { return Arc::clone(branch) };
    // Locks of the command `lock` do not count: they say nothing about how old the branch is.
    if locks.is_some_and(|(id, locks)| locks.has_implicit_exclusive(id)) {
        return Arc::clone(branch);
    }
    let mut node = below.clone();
    if let Some((id, locks)) = locks {
        for name in locks.implicit_attributes(id) {
            take_attribute(&mut node, branch, name);
        }
        if locks.has_implicit_rows(id)
            && let (Some(table), Some(own)) = (node.table_mut(), branch.table())
        {
            table.extend(&own.chunks);
        }
        if locks.has_implicit_child(id) || locks.has_implicit_rows(id) {
            node.content_revision = node.content_revision.max(branch.content_revision);
        }
    }
    node.attribute_revision = node.attribute_revision.max(branch.attribute_revision);
    node.modification_time = node.modification_time.max(branch.modification_time);
    Arc::new(node)
}

/// Makes one attribute what it is in another version of the node.
fn take_attribute(node: &mut Node, from: &Node, name: &[u8]) {
    match name {
        b"owner" => node.owner.clone_from(&from.owner),
        b"account" => node.account.clone_from(&from.account),
        b"acl" => node.acl.clone_from(&from.acl),
        b"inherit_acl" => node.inherit_acl = from.inherit_acl,
        b"opaque" => node.opaque = from.opaque,
        b"expiration_time" => node.expiration.time = from.expiration.time,
        b"expiration_timeout" => node.expiration.timeout = from.expiration.timeout,
        _ => match from.user_attributes.get(name) {
            Some(value) => drop(node.user_attributes.insert(name, value.clone())),
            None => drop(node.user_attributes.remove(name)),
        },
    }
}

/// Names of the attributes in which two versions of a node differ, as [`take_attribute`] knows them.
pub(super) fn changed_attributes(old: &Node, new: &Node) -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = Vec::new();
    let mut note = |name: &str, differs: bool| {
        if differs {
            names.push(name.into());
        }
    };
    note("owner", old.owner != new.owner);
    note("account", old.account != new.account);
    note("acl", old.acl != new.acl);
    note("inherit_acl", old.inherit_acl != new.inherit_acl);
    note("opaque", old.opaque != new.opaque);
    note("expiration_time", old.expiration.time != new.expiration.time);
    note("expiration_timeout", old.expiration.timeout != new.expiration.timeout);
    let (before, after) = (&old.user_attributes, &new.user_attributes);
    names.extend(before.keys().filter(|name| before.get(name) != after.get(name)).map(|n| n.to_vec()));
    names.extend(after.keys().filter(|name| !before.contains(name)).map(|n| n.to_vec()));
    names
}
