//! Gangs: jobs that only make sense together (jobs-and-nodes.md 6.9).
//!
//! All jobs of an operation belong to its current incarnation. When a ranked job of a gang ends in
//! any way but well, everything starts anew under a new incarnation. Jobs start in fresh
//! allocations: those of the old incarnation are given up.

use super::{JobVerdict, OperationController, OperationEvent};
use vocab::{AbortReason, Failure, OperationId, Time};

impl OperationController {
    /// Begins a new incarnation: other running jobs are aborted, all units are pending again.
    pub(super) fn switch_incarnation(&mut self, now: Time) -> (Vec<JobVerdict>, Option<OperationEvent>) {
        if !self.options.gang_manager_enabled {
            let why = "Switching gang operation to new incarnation is disabled by config";
            return (Vec::new(), Some(OperationEvent::Failed(Failure::new(why))));
        }
        // The records of these jobs name the incarnation that they ran in, so they are closed first.
        let aborted = self.abort_all(now, AbortReason::OperationIncarnationChanged);
        self.incarnation += 1;
        self.incarnation_name = incarnation_name(self.id, self.incarnation);
        self.dirty = true;
        for task in &mut self.tasks {
            task.units.lose_all();
            task.counter.lose_all();
            task.copies.ends.lose_all();
            task.note_completion(now);
            task.dirty = true;
        }
        (aborted, None)
    }

    /// The current incarnation, as jobs see it in `YT_OPERATION_INCARNATION`.
    pub fn incarnation(&self) -> &str {
        &self.incarnation_name
    }

    pub(super) fn has_gangs(&self) -> bool {
        self.tasks.iter().any(|t| t.spec.gang_size.is_some())
    }
}

/// A name that no other incarnation of any operation has: ids are unique, numbers are inside one.
pub(super) fn incarnation_name(id: OperationId, number: u32) -> String {
    let [a, _, _, d] = id.0.0;
    format!("{:x}-{:x}-{number:x}", a ^ number.wrapping_mul(0x9e37_79b9), d)
}
