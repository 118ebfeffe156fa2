//! The published result of an update: immutable, shared with readers on other threads.
//!
//! [`attributes`] turns elements into the maps that the Orchid shows (http-api.md 11.2 to 11.4).

mod attributes;
mod figures;
mod index;
mod outcome;
mod spare;

pub use figures::{PoolLook, Starved};
pub(crate) use index::Index;
pub(crate) use outcome::Outcome;
pub(crate) use spare::Spare;

use crate::config::PoolConfig;
use crate::messages::{DemandGroup, OperationDesc, RuntimeParameters};
use crate::operations::aggregated_min_needed;
use crate::options::OperationOptions;
use crate::preemption::PreemptionPriority;
use crate::reasons::Unschedulable;
use crate::tree::leaf::Tally;
use crate::tree::{Counts, Tree};
use crate::update::{Hunger, SchedulingStatus, Settings};
use fairshare::{ElementOutput, FairShare};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::{OperationId, Resources, Share, Time};

/// All trees at one update.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When it was made.
    pub time: Time,
    pub(crate) trees: Vec<Arc<TreeSnapshot>>,
}

impl Snapshot {
    pub(crate) fn empty(time: Time) -> Snapshot {
        Snapshot { time, trees: Vec::new() }
    }

    pub(crate) fn new(time: Time, trees: Vec<Arc<TreeSnapshot>>) -> Snapshot {
        Snapshot { time, trees }
    }

    /// One tree by name.
    pub fn tree(&self, name: &str) -> Option<&Arc<TreeSnapshot>> {
        self.trees.iter().find(|t| &*t.name == name)
    }

    /// All trees, in the order of creation.
    pub fn trees(&self) -> impl ExactSizeIterator<Item = &Arc<TreeSnapshot>> {
        self.trees.iter()
    }
}

/// One tree at one update.
#[derive(Clone, Debug)]
pub struct TreeSnapshot {
    /// Its name.
    pub name: Arc<str>,
    /// When it was made.
    pub time: Time,
    /// Sum of the limits of its nodes.
    pub resource_limits: Resources,
    /// Sum of the usages of its allocations.
    pub resource_usage: Resources,
    /// Names of its nodes.
    pub node_names: Arc<[Arc<str>]>,
    /// [`Tree::nodes_version`] of them.
    pub(crate) nodes_version: u64,
    pub(crate) config: Arc<crate::config::TreeConfig>,
    /// The root first.
    pub(crate) elements: Vec<ElementInfo>,
    pub(crate) pools: Index<Arc<str>>,
    pub(crate) operations: Index<OperationId>,
    pub(crate) user_to_ephemeral_pools: BTreeMap<String, BTreeSet<Arc<str>>>,
}

/// An element of the tree with all that is known of it.
#[derive(Clone, Debug)]
pub(crate) struct ElementInfo {
    pub parent: Option<usize>,
    pub outcome: Outcome,
    /// Most operations have those of their pool.
    pub settings: Arc<Settings>,
    /// Limits of the nodes it may run on, if they are not those of the tree.
    pub filter_limits: Option<Box<Resources>>,
    pub scheduling_status: SchedulingStatus,
    pub starvation: Hunger,
    /// Element itself or the lowest one above it that starves.
    pub lowest_starving_ancestor: Option<usize>,
    pub lowest_aggressively_starving_ancestor: Option<usize>,
    pub satisfaction: f64,
    pub local_satisfaction: f64,
    pub schedulable: bool,
    pub enabled: bool,
    pub kind: KindInfo,
}

#[derive(Clone, Debug)]
pub(crate) enum KindInfo {
    Pool(Box<PoolInfo>),
    Operation(Box<OperationInfo>),
}

#[derive(Clone, Debug)]
pub(crate) struct PoolInfo {
    pub name: Arc<str>,
    pub config: Arc<PoolConfig>,
    pub is_ephemeral: bool,
    /// Effective.
    pub resource_limits: Resources,
    pub counts: Counts,
    pub schedulable_operation_count: i64,
    pub pool_operation_count: i64,
    pub child_pool_count: i64,
    pub max_operation_count: i64,
    pub max_running_operation_count: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct OperationInfo {
    pub desc: Arc<OperationDesc>,
    pub pool: Arc<str>,
    pub slot_index: u32,
    pub parameters: Arc<RuntimeParameters>,
    pub groups: Arc<Vec<DemandGroup>>,
    pub tentative: bool,
    pub lightweight: bool,
    pub unschedulable_reason: Option<Unschedulable>,
    pub scheduling_index: i64,
    /// Below what guarantees promise (scheduling.md 11.2).
    pub high: bool,
    pub priority: PreemptionPriority,
    pub refusals: Tally,
    pub options: Arc<OperationOptions>,
    pub allocation_count: i64,
    /// Numbers of allocations in the preemption groups.
    pub groups_of_allocations: [i64; 3],
    /// Place in the queue that it waits in; 0 = next.
    pub queue_position: Option<i64>,
    pub best_allocation_share: Share,
    pub pending_by: Option<(Arc<str>, i64)>,
}

/// The numbers of an element that programs want, without going through maps.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ElementView {
    /// What it is entitled to.
    pub fair_share: FairShare,
    /// What it uses.
    pub usage_share: Share,
    /// What it wants.
    pub demand_share: Share,
    /// Amount in use.
    pub resource_usage: Resources,
    /// Amount wanted.
    pub resource_demand: Resources,
    /// Effective weight.
    pub weight: f64,
    /// Smallest satisfaction of the schedulable operations below; its own if it is one.
    pub satisfaction: f64,
    /// Can something be started in it?
    pub schedulable: bool,
}

