//! What is done without any privilege (jobs-and-nodes.md 4.10), on top of what [`crate::simple`] does: the
//! probe that finds out whether this host lets anybody make user namespaces, and a CPU cap by stopping and
//! continuing.
//!
//! In a user namespace of its own a job has its own processes (nobody leaves, and all die with the first),
//! its own view of files, and a bound on its processes: the kernel counts a user's processes in each user
//! namespace. Guarantees and a memory limit of the kernel's are not to be had.

use crate::environment::{Capabilities, Container};
use crate::isolation::Isolation;
use crate::spawn::ProcessSpec;
use crate::sys;
use rustix::event::{PollFd, PollFlags};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use vocab::Cpu;

/// Why this process must not use the driver, if so: the kernel bounds the processes of everybody but root, so
/// one fork bomb of a job would take the whole host.
pub(crate) fn refusal() -> Option<String> {
    let root = rustix::process::getuid().is_root() || rustix::process::geteuid().is_root();
    let map = || std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    (root && is_root_outside(&map())).then(|| {
        "nothing bounds the number of processes of root's jobs without control groups; run the node as another user"
            .to_owned()
    })
}

/// Is user 0 of a user namespace with this map the one outside too? In the initial one it is. One that
/// cannot be read is no evidence.
fn is_root_outside(map: &str) -> bool {
    let outside = map.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next()? == "0").then(|| words.next() == Some("0"))
    });
    outside.unwrap_or(true)
}

/// Of the bound that the probe tries.
const FEW: u64 = 8;
/// How long the probe waits for what it expects. Some shells try for a quarter of a minute to make a process.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process in a user namespace tries to make more processes than it may.
pub(crate) fn probe(container: &mut dyn Container) -> Capabilities {
    let mut found = Capabilities { freeze: true, cpu_cap: true, ..Capabilities::default() };
    let isolation = Isolation { own_users: true, scratch_size: 1 << 20, ..Isolation::default() };
    // A shell that is refused a process ends, or says so and goes on: that is the inner one, and the outer one
    // tells that it has tried.
    let script =
        "(for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 60 & done) 2>/dev/null; echo >&3; exec sleep 60";
    let arguments = [c"sh", c"-c"].map(std::ffi::CStr::to_owned);
    let Ok((tried, telling)) = std::io::pipe() else { return found };
    let Ok(script) = std::ffi::CString::new(script) else { return found };
    let spec = ProcessSpec {
        program: c"/bin/sh",
        arguments: &[&arguments[..], &[script]].concat(),
        environment: &[c"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned()],
        working_directory: c"/",
        descriptors: &[(telling.as_fd(), 3)],
        user: None,
        open_files_limit: 1024,
        isolation: Some(&isolation),
        processes_limit: Some(FEW),
        terminal: false,
    };
    let Ok(process) = container.spawn(&spec) else { return found };
    found.tracking = container.root().is_some();
    drop(telling);
    let patience = rustix::event::Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    let _ = rustix::event::poll(&mut [PollFd::new(&tried, PollFlags::IN)], Some(&patience));
    let there = container.processes().map_or(0, |processes| processes.len() as u64);
    // Besides them there were the first process, which is in no list, and the inner shell. Where the kernel
    // counts all processes of the user together there are next to none.
    found.pids = (FEW - 3..FEW).contains(&there);
    found.tracking &= container.kill_all(PATIENCE).is_ok();
    let _ = sys::reap(process.pid);
    let _ = container.destroy();
    found
}

/// Length of a period.
const PERIOD: Duration = Duration::from_millis(100);
/// Between two looks at a job that runs.
const LOOK: Duration = Duration::from_millis(10);

/// A cap of CPU use by stopping a job until its use is below the cap again.
///
/// Every look takes what was used since the last one from an account that fills at the speed of the cap;
/// when it is empty the job is stopped until it is full again. What a job does not use within a period
/// is lost: an idle hour buys no burst.
#[derive(Debug)]
pub(crate) struct Throttle {
    cap: f64,
    /// Seconds of CPU that may be used now.
    account: f64,
    last: Option<(Instant, Duration)>,
    pub stopped: bool,
    /// How long it was stopped in all.
    pub throttled: Duration,
}

impl Throttle {
    pub fn new(cap: Cpu, throttled: Duration) -> Throttle {
        // At least a hundredth of a core (4.5).
        let cap = cap.0.max(1) as f64 / 100.0;
        Throttle { cap, account: 0.0, last: None, stopped: false, throttled }
    }

    /// With the CPU time used so far; says when to look again. [`Throttle::stopped`] is what to do.
    pub fn look(&mut self, now: Instant, used: Duration) -> Instant {
        let (before, used_before) = self.last.replace((now, used)).unwrap_or((now, used));
        let passed = now.saturating_duration_since(before);
        if self.stopped {
            self.throttled += passed;
        }
        let most = self.cap * PERIOD.as_secs_f64();
        self.account += self.cap * passed.as_secs_f64() - used.saturating_sub(used_before).as_secs_f64();
        self.account = self.account.min(most);
        let enough = if self.stopped { most / 2.0 } else { 0.0 };
        self.stopped = self.account < enough;
        match self.stopped {
            true => now + Duration::from_secs_f64((most - self.account) / self.cap).min(PERIOD).max(LOOK),
            false => now + LOOK,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A job that would use `cores` is looked at when the throttle says so, `late` each time; gives its use
    /// per second.
    fn rate(cap: f64, cores: f64, late: Duration) -> f64 {
        let start = Instant::now();
        let mut throttle = Throttle::new(Cpu::from_f64(cap), Duration::ZERO);
        let (mut now, mut used) = (start, Duration::ZERO);
        while now < start + Duration::from_secs(60) {
            let next = throttle.look(now, used) + late;
            if !throttle.stopped {
                used += (next - now).mul_f64(cores);
            }
            now = next;
        }
        used.as_secs_f64() / (now - start).as_secs_f64()
    }

    #[test]
    fn use_is_the_cap_or_what_is_wanted() {
        for (cap, cores, want) in
            [(0.5, 1.0, 0.5), (0.5, 8.0, 0.5), (0.1, 1.0, 0.1), (2.0, 1.0, 1.0), (0.5, 0.3, 0.3)]
        {
            for late in [Duration::ZERO, Duration::from_millis(3), Duration::from_millis(40)] {
                let got = rate(cap, cores, late);
                assert!((got - want).abs() <= 0.1 * want, "cap {cap} of {cores}, {late:?} late: {got}");
            }
        }
    }

    #[test]
    fn root_is_who_is_root_outside() {
        for (map, want) in [
            ("         0          0 4294967295\n", true),
            ("0 0 1", true),
            ("0 1000 1", false),
            ("0 1000 1\n1 100000 65536\n", false),
            ("1 100001 65535\n0 100000 1\n", false),
            ("1000 0 1\n", true),
            ("", true),
        ] {
            assert_eq!(is_root_outside(map), want, "{map:?}");
        }
    }

    #[test]
    fn an_idle_hour_buys_no_burst() {
        let start = Instant::now();
        let mut throttle = Throttle::new(Cpu(50), Duration::ZERO);
        throttle.look(start, Duration::ZERO);
        let hour = start + Duration::from_secs(3600);
        throttle.look(hour, Duration::ZERO);
        assert!(!throttle.stopped);
        throttle.look(hour + PERIOD, Duration::from_millis(100) + Duration::from_millis(50));
        assert!(throttle.stopped, "a core and a half for a tenth of a second");
    }
}
