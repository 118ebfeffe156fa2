//! Layers of root file systems: archives of the file cache, unpacked once (jobs-and-nodes.md 4.7).
//!
//! An archive comes from a user. Nothing in it may reach outside its directory ([`tree`]), it may not be
//! larger than [`limits`] allow, whatever it says of itself, devices are not made, set-user-id bits are
//! dropped, everything belongs to the node's user, and the directory of all layers is closed to others.
//!
//! Layers that no living job needs stay for the next one, the longest unused go first when there are too
//! many bytes. What is removed is renamed first and emptied beside everything else.

mod limits;
mod squashfs;
mod tree;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use vocab::{Artifact, Failure, JobId};

use super::cache::Key;
use super::clearing::remove_tree;
use super::layout::make_with_mode;
use super::remover::Remover;
use limits::Limits;

/// The unpacked layers of a node.
#[derive(Debug)]
pub(crate) struct Layers {
    directory: PathBuf,
    /// Bytes of all layers together that are kept when nobody uses them; the bound of a single one too.
    limit: u64,
    remover: Remover,
    book: Mutex<Book>,
    /// One at a time: several jobs may want the same one, and the disk is one.
    unpacking: Mutex<()>,
}

/// What is here, by name of its directory.
#[derive(Debug, Default)]
struct Book {
    layers: BTreeMap<String, Layer>,
    pinned: FxHashMap<JobId, Vec<String>>,
    clock: u64,
    discarded: u64,
}

#[derive(Debug)]
struct Layer {
    size: u64,
    pins: u32,
    last_used: u64,
}

/// Name of the file beside a layer that says its size: one without is not complete.
const SIZE: &str = ".size";
/// What is about to be removed.
const OLD: &str = "old-";

