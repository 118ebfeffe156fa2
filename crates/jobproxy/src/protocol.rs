//! What node, spawner and proxies say to each other.
//!
//! ```text
//! node  --ToSpawner-->   spawner      socketpair, the spawner's standard input
//! node  <--FromSpawner-- spawner
//! node  <--FromProxy--   proxy        the node listens on a unix socket, each proxy connects to it
//! node  --ToProxy-->     proxy
//! ```
//!
//! A proxy's first message on every connection is [`FromProxy::Hello`]; after a restart of the node
//! it says everything that the new node needs. The normal life of a job is `Hello, Started,
//! Progress*, Finished`, and `Finished` is always in the file `result` of the job's directory
//! *before* it is sent: a node that sees the connection end without it looks there
//! ([`crate::record::read_result`]) before it decides that the proxy died.
//!
//! Bytes: [`crate::codec::encode_frame`] to send, [`crate::codec::FrameReader`] to receive.

use cage::{Bind, Isolation, RootFs};

use crate::codec::{Blob, CodecError, Reader, Wire, wire};
use std::path::{Path, PathBuf};
use vocab::{
    AbortReason, Cpu, CpuMonitorChange, CpuMonitorReport, CpuMonitorStatistics, DiskUsage, Failure,
    InterruptionReason, JobDescription, JobId, JobOutcome, JobStatistics, Lease, OutputTable, PipeUse,
    PreparationMeasures, RowFlow, ShellAnswer, ShellRequest, Span, StorageRequests, TableIo, TableStatistics,
    Time, TmpfsUsage, shell::Terminal,
};
use yson::Map;

pub use crate::codec::{FrameReader, MAX_FRAME, encode_frame};

/// Version of these messages. A node kills a proxy with another version than those it knows.
pub const PROXY_PROTOCOL_VERSION: u32 = 7;

/// Longest stderr that travels inside [`ProxyResult`] (the same bound as on the node protocol).
pub use vocab::job::INLINE_STDERR_MAX;

/// From the node to the spawner. [`ToSpawner::Configure`] comes first and once.
#[derive(Clone, PartialEq, Debug)]
pub enum ToSpawner {
    /// What all proxies share.
    Configure {
        /// The settings.
        config: SpawnerConfig,
    },
    /// Fork a proxy for this job.
    Start {
        /// The job.
        job: Box<JobStart>,
    },
}

/// From the spawner to the node. Silence is success: a proxy that lives speaks for itself.
#[derive(Clone, PartialEq, Debug)]
pub enum FromSpawner {
    /// The environment cannot be used, or the spawner could not fork; no proxy runs for this job.
    StartFailed {
        /// Which job.
        job_id: JobId,
        /// Why.
        error: Failure,
    },
    /// A proxy died, or could not hand over its result: look for the file `result` first, then see
    /// jobs-and-nodes.md 3.8 and [`crate::recovery`].
    ProxyDied {
        /// Which job.
        job_id: JobId,
        /// Process of the proxy.
        pid: u32,
        /// Its exit code, or minus the signal that killed it.
        exit: i32,
    },
}

/// Settings that all jobs of a node share.
#[derive(Clone, PartialEq, Debug)]
pub struct SpawnerConfig {
    /// Unix socket that the node listens on, also after a restart.
    pub node_socket: PathBuf,
    /// Driver: `hybrid`, `cgroup_v2`, `cgroup_v1`, `rootless`, `oci`, `simple`; already chosen, not `auto`.
    pub driver: String,
    /// Root group of this node in every hierarchy, relative to the mount: `millpond/<node name>`.
    pub root_group: String,
    /// Mount table; `/proc/self/mountinfo` but for tests.
    pub mount_table: PathBuf,
    /// Period of samples (jobs-and-nodes.md 4.8).
    pub memory_watchdog_period: Span,
    /// Period of progress reports; what changes the job's resources is told at once (3.4).
    pub job_proxy_heartbeat_period: Span,
    /// The cap follows the CPU monitor's limit, in jobs whose monitor reclaims (4.5, "hard mode").
    pub cpu_monitor_sets_cap: bool,
    /// A proxy that cannot reach its node for this long kills its job (jobs-and-nodes.md 9.2).
    pub supervisor_lost_timeout: Span,
    /// A job above its memory limit fails (jobs-and-nodes.md 4.8); false: neither watched nor limited.
    pub check_user_job_memory_limit: bool,
    /// Jobs that read the same pages again and again are given up (jobs-and-nodes.md 4.8).
    pub job_thrashing_detector: ThrashingDetector,
    /// A question for progress is answered by a sample that is not older than this (4.8).
    pub memory_tracker_cache_period: Span,
    /// Score for the kernel's choice of a victim, of processes above their reserve (4.8).
    pub oom_score_adj_on_exceeded_memory_reserve: Option<i32>,
    /// Jobs are slowed down shortly below their memory limit, where the kernel can do that (4.3).
    pub use_memory_high: bool,
    /// Bytes that all proxies together may take; none: as much as there is.
    pub proxies_memory_limit: Option<i64>,
    /// How long the kill at a job's end may take.
    pub kill_timeout: Span,
}

