//! The user script: the part of a spec that says what one job runs and within which bounds
//! (jobs-and-nodes.md 8.2).

use super::files::{FileRequest, check_places, read_environment, read_files, read_tmpfs};
use super::memory::{MemoryOptions, ProxyDigestOptions, job_proxy_digest, script_memory};
use super::reader::{Reader, expected};
use vocab::{Cpu, Failure, Span, TmpfsVolume};
use yson::Value;

/// What one job of a task runs.
#[derive(Clone, PartialEq, Debug)]
pub struct UserScript {
    /// Run by `bash -c`.
    pub command: String,
    /// Variables of the spec, in its order.
    pub environment: Vec<(String, String)>,
    /// Files to place in the sandbox, and after them the archives of `layer_count` layers of the root
    /// file system, topmost first.
    pub files: Vec<FileRequest>,
    /// How many of `files` are layers.
    pub layer_count: usize,
    /// The root file system can be written to.
    pub make_rootfs_writable: bool,
    /// Bounds of what the sandbox takes on disk: bytes and inodes.
    pub disk: (Option<i64>, Option<i64>),
    /// CPU guarantee.
    pub cpu_limit: Cpu,
    /// Devices.
    pub gpu_limit: i64,
    /// Bytes; above it the job fails.
    pub memory_limit: i64,
    /// How the user job's memory is reserved.
    pub memory: MemoryOptions,
    /// The job proxy's reserve factor.
    pub job_proxy_digest: ProxyDigestOptions,
    /// Memory file systems.
    pub tmpfs_volumes: Vec<TmpfsVolume>,
    /// Fails the job after this long.
    pub job_time_limit: Option<Span>,
    /// From the grant to the start of the command.
    pub prepare_time_limit: Span,
    /// Bytes of stderr kept.
    pub max_stderr_size: i64,
    /// Most custom statistics of one job.
    pub custom_statistics_count_limit: u32,
    /// Ports to reserve.
    pub port_count: u32,
    /// Copy files instead of linking them.
    pub copy_files: bool,
    /// Descriptor 1 goes to stderr, the first output table to 4.
    pub redirect_stdout_to_stderr: bool,
    /// Cap the container at exactly `cpu_limit`.
    pub set_container_cpu_limit: bool,
    /// Signal that asks the job to stop; without it the job is not interruptible.
    pub interruption_signal: Option<String>,
    /// Send it to the root process only.
    pub signal_root_process_only: bool,
    /// Exit code that asks for another run.
    pub restart_exit_code: Option<i32>,
    /// Any restart of a job of this task fails the operation.
    pub fail_on_job_restart: bool,
    /// A job that takes so long is slow; wins over the operation's.
    pub job_speculation_timeout: Option<Span>,
    /// Memory of mapped files counts.
    pub include_memory_mapped_files: bool,
    /// Description of the format in which rows come.
    pub input_format: Value,
    /// Description of the format in which rows are written.
    pub output_format: Value,
    /// Input that is left unread fails the job.
    pub check_input_fully_consumed: bool,
}

const MIB: i64 = 1 << 20;
const EVER: Span = Span(u64::MAX);

impl UserScript {
    /// Reads the script's options; `root_digest` is the operation's `job_proxy_memory_digest`.
    pub(crate) fn read(r: &mut Reader<'_>, root_digest: &ProxyDigestOptions) -> Result<UserScript, Failure> {
        let format = r.any("format").or("yson".into())?;
        let input_format = r.any("input_format").or(format.clone())?;
        let output_format = r.any("output_format").or(format)?;
        accept_hints(r)?;
        let (layers, make_rootfs_writable) = read_root_file_system(r)?;
        let disk = read_disk_request(r)?;
        accept_monitoring(r)?;
        let layer_count = layers.len();
        let memory_limit = r.int("memory_limit", 1..=16 << 40).or(512 * MIB)?;
        let tmpfs_volumes = read_tmpfs(r, memory_limit)?;
        let files = read_files(r, "file_paths")?;
        check_places(r, &files, &tmpfs_volumes)?;
        let script = UserScript {
            command: r
                .with("command", |v| match v.as_str() {
                    Some(s) if !s.contains('\0') => Ok(s.to_owned()),
                    _ => Err(expected("UTF-8 string without NUL", v)),
                })
                .required()?,
            environment: read_environment(r)?,
            files: files.into_iter().chain(layers).collect(),
            layer_count,
            make_rootfs_writable,
            disk,
            cpu_limit: r.cores("cpu_limit").or(Cpu(100))?,
            gpu_limit: r.int("gpu_limit", 0..=i64::from(i32::MAX)).or(0)?,
            memory_limit,
            memory: script_memory(r)?,
            job_proxy_digest: job_proxy_digest(r, root_digest)?,
            tmpfs_volumes,
            job_time_limit: r
                .span(["job_time_limit", "exec_time_limit"], Span::from_secs(1)..=EVER)
                .optional()?,
            prepare_time_limit: r
                .span("prepare_time_limit", Span::from_secs(60)..=EVER)
                .or(Span::from_secs(45 * 60))?,
            max_stderr_size: r.int("max_stderr_size", 1..=1 << 30).or(5 * MIB)?,
            custom_statistics_count_limit: r.int("custom_statistics_count_limit", 1..=1024).or(128)? as u32,
            port_count: r.int("port_count", 0..=50).or(0)? as u32,
            copy_files: r.bool("copy_files").or(false)?,
            redirect_stdout_to_stderr: r.bool("redirect_stdout_to_stderr").or(false)?,
            set_container_cpu_limit: r.bool("set_container_cpu_limit").or(false)?,
            interruption_signal: r.with("interruption_signal", read_signal).optional()?,
            signal_root_process_only: r.bool("signal_root_process_only").or(false)?,
            restart_exit_code: r.int("restart_exit_code", 1..=255).optional()?.map(|x| x as i32),
            fail_on_job_restart: r.bool("fail_on_job_restart").or(false)?,
            job_speculation_timeout: r
                .span("job_speculation_timeout", Span::from_millis(1)..=EVER)
                .optional()?,
            include_memory_mapped_files: r.bool("include_memory_mapped_files").or(true)?,
            input_format,
            output_format,
            check_input_fully_consumed: r.bool("check_input_fully_consumed").or(false)?,
        };
        if r.bool("use_yamr_descriptors").or(false)? && script.redirect_stdout_to_stderr {
            return Err(r.refuse("use_yamr_descriptors", "it excludes \"redirect_stdout_to_stderr\""));
        }
        Ok(script)
    }

