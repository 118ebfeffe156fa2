//! What the core is told.

use vocab::{Cpu, Failure, JobId, JobOutcome, JobStatistics, Resources, Time};
use wire::ServerMessage;

use crate::JobRecord;

/// Something happened. Inputs about jobs that are unknown or past the stage in question are
/// harmless: the edge may repeat itself and may be late.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeInput {
    /// Jobs of an earlier life of this agent, found at start. Comes first, once; no job is started before.
    Recovered(Vec<RecoveredJob>),
    /// A stream to the server is open; answered with `Hello`.
    Connected,
    /// The stream is gone; nothing can be sent until the next [`NodeInput::Connected`].
    Disconnected,
    /// The server spoke.
    Server(ServerMessage),
    /// A time that was asked for by [`crate::NodeEffect::WakeAt`] has come. Early and needless ones are harmless.
    Wake,
    /// [`crate::NodeEffect::WriteRecord`] failed: the job must not be started, it could not be found again.
    RecordFailed {
        /// Which job.
        job_id: JobId,
        /// Why.
        error: Failure,
    },
    /// Answer to [`crate::NodeEffect::ClaimUids`]. An error keeps the node from starting jobs until a later claim succeeds.
    UidsClaimed(Result<(), Failure>),
    /// Answer to [`crate::NodeEffect::ProbePorts`].
    PortsProbed {
        /// Which job.
        job_id: JobId,
        /// Those that are in use by others.
        busy: Vec<u16>,
    },
    /// One file of the job's list is in the cache, or the rows of its input are there, or cannot be.
    ArtifactFetched {
        /// Which job.
        job_id: JobId,
        /// Error 1113 or the like.
        result: Result<Supply, Failure>,
    },
    /// The sandbox is complete, or cannot be made.
    SandboxReady {
        /// Which job.
        job_id: JobId,
        /// Error 1107, 1108 or 1112.
        result: Result<(), Failure>,
    },
    /// No proxy could be spawned.
    SpawnFailed {
        /// Which job.
        job_id: JobId,
        /// Why.
        error: Failure,
    },
    /// A proxy called, for the first time or again after it lost us.
    ProxyConnected {
        /// Which job.
        job_id: JobId,
    },
    /// The user's process runs.
    JobStarted {
        /// Which job.
        job_id: JobId,
        /// Since when.
        start_time: Time,
    },
    /// Periodic news of a running job.
    JobProgress {
        /// Which job.
        job_id: JobId,
        /// So far.
        statistics: JobStatistics,
        /// Bytes of stderr so far.
        stderr_size: u64,
    },
    /// The accounted usage of a running job changed: its CPU guarantee, or the memory it needs (3.4).
    JobUsage {
        /// Which job.
        job_id: JobId,
        /// CPU guarantee, if it changed.
        cpu: Option<Cpu>,
        /// Memory of user job and proxy in bytes; the largest one counts (3.4).
        total_peak: Option<i64>,
    },
    /// The proxy's word, heard or read from the file it left; nothing of the job lives any more.
    JobEnded {
        /// Which job.
        job_id: JobId,
        /// How it ended.
        result: JobResult,
    },
    /// The proxy is dead and left no result.
    ProxyLost {
        /// Which job.
        job_id: JobId,
        /// What becomes of the job, unless it was to end anyway (3.8).
        outcome: JobOutcome,
    },
    /// Answer to [`crate::NodeEffect::KillContainer`].
    ContainerKilled {
        /// Which job.
        job_id: JobId,
        /// What the job left behind; an error means that processes survive.
        result: Result<Remains, Failure>,
    },
    /// Answer to [`crate::NodeEffect::Upload`].
    Uploaded {
        /// Which job.
        job_id: JobId,
        /// An error while connected means that the server will not have it.
        result: Result<(), Failure>,
    },
    /// Answer to [`crate::NodeEffect::Cleanup`].
    CleanedUp {
        /// Which job.
        job_id: JobId,
        /// An error disables the slot for the life of the agent.
        result: Result<(), Failure>,
    },
    /// The node's limits changed.
    ResourceLimits(Resources),
    /// Memory of the host that is free now, bytes; wanted about once a second by a node with a
    /// `free_memory_watermark` (3.3).
    FreeMemory(i64),
    /// A fault that was known from the start has passed: its alert, by its message, goes.
    FaultPassed(String),
    /// The host is about to run out of memory, whatever the ledger says (3.5).
    MemoryPressure,
    /// The agent is to end: abort all jobs and accept no more.
    StopJobs,
}

/// Where a file of a job came from, and its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Supply {
    /// Where from.
    pub source: Source,
    /// Bytes.
    pub size: u64,
}

/// Where a file of a job came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// It was in the cache, or on its way there for another job.
    Cache,
    /// It was fetched into the cache.
    Server,
    /// It was fetched past the cache (`bypass_artifact_cache`).
    Bypass,
    /// It is no file, but rows of tables.
    Rows,
}

/// What a proxy says at the end.
#[derive(Clone, PartialEq, Debug)]
pub struct JobResult {
    /// How the job ended.
    pub outcome: JobOutcome,
    /// When the user's process started, if it did.
    pub start_time: Option<Time>,
    /// When all was over.
    pub finish_time: Time,
    /// Final statistics; the node's own parts are filled in by the core.
    pub statistics: JobStatistics,
    /// All bytes written to stderr.
    pub stderr_size: u64,
    /// What is kept of stderr.
    pub stderr: KeptStderr,
    /// Processes of the job could not be killed.
    pub survivors: bool,
    /// Bytes of what a failed job was reading; they lie with the job and are uploaded.
    pub fail_context_size: u64,
}

/// What is left of a job whose proxy did not speak at the end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Remains {
    /// All bytes written to stderr, as far as is known.
    pub stderr_size: u64,
    /// What is kept of stderr.
    pub stderr: KeptStderr,
}

/// The kept part of a job's stderr.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum KeptStderr {
    /// Nothing was written.
    #[default]
    None,
    /// Short enough to travel in the message.
    Inline(Vec<u8>),
    /// Longer than [`wire::INLINE_STDERR_MAX`]: it lies with the job and is uploaded.
    OnDisk,
}

/// A job found at start (9.2).
#[derive(Clone, PartialEq, Debug)]
pub struct RecoveredJob {
    /// What was written down.
    pub record: JobRecord,
    /// What became of it meanwhile.
    pub fate: Fate,
    /// Processes of the job could not be killed at the start.
    pub survivors: bool,
}

/// What a proxy wants its job to be counted with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holds {
    /// CPU guarantee of the container.
    pub cpu: Cpu,
    /// Most memory that job and proxy together were seen with (3.4).
    pub total_peak: i64,
}

/// What became of a job while no agent watched.
#[derive(Clone, PartialEq, Debug)]
#[allow(clippy::large_enum_variant)] // a few of them, once in the life of a node
pub enum Fate {
    /// Its proxy lives and will call.
    Alive {
        /// When the user's process started, if it did.
        start_time: Option<Time>,
        /// What its proxy said last about what it holds; none if it did not come to that.
        holds: Option<Holds>,
    },
    /// Its proxy left a result.
    Ended(JobResult),
    /// Neither; whatever was left of it has been killed. The text says what is known.
    Lost(String),
}
