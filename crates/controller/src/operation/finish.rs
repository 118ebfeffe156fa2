//! The end of a job: what becomes of its unit, what is counted, what is kept
//! (jobs-and-nodes.md 5.4, 6.3, 6.8).

use super::OperationController;
use super::gang::Reuse;
use super::limits::Life;
use super::rules::located;
use crate::job::Joblet;
use crate::record::JobRecord;
use crate::statistics::JobSamples;
use crate::task::Task;
use vocab::{AbortReason, Failure, InterruptionReason, JobId, JobOutcome, JobState, JobStatistics, Time};

/// What a node says about a job that is over.
#[derive(Clone, PartialEq, Debug)]
pub struct FinishedJob {
    /// Which job.
    pub job_id: JobId,
    /// How it ended.
    pub outcome: JobOutcome,
    /// When the user's process started, if it did.
    pub exec_start_time: Option<Time>,
    /// When it was over.
    pub finish_time: Time,
    /// Final statistics; `None` (or all zero) if it never ran.
    pub statistics: Option<JobStatistics>,
    /// Bytes of stderr that could be kept.
    pub stderr_size: u64,
    /// Bytes of what it was reading when it failed that could be kept.
    pub fail_context_size: u64,
}

/// What follows from the end of a job.
#[derive(Clone, PartialEq, Debug)]
pub struct JobVerdict {
    /// Keep its stderr.
    pub keep_stderr: bool,
    /// Keep what it was reading when it failed.
    pub keep_fail_context: bool,
    /// It was ended here, and has a place among those whose stderr is kept: what its node tells of its end goes into
    /// the record. If that is no stderr, the place is [given back](OperationController::give_back_stderr).
    pub is_owed: bool,
    /// Its unit is done by this run: what it has written to tables counts. Where that has its place among the rows
    /// of the other units: at the first row of the unit; if it reads none, by task and cookie.
    pub unit_done: Option<u64>,
    /// For the archive.
    pub record: JobRecord,
    /// An abort that its node caused: no job of the operation is to be started there before.
    pub pause_on_node: Option<Time>,
    /// What it means for the operation.
    pub operation_event: Option<OperationEvent>,
    /// Jobs that the controller has given up because of this end (a gang's restart, the competitor that
    /// was slower), each with its reason in its record: their nodes are to kill them. Their later reports
    /// are unknown here.
    pub aborted_with_it: Vec<JobVerdict>,
    /// Units that may begin anew in the allocations of some of those (a gang's restart).
    pub reuse: Vec<Reuse>,
    /// The unit that may begin in the allocation of this job, which has completed (6.9, `enable_multiple_jobs`).
    pub next: Option<Reuse>,
}

/// News about the whole operation. After `Completed` and `Failed` the controller starts nothing;
/// the caller ends the remaining jobs with [`OperationController::abort_all`].
#[derive(Clone, PartialEq, Debug)]
pub enum OperationEvent {
    /// All units are done.
    Completed,
    /// The operation has failed.
    Failed(Failure),
    /// The operation is to be suspended (`suspend_on_job_failure`).
    Suspend(Failure),
}

/// What of a finished job goes into the archive beside its record, if it is there.
struct Kept {
    stderr: bool,
    fail_context: bool,
}

/// Who says that a job is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Word {
    /// Its node, with all that is left of it.
    Nodes,
    /// Ours: its node has still to hear of it, and to tell what is left.
    Ours,
    /// A user's (abandon_job): the same, but its unit is done.
    Users,
}

/// What becomes of the unit of a completed run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Done,
    /// Done up to this row of the input; the rest is a new unit.
    DoneUpTo(u64),
    /// Run again; the run counts as lost.
    Again,
    /// Run again; the run counts as completed, interrupted (6.8).
    MadeRoom,
}

impl OperationController {
    /// The end of a job. `None`: no such job here (it was counted already, or never was ours); the
    /// node may forget it.
    pub fn job_finished(&mut self, now: Time, report: FinishedJob) -> Option<JobVerdict> {
        self.end_job(now, report, Word::Nodes)
    }

