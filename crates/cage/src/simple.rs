//! No groups: a job is what descends from its first process, as far as `/proc` shows.
//!
//! As `simple` it enforces nothing; for tests and for measuring what groups cost. As `rootless` it does what
//! can be done without them, see [`crate::rootless`]. Inside a
//! job proxy (a child sub-reaper, [`crate::sys::become_subreaper`]) all descendants are the job's, so a
//! daemonised process cannot get away. From another process, when the proxy is dead, a job is found
//! by `YT_JOB_ID` in the environment of its processes: one that wiped its environment *and* lost its
//! proxy is not found, which is the limit of this driver (jobs-and-nodes.md 4.6).

use crate::environment::{
    CageError, Capabilities, Container, CpuUsage, Driver, JobEnvironment, JobLimits, MemoryUsage,
};
use crate::init::Init;
use crate::process::{ProcessInfo, Stat, descendants, environ_contains, memory_of};
use crate::rootless::{self, Throttle};
use crate::spawn::{Birthplace, ProcessSpec, Spawned, spawn};
use crate::sys;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use vocab::{Cpu, JobId};

/// How long a destroyed container waits for the first process, which ends when all others are reaped.
const BURIAL: Duration = Duration::from_millis(200);

/// From outside a job is found by the environment of its processes, and who is in the middle of an exec shows
/// none: so many looks in a row, so far apart, must find nobody.
const EMPTY_LOOKS: usize = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// The driver.
pub(crate) struct SimpleEnvironment {
    driver: Driver,
}

impl SimpleEnvironment {
    pub fn new(driver: Driver) -> SimpleEnvironment {
        SimpleEnvironment { driver }
    }
}

impl JobEnvironment for SimpleEnvironment {
    fn driver(&self) -> Driver {
        self.driver
    }
    fn prepare(&self) -> Result<(), CageError> {
        Ok(())
    }
    fn probe(&self) -> Capabilities {
        match self.driver {
            Driver::Rootless => {
                rootless::probe(&mut SimpleContainer::new(JobId::default(), self.driver, false))
            }
            _ => Capabilities { freeze: true, ..Capabilities::default() },
        }
    }
    fn enter_proxies(&self, _: Option<i64>) -> Result<(), CageError> {
        Ok(())
    }
    fn create(&self, job_id: JobId, limits: &JobLimits) -> Result<Box<dyn Container>, CageError> {
        let mut container = SimpleContainer::new(job_id, self.driver, sys::is_subreaper());
        container.set_cpu_cap(limits.cpu_cap)?;
        Ok(Box::new(container))
    }
    fn reopen(&self, job_id: JobId) -> Option<Box<dyn Container>> {
        Some(Box::new(SimpleContainer::new(job_id, self.driver, false)))
    }
    /// Other nodes of this host may have jobs too and there is no way to tell them apart: none.
    fn existing(&self) -> Vec<JobId> {
        Vec::new()
    }
    fn remove_root(&self) -> Result<(), CageError> {
        Ok(())
    }
}

struct SimpleContainer {
    job_id: JobId,
    driver: Driver,
    /// All descendants of this process belong to the job.
    owns_descendants: bool,
    sessions: BTreeSet<u32>,
    marker: Vec<u8>,
    /// Of the job's namespaces, once an isolated process was started.
    init: Option<Init>,
    /// Counters never go back, though processes take theirs with them.
    cpu_seen: CpuUsage,
    /// Of `rootless`, while there is a cap.
    throttle: Option<Throttle>,
    next_look: Option<Instant>,
}

impl SimpleContainer {
    fn new(job_id: JobId, driver: Driver, owns_descendants: bool) -> SimpleContainer {
        let marker = format!("YT_JOB_ID={job_id}").into_bytes();
        SimpleContainer {
            job_id,
            driver,
            owns_descendants,
            sessions: BTreeSet::new(),
            marker,
            init: None,
            cpu_seen: CpuUsage::default(),
            throttle: None,
            next_look: None,
        }
    }

