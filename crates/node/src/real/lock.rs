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

/// What another process's lock says.
#[derive(Debug)]
pub(crate) enum Peeked {
    /// The process lives.
    Held(Vec<u8>),
    /// The process is dead. The file is locked here meanwhile.
    Free(Vec<u8>, Lock),
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
                return Ok(Attempt::HeldBy(line_of(&file)));
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

    /// Puts a file with this content, held by this process, in the place of one that nobody else holds or replaces. At no time
    /// the file is there without its content, whenever the process or the host dies.
    pub fn replace(path: &Path, content: &[u8]) -> Result<Lock, NodeError> {
        let new = path.with_extension("new");
        let mut file = open(&new)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(e) => return Err(NodeError::io("lock", &new)(e.into())),
        }
        let mut write = || -> std::io::Result<()> {
            file.set_len(0)?;
            file.write_all(content)?;
            file.sync_data()?;
            std::fs::rename(&new, path)
        };
        write().map_err(NodeError::io("write", path))?;
        Ok(Lock { file, path: None })
    }

    /// Looks at a lock that may be another process's. `None` if there is no such file.
    pub fn peek(path: &Path) -> Result<Option<Peeked>, NodeError> {
        let mut options = File::options();
        options.read(true).write(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let file = match options.open(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(NodeError::io("open", path))?,
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Peeked::Free(content_of(&file, path)?, Lock { file, path: None }))),
            Err(Errno::WOULDBLOCK) => Ok(Some(Peeked::Held(content_of(&file, path)?))),
            Err(e) => Err(NodeError::io("lock", path)(e.into())),
        }
    }

    /// The same with a file that goes with the lock.
    pub fn removed_at_end(mut self, path: &Path) -> Lock {
        self.path = Some(path.to_owned());
        self
    }
}

fn content_of(file: &File, path: &Path) -> Result<Vec<u8>, NodeError> {
    let mut content = Vec::new();
    file.take(MAX_CONTENT).read_to_end(&mut content).map_err(NodeError::io("read", path))?;
    Ok(content)
}

fn line_of(file: &File) -> String {
    let mut line = String::new();
    let _ = file.take(MAX_LINE).read_to_string(&mut line);
    line.trim().to_owned()
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
const MAX_CONTENT: u64 = 1 << 20;