    /// A job that its node has not ended and that does not go on: the node is lost, or is to kill it. Else the same.
    /// `None`: no such job here.
    pub fn give_up_job(
        &mut self,
        now: Time,
        job_id: JobId,
        reason: AbortReason,
        error: Failure,
    ) -> Option<JobVerdict> {
        let outcome = JobOutcome::Aborted { reason, error };
        let report = self.jobs.get(&job_id)?.as_known(now, outcome);
        self.end_job(now, report, Word::Ours)
    }

    fn end_job(&mut self, now: Time, report: FinishedJob, word: Word) -> Option<JobVerdict> {
        let abandoned = word == Word::Users;
        let mut joblet = self.jobs.remove(&report.job_id)?;
        let FinishedJob {
            job_id: _,
            outcome,
            exec_start_time,
            finish_time,
            statistics,
            stderr_size,
            fail_context_size,
        } = report;
        joblet.exec_start_time = joblet.exec_start_time.or(exec_start_time);
        joblet.stderr_size = stderr_size;
        // All zero is what nodes send for a job that never ran; zeros are not measurements.
        if let Some(statistics) = statistics.filter(|s| *s != JobStatistics::default()) {
            joblet.statistics = Some(Box::new(statistics));
        }
        let outcome = self.excuse_failure_at_banned_node(&joblet, outcome);
        let task = &mut self.tasks[joblet.task as usize];
        task.open.remove(joblet.identity.task_job_index);
        task.dirty = true;
        // Before anybody asks what the next job needs (2.3).
        task.learn(&joblet, &outcome);
        let competitor = task.competitor(&joblet);
        // All of them, though it may have done a part only.
        let rows = task.rows_of(joblet.identity.cookie);
        let settled = match abandoned {
            true => abandon_unit(task, &joblet),
            false => settle_unit(task, &joblet, &outcome),
        };
        let place = match &rows {
            Some(rows) => rows.start,
            None => u64::from(joblet.task) << 32 | u64::from(joblet.identity.cookie),
        };
        let breaks_gang = settled.breaks_gang;
        if let (JobOutcome::Completed { .. }, false, Some(start)) =
            (&outcome, abandoned, joblet.exec_start_time)
        {
            task.copies.durations.add(finish_time.since(start));
        }
        task.forget_overdraft(joblet.identity.cookie);
        task.note_time(now);
        if let JobOutcome::Failed { .. } = outcome {
            self.failed_job_count += 1;
            self.dirty = true;
        }
        if word != Word::Nodes {
            self.fence(&joblet);
        }
        let pause_on_node = self.back_off(now, &joblet, &outcome);
        // An abandoned job counts in statistics only if it has any (7.3).
        let counts = !abandoned || joblet.statistics.is_some();
        let mut verdict = self.close(&joblet, outcome.clone(), finish_time, fail_context_size, counts, word);
        verdict.record.rows = rows;
        verdict.pause_on_node = pause_on_node;
        verdict.unit_done = settled.output_counts.then_some(place);
        // The other job of a unit that is done has lost, the other one of a unit that is not goes on.
        let loser =
            competitor.filter(|_| !self.tasks[joblet.task as usize].units.is_running(joblet.identity.cookie));
        verdict.aborted_with_it.extend(loser.and_then(|loser| self.drop_loser(now, loser)));
        self.tasks[joblet.task as usize].leave_race(&joblet);
        let is_restart = competitor.is_none() || matches!(outcome, JobOutcome::Failed { .. });
        let mut event = is_restart.then(|| self.consequences(&joblet, &outcome)).flatten();
        let goes_on = self.life == Life::Running && !matches!(event, Some(OperationEvent::Failed(_)));
        if breaks_gang && goes_on {
            let reusable = self.reusable();
            let (aborted, refused) = self.switch_incarnation(now);
            // Whoever is suspended by this starts nothing, and during a revival nobody does: who has not been
            // heard of yet may still run.
            if refused.is_none() && event.is_none() && !self.reviving {
                verdict.reuse = reusable;
            }
            verdict.aborted_with_it.extend(aborted);
            event = refused.or(event);
        }
        event = event.or_else(|| self.end_if_done());
        self.heed(event.as_ref());
        if matches!(outcome, JobOutcome::Completed { .. }) && event.is_none() && !abandoned {
            verdict.next = self.next_in_place(&joblet);
        }
        verdict.operation_event = event;
        Some(verdict)
    }

