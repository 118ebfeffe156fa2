//! The database file with changes kept in memory only: how a poisoned store goes on reading.
//!
//! After an error of the disk redb refuses everything, reads included. Opened again over this
//! backend it finds the last good commit (its recovery writes, but only into memory) and serves
//! reads, while the file stays as the failure left it, for the restart to recover properly.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

const PAGE: u64 = 4096;

/// See the module page.
#[derive(Debug)]
pub(super) struct Overlay {
    file: File,
    changes: Mutex<Changes>,
}

#[derive(Debug)]
struct Changes {
    /// Length as redb sees it.
    len: u64,
    /// The file is taken as zeros from here: it was cut and grown again.
    file_len: u64,
    /// Changed pages by number.
    pages: BTreeMap<u64, Box<[u8]>>,
}

impl Overlay {
    pub fn new(file: File) -> Result<Overlay> {
        let len = file.metadata()?.len();
        Ok(Overlay { file, changes: Mutex::new(Changes { len, file_len: len, pages: BTreeMap::new() }) })
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of the file; zeros behind its end.
    fn read_file(&self, changes: &Changes, offset: u64, out: &mut [u8]) -> Result<()> {
        let there = changes.file_len.saturating_sub(offset).min(out.len() as u64) as usize;
        self.file.read_exact_at(&mut out[..there], offset)?;
        out[there..].fill(0);
        Ok(())
    }
}

/// Splits a range of bytes at the borders of pages: `(page, offset within it, range of the buffer)`.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % PAGE) as usize;
        let take = (PAGE as usize - within).min(len - done);
        let piece = (at / PAGE, within, done..done + take);
        done += take;
        (take > 0).then_some(piece)
    })
}

impl redb::StorageBackend for Overlay {
    fn len(&self) -> Result<u64> {
        Ok(self.changes().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let changes = self.changes();
        if offset.saturating_add(out.len() as u64) > changes.len {
            return Err(Error::from(ErrorKind::UnexpectedEof));
        }
        self.read_file(&changes, offset, out)?;
        for (page, within, part) in pieces(offset, out.len()) {
            if let Some(bytes) = changes.pages.get(&page) {
                let len = part.len();
                out[part].copy_from_slice(&bytes[within..within + len]);
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let mut changes = self.changes();
        if len < changes.len {
            // What is cut reads as zeros if the storage grows again.
            changes.file_len = changes.file_len.min(len);
            let _ = changes.pages.split_off(&len.div_ceil(PAGE));
            let within = (len % PAGE) as usize;
            if let Some(page) = changes.pages.get_mut(&(len / PAGE)).filter(|_| within > 0) {
                page[within..].fill(0);
            }
        }
        changes.len = len;
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut changes = self.changes();
        for (page, within, part) in pieces(offset, data.len()) {
            if !changes.pages.contains_key(&page) {
                let mut bytes = vec![0; PAGE as usize];
                self.read_file(&changes, page * PAGE, &mut bytes)?;
                changes.pages.insert(page, bytes.into());
            }
            let bytes = changes.pages.get_mut(&page).expect("put there just now");
            bytes[within..within + part.len()].copy_from_slice(&data[part]);
        }
        Ok(())
    }
}
