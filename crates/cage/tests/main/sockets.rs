//! Buffers of sockets are memory too (jobs-and-nodes.md 4.4).

use super::conformance::{FREE, for_each_with_groups, until};
use cage::JobLimits;
use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

const PLAN: &str = "MILLPOND_TEST_SOCKETS";
const LIMIT: i64 = 48 << 20;

/// Not a test but the job of one: fills the buffers of its sockets and writes down how many bytes wait in them.
#[test]
fn filler() {
    let Ok(file) = std::env::var(PLAN) else { return };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    // Ends that nobody reads.
    let mut pairs: Vec<(TcpStream, TcpStream)> = (0..60)
        .map(|_| {
            let near = TcpStream::connect(address).expect("our own");
            near.set_nonblocking(true).expect("a flag");
            (near, listener.accept().expect("our own").0)
        })
        .collect();
    let datagrams: Vec<UdpSocket> =
        (0..300).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a port")).collect();
    let chunk = vec![0; 16 << 10];
    let mut tcp = 0u64;
    let mut last = Instant::now();
    while last.elapsed() < Duration::from_millis(500) && tcp < 1 << 30 {
        for (near, _) in &mut pairs {
            match near.write(&chunk) {
                Ok(count) => {
                    tcp += count as u64;
                    last = Instant::now();
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => panic!("{e}"),
            }
        }
    }
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a port");
    for socket in &datagrams {
        for _ in 0..12 {
            // Full queues drop what comes.
            let _ = sender.send_to(&chunk, socket.local_addr().expect("bound"));
        }
    }
    let mut udp = 0;
    let mut room = vec![0; chunk.len()];
    for socket in &datagrams {
        socket.set_nonblocking(true).expect("a flag");
        while let Ok(count) = socket.recv(&mut room) {
            udp += count as u64;
        }
    }
    std::fs::write(&file, format!("{tcp} {udp}\n")).expect("written");
}

/// S16: 64 MiB of a job were 1 to 2 GiB of the host.
#[test]
fn buffers_of_sockets_are_bounded_by_the_limit_of_memory() {
    for_each_with_groups(|w| {
        if !w.environment.probe().socket_memory {
            return println!(
                "SKIPPED buffers of sockets: this kernel has no bound for {}",
                w.environment.driver()
            );
        }
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("filled");
        let (job_id, mut container) = w.container(JobLimits { memory: Some(LIMIT), ..FREE });
        let program = std::env::current_exe().expect("known");
        let script = format!("{PLAN}={} exec {} --exact sockets::filler", file.display(), program.display());
        w.run(job_id, container.as_mut(), &script);
        let filled = || std::fs::read_to_string(&file).unwrap_or_default();
        until("the buffers to be full", || filled().ends_with('\n'));
        let amounts: Vec<i64> = filled().split_whitespace().map(|n| n.parse().expect("a number")).collect();
        println!("{}: bytes in TCP and UDP buffers: {amounts:?}", w.environment.driver());
        assert!(amounts.iter().all(|bytes| *bytes < 2 * LIMIT), "{amounts:?} with a limit of {LIMIT}");
        container.kill_all(Duration::from_secs(20)).expect("killed");
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
        container.kill_all(Duration::from_secs(20)).expect("killed");
    });
}
