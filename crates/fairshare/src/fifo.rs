//! The order of children in FIFO pools (fair-share.md 5.5, 9.5).

use std::cmp::Ordering;

use vocab::Share;

use crate::input::{FifoSortParameter, Mode};
use crate::numbers::{EPS, EPS_SHARE};
use crate::state::{Scope, Update};
use crate::tree::NO_PLACE;

impl Update<'_> {
    /// Sorts the children of FIFO pools and publishes their places.
    pub(crate) fn sort_fifo_pools(&mut self, scope: Scope) {
        match scope {
            Scope::Changed { operations, .. } if !self.reorders() => {
                for change in operations {
                    if self.operation(change.element).is_some_and(|now| change.moves(now)) {
                        self.sort_if_fifo(self.parent(change.element));
                    }
                }
            }
            Scope::Changed { pools, .. } => pools.iter().for_each(|e| self.sort_if_fifo(*e)),
            Scope::All => self.tree.pools.iter().for_each(|e| self.sort_if_fifo(*e)),
        }
    }

    fn sort_if_fifo(&mut self, e: usize) {
        if let Some(pool) = self.pool(e).filter(|pool| pool.mode == Mode::Fifo) {
            let mut order = std::mem::take(self.order);
            // From the order of the last time, which is nearly always still right. No two are equal, so where
            // the sort starts makes no difference, and it needs no buffer: the last key is the place in the
            // list.
            order.extend_from_slice(self.served(e));
            order.sort_unstable_by(|a, b| {
                self.compare(&pool.fifo_sort_parameters, *a, *b).then_with(|| a.cmp(b))
            });
            for (index, &c) in order.iter().enumerate() {
                if let Some(slot) = self.tree.slot_of(c) {
                    self.places[slot] = [index as u32, NO_PLACE];
                }
            }
            self.serve(e, order);
        }
    }

    /// Whether the tree has the option of 9.5.
    fn reorders(&self) -> bool {
        let tree = &self.input.options;
        tree.enable_fifo_children_reordering_for_guarantee_utilization
            && tree.enable_step_function_for_gang_operations
    }

    /// Sets the order of children; the list goes back to where it was taken from.
    fn serve(&mut self, e: usize, mut order: Vec<usize>) {
        self.served[self.tree.slots(e)].copy_from_slice(&order);
        order.clear();
        *self.order = order;
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
    pub(crate) fn reorder_fifo_pools(&mut self, scope: Scope) {
        if !self.reorders() {
            return;
        }
        let pools = match scope {
            Scope::All => &self.tree.pools,
            Scope::Changed { pools, .. } => pools,
        };
        for &e in pools {
            let reorders = self.pool(e).is_some_and(|pool| {
                pool.mode == Mode::Fifo
                    && pool.enable_fifo_children_reordering_for_guarantee_utilization
                    && pool.enable_step_function_for_gang_operations
            });
            // Only the adjusted strong guarantee counts, integral guarantees do not.
            if !reorders || self.out[e].strong_guarantee_share.max_component() <= EPS {
                continue;
            }
            let mut order = std::mem::take(self.order);
            self.order_by_guarantee(e, &mut order);
            if order != self.served(e) {
                for (index, &c) in order.iter().enumerate() {
                    if let Some(slot) = self.tree.slot_of(c) {
                        self.places[slot][1] = index as u32;
                    }
                }
            }
            self.serve(e, order);
        }
    }

    fn order_by_guarantee(&self, e: usize, order: &mut Vec<usize>) {
        let guarantee = self.out[e].strong_guarantee_share + EPS_SHARE;
        let mut accepted = 0;
        let mut taken = Share::ZERO;
        let mut stopped = false;
        for &c in self.served(e) {
            let Some(operation) = self.operation(c) else { continue };
            let gang = operation.gang;
            let shares = self.operation_shares(c, operation);
            let need = if gang && !shares.limits.dominates(&shares.demand) {
                Share::ZERO
            } else {
                shares.demand.min(shares.limits)
            };
            let running = !operation.usage.is_zero();
            let fits = guarantee.dominates(&(taken + need));
            if stopped || (gang && !running && !fits) {
                order.push(c);
                continue;
            }
            // The first one that is not a gang may be served in part: whoever is behind it keeps behind.
            stopped |= !fits && !gang;
            // In front of the deferred ones, which stay in order.
            order.insert(accepted, c);
            accepted += 1;
            taken += need;
        }
    }
}
