//! Jobs per second through spawner and proxies, against a bare loop of spawn and wait.
//!
//! `cargo bench -p millpond-jobproxy --bench jobs [-- [start] number of jobs]`; with `start` only the time
//! to start one job at 100 jobs a second, above that of a bare spawn, which is to be 3 ms at most. Two jobs at a time, command
//! `/bin/true` (executed directly) and the same through bash. The promise: at least a quarter of the bare loop with the `simple` driver, a tenth with
//! control groups.

#[allow(dead_code)]
#[path = "../tests/main/harness.rs"]
mod harness;

use cage::{Bind, Driver, Isolation};
use harness::{Event, FakeNode};
use jobproxy::protocol::{FromProxy, JobStart};
use std::process::Command;
use std::time::{Duration, Instant};

const PARALLEL: usize = 2;

fn main() {
    let jobs: usize = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(2000);
    let only_start = std::env::args().any(|argument| argument == "start");
    let before = cage::sys::children_usage();
    let bare = bare_loop(jobs);
    let bare_cpu = children_cpu_since(before, jobs);
    println!("bare spawn and wait: {bare:.0} jobs/s, {bare_cpu:.0?} CPU per job");
    for driver in [Driver::Simple, Driver::Hybrid, Driver::CgroupV1, Driver::CgroupV2] {
        let config = cage::EnvironmentConfig::new(&format!("millpond/bench-probe-{}", std::process::id()));
        if let Err(e) = cage::open(driver, &config) {
            println!("{driver}: skipped, {e}");
            continue;
        }
        let root = rustix::process::geteuid().is_root();
        for isolated in [false, true].into_iter().filter(|isolated| root || !isolated) {
            paced(driver, isolated, jobs);
        }
        if only_start {
            continue;
        }
        for (command, isolated) in [("/bin/true", false), ("exec /bin/true", false), ("/bin/true", true)] {
            if isolated && !root {
                println!("{driver}, isolated: skipped, it needs root");
                continue;
            }
            let before = cage::sys::children_usage();
            let (rate, first, node_cpu) = jobs_per_second(driver, command, isolated, jobs);
            let command = format!("{command}{}", if isolated { " (isolated)" } else { "" });
            let cpu = children_cpu_since(before, jobs);
            println!(
                "{driver}, {command:?}: {rate:.0} jobs/s = {:.0} % of bare; start to Started {first:.0?}; CPU per \
                 job {cpu:.0?} = {:.0} % of bare, and {node_cpu:.0?} in the node",
                100.0 * rate / bare,
                100.0 * cpu.as_secs_f64() / bare_cpu.as_secs_f64(),
            );
        }
    }
}

/// CPU time tells the cost on a busy machine too. The spawner adopts the usage of its proxies, those
/// that of the jobs, and the harness waits for the spawner.
fn children_cpu_since(before: cage::sys::Usage, jobs: usize) -> Duration {
    let now = cage::sys::children_usage();
    ((now.user + now.system) - (before.user + before.system)) / jobs as u32
}

fn bare_loop(jobs: usize) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..PARALLEL {
            scope.spawn(|| {
                for _ in 0..jobs / PARALLEL {
                    Command::new("/bin/true").status().expect("it runs");
                }
            });
        }
    });
    jobs as f64 / start.elapsed().as_secs_f64()
}

/// Time from the order to the user's running process, 100 jobs a second on a machine with nothing
/// else to do, and the same for a bare spawn: the promise is at most 3 ms more.
fn paced(driver: Driver, isolated: bool, jobs: usize) {
    const PERIOD: Duration = Duration::from_millis(10);
    let mut bare: Vec<Duration> = (0..jobs.min(200))
        .map(|_| {
            let start = Instant::now();
            let mut child = Command::new("/bin/true").spawn().expect("it runs");
            let spawned = start.elapsed();
            child.wait().expect("ours");
            std::thread::sleep(PERIOD);
            spawned
        })
        .collect();
    let mut node = FakeNode::new(driver);
    let mut job = node.job("/bin/true");
    if isolated {
        isolate(&mut job);
    }
    let mut ordered: Vec<Duration> = (0..jobs.min(500))
        .map(|_| {
            let begin = Instant::now();
            job.job_id = node.fresh_id();
            node.start(job.clone());
            let (mut started, mut finished) = (None, false);
            while !finished {
                node.pump(Duration::from_secs(1));
                while let Some(event) = node.events.pop_front() {
                    match event {
                        Event::Proxy(_, FromProxy::Started { .. }) => started = Some(begin.elapsed()),
                        Event::Proxy(_, FromProxy::Finished { .. }) => finished = true,
                        _ => {}
                    }
                }
            }
            std::thread::sleep(PERIOD.saturating_sub(begin.elapsed()));
            started.expect("it started before it finished")
        })
        .collect();
    let at = |list: &mut Vec<Duration>, part: usize| {
        list.sort();
        list[(list.len() - 1) * part / 100]
    };
    let isolated = if isolated { " (isolated)" } else { "" };
    let [(job, bare), (job_99, bare_99)] = [50, 99].map(|part| (at(&mut ordered, part), at(&mut bare, part)));
    println!(
        "{driver}{isolated}, 100 jobs/s: start to Started p50 {job:.0?}, p99 {job_99:.0?}; bare spawn p50 {bare:.0?}, \
         p99 {bare_99:.0?}; above it p50 {:.0?}",
        job.saturating_sub(bare)
    );
}

/// What a node of root gives its jobs by default.
fn isolate(job: &mut JobStart) {
    let bind = Bind { source: job.sandbox.clone(), target: job.sandbox.clone(), read_only: false };
    job.user = Some((54_321, 54_321));
    job.isolation = Some(Isolation {
        hostname: "slot_0-bench".to_owned(),
        root: None,
        covers: vec![job.job_directory.clone()],
        binds: vec![bind],
        scratch_size: 1 << 20,
        own_users: false,
    });
}

fn jobs_per_second(driver: Driver, command: &str, isolated: bool, jobs: usize) -> (f64, Duration, Duration) {
    let mut node = FakeNode::new(driver);
    // Directories are the node's business, and it uses them again.
    let mut idle: Vec<_> = (0..PARALLEL).map(|_| node.job(command)).collect();
    if isolated {
        idle.iter_mut().for_each(isolate);
    }
    let cpu_before = cage::sys::own_usage();
    let start = Instant::now();
    let (mut started, mut done, mut latency) = (0, 0, Duration::ZERO);
    let mut running = std::collections::BTreeMap::new();
    while done < jobs {
        while started < jobs
            && let Some(mut job) = idle.pop()
        {
            job.job_id = node.fresh_id();
            running.insert(job.job_id, (job.clone(), Instant::now()));
            node.start(job);
            started += 1;
        }
        node.pump(Duration::from_secs(1));
        while let Some(event) = node.events.pop_front() {
            match event {
                Event::Proxy(job, FromProxy::Started { .. }) => latency += running[&job].1.elapsed(),
                Event::Proxy(job, FromProxy::Finished { result }) => {
                    assert!(
                        matches!(result.outcome, vocab::JobOutcome::Completed { .. }),
                        "{:?}",
                        result.outcome
                    );
                    idle.extend(running.remove(&job).map(|(job, _)| job));
                    done += 1;
                }
                _ => {}
            }
        }
    }
    let rate = jobs as f64 / start.elapsed().as_secs_f64();
    let cpu = cage::sys::own_usage();
    let used = (cpu.user + cpu.system) - (cpu_before.user + cpu_before.system);
    (rate, latency / jobs as u32, used / jobs as u32)
}
