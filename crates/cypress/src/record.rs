//! Nodes as records of the store: one record per node, keyed by its id.
//!
//! A record is a binary YSON map without the parts that have their usual value, so that fields can
//! be added later and old records still read. Unknown fields are an error: a store written by a
//! newer version must not be silently cut.

use std::collections::BTreeSet;
use std::sync::Arc;

use vocab::{Guid, ObjectId, Span, Time};
use yson::{Map, Value};

use crate::acl::Acl;
use crate::expiration::Expiration;
use crate::limits::Limits;
use crate::node::{Body, Chunk, Content, Node, TableContent};
use crate::tree::Tree;
use crate::types::NodeType;

/// One record to write or to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Key: the 16 bytes of the node's id.
    pub key: Vec<u8>,
    /// New record; none deletes it.
    pub value: Option<Vec<u8>>,
}

impl Change {
    pub(crate) fn of(id: ObjectId, node: Option<&Node>) -> Change {
        Change { key: id.0.to_bytes().to_vec(), value: node.map(encode) }
    }
}

/// Records that are not a tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RestoreError {
    /// A key that is not an id.
    #[error("key of {length} bytes in the records of the tree: expected the 16 bytes of an id")]
    Key {
        /// Its length.
        length: usize,
    },
    /// A record that cannot be read.
    #[error("record of node {id}: {problem}")]
    Record {
        /// Whose.
        id: ObjectId,
        /// What is wrong.
        problem: String,
    },
    /// A key of a transaction that is not one.
    #[error("key of {length} bytes in the records of transactions: expected 33 bytes")]
    TransactionKey {
        /// Its length.
        length: usize,
    },
    /// A record of a transaction that cannot be read.
    #[error("record of transaction {id}: {problem}")]
    Transaction {
        /// Whose.
        id: ObjectId,
        /// What is wrong.
        problem: String,
    },
    /// Not exactly one root.
    #[error("{count} roots in the records of the tree: expected one")]
    Roots {
        /// How many.
        count: usize,
    },
    /// A node whose parent is not there or has no children.
    #[error("node {id} has parent {parent}, which is not a map or list that has it")]
    Parent {
        /// The node.
        id: ObjectId,
        /// Its parent.
        parent: ObjectId,
    },
}

impl Tree {
    /// All records of the tree; [`Tree::restore`] makes the same tree of them.
    pub fn records(&self) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> + '_ {
        self.nodes.iter().map(|(id, node)| (id.0.to_bytes().to_vec(), encode(node)))
    }

    /// The tree of these records, which may come in any order. Mounts are not in records.
    pub fn restore<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        records: impl IntoIterator<Item = (K, V)>,
        limits: Limits,
    ) -> Result<Tree, RestoreError> {
        let mut tree = Tree::empty(limits);
        let mut roots = 0;
        for (key, bytes) in records {
            let key = key.as_ref();
            let id: [u8; 16] = key.try_into().map_err(|_| RestoreError::Key { length: key.len() })?;
            let id = ObjectId(Guid::from_bytes(id));
            let node = decode(id, bytes.as_ref()).map_err(|problem| RestoreError::Record { id, problem })?;
            roots += usize::from(node.is_root());
            tree.revision = tree.revision.max(node.revision());
            tree.put_node(node);
        }
        if roots != 1 {
            return Err(RestoreError::Roots { count: roots });
        }
        tree.check_parents()?;
        Ok(tree)
    }

    /// Every node hangs on a parent that knows it, and every item of a list exists.
    fn check_parents(&self) -> Result<(), RestoreError> {
        let items_of = |(id, node): (&ObjectId, &Arc<Node>)| match &node.body {
            Body::List(items) => items.iter().map(|item| (*id, *item)).collect(),
            _ => Vec::new(),
        };
        let listed: BTreeSet<(ObjectId, ObjectId)> = self.nodes.iter().flat_map(items_of).collect();
        let is_child = |parent: ObjectId, id: ObjectId| self.node(id).is_some_and(|n| n.parent == parent);
        if let Some((parent, id)) = listed.iter().copied().find(|(parent, id)| !is_child(*parent, *id)) {
            return Err(RestoreError::Parent { id, parent });
        }
        for (id, node) in &self.nodes {
            let parent = node.parent;
            let known = match self.node(parent).map(|p| &p.body) {
                Some(Body::Map) => self.child(parent, &node.key) == Some(*id),
                Some(Body::List(_)) => listed.contains(&(parent, *id)),
                _ => node.is_root(),
            };
            if !known {
                return Err(RestoreError::Parent { id: *id, parent });
            }
        }
        Ok(())
    }
}

