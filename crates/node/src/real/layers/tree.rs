//! A tar archive becomes a tree. Every name is resolved by the kernel with the directory as the root, so that
//! a link in the archive leads where it would lead in the job.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};

use super::Fault;
use super::limits::Limits;

/// Bytes of names and other words about one entry: some long paths and attributes.
const HEADERS_MAX: u64 = 1 << 20;

/// Ends with an error when the reader of the archive takes more than it was allowed: what an entry says
/// about itself is read into memory, however long it is.
struct Rationed<R> {
    inner: R,
    allowance: Rc<Cell<u64>>,
}

impl<R: Read> Read for Rationed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.allowance.get();
        if left == 0 && !buffer.is_empty() {
            return Err(io::Error::other(format!("an entry has more than {HEADERS_MAX} bytes of headers")));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let got = self.inner.read(&mut buffer[..most])?;
        self.allowance.set(left - got as u64);
        Ok(got)
    }
}

pub(super) fn unpack_tar(reader: impl Read, root: &OwnedFd, limits: &mut Limits) -> Result<(), Fault> {
    let allowance = Rc::new(Cell::new(HEADERS_MAX));
    let mut archive = tar::Archive::new(Rationed { inner: reader, allowance: Rc::clone(&allowance) });
    let malformed = |e: io::Error| Fault::User(format!("not a tar archive, plain or with gzip: {e}"));
    let mut count = 0;
    for entry in archive.entries().map_err(malformed)? {
        let mut entry = entry.map_err(malformed)?;
        limits.entry()?;
        allowance.set(u64::MAX);
        let name = entry.path().map_err(malformed)?.into_owned();
        if let Some(place) = Place::of(&name)? {
            put(&mut entry, &place, root, limits)?;
            count += 1;
        }
        // What was not wanted is read as well, and counts: it may be endless.
        copy(&mut entry, &mut io::sink(), limits)?;
        allowance.set(HEADERS_MAX);
    }
    if count == 0 {
        return Err(Fault::User("the archive is empty".to_owned()));
    }
    Ok(())
}

/// An archive that ends too early, or is broken, is its user's; a disk that cannot be written to is ours.
fn copy(from: &mut impl Read, to: &mut impl Write, limits: &mut Limits) -> Result<(), Fault> {
    let mut buffer = [0; 64 << 10];
    loop {
        let got = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(got) => got,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(Fault::User(format!("the archive is broken: {e}"))),
        };
        limits.bytes(got as u64)?;
        to.write_all(&buffer[..got]).map_err(Fault::Node)?;
    }
}

/// A name in an archive: its directory and the last part.
struct Place {
    parent: PathBuf,
    name: PathBuf,
}

impl Place {
    /// None for the root itself.
    fn of(path: &Path) -> Result<Option<Place>, Fault> {
        let mut parts = PathBuf::new();
        for part in path.components() {
            match part {
                Component::Normal(part) => parts.push(part),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
                Component::ParentDir => {
                    return Err(Fault::User(format!("{} leaves the archive by \"..\"", path.display())));
                }
            }
        }
        let Some(name) = parts.file_name().map(PathBuf::from) else { return Ok(None) };
        parts.pop();
        Ok(Some(Place { parent: parts, name }))
    }
}

/// In a layer, "this name is not in the layers below".
const WHITEOUT: &str = ".wh.";
/// In a layer, "nothing of this directory is in the layers below".
const OPAQUE: &str = ".wh..wh..opq";

