//! The three drivers that use control groups. They differ in where each thing is done:
//!
//! | | tracking, kill, freeze | CPU counters | limits |
//! |---|---|---|---|
//! | `cgroup_v2` | v2 | v2 | v2 |
//! | `hybrid` | v2 | v2 | v1 |
//! | `cgroup_v1` | freezer | cpuacct | v1 |

use crate::environment::{
    BlockIo, CageError, Capabilities, Container, CpuUsage, Driver, JobEnvironment, JobLimits, MemoryUsage,
};
use crate::group::{Group, is_gone, named};
use crate::init::Init;
use crate::mounts::MountTable;
use crate::oci::Runtime;
use crate::process::ProcessInfo;
use crate::spawn::{Birthplace, ProcessSpec, Spawned, spawn};
use crate::tracking::Tracking;
use crate::{knobs_v1, knobs_v2, sys};
use std::ffi::CString;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use vocab::{Cpu, JobId};

mod probe;

const JOBS: &str = "jobs";
const PROXIES: &str = "proxies";
const DAEMON: &str = "daemon";

/// Root groups of a node in the hierarchies that are in use. Equal ones (co-mounted) are equal here.
#[derive(Clone, Debug)]
struct Roots {
    tracking: Group,
    cpu: Group,
    memory: Group,
    pids: Option<Group>,
    cpuacct: Option<Group>,
    /// Counts requests to storage devices; it bounds nothing.
    io: Option<Group>,
}

impl Roots {
    /// Each directory once, tracking first.
    fn distinct(&self) -> Vec<&Group> {
        let mut list = vec![&self.tracking];
        let others = [self.pids.as_ref(), self.cpuacct.as_ref(), self.io.as_ref()];
        for g in [&self.cpu, &self.memory].into_iter().chain(others.into_iter().flatten()) {
            if !list.contains(&g) {
                list.push(g);
            }
        }
        list
    }
    fn child(&self, name: &str) -> Roots {
        Roots {
            tracking: self.tracking.child(name),
            cpu: self.cpu.child(name),
            memory: self.memory.child(name),
            pids: self.pids.as_ref().map(|g| g.child(name)),
            cpuacct: self.cpuacct.as_ref().map(|g| g.child(name)),
            io: self.io.as_ref().map(|g| g.child(name)),
        }
    }
}

/// A driver on control groups.
pub(crate) struct CgroupEnvironment {
    driver: Driver,
    roots: Roots,
    /// Mount point of the v2 hierarchy; the controllers have to be switched on from there down.
    v2_mount: Option<PathBuf>,
    /// Levels of the root group: parents that are ours to remove when empty.
    depth: usize,
    /// Of v1.
    memory_bounds: knobs_v1::MemoryBounds,
    /// Of the driver `oci`: puts isolated jobs into their namespaces.
    runtime: Option<Arc<Runtime>>,
}

