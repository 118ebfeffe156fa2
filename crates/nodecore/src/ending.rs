//! The end of a job: result, report, cleanup, release (jobs-and-nodes.md 3.7 steps 9-10, 3.8).

use vocab::{AbortReason, Failure, JobId, JobOutcome, JobStatistics, Time};
use wire::{FinishedJob, JobEvent};

use crate::core::aborted;
use crate::job::{Holds, Job, Room, Stage};
use crate::{JobResult, KeptStderr, NodeCore, NodeEffect, Remains};

/// A server that does not take what a job has left three times in a row will not have it; of rows that it
/// has not got it knows by the end of the job.
const UPLOAD_ATTEMPTS: u32 = 3;

impl NodeCore {
    /// The proxy's word.
    pub(crate) fn job_ended(&mut self, now: Time, id: JobId, result: JobResult, fx: &mut Vec<NodeEffect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.end.is_some() || !matches!(job.stage, Stage::Spawning | Stage::Running | Stage::Killing) {
            return;
        }
        job.start_time = job.start_time.or(result.start_time);
        let decided_here = job.stop.is_some();
        let result = JobResult { outcome: final_outcome(job, result.outcome), ..result };
        if result.survivors {
            return self.end_with_survivors(now, id, result, fx);
        }
        self.end(now, id, result, decided_here, fx);
    }

    /// The proxy could not kill all of it: the end is told, but what the job holds stays taken while the
    /// kill is tried again and again (4.6).
    fn end_with_survivors(&mut self, now: Time, id: JobId, result: JobResult, fx: &mut Vec<NodeEffect>) {
        let error = Failure::new("The job proxy gave up killing them");
        self.alert_of_survivors(id, error);
        if let Some(job) = self.jobs.get_mut(&id).filter(|job| job.is_exclusive()) {
            // The end would let the unit start elsewhere beside them (S19).
            job.held_result = Some(Box::new(result));
            return self.kill(now, id, fx);
        }
        self.settle_end(id, result, true, fx);
        self.report(id, fx);
        self.kill(now, id, fx);
    }

    fn alert_of_survivors(&mut self, id: JobId, error: Failure) {
        self.forget_survivors(id);
        self.alerts.push(Failure::new(survivors_of(id)).because(error));
    }

    fn forget_survivors(&mut self, id: JobId) {
        let text = survivors_of(id);
        self.alerts.retain(|alert| alert.message != text);
    }

    /// The proxy died without a word: nothing of the job may survive it (3.8).
    pub(crate) fn proxy_lost(&mut self, now: Time, id: JobId, outcome: JobOutcome, fx: &mut Vec<NodeEffect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.end.is_some() || !matches!(job.stage, Stage::Spawning | Stage::Running) {
            return;
        }
        job.stop.get_or_insert(outcome);
        self.kill(now, id, fx);
    }

    pub(crate) fn container_killed(
        &mut self,
        now: Time,
        id: JobId,
        result: Result<Remains, Failure>,
        fx: &mut Vec<NodeEffect>,
    ) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.stage != Stage::Killing {
            return;
        }
        if result.is_ok() && !self.alerts.is_empty() {
            self.forget_survivors(id);
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        match result {
            Err(error) => {
                // The deadline, which is still set, reports the end and tries again.
                job.kill_failed = true;
                self.alert_of_survivors(id, error);
            }
            Ok(_) if job.end.is_some() => {
                job.stage = Stage::Over;
                self.timers.set(job, None);
                self.free(id);
                self.tidy(now, id, fx);
            }
            Ok(remains) => {
                let held = self.jobs.get_mut(&id).and_then(|job| job.held_result.take());
                if let Some(result) = held.map(|held| *held).or_else(|| self.killed_result(now, id, remains))
                {
                    self.end(now, id, result, true, fx);
                }
            }
        }
    }

