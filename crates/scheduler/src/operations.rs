//! Registration and life of operations (scheduling.md 4, 21).

use crate::config::{MAX_WEIGHT, MIN_WEIGHT, Mode};
use crate::messages::{
    Admission, DemandGroup, Joined, OperationDesc, Registered, RuntimeParameters, TreeParameters,
};
use crate::scheduler::Scheduler;
use crate::slab::{Key, LeafIdx, NodeIdx, OpIdx, TreeIdx};
use crate::tree::place::{Context, Placement};
use crate::tree::{Ephemeral, ROOT};
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{AllocationId, Failure, OperationId, Resources, Span, Time, code};

/// An operation, whatever its trees.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub desc: Arc<OperationDesc>,
    /// Its state is `running`.
    pub enabled: bool,
    pub suspended: bool,
    /// What it still wants to start; offered to all its trees (scheduling.md 2.5).
    /// Shared with the snapshots that show it.
    pub groups: Arc<Vec<DemandGroup>>,
    /// Sum of the counts.
    pub pending_count: i64,
    /// Nothing is started for it before (scheduling.md 17.3).
    pub backoff_until: Time,
    /// Nothing is started for it on these nodes before.
    pub node_backoffs: BTreeMap<NodeIdx, Time>,
    /// Length of the last backoff because of throttling.
    pub throttling_backoff: Span,
    /// Componentwise minimum of what is to be started (scheduling.md 5.3); kept with `groups`.
    pub need: Resources,
    pub leaves: Vec<(TreeIdx, LeafIdx)>,
}

impl Operation {
    /// It starts nothing on a node at this moment.
    pub fn backs_off(&self, now: Time, node: NodeIdx) -> bool {
        now < self.backoff_until || self.node_backoffs.get(&node).is_some_and(|until| now < *until)
    }

    /// Everything it still wants to start.
    pub fn total_needed(&self) -> Resources {
        self.groups.iter().fold(Resources::ZERO, |sum, g| sum + g.min_needed.times(g.count))
    }

    /// See [`aggregated_min_needed`].
    pub fn aggregated_min_needed(&self) -> Resources {
        aggregated_min_needed(&self.groups)
    }
}

/// Componentwise minimum over the groups that want something (scheduling.md 5.3).
pub(crate) fn aggregated_min_needed(groups: &[DemandGroup]) -> Resources {
    let wanted = groups.iter().filter(|g| g.count > 0);
    wanted.map(|g| g.min_needed).reduce(Resources::min).unwrap_or(Resources::ZERO)
}

impl Scheduler {
    /// Registers an operation after all checks (scheduling.md 4.2, steps 2 to 6). Either all of it
    /// happens or nothing.
    pub fn register_operation(&mut self, desc: OperationDesc) -> Result<Registered, Failure> {
        self.check_new(&desc)?;
        let limit = self.config.max_operation_count;
        if self.operations.len() as i64 >= limit {
            return Err(Failure::coded(
                code::TOO_MANY_OPERATIONS,
                format!("Limit for the total number of concurrent operations {limit} has been reached"),
            )
            .with("limit", limit));
        }
        let mut places = Vec::new();
        let mut erased = Vec::new();
        let mut errors = Vec::new();
        for tree in &desc.trees {
            match self.check_tree(&desc, tree) {
                Ok(place) => places.push((tree, place)),
                Err(Refused::Limit(e)) if tree.tentative || desc.erase_trees_with_pool_limit_violations => {
                    erased.push((Arc::from(tree.tree.as_str()), e));
                }
                Err(Refused::Limit(e) | Refused::Other(e)) => errors.push(e),
            }
        }
        if !errors.is_empty() || places.is_empty() {
            errors.extend(erased.into_iter().map(|(_, e)| e));
            let mut failure = Failure::new("Operation could not be started").with("operation_id", desc.id);
            failure.inner_errors = errors;
            return Err(failure);
        }
        let places: Vec<(TreeParameters, Placement)> =
            places.into_iter().map(|(t, p)| (t.clone(), p)).collect();
        Ok(Registered { trees: self.join_trees(desc, places), erased })
    }

    /// Registers operations found at start, without checks of counts (scheduling.md 21). Those that
    /// ran in some tree before come first, then by start time [D6]. A tree or pool that does not exist
    /// any more is an error of that operation alone.
    pub fn revive_operations(
        &mut self,
        mut descs: Vec<OperationDesc>,
    ) -> Vec<(OperationId, Result<Registered, Failure>)> {
        let ran = |d: &OperationDesc| d.trees.iter().any(|t| t.was_running);
        descs.sort_by_key(|d| (!ran(d), d.start_time, d.id));
        descs.into_iter().map(|d| (d.id, self.revive_operation(d))).collect()
    }

