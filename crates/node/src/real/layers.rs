//! Layers of root file systems: archives of the file cache, unpacked once (jobs-and-nodes.md 4.7).
//!
//! An archive comes from a user and is unpacked by root. Nothing in it may reach outside its
//! directory: every name is resolved by the kernel with that directory as the root, so that a link in
//! the archive leads where it would lead in the job. Devices are not made, set-user-id bits are
//! dropped, everything belongs to root, and the directory of all layers is closed to others.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use vocab::{Artifact, Failure};

use super::cache::Key;

/// The unpacked layers of a node.
#[derive(Debug)]
pub(crate) struct Layers {
    directory: PathBuf,
    /// One at a time: several jobs may want the same one, and the disk is one.
    unpacking: Mutex<()>,
}

impl Layers {
    /// Removes what no living job needs; others may be half unpacked or unwanted for ever.
    pub fn open(directory: &Path, needed: &[Artifact]) -> io::Result<Layers> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
        let layers = Layers { directory: directory.to_owned(), unpacking: Mutex::new(()) };
        let needed: Vec<PathBuf> = needed.iter().map(|artifact| layers.path(artifact)).collect();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if !needed.contains(&path) {
                fs::remove_dir_all(&path)?;
            }
        }
        Ok(layers)
    }

    /// Where the layer of an archive is, once [`Layers::unpack`] was called.
    pub fn path(&self, artifact: &Artifact) -> PathBuf {
        self.directory.join(Key::of(artifact).name())
    }

    /// Unpacks an archive that lies in the file cache, unless that was done before. Blocks.
    pub fn unpack(&self, artifact: &Artifact, archive: &Path) -> Result<(), Failure> {
        let target = self.path(artifact);
        let _alone = self.unpacking.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if target.is_dir() {
            return Ok(());
        }
        let part = target.with_extension("part");
        let unpacked = remove(&part)
            .and_then(|()| fs::create_dir(&part))
            .map_err(Fault::Node)
            .and_then(|()| unpack_any(archive, &part))
            .and_then(|()| fs::rename(&part, &target).map_err(Fault::Node));
        unpacked.map_err(|fault| {
            let _ = remove(&part);
            let failure = Failure::new(format!("Cannot unpack layer {:?}: {fault}", artifact.file_name));
            // The next node would find the same (3.8).
            if matches!(fault, Fault::User(_)) { failure.with("user_fault", true) } else { failure }
        })
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// Whose fault it is.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("{0}")]
    User(String),
    #[error("{0}")]
    Node(io::Error),
}

const GZIP: &[u8] = &[0x1f, 0x8b];
const SQUASHFS: &[u8] = b"hsqs";

fn unpack_any(archive: &Path, target: &Path) -> Result<(), Fault> {
    let mut file = File::open(archive).map_err(Fault::Node)?;
    let mut start = Vec::new();
    file.by_ref().take(4).read_to_end(&mut start).and_then(|_| file.rewind()).map_err(Fault::Node)?;
    if start.starts_with(SQUASHFS) {
        return unpack_squashfs(archive, target);
    }
    let reader: Box<dyn Read> = match start.starts_with(GZIP) {
        true => Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::new(file))),
        false => Box::new(io::BufReader::new(file)),
    };
    let root: OwnedFd = File::open(target).map_err(Fault::Node)?.into();
    unpack_tar(reader, &root)
}

/// By the tool of the file system's makers, which is a package of every distribution.
fn unpack_squashfs(archive: &Path, target: &Path) -> Result<(), Fault> {
    let mut tool = std::process::Command::new("unsquashfs");
    tool.args(["-no-progress", "-force", "-no-xattrs", "-dest"]).arg(target).arg(archive);
    match tool.output() {
        Ok(output) if output.status.success() => drop_set_user_id(target).map_err(Fault::Node),
        Ok(output) => Err(Fault::User(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        Err(e) => Err(Fault::Node(io::Error::other(format!("unsquashfs cannot be run: {e}")))),
    }
}

fn drop_set_user_id(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let (entry, path) = entry.map(|e| (e.metadata(), e.path()))?;
        let found = entry?;
        if found.is_dir() {
            drop_set_user_id(&path)?;
        } else if found.is_file() && found.permissions().mode() & 0o6000 != 0 {
            fs::set_permissions(&path, fs::Permissions::from_mode(found.permissions().mode() & 0o1777))?;
        }
    }
    Ok(())
}

fn unpack_tar(reader: impl Read, root: &OwnedFd) -> Result<(), Fault> {
    let mut archive = tar::Archive::new(reader);
    let malformed = |e: io::Error| Fault::User(format!("not a tar archive, plain or with gzip: {e}"));
    let mut count = 0;
    for entry in archive.entries().map_err(malformed)? {
        let mut entry = entry.map_err(malformed)?;
        let name = entry.path().map_err(malformed)?.into_owned();
        let Some(place) = Place::of(&name)? else { continue };
        put(&mut entry, &place, root)?;
        count += 1;
    }
    if count == 0 {
        return Err(Fault::User("the archive is empty".to_owned()));
    }
    Ok(())
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

fn put<R: Read>(entry: &mut tar::Entry<'_, R>, place: &Place, root: &OwnedFd) -> Result<(), Fault> {
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
            io::copy(entry, &mut file).map_err(Fault::Node)?;
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
        match rustix::fs::mkdirat(&parent, part, Mode::from_raw_mode(0o755)) {
            Err(rustix::io::Errno::EXIST) | Ok(()) => at.push(part),
            Err(e) => return Err(e.into()),
        }
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

#[cfg(test)]
mod tests;
