//! What an edit did: which nodes are not what they were, and the records to be written.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vocab::ObjectId;

use super::Committed;
use crate::node::Node;
use crate::record::Change;
use crate::tree::Tree;

/// What was touched, and how.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// The first old version of every node that was touched; none if it was not there.
    old: BTreeMap<ObjectId, Option<Arc<Node>>>,
    /// Tables that were only to get rows behind those that they had.
    appended: BTreeSet<ObjectId>,
}

/// One node that is not what it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Difference<'a> {
    /// Which.
    pub id: ObjectId,
    /// What it was; none if it is new.
    pub old: Option<&'a Node>,
    /// What it is; none if it is gone.
    pub new: Option<&'a Arc<Node>>,
}

impl Journal {
    /// To be called before a node is touched.
    pub fn remember(&mut self, tree: &Tree, id: ObjectId) {
        self.old.entry(id).or_insert_with(|| tree.nodes.get(&id).cloned());
    }

    /// How many nodes were touched.
    pub fn len(&self) -> usize {
        self.old.len()
    }

    /// To be called when all of a node's content is replaced.
    pub fn replaced(&mut self, id: ObjectId) {
        self.appended.remove(&id);
    }

    /// Has nothing but appending happened to the content of a table?
    pub fn may_append(&self, tree: &Tree, id: ObjectId) -> bool {
        let revision = |node: &Node| node.content_revision;
        let before = self.old.get(&id).map(|old| old.as_deref().map(revision));
        self.appended.contains(&id) || before.is_none_or(|before| before == tree.node(id).map(revision))
    }

    /// To be called when a table has got rows behind those that it had, and nothing else.
    pub fn appended(&mut self, id: ObjectId) {
        self.appended.insert(id);
    }

    /// Did a table only get rows behind those that it had?
    pub fn is_append(&self, id: ObjectId, old: &Node, new: &Node) -> bool {
        let extends = || Some(new.table()?.extends(old.table()?));
        self.appended.contains(&id) && extends() == Some(true)
    }

    /// What is different now, by id.
    pub fn differences<'a>(&'a self, tree: &'a Tree) -> impl Iterator<Item = Difference<'a>> {
        self.old.iter().filter_map(|(id, old)| {
            let new = tree.nodes.get(id);
            (old.as_deref() != new.map(|n| &**n)).then_some(Difference { id: *id, old: old.as_deref(), new })
        })
    }

    /// Counts the edit and makes its records.
    pub fn settle<T>(self, tree: &mut Tree, value: T) -> Committed<T> {
        let mut done = Committed::of(value);
        let mut released = BTreeSet::new();
        for Difference { id, old, new } in self.differences(tree) {
            let freed = old.into_iter().flat_map(Node::blobs).filter(|blob| !tree.has_blob(*blob));
            released.extend(freed);
            done.changes.push(Change::of(id, new.map(|n| &**n)));
        }
        done.released_blobs = released.into_iter().collect();
        if !done.changes.is_empty() {
            tree.revision += 1;
        }
        done
    }
}
