//! What the core wants done.

use std::sync::Arc;

use vocab::{
    AbortReason, Artifact, Failure, FileSystemRequest, InterruptionReason, JobId, Lease, PreparationMeasures,
    ShellRequest, Span, Time,
};
use wire::{FinishedJob, JobUids, NodeMessage, StartJob};

/// Something to do. Effects of one call are to be carried out in order; those that take time are
/// answered by an input.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeEffect {
    /// Send to the server; dropped without harm if the connection is gone.
    Send(NodeMessage),
    /// Call back with [`crate::NodeInput::Wake`] then; replaces an earlier wish.
    WakeAt(Time),
    /// Claim users of the host for the jobs of this cluster. Answer: `UidsClaimed`, one for each; no job starts before.
    ClaimUids(JobUids),
    /// Find out which of these ports are in use on the host, by a bind. Answer: `PortsProbed`.
    ProbePorts {
        /// Which job wants them.
        job_id: JobId,
        /// The ports.
        ports: Vec<u16>,
    },
    /// Bring a file into the cache. Answer: `ArtifactFetched`. The edge merges equal ones.
    FetchArtifact {
        /// Which job wants it.
        job_id: JobId,
        /// What.
        artifact: Artifact,
    },
    /// Make an empty sandbox in the slot and place the job's files. Answer: `SandboxReady`.
    PrepareSandbox {
        /// Which job.
        job_id: JobId,
        /// Where.
        slot: u32,
        /// What to place; all of them are in the cache.
        artifacts: Vec<Artifact>,
        /// What else it wants of its file systems; its layers are in the cache.
        file_system: FileSystemRequest,
    },
    /// Start the proxy. Answer: `ProxyConnected`, or `SpawnFailed`, or `ProxyLost`.
    SpawnProxy {
        /// Which job.
        job_id: JobId,
        /// Where its sandbox is.
        slot: u32,
        /// Indices of its devices.
        gpus: Vec<u32>,
        /// Its ports.
        ports: Vec<u16>,
        /// Its lease so far, if it has one.
        lease: Option<Lease>,
        /// The whole order.
        start: Arc<StartJob>,
    },
    /// Tell a proxy something. If it is not connected the core repeats it when it calls.
    ProxySend(JobId, ProxyOrder),
    /// Kill everything of the job, proxy included, and return only then. Answer: `ContainerKilled`.
    KillContainer(JobId),
    /// Bring the rows that the job is to read. Answer: `ArtifactFetched`.
    FetchRows {
        /// Which job.
        job_id: JobId,
        /// Where they shall lie.
        slot: u32,
    },
    /// Send what the job has left to the server. Answer: `Uploaded`.
    Upload {
        /// Which job.
        job_id: JobId,
        /// Where it lies.
        slot: u32,
        /// The kept stderr.
        stderr: bool,
        /// The chunks of its output tables.
        rows: bool,
        /// What it was reading when it failed.
        fail_context: bool,
    },
    /// Answer a request for stderr on the stream; the job has a slot.
    ReadStderr {
        /// The request's number.
        request_id: u64,
        /// Which job.
        job_id: JobId,
        /// Where it lies.
        slot: u32,
        /// First byte.
        offset: u64,
        /// At most this many.
        limit: u64,
    },
    /// Pass a request on to the shells beside a running job; the answer goes to the stream.
    AskShell {
        /// The request's number.
        request_id: u64,
        /// Which job.
        job_id: JobId,
        /// What is wanted.
        request: ShellRequest,
    },
    /// Empty the sandbox, remove groups and mounts. Answer: `CleanedUp`.
    Cleanup {
        /// Which job.
        job_id: JobId,
        /// Where.
        slot: u32,
    },
    /// To be logged: the server has confirmed nothing for half of the shortest lease.
    LeaseIsHalfOver {
        /// Exclusive jobs.
        jobs: usize,
        /// Time to the end of the shortest lease.
        left: Span,
    },
    /// Write down where leases begin: the next agent on the same boot of the host is told
    /// ([`crate::NodeCore::recall_confirmed`]). Effects that follow rely on it.
    KeepConfirmed {
        /// On the node's clock since the start of its host.
        from: Span,
    },
    /// Write down what is needed to find the job again after a restart.
    WriteRecord(Box<JobRecord>),
    /// Forget the job: remove its record, result and stderr. Its slot may be given away at once.
    RemoveRecord {
        /// Which job.
        job_id: JobId,
        /// Where.
        slot: u32,
    },
}

/// What a proxy can be told.
#[derive(Clone, PartialEq, Debug)]
pub enum ProxyOrder {
    /// Ask the user's processes to end, by the job's signal.
    Interrupt {
        /// Why.
        reason: InterruptionReason,
        /// How long they may take; the core aborts after it.
        timeout: Span,
        /// For the error of a job that does not.
        text: String,
    },
    /// Kill the user's processes, write the result, report the end.
    Abort {
        /// Why.
        reason: AbortReason,
        /// For the error of the result.
        text: String,
    },
    /// The server has confirmed that it hears the node: the job's lease begins there, on the node's clock since the start of its
    /// host.
    Heard {
        /// Where.
        from: Span,
    },
    /// The same as an abort, but the job has failed.
    Fail {
        /// The cause.
        error: Option<Failure>,
    },
}

/// What survives the agent on disk for each job that has a slot. Phases after the spawn are the
/// proxy's own to write down; the record changes again when files have come, and when the core itself decides
/// the end.
#[derive(Clone, PartialEq, Debug)]
pub struct JobRecord {
    /// The order.
    pub start: Arc<StartJob>,
    /// When it came.
    pub accepted_time: Time,
    /// When resources were granted.
    pub acquired_time: Time,
    /// Directory index.
    pub slot: u32,
    /// Device indices.
    pub gpus: Vec<u32>,
    /// Ports.
    pub ports: Vec<u16>,
    /// When its files were there, if it has any.
    pub fetched_time: Option<Time>,
    /// What its files and its root file system took.
    pub preparation: PreparationMeasures,
    /// The end, if it was decided here and not by the proxy's result.
    pub end: Option<Box<FinishedJob>>,
}