fn put<R: Read>(
    entry: &mut tar::Entry<'_, R>,
    place: &Place,
    root: &OwnedFd,
    limits: &mut Limits,
) -> Result<(), Fault> {
    let shown = || place.parent.join(&place.name).display().to_string();
    let parent = directory_of(root, &place.parent).map_err(|e| refused(&shown(), &e))?;
    let kind = entry.header().entry_type();
    let name = place.name.as_path();
    if name == Path::new(OPAQUE) {
        return rustix::fs::fsetxattr(
            &parent,
            "trusted.overlay.opaque",
            b"y",
            rustix::fs::XattrFlags::empty(),
        )
        .map_err(|e| Fault::Node(e.into()));
    }
    if let Some(hidden) = name.to_str().and_then(|n| n.strip_prefix(WHITEOUT)) {
        // As overlayfs writes it.
        let made = rustix::fs::mknodat(&parent, hidden, FileType::CharacterDevice, Mode::empty(), 0);
        return made.map_err(|e| Fault::Node(e.into()));
    }
    // The bits that would give a job another user do nothing under no_new_privs, but others are on this host.
    let mode = Mode::from_raw_mode(entry.header().mode().unwrap_or(0o755) & 0o1777);
    let link = || {
        let target = entry.link_name().ok().flatten();
        target.map(|t| t.into_owned()).ok_or_else(|| Fault::User(format!("{} is a link to nothing", shown())))
    };
    match kind {
        tar::EntryType::Directory => {
            match rustix::fs::mkdirat(&parent, name, mode) {
                Err(rustix::io::Errno::EXIST) | Ok(()) => {}
                Err(e) => return Err(refused(&shown(), &e.into())),
            }
            let made = directory_of(root, &place.parent.join(name)).map_err(|e| refused(&shown(), &e))?;
            rustix::fs::fchmod(&made, mode).map_err(|e| Fault::Node(e.into()))
        }
        tar::EntryType::Symlink => {
            let target = link()?;
            check_climb(&place.parent, &target).map_err(|why| Fault::User(format!("{}: {why}", shown())))?;
            replace(&parent, name)?;
            rustix::fs::symlinkat(&target, &parent, name).map_err(|e| refused(&shown(), &e.into()))
        }
        tar::EntryType::Link => {
            let source = Place::of(&link()?)?
                .ok_or_else(|| Fault::User(format!("{} is a link to the root", shown())))?;
            let from = directory_of(root, &source.parent).map_err(|e| refused(&shown(), &e))?;
            replace(&parent, name)?;
            rustix::fs::linkat(&from, &source.name, &parent, name, AtFlags::empty())
                .map_err(|e| refused(&shown(), &e.into()))
        }
        tar::EntryType::Regular | tar::EntryType::Continuous | tar::EntryType::GNUSparse => {
            replace(&parent, name)?;
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file =
                rustix::fs::openat(&parent, name, flags, mode).map_err(|e| refused(&shown(), &e.into()))?;
            let mut file = File::from(file);
            copy(entry, &mut file, limits)?;
            rustix::fs::fchmod(&file, mode).map_err(|e| Fault::Node(e.into()))
        }
        // Devices and pipes: a job has its own `/dev`. Headers of the archive itself: nothing to make.
        _ => Ok(()),
    }
}

/// A name that the user chose and the system refuses, but for a lack of room.
fn refused(name: &str, error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Fault::Node(io::Error::from(error.kind()))
        }
        _ => Fault::User(format!("{name}: {error}")),
    }
}

/// A later entry replaces an earlier one of the same name.
fn replace(parent: &OwnedFd, name: &Path) -> Result<(), Fault> {
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(e) => Err(refused(&name.display().to_string(), &e.into())),
    }
}

/// Opens a directory with its parents; missing ones are made. `root` is the root for every link.
fn directory_of(root: &OwnedFd, path: &Path) -> io::Result<OwnedFd> {
    let open = |path: &Path| {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(root.as_fd(), path, flags, Mode::empty(), inside)
    };
    if path.as_os_str().is_empty() {
        return open(Path::new(".")).map_err(Into::into);
    }
    match open(path) {
        Err(rustix::io::Errno::NOENT) => {}
        other => return other.map_err(Into::into),
    }
    let mut at = PathBuf::new();
    for part in path {
        let parent = open(if at.as_os_str().is_empty() { Path::new(".") } else { &at })?;
        let mode = Mode::from_raw_mode(0o755);
        match rustix::fs::mkdirat(&parent, part, mode) {
            // Whatever the umask says: jobs pass through it.
            Ok(()) => rustix::fs::chmodat(&parent, part, mode, AtFlags::empty())?,
            Err(rustix::io::Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
        at.push(part);
    }
    open(path).map_err(Into::into)
}

/// A relative link must not climb above the archive: in a job the root ends it, but nobody who means
/// well writes such a link.
fn check_climb(directory: &Path, target: &Path) -> Result<(), String> {
    let mut depth: usize = directory.components().count();
    for part in target.components() {
        match part {
            Component::RootDir => depth = 0,
            Component::ParentDir => {
                depth = depth
                    .checked_sub(1)
                    .ok_or_else(|| format!("the link to {} leaves the root", target.display()))?;
            }
            Component::Normal(_) => depth += 1,
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    Ok(())
}
