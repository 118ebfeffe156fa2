//! The order of children in FIFO pools (fair-share.md 5.5, 9.5).

use std::cmp::Ordering;

use vocab::Share;

use crate::input::{FifoSortParameter, Mode};
use crate::numbers::{EPS, EPS_SHARE};
use crate::state::Update;

impl Update<'_> {
    /// Sorts the children of every FIFO pool and publishes their places.
    pub(crate) fn sort_fifo_pools(&mut self) {
        for e in 0..self.out.len() {
            let Some(pool) = self.pool(e).filter(|pool| pool.mode == Mode::Fifo) else { continue };
            let mut order = self.tree.children[e].clone();
            order.sort_by(|a, b| self.compare(&pool.fifo_sort_parameters, *a, *b));
            for (index, &c) in order.iter().enumerate() {
                self.out[c].fifo_index = Some(index);
            }
            self.service_order[e] = order;
        }
    }

    fn compare(&self, parameters: &[FifoSortParameter], a: usize, b: usize) -> Ordering {
        let (Some(x), Some(y)) = (self.operation(a), self.operation(b)) else { return Ordering::Equal };
        let by = |parameter: &FifoSortParameter| match parameter {
            FifoSortParameter::Weight => self.weight(b).total_cmp(&self.weight(a)),
            FifoSortParameter::StartTime => x.start_time.cmp(&y.start_time),
            FifoSortParameter::PendingAllocationCount => {
                x.pending_allocation_count.cmp(&y.pending_allocation_count)
            }
        };
        parameters
            .iter()
            .map(by)
            .find(|order| order.is_ne())
            // D4: no tie is left to the order of the list.
            .unwrap_or_else(|| x.start_time.cmp(&y.start_time).then(x.tie.cmp(&y.tie)))
    }

    /// Lets operations that fit into the strong guarantee go ahead of gangs that do not.
    pub(crate) fn reorder_fifo_pools(&mut self) {
        let tree = &self.input.options;
        if !tree.enable_fifo_children_reordering_for_guarantee_utilization
            || !tree.enable_step_function_for_gang_operations
        {
            return;
        }
        for e in 0..self.out.len() {
            let reorders = self.pool(e).is_some_and(|pool| {
                pool.mode == Mode::Fifo
                    && pool.enable_fifo_children_reordering_for_guarantee_utilization
                    && pool.enable_step_function_for_gang_operations
            });
            // Only the adjusted strong guarantee counts, integral guarantees do not.
            if !reorders || self.out[e].strong_guarantee_share.max_component() <= EPS {
                continue;
            }
            let order = self.order_by_guarantee(e);
            if order != self.service_order[e] {
                for (index, &c) in order.iter().enumerate() {
                    self.out[c].effective_fifo_index = Some(index);
                }
                self.service_order[e] = order;
            }
        }
    }

    fn order_by_guarantee(&self, e: usize) -> Vec<usize> {
        let guarantee = self.out[e].strong_guarantee_share + EPS_SHARE;
        let (mut accepted, mut deferred) = (Vec::new(), Vec::new());
        let mut taken = Share::ZERO;
        let mut stopped = false;
        for &c in &self.service_order[e] {
            let child = &self.out[c];
            let gang = self.operation(c).is_some_and(|operation| operation.gang);
            let need = if gang && !child.limits_share.dominates(&child.demand_share) {
                Share::ZERO
            } else {
                child.demand_share.min(child.limits_share)
            };
            let running = !child.resource_usage.is_zero();
            let fits = guarantee.dominates(&(taken + need));
            if stopped || (gang && !running && !fits) {
                deferred.push(c);
                continue;
            }
            // The first one that is not a gang may be served in part: whoever is behind it keeps behind.
            stopped |= !fits && !gang;
            accepted.push(c);
            taken += need;
        }
        accepted.append(&mut deferred);
        accepted
    }
}