impl SpawnerConfig {
    /// The defaults of jobs-and-nodes.md 10.
    pub fn new(node_socket: &Path, driver: cage::Driver, root_group: &str) -> SpawnerConfig {
        SpawnerConfig {
            node_socket: node_socket.to_owned(),
            driver: driver.as_str().to_owned(),
            root_group: root_group.to_owned(),
            mount_table: PathBuf::from("/proc/self/mountinfo"),
            memory_watchdog_period: Span::from_secs(1),
            job_proxy_heartbeat_period: Span::from_secs(5),
            cpu_monitor_sets_cap: false,
            supervisor_lost_timeout: Span::from_secs(600),
            check_user_job_memory_limit: true,
            job_thrashing_detector: ThrashingDetector::default(),
            memory_tracker_cache_period: Span::from_millis(100),
            oom_score_adj_on_exceeded_memory_reserve: None,
            use_memory_high: false,
            proxies_memory_limit: None,
            kill_timeout: Span::from_secs(30),
        }
    }
}

/// Options `job_thrashing_detector/...` of jobs-and-nodes.md 10.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThrashingDetector {
    /// Default false.
    pub enabled: bool,
    /// Length of a period. Default 60 s.
    pub check_period: Span,
    /// A period with more major page faults is a bad one. Default 500.
    pub major_page_fault_count_threshold: i64,
    /// More bad periods than this one after another abort the job. Default 5.
    pub limit_overflow_count_threshold_to_abort_job: i64,
}

impl Default for ThrashingDetector {
    fn default() -> ThrashingDetector {
        ThrashingDetector {
            enabled: false,
            check_period: Span::from_secs(60),
            major_page_fault_count_threshold: 500,
            limit_overflow_count_threshold_to_abort_job: 5,
        }
    }
}

/// One job for a proxy.
#[derive(Clone, PartialEq, Debug)]
pub struct JobStart {
    /// Which job.
    pub job_id: JobId,
    /// Existing directory of the job, not visible to the user: `proxy.state`, `result`, `stderr`.
    pub job_directory: PathBuf,
    /// Existing working directory of the command.
    pub sandbox: PathBuf,
    /// The same as the job sees it.
    pub working_directory: PathBuf,
    /// Namespaces, mounts and privileges; none: the host's and the node's.
    pub isolation: Option<Isolation>,
    /// Most bytes on disk that the sandbox may take (jobs-and-nodes.md 4.9).
    pub disk_space: Option<i64>,
    /// Most files and directories on disk.
    pub inode_count: Option<i64>,
    /// The kernel keeps both bounds; none: they are checked by looking at all files.
    pub disk_quota: Option<DiskQuota>,
    /// Run as `bash -c <command>` (see [`crate::command`] for the short cut).
    pub command: String,
    /// The whole environment in order, later ones win; nothing is inherited. `PATH` and `YT_JOB_ID`
    /// are added if missing.
    pub environment: Vec<(String, String)>,
    /// User and group of the command; none: those of the node.
    pub user: Option<(u32, u32)>,
    /// CPU guarantee at start.
    pub cpu_guarantee: Cpu,
    /// CPU cap at start.
    pub cpu_cap: Option<Cpu>,
    /// Options of the CPU monitor; one that is not there has its default.
    pub cpu_monitor: Map,
    /// Bytes; see `check_user_job_memory_limit`.
    pub memory_limit: i64,
    /// What the scheduler counts for job and proxy. A job that uses more says so at once.
    pub memory_request: i64,
    /// Part of it that stands for the user job.
    pub user_job_memory_reserve: i64,
    /// Part of it that stands for the proxy.
    pub job_proxy_memory_reserve: i64,
    /// The proxy gives the job up when it is so many bytes above that.
    pub job_proxy_memory_overcommit_limit: Option<i64>,
    /// Whether mapped file pages count as memory usage.
    pub include_memory_mapped_files: bool,
    /// Mount points of the job's memory file systems, in the order of the spec, as the proxy sees them.
    pub tmpfs_volumes: Vec<PathBuf>,
    /// Most processes and threads that the job may have at a time.
    pub pids_limit: u32,
    /// The job stops when this is over and was not extended by [`ToProxy::Heard`]; none: its unit may run twice at once.
    pub lease: Option<Lease>,
    /// Fails the job after this long.
    pub job_time_limit: Option<Span>,
    /// Bytes of stderr that are kept.
    pub max_stderr_size: u64,
    /// Signal that asks the job to stop.
    pub interruption_signal: Option<String>,
    /// Send it to the root process only.
    pub signal_root_process_only: bool,
    /// Exit code "run me again".
    pub restart_exit_code: Option<i32>,
    /// At most this many custom statistics.
    pub custom_statistics_count_limit: u32,
    /// Tables that it reads and writes; see [`crate::rows`].
    pub tables: Option<Box<TableIo>>,
}

