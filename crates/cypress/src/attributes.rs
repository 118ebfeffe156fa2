//! Attributes of nodes as users see them: system and user ones in one namespace (http-api.md 6.3).
//!
//! Three kinds: *system* attributes are computed here from the node; some of them can be set, see
//! [`is_settable`]. *Defaulted* attributes have no meaning to the tree and can be set freely, but
//! are shown with a default when nobody has. The rest are user attributes.

use vocab::ObjectId;
use yson::{Map, Value};

use crate::accounts::default_limits;
use crate::acl::{Ace, effective};
use crate::limits::Limits;
use crate::node::{Body, Chunk, Node, TableContent};
use crate::subjects::{GUEST, USERS};
use crate::tree::Tree;
use crate::types::NodeType;

/// System attributes of every node.
pub const COMMON: &[&str] = &[
    "id",
    "type",
    "key",
    "path",
    "parent_id",
    "creation_time",
    "modification_time",
    "access_time",
    "expiration_time",
    "expiration_timeout",
    "revision",
    "attribute_revision",
    "content_revision",
    "owner",
    "account",
    "acl",
    "inherit_acl",
    "effective_acl",
    "opaque",
    "ref_counter",
    "lock_count",
    "lock_mode",
    "locks",
    "resource_usage",
    "recursive_resource_usage",
    "user_attribute_keys",
    "user_attributes",
    "builtin",
];
const FILE: &[&str] = &["uncompressed_data_size", "compressed_data_size", "chunk_count", "md5"];
const TABLE: &[&str] = &[
    "uncompressed_data_size",
    "compressed_data_size",
    "data_weight",
    "chunk_count",
    "row_count",
    "compression_ratio",
    "dynamic",
    "sorted",
    "sorted_by",
    "key_columns",
    "schema",
    "schema_mode",
];

/// Names of the system attributes that a type can have besides the common ones.
fn of_type(node_type: NodeType) -> &'static [&'static str] {
    match node_type {
        NodeType::File => FILE,
        NodeType::Table => TABLE,
        NodeType::Link => &["target_path", "broken"],
        NodeType::User => &["name", "member_of", "member_of_closure", "job_uid"],
        NodeType::Group => &["name", "members", "member_of"],
        NodeType::Account => &["name", "committed_resource_usage", "violated_resource_limits"],
        NodeType::SysNode => &["count", "cluster_name", "primary_cell_tag"],
        NodeType::Document => &["value"],
        t if t.is_scalar() => &["value"],
        t if t.is_map() || t == NodeType::ListNode => &["count"],
        _ => &[],
    }
}

/// Name of an attribute and how to make its default.
type Defaulted = (&'static str, fn(&Limits) -> Value);

/// Attributes that anybody may set and that are shown even if nobody did.
fn defaulted(node_type: NodeType) -> &'static [Defaulted] {
    match node_type {
        NodeType::File => &[
            ("compression_codec", |_| "none".into()),
            ("erasure_codec", |_| "none".into()),
            ("replication_factor", |_| 1.into()),
        ],
        NodeType::Table => &[
            ("compression_codec", |_| "none".into()),
            ("erasure_codec", |_| "none".into()),
            ("replication_factor", |_| 1.into()),
            ("optimize_for", |_| "lookup".into()),
        ],
        NodeType::User => &[("banned", |_| false.into())],
        NodeType::Account => &[("resource_limits", default_limits)],
        _ => &[],
    }
}

/// Is it a system attribute of nodes of this type?
pub fn is_system(node_type: NodeType, name: &[u8]) -> bool {
    COMMON.iter().chain(of_type(node_type)).any(|n| n.as_bytes() == name)
}

/// Is it kept among the attributes of users, and none of theirs? Who removes all of theirs leaves it.
pub(crate) fn is_kept(node_type: NodeType, name: &[u8]) -> bool {
    is_system(node_type, name) || defaulted(node_type).iter().any(|(known, _)| known.as_bytes() == name)
}

/// Those of a node that are its users'.
fn user_attributes(node: &Node) -> impl Iterator<Item = (&[u8], &Value)> {
    node.user_attributes.iter().filter(|(name, _)| !is_kept(node.node_type, name))
}

/// Is it a system attribute that users may change?
pub fn is_settable(node_type: NodeType, name: &[u8]) -> bool {
    match name {
        b"owner" | b"account" | b"acl" | b"inherit_acl" | b"opaque" => true,
        // Of which nodes they can be set is said by who sets them.
        b"expiration_time" | b"expiration_timeout" => true,
        b"value" => node_type.is_scalar() || node_type == NodeType::Document,
        b"schema" => node_type == NodeType::Table,
        _ => false,
    }
}

