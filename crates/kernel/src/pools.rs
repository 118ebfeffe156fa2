//! Pools and pool trees as objects of the metadata tree: `//sys/pool_trees` (http-api.md 8.8).
//!
//! The scheduler owns the options and all rules; here are the ids, the paths, the attributes around
//! the options, and the records.

use crate::Kernel;
use cypress::failures::{already_exists, no_attribute, no_child, read_only_attribute};
use scheduler::PoolDesc;
use std::collections::BTreeMap;
use vocab::batch::Table;
use vocab::{Failure, ObjectId, Time, object_type};
use yson::{Map, Value};

/// Objects by tree and name.
#[derive(Default)]
pub(crate) struct Pools {
    pub trees: BTreeMap<String, TreeObject>,
    pub pools: BTreeMap<(String, String), PoolObject>,
    by_id: BTreeMap<ObjectId, (String, Option<String>)>,
    pub default_tree: String,
    next_order: u64,
}

/// A pool tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TreeObject {
    pub id: ObjectId,
    pub config: Map,
    pub creation_time: Time,
}

/// A pool that somebody created; ephemeral ones are not objects.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PoolObject {
    pub id: ObjectId,
    /// `<Root>` on the first level.
    pub parent: String,
    pub creation_time: Time,
    /// Pools of one parent are in the order of their creation, after a restart too: it decides
    /// rounding and the order of integral pools (fair-share.md 5.6).
    pub order: u64,
    pub acl: Vec<Value>,
    pub inherit_acl: bool,
}

pub(crate) const ROOT: &str = "<Root>";
const DEFAULT_TREE_KEY: &[u8] = b"default_pool_tree";

impl Pools {
    pub fn by_id(&self, id: ObjectId) -> Option<&(String, Option<String>)> {
        self.by_id.get(&id)
    }

    pub fn pool(&self, tree: &str, name: &str) -> Option<&PoolObject> {
        self.pools.get(&(tree.to_owned(), name.to_owned()))
    }

    /// Children of a pool or, with [`ROOT`], of a tree, by name.
    pub fn children<'a>(&'a self, tree: &'a str, parent: &'a str) -> impl Iterator<Item = &'a str> {
        self.pools
            .iter()
            .filter(move |((t, _), pool)| t == tree && pool.parent == parent)
            .map(|((_, name), _)| name.as_str())
    }

    /// Path of a pool.
    pub fn path(&self, tree: &str, name: &str) -> String {
        let mut names = vec![name.to_owned()];
        let mut here = name.to_owned();
        while let Some(pool) = self.pool(tree, &here).filter(|p| p.parent != ROOT) {
            here.clone_from(&pool.parent);
            names.push(here.clone());
        }
        names.reverse();
        let mut path = format!("//sys/pool_trees/{}", yson::ypath::escape_literal(tree));
        for name in names {
            path.push('/');
            path.push_str(&yson::ypath::escape_literal(name));
        }
        path
    }

    fn put_pool(&mut self, tree: &str, name: &str, pool: PoolObject) {
        self.next_order = self.next_order.max(pool.order + 1);
        self.by_id.insert(pool.id, (tree.to_owned(), Some(name.to_owned())));
        self.pools.insert((tree.to_owned(), name.to_owned()), pool);
    }

    fn take_pool(&mut self, tree: &str, name: &str) -> Option<PoolObject> {
        let pool = self.pools.remove(&(tree.to_owned(), name.to_owned()))?;
        self.by_id.remove(&pool.id);
        Some(pool)
    }
}

/// What a pool of the tree is created from.
struct NewPool {
    tree: String,
    name: String,
    parent: String,
    options: Map,
    acl: Vec<Value>,
    inherit_acl: bool,
}

impl Kernel {
    pub(crate) fn default_tree(&self) -> String {
        self.pools.default_tree.clone()
    }

