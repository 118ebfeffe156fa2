//! One job's proxy: from the fork to the result.
//!
//! ```text
//! fork -> session, sub-reaper -> container -> user's process -> connect, say Hello + Started
//!      -> loop: pipes, process, node, clock (once per second)
//!      -> process and pipes ended, or a reason to kill -> kill what is left -> remove the container
//!      -> write `result` -> say Finished -> exit
//! ```
//!
//! A synchronous poll loop over five descriptors, one thread. The user's process is started before the
//! node is told, so that a job waits for nobody. The proxy makes the container itself: the node
//! need not block for it, and jobs are made in parallel.
//!
//! Here: the order of things. `launch`: the user's process; `job`: the loop; `rows`: tables on their way in
//! (`feed`) and out (`harvest`); `link`: the connection to the node; `lease`: when the job must stop without it; `samples`: memory and CPU; `monitor`: the CPU guarantee that follows the use; `shell`: who
//! looks into the running job.

mod disk;
mod feed;
mod harvest;
mod job;
mod launch;
mod lease;
mod link;
mod monitor;
mod oom_score;
mod pipe_watch;
mod rows;
mod samples;
mod shell;
mod terminal;
mod thrashing;
mod trail;

use crate::protocol::{FromProxy, Holds, JobStart, PROXY_PROTOCOL_VERSION};
use crate::record::{ProxyState, log, write_result, write_state};
use crate::spawner::Shared;
use cage::{ProcessId, sys};
use link::Link;
use std::path::PathBuf;
use vocab::Time;

/// Exit codes of a proxy (jobs-and-nodes.md 5.7). Others are panics and signals.
pub mod exit {
    /// The result is in the file, and the node has it if it was there.
    pub const OK: i32 = 0;
    /// The node did not take the result; it is in the file, if that could be written. For the spawner,
    /// which tells the node (if there is one) to look.
    pub const RESULT_REPORT_FAILED: i32 = 11;
    /// The node did not come back in time; the job was killed.
    pub const SUPERVISOR_LOST: i32 = 17;
}

/// Runs the job in this process; gives the exit code.
pub(crate) fn run(start: JobStart, shared: &Shared) -> i32 {
    // Fails only for a leader of a process group, which a forked child is not.
    let _ = rustix::process::setsid();
    let _ = sys::become_subreaper();
    sys::set_process_name(c"mp-job-proxy");
    if start.isolation.is_some()
        && let Err(e) = cage::leave_abstract_sockets()
    {
        log(&start.job_directory, &format!("sockets with abstract names are in the job's reach: {e}"));
    }
    // The sandbox must not be held by us, and neither a directory of the node.
    let _ = rustix::process::chdir("/");

    let own = ProcessId::own().unwrap_or(ProcessId { pid: std::process::id(), start_time: 0 });
    let mut known = Known {
        directory: start.job_directory.clone(),
        state: ProxyState {
            job_id: start.job_id,
            pid: own.pid,
            pid_start_time: own.start_time,
            boot_id: shared.boot_id.clone(),
            driver: shared.config.driver.clone(),
            root_group: shared.config.root_group.clone(),
            start_time: None,
            user_pid: None,
            holds: Holds { cpu: start.cpu_guarantee, total_peak: 0 },
        },
    };
    let directory = start.job_directory.clone();
    let mut link = Link::new(&shared.config);
    let ended = match job::Job::start(start, shared) {
        Ok(running) => {
            link.set_hello(known.hello());
            known.state.start_time = Some(running.start_time());
            known.state.user_pid = Some(running.user_pid());
            // Before the node hears of it: a node that dies right now must find the state.
            known.keep();
            let started =
                FromProxy::Started { start_time: running.start_time(), user_pid: running.user_pid() };
            link.send(&started);
            link.set_hello(known.hello());
            running.run(&mut link, &mut known)
        }
        Err(result) => {
            link.set_hello(known.hello());
            job::Ended { result: *result, supervisor_lost: false, container: None }
        }
    };
    let job::Ended { result, supervisor_lost, container } = ended;
    if let Err(e) = write_result(&directory, &result) {
        log(&directory, &e.to_string());
    }
    let sent = link.send_last(&FromProxy::Finished { result: Box::new(result) });
    drop(container);
    match sent {
        _ if supervisor_lost => exit::SUPERVISOR_LOST,
        true => exit::OK,
        false => exit::RESULT_REPORT_FAILED,
    }
}

/// What another life of the node finds out about the job: in the state file, and by the first words of
/// every connection.
struct Known {
    directory: PathBuf,
    state: ProxyState,
}

impl Known {
    fn hello(&self) -> FromProxy {
        FromProxy::Hello {
            version: PROXY_PROTOCOL_VERSION,
            job_id: self.state.job_id,
            pid: self.state.pid,
            pid_start_time: self.state.pid_start_time,
            start_time: self.state.start_time,
            holds: self.state.holds,
        }
    }

    fn keep(&self) {
        if let Err(e) = write_state(&self.directory, &self.state) {
            log(&self.directory, &e.to_string());
        }
    }
}

/// The wall clock.
fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Time(since.map_or(0, |d| d.as_micros() as u64))
}
