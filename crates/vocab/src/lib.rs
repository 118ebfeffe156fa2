//! Words that every crate shares: identifiers, time, resources, states and failures.
//!
//! Everything here is plain data: no IO, no clock, no policy. Names, units and text forms are those
//! of the public API, so that a value prints the same in a log, in the Orchid and on the wire.
#![forbid(unsafe_code)]

pub mod batch;
pub mod blame;
pub mod clock;
pub mod environment;
pub mod failure;
pub mod id;
pub mod job;
pub mod join_token;
pub mod lease;
pub mod planted;
pub mod resources;
pub mod sandbox_path;
pub mod shell;
pub mod states;
pub mod time;
pub mod uids;

pub use batch::{Batch, Op, Table};
pub use blame::{Blame, Consequences};
pub use clock::SteadyClock;
pub use environment::Environment;
pub use failure::{Failure, code};
pub use id::{AllocationId, Guid, GuidGenerator, JobId, ObjectId, OperationId, object_type};
pub use job::{
    Artifact, CpuMonitorChange, CpuMonitorReport, CpuMonitorStatistics, DiskUsage, FileSystemRequest,
    JobDescription, JobIdentity, JobOutcome, JobStatistics, JobTicket, OutputTable, PipeUse,
    PreparationMeasures, RowFlow, StorageRequests, Summary, TableIo, TableStatistics, TmpfsUsage,
    TmpfsVolume,
};
pub use join_token::JoinToken;
pub use lease::Lease;
pub use resources::{Cpu, RESOURCES, Resource, Resources, Share, Volume};
pub use shell::{ShellAnswer, ShellRequest};
pub use states::{AbortReason, InterruptionReason, JobPhase, JobState, OperationState, OperationType};
pub use time::{Span, Time};
pub use uids::UidRange;