    /// `create scheduler_pool`.
    pub(crate) fn create_pool(
        &mut self,
        now: Time,
        attributes: Map,
        ignore_existing: bool,
    ) -> Result<ObjectId, Failure> {
        let new = self.read_new_pool(attributes)?;
        if let Some(existing) = self.pools.pool(&new.tree, &new.name) {
            if ignore_existing && existing.parent == new.parent {
                return Ok(existing.id);
            }
            return Err(
                already_exists(&self.pools.path(&new.tree, &new.name)).with("pool_name", new.name.as_str())
            );
        }
        let id = ObjectId(self.ids.next(object_type::SCHEDULER_POOL));
        let desc = PoolDesc { id, name: new.name.clone(), parent: new.parent.clone(), options: new.options };
        self.scheduler.create_pool(&new.tree, &desc)?;
        let order = self.pools.next_order;
        let object = PoolObject {
            id,
            parent: new.parent,
            creation_time: now,
            order,
            acl: new.acl,
            inherit_acl: new.inherit_acl,
        };
        self.pools.put_pool(&new.tree, &new.name, object);
        self.persist_pool(&new.tree, &new.name);
        self.pools_changed();
        Ok(id)
    }

    fn read_new_pool(&self, mut attributes: Map) -> Result<NewPool, Failure> {
        let mut text = |key: &str| -> Result<Option<String>, Failure> {
            match attributes.remove(key) {
                None => Ok(None),
                Some(value) => match value.as_str() {
                    Some(text) => Ok(Some(text.to_owned())),
                    None => Err(Failure::new(format!(
                        "Attribute \"{key}\" of a pool: expected string, found {} {value:?}",
                        value.type_name()
                    ))
                    .with("attribute", key)),
                },
            }
        };
        let missing = |key: &str| {
            Failure::new(format!("Attribute \"{key}\" is required to create a scheduler_pool"))
                .with("attribute", key)
        };
        let name = text("name")?.ok_or_else(|| missing("name"))?;
        let tree = text("pool_tree")?.ok_or_else(|| missing("pool_tree"))?;
        let parent = text("parent_name")?.unwrap_or_else(|| ROOT.to_owned());
        if !self.pools.trees.contains_key(&tree) {
            return Err(no_child("//sys/pool_trees", tree.as_bytes()).with("pool_tree", tree));
        }
        if parent != ROOT && self.pools.pool(&tree, &parent).is_none() {
            let message =
                format!("No such pool \"{parent}\" in tree \"{tree}\" to be the parent of \"{name}\"");
            return Err(Failure::resolve(message).with("pool_name", name).with("parent_name", parent));
        }
        let acl = match attributes.remove("acl") {
            Some(value) => cypress::Acl::parse(&value)?.to_value().as_list().unwrap_or_default().to_vec(),
            None => Vec::new(),
        };
        let inherit_acl = attributes.remove("inherit_acl").and_then(|v| v.as_bool()).unwrap_or(true);
        Ok(NewPool { tree, name, parent, options: canonical_names(attributes), acl, inherit_acl })
    }

    /// `create scheduler_pool_tree`.
    pub(crate) fn create_pool_tree(
        &mut self,
        now: Time,
        mut attributes: Map,
        ignore_existing: bool,
    ) -> Result<ObjectId, Failure> {
        let name =
            attributes.remove("name").and_then(|v| v.as_str().map(str::to_owned)).ok_or_else(|| {
                Failure::new("Attribute \"name\" (string) is required to create a scheduler_pool_tree")
                    .with("attribute", "name")
            })?;
        if let Some(existing) = self.pools.trees.get(&name) {
            if ignore_existing {
                return Ok(existing.id);
            }
            return Err(already_exists(&format!("//sys/pool_trees/{name}")));
        }
        let config = match attributes.remove("config") {
            Some(value) => value.as_map().cloned().ok_or_else(|| {
                Failure::new(format!(
                    "Attribute \"config\" of a pool tree: expected map, found {}",
                    value.type_name()
                ))
            })?,
            None => Map::new(),
        };
        if let Some(other) = attributes.key_strings().next() {
            return Err(Failure::new(format!(
                "Unknown attribute \"{other}\" of a pool tree: options belong into \"config\""
            ))
            .with("attribute", other));
        }
        self.scheduler.create_tree(&name, &config)?;
        let id = ObjectId(self.ids.next(object_type::SCHEDULER_POOL_TREE));
        self.put_tree(&name, TreeObject { id, config, creation_time: now });
        self.persist_tree(&name);
        self.pools_changed();
        Ok(id)
    }

    fn put_tree(&mut self, name: &str, tree: TreeObject) {
        self.pools.by_id.insert(tree.id, (name.to_owned(), None));
        self.pools.trees.insert(name.to_owned(), tree);
    }