/// Whom the kernel counts a job's directories for, on the file system of its `job_directory`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskQuota {
    /// Number of the project, see [`cage::quota`].
    pub project: u32,
    /// Bytes that its directories took before anything was in them.
    pub own_space: i64,
    /// And how many they were.
    pub own_inodes: i64,
}

/// `pids_limit` of [`JobStart::new`]: more than an honest job needs, little enough for a fork bomb.
pub const DEFAULT_PIDS_LIMIT: u32 = 4096;

impl JobStart {
    /// From the description that the server sent; `environment` is complete and substituted already.
    pub fn new(
        job_id: JobId,
        job_directory: &Path,
        sandbox: &Path,
        environment: Vec<(String, String)>,
        description: &JobDescription,
    ) -> JobStart {
        JobStart {
            job_id,
            job_directory: job_directory.to_owned(),
            sandbox: sandbox.to_owned(),
            working_directory: sandbox.to_owned(),
            isolation: None,
            disk_space: description.file_system.disk_space,
            inode_count: description.file_system.inode_count,
            disk_quota: None,
            command: description.command.clone(),
            environment,
            user: None,
            cpu_guarantee: description.cpu_limit,
            cpu_cap: description.cpu_cap,
            cpu_monitor: description.cpu_monitor.clone(),
            memory_limit: description.memory_limit,
            memory_request: description
                .user_job_memory_reserve
                .saturating_add(description.job_proxy_memory_reserve),
            user_job_memory_reserve: description.user_job_memory_reserve,
            job_proxy_memory_reserve: description.job_proxy_memory_reserve,
            job_proxy_memory_overcommit_limit: description.job_proxy_memory_overcommit_limit,
            include_memory_mapped_files: description.include_memory_mapped_files,
            tmpfs_volumes: Vec::new(),
            pids_limit: DEFAULT_PIDS_LIMIT,
            lease: None,
            job_time_limit: description.job_time_limit,
            max_stderr_size: description.max_stderr_size.max(1).unsigned_abs(),
            interruption_signal: description.interruption_signal.clone(),
            signal_root_process_only: description.signal_root_process_only,
            restart_exit_code: description.restart_exit_code,
            custom_statistics_count_limit: description.custom_statistics_count_limit,
            tables: description.tables.clone(),
        }
    }
}

/// From the node to a proxy.
#[derive(Clone, PartialEq, Debug)]
pub enum ToProxy {
    /// Kill the job; it ends aborted with this reason. The second one is ignored.
    Abort {
        /// Why.
        reason: AbortReason,
        /// Message of the error.
        text: String,
    },
    /// Kill the job; it ends *failed* with "Job failed by external request" (jobs-and-nodes.md 3.9).
    Fail {
        /// Cause shown inside the error.
        error: Option<Failure>,
    },
    /// Ask the job to stop (jobs-and-nodes.md 5.6); abort it when it has not after the timeout.
    Interrupt {
        /// Why.
        reason: InterruptionReason,
        /// How long it may take.
        timeout: Span,
        /// Shown in the error when the time is over.
        text: String,
    },
    /// New CPU guarantee, at once.
    SetCpuGuarantee {
        /// Cores.
        cores: Cpu,
    },
    /// New CPU cap, at once; none removes it.
    SetCpuCap {
        /// Cores.
        cores: Option<Cpu>,
    },
    /// Wants [`FromProxy::Stderr`].
    ReadStderr {
        /// Repeated in the answer.
        request_id: u64,
        /// Position in the kept text.
        offset: u64,
        /// At most this many bytes; 0 is "all", and a frame's bound holds always.
        limit: u64,
    },
    /// Wants a [`FromProxy::Progress`] now.
    Poll {},
    /// The server has confirmed that it hears the node: the job's lease begins there. Only for jobs that have one.
    Heard {
        /// Time since the start of the host, also while that was suspended.
        from: Span,
    },
    /// For a shell beside the job; wants [`FromProxy::Shell`] or [`FromProxy::ShellRefused`].
    Shell {
        /// Repeated in the answer.
        request_id: u64,
        /// What is wanted.
        request: ShellRequest,
    },
}

