//! The group that knows the processes of a job: freezing and killing (jobs-and-nodes.md 4.6).

use crate::environment::CageError;
use crate::group::{Group, field};
use crate::sys;
use std::time::{Duration, Instant};

/// A job's group in the hierarchy that tracks it.
#[derive(Clone, Debug)]
pub(crate) enum Tracking {
    /// v2 hierarchy, with or without controllers.
    V2(Group),
    /// v1 freezer.
    Freezer(Group),
}

/// How long a freeze may take to be reported before the kill goes on without it: a process in
/// uninterruptible sleep never freezes.
const FREEZE_PATIENCE: Duration = Duration::from_millis(500);

impl Tracking {
    pub fn group(&self) -> &Group {
        match self {
            Tracking::V2(g) | Tracking::Freezer(g) => g,
        }
    }

    /// Is a process there that is not a zombie?
    pub fn is_populated(&self) -> Result<bool, CageError> {
        match self {
            Tracking::V2(g) => match g.read("cgroup.events") {
                Ok(events) => Ok(field(&events, "populated") == Some(1)),
                Err(CageError::Io { source, .. }) if crate::group::is_gone(&source) => Ok(false),
                Err(e) => Err(e),
            },
            Tracking::Freezer(g) => {
                let pids = g.processes()?;
                Ok(pids.into_iter().any(|p| crate::process::Stat::of(p).is_some_and(|s| !s.is_dead())))
            }
        }
    }

    pub fn freeze(&self, frozen: bool) -> Result<(), CageError> {
        match self {
            Tracking::V2(g) => g.write("cgroup.freeze", if frozen { "1" } else { "0" }),
            Tracking::Freezer(g) => g.write("freezer.state", if frozen { "FROZEN" } else { "THAWED" }),
        }
    }

    pub fn is_frozen(&self) -> Result<bool, CageError> {
        match self {
            Tracking::V2(g) => Ok(field(&g.read("cgroup.events")?, "frozen") == Some(1)),
            Tracking::Freezer(g) => Ok(g.read("freezer.state")?.trim() == "FROZEN"),
        }
    }

    /// One round; the caller repeats until nothing is left.
    pub fn kill_once(&self) -> Result<(), CageError> {
        match self {
            Tracking::V2(g) if g.has("cgroup.kill") => g.write("cgroup.kill", "1"),
            // Older kernels and v1: while the group is frozen nothing can fork away from the sweep.
            _ => {
                self.freeze(true)?;
                let give_up = Instant::now() + FREEZE_PATIENCE;
                while !self.is_frozen()? && Instant::now() < give_up {
                    std::thread::sleep(Duration::from_micros(200));
                    // v1 may get stuck half way and needs the write again.
                    self.freeze(true)?;
                }
                for pid in self.group().processes()? {
                    // Gone or, in a user namespace, not ours: the loop of the caller notices.
                    let _ = sys::kill(pid, libc::SIGKILL);
                }
                self.freeze(false)
            }
        }
    }
}