    /// Something about pools has changed: it acts at once, nobody waits for a watcher.
    pub(crate) fn pools_changed(&mut self) {
        self.open.tree_seq = self.open.seq;
        self.scheduler.scan_pending();
        self.pending_work.update = true;
        self.pending_work.schedule = true;
    }

    /// Sets all options of a pool.
    pub(crate) fn set_pool_options(&mut self, tree: &str, pool: &str, options: Map) -> Result<(), Failure> {
        self.scheduler.set_pool_options(tree, pool, &canonical_names(options))?;
        self.persist_pool(tree, pool);
        self.pools_changed();
        Ok(())
    }

    /// Options and custom attributes that were set.
    pub(crate) fn pool_options(&self, tree: &str, pool: &str) -> Result<Map, Failure> {
        let (specified, custom) = self.scheduler.pool_options(tree, pool)?;
        Ok(specified.clone().into_iter().chain(custom.clone()).collect())
    }

    /// Replaces the whole configuration of a tree.
    pub(crate) fn set_tree_config(&mut self, name: &str, config: Map) -> Result<(), Failure> {
        self.scheduler.set_tree_config(name, &config)?;
        if let Some(tree) = self.pools.trees.get_mut(name) {
            tree.config = config;
        }
        self.persist_tree(name);
        self.pools_changed();
        Ok(())
    }

    pub(crate) fn set_default_tree(&mut self, name: &str) -> Result<(), Failure> {
        if !self.pools.trees.contains_key(name) {
            return Err(no_child("//sys/pool_trees", name.as_bytes()));
        }
        self.pools.default_tree = name.to_owned();
        self.open.batch.put(Table::Meta, DEFAULT_TREE_KEY, name.as_bytes());
        self.pools_changed();
        Ok(())
    }

    /// Moves and renames: `set @parent_name`, `set @name`, `move`.
    pub(crate) fn relocate_pool(
        &mut self,
        tree: &str,
        pool: &str,
        parent: &str,
        name: &str,
    ) -> Result<ObjectId, Failure> {
        let Some(object) = self.pools.pool(tree, pool).cloned() else {
            return Err(no_child(&format!("//sys/pool_trees/{tree}"), pool.as_bytes()));
        };
        if object.parent != parent && name != pool && self.pools.pool(tree, name).is_some() {
            return Err(already_exists(&self.pools.path(tree, name)));
        }
        if object.parent != parent {
            self.scheduler.move_pool(tree, pool, parent)?;
        }
        if name != pool
            && let Err(failure) = self.scheduler.rename_pool(tree, pool, name)
        {
            // Both or nothing.
            let back = self.scheduler.move_pool(tree, pool, &object.parent);
            debug_assert!(back.is_ok() || object.parent == parent, "a pool can go back to where it was");
            return Err(failure);
        }
        if let Some(mut moved) = self.pools.take_pool(tree, pool) {
            parent.clone_into(&mut moved.parent);
            self.pools.put_pool(tree, name, moved);
        }
        if name != pool {
            let children: Vec<String> = self.pools.children(tree, pool).map(str::to_owned).collect();
            for child in children {
                if let Some(object) = self.pools.pools.get_mut(&(tree.to_owned(), child.clone())) {
                    name.clone_into(&mut object.parent);
                }
                self.persist_pool(tree, &child);
            }
        }
        self.persist_pool(tree, name);
        self.pools_changed();
        Ok(object.id)
    }

    /// Removes a pool; with `recursive` its subpools first. Operations go on.
    pub(crate) fn remove_pool(&mut self, tree: &str, pool: &str, recursive: bool) -> Result<(), Failure> {
        let children: Vec<String> = self.pools.children(tree, pool).map(str::to_owned).collect();
        if !children.is_empty() && !recursive {
            let path = self.pools.path(tree, pool);
            return Err(Failure::new(format!(
                "Cannot remove {path}: it has {} subpools, use \"recursive\" to remove them too",
                children.len()
            ))
            .with("path", path));
        }
        for child in children {
            self.remove_pool(tree, &child, true)?;
        }
        self.scheduler.remove_pool(tree, pool)?;
        if let Some(object) = self.pools.take_pool(tree, pool) {
            self.open.batch.delete(Table::Pools, object.id.0.to_bytes());
        }
        self.pools_changed();
        Ok(())
    }