pub(crate) fn encode(node: &Node) -> Vec<u8> {
    let flag = |on: bool| on.then_some(true);
    let mut record = yson::map! {
        "type" => node.node_type.name(),
        "creation_time" => node.creation_time.as_micros(),
        "modification_time" => node.modification_time.as_micros(),
        "attribute_revision" => node.attribute_revision,
        "content_revision" => node.content_revision,
    }
    .with_some("parent", (!node.is_root()).then_some(node.parent))
    .with_some("key", (!node.key.is_empty()).then_some(node.key.as_slice()))
    .with_some("owner", (!node.owner.is_empty()).then_some(&node.owner))
    .with_some("account", (!node.account.is_empty()).then_some(&node.account))
    .with_some("acl", (!node.acl.0.is_empty()).then(|| node.acl.to_value()))
    .with_some("no_inherit_acl", flag(!node.inherit_acl))
    .with_some("opaque", flag(node.opaque))
    .with_some("builtin", flag(node.builtin))
    .with_some("expiration_time", node.expiration.time.map(Time::as_micros))
    .with_some("expiration_timeout", node.expiration.timeout.map(Span::as_micros))
    .with_some("access_time", node.expiration.accessed.map(Time::as_micros))
    .with_some("attributes", (!node.user_attributes.is_empty()).then(|| node.user_attributes.clone()));
    let content =
        |c: &Content| Map::new().with("blob", c.blob).with("size", c.size).with_some("md5", c.md5.as_ref());
    let body = match &node.body {
        Body::Map | Body::Object => None,
        Body::List(items) => Some(Value::from(items.clone())),
        Body::Scalar(value) | Body::Document(value) => Some(value.clone()),
        Body::File(file) => file.as_ref().map(|c| content(c).into()),
        Body::Table(table) => Some(
            yson::map! {"sorted_by" => table.sorted_by.clone()}
                .with_some("chunks", (!table.chunks.is_empty()).then(|| encode_chunks(&table.chunks)))
                .with_some("schema", (!table.schema.is_entity()).then(|| table.schema.clone()))
                .into(),
        ),
        Body::Link(target) => Some(Value::String(target.clone())),
        Body::Group(members) => Some(members.iter().cloned().collect::<Vec<_>>().into()),
    };
    if let Some(body) = body {
        record.insert("body", body);
    }
    yson::to_binary(&record.into())
}

/// Takes fields out of a map, so that what is left over can be refused.
pub(crate) struct Fields(Map);

impl Fields {
    pub(crate) fn of(value: Value) -> Result<Fields, String> {
        match value {
            Value::Map(map) => Ok(Fields(map)),
            other => Err(format!("expected a map, found {}", other.type_name())),
        }
    }

    pub(crate) fn need<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, String> {
        self.may(name, read)?.ok_or_else(|| format!("field \"{name}\" is missing"))
    }

    pub(crate) fn may<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        read(&value).map(Some).ok_or_else(|| format!("field \"{name}\" has a bad value"))
    }

    pub(crate) fn done(self) -> Result<(), String> {
        match self.0.key_strings().next() {
            Some(name) => Err(format!("unknown field \"{name}\"")),
            None => Ok(()),
        }
    }
}

pub(crate) fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_list()?.iter().map(text).collect()
}

pub(crate) fn object_id(value: &Value) -> Option<ObjectId> {
    value.as_str()?.parse().ok()
}