impl CgroupEnvironment {
    pub fn new(
        driver: Driver,
        mounts: &MountTable,
        root_group: &str,
    ) -> Result<CgroupEnvironment, CageError> {
        let unsupported = |missing: &str| CageError::Unsupported { driver, missing: missing.to_owned() };
        let relative = Path::new(root_group);
        if root_group.is_empty()
            || !relative.components().all(|c| matches!(c, std::path::Component::Normal(_)))
        {
            return Err(unsupported(&format!(
                "root group {root_group:?} must be a relative path without \"..\""
            )));
        }
        let v2 = || mounts.v2.clone().ok_or_else(|| unsupported("no cgroup v2 hierarchy is mounted"));
        let v1 = |controller: &str| {
            mounts.v1(controller).map(|p| Group::new(p.join(relative))).ok_or_else(|| {
                unsupported(&format!("no cgroup v1 hierarchy with controller \"{controller}\" is mounted"))
            })
        };
        // Kernels since 6.10 count for `blkio` only while something is throttled.
        let counting =
            || mounts.v1("blkio").filter(|m| knobs_v1::counts_io(m)).and_then(|_| v1("blkio").ok());
        let (roots, v2_mount) = match driver {
            Driver::CgroupV2 => {
                let mount = v2()?;
                if let Some(lost) = ["cpu", "memory", "pids"].into_iter().find(|c| !mounts.v2_has(c)) {
                    return Err(unsupported(&format!(
                        "the cgroup v2 hierarchy has no controller \"{lost}\""
                    )));
                }
                let one = Group::new(mount.join(relative));
                let roots = Roots {
                    tracking: one.clone(),
                    cpu: one.clone(),
                    memory: one.clone(),
                    pids: Some(one.clone()),
                    cpuacct: None,
                    io: Some(one),
                };
                (roots, Some(mount))
            }
            Driver::Hybrid => {
                let mount = v2()?;
                let tracking = Group::new(mount.join(relative));
                let roots = Roots {
                    tracking,
                    cpu: v1("cpu")?,
                    memory: v1("memory")?,
                    pids: v1("pids").ok(),
                    cpuacct: None,
                    io: counting(),
                };
                (roots, Some(mount))
            }
            Driver::CgroupV1 => {
                let roots = Roots {
                    tracking: v1("freezer")?,
                    cpu: v1("cpu")?,
                    memory: v1("memory")?,
                    pids: v1("pids").ok(),
                    cpuacct: Some(v1("cpuacct")?),
                    io: counting(),
                };
                (roots, None)
            }
            Driver::Rootless | Driver::Oci | Driver::Simple => return Err(unsupported("it has no groups")),
        };
        let memory_bounds = mounts.v1("memory").map(knobs_v1::MemoryBounds::of).unwrap_or_default();
        let depth = relative.components().count();
        Ok(CgroupEnvironment { driver, roots, v2_mount, depth, memory_bounds, runtime: None })
    }

    /// The same with an OCI runtime that starts isolated jobs.
    pub fn with_runtime(self, runtime: Runtime) -> CgroupEnvironment {
        CgroupEnvironment { runtime: Some(Arc::new(runtime)), ..self }
    }

    fn container(&self, job_id: JobId, name: &str) -> CgroupContainer {
        let places = self.roots.child(JOBS).child(name);
        let group = places.tracking.clone();
        let tracking = match self.driver {
            Driver::CgroupV1 => Tracking::Freezer(group),
            _ => Tracking::V2(group),
        };
        CgroupContainer {
            job_id,
            driver: self.driver,
            runtime: self.runtime.clone().map(|runtime| (runtime, name.to_owned())),
            tracking,
            places,
            memory_bounds: self.memory_bounds,
            never_capped: false,
            dies_with_caller: false,
            init: None,
        }
    }

    fn create_named(
        &self,
        job_id: JobId,
        name: &str,
        limits: &JobLimits,
    ) -> Result<CgroupContainer, CageError> {
        let mut container = self.container(job_id, name);
        container.never_capped = true;
        let made = container.make().or_else(|e| {
            // Somebody has removed the node's groups.
            let gone = matches!(&e, CageError::Io { source, .. } if is_gone(source));
            if !gone {
                return Err(e);
            }
            self.make_roots()?;
            container.make()
        });
        let made = made.and_then(|()| container.apply(limits));
        if let Err(e) = made {
            // Half a container would be a leftover; the first error is the one to tell.
            let _ = container.destroy();
            return Err(e);
        }
        Ok(container)
    }

    /// The node's own groups, as far as they are missing.
    fn make_roots(&self) -> Result<(), CageError> {
        for root in self.roots.distinct() {
            root.child(JOBS).make_all()?;
        }
        self.roots.tracking.child(PROXIES).make()?;
        if self.driver == Driver::CgroupV2 {
            self.delegate_controllers()?;
        }
        self.weigh_all_jobs();
        Ok(())
    }

    /// All jobs together must weigh as much as the machine has cores: with the default of one core,
    /// guarantees would be shares of very little as soon as anything runs beside the jobs. Best effort,
    /// a container may not be allowed to.
    fn weigh_all_jobs(&self) {
        let cores = Cpu(100 * std::thread::available_parallelism().map_or(1, |n| n.get() as i64));
        let set = if self.driver == Driver::CgroupV2 {
            knobs_v2::set_cpu_guarantee
        } else {
            knobs_v1::set_cpu_guarantee
        };
        let jobs = self.roots.cpu.child(JOBS);
        for level in jobs.path.ancestors().take(self.depth + 1) {
            let _ = set(&Group::new(level), cores);
        }
    }

