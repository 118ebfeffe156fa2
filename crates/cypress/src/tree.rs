//! The tree itself: nodes by id, and the indices that are derived from them.
//!
//! All of it is kept in persistent maps: a clone costs nothing and shares everything, so what a
//! transaction sees is a tree of its own ([`crate::transactions`]).

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};
use vocab::{Guid, ObjectId, Time};
use yson::Bytes;

use crate::accounts::{Payer, Usage};
use crate::acl::{AclLink, Decision, Permission, Subjects, decide};
use crate::failures::{join, no_object};
use crate::limits::Limits;
use crate::node::{Body, Node};
use crate::resolve::MountId;
use crate::transactions::node_locks::NodeLocks;
use crate::types::NodeType;
use vocab::Failure;

/// Children of one map, by key.
pub(crate) type Children = OrdMap<Bytes, ObjectId>;

/// The metadata tree. Reads take `&self`; [`Tree::edit`] changes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    pub(crate) limits: Limits,
    pub(crate) nodes: OrdMap<ObjectId, Arc<Node>>,
    /// Children of maps; a map without children has no entry.
    pub(crate) children: OrdMap<ObjectId, Children>,
    /// How many nodes refer to a blob: copies share it.
    pub(crate) blobs: OrdMap<u64, usize>,
    /// What the nodes of each account use, by its name; without an entry if they use nothing.
    pub(crate) usage: OrdMap<String, Usage>,
    /// What each owner uses of the accounts that all users share, transactions and running operations included.
    pub(crate) shares: OrdMap<Payer, Usage>,
    /// What transactions and running operations have made for each account that is in no node yet. Kept by the trunk.
    pub(crate) uncommitted: OrdMap<String, Usage>,
    /// All groups by name, for the closure of a user. Nothing keeps two groups in different maps
    /// from having the same name, so the id is part of the entry.
    pub(crate) groups: OrdSet<(String, ObjectId)>,
    /// When nodes expire, soonest first ([`Node::expires`]).
    pub(crate) expiring: OrdSet<(Time, ObjectId)>,
    pub(crate) mounts: OrdMap<ObjectId, MountId>,
    /// Attribute `job_uid` of users, which their owner tells.
    pub(crate) uids: OrdMap<ObjectId, u32>,
    /// Locks that transactions have or wait for, by node.
    pub(crate) locks: OrdMap<ObjectId, NodeLocks>,
    /// The transaction whose view this is; none for the trunk.
    pub(crate) seen_by: Option<ObjectId>,
    pub(crate) root: ObjectId,
    /// Number of the last edit.
    pub(crate) revision: u64,
}

impl Tree {
    /// A tree without even a root; see [`crate::layout`] and [`Tree::restore`].
    pub(crate) fn empty(limits: Limits) -> Tree {
        Tree {
            limits,
            nodes: OrdMap::new(),
            children: OrdMap::new(),
            blobs: OrdMap::new(),
            usage: OrdMap::new(),
            uncommitted: OrdMap::new(),
            shares: OrdMap::new(),
            groups: OrdSet::new(),
            expiring: OrdSet::new(),
            mounts: OrdMap::new(),
            uids: OrdMap::new(),
            locks: OrdMap::new(),
            seen_by: None,
            root: ObjectId(Guid::NULL),
            revision: 0,
        }
    }

    /// Id of the root.
    pub fn root(&self) -> ObjectId {
        self.root
    }

    /// Number of the last edit that changed something.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Limits that edits keep.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// A node, if it (still) exists.
    pub fn node(&self, id: ObjectId) -> Option<&Node> {
        self.nodes.get(&id).map(|node| &**node)
    }

    /// A node, if it exists, to be kept: it stays what it is now.
    pub fn shared_node(&self, id: ObjectId) -> Option<Arc<Node>> {
        self.nodes.get(&id).cloned()
    }

    /// A node, or the error 500 that users see.
    pub fn expect_node(&self, id: ObjectId) -> Result<&Node, Failure> {
        self.node(id).ok_or_else(|| no_object(id))
    }

