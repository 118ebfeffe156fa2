//! The update cycle (scheduling.md 5): tree to arena, fair share, back to the tree, snapshot.
//!
//! [`arena`] builds the input of the fair-share crate, [`settings`] the inherited settings, [`publish`]
//! writes the results where heartbeats look for them and builds the snapshot. In between come
//! [`status`] (6.1) and [`starvation`] (6.4), parents before children.

mod arena;
mod best_share;
mod kept;
mod priority;
mod publish;
pub(crate) mod settings;
mod starvation;
mod status;

pub(crate) use best_share::BestShares;
pub(crate) use kept::FairShares;
pub(crate) use settings::Settings;
pub(crate) use starvation::{Hunger, Starvation, StarvationStatus, timeouts as starvation_timeouts};
pub(crate) use status::{EPS, SchedulingStatus};

use crate::messages::UpdateKind;
use crate::scheduler::Scheduler;
use crate::snapshot::{Outcome, Snapshot, Spare, TreeSnapshot};
use crate::tree::Tree;
use arena::Arena;
use fairshare::{Cycle, IntegralState, Problem};
use std::sync::Arc;
use vocab::{Failure, RESOURCES, Resources, Span, Time, Volume};

impl Scheduler {
    /// Recomputes the fair share of everything and publishes a snapshot; also the periodic scan of the
    /// queues when its time has come (scheduling.md 4.3).
    pub fn update(&mut self, now: Time, kind: UpdateKind) -> Arc<Snapshot> {
        self.latest = self.latest.max(now);
        if now >= self.next_scan {
            self.next_scan = now + self.config.pending_by_pool_operation_scan_period;
            for tree in &mut self.trees {
                tree.scan();
            }
        }
        let trees = (0..self.trees.len()).map(|i| self.update_tree(i, now, kind)).collect();
        self.snapshot = Arc::new(Snapshot::new(now, trees));
        self.snapshot.clone()
    }

    /// Scans all queues now, whatever the period.
    pub fn scan_pending(&mut self) {
        for tree in &mut self.trees {
            tree.scan();
        }
    }

    fn update_tree(&mut self, index: usize, now: Time, kind: UpdateKind) -> Arc<TreeSnapshot> {
        let tree = &mut self.trees[index];
        let still_connecting = now.since(self.started) < tree.config.node_reconnection_timeout;
        tree.refresh_best_shares(now, &self.operations, &self.nodes);
        tree.observe_historic_usage(now);
        let arena = Arena::build(tree, &self.operations, &self.nodes, still_connecting);
        let mut states = arena.integral_states(tree);
        let previous = tree.previous_periodic_update;
        let cycle = match kind {
            UpdateKind::Extra => Cycle::Extra,
            UpdateKind::Periodic => Cycle::Periodic { since_previous: previous.map(|p| now.since(p)) },
        };
        let snapshot = &mut self.snapshot;
        let taken = tree.fair_shares.update(&arena.input, &mut states, cycle, |results| {
            let mut spare = Spare::of(snapshot, index);
            let elements = 0..arena.items.len();
            let outcomes = elements.map(|e| Outcome::of(results, e, &mut spare.results)).collect();
            (outcomes, results.problems().to_vec(), spare)
        });
        match taken {
            Ok((outcomes, problems, spare)) => {
                tree.problems = problems.iter().map(|p| arena.explain(tree, p)).collect();
                arena.keep_volumes(tree, &states, kind);
                // Only now: the time of an update that is refused counts in the next one.
                if kind == UpdateKind::Periodic {
                    tree.previous_periodic_update = Some(now);
                }
                let books = publish::Books {
                    operations: &self.operations,
                    nodes: &self.nodes,
                    allocations: &self.allocations,
                };
                let before = self.snapshot.trees.get(index);
                Arc::new(publish::publish(tree, books, arena, outcomes, before, spare, now))
            }
            // The inputs are validated when they are set, so this is a bug; the previous snapshot keeps the
            // cluster going (fair-share.md 18, D6).
            Err(error) => {
                debug_assert!(false, "fair share refused its input: {error}");
                tree.problems = vec![Failure::new(format!("Fair share update was refused: {error}"))];
                self.snapshot
                    .trees
                    .get(index)
                    .cloned()
                    .unwrap_or_else(|| Arc::new(TreeSnapshot::empty(&tree.name)))
            }
        }
    }
}

/// Volume after one more period of spending at the present pace (fair-share.md 7.1).
pub(crate) fn after_spending(total: Resources, state: &IntegralState, period: Span) -> Volume {
    let mut left = state.accumulated_volume;
    for r in RESOURCES {
        let spent = total.get(r) * period.as_secs_f64() * state.last_share;
        left.set(r, (left.get(r) - spent).max(0.0));
    }
    left
}

impl Arena {
    /// A problem of the update as an error that names pools (fair-share.md 11.2).
    fn explain(&self, tree: &Tree, problem: &Problem) -> Failure {
        let names = |pools: &[usize]| -> Vec<String> { pools.iter().map(|p| self.name(tree, *p)).collect() };
        let failure = match problem {
            Problem::OvercommitStrongAndFlow { total_strong_guarantee_resources, total_resource_flow } => {
                Failure::new("Strong guarantees and resource flows of the first level exceed the cluster")
                    .with("total_strong_guarantee_resources", total_strong_guarantee_resources.to_value())
                    .with("total_resource_flow", total_resource_flow.to_value())
                    .with("total_cluster_resources", tree.total.to_value())
            }
            Problem::OvercommitStrongAndBurst { total_strong_guarantee_resources, total_burst_resources } => {
                Failure::new("Strong and burst guarantees of the first level exceed the cluster")
                    .with("total_strong_guarantee_resources", total_strong_guarantee_resources.to_value())
                    .with("total_burst_resources", total_burst_resources.to_value())
                    .with("total_cluster_resources", tree.total.to_value())
            }
            Problem::NestedPromisedGuaranteeFairSharePools { pools } => Failure::new(
                "Pools with \"compute_promised_guarantee_fair_share\" are inside of another such pool",
            )
            .with("pools", names(pools)),
            Problem::PriorityStrongGuaranteeAdjustmentPoolsWithoutDonor { pools } => {
                Failure::new("Pools with priority strong guarantee adjustment have no donor above")
                    .with("pools", names(pools))
            }
            Problem::Inconsistency { element, rule } => {
                Failure::new(format!("Fair share of \"{}\" broke the rule {rule}", self.name(tree, *element)))
            }
        };
        failure.with("code", problem.code()).with("pool_tree", &*tree.name)
    }
}
