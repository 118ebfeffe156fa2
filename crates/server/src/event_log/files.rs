//! The end of the log, where it grows: one JSON object a line in files that are named by the number of
//! their first event, the oldest removed when there are too many.
//!
//! After an error of any call nothing of this is believed but what was synced before: [`EventFiles::rewind`]
//! drops the rest, and what comes next begins a new file behind it. That a failed `fsync` is not tried
//! again on the same file is the point: it would succeed, and say nothing about what was lost.

use super::disk::Disk;
use super::index::{Entry, Index, number_of, scan};
use super::read::Reader;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use yson::json::JsonFormat;
use yson::{Map, Value};

/// How much is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a file; it ends with the event that crosses this.
    pub file_size: u64,
    /// Files.
    pub files: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { file_size: 64 << 20, files: 16 }
    }
}

/// See the module page.
pub struct EventFiles {
    directory: PathBuf,
    limits: Limits,
    pub(super) disk: Disk,
    /// What readers may see: whole lines that are in the files.
    index: Arc<Mutex<Index>>,
    /// The newest file, if it can be continued.
    file: Option<Newest>,
    /// Lines that are not in the file yet, and where they end in here.
    buffer: Vec<u8>,
    ends: Vec<usize>,
    last: u64,
    /// Everything up to here was synced.
    safe: u64,
    /// Missing numbers that nobody was told of: from, to.
    lost: Vec<(u64, u64)>,
}

struct Newest {
    file: File,
    path: PathBuf,
    /// Bytes that were synced.
    safe_size: u64,
}

impl EventFiles {
    /// Number of the newest event of the log as [`EventFiles::open`] would find it. Changes nothing.
    pub fn look(directory: &Path, unsafe_from: Option<u64>) -> io::Result<u64> {
        match directory.exists() {
            true => Ok(EventFiles::index(directory, unsafe_from)?.last()),
            false => Ok(0),
        }
    }

    fn index(directory: &Path, unsafe_from: Option<u64>) -> io::Result<Index> {
        let mut index = Index::open(directory)?;
        if let Some(newest) = index.files.last_mut()
            && let Some(before) = unsafe_from.filter(|from| *from < newest.end)
        {
            *newest = scan(&newest.path, newest.first, before)?;
        }
        Ok(index)
    }

    /// Opens the log. Events from `unsafe_from` on are in the store still, so they are taken from there
    /// again: of what the newest file has of them nobody knows whether it was ever synced.
    pub fn open(directory: &Path, limits: Limits, unsafe_from: Option<u64>) -> io::Result<EventFiles> {
        std::fs::create_dir_all(directory)?;
        let index = EventFiles::index(directory, unsafe_from)?;
        let file = match index.files.last() {
            Some(newest) => continued(newest)?,
            None => None,
        };
        let lost = index.gaps().collect();
        let last = index.last();
        Ok(EventFiles {
            directory: directory.to_owned(),
            limits,
            disk: Disk::default(),
            index: Arc::new(Mutex::new(index)),
            file,
            buffer: Vec::new(),
            ends: Vec::new(),
            last,
            safe: last,
            lost,
        })
    }

