//! What is known about one node.

use std::collections::BTreeSet;

use vocab::{Guid, ObjectId, Time};
use yson::{Bytes, Map, Value};

use crate::acl::Acl;
use crate::expiration::Expiration;
use crate::types::NodeType;

/// Where the content of a file or table is, and what is known about it. The bytes are elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Number of the blob in the store of blobs.
    pub blob: u64,
    /// Bytes.
    pub size: u64,
    /// Hexadecimal digest, if the writer asked for one (`compute_md5`).
    pub md5: Option<String>,
}

/// Rows that were written together: a part of one table or of several.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// Number of the blob in the store of blobs.
    pub blob: u64,
    /// Bytes of the blob.
    pub size: u64,
    /// How many rows.
    pub rows: u64,
    /// Bytes of the rows in their inner form.
    pub row_bytes: u64,
    /// What the rows weigh.
    pub weight: u64,
    /// Keys of the first and of the last row, of a sorted table.
    pub bounds: Option<(Vec<Value>, Vec<Value>)>,
}

/// Metadata of a table.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TableContent {
    /// The rows, in order; none in an empty table.
    pub chunks: Vec<Chunk>,
    /// Columns by which the rows are sorted; empty if they are not.
    pub sorted_by: Vec<String>,
    /// Schema as given by the user, or the entity.
    pub schema: Value,
}

impl TableContent {
    /// Number of rows.
    pub fn row_count(&self) -> u64 {
        self.chunks.iter().map(|c| c.rows).sum()
    }

    /// Is it the other one with rows behind those that were there, in no order? Then it does not matter what
    /// others have put there.
    pub(crate) fn extends(&self, old: &TableContent) -> bool {
        self.schema == old.schema && self.sorted_by.is_empty() && self.chunks.starts_with(&old.chunks)
    }

    /// Puts rows behind those that are there, in no order.
    pub(crate) fn extend(&mut self, chunks: &[Chunk]) {
        self.chunks.extend_from_slice(chunks);
        self.sorted_by.clear();
    }
}

/// What a node is made of.
///
/// Children of map nodes are not here: each child knows its parent and key, and the tree keeps an
/// index of that. A record of a node is then small however many children it has.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Map of nodes by key; the index in the tree has the children.
    Map,
    /// List of nodes, in order.
    List(Vec<ObjectId>),
    /// Plain value; the node's type tells which.
    Scalar(Value),
    /// Any value, attributes and all.
    Document(Value),
    /// File; none before the first write.
    File(Option<Content>),
    /// Table.
    Table(TableContent),
    /// Symbolic link: the path that it stands for, as the user wrote it.
    Link(Bytes),
    /// Group of users: names of its direct members, users and groups.
    Group(BTreeSet<String>),
    /// Object without content: user, account.
    Object,
}

/// One node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Identity; never reused.
    pub id: ObjectId,
    /// Public type.
    pub node_type: NodeType,
    /// The map or list that it is in; the null id for the root.
    pub parent: ObjectId,
    /// Key in the parent map; empty for the root and for items of lists.
    pub key: Bytes,
    /// Content.
    pub body: Body,
    /// Attributes that have no meaning here.
    pub user_attributes: Map,
    /// Who made it.
    pub owner: String,
    /// Account that is charged for the node ([`crate::accounts`]); new children inherit it.
    pub account: String,
    /// Own access control entries.
    pub acl: Acl,
    /// Do the entries of the nodes above count?
    pub inherit_acl: bool,
    /// Shown as `#` from above (http-api.md 6.4).
    pub opaque: bool,
    /// Part of the initial layout; cannot be removed.
    pub builtin: bool,
    /// When it is removed without being asked for.
    pub expiration: Expiration,
    /// When it was made.
    pub creation_time: Time,
    /// When anything about it was last changed.
    pub modification_time: Time,
    /// Revision of the last change of attributes.
    pub attribute_revision: u64,
    /// Revision of the last change of content, for maps and lists: of the set of children.
    pub content_revision: u64,
}

impl Node {
    /// Revision of the last change of any kind.
    pub fn revision(&self) -> u64 {
        self.attribute_revision.max(self.content_revision)
    }

    /// Numbers of the blobs with its content; one may be there twice.
    pub fn blobs(&self) -> impl Iterator<Item = u64> + use<'_> {
        let chunks = match &self.body {
            Body::Table(table) => table.chunks.as_slice(),
            _ => &[],
        };
        self.content().map(|c| c.blob).into_iter().chain(chunks.iter().map(|c| c.blob))
    }

    /// Numbers of the blobs with its content, each with its bytes; one may be there twice.
    pub fn contents(&self) -> impl Iterator<Item = (u64, u64)> + use<'_> {
        let chunks = self.table().map(|table| table.chunks.as_slice()).unwrap_or_default();
        let of_file = self.content().map(|content| (content.blob, content.size));
        of_file.into_iter().chain(chunks.iter().map(|chunk| (chunk.blob, chunk.size)))
    }

    /// Content of a table.
    pub(crate) fn table(&self) -> Option<&TableContent> {
        match &self.body {
            Body::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The content of a table, to be changed.
    pub(crate) fn table_mut(&mut self) -> Option<&mut TableContent> {
        match &mut self.body {
            Body::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Content of a file.
    pub fn content(&self) -> Option<&Content> {
        match &self.body {
            Body::File(content) => content.as_ref(),
            _ => None,
        }
    }

    /// Bytes on the disk, and the number of pieces that they are in.
    pub fn disk_space(&self) -> (u64, usize) {
        match &self.body {
            Body::Table(table) => (table.chunks.iter().map(|c| c.size).sum(), table.chunks.len()),
            _ => self.content().map_or((0, 0), |c| (c.size, 1)),
        }
    }

    /// Is it the root?
    pub fn is_root(&self) -> bool {
        self.parent == ObjectId(Guid::NULL)
    }
}
