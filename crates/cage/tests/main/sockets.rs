//! Buffers of sockets are memory too (jobs-and-nodes.md 4.4).

use super::conformance::{FREE, PATIENCE, for_each_with_groups, until};
use cage::{Driver, JobLimits};
use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

const PLAN: &str = "MILLPOND_TEST_SOCKETS";
const LIMIT: i64 = 48 << 20;

/// Not a test but the job of one: fills the buffers of its sockets and writes down how many bytes wait in them.
#[test]
fn filler() {
    let Ok(plan) = std::env::var(PLAN) else { return };
    let (kind, file) = plan.split_once(' ').expect("two words");
    let filled = if kind == "tcp" { fill_tcp() } else { fill_udp() };
    std::fs::write(file, format!("{filled}\n")).expect("written");
}

/// Fills connections whose other ends do not read. Returns the bytes in their buffers.
fn fill_tcp() -> u64 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let mut pairs: Vec<(TcpStream, TcpStream)> = (0..60)
        .map(|_| {
            let near = TcpStream::connect(address).expect("our own");
            near.set_nonblocking(true).expect("a flag");
            (near, listener.accept().expect("our own").0)
        })
        .collect();
    let chunk = vec![0; 16 << 10];
    let mut filled = 0u64;
    let mut last = Instant::now();
    while filled < 1 << 30 {
        let before = filled;
        for (near, _) in &mut pairs {
            match near.write(&chunk) {
                Ok(count) => filled += count as u64,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => panic!("{e}"),
            }
        }
        if filled > before {
            last = Instant::now();
        } else if last.elapsed() >= Duration::from_millis(500) {
            // Every connection has just refused more, and not only this process has stood still.
            break;
        }
    }
    filled
}

/// Fills sockets that do not receive. Returns the bytes of the datagrams in their queues.
fn fill_udp() -> u64 {
    let bound = |_| UdpSocket::bind("127.0.0.1:0").expect("a port");
    let (sender, queues): (_, Vec<UdpSocket>) = (bound(0), (0..900).map(bound).collect());
    let chunk = vec![0; 16 << 10];
    for queue in &queues {
        for _ in 0..12 {
            // Full queues drop what comes.
            let _ = sender.send_to(&chunk, queue.local_addr().expect("bound"));
        }
    }
    let mut filled = 0;
    let mut room = vec![0; chunk.len()];
    for queue in &queues {
        queue.set_nonblocking(true).expect("a flag");
        while let Ok(count) = queue.recv(&mut room) {
            filled += count as u64;
        }
    }
    filled
}

/// S16: 64 MiB of a job were 1 to 2 GiB of the host.
#[test]
fn buffers_of_sockets_are_bounded_by_the_limit_of_memory() {
    for_each_with_groups(|w| {
        // In cgroup v2 they are part of `memory.max`, which the kernel sees to.
        if w.environment.driver() == Driver::CgroupV2 {
            return;
        }
        if !w.environment.probe().socket_memory {
            return println!(
                "SKIPPED buffers of sockets: this kernel has no bound for {}",
                w.environment.driver()
            );
        }
        // Datagrams alone would take 140 MB without a bound, connections several times as much.
        for kind in ["tcp", "udp"] {
            let directory = tempfile::tempdir().expect("a directory");
            let file = directory.path().join("filled");
            let (job_id, mut container) = w.container(JobLimits { memory: Some(LIMIT), ..FREE });
            let program = std::env::current_exe().expect("known");
            let script = format!(
                "{PLAN}='{kind} {}' exec {} --exact sockets::filler",
                file.display(),
                program.display()
            );
            w.run(job_id, container.as_mut(), &script);
            let filled = || std::fs::read_to_string(&file).unwrap_or_default();
            until("the buffers to be full", || filled().ends_with('\n'));
            let bytes: i64 = filled().trim().parse().expect("a number");
            println!("{}: {bytes} bytes wait in buffers of {kind}", w.environment.driver());
            // The kernel lets each socket have something beyond the bound.
            assert!(bytes > 1 << 20 && bytes < LIMIT + LIMIT / 2, "{kind}: {bytes} with a limit of {LIMIT}");
            container.kill_all(PATIENCE).expect("killed");
        }
    });
}

/// S10: another program has removed the groups of the node.
#[test]
fn groups_that_disappear_are_made_again() {
    for_each_with_groups(|w| {
        w.environment.remove_root().expect("nothing is in them");
        let (job_id, mut container) = w.container(FREE);
        w.run(job_id, container.as_mut(), "exec sleep 1000");
        assert_eq!(container.pids().expect("a group").len(), 1);
        container.kill_all(PATIENCE).expect("killed");
    });
}
