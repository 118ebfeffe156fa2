//! Files of the event log: one JSON object a line, named by the number of their first event, the
//! oldest removed when there are too many.

use kernel::command::EventsFrom;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use vocab::Failure;
use yson::json::{JsonFormat, from_json};
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

/// The end of the log, where it grows.
pub struct EventFiles {
    directory: PathBuf,
    limits: Limits,
    /// The newest file and its size without what is in `buffer`; none before the first event.
    file: Option<(File, u64)>,
    /// Whole lines that are not in the file yet.
    buffer: Vec<u8>,
    last: u64,
}

impl EventFiles {
    /// Opens the log; half a line that a crash has left at its end is removed.
    pub fn open(directory: &Path, limits: Limits) -> io::Result<EventFiles> {
        std::fs::create_dir_all(directory)?;
        let mut files =
            EventFiles { directory: directory.to_owned(), limits, file: None, buffer: Vec::new(), last: 0 };
        if let Some((first, path)) = list(directory)?.pop() {
            let mut file = OpenOptions::new().read(true).write(true).open(path)?;
            let (lines, size) = whole_lines(&mut file)?;
            file.set_len(size)?;
            file.seek(SeekFrom::Start(size))?;
            files.last = (first + lines).saturating_sub(1);
            files.file = Some((file, size));
        }
        Ok(files)
    }

    /// Number of the newest event; 0 if there is none.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Adds an event, unless it is there already.
    pub fn append(&mut self, number: u64, event: &Map) -> io::Result<()> {
        if number <= self.last {
            return Ok(());
        }
        let size = self.file.as_ref().map_or(0, |(_, size)| *size) + self.buffer.len() as u64;
        // Numbers in a file have no gaps: its lines are counted, not read.
        if self.file.is_none() || size >= self.limits.file_size || number != self.last + 1 {
            self.flush()?;
            self.next_file(number)?;
        }
        yson::json::write_json(&Value::Map(event.clone()), &JsonFormat::utf8(), &mut self.buffer);
        self.buffer.push(b'\n');
        self.last = number;
        Ok(())
    }

    /// Readers see everything after this. After an error nothing is half there, and it can be tried
    /// again.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some((file, size)) = &mut self.file else { return Ok(()) };
        if self.buffer.is_empty() {
            return Ok(());
        }
        if let Err(error) = file.write_all(&self.buffer) {
            file.set_len(*size)?;
            file.seek(SeekFrom::Start(*size))?;
            return Err(error);
        }
        *size += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// What was flushed survives everything after this.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |(file, _)| file.sync_data())
    }

    fn next_file(&mut self, first: u64) -> io::Result<()> {
        self.sync()?;
        let path = self.directory.join(format!("{first:020}.jsonl"));
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(path)?;
        // Its name too.
        File::open(&self.directory)?.sync_all()?;
        self.file = Some((file, 0));
        let all = list(&self.directory)?;
        let excess = all.len().saturating_sub(self.limits.files.max(1));
        all[..excess].iter().try_for_each(|(_, path)| std::fs::remove_file(path))
    }
}

/// A part of the log.
#[derive(Debug, Default)]
pub struct Page {
    /// In order.
    pub events: Vec<Value>,
    /// What to ask for next.
    pub next: u64,
    /// The oldest that is kept; events before it are gone.
    pub oldest: u64,
}

/// Bytes that one answer may have, roughly.
const PAGE_BYTES: usize = 16 << 20;

/// Up to `limit` events from there on.
pub fn read(directory: &Path, from: EventsFrom, limit: usize) -> Result<Page, Failure> {
    let unreadable = |e: io::Error| Failure::new(format!("The event log cannot be read: {e}"));
    let files = list(directory).map_err(unreadable)?;
    let oldest = files.first().map_or(1, |(first, _)| *first);
    let from = match from {
        EventsFrom::Oldest => oldest,
        EventsFrom::Number(number) => number.max(oldest),
        EventsFrom::Last(count) => end(&files).map_err(unreadable)?.saturating_sub(count).max(oldest),
    };
    let mut page = Page { events: Vec::new(), next: from, oldest };
    let mut bytes = 0;
    let start = files.partition_point(|(first, _)| *first <= from).saturating_sub(1);
    for (first, path) in &files[start.min(files.len())..] {
        let file = match File::open(path) {
            Ok(file) => file,
            // Removed since it was listed.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => return Err(unreadable(e)),
        };
        let mut lines = BufReader::with_capacity(1 << 16, file);
        let mut line = Vec::new();
        for number in *first.. {
            line.clear();
            lines.read_until(b'\n', &mut line).map_err(unreadable)?;
            // The writer may be in the middle of the last one.
            if line.pop() != Some(b'\n') {
                break;
            }
            if number < from {
                continue;
            }
            if page.events.len() >= limit || bytes > PAGE_BYTES {
                return Ok(page);
            }
            let event = from_json(&line, &JsonFormat::utf8())
                .map_err(|e| Failure::new(format!("Event {number} of the log cannot be read: {e}")))?;
            bytes += line.len();
            page.events.push(event);
            page.next = number + 1;
        }
    }
    Ok(page)
}

