//! Subtrees of the metadata tree that show and change other things than nodes: who answers for what.
//!
//! Each kind is a file of its own with the same five verbs; here is only the way to them.

mod common;
mod creation_times;
mod nodes;
mod operations;
mod pools;
mod transactions;

pub(crate) use common::is_common;

use crate::{Body, Effect, Kernel, Waits};
use cypress::failures::{no_child, show};
use cypress::{Foreign, GetOptions, MountId, Mounted, RemoveOptions, SetOptions};
use vocab::{Failure, ObjectId, OperationId, Time};
use yson::ypath::Step;
use yson::{Map, Value};

pub(crate) const POOL_TREES: MountId = MountId(1);
pub(crate) const OPERATIONS: MountId = MountId(2);
pub(crate) const NODES: MountId = MountId(3);
pub(crate) const ORCHID: MountId = MountId(4);
pub(crate) const TRANSACTIONS: MountId = MountId(5);
pub(crate) const LOCKS: MountId = MountId(6);
pub(crate) const CREATION_TIMES: MountId = MountId(7);

/// Where the mounts are (http-api.md 7.1).
pub(crate) const PLACES: &[(&str, MountId)] = &[
    ("//sys/pool_trees", POOL_TREES),
    ("//sys/operations", OPERATIONS),
    ("//sys/cluster_nodes", NODES),
    ("//sys/exec_nodes", NODES),
    ("//sys/scheduler/orchid", ORCHID),
    ("//sys/transactions", TRANSACTIONS),
    ("//sys/locks", LOCKS),
    ("//sys/estimated_creation_time", CREATION_TIMES),
];

impl Kernel {
    pub(crate) fn mount_get(
        &self,
        now: Time,
        at: &Mounted,
        options: &GetOptions,
        fields: Option<&[String]>,
    ) -> (Waits, Result<Body, Failure>) {
        match at.mount {
            POOL_TREES => (Waits::Tree, self.get_pools(at, options).map(Body::Value)),
            OPERATIONS => (Waits::All, self.get_operations_node(now, at, options)),
            NODES => (Waits::Nothing, self.get_nodes(at, options).map(Body::Value)),
            TRANSACTIONS | LOCKS => (Waits::Tree, self.get_passing(at, options).map(Body::Value)),
            CREATION_TIMES => (Waits::Nothing, self.get_creation_time(now, at, options).map(Body::Value)),
            _ => match self.large_map(at, options, fields, false) {
                Some(query) => (Waits::Nothing, Ok(Body::Snapshot(query))),
                None => (Waits::Nothing, self.get_orchid(now, at, options, fields).map(Body::Value)),
            },
        }
    }

    pub(crate) fn mount_list(
        &self,
        now: Time,
        at: &Mounted,
        options: &GetOptions,
    ) -> (Waits, Result<Body, Failure>) {
        match at.mount {
            POOL_TREES => (Waits::Tree, self.list_pools(at, options).map(Body::Value)),
            OPERATIONS => (Waits::All, self.list_operations_node(now, at, options)),
            NODES => (Waits::Nothing, self.list_nodes(at, options).map(Body::Value)),
            TRANSACTIONS | LOCKS => (Waits::Tree, self.list_passing(at, options).map(Body::Value)),
            CREATION_TIMES => (Waits::Nothing, self.list_creation_time(now, at, options).map(Body::Value)),
            _ => match self.large_map(at, options, None, true) {
                Some(query) => (Waits::Nothing, Ok(Body::Snapshot(query))),
                None => (Waits::Nothing, self.list_orchid(now, at, options).map(Body::Value)),
            },
        }
    }

    pub(crate) fn mount_exists(&self, now: Time, at: &Mounted) -> (Waits, bool) {
        let (waits, got) = self.mount_get(now, at, &GetOptions::default(), None);
        // An archived operation exists, whatever the edge will find in its record: its attributes are
        // all there or the reading of one says what is missing.
        (waits, got.is_ok())
    }

    pub(crate) fn mount_set(
        &mut self,
        now: Time,
        user: &str,
        at: &Mounted,
        value: Value,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        match at.mount {
            _ if is_of_own_node(at) => {
                self.edit(now, user, out, |edit| edit.set(&at.as_place(), value, SetOptions::default()))?;
            }
            POOL_TREES => self.set_pools(now, user, at, value, out)?,
            NODES => self.set_nodes(now, at, value, out)?,
            _ => return Err(crate::tree::read_only(&self.tree.show(&at.as_place()))),
        }
        Ok(Value::Entity)
    }

