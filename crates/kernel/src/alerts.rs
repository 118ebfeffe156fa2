//! Alerts of operations that come and go by themselves (scheduling.md 20).

use crate::Kernel;
use vocab::{Failure, JobId, OperationId, Span, Time};

/// An order to start was given up: its node never said a word about it (17.3).
const SCHEDULE_JOB_TIMED_OUT: &str = "schedule_job_timed_out";
/// For so long after the last one.
const TIMED_OUT_SHOWN: Span = Span::from_secs(15 * 60);

impl Kernel {
    /// Raises `schedule_job_timed_out`.
    pub(crate) fn note_timed_out(&mut self, now: Time, id: OperationId, job: JobId, node: &str, limit: Span) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        let message = format!(
            "Scheduling of a job took longer than \"schedule_allocation_time_limit\" ({limit}): node {node} has \
             not confirmed it"
        );
        let alert = Failure::new(message).with("job_id", job).with("node", node).with("time", now);
        operation.alerts.insert(SCHEDULE_JOB_TIMED_OUT.into(), alert);
        operation.dirty = true;
        self.pending_work.dirty.insert(id);
    }

    /// Takes away alerts whose time is over; those of the life before carry their time with them.
    pub(crate) fn clear_old_alerts(&mut self, now: Time) {
        for operation in self.operations.values_mut() {
            let Some(alert) = operation.alerts.get(SCHEDULE_JOB_TIMED_OUT) else { continue };
            let raised = alert.attributes.get("time").and_then(|t| Time::parse(t.as_str()?));
            if raised.is_none_or(|raised| now.since(raised) >= TIMED_OUT_SHOWN) {
                operation.alerts.remove(SCHEDULE_JOB_TIMED_OUT);
                operation.dirty = true;
                self.pending_work.dirty.insert(operation.id);
            }
        }
    }
}