    /// For those who read.
    pub fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.index))
    }

    /// Number of the newest event; 0 if there is none.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Numbers that are missing and have not been asked for yet.
    pub fn take_lost(&mut self) -> Vec<(u64, u64)> {
        std::mem::take(&mut self.lost)
    }

    /// Adds an event, unless it is there already. Numbers that are passed over are lost.
    pub fn append(&mut self, number: u64, event: Map) -> io::Result<()> {
        if number <= self.last {
            return Ok(());
        }
        let is_next = number == self.last + 1;
        let size = self.size() + self.buffer.len() as u64;
        if self.file.is_none() || size >= self.limits.file_size || !is_next {
            self.next_file(number)?;
            // A log that has nothing has lost nothing: it was removed, or begins here.
            if !is_next && self.last > 0 {
                self.lost.push((self.last + 1, number - 1));
            }
        }
        yson::json::write_json(&Value::Map(event), &JsonFormat::utf8(), &mut self.buffer);
        self.buffer.push(b'\n');
        self.ends.push(self.buffer.len());
        self.last = number;
        Ok(())
    }

    /// Readers see everything after this.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(newest) = &mut self.file else { return Ok(()) };
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.disk.write(&mut newest.file, &self.buffer)?;
        self.buffer.clear();
        let mut from = 0;
        let mut index = lock(&self.index);
        for end in self.ends.drain(..) {
            if let Some(entry) = index.files.last_mut() {
                entry.grow((end - from) as u64);
            }
            from = end;
        }
        Ok(())
    }

    /// Everything survives whatever comes: gives the number of the newest event.
    pub fn sync(&mut self) -> io::Result<u64> {
        self.flush()?;
        let size = self.size();
        if let Some(newest) = &mut self.file {
            self.disk.sync(&newest.file, &newest.path)?;
            newest.safe_size = size;
        }
        self.safe = self.last;
        self.remove_oldest();
        Ok(self.safe)
    }

    /// After an error: goes back to what was synced.
    pub fn rewind(&mut self) {
        self.buffer.clear();
        self.ends.clear();
        self.last = self.safe;
        self.lost.retain(|(from, _)| *from <= self.safe);
        let Some(newest) = self.file.take() else { return };
        let mut index = lock(&self.index);
        if let Some(entry) = index.files.last_mut() {
            entry.cut((self.safe + 1).max(entry.first), newest.safe_size);
        }
        index.files.retain(|entry| entry.end > entry.first);
        // It is written again elsewhere. If this fails as well, nobody reads behind the next file's first.
        let _ = newest.file.set_len(newest.safe_size);
    }

    /// Bytes of the newest file without what is in `buffer`.
    fn size(&self) -> u64 {
        lock(&self.index).files.last().map_or(0, |entry| entry.size)
    }

    fn next_file(&mut self, first: u64) -> io::Result<()> {
        self.sync()?;
        let path = self.directory.join(format!("{first:020}.jsonl"));
        let file = self.disk.create(&path)?;
        let mut index = lock(&self.index);
        // Others may have removed some, or all of the directory.
        index.files.retain(|entry| entry.first < first && entry.path.exists());
        index.files.push(Entry::new(path.clone(), first));
        self.file = Some(Newest { file, path, safe_size: 0 });
        Ok(())
    }

    /// Only after a sync: what cannot be written now must not cost what could be before.
    fn remove_oldest(&self) {
        let mut index = lock(&self.index);
        let excess = index.files.len().saturating_sub(self.limits.files.max(1));
        for entry in index.files.drain(..excess) {
            if let Err(error) = std::fs::remove_file(&entry.path) {
                tracing::warn!(%error, path = %entry.path.display(), "an old file of the event log stays");
            }
        }
    }
}

fn lock(index: &Mutex<Index>) -> MutexGuard<'_, Index> {
    index.lock().unwrap_or_else(|e| e.into_inner())
}

/// The newest file, to be continued. Half a line that a crash has left is removed, and so is what the store
/// has; a file that is damaged in the middle is left alone, and the log goes on in another.
fn continued(entry: &Entry) -> io::Result<Option<Newest>> {
    let mut file = OpenOptions::new().read(true).write(true).open(&entry.path)?;
    file.seek(SeekFrom::Start(entry.size))?;
    let mut next = vec![0; 64];
    let read = file.read(&mut next)?;
    let whole_line = next[..read].contains(&b'\n');
    if read == next.len() || whole_line {
        let is_known = number_of(&next[..read]) == Some(entry.end);
        if !is_known {
            return Ok(None);
        }
    }
    file.set_len(entry.size)?;
    file.seek(SeekFrom::Start(entry.size))?;
    Ok(Some(Newest { file, path: entry.path.clone(), safe_size: entry.size }))
}
