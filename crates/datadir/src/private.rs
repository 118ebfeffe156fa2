//! Directories for what processes of one user share on a host.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::{DataDirectoryError, OF_OTHERS};

/// The directory for locks and sockets of this user's processes, made with mode 0700 if it is missing.
pub fn runtime_directory() -> Result<PathBuf, DataDirectoryError> {
    let path = runtime_path();
    private_directory(&path)?;
    Ok(path)
}

/// Where [`runtime_directory`] is: `/run/millpond` for root, else `$XDG_RUNTIME_DIR/millpond`, else `millpond-UID` in the
/// directory for temporary files.
pub fn runtime_path() -> PathBuf {
    let user = rustix::process::geteuid();
    let of_session =
        || std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    match (user.is_root(), of_session()) {
        (true, _) => PathBuf::from("/run/millpond"),
        (false, Some(directory)) => directory.join("millpond"),
        (false, None) => std::env::temp_dir().join(format!("millpond-{}", user.as_raw())),
    }
}

/// Makes a directory with mode 0700; its parent must be there. One that is there must be a directory of this process's user
/// with no rights for others: a link is refused, since another user may have put it there.
pub fn private_directory(path: &Path) -> Result<(), DataDirectoryError> {
    let failed = |action| move |source| DataDirectoryError::Io { action, path: path.to_owned(), source };
    match DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(failed("create")(e)),
        _ => {}
    }
    let found = fs::symlink_metadata(path).map_err(failed("look at"))?;
    let expected = rustix::process::geteuid().as_raw();
    if found.uid() != expected {
        return Err(DataDirectoryError::OfAnother { path: path.to_owned(), found: found.uid(), expected });
    }
    let mode = found.permissions().mode() & 0o7777;
    if !found.is_dir() || mode & OF_OTHERS != 0 {
        return Err(DataDirectoryError::NotPrivate { path: path.to_owned(), mode });
    }
    Ok(())
}
