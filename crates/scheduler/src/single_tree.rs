//! Which of its trees an operation should stay in (scheduling.md 2.5, `schedule_in_single_tree`).

use crate::messages::Admission;
use crate::scheduler::Scheduler;
use crate::slab::Key;
use crate::snapshot::ElementInfo;
use std::sync::Arc;
use vocab::{Failure, OperationId, RESOURCES, Share};

/// How good a tree is: guaranteed, has nodes, does not wait, guarantee left.
type Rank = (bool, bool, bool, f64);

impl Scheduler {
    /// The best tree of an operation, by the newest snapshot and its demand now. The caller erases the
    /// others ([`Scheduler::erase_tree`]) once the operation is materialized. None if the option
    /// `enable_schedule_in_single_tree` is off or there is nothing to choose from.
    ///
    /// In this order: trees where the pool is guaranteed something (only with `consider_guarantees`),
    /// trees with nodes, trees where it does not wait, and then the one whose pool has the most of its
    /// guarantee left for it in its scarcest resource; of equals the first.
    pub fn best_tree(&self, id: OperationId, consider_guarantees: bool) -> Result<Option<Arc<str>>, Failure> {
        let operation = &self.operations[self.operation_index(id)?];
        if !self.config.enable_schedule_in_single_tree || operation.leaves.len() < 2 {
            return Ok(None);
        }
        let needed = operation.total_needed();
        let mut best: Option<(Rank, Arc<str>)> = None;
        for (index, leaf) in &operation.leaves {
            let tree = &self.trees[index.index()];
            let pool = &tree.pools[tree.leaves[*leaf].pool].name;
            let snapshot = self.snapshot.trees.get(index.index());
            let element: Option<&ElementInfo> = snapshot.and_then(|s| Some(&s.elements[s.pools.get(pool)?]));
            let (guarantee, demand) = element.map_or((Share::ZERO, Share::ZERO), |e| {
                (e.output().estimated_guarantee_share, e.outcome.demand_share())
            });
            let new_demand = needed.share_of(&tree.total);
            let left = RESOURCES.into_iter().map(|r| guarantee[r] - demand[r] - new_demand[r]);
            let rank = (
                !consider_guarantees || !guarantee.is_zero(),
                !tree.total.is_zero(),
                tree.admission(*leaf) == Admission::Running,
                left.fold(f64::INFINITY, f64::min),
            );
            if best.as_ref().is_none_or(|(so_far, _)| rank > *so_far) {
                best = Some((rank, tree.name.clone()));
            }
        }
        Ok(best.map(|(_, name)| name))
    }
}
