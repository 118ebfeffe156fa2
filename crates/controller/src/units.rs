//! The unit pool: which of a task's units of work are to be done, at work, done
//! (jobs-and-nodes.md 6.2).
//!
//! A unit is its cookie, a number from 0. The pool of 100,000 units is three bit sets of 12 KB; the
//! smallest pending cookie is found through a summary of one bit per 64 cookies.

use crate::packed::{Packer, Unpacker};
use std::collections::BTreeMap;
use vocab::planted::{Bug, strikes};

/// Set of small numbers with a fast minimum.
#[derive(Clone, PartialEq, Debug, Default)]
struct BitSet {
    words: Vec<u64>,
    /// Bit `i` of word `i / 64` says that `words[i]` is not zero.
    summary: Vec<u64>,
    count: u32,
}

impl BitSet {
    fn contains(&self, x: u32) -> bool {
        self.words.get(x as usize / 64).is_some_and(|w| w >> (x % 64) & 1 == 1)
    }
    fn insert(&mut self, x: u32) -> bool {
        let word = x as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
            self.summary.resize(word / 64 + 1, 0);
        }
        let fresh = !self.contains(x);
        self.words[word] |= 1 << (x % 64);
        self.summary[word / 64] |= 1 << (word % 64);
        self.count += u32::from(fresh);
        fresh
    }
    fn remove(&mut self, x: u32) -> bool {
        if !self.contains(x) {
            return false;
        }
        let word = x as usize / 64;
        self.words[word] &= !(1 << (x % 64));
        if self.words[word] == 0 {
            self.summary[word / 64] &= !(1 << (word % 64));
        }
        self.count -= 1;
        true
    }
    fn min(&self) -> Option<u32> {
        let (i, s) = self.summary.iter().enumerate().find(|(_, s)| **s != 0)?;
        let word = i * 64 + s.trailing_zeros() as usize;
        Some((word * 64) as u32 + self.words[word].trailing_zeros())
    }
    fn max(&self) -> Option<u32> {
        let (i, s) = self.summary.iter().enumerate().rfind(|(_, s)| **s != 0)?;
        let word = i * 64 + 63 - s.leading_zeros() as usize;
        Some((word * 64) as u32 + 63 - self.words[word].leading_zeros())
    }
    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(i, w)| {
            let mut left = *w;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some((i * 64) as u32 + bit)
            })
        })
    }
}

/// Units of work of one task.
///
/// Every unit is in exactly one of three states: pending, running, done. A unit that shrinking has
/// taken away is in none and does not count; one that is running at that moment is unwanted, and
/// goes when its job ends.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct UnitPool {
    pending: BitSet,
    running: BitSet,
    done: BitSet,
    /// Part of `running`.
    unwanted: BitSet,
    /// Units of which an earlier job may still run, and how many such jobs there are: they are not started. Not durable: after
    /// a restart nodes tell of these jobs, or the whole operation waits for them.
    fenced: BTreeMap<u32, u32>,
}

impl UnitPool {
    /// Units `0..count`, all pending.
    pub fn new(count: u32) -> UnitPool {
        let mut pool = UnitPool::default();
        (0..count).for_each(|cookie| {
            pool.pending.insert(cookie);
        });
        pool
    }

    /// Units to be done.
    pub fn pending(&self) -> u32 {
        self.pending.count
    }
    /// Units that may be started.
    pub fn available(&self) -> u32 {
        self.pending() - self.fenced.keys().filter(|cookie| self.is_pending(**cookie)).count() as u32
    }
    /// May this unit be started?
    pub fn is_available(&self, cookie: u32) -> bool {
        self.is_pending(cookie) && !self.fenced.contains_key(&cookie)
    }
    /// A job of the unit that is given up may still run: the unit is not started before [`UnitPool::unfence`].
    pub fn fence(&mut self, cookie: u32) {
        *self.fenced.entry(cookie).or_default() += 1;
    }
    /// Takes back one [`UnitPool::fence`].
    pub fn unfence(&mut self, cookie: u32) {
        if let Some(count) = self.fenced.get_mut(&cookie) {
            *count -= 1;
            if *count == 0 {
                self.fenced.remove(&cookie);
            }
        }
    }
    /// Units at work.
    pub fn running(&self) -> u32 {
        self.running.count
    }
    /// Units done.
    pub fn done(&self) -> u32 {
        self.done.count
    }
    /// All units.
    pub fn total(&self) -> u32 {
        self.pending() + self.running() + self.done()
    }
    /// Nothing to do and nothing at work.
    pub fn is_complete(&self) -> bool {
        self.pending() == 0 && self.running() == 0
    }