/// Shown as `#` among all attributes, served when asked for by name.
fn is_expensive(node: &Node, name: &str) -> bool {
    match name {
        "resource_usage"
        | "committed_resource_usage"
        | "recursive_resource_usage"
        | "effective_acl"
        | "schema"
        | "locks"
        | "user_attributes"
        | "member_of_closure" => true,
        "value" => node.node_type == NodeType::Document,
        _ => false,
    }
}

impl Tree {
    /// One attribute of a node, if it has it.
    pub fn attribute(&self, id: ObjectId, name: &[u8]) -> Option<Value> {
        let node = self.node(id)?;
        if is_system(node.node_type, name) {
            return self.system_attribute(node, std::str::from_utf8(name).ok()?);
        }
        node.user_attributes.get(name).cloned().or_else(|| {
            let known = defaulted(node.node_type).iter().find(|(n, _)| n.as_bytes() == name);
            known.map(|(_, make)| make(&self.limits))
        })
    }

    /// All attributes, or those of the given names that exist.
    pub fn attributes(&self, id: ObjectId, only: &[String]) -> Map {
        if !only.is_empty() {
            return only
                .iter()
                .filter_map(|name| Some((name, self.attribute(id, name.as_bytes())?)))
                .collect();
        }
        let Some(node) = self.node(id) else { return Map::new() };
        let mut all = Map::new();
        for name in COMMON.iter().chain(of_type(node.node_type)) {
            let value = if is_expensive(node, name) {
                Some(Value::Entity)
            } else {
                self.system_attribute(node, name)
            };
            if let Some(value) = value {
                all.insert(name, value);
            }
        }
        for (name, make) in defaulted(node.node_type) {
            all.insert(name, make(&self.limits));
        }
        // What older versions kept as a plain attribute may have a meaning now; it is not in force.
        let plain = |(name, _): &(&[u8], &Value)| !is_system(node.node_type, name);
        for (name, value) in node.user_attributes.iter().filter(plain) {
            all.insert(name, value.clone());
        }
        all
    }

    /// Names of the attributes that a node has.
    pub fn attribute_names(&self, id: ObjectId) -> Vec<String> {
        self.attributes(id, &[]).key_strings().collect()
    }

    /// Is it shown as `#` in a recursive `get` from above? (http-api.md 6.4)
    pub fn is_opaque(&self, node: &Node) -> bool {
        node.opaque || node.node_type.is_opaque_by_nature() || self.mount_at(node.id).is_some()
    }

    /// Entries that count for a node, in the form they have there.
    pub fn effective_acl(&self, id: ObjectId) -> Value {
        let entries = effective(self.acl_chain(id))
            .map(|(_, ace, mode)| Ace { inheritance_mode: mode, ..ace.clone() }.to_value());
        Value::List(entries.collect())
    }

    fn system_attribute(&self, node: &Node, name: &str) -> Option<Value> {
        Some(match name {
            "id" => node.id.into(),
            "type" => node.node_type.name().into(),
            "key" if node.key.is_empty() => return None,
            "key" => Value::String(node.key.clone()),
            "path" => self.path(node.id).into(),
            "parent_id" if node.is_root() => return None,
            "parent_id" => node.parent.into(),
            "creation_time" => node.creation_time.into(),
            "modification_time" => node.modification_time.into(),
            "access_time" => node.access_time().into(),
            "expiration_time" => node.expiration.time?.into(),
            "expiration_timeout" => (node.expiration.timeout?.as_millis() as i64).into(),
            "revision" => node.revision().into(),
            "attribute_revision" => node.attribute_revision.into(),
            "content_revision" => node.content_revision.into(),
            "owner" => (&node.owner).into(),
            "account" => (&node.account).into(),
            "acl" => node.acl.to_value(),
            "inherit_acl" => node.inherit_acl.into(),
            "effective_acl" => self.effective_acl(node.id),
            "opaque" => self.is_opaque(node).into(),
            "ref_counter" => 1.into(),
            "lock_count" => self.lock_count(node.id).into(),
            "lock_mode" => self.own_mode(node.id).map_or("none", |mode| mode.name()).into(),
            "locks" => Value::List(self.locks(node.id).map(|lock| lock.to_map().into()).collect()),
            "resource_usage" if node.node_type == NodeType::Account => {
                Tree::shown_usage(self.account_usage(&String::from_utf8_lossy(&node.key)))
            }
            "committed_resource_usage" => {
                Tree::shown_usage(self.committed_usage(&String::from_utf8_lossy(&node.key)))
            }
            "violated_resource_limits" => return self.violated_limits(&String::from_utf8_lossy(&node.key)),
            "resource_usage" => usage(std::iter::once(node)),
            // Of more nodes than one answer may be made of it is not told.
            "recursive_resource_usage" if self.subtree_exceeds(node.id, self.limits.max_values_per_read) => {
                Value::Entity
            }
            "recursive_resource_usage" => {
                usage(self.subtree(node.id).into_iter().filter_map(|id| self.node(id)))
            }
            "user_attribute_keys" => {
                Value::List(user_attributes(node).map(|(name, _)| Value::String(name.to_vec())).collect())
            }
            "user_attributes" => {
                user_attributes(node).map(|(name, value)| (name, value.clone())).collect::<Map>().into()
            }
            "builtin" => node.builtin.into(),
            "count" => self.child_count(node.id).into(),
            "cluster_name" | "primary_cell_tag" => return node.user_attributes.get(name).cloned(),
            "name" => Value::String(node.key.clone()),
            "job_uid" => self.uids.get(&node.id).copied()?.into(),
            "member_of" => names(self.member_of(&String::from_utf8_lossy(&node.key))),
            "member_of_closure" => names(self.member_of_closure(&String::from_utf8_lossy(&node.key))),
            _ => return self.body_attribute(node, name),
        })
    }

