//! Files that one process holds at a time.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::NodeError;

/// Held until it is dropped, also by death.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    /// Removed at the end.
    path: Option<PathBuf>,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Still locked: another process that has opened it meanwhile notices that it is gone.
        if let Some(path) = &self.path
            && is_at(&self.file, path)
        {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// What became of the wish to hold a file.
#[derive(Debug)]
pub(crate) enum Attempt {
    Taken(Lock),
    /// Another process holds it, and this is what it wrote about itself.
    HeldBy(String),
}

/// A process that was killed holds its locks until the kernel has freed its memory.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

impl Lock {
    /// Takes the lock and writes one line about the holder into the file. Blocks for two seconds at most.
    pub fn take(path: &Path, holder: &str) -> Result<Attempt, NodeError> {
        let give_up = Instant::now() + PATIENCE;
        let mut file = open(path)?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&file, path) => break,
                Ok(()) | Err(Errno::WOULDBLOCK) => {}
                Err(e) => return Err(NodeError::io("lock", path)(e.into())),
            }
            if Instant::now() >= give_up {
                let mut line = String::new();
                let _ = (&file).take(MAX_LINE).read_to_string(&mut line);
                return Ok(Attempt::HeldBy(line.trim().to_owned()));
            }
            std::thread::sleep(PAUSE);
            file = open(path)?;
        }
        let mut write = || -> std::io::Result<()> {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{holder}")
        };
        write().map_err(NodeError::io("write", path))?;
        Ok(Attempt::Taken(Lock { file, path: None }))
    }

    /// The same with a file that goes with the lock.
    pub fn removed_at_end(mut self, path: &Path) -> Lock {
        self.path = Some(path.to_owned());
        self
    }
}

fn open(path: &Path) -> Result<File, NodeError> {
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
        .map_err(NodeError::io("open", path))
}

/// The holder of before may have removed the file after it was opened here.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => identity(ours) == identity(there),
        _ => false,
    }
}

const MAX_LINE: u64 = 8192;
