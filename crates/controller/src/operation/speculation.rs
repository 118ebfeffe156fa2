//! Slow jobs get a copy: the unit is run a second time beside the first, and who completes first counts
//! (jobs-and-nodes.md 6.7).
//!
//! The unit is at work as long as one of its jobs is. A failed or aborted job whose competitor runs on
//! does not give the unit back; a completed one ends the other.

use super::finish::Word;
use super::limits::Life;
use super::{JobVerdict, OperationController};
use crate::job::Joblet;
use crate::task::Task;
use vocab::{Failure, JobId, JobOutcome, Span, Time};

/// A job is not late before it is this old.
const MIN_JOB_TIME: Span = Span::from_secs(60);
/// So many of the units must be done, and so many of the completed jobs are what a late one is compared
/// with.
const CANDIDATE_PERCENTILE: f64 = 0.8;
/// A late job takes more than so many times as long as those.
const LATE_FACTOR: f64 = 2.0;

impl OperationController {
    /// Looks for jobs that are slow and asks for copies of them, the oldest first. True if the demand has
    /// changed. Call it now and then; it costs little where no task may have copies.
    pub fn look_for_slow_jobs(&mut self, now: Time) -> bool {
        let nobody = self.tasks.iter().all(|t| t.spec.speculation.is_none());
        if nobody || self.life != Life::Running || self.reviving {
            return false;
        }
        let late_after: Vec<Option<Span>> = self.tasks.iter().map(Task::late_after).collect();
        let mut slow: Vec<(Time, u32, u32, JobId)> = Vec::new();
        for joblet in self.jobs.values() {
            let (task, cookie) = (&self.tasks[joblet.task as usize], joblet.identity.cookie);
            let Some(rules) = &task.spec.speculation else { continue };
            let doubled = task.copies.has(cookie) || task.units.is_unwanted(cookie);
            // Who was told to stop is not slow.
            if doubled || joblet.interruption.is_some() {
                continue;
            }
            let took_too_long = rules.timeout.is_some_and(|timeout| joblet.age(now) >= timeout);
            let is_late = late_after[joblet.task as usize].is_some_and(|late| joblet.run_time(now) > late);
            if took_too_long || is_late {
                slow.push((joblet.start_time, joblet.task, cookie, joblet.identity.job_id));
            }
        }
        slow.sort_unstable();
        let mut changed = false;
        for (_, task, cookie, job_id) in slow {
            let task = &mut self.tasks[task as usize];
            let limit = task.spec.speculation.as_ref().map_or(0, |rules| rules.max_count);
            if u64::from(task.copies.wanted()) + u64::from(task.copies.running()) < limit {
                task.copies.want(cookie, job_id);
                changed = true;
            }
        }
        changed
    }

    /// The other job of a unit that is done: it is aborted, its node is to kill it.
    pub(super) fn drop_loser(&mut self, now: Time, loser: JobId) -> Option<JobVerdict> {
        let joblet = self.jobs.remove(&loser)?;
        let task = &mut self.tasks[joblet.task as usize];
        task.open.remove(joblet.identity.task_job_index);
        let reason = task.copies.reason_to_lose(joblet.identity.cookie, loser);
        let text = "Job aborted: the other job of its unit has completed first";
        let error = Failure::new(text).with("abort_reason", reason);
        task.count(&joblet, |ends| *ends.aborted.entry(reason).or_default() += 1);
        Some(self.close(&joblet, JobOutcome::Aborted { reason, error }, now, 0, true, Word::Ours))
    }
}

impl Task {
    /// What runs longer than this is late: few units are left, all of them at work, and the others took
    /// much less. None if no job can be late now.
    fn late_after(&self) -> Option<Span> {
        let rules = self.spec.speculation.as_ref().filter(|rules| rules.late_jobs)?;
        let few_left = f64::from(self.units.done()) >= CANDIDATE_PERCENTILE * f64::from(self.units.total());
        if !few_left || self.units.pending() > 0 || rules.max_count == 0 {
            return None;
        }
        let usual = self.copies.durations.quantile(CANDIDATE_PERCENTILE)?;
        Some(MIN_JOB_TIME.max(Span::from_micros((usual.as_micros() as f64 * LATE_FACTOR) as u64)))
    }

    /// The job that runs at the same unit.
    pub(super) fn competitor(&self, joblet: &Joblet) -> Option<JobId> {
        self.copies.competitor(joblet.identity.cookie, joblet.identity.job_id)
    }

    /// A job is over and its record is made: what remains of the race, if it took part in one.
    pub(super) fn leave_race(&mut self, joblet: &Joblet) {
        let cookie = joblet.identity.cookie;
        self.copies.leave(cookie, joblet.identity.job_id);
        if !self.units.is_running(cookie) {
            self.copies.end(cookie);
        }
    }

    /// Counts the end of a job; those of copies are told apart as well.
    pub(super) fn count(&mut self, joblet: &Joblet, end: impl Fn(&mut crate::counter::JobCounter)) {
        end(&mut self.counter);
        if self.copies.is_copy(joblet.identity.cookie, joblet.identity.job_id) {
            end(&mut self.copies.ends);
        }
    }
}
