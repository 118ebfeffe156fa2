//! Jobs per second through one node agent, and the processor time that the agent needs for each:
//! `cargo bench -p millpond-node --bench speed`.

#[allow(dead_code)]
#[path = "../tests/main/harness.rs"]
mod harness;
#[allow(dead_code)]
#[path = "../tests/main/server.rs"]
mod server;

use std::time::Instant;

use cage::Driver;
use vocab::*;
use wire::ServerMessage;

use harness::*;

/// User and system time of a process, in seconds.
fn cpu_of(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
    let ticks: f64 = fields[11..13].iter().map(|f| f.parse::<f64>().expect("a number")).sum();
    ticks / 100.0
}

fn main() {
    const JOBS: usize = 5000;
    for driver in [Driver::Simple, Driver::Hybrid] {
        if !drivers().contains(&driver) {
            continue;
        }
        let mut b = Bench::new(driver, 2);
        let mut waiting: Vec<_> = (0..JOBS).map(|_| start_job(description("/bin/true"))).collect();
        let begin = Instant::now();
        let cpu = cpu_of(b.agent_pid());
        let own = cpu_of(std::process::id());
        for _ in 0..4 {
            let start = waiting.pop().expect("enough");
            b.world.order(&ServerMessage::Start(vec![start]));
        }
        for _ in 0..JOBS {
            let id = b.wait("an end", |e| match e {
                wire::JobEvent::Finished(end) => {
                    assert!(matches!(end.outcome, JobOutcome::Completed { .. }), "{:?}", end.outcome);
                    Some(end.identity.job_id)
                }
                _ => None,
            });
            b.release(&[id]);
            if let Some(start) = waiting.pop() {
                b.world.order(&ServerMessage::Start(vec![start]));
            }
        }
        let seconds = begin.elapsed().as_secs_f64();
        let per_job = |cpu: f64| cpu / JOBS as f64 * 1e6;
        println!(
            "{driver}: {:.0} jobs/s; agent {:.0} us of CPU per job, server in this test {:.0} us",
            JOBS as f64 / seconds,
            per_job(cpu_of(b.agent_pid()) - cpu),
            per_job(cpu_of(std::process::id()) - own),
        );
        assert!(b.stop_agent());
        b.assert_clean();
    }
}