    fn revive_operation(&mut self, desc: OperationDesc) -> Result<Registered, Failure> {
        self.check_identity(&desc)?;
        let mut places = Vec::new();
        let mut erased = Vec::new();
        for tree in &desc.trees {
            match self.place_revived(&desc, tree) {
                Ok(place) => {
                    // What was accepted once does not end an operation now; ranges may have become narrower.
                    let mut tree = tree.clone();
                    tree.parameters.weight = tree.parameters.weight.map(|w| w.clamp(MIN_WEIGHT, MAX_WEIGHT));
                    places.push((tree, place));
                }
                Err(e) => erased.push((Arc::from(tree.tree.as_str()), e)),
            }
        }
        if places.is_empty() {
            let mut failure =
                Failure::new("Operation has no pool tree left after restart").with("operation_id", desc.id);
            failure.inner_errors = erased.into_iter().map(|(_, e)| e).collect();
            return Err(failure);
        }
        Ok(Registered { trees: self.join_trees(desc, places), erased })
    }

    /// Where it was: nothing of scheduling.md 4.2 is asked again. Ephemeral pools went away with the
    /// restart and are made anew; `P$user` is a subpool of `P`.
    fn place_revived(&self, desc: &OperationDesc, tree: &TreeParameters) -> Result<Placement, Failure> {
        let t = self.tree(&tree.tree)?;
        let name = tree.pool.as_deref().unwrap_or(&desc.user);
        if let Some(found) = t.pool(name) {
            return Ok(Placement::Existing(found));
        }
        let may_have_children = |pool| pool == ROOT || t.pools[pool].config.mode != Mode::Fifo;
        let base = name.split_once('$').and_then(|(base, _)| t.pool(base)).filter(|p| may_have_children(*p));
        if let Some(parent) = base {
            let name = name.to_owned();
            return Ok(Placement::New { name, parent, ephemeral: Ephemeral::Subpool });
        }
        let parent = t.default_parent(&desc.user, &self.user_to_default_pool);
        let parent = if may_have_children(parent) { parent } else { ROOT };
        let ephemeral = Ephemeral::OfUser(desc.user.clone());
        Ok(Placement::New { name: name.to_owned(), parent, ephemeral })
    }

    fn check_new(&self, desc: &OperationDesc) -> Result<(), Failure> {
        self.check_identity(desc)?;
        check_options(desc)?;
        desc.trees.iter().try_for_each(|tree| check_parameters(&tree.parameters))
    }

    fn check_identity(&self, desc: &OperationDesc) -> Result<(), Failure> {
        if self.operation_by_id.contains_key(&desc.id) {
            return Err(Failure::coded(
                code::ALREADY_EXISTS,
                format!("Operation {} is registered already", desc.id),
            ));
        }
        if desc.trees.is_empty() {
            return Err(Failure::new(format!("Operation {} names no pool tree", desc.id)));
        }
        for (i, tree) in desc.trees.iter().enumerate() {
            if desc.trees[..i].iter().any(|t| t.tree == tree.tree) {
                return Err(Failure::new(format!("Pool tree \"{}\" is named twice", tree.tree)));
            }
        }
        Ok(())
    }

    fn check_tree(&self, desc: &OperationDesc, tree: &TreeParameters) -> Result<Placement, Refused> {
        let t = self.tree(&tree.tree).map_err(Refused::Other)?;
        let context = self.context(desc.require_specified_pools_existence);
        let place = t.place(tree.pool.as_deref(), &desc.user, context).map_err(Refused::Other)?;
        t.check_place(&place, desc).map_err(Refused::Other)?;
        t.check_limits(&place).map_err(Refused::Limit)?;
        Ok(place)
    }

