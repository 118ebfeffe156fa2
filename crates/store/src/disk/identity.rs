//! Which cluster a data directory belongs to, and whether all of it is there.
//!
//! The id of the cluster lies in three places: in the store, in [`FILE`] of the data directory, and in [`FILE`] of
//! `blobs/`. A directory that lost one of its parts, or got a part of another cluster, is recognised by them before
//! anything in it is changed.
//!
//! A directory without ids (of release 0.1, or one whose first start was interrupted) is *adopted*: the store gets an id
//! when it is opened, and the files follow when the server has seen that store and blobs fit ([`place`]).

use super::blobs::sync_folder;
use crate::{Result, StoreError};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use vocab::Guid;

/// Name of the file with the cluster's id.
pub(super) const FILE: &str = "cluster_id";
/// Name of the database file.
pub(super) const STORE: &str = "store.redb";
/// Name of the folder of blobs.
pub(super) const BLOBS: &str = "blobs";
/// How a file begins that redb has initialised.
const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";

/// What lies in a data directory.
pub(super) struct Parts {
    directory: PathBuf,
    pub store: StoreFile,
    /// Id in the data directory.
    id: Option<Guid>,
    /// The folder of blobs with its id, if it is there.
    blobs: Option<Option<Guid>>,
    /// Other names that only a cluster that has run leaves there.
    traces: Vec<String>,
}

/// The database file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StoreFile {
    Missing,
    /// No byte of a database was ever written, or the file was cut.
    Empty,
    There,
}

/// What the store says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct OwnRecord {
    /// Lives before this start; `None` in a store that was never opened.
    pub life: Option<u64>,
    pub id: Option<Guid>,
    /// Whether the files with the id were written.
    pub placed: bool,
}

impl Parts {
    /// Looks, and changes nothing.
    pub fn look(directory: &Path, traces: &[&str]) -> Result<Parts> {
        let there = |name: &&&str| fs::symlink_metadata(directory.join(name)).is_ok();
        let blobs = directory.join(BLOBS);
        Ok(Parts {
            store: look_at_store(&directory.join(STORE))?,
            id: read(&directory.join(FILE))?,
            blobs: if blobs.is_dir() { Some(read(&blobs.join(FILE))?) } else { None },
            traces: traces.iter().filter(there).map(|name| (*name).to_owned()).collect(),
            directory: directory.to_owned(),
        })
    }

    /// Refuses a directory in which something of a cluster lies and the store does not.
    pub fn demand_store(&self) -> Result<()> {
        let state = match self.store {
            StoreFile::There => return Ok(()),
            StoreFile::Missing => "is missing",
            StoreFile::Empty => "is empty",
        };
        let left = self.left();
        if left.is_empty() {
            return Ok(());
        }
        Err(self.refusal(format!("{STORE} {state}, but there is {}", left.join(", "))))
    }

    /// Refuses parts that are missing or of different clusters.
    pub fn demand_whole(&self, own: OwnRecord) -> Result<()> {
        if own.life.is_none() {
            let left = self.left();
            return match left.is_empty() {
                true => Ok(()),
                false => Err(self.refusal(format!("{STORE} is empty, but there is {}", left.join(", ")))),
            };
        }
        let blobs = self.blobs.map(|id| ("blobs", id));
        for (place, found) in blobs.into_iter().chain([("the data directory", self.id)]) {
            if let Some(found) = found
                && own.id != Some(found)
            {
                let store = match own.id {
                    Some(id) => format!("{STORE} belongs to cluster {id}"),
                    None => format!("{STORE} belongs to none yet (it was written by release 0.1)"),
                };
                return Err(self.refusal(format!("{store}, {place} to cluster {found}")));
            }
        }
        // An interrupted first start has an id, and no folder yet.
        if self.blobs.is_none() && (own.placed || own.id.is_none()) {
            return Err(self.refusal(format!("{STORE} is there, the folder {BLOBS} is missing")));
        }
        if let (true, Some(id)) = (own.placed, own.id) {
            let folder = self.directory.join(BLOBS);
            for (found, path) in [(self.id, &self.directory), (self.blobs.flatten(), &folder)] {
                if found.is_none() {
                    let file = path.join(FILE);
                    let detail = format!(
                        "{STORE} belongs to cluster {id}, and {} is missing; if {} is the right directory, write {id} into \
                         that file",
                        file.display(),
                        path.display()
                    );
                    return Err(self.refusal(detail));
                }
            }
        }
        Ok(())
    }