    /// Sets one system attribute of a pool that is not an option. None: it is an option.
    pub(crate) fn set_pool_attribute(
        &mut self,
        tree: &str,
        pool: &str,
        name: &str,
        value: &Value,
    ) -> Option<Result<(), Failure>> {
        let text = || {
            value.as_str().ok_or_else(|| {
                Failure::new(format!("Attribute \"{name}\": expected string, found {}", value.type_name()))
            })
        };
        let parent = self.pools.pool(tree, pool)?.parent.clone();
        Some(match name {
            "name" => text().and_then(|new| self.relocate_pool(tree, pool, &parent, new).map(drop)),
            "parent_name" => text().and_then(|new| self.relocate_pool(tree, pool, new, pool).map(drop)),
            "acl" => cypress::Acl::parse(value).map(|acl| {
                if let Some(object) = self.pools.pools.get_mut(&(tree.to_owned(), pool.to_owned())) {
                    object.acl = acl.to_value().as_list().unwrap_or_default().to_vec();
                }
                self.persist_pool(tree, pool);
            }),
            "inherit_acl" => match value.as_bool() {
                Some(inherit) => {
                    if let Some(object) = self.pools.pools.get_mut(&(tree.to_owned(), pool.to_owned())) {
                        object.inherit_acl = inherit;
                    }
                    self.persist_pool(tree, pool);
                    Ok(())
                }
                None => Err(Failure::new(format!(
                    "Attribute \"inherit_acl\": expected boolean, found {}",
                    value.type_name()
                ))),
            },
            "id" | "key" | "path" | "type" | "pool_tree" | "creation_time" | "effective_acl" => {
                Err(read_only_attribute(&self.pools.path(tree, pool), name.as_bytes()))
            }
            _ => return None,
        })
    }

    /// All attributes of a pool: options that were set, and what every node has.
    pub(crate) fn pool_attributes(&self, tree: &str, pool: &str) -> Result<Map, Failure> {
        let object = self
            .pools
            .pool(tree, pool)
            .ok_or_else(|| no_child(&format!("//sys/pool_trees/{tree}"), pool.as_bytes()))?;
        let system = yson::map! {
            "id" => object.id,
            "type" => "scheduler_pool",
            "key" => pool,
            "name" => pool,
            "parent_name" => object.parent.as_str(),
            "pool_tree" => tree,
            "path" => self.pools.path(tree, pool),
            "creation_time" => object.creation_time,
            "acl" => object.acl.clone(),
            "inherit_acl" => object.inherit_acl,
            "count" => self.pools.children(tree, pool).count(),
            "opaque" => false,
        };
        Ok(self.pool_options(tree, pool)?.into_iter().chain(system).collect())
    }

    /// All attributes of a tree.
    pub(crate) fn tree_attributes(&self, tree: &str) -> Result<Map, Failure> {
        let object =
            self.pools.trees.get(tree).ok_or_else(|| no_child("//sys/pool_trees", tree.as_bytes()))?;
        Ok(yson::map! {
            "id" => object.id,
            "type" => "scheduler_pool_tree",
            "key" => tree,
            "name" => tree,
            "path" => format!("//sys/pool_trees/{}", yson::ypath::escape_literal(tree)),
            "creation_time" => object.creation_time,
            "config" => object.config.clone(),
            "count" => self.pools.children(tree, ROOT).count(),
            "opaque" => false,
        })
    }

    /// `transfer_pool_resources`: down from the source's chain, up along the destination's, at once.
    pub(crate) fn transfer_pool_resources(
        &mut self,
        tree: &str,
        source: &str,
        destination: &str,
        delta: &Map,
    ) -> Result<(), Failure> {
        let lineage = |pool: &str| -> Result<Vec<String>, Failure> {
            let mut line = Vec::new();
            let mut here = pool.to_owned();
            while here != ROOT {
                let object = self
                    .pools
                    .pool(tree, &here)
                    .ok_or_else(|| no_child(&format!("//sys/pool_trees/{tree}"), here.as_bytes()))?;
                line.push(here);
                here = object.parent.clone();
            }
            Ok(line)
        };
        let (from, to) = (lineage(source)?, lineage(destination)?);
        let mut changes: BTreeMap<String, Map> = BTreeMap::new();
        for pool in from.iter().filter(|p| !to.contains(p)) {
            let mut options = self.pool_options(tree, pool)?;
            add_delta(&mut options, delta, -1.0)?;
            changes.insert(pool.clone(), options);
        }
        for pool in to.iter().filter(|p| !from.contains(p)) {
            let mut options = self.pool_options(tree, pool)?;
            add_delta(&mut options, delta, 1.0)?;
            changes.insert(pool.clone(), options);
        }
        let list: Vec<(&str, &Map)> =
            changes.iter().map(|(name, options)| (name.as_str(), options)).collect();
        self.scheduler.set_options_of_pools(tree, &list)?;
        for pool in changes.keys() {
            self.persist_pool(tree, pool);
        }
        self.pools_changed();
        Ok(())
    }

