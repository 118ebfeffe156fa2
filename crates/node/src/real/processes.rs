//! Proxies that are not our children: watching and killing them by identity.

use std::os::fd::OwnedFd;

use cage::ProcessId;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A handle on this very process; none if it is gone.
fn open(pid: u32, start_time: u64) -> Option<OwnedFd> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    let fd = pidfd_open(raw, PidfdFlags::empty()).ok()?;
    // Between the two the pid cannot have changed hands: the handle keeps to what it was opened on.
    (ProcessId { pid, start_time }).is_alive().then_some(fd)
}

/// Kills the process if it is still the same one.
pub(crate) fn kill(pid: u32, start_time: u64) {
    if let Some(fd) = open(pid, start_time) {
        let _ = pidfd_send_signal(fd, Signal::KILL);
    }
}

/// Returns when the process is dead.
pub(crate) async fn wait_for_death(pid: u32, start_time: u64) {
    let Some(fd) = open(pid, start_time) else { return };
    // Deprecated for types that may name another descriptor tomorrow; an owned one cannot.
    #[allow(deprecated)]
    match AsyncFd::with_interest(fd, Interest::READABLE) {
        Ok(fd) => drop(fd.readable().await),
        Err(_) => {
            while (ProcessId { pid, start_time }).is_alive() {
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            }
        }
    }
}
