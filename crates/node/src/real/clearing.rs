//! Emptying a directory that somebody who means no good has filled.
//!
//! A tree can be deeper than any stack and longer than any path, and a directory can have more entries
//! than fit into memory. So there is no recursion and no path: a directory that is not empty is emptied
//! of its files, and what it has of directories is *moved up* to the top, where its turn comes. Three
//! descriptors, one move per directory, and it can stop after any step: what is left is a smaller tree of the
//! same kind, also after a restart.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

/// A directory on its way to be empty.
#[derive(Debug)]
pub(crate) struct Clearing {
    top: OwnedFd,
    entries: Dir,
    /// The directory of `top` that is being emptied.
    inner: Option<Inner>,
    /// This look at `entries` has found something, so there has to be another.
    found: bool,
    /// For names that no job could have guessed.
    token: u128,
    moved: u64,
}

#[derive(Debug)]
struct Inner {
    name: CString,
    directory: OwnedFd,
    entries: Dir,
}

impl Clearing {
    /// Of a directory; the directory itself stays. A link is refused.
    pub fn of(directory: &Path) -> io::Result<Clearing> {
        let top = open(&rustix::fs::openat(CWD, directory, PATH, Mode::empty())?, c".", directory_flags())
            .or_else(|e| {
                // Its user closed it, and this is not root.
                if e != Errno::ACCESS {
                    return Err(e);
                }
                rustix::fs::chmod(directory, Mode::RWXU)?;
                rustix::fs::openat(CWD, directory, directory_flags(), Mode::empty())
            })?;
        let token = std::time::UNIX_EPOCH.elapsed().map_or(0, |d| d.as_nanos());
        Ok(Clearing { entries: Dir::read_from(&top)?, top, inner: None, found: false, token, moved: 0 })
    }

    /// Removes up to so many entries; true when nothing is left.
    pub fn step(&mut self, budget: usize) -> io::Result<bool> {
        for _ in 0..budget {
            let Some(inner) = &mut self.inner else {
                match self.entries.read().transpose()? {
                    None if !self.found => return Ok(true),
                    None => {
                        self.entries.rewind();
                        self.found = false;
                    }
                    Some(entry) if is_dot(entry.file_name()) => {}
                    Some(entry) => {
                        self.found = true;
                        if remove(&self.top, entry.file_name(), entry.file_type())? == Entry::Full {
                            self.inner = Some(Inner::of(&self.top, entry.file_name())?);
                        }
                    }
                }
                continue;
            };
            match inner.entries.read().transpose()? {
                None => {
                    match rustix::fs::unlinkat(&self.top, inner.name.as_c_str(), AtFlags::REMOVEDIR) {
                        Ok(()) | Err(Errno::NOENT) => self.inner = None,
                        // The kernel may leave entries out while others are removed.
                        Err(Errno::NOTEMPTY) => inner.entries.rewind(),
                        Err(e) => return Err(e.into()),
                    }
                }
                Some(entry) if is_dot(entry.file_name()) => {}
                Some(entry) => {
                    if remove(&inner.directory, entry.file_name(), entry.file_type())? == Entry::Full {
                        let name = format!(".{:x}-{}", self.token, self.moved);
                        self.moved += 1;
                        move_up(&inner.directory, entry.file_name(), &self.top, &name)?;
                    }
                }
            }
        }
        Ok(false)
    }

    /// All of it, at once. Blocks for as long as it takes.
    pub fn run(mut self) -> io::Result<()> {
        while !self.step(4096)? {}
        Ok(())
    }
}

