//! Data directories that are closed to other users of the host.
//!
//! Server, nodes and `millpond up` keep tokens, vaults and users' data on disk. [`take`] makes such a directory, or takes
//! over one that is there: it must belong to this process, and what others could read in it is closed. [`memory`] keeps
//! the same secrets out of core dumps.
#![forbid(unsafe_code)]

mod announced;
pub mod memory;
mod private;
mod replace;
mod secret;

pub use announced::{Mark, announce, announced};
pub use private::{private_directory, runtime_directories, runtime_paths};
pub use replace::{refuse_link, remove_drafts, write_closed, write_secret};
pub use secret::{SecretError, demand_closed, read_secret, read_secret_if_there};

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Closes to others what this process and its children make from here on: directories get 0700, files 0600.
pub fn close_new_files() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(OF_OTHERS));
}

/// Permissions of group and others.
const OF_OTHERS: u32 = 0o077;

/// Why a directory cannot be used for data.
#[derive(Debug, thiserror::Error)]
pub enum DataDirectoryError {
    /// A system call failed.
    #[error("cannot {action} {}", .path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// How it failed.
        source: io::Error,
    },
    /// The directory belongs to another user, who could replace its contents.
    #[error(
        "data directory {} belongs to user {found}, not to user {expected}, who runs this process: \
         give it to that user (chown), or name another directory",
        .path.display()
    )]
    OfAnother {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        found: u32,
        /// The process's user.
        expected: u32,
    },
    /// Another user has put something at the place of a directory that processes of one user share.
    #[error("{} must be a directory of user {expected}, it belongs to user {owner} or is no directory: remove it", .path.display())]
    NotOurs {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The process's user.
        expected: u32,
    },
    /// None of the places for locks and sockets can be used.
    #[error("no directory for locks: one of {tried:?} must be there or be made: {reason}")]
    NoRuntimeDirectory {
        /// All places.
        tried: Vec<PathBuf>,
        /// Why the last one cannot be used.
        reason: Box<DataDirectoryError>,
    },
}

/// What others had rights to when a directory was taken over.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WasOpen {
    /// Files and directories.
    pub count: usize,
    /// One of them.
    pub example: Option<PathBuf>,
    /// Something of another user, which is left as it is: `lost+found`, for example. Nobody gets to it from outside.
    pub foreign: Option<PathBuf>,
}

impl WasOpen {
    /// A warning, if there was any.
    pub fn warning(&self, directory: &Path) -> Option<String> {
        let (count, directory) = (self.count, directory.display());
        let opened = self.example.as_ref().map(|example| {
            format!(
                "{count} files and directories of {directory} were open to other users of this host, {} for one: \
                 they are closed now",
                example.display()
            )
        });
        let foreign = self.foreign.as_ref().map(|foreign| {
            format!("{} in {directory} belongs to another user and is left as it is", foreign.display())
        });
        let texts: Vec<String> = opened.into_iter().chain(foreign).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    fn add(&mut self, path: &Path) {
        self.count += 1;
        self.example.get_or_insert_with(|| path.to_owned());
    }
}

/// How far [`take_with`] closes an entry of a data directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Care {
    /// The entry and all that lies below it.
    Whole,
    /// The entry itself, whatever user owns it. What lies below keeps its modes.
    Door {
        /// Permissions that group and others may keep, for example 0o011.
        permitted: u32,
    },
    /// Nothing.
    Nothing,
}

/// Makes a data directory with mode 0700, or takes over one that is there: closes it and all that lies in it to others.
/// What `is_kept` names, and all below, keeps its mode. Links are neither followed nor changed.
pub fn take(path: &Path, is_kept: &dyn Fn(&Path) -> bool) -> Result<WasOpen, DataDirectoryError> {
    let care = |entry: &Path| if is_kept(entry) { Care::Nothing } else { Care::Whole };
    take_entries(path, &care)
}

/// The same with a choice for each entry, which `care` gets as a path relative to the directory.
pub fn take_with(path: &Path, care: &dyn Fn(&Path) -> Care) -> Result<WasOpen, DataDirectoryError> {
    let failed = |source| DataDirectoryError::Io { action: "create", path: path.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    let root = path.canonicalize().map_err(failed)?;
    take_entries(&root, &|entry| entry.strip_prefix(&root).map_or(Care::Whole, care))
}

fn take_entries(path: &Path, care: &dyn Fn(&Path) -> Care) -> Result<WasOpen, DataDirectoryError> {
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |source| DataDirectoryError::Io { action, path, source }
    };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed("create", path))?;
    // The operator may have put a link there; below it there are none to follow.
    let path = path.canonicalize().map_err(failed("resolve", path))?;
    let found = fs::symlink_metadata(&path).map_err(failed("look at", &path))?;
    let expected = rustix::process::geteuid().as_raw();
    if found.uid() != expected {
        return Err(DataDirectoryError::OfAnother { path, found: found.uid(), expected });
    }
    let mut was_open = WasOpen::default();
    close(&path, &found, 0, &mut was_open).map_err(failed("close to others", &path))?;
    close_below(&path, expected, care, &mut was_open)
        .map_err(|(path, source)| failed("close to others", &path)(source))?;
    Ok(was_open)
}

fn close_below(
    directory: &Path,
    owner: u32,
    care: &dyn Fn(&Path) -> Care,
    was_open: &mut WasOpen,
) -> Result<(), (PathBuf, io::Error)> {
    let at = |path: &Path| {
        let path = path.to_owned();
        move |error| (path, error)
    };
    for entry in fs::read_dir(directory).map_err(at(directory))? {
        let path = entry.map_err(at(directory))?.path();
        let care_of_it = care(&path);
        if care_of_it == Care::Nothing {
            continue;
        }
        let found = match fs::symlink_metadata(&path) {
            // Another thread, or a job proxy that lives on, may clean up meanwhile.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(at(&path))?,
        };
        if found.is_symlink() {
            continue;
        }
        if let Care::Door { permitted } = care_of_it {
            close(&path, &found, permitted, was_open).map_err(at(&path))?;
            continue;
        }
        if found.uid() != owner {
            was_open.foreign.get_or_insert(path);
            continue;
        }
        close(&path, &found, 0, was_open).map_err(at(&path))?;
        if found.is_dir() {
            close_below(&path, owner, care, was_open)?;
        }
    }
    Ok(())
}

fn close(path: &Path, found: &Metadata, permitted: u32, was_open: &mut WasOpen) -> io::Result<()> {
    let mode = found.permissions().mode();
    let excess = OF_OTHERS & !permitted;
    if mode & excess == 0 {
        return Ok(());
    }
    was_open.add(path);
    match fs::set_permissions(path, Permissions::from_mode(mode & 0o7777 & !excess)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