    // --- records

    fn persist_pool(&mut self, tree: &str, name: &str) {
        let (Some(pool), Ok(options)) = (self.pools.pool(tree, name), self.pool_options(tree, name)) else {
            return;
        };
        let record = yson::map! {
            "tree" => tree,
            "name" => name,
            "parent" => pool.parent.as_str(),
            "creation_time" => pool.creation_time.as_micros(),
            "order" => pool.order,
            "acl" => pool.acl.clone(),
            "inherit_acl" => pool.inherit_acl,
            "options" => options,
        };
        let key = pool.id.0.to_bytes();
        self.open.batch.put(Table::Pools, key, yson::to_binary(&record.into()));
    }

    fn persist_tree(&mut self, name: &str) {
        let Some(tree) = self.pools.trees.get(name) else { return };
        let record = yson::map! {
            "id" => tree.id,
            "config" => tree.config.clone(),
            "creation_time" => tree.creation_time.as_micros(),
        };
        self.open.batch.put(Table::PoolTrees, name.as_bytes(), yson::to_binary(&record.into()));
    }

    /// Reads a tree's record back.
    pub(crate) fn restore_tree(&mut self, key: &[u8], record: &Value) -> Result<(), Failure> {
        let name = String::from_utf8_lossy(key).into_owned();
        let broken = || Failure::new(format!("Malformed record of pool tree \"{name}\""));
        let id =
            record.get("id").and_then(Value::as_str).and_then(|id| id.parse().ok()).ok_or_else(broken)?;
        let config = record.get("config").and_then(Value::as_map).cloned().ok_or_else(broken)?;
        let creation_time = Time(record.get("creation_time").and_then(Value::as_u64).unwrap_or_default());
        self.scheduler.create_tree(&name, &config)?;
        self.put_tree(&name, TreeObject { id, config, creation_time });
        Ok(())
    }

    /// Reads all pools back, parents before children, siblings in the order of their creation.
    pub(crate) fn restore_pools(&mut self, records: Vec<(ObjectId, Value)>) -> Result<(), Failure> {
        struct Stored {
            id: ObjectId,
            tree: String,
            name: String,
            order: u64,
            record: Value,
            parent: String,
        }
        let mut waiting = Vec::new();
        for (id, record) in records {
            let text = |key: &str| record.get(key).and_then(Value::as_str).map(str::to_owned);
            let (Some(tree), Some(name), Some(parent)) = (text("tree"), text("name"), text("parent")) else {
                return Err(Failure::new(format!("Malformed record of pool {id}")));
            };
            let order = record.get("order").and_then(Value::as_u64).unwrap_or_default();
            waiting.push(Stored { id, tree, name, order, record, parent });
        }
        waiting.sort_by_key(|p| p.order);
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut later = Vec::new();
            for pool in waiting {
                if pool.parent != ROOT && self.pools.pool(&pool.tree, &pool.parent).is_none() {
                    later.push(pool);
                    continue;
                }
                let options = pool.record.get("options").and_then(Value::as_map).cloned().unwrap_or_default();
                let desc =
                    PoolDesc { id: pool.id, name: pool.name.clone(), parent: pool.parent.clone(), options };
                self.scheduler.create_pool(&pool.tree, &desc)?;
                let acl = pool.record.get("acl").and_then(Value::as_list).unwrap_or_default().to_vec();
                let object = PoolObject {
                    id: pool.id,
                    parent: pool.parent,
                    creation_time: Time(
                        pool.record.get("creation_time").and_then(Value::as_u64).unwrap_or_default(),
                    ),
                    order: pool.order,
                    acl,
                    inherit_acl: pool.record.get("inherit_acl").and_then(Value::as_bool).unwrap_or(true),
                };
                self.pools.put_pool(&pool.tree, &pool.name, object);
            }
            if later.len() == before {
                let names: Vec<String> = later.into_iter().map(|p| p.name).collect();
                return Err(Failure::new(format!("Pools without a parent in the store: {names:?}")));
            }
            waiting = later;
        }
        Ok(())
    }

    /// Reads the name of the default tree back, or makes the first tree of a new cluster.
    pub(crate) fn restore_default_tree(&mut self, now: Time, stored: Option<String>) -> Result<(), Failure> {
        match stored {
            Some(name) => {
                self.pools.default_tree = name;
                Ok(())
            }
            None => {
                let name = self.config.default_tree.clone();
                if !self.pools.trees.contains_key(&name) {
                    self.create_pool_tree(now, yson::map! { "name" => name.as_str() }, true)?;
                }
                self.set_default_tree(&name)
            }
        }
    }
}