    /// Gives a running job up as done (abandon_job): its unit counts as completed. The caller has
    /// its node kill it. `None`: no such job here.
    pub fn abandon_job(&mut self, now: Time, job_id: JobId) -> Option<JobVerdict> {
        let outcome = JobOutcome::Completed { interrupted: None, restart_needed: false };
        let report = self.jobs.get(&job_id)?.as_known(now, outcome);
        self.end_job(now, report, Word::Users)
    }

    /// A job that was ended here has left no stderr: another one may have its place.
    pub fn give_back_stderr(&mut self) {
        self.retained_job_count = self.retained_job_count.saturating_sub(1);
        self.stored_stderr_count = self.stored_stderr_count.saturating_sub(1);
        self.dirty = true;
    }

    /// Ends all running jobs with one reason, when the operation ends or its jobs may not go on
    /// (suspension with abort). Their nodes are to kill them; later reports are unknown here. The
    /// rules about restarts are not asked: this is a decision of somebody else. But if the units of these
    /// jobs were all that was left, and none of them is wanted any more, the operation is over.
    pub fn abort_all(&mut self, now: Time, reason: AbortReason) -> (Vec<JobVerdict>, Option<OperationEvent>) {
        let verdicts = self.drop_all(now, reason);
        let event = self.end_if_done();
        self.heed(event.as_ref());
        (verdicts, event)
    }

    pub(super) fn drop_all(&mut self, now: Time, reason: AbortReason) -> Vec<JobVerdict> {
        let mut jobs: Vec<Joblet> = std::mem::take(&mut self.jobs).into_values().collect();
        // Those that are known to have printed something have the first claim to be kept with it.
        jobs.sort_by_key(|joblet| joblet.stderr_size == 0);
        jobs.into_iter().map(|joblet| self.drop_job(now, joblet, reason)).collect()
    }

    /// The operation is over by another's decision (abort, complete): no more jobs.
    pub fn close_operation(&mut self) {
        self.life = Life::Over;
        self.dirty = true;
    }

    /// Counts a job as aborted without asking its node.
    pub(super) fn drop_job(&mut self, now: Time, joblet: Joblet, reason: AbortReason) -> JobVerdict {
        let task = &mut self.tasks[joblet.task as usize];
        task.open.remove(joblet.identity.task_job_index);
        task.dirty = true;
        let error = Failure::new("Job aborted").with("abort_reason", reason);
        let outcome = JobOutcome::Aborted { reason, error };
        let _ = settle_unit(task, &joblet, &outcome);
        task.note_time(now);
        self.fence(&joblet);
        let number = joblet.task as usize;
        let verdict = self.close(&joblet, outcome, now, 0, true, Word::Ours);
        self.tasks[number].leave_race(&joblet);
        verdict
    }

