//! Which data directories this user's processes have on a host.
//!
//! Jobs that run as the user of their node can read all that is that user's. So every process announces its data directory in
//! the [`runtime_directories`], and nodes cover the announced ones in the view of such jobs.

use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::DataDirectoryError;
use crate::private::{private_directory, runtime_directories, runtime_paths};
use crate::replace::write_closed;

/// An entry has the path of a data directory; its name is a hash of it.
const ENTRIES: &str = "data";

/// Tells this user's nodes of a data directory, until the host is restarted or the directory is removed.
pub fn announce(directory: &Path) -> Result<(), DataDirectoryError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| DataDirectoryError::Io { action: "announce a data directory in", path, source }
    };
    let directory = directory.canonicalize().map_err(failed(directory))?;
    let mut hasher = DefaultHasher::new();
    directory.hash(&mut hasher);
    let name = format!("{:016x}", hasher.finish());
    for runtime in runtime_directories()? {
        let entries = runtime.join(ENTRIES);
        private_directory(&entries)?;
        // The name of an unfinished one has a dot.
        match write_closed(&entries.join(&name), directory.as_os_str().as_bytes()) {
            // Another process is just announcing the same.
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists) => {}
            other => other.map_err(failed(&entries))?,
        }
    }
    Ok(())
}

/// All that were announced, and the [`runtime_paths`] themselves.
pub fn announced() -> Vec<PathBuf> {
    let mut found = runtime_paths();
    for entries in runtime_paths().into_iter().map(|runtime| runtime.join(ENTRIES)) {
        let entries = fs::read_dir(entries).into_iter().flatten().flatten();
        let complete = entries.filter(|entry| !entry.file_name().as_bytes().contains(&b'.'));
        found.extend(complete.filter_map(|entry| still_there(&entry.path())));
    }
    found.sort();
    found.dedup();
    found
}

/// A state of the entries: as long as it stays the same, so does [`announced`], but for directories that are gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mark(Vec<Option<(u64, u64, i64, i64)>>);

impl Mark {
    /// The state of now; `None` if it is so new that another change could have the same time.
    pub fn now() -> Option<Mark> {
        let settled = SystemTime::now() - SETTLED;
        let mut mark = Vec::new();
        for runtime in runtime_paths() {
            let Ok(found) = fs::symlink_metadata(runtime.join(ENTRIES)) else {
                mark.push(None);
                continue;
            };
            if found.modified().ok()? >= settled {
                return None;
            }
            mark.push(Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec())));
        }
        Some(Mark(mark))
    }
}

/// Times of directories have the grain of the kernel's clock, a few milliseconds.
const SETTLED: Duration = Duration::from_secs(1);

/// The directory of an entry. An entry goes only when there is certainly no such directory.
fn still_there(entry: &Path) -> Option<PathBuf> {
    let mut text = Vec::new();
    File::open(entry).ok()?.take(LONGEST).read_to_end(&mut text).ok()?;
    let directory = PathBuf::from(OsString::from_vec(text));
    let is_gone = fs::symlink_metadata(&directory).is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
    if is_gone {
        let _ = fs::remove_file(entry);
    }
    (directory.is_absolute() && !is_gone).then_some(directory)
}

/// As the kernel's bound of paths.
const LONGEST: u64 = 4096;
