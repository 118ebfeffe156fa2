//! What every driver must do (jobs-and-nodes.md 11, "Real drivers"). A driver that the host lacks is
//! skipped with its reason; after every test nothing may be left, whether it passed or not.

use super::bomb::Bomb;
use cage::{
    Container, Driver, EnvironmentConfig, Isolation, JobEnvironment, JobLimits, ProcessId, ProcessSpec,
};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use vocab::{Cpu, Guid, JobId};

static COUNTER: AtomicU32 = AtomicU32::new(1);
/// An emulated machine on a busy host is slow; nothing but a fault takes so long.
pub const PATIENCE: Duration = Duration::from_secs(180);
pub const FREE: JobLimits = JobLimits { cpu_guarantee: Cpu(100), cpu_cap: None, memory: None, pids: None };

/// An environment of one test with its containers; dropping it kills and removes everything.
pub struct World {
    pub environment: Box<dyn JobEnvironment>,
    jobs: Vec<JobId>,
    children: Vec<u32>,
}

impl World {
    pub fn new(driver: Driver) -> World {
        let n = COUNTER.fetch_add(1, Ordering::Relaxed);
        let config = EnvironmentConfig::new(&format!("millpond/cage-test-{}-{n}", std::process::id()));
        let environment = cage::open(driver, &config).expect("was probed");
        environment.prepare().expect("was probed");
        World { environment, jobs: Vec::new(), children: Vec::new() }
    }

    pub fn container(&mut self, limits: JobLimits) -> (JobId, Box<dyn Container>) {
        let job_id = JobId(Guid([COUNTER.fetch_add(1, Ordering::Relaxed), std::process::id(), 0x10384, 2]));
        self.jobs.push(job_id);
        (job_id, self.environment.create(job_id, &limits).expect("created"))
    }

    pub fn run(&mut self, job_id: JobId, container: &mut dyn Container, script: &str) -> u32 {
        self.spawn(job_id, container, script, None, Path::new("/"), None)
    }

    pub fn spawn(
        &mut self,
        job_id: JobId,
        container: &mut dyn Container,
        script: &str,
        isolation: Option<&Isolation>,
        directory: &Path,
        user: Option<u32>,
    ) -> u32 {
        let null = File::options().read(true).write(true).open("/dev/null").expect("it exists");
        let arguments = ["sh", "-c", script].map(|a| CString::new(a).expect("no NUL"));
        let environment = [
            c"PATH=/usr/bin:/bin:/usr/sbin:/sbin".to_owned(),
            CString::new(format!("YT_JOB_ID={job_id}")).expect("no NUL"),
        ];
        let spawned = container
            .spawn(&ProcessSpec {
                program: c"/bin/sh",
                arguments: &arguments,
                environment: &environment,
                working_directory: &cage::spawn::c_path(directory).expect("no NUL"),
                descriptors: &[(null.as_fd(), 0), (null.as_fd(), 1), (null.as_fd(), 2)],
                user: user.map(|u| (u, u)),
                open_files_limit: 1024,
                isolation,
                processes_limit: None,
                terminal: false,
            })
            .expect("started");
        self.children.push(spawned.pid);
        spawned.pid
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let mut worst = Ok(());
        for job_id in self.jobs.drain(..) {
            if let Some(mut container) = self.environment.reopen(job_id) {
                worst = worst.and(container.kill_all(PATIENCE)).and(container.destroy());
            }
        }
        for pid in self.children.drain(..) {
            let _ = cage::sys::kill(pid, 9);
            let _ = cage::sys::reap(pid);
        }
        worst = worst.and(self.environment.remove_root());
        assert!(std::thread::panicking() || worst.is_ok(), "{worst:?}");
    }
}

/// Who waits for a process that a runtime has made adopts orphans, and must not think them those of `simple`: the
/// driver `oci` is tried by itself, see the module `oci`.
fn drivers() -> Vec<Driver> {
    match super::oci::is_tried_here() {
        true => vec![Driver::Oci],
        false => Driver::ALL.into_iter().filter(|driver| *driver != Driver::Oci).collect(),
    }
}