impl Layers {
    /// Takes over what is complete. Nothing in the directory can keep a node from its start.
    pub fn open(directory: &Path, limit: u64, remover: Remover) -> io::Result<Layers> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
        let book = Mutex::default();
        let layers =
            Layers { directory: directory.to_owned(), limit, remover, book, unpacking: Mutex::new(()) };
        for entry in fs::read_dir(directory)?.flatten() {
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let has_layer = name.strip_suffix(SIZE).is_some_and(|layer| directory.join(layer).is_dir());
                if !has_layer {
                    let _ = fs::remove_file(entry.path());
                }
                continue;
            }
            match layers.size_of(&name) {
                Some(size) => {
                    layers.book().layers.insert(name, Layer { size, pins: 0, last_used: 0 });
                }
                None => layers.discard(&name),
            }
        }
        Ok(layers)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn size_of(&self, name: &str) -> Option<u64> {
        fs::read_to_string(self.directory.join(format!("{name}{SIZE}"))).ok()?.trim().parse().ok()
    }

    /// Where the layer of an archive is, once [`Layers::unpack`] was called.
    pub fn path(&self, artifact: &Artifact) -> PathBuf {
        self.directory.join(Key::of(artifact).name())
    }

    /// Keeps a job's layers, those that are here and those that will be, until it is unpinned.
    pub fn pin(&self, job_id: JobId, artifacts: &[Artifact]) {
        let mut book = self.book();
        if artifacts.is_empty() || book.pinned.contains_key(&job_id) {
            return;
        }
        let names: Vec<String> = artifacts.iter().map(|artifact| Key::of(artifact).name()).collect();
        for name in &names {
            if let Some(layer) = book.layers.get_mut(name) {
                layer.pins += 1;
            }
        }
        book.pinned.insert(job_id, names);
    }

    /// The job does not need them any more.
    pub fn unpin(&self, job_id: JobId) {
        let mut book = self.book();
        let Some(names) = book.pinned.remove(&job_id) else { return };
        book.clock += 1;
        let now = book.clock;
        for name in names {
            if let Some(layer) = book.layers.get_mut(&name) {
                layer.pins = layer.pins.saturating_sub(1);
                layer.last_used = now;
            }
        }
        drop(book);
        self.evict();
    }

    fn evict(&self) {
        loop {
            let mut book = self.book();
            if book.layers.values().map(|layer| layer.size).sum::<u64>() <= self.limit {
                return;
            }
            let idle = book.layers.iter().filter(|(_, layer)| layer.pins == 0);
            let Some(oldest) = idle.min_by_key(|(_, layer)| layer.last_used).map(|(name, _)| name.clone())
            else {
                return;
            };
            book.layers.remove(&oldest);
            drop(book);
            self.discard(&oldest);
        }
    }

    /// Out of the way at once, removed when there is time.
    fn discard(&self, name: &str) {
        let _ = fs::remove_file(self.directory.join(format!("{name}{SIZE}")));
        let number = {
            let mut book = self.book();
            book.discarded += 1;
            book.discarded
        };
        let old = self.directory.join(format!("{OLD}{}-{number}", std::process::id()));
        let from = self.directory.join(name);
        match fs::rename(&from, &old) {
            Ok(()) => self.remover.discard(old),
            Err(_) => self.remover.discard(from),
        }
    }

    /// Unpacks an archive that lies in the file cache, unless that was done before. Blocks.
    pub fn unpack(&self, artifact: &Artifact, archive: &Path) -> Result<(), Failure> {
        let name = Key::of(artifact).name();
        let target = self.path(artifact);
        let _alone = self.unpacking.lock().unwrap_or_else(PoisonError::into_inner);
        if self.book().layers.contains_key(&name) && target.is_dir() {
            return Ok(());
        }
        let part = self.directory.join(format!("{name}.part"));
        let limits = Limits::new(self.limit, &self.directory);
        let unpacked = remove_tree(&part)
            .and_then(|()| remove_tree(&target))
            // The root directory of the jobs that have this layer on top.
            .and_then(|()| make_with_mode(&part, 0o755))
            .map_err(Fault::Node)
            .and_then(|()| unpack_any(archive, &part, limits))
            .and_then(|size| {
                let written = fs::write(self.directory.join(format!("{name}{SIZE}")), size.to_string());
                written.and_then(|()| fs::rename(&part, &target)).map_err(Fault::Node)?;
                Ok(size)
            });
        match unpacked {
            Ok(size) => {
                let mut book = self.book();
                let pins = book.pinned.values().flatten().filter(|pinned| **pinned == name).count() as u32;
                book.clock += 1;
                let last_used = book.clock;
                book.layers.insert(name, Layer { size, pins, last_used });
                drop(book);
                self.evict();
                Ok(())
            }
            Err(fault) => {
                self.discard(&format!("{name}.part"));
                let failure = Failure::new(format!("Cannot unpack layer {:?}: {fault}", artifact.file_name));
                // The next node would find the same (3.8).
                Err(if matches!(fault, Fault::User(_)) { failure.with("user_fault", true) } else { failure })
            }
        }
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

/// Gives the bytes that it takes unpacked.
fn unpack_any(archive: &Path, target: &Path, mut limits: Limits) -> Result<u64, Fault> {
    let mut file = File::open(archive).map_err(Fault::Node)?;
    let mut start = Vec::new();
    file.by_ref().take(4).read_to_end(&mut start).and_then(|_| file.rewind()).map_err(Fault::Node)?;
    if start.starts_with(SQUASHFS) {
        squashfs::unpack(file, target, &mut limits)?;
        return Ok(limits.taken());
    }
    let reader: Box<dyn Read> = match start.starts_with(GZIP) {
        true => Box::new(flate2::read::MultiGzDecoder::new(io::BufReader::new(file))),
        false => Box::new(io::BufReader::new(file)),
    };
    let root: OwnedFd = File::open(target).map_err(Fault::Node)?.into();
    tree::unpack_tar(reader, &root, &mut limits)?;
    Ok(limits.taken())
}

/// Unpacks a tar archive, plain or with gzip, into a directory, as a layer is unpacked.
#[cfg(fuzzing)]
pub fn unpack_layer(archive: &[u8], target: &Path) -> Result<(), String> {
    let reader: Box<dyn Read> = match archive.starts_with(GZIP) {
        true => Box::new(flate2::read::MultiGzDecoder::new(archive)),
        false => Box::new(archive),
    };
    let root: OwnedFd = File::open(target).map_err(|e| e.to_string())?.into();
    tree::unpack_tar(reader, &root, &mut Limits::new(1 << 20, target)).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests;