    /// Is this unit to be done?
    pub fn is_pending(&self, cookie: u32) -> bool {
        self.pending.contains(cookie)
    }
    /// Is this unit at work?
    pub fn is_running(&self, cookie: u32) -> bool {
        self.running.contains(cookie)
    }
    /// Is it at work though it is not wanted any more?
    pub fn is_unwanted(&self, cookie: u32) -> bool {
        self.unwanted.contains(cookie)
    }
    /// The smallest cookie that may be started, not taken.
    pub fn peek(&self) -> Option<u32> {
        self.peek_where(|_| true)
    }
    /// The smallest cookie that may be started and of which this holds. Fast if it holds of most.
    pub fn peek_where(&self, holds: impl Fn(u32) -> bool) -> Option<u32> {
        let holds = |cookie: u32| !self.fenced.contains_key(&cookie) && holds(cookie);
        self.pending
            .min()
            .filter(|cookie| holds(*cookie))
            .or_else(|| self.pending.iter().find(|cookie| holds(*cookie)))
    }
    /// Starts a pending unit; false if it is not pending.
    pub fn start(&mut self, cookie: u32) -> bool {
        let started = self.pending.remove(cookie) && self.running.insert(cookie);
        if started && strikes(Bug::UnitStaysPending, 7) {
            self.pending.insert(cookie);
            self.running.remove(cookie);
        }
        started
    }
    /// A running unit is done.
    pub fn complete(&mut self, cookie: u32) {
        self.stop(cookie);
        self.done.insert(cookie);
    }
    /// A running unit must be run again, unless it is unwanted.
    pub fn give_back(&mut self, cookie: u32) {
        if !self.stop(cookie) {
            self.pending.insert(cookie);
        }
    }
    /// Takes a unit out of the running ones; says whether it was unwanted.
    fn stop(&mut self, cookie: u32) -> bool {
        let was_running = self.running.remove(cookie);
        assert!(was_running, "unit {cookie} is not running");
        self.unwanted.remove(cookie)
    }
    /// One more unit, to be done.
    pub fn add(&mut self, cookie: u32) {
        self.pending.insert(cookie);
    }
    /// All done units must be run again; says how many.
    pub fn lose_all(&mut self) -> u32 {
        let lost = std::mem::take(&mut self.done);
        lost.iter().for_each(|cookie| {
            self.pending.insert(cookie);
        });
        lost.count
    }

    /// Makes it `total` units, as far as those that are done allow. Growing brings back what was
    /// taken away before, smallest cookies first; shrinking takes pending units and then running
    /// ones, largest cookies first. Says which running units are unwanted now.
    pub fn resize(&mut self, total: u32) -> Vec<u32> {
        self.unwanted = BitSet::default();
        while self.total() > total
            && let Some(cookie) = self.pending.max()
        {
            self.pending.remove(cookie);
        }
        let surplus = self.total().saturating_sub(total).min(self.running()) as usize;
        let unwanted: Vec<u32> = self.running.iter().skip(self.running() as usize - surplus).collect();
        unwanted.iter().for_each(|cookie| {
            self.unwanted.insert(*cookie);
        });
        let mut cookie = 0;
        while self.total() < total {
            if ![&self.pending, &self.running, &self.done].iter().any(|set| set.contains(cookie)) {
                self.pending.insert(cookie);
            }
            cookie += 1;
        }
        unwanted
    }

    /// Durable form: runs of done cookies and of cookies that are to be done. A running unit counts
    /// as one to be done, unless it is unwanted: whether its job still lives only its node knows.
    pub(crate) fn pack(&self) -> (Vec<u8>, Vec<u8>) {
        let mut open = self.pending.clone();
        self.running.iter().filter(|cookie| !self.unwanted.contains(*cookie)).for_each(|cookie| {
            open.insert(cookie);
        });
        (pack_runs(&self.done), pack_runs(&open))
    }

    /// Inverse of [`UnitPool::pack`]; `None` if the bytes are malformed.
    pub(crate) fn unpack(done: &[u8], open: &[u8], max_cookies: u32) -> Option<UnitPool> {
        let (done, pending) = (unpack_runs(done, max_cookies)?, unpack_runs(open, max_cookies)?);
        let disjoint = !done.iter().any(|cookie| pending.contains(cookie));
        disjoint.then(|| UnitPool { pending, done, ..UnitPool::default() })
    }
}

