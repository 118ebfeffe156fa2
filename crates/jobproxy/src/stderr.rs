//! Kept stderr: the first half and the last half of `max_stderr_size` (jobs-and-nodes.md 5.4).
//!
//! The bytes live in the job's file, not in memory: a proxy has to stay small, the text must survive
//! it, and a running job's text can be read at once. The file's first half is the head; its second
//! half is a ring, overwritten in place. [`Layout`] is the arithmetic, [`StderrFile`] the writer,
//! [`read`] the reader for which the total number of bytes is enough to find everything.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Name of the file in the job's directory.
pub const STDERR_FILE: &str = "stderr";

/// Stands for the bytes that were dropped.
pub const SKIPPED: &[u8] = b"\n...skipped...\n";

/// Where the bytes of the stream are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    head: u64,
    ring: u64,
}

impl Layout {
    /// For `max_stderr_size`. The odd byte goes to the ring, so that a limit of 1 keeps a byte.
    pub fn new(max_size: u64) -> Layout {
        Layout { head: max_size / 2, ring: max_size - max_size / 2 }
    }

    /// Length of the kept text, with the mark.
    pub fn kept(&self, total: u64) -> u64 {
        let max = self.head + self.ring;
        if total <= max { total } else { max + SKIPPED.len() as u64 }
    }

    /// Appends bytes at stream position `total`: calls `put(file offset, bytes)` for what is kept.
    pub fn append<E>(
        &self,
        total: u64,
        mut bytes: &[u8],
        mut put: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut at = total;
        if at < self.head {
            let n = bytes.len().min((self.head - at) as usize);
            put(at, &bytes[..n])?;
            bytes = &bytes[n..];
            at += n as u64;
        }
        // What would be overwritten by the same call need not be written.
        let skip = bytes.len().saturating_sub(self.ring as usize);
        bytes = &bytes[skip..];
        at += skip as u64;
        while !bytes.is_empty() {
            let place = (at - self.head) % self.ring;
            let n = bytes.len().min((self.ring - place) as usize);
            put(self.head + place, &bytes[..n])?;
            bytes = &bytes[n..];
            at += n as u64;
        }
        Ok(())
    }

    /// The kept text in order, as file ranges and the mark, for a stream of `total` bytes.
    fn pieces(&self, total: u64) -> [Piece; 4] {
        const NONE: Piece = Piece::File(0, 0);
        if total <= self.head + self.ring {
            // Nothing was overwritten: the file is the stream.
            return [Piece::File(0, total), NONE, NONE, NONE];
        }
        let oldest = (total - self.head) % self.ring;
        [
            Piece::File(0, self.head),
            Piece::Mark,
            Piece::File(self.head + oldest, self.ring - oldest),
            Piece::File(self.head, oldest),
        ]
    }

    /// The part of the kept text from `offset`, at most `limit` bytes; `get` fills a buffer from a file
    /// offset.
    pub fn extract<E>(
        &self,
        total: u64,
        offset: u64,
        limit: u64,
        mut get: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        let end = self.kept(total).min(offset.saturating_add(limit));
        let mut out = Vec::with_capacity(end.saturating_sub(offset) as usize);
        let mut at = 0;
        for piece in self.pieces(total) {
            let length = match piece {
                Piece::File(_, n) => n,
                Piece::Mark => SKIPPED.len() as u64,
            };
            let (from, to) = (offset.max(at), end.min(at + length));
            if from < to {
                match piece {
                    Piece::Mark => out.extend_from_slice(&SKIPPED[(from - at) as usize..(to - at) as usize]),
                    Piece::File(start, _) => {
                        let old = out.len();
                        out.resize(old + (to - from) as usize, 0);
                        get(start + from - at, &mut out[old..])?;
                    }
                }
            }
            at += length;
        }
        Ok(out)
    }
}

enum Piece {
    /// Offset and length.
    File(u64, u64),
    Mark,
}

/// The writer. The file appears with the first byte: most jobs write none.
#[derive(Debug)]
pub struct StderrFile {
    layout: Layout,
    total: u64,
    path: PathBuf,
    file: Option<File>,
}

