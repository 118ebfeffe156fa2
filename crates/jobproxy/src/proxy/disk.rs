//! What the sandbox takes on disk (jobs-and-nodes.md 4.9), counted by walking it.
//!
//! Only for jobs that have a bound: a walk costs as much as the job has files. Memory file systems are
//! not disk, and links are not followed.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::protocol::JobStart;

/// Time between two walks.
const PERIOD: Duration = Duration::from_secs(30);

/// What was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Taken {
    /// Bytes, as allocated: holes are free.
    pub space: i64,
    /// Files and directories, without the sandbox itself.
    pub inodes: i64,
}

/// Looks when it is time.
#[derive(Debug)]
pub(super) struct DiskWatch {
    space: Option<i64>,
    inodes: Option<i64>,
    next: Instant,
}

impl DiskWatch {
    pub fn new(start: &JobStart, now: Instant) -> DiskWatch {
        DiskWatch { space: start.disk_space, inodes: start.inode_count, next: now + PERIOD }
    }

    /// A walk, if one is due or `at_end`; gives what was found if it is too much.
    pub fn excess(&mut self, sandbox: &Path, now: Instant, at_end: bool) -> Option<Taken> {
        let bounded = self.space.is_some() || self.inodes.is_some();
        if !bounded || (now < self.next && !at_end) {
            return None;
        }
        let taken = self.walk(sandbox);
        // Of a walk that took long the next one must not be the consequence.
        self.next = Instant::now() + PERIOD;
        self.is_exceeded(&taken).then_some(taken)
    }

    fn is_exceeded(&self, taken: &Taken) -> bool {
        self.space.is_some_and(|most| taken.space > most)
            || self.inodes.is_some_and(|most| taken.inodes > most)
    }

    /// Ends as soon as it is too much: nobody needs the exact excess of a million files.
    fn walk(&self, sandbox: &Path) -> Taken {
        let mut taken = Taken::default();
        let Ok(top) = std::fs::symlink_metadata(sandbox) else { return taken };
        let mut open: Vec<PathBuf> = vec![sandbox.to_owned()];
        while let Some(directory) = open.pop() {
            // What the job removes meanwhile, or hides from us, is not counted.
            let Ok(entries) = std::fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                let Ok(found) = entry.metadata() else { continue };
                if found.dev() != top.dev() {
                    continue;
                }
                taken.inodes += 1;
                // A file with several names is counted once, by its share of each.
                taken.space +=
                    (found.blocks() * 512 / found.nlink().max(1)) as i64 * i64::from(!found.is_dir());
                if self.is_exceeded(&taken) {
                    return taken;
                }
                if found.is_dir() {
                    open.push(entry.path());
                }
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn watch(space: Option<i64>, inodes: Option<i64>) -> DiskWatch {
        DiskWatch { space, inodes, next: Instant::now() }
    }

    #[test]
    fn too_much_is_found_and_enough_is_not() {
        let sandbox = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(sandbox.path().join("a/b")).expect("made");
        fs::write(sandbox.path().join("a/b/file"), vec![1; 100_000]).expect("written");
        std::os::unix::fs::symlink("/", sandbox.path().join("root")).expect("linked");
        let check = |space, inodes, too_much: bool| {
            let found = watch(space, inodes).excess(sandbox.path(), Instant::now(), false);
            assert_eq!(found.is_some(), too_much, "{space:?} {inodes:?}: {found:?}");
        };
        check(None, None, false);
        check(Some(200_000), Some(4), false);
        check(Some(90_000), None, true);
        check(None, Some(3), true);
        check(Some(0), None, true);
    }

    #[test]
    fn it_looks_at_its_times_and_at_the_end() {
        let sandbox = tempfile::tempdir().expect("a directory");
        fs::write(sandbox.path().join("file"), vec![1; 10_000]).expect("written");
        let now = Instant::now();
        let mut watch = DiskWatch { space: Some(1), inodes: None, next: now + PERIOD };
        assert_eq!(watch.excess(sandbox.path(), now, false), None);
        assert!(watch.excess(sandbox.path(), now, true).is_some());
        assert!(watch.excess(sandbox.path(), now + PERIOD + PERIOD, false).is_some());
        assert_eq!(watch.excess(Path::new("/no/such/place"), now, true), None);
    }
}
