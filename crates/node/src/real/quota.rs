//! Bounds of disk space that the kernel keeps, where the file system of the slots can (jobs-and-nodes.md 4.9).
//!
//! Each slot has a project of its own, with the number of its user. A job that asked for a bound has its sandbox, and
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
    /// Slots whose project may have limits.
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
        let mut quotas = Quotas { first, on, limited: slots.iter().copied().collect() };
        slots.iter().filter(|slot| !lives(**slot)).for_each(|slot| quotas.release(*slot));
        Some(quotas)
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
        Some(Bound { project: self.first.saturating_add(slot), limits })
    }

    /// The slot has no job any more.
    pub fn release(&mut self, slot: u32) {
        if !self.limited.contains(&slot) {
            return;
        }
        match quota::limit(&self.on, self.first.saturating_add(slot), DiskLimits::default()) {
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

    /// Where there are no quotas nothing is left of the trial; where there are, limits come and go.
    #[test]
    fn limits_are_there_for_as_long_as_the_job() {
        let base = std::env::var_os("MILLPOND_QUOTA_DIRECTORY");
        let data = match &base {
            Some(base) => tempfile::tempdir_in(base),
            None => tempfile::tempdir(),
        };
        let data = data.expect("a directory");
        let layout = Layout::create(data.path()).expect("made");
        // Of nobody else: this process's.
        let first = 0x6000_0000 + std::process::id();
        let found = Quotas::find(&layout, first, &[], &|_| false);
        assert!(!layout.quota_probe().exists());
        let Some(mut quotas) = found else {
            assert!(base.is_none(), "MILLPOND_QUOTA_DIRECTORY is on a file system with project quotas");
            return println!("SKIPPED limits of slots: no project quotas in {}", data.path().display());
        };
        let request = FileSystemRequest { disk_space: Some(1 << 20), ..FileSystemRequest::default() };
        fs::create_dir_all(layout.sandbox(0)).expect("made");
        fs::create_dir_all(layout.job(0)).expect("made");
        let bound = quotas.bound(0, &request).expect("it asked for one");
        bound.begin(&[layout.sandbox(0)]).expect("nobody else's");
        let quota = bound.close(&layout.job(0)).expect("set");
        assert_eq!((quota.project, quota.own_inodes), (first, 1));
        fs::write(layout.sandbox(0).join("file"), vec![1; 100_000]).expect("written");
        let taken = |project| quota::usage(&quotas.on, project).expect("counted");
        assert_eq!(taken(first).inodes, 2);
        assert!(taken(first).space >= 100_000);
        // The next life, and a job in the same slot that is not empty yet.
        let mut next = Quotas::find(&layout, first, &[0], &|_| true).expect("as before");
        assert_eq!(next.limited.len(), 1);
        let other = next.bound(0, &request).expect("it asked for one");
        other.begin(&[layout.sandbox(0)]).expect_err("a file is there");
        remove_tree(&layout.sandbox(0)).expect("removed");
        fs::create_dir(layout.sandbox(0)).expect("made");
        other.begin(&[layout.sandbox(0)]).expect("nobody else's");
        other.close(&layout.job(0)).expect("set");
        assert!(next.bound(0, &FileSystemRequest::default()).is_none());
        assert!(next.limited.is_empty());
    }
}
