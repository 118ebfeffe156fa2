//! Operations: specs, tasks, jobs, retries, statistics.
//!
//! One [`OperationController`] per operation turns its spec into jobs and the ends of jobs into
//! retries, statistics, progress and, some day, the end of the operation. It knows allocations
//! granted to its operation and events of its jobs. It does not know pools, shares, other
//! operations, free resources of nodes, clocks or stores: `now` is an argument, and what must
//! happen comes back as a value.
//!
//! # Order of calls
//!
//! ```text
//! spec::parse(type, map, options)              typed spec and its public forms, or the first error
//! OperationController::new(id, spec, ...)
//!   file_requests() -> set_artifacts(task, ..) once the metadata tree has resolved the paths
//!   set_tables(task, ..)                       the same for tables; their rows are cut into units ([`cut`])
//! loop:
//!   demand()                                   pushed to the scheduler whenever it has changed
//!   settle(now, grant)                         a granted allocation becomes a job
//!   job_started, job_statistics                while it runs
//!   job_finished(now, report) -> JobVerdict    record for the archive, stderr to keep, news of the operation
//!   take_dirty()                               once per group commit: records of the store to overwrite
//! on OperationEvent::Completed or Failed:      abort_all(now, reason), and the caller ends the operation
//! ```
//!
//! After a restart: [`OperationController::restore`], [`OperationController::adopt_job`] for what
//! nodes hold, [`OperationController::end_revival`].
//!
//! # Where things are
//!
//! * [`spec`]: all options, the full spec, the unrecognized rest.
//! * [`operation`]: the controller itself, by what happens to it.
//! * [`units`], [`cut`](mod@cut), [`counter`], [`memory`], [`statistics`]: its parts, each on its own.
//! * [`job`] and [`record`]: running and finished jobs as others see them.
//!
//! # Invariants
//!
//! * Every unit is pending, running or done; a running unit has one job, or two of which one is the other's copy.
//! * `total = completed + running + pending` in every counter that is shown.
//! * The end of a job is counted once, across restarts too: an open job has its index in the
//!   durable state, a closed one has not.
//! * A finished job costs no memory: its record leaves as a value.
#![forbid(unsafe_code)]

pub mod spec;

pub mod operation;

pub mod counter;
pub mod cut;
pub mod job;
pub mod memory;
pub mod options;
pub mod record;
pub mod statistics;
pub mod units;

mod backoff;
mod copies;
mod durations;
mod environment;
mod explain;
mod figures;
mod open;
mod packed;
mod savings;
mod task;

pub use backoff::BackoffOptions;
pub use figures::{JobFigures, Spent};
pub use job::JobView;
pub use operation::alerts::ALERTS;
pub use operation::{
    AdoptError, Deadline, Demand, FencedUnit, FinishedJob, Grant, HeldJob, JobVerdict, OperationController,
    OperationEvent, Resized, Reuse, Setback, SettleError, StateError, StatePart,
};
pub use options::ControllerOptions;
pub use record::{JobRecord, MalformedRecord};
pub use savings::Savings;
pub use spec::{OperationSpec, ParsedSpec, SchedulingOptions};
