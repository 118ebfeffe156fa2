//! The driver of nodes without privileges (jobs-and-nodes.md 4.10). Run by root, these tests start
//! themselves once more as nobody.

use super::bomb::Bomb;
use super::conformance::{FREE, PATIENCE, World, alive, until};
use super::isolation::Place;
use cage::{Capabilities, Container, Driver, EnvironmentConfig, ProcessSpec};
use std::ffi::CString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};
use vocab::Cpu;

const NOBODY: u32 = 65_534;

/// What is found out about the driver; none for root, to whom it is refused.
fn probed() -> Option<Capabilities> {
    match cage::open(Driver::Rootless, &EnvironmentConfig::new("millpond/unused")) {
        Ok(environment) => Some(environment.probe()),
        Err(e) => {
            println!("SKIPPED rootless: {e}");
            None
        }
    }
}

/// With the driver `rootless`, where this host lets us make user namespaces.
pub fn in_user_namespaces(test: impl Fn(&mut World)) {
    if super::oci::is_tried_here() {
        return;
    }
    let Some(found) = probed() else { return };
    if !found.tracking {
        return println!("SKIPPED user namespaces: this host lets this user make none");
    }
    test(&mut World::new(Driver::Rootless));
}

#[test]
fn all_of_it_holds_for_nobody() {
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED becoming nobody: it needs root");
    }
    // Where nobody can read it.
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    let program = directory.path().join("tests");
    std::fs::copy("/proc/self/exe", &program).expect("copied");
    let scratch = directory.path().join("scratch");
    std::fs::create_dir(&scratch).expect("made");
    std::os::unix::fs::chown(&scratch, Some(NOBODY), Some(NOBODY)).expect("root may");
    let output = Command::new(&program)
        .args(["isolation::", "rootless::", "conformance::", "--test-threads=2"])
        .env("TMPDIR", &scratch)
        // What root must be able to use here is not for nobody.
        .env_remove("MILLPOND_REQUIRED_DRIVERS")
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .expect("started");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("test result: ok"), "{text}");
}

/// The kernel bounds nobody who is root outside: a fork bomb of a job would be the end of the host. Neither by
/// name nor as what `auto` falls back to.
#[test]
fn it_is_refused_to_root() {
    let map = std::fs::read_to_string("/proc/self/uid_map").expect("readable");
    let outside = map.split_ascii_whitespace().nth(1);
    if !rustix::process::geteuid().is_root() || outside != Some("0") {
        return println!("SKIPPED root: it needs root outside of user namespaces");
    }
    let nowhere = tempfile::NamedTempFile::new().expect("an empty mount table");
    let config = EnvironmentConfig {
        root_group: "millpond/unused".to_owned(),
        mount_table: nowhere.path().to_owned(),
    };
    let refused = cage::open(Driver::Rootless, &config).err().expect("must fail").to_string();
    assert!(refused.contains("rootless") && refused.contains("number of processes"), "{refused}");
    let nothing = cage::environment::open_auto(&config).err().expect("must fail").to_string();
    for word in ["cgroup_v2", "hybrid", "cgroup_v1", "rootless", "number of processes", "\"simple\""] {
        assert!(nothing.contains(word), "{word}: {nothing}");
    }
}

/// Groups that bound no processes are not what root gets without asking: one fork bomb would take the host.
#[test]
fn auto_wants_the_number_of_processes_bounded() {
    let table = std::fs::read_to_string("/proc/self/mountinfo").expect("readable");
    let is_pids = |line: &&str| line.contains(" - cgroup ") && line.ends_with("pids");
    let v2_has_pids = table
        .lines()
        .find(|line| line.contains(" - cgroup2 "))
        .and_then(|line| line.split(' ').nth(4))
        .and_then(|point| std::fs::read_to_string(format!("{point}/cgroup.controllers")).ok())
        .is_some_and(|controllers| controllers.split_whitespace().any(|name| name == "pids"));
    if !rustix::process::geteuid().is_root() || v2_has_pids || !table.lines().any(|line| is_pids(&line)) {
        return println!("SKIPPED groups without pids: it needs root and a v1 hierarchy with pids alone");
    }
    let without = tempfile::NamedTempFile::new().expect("a file");
    let rest: Vec<&str> = table.lines().filter(|line| !is_pids(line)).collect();
    std::fs::write(without.path(), rest.join("\n")).expect("ours");
    let config = EnvironmentConfig {
        root_group: format!("millpond/cage-no-pids-{}", std::process::id()),
        mount_table: without.path().to_owned(),
    };
    let refused = cage::environment::open_auto(&config).err().expect("must fail").to_string();
    for word in
        ["hybrid does not enforce limit of processes", "cgroup_v1 does not enforce limit of processes"]
    {
        assert!(refused.contains(word), "{word}: {refused}");
    }
    let environment = cage::open(Driver::Hybrid, &config).expect("who asks for it gets it");
    assert_eq!(environment.existing(), Vec::new());
}

#[test]
fn it_is_what_auto_falls_back_to_for_others() {
    if rustix::process::geteuid().is_root() {
        return println!("SKIPPED others: done as nobody");
    }
    let nowhere = tempfile::NamedTempFile::new().expect("an empty mount table");
    let config = EnvironmentConfig {
        root_group: "millpond/unused".to_owned(),
        mount_table: nowhere.path().to_owned(),
    };
    let (environment, _) = cage::environment::open_auto(&config).expect("needs nothing");
    assert_eq!(environment.driver(), Driver::Rootless);
}

