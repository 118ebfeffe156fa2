//! How much an answer copies, before it is made: nodes, values and kilobytes, each of which counts one.
//!
//! Attributes that are computed count by what they are made from. A count ends as soon as it is over its limit, so it
//! takes no longer than an answer of that size.

use yson::Value;

use crate::acl::Acl;
use crate::attributes::is_system;
use crate::node::{Body, Node};
use crate::tree::Tree;

/// Values of a lock as an attribute shows it.
const VALUES_OF_LOCK: usize = 10;
/// Values of an entry of an access control list besides its names.
const VALUES_OF_ENTRY: usize = 6;
/// So many chunks, or items of a list, are looked at in the time that a value takes.
const CHUNKS_LIKE_A_VALUE: usize = 32;

/// What may still be counted.
pub(crate) struct Budget {
    limit: usize,
    values: usize,
    bytes: usize,
}

impl Budget {
    pub fn new(limit: usize) -> Budget {
        Budget { limit, values: 0, bytes: 0 }
    }

    /// Values and kilobytes so far.
    pub fn count(&self) -> usize {
        self.values.saturating_add(self.bytes >> 10)
    }

    pub fn is_over(&self) -> bool {
        self.count() > self.limit
    }

    /// What is left of the values.
    pub fn left(&self) -> usize {
        self.limit.saturating_sub(self.count())
    }

    pub fn add(&mut self, values: usize, bytes: usize) {
        self.values = self.values.saturating_add(values);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn add_value(&mut self, value: &Value) {
        if self.is_over() {
            return;
        }
        self.add(1, value.as_bytes().map_or(0, <[u8]>::len));
        match value {
            Value::List(items) => items.iter().for_each(|item| self.add_value(item)),
            Value::Map(map) => self.add_map(map.iter()),
            Value::Attributed(both) => {
                self.add_map(both.0.iter());
                self.add_value(&both.1);
            }
            _ => {}
        }
    }

    fn add_map<'a>(&mut self, map: impl Iterator<Item = (&'a [u8], &'a Value)>) {
        for (key, value) in map {
            self.add(0, key.len());
            self.add_value(value);
            if self.is_over() {
                return;
            }
        }
    }

    fn add_acl(&mut self, acl: &Acl) {
        for ace in &acl.0 {
            let names = ace.subjects.len() + ace.permissions.len() + ace.columns.as_ref().map_or(0, Vec::len);
            self.add(VALUES_OF_ENTRY + names, 0);
        }
    }
}

impl Tree {
    /// Counts a node as `get` and `list` show it with these attributes, without its children.
    pub(crate) fn weigh_node(&self, node: &Node, attributes: &[String], budget: &mut Budget) {
        let body = match &node.body {
            Body::Scalar(value) => value.as_bytes().map_or(0, <[u8]>::len),
            _ => 0,
        };
        budget.add(1, node.key.len() + body);
        for name in attributes {
            if budget.is_over() {
                return;
            }
            self.weigh_attribute(node, name, budget);
        }
    }

    /// Counts all attributes of a node as `get` of its `/@` shows them.
    pub(crate) fn weigh_all_attributes(&self, node: &Node, budget: &mut Budget) {
        budget.add_map(node.user_attributes.iter());
        budget.add_acl(&node.acl);
    }

    fn weigh_attribute(&self, node: &Node, name: &str, budget: &mut Budget) {
        budget.add(1, 0);
        if !is_system(node.node_type, name.as_bytes()) {
            if let Some(value) = node.user_attributes.get(name) {
                budget.add_value(value);
            }
            return;
        }
        match (name, &node.body) {
            ("acl", _) => budget.add_acl(&node.acl),
            ("effective_acl", _) => {
                for link in self.acl_chain(node.id) {
                    budget.add_acl(link.acl);
                }
            }
            ("user_attributes" | "user_attribute_keys", _) => budget.add_map(node.user_attributes.iter()),
            ("locks", _) => budget.add(VALUES_OF_LOCK * self.lock_count(node.id), 0),
            ("recursive_resource_usage", _) => budget.add(self.count_subtree(node.id, budget.left()), 0),
            ("path", _) => {
                for parent in self.lineage(node.id).skip(1) {
                    let items = if let Body::List(items) = &parent.body { items.len() } else { 0 };
                    budget.add(items / CHUNKS_LIKE_A_VALUE, parent.key.len());
                }
            }
            ("value", Body::Scalar(value) | Body::Document(value)) => budget.add_value(value),
            ("members", Body::Group(members)) => {
                let users = self.child(self.root(), b"sys").and_then(|sys| self.child(sys, b"users"));
                budget.add(members.len() + users.map_or(0, |users| self.child_count(users)), 0);
            }
            ("member_of" | "member_of_closure", _) => budget.add(self.groups.len(), 0),
            ("schema", Body::Table(table)) => budget.add_value(&table.schema),
            ("target_path", Body::Link(target)) => budget.add(0, target.len()),
            (_, Body::Table(table)) => {
                budget.add(table.sorted_by.len() + table.chunks.len() / CHUNKS_LIKE_A_VALUE, 0);
            }
            _ => {}
        }
    }

    /// Nodes at and below a node, or `limit` if there are more.
    fn count_subtree(&self, top: vocab::ObjectId, limit: usize) -> usize {
        let mut open = vec![top];
        let mut count = 0;
        while let Some(id) = open.pop() {
            count += 1;
            if count + open.len() + self.child_count(id) > limit {
                return limit.saturating_add(1);
            }
            open.extend(self.child_ids(id));
        }
        count
    }
}