pub fn for_each(test: impl Fn(&mut World)) {
    let config = EnvironmentConfig::new(&format!("millpond/cage-probe-{}", std::process::id()));
    for driver in drivers() {
        let usable = cage::open(driver, &config).and_then(|e| {
            let n = COUNTER.fetch_add(1, Ordering::Relaxed);
            let own = EnvironmentConfig::new(&format!("millpond/cage-probe-{}-{n}", std::process::id()));
            drop(e);
            let e = cage::open(driver, &own)?;
            e.prepare()?;
            e.remove_root()
        });
        match usable {
            Ok(()) => {
                println!("driver {driver}");
                test(&mut World::new(driver));
            }
            Err(e) => println!("SKIPPED {driver}: {e}"),
        }
    }
}

/// For what only groups promise.
pub fn for_each_with_groups(test: impl Fn(&mut World)) {
    for_each(|w| {
        if w.environment.driver().has_groups() {
            test(w)
        }
    });
}

pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let give_up = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < give_up, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn alive(pid: u32) -> bool {
    ProcessId::of(pid).is_some_and(ProcessId::is_alive)
}

/// Where a driver must be there, as in the virtual machine of `tests/vm`, skipping it would hide all
/// that is tested here.
#[test]
fn required_drivers_can_be_used() {
    let required = std::env::var("MILLPOND_REQUIRED_DRIVERS").unwrap_or_default();
    for name in required.split(',').filter(|name| !name.is_empty()) {
        let driver: Driver = name.parse().expect("a driver");
        assert_eq!(World::new(driver).environment.driver(), driver);
    }
}

#[test]
fn a_process_is_born_inside_and_killed_with_its_tree() {
    for_each(|w| {
        let (id, mut c) = w.container(FREE);
        let root = w.run(id, c.as_mut(), "setsid sleep 3210 & sleep 3210 & (sleep 3210 &); wait");
        // The shell of the daemon is there for a moment only.
        until("one shell and three programs", || {
            let names: Vec<String> = c.processes().expect("readable").into_iter().map(|p| p.name).collect();
            names.len() == 4 && names.iter().filter(|n| *n == "sleep").count() == 3
        });
        let pids = c.pids().expect("readable");
        assert!(pids.contains(&root));
        // Another process would find the same.
        assert_eq!(w.environment.reopen(id).expect("it exists").pids().expect("readable"), pids);
        let start = Instant::now();
        c.kill_all(PATIENCE).expect("killed");
        println!("killed in {:?}", start.elapsed());
        assert!(pids.iter().all(|p| !alive(*p)));
        c.kill_all(PATIENCE).expect("killing nothing is fine");
        c.destroy().expect("removed");
        c.destroy().expect("twice is fine");
        if w.environment.driver().has_groups() {
            assert!(w.environment.reopen(id).is_none());
        }
    });
}

#[test]
fn freezing_stops_and_thaws() {
    for_each(|w| {
        let (id, mut c) = w.container(FREE);
        w.run(id, c.as_mut(), "while :; do :; done");
        until("some work", || c.cpu().expect("readable").user > Duration::from_millis(20));
        c.freeze(true).expect("frozen");
        std::thread::sleep(Duration::from_millis(30));
        let before = c.cpu().expect("readable");
        std::thread::sleep(Duration::from_millis(150));
        let used = c.cpu().expect("readable").user - before.user;
        assert!(used <= Duration::from_millis(10), "{used:?} while frozen");
        c.freeze(false).expect("thawed");
        until("more work", || c.cpu().expect("readable").user > before.user + Duration::from_millis(20));
        // A frozen job can be killed too.
        c.freeze(true).expect("frozen");
        c.kill_all(PATIENCE).expect("killed");
    });
}

#[test]
fn signals_reach_every_process() {
    for_each(|w| {
        let (id, mut c) = w.container(FREE);
        w.run(id, c.as_mut(), "sleep 3211 & sleep 3212 & wait");
        until("three processes", || c.pids().expect("readable").len() == 3);
        c.signal(15).expect("sent");
        until("the end", || !c.pids().expect("readable").into_iter().any(alive));
    });
}

