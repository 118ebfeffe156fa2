//! The node's resources: who holds what (jobs-and-nodes.md 3.3).

use std::collections::BTreeSet;

use vocab::Resources;

/// Sums of what jobs wait for, hold, and held until their last process is gone.
///
/// Starting is all-or-nothing against the limits; a change of usage is a fact and always applied.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ledger {
    limits: Resources,
    pending: Resources,
    acquired: Resources,
    releasing: Resources,
}

impl Ledger {
    /// Nothing held.
    pub fn new(limits: Resources) -> Ledger {
        Ledger { limits, ..Ledger::default() }
    }
    /// What the node has.
    pub fn limits(&self) -> Resources {
        self.limits
    }
    /// Changes what the node has; usage may be above it now.
    pub fn set_limits(&mut self, limits: Resources) {
        self.limits = limits;
    }
    /// Wanted by waiting jobs.
    pub fn pending(&self) -> Resources {
        self.pending
    }
    /// Held by living jobs.
    pub fn acquired(&self) -> Resources {
        self.acquired
    }
    /// Held by jobs that are being killed.
    pub fn releasing(&self) -> Resources {
        self.releasing
    }
    /// Held, by the living and the dying.
    pub fn usage(&self) -> Resources {
        self.acquired + self.releasing
    }
    /// Nothing is above its limit.
    pub fn is_within_limits(&self) -> bool {
        self.limits.dominates(&self.usage())
    }

    /// A job begins to wait.
    pub fn enqueue(&mut self, wanted: Resources) {
        self.pending += wanted;
    }
    /// A job stops waiting without having got anything.
    pub fn dequeue(&mut self, wanted: Resources) {
        self.pending -= wanted;
    }
    /// A waiting job gets what it wants, if there is enough of everything that it asks for.
    #[must_use]
    pub fn acquire(&mut self, wanted: Resources) -> bool {
        let after = self.usage() + wanted;
        // A resource that the job does not want cannot refuse it, even when it is over its limit.
        let fits = Resources::from_raw(|r| if wanted.raw(r) > 0 { after.raw(r) } else { 0 });
        if !self.limits.dominates(&fits) {
            return false;
        }
        self.pending -= wanted;
        self.acquired += wanted;
        true
    }
    /// A job that was here before us holds this, whether it fits or not (9.2 step 2).
    pub fn adopt(&mut self, held: Resources) {
        self.acquired += held;
    }
    /// A living job holds `new` instead of `old`. Says whether the node is still within its limits.
    pub fn set_usage(&mut self, old: Resources, new: Resources) -> bool {
        self.acquired += new - old;
        self.is_within_limits()
    }
    /// A living job is being killed.
    pub fn begin_release(&mut self, held: Resources) {
        self.acquired -= held;
        self.releasing += held;
    }
    /// The last process of a job that was being killed is gone.
    pub fn end_release(&mut self, held: Resources) {
        self.releasing -= held;
    }
}

/// Numbers given out lowest first: slots, devices.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct IndexPool {
    /// Below it numbers are in use or in `free`.
    bound: u32,
    free: BTreeSet<u32>,
}

impl IndexPool {
    /// The lowest free number.
    pub fn take(&mut self) -> u32 {
        if let Some(index) = self.free.pop_first() {
            return index;
        }
        self.bound += 1;
        self.bound - 1
    }
    /// Reserves this very number; those below it become free if they were unknown.
    pub fn take_exactly(&mut self, index: u32) {
        while self.bound <= index {
            self.free.insert(self.bound);
            self.bound += 1;
        }
        self.free.remove(&index);
    }
    /// Gives a number back.
    pub fn give_back(&mut self, index: u32) {
        debug_assert!(index < self.bound && !self.free.contains(&index), "index {index} was not taken");
        self.free.insert(index);
    }
    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.bound as usize - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::Cpu;

    fn r(slots: i64, cpu: i64) -> Resources {
        Resources { user_slots: slots, cpu: Cpu(cpu), ..Resources::ZERO }
    }

    #[test]
    fn all_or_nothing() {
        let mut l = Ledger::new(r(2, 200));
        l.enqueue(r(1, 150));
        l.enqueue(r(1, 100));
        assert!(l.acquire(r(1, 150)));
        assert!(!l.acquire(r(1, 100)));
        assert_eq!((l.pending(), l.acquired()), (r(1, 100), r(1, 150)));
        l.begin_release(r(1, 150));
        assert!(!l.acquire(r(1, 100)), "the dying still hold theirs");
        l.end_release(r(1, 150));
        assert!(l.acquire(r(1, 100)));
        assert_eq!(l.pending(), Resources::ZERO);
    }

    #[test]
    fn usage_is_a_fact() {
        let mut l = Ledger::new(r(2, 200));
        l.enqueue(r(1, 100));
        assert!(l.acquire(r(1, 100)));
        assert!(!l.set_usage(r(1, 100), r(1, 300)));
        l.enqueue(r(1, 0));
        assert!(l.acquire(r(1, 0)), "too much CPU in use does not refuse a job that wants none");
    }

    #[test]
    fn lowest_index_first() {
        let mut p = IndexPool::default();
        assert_eq!((p.take(), p.take(), p.take()), (0, 1, 2));
        p.give_back(1);
        p.give_back(0);
        assert_eq!((p.take(), p.take(), p.take()), (0, 1, 3));
        p.take_exactly(6);
        assert_eq!((p.take(), p.taken()), (4, 6));
    }
}
