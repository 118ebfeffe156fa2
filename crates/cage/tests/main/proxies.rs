//! The group of the job proxies: one that takes too much is killed by the kernel, and no other with it.

use super::conformance::{alive, for_each_with_groups, until};
use cage::EnvironmentConfig;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

const PLAN: &str = "MILLPOND_TEST_PROXY";
/// What all proxies may take together here.
const BOUND: i64 = 32 << 20;

/// Not a test but what one starts: enters the group of the proxies; waits there, or takes twice what there is.
#[test]
fn proxy() {
    let Ok(plan) = std::env::var(PLAN) else { return };
    let mut words = plan.split(' ');
    let mut word = || words.next().expect("three words");
    let driver = word().parse().expect("a driver");
    let environment = cage::open(driver, &EnvironmentConfig::new(word())).expect("was opened");
    environment.enter_proxies(Some(BOUND)).expect("the group is there");
    let mut taken = Vec::new();
    if word() == "greedy" {
        taken.resize(2 * BOUND as usize, 1u8);
    }
    loop {
        std::thread::park();
        std::hint::black_box(&taken);
    }
}

/// Killed in any case.
struct Ours(Child);

impl Ours {
    fn start(plan: &str) -> Ours {
        let mut command = Command::new("/proc/self/exe");
        command.args(["--exact", "proxies::proxy"]).env(PLAN, plan).stdout(Stdio::null());
        Ours(command.spawn().expect("started"))
    }

    fn is_inside(&self) -> bool {
        std::fs::read_to_string(format!("/proc/{}/cgroup", self.0.id()))
            .is_ok_and(|text| text.lines().any(|line| line.ends_with("/proxies")))
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn one_that_takes_too_much_is_killed_and_the_others_are_not() {
    for_each_with_groups(|w| {
        let driver = w.environment.driver();
        let group = format!("millpond/cage-proxies-{}-{driver}", std::process::id());
        let environment = cage::open(driver, &EnvironmentConfig::new(&group)).expect("was opened");
        environment.prepare().expect("made");
        {
            let modest = Ours::start(&format!("{driver} {group} modest"));
            until("the modest one is inside", || modest.is_inside());
            let mut greedy = Ours::start(&format!("{driver} {group} greedy"));
            let end = greedy.0.wait().expect("ours");
            assert_eq!(end.signal(), Some(9), "{driver}: {end}");
            assert!(alive(modest.0.id()), "{driver}: it went with the other");
            assert!(environment.remove_root().is_err(), "{driver}: somebody is in there");
        }
        until("the groups are empty and gone", || environment.remove_root().is_ok());
    });
}
