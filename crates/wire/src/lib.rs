//! The node protocol: what a node and the server say to each other.
//!
//! One stream in each direction per node. The node opens it and says [`NodeMessage::Hello`] with
//! everything that runs on it; the server answers [`ServerMessage::Welcome`] (or `Refuse`), and from
//! then on both sides push what is new at once. Heartbeats exist for liveness and usage only.
//!
//! Every message may be repeated after a reconnection and must be harmless the second time: jobs
//! are keyed by id, a finished job is reported until the server releases it, and the server
//! releases it only when its end is durable. Order inside one stream is kept.
//!
//! The types here are plain Rust; their protobuf form for gRPC is in [`proto`] (feature `grpc`), so
//! that a node agent in another language is possible and the pure crates stay free of it.
#![forbid(unsafe_code)]

#[cfg(feature = "grpc")]
pub mod proto;

use vocab::{
    AbortReason, Failure, Guid, InterruptionReason, JobDescription, JobId, JobIdentity, JobOutcome, JobPhase,
    JobStatistics, Resources, ShellAnswer, ShellRequest, Span, Time, UidRange,
};

/// Version of the protocol; the server refuses a node with another major version.
pub const PROTOCOL_VERSION: u32 = 1;

/// From a node to the server.
#[derive(Clone, PartialEq, Debug)]
pub enum NodeMessage {
    /// First message of every connection.
    Hello(Hello),
    /// Periodic: liveness, limits, usage.
    Heartbeat(Heartbeat),
    /// What happened to jobs, sent at once, several in one message when they come together.
    Jobs(Vec<JobEvent>),
    /// The node takes no more jobs and ends those it has. When its stream ends it is gone, not just
    /// away: nobody waits for it.
    Leaving,
    /// Answer to [`ServerMessage::ReadStderr`].
    Stderr {
        /// The request's number.
        request_id: u64,
        /// The bytes that were asked for (fewer if there are no more), or why there are none.
        result: Result<Vec<u8>, Failure>,
    },
    /// Answer to [`ServerMessage::Shell`].
    Shell {
        /// The request's number.
        request_id: u64,
        /// What the shell says, or why it does not.
        result: Result<ShellAnswer, Failure>,
    },
}

/// Who the node is, what it has, and all jobs that it holds: running and finished but unreleased.
#[derive(Clone, PartialEq, Debug)]
pub struct Hello {
    /// [`PROTOCOL_VERSION`] of the node.
    pub protocol_version: u32,
    /// Unique name of the node in the cluster, `host:port`.
    pub address: String,
    /// Differs between lives of the node agent (start time in microseconds).
    pub incarnation: u64,
    /// What it offers.
    pub resource_limits: Resources,
    /// Tags for node filters; the address itself is always one.
    pub tags: Vec<String>,
    /// Job environment in use: `hybrid`, `cgroup_v2`, `cgroup_v1`, `rootless`, `simple`.
    pub job_environment: String,
    /// What is wrong or not enforced.
    pub alerts: Vec<Failure>,
    /// Bytes of disk that jobs may ask for together; `None` if the node does not count them. Nodes of older versions do
    /// not say it.
    pub disk_capacity: Option<i64>,
    /// When the node says this: time since the start of its host, also while that was suspended. It comes back in
    /// [`ServerMessage::Heard`]. Zero from nodes of older versions.
    pub stamp: Span,
    /// Data directory of the node: another one knows nothing of jobs of the one before. Empty from nodes of older versions.
    pub data_id: String,
    /// The node starts no job as another user of its host than [`StartJob::uid`] or its own user. False from nodes of older
    /// versions, which give jobs the users of slots.
    pub knows_job_uids: bool,
    /// Does the node keep users apart, since they need not trust each other? `None` from nodes of older versions.
    pub authentication: Option<bool>,
    /// Jobs that are waiting, running or being cleaned up.
    pub running: Vec<JobReport>,
    /// Finished jobs that no server has released yet.
    pub finished: Vec<FinishedJob>,
}

/// Periodic report.
#[derive(Clone, PartialEq, Debug)]
pub struct Heartbeat {
    /// Current limits.
    pub resource_limits: Resources,
    /// Running and releasing jobs.
    pub resource_usage: Resources,
    /// What is wrong at the moment.
    pub alerts: Vec<Failure>,
    /// All unfinished jobs, so that the server notices the missing ones.
    pub jobs: Vec<JobReport>,
    /// Finished jobs that were reported and not released yet, so that a lost release is repeated.
    pub unreleased: Vec<JobId>,
    /// As in [`Hello`].
    pub stamp: Span,
    /// The newest extension of leases that the node has heard of; zero if there was none.
    pub leases_extended_until: Time,
}

/// State of an unfinished job.
#[derive(Clone, PartialEq, Debug)]
pub struct JobReport {
    /// Which job.
    pub identity: JobIdentity,
    /// What the scheduler granted when the job started.
    pub granted: Resources,
    /// What the node accounts now: grows with memory use, changes with the CPU monitor.
    pub resource_usage: Resources,
    /// Where it is in its life.
    pub phase: JobPhase,
    /// When the node accepted it.
    pub accepted_time: Time,
    /// When the user's process started.
    pub start_time: Option<Time>,
    /// Newest statistics; empty in most heartbeats.
    pub statistics: Option<JobStatistics>,
    /// Bytes of stderr so far.
    pub stderr_size: u64,
    /// Its place on the node, if it has one.
    pub slot_index: Option<u32>,
}