    /// Living processes of the job.
    fn members(&self) -> Vec<Stat> {
        if self.owns_descendants && !sys::has_children() {
            return Vec::new();
        }
        let own = std::process::id();
        // The usual way costs as much as the job has processes. Looking through all processes of the
        // host, once a second in every proxy, would cost the square of their number.
        if self.owns_descendants
            && let Some(found) = descendants(own).filter(|found| !found.is_empty())
        {
            return found;
        }
        let all = Stat::all();
        let mut members: BTreeSet<u32> = BTreeSet::new();
        if self.owns_descendants {
            members.insert(own);
        } else {
            let mine =
                |s: &&Stat| self.sessions.contains(&s.session) || environ_contains(s.pid, &self.marker);
            members.extend(all.iter().filter(|s| s.pid != own).filter(mine).map(|s| s.pid));
        }
        // Descendants, until a round finds no new one: the order of pids says nothing.
        loop {
            let before = members.len();
            let new: Vec<u32> =
                all.iter().filter(|s| s.pid != own && members.contains(&s.parent)).map(|s| s.pid).collect();
            members.extend(new);
            if members.len() == before {
                break;
            }
        }
        members.remove(&own);
        all.into_iter().filter(|s| members.contains(&s.pid) && !s.is_dead()).collect()
    }

    fn signal_all(&self, members: &[Stat], signal: i32) -> Result<(), CageError> {
        members
            .iter()
            .try_for_each(|m| sys::kill(m.pid, signal))
            .map_err(CageError::io("signal a process of", "/proc"))
    }
}

impl Container for SimpleContainer {
    fn spawn(&mut self, spec: &ProcessSpec<'_>) -> Result<Spawned, CageError> {
        if let (Some(isolation), None) = (spec.isolation, &self.init) {
            let init = Init::start(isolation, &Birthplace::default())?;
            self.sessions.insert(init.pid);
            self.init = Some(init);
        }
        let init = self.init.as_ref().filter(|_| spec.isolation.is_some());
        // Namespaces end with the caller by their init. Without them the lease of a job would end with its proxy.
        let place = Birthplace { dies_with_caller: spec.isolation.is_none(), ..Birthplace::default() };
        let spawned = spawn(spec, &place, init)?;
        // The child is a session leader.
        self.sessions.insert(spawned.pid);
        Ok(spawned)
    }
    fn set_cpu_guarantee(&mut self, _: Cpu) -> Result<(), CageError> {
        Ok(())
    }
    fn set_cpu_cap(&mut self, cap: Option<Cpu>) -> Result<(), CageError> {
        if self.driver != Driver::Rootless {
            return Ok(());
        }
        let before = self.throttle.take();
        if before.as_ref().is_some_and(|throttle| throttle.stopped) {
            self.freeze(false)?;
        }
        self.cpu_seen.throttled = before.map_or(self.cpu_seen.throttled, |throttle| throttle.throttled);
        self.throttle = cap.map(|cap| Throttle::new(cap, self.cpu_seen.throttled));
        self.next_look = None;
        Ok(())
    }
    fn set_memory_limit(&mut self, _: Option<i64>) -> Result<(), CageError> {
        Ok(())
    }
    fn set_pids_limit(&mut self, _: Option<u32>) -> Result<(), CageError> {
        Ok(())
    }

    fn cpu(&mut self) -> Result<CpuUsage, CageError> {
        let tick = Duration::from_secs(1) / rustix::param::clock_ticks_per_second() as u32;
        let mut now = CpuUsage::default();
        for m in self.members() {
            now.user += tick * m.user_ticks as u32;
            now.system += tick * m.system_ticks as u32;
        }
        if self.owns_descendants {
            let reaped = sys::children_usage();
            now.user += reaped.user;
            now.system += reaped.system;
        }
        if let Some(throttle) = &self.throttle {
            self.cpu_seen.throttled = throttle.throttled;
        }
        self.cpu_seen.user = self.cpu_seen.user.max(now.user);
        self.cpu_seen.system = self.cpu_seen.system.max(now.system);
        Ok(self.cpu_seen)
    }

