//! When the end of a job ends the operation (jobs-and-nodes.md 6.4). The first rule that holds ends
//! the rest.

use super::limits::Life;
use super::{OperationController, OperationEvent};
use crate::job::Joblet;
use vocab::{AbortReason, Failure, JobOutcome, code};
use yson::Value;

impl OperationController {
    /// With `ignore_job_failures_at_banned_nodes` a failure on a node that is banned already counts
    /// as an abort.
    pub(super) fn excuse_failure_at_banned_node(&self, joblet: &Joblet, outcome: JobOutcome) -> JobOutcome {
        match outcome {
            JobOutcome::Failed { error }
                if self.root.ignore_job_failures_at_banned_nodes
                    && self.banned_nodes.contains(&*joblet.node) =>
            {
                let reason = AbortReason::NodeBanned;
                let error =
                    Failure::new("Job failed at a banned node").with("abort_reason", reason).because(error);
                JobOutcome::Aborted { reason, error }
            }
            other => other,
        }
    }

    /// Applies the rules to a job that is over; its unit and counters are settled already.
    pub(super) fn consequences(&mut self, joblet: &Joblet, outcome: &JobOutcome) -> Option<OperationEvent> {
        if self.life != Life::Running {
            return None;
        }
        match outcome {
            JobOutcome::Completed { .. } => None,
            JobOutcome::Aborted { reason, error } => self.after_abort(joblet, *reason, error),
            JobOutcome::Failed { error } => self.after_failure(joblet, error),
        }
    }

    fn restart_is_forbidden(&self, joblet: &Joblet) -> bool {
        self.root.fail_on_job_restart || self.tasks[joblet.task as usize].spec.script.fail_on_job_restart
    }

    fn after_abort(&self, joblet: &Joblet, reason: AbortReason, error: &Failure) -> Option<OperationEvent> {
        if let Some(failure) = lost_content(error, joblet) {
            return Some(OperationEvent::Failed(failure));
        }
        // Jobs that never started are not restarted when their unit is tried again.
        if reason.is_scheduling() || !self.restart_is_forbidden(joblet) {
            return self.after_many_aborts(joblet, reason);
        }
        let failure = Failure::coded(
            code::OPERATION_FAILED_ON_JOB_RESTART,
            "Job aborted; failing operation since \"fail_on_job_restart\" spec option is set",
        );
        let failure = failure.with("job_id", joblet.identity.job_id).with("abort_reason", reason);
        Some(OperationEvent::Failed(failure.because(located(error, joblet))))
    }

    fn after_failure(&mut self, joblet: &Joblet, error: &Failure) -> Option<OperationEvent> {
        let cause = located(error, joblet);
        if self.restart_is_forbidden(joblet) {
            let failure = Failure::coded(
                code::OPERATION_FAILED_ON_JOB_RESTART,
                "Job failed; failing operation since \"fail_on_job_restart\" spec option is set",
            );
            let failure = failure.with("job_id", joblet.identity.job_id);
            return Some(OperationEvent::Failed(failure.because(cause)));
        }
        if error.find_attribute("fatal").and_then(Value::as_bool) == Some(true) {
            let failure = Failure::new("Job failed with fatal error");
            return Some(OperationEvent::Failed(failure.because(cause)));
        }
        if self.root.suspend_on_job_failure {
            let failure = Failure::new(
                "Job failed; suspending operation since \"suspend_on_job_failure\" spec option is set",
            );
            return Some(OperationEvent::Suspend(failure.because(cause)));
        }
        let limit = self.root.max_failed_job_count;
        if i64::try_from(self.failed_job_count).is_ok_and(|n| n >= limit) {
            let failure = Failure::coded(code::MAX_FAILED_JOBS_LIMIT_EXCEEDED, "Failed jobs limit exceeded");
            let failure = failure.with("max_failed_job_count", limit);
            return Some(OperationEvent::Failed(failure.because(cause)));
        }
        if self.root.ban_nodes_with_failed_jobs && self.banned_nodes.insert(joblet.node.to_string()) {
            self.dirty = true;
        }
        None
    }

    /// Another limit of failed jobs. Those that there are count: too many of them end the operation at once.
    pub fn set_max_failed_job_count(&mut self, limit: i64) -> Option<OperationEvent> {
        self.root.max_failed_job_count = limit;
        let too_many =
            self.failed_job_count > 0 && i64::try_from(self.failed_job_count).is_ok_and(|n| n >= limit);
        if self.life != Life::Running || !too_many {
            return None;
        }
        self.close_operation();
        let failure = Failure::coded(code::MAX_FAILED_JOBS_LIMIT_EXCEEDED, "Failed jobs limit exceeded");
        Some(OperationEvent::Failed(failure.with("max_failed_job_count", limit)))
    }

    /// Fails the operation when all the nodes that could run it are banned (`fail_on_all_nodes_banned`).
    /// The caller knows the nodes; it asks after a failure that banned one.
    pub fn check_banned_nodes<'a>(
        &mut self,
        mut online: impl Iterator<Item = &'a str>,
    ) -> Option<OperationEvent> {
        let applies =
            self.life == Life::Running && self.root.fail_on_all_nodes_banned && !self.banned_nodes.is_empty();
        if !applies || !online.all(|address| self.banned_nodes.contains(address)) {
            return None;
        }
        self.close_operation();
        let failure = Failure::new("All online nodes that match the operation's filter have been banned");
        let banned: Vec<&str> = self.banned_nodes().collect();
        Some(OperationEvent::Failed(failure.with("banned_nodes", banned)))
    }
}

/// Something that every job of the task needs is not on the server any more (S20): no run can begin.
fn lost_content(error: &Failure, joblet: &Joblet) -> Option<Failure> {
    error.find_attribute("missing_blob")?;
    let text = "A file or table that jobs of the operation read has lost its content";
    Some(Failure::new(text).with("task_name", &*joblet.identity.task).because(located(error, joblet)))
}

/// The job's error with its id and node.
pub(super) fn located(error: &Failure, joblet: &Joblet) -> Failure {
    let mut error = error.clone();
    let facts = [("job_id", Value::from(joblet.identity.job_id)), ("host", Value::from(&*joblet.node))];
    for (name, value) in facts {
        if !error.attributes.contains(name) {
            error.attributes.insert(name, value);
        }
    }
    error
}
