//! Operations come, go and change their pool (scheduling.md 4.2, 4.3, 4.5).

use super::counts::running_counts;
use super::leaf::{Published, Tally};
use super::place::Placement;
use super::{Counts, Leaf, Standing, Tree};
use crate::groups::Groups;
use crate::messages::{Admission, Joined, OperationDesc, PreemptionMode, RuntimeParameters, TreeParameters};
use crate::slab::{LeafIdx, OpIdx, PoolIdx};
use fairshare::HistoricUsage;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::planted::{Bug, strikes};
use vocab::{Failure, Resources, Share, Time};

const ONE_OPERATION: Counts = Counts { operations: 1, running: 0, lightweight: 0 };

impl Tree {
    /// Adds an operation that has been checked; it runs or waits at once.
    pub fn join(
        &mut self,
        operation: OpIdx,
        desc: &Arc<OperationDesc>,
        tree: &TreeParameters,
        place: Placement,
    ) -> (LeafIdx, Joined) {
        let pool = self.realize(place);
        let slot_index = self.take_slot(pool, tree.slot_index);
        let place = self.number();
        let leaf = self.leaves.insert(Leaf {
            operation,
            desc: desc.clone(),
            options: Arc::default(),
            pool,
            place,
            slot_index,
            parameters: Arc::new(tree.parameters.clone()),
            tentative: tree.tentative,
            graceful: desc.preemption_mode == PreemptionMode::Graceful,
            // Until `admit` has decided; nothing reads it before.
            standing: Standing::Pending { at: pool, ticket: 0 },
            lightweight: false,
            live: false,
            need: Resources::ZERO,
            usage: Resources::ZERO,
            over_limits: false,
            allocations: BTreeMap::new(),
            groups: Groups::default(),
            published: Published::NOTHING,
            membership: None,
            refusals: Tally::default(),
            refusals_at_starvation: Tally::default(),
            best_allocation_share: Share::ONES,
            historic_usage: HistoricUsage::default(),
            starvation: crate::update::Starvation::default(),
            activated: Time::ZERO,
            last_success: None,
            limited_since: None,
        });
        self.graceful += usize::from(self.leaves[leaf].is_graceful());
        self.pools[pool].leaves.insert(place, leaf);
        self.count(pool, ONE_OPERATION);
        let admission = self.admit(leaf);
        (leaf, Joined { tree: self.name.clone(), pool: self.pools[pool].name.clone(), admission, slot_index })
    }

    /// Removes an operation; its usage has been taken off before. Others may run then.
    pub fn leave(&mut self, leaf: LeafIdx) {
        self.leaves[leaf].live = false;
        self.refresh_candidate(leaf);
        let pool = self.leaves[leaf].pool;
        let was_running = self.leaves[leaf].is_running();
        self.detach(leaf);
        let gone = self.leaves.remove(leaf);
        self.graceful -= usize::from(gone.is_graceful());
        self.over_limits -= usize::from(gone.over_limits);
        if was_running && !strikes(Bug::NobodyIsLetIn, 1) {
            self.release(pool);
        }
        self.remove_empty_ephemeral(pool);
    }

    /// Moves a live operation by request of its owner: it runs in the new pool, or nothing happens
    /// (scheduling.md 4.5).
    pub fn change_pool(&mut self, leaf: LeafIdx, place: Placement) -> Result<PoolIdx, Failure> {
        let old = self.leaves[leaf].pool;
        if place == Placement::Existing(old) {
            return Ok(old);
        }
        self.check_change(leaf, &place)?;
        let was_running = self.leaves[leaf].is_running();
        let new = self.realize(place);
        self.detach(leaf);
        self.attach(leaf, new);
        // A move never makes an operation wait, even where lowered limits are exceeded already.
        if was_running {
            self.count_as_running(leaf);
        } else {
            self.mark_running(leaf);
        }
        if was_running {
            // Room in the old chain is used at once [D2].
            self.release(old);
        }
        self.remove_empty_ephemeral(old);
        Ok(new)
    }

