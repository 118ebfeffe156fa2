//! One process per data directory.

use crate::{Result, StoreError};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

/// Held for the life of a store. The system releases it when the process dies, however it dies, so
/// there is never a stale lock to remove by hand.
pub(super) struct DirectoryLock {
    file: File,
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Closing is not enough: a child that this process is just starting still has the file, until its
        // exec. If it fails, closing comes next anyway.
        let _ = self.file.unlock();
    }
}

impl DirectoryLock {
    /// Takes the lock or says who has it.
    pub fn acquire(directory: &Path) -> Result<DirectoryLock> {
        let path = directory.join("lock");
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false) // the pid of the owner is in it
            .open(&path)
            .map_err(StoreError::io("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
                return Err(StoreError::InUse { path: directory.to_owned(), pid });
            }
            Err(TryLockError::Error(e)) => return Err(StoreError::io("lock", &path)(e)),
        }
        let write_pid = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        match write_pid(&mut file).map_err(StoreError::io("write", &path)) {
            // It is for messages only.
            Err(error) if error.is_lack_of_room() => {}
            written => written?,
        }
        Ok(DirectoryLock { file })
    }
}
