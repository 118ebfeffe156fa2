//! `patch_operation_spec` (http-api.md 8.5): the few options of a spec that may change while the operation runs.

use crate::{Effect, Kernel, OperationRef};
use vocab::{Failure, Time};
use yson::Value;

/// Paths in the spec that may be patched.
const PATCHABLE: [&str; 1] = ["/max_failed_job_count"];

impl Kernel {
    /// All patches, or none.
    pub(crate) fn patch_operation_spec(
        &mut self,
        now: Time,
        operation: &OperationRef,
        patches: &[(String, Value)],
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let id = self.live_operation(operation)?;
        let Some(operation) = self.operations.get_mut(&id) else { return Ok(()) };
        if let Some((path, _)) = patches.iter().find(|(path, _)| !PATCHABLE.contains(&path.as_str())) {
            let text =
                format!("Option {path:?} of the spec cannot be patched, expected one of {PATCHABLE:?}");
            return Err(Failure::new(text).with("path", path.as_str()));
        }
        // Of many patches of the only option the last one counts.
        let Some((_, value)) = patches.last() else { return Ok(()) };
        controller::spec::set_max_failed_job_count(&mut operation.spec, value, &self.controller_options)
            .map_err(|inner| Failure::new("The patched spec is refused").because(inner))?;
        let limit = operation.spec.spec.root.max_failed_job_count;
        let event = operation.controller.set_max_failed_job_count(limit);
        // The part of the record that hardly ever changes is written anew.
        operation.spec_seq = None;
        operation.dirty = true;
        self.pending_work.dirty.insert(id);
        if let Some(event) = event {
            self.operation_event(now, id, event, out);
        }
        Ok(())
    }
}
