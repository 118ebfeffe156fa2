//! The trait that all drivers fulfil, and the choice of a driver (jobs-and-nodes.md 4.1).

use crate::cgroups::CgroupEnvironment;
use crate::mounts::MountTable;
use crate::oci::Runtime;
use crate::process::ProcessInfo;
use crate::rootless;
use crate::simple::SimpleEnvironment;
use crate::spawn::{ProcessSpec, Spawned};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};
use vocab::{Cpu, JobId};

/// Ways to hold a job together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Driver {
    /// v1 controllers, v2 hierarchy for tracking, killing, freezing and CPU counters.
    Hybrid,
    /// One v2 hierarchy with controllers.
    CgroupV2,
    /// v1 only; killing by the freezer.
    CgroupV1,
    /// Without any privilege: user namespaces, `/proc`, stopping and continuing.
    Rootless,
    /// Groups as above, and an OCI runtime that puts jobs into their namespaces.
    Oci,
    /// No groups: sessions, sub-reaper and `/proc`. Enforces nothing.
    Simple,
}

impl Driver {
    /// All of them.
    pub const ALL: [Driver; 6] =
        [Driver::CgroupV2, Driver::Hybrid, Driver::CgroupV1, Driver::Rootless, Driver::Oci, Driver::Simple];
    /// Those that `auto` tries, in its order (jobs-and-nodes.md 4.1). The others are there for who asks for them.
    pub const AUTO: [Driver; 4] = [Driver::CgroupV2, Driver::Hybrid, Driver::CgroupV1, Driver::Rootless];
    /// It holds jobs together by control groups.
    pub const fn has_groups(self) -> bool {
        matches!(self, Driver::Hybrid | Driver::CgroupV2 | Driver::CgroupV1 | Driver::Oci)
    }
    /// The public name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Driver::Hybrid => "hybrid",
            Driver::CgroupV2 => "cgroup_v2",
            Driver::CgroupV1 => "cgroup_v1",
            Driver::Rootless => "rootless",
            Driver::Oci => "oci",
            Driver::Simple => "simple",
        }
    }
}
impl fmt::Display for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
impl FromStr for Driver {
    type Err = CageError;
    fn from_str(text: &str) -> Result<Driver, CageError> {
        Driver::ALL
            .into_iter()
            .find(|d| d.as_str() == text)
            .ok_or_else(|| CageError::UnknownDriver(text.to_owned()))
    }
}

/// What went wrong, and where.
#[derive(Debug, thiserror::Error)]
pub enum CageError {
    /// Not a driver's name.
    #[error(
        "Unknown job environment {0:?}: expected one of \"auto\", \"cgroup_v2\", \"hybrid\", \"cgroup_v1\", \"rootless\", \"oci\", \"simple\""
    )]
    UnknownDriver(String),
    /// The host lacks something that the driver needs.
    #[error("Job environment {driver} cannot be used here: {missing}")]
    Unsupported {
        /// The driver.
        driver: Driver,
        /// What is missing.
        missing: String,
    },
    /// `auto` found none that bounds what jobs may take.
    #[error(
        "No job environment can be used here: {0}. With the job environment \"simple\" jobs run, but nothing bounds \
         how many processes they make"
    )]
    NoneUsable(String),
    /// A system call failed.
    #[error("Cannot {action} {path}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// The user's process could not be started.
    #[error("Cannot start {program:?}: {stage}: {source}")]
    Spawn {
        /// Its path.
        program: String,
        /// Which step.
        stage: &'static str,
        /// The system's word.
        source: io::Error,
    },
    /// Namespaces or mounts of a job could not be made.
    #[error("Cannot isolate a job: cannot {what}: {source}")]
    Isolation {
        /// Which step.
        what: String,
        /// The system's word.
        source: io::Error,
    },
    /// Processes are alive after the deadline of a kill, probably in uninterruptible sleep.
    #[error("Processes of job {job_id} are alive {waited:?} after they were killed: {pids:?}")]
    StillAlive {
        /// Which job.
        job_id: JobId,
        /// How long was waited.
        waited: Duration,
        /// Who is left.
        pids: Vec<u32>,
    },
}

impl CageError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> CageError {
        let path = path.into();
        move |source| CageError::Io { action, path, source }
    }
}

/// Where the environment works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentConfig {
    /// Group of this node in every hierarchy, relative to the mount point: `millpond/<node name>`.
    /// Two nodes on one host need two.
    pub root_group: String,
    /// Mount table to find hierarchies in.
    pub mount_table: PathBuf,
}

impl EnvironmentConfig {
    /// With the mount table of this process.
    pub fn new(root_group: &str) -> EnvironmentConfig {
        EnvironmentConfig {
            root_group: root_group.to_owned(),
            mount_table: PathBuf::from("/proc/self/mountinfo"),
        }
    }
}

/// Bounds of a new container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobLimits {
    /// CPU guarantee.
    pub cpu_guarantee: Cpu,
    /// CPU cap.
    pub cpu_cap: Option<Cpu>,
    /// Bytes.
    pub memory: Option<i64>,
    /// Processes and threads.
    pub pids: Option<u32>,
}

