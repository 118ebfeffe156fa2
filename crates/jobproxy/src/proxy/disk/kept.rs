//! Bounds that the kernel keeps.

use std::fs::File;
use std::io;
use std::path::Path;

use cage::quota;

use super::Taken;
use crate::protocol::DiskQuota;

/// The way to what the kernel counts.
#[derive(Debug)]
pub(super) struct Kept {
    /// Not the sandbox: that may be a file system in memory.
    on: File,
    quota: DiskQuota,
}

impl Kept {
    /// By a directory that is on the same file system and not the job's.
    pub fn open(job_directory: &Path, quota: DiskQuota) -> io::Result<Kept> {
        Ok(Kept { on: File::open(job_directory)?, quota })
    }

    /// Now; cheap, whatever is there.
    pub fn taken(&self) -> io::Result<Taken> {
        quota::usage(&self.on, self.quota.project).map(|used| of_the_job(used, &self.quota))
    }
}

/// Without the directories that it was given.
fn of_the_job(used: quota::DiskUse, quota: &DiskQuota) -> Taken {
    let less = |all: u64, own: i64| i64::try_from(all).unwrap_or(i64::MAX).saturating_sub(own).max(0);
    Taken { space: less(used.space, quota.own_space), inodes: less(used.inodes, quota.own_inodes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_directories_are_not_the_jobs() {
        let quota = DiskQuota { project: 1, own_space: 4096, own_inodes: 1 };
        let check = |space, inodes, want: (i64, i64)| {
            let taken = of_the_job(quota::DiskUse { space, inodes }, &quota);
            assert_eq!((taken.space, taken.inodes), want);
        };
        check(4096, 1, (0, 0));
        check(10_000, 5, (5904, 4));
        // It may remove its own directory.
        check(0, 0, (0, 0));
        check(u64::MAX, 2, (i64::MAX - 4096, 1));
    }
}
