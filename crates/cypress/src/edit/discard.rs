//! Removing large subtrees: they leave their place at once, and are taken apart in slices.
//!
//! A subtree with more nodes than one command may change is not removed node by node: that would keep everybody waiting.
//! Its topmost node becomes a child of `//sys/trash`, where nobody looks for it, so it is gone from its place with all
//! that is below it, whole or not at all. [`Edit::take_discarded`] removes what is there, lowest nodes first, a slice at
//! a time; after a restart it goes on.

use vocab::{Failure, ObjectId};

use super::Edit;
use crate::expiration::Expiration;
use crate::failures::{already_exists, no_child};
use crate::node::Body;
use crate::tree::Tree;
use crate::types::NodeType;

/// Key of the map of discarded subtrees in `//sys`.
const TRASH: &[u8] = b"trash";

impl Tree {
    /// Are there more nodes in the subtree of a node, itself included, than this?
    pub fn subtree_exceeds(&self, top: ObjectId, limit: usize) -> bool {
        let mut open = vec![top];
        let mut count = 0;
        while let Some(id) = open.pop() {
            count += 1;
            if count + self.child_count(id) > limit {
                return true;
            }
            open.extend(self.child_ids(id));
            if count + open.len() > limit {
                return true;
            }
        }
        false
    }

    /// Where discarded subtrees are, once there was one.
    fn trash(&self) -> Option<ObjectId> {
        let trash = self.child(self.child(self.root(), b"sys")?, TRASH)?;
        self.node(trash)
            .filter(|node| node.builtin && node.node_type == NodeType::MapNode)
            .map(|node| node.id)
    }

    /// Is something discarded and not removed yet?
    pub fn has_discarded(&self) -> bool {
        self.trash().is_some_and(|trash| self.child_count(trash) > 0)
    }

    fn any_child(&self, id: ObjectId) -> Option<ObjectId> {
        match &self.node(id)?.body {
            Body::Map => self.map_children(id).next().map(|(_, child)| child),
            Body::List(items) => items.last().copied(),
            _ => None,
        }
    }

    /// Does something below a node, or the node itself, belong to somebody else?
    fn has_mount_within(&self, top: ObjectId) -> bool {
        self.mounts.keys().any(|id| self.is_within(*id, top))
    }

    /// Is a node locked, or one below it?
    pub fn has_locks_within(&self, top: ObjectId) -> bool {
        self.locks.keys().any(|id| self.is_within(*id, top))
    }
}

impl Edit<'_> {
    /// Must this subtree be discarded, since there is no room for its nodes in this edit?
    fn is_large(&self, top: ObjectId) -> bool {
        self.subtree_exceeds(top, self.limits.max_nodes_per_request.saturating_sub(self.journal.len()))
    }

    /// Refuses to remove what the system stands on, and what is too large for a transaction.
    pub(super) fn check_droppable(&self, top: ObjectId) -> Result<(), Failure> {
        if !self.is_large(top) {
            return self.check_removable(top);
        }
        // Whatever is built in is in maps that are.
        let kept = self.node(top).is_some_and(|n| n.builtin || n.is_root());
        if kept || self.has_mount_within(top) {
            let path = self.path(top);
            let message = format!("Node {path} cannot be removed: it is part of the system");
            return Err(Failure::new(message).with("path", path));
        }
        self.check_outside(top)
    }

    /// What is in a transaction is removed node by node: others still see it where it is.
    fn check_outside(&self, top: ObjectId) -> Result<(), Failure> {
        if self.seen_by.is_some() {
            let (path, limit) = (self.path(top), self.limits.max_nodes_per_request);
            let message = format!(
                "{path} has more than {limit} nodes, which is the limit of what a command removes inside of a transaction \
                 (max_nodes_per_request): remove it in parts, or outside of transactions"
            );
            return Err(Failure::new(message).with("path", path).with("limit", limit));
        }
        Ok(())
    }

    /// Removes a subtree that may be removed, at once or by and by. Its parent is the caller's business.
    pub(super) fn drop_subtree(&mut self, top: ObjectId) -> Result<(), Failure> {
        if !self.is_large(top) {
            self.take_subtree(top);
            return Ok(());
        }
        // Each of many children may be small.
        self.check_outside(top)?;
        let trash = match self.trash() {
            Some(trash) => trash,
            None => self.make_trash()?,
        };
        let mut node = self.expect_node(top)?.clone();
        (node.parent, node.key) = (trash, top.to_string().into_bytes());
        node.expiration = Expiration::default();
        self.put(node);
        Ok(())
    }

    /// The map of discarded subtrees, which superusers alone see.
    fn make_trash(&mut self) -> Result<ObjectId, Failure> {
        let sys = self.child(self.root(), b"sys").ok_or_else(|| no_child("/", b"sys"))?;
        if let Some(other) = self.child(sys, TRASH) {
            return Err(already_exists(&self.path(other)));
        }
        let mut node = self.new_node(sys, TRASH.to_vec(), NodeType::MapNode, Body::Map);
        (node.inherit_acl, node.opaque, node.builtin) = (false, true, true);
        node.owner = "root".to_owned();
        let id = node.id;
        self.put(node);
        self.update_content(sys, |_| ());
        Ok(id)
    }

    /// Removes up to `limit` nodes of what was discarded; how many there were.
    pub fn take_discarded(&mut self, limit: usize) -> usize {
        let Some(trash) = self.trash() else { return 0 };
        let mut taken = 0;
        while taken < limit
            && let Some(mut id) = self.any_child(trash)
        {
            while let Some(child) = self.any_child(id) {
                id = child;
            }
            let parent = self.node(id).map(|node| node.parent).unwrap_or_default();
            if self.node(parent).is_some_and(|node| matches!(node.body, Body::List(_))) {
                self.remember(parent);
                self.tree.change_node(parent, |node| {
                    if let Body::List(items) = &mut node.body {
                        items.pop();
                    }
                });
            }
            self.take(id);
            taken += 1;
        }
        taken
    }
}
