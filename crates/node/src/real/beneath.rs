//! Work below a directory whose inside others have a say in: names of files come from users.
//!
//! Every name is resolved from an open directory, one component after the other. No link is followed, so nothing that
//! lies in the directory can lead the node out of it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::room::Owner;

const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NEW_FILE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An open directory.
#[derive(Debug)]
pub(crate) struct Directory {
    fd: OwnedFd,
}

impl Directory {
    /// Opens a directory of the node's own. The last component must not be a link: a job may own the directory above.
    pub fn open(path: &Path) -> io::Result<Directory> {
        Ok(Directory { fd: rustix::fs::open(path, DIRECTORY, Mode::empty())? })
    }

    /// Opens a directory below this one and makes those on the way that are missing; these belong to `owner`.
    pub fn make(&self, below: &Path, owner: Option<Owner>) -> io::Result<Directory> {
        let mut at = Directory { fd: self.fd.try_clone()? };
        for component in below.components() {
            let name = match component {
                Component::Normal(name) => name,
                Component::CurDir => continue,
                _ => return Err(Errno::INVAL.into()),
            };
            let is_new = match rustix::fs::mkdirat(&at.fd, name, Mode::RWXU) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(e) => return Err(e.into()),
            };
            at = Directory { fd: rustix::fs::openat(&at.fd, name, DIRECTORY, Mode::empty())? };
            if is_new {
                at.give_to(owner)?;
            }
        }
        Ok(at)
    }

    /// A file that was not there.
    pub fn create_file(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let file = File::from(rustix::fs::openat(&self.fd, name, NEW_FILE, Mode::from_raw_mode(mode))?);
        // Whatever the umask says.
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
        Ok(file)
    }

    /// A link that was not there.
    pub fn create_link(&self, name: &OsStr, target: &Path) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.fd, name)?)
    }

    pub fn give_to(&self, owner: Option<Owner>) -> io::Result<()> {
        give_to(&self.fd, owner)
    }

    /// A path to this very directory, for system calls that take no descriptor; good while it is open.
    pub fn as_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
    }
}

/// Gives what is open to a user and group.
pub(crate) fn give_to(fd: impl AsFd, owner: Option<Owner>) -> io::Result<()> {
    let Some((uid, gid)) = owner else { return Ok(()) };
    let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
    Ok(rustix::fs::fchown(fd, Some(uid), Some(gid))?)
}

/// The bytes of one of the node's own files; never of what a link leads to.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    /// S1: a link in the way is never followed, neither as the last component nor on the way.
    #[test]
    fn links_are_not_followed() -> io::Result<()> {
        let root = tempfile::tempdir()?;
        let (inside, outside) = (root.path().join("inside"), root.path().join("outside"));
        fs::create_dir(&inside)?;
        fs::create_dir(&outside)?;
        fs::write(outside.join("file"), "untouched")?;
        symlink(&outside, inside.join("way"))?;
        symlink(outside.join("file"), inside.join("file"))?;
        let directory = Directory::open(&inside)?;
        for way in ["way", "way/deeper", "file"] {
            assert!(directory.make(Path::new(way), None).is_err(), "{way}");
        }
        assert!(directory.create_file(OsStr::new("file"), 0o644).is_err());
        assert!(directory.create_link(OsStr::new("file"), Path::new("/elsewhere")).is_err());
        assert!(Directory::open(&inside.join("way")).is_err());
        assert!(open_file(&inside.join("file")).is_err());
        assert_eq!(fs::read_to_string(outside.join("file"))?, "untouched");
        assert_eq!(fs::read_dir(&outside)?.count(), 1);
        Ok(())
    }

    #[test]
    fn directories_and_files_are_made_once() -> io::Result<()> {
        let root = tempfile::tempdir()?;
        let top = Directory::open(root.path())?;
        let deep = top.make(Path::new("a/./b"), None)?;
        top.make(Path::new("a/b"), None)?;
        drop(deep.create_file(OsStr::new("f"), 0o640)?);
        assert!(deep.create_file(OsStr::new("f"), 0o640).is_err(), "there is one");
        let found = fs::metadata(root.path().join("a/b/f"))?;
        assert_eq!((found.len(), found.permissions().mode() & 0o7777), (0, 0o640));
        assert_eq!(fs::metadata(deep.as_path())?.ino(), fs::metadata(root.path().join("a/b"))?.ino());
        for outside in ["../x", "/x"] {
            assert!(top.make(Path::new(outside), None).is_err(), "{outside}");
        }
        Ok(())
    }
}
