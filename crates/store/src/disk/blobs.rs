//! Blobs as files: written beside their final name, synced, then renamed.

use super::ahead::Ahead;
use crate::store::{blob_id, life_of_blob};
use crate::{BlobWriter, Result, StoreError};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// So many bytes of a long blob are put on the disk while the next ones come.
const SYNC_AHEAD: u64 = 64 << 20;

/// The folder of blobs.
pub(super) struct Blobs {
    folder: PathBuf,
    life: u64,
    count: AtomicU64,
    is_open: AtomicBool,
}

impl Blobs {
    /// For reading what there is.
    pub fn new(folder: PathBuf, life: u64) -> Blobs {
        Blobs { folder, life, count: AtomicU64::new(0), is_open: AtomicBool::new(false) }
    }

    /// Makes the folder, and removes what a crash left unfinished. To be called before the first blob is begun.
    pub fn open(&self) -> Result<()> {
        fs::create_dir_all(&self.folder).map_err(StoreError::io("create", &self.folder))?;
        for name in names(&self.folder)? {
            if name.ends_with(".part") {
                let path = self.folder.join(&name);
                fs::remove_file(&path).map_err(StoreError::io("remove", &path))?;
            }
        }
        self.is_open.store(true, Ordering::Release);
        Ok(())
    }

    pub fn begin(&self) -> Result<Box<dyn BlobWriter>> {
        let id = blob_id(self.life, self.count.fetch_add(1, Ordering::Relaxed) + 1);
        let final_path = self.path(id);
        let path = final_path.with_extension("part");
        let file = File::options()
            .write(true)
            .create_new(true)
            .open(&path)
            .map_err(StoreError::io("create", &path))?;
        Ok(Box::new(FileBlob {
            id,
            len: 0,
            path,
            final_path,
            file: BufWriter::with_capacity(64 << 10, file),
            ahead: None,
            asked: 0,
        }))
    }

    pub fn read(&self, id: u64, offset: u64, len: usize) -> Result<Vec<u8>> {
        let (file, path) = self.open_blob(id)?;
        let size = file.metadata().map_err(StoreError::io("read", &path))?.len();
        let mut out = vec![0; size.saturating_sub(offset).min(len as u64) as usize];
        file.read_exact_at(&mut out, offset).map_err(StoreError::io("read", &path))?;
        Ok(out)
    }

    pub fn len(&self, id: u64) -> Result<u64> {
        let (file, path) = self.open_blob(id)?;
        Ok(file.metadata().map_err(StoreError::io("read", &path))?.len())
    }

    pub fn delete(&self, id: u64) -> Result<()> {
        let path = self.path(id);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(StoreError::io("remove", &path)(e)),
            _ => Ok(()),
        }
    }

    pub fn ids(&self) -> Result<Vec<u64>> {
        // Before a first start there is no folder.
        if !self.is_open.load(Ordering::Acquire) && !self.folder.exists() {
            return Ok(Vec::new());
        }
        let mut ids: Vec<u64> = names(&self.folder)?.iter().filter_map(|name| id_of(name)).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    fn path(&self, id: u64) -> PathBuf {
        self.folder.join(format!("{id:016x}"))
    }

    fn open_blob(&self, id: u64) -> Result<(File, PathBuf)> {
        let path = self.path(id);
        match File::open(&path) {
            Ok(file) => Ok((file, path)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(StoreError::NoSuchBlob(id)),
            Err(e) => Err(StoreError::io("open", &path)(e)),
        }
    }
}

fn id_of(name: &str) -> Option<u64> {
    u64::from_str_radix(name, 16).ok().filter(|_| name.len() == 16)
}

/// The last life in which a blob of the folder was written; 0 without any.
pub(super) fn newest_life(folder: &Path) -> Result<u64> {
    if !folder.is_dir() {
        return Ok(0);
    }
    Ok(names(folder)?.iter().filter_map(|name| id_of(name)).map(life_of_blob).max().unwrap_or(0))
}

fn names(folder: &Path) -> Result<Vec<String>> {
    let list = || -> io::Result<Vec<String>> {
        fs::read_dir(folder)?.map(|e| Ok(e?.file_name().to_string_lossy().into_owned())).collect()
    };
    list().map_err(StoreError::io("list", folder))
}

/// Makes new names in a folder survive a crash.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder).and_then(|f| f.sync_all()).map_err(StoreError::io("sync", folder))
}

struct FileBlob {
    id: u64,
    len: u64,
    path: PathBuf,
    final_path: PathBuf,
    file: BufWriter<File>,
    ahead: Option<Ahead>,
    /// Length when a sync ahead was asked for.
    asked: u64,
}

impl FileBlob {
    fn sync_ahead(&mut self) -> io::Result<()> {
        self.asked = self.len;
        let ahead = match self.ahead.take() {
            Some(ahead) => ahead,
            None => Ahead::of(self.file.get_ref())?,
        };
        ahead.ask();
        self.ahead = Some(ahead);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.ahead.take().map_or(Ok(()), Ahead::finish)?;
        self.file.get_ref().sync_all()
    }
}

impl BlobWriter for FileBlob {
    fn id(&self) -> u64 {
        self.id
    }
    fn append(&mut self, chunk: &[u8]) -> Result<()> {
        self.file.write_all(chunk).map_err(StoreError::io("write", &self.path))?;
        self.len += chunk.len() as u64;
        if self.len - self.asked >= SYNC_AHEAD {
            self.sync_ahead().map_err(StoreError::io("sync", &self.path))?;
        }
        Ok(())
    }
    fn len(&self) -> u64 {
        self.len
    }
    fn finish(mut self: Box<Self>) -> Result<u64> {
        self.sync().map_err(StoreError::io("write", &self.path))?;
        fs::rename(&self.path, &self.final_path).map_err(StoreError::io("rename", &self.path))?;
        sync_folder(self.final_path.parent().expect("a blob lies in a folder"))?;
        Ok(self.id)
    }
}

impl Drop for FileBlob {
    fn drop(&mut self) {
        // After `finish` there is no file of this name any more.
        let _ = fs::remove_file(&self.path);
    }
}
