//! The facade: trees and pools. Operations, nodes, allocations, plans and updates are in modules of
//! their own, each an `impl Scheduler`.

use crate::allocations::Allocation;
use crate::config::{Mode, SchedulerConfig, TreeConfig};
use crate::messages::{Alert, Event, PoolDesc};
use crate::nodes::Node;
use crate::operations::Operation;
use crate::preemption::{Order, PreemptionLog, PreemptionRecord};
use crate::slab::{AllocIdx, Key, LeafIdx, NodeIdx, OpIdx, Slab, TreeIdx};
use crate::snapshot::Snapshot;
use crate::statistics::{StarvationNotice, TreeMetrics};
use crate::tree::{ROOT, Tree};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{AllocationId, Failure, ObjectId, OperationId, Resources, Time, Volume, code};
use yson::Map;

/// Pool trees, the operations in them, nodes and allocations. See the front page of the crate for
/// the order of calls.
#[derive(Clone, Debug)]
pub struct Scheduler {
    pub(crate) config: Arc<SchedulerConfig>,
    /// Start of this life: limits by tag filter count as infinite for a while after it.
    pub(crate) started: Time,
    pub(crate) trees: Vec<Tree>,
    pub(crate) tree_by_name: BTreeMap<Arc<str>, TreeIdx>,
    pub(crate) operations: Slab<OpIdx, Operation>,
    pub(crate) operation_by_id: FxHashMap<OperationId, OpIdx>,
    pub(crate) nodes: Slab<NodeIdx, Node>,
    pub(crate) node_by_name: FxHashMap<Arc<str>, NodeIdx>,
    pub(crate) allocations: Slab<AllocIdx, Allocation>,
    pub(crate) allocation_by_id: FxHashMap<AllocationId, AllocIdx>,
    /// What nodes must be told, until somebody takes it.
    pub(crate) orders: Vec<Order>,
    pub(crate) preemption_log: PreemptionLog,
    /// The latest `now` that anybody has said, for events that come without one.
    pub(crate) latest: Time,
    /// When the check of stuck operations is due (scheduling.md 20).
    pub(crate) next_stuck_check: Time,
    /// Numbers for allocations: the order of start.
    pub(crate) next_sequence: u64,
    pub(crate) user_to_default_pool: BTreeMap<String, String>,
    pub(crate) next_scan: Time,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) audit_cursor: crate::audit::Cursor,
}

impl Scheduler {
    /// A scheduler without trees.
    pub fn new(config: SchedulerConfig, now: Time) -> Scheduler {
        let next_scan = now + config.pending_by_pool_operation_scan_period;
        let next_stuck_check = now + config.operation_hangup_check_period;
        Scheduler {
            config: Arc::new(config),
            started: now,
            trees: Vec::new(),
            tree_by_name: BTreeMap::new(),
            operations: Slab::default(),
            operation_by_id: FxHashMap::default(),
            nodes: Slab::default(),
            node_by_name: FxHashMap::default(),
            allocations: Slab::default(),
            allocation_by_id: FxHashMap::default(),
            orders: Vec::new(),
            preemption_log: PreemptionLog::default(),
            latest: now,
            next_stuck_check,
            next_sequence: 0,
            user_to_default_pool: BTreeMap::new(),
            next_scan,
            snapshot: Arc::new(Snapshot::empty(now)),
            audit_cursor: crate::audit::Cursor::default(),
        }
    }

    /// Options of the scheduler.
    pub fn config(&self) -> &SchedulerConfig {
        &self.config
    }

    /// Replaces the options of the scheduler.
    pub fn set_config(&mut self, config: SchedulerConfig) {
        self.config = Arc::new(config);
        for node in self.nodes.keys() {
            self.refresh_room(node);
        }
    }

    /// Default parent pools by user (`//sys/scheduler/user_to_default_pool`).
    pub fn set_user_to_default_pool(&mut self, map: BTreeMap<String, String>) {
        self.user_to_default_pool = map;
    }

