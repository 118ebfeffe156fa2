//! One pool tree: pools, operations in them, counters, queues, candidates.
//!
//! Reading order: [`pool`] and [`leaf`] are the elements; [`edit`] and [`validate`] change the pools;
//! [`place`] finds or makes the pool of an operation; [`counts`] decides who runs and who waits;
//! [`members`] adds, moves and removes operations; [`ledger`] accounts resources.

pub(crate) mod counts;
pub(crate) mod edit;
pub(crate) mod leaf;
pub(crate) mod ledger;
pub(crate) mod members;
pub(crate) mod place;
pub(crate) mod pool;
pub(crate) mod validate;

pub(crate) use leaf::{Leaf, Published, Standing};
pub(crate) use pool::{Counts, Ephemeral, Pool};

use crate::candidates::Candidates;
use crate::config::{ROOT_NAME, TreeConfig};
use crate::messages::Event;
use crate::slab::{LeafIdx, NodeIdx, PoolIdx, Slab};
use crate::statistics::{StarvationNotice, TreeMetrics};
use fairshare::IntegralState;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::{Failure, ObjectId, Resources, Time};
use yson::Map;

/// The root is the first pool of its tree and never goes away.
pub(crate) const ROOT: PoolIdx = PoolIdx(0);

/// One pool tree with everything that changes between updates.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub name: Arc<str>,
    pub config: Arc<TreeConfig>,
    /// Options that nobody knows, for the alert.
    pub unrecognized: Map,
    pub pools: Slab<PoolIdx, Pool>,
    pub by_name: BTreeMap<Arc<str>, PoolIdx>,
    pub leaves: Slab<LeafIdx, Leaf>,
    /// Numbers for tickets and places, ever rising.
    next_number: u64,
    /// Ephemeral pools that count against `max_ephemeral_pools_per_user`.
    pub ephemeral_of_user: BTreeMap<String, BTreeSet<Arc<str>>>,
    pub events: Vec<Event>,
    /// Schedulable operations in the order of trial.
    pub candidates: Candidates,
    /// Number of pools and operations whose specified limits are exceeded: while there are none, nobody
    /// needs to look for them (scheduling.md 14.2).
    pub over_limits: usize,
    /// Number of graceful operations (14.4).
    pub graceful: usize,
    /// Operations by priority of preemption at the newest update (12.2): none, normal, aggressive.
    pub priorities: [i64; 3],
    /// Counters since the start.
    pub metrics: TreeMetrics,
    /// Starvation that began or ended, if the tree wants to tell.
    pub notices: Vec<StarvationNotice>,
    /// Nothing was moved or renamed since the update that numbered the operations: the ranks are those
    /// of the present tree.
    pub ranks_are_fresh: bool,
    pub nodes: BTreeSet<NodeIdx>,
    /// Sum of the limits of the nodes.
    pub total: Resources,
    /// Rises whenever limits, tags or membership of a node change.
    pub nodes_version: u64,
    /// Nodes into which the spare resources fit, by free CPU.
    pub room: BTreeSet<(i64, NodeIdx)>,
    /// `total` of the newest update: satisfaction is measured against it.
    pub published_total: Resources,
    /// Volumes of pools; also those read back after a restart for pools that are not there yet.
    pub volumes: BTreeMap<ObjectId, IntegralState>,
    /// Volumes of removed pools by name, for pools that come back (fair-share.md 7.1).
    pub volumes_of_removed: BTreeMap<Arc<str>, IntegralState>,
    pub previous_periodic_update: Option<Time>,
    pub best_shares: crate::update::BestShares,
    /// What is kept of the newest update for the next one.
    pub fair_shares: crate::update::FairShares,
    /// The newest `update_fair_share` problems.
    pub problems: Vec<Failure>,
}

impl Tree {
    pub fn new(name: &str, config: TreeConfig, unrecognized: Map) -> Tree {
        let mut pools = Slab::default();
        pools.insert(Pool::new(ObjectId::default(), ROOT_NAME, None));
        Tree {
            name: name.into(),
            config: Arc::new(config),
            unrecognized,
            pools,
            by_name: [(Arc::from(ROOT_NAME), ROOT)].into(),
            leaves: Slab::default(),
            next_number: 0,
            ephemeral_of_user: BTreeMap::new(),
            events: Vec::new(),
            candidates: Candidates::default(),
            over_limits: 0,
            graceful: 0,
            priorities: [0; 3],
            metrics: TreeMetrics::default(),
            notices: Vec::new(),
            ranks_are_fresh: true,
            nodes: BTreeSet::new(),
            total: Resources::ZERO,
            nodes_version: 0,
            room: BTreeSet::new(),
            published_total: Resources::ZERO,
            volumes: BTreeMap::new(),
            volumes_of_removed: BTreeMap::new(),
            previous_periodic_update: None,
            best_shares: crate::update::BestShares::default(),
            fair_shares: crate::update::FairShares::default(),
            problems: Vec::new(),
        }
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// A pool and everything above it, the root last.
    pub fn chain(&self, from: PoolIdx) -> impl Iterator<Item = PoolIdx> + '_ {
        std::iter::successors(Some(from), |p| self.pools[*p].parent)
    }

    /// `/a/b`; empty for the root.
    pub fn full_path(&self, pool: PoolIdx) -> String {
        let names: Vec<&str> =
            self.chain(pool).filter(|p| *p != ROOT).map(|p| &*self.pools[p].name).collect();
        names.iter().rev().flat_map(|n| ["/", n]).collect()
    }

    /// Any pool by name.
    pub fn pool(&self, name: &str) -> Option<PoolIdx> {
        self.by_name.get(name).copied()
    }

    /// A pool that somebody created, or the root; ephemeral ones do not exist for configuration.
    pub fn explicit_pool(&self, name: &str) -> Result<PoolIdx, Failure> {
        self.pool(name).filter(|p| self.pools[*p].ephemeral.is_none()).ok_or_else(|| {
            Failure::resolve(format!("No such pool \"{name}\" in tree \"{}\"", self.name))
                .with("pool", name)
                .with("pool_tree", &*self.name)
        })
    }
}
