//! Directories for what processes of one user share on a host: locks, sockets, announcements.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::{DataDirectoryError, OF_OTHERS};

/// `RuntimeDirectory=` of `deploy/systemd/millpond-server.service`: the one place that a service with `ProtectSystem=strict` can
/// write to. It is usable by the user of that service alone.
const OF_SERVICE: &str = "/run/millpond-server";

/// Where such a directory may be. They depend on the user alone: processes that were started by a session, by cron or as a
/// service find the same ones, whatever their environment says.
pub fn runtime_paths() -> Vec<PathBuf> {
    let user = rustix::process::geteuid();
    let name = format!("/tmp/millpond-{}", user.as_raw());
    match user.is_root() {
        true => vec![PathBuf::from("/run/millpond"), PathBuf::from(name)],
        false => vec![
            PathBuf::from(format!("/run/user/{}/millpond", user.as_raw())),
            PathBuf::from(OF_SERVICE),
            PathBuf::from(name),
        ],
    }
}

/// The [`runtime_paths`] that can be used, made with mode 0700 if they are missing. One is enough; all of them are used, since
/// each can go: the first with the last session of the user, the other by a clean-up of temporary files.
pub fn runtime_directories() -> Result<Vec<PathBuf>, DataDirectoryError> {
    let (mut usable, mut why_not) = (Vec::new(), None);
    for path in runtime_paths() {
        match private_directory(&path) {
            Ok(()) => usable.push(path),
            Err(e) => why_not = Some(e),
        }
    }
    match why_not {
        Some(reason) if usable.is_empty() => {
            Err(DataDirectoryError::NoRuntimeDirectory { tried: runtime_paths(), reason: Box::new(reason) })
        }
        _ => Ok(usable),
    }
}

/// Makes a directory with mode 0700; its parent must be there. One that is there must be a directory of this process's user, no
/// link, since another user may have put it there; it is closed to others.
pub fn private_directory(path: &Path) -> Result<(), DataDirectoryError> {
    let failed = |action| move |source| DataDirectoryError::Io { action, path: path.to_owned(), source };
    match DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(failed("create")(e)),
        _ => {}
    }
    let found = fs::symlink_metadata(path).map_err(failed("look at"))?;
    let expected = rustix::process::geteuid().as_raw();
    if found.uid() != expected || !found.is_dir() {
        return Err(DataDirectoryError::NotOurs { path: path.to_owned(), owner: found.uid(), expected });
    }
    let mode = found.permissions().mode() & 0o7777;
    match mode & OF_OTHERS {
        0 => Ok(()),
        _ => fs::set_permissions(path, Permissions::from_mode(mode & !OF_OTHERS))
            .map_err(failed("close to others")),
    }
}