/// From a proxy to the node.
#[derive(Clone, PartialEq, Debug)]
#[allow(clippy::large_enum_variant)] // the large one is the usual one
pub enum FromProxy {
    /// First on each connection.
    Hello {
        /// [`PROXY_PROTOCOL_VERSION`] of the proxy.
        version: u32,
        /// Which job.
        job_id: JobId,
        /// Process of the proxy, for a pidfd.
        pid: u32,
        /// Its start time, field 22 of `/proc/PID/stat`: pids are used again, pairs are not.
        pid_start_time: u64,
        /// When the user's process started; none before that.
        start_time: Option<Time>,
        /// What the job holds now.
        holds: Holds,
    },
    /// The user's process runs.
    Started {
        /// When it started.
        start_time: Time,
        /// Its pid.
        user_pid: u32,
    },
    /// Every `job_proxy_heartbeat_period`, when [`Holds`] has changed, and on [`ToProxy::Poll`].
    Progress {
        /// Numbers.
        progress: Progress,
    },
    /// Answer to [`ToProxy::ReadStderr`].
    Stderr {
        /// Of the request.
        request_id: u64,
        /// All bytes written so far.
        total: u64,
        /// The piece.
        data: Blob,
    },
    /// Answer to [`ToProxy::Shell`].
    Shell {
        /// Of the request.
        request_id: u64,
        /// What the shell says.
        answer: ShellAnswer,
    },
    /// The other answer to [`ToProxy::Shell`].
    ShellRefused {
        /// Of the request.
        request_id: u64,
        /// Why.
        error: Failure,
    },
    /// The job is over and nothing of it is alive; the proxy exits.
    Finished {
        /// Same as in the file `result`.
        result: Box<ProxyResult>,
    },
}

/// What a job is to be counted with. The proxy knows best: it outlives the node agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holds {
    /// CPU guarantee, as the CPU monitor has set it.
    pub cpu: Cpu,
    /// Most memory that job and proxy together were seen with, bytes (jobs-and-nodes.md 3.4).
    pub total_peak: i64,
}

/// State of a running job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// What it is to be counted with.
    pub holds: Holds,
    /// Statistics; times that only the node knows are zero.
    pub statistics: JobStatistics,
    /// Memory usage now, bytes, as jobs-and-nodes.md 4.8 defines it.
    pub user_memory: i64,
    /// Private memory of the proxy now, bytes.
    pub proxy_memory: i64,
    /// All bytes written to stderr.
    pub stderr_size: u64,
}

/// End of a job.
#[derive(Clone, PartialEq, Debug)]
pub struct ProxyResult {
    /// Which job.
    pub job_id: JobId,
    /// How it ended.
    pub outcome: JobOutcome,
    /// When the user's process started; none if it never did.
    pub start_time: Option<Time>,
    /// When it was over.
    pub finish_time: Time,
    /// Final statistics; times that only the node knows are zero.
    pub statistics: JobStatistics,
    /// All bytes written to stderr.
    pub stderr_size: u64,
    /// The kept stderr if it has at most [`INLINE_STDERR_MAX`] bytes; else read the job's file with
    /// [`crate::stderr::read`].
    pub stderr: Option<Blob>,
    /// Processes of the job could not be killed: the container is still there.
    pub survivors: bool,
    /// Bytes of what a failed job was reading, in [`crate::rows::fail_context`].
    pub fail_context_size: u64,
}

