//! What a job is, between controller, node and job proxy: its identity, what to run, what it used
//! and how it ended.

use crate::{
    AbortReason, AllocationId, Cpu, Environment, Failure, InterruptionReason, JobId, ObjectId, OperationId,
    Span, Time,
};
use std::sync::Arc;
use yson::{Map, Value};

/// Everything that says *which* job this is. Nodes repeat it in every registration, so that a
/// restarted server can adopt running jobs that it never stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobIdentity {
    /// Unique for ever.
    pub job_id: JobId,
    /// The place it runs in.
    pub allocation_id: AllocationId,
    /// Its operation.
    pub operation_id: OperationId,
    /// Pool tree that the allocation belongs to.
    pub tree: Arc<str>,
    /// Task of the operation.
    pub task: Arc<str>,
    /// Unit of work inside the task, 0-based; the same for every re-run of that unit.
    pub cookie: u32,
    /// Number of the started job in the operation; new for each run.
    pub job_index: u64,
    /// Number of the started job in the task; new for each run.
    pub task_job_index: u64,
    /// Proof that the server gave the job to the node that repeats this; `None` from nodes and servers of older versions, and
    /// where nodes are not told apart.
    pub ticket: Option<JobTicket>,
}

/// A message authentication code of the server over a job's identity and the name of its node. A restarted server adopts a job
/// from the node that has the ticket, and from no other one. Only the server and the node of the job have it: a report with it
/// tells that the job lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobTicket(pub [u8; 16]);

/// A file that must be in the sandbox before the command starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Artifact {
    /// Node of the metadata tree that holds the content.
    pub file_id: ObjectId,
    /// Revision of the content; `(file_id, revision)` never changes its bytes.
    pub revision: u64,
    /// Bytes.
    pub size: u64,
    /// Path inside the sandbox; relative, without `..`, may contain directories.
    pub file_name: String,
    /// Mode 0755 instead of 0644.
    pub executable: bool,
    /// For this job alone: fetched past the cache and copied into the sandbox.
    pub bypass_cache: bool,
}

/// A memory file system in the sandbox.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TmpfsVolume {
    /// Mount point, relative to the sandbox; `.` is the sandbox itself.
    pub path: String,
    /// Bytes.
    pub size: i64,
}

/// What a job wants of its file systems beyond an empty sandbox (jobs-and-nodes.md 4.7, 4.9).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FileSystemRequest {
    /// Memory file systems, none inside another.
    pub tmpfs_volumes: Vec<TmpfsVolume>,
    /// Copy files into the sandbox instead of linking them.
    pub copy_files: bool,
    /// Most bytes on disk that the sandbox may take.
    pub disk_space: Option<i64>,
    /// Most files and directories on disk.
    pub inode_count: Option<i64>,
    /// Archives that make the root file system, topmost first; none: the host's, read-only.
    pub layers: Vec<Artifact>,
    /// The root file system of layers can be written to.
    pub writable_root: bool,
}