/// What this host lets nobody do is found out, not assumed.
#[test]
fn the_probe_agrees_with_what_happens() {
    let Some(found) = probed() else { return };
    println!("as {:?}: {found:?}", rustix::process::geteuid());
    // A kernel that can end groups (5.14) counts processes by user namespace too.
    assert_eq!(found.pids, found.tracking, "{found:?}");
    assert!(!sys_has_children_of_the_probe(), "the probe left a process");
}

fn sys_has_children_of_the_probe() -> bool {
    // Other tests have children too, but none of them is a first process that has ended.
    let children = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
    children.split_ascii_whitespace().any(|pid| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "mp-init")
    })
}

#[test]
fn a_cap_is_kept_by_stopping() {
    in_user_namespaces(|w| {
        let (id, mut c) = w.container(FREE);
        w.run(id, c.as_mut(), "while :; do :; done & while :; do :; done");
        let rate = |c: &mut dyn Container, seconds: u64| {
            let (before, start) = (c.cpu().expect("readable"), Instant::now());
            // Who looks too late, on a busy machine, lets both loops run on meanwhile.
            let mut late = Duration::ZERO;
            while start.elapsed() < Duration::from_secs(seconds) {
                let next = c.look_after(Instant::now()).unwrap_or(start + Duration::from_secs(seconds));
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
                late += next.elapsed();
            }
            let after = c.cpu().expect("readable");
            let used = (after.user + after.system) - (before.user + before.system);
            let used = used.saturating_sub(2 * late);
            (used.as_secs_f64() / start.elapsed().as_secs_f64(), after.throttled > before.throttled)
        };
        c.set_cpu_cap(Some(Cpu(50))).expect("set");
        let (half, _) = rate(c.as_mut(), 3);
        assert!(half <= 0.6, "{half} cores under a cap of 0.5");
        c.set_cpu_cap(Some(Cpu(10))).expect("set");
        let (tenth, _) = rate(c.as_mut(), 2);
        assert!(tenth <= 0.2, "{tenth} cores under a cap of 0.1");
        // So little has everybody at some time, however busy the machine is.
        c.set_cpu_cap(Some(Cpu(1))).expect("set");
        until("a stop", || rate(c.as_mut(), 1).1);
        c.set_cpu_cap(None).expect("set");
        until("more than the cap", || rate(c.as_mut(), 1).0 > 0.15);
        // A job that is stopped can be killed.
        c.set_cpu_cap(Some(Cpu(1))).expect("set");
        rate(c.as_mut(), 1);
        c.kill_all(PATIENCE).expect("killed");
    });
}

#[test]
fn what_orphans_used_stays_counted() {
    in_user_namespaces(|w| {
        let place = Place::of_ours();
        let (id, mut c) = w.container(FREE);
        let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        let script = format!("(sh -c '{burn}; : >done' &); exec sleep 100");
        w.spawn(id, c.as_mut(), &script, Some(&place.isolation), &place.inside(), None);
        until("the orphan's end", || place.sandbox().join("done").exists());
        until("only the program and its init", || {
            c.processes().expect("readable").iter().all(|p| p.name != "sh")
        });
        // Between its death and its burial by the first process it is in no count.
        until("what it used to be counted", || {
            let used = c.cpu().expect("readable");
            used.user + used.system >= Duration::from_millis(50)
        });
    });
}

#[test]
fn a_fork_bomb_is_bounded_by_the_namespace() {
    in_user_namespaces(|w| {
        let place = Place::of_ours();
        let (_, mut c) = w.container(FREE);
        let bomb = Bomb::new();
        let arguments = ["sh", "-c", &bomb.script()].map(|a| CString::new(a).expect("no NUL"));
        let process = c
            .spawn(&ProcessSpec {
                program: c"/bin/sh",
                arguments: &arguments,
                environment: &[c"PATH=/usr/bin:/bin".to_owned()],
                working_directory: c"/",
                descriptors: &[],
                user: None,
                open_files_limit: 64,
                isolation: Some(&place.isolation),
                processes_limit: Some(50),
                terminal: false,
            })
            .expect("started");
        let most = bomb.most(40);
        assert!((40..=50).contains(&most), "{most} processes under a bound of 50");
        c.kill_all(PATIENCE).expect("killed");
        cage::sys::reap(process.pid).expect("ours");
        assert_eq!(c.processes().expect("readable").len(), 0);
    });
}

/// A job does not outlive the proxy: nobody would measure or bound it.
#[test]
fn a_job_dies_with_the_thread_that_started_it() {
    in_user_namespaces(|w| {
        let place = Place::of_ours();
        let (id, mut c) = w.container(FREE);
        let (root, pids) = std::thread::scope(|scope| {
            let starter = scope.spawn(|| {
                let root = w.spawn(
                    id,
                    c.as_mut(),
                    "setsid sleep 3216 & sleep 3216",
                    Some(&place.isolation),
                    &place.inside(),
                    None,
                );
                until("both", || {
                    c.processes().expect("readable").iter().filter(|p| p.name == "sleep").count() == 2
                });
                (root, c.pids().expect("readable"))
            });
            starter.join().expect("started")
        });
        // A first process stays until all others are reaped.
        cage::sys::reap(root).expect("ours");
        until("their deaths", || !pids.iter().any(|pid| alive(*pid)));
    });
}
