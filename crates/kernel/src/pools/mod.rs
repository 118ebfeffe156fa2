//! Pools and pool trees as objects of the metadata tree: `//sys/pool_trees` (http-api.md 8.8).
//!
//! The scheduler owns the options and all rules; here are the ids, the paths, the attributes around
//! the options, and the records: [`create`], [`options`] (settings of pools and trees), [`places`] (moves,
//! renames, removal), [`attributes`], [`transfer`], [`records`]; [`names`] are the spellings of options.

mod attributes;
mod create;
mod names;
mod options;
mod places;
mod records;
mod transfer;

pub(crate) use attributes::no_pool_attribute;
pub(crate) use names::{
    canonical_list, canonical_name, canonical_names, canonical_option_steps, canonical_steps,
};
pub(crate) use records::default_tree_key;

use crate::Kernel;
use std::collections::BTreeMap;
use vocab::{ObjectId, Time};
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

impl Kernel {
    pub(crate) fn default_tree(&self) -> String {
        self.pools.default_tree.clone()
    }

    /// Something about pools has changed: it acts at once, nobody waits for a watcher.
    pub(crate) fn pools_changed(&mut self) {
        self.open.tree_seq = self.open.seq;
        self.scheduler.scan_pending();
        self.pending_work.update = true;
        self.pending_work.schedule = true;
    }
}