    /// Adds a tree. Its filter should not share nodes with that of another; nodes in two trees raise
    /// an alert.
    pub fn create_tree(&mut self, name: &str, options: &Map) -> Result<(), Failure> {
        if name.is_empty() || name.contains('/') {
            return Err(Failure::new(format!(
                "Bad pool tree name \"{name}\": expected a non-empty name without \"/\""
            )));
        }
        if self.tree_by_name.contains_key(name) {
            return Err(Failure::coded(code::ALREADY_EXISTS, format!("Pool tree \"{name}\" already exists"))
                .with("pool_tree", name));
        }
        let (config, unrecognized) = TreeConfig::parse(options)?;
        let tree = Tree::new(name, config, unrecognized);
        self.tree_by_name.insert(tree.name.clone(), TreeIdx::new(self.trees.len() as u32));
        self.trees.push(tree);
        self.assign_all_nodes();
        Ok(())
    }

    /// Names of the trees, in the order of creation.
    pub fn tree_names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.trees.iter().map(|t| &t.name)
    }

    /// Options of a tree.
    pub fn tree_config(&self, tree: &str) -> Result<&TreeConfig, Failure> {
        Ok(&self.tree(tree)?.config)
    }

    /// Replaces all options of a tree. Refused as a whole if they cannot be read or do not agree with
    /// the pools; gives back the allocations of nodes that the new filter takes away.
    pub fn set_tree_config(&mut self, tree: &str, options: &Map) -> Result<Vec<AllocationId>, Failure> {
        let (config, unrecognized) = TreeConfig::parse(options)?;
        let tree = self.tree_mut(tree)?;
        let same_filter = tree.config.nodes_filter == config.nodes_filter;
        tree.set_config(config, unrecognized)?;
        Ok(if same_filter { Vec::new() } else { self.assign_all_nodes() })
    }

    /// Creates a pool; takes over operations left behind by a pool of the same name.
    pub fn create_pool(&mut self, tree: &str, pool: &PoolDesc) -> Result<(), Failure> {
        self.tree_mut(tree)?.create_pool(pool).map(drop)
    }

    /// Sets all options and custom attributes of a pool.
    pub fn set_pool_options(&mut self, tree: &str, pool: &str, options: &Map) -> Result<(), Failure> {
        self.tree_mut(tree)?.set_pool_options(&[(pool, options)])
    }

    /// Sets the options of several pools; the rules must hold when all are set (for
    /// `transfer_pool_resources`).
    pub fn set_options_of_pools(&mut self, tree: &str, changes: &[(&str, &Map)]) -> Result<(), Failure> {
        self.tree_mut(tree)?.set_pool_options(changes)
    }

    /// Moves a pool with everything in it below another parent.
    pub fn move_pool(&mut self, tree: &str, pool: &str, parent: &str) -> Result<(), Failure> {
        self.tree_mut(tree)?.move_pool(pool, parent)
    }

    /// Renames a pool; its operations stay behind under the old name (scheduling.md 2.4).
    pub fn rename_pool(&mut self, tree: &str, pool: &str, name: &str) -> Result<(), Failure> {
        let map = std::mem::take(&mut self.user_to_default_pool);
        let result = self.tree_mut(tree).and_then(|t| {
            let parent = t.default_parent("", &map);
            t.rename_pool(pool, name, parent)
        });
        self.user_to_default_pool = map;
        result
    }

    /// Removes a pool without explicit child pools; operations go on in an ephemeral pool of its name.
    pub fn remove_pool(&mut self, tree: &str, pool: &str) -> Result<(), Failure> {
        let map = std::mem::take(&mut self.user_to_default_pool);
        let result = self.tree_mut(tree).and_then(|t| {
            let parent = t.default_parent("", &map);
            t.remove_pool(pool, parent)
        });
        self.user_to_default_pool = map;
        result
    }

    /// Is there such a pool at this moment, ephemeral ones included?
    pub fn has_pool(&self, tree: &str, pool: &str) -> bool {
        self.tree(tree).is_ok_and(|tree| tree.pool(pool).is_some())
    }

    /// Options that were set on a pool, canonical, and its custom attributes.
    pub fn pool_options(&self, tree: &str, pool: &str) -> Result<(&Map, &Map), Failure> {
        let tree = self.tree(tree)?;
        let pool = &tree.pools[tree.explicit_pool(pool)?];
        Ok((&pool.own.specified, &pool.custom))
    }

    /// Resources of all allocations below a pool at this moment (the snapshot has those of the last
    /// update).
    pub fn pool_usage(&self, tree: &str, pool: &str) -> Result<Resources, Failure> {
        let tree = self.tree(tree)?;
        match tree.pool(pool) {
            Some(index) => Ok(tree.pools[index].usage),
            None => tree.explicit_pool(pool).map(|_| Resources::ZERO),
        }
    }

    /// The same of all pools that are there at this moment, sorted by name.
    pub fn pool_usages(&self, tree: &str) -> Result<impl Iterator<Item = (&Arc<str>, Resources)>, Failure> {
        let tree = self.tree(tree)?;
        Ok(tree.by_name.iter().map(|(name, pool)| (name, tree.pools[*pool].usage)))
    }

    /// The nearest pool, at or above the place that an operation of `user` would be given, that is not
    /// ephemeral: permission `use` is checked there (scheduling.md 2.3).
    pub fn pool_for_permission(
        &self,
        tree: &str,
        pool: Option<&str>,
        user: &str,
    ) -> Result<Arc<str>, Failure> {
        let tree = self.tree(tree)?;
        let place = tree.place(pool, user, self.context(None))?;
        let explicit = tree.chain(place.lowest_existing()).find(|p| tree.pools[*p].ephemeral.is_none());
        Ok(tree.pools[explicit.unwrap_or(ROOT)].name.clone())
    }

    /// Events since the last call, tree by tree, in the order in which they happened.
    pub fn drain_events(&mut self) -> Vec<Event> {
        self.trees.iter_mut().flat_map(|t| std::mem::take(&mut t.events)).collect()
    }

    /// What nodes must be told because of the calls since the last time, in order. The books count on it:
    /// whoever applies plans must take these and pass them on.
    pub fn drain_orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }

    /// Starvation of operations that began or ended since the last call, of trees with option
    /// `enable_detailed_starvation_logs`, in order.
    pub fn drain_starvation_notices(&mut self) -> Vec<StarvationNotice> {
        self.trees.iter_mut().flat_map(|t| std::mem::take(&mut t.notices)).collect()
    }

    /// The newest preemptions, oldest first; at most
    /// [`PREEMPTION_LOG_LIMIT`](crate::PREEMPTION_LOG_LIMIT).
    pub fn preemption_log(
        &self,
    ) -> impl DoubleEndedIterator<Item = &Arc<PreemptionRecord>> + ExactSizeIterator {
        self.preemption_log.iter()
    }

    /// Counters of a tree since the start.
    pub fn metrics(&self, tree: &str) -> Result<TreeMetrics, Failure> {
        let tree = self.tree(tree)?;
        let mut metrics = tree.metrics.clone();
        metrics.operation_count_by_preemption_priority = tree.priorities;
        Ok(metrics)
    }

    /// What is wrong at the moment (scheduling.md 20).
    pub fn alerts(&self) -> Vec<Alert> {
        let mut alerts = Vec::new();
        for tree in &self.trees {
            let about = |name, message: String| Alert {
                name,
                error: Failure::new(message).with("pool_tree", &*tree.name),
            };
            let parent = &tree.config.default_parent_pool;
            if tree.explicit_pool(parent).is_err() {
                alerts.push(about(
                    "update_pools",
                    format!("Default parent pool \"{parent}\" of tree \"{}\" does not exist", tree.name),
                ));
            }
            if !tree.unrecognized.is_empty() {
                let names: Vec<String> = tree.unrecognized.key_strings().collect();
                alerts.push(about(
                    "unrecognized_pool_tree_config_options",
                    format!("Unrecognized options of tree \"{}\": {names:?}", tree.name),
                ));
            }
            if let Some(pool) = tree.pool(&tree.config.default_parent_pool)
                && tree.pools[pool].config.mode == Mode::Fifo
            {
                alerts.push(about(
                    "update_pools",
                    format!(
                        "Default parent pool \"{}\" of tree \"{}\" is in FIFO mode and can have no pools: \
                         operations that need a new pool there are refused",
                        tree.config.default_parent_pool, tree.name
                    ),
                ));
            }
            let preemption = tree.config.allocation_preemption_timeout;
            let pools =
                tree.pools.values().map(|p| (&p.name, p.config.waiting_for_resources_on_node_timeout));
            let waits = pools.chain([(&tree.name, tree.config.waiting_for_resources_on_node_timeout)]);
            for (name, timeout) in waits {
                // Who starts by preemption would be aborted before his victims have gone (15.4).
                if let Some(timeout) = timeout.filter(|t| *t < preemption) {
                    alerts.push(about(
                        "waiting_timeout_below_preemption_timeout",
                        format!(
                            "\"waiting_for_resources_on_node_timeout\" of \"{name}\" is {timeout}, less than \
                             \"allocation_preemption_timeout\" of tree \"{}\", which is {preemption}",
                            tree.name
                        ),
                    ));
                }
            }
            if tree.config.use_user_default_parent_pool_map {
                for (user, pool) in &self.user_to_default_pool {
                    if tree.explicit_pool(pool).is_err() {
                        alerts.push(about(
                            "update_user_to_default_pool_map",
                            format!("Default pool \"{pool}\" of user \"{user}\" does not exist"),
                        ));
                    }
                }
            }
            if !tree.problems.is_empty() {
                let mut error = Failure::new(format!(
                    "Found pool configuration issues during fair share update in tree \"{}\"",
                    tree.name
                ));
                error.inner_errors = tree.problems.clone();
                alerts.push(Alert { name: "update_fair_share", error: error.with("pool_tree", &*tree.name) });
            }
        }
        // One tree cannot contend for a node with itself; a big cluster has many nodes to look at.
        let contended = self.nodes.values().filter(|n| n.matching_trees > 1);
        for node in contended.take(if self.trees.len() > 1 { usize::MAX } else { 0 }) {
            alerts.push(Alert {
                name: "nodes_in_several_trees",
                error: Failure::new(format!("Node \"{}\" satisfies the filters of several trees", node.name))
                    .with("node", &*node.name),
            });
        }
        alerts
    }

    /// Volumes to be stored (fair-share.md 7.1). With `write_period`, those of a crash-safe write: less
    /// what is spent until the next write at the present pace; without, those of a graceful stop.
    pub fn export_volumes(&self, write_period: Option<vocab::Span>) -> Vec<(Arc<str>, ObjectId, Volume)> {
        let mut all = Vec::new();
        for tree in &self.trees {
            for (id, state) in &tree.volumes {
                let volume = match write_period {
                    None => state.accumulated_volume,
                    Some(period) => crate::update::after_spending(tree.total, state, period),
                };
                all.push((tree.name.clone(), *id, volume));
            }
        }
        all
    }

    /// Puts back a stored volume, before or after the pool is created.
    pub fn import_volume(&mut self, tree: &str, pool: ObjectId, volume: Volume) -> Result<(), Failure> {
        let state = fairshare::IntegralState { accumulated_volume: volume, last_share: 0.0 };
        self.tree_mut(tree)?.volumes.insert(pool, state);
        Ok(())
    }

    /// The newest snapshot.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.clone()
    }

    pub(crate) fn tree_index(&self, name: &str) -> Result<TreeIdx, Failure> {
        self.tree_by_name
            .get(name)
            .copied()
            .ok_or_else(|| Failure::resolve(format!("No such pool tree \"{name}\"")).with("pool_tree", name))
    }

    pub(crate) fn tree(&self, name: &str) -> Result<&Tree, Failure> {
        Ok(&self.trees[self.tree_index(name)?.index()])
    }

    pub(crate) fn tree_mut(&mut self, name: &str) -> Result<&mut Tree, Failure> {
        let index = self.tree_index(name)?;
        Ok(&mut self.trees[index.index()])
    }

    pub(crate) fn operation_index(&self, id: OperationId) -> Result<OpIdx, Failure> {
        self.operation_by_id.get(&id).copied().ok_or_else(|| {
            Failure::coded(code::NO_SUCH_OPERATION, format!("No such operation {id}"))
                .with("operation_id", id)
        })
    }

    /// Recomputes whether an operation could be scheduled at this moment, in all its trees.
    pub(crate) fn refresh_live(&mut self, operation: OpIdx) {
        let op = &mut self.operations[operation];
        let live = op.enabled && !op.suspended && op.pending_count > 0;
        op.need = op.aggregated_min_needed();
        for &(tree, leaf) in &op.leaves {
            let tree = &mut self.trees[tree.index()];
            let l = &mut tree.leaves[leaf];
            if (l.live, l.need) != (live, op.need) {
                (l.live, l.need) = (live, op.need);
                tree.refresh_candidate(leaf);
            }
        }
    }

    pub(crate) fn leaf_in(&self, operation: OpIdx, tree: TreeIdx) -> Option<LeafIdx> {
        self.operations[operation].leaves.iter().find(|(t, _)| *t == tree).map(|(_, l)| *l)
    }
}
