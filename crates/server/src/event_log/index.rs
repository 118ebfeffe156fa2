//! Which number is in which file, and where: shared by the writer and all readers, so that a reader
//! opens only what it will read, and one who asks for news when there are none opens nothing.
//!
//! A file is named by the number of its first event and ends where the next one begins at the latest;
//! numbers between the end of a file and the beginning of the next are lost. Positions are kept for one
//! line in many; those of files of an earlier life are found when somebody reads there.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Bytes between two positions that are kept.
const STRIDE: u64 = 64 << 10;

/// One file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub path: PathBuf,
    /// Number of its first event.
    pub first: u64,
    /// The number behind its last.
    pub end: u64,
    /// Bytes up to there.
    pub size: u64,
    /// Some numbers with the offsets of their lines, in order; none: nobody has looked yet.
    pub marks: Option<Vec<(u64, u64)>>,
}

impl Entry {
    /// A file that begins with this number and has nothing in it.
    pub fn new(path: PathBuf, first: u64) -> Entry {
        Entry { path, first, end: first, size: 0, marks: Some(Vec::new()) }
    }

    /// One more line of so many bytes.
    pub fn grow(&mut self, bytes: u64) {
        if let Some(marks) = &mut self.marks
            && marks.last().is_none_or(|(_, at)| self.size >= at + STRIDE)
        {
            marks.push((self.end, self.size));
        }
        self.end += 1;
        self.size += bytes;
    }

    /// Forgets what comes from there on.
    pub fn cut(&mut self, end: u64, size: u64) {
        self.end = end;
        self.size = size;
        if let Some(marks) = &mut self.marks {
            marks.retain(|(number, _)| *number < end);
        }
    }

    /// The last kept position that is not behind the number.
    pub fn position(&self, number: u64) -> (u64, u64) {
        let marks = self.marks.as_deref().unwrap_or_default();
        let behind = marks.partition_point(|(n, _)| *n <= number);
        behind.checked_sub(1).map_or((self.first, 0), |last| marks[last])
    }
}

/// All files, oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Index {
    pub files: Vec<Entry>,
}

impl Index {
    /// Looks at what is there: at the newest file line by line, at the others only where they end.
    pub fn open(directory: &Path) -> io::Result<Index> {
        let mut index = Index::default();
        let mut names = list(directory)?.into_iter().peekable();
        while let Some((first, path)) = names.next() {
            let next = names.peek().map(|(next, _)| *next);
            let known = match next {
                Some(next) => end_of(&path, first)?.filter(|(end, _)| *end <= next),
                None => None,
            };
            index.files.push(match known {
                Some((end, size)) => Entry { path, first, end, size, marks: None },
                None => scan(&path, first, next.unwrap_or(u64::MAX))?,
            });
        }
        Ok(index)
    }

    /// Number of the newest event; 0 if there never was one.
    pub fn last(&self) -> u64 {
        self.files.last().map_or(0, |f| f.end - 1)
    }

    /// Number of the oldest event that is kept, or that will be.
    pub fn oldest(&self) -> u64 {
        self.files.iter().find(|f| f.end > f.first).map_or(self.last() + 1, |f| f.first)
    }

    /// Numbers that are missing between two files: from, to.
    pub fn gaps(&self) -> impl Iterator<Item = (u64, u64)> {
        let pairs = self.files.iter().zip(self.files.iter().skip(1));
        pairs.filter(|(a, b)| a.end < b.first).map(|(a, b)| (a.end, b.first - 1))
    }
}

/// Files by the number of their first event, oldest first.
pub fn list(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    let entries = match std::fs::read_dir(directory) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(files),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let first = path.file_name().and_then(|n| n.to_str()?.strip_suffix(".jsonl")?.parse().ok());
        files.extend(first.filter(|first| *first > 0).map(|first| (first, path)));
    }
    files.sort_unstable();
    Ok(files)
}

/// A file, line by line, up to the number `before`. A line that is cut off, or is not the one that has to
/// come, ends it: what a crash or a damaged disk has left there is not read.
pub fn scan(path: &Path, first: u64, before: u64) -> io::Result<Entry> {
    let mut entry = Entry::new(path.to_owned(), first);
    let mut lines = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut line = Vec::new();
    while entry.end < before {
        line.clear();
        lines.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') || number_of(&line) != Some(entry.end) {
            break;
        }
        entry.grow(line.len() as u64);
    }
    Ok(entry)
}

/// The number with which a line begins: the writer puts it first.
pub fn number_of(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(b"{\"number\":")?;
    let digits = rest.iter().position(|b| !b.is_ascii_digit())?;
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
}

/// Bytes that are looked at for the last line of a file.
const TAIL: u64 = 1 << 20;

/// The number behind the last event of a file, and its size, from its last line; none if that cannot be
/// told: then the file has to be read.
fn end_of(path: &Path, first: u64) -> io::Result<Option<(u64, u64)>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    if size == 0 {
        return Ok(Some((first, 0)));
    }
    let from = size.saturating_sub(TAIL);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let Some(b'\n') = tail.pop() else { return Ok(None) };
    let begin = match tail.iter().rposition(|b| *b == b'\n') {
        Some(feed) => feed + 1,
        None if from == 0 => 0,
        None => return Ok(None),
    };
    Ok(number_of(&tail[begin..]).filter(|n| *n >= first).map(|n| (n + 1, from + tail.len() as u64 + 1)))
}