pub(crate) fn decode(id: ObjectId, bytes: &[u8]) -> Result<Node, String> {
    let mut fields = Fields::of(yson::parse_record(bytes).map_err(|e| e.to_string())?)?;
    let node_type = fields.need("type", |v| NodeType::parse(v.as_str()?).ok())?;
    let body = fields.0.remove("body");
    let node = Node {
        id,
        node_type,
        body: decode_body(node_type, body)?,
        parent: fields.may("parent", object_id)?.unwrap_or_default(),
        key: fields.may("key", |v| v.as_bytes().map(<[u8]>::to_vec))?.unwrap_or_default(),
        user_attributes: fields.may("attributes", |v| v.as_map().cloned())?.unwrap_or_default(),
        owner: fields.may("owner", text)?.unwrap_or_default(),
        account: fields.may("account", text)?.unwrap_or_default(),
        acl: fields.may("acl", |v| Acl::parse(v).ok())?.unwrap_or_default(),
        inherit_acl: !fields.may("no_inherit_acl", Value::as_bool)?.unwrap_or_default(),
        opaque: fields.may("opaque", Value::as_bool)?.unwrap_or_default(),
        builtin: fields.may("builtin", Value::as_bool)?.unwrap_or_default(),
        expiration: Expiration {
            time: fields.may("expiration_time", Value::as_u64)?.map(Time),
            timeout: fields.may("expiration_timeout", Value::as_u64)?.map(Span),
            accessed: fields.may("access_time", Value::as_u64)?.map(Time),
        },
        creation_time: Time(fields.need("creation_time", Value::as_u64)?),
        modification_time: Time(fields.need("modification_time", Value::as_u64)?),
        attribute_revision: fields.need("attribute_revision", Value::as_u64)?,
        content_revision: fields.need("content_revision", Value::as_u64)?,
    };
    fields.done()?;
    Ok(node)
}

fn decode_body(node_type: NodeType, body: Option<Value>) -> Result<Body, String> {
    let have = |body: Option<Value>| body.ok_or_else(|| "field \"body\" is missing".to_owned());
    let bad = || "field \"body\" has a bad value".to_owned();
    Ok(match node_type {
        NodeType::User | NodeType::Account => Body::Object,
        NodeType::ListNode => {
            Body::List(have(body)?.as_list().and_then(|l| l.iter().map(object_id).collect()).ok_or_else(bad)?)
        }
        NodeType::Document => Body::Document(have(body)?),
        NodeType::File => Body::File(body.map(decode_content).transpose()?),
        NodeType::Table => Body::Table(decode_table(have(body)?)?),
        NodeType::Link => Body::Link(have(body)?.as_bytes().ok_or_else(bad)?.to_vec()),
        NodeType::Group => Body::Group(texts(&have(body)?).ok_or_else(bad)?.into_iter().collect()),
        t if t.is_scalar() => Body::Scalar(have(body)?),
        _ => Body::Map,
    })
}

fn decode_content(value: Value) -> Result<Content, String> {
    let mut fields = Fields::of(value)?;
    let content = Content {
        blob: fields.need("blob", Value::as_u64)?,
        size: fields.need("size", Value::as_u64)?,
        md5: fields.may("md5", text)?,
    };
    fields.done().map(|()| content)
}

fn encode_chunks(chunks: &[Chunk]) -> Value {
    Value::List(chunks.iter().map(Chunk::to_value).collect())
}

fn decode_chunks(value: &Value) -> Option<Vec<Chunk>> {
    value.as_list()?.iter().map(Chunk::from_value).collect()
}

impl Chunk {
    /// As it is stored, and told to those who read it.
    pub fn to_value(&self) -> Value {
        let numbers = [self.blob, self.size, self.rows, self.row_bytes, self.weight];
        let mut list: Vec<Value> = numbers.map(Value::Uint).into();
        if let Some((first, last)) = &self.bounds {
            list.extend([first.clone().into(), last.clone().into()]);
        }
        Value::List(list)
    }

    /// Reads [`Chunk::to_value`].
    pub fn from_value(value: &Value) -> Option<Chunk> {
        let list = value.as_list()?;
        let number = |at: usize| list.get(at)?.as_u64();
        let key = |at: usize| Some(list.get(at)?.as_list()?.to_vec());
        Some(Chunk {
            blob: number(0)?,
            size: number(1)?,
            rows: number(2)?,
            row_bytes: number(3)?,
            weight: number(4)?,
            bounds: key(5).zip(key(6)),
        })
    }
}

fn decode_table(value: Value) -> Result<TableContent, String> {
    let mut fields = Fields::of(value)?;
    // Records of empty tables of older versions say that they have no rows.
    fields.may("row_count", Value::as_u64)?;
    let table = TableContent {
        chunks: fields.may("chunks", decode_chunks)?.unwrap_or_default(),
        sorted_by: fields.need("sorted_by", texts)?,
        schema: fields.0.remove("schema").unwrap_or_default(),
    };
    fields.done().map(|()| table)
}
