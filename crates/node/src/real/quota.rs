//! Bounds of disk space that the kernel keeps, where the file system of the slots can (jobs-and-nodes.md 4.9).
//!
//! Each slot has a project of its own. A job that asked for a bound has its sandbox, and
//! what it writes into a root file system of its own, counted for it; its limits are the bound, and end with it.
//! Whatever goes wrong is no reason not to run a job: then its files are counted by walking, as without quotas.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use cage::quota::{self, DiskLimits};
use jobproxy::protocol::DiskQuota;
use rustc_hash::FxHashSet;
use vocab::FileSystemRequest;

use super::clearing::remove_tree;
use super::layout::Layout;

/// Projects for trials are far from those of slots; the pid makes them this process's own.
const FIRST_FOR_TRIALS: u32 = 0x7000_0000;

/// What a node needs to know of them.
#[derive(Debug)]
pub(crate) struct Quotas {
    /// Project of slot 0.
    first: u32,
    /// Any directory of ours on the file system.
    on: File,
    /// Slots whose project may have limits that are ours.
    limited: FxHashSet<u32>,
}

impl Quotas {
    /// None, with the reason in the log, where the kernel does not keep bounds. Takes back limits that an earlier life
    /// has left in `slots`, but in those whose job `lives`.
    pub fn find(layout: &Layout, first: u32, slots: &[u32], lives: &dyn Fn(u32) -> bool) -> Option<Quotas> {
        let on = match try_out(&layout.quota_probe()).and_then(|()| File::open(layout.slots())) {
            Ok(on) => on,
            Err(e) => {
                let directory = layout.slots();
                tracing::info!(
                    "disk space of jobs is bounded by looking at their files, {} has no project quotas: {e}",
                    directory.display()
                );
                return None;
            }
        };
        let mut quotas = Quotas { first, on, limited: FxHashSet::default() };
        // Not of every slot: another node may have the same numbers.
        let ours =
            |slot| quota::project(&layout.sandbox(slot)).is_ok_and(|found| found == quotas.project(slot));
        quotas.limited = slots.iter().copied().filter(|slot| ours(*slot)).collect();
        slots.iter().filter(|slot| !lives(**slot)).for_each(|slot| quotas.release(*slot));
        Some(quotas)
    }

    fn project(&self, slot: u32) -> u32 {
        self.first.saturating_add(slot)
    }

    /// For a job that is to be prepared in this slot; none if it asked for no bound.
    pub fn bound(&mut self, slot: u32, request: &FileSystemRequest) -> Option<Bound> {
        let limits = limits_of(request);
        // Should the last job's not have gone, they would be this one's.
        self.release(slot);
        if limits == DiskLimits::default() {
            return None;
        }
        self.limited.insert(slot);
        Some(Bound { project: self.project(slot), limits })
    }

    /// What was to be bounded is not: its number is somebody else's, or the file system cannot do it any more.
    pub fn forget(&mut self, slot: u32) {
        self.limited.remove(&slot);
    }

    /// The slot has no job any more.
    pub fn release(&mut self, slot: u32) {
        if !self.limited.contains(&slot) {
            return;
        }
        match quota::limit(&self.on, self.project(slot), DiskLimits::default()) {
            Ok(()) => {
                self.limited.remove(&slot);
            }
            Err(e) => tracing::warn!("the disk quota of slot {slot} cannot be taken back: {e}"),
        }
    }
}

fn try_out(directory: &Path) -> io::Result<()> {
    remove_tree(directory)?;
    fs::create_dir(directory)?;
    let tried = quota::try_out(directory, FIRST_FOR_TRIALS.saturating_add(std::process::id()));
    remove_tree(directory)?;
    tried
}

fn limits_of(request: &FileSystemRequest) -> DiskLimits {
    let bound = |asked: Option<i64>| asked.map(|most| most.max(0).unsigned_abs());
    DiskLimits { space: bound(request.disk_space), inodes: bound(request.inode_count) }
}

/// What one job may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    project: u32,
    limits: DiskLimits,
}

impl Bound {
    /// Counts from now on what is made in directories that are empty.
    pub fn begin(&self, directories: &[PathBuf]) -> io::Result<()> {
        let directories: Vec<&Path> = directories.iter().map(PathBuf::as_path).collect();
        quota::claim(&directories, self.project)
    }