/// News about one job.
#[derive(Clone, PartialEq, Debug)]
pub enum JobEvent {
    /// The user's process runs.
    Started {
        /// Which job.
        job_id: JobId,
        /// When its process started.
        start_time: Time,
        /// Its place on the node.
        slot_index: Option<u32>,
    },
    /// What the node accounts for the job has changed.
    ResourceUsage {
        /// Which job.
        job_id: JobId,
        /// The new vector.
        resource_usage: Resources,
    },
    /// The job is over; its processes are dead.
    Finished(Box<FinishedJob>),
}

/// End of a job. Repeated in every [`Hello`] until released.
#[derive(Clone, PartialEq, Debug)]
pub struct FinishedJob {
    /// Which job.
    pub identity: JobIdentity,
    /// What the scheduler granted when the job started; nothing if the node does not know the job.
    pub granted: Resources,
    /// How it ended.
    pub outcome: JobOutcome,
    /// When the user's process started; absent if it never did.
    pub start_time: Option<Time>,
    /// When it was over.
    pub finish_time: Time,
    /// Final statistics.
    pub statistics: JobStatistics,
    /// All bytes that the job wrote to stderr (more than is kept, perhaps).
    pub stderr_size: u64,
    /// The kept stderr, if it is at most [`INLINE_STDERR_MAX`] bytes long; longer ones were uploaded
    /// to the server before this message.
    pub stderr: Option<Vec<u8>>,
    /// Bytes of what a failed job was reading, at most [`vocab::job::FAIL_CONTEXT_MAX`]; they were uploaded
    /// before.
    pub fail_context_size: u64,
    /// Its place on the node, if it had one. Nodes of older versions do not say it.
    pub slot_index: Option<u32>,
}

/// Longest stderr that travels inside [`FinishedJob`].
pub use vocab::job::INLINE_STDERR_MAX;

/// From the server to a node.
#[derive(Clone, PartialEq, Debug)]
pub enum ServerMessage {
    /// The node is registered; heartbeats are wanted at this period.
    Welcome {
        /// Period of heartbeats.
        heartbeat_period: Span,
        /// Users of the host that jobs run as. `None` from servers of older versions.
        job_uids: Option<JobUids>,
    },
    /// The node is not wanted; it keeps its jobs, waits and tries again.
    Refuse(Failure),
    /// The server has heard the node: leases of its jobs begin at that time.
    Heard {
        /// Where leases begin, on the node's own clock: the newest stamp of the node, and later if the leases are extended.
        from: Span,
        /// Leases are extended to this time, on the server's clock; zero if they were never extended. For the next heartbeat.
        extended_until: Time,
    },
    /// Start these jobs.
    Start(Vec<StartJob>),
    /// Stop these jobs now. An unknown job is answered with a `Finished` event, reason `disappeared_from_node`.
    Abort(Vec<AbortJob>),
    /// Ask a job to stop; abort it when it has not after the timeout.
    Interrupt {
        /// Which job.
        job_id: JobId,
        /// How long it may take.
        timeout: Span,
        /// Why.
        reason: InterruptionReason,
        /// Shown in the job's error when it is aborted for not stopping in time.
        text: String,
    },
    /// End a job as failed, "Job failed by external request" (jobs-and-nodes.md 3.9; an operation's time limit).
    Fail {
        /// Which job.
        job_id: JobId,
        /// The cause, becomes an inner error.
        error: Failure,
    },
    /// The ends of these jobs are durable: forget them.
    Release(Vec<JobId>),
    /// Read a part of the kept stderr of a job that the node holds, running or not.
    ReadStderr {
        /// Comes back in the answer.
        request_id: u64,
        /// Which job.
        job_id: JobId,
        /// First byte, counted from the beginning of the kept text.
        offset: u64,
        /// At most this many bytes.
        limit: u64,
    },
    /// For a shell beside a running job (http-api.md 8.7).
    Shell {
        /// Comes back in the answer.
        request_id: u64,
        /// Which job.
        job_id: JobId,
        /// What is wanted.
        request: ShellRequest,
    },
}

/// Users of the host that jobs of a cluster run as, on nodes that give jobs users of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobUids {
    /// The cluster that they belong to.
    pub cluster_id: Guid,
    /// All that jobs may ever get.
    pub range: UidRange,
    /// The beginning of `range` that the node claims at once on its host, for all nodes of the cluster there. More is claimed
    /// when a job with another uid comes.
    pub claim: UidRange,
}

/// One job to start.
#[derive(Clone, PartialEq, Debug)]
pub struct StartJob {
    /// Which job.
    pub identity: JobIdentity,
    /// What the scheduler granted.
    pub resources: Resources,
    /// What to run.
    pub description: JobDescription,
    /// How long it may wait for its resources; none: as the node likes.
    pub waiting_timeout: Option<Span>,
    /// A job of its task has started on another node: an abort that this node causes speaks against the node.
    pub has_started_elsewhere: bool,
    /// How long the job may go on without a [`ServerMessage::Heard`]; `None` if its unit of work may run twice at once.
    pub lease: Option<Span>,
    /// User and group of the host that the job runs as, of the job's user in the cluster. Nodes that give jobs no users of their
    /// own do not use it. `None` from servers of older versions.
    pub uid: Option<u32>,
}

/// One job to stop.
#[derive(Clone, PartialEq, Debug)]
pub struct AbortJob {
    /// Which job.
    pub job_id: JobId,
    /// Why.
    pub reason: AbortReason,
    /// Text for people, becomes the error's message.
    pub text: String,
}
