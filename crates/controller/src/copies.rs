//! Copies of slow jobs: which units of a task are run twice at once, and which are to be
//! (jobs-and-nodes.md 6.7).
//!
//! A unit that a copy was started for is in a race until one of its jobs has completed or none of them
//! is left. The unit itself stays at work all the time; what is known about its two jobs is here.

use crate::counter::{JobCounter, Totals};
use crate::durations::Durations;
use crate::packed::{Packer, Unpacker};
use std::collections::BTreeMap;
use vocab::{AbortReason, Guid, JobId};

/// Races of a task, and how its copies ended.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Copies {
    /// Units whose copy has not been started yet, with the job that is slow.
    wanted: BTreeMap<u32, JobId>,
    races: BTreeMap<u32, Race>,
    /// Ends of copies. They are counted in the counter of the task as well.
    pub ends: JobCounter,
    /// How long completed jobs took.
    pub durations: Durations,
}

/// Two jobs of one unit.
#[derive(Clone, PartialEq, Debug)]
struct Race {
    /// Gives the competition its id.
    original: JobId,
    /// `task_job_index` of the copy: after a restart its id is not known before its node speaks.
    copy_index: u64,
    /// Those of the two that run, as far as they are known here.
    original_runs: bool,
    copy: Option<JobId>,
}

impl Race {
    /// The job that this one runs against.
    fn other(&self, job: JobId) -> Option<JobId> {
        match job == self.original {
            true => self.copy,
            false => self.original_runs.then_some(self.original),
        }
    }
}