    fn body_attribute(&self, node: &Node, name: &str) -> Option<Value> {
        match (&node.body, name) {
            (Body::Scalar(value) | Body::Document(value), "value") => Some(value.clone()),
            (Body::Group(members), "members") => {
                Some(self.members_without_list(node).unwrap_or_else(|| names(members.iter().cloned())))
            }
            (Body::Link(target), "target_path") => Some(Value::String(target.clone())),
            (Body::Link(_), "broken") => Some(self.is_broken_link(node.id).into()),
            (Body::File(_), "md5") => node.content()?.md5.as_ref().map(Value::from),
            (Body::File(_), _) => size_attribute(node, name),
            (Body::Table(table), _) => table_attribute(node, table, name),
            _ => None,
        }
    }
}

impl Tree {
    /// Who is in `everyone` and in `users`, which keep no list.
    fn members_without_list(&self, group: &Node) -> Option<Value> {
        match &*group.key {
            b"everyone" => Some(names([GUEST, USERS].map(str::to_owned))),
            b"users" => {
                let map = self.child(self.child(self.root(), b"sys")?, b"users")?;
                let users =
                    self.map_children(map).map(|(name, _)| String::from_utf8_lossy(name).into_owned());
                Some(names(users.filter(|name| name != GUEST)))
            }
            _ => None,
        }
    }
}

fn names(names: impl IntoIterator<Item = String>) -> Value {
    Value::List(names.into_iter().map(Value::from).collect())
}

fn size_attribute(node: &Node, name: &str) -> Option<Value> {
    let size = node.content().map_or(0, |c| c.size as i64);
    match name {
        "uncompressed_data_size" | "compressed_data_size" | "data_weight" => Some(size.into()),
        "chunk_count" => Some(i64::from(node.content().is_some()).into()),
        _ => None,
    }
}

fn table_attribute(node: &Node, table: &TableContent, name: &str) -> Option<Value> {
    let sorted = !table.sorted_by.is_empty();
    let sum = |of: fn(&Chunk) -> u64| Value::Int(table.chunks.iter().map(of).sum::<u64>() as i64);
    Some(match name {
        "row_count" => sum(|c| c.rows),
        "uncompressed_data_size" => sum(|c| c.row_bytes),
        "compressed_data_size" => (node.disk_space().0 as i64).into(),
        "data_weight" => sum(|c| c.weight),
        "chunk_count" => table.chunks.len().into(),
        "compression_ratio" => 1.0.into(),
        "dynamic" => false.into(),
        "sorted" => sorted.into(),
        "sorted_by" if !sorted => return None,
        "sorted_by" | "key_columns" => table.sorted_by.clone().into(),
        "schema" if table.schema.is_entity() => {
            Value::List(Vec::new()).with_attributes(yson::map! {"strict" => false, "unique_keys" => false})
        }
        "schema" => tables::shown_schema(&table.schema),
        "schema_mode" => if table.schema.is_entity() { "weak" } else { "strong" }.into(),
        _ => return None,
    })
}

/// What nodes use, in the shape that clients expect (http-api.md 6.3).
fn usage<'a>(nodes: impl Iterator<Item = &'a Node>) -> Value {
    let (mut count, mut space, mut chunks) = (0i64, 0i64, 0i64);
    for node in nodes {
        count += 1;
        let (bytes, pieces) = node.disk_space();
        space += bytes as i64;
        chunks += pieces as i64;
    }
    yson::map! {
        "node_count" => count,
        "chunk_count" => chunks,
        "disk_space" => space,
        "disk_space_per_medium" => yson::map! {"default" => space},
        "tablet_count" => 0,
        "tablet_static_memory" => 0,
    }
    .into()
}
