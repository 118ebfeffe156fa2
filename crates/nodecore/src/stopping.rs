//! Abort, interrupt, fail, and deadlines that were missed (jobs-and-nodes.md 3.9; scheduling.md 15).

use vocab::{
    AbortReason, Failure, InterruptionReason, JobId, JobIdentity, JobOutcome, JobStatistics, Resources, Span,
    Time, code,
};
use wire::{AbortJob, FinishedJob, JobEvent};

use crate::core::aborted;
use crate::job::{Holds, Interruption, Job, Stage};
use crate::{NodeCore, NodeEffect, ProxyOrder};

impl NodeCore {
    pub(crate) fn abort(&mut self, now: Time, order: AbortJob, fx: &mut Vec<NodeEffect>) {
        let AbortJob { job_id, reason, text } = order;
        if !self.jobs.contains_key(&job_id) {
            return self.disappeared(now, job_id);
        }
        let mut error = Failure::new(text.clone());
        if reason == AbortReason::Preemption {
            error = error.with("preemption_reason", text);
        }
        self.stop(now, job_id, aborted(reason, error), fx);
    }

    pub(crate) fn fail(&mut self, now: Time, job_id: JobId, error: Failure, fx: &mut Vec<NodeEffect>) {
        if !self.jobs.contains_key(&job_id) {
            return self.disappeared(now, job_id);
        }
        let error = Failure::new("Job failed by external request").because(error);
        self.stop(now, job_id, JobOutcome::Failed { error }, fx);
    }

    /// The table of scheduling.md 15.2.
    pub(crate) fn interrupt(
        &mut self,
        now: Time,
        job_id: JobId,
        timeout: Span,
        reason: InterruptionReason,
        text: String,
        fx: &mut Vec<NodeEffect>,
    ) {
        let Some(job) = self.jobs.get_mut(&job_id) else {
            return self.disappeared(now, job_id);
        };
        if job.end.is_some() || job.stop.is_some() {
            return;
        }
        let interruptible = job.start.description.interruption_signal.is_some();
        if job.stage != Stage::Running || !interruptible || timeout == Span::ZERO {
            let outcome = abort_instead(reason, text);
            return self.stop(now, job_id, outcome, fx);
        }
        let mut deadline = now + timeout;
        if let Some(earlier) = &job.interruption {
            // A repeated order may shorten the deadline, never extend it (15.1).
            deadline = deadline.min(earlier.deadline);
        } else {
            fx.push(NodeEffect::ProxySend(
                job_id,
                ProxyOrder::Interrupt { reason, timeout, text: text.clone() },
            ));
            job.interruption = Some(Interruption { reason, text, deadline });
        }
        if let Some(i) = &mut job.interruption {
            i.deadline = deadline;
        }
        self.timers.set(job, Some(deadline));
    }

    /// Brings a job to the given end, by the gentlest way that its stage allows. The first one wins.
    pub(crate) fn stop(&mut self, now: Time, id: JobId, outcome: JobOutcome, fx: &mut Vec<NodeEffect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.end.is_some() || job.stop.is_some() {
            return;
        }
        match job.stage {
            Stage::Waiting
            | Stage::ProbingPorts { .. }
            | Stage::Fetching { .. }
            | Stage::PreparingSandbox => {
                self.end_here(now, id, outcome, fx);
            }
            Stage::Spawning | Stage::Running => {
                if job.connected {
                    fx.push(NodeEffect::ProxySend(id, stop_order(&outcome)));
                }
                job.stop = Some(outcome);
                self.begin_release(id);
                if let Some(job) = self.jobs.get_mut(&id) {
                    self.timers.set(job, Some(now + self.settings.kill_timeout));
                }
            }
            Stage::Killing => job.stop = Some(outcome),
            Stage::Uploading | Stage::Over => unreachable!("these stages have an end"),
        }
    }

    pub(crate) fn begin_release(&mut self, id: JobId) {
        if let Some(job) = self.jobs.get_mut(&id)
            && job.holds == Holds::Acquired
        {
            self.ledger.begin_release(job.usage);
            job.holds = Holds::Releasing;
        }
    }

    /// Kills the job over its proxy's head.
    pub(crate) fn kill(&mut self, now: Time, id: JobId, fx: &mut Vec<NodeEffect>) {
        self.begin_release(id);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.stage = Stage::Killing;
        job.kill_failed = false;
        fx.push(NodeEffect::KillContainer(id));
        self.timers.set(job, Some(now + self.settings.kill_timeout));
    }