/// What to run and within which bounds (jobs-and-nodes.md 5, 8.2).
#[derive(Clone, PartialEq, Debug)]
pub struct JobDescription {
    /// Run as `bash -c <command>` in the sandbox.
    pub command: String,
    /// Variables in order, later ones win; `$(SandboxPath)` is substituted by the node. Includes the
    /// `YT_*` variables that the controller knows; those that only the node knows it adds itself.
    pub environment: Environment,
    /// Files to place in the sandbox.
    pub files: Vec<Artifact>,
    /// CPU guarantee of the container at start.
    pub cpu_limit: Cpu,
    /// CPU cap of the container; without it the job may use idle cores.
    pub cpu_cap: Option<Cpu>,
    /// Bytes that the user's processes may use; above it the job fails.
    pub memory_limit: i64,
    /// Part of the scheduler's request that stands for the user job (lower bound of its accounting).
    pub user_job_memory_reserve: i64,
    /// Part of the scheduler's request that stands for the job proxy.
    pub job_proxy_memory_reserve: i64,
    /// Fails the job after this long, measured from the start of the user's process.
    pub job_time_limit: Option<Span>,
    /// Bytes of stderr that are kept (first and last half).
    pub max_stderr_size: i64,
    /// Signal that asks the job to stop (`SIGINT`, `SIGTERM`, ...); without it the job is not interruptible.
    pub interruption_signal: Option<String>,
    /// Send that signal to the root process only.
    pub signal_root_process_only: bool,
    /// This exit code means "successful, but run my unit again".
    pub restart_exit_code: Option<i32>,
    /// At most this many custom statistics.
    pub custom_statistics_count_limit: u32,
    /// Options of the CPU monitor (jobs-and-nodes.md 1.2); one that is not there has its default.
    pub cpu_monitor: Map,
    /// Mapped file pages count as memory of the job (jobs-and-nodes.md 4.8).
    pub include_memory_mapped_files: bool,
    /// The job proxy gives itself up when it is so many bytes above its reserve.
    pub job_proxy_memory_overcommit_limit: Option<i64>,
    /// Longest time from the grant of resources to the start of the user's process; none: the node's.
    pub prepare_time_limit: Option<Span>,
    /// Ports of the host that the job alone may use (jobs-and-nodes.md 3.10).
    pub port_count: u32,
    /// Memory file systems, bounds on disk, root file system.
    pub file_system: FileSystemRequest,
    /// Tables that it reads and writes; none: neither.
    pub tables: Option<Box<TableIo>>,
}

/// Tables that a job reads and writes (jobs-and-nodes.md 5.2, 8.4).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TableIo {
    /// Rows of its unit of work, all tables together; none: it reads no tables.
    pub input_rows: Option<u64>,
    /// Description of the format of standard input.
    pub input_format: Value,
    /// Description of the format of the output tables.
    pub output_format: Value,
    /// Output tables, in the order of the spec.
    pub outputs: Vec<OutputTable>,
    /// Descriptor of the first of them; the next is three further (5.2).
    pub first_output: u32,
    /// Input that is left unread fails the job.
    pub check_input_fully_consumed: bool,
}

/// What rows of an output table must be.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct OutputTable {
    /// Schema as the user gave it, or the entity.
    pub schema: Value,
    /// Columns by which the rows must be sorted.
    pub sorted_by: Vec<String>,
}

/// What a job has used so far, or in all. Plain numbers: the controller gives them their public
/// paths (jobs-and-nodes.md 7.2).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobStatistics {
    /// Waiting for resources on the node.
    pub wait_for_resources: Span,
    /// From acceptance to the start of the user's process.
    pub prepare: Span,
    /// Part of `prepare`: fetching files.
    pub artifacts_download: Span,
    /// What else the node measured while it prepared the job; of most jobs there is nothing, and jobs are many.
    pub preparation: Option<Box<PreparationMeasures>>,
    /// Life of the user's process.
    pub exec: Span,
    /// CPU of the user's processes in user mode.
    pub user_job_cpu_user: Span,
    /// CPU of the user's processes in the kernel.
    pub user_job_cpu_system: Span,
    /// Time the container was stopped by its CPU cap.
    pub user_job_cpu_throttled: Span,
    /// Time that the user's processes were ready to run and had no processor.
    pub user_job_cpu_wait: Span,
    /// How often they had to leave a processor; known when they have ended.
    pub user_job_context_switches: i64,
    /// Bytes that they had read from storage.
    pub user_job_bytes_read: i64,
    /// Bytes that they wrote to storage.
    pub user_job_bytes_written: i64,
    /// Requests to storage, where somebody counts them for a job.
    pub user_job_requests: Option<StorageRequests>,
    /// CPU of the job proxy in user mode.
    pub job_proxy_cpu_user: Span,
    /// CPU of the job proxy in the kernel.
    pub job_proxy_cpu_system: Span,
    /// Time that the job proxy was ready to run and had no processor.
    pub job_proxy_cpu_wait: Span,
    /// How often the job proxy had to leave a processor.
    pub job_proxy_context_switches: i64,
    /// Bytes that the job proxy had read from storage.
    pub job_proxy_bytes_read: i64,
    /// Bytes that it wrote to storage.
    pub job_proxy_bytes_written: i64,
    /// Peak of the user's memory without memory file systems, bytes (jobs-and-nodes.md 4.8).
    pub user_job_max_memory: i64,
    /// Peak of the user's memory with memory file systems: what reserves are learned from (2.3).
    pub user_job_peak_memory: i64,
    /// All memory file systems of the job together.
    pub user_job_tmpfs: TmpfsUsage,
    /// Each of them, in the order of the spec.
    pub user_job_tmpfs_volumes: Vec<TmpfsUsage>,
    /// What it takes on disk, once somebody has counted: only of jobs with a bound (4.9).
    pub user_job_disk: Option<Box<DiskUsage>>,
    /// Anonymous memory at the last sample.
    pub user_job_current_rss: i64,
    /// Mapped file pages at the last sample.
    pub user_job_current_mapped_file: i64,
    /// Major page faults.
    pub user_job_major_page_faults: i64,
    /// Sum over samples of usage x time, MiB x s.
    pub user_job_cumulative_memory_mb_sec: i64,
    /// Peak of the proxy's memory, bytes.
    pub job_proxy_max_memory: i64,
    /// The CPU monitor, once it has measured something.
    pub cpu_monitor: Option<CpuMonitorReport>,
    /// Custom statistics that the job wrote to descriptor 5: name parts joined by `/`, summary.
    pub custom: Vec<(String, Summary)>,
    /// Rows that it has read and written, of a job with tables.
    pub tables: Option<Box<TableStatistics>>,
}