    /// All or none of the attributes.
    pub(crate) fn mount_multiset(
        &mut self,
        now: Time,
        user: &str,
        at: &Mounted,
        attributes: Map,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        match at.mount {
            mount if mount != POOL_TREES && (at.rest.is_empty() || is_of_own_node(at)) => {
                self.edit(now, user, out, |edit| edit.multiset_attributes(&at.as_place(), attributes))?;
            }
            POOL_TREES => self.multiset_pools(at, attributes)?,
            NODES => self.multiset_nodes(now, at, &attributes, out)?,
            _ => return Err(crate::tree::read_only(&self.tree.show(&at.as_place()))),
        }
        Ok(Value::Entity)
    }

    pub(crate) fn mount_remove(
        &mut self,
        now: Time,
        user: &str,
        at: &Mounted,
        recursive: bool,
        force: bool,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        let done = match at.mount {
            _ if is_of_own_node(at) => self
                .edit(now, user, out, |edit| edit.remove(&at.as_place(), RemoveOptions { recursive, force })),
            POOL_TREES => self.remove_pools(now, user, at, recursive, out),
            _ => Err(crate::tree::read_only(&self.tree.show(&at.as_place()))),
        };
        match done {
            Err(failure) if force && failure.code == vocab::code::RESOLVE_ERROR => Ok(Value::Entity),
            other => other.map(|()| Value::Entity),
        }
    }

    /// `move` inside of mounts: only pools move, and only inside of one tree.
    pub(crate) fn move_mounted(&mut self, from: &Mounted, to: &Mounted) -> Result<Value, Failure> {
        if from.mount != POOL_TREES || to.mount != POOL_TREES {
            return Err(crate::tree::read_only(&self.tree.show(&from.as_place())));
        }
        self.move_pools(from, to)
    }

    /// Objects that have ids but no nodes: pools, trees, operations, transactions, locks.
    pub(crate) fn foreign_mount(&self, foreign: &Foreign) -> Result<Mounted, Failure> {
        let child = |text: &str| Step::Child(text.as_bytes().to_vec());
        let (mount, mut rest) = if let Some((tree, pool)) = self.pools.by_id(foreign.id) {
            let mut steps = vec![child(tree)];
            if let Some(pool) = pool {
                let path = self.pools.path(tree, pool);
                let parsed =
                    yson::ypath::YPath::parse(path.as_bytes()).map_err(|e| Failure::new(e.to_string()))?;
                steps.extend(parsed.steps.into_iter().skip(3));
            }
            (POOL_TREES, steps)
        } else if self.tree.is_active(foreign.id) {
            (TRANSACTIONS, vec![child(&foreign.id.to_string())])
        } else if self.tree.lock_by_id(foreign.id).is_some() {
            (LOCKS, vec![child(&foreign.id.to_string())])
        } else {
            let id = OperationId(foreign.id.0);
            if !self.operations.contains_key(&id) && !self.finished.contains(id) {
                return Err(foreign.failure());
            }
            (OPERATIONS, vec![child(&id.to_string())])
        };
        rest.extend(foreign.rest.iter().cloned());
        Ok(Mounted { mount, node: self.mount_node(mount), rest })
    }

    pub(crate) fn foreign_get(
        &self,
        now: Time,
        foreign: &Foreign,
        options: &GetOptions,
    ) -> (Waits, Result<Body, Failure>) {
        match self.foreign_mount(foreign) {
            Ok(mounted) => self.mount_get(now, &mounted, options, None),
            Err(failure) => (Waits::All, Err(failure)),
        }
    }

    /// Attributes of a mount's own node. The tree sees no children there, so the owner counts them.
    pub(super) fn root_attributes(
        &self,
        at: &Mounted,
        options: &GetOptions,
        count: usize,
    ) -> Result<Value, Failure> {
        let mut value = match at.rest.as_slice() {
            [Step::Attribute(name)] if name == b"count" => return Ok(count.into()),
            _ => self.tree.get(&at.as_place(), options)?,
        };
        if let Some(map) = value.as_map_mut().filter(|map| at.rest.len() == 1 && map.contains("count")) {
            map.insert("count", count);
        }
        Ok(value)
    }