/// Removes a directory with all that is in it; one that is not there is fine. Blocks.
pub(crate) fn remove_tree(directory: &Path) -> io::Result<()> {
    match Clearing::of(directory).and_then(Clearing::run).and_then(|()| std::fs::remove_dir(directory)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

const PATH: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn open(at: &OwnedFd, name: &CStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(at, name, flags, Mode::empty())
}

fn is_dot(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

impl Inner {
    fn of(top: &OwnedFd, name: &CStr) -> io::Result<Inner> {
        let directory = match open(top, name, directory_flags()) {
            Err(Errno::ACCESS) => {
                open_up(top, name)?;
                open(top, name, directory_flags())?
            }
            other => other?,
        };
        take_back(&directory);
        Ok(Inner { name: name.to_owned(), entries: Dir::read_from(&directory)?, directory })
    }
}

/// A job that runs may hold the directory open, and could fill it as fast as it is emptied (S9).
fn take_back(directory: &OwnedFd) {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let taken = rustix::fs::fchown(directory, Some(uid), Some(gid))
        .and_then(|()| rustix::fs::fchmod(directory, Mode::RWXU));
    // Without the right to do so the removal of the entries says what is wrong.
    let _ = taken;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Entry {
    Gone,
    /// A directory with something in it.
    Full,
}

fn remove(directory: &OwnedFd, name: &CStr, kind: FileType) -> io::Result<Entry> {
    // Some file systems do not say what it is: then it is tried.
    if kind != FileType::Directory {
        match attempt(directory, name, AtFlags::empty())? {
            Some(entry) => return Ok(entry),
            None if kind != FileType::Unknown => return Ok(Entry::Full),
            None => {}
        }
    }
    Ok(attempt(directory, name, AtFlags::REMOVEDIR)?.unwrap_or(Entry::Full))
}

/// None: it is a directory.
fn attempt(directory: &OwnedFd, name: &CStr, flags: AtFlags) -> io::Result<Option<Entry>> {
    let mut opened_up = false;
    loop {
        return match rustix::fs::unlinkat(directory, name, flags) {
            Ok(()) | Err(Errno::NOENT) => Ok(Some(Entry::Gone)),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Some(Entry::Full)),
            Err(Errno::ISDIR) => Ok(None),
            // POSIX's word for the same, which is also the word for real refusals.
            Err(Errno::PERM) if flags.is_empty() && is_directory(directory, name) => Ok(None),
            // The directory was made unwritable, and this is not root.
            Err(Errno::ACCESS) if !opened_up => {
                opened_up = true;
                rustix::fs::fchmod(directory, Mode::RWXU)?;
                continue;
            }
            Err(e) => Err(e.into()),
        };
    }
}

fn is_directory(directory: &OwnedFd, name: &CStr) -> bool {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
}

fn open_up(directory: &OwnedFd, name: &CStr) -> rustix::io::Result<()> {
    rustix::fs::chmodat(directory, name, Mode::RWXU, AtFlags::empty())
}

fn move_up(from: &OwnedFd, name: &CStr, top: &OwnedFd, new: &str) -> io::Result<()> {
    let attempt = || rustix::fs::renameat_with(from, name, top, new, RenameFlags::NOREPLACE);
    match attempt() {
        // A directory that moves is written to: its entry for the parent changes.
        Err(Errno::ACCESS) => {
            open_up(from, name)?;
            attempt()
        }
        // Not every file system knows the flag; nothing of this name can be there.
        Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::renameat(from, name, top, new),
        other => other,
    }
    .map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// Deeper than a path, a stack of frames and the number of descriptors allow.
    fn deep(top: &Path, depth: usize) {
        let name = "d".repeat(100);
        let mut at = rustix::fs::openat(CWD, top, directory_flags(), Mode::empty()).expect("it is there");
        for level in 0..depth {
            rustix::fs::mkdirat(&at, &name, Mode::RWXU).expect("made");
            at = rustix::fs::openat(&at, &name, directory_flags(), Mode::empty()).expect("made");
            if level % 100 == 0 {
                rustix::fs::openat(&at, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).expect("made");
            }
        }
    }

    #[test]
    fn a_tree_of_any_depth_goes() {
        let directory = tempfile::tempdir().expect("a directory");
        let top = directory.path().join("top");
        fs::create_dir(&top).expect("made");
        deep(&top, 3000);
        deep(directory.path(), 3000);
        Clearing::of(&top).and_then(Clearing::run).expect("emptied");
        assert_eq!(fs::read_dir(&top).expect("it stays").count(), 0);
        Clearing::of(directory.path()).and_then(Clearing::run).expect("emptied");
    }

    /// In steps, beginning anew in between as after a restart.
    #[test]
    fn it_can_stop_after_any_step() {
        let directory = tempfile::tempdir().expect("a directory");
        let top = directory.path();
        for a in 0..5 {
            for b in 0..5 {
                let path = top.join(format!("{a}/{b}/c"));
                fs::create_dir_all(&path).expect("made");
                fs::write(path.join("file"), b"x").expect("written");
                fs::write(top.join(format!("{a}/{b}-file")), b"x").expect("written");
            }
        }
        let done = (0..1000).find(|_| Clearing::of(top).and_then(|mut c| c.step(7)).expect("removed"));
        assert!(done.is_some_and(|steps| steps > 10), "{done:?}");
        assert_eq!(fs::read_dir(top).expect("it stays").count(), 0);
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let directory = tempfile::tempdir().expect("a directory");
        let (top, other) = (directory.path().join("top"), directory.path().join("other"));
        fs::create_dir_all(&top).expect("made");
        fs::create_dir_all(other.join("in")).expect("made");
        std::os::unix::fs::symlink(&other, top.join("link")).expect("linked");
        Clearing::of(&top).and_then(Clearing::run).expect("emptied");
        assert!(other.join("in").is_dir());
        std::os::unix::fs::symlink(&other, directory.path().join("to other")).expect("linked");
        assert!(Clearing::of(&directory.path().join("to other")).is_err());
        remove_tree(&top).expect("removed");
        remove_tree(&top).expect("gone already");
    }

    /// S9: a job that holds a directory of the tree open cannot fill it any more.
    #[test]
    fn directories_are_taken_from_their_users() {
        use std::os::unix::fs::MetadataExt;
        let directory = tempfile::tempdir().expect("a directory");
        let inner = directory.path().join("inner");
        fs::create_dir_all(inner.join("a")).expect("made");
        fs::write(inner.join("a/file"), b"x").expect("written");
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o777)).expect("ours");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&inner, Some(2_100_000_000), Some(2_100_000_000)).expect("root may");
        }
        let held = fs::File::open(&inner).expect("there");
        Clearing::of(directory.path()).and_then(Clearing::run).expect("emptied");
        let found = held.metadata().expect("open");
        assert_eq!(found.uid(), rustix::process::geteuid().as_raw());
        assert_eq!(found.mode() & 0o7777, 0o700);
    }

    #[test]
    fn closed_directories_are_opened() {
        let directory = tempfile::tempdir().expect("a directory");
        let top = directory.path().join("top");
        fs::create_dir_all(top.join("a/b/c")).expect("made");
        for closed in ["a/b/c", "a/b", "a", ""] {
            let mode = fs::Permissions::from_mode(0o000);
            fs::set_permissions(top.join(closed), mode).expect("ours");
        }
        Clearing::of(&top).and_then(Clearing::run).expect("emptied");
        assert_eq!(fs::read_dir(&top).expect("it stays").count(), 0);
    }
}