/// The number behind the newest event.
fn end(files: &[(u64, PathBuf)]) -> io::Result<u64> {
    let Some((first, path)) = files.last() else { return Ok(1) };
    Ok(first + whole_lines(&mut File::open(path)?)?.0)
}

/// Files by the number of their first event, oldest first.
fn list(directory: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let first = path.file_name().and_then(|n| n.to_str()?.strip_suffix(".jsonl")?.parse().ok());
        files.extend(first.map(|first| (first, path)));
    }
    files.sort_unstable();
    Ok(files)
}

/// Number of complete lines, and where the last one ends.
fn whole_lines(file: &mut File) -> io::Result<(u64, u64)> {
    let (mut lines, mut end, mut at) = (0, 0, 0);
    let mut chunk = vec![0; 1 << 16];
    loop {
        let n = file.read(&mut chunk)?;
        if n == 0 {
            return Ok((lines, end));
        }
        for (i, _) in chunk[..n].iter().enumerate().filter(|(_, b)| **b == b'\n') {
            lines += 1;
            end = at + i as u64 + 1;
        }
        at += n as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u64) -> Map {
        yson::map! {"number" => number, "event" => "job_started", "text" => "x".repeat(50)}
    }

    fn write(directory: &Path, limits: Limits, numbers: std::ops::RangeInclusive<u64>) -> EventFiles {
        let mut files = EventFiles::open(directory, limits).expect("a directory");
        for number in numbers {
            files.append(number, &event(number)).expect("room");
        }
        files.flush().expect("room");
        files
    }

    fn numbers(page: &Page) -> Vec<u64> {
        page.events.iter().filter_map(|e| e.get("number")?.as_u64()).collect()
    }

    #[test]
    fn what_is_told_twice_is_written_once() {
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), Limits::default(), 1..=5);
        assert_eq!(write(directory.path(), Limits::default(), 3..=8).last(), 8);
        let page = read(directory.path(), EventsFrom::Oldest, 100).expect("readable");
        assert_eq!(numbers(&page), (1..=8).collect::<Vec<_>>());
        assert_eq!((page.next, page.oldest), (9, 1));
        let page = read(directory.path(), EventsFrom::Number(7), 1).expect("readable");
        assert_eq!((numbers(&page), page.next), (vec![7], 8));
        let page = read(directory.path(), EventsFrom::Number(9), 10).expect("readable");
        assert_eq!((numbers(&page), page.next), (vec![], 9));
        let page = read(directory.path(), EventsFrom::Last(3), 10).expect("readable");
        assert_eq!((numbers(&page), page.next), (vec![6, 7, 8], 9));
        let page = read(directory.path(), EventsFrom::Last(0), 10).expect("readable");
        assert_eq!((numbers(&page), page.next), (vec![], 9));
    }

    #[test]
    fn files_are_bounded() {
        let directory = tempfile::tempdir().expect("a directory");
        let limits = Limits { file_size: 500, files: 3 };
        write(directory.path(), limits, 1..=100);
        let files = list(directory.path()).expect("readable");
        assert_eq!(files.len(), 3);
        let size: u64 = files.iter().filter_map(|(_, path)| Some(path.metadata().ok()?.len())).sum();
        assert!(size < 3 * 700, "{size}");
        let page = read(directory.path(), EventsFrom::Number(1), 1_000).expect("readable");
        assert_eq!(page.oldest, files[0].0);
        assert_eq!(numbers(&page), (page.oldest..=100).collect::<Vec<_>>(), "across files, without a gap");
    }

    #[test]
    fn half_a_line_is_removed() {
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), Limits::default(), 1..=3);
        let (_, path) = list(directory.path()).expect("readable").pop().expect("a file");
        let mut file = OpenOptions::new().append(true).open(path).expect("there");
        file.write_all(b"{\"number\":4,\"event\":\"jo").expect("room");
        let page = read(directory.path(), EventsFrom::Oldest, 10).expect("half a line is not an event");
        assert_eq!(numbers(&page), [1, 2, 3]);
        assert_eq!(write(directory.path(), Limits::default(), 4..=5).last(), 5);
        let page = read(directory.path(), EventsFrom::Oldest, 10).expect("readable");
        assert_eq!(numbers(&page), [1, 2, 3, 4, 5]);
    }

    /// A writer that was told nothing for too long: the numbers stay right.
    #[test]
    fn a_gap_begins_a_file() {
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), Limits::default(), 1..=2);
        write(directory.path(), Limits::default(), 10..=11);
        let page = read(directory.path(), EventsFrom::Number(2), 10).expect("readable");
        assert_eq!(numbers(&page), [2, 10, 11]);
        let page = read(directory.path(), EventsFrom::Number(5), 10).expect("readable");
        assert_eq!(numbers(&page), [10, 11]);
        assert_eq!(write(directory.path(), Limits::default(), 11..=12).last(), 12);
    }
}
