//! One walk.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

use super::{Bounds, Taken};

/// Names of directories that are remembered to be looked into: some tens of megabytes at most.
const PENDING_MAX: usize = 200_000;

/// The counting.
pub(super) struct Walk {
    bounds: Bounds,
    until: Instant,
    stop: Arc<AtomicBool>,
    taken: Taken,
    pending: usize,
    nameless: BTreeSet<(u64, u64)>,
}

/// A directory on the way down, and those in it that are still to be looked into.
struct Level {
    /// In its parent; unused at the top.
    name: CString,
    id: (u64, u64),
    below: Vec<CString>,
}

impl Walk {
    pub fn new(bounds: Bounds, until: Instant, stop: Arc<AtomicBool>) -> Walk {
        Walk { bounds, until, stop, taken: Taken::default(), pending: 0, nameless: BTreeSet::new() }
    }

    pub fn taken(&self) -> Taken {
        self.taken
    }

    /// Nobody needs the exact excess of a million files.
    fn is_over(&self) -> bool {
        self.bounds.are_exceeded(&self.taken)
            || self.stop.load(Ordering::Relaxed)
            || self.pending > PENDING_MAX
            || Instant::now() >= self.until
    }

    /// All below a directory, as far as it is on the same file system. One directory is open at a time.
    pub fn tree(&mut self, root: &OwnedFd) {
        let Ok(top) = rustix::fs::fstat(root) else { return };
        let Some(mut at) = open(root, c".") else { return };
        let mut levels =
            vec![Level { name: c"".to_owned(), id: id(&top), below: self.look(&at, top.st_dev) }];
        while let Some(level) = levels.last_mut() {
            if self.is_over() {
                break;
            }
            if let Some(name) = level.below.pop() {
                self.pending -= 1;
                let inner = open(&at, &name).and_then(|fd| Some((rustix::fs::fstat(&fd).ok()?, fd)));
                // What the job removes or replaces meanwhile is not counted.
                if let Some((found, inner)) = inner.filter(|(found, _)| found.st_dev == top.st_dev) {
                    let below = self.look(&inner, top.st_dev);
                    at = inner;
                    levels.push(Level { name, id: id(&found), below });
                }
                continue;
            }
            levels.pop();
            let Some(parent) = levels.last() else { break };
            let up = open(&at, c"..").filter(|fd| rustix::fs::fstat(fd).is_ok_and(|s| id(&s) == parent.id));
            // It was moved while we were in it: then from the top, as far as the way is still there.
            at = match up.or_else(|| self.again(root, &mut levels)) {
                Some(up) => up,
                None => break,
            };
        }
    }

    /// The deepest directory of `levels` that is where it was; those below it are given up.
    fn again(&mut self, root: &OwnedFd, levels: &mut Vec<Level>) -> Option<OwnedFd> {
        let mut at = open(root, c".")?;
        for index in 1..levels.len() {
            let next = open(&at, &levels[index].name);
            match next.filter(|fd| rustix::fs::fstat(fd).is_ok_and(|s| id(&s) == levels[index].id)) {
                Some(next) => at = next,
                None => {
                    let lost: usize = levels.drain(index..).map(|level| level.below.len()).sum();
                    self.pending -= lost;
                    break;
                }
            }
        }
        Some(at)
    }

    /// Counts the entries of a directory; gives its directories.
    fn look(&mut self, directory: &OwnedFd, device: u64) -> Vec<CString> {
        let mut below = Vec::new();
        let Ok(entries) = Dir::read_from(directory) else { return below };
        for (number, entry) in entries.enumerate() {
            if number % 256 == 255 && self.is_over() {
                break;
            }
            let Ok(entry) = entry else { break };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
            let Ok(found) = rustix::fs::statat(directory, name, flags) else { continue };
            if found.st_dev != device {
                continue;
            }
            self.taken.inodes += 1;
            if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
                below.push(name.to_owned());
                self.pending += 1;
            } else {
                // A file with several names is counted once, by its share of each.
                self.taken.space += found.st_blocks * 512 / (found.st_nlink as i64).max(1);
            }
            if self.bounds.are_exceeded(&self.taken) {
                break;
            }
        }
        below
    }

    /// Files that a process has open and that have no name any more.
    pub fn nameless(&mut self, pid: u32, roots: &[OwnedFd]) {
        let devices: Vec<u64> =
            roots.iter().filter_map(|root| rustix::fs::fstat(root).ok()).map(|found| found.st_dev).collect();
        let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return };
        for entry in open.flatten() {
            if self.is_over() {
                return;
            }
            // Of the file itself: the link leads there whatever its name was.
            let Ok(found) = std::fs::metadata(entry.path()) else { continue };
            let counts = found.nlink() == 0 && !found.is_dir() && devices.contains(&found.dev());
            if counts && self.nameless.insert((found.dev(), found.ino())) {
                self.taken.inodes += 1;
                self.taken.space += (found.blocks() * 512) as i64;
            }
        }
    }
}

fn open(at: &OwnedFd, name: &CStr) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, name, flags, Mode::empty()).ok()
}

fn id(found: &Stat) -> (u64, u64) {
    (found.st_dev, found.st_ino)
}
