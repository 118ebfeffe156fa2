//! A pool: configuration, children, counters, queue.

use crate::config::{PoolConfig, TreeConfig};
use crate::slab::{LeafIdx, PoolIdx};
use fairshare::HistoricUsage;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::{Failure, ObjectId, Resources};
use yson::Map;

/// Why a pool is ephemeral (scheduling.md 2.3, 2.4).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ephemeral {
    /// Made for an operation of this user; these are counted per user.
    OfUser(String),
    /// `P$user`, made by a pool with `create_ephemeral_subpools`.
    Subpool,
    /// What is left of a removed or renamed pool that had operations.
    Remains,
}

/// A pool, or the root.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub id: ObjectId,
    pub name: Arc<str>,
    /// None for the root.
    pub parent: Option<PoolIdx>,
    /// In the order in which they came (fair-share.md 5.6).
    pub children: Vec<PoolIdx>,
    /// Operations directly in the pool, in the order in which they came.
    pub leaves: BTreeMap<u64, LeafIdx>,
    /// Options as they were given.
    pub own: Arc<PoolConfig>,
    /// Own options over those of the presets.
    pub config: Arc<PoolConfig>,
    /// Attributes that are no options.
    pub custom: Map,
    pub ephemeral: Option<Ephemeral>,
    pub counts: Counts,
    /// Operations that wait for this pool's limit, by ticket: first in, first out.
    pub queue: BTreeMap<u64, LeafIdx>,
    /// Slot indexes in use.
    pub slots: BTreeSet<u32>,
    /// Resources of all allocations below; kept for every pool, so that limits may appear at any
    /// time (scheduling.md 16.1).
    pub usage: Resources,
    /// Specified limits are exceeded.
    pub over_limits: bool,
    pub historic_usage: HistoricUsage,
    pub starvation: crate::update::Starvation,
}

/// The counters of scheduling.md 4.1, over the subtree.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub operations: i64,
    pub running: i64,
    pub lightweight: i64,
}

impl Counts {
    pub fn add(&mut self, other: Counts) {
        self.operations += other.operations;
        self.running += other.running;
        self.lightweight += other.lightweight;
    }
    pub fn negated(self) -> Counts {
        Counts { operations: -self.operations, running: -self.running, lightweight: -self.lightweight }
    }
}

impl Pool {
    pub fn new(id: ObjectId, name: &str, parent: Option<PoolIdx>) -> Pool {
        let config = Arc::new(PoolConfig::default());
        Pool {
            id,
            name: name.into(),
            parent,
            children: Vec::new(),
            leaves: BTreeMap::new(),
            own: config.clone(),
            config,
            custom: Map::new(),
            ephemeral: None,
            counts: Counts::default(),
            queue: BTreeMap::new(),
            slots: BTreeSet::new(),
            usage: Resources::ZERO,
            over_limits: false,
            historic_usage: HistoricUsage::default(),
            starvation: crate::update::Starvation::default(),
        }
    }

    /// Effective limit (scheduling.md 4.1).
    pub fn max_operation_count(&self, tree: &TreeConfig) -> i64 {
        match self.parent {
            None => tree.max_operation_count,
            Some(_) => self.config.max_operation_count.unwrap_or(tree.max_operation_count_per_pool),
        }
    }

    /// Effective limit (scheduling.md 4.1).
    pub fn max_running_operation_count(&self, tree: &TreeConfig) -> i64 {
        match self.parent {
            None => tree.max_running_operation_count,
            Some(_) => {
                self.config.max_running_operation_count.unwrap_or(tree.max_running_operation_count_per_pool)
            }
        }
    }

    /// Neither operations nor pools inside.
    pub fn is_empty(&self) -> bool {
        self.children.is_empty() && self.leaves.is_empty()
    }
}

/// Options of a pool over those of the presets it names, which must exist in the tree.
pub(super) fn with_presets(own: &Arc<PoolConfig>, tree: &TreeConfig) -> Result<Arc<PoolConfig>, Failure> {
    if own.config_presets.is_empty() {
        return Ok(own.clone());
    }
    let mut merged = Map::new();
    for name in &own.config_presets {
        let preset = tree.pool_config_presets.get(name).ok_or_else(|| {
            let known: Vec<String> = tree.pool_config_presets.keys().map(|k| format!("\"{k}\"")).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Failure::new(format!("No such pool config preset \"{name}\"; the tree has {known}"))
                .with("option", "config_preset")
        })?;
        for (key, value) in preset.specified.iter() {
            merged.insert(key, value.clone());
        }
    }
    for (key, value) in own.specified.iter() {
        merged.insert(key, value.clone());
    }
    Ok(Arc::new(PoolConfig::parse(&merged)?.0))
}
