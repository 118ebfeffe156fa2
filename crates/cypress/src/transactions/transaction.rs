//! One transaction: what it has changed, and what of it is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vocab::{ObjectId, Span, Time};
use yson::{Map, Value};

use crate::node::{Body, Node};
use crate::tree::Children;

/// A transaction that has begun and not ended.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Transaction {
    /// The transaction that it is in.
    pub parent: Option<ObjectId>,
    /// Transactions that are in it.
    pub nested: BTreeSet<ObjectId>,
    /// Who began it.
    pub owner: String,
    /// When.
    pub start_time: Time,
    /// It is aborted when nothing is heard of it for so long.
    pub timeout: Span,
    /// It is aborted then, whatever is heard of it.
    pub deadline: Option<Time>,
    /// When something was heard of it; in memory only, every life of the server begins anew.
    pub last_ping_time: Time,
    /// `title` and what else its owner says about it.
    pub attributes: Map,
    /// These must be active when it is committed.
    pub prerequisites: Vec<ObjectId>,
    /// What its view has instead of what its parent's view has.
    pub branches: BTreeMap<ObjectId, Branch>,
    /// Nodes with locks of it, taken or waited for.
    pub locked: BTreeSet<ObjectId>,
}

/// What a transaction has of one node.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Branch {
    /// The node is another one. Under shared locks only their parts of it count.
    Changed {
        /// What it is now.
        node: Arc<Node>,
        /// The transaction has made it.
        created: bool,
    },
    /// The node is gone.
    Removed,
    /// The node is what it was when a snapshot lock was taken.
    Pinned {
        /// What it was.
        node: Arc<Node>,
        /// Its children, of a map.
        children: Option<Children>,
    },
}

impl Branch {
    /// Is it a map whose children stay those that it had when it was locked? It may have had none.
    pub fn keeps_children(&self) -> bool {
        matches!(self, Branch::Pinned { node, .. } if matches!(node.body, Body::Map))
    }

    /// The version of the node that it keeps alive.
    pub fn node(&self) -> Option<&Node> {
        match self {
            Branch::Changed { node, .. } | Branch::Pinned { node, .. } => Some(node),
            Branch::Removed => None,
        }
    }
}

impl Transaction {
    /// When it is aborted if nothing more is heard of it.
    pub fn expires(&self) -> Time {
        self.deadline.unwrap_or(Time::MAX).min(self.last_ping_time + self.timeout)
    }

    /// Its attributes (http-api.md 8.2).
    pub fn to_map(&self, id: ObjectId) -> Map {
        // What its owner says of it comes first: it cannot make it look like another.
        let mut map = self.attributes.clone();
        for (name, value) in self.own_attributes(id) {
            map.insert_owned(name, value);
        }
        map
    }

    fn own_attributes(&self, id: ObjectId) -> Map {
        let ids = |ids: &BTreeSet<ObjectId>| ids.iter().map(|id| Value::from(*id)).collect::<Vec<_>>();
        yson::map! {
            "id" => id,
            "type" => "transaction",
            "state" => "active",
            "owner" => self.owner.as_str(),
            "timeout" => self.timeout.as_millis(),
            "start_time" => self.start_time,
            "last_ping_time" => self.last_ping_time,
            "parent_id" => self.parent.unwrap_or_default(),
            "nested_transaction_ids" => ids(&self.nested),
            "locked_node_ids" => ids(&self.locked),
            "branched_node_ids" => self.branches.keys().map(|id| Value::from(*id)).collect::<Vec<_>>(),
        }
        .with_some("deadline", self.deadline)
        .with_some(
            "prerequisite_transaction_ids",
            (!self.prerequisites.is_empty())
                .then(|| self.prerequisites.iter().map(|id| Value::from(*id)).collect::<Vec<_>>()),
        )
    }

    /// The little that others need to know who it is.
    pub fn brief(&self, id: ObjectId) -> Map {
        let title = self.attributes.get("title").and_then(Value::as_str);
        let title = title.map(|title| title.chars().take(200).collect::<String>());
        yson::map! {
            "id" => id,
            "owner" => self.owner.as_str(),
            "start_time" => self.start_time,
            "timeout" => self.timeout.as_millis(),
        }
        .with_some("title", title)
    }
}