impl TreeSnapshot {
    /// How many operations may get something.
    pub fn schedulable_operation_count(&self) -> i64 {
        match self.elements.first().map(|root| &root.kind) {
            Some(KindInfo::Pool(root)) => root.schedulable_operation_count,
            _ => 0,
        }
    }

    pub(crate) fn empty(name: &Arc<str>) -> TreeSnapshot {
        TreeSnapshot {
            name: name.clone(),
            time: Time::ZERO,
            resource_limits: Resources::ZERO,
            resource_usage: Resources::ZERO,
            node_names: Arc::default(),
            nodes_version: 0,
            config: Arc::new(crate::config::TreeConfig::default()),
            elements: Vec::new(),
            pools: Index::new(Vec::new()),
            operations: Index::new(Vec::new()),
            user_to_ephemeral_pools: BTreeMap::new(),
        }
    }

    pub(crate) fn new(
        tree: &Tree,
        time: Time,
        elements: Vec<ElementInfo>,
        node_names: Arc<[Arc<str>]>,
    ) -> TreeSnapshot {
        let mut pools = Vec::with_capacity(tree.pools.len());
        let mut operations = Vec::with_capacity(elements.len().saturating_sub(tree.pools.len()));
        for (i, element) in elements.iter().enumerate() {
            match &element.kind {
                KindInfo::Pool(p) => pools.push((p.name.clone(), i)),
                KindInfo::Operation(o) => operations.push((o.desc.id, i)),
            }
        }
        TreeSnapshot {
            name: tree.name.clone(),
            time,
            resource_limits: tree.total,
            resource_usage: tree.pools[crate::tree::ROOT].usage,
            node_names,
            nodes_version: tree.nodes_version,
            config: tree.config.clone(),
            elements,
            pools: Index::new(pools),
            operations: Index::new(operations),
            user_to_ephemeral_pools: tree.ephemeral_of_user.clone(),
        }
    }

    /// Names of all pools, `<Root>` among them, sorted.
    pub fn pool_names(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.pools.keys()
    }

    /// All operations, pending ones too, sorted by id.
    pub fn operation_ids(&self) -> impl ExactSizeIterator<Item = OperationId> + '_ {
        self.operations.keys().copied()
    }

    /// Operations directly in a pool, sorted by id; none if there is no such pool.
    pub fn operations_of_pool(&self, pool: &str) -> Option<Vec<OperationId>> {
        let pool = self.pools.get(pool)?;
        let inside = self.operations.iter().filter(|(_, e)| self.elements[*e].parent == Some(pool));
        Some(inside.map(|(id, _)| *id).collect())
    }

    /// Is an operation directly in a pool?
    pub fn is_in_pool(&self, id: OperationId, pool: &str) -> bool {
        let parent = self.operations.get(&id).map(|e| self.elements[e].parent);
        self.pools.get(pool).is_some_and(|pool| parent == Some(Some(pool)))
    }

    /// Child pools of a pool, sorted by name; none if there is no such pool.
    pub fn child_pools(&self, pool: &str) -> Option<Vec<Arc<str>>> {
        let pool = self.pools.get(pool)?;
        let inside = self.pools.iter().filter(|(_, e)| self.elements[*e].parent == Some(pool));
        Some(inside.map(|(name, _)| name.clone()).collect())
    }

    /// Numbers of a pool.
    pub fn pool(&self, name: &str) -> Option<ElementView> {
        Some(self.elements[self.pools.get(name)?].view())
    }

    /// Numbers of an operation.
    pub fn operation(&self, id: OperationId) -> Option<ElementView> {
        Some(self.elements[self.operations.get(&id)?].view())
    }

    /// Ephemeral pools that count against the limit of their user.
    pub fn user_to_ephemeral_pools(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = &str>)> {
        self.user_to_ephemeral_pools.iter().map(|(user, pools)| (user.as_str(), pools.iter().map(|p| &**p)))
    }
}

impl TreeSnapshot {
    /// Limits of the nodes that an element may run on (fair-share.md 5.2).
    pub(crate) fn filter_limits(&self, element: &ElementInfo) -> Resources {
        element.filter_limits.as_deref().copied().unwrap_or(self.resource_limits)
    }

    /// `/a/b`; empty for the root.
    pub(crate) fn full_path(&self, element: &ElementInfo) -> String {
        let above = |e: &&ElementInfo| e.parent.map(|p| &self.elements[p]);
        let chain: Vec<&ElementInfo> = std::iter::successors(Some(element), above).collect();
        let names = chain.iter().rev().skip(1).filter_map(|e| match &e.kind {
            KindInfo::Pool(pool) => Some(&*pool.name),
            KindInfo::Operation(_) => None,
        });
        names.flat_map(|name| ["/", name]).collect()
    }

    /// Effective limits of an element.
    pub(crate) fn limits_of(&self, element: &ElementInfo) -> Resources {
        match &element.kind {
            KindInfo::Pool(p) => p.resource_limits,
            KindInfo::Operation(o) => {
                self.filter_limits(element).min(o.parameters.resource_limits.as_limits())
            }
        }
    }
}

impl OperationInfo {
    /// The smallest that it could use.
    pub fn aggregated_min_needed(&self) -> Resources {
        aggregated_min_needed(&self.groups)
    }
}

impl ElementInfo {
    /// All attributes that the update found.
    pub fn output(&self) -> Cow<'_, ElementOutput> {
        self.outcome.all()
    }

    fn view(&self) -> ElementView {
        let e = &self.outcome;
        ElementView {
            fair_share: e.detailed_fair_share(),
            usage_share: e.usage_share(),
            demand_share: e.demand_share(),
            resource_usage: e.resource_usage(),
            resource_demand: e.resource_demand(),
            weight: e.weight(),
            satisfaction: self.satisfaction,
            schedulable: self.schedulable,
        }
    }
}