    /// The kill takes too long: the end is reported all the same, the resources stay taken (3.9).
    pub(crate) fn kill_overdue(&mut self, now: Time, id: JobId, fx: &mut Vec<NodeEffect>) {
        let Some(job) = self.jobs.get(&id) else { return };
        // The end of an exclusive job lets its unit start elsewhere, so it is told only when nothing of it lives (S19).
        if job.end.is_none()
            && !job.is_exclusive()
            && let Some(result) = self.killed_result(now, id, Remains::default())
        {
            self.settle_end(id, result, true, fx);
            self.report(id, fx);
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if std::mem::take(&mut job.kill_failed) {
            fx.push(NodeEffect::KillContainer(id));
        }
        self.timers.set(job, Some(now + self.settings.kill_timeout));
    }

    /// The result of a job that was killed here.
    fn killed_result(&self, now: Time, id: JobId, remains: Remains) -> Option<JobResult> {
        let job = self.jobs.get(&id)?;
        let unexplained =
            || aborted(AbortReason::Unknown, Failure::new("Job was killed for an unknown reason"));
        Some(JobResult {
            outcome: job.stop.clone().unwrap_or_else(unexplained),
            start_time: job.start_time,
            finish_time: now,
            statistics: job.statistics.as_deref().cloned().unwrap_or_default(),
            stderr_size: remains.stderr_size.max(job.stderr_size),
            stderr: remains.stderr,
            survivors: false,
            fail_context_size: 0,
        })
    }

    /// The end of a job that has no process.
    pub(crate) fn end_here(&mut self, now: Time, id: JobId, outcome: JobOutcome, fx: &mut Vec<NodeEffect>) {
        let result = JobResult {
            outcome,
            start_time: None,
            finish_time: now,
            statistics: JobStatistics::default(),
            stderr_size: 0,
            stderr: KeptStderr::None,
            survivors: false,
            fail_context_size: 0,
        };
        self.end(now, id, result, true, fx);
    }

    fn end(&mut self, now: Time, id: JobId, result: JobResult, decided_here: bool, fx: &mut Vec<NodeEffect>) {
        self.settle_end(id, result, decided_here, fx);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.stage = Stage::Over;
        self.timers.set(job, None);
        self.free(id);
        self.report(id, fx);
        self.tidy(now, id, fx);
    }

    /// Fixes what will be reported, though something of the job may still live.
    fn settle_end(&mut self, id: JobId, result: JobResult, decided_here: bool, fx: &mut Vec<NodeEffect>) {
        self.count_end(id, &result.outcome);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        self.leases.remove(&job.start);
        job.stderr_size = result.stderr_size;
        let stderr = job.keep_stderr(result.stderr);
        // One that failed when it was to be stopped anyway does not count as failed.
        let has_failed = matches!(result.outcome, JobOutcome::Failed { .. });
        job.end = Some(Box::new(FinishedJob {
            identity: job.start.identity.clone(),
            granted: job.start.resources,
            outcome: result.outcome,
            start_time: job.start_time,
            finish_time: result.finish_time,
            statistics: job.complete_statistics(result.statistics, result.finish_time),
            stderr_size: job.stderr_size,
            stderr,
            fail_context_size: if has_failed { result.fail_context_size } else { 0 },
            slot_index: job.slot,
        }));
        if decided_here {
            // A result that the proxy left is not the last word: ours must be found after a restart.
            fx.extend(job.record().map(Box::new).map(NodeEffect::WriteRecord));
        }
    }

    /// Gives back what the job holds.
    fn free(&mut self, id: JobId) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if matches!(job.holds, Holds::Acquired | Holds::Releasing) {
            self.disk.take_back(job);
        }
        match job.holds {
            Holds::Pending => self.ledger.dequeue(job.usage),
            Holds::Acquired => {
                self.ledger.begin_release(job.usage);
                self.ledger.end_release(job.usage);
            }
            Holds::Releasing => self.ledger.end_release(job.usage),
            Holds::Nothing => return,
        }
        job.holds = Holds::Nothing;
        for index in std::mem::take(&mut job.gpus) {
            self.gpus.give_back(index);
        }
        for port in std::mem::take(&mut job.ports) {
            self.ports.give_back(port);
        }
        self.look_at_waiting = true;
    }