wire!(struct SpawnerConfig {
    node_socket, driver, root_group, mount_table, memory_watchdog_period, supervisor_lost_timeout,
    check_user_job_memory_limit, kill_timeout, job_proxy_heartbeat_period, cpu_monitor_sets_cap,
    job_thrashing_detector, proxies_memory_limit, memory_tracker_cache_period,
    oom_score_adj_on_exceeded_memory_reserve, use_memory_high,
});
wire!(struct DiskQuota { project, own_space, own_inodes });
wire!(struct Isolation { hostname, root, covers, binds, scratch_size, own_users });
wire!(struct Bind { source, target, read_only });
wire!(struct RootFs { mount_point, layers, changes });
wire!(struct ThrashingDetector {
    enabled, check_period, major_page_fault_count_threshold, limit_overflow_count_threshold_to_abort_job,
});
wire!(struct JobStart {
    job_id, job_directory, sandbox, working_directory, isolation, disk_space, inode_count, disk_quota, command, environment, user, cpu_guarantee, cpu_cap, memory_limit, pids_limit,
    job_time_limit, max_stderr_size, interruption_signal, signal_root_process_only, restart_exit_code,
    custom_statistics_count_limit, cpu_monitor, memory_request, user_job_memory_reserve, job_proxy_memory_reserve,
    job_proxy_memory_overcommit_limit, include_memory_mapped_files, tmpfs_volumes, tables, lease,
});
wire!(struct Lease { length, from });
wire!(struct TableIo {
    input_rows, input_format, output_format, outputs, first_output, check_input_fully_consumed,
});
wire!(struct OutputTable { schema, sorted_by });
wire!(struct Holds { cpu, total_peak });
wire!(struct Progress { holds, statistics, user_memory, proxy_memory, stderr_size });
wire!(struct ProxyResult {
    job_id, outcome, start_time, finish_time, statistics, stderr_size, stderr, survivors, fail_context_size,
});
wire!(struct JobStatistics {
    wait_for_resources, prepare, artifacts_download, exec, user_job_cpu_user, user_job_cpu_system,
    user_job_cpu_throttled, user_job_cpu_wait, user_job_context_switches, user_job_bytes_read,
    user_job_bytes_written, job_proxy_cpu_user, job_proxy_cpu_system, job_proxy_context_switches,
    job_proxy_bytes_read, job_proxy_bytes_written, user_job_max_memory, user_job_peak_memory, user_job_tmpfs,
    user_job_tmpfs_volumes, user_job_current_rss, user_job_current_mapped_file, user_job_major_page_faults,
    user_job_cumulative_memory_mb_sec, job_proxy_max_memory, cpu_monitor, custom, user_job_disk,
    job_proxy_cpu_wait, preparation, tables, user_job_requests,
});
wire!(struct TableStatistics { input, not_fully_consumed, outputs, input_pipe, output_pipes });
wire!(struct PipeUse { bytes, idle_time, busy_time });
wire!(struct StorageRequests { reads, writes });
wire!(struct RowFlow { row_count, data_weight, uncompressed_data_size });
wire!(struct PreparationMeasures {
    prepare_root_fs, cache_hit_artifacts_size, cache_miss_artifacts_size, cache_bypassed_artifacts_size,
});
wire!(struct TmpfsUsage { size, max_size });
wire!(struct DiskUsage { usage, max_usage, limit });
wire!(struct CpuMonitorReport { statistics, limit, smoothed, reclaims, votes, last_change });
wire!(struct CpuMonitorChange { time, from, to, applied });
wire!(struct CpuMonitorStatistics {
    smoothed_cpu_usage_x100, preemptible_cpu_x100, aggregated_smoothed_cpu_usage_x100,
    aggregated_max_cpu_usage_x100, aggregated_preemptible_cpu_x100, aggregated_preempted_cpu_x100,
});
wire!(name AbortReason, InterruptionReason);
wire!(enum JobOutcome {
    0 => Completed { interrupted, restart_needed },
    1 => Failed { error },
    2 => Aborted { reason, error },
});
wire!(struct Terminal { name, size });
wire!(enum ShellRequest {
    0 => Spawn { shell_id, command, terminal, environment, secrets, inactivity_timeout },
    1 => Update { shell_id, input_offset, keys, size },
    2 => Poll { shell_id },
    3 => Terminate { shell_id },
});
wire!(struct ShellAnswer { shell_id, shell_index, output, consumed_offset });
wire!(enum ToSpawner { 0 => Configure { config }, 1 => Start { job } });
wire!(enum FromSpawner { 0 => StartFailed { job_id, error }, 1 => ProxyDied { job_id, pid, exit } });
wire!(enum ToProxy {
    0 => Abort { reason, text },
    1 => Fail { error },
    2 => Interrupt { reason, timeout, text },
    3 => SetCpuGuarantee { cores },
    4 => SetCpuCap { cores },
    5 => ReadStderr { request_id, offset, limit },
    6 => Poll {},
    7 => Shell { request_id, request },
    8 => Heard { from },
});
wire!(enum FromProxy {
    0 => Hello { version, job_id, pid, pid_start_time, start_time, holds },
    1 => Started { start_time, user_pid },
    2 => Progress { progress },
    3 => Stderr { request_id, total, data },
    4 => Finished { result },
    5 => Shell { request_id, answer },
    6 => ShellRefused { request_id, error },
});

impl<T: Wire> Wire for Box<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }
    fn decode(r: &mut Reader<'_>) -> Result<Box<T>, CodecError> {
        T::decode(r).map(Box::new)
    }
}