    /// Statistics, stderr and the record of a job that is over.
    pub(super) fn close(
        &mut self,
        joblet: &Joblet,
        outcome: JobOutcome,
        finish_time: Time,
        fail_context_size: u64,
        counts: bool,
        word: Word,
    ) -> JobVerdict {
        let task = &self.tasks[joblet.task as usize];
        let facts = joblet.facts(task, finish_time);
        let samples = JobSamples::new(&facts, joblet.statistics.as_deref());
        let (state, error, abort_reason, interruption_reason) = match outcome {
            JobOutcome::Completed { interrupted, .. } => (JobState::Completed, None, None, interrupted),
            JobOutcome::Failed { error } => (JobState::Failed, Some(error), None, None),
            JobOutcome::Aborted { reason, error } => (JobState::Aborted, Some(error), Some(reason), None),
        };
        // Jobs that never started on a node are not aggregated (7.3).
        if counts && !abort_reason.is_some_and(AbortReason::is_scheduling) {
            self.aggregate(joblet, state, &samples);
        }
        // What never started there has printed nothing.
        let is_owed = word != Word::Nodes && !abort_reason.is_some_and(AbortReason::is_scheduling);
        let kept = self.retain(state, abort_reason, joblet.stderr_size > 0 || is_owed);
        let keep_fail_context = kept.fail_context && fail_context_size > 0;
        let task = &self.tasks[joblet.task as usize];
        let record = JobRecord {
            identity: joblet.identity.clone(),
            state,
            address: joblet.node.to_string(),
            start_time: joblet.start_time,
            exec_start_time: joblet.exec_start_time,
            finish_time,
            error: error.map(|e| located(&e, joblet)),
            abort_reason,
            interruption_reason: interruption_reason.or(joblet.interruption),
            preempted_for: joblet.preempted_for,
            predecessor: joblet.predecessor,
            competition: task.copies.competition(joblet.identity.cookie),
            stderr_size: if kept.stderr { joblet.stderr_size } else { 0 },
            fail_context_size: if keep_fail_context { fail_context_size } else { 0 },
            rows: task.rows_of(joblet.identity.cookie),
            operation_incarnation: self.incarnation_name.clone(),
            gang_rank: task.rank_of(joblet.identity.cookie),
            samples,
            job_type: task.spec.job_type.to_owned(),
            // The scheduler's business: whoever asks for the record adds it.
            pool: None,
            slot_index: joblet.slot_index,
        };
        JobVerdict {
            keep_stderr: kept.stderr,
            keep_fail_context,
            is_owed: is_owed && kept.stderr,
            unit_done: None,
            pause_on_node: None,
            record,
            operation_event: None,
            aborted_with_it: Vec::new(),
            reuse: Vec::new(),
            next: None,
        }
    }

    fn aggregate(&mut self, joblet: &Joblet, state: JobState, samples: &JobSamples) {
        let (names, overflow) = (&mut self.custom_names, &mut self.custom_names_overflow);
        let limit = self.options.custom_statistics_count_limit;
        let accept = |name: &str| {
            let known = names.contains(name);
            if !known && names.len() >= limit {
                *overflow = true;
                return false;
            }
            known || names.insert(name.to_owned())
        };
        let task = &mut self.tasks[joblet.task as usize];
        task.statistics.add(state, &joblet.identity.tree, samples, accept);
    }

    /// Whose stderr is kept (5.4): some of everybody's, more of failed jobs'. What these were reading is kept of as
    /// many (5.5).
    fn retain(&mut self, state: JobState, reason: Option<AbortReason>, has_stderr: bool) -> Kept {
        let of_interest = state == JobState::Failed || reason == Some(AbortReason::UserRequest);
        let by_count = has_stderr && self.stored_stderr_count < self.root.max_stderr_count as u64;
        let by_interest = of_interest && self.retained_job_count < self.options.max_job_nodes_per_operation;
        if by_count || by_interest {
            self.retained_job_count += 1;
            self.stored_stderr_count += u64::from(has_stderr);
            self.dirty = true;
        }
        Kept {
            stderr: has_stderr && (by_count || by_interest),
            fail_context: state == JobState::Failed && by_interest,
        }
    }

    /// After the end of the operation nothing is started.
    pub(super) fn heed(&mut self, event: Option<&OperationEvent>) {
        if matches!(event, Some(OperationEvent::Completed | OperationEvent::Failed(_))) {
            self.close_operation();
        }
    }