    /// A mount's own node with what is in it, and with those of its attributes that are wanted.
    pub(super) fn root_value<K: AsRef<[u8]>>(
        &self,
        at: &Mounted,
        options: &GetOptions,
        count: usize,
        all: impl Iterator<Item = (K, Value)>,
    ) -> Value {
        dressed(cut(options, all), &options.attributes, || {
            let mut attributes = self.tree.attributes(at.node, &options.attributes);
            if attributes.contains("count") {
                attributes.insert("count", count);
            }
            attributes
        })
    }

    pub(crate) fn mount_node(&self, mount: MountId) -> ObjectId {
        self.mount_nodes.iter().find(|(m, _)| *m == mount).map(|(_, node)| *node).unwrap_or_default()
    }
}

/// Is it about an attribute of the mount's own node, which is a node like others: it has a list of access, and attributes that
/// users have given it? Those of the map of pool trees are partly options of the scheduler, and changed with them.
fn is_of_own_node(at: &Mounted) -> bool {
    at.mount != POOL_TREES && matches!(at.rest.first(), Some(Step::Attribute(_) | Step::AllAttributes))
}

/// As many children as may be shown of one node, and whether there are more (http-api.md 8.1, `max_size`).
pub(super) fn cut<K: AsRef<[u8]>>(options: &GetOptions, mut all: impl Iterator<Item = (K, Value)>) -> Value {
    let limit = options.max_size.unwrap_or(usize::MAX);
    let shown = Value::Map(all.by_ref().take(limit).collect());
    let is_cut = all.next().is_some();
    if is_cut { shown.with_attributes(yson::map! { "incomplete" => true }) } else { shown }
}

/// A value with those of its attributes that are wanted.
pub(crate) fn dressed(value: Value, wanted: &[String], attributes: impl FnOnce() -> Map) -> Value {
    if wanted.is_empty() {
        return value;
    }
    let own = value.attributes().cloned().unwrap_or_default();
    value.with_attributes(own.into_iter().chain(crate::tree::only(attributes(), wanted)).collect())
}

/// What is inside an orchid: of the attributes of nodes values have a type alone. Tools that walk the tree by types
/// (`yt find`) fail without.
pub(crate) fn typed(value: Value, wanted: &[String]) -> Value {
    if wanted.iter().any(|name| name == "type") { with_types(value) } else { value }
}

fn with_types(value: Value) -> Value {
    let own = value.attributes().cloned().unwrap_or_default();
    let (name, value) = match value.into_bare() {
        Value::Map(map) => {
            let map = map.into_iter().map(|(key, value)| (key, with_types(value)));
            ("map_node", Value::Map(map.collect()))
        }
        Value::List(items) => ("list_node", Value::List(items.into_iter().map(with_types).collect())),
        value => {
            let name = match value {
                Value::String(_) => "string_node",
                Value::Int(_) => "int64_node",
                Value::Uint(_) => "uint64_node",
                Value::Double(_) => "double_node",
                Value::Bool(_) => "boolean_node",
                _ => "document",
            };
            (name, value)
        }
    };
    value.with_attributes(own.with("type", name))
}

/// Names for `list`: sorted, cut at the limit, with attributes if wanted.
pub(crate) fn names(
    all: impl IntoIterator<Item = String>,
    options: &GetOptions,
    attributes: impl Fn(&str) -> Map,
) -> Value {
    let mut all: Vec<String> = all.into_iter().collect();
    all.sort();
    let limit = options.max_size.unwrap_or(usize::MAX);
    let cut = all.len() > limit;
    all.truncate(limit);
    let list: Vec<Value> = all
        .into_iter()
        .map(|name| dressed(name.as_str().into(), &options.attributes, || attributes(&name)))
        .collect();
    let list = Value::List(list);
    if cut { list.with_attributes(yson::map! { "incomplete" => true }) } else { list }
}

/// The attribute part of a request to a virtual node: a value out of the map of its attributes.
pub(crate) fn attribute_value(
    path: &str,
    attributes: &Map,
    name: &[u8],
    inside: &[Step],
) -> Result<Value, Failure> {
    let value = attributes.get(name).ok_or_else(|| cypress::failures::no_attribute(path, name))?;
    let at = format!("{path}/@{}", show(name));
    Ok(cypress::walk::value_get(value, &at, inside)?.into_owned())
}

/// A child that a virtual node does not have.
pub(crate) fn missing(path: &str, step: &Step) -> Failure {
    match step.key() {
        Some(key) => no_child(path, &key),
        None => Failure::new(format!("{path}: the rest of the path has no meaning here")).with("path", path),
    }
}
