//! What a job takes on disk (jobs-and-nodes.md 4.9): the kernel is asked where it counts that, and keeps the bound
//! too ([`cage::quota`]); else it is counted by walking the job's directories.
//!
//! Only for jobs that have a bound: a walk costs as much as the job has files, so it has a thread of its
//! own, which is there for as long as the walk, and a bound on its time: what was counted until then
//! counts. The tree belongs to somebody who may not want to be counted. Directories are opened from
//! descriptors that were taken before the job's first instruction and links are not followed, so that no path
//! leads elsewhere or is too long; files that have no name any more are found where they are open.
//! Memory file systems are not disk.

mod kept;
mod walk;

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use vocab::DiskUsage;

use crate::protocol::JobStart;
use kept::Kept;
use walk::Walk;

/// Time between two walks.
const PERIOD: Duration = Duration::from_secs(30);
/// Longest walk while the job runs.
const WALK_MAX: Duration = Duration::from_secs(60);
/// Longest walk at the end, when the node waits for the result.
const LAST_WALK_MAX: Duration = Duration::from_secs(10);
/// The walk needs little, and the proxy promises to be small.
const STACK: usize = 128 << 10;

/// Most bytes that can be left of a bound when a write is refused: file systems reserve in pieces, of a page or
/// many.
const REMAINDER_MAX: i64 = 2 << 20;

/// The same for a small bound, of which the sixteenth part is still "hardly anything", and one block always.
fn remainder(bound: i64) -> i64 {
    (bound / 16).clamp(4096, REMAINDER_MAX)
}

/// What was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Taken {
    /// Bytes, as allocated: holes are free.
    pub space: i64,
    /// Files and directories, without the sandbox itself.
    pub inodes: i64,
}

/// How much it may be.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    space: Option<i64>,
    inodes: Option<i64>,
}

impl Bounds {
    fn are_exceeded(&self, taken: &Taken) -> bool {
        self.space.is_some_and(|most| taken.space > most)
            || self.inodes.is_some_and(|most| taken.inodes > most)
    }
}

/// Looks when it is time.
#[derive(Debug)]
pub(super) struct DiskWatch {
    bounds: Bounds,
    /// The kernel keeps the bounds; what it says was taken, when it was asked last.
    kept: Option<(Kept, Taken)>,
    /// The sandbox, and what the job writes into a root file system of its own.
    roots: Arc<Vec<OwnedFd>>,
    next: Instant,
    running: Option<Running>,
    /// What was counted so far.
    seen: Option<DiskUsage>,
}

#[derive(Debug)]
struct Running {
    stop: Arc<AtomicBool>,
    result: Receiver<Taken>,
}

impl DiskWatch {
    /// Before the job's first instruction.
    pub fn new(start: &JobStart, now: Instant) -> DiskWatch {
        let bounds = Bounds { space: start.disk_space, inodes: start.inode_count };
        let changes = start.isolation.as_ref().and_then(|i| i.root.as_ref()?.changes.as_ref());
        let directories = [Some(start.sandbox.as_path()), changes.map(|(upper, _)| upper.as_path())];
        let mut watch = DiskWatch::of(bounds, directories.into_iter().flatten(), now + PERIOD);
        let kept = start.disk_quota.and_then(|quota| Kept::open(&start.job_directory, quota).ok());
        watch.kept = kept.map(|kept| (kept, Taken::default()));
        watch
    }

    fn of<'a>(bounds: Bounds, directories: impl Iterator<Item = &'a Path>, next: Instant) -> DiskWatch {
        let bounded = bounds.space.is_some() || bounds.inodes.is_some();
        let roots = directories.filter(|_| bounded).filter_map(|path| File::open(path).ok());
        DiskWatch {
            bounds,
            kept: None,
            roots: Arc::new(roots.map(OwnedFd::from).collect()),
            next,
            running: None,
            seen: None,
        }
    }

    /// Begins a walk if one is due, or `at_end`, when it waits for it; gives what the last one found if that is
    /// too much. `processes` are asked for when a walk begins.
    pub fn excess(
        &mut self,
        now: Instant,
        at_end: bool,
        processes: impl FnOnce() -> Vec<u32>,
    ) -> Option<Taken> {
        if self.roots.is_empty() {
            return None;
        }
        if let Some(taken) = self.ask() {
            self.note(taken);
            return Some(taken).filter(|taken| self.bounds.are_exceeded(taken));
        }
        if at_end {
            // What it has not seen yet it will not see as it is now.
            if let Some(running) = self.running.take() {
                running.stop.store(true, Ordering::Relaxed);
            }
            // Nobody has a file open any more.
            self.begin(Vec::new(), LAST_WALK_MAX);
        } else if self.running.is_none() && now >= self.next {
            self.begin(processes(), WALK_MAX);
        }
        let running = self.running.as_ref()?;
        let patience = if at_end { LAST_WALK_MAX + Duration::from_secs(1) } else { Duration::ZERO };
        let taken = match running.result.recv_timeout(patience) {
            Err(RecvTimeoutError::Timeout) if !at_end => return None,
            taken => taken.ok(),
        };
        self.running = None;
        // Of a walk that took long the next one must not be the consequence.
        self.next = Instant::now() + PERIOD;
        if let Some(taken) = taken {
            self.note(taken);
        }
        taken.filter(|taken| self.bounds.are_exceeded(taken))
    }

    /// From the kernel, if it counts. Should it stop doing that, walks take over.
    fn ask(&mut self) -> Option<Taken> {
        let (kept, last) = self.kept.as_mut()?;
        match kept.taken() {
            Ok(taken) => *last = taken,
            Err(_) => self.kept = None,
        }
        self.kept.as_ref().map(|(_, taken)| *taken)
    }

    /// What is taken if, when the kernel was asked last, hardly anything was left of a bound that it keeps: whoever
    /// wanted more was refused.
    pub fn filled(&self) -> Option<Taken> {
        let (_, taken) = self.kept.as_ref()?;
        let space = self.bounds.space.is_some_and(|most| most.saturating_sub(taken.space) <= remainder(most));
        let inodes = self.bounds.inodes.is_some_and(|most| taken.inodes >= most);
        (space || inodes).then_some(*taken)
    }

    fn note(&mut self, taken: Taken) {
        let max_usage = self.seen.map_or(0, |seen| seen.max_usage).max(taken.space);
        self.seen = Some(DiskUsage { usage: taken.space, max_usage, limit: self.bounds.space });
    }

    /// For statistics.
    pub fn usage(&self) -> Option<DiskUsage> {
        self.seen
    }

    fn begin(&mut self, processes: Vec<u32>, time: Duration) {
        let (sender, result) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let mut walk = Walk::new(self.bounds, Instant::now() + time, Arc::clone(&stop));
        let roots = Arc::clone(&self.roots);
        let thread = std::thread::Builder::new().name("disk".to_owned()).stack_size(STACK);
        let started = thread.spawn(move || {
            for root in roots.iter() {
                walk.tree(root);
            }
            for pid in processes {
                walk.nameless(pid, &roots);
            }
            // The job may have ended meanwhile.
            let _ = sender.send(walk.taken());
        });
        // Without a thread there is no walk this time.
        self.running = started.ok().map(|_| Running { stop, result });
    }
}

#[cfg(test)]
mod tests;
