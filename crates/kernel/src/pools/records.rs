//! Pools and trees in the store.

use super::{PoolObject, ROOT, TreeObject};
use crate::Kernel;
use scheduler::PoolDesc;
use vocab::batch::Table;
use vocab::{Failure, ObjectId, Time};
use yson::Value;

pub(super) const DEFAULT_TREE_KEY: &[u8] = b"default_pool_tree";

/// Key of the default tree in `Table::Meta`.
pub(crate) fn default_tree_key() -> &'static [u8] {
    DEFAULT_TREE_KEY
}

impl Kernel {
    pub(crate) fn persist_pool(&mut self, tree: &str, name: &str) {
        self.changes.touch(crate::Topic::Pools);
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

    pub(super) fn persist_tree(&mut self, name: &str) {
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
                self.scheduler.create_pool(&pool.tree, &desc).map_err(|why| {
                    Failure::new(format!("Record of pool {} cannot be used", pool.id)).because(why)
                })?;
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
                let names: Vec<String> = later.iter().map(|p| format!("{:?} ({})", p.name, p.id)).collect();
                let names = names.join(", ");
                return Err(Failure::new(format!("Pools whose parents are missing: {names}")));
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
                self.keep_default_tree(&name);
                Ok(())
            }
        }
    }
}