#[test]
fn a_cap_holds_and_changes_live() {
    for_each_with_groups(|w| {
        let (id, mut c) = w.container(FREE);
        w.run(id, c.as_mut(), "while :; do :; done & while :; do :; done");
        // At least and at most: who is held up beside the clock does not know exactly how long it was.
        let rate = |c: &mut dyn Container, seconds| {
            let mut look = || (Instant::now(), c.cpu().expect("readable"), Instant::now());
            let (earliest, before, begin) = look();
            std::thread::sleep(Duration::from_secs_f64(seconds));
            let (end, after, latest) = look();
            let used = ((after.user + after.system) - (before.user + before.system)).as_secs_f64();
            let (long, short) = ((latest - earliest).as_secs_f64(), (end - begin).as_secs_f64());
            (used / long, used / short, after.throttled > before.throttled)
        };
        let (free_before, ..) = rate(c.as_mut(), 1.0);
        c.set_cpu_cap(Some(Cpu(50))).expect("set");
        std::thread::sleep(Duration::from_millis(200));
        let (least, most, throttled) = rate(c.as_mut(), 3.0);
        assert!(least <= 0.55, "{least} cores under a cap of 0.5");
        // The lower bound can only be seen on a machine that has much more than half a core to give, all the time.
        c.set_cpu_cap(None).expect("set");
        std::thread::sleep(Duration::from_millis(200));
        let free = rate(c.as_mut(), 1.0).0.min(free_before);
        let cores = std::thread::available_parallelism().map_or(1, usize::from).min(2) as f64;
        if free > 0.75 * cores {
            assert!(throttled && most >= 0.45, "{most} cores under a cap of 0.5, {free} without");
        } else {
            println!("SKIPPED for lack of processor: lower bound of the cap, {free} cores without a cap");
        }
        c.set_cpu_cap(Some(Cpu(10))).expect("set");
        std::thread::sleep(Duration::from_millis(200));
        let (tenth, ..) = rate(c.as_mut(), 2.0);
        assert!(tenth <= 0.13, "{tenth} cores under a cap of 0.1");
        c.set_cpu_cap(None).expect("set");
        c.set_cpu_guarantee(Cpu(1000)).expect("set");
        until("more than the cap", || rate(c.as_mut(), 0.5).0 > 0.2);
    });
}

#[test]
fn guarantees_are_weights_under_contention() {
    for_each_with_groups(|w| {
        let mut both: Vec<_> = [Cpu(200), Cpu(400)]
            .into_iter()
            .map(|g| {
                let (id, mut c) = w.container(JobLimits { cpu_guarantee: g, ..FREE });
                // On one core, so that they compete with each other whatever else runs.
                w.run(id, c.as_mut(), "exec taskset 1 sh -c 'while :; do :; done'");
                c
            })
            .collect();
        // Of the first twice: who is held up between two looks knows by how much they differ.
        let mut look = || {
            let mut user = |i: usize| both[i].cpu().expect("readable").user.as_secs_f64();
            (user(0), user(1), user(0))
        };
        until("both to run", || {
            std::thread::sleep(Duration::from_millis(50));
            let (first, second, _) = look();
            first > 0.05 && second > 0.05
        });
        let before = look();
        // By the time that they have had: on a busy core, few turns in a fixed time would be compared.
        until("two seconds of work", || {
            std::thread::sleep(Duration::from_millis(200));
            let now = look();
            (now.0 - before.2) + (now.1 - before.1) > 2.0
        });
        let after = look();
        let second = after.1 - before.1;
        let (least, most) = (second / (after.2 - before.0), second / (after.0 - before.2));
        assert!(least < 2.7 && most > 1.5, "ratio from {least} to {most}, {before:?}, {after:?}, expected 2");
    });
}

