//! What users do to an operation: the five actions, and how they name it.

use crate::{Effect, Kernel, OperationRef};
use vocab::{AbortReason, Failure, OperationId, OperationState, Time, code};

impl Kernel {
    /// `abort_operation`.
    pub(crate) fn abort_operation(
        &mut self,
        now: Time,
        operation: &OperationRef,
        message: Option<String>,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let id = self.live_operation(operation)?;
        let mut error = Failure::new("Operation aborted by user request");
        if let Some(text) = message {
            error = error.because(Failure::new(text));
        }
        self.finish_operation(now, id, OperationState::Aborted, Some(error), out);
        Ok(())
    }

    /// `suspend_operation`.
    pub(crate) fn suspend_operation(
        &mut self,
        now: Time,
        operation: &OperationRef,
        abort_running_jobs: bool,
        reason: Option<String>,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let id = self.live_operation(operation)?;
        let alert = reason.map(|r| Failure::new(format!("Operation suspended by user request: {r}")));
        self.suspend(now, id, alert);
        if abort_running_jobs
            && let Some(event) = self.abort_all_jobs(now, id, AbortReason::OperationSuspended, out)
        {
            self.operation_event(now, id, event, out);
        }
        Ok(())
    }

    pub(super) fn suspend(&mut self, now: Time, id: OperationId, alert: Option<Failure>) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        operation.suspended = true;
        operation.dirty = true;
        if let Some(alert) = alert {
            operation.raise_alert(now, "operation_suspended", alert);
        }
        self.tell_scheduler(|s| s.set_suspended(id, true));
        self.pending_work.dirty.insert(id);
        self.pending_work.update = true;
    }

    /// `resume_operation`.
    pub(crate) fn resume_operation(&mut self, now: Time, operation: &OperationRef) -> Result<(), Failure> {
        let id = self.live_operation(operation)?;
        let Some(operation) = self.operations.get_mut(&id) else { return Ok(()) };
        if !operation.suspended {
            let message = format!("Operation {id} is not suspended");
            return Err(Failure::coded(code::INVALID_OPERATION_STATE, message).with("operation_id", id));
        }
        operation.suspended = false;
        operation.dirty = true;
        operation.clear_alert(now, "operation_suspended");
        self.tell_scheduler(|s| s.set_suspended(id, false));
        self.pending_work.dirty.insert(id);
        self.pending_work.update = true;
        self.pending_work.schedule = true;
        Ok(())
    }

    /// `complete_operation`.
    pub(crate) fn complete_operation(
        &mut self,
        now: Time,
        operation: &OperationRef,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let id = self.live_operation(operation)?;
        let Some(operation) = self.operations.get_mut(&id) else { return Ok(()) };
        if operation.state != OperationState::Running {
            let message = format!(
                "Operation {id} cannot be completed: its state is \"{}\", expected \"running\"",
                operation.state
            );
            return Err(Failure::coded(code::INVALID_OPERATION_STATE, message).with("state", operation.state));
        }
        let error = Failure::new("Operation completed by user request");
        operation.raise_alert(now, "operation_completed_by_user_request", error);
        self.finish_operation(now, id, OperationState::Completed, None, out);
        Ok(())
    }

    /// The id that a reference means, finished or not.
    pub(crate) fn find_operation(&self, operation: &OperationRef) -> Result<OperationId, Failure> {
        match operation {
            OperationRef::Id(id) if self.operations.contains_key(id) || self.finished.contains(*id) => {
                Ok(*id)
            }
            OperationRef::Id(id) => Err(no_such_operation(&id.to_string())),
            OperationRef::Alias(alias) => {
                self.aliases.get(alias).copied().ok_or_else(|| no_such_operation(alias))
            }
        }
    }

    /// An operation that users may still act on.
    pub(crate) fn live_operation(&self, operation: &OperationRef) -> Result<OperationId, Failure> {
        let id = self.find_operation(operation)?;
        if let Some(summary) = self.finished.get(id) {
            let message = format!("Operation {id} is already finished: its state is \"{}\"", summary.state);
            return Err(Failure::coded(code::NO_SUCH_OPERATION, message)
                .with("operation_id", id)
                .with("state", summary.state));
        }
        Ok(id)
    }
}

/// Unknown id or alias: 1915 with an inner 200 (http-api.md 3.2 [X]).
fn no_such_operation(name: &str) -> Failure {
    Failure::coded(code::API_NO_SUCH_OPERATION, format!("No such operation {name}"))
        .with("operation", name)
        .because(Failure::coded(code::NO_SUCH_OPERATION, format!("No such operation {name}")))
}