    /// Tells the server, after a long stderr and rows of tables have been brought to it.
    pub(crate) fn report(&mut self, id: JobId, fx: &mut Vec<NodeEffect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some(end) = &job.end else { return };
        if let (true, Stage::Over, Some(slot)) = (job.must_upload(), job.stage, job.slot) {
            job.stage = Stage::Uploading;
            job.upload_attempts = 0;
            if self.registration.is_registered() {
                fx.push(job.upload(id, slot));
            }
            return;
        }
        self.outbox.push(JobEvent::Finished(end.clone()));
    }

    pub(crate) fn uploaded(&mut self, id: JobId, result: Result<(), Failure>, fx: &mut Vec<NodeEffect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let (Stage::Uploading, Some(end)) = (job.stage, &job.end) else { return };
        if result.is_err() {
            if !self.registration.is_registered() {
                return; // tried again after the next registration
            }
            job.upload_attempts += 1;
            if let (true, Some(slot)) = (job.upload_attempts < UPLOAD_ATTEMPTS, job.slot) {
                fx.push(job.upload(id, slot));
                return;
            }
        }
        job.stage = Stage::Over;
        self.outbox.push(JobEvent::Finished(end.clone()));
    }

    /// Cleans up when nothing of the job lives, forgets it when that is done and the server has released it.
    pub(crate) fn tidy(&mut self, now: Time, id: JobId, fx: &mut Vec<NodeEffect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.end.is_none() || job.holds != Holds::Nothing {
            return;
        }
        match (job.room, job.slot) {
            (Room::Ready, Some(slot)) => {
                job.room = Room::Cleaning;
                self.timers.set(job, Some(now + self.settings.waiting_for_job_cleanup_timeout));
                fx.push(NodeEffect::Cleanup { job_id: id, slot });
            }
            (Room::Untouched | Room::Clean | Room::Broken, _) if job.released => self.remove(now, id, fx),
            _ => {}
        }
    }

    pub(crate) fn cleaned_up(
        &mut self,
        now: Time,
        id: JobId,
        result: Result<(), Failure>,
        fx: &mut Vec<NodeEffect>,
    ) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.room != Room::Cleaning {
            return;
        }
        job.room = Room::Clean;
        self.timers.set(job, None);
        let slot = job.slot.map_or(-1, i64::from);
        // It was slow, or is broken: one of the two is said.
        self.alerts.retain(|alert| alert.message != slow_cleanup_of(slot));
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let Err(error) = result {
            job.room = Room::Broken;
            self.alerts
                .push(Failure::new(format!("Slot {slot} cannot be cleaned and is disabled")).because(error));
        }
        self.tidy(now, id, fx);
    }

    /// The cleanup takes too long: the slot is not used until it has ended, and somebody should look (3.7).
    pub(crate) fn cleanup_overdue(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        if job.room == Room::Cleaning {
            let alert = Failure::new(slow_cleanup_of(job.slot.map_or(-1, i64::from))).with("job_id", id);
            self.alerts.push(alert);
        }
    }

    /// The server has it: the job may be forgotten. A job that is not over cannot be meant.
    pub(crate) fn release(&mut self, now: Time, id: JobId, fx: &mut Vec<NodeEffect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.is_reportable() {
            job.released = true;
            self.tidy(now, id, fx);
        }
    }
}

fn slow_cleanup_of(slot: i64) -> String {
    format!("Cleanup of slot {slot} takes too long")
}

fn survivors_of(id: JobId) -> String {
    format!("Processes of job {id} cannot be killed")
}

/// Whose word counts. An order to stop is the outcome, unless the job completed before the order
/// reached it: work that is done is not thrown away.
fn final_outcome(job: &mut Job, said: JobOutcome) -> JobOutcome {
    match (said, job.stop.take()) {
        (JobOutcome::Completed { interrupted, restart_needed }, _) => JobOutcome::Completed {
            interrupted: interrupted.or(job.interruption.as_ref().map(|i| i.reason)),
            restart_needed,
        },
        (_, Some(stop)) => stop,
        (said, None) => said,
    }
}