impl Copies {
    /// Units that a copy is wanted for, not started.
    pub fn wanted(&self) -> u32 {
        self.wanted.len() as u32
    }
    /// The smallest of them, and its slow job.
    pub fn peek(&self) -> Option<(u32, JobId)> {
        self.wanted.first_key_value().map(|(cookie, job)| (*cookie, *job))
    }
    /// Wanted copies by their units, ascending.
    pub fn wanted_units(&self) -> impl Iterator<Item = u32> + '_ {
        self.wanted.keys().copied()
    }
    /// Copies that run.
    pub fn running(&self) -> u32 {
        self.races.values().filter(|race| race.copy.is_some()).count() as u32
    }
    /// Is or was this unit's present run doubled?
    pub fn has(&self, cookie: u32) -> bool {
        self.wanted.contains_key(&cookie) || self.races.contains_key(&cookie)
    }
    /// A job is slow: its unit wants a copy.
    pub fn want(&mut self, cookie: u32, slow: JobId) {
        self.wanted.insert(cookie, slow);
    }
    /// The unit goes when its job ends: it needs no copy.
    pub fn unwant(&mut self, cookie: u32) {
        self.wanted.remove(&cookie);
    }
    /// The wanted copy starts.
    pub fn start(&mut self, cookie: u32, copy: JobId, copy_index: u64) {
        let Some(original) = self.wanted.remove(&cookie) else { return };
        self.races.insert(cookie, Race { original, copy_index, original_runs: true, copy: Some(copy) });
    }

    /// The competition that a unit's jobs take part in: the original's id.
    pub fn competition(&self, cookie: u32) -> Option<JobId> {
        self.races.get(&cookie).map(|race| race.original)
    }
    /// Is this job the copy of its unit's other job?
    pub fn is_copy(&self, cookie: u32, job: JobId) -> bool {
        self.races.get(&cookie).is_some_and(|race| race.original != job)
    }
    /// The job that runs beside this one.
    pub fn competitor(&self, cookie: u32, job: JobId) -> Option<JobId> {
        self.races.get(&cookie)?.other(job)
    }

    /// A job of this unit is over. Whoever runs beside it runs on, and the race with it.
    pub fn leave(&mut self, cookie: u32, job: JobId) {
        self.wanted.remove(&cookie);
        if let Some(race) = self.races.get_mut(&cookie) {
            match race.original == job {
                true => race.original_runs = false,
                false => race.copy = None,
            }
        }
    }
    /// The unit is done, or nobody is at work at it any more.
    pub fn end(&mut self, cookie: u32) {
        self.wanted.remove(&cookie);
        self.races.remove(&cookie);
    }

    /// After a restart: may this job join the one that runs already, because one of the two is the
    /// other's copy?
    pub fn admits(&self, cookie: u32, job: JobId, index: u64) -> bool {
        self.races.get(&cookie).is_some_and(|race| match race.original == job {
            true => !race.original_runs,
            false => race.copy_index == index && race.copy.is_none(),
        })
    }
    /// After a restart: this job runs.
    pub fn join(&mut self, cookie: u32, job: JobId, index: u64) {
        let Some(race) = self.races.get_mut(&cookie) else { return };
        match race.original == job {
            true => race.original_runs = true,
            false if race.copy_index == index => race.copy = Some(job),
            // Another run of the unit: whoever raced is gone.
            false => drop(self.races.remove(&cookie)),
        }
    }
    /// After a restart, when all have spoken: races of jobs that did not come back are over.
    pub fn forget_missing(&mut self) {
        self.races.retain(|_, race| race.original_runs || race.copy.is_some());
    }

    /// Shown as `speculative_job_counter`.
    pub fn totals(&self) -> Totals {
        Totals { ends: self.ends.clone(), pending: self.wanted().into(), running: self.running().into() }
    }

    /// Why the loser of a race is aborted.
    pub fn reason_to_lose(&self, cookie: u32, loser: JobId) -> AbortReason {
        match self.is_copy(cookie, loser) {
            true => AbortReason::SpeculativeRunLost,
            false => AbortReason::SpeculativeRunWon,
        }
    }

    /// Durable form of the races. What is wanted is found again by looking at the jobs.
    pub fn pack(&self) -> Vec<u8> {
        let mut bytes = Packer::default().unsigned(self.races.len() as u64).finish();
        for (cookie, race) in &self.races {
            bytes.extend(Packer::default().unsigned((*cookie).into()).unsigned(race.copy_index).finish());
            bytes.extend(race.original.0.to_bytes());
        }
        bytes
    }

    /// Inverse of [`Copies::pack`]: nobody is known to run; `None` if the bytes are malformed.
    pub fn unpack(bytes: &[u8], ends: JobCounter, durations: Durations) -> Option<Copies> {
        let mut input = Unpacker::new(bytes);
        let mut races = BTreeMap::new();
        for _ in 0..input.unsigned()? {
            let cookie = u32::try_from(input.unsigned()?).ok()?;
            let copy_index = input.unsigned()?;
            let original = JobId(Guid::from_bytes(input.array()?));
            races.insert(cookie, Race { original, copy_index, original_runs: false, copy: None });
        }
        input.is_empty().then(|| Copies { wanted: BTreeMap::new(), races, ends, durations })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(n: u32) -> JobId {
        JobId(Guid([n, 0, 0, 1]))
    }

    fn race() -> Copies {
        let mut copies = Copies::default();
        copies.want(7, job(1));
        assert_eq!((copies.peek(), copies.wanted(), copies.running()), (Some((7, job(1))), 1, 0));
        copies.start(7, job(2), 40);
        copies
    }

    #[test]
    fn two_jobs_know_each_other() {
        let mut copies = race();
        assert_eq!((copies.wanted(), copies.running(), copies.competition(7)), (0, 1, Some(job(1))));
        assert_eq!(copies.competitor(7, job(1)), Some(job(2)));
        assert_eq!(copies.competitor(7, job(2)), Some(job(1)));
        assert_eq!(copies.reason_to_lose(7, job(1)), AbortReason::SpeculativeRunWon);
        assert_eq!(copies.reason_to_lose(7, job(2)), AbortReason::SpeculativeRunLost);
        copies.leave(7, job(1));
        assert_eq!((copies.competitor(7, job(2)), copies.running()), (None, 1));
        assert!(copies.has(7), "one copy is enough");
        copies.end(7);
        assert_eq!(copies, Copies::default());
    }

    #[test]
    fn races_come_back_and_wait_for_their_jobs() {
        let copies = race();
        let bytes = copies.pack();
        let unpack = |bytes: &[u8]| Copies::unpack(bytes, JobCounter::default(), Durations::default());
        let mut back = unpack(&bytes).expect("own bytes");
        assert_eq!(back.running(), 0);
        assert!(back.admits(7, job(1), 3) && back.admits(7, job(2), 40));
        assert!(!back.admits(7, job(2), 41) && !back.admits(8, job(2), 40));
        back.join(7, job(2), 40);
        assert!(!back.admits(7, job(2), 40));
        back.join(7, job(1), 3);
        assert_eq!(back, copies);
        let mut lost = unpack(&bytes).expect("own bytes");
        lost.forget_missing();
        assert!(!lost.has(7));
        for cut in 0..bytes.len() {
            assert_eq!(unpack(&bytes[..cut]), None);
        }
        assert_eq!(unpack(&[&bytes[..], &[0]].concat()), None);
    }
}