    /// Sets the limits; what is there by now is ours and not the job's. `directory`: of ours, on that file system.
    pub fn close(&self, directory: &Path) -> io::Result<DiskQuota> {
        let on = File::open(directory)?;
        let own = quota::usage(&on, self.project)?;
        let more = |bound: Option<u64>, own: u64| bound.map(|most| most.saturating_add(own));
        let limits = DiskLimits {
            space: more(self.limits.space, own.space),
            inodes: more(self.limits.inodes, own.inodes),
        };
        quota::limit(&on, self.project, limits)?;
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        Ok(DiskQuota { project: self.project, own_space: number(own.space), own_inodes: number(own.inodes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_without_bounds_has_no_limits() {
        let none = FileSystemRequest::default();
        assert_eq!(limits_of(&none), DiskLimits::default());
        let some = FileSystemRequest { disk_space: Some(0), inode_count: Some(7), ..none };
        assert_eq!(limits_of(&some), DiskLimits { space: Some(0), inodes: Some(7) });
    }

    fn request() -> FileSystemRequest {
        FileSystemRequest { disk_space: Some(1 << 20), ..FileSystemRequest::default() }
    }

    /// A node with slot 0, first in the numbers of this process and `trial`; none, with a word, where there are no quotas.
    fn node(trial: u32) -> Option<(tempfile::TempDir, Layout, Quotas)> {
        let base = std::env::var_os("MILLPOND_QUOTA_DIRECTORY");
        let data = base.as_ref().map_or_else(tempfile::tempdir, tempfile::tempdir_in).expect("a directory");
        let layout = Layout::create(data.path()).expect("made");
        // Of nobody else: pids have no more than 22 bits.
        let first = 0x6000_0000 + (trial << 24) + std::process::id();
        let found = Quotas::find(&layout, first, &[], &|_| false);
        assert!(!layout.quota_probe().exists(), "nothing is left of the trial");
        let Some(quotas) = found else {
            assert!(base.is_none(), "MILLPOND_QUOTA_DIRECTORY is on a file system with project quotas");
            println!("SKIPPED limits of slots: no project quotas in {}", data.path().display());
            return None;
        };
        fs::create_dir_all(layout.sandbox(0)).expect("made");
        fs::create_dir_all(layout.job(0)).expect("made");
        Some((data, layout, quotas))
    }

    fn space(quotas: &Quotas) -> Option<u64> {
        quota::limits(&quotas.on, quotas.project(0)).expect("asked").space
    }

    #[test]
    fn limits_are_there_for_as_long_as_the_job() {
        let Some((_data, layout, mut quotas)) = node(0) else { return };
        let first = quotas.first;
        let bound = quotas.bound(0, &request()).expect("it asked for one");
        bound.begin(&[layout.sandbox(0)]).expect("nobody else's");
        let quota = bound.close(&layout.job(0)).expect("set");
        assert_eq!((quota.project, quota.own_inodes), (first, 1));
        assert_eq!(space(&quotas), Some((1 << 20) + quota.own_space.unsigned_abs()));
        fs::write(layout.sandbox(0).join("file"), vec![1; 100_000]).expect("written");
        let taken = quota::usage(&quotas.on, first).expect("counted");
        assert!(taken.inodes == 2 && taken.space >= 100_000, "{taken:?}");
        // The next life, and a job in the same slot that is not empty yet.
        let mut next = Quotas::find(&layout, first, &[0, 1], &|_| true).expect("as before");
        assert!(next.limited.iter().eq([&0]) && space(&next).is_some(), "the job runs");
        let other = next.bound(0, &request()).expect("it asked for one");
        assert_eq!(space(&next), None);
        other.begin(&[layout.sandbox(0)]).expect_err("a file is there");
        remove_tree(&layout.sandbox(0)).expect("removed");
        fs::create_dir(layout.sandbox(0)).expect("made");
        other.begin(&[layout.sandbox(0)]).expect("nobody else's");
        other.close(&layout.job(0)).expect("set");
        assert!(next.bound(0, &FileSystemRequest::default()).is_none());
        assert!(next.limited.is_empty() && space(&next).is_none());
        // A life that ended between the limits and the job's start.
        let bound = next.bound(0, &request()).expect("it asked for one");
        bound.close(&layout.job(0)).expect("set");
        let last = Quotas::find(&layout, first, &[0], &|_| false).expect("as before");
        assert!(last.limited.is_empty() && space(&last).is_none());
    }

    /// Two nodes of a host with the same numbers.
    #[test]
    fn limits_of_another_node_stay() {
        let Some((_data, layout, mut quotas)) = node(1) else { return };
        let bound = quotas.bound(0, &request()).expect("it asked for one");
        bound.begin(&[layout.sandbox(0)]).expect("nobody else's");
        bound.close(&layout.job(0)).expect("set");
        let Some((_data, layout, _)) = node(2) else { return };
        let mut other = Quotas::find(&layout, quotas.first, &[0], &|_| false).expect("as before");
        let bound = other.bound(0, &request()).expect("it asked for one");
        bound.begin(&[layout.sandbox(0)]).expect_err("it is in use");
        other.forget(0);
        other.release(0);
        assert!(space(&quotas).is_some());
        quotas.release(0);
        assert_eq!(space(&quotas), None);
    }
}