    /// Completed, when every task has done all of its units.
    pub(super) fn end_if_done(&mut self) -> Option<OperationEvent> {
        let done = self.life == Life::Running && self.tasks.iter().all(Task::is_complete);
        if done {
            return Some(OperationEvent::Completed);
        }
        self.end_if_expired_and_idle()
    }
}

/// What the end of a job did to its unit and its gang.
struct Settled {
    /// A ranked job failed, was aborted, stopped because it was asked to, or is run again (6.9).
    breaks_gang: bool,
    /// What it has written is the unit's output.
    output_counts: bool,
}

/// Moves the unit of a job that is over, unless another job of it runs on, and counts the end.
fn settle_unit(task: &mut Task, joblet: &Joblet, outcome: &JobOutcome) -> Settled {
    let cookie = joblet.identity.cookie;
    let ranked = task.rank_of(cookie).is_some();
    let goes_on = task.competitor(joblet).is_some();
    let give_back = |task: &mut Task| {
        if !goes_on {
            task.units.give_back(cookie);
        }
    };
    match outcome {
        JobOutcome::Completed { interrupted, restart_needed } => {
            let interrupted = interrupted.unwrap_or(InterruptionReason::None);
            let fate = fate(task, joblet, interrupted, *restart_needed);
            match fate {
                Fate::Done => {
                    task.units.complete(cookie);
                    task.count(joblet, |ends| *ends.completed.entry(interrupted).or_default() += 1);
                }
                Fate::DoneUpTo(row) => {
                    task.split(cookie, row);
                    task.units.complete(cookie);
                    task.count(joblet, |ends| *ends.completed.entry(interrupted).or_default() += 1);
                }
                Fate::Again => {
                    give_back(task);
                    task.count(joblet, |ends| ends.lost += 1);
                }
                Fate::MadeRoom => {
                    give_back(task);
                    task.count(joblet, |ends| *ends.made_room.entry(interrupted).or_default() += 1);
                }
            }
            Settled {
                breaks_gang: ranked && (fate != Fate::Done || interrupted != InterruptionReason::None),
                output_counts: matches!(fate, Fate::Done | Fate::DoneUpTo(_)),
            }
        }
        JobOutcome::Failed { .. } => {
            give_back(task);
            task.count(joblet, |ends| ends.failed += 1);
            Settled { breaks_gang: ranked, output_counts: false }
        }
        JobOutcome::Aborted { reason, .. } => {
            give_back(task);
            task.count(joblet, |ends| *ends.aborted.entry(*reason).or_default() += 1);
            Settled { breaks_gang: ranked, output_counts: false }
        }
    }
}

/// A user's word ends a unit, even in tasks that run their units again and again; what the job has written is
/// dropped (6.3).
fn abandon_unit(task: &mut Task, joblet: &Joblet) -> Settled {
    task.units.complete(joblet.identity.cookie);
    task.count(joblet, |ends| *ends.completed.entry(InterruptionReason::None).or_default() += 1);
    Settled { breaks_gang: false, output_counts: false }
}

fn fate(task: &Task, joblet: &Joblet, interrupted: InterruptionReason, restart_needed: bool) -> Fate {
    let was_interrupted = interrupted != InterruptionReason::None;
    if restart_needed {
        Fate::Again
    } else if let (true, Some(rows)) = (was_interrupted, task.rows_of(joblet.identity.cookie)) {
        // It has done what it has read (5.6).
        let measured = joblet.statistics.as_ref().and_then(|s| s.tables.as_ref());
        let read = measured.map_or(0, |t| t.input.row_count.max(0).unsigned_abs());
        match rows.start.saturating_add(read) {
            end if end >= rows.end => Fate::Done,
            _ if read == 0 => Fate::MadeRoom,
            end => Fate::DoneUpTo(end),
        }
    } else if was_interrupted && task.spec.script.restart_exit_code.is_none() {
        // The job does not say whether it is done, so it is not.
        Fate::MadeRoom
    } else if task.spec.restart_completed_jobs {
        Fate::Again
    } else {
        Fate::Done
    }
}
