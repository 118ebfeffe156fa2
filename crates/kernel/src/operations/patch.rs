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
        let mut provided = operation.spec.provided.clone();
        for (path, value) in patches {
            let name = path.strip_prefix('/').filter(|_| PATCHABLE.contains(&path.as_str()));
            let name = name.ok_or_else(|| {
                let text =
                    format!("Option {path:?} of the spec cannot be patched, expected one of {PATCHABLE:?}");
                Failure::new(text).with("path", path.as_str())
            })?;
            provided.insert(name, value.clone());
        }
        if let Some(vault) = &operation.secure_vault {
            provided.insert("secure_vault", vault.clone());
        }
        // As at a restart, which will see the new spec: what was accepted once is not refused for its size.
        let options = self.controller_options.for_any_size();
        let spec = controller::spec::parse(operation.operation_type, &provided, &options)
            .map_err(|inner| Failure::new("The patched spec is refused").because(inner))?;
        let event = operation.controller.set_max_failed_job_count(spec.spec.root.max_failed_job_count);
        operation.spec = spec;
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