    /// v2: groups with processes cannot hand controllers down, so the node leaves the root group
    /// ("no processes in inner groups"), then every level down to `jobs` switches them on.
    fn delegate_controllers(&self) -> Result<(), CageError> {
        let Some(mount) = &self.v2_mount else { return Ok(()) };
        let daemon = self.roots.tracking.child(DAEMON);
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = own.lines().find_map(|l| l.strip_prefix("0::/")).unwrap_or_default().to_owned();
        if !own.is_empty() && self.roots.tracking.path.starts_with(mount.join(&own)) {
            daemon.make_all()?;
            daemon.write("cgroup.procs", &std::process::id().to_string())?;
        }
        let mut level = Group::new(mount);
        let relative = self.roots.tracking.path.strip_prefix(mount).unwrap_or(Path::new(""));
        let names = relative.components().map(|c| c.as_os_str().to_owned()).chain([JOBS.into()]);
        for name in names {
            hand_down(&level)?;
            level = Group::new(level.path.join(name));
        }
        hand_down(&level)
    }
}

/// The controllers that limits need, and the one that only counts, if it is there to be had.
fn hand_down(level: &Group) -> Result<(), CageError> {
    let _ = level.write("cgroup.subtree_control", "+io");
    level.write("cgroup.subtree_control", "+cpu +memory +pids")
}

impl JobEnvironment for CgroupEnvironment {
    fn driver(&self) -> Driver {
        if self.runtime.is_some() { Driver::Oci } else { self.driver }
    }

    fn prepare(&self) -> Result<(), CageError> {
        self.make_roots()?;
        if let Some(runtime) = &self.runtime {
            runtime.prepare()?;
        }
        probe::remove_leftovers(self);
        Ok(())
    }

    fn probe(&self) -> Capabilities {
        probe::probe(self)
    }

    fn enter_proxies(&self, memory: Option<i64>) -> Result<(), CageError> {
        let (tracking, bound) = (self.roots.tracking.child(PROXIES), self.roots.memory.child(PROXIES));
        if memory.is_some() && self.driver == Driver::CgroupV2 {
            // Not as of a job: one proxy must not take all others with it.
            bound.write("memory.max", &memory.map_or("max".to_owned(), |bytes| bytes.to_string()))?;
        } else if memory.is_some() {
            bound.make_all()?;
            knobs_v1::set_memory_limit(&bound, self.memory_bounds, memory)?;
            bound.write("cgroup.procs", "0")?;
        }
        tracking.write("cgroup.procs", "0")
    }

    fn create(&self, job_id: JobId, limits: &JobLimits) -> Result<Box<dyn Container>, CageError> {
        Ok(Box::new(self.create_named(job_id, &job_id.to_string(), limits)?))
    }

    fn reopen(&self, job_id: JobId) -> Option<Box<dyn Container>> {
        let container = self.container(job_id, &job_id.to_string());
        let exists = container.places.distinct().iter().any(|g| g.exists())
            || self.runtime.as_ref().is_some_and(|runtime| runtime.existing().contains(&job_id));
        exists.then(|| Box::new(container) as Box<dyn Container>)
    }

    fn existing(&self) -> Vec<JobId> {
        let mut jobs: Vec<JobId> =
            self.roots.distinct().iter().flat_map(|root| named(&root.path.join(JOBS))).collect();
        jobs.extend(self.runtime.iter().flat_map(|runtime| runtime.existing()));
        jobs.sort_unstable();
        jobs.dedup();
        jobs
    }

    fn remove_root(&self) -> Result<(), CageError> {
        let roots = self.roots.distinct();
        // First, as its places are in the same groups.
        let mut worst = self.runtime.as_ref().map_or(Ok(()), |runtime| runtime.remove_root(&roots));
        for root in roots {
            for own in [JOBS, PROXIES, DAEMON].map(|name| root.child(name)).iter().chain([root]) {
                worst = worst.and(own.remove_if_empty());
            }
            // Parents are shared with other nodes: only an empty one goes.
            for parent in root.path.ancestors().skip(1).take(self.depth - 1) {
                let _ = fs::remove_dir(parent);
            }
        }
        worst
    }
}