    /// Whether the ids in the files were written, be it by hand.
    pub fn has_ids(&self, id: Guid) -> bool {
        self.id == Some(id) && self.blobs == Some(Some(id))
    }

    /// The id in the files, if both have the same.
    pub fn written_id(&self) -> Option<Guid> {
        self.id.filter(|id| self.has_ids(*id))
    }

    /// What there is of a cluster, without the store.
    fn left(&self) -> Vec<String> {
        let own = [self.id.map(|_| FILE), self.blobs.map(|_| BLOBS)];
        own.into_iter().flatten().map(str::to_owned).chain(self.traces.iter().cloned()).collect()
    }

    pub fn refusal(&self, detail: String) -> StoreError {
        StoreError::NotWhole { path: self.directory.clone(), detail }
    }
}

fn look_at_store(path: &Path) -> Result<StoreFile> {
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(StoreFile::Missing),
        file => file.map_err(StoreError::io("open", path))?,
    };
    let mut head = [0; MAGIC.len()];
    match file.read_exact_at(&mut head, 0) {
        // A first start that was killed while it made the file leaves zeros.
        Ok(()) if head.iter().all(|byte| *byte == 0) => Ok(StoreFile::Empty),
        Ok(()) => Ok(StoreFile::There),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
            let len = file.metadata().map_err(StoreError::io("read", path))?.len();
            Ok(if len == 0 { StoreFile::Empty } else { StoreFile::There })
        }
        Err(e) => Err(StoreError::io("read", path)(e)),
    }
}

/// The id in a file; `None` without the file.
fn read(path: &Path) -> Result<Option<Guid>> {
    let mut text = String::new();
    match File::open(path).and_then(|file| file.take(200).read_to_string(&mut text)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(StoreError::io("read", path))?,
    };
    text.trim().parse().map(Some).map_err(|_| StoreError::Corrupt {
        path: path.to_owned(),
        detail: format!("expected the id of a cluster, like 1a2b-3c4d-5e6f-7788, found {:?}", text.trim()),
    })
}

/// Writes the id into the data directory and into the folder of blobs. Both survive the loss of power when it returns.
pub(super) fn place(directory: &Path, id: Guid) -> Result<()> {
    for folder in [&directory.join(BLOBS), directory] {
        let (path, draft) = (folder.join(FILE), folder.join("cluster_id.draft"));
        let write = || {
            let options = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).clone();
            let mut file = options.open(&draft)?;
            writeln!(file, "{id}")?;
            file.sync_all()?;
            fs::rename(&draft, &path)
        };
        write().map_err(StoreError::io("write", &path))?;
        sync_folder(folder)?;
    }
    Ok(())
}

/// An id for a new cluster.
pub(super) fn new_id() -> Result<Guid> {
    let source = Path::new("/dev/urandom");
    let mut bytes = [0; 16];
    File::open(source)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(StoreError::io("read", source))?;
    Ok(Guid::from_bytes(bytes))
}

/// Moves what there is of a cluster into a folder of its own in the data directory, and returns that. Interrupted, it
/// leaves a directory that is refused, or an empty one.
pub(super) fn move_aside(directory: &Path, names: &[&str]) -> Result<PathBuf> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let folder = (0..)
        .map(|n| directory.join(format!("before-new-cluster-{}", seconds + n)))
        .find(|path| !path.exists())
        .expect("some second is free");
    fs::create_dir(&folder).map_err(StoreError::io("create", &folder))?;
    for name in [STORE, BLOBS, FILE].iter().chain(names) {
        let path = directory.join(name);
        match fs::rename(&path, folder.join(name)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            other => other.map_err(StoreError::io("move aside", &path))?,
        }
    }
    sync_folder(&folder)?;
    sync_folder(directory)?;
    Ok(folder)
}
