//! Content of nodes: values turned into nodes, and what the outside knows about files and tables.

use std::collections::BTreeSet;

use tables::Schema;
use vocab::{Failure, ObjectId};
use yson::{Map, Value};

use super::{Edit, Slot};
use crate::failures::{unsupported, wrong_type};
use crate::node::{Body, Content, TableContent};
use crate::types::NodeType;
use crate::walk::literal;

impl Edit<'_> {
    /// New content of a file; none empties it. The bytes are already where `blob` says.
    pub fn set_file_content(&mut self, id: ObjectId, content: Option<Content>) -> Result<(), Failure> {
        match &self.expect_node(id)?.body {
            Body::File(_) => self.replace_body(id, Body::File(content)),
            _ => Err(self.not_a(id, "write_file")),
        }
    }

    /// New content of a table.
    pub fn set_table_content(&mut self, id: ObjectId, content: TableContent) -> Result<(), Failure> {
        match &self.expect_node(id)?.body {
            Body::Table(_) => {
                self.limits.check_value(&content.schema, || format!("{}/@schema", self.path(id)))?;
                self.replace_body(id, Body::Table(content))
            }
            _ => Err(self.not_a(id, "write_table")),
        }
    }

    /// New content of a table: what it has, and more behind that. When nothing is said about the order of the
    /// rows, others may do the same at the same time, in transactions of theirs.
    pub fn append_to_table(&mut self, id: ObjectId, content: TableContent) -> Result<(), Failure> {
        let only = self.journal.may_append(self.tree, id);
        self.set_table_content(id, content)?;
        if only {
            self.journal.appended(id);
        }
        Ok(())
    }

    /// Another schema for a table; rows that are there must fit it without being looked at.
    pub fn alter_table(&mut self, id: ObjectId, schema: Value) -> Result<(), Failure> {
        let Body::Table(old) = &self.expect_node(id)?.body else {
            return Err(self.not_a(id, "alter_table"));
        };
        let refused = |cause: Failure| {
            let path = self.path(id);
            Failure::new(format!("Schema of {path} cannot be set")).with("path", path).because(cause)
        };
        self.limits.check_value(&schema, || format!("{}/@schema", self.path(id)))?;
        let new = Schema::parse(&schema).map_err(refused)?;
        if !old.chunks.is_empty() {
            let found = Schema::parse(&old.schema)?;
            Schema::check_change(found.as_ref(), new.as_ref()).map_err(refused)?;
        }
        let had_keys = Schema::parse(&old.schema)?.is_some_and(|old| !old.key_columns().is_empty());
        let sorted_by = match &new {
            // Rows that are sorted stay so, as far as the columns by which they are may be there.
            Some(new) if new.key_columns().is_empty() && !had_keys => {
                old.sorted_by.iter().take_while(|name| new.may_have(name)).cloned().collect()
            }
            Some(new) => new.key_columns(),
            None => old.sorted_by.clone(),
        };
        let schema = if new.is_some() { schema } else { Value::Entity };
        let chunks = old.chunks.clone();
        self.replace_body(id, Body::Table(TableContent { chunks, sorted_by, schema }))
    }

    /// Changes the direct members of a group; the caller has looked at what is allowed.
    pub(crate) fn change_members(&mut self, group: ObjectId, change: impl FnOnce(&mut BTreeSet<String>)) {
        self.update_content(group, |node| {
            if let Body::Group(members) = &mut node.body {
                change(members);
            }
        });
    }

    /// Replaces a body whose change moves no child but may move a blob.
    pub(super) fn replace_body(&mut self, id: ObjectId, body: Body) -> Result<(), Failure> {
        self.journal.replaced(id);
        let mut node = self.expect_node(id)?.clone();
        node.body = body;
        node.content_revision = self.stamp();
        node.modification_time = self.context.now;
        self.put(node);
        Ok(())
    }

    pub(super) fn not_a(&self, id: ObjectId, command: &str) -> Failure {
        let found = self.node(id).map_or("nothing", |n| n.node_type.name());
        unsupported(command, &self.path(id), found)
    }

    /// Makes a node of the type that the value asks for: maps and lists become nodes all the way
    /// down, attributes of values become attributes of nodes (http-api.md 8.1).
    pub(super) fn build(&mut self, slot: Slot, value: Value) -> Result<ObjectId, Failure> {
        let (attributes, bare) = value.split();
        let (node_type, body) = match &bare {
            Value::Map(_) => (NodeType::MapNode, Body::Map),
            Value::List(_) => (NodeType::ListNode, Body::List(Vec::new())),
            _ => {
                let path = || format!("{}/{}", self.path(slot.parent), literal(&slot.key));
                let node_type = scalar_type(&bare).ok_or_else(|| {
                    let path = path();
                    Failure::new(format!("A node cannot hold an entity: {path} needs a document for that"))
                        .with("path", path)
                })?;
                self.check_scalar(&bare, path)?;
                (node_type, Body::Scalar(bare.clone()))
            }
        };
        let id = self.fill(slot, node_type, body)?;
        self.fill_children(id, bare)?;
        self.set_all_attributes(id, attributes)?;
        Ok(id)
    }

    /// Makes the children that a map or list value describes.
    pub(super) fn fill_children(&mut self, parent: ObjectId, value: Value) -> Result<(), Failure> {
        match value {
            Value::Map(children) => {
                for (key, child) in children {
                    self.build(Slot { parent, key, index: 0 }, child)?;
                }
            }
            Value::List(items) => {
                for (index, item) in items.into_iter().enumerate() {
                    self.build(Slot { parent, key: Vec::new(), index }, item)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn set_all_attributes(&mut self, id: ObjectId, attributes: Map) -> Result<(), Failure> {
        for (name, value) in attributes {
            self.set_node_attribute(id, &name, value)?;
        }
        Ok(())
    }

    /// Replaces the content of a scalar or document, converting integers where that is exact.
    pub(super) fn set_value(&mut self, id: ObjectId, value: Value) -> Result<(), Failure> {
        // Paths cost a walk (and a search in lists): they are made when there is something to say.
        let path = || self.path(id);
        let node = self.expect_node(id)?;
        let body = if node.node_type == NodeType::Document {
            self.limits.check_value(&value, path)?;
            Body::Document(value)
        } else {
            let expected = value_type(node.node_type).ok_or_else(|| self.not_a(id, "set"))?;
            let found = value.into_bare();
            let value = convert(found, node.node_type).map_err(|found| {
                wrong_type(&format!("Value of {}", path()), expected, &found).with("path", path())
            })?;
            self.check_scalar(&value, path)?;
            Body::Scalar(value)
        };
        self.replace_body(id, body)
    }

    fn check_scalar(&self, value: &Value, path: impl FnOnce() -> String) -> Result<(), Failure> {
        self.limits.check_string(value.as_bytes().map_or(0, <[u8]>::len), path)
    }
}

/// Type of the node that holds such a value; none for an entity (maps and lists are not asked).
fn scalar_type(value: &Value) -> Option<NodeType> {
    match value {
        Value::String(_) => Some(NodeType::StringNode),
        Value::Int(_) => Some(NodeType::Int64Node),
        Value::Uint(_) => Some(NodeType::Uint64Node),
        Value::Double(_) => Some(NodeType::DoubleNode),
        Value::Bool(_) => Some(NodeType::BooleanNode),
        _ => None,
    }
}

/// Name of the type of value that a scalar node holds.
fn value_type(node_type: NodeType) -> Option<&'static str> {
    empty_scalar(node_type).map(|v| v.type_name())
}

/// Value of a scalar node that was created without one.
pub(super) fn empty_scalar(node_type: NodeType) -> Option<Value> {
    match node_type {
        NodeType::StringNode => Some(Value::String(Vec::new())),
        NodeType::Int64Node => Some(Value::Int(0)),
        NodeType::Uint64Node => Some(Value::Uint(0)),
        NodeType::DoubleNode => Some(Value::Double(0.0)),
        NodeType::BooleanNode => Some(Value::Bool(false)),
        _ => None,
    }
}

/// The value as a scalar node of that type holds it: int64 fits a double node, and the two integer
/// types fit each other in range (http-api.md 8.1).
fn convert(value: Value, node_type: NodeType) -> Result<Value, Value> {
    let converted = match (node_type, &value) {
        (NodeType::DoubleNode, Value::Int(_) | Value::Uint(_)) => value.as_f64().map(Value::Double),
        (NodeType::Int64Node, Value::Uint(_)) => value.as_i64().map(Value::Int),
        (NodeType::Uint64Node, Value::Int(_)) => value.as_u64().map(Value::Uint),
        _ if scalar_type(&value) == Some(node_type) => return Ok(value),
        _ => None,
    };
    converted.ok_or(value)
}