/// Rows that a job has read and written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableStatistics {
    /// Given to it.
    pub input: RowFlow,
    /// It did not read all that it was given.
    pub not_fully_consumed: bool,
    /// Written to each output table.
    pub outputs: Vec<RowFlow>,
    /// The pipe into it.
    pub input_pipe: PipeUse,
    /// The pipes of the output tables.
    pub output_pipes: Vec<PipeUse>,
}

/// A pipe between a job and its proxy. The two times are those from its opening to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PipeUse {
    /// What went through.
    pub bytes: i64,
    /// The proxy was busy with what goes in or has come out.
    pub idle_time: Span,
    /// Bytes went through, or the proxy waited for the job.
    pub busy_time: Span,
}

/// Requests to storage devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StorageRequests {
    /// To read.
    pub reads: i64,
    /// To write.
    pub writes: i64,
}

/// Rows on their way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RowFlow {
    /// How many.
    pub row_count: i64,
    /// What they weigh: bytes of their values.
    pub data_weight: i64,
    /// Bytes in the form in which tables keep them.
    pub uncompressed_data_size: i64,
}

/// What the preparation of a job took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PreparationMeasures {
    /// Making the root file system, of a job that has its own.
    pub prepare_root_fs: Span,
    /// Bytes of files that were in the node's cache, or on their way there for another job.
    pub cache_hit_artifacts_size: i64,
    /// Bytes of files that had to be fetched into it.
    pub cache_miss_artifacts_size: i64,
    /// Bytes of files that were fetched past it.
    pub cache_bypassed_artifacts_size: i64,
}

/// Bytes on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskUsage {
    /// When they were last counted.
    pub usage: i64,
    /// Most that were ever counted.
    pub max_usage: i64,
    /// Most that there may be, if that is bounded.
    pub limit: Option<i64>,
}

/// Bytes in a memory file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TmpfsUsage {
    /// At the last sample.
    pub size: i64,
    /// Most of all samples.
    pub max_size: i64,
}

/// What a job's CPU monitor has come to (jobs-and-nodes.md 1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CpuMonitorReport {
    /// The public figures.
    pub statistics: CpuMonitorStatistics,
    /// Its current limit, millionths of a core. With reclaim off: what it would be.
    pub limit: i64,
    /// The filtered use, millionths of a core.
    pub smoothed: i64,
    /// Decisions are carried out.
    pub reclaims: bool,
    /// Votes since the last time the window was emptied, oldest first: `+`, `0` or `-` each.
    pub votes: String,
    /// The last decision.
    pub last_change: Option<CpuMonitorChange>,
}

