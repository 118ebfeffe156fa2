//! Finding out what works by doing it (jobs-and-nodes.md 4.2).

use super::CgroupEnvironment;
use crate::environment::{Capabilities, Container, Driver, JobLimits};
use crate::process::ProcessId;
use crate::spawn::ProcessSpec;
use crate::sys;
use std::fs::File;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use vocab::{Cpu, JobId};

const PREFIX: &str = "probe-";
/// Until something has shown itself that takes a moment, or many on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
const MEMORY_LIMIT: i64 = 32 << 20;

/// A child burns CPU under a cap of 0.1 core, another allocates twice its memory limit.
pub(super) fn probe(environment: &CgroupEnvironment) -> Capabilities {
    let mut found = Capabilities::default();
    let Ok(own) = ProcessId::own() else { return found };
    let name = |step| format!("{PREFIX}{}-{}-{step}", own.pid, own.start_time);
    let limits = JobLimits { cpu_guarantee: Cpu(100), cpu_cap: Some(Cpu(10)), memory: None, pids: None };
    let Ok(mut container) = environment.create_named(JobId::default(), &name(1), &limits) else {
        return found;
    };
    container.dies_with_caller = true;
    found.cpu_weight = container.set_cpu_guarantee(Cpu(200)).is_ok();
    // Kernels may be told to leave sockets out of cgroup v2 (`cgroup.memory=nosocket`).
    found.socket_memory = match environment.driver {
        Driver::CgroupV2 => {
            std::fs::read_to_string("/proc/cmdline").is_ok_and(|line| !line.contains("nosocket"))
        }
        _ => environment.memory_bounds.sockets,
    };
    found.pids = environment.roots.pids.is_some() && container.set_pids_limit(Some(64)).is_ok();
    if let Some(burner) = run(&mut container, "while :; do :; done") {
        let give_up = Instant::now() + PATIENCE;
        while !found.cpu_cap && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(5));
            found.cpu_cap = container.cpu().is_ok_and(|u| u.throttled > Duration::ZERO);
        }
        found.freeze = container.freeze(true).is_ok() && container.tracking.is_frozen().unwrap_or(false);
        let _ = container.freeze(false);
        found.tracking = container.pids().is_ok_and(|p| p.contains(&burner));
        found.tracking &= container.kill_all(PATIENCE).is_ok();
        let _ = sys::reap(burner);
    }
    found.kill_file = container.tracking.group().has("cgroup.kill");
    let _ = container.destroy();

    // A group of its own: see `kill_all` about groups that were killed once.
    let limits = JobLimits { cpu_cap: None, memory: Some(MEMORY_LIMIT), ..limits };
    let Ok(mut container) = environment.create_named(JobId::default(), &name(2), &limits) else {
        return found;
    };
    container.dies_with_caller = true;
    // `tail` keeps all of the one endless line that it is given.
    if let Some(hog) = run(&mut container, "head -c 67108864 /dev/zero | tail -n 1 >/dev/null") {
        // Where nothing bounds it, it ends by itself: more patience costs nobody anything.
        let give_up = Instant::now() + 6 * PATIENCE;
        while !found.memory_limit && Instant::now() < give_up && container.pids().is_ok_and(|p| !p.is_empty())
        {
            found.memory_limit = container.memory().is_ok_and(|m| m.oom_kills > 0);
            std::thread::sleep(Duration::from_millis(5));
        }
        found.memory_limit |= container.memory().is_ok_and(|m| m.oom_kills > 0);
        let _ = container.kill_all(PATIENCE);
        let _ = sys::reap(hog);
    }
    let _ = container.destroy();
    found
}

/// Groups of probes whose process died in the middle; they would keep the root group for ever.
pub(super) fn remove_leftovers(environment: &CgroupEnvironment) {
    for group in environment.roots.tracking.child(super::JOBS).children() {
        let Some(name) = group.path.file_name().and_then(|n| n.to_str()) else { continue };
        // Pids are used again, so its start time is in the name.
        let owner = name.strip_prefix(PREFIX).map(|rest| {
            let mut parts = rest.split('-').map(str::parse::<u64>);
            let (pid, start_time) = (parts.next()?.ok()?, parts.next()?.ok()?);
            Some(ProcessId { pid: u32::try_from(pid).ok()?, start_time })
        });
        // One with another name is of an older program.
        if owner.is_some_and(|owner| !owner.is_some_and(ProcessId::is_alive)) {
            let mut container = environment.container(JobId::default(), name);
            // One that resists is found again at the next start.
            let _ = container.kill_all(PATIENCE).and_then(|()| container.destroy());
        }
    }
}

fn run(container: &mut impl Container, script: &str) -> Option<u32> {
    let null = File::options().read(true).write(true).open("/dev/null").ok()?;
    let arguments = [c"sh".to_owned(), c"-c".to_owned(), std::ffi::CString::new(script).ok()?];
    let environment = [c"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()];
    let spec = ProcessSpec {
        program: c"/bin/sh",
        arguments: &arguments,
        environment: &environment,
        working_directory: c"/",
        descriptors: &[(null.as_fd(), 0), (null.as_fd(), 1), (null.as_fd(), 2)],
        user: None,
        open_files_limit: 1024,
        isolation: None,
        processes_limit: None,
        terminal: false,
    };
    container.spawn(&spec).ok().map(|s| s.pid)
}