/// CPU used by a container since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CpuUsage {
    /// User mode.
    pub user: Duration,
    /// Kernel.
    pub system: Duration,
    /// Stopped by the cap.
    pub throttled: Duration,
}

/// Memory of a container (jobs-and-nodes.md 4.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUsage {
    /// Anonymous memory, bytes.
    pub rss: i64,
    /// Mapped file pages without shared memory, bytes.
    pub mapped_file: i64,
    /// Shared memory (SysV, memfd, shared anonymous), bytes.
    pub shared: i64,
    /// Page faults that needed IO.
    pub major_page_faults: i64,
    /// Processes that the kernel killed for exceeding the memory limit.
    pub oom_kills: u64,
    /// The most that it has ever charged the container with, caches of files included, bytes. Zero as long as it has
    /// killed nobody, and where it does not say (before Linux 5.19).
    pub peak: i64,
}

/// What the processes of a container had storage devices do since it was made (jobs-and-nodes.md 7.2). Of
/// devices on top of others each layer counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockIo {
    /// Bytes.
    pub bytes_read: i64,
    /// Bytes.
    pub bytes_written: i64,
    /// Requests.
    pub reads: i64,
    /// Requests.
    pub writes: i64,
}

/// What an environment can enforce, found by doing (jobs-and-nodes.md 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// CPU guarantees have an effect.
    pub cpu_weight: bool,
    /// CPU caps have an effect.
    pub cpu_cap: bool,
    /// The kernel stops a job at its memory limit.
    pub memory_limit: bool,
    /// Buffers of sockets are bounded.
    pub socket_memory: bool,
    /// The number of processes is bounded.
    pub pids: bool,
    /// One write kills a whole job.
    pub kill_file: bool,
    /// A job can be frozen.
    pub freeze: bool,
    /// No process can leave its container.
    pub tracking: bool,
}

impl Capabilities {
    /// What is not enforced, as words for an alert; empty if everything is.
    pub fn missing(&self) -> Vec<&'static str> {
        let named = [
            (self.cpu_weight, "cpu guarantee"),
            (self.cpu_cap, "cpu cap"),
            (self.memory_limit, "memory limit"),
            // Where memory is bounded at all; otherwise it is said already.
            (self.socket_memory || !self.memory_limit, "limit of socket buffers"),
            (self.pids, "limit of processes"),
            (self.tracking, "tracking of processes"),
        ];
        named.into_iter().filter(|(has, _)| !has).map(|(_, name)| name).collect()
    }
}

/// A way to make containers. Cheap to open: every proxy opens its own.
pub trait JobEnvironment: Send + Sync {
    /// Which one it is.
    fn driver(&self) -> Driver;
    /// Makes the root groups. Once at the start of a node, before everything else; harmless when repeated.
    fn prepare(&self) -> Result<(), CageError>;
    /// Tries everything with a short-lived group and a child process.
    fn probe(&self) -> Capabilities;
    /// Moves the calling process into the group of the proxies, which together get no more memory than this:
    /// the host must not pay for one that leaks.
    fn enter_proxies(&self, memory: Option<i64>) -> Result<(), CageError>;
    /// Makes the container of a job; nothing runs in it yet. An existing one is taken over.
    fn create(&self, job_id: JobId, limits: &JobLimits) -> Result<Box<dyn Container>, CageError>;
    /// The container of a job that another process made (or this one, before it was restarted).
    fn reopen(&self, job_id: JobId) -> Option<Box<dyn Container>>;
    /// Jobs that have a container. `simple` keeps no list: it gives what `/proc` shows.
    fn existing(&self) -> Vec<JobId>;
    /// Kills and removes the containers of all jobs that are not in `keep` (jobs-and-nodes.md 9.2 step
    /// 4); gives the jobs that were removed. One that cannot be removed is the error, after the
    /// others were done.
    fn cleanup_leftovers(
        &self,
        keep: &dyn Fn(JobId) -> bool,
        deadline: Duration,
    ) -> Result<Vec<JobId>, CageError> {
        let mut removed = Vec::new();
        let mut first_error = None;
        for job_id in self.existing().into_iter().filter(|j| !keep(*j)) {
            let Some(mut container) = self.reopen(job_id) else { continue };
            match container.kill_all(deadline).and_then(|()| container.destroy()) {
                Ok(()) => removed.push(job_id),
                Err(e) => first_error = first_error.or(Some(e)),
            }
        }
        first_error.map_or(Ok(removed), Err)
    }
    /// Removes the root groups; fails while a job or proxy is in them.
    fn remove_root(&self) -> Result<(), CageError>;
}

