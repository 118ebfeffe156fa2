//! How much an archive may become.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::super::room::free_space;
use super::Fault;

/// Files, directories and links of one layer: several times those of the largest images.
const ENTRIES_MAX: u64 = 2_000_000;
/// Longer than any honest archive takes on a slow disk.
const TIME_MAX: Duration = Duration::from_secs(15 * 60);
/// Bytes of the disk that unpacking leaves free.
const LEAVE_FREE: u64 = 100 << 20;
/// Between two looks at the free space.
const LOOK_EVERY: u64 = 16 << 20;

/// What is left of it.
#[derive(Debug)]
pub(super) struct Limits {
    bytes_max: u64,
    bytes: u64,
    entries: u64,
    until: Instant,
    looked_at: u64,
    directory: PathBuf,
}

impl Limits {
    /// For one layer in this directory.
    pub fn new(bytes_max: u64, directory: &Path) -> Limits {
        let until = Instant::now() + TIME_MAX;
        Limits { bytes_max, bytes: 0, entries: 0, until, looked_at: 0, directory: directory.to_owned() }
    }

    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }
    pub fn until(&self) -> Instant {
        self.until
    }
    /// Bytes so far.
    pub fn taken(&self) -> u64 {
        self.bytes
    }

    /// One more file, directory or link.
    pub fn entry(&mut self) -> Result<(), Fault> {
        self.entries += 1;
        if self.entries > ENTRIES_MAX {
            return Err(Fault::User(format!("it has more than {ENTRIES_MAX} entries")));
        }
        self.check_time()
    }

    /// So many bytes more.
    pub fn bytes(&mut self, more: u64) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(more);
        if self.bytes > self.bytes_max {
            return Err(Fault::User(format!("unpacked it is larger than {} bytes", self.bytes_max)));
        }
        if self.bytes - self.looked_at >= LOOK_EVERY {
            self.looked_at = self.bytes;
            self.check_time()?;
            if free_space(&self.directory).is_ok_and(|free| free < LEAVE_FREE) {
                return Err(Fault::Node(std::io::ErrorKind::StorageFull.into()));
            }
        }
        Ok(())
    }

    fn check_time(&self) -> Result<(), Fault> {
        match Instant::now() > self.until {
            true => Err(Fault::User(format!("unpacking it takes longer than {TIME_MAX:?}"))),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_entries_and_time_are_bounded() {
        let users = |result: Result<(), Fault>| matches!(result, Err(Fault::User(_)));
        let mut limits = Limits::new(100, Path::new("/"));
        assert!(limits.bytes(100).is_ok() && users(limits.bytes(1)));
        let mut limits = Limits::new(100, Path::new("/"));
        limits.entries = ENTRIES_MAX - 1;
        assert!(limits.entry().is_ok() && users(limits.entry()));
        let mut limits = Limits::new(100, Path::new("/"));
        limits.until = Instant::now() - Duration::from_secs(1);
        assert!(users(limits.entry()));
    }
}
