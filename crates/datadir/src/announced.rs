//! Which data directories this user's processes have on a host.
//!
//! Jobs that run as the user of their node can read all that is that user's. So every process announces its data directory in
//! the [`runtime_directory`](crate::runtime_directory), and nodes cover the announced ones in the view of such jobs.

use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::DataDirectoryError;
use crate::private::{private_directory, runtime_directory, runtime_path};

/// The entry has the path of the directory; its name is a hash of it.
fn entries() -> PathBuf {
    runtime_path().join("data")
}

/// Tells this user's nodes of a data directory, until the host is restarted or the directory is removed.
pub fn announce(directory: &Path) -> Result<(), DataDirectoryError> {
    runtime_directory()?;
    let entries = entries();
    private_directory(&entries)?;
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| DataDirectoryError::Io { action: "announce a data directory in", path, source }
    };
    let directory = directory.canonicalize().map_err(failed(directory))?;
    let mut hasher = DefaultHasher::new();
    directory.hash(&mut hasher);
    let name = format!("{:016x}", hasher.finish());
    let draft = entries.join(format!("{name}.{}", std::process::id()));
    let write = || -> io::Result<()> {
        fs::write(&draft, directory.as_os_str().as_bytes())?;
        fs::rename(&draft, entries.join(&name))
    };
    write().map_err(failed(&entries))
}

/// All that were announced and are still there.
pub fn announced() -> Vec<PathBuf> {
    let entries = fs::read_dir(entries()).into_iter().flatten().flatten();
    // One with a dot is being written.
    let complete = entries.filter(|entry| !entry.file_name().as_bytes().contains(&b'.'));
    complete.filter_map(|entry| still_there(&entry.path())).collect()
}

fn still_there(entry: &Path) -> Option<PathBuf> {
    let mut text = Vec::new();
    File::open(entry).ok()?.take(LONGEST).read_to_end(&mut text).ok()?;
    let directory = PathBuf::from(OsString::from_vec(text));
    if directory.is_absolute() && directory.is_dir() {
        return Some(directory);
    }
    let _ = fs::remove_file(entry);
    None
}

/// As the kernel's bound of paths.
const LONGEST: u64 = 4096;