#[test]
fn the_memory_limit_kills_and_is_counted() {
    for_each_with_groups(|w| {
        let (id, mut c) = w.container(JobLimits { memory: Some(32 << 20), ..FREE });
        w.run(id, c.as_mut(), "head -c 8000000 /dev/zero | tail -n 1 | sleep 3213");
        until("memory in use", || c.memory().expect("readable").rss > 1 << 20);
        assert_eq!(c.memory().expect("readable").oom_kills, 0);
        w.run(id, c.as_mut(), "head -c 300000000 /dev/zero | tail -n 1");
        until("a kill by the kernel", || c.memory().expect("readable").oom_kills > 0);
        // The limit can be raised live.
        c.set_memory_limit(Some(64 << 20)).expect("set");
        c.set_memory_limit(None).expect("set");
    });
}

#[test]
fn memory_is_what_the_processes_hold() {
    for_each(|w| {
        let (id, mut c) = w.container(FREE);
        w.run(id, c.as_mut(), "head -c 40000000 /dev/zero | tail -n 1 | sleep 3214");
        until("40 MB", || c.memory().expect("readable").rss > 38_000_000);
        let m = c.memory().expect("readable");
        assert!(m.rss < 200_000_000 && m.mapped_file >= 0 && m.shared >= 0, "{m:?}");
        assert!(c.processes().expect("readable")[0].rss > 38_000_000);
    });
}

/// Only cgroup v2 can. The job is held back below its limit, and is not killed for that.
#[test]
fn memory_above_the_soft_bound_is_held_back() {
    for_each_with_groups(|w| {
        let (id, mut c) = w.container(JobLimits { memory: Some(64 << 20), ..FREE });
        c.set_memory_high(16 << 20).expect("set, or nothing to be set");
        if w.environment.driver() != Driver::CgroupV2 {
            return;
        }
        let group = group_of(Path::new("/sys/fs/cgroup"), id).expect("a group of the job");
        let number = |file: &str, key: &str| {
            let text = std::fs::read_to_string(group.join(file)).expect("readable");
            let of_key = |line: &str| line.strip_prefix(key)?.trim().parse::<u64>().ok();
            text.lines().find_map(of_key).unwrap_or_else(|| panic!("no {key:?} in {text:?}"))
        };
        assert_eq!(number("memory.high", ""), 16 << 20);
        assert_eq!(number("memory.events", "high "), 0);
        w.run(id, c.as_mut(), "head -c 24000000 /dev/zero | tail -n 1 | sleep 3216");
        until("the kernel to hold it back", || number("memory.events", "high ") > 0);
        assert_eq!(c.memory().expect("readable").oom_kills, 0);
    });
}

/// The directory of a job below a mount of groups.
fn group_of(directory: &Path, id: JobId) -> Option<std::path::PathBuf> {
    let mut below = std::fs::read_dir(directory).ok()?.flatten().filter(|e| e.path().is_dir());
    below.find_map(|entry| match entry.file_name().to_str() == Some(&id.to_string()) {
        true => Some(entry.path()),
        false => group_of(&entry.path(), id),
    })
}

/// Where somebody counts, and where there is a device to count at.
#[test]
fn requests_to_storage_are_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let device = std::fs::metadata(directory.path()).expect("it is there").dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    if !Path::new(&format!("/sys/dev/block/{major}:{minor}")).exists() {
        println!("SKIPPED: {} is on no device of its own", directory.path().display());
        return;
    }
    for_each_with_groups(|w| {
        let (id, mut c) = w.container(FREE);
        if c.block_io().is_none() {
            println!("SKIPPED {}: there is no controller that counts", w.environment.driver());
            return;
        }
        let written = directory.path().join("written");
        // Past the page cache: what is written later is nobody's in v1.
        let command =
            "dd if=/dev/zero of=x bs=65536 count=4 oflag=direct 2>/dev/null; echo $? > written; sleep 3215";
        w.spawn(id, c.as_mut(), command, None, directory.path(), None);
        until("the end of dd", || std::fs::read_to_string(&written).is_ok_and(|text| text.ends_with('\n')));
        if std::fs::read_to_string(&written).expect("it is there") == "0\n" {
            until("four requests", || {
                c.block_io().is_some_and(|io| io.writes >= 4 && io.bytes_written >= 4 << 16)
            });
        } else {
            println!("SKIPPED: no file past the page cache in {}", directory.path().display());
        }
        std::fs::remove_file(written).expect("it is there");
    });
}