    pub(crate) fn context(&self, require_pools: Option<bool>) -> Context<'_> {
        Context {
            user_to_default_pool: &self.user_to_default_pool,
            name_pattern: &self.config.ephemeral_pool_name_regex,
            require_pools: require_pools.unwrap_or(self.config.require_specified_operation_pools_existence),
        }
    }

    fn join_trees(
        &mut self,
        mut desc: OperationDesc,
        places: Vec<(TreeParameters, Placement)>,
    ) -> Vec<Joined> {
        // From here on the trees have what concerns them.
        desc.trees = Vec::new();
        let desc = Arc::new(desc);
        let index = self.operations.next_key();
        let mut leaves = Vec::new();
        let mut joined = Vec::new();
        for (tree, place) in places {
            let tree_index = self.tree_index(&tree.tree).expect("the tree was found before");
            let (leaf, j) = self.trees[tree_index.index()].join(index, &desc, &tree, place);
            leaves.push((tree_index, leaf));
            joined.push(j);
        }
        self.operation_by_id.insert(desc.id, index);
        self.operations.insert(Operation {
            desc,
            enabled: false,
            suspended: false,
            groups: Arc::default(),
            pending_count: 0,
            backoff_until: Time::ZERO,
            node_backoffs: BTreeMap::new(),
            throttling_backoff: Span::ZERO,
            need: Resources::ZERO,
            leaves,
        });
        joined
    }

    /// Forgets an operation: its allocations (given back), usage and counters. Others may run then,
    /// see [`Scheduler::drain_events`].
    pub fn unregister_operation(&mut self, id: OperationId) -> Result<Vec<AllocationId>, Failure> {
        let index = self.operation_index(id)?;
        let dropped = self.drop_allocations(index);
        self.operation_by_id.remove(&id);
        let operation = self.operations.remove(index);
        for (tree, leaf) in operation.leaves {
            self.trees[tree.index()].leave(leaf);
        }
        Ok(dropped)
    }

    /// The operation leaves one tree for good (scheduling.md 2.5). Gives back its allocations there;
    /// the caller aborts the operation if no tree is left.
    pub fn erase_tree(&mut self, id: OperationId, tree: &str) -> Result<Vec<AllocationId>, Failure> {
        let index = self.operation_index(id)?;
        let tree_index = self.tree_index(tree)?;
        let leaf = self.leaf_or_refuse(index, tree_index)?;
        let dropped = self.drop_allocations_in(tree_index, leaf);
        self.operations[index].leaves.retain(|(t, _)| *t != tree_index);
        self.trees[tree_index.index()].leave(leaf);
        Ok(dropped)
    }

    /// The state became `running`, or ceased to be. When it ceases, all allocations are forgotten at
    /// once (scheduling.md 16.4) and given back.
    pub fn set_enabled(&mut self, id: OperationId, enabled: bool) -> Result<Vec<AllocationId>, Failure> {
        let index = self.operation_index(id)?;
        let was_enabled = std::mem::replace(&mut self.operations[index].enabled, enabled);
        if enabled && !was_enabled {
            // Starvation starts from zero (scheduling.md 6.3).
            for (tree, leaf) in &self.operations[index].leaves {
                let leaf = &mut self.trees[tree.index()].leaves[*leaf];
                leaf.starvation = Default::default();
                leaf.activated = self.latest;
                (leaf.last_success, leaf.limited_since) = (None, None);
            }
        }
        let dropped = if enabled { Vec::new() } else { self.drop_allocations(index) };
        self.refresh_live(index);
        Ok(dropped)
    }

    /// Suspends or resumes: a suspended operation is given nothing, what runs goes on.
    pub fn set_suspended(&mut self, id: OperationId, suspended: bool) -> Result<(), Failure> {
        let index = self.operation_index(id)?;
        self.operations[index].suspended = suspended;
        self.refresh_live(index);
        Ok(())
    }

    /// What the operation still wants to start, replacing what was known. True if it may be worth an
    /// extra update: it wants something and did not, or not this much, at the last one.
    pub fn set_demand(&mut self, id: OperationId, groups: &[DemandGroup]) -> Result<bool, Failure> {
        let index = self.operation_index(id)?;
        for (i, group) in groups.iter().enumerate() {
            let negative = !group.min_needed.dominates(&Resources::ZERO);
            if group.count < 0 || negative || groups[..i].iter().any(|g| g.task == group.task) {
                return Err(Failure::new(format!(
                    "Bad demand of operation {id}: expected different tasks with amounts and counts of at \
                     least 0, found task {} with {} x {}",
                    group.task, group.count, group.min_needed
                )));
            }
        }
        let op = &mut self.operations[index];
        op.groups = Arc::new(groups.to_vec());
        op.pending_count = groups.iter().fold(0i64, |sum, g| sum.saturating_add(g.count));
        self.refresh_live(index);
        Ok(self.wants_update(index))
    }

    /// Has an operation more demand than the newest update has seen?
    fn wants_update(&self, index: OpIdx) -> bool {
        let op = &self.operations[index];
        if !op.enabled || op.suspended || op.pending_count == 0 {
            return false;
        }
        let needed = op.total_needed();
        op.leaves.iter().any(|(tree, leaf)| {
            let leaf = &self.trees[tree.index()].leaves[*leaf];
            leaf.is_running()
                && (!leaf.published.schedulable || !leaf.published.demand.dominates(&(leaf.usage + needed)))
        })
    }

    /// Replaces weight, limits and filter of an operation in a tree.
    pub fn set_parameters(
        &mut self,
        id: OperationId,
        tree: &str,
        parameters: RuntimeParameters,
    ) -> Result<(), Failure> {
        check_parameters(&parameters)?;
        let index = self.operation_index(id)?;
        let tree_index = self.tree_index(tree)?;
        let leaf = self.leaf_or_refuse(index, tree_index)?;
        self.trees[tree_index.index()].set_parameters(leaf, parameters);
        Ok(())
    }

    /// Moves an operation to another pool of a tree; it runs there at once, or nothing happens
    /// (scheduling.md 4.5). Gives the name of the pool.
    pub fn change_pool(&mut self, id: OperationId, tree: &str, pool: &str) -> Result<Arc<str>, Failure> {
        if !self.config.pool_change_is_allowed {
            return Err(Failure::new(
                "Changing the pool of an operation is forbidden by option \"pool_change_is_allowed\"",
            ));
        }
        let index = self.operation_index(id)?;
        let desc = self.operations[index].desc.clone();
        let tree_index = self.tree_index(tree)?;
        let leaf = self.leaf_or_refuse(index, tree_index)?;
        let t = &self.trees[tree_index.index()];
        let place = t.place(Some(pool), &desc.user, self.context(desc.require_specified_pools_existence))?;
        let same = place == Placement::Existing(t.leaves[leaf].pool);
        if !same {
            t.check_place(&place, &desc)?;
        }
        let t = &mut self.trees[tree_index.index()];
        let new = t.change_pool(leaf, place)?;
        t.refresh_candidate(leaf);
        Ok(t.pools[new].name.clone())
    }

    /// How an operation stands in each of its trees.
    pub fn admissions(&self, id: OperationId) -> Result<Vec<(Arc<str>, Admission)>, Failure> {
        let index = self.operation_index(id)?;
        let leaves = self.operations[index].leaves.iter();
        Ok(leaves
            .map(|(tree, leaf)| {
                let tree = &self.trees[tree.index()];
                (tree.name.clone(), tree.admission(*leaf))
            })
            .collect())
    }

    /// Marked running in at least one tree: it may materialize (scheduling.md 3.2).
    pub fn is_running_in_strategy(&self, id: OperationId) -> bool {
        self.admissions(id).is_ok_and(|all| all.iter().any(|(_, a)| *a == Admission::Running))
    }

    /// Allocations that an operation holds, in the order of their start, tree by tree.
    pub fn allocations_of(&self, id: OperationId) -> Result<Vec<AllocationId>, Failure> {
        let index = self.operation_index(id)?;
        let leaves = self.operations[index].leaves.iter();
        Ok(leaves
            .flat_map(|(tree, leaf)| self.trees[tree.index()].leaves[*leaf].allocations.values())
            .map(|a| self.allocations[*a].id)
            .collect())
    }

    /// What is still to be started, by group.
    pub fn demand_of(&self, id: OperationId) -> Result<&[DemandGroup], Failure> {
        Ok(&self.operations[self.operation_index(id)?].groups)
    }

    fn leaf_or_refuse(&self, index: OpIdx, tree: TreeIdx) -> Result<LeafIdx, Failure> {
        self.leaf_in(index, tree).ok_or_else(|| {
            let tree = &self.trees[tree.index()].name;
            let id = self.operations[index].desc.id;
            Failure::new(format!("Operation {id} is not in pool tree \"{tree}\"")).with("pool_tree", &**tree)
        })
    }
}