/// One job's groups.
struct CgroupContainer {
    job_id: JobId,
    /// Of the groups.
    driver: Driver,
    /// And the name by which it knows this container.
    runtime: Option<(Arc<Runtime>, String)>,
    tracking: Tracking,
    places: Roots,
    memory_bounds: knobs_v1::MemoryBounds,
    /// No cap was set, so nothing can have been throttled and one file less is read.
    never_capped: bool,
    /// Nobody would end what a probe has started.
    dies_with_caller: bool,
    /// Of the job's namespaces, once an isolated process was started.
    init: Option<Init>,
}

impl CgroupContainer {
    fn is_v2(&self) -> bool {
        self.driver == Driver::CgroupV2
    }
    fn make(&self) -> Result<(), CageError> {
        self.places.distinct().into_iter().try_for_each(Group::make)
    }
    fn apply(&mut self, limits: &JobLimits) -> Result<(), CageError> {
        self.set_cpu_guarantee(limits.cpu_guarantee)?;
        // A new group has no bounds: what is not asked for need not be written.
        if limits.cpu_cap.is_some() {
            self.set_cpu_cap(limits.cpu_cap)?;
        }
        if limits.memory.is_some() {
            self.set_memory_limit(limits.memory)?;
        }
        if limits.pids.is_some() {
            self.set_pids_limit(limits.pids)?;
        }
        Ok(())
    }
}

impl Container for CgroupContainer {
    fn spawn(&mut self, spec: &ProcessSpec<'_>) -> Result<Spawned, CageError> {
        let joins: Vec<CString> = match &self.tracking {
            Tracking::V2(_) => self.places.distinct()[1..].iter().map(|g| g.c_path("tasks")).collect(),
            Tracking::Freezer(_) => self.places.distinct().iter().map(|g| g.c_path("tasks")).collect(),
        };
        let (directory, procs): (Option<OwnedFd>, Option<CString>) = match &self.tracking {
            Tracking::V2(group) => {
                let opened = fs::File::open(&group.path).map_err(CageError::io("open group", &group.path))?;
                (Some(opened.into()), Some(group.c_path("cgroup.procs")))
            }
            Tracking::Freezer(_) => (None, None),
        };
        let place = Birthplace {
            v2_group: directory.as_ref().map(AsFd::as_fd),
            join: &joins,
            v2_procs: procs.as_deref(),
            // Namespaces end with the caller by their init. Without them the lease of a job would end with its proxy.
            dies_with_caller: self.dies_with_caller || spec.isolation.is_none(),
        };
        match (spec.isolation, &self.init, &self.runtime) {
            (Some(isolation), None, Some((runtime, name))) => {
                let mut init = Init::of_processes_only(&place)?;
                let started = runtime.spawn(name, spec, isolation, &init, &self.places.distinct());
                let known = started.and_then(|process| {
                    init.has_room(&process).map_err(CageError::io("watch a process of", name))?;
                    Ok(process)
                });
                if known.is_err() {
                    // All that was born in there goes with it.
                    let _ = init.kill();
                    let _ = sys::reap(init.pid);
                    return known;
                }
                self.init = Some(init);
                return known;
            }
            (Some(isolation), None, None) => self.init = Some(Init::start(isolation, &place)?),
            _ => {}
        }
        spawn(spec, &place, self.init.as_ref().filter(|_| spec.isolation.is_some()))
    }

    fn set_cpu_guarantee(&mut self, cores: Cpu) -> Result<(), CageError> {
        let set = if self.is_v2() { knobs_v2::set_cpu_guarantee } else { knobs_v1::set_cpu_guarantee };
        set(&self.places.cpu, cores)
    }

    fn set_cpu_cap(&mut self, cores: Option<Cpu>) -> Result<(), CageError> {
        let set = if self.is_v2() { knobs_v2::set_cpu_cap } else { knobs_v1::set_cpu_cap };
        self.never_capped &= cores.is_none();
        set(&self.places.cpu, cores)
    }

    fn set_memory_limit(&mut self, bytes: Option<i64>) -> Result<(), CageError> {
        if self.is_v2() {
            return knobs_v2::set_memory_limit(&self.places.memory, bytes);
        }
        knobs_v1::set_memory_limit(&self.places.memory, self.memory_bounds, bytes)
    }