#[test]
fn a_fork_bomb_dies() {
    for_each_with_groups(|w| {
        let bomb = Bomb::new();
        let (id, mut c) = w.container(JobLimits { pids: Some(200), ..FREE });
        w.run(id, c.as_mut(), &bomb.script());
        // It is still growing.
        until("many processes", || bomb.size() >= 100);
        let start = Instant::now();
        c.kill_all(PATIENCE).expect("killed");
        println!("a fork bomb killed in {:?}", start.elapsed());
        assert!(c.pids().expect("readable").into_iter().all(|p| !alive(p)));
        until("nothing of it", || bomb.size() == 0);

        let bomb = Bomb::new();
        let (id, mut c) = w.container(JobLimits { pids: Some(200), ..FREE });
        w.run(id, c.as_mut(), &bomb.script());
        let most = bomb.most(180);
        assert!((180..=200).contains(&most), "{most} processes under a limit of 200");
        c.kill_all(PATIENCE).expect("killed");
    });
}

#[test]
fn leftovers_go_and_kept_jobs_stay() {
    for_each_with_groups(|w| {
        let (kept, mut c) = w.container(FREE);
        let stays = w.run(kept, c.as_mut(), "sleep 3216");
        let (lost, mut d) = w.container(FREE);
        let goes = w.run(lost, d.as_mut(), "sleep 3217");
        let mut both = vec![kept, lost];
        both.sort();
        assert_eq!(w.environment.existing(), both);
        let removed = w.environment.cleanup_leftovers(&|j| j == kept, PATIENCE).expect("removed");
        assert_eq!(removed, [lost]);
        assert!(alive(stays) && !alive(goes));
        assert_eq!(w.environment.existing(), [kept]);
        assert!(w.environment.remove_root().is_err(), "a node's root group with a job must not go");
    });
}

#[test]
fn the_probe_finds_what_the_driver_promises() {
    for_each(|w| {
        let found = w.environment.probe();
        println!("{}: {found:?}, missing {:?}", w.environment.driver(), found.missing());
        if w.environment.driver() == Driver::Simple {
            assert!(!found.tracking && !found.memory_limit && found.missing().len() == 5);
        } else if w.environment.driver() == Driver::Rootless {
            assert!(found.cpu_cap && !found.memory_limit && !found.cpu_weight, "{found:?}");
        } else {
            assert!(found.tracking && found.memory_limit && found.cpu_weight && found.freeze, "{found:?}");
            assert_eq!(found.kill_file, w.environment.driver() != Driver::CgroupV1);
        }
        assert!(w.environment.existing().is_empty(), "the probe left its group");
    });
}

#[test]
fn what_cannot_be_executed_is_an_error_with_its_step() {
    for_each(|w| {
        let (_, mut c) = w.container(FREE);
        let null = File::open("/dev/null").expect("it exists");
        let mut attempt = |program, directory| {
            let spec = ProcessSpec {
                program,
                arguments: &[c"x".to_owned()],
                environment: &[],
                working_directory: directory,
                descriptors: &[(null.as_fd(), 0)],
                user: None,
                open_files_limit: 1024,
                isolation: None,
                processes_limit: None,
                terminal: false,
            };
            c.spawn(&spec).map(|s| s.pid).map_err(|e| e.to_string())
        };
        let missing = attempt(c"/no/such", c"/").expect_err("must fail");
        assert!(missing.contains("/no/such") && missing.contains("cannot execute"), "{missing}");
        let nowhere = attempt(c"/bin/true", c"/no/such").expect_err("must fail");
        assert!(nowhere.contains("cannot change directory"), "{nowhere}");
        assert_eq!(c.pids().expect("readable"), Vec::<u32>::new());
    });
}