/// The processes of one job.
pub trait Container: Send {
    /// Starts a process that is inside from its first instruction.
    fn spawn(&mut self, spec: &ProcessSpec<'_>) -> Result<Spawned, CageError>;
    /// Guarantee in cores.
    fn set_cpu_guarantee(&mut self, cores: Cpu) -> Result<(), CageError>;
    /// Cap in cores, or none.
    fn set_cpu_cap(&mut self, cores: Option<Cpu>) -> Result<(), CageError>;
    /// Memory limit in bytes, or none.
    fn set_memory_limit(&mut self, bytes: Option<i64>) -> Result<(), CageError>;
    /// Bytes above which the kernel takes memory back from the job and slows it down (4.3). Only cgroup v2 can.
    fn set_memory_high(&mut self, bytes: i64) -> Result<(), CageError> {
        let _ = bytes;
        Ok(())
    }
    /// Most processes and threads, or no bound.
    fn set_pids_limit(&mut self, limit: Option<u32>) -> Result<(), CageError>;
    /// Does the kernel keep the number of processes of this container, and not of its user?
    fn bounds_processes(&self) -> bool {
        false
    }
    /// CPU used so far; never goes back.
    fn cpu(&mut self) -> Result<CpuUsage, CageError>;
    /// How long some process was ready to run and had no processor; none if nobody keeps count.
    fn cpu_wait(&mut self) -> Option<Duration> {
        None
    }
    /// Requests to storage devices; none if nobody keeps count.
    fn block_io(&mut self) -> Option<BlockIo> {
        None
    }
    /// Memory now.
    fn memory(&mut self) -> Result<MemoryUsage, CageError>;
    /// Processes now, zombies included or not as the kernel pleases.
    fn pids(&mut self) -> Result<Vec<u32>, CageError>;
    /// Details of the processes, largest first.
    fn processes(&mut self) -> Result<Vec<ProcessInfo>, CageError> {
        Ok(ProcessInfo::list(self.pids()?.into_iter()))
    }
    /// Where the job's root directory can be seen from outside, once an isolated process was started.
    fn root(&self) -> Option<PathBuf> {
        None
    }
    /// What the driver has to do itself while a job runs, because no kernel does it; gives when it is to be
    /// called again, if at all.
    fn look_after(&mut self, _now: Instant) -> Option<Instant> {
        None
    }
    /// Sends a signal to every process.
    fn signal(&mut self, signal: i32) -> Result<(), CageError>;
    /// Stops every process, or lets it go on.
    fn freeze(&mut self, frozen: bool) -> Result<(), CageError>;
    /// Kills every process; returns when none is left, or with [`CageError::StillAlive`].
    ///
    /// The container is used up: kernels with a counter of kills per group (6.14 and later) kill
    /// every process that is born into a group that was killed before, if it comes from another group.
    fn kill_all(&mut self, deadline: Duration) -> Result<(), CageError>;
    /// Removes the groups. Harmless when repeated. Waits a little for zombies to go.
    fn destroy(&mut self) -> Result<(), CageError>;
}

/// Opens a driver without touching anything: an error says what the host lacks.
pub fn open(driver: Driver, config: &EnvironmentConfig) -> Result<Box<dyn JobEnvironment>, CageError> {
    Ok(match driver {
        Driver::Rootless => {
            if let Some(missing) = rootless::refusal() {
                return Err(CageError::Unsupported { driver, missing });
            }
            Box::new(SimpleEnvironment::new(driver))
        }
        Driver::Simple => Box::new(SimpleEnvironment::new(driver)),
        Driver::Oci => {
            let mounts = MountTable::read(&config.mount_table)?;
            let runtime = Runtime::find(&config.root_group, &mounts)
                .map_err(|missing| CageError::Unsupported { driver, missing })?;
            let mut reasons = Vec::new();
            for below in Driver::AUTO.into_iter().filter(|driver| driver.has_groups()) {
                match CgroupEnvironment::new(below, &mounts, &config.root_group) {
                    Ok(groups) => return Ok(Box::new(groups.with_runtime(runtime))),
                    Err(e) => reasons.push(e.to_string()),
                }
            }
            return Err(CageError::Unsupported { driver, missing: reasons.join("; ") });
        }
        Driver::CgroupV2 | Driver::Hybrid | Driver::CgroupV1 => {
            let mounts = MountTable::read(&config.mount_table)?;
            Box::new(CgroupEnvironment::new(driver, &mounts, &config.root_group)?)
        }
    })
}

/// The first driver of [`Driver::AUTO`] whose root groups can be made and whose probe enforces memory,
/// CPU and the number of processes; else `rootless`. Gives what was found out about it. `simple` is nobody's last resort: root,
/// who may not use `rootless`, gets an error that names what each one lacks.
pub fn open_auto(config: &EnvironmentConfig) -> Result<(Box<dyn JobEnvironment>, Capabilities), CageError> {
    let mut reasons = Vec::new();
    for driver in Driver::AUTO {
        let opened = open(driver, config).and_then(|e| e.prepare().map(|()| e));
        let environment = match opened {
            Ok(environment) => environment,
            Err(e) => {
                reasons.push(e.to_string());
                continue;
            }
        };
        let found = environment.probe();
        let enough = found.tracking && found.memory_limit && found.cpu_weight && found.pids;
        if driver == Driver::Rootless || enough {
            return Ok((environment, found));
        }
        reasons.push(format!("Job environment {driver} does not enforce {}", found.missing().join(", ")));
        // Left as it was found; a root group that cannot be removed is empty and harmless.
        let _ = environment.remove_root();
    }
    Err(CageError::NoneUsable(reasons.join("; ")))
}