    fn set_memory_high(&mut self, bytes: i64) -> Result<(), CageError> {
        match self.is_v2() {
            true => self.places.memory.write("memory.high", &bytes.max(0).to_string()),
            false => Ok(()),
        }
    }

    fn bounds_processes(&self) -> bool {
        self.places.pids.is_some()
    }
    fn set_pids_limit(&mut self, limit: Option<u32>) -> Result<(), CageError> {
        let set = if self.is_v2() { knobs_v2::set_pids_limit } else { knobs_v1::set_pids_limit };
        self.places.pids.as_ref().map_or(Ok(()), |g| set(g, limit))
    }

    fn cpu(&mut self) -> Result<CpuUsage, CageError> {
        let usage = match &self.places.cpuacct {
            None => knobs_v2::cpu(&self.places.tracking)?,
            Some(cpuacct) => {
                let (user, system) = knobs_v1::cpu_times(cpuacct)?;
                CpuUsage { user, system, throttled: Duration::ZERO }
            }
        };
        if self.is_v2() || self.never_capped {
            Ok(usage)
        } else {
            Ok(CpuUsage { throttled: knobs_v1::throttled(&self.places.cpu)?, ..usage })
        }
    }

    fn cpu_wait(&mut self) -> Option<Duration> {
        match &self.tracking {
            Tracking::V2(group) => knobs_v2::cpu_wait(group),
            Tracking::Freezer(_) => None,
        }
    }

    fn block_io(&mut self) -> Option<BlockIo> {
        let read = if self.is_v2() { knobs_v2::block_io } else { knobs_v1::block_io };
        self.places.io.as_ref().and_then(read)
    }

    fn memory(&mut self) -> Result<MemoryUsage, CageError> {
        let read = if self.is_v2() { knobs_v2::memory } else { knobs_v1::memory };
        read(&self.places.memory)
    }

    fn pids(&mut self) -> Result<Vec<u32>, CageError> {
        self.tracking.group().processes()
    }

    fn processes(&mut self) -> Result<Vec<ProcessInfo>, CageError> {
        let init = self.init.as_ref().map(|i| i.pid);
        let pids = self.pids()?.into_iter().filter(|pid| Some(*pid) != init);
        Ok(ProcessInfo::list(pids))
    }

    fn root(&self) -> Option<PathBuf> {
        self.init.as_ref().map(Init::root)
    }

    fn signal(&mut self, signal: i32) -> Result<(), CageError> {
        for pid in self.pids()? {
            sys::kill(pid, signal)
                .map_err(CageError::io("signal a process of", &self.tracking.group().path))?;
        }
        Ok(())
    }

    fn freeze(&mut self, frozen: bool) -> Result<(), CageError> {
        self.tracking.freeze(frozen)?;
        let give_up = Instant::now() + Duration::from_secs(5);
        while self.tracking.is_frozen()? != frozen && Instant::now() < give_up {
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    fn kill_all(&mut self, deadline: Duration) -> Result<(), CageError> {
        let start = Instant::now();
        let mut pause = Duration::from_micros(50);
        while self.tracking.group().exists() && self.tracking.is_populated()? {
            if start.elapsed() >= deadline {
                return Err(CageError::StillAlive {
                    job_id: self.job_id,
                    waited: deadline,
                    pids: self.pids()?,
                });
            }
            self.tracking.kill_once()?;
            // Polling with a growing pause: a small tree is gone in well under a millisecond, and a
            // watch on `cgroup.events` would cost more calls than it saves. The first process of a pid
            // namespace is the last to die.
            match &self.init {
                Some(init) if !sys::ended_child_is(init.pid) => init.wait_for_death(pause),
                _ => std::thread::sleep(pause),
            }
            pause = (pause * 2).min(Duration::from_millis(5));
        }
        Ok(())
    }

    fn destroy(&mut self) -> Result<(), CageError> {
        if let Some(init) = &self.init {
            init.bury();
        }
        if let Some((runtime, name)) = &self.runtime {
            runtime.delete(name)?;
        }
        // The tracking group last: as long as it is there, a restarted node finds the job.
        self.places.distinct().into_iter().rev().try_for_each(Group::remove)
    }
}