/// Lengths of alternating runs, beginning with the absent ones.
fn pack_runs(set: &BitSet) -> Vec<u8> {
    let mut out = Packer::default();
    let (mut run_start, mut run_end) = (0u32, 0u32);
    let mut written = 0u32;
    for x in set.iter() {
        if x == run_end && run_end > run_start {
            run_end += 1;
            continue;
        }
        if run_end > run_start {
            out.unsigned(u64::from(run_start - written)).unsigned(u64::from(run_end - run_start));
            written = run_end;
        }
        (run_start, run_end) = (x, x + 1);
    }
    if run_end > run_start {
        out.unsigned(u64::from(run_start - written)).unsigned(u64::from(run_end - run_start));
    }
    out.finish()
}

fn unpack_runs(bytes: &[u8], max: u32) -> Option<BitSet> {
    let (mut set, mut at) = (BitSet::default(), 0u64);
    let mut runs = Unpacker::new(bytes);
    while !runs.is_empty() {
        let start = at.checked_add(runs.unsigned()?)?;
        at = start.checked_add(runs.unsigned()?)?;
        if at > u64::from(max) {
            return None;
        }
        (start..at).for_each(|x| {
            set.insert(x as u32);
        });
    }
    Some(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn smallest_pending_first() {
        let mut pool = UnitPool::new(5);
        assert!(pool.start(0) && pool.start(1) && !pool.start(1));
        assert_eq!(pool.peek(), Some(2));
        pool.give_back(0);
        assert_eq!(pool.peek(), Some(0));
        pool.complete(1);
        assert_eq!((pool.pending(), pool.running(), pool.done()), (4, 0, 1));
        assert_eq!(pool.lose_all(), 1);
        assert_eq!(pool.pending(), 5);
    }

    /// S19.
    #[test]
    fn a_fenced_unit_waits_until_the_last_of_its_jobs_is_over() {
        let mut pool = UnitPool::new(2);
        pool.start(0);
        pool.fence(0);
        pool.fence(0);
        pool.give_back(0);
        assert_eq!((pool.pending(), pool.available(), pool.peek()), (2, 1, Some(1)));
        assert!(pool.is_pending(0) && !pool.is_available(0) && !pool.is_complete());
        pool.unfence(0);
        assert_eq!(pool.peek(), Some(1), "one job is left");
        pool.unfence(0);
        pool.unfence(0);
        assert_eq!((pool.available(), pool.peek()), (2, Some(0)));
        let mut all = UnitPool::new(1);
        all.fence(0);
        assert_eq!((all.available(), all.peek()), (0, None));
    }

    #[test]
    fn shrinking_takes_the_largest_and_growing_gives_them_back() {
        let mut pool = UnitPool::new(6);
        pool.start(0);
        assert_eq!(pool.resize(3), []);
        assert_eq!((pool.total(), pool.pending.max()), (3, Some(2)));
        assert_eq!(pool.resize(0), [0]);
        assert_eq!((pool.total(), pool.running()), (1, 1));
        let mut dropped = pool.clone();
        dropped.give_back(0);
        assert_eq!(dropped.total(), 0, "an unwanted unit is not run again");
        assert_eq!(pool.resize(8), [], "and is wanted again after growing");
        assert_eq!((pool.pending(), pool.running(), pool.pending.max()), (7, 1, Some(7)));
    }

    #[test]
    fn a_prefix_of_done_units_is_a_few_bytes() {
        let mut pool = UnitPool::new(100_000);
        for cookie in 0..60_000 {
            pool.start(cookie);
            pool.complete(cookie);
        }
        let (done, open) = pool.pack();
        assert!(done.len() + open.len() < 16, "{} + {}", done.len(), open.len());
    }

    proptest! {
        #[test]
        fn bit_set_is_a_set(operations in prop::collection::vec((any::<bool>(), 0u32..9_000), 0..300)) {
            let (mut set, mut model) = (BitSet::default(), BTreeSet::new());
            for (insert, x) in operations {
                if insert {
                    prop_assert_eq!(set.insert(x), model.insert(x));
                } else {
                    prop_assert_eq!(set.remove(x), model.remove(&x));
                }
                prop_assert_eq!(set.min(), model.first().copied());
                prop_assert_eq!(set.max(), model.last().copied());
                prop_assert_eq!(set.count as usize, model.len());
            }
            prop_assert!(set.iter().eq(model.iter().copied()));
            let back = unpack_runs(&pack_runs(&set), 9_000).expect("own bytes");
            prop_assert!(back.iter().eq(model.iter().copied()));
        }

        #[test]
        fn broken_runs_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(set) = unpack_runs(&bytes, 10_000) {
                prop_assert!(set.max().is_none_or(|x| x < 10_000));
            }
        }
    }
}