    fn check_change(&self, leaf: LeafIdx, place: &Placement) -> Result<(), Failure> {
        let l = &self.leaves[leaf];
        let lightweight = match place {
            Placement::Existing(pool) => {
                l.is_lightweight_eligible()
                    && self.pools[*pool].config.effective_lightweight_operations_enabled()
            }
            Placement::New { .. } => false,
        };
        let counted_as_running = l.is_running() && !l.lightweight;
        let old: Vec<PoolIdx> = self.chain(l.pool).collect();
        for index in self.chain(place.lowest_existing()) {
            // It is counted in common ancestors already: always among the operations, and among the
            // running ones if it runs and is not lightweight.
            let common = old.contains(&index);
            let pool = &self.pools[index];
            if !common && pool.counts.operations >= pool.max_operation_count(&self.config) {
                return Err(self.too_many(index));
            }
            let limit = pool.max_running_operation_count(&self.config);
            let exempt = lightweight || (common && counted_as_running);
            if !exempt && pool.counts.running >= limit {
                return Err(Failure::coded(
                    vocab::code::TOO_MANY_OPERATIONS,
                    format!(
                        "Limit for the number of running operations {limit} for pool \"{}\" in tree \"{}\" \
                         has been reached",
                        pool.name, self.name
                    ),
                )
                .with("pool", &*pool.name)
                .with("pool_tree", &*self.name)
                .with("limit", limit));
            }
        }
        if let Placement::New { .. } = place { self.check_limits_of_user(place) } else { Ok(()) }
    }

    /// Moves an operation because its pool changed under it: limits are not asked, a running one goes
    /// on running (scheduling.md 2.4).
    pub fn transfer(&mut self, leaf: LeafIdx, to: PoolIdx) {
        let was_running = self.leaves[leaf].is_running();
        self.detach(leaf);
        self.attach(leaf, to);
        if was_running {
            self.count_as_running(leaf);
        } else {
            self.admit(leaf);
        }
    }

    /// A running operation that was put into another pool is counted there.
    fn count_as_running(&mut self, leaf: LeafIdx) {
        let lightweight = self.is_lightweight_now(leaf);
        self.leaves[leaf].lightweight = lightweight;
        self.count(self.leaves[leaf].pool, running_counts(lightweight));
    }

    /// Takes an operation off its pool: counters, queue, usage, slot.
    fn detach(&mut self, leaf: LeafIdx) {
        self.dequeue(leaf);
        let l = &self.leaves[leaf];
        let (pool, place, slot, usage) = (l.pool, l.place, l.slot_index, l.usage);
        let mut counts = ONE_OPERATION;
        if l.is_running() {
            counts.add(running_counts(l.lightweight));
        }
        if !strikes(Bug::CountsStay, 1) {
            self.count(pool, counts.negated());
        }
        self.charge_pools(pool, Resources::ZERO - usage);
        self.pools[pool].leaves.remove(&place);
        self.pools[pool].slots.remove(&slot);
    }

    /// Puts a detached operation into a pool, at its end. Its standing is the caller's business.
    fn attach(&mut self, leaf: LeafIdx, to: PoolIdx) {
        self.ranks_are_fresh = false;
        let place = self.number();
        let slot_index = self.take_slot(to, None);
        let l = &mut self.leaves[leaf];
        (l.pool, l.place, l.slot_index) = (to, place, slot_index);
        let usage = l.usage;
        self.pools[to].leaves.insert(place, leaf);
        self.count(to, ONE_OPERATION);
        self.charge_pools(to, usage);
    }

    /// The wished slot index if it is free, else the smallest free one.
    fn take_slot(&mut self, pool: PoolIdx, wish: Option<u32>) -> u32 {
        let slots = &mut self.pools[pool].slots;
        let free = wish.filter(|w| !slots.contains(w));
        let slot = free.unwrap_or_else(|| {
            let mut next = 0;
            for used in slots.iter() {
                if *used != next {
                    break;
                }
                next += 1;
            }
            next
        });
        slots.insert(slot);
        slot
    }

    /// How an operation stands now.
    pub fn admission(&self, leaf: LeafIdx) -> Admission {
        match self.leaves[leaf].standing {
            Standing::Running => Admission::Running,
            Standing::Pending { at, .. } => {
                let pool = &self.pools[at];
                Admission::Pending {
                    pool: pool.name.clone(),
                    limit: pool.max_running_operation_count(&self.config),
                }
            }
        }
    }

    /// Replaces the parameters of an operation.
    pub fn set_parameters(&mut self, leaf: LeafIdx, parameters: RuntimeParameters) {
        self.leaves[leaf].parameters = Arc::new(parameters);
        self.watch_leaf(leaf);
    }
}
