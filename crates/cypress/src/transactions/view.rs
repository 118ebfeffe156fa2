//! What a transaction sees: a tree of its own.

use std::sync::Arc;

use vocab::ObjectId;

use super::Forest;
use super::locks::{Mode, Part};
use super::transaction::Branch;
use crate::node::Node;
use crate::tree::Tree;

/// A view that was made.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Of which transaction.
    pub of: ObjectId,
    /// State of the forest that it shows.
    pub version: u64,
    /// The nodes.
    pub tree: Tree,
}

impl Forest {
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
}

/// Puts one branch of the transaction `tree.seen_by` into its view.
fn apply(tree: &mut Tree, id: ObjectId, branch: &Branch) {
    match branch {
        Branch::Removed => drop(tree.take_node(id)),
        Branch::Changed { node, .. } => {
            let shown = merged(tree, node);
            tree.put_shared(shown);
        }
        Branch::Pinned { node, children } => {
            // By path it is found where it still is, and by id in any case; never twice. Who may see it
            // is not part of what is kept.
            let mut shown = Arc::clone(node);
            if let Some(below) = tree.node(id) {
                let kept = Arc::make_mut(&mut shown);
                kept.acl.clone_from(&below.acl);
                kept.inherit_acl = below.inherit_acl;
                kept.owner.clone_from(&below.owner);
            }
            tree.nodes.insert(id, shown);
            match children {
                Some(children) => drop(tree.children.insert(id, children.clone())),
                None => drop(tree.children.remove(&id)),
            }
        }
    }
}

/// The branch's node as it is over the one in `tree`: under an exclusive lock it replaces it, under
/// shared ones it brings only what they name.
pub(super) fn merged(tree: &Tree, branch: &Arc<Node>) -> Arc<Node> {
    let Some(below) = tree.node(branch.id) else { return Arc::clone(branch) };
    // Locks of the command `lock` do not count: they say nothing about how old the branch is.
    let mine = || tree.locks(branch.id).iter().filter(|l| l.implicit && Some(l.transaction) == tree.seen_by);
    if mine().any(|lock| lock.mode == Mode::Exclusive) {
        return Arc::clone(branch);
    }
    let mut node = below.clone();
    for lock in mine() {
        match &lock.mode {
            Mode::Shared(Part::Attribute(name)) => take_attribute(&mut node, branch, name),
            Mode::Shared(Part::Child(_)) => {
                node.content_revision = node.content_revision.max(branch.content_revision);
            }
            _ => {}
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
    let (before, after) = (&old.user_attributes, &new.user_attributes);
    names.extend(before.keys().filter(|name| before.get(name) != after.get(name)).map(|n| n.to_vec()));
    names.extend(after.keys().filter(|name| !before.contains(name)).map(|n| n.to_vec()));
    names
}