    /// All blobs that some node refers to; what else is in the store of blobs is garbage.
    pub fn blobs(&self) -> impl Iterator<Item = u64> + '_ {
        self.blobs.keys().copied()
    }

    /// Does some node refer to this blob?
    pub fn has_blob(&self, blob: u64) -> bool {
        self.blobs.contains_key(&blob)
    }

    /// Child of a map by key.
    pub fn child(&self, parent: ObjectId, key: &[u8]) -> Option<ObjectId> {
        self.children.get(&parent)?.get(key).copied()
    }

    /// Children of a map, by key. Nothing for other types.
    pub fn map_children(&self, parent: ObjectId) -> impl Iterator<Item = (&[u8], ObjectId)> {
        self.children.get(&parent).into_iter().flatten().map(|(k, id)| (k.as_slice(), *id))
    }

    /// Children of a map or list, in order of keys or items.
    pub fn child_ids(&self, parent: ObjectId) -> Vec<ObjectId> {
        match self.node(parent).map(|n| &n.body) {
            Some(Body::Map) => self.map_children(parent).map(|(_, id)| id).collect(),
            Some(Body::List(items)) => items.clone(),
            _ => Vec::new(),
        }
    }

    /// Number of children of a map or list.
    pub fn child_count(&self, parent: ObjectId) -> usize {
        match self.node(parent).map(|n| &n.body) {
            Some(Body::List(items)) => items.len(),
            _ => self.children.get(&parent).map_or(0, OrdMap::len),
        }
    }

    /// The node and everything below, parents before children.
    pub fn subtree(&self, top: ObjectId) -> Vec<ObjectId> {
        let mut all = vec![top];
        let mut next = 0;
        while let Some(id) = all.get(next) {
            all.extend(self.child_ids(*id));
            next += 1;
        }
        all
    }

    /// Is `id` the node `top` or below it?
    pub fn is_within(&self, id: ObjectId, top: ObjectId) -> bool {
        self.lineage(id).any(|n| n.id == top)
    }

    /// The node, its parent, and so on up to the root.
    pub fn lineage(&self, id: ObjectId) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.node(id), |node| self.node(node.parent))
    }

    /// Level of a node; the root is level 0.
    pub fn depth(&self, id: ObjectId) -> usize {
        self.lineage(id).count().saturating_sub(1)
    }

    /// Canonical path of a node.
    pub fn path(&self, id: ObjectId) -> String {
        let line: Vec<&Node> = self.lineage(id).collect();
        let mut path = "/".to_owned();
        for pair in line.windows(2).rev() {
            let (node, parent) = (pair[0], pair[1]);
            path = match &parent.body {
                Body::List(items) => {
                    let index = items.iter().position(|i| *i == node.id).unwrap_or(items.len());
                    join(&path, index.to_string().as_bytes())
                }
                _ => join(&path, &node.key),
            };
        }
        path
    }

    /// Declares that somebody else answers for the node at and below this id. Mounts are not
    /// persistent: who answers for them attaches them at every start.
    pub fn mount(&mut self, id: ObjectId, mount: MountId) {
        self.mounts.insert(id, mount);
    }

    /// Declares the attribute `job_uid` of a user; `None` takes it back. Not persistent: whoever knows it tells it at every start.
    pub fn tell_uid(&mut self, id: ObjectId, uid: Option<u32>) {
        match uid {
            Some(uid) => drop(self.uids.insert(id, uid)),
            None => drop(self.uids.remove(&id)),
        }
    }

    /// The mount on exactly this node.
    pub fn mount_at(&self, id: ObjectId) -> Option<MountId> {
        self.mounts.get(&id).copied()
    }

    /// Access control lists that count for a node, nearest first.
    pub fn acl_chain(&self, id: ObjectId) -> impl Iterator<Item = AclLink<'_>> {
        let mut inherits = true;
        self.lineage(id)
            .take_while(move |node| {
                let counts = inherits;
                inherits &= node.inherit_acl;
                counts
            })
            .map(|node| AclLink { object: node.id, acl: &node.acl })
    }

    /// May they? (http-api.md 8.4) Enforcement is the caller's.
    pub fn check_permission(&self, subjects: Subjects<'_>, permission: Permission, id: ObjectId) -> Decision {
        decide(subjects, permission, self.acl_chain(id))
    }

    /// Puts a node in place of the one with its id, keeping all indices.
    pub(crate) fn put_node(&mut self, node: Node) {
        self.put_shared(Arc::new(node));
    }

    /// [`Tree::put_node`] of a version that others have, too.
    pub(crate) fn put_shared(&mut self, node: Arc<Node>) {
        let id = node.id;
        self.take_node(id);
        if node.is_root() {
            self.root = id;
        } else if !node.key.is_empty() {
            self.children.entry(node.parent).or_default().insert(node.key.clone(), id);
        }
        for blob in node.blobs() {
            *self.blobs.entry(blob).or_default() += 1;
        }
        if node.node_type == NodeType::Group {
            self.groups.insert(group_entry(&node));
        }
        self.expiring.extend(expiring_entry(&node));
        self.charge(&Payer::of(&node), node.usage());
        self.nodes.insert(id, node);
    }

    /// Changes what is in a node, but nothing that the indices are made from, other than when it expires. A change of
    /// what its account is charged for is told to [`Tree::charge`] by the caller, which knows how much it is.
    pub(crate) fn change_node(&mut self, id: ObjectId, change: impl FnOnce(&mut Node)) {
        let Some(node) = self.nodes.get_mut(&id).map(Arc::make_mut) else { return };
        let before = expiring_entry(node);
        change(node);
        let after = expiring_entry(node);
        if before != after {
            before.map(|entry| self.expiring.remove(&entry));
            self.expiring.extend(after);
        }
    }

    /// Removes a node from the tree and from all indices; its children are the caller's business.
    pub(crate) fn take_node(&mut self, id: ObjectId) -> Option<Arc<Node>> {
        let node = self.nodes.remove(&id)?;
        if let Some(siblings) = self.children.get_mut(&node.parent)
            && siblings.get(&node.key) == Some(&id)
        {
            siblings.remove(&node.key);
            if siblings.is_empty() {
                self.children.remove(&node.parent);
            }
        }
        for blob in node.blobs() {
            let Some(count) = self.blobs.get_mut(&blob) else { continue };
            *count -= 1;
            if *count == 0 {
                self.blobs.remove(&blob);
            }
        }
        if node.node_type == NodeType::Group {
            self.groups.remove(&group_entry(&node));
        }
        expiring_entry(&node).map(|entry| self.expiring.remove(&entry));
        self.charge(&Payer::of(&node), -node.usage());
        Some(node)
    }
}

fn group_entry(node: &Node) -> (String, ObjectId) {
    (String::from_utf8_lossy(&node.key).into_owned(), node.id)
}

fn expiring_entry(node: &Node) -> Option<(Time, ObjectId)> {
    Some((node.expires()?, node.id))
}