    /// Anonymous memory only: `/proc` cannot say which shared pages are counted twice.
    fn memory(&mut self) -> Result<MemoryUsage, CageError> {
        let mut usage = MemoryUsage::default();
        for m in self.members() {
            let (resident, shared) = memory_of(m.pid).unwrap_or_default();
            usage.rss += resident - shared;
            usage.major_page_faults += m.major_faults as i64;
        }
        Ok(usage)
    }

    fn look_after(&mut self, now: Instant) -> Option<Instant> {
        self.throttle.as_ref()?;
        if let Some(next) = self.next_look.filter(|next| now < *next) {
            return Some(next);
        }
        let used = self.cpu().map_or(Duration::ZERO, |used| used.user + used.system);
        let throttle = self.throttle.as_mut()?;
        let before = throttle.stopped;
        let next = throttle.look(now, used);
        let stopped = throttle.stopped;
        // Also again: what was born between a look and the stop goes on.
        if stopped || before {
            // Who has just ended, or is out of reach, is none of a cap's business.
            let _ = self.freeze(stopped);
        }
        self.next_look = Some(next);
        Some(next)
    }

    fn pids(&mut self) -> Result<Vec<u32>, CageError> {
        Ok(self.members().iter().map(|m| m.pid).collect())
    }
    fn processes(&mut self) -> Result<Vec<ProcessInfo>, CageError> {
        let init = self.init.as_ref().map(|i| i.pid);
        Ok(ProcessInfo::list(self.members().iter().map(|m| m.pid).filter(|pid| Some(*pid) != init)))
    }
    fn root(&self) -> Option<PathBuf> {
        self.init.as_ref().map(Init::root)
    }
    fn signal(&mut self, signal: i32) -> Result<(), CageError> {
        self.signal_all(&self.members(), signal)
    }
    fn freeze(&mut self, frozen: bool) -> Result<(), CageError> {
        self.signal(if frozen { libc::SIGSTOP } else { libc::SIGCONT })
    }

    /// Stops everything until no new process appears, then kills: a fork bomb cannot outrun it,
    /// because what is stopped does not fork.
    fn kill_all(&mut self, deadline: Duration) -> Result<(), CageError> {
        let start = Instant::now();
        // The kernel kills all that were born under it, and nothing can be born any more. It stays until
        // the caller has reaped the command, so nobody waits for it here.
        let init = self.init.as_ref().map(|i| i.pid);
        if let Some(init) = &self.init {
            init.kill().map_err(CageError::io("signal the first process of", "/proc"))?;
        }
        // Nobody is to be continued any more.
        self.throttle = None;
        let mut empty = 0;
        loop {
            let mut members = self.members();
            members.retain(|m| Some(m.pid) != init);
            if members.is_empty() {
                empty += 1;
                if self.owns_descendants || empty == EMPTY_LOOKS {
                    return Ok(());
                }
                std::thread::sleep(BETWEEN_LOOKS);
                continue;
            }
            empty = 0;
            if start.elapsed() >= deadline {
                let pids = members.iter().map(|m| m.pid).collect();
                return Err(CageError::StillAlive { job_id: self.job_id, waited: deadline, pids });
            }
            loop {
                self.signal_all(&members, libc::SIGSTOP).or_else(not_permitted)?;
                let again: Vec<Stat> = self.members().into_iter().filter(|m| Some(m.pid) != init).collect();
                let known: BTreeSet<u32> = members.iter().map(|m| m.pid).collect();
                let stable = again.iter().all(|m| known.contains(&m.pid));
                members = again;
                if stable || start.elapsed() >= deadline {
                    break;
                }
            }
            self.signal_all(&members, libc::SIGKILL).or_else(not_permitted)?;
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    fn destroy(&mut self) -> Result<(), CageError> {
        if let Some(init) = self.init.take() {
            // As a zombie it would be there for as long as we are.
            init.wait_for_death(BURIAL);
            init.bury();
        }
        Ok(())
    }
}

/// A set-user-id program of the job may be out of reach; the deadline tells.
fn not_permitted(e: CageError) -> Result<(), CageError> {
    match e {
        CageError::Io { ref source, .. } if source.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => Err(other),
    }
}