impl StderrFile {
    /// In the job's directory.
    pub fn new(job_directory: &Path, max_size: u64) -> StderrFile {
        let path = job_directory.join(STDERR_FILE);
        StderrFile { layout: Layout::new(max_size), total: 0, path, file: None }
    }
    /// All bytes that were given to [`StderrFile::append`].
    pub fn total(&self) -> u64 {
        self.total
    }
    /// Adds what the job wrote. The bytes count even if the disk refuses them.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let at = self.total;
        self.total += bytes.len() as u64;
        let file = match &mut self.file {
            Some(file) => file,
            none => none
                .insert(File::options().read(true).write(true).create(true).truncate(true).open(&self.path)?),
        };
        self.layout.append(at, bytes, |offset, part| file.write_all_at(part, offset))
    }
    /// A part of the kept text.
    pub fn read(&self, offset: u64, limit: u64) -> io::Result<Vec<u8>> {
        match &self.file {
            Some(file) => self.layout.extract(self.total, offset, limit, |at, out| fill(file, at, out)),
            None => Ok(Vec::new()),
        }
    }
    /// Length of the kept text.
    pub fn kept(&self) -> u64 {
        self.layout.kept(self.total)
    }
}

/// A part of the kept text of a job whose proxy is gone: from the file, `max_stderr_size` of its
/// description and `stderr_size` of its result.
pub fn read(job_directory: &Path, max_size: u64, total: u64, offset: u64, limit: u64) -> io::Result<Vec<u8>> {
    if total == 0 {
        return Ok(Vec::new());
    }
    let file = File::open(job_directory.join(STDERR_FILE))?;
    Layout::new(max_size).extract(total, offset, limit, |at, out| fill(&file, at, out))
}

/// A part that the disk refused reads as zero bytes instead of making everything unreadable.
fn fill(file: &File, mut at: u64, mut out: &mut [u8]) -> io::Result<()> {
    while !out.is_empty() {
        match file.read_at(out, at)? {
            0 => {
                out.fill(0);
                return Ok(());
            }
            n => {
                out = &mut out[n..];
                at += n as u64;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rule, said once more and simply.
    fn expected(stream: &[u8], max: usize) -> Vec<u8> {
        if stream.len() <= max {
            return stream.to_vec();
        }
        let head = max / 2;
        [&stream[..head], SKIPPED, &stream[stream.len() - (max - head)..]].concat()
    }

    #[test]
    fn keeps_head_and_tail() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut f = StderrFile::new(dir.path(), 8);
        assert!(!dir.path().join(STDERR_FILE).exists());
        f.append(b"0123456789abcdef").expect("written");
        assert_eq!(f.read(0, u64::MAX).expect("read"), b"0123\n...skipped...\ncdef");
        assert_eq!((f.total(), f.kept()), (16, 8 + 15));
        assert_eq!(f.read(2, 4).expect("read"), b"23\n.");
        assert_eq!(f.read(21, 100).expect("read"), b"ef");
        assert_eq!(f.read(99, 100).expect("read"), b"");
        assert_eq!(read(dir.path(), 8, 16, 0, u64::MAX).expect("read"), f.read(0, u64::MAX).expect("read"));
    }

    proptest! {
        #[test]
        fn any_writes_give_the_rule(
            max in 1_usize..40,
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..12),
            offset in 0_u64..70,
            limit in 0_u64..70,
        ) {
            let layout = Layout::new(max as u64);
            let mut file = vec![0; max];
            let mut stream = Vec::new();
            for chunk in &chunks {
                layout.append(stream.len() as u64, chunk, |at, part| {
                    file.get_mut(at as usize..at as usize + part.len()).ok_or("outside")?.copy_from_slice(part);
                    Ok::<_, &str>(())
                }).expect("inside the file");
                stream.extend_from_slice(chunk);
                let want = expected(&stream, max);
                let get = |at: u64, out: &mut [u8]| {
                    out.copy_from_slice(&file[at as usize..][..out.len()]);
                    Ok::<_, ()>(())
                };
                let total = stream.len() as u64;
                prop_assert_eq!(layout.kept(total), want.len() as u64);
                prop_assert_eq!(layout.extract(total, 0, u64::MAX, get).expect("read"), want.clone());
                let from = (offset as usize).min(want.len());
                let to = (offset + limit).min(want.len() as u64) as usize;
                prop_assert_eq!(layout.extract(total, offset, limit, get).expect("read"), &want[from..to.max(from)]);
            }
        }
    }
}
