//! Files with keys and tokens.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why a secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// A system call failed.
    #[error("cannot read {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// How it failed.
        source: io::Error,
    },
    /// Others than this process and root can read it, or replace what is in it.
    #[error(
        "{} has mode {mode:04o}, owner {owner} and group {group}: a secret must belong to root or to the user of this process, \
         and be closed to others, and to its group unless that is the group of root or of this process (chmod 600)",
        .path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// Its owner.
        owner: u32,
        /// Its group.
        group: u32,
    },
}

/// Reads a file of at most a megabyte that holds a secret. Links are followed, as secrets of Kubernetes are links.
pub fn read_secret(path: &Path) -> Result<Vec<u8>, SecretError> {
    let failed = |source| SecretError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    refuse_open(path, &found)?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST {
        return Err(failed(io::Error::other("it is larger than 1 MiB")));
    }
    Ok(bytes)
}

/// The same; `None` if there is nothing of its name. A link that leads nowhere is an error: the secret is elsewhere, on a disk that
/// is not mounted, for example.
pub fn read_secret_if_there(path: &Path) -> Result<Option<Vec<u8>>, SecretError> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        _ => read_secret(path).map(Some),
    }
}

/// Refuses a file with a secret that others can read; a missing one is fine. For secrets in a data directory, before
/// [`take`](crate::take) closes it: others may have read them already.
pub fn demand_closed(path: &Path) -> Result<(), SecretError> {
    match std::fs::metadata(path) {
        Ok(found) => refuse_open(path, &found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(SecretError::Io { path: path.to_owned(), source }),
    }
}

fn refuse_open(path: &Path, found: &Metadata) -> Result<(), SecretError> {
    if !is_open(found) {
        return Ok(());
    }
    let (mode, owner, group) = (found.mode() & 0o7777, found.uid(), found.gid());
    Err(SecretError::Open { path: path.to_owned(), mode, owner, group })
}

const LARGEST: u64 = 1 << 20;

fn is_open(found: &Metadata) -> bool {
    let is_trusted = |id: u32, own: u32| id == 0 || id == own;
    let owner = is_trusted(found.uid(), rustix::process::geteuid().as_raw());
    let group = is_trusted(found.gid(), rustix::process::getegid().as_raw());
    !owner || found.mode() & 0o007 != 0 || (found.mode() & 0o070 != 0 && !group)
}