    /// Total size of memory file systems.
    pub fn tmpfs_size(&self) -> i64 {
        self.tmpfs_volumes.iter().fold(0i64, |sum, v| sum.saturating_add(v.size))
    }
}

/// Options that nodes do not act on yet: they are checked and shown, so that a spec written for the
/// reference starts here.
fn accept_hints(r: &mut Reader<'_>) -> Result<(), Failure> {
    r.bool("use_smaps_memory_tracker").or(false)?;
    r.bool("use_porto_memory_tracking").or(false)?;
    r.bool("force_core_dump").or(false)?;
    r.bool("fail_job_on_core_dump").or(true)?;
    r.string("network_project").optional()?;
    r.list("profilers").optional()?;
    r.any("extra_environment").optional()?;
    r.bool("enable_gpu_layers").or(true)?;
    r.string("cuda_toolkit_version").optional()?;
    r.bool("deterministic").or(false)?;
    r.string("task_title").optional()?;
    r.string("title").optional()?;
    Ok(())
}

/// `layer_paths` and `make_rootfs_writable`. Images need a registry, which no node here has: a job that
/// asks for one would run in another system than it wants, so it is refused.
fn read_root_file_system(r: &mut Reader<'_>) -> Result<(Vec<FileRequest>, bool), Failure> {
    let layers = read_files(r, "layer_paths")?;
    if r.string("docker_image").optional()?.is_some() {
        return Err(r.refuse("docker_image", "images of a registry are not supported, use \"layer_paths\""));
    }
    let writable = r.bool("make_rootfs_writable").or(false)?;
    if writable && layers.is_empty() {
        return Err(r.refuse("make_rootfs_writable", "it needs \"layer_paths\""));
    }
    Ok((layers, writable))
}

/// `disk_request`, or `disk_space_limit` with `inode_limit`.
fn read_disk_request(r: &mut Reader<'_>) -> Result<(Option<i64>, Option<i64>), Failure> {
    let request = r.optional_section("disk_request", |d| {
        let space = d.int("disk_space", 0..=i64::MAX).required()?;
        let inodes = d.int("inode_count", 0..=i64::MAX).optional()?;
        let medium = d.string("medium_name").optional()?;
        if d.string("account").optional()?.is_some() && medium.is_none() {
            return Err(d.refuse("account", "it needs \"medium_name\""));
        }
        Ok((Some(space), inodes))
    })?;
    let space = r.int("disk_space_limit", 0..=i64::MAX).optional()?;
    let inodes = r.int("inode_limit", 0..=i64::MAX).optional()?;
    if inodes.is_some() && space.is_none() {
        return Err(r.refuse("inode_limit", "it needs \"disk_space_limit\""));
    }
    if request.is_some() && space.is_some() {
        return Err(r.refuse("disk_space_limit", "it excludes \"disk_request\""));
    }
    Ok(request.unwrap_or((space, inodes)))
}

/// Sensors of jobs-and-nodes.md 7.4.
const SENSORS: [&str; 18] = [
    "cpu/user",
    "cpu/system",
    "cpu/wait",
    "cpu/throttled",
    "cpu/cfs_throttled",
    "cpu/context_switches",
    "cpu/burst",
    "current_memory/rss",
    "current_memory/mapped_file",
    "current_memory/major_page_faults",
    "tmpfs_size",
    "disk/usage",
    "disk/limit",
    "gpu/utilization_gpu",
    "gpu/utilization_memory",
    "gpu/utilization_power",
    "gpu/memory",
    "gpu/power",
];

fn accept_monitoring(r: &mut Reader<'_>) -> Result<(), Failure> {
    r.section("monitoring", |m| {
        m.bool("enable").or(false)?;
        let names = m.strings("sensor_names").or(Vec::new())?;
        match names.iter().find(|n| !SENSORS.contains(&n.as_str()) && !n.starts_with("gpu/")) {
            Some(unknown) => Err(m.refuse(
                "sensor_names",
                format_args!("unknown sensor {unknown:?}, expected some of {SENSORS:?}"),
            )),
            None => Ok(()),
        }
    })
}

const SIGNALS: [&str; 15] = [
    "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1", "SIGUSR2",
    "SIGALRM", "SIGTERM", "SIGCONT", "SIGURG", "SIGWINCH",
];

fn read_signal(v: &Value) -> Result<String, String> {
    match v.as_str() {
        Some(s) if SIGNALS.contains(&s) => Ok(s.to_owned()),
        _ => Err(expected(&format!("one of {SIGNALS:?}"), v)),
    }
}
