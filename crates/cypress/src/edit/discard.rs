//! Removing large subtrees: they leave their place at once, and are taken apart in slices.
//!
//! A subtree with more nodes than one command may change is not removed node by node: all other requests would wait.
//! Its topmost node becomes a child of `//sys/trash`. The whole subtree leaves its place with that change.
//! [`Edit::take_discarded`] removes the nodes there in slices, lowest nodes first, and goes on after a restart.

use vocab::{Failure, ObjectId};

use super::Edit;
use crate::expiration::Expiration;
use crate::failures::no_child;
use crate::node::Body;
use crate::tree::Tree;
use crate::types::NodeType;

/// Key of the map of discarded subtrees in `//sys`. If a node of users has it, the map has the key `trash-1`, and so on.
const TRASH: &str = "trash";

/// Bytes in memory of the nodes that a slice removes.
const BYTES_PER_SLICE: i64 = 1 << 20;

fn keys_of_trash() -> impl Iterator<Item = Vec<u8>> {
    let numbered = (1..).map(|number: u64| format!("{TRASH}-{number}").into_bytes());
    std::iter::once(TRASH.as_bytes().to_vec()).chain(numbered)
}

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

    /// Do the nodes of a subtree with at most so many nodes as a command may change have more bytes than it may change?
    /// One node by itself is never too heavy.
    pub(crate) fn is_heavy(&self, top: ObjectId) -> bool {
        let mut open = vec![top];
        let mut bytes = 0;
        while let Some(id) = open.pop() {
            bytes += self.node(id).map_or(0, |node| node.usage().memory);
            if bytes > self.limits.max_bytes_per_request {
                return self.child_count(top) > 0;
            }
            open.extend(self.child_ids(id));
        }
        false
    }

    /// Where discarded subtrees are, once there was one.
    fn trash(&self) -> Option<ObjectId> {
        let sys = self.child(self.root(), b"sys")?;
        let taken = keys_of_trash().map_while(|key| self.node(self.child(sys, &key)?));
        let mut own = taken.filter(|node| node.builtin && node.node_type == NodeType::MapNode);
        own.next().map(|node| node.id)
    }

    /// Is it part of a discarded subtree?
    pub fn is_discarded(&self, id: ObjectId) -> bool {
        self.trash().is_some_and(|trash| id != trash && self.is_within(id, trash))
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
            || self.is_heavy(top)
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
            let before = match self.journal.len() {
                0 => String::new(),
                changed => format!(" besides the {changed} that the command has changed already"),
            };
            let bytes = self.limits.max_bytes_per_request;
            let message = format!(
                "The command would remove the nodes of {path}{before}, which together are more than {limit}, the limit \
                 inside of a transaction (max_nodes_per_request), or take more than {bytes} bytes in memory: do it in \
                 parts, or outside of transactions"
            );
            return Err(Failure::new(message)
                .with("path", path)
                .with("limit", limit)
                .with("changed_before", self.journal.len())
                .with("option", "max_nodes_per_request"));
        }
        Ok(())
    }

    /// Removes a subtree that may be removed, at once or in slices. The caller changes its parent.
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

    /// The map of discarded subtrees, which only superusers can read.
    fn make_trash(&mut self) -> Result<ObjectId, Failure> {
        let sys = self.child(self.root(), b"sys").ok_or_else(|| no_child("/", b"sys"))?;
        let key = keys_of_trash().find(|key| self.child(sys, key).is_none()).unwrap_or_default();
        let mut node = self.new_node(sys, key, NodeType::MapNode, Body::Map);
        (node.inherit_acl, node.opaque, node.builtin) = (false, true, true);
        node.owner = "root".to_owned();
        let id = node.id;
        self.put(node);
        self.update_content(sys, |_| ());
        Ok(id)
    }

    /// Removes up to `limit` nodes of what was discarded, fewer if they are large; how many there were.
    pub fn take_discarded(&mut self, limit: usize) -> usize {
        let Some(trash) = self.trash() else { return 0 };
        let (mut taken, mut bytes) = (0, 0);
        while taken < limit
            && bytes < BYTES_PER_SLICE
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
            bytes += self.node(id).map_or(0, |node| node.usage().memory);
            self.take(id);
            taken += 1;
        }
        taken
    }
}
