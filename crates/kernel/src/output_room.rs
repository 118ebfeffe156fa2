//! Long stderrs and fail contexts lie on the disk of the server and count for no account. [`Retention`](crate::Retention) bounds
//! those of finished operations together, and those of unfinished ones for each user: what is over the bound is not kept (S15).

use crate::Kernel;
use crate::job_archive::{Left, Stderr};
use vocab::{Failure, OperationId, Time};

/// Alert of an operation some of whose stderrs or fail contexts were not kept.
const NOT_KEPT: &str = "job_output_not_kept";

impl Left {
    /// Bytes of what has a blob of its own.
    fn long_bytes(&self) -> u64 {
        let stderr = match self.stderr {
            Some(Stderr::Blob(size, _)) => size,
            _ => 0,
        };
        stderr + self.fail_context.map_or(0, |context| context.size)
    }

    /// Takes out what has a blob of its own.
    fn take_long(&mut self) -> Left {
        let stderr = self.stderr.take_if(|stderr| matches!(stderr, Stderr::Blob(..)));
        Left { stderr, fail_context: self.fail_context.take() }
    }
}

impl Kernel {
    /// Takes out of what a job has left what its user has no room for, and tells the operation. Its blobs are for the caller
    /// to delete.
    pub(crate) fn take_without_room(
        &mut self,
        now: Time,
        operation: OperationId,
        left: &mut Left,
    ) -> Option<Left> {
        let size = left.long_bytes();
        let user = self.operations.get(&operation).filter(|_| size > 0)?.user.as_str();
        let of_user = self.operations.values().filter(|other| other.user == user);
        let kept: u64 = of_user.map(|other| other.archived_bytes).sum();
        let limit = self.config.retention.max_unfinished_bytes_per_user;
        if kept.saturating_add(size) <= limit {
            return None;
        }
        let text = format!(
            "Stderrs or fail contexts of jobs were not kept: unfinished operations of user {user:?} have {kept} bytes of them, \
             and {limit} are allowed"
        );
        let error = Failure::new(text).with("limit", limit).with("option", "archive_size_per_user");
        if let Some(operation) = self.operations.get_mut(&operation) {
            operation.dirty |= operation.alerts.raise(now, NOT_KEPT, error);
        }
        Some(left.take_long())
    }
}