/// Key of the default tree in `Table::Meta`.
pub(crate) fn default_tree_key() -> &'static [u8] {
    DEFAULT_TREE_KEY
}

/// The public documentation writes some names with hyphens; `_` is canonical (http-api.md 8.8 [X]).
pub(crate) fn canonical_name(name: &[u8]) -> Vec<u8> {
    name.iter().map(|b| if *b == b'-' { b'_' } else { *b }).collect()
}

fn canonical_names(options: Map) -> Map {
    options.into_iter().map(|(name, value)| (canonical_name(&name), value)).collect()
}

/// An attribute that a pool does not have.
pub(crate) fn no_pool_attribute(path: &str, name: &str) -> Failure {
    no_attribute(path, name.as_bytes())
}

/// Adds `sign x delta` to the options of a pool; what would become negative is refused.
fn add_delta(options: &mut Map, delta: &Map, sign: f64) -> Result<(), Failure> {
    for (key, amount) in delta.iter() {
        let name = String::from_utf8_lossy(key).into_owned();
        let refuse = |why: &str| {
            Err(Failure::new(format!("resource_delta/{name}: {why}")).with("path", name.as_str()))
        };
        match name.as_str() {
            "max_operation_count" | "max_running_operation_count" => {
                let Some(change) = amount.as_i64().filter(|c| *c >= 0) else {
                    return refuse("expected an int64 of at least 0");
                };
                let old = options.get(&name).and_then(Value::as_i64).unwrap_or(0);
                let new = old + if sign < 0.0 { -change } else { change };
                if new < 0 {
                    return refuse(&format!("the pool has {old}, {change} were to be taken"));
                }
                options.insert(&name, new);
            }
            "strong_guarantee_resources" | "burst_guarantee_resources" | "resource_flow" => {
                let Some(amounts) = amount.as_map() else {
                    return refuse("expected a map from resource to amount");
                };
                let map = match name.as_str() {
                    "strong_guarantee_resources" => options.entry_or_insert(&name, || Map::new().into()),
                    inner => {
                        let integral = options.entry_or_insert("integral_guarantees", || Map::new().into());
                        match integral.as_map_mut() {
                            Some(map) => map.entry_or_insert(inner, || Map::new().into()),
                            None => return refuse("the pool's integral_guarantees are not a map"),
                        }
                    }
                };
                let Some(map) = map.as_map_mut() else { return refuse("the pool's value is not a map") };
                for (resource, change) in amounts.iter() {
                    let shown = String::from_utf8_lossy(resource).into_owned();
                    let Some(by) = change.as_f64().filter(|c| *c >= 0.0) else {
                        return refuse(&format!("{shown}: expected an amount of at least 0"));
                    };
                    let old = map.get(resource).and_then(Value::as_f64).unwrap_or(0.0);
                    let new = old + sign * by;
                    if new < 0.0 {
                        return refuse(&format!("{shown}: the pool has {old}, {by} were to be taken"));
                    }
                    let new: Value = if resource == b"cpu" { new.into() } else { (new as i64).into() };
                    map.insert(resource, new);
                }
            }
            _ => {
                return refuse(
                    "expected one of burst_guarantee_resources, max_operation_count, max_running_operation_count, \
                     resource_flow, strong_guarantee_resources",
                );
            }
        }
    }
    Ok(())
}
