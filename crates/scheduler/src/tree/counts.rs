//! Counters, queues, who runs and who waits (scheduling.md 4.1, 4.3, 4.6).

use super::{Counts, Standing, Tree};
use crate::messages::{Admission, Event};
use crate::slab::{LeafIdx, PoolIdx};

impl Tree {
    /// Adds to the counters of a pool and of everything above it.
    pub fn count(&mut self, from: PoolIdx, change: Counts) {
        let mut at = Some(from);
        while let Some(pool) = at {
            let pool = &mut self.pools[pool];
            pool.counts.add(change);
            at = pool.parent;
        }
    }

    /// The lowest pool whose limit of running operations is reached.
    pub fn first_violated(&self, from: PoolIdx) -> Option<PoolIdx> {
        self.chain(from).find(|p| {
            let pool = &self.pools[*p];
            pool.counts.running >= pool.max_running_operation_count(&self.config)
        })
    }

    /// Decides whether an operation that is new in its pool runs or waits (scheduling.md 4.3,
    /// `on_added_to_pool`). It is counted in `operations` already and stands in no queue.
    pub fn admit(&mut self, leaf: LeafIdx) -> Admission {
        let lightweight = self.is_lightweight_now(leaf);
        match self.first_violated(self.leaves[leaf].pool) {
            Some(violated) if !lightweight => self.enqueue(leaf, violated),
            _ => {
                self.mark_running(leaf);
                Admission::Running
            }
        }
    }

    /// Would the operation be lightweight if it started to run now?
    pub fn is_lightweight_now(&self, leaf: LeafIdx) -> bool {
        let leaf = &self.leaves[leaf];
        leaf.is_lightweight_eligible()
            && self.pools[leaf.pool].config.effective_lightweight_operations_enabled()
    }

    /// It runs from now on: counters and news.
    pub fn mark_running(&mut self, leaf: LeafIdx) {
        let lightweight = self.is_lightweight_now(leaf);
        let l = &mut self.leaves[leaf];
        l.standing = Standing::Running;
        l.lightweight = lightweight;
        let (pool, operation) = (l.pool, l.desc.id);
        self.count(pool, running_counts(lightweight));
        self.events.push(Event::Running { operation, tree: self.name.clone() });
    }

    pub fn enqueue(&mut self, leaf: LeafIdx, at: PoolIdx) -> Admission {
        let ticket = self.number();
        let l = &mut self.leaves[leaf];
        l.standing = Standing::Pending { at, ticket };
        l.lightweight = false;
        let operation = l.desc.id;
        let pool = &mut self.pools[at];
        pool.queue.insert(ticket, leaf);
        let limit = pool.max_running_operation_count(&self.config);
        let name = pool.name.clone();
        self.events.push(Event::Pending { operation, tree: self.name.clone(), pool: name.clone(), limit });
        Admission::Pending { pool: name, limit }
    }

    /// Takes a waiting operation out of its queue; nothing if it runs.
    pub fn dequeue(&mut self, leaf: LeafIdx) {
        if let Standing::Pending { at, ticket } = self.leaves[leaf].standing {
            self.pools[at].queue.remove(&ticket);
        }
    }

    /// Room appeared in a pool and above it: the first of the queues run (scheduling.md 4.3).
    pub fn release(&mut self, from: PoolIdx) {
        let mut at = Some(from);
        while let Some(pool) = at {
            let limit = self.pools[pool].max_running_operation_count(&self.config);
            let mut room = (limit - self.pools[pool].counts.running).max(0);
            while room > 0
                && let Some((_, leaf)) = self.pools[pool].queue.pop_first()
            {
                match self.first_violated(self.leaves[leaf].pool) {
                    Some(violated) => {
                        self.enqueue(leaf, violated);
                    }
                    None => {
                        self.mark_running(leaf);
                        room -= 1;
                    }
                }
            }
            at = self.pools[pool].parent;
        }
    }

    /// Looks at all queues again, for room that `release` does not see: raised limits, moved pools
    /// (scheduling.md 4.3 [D2]). Queues go by full path of their pool; an operation that still waits
    /// for the same pool keeps its turn.
    pub fn scan(&mut self) {
        let mut queues: Vec<(String, PoolIdx)> = self
            .pools
            .iter()
            .filter(|(_, p)| !p.queue.is_empty())
            .map(|(idx, _)| (self.full_path(idx), idx))
            .collect();
        queues.sort();
        for (_, pool) in queues {
            let waiting: Vec<(u64, LeafIdx)> = self.pools[pool].queue.iter().map(|(t, l)| (*t, *l)).collect();
            for (ticket, leaf) in waiting {
                let violated = self.first_violated(self.leaves[leaf].pool);
                if violated == Some(pool) && !self.is_lightweight_now(leaf) {
                    continue;
                }
                self.pools[pool].queue.remove(&ticket);
                self.admit(leaf);
            }
        }
    }

    /// Moves running operations between the counters when what is effective for their pool has
    /// changed, and starts those waiting that became lightweight (scheduling.md 4.6).
    pub fn apply_lightweight(&mut self, pool: PoolIdx) {
        let effective = self.pools[pool].config.effective_lightweight_operations_enabled();
        let leaves: Vec<LeafIdx> = self.pools[pool].leaves.values().copied().collect();
        for leaf in leaves {
            let l = &self.leaves[leaf];
            let wanted = effective && l.is_lightweight_eligible();
            if !l.is_running() {
                if wanted {
                    self.dequeue(leaf);
                    self.mark_running(leaf);
                }
            } else if l.lightweight != wanted {
                self.leaves[leaf].lightweight = wanted;
                self.count(pool, running_counts(!wanted).negated());
                self.count(pool, running_counts(wanted));
            }
        }
    }
}

/// What one running operation adds.
pub(crate) fn running_counts(lightweight: bool) -> Counts {
    Counts { operations: 0, running: i64::from(!lightweight), lightweight: i64::from(lightweight) }
}