/// Why an operation cannot be in a tree.
enum Refused {
    /// A limit is reached: the tree may be erased instead.
    Limit(Failure),
    Other(Failure),
}

fn check_parameters(parameters: &RuntimeParameters) -> Result<(), Failure> {
    use crate::config::{MAX_WEIGHT, MIN_WEIGHT};
    if let Some(w) = parameters.weight {
        in_range("weight", w, MIN_WEIGHT, MAX_WEIGHT)?;
    }
    not_negative("resource_limits", &parameters.resource_limits)
}

/// Options of a description that are numbers (scheduling.md 18.4).
fn check_options(desc: &OperationDesc) -> Result<(), Failure> {
    if let Some(tolerance) = desc.fair_share_starvation_tolerance {
        in_range("fair_share_starvation_tolerance", tolerance, 0.0, 1.0)?;
    }
    match &desc.non_preemptible_resource_usage_threshold {
        Some(threshold) => not_negative("non_preemptible_resource_usage_threshold", threshold),
        None => Ok(()),
    }
}

fn in_range(name: &str, value: f64, from: f64, to: f64) -> Result<(), Failure> {
    if (from..=to).contains(&value) {
        return Ok(());
    }
    let message = format!("Bad value of \"{name}\": expected a number in {from}..={to}, found {value}");
    Err(Failure::new(message).with("option", name))
}

fn not_negative(name: &str, amounts: &crate::Amounts) -> Result<(), Failure> {
    for r in vocab::RESOURCES {
        if let Some(raw) = amounts.get(r).filter(|raw| *raw < 0) {
            let found = crate::amounts::amount_value(r, raw);
            let message =
                format!("Bad value of \"{name}/{r}\": expected an amount of at least 0, found {found:?}");
            return Err(Failure::new(message).with("option", format!("{name}/{r}")));
        }
    }
    Ok(())
}