/// A decision of a CPU monitor.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuMonitorChange {
    /// When.
    pub time: Time,
    /// The limit before, millionths of a core.
    pub from: i64,
    /// The limit decided on.
    pub to: i64,
    /// The container took it; always true with reclaim off, when it is not asked.
    pub applied: bool,
}

/// Public figures of a CPU monitor, in hundredths: of a core, and of core-seconds
/// (jobs-and-nodes.md 1.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuMonitorStatistics {
    /// The filtered use.
    pub smoothed_cpu_usage_x100: i64,
    /// What could be taken now.
    pub preemptible_cpu_x100: i64,
    /// Sum of filtered use over time.
    pub aggregated_smoothed_cpu_usage_x100: i64,
    /// Sum of the hard limit over time.
    pub aggregated_max_cpu_usage_x100: i64,
    /// Sum over time of what could be taken.
    pub aggregated_preemptible_cpu_x100: i64,
    /// The part of that which was taken: all of it, or nothing.
    pub aggregated_preempted_cpu_x100: i64,
}

impl CpuMonitorStatistics {
    /// Public paths and values, with the two names that old dashboards know.
    pub fn samples(&self) -> [(&'static str, i64); 8] {
        [
            ("job_proxy/smoothed_cpu_usage_x100", self.smoothed_cpu_usage_x100),
            ("job_proxy/preemptible_cpu_x100", self.preemptible_cpu_x100),
            ("job_proxy/aggregated_smoothed_cpu_usage_x100", self.aggregated_smoothed_cpu_usage_x100),
            ("job_proxy/aggregated_max_cpu_usage_x100", self.aggregated_max_cpu_usage_x100),
            ("job_proxy/aggregated_preemptible_cpu_x100", self.aggregated_preemptible_cpu_x100),
            ("job_proxy/aggregated_preempted_cpu_x100", self.aggregated_preempted_cpu_x100),
            ("job_proxy/preemptable_cpu_x100", self.preemptible_cpu_x100),
            ("job_proxy/aggregated_preemptable_cpu_x100", self.aggregated_preemptible_cpu_x100),
        ]
    }
}

/// Aggregate of samples (jobs-and-nodes.md 7.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Sum of the samples; saturates.
    pub sum: i64,
    /// Number of samples.
    pub count: i64,
    /// Smallest sample.
    pub min: i64,
    /// Largest sample.
    pub max: i64,
    /// Newest sample.
    pub last: i64,
}

impl Summary {
    /// Of one sample.
    pub const fn of(x: i64) -> Summary {
        Summary { sum: x, count: 1, min: x, max: x, last: x }
    }
    /// Adds a sample.
    pub fn add(&mut self, x: i64) {
        self.merge(&Summary::of(x));
    }
    /// Adds the samples of a newer summary: `last` is taken from it.
    pub fn merge(&mut self, newer: &Summary) {
        if newer.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *newer;
            return;
        }
        self.sum = self.sum.saturating_add(newer.sum);
        self.count += newer.count;
        self.min = self.min.min(newer.min);
        self.max = self.max.max(newer.max);
        self.last = newer.last;
    }
}

/// How a job ended, as the node reports it.
#[derive(Clone, PartialEq, Debug)]
pub enum JobOutcome {
    /// Exit code 0. `interrupted`: it was asked to stop before; `restart_needed`: it exited with
    /// `restart_exit_code`.
    Completed {
        /// Why it was asked to stop, if it was.
        interrupted: Option<InterruptionReason>,
        /// It asks to be run again.
        restart_needed: bool,
    },
    /// The user's fault.
    Failed {
        /// "User job failed" and its causes.
        error: Failure,
    },
    /// Nobody's fault, or ours: the unit is run again.
    Aborted {
        /// Why.
        reason: AbortReason,
        /// With attribute `abort_reason`.
        error: Failure,
    },
}

/// Most bytes of what a failed job was reading that are kept (jobs-and-nodes.md 5.5): 10 MiB.
pub const FAIL_CONTEXT_MAX: u64 = 10 << 20;
/// Longest stderr that travels inside the report of a job's end; longer ones are uploaded before it.
pub const INLINE_STDERR_MAX: usize = 64 << 10;
