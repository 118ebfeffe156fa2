//! A node that is killed in the middle of its self-check (jobs-and-nodes.md 4.2).

use super::conformance::{for_each_with_groups, until};
use cage::EnvironmentConfig;
use std::path::PathBuf;
use std::process::Command;

const PLAN: &str = "MILLPOND_TEST_PROBE";

/// Not a test but the victim of one: probes until it is killed.
#[test]
fn victim() {
    let Ok(plan) = std::env::var(PLAN) else { return };
    let (driver, group) = plan.split_once(' ').expect("two words");
    let driver = driver.parse().expect("a driver");
    let environment = cage::open(driver, &EnvironmentConfig::new(group)).expect("was probed");
    environment.prepare().expect("was probed");
    for _ in 0..100 {
        environment.probe();
    }
}

/// Processes in the probe's groups below a root group.
fn probing(group: &str) -> Vec<u32> {
    let is_in = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/cgroup"))
            .is_ok_and(|text| text.contains(&format!("/{group}/jobs/probe-")))
    };
    let pids = std::fs::read_dir("/proc").expect("mounted").flatten();
    pids.filter_map(|e| e.file_name().to_str()?.parse().ok()).filter(is_in).collect()
}

/// State file of the process's group in the freezer of cgroup v1.
fn freezer_state(pid: u32) -> Option<PathBuf> {
    let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let group = groups.lines().find_map(|line| Some(line.split_once(":freezer:")?.1.to_owned()))?;
    Some(PathBuf::from(format!("/sys/fs/cgroup/freezer{group}/freezer.state")))
}

/// A killed process that the freezer of cgroup v1 has stopped dies only when it is thawed. The next start thaws it.
fn is_frozen(pid: &u32) -> bool {
    let state = freezer_state(*pid).and_then(|file| std::fs::read_to_string(file).ok());
    state.is_some_and(|state| state.trim() == "FROZEN")
}

/// Kills the processes of the probe, also when the test fails.
struct NothingStays<'a>(&'a str);

impl Drop for NothingStays<'_> {
    fn drop(&mut self) {
        for pid in probing(self.0) {
            let _ = cage::sys::kill(pid, 9);
            if let Some(file) = freezer_state(pid) {
                let _ = std::fs::write(file, "THAWED");
            }
        }
    }
}

#[test]
fn a_killed_probe_leaves_nothing_running_and_its_groups_go_at_the_next_start() {
    for_each_with_groups(|w| {
        let driver = w.environment.driver();
        let group = format!("millpond/cage-killed-{}-{driver}", std::process::id());
        let _stays = NothingStays(&group);
        let mut victim = Command::new("/proc/self/exe")
            .args(["--exact", "killed_probe::victim"])
            .env(PLAN, format!("{driver} {group}"))
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("started");
        until("the probe's loop", || !probing(&group).is_empty());
        victim.kill().expect("ours");
        victim.wait().expect("ours");
        until("the end of the loop", || probing(&group).iter().all(is_frozen));
        let environment = cage::open(driver, &EnvironmentConfig::new(&group)).expect("was probed");
        environment.prepare().expect("made");
        assert_eq!(probing(&group), Vec::<u32>::new());
        environment.remove_root().expect("the groups of the dead probe are gone");
    });
}