    pub(crate) fn deadline_passed(&mut self, now: Time, id: JobId, fx: &mut Vec<NodeEffect>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        match job.stage {
            Stage::Waiting => {
                let error = Failure::coded(code::WAITING_JOB_TIMEOUT, "Job waiting has timed out")
                    .with("timeout", job.waiting_timeout(&self.settings).as_millis() as i64);
                self.stop(now, id, aborted(AbortReason::WaitingTimeout, error), fx);
            }
            Stage::ProbingPorts { .. } | Stage::Fetching { .. } | Stage::PreparingSandbox => {
                let outcome = preparation_timeout(job);
                self.stop(now, id, outcome, fx);
            }
            Stage::Spawning | Stage::Running if job.stop.is_some() => self.kill(now, id, fx),
            Stage::Running if job.interruption.is_some() => {
                let outcome = interruption_timeout(job);
                self.stop(now, id, outcome, fx);
            }
            Stage::Spawning => {
                job.stop = Some(preparation_timeout(job));
                self.kill(now, id, fx);
            }
            Stage::Running => {
                // Adopted, said to be alive, and never heard of.
                let error = Failure::coded(code::JOB_PROXY_FAILED, "Job proxy did not call back");
                self.proxy_lost(now, id, aborted(AbortReason::Other, error), fx);
            }
            Stage::Killing => self.kill_overdue(now, id, fx),
            Stage::Uploading | Stage::Over => self.cleanup_overdue(id),
        }
    }

    /// Answers an order about a job that is not here (9.4).
    fn disappeared(&mut self, now: Time, job_id: JobId) {
        if self.was_removed(job_id) {
            return;
        }
        let error = Failure::new(format!("Job {job_id} is not on node {:?}", self.settings.address));
        self.outbox.push(JobEvent::Finished(Box::new(FinishedJob {
            identity: JobIdentity {
                job_id,
                allocation_id: Default::default(),
                operation_id: Default::default(),
                tree: "".into(),
                task: "".into(),
                cookie: 0,
                job_index: 0,
                task_job_index: 0,
                ticket: None,
            },
            granted: Resources::ZERO,
            outcome: aborted(AbortReason::DisappearedFromNode, error),
            start_time: None,
            finish_time: now,
            statistics: JobStatistics::default(),
            stderr_size: 0,
            stderr: None,
            fail_context_size: 0,
            slot_index: None,
        })));
    }
}

/// What the proxy has to do so that the job ends like this.
pub(crate) fn stop_order(outcome: &JobOutcome) -> ProxyOrder {
    match outcome {
        JobOutcome::Aborted { reason, error } => {
            ProxyOrder::Abort { reason: *reason, text: error.message.clone() }
        }
        JobOutcome::Failed { error } => ProxyOrder::Fail { error: error.inner_errors.first().cloned() },
        JobOutcome::Completed { .. } => unreachable!("nobody is ordered to complete"),
    }
}

/// What becomes of a job that cannot be interrupted.
fn abort_instead(reason: InterruptionReason, text: String) -> JobOutcome {
    let error = Failure::new(text.clone());
    match reason {
        InterruptionReason::Preemption => {
            aborted(AbortReason::Preemption, error.with("preemption_reason", text))
        }
        InterruptionReason::JobsDisabledOnNode => aborted(AbortReason::NodeWithDisabledJobs, error),
        _ => aborted(AbortReason::InterruptionUnsupported, error),
    }
}

fn interruption_timeout(job: &Job) -> JobOutcome {
    let (reason, text) = job
        .interruption
        .as_ref()
        .map_or((InterruptionReason::Unknown, String::new()), |i| (i.reason, i.text.clone()));
    let inner =
        Failure::coded(code::INTERRUPTION_TIMEOUT, "Job did not stop within the interruption timeout")
            .with("interruption_reason", reason);
    match reason {
        InterruptionReason::Preemption => aborted(
            AbortReason::Preemption,
            Failure::new(text.clone()).with("preemption_reason", text).because(inner),
        ),
        InterruptionReason::JobsDisabledOnNode => aborted(AbortReason::NodeWithDisabledJobs, inner),
        _ => aborted(AbortReason::InterruptionTimeout, inner),
    }
}

fn preparation_timeout(job: &Job) -> JobOutcome {
    let error = Failure::coded(code::JOB_PREPARATION_TIMEOUT, "Job preparation has timed out")
        .with("phase", job.phase());
    aborted(AbortReason::Other, error)
}
