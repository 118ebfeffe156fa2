//! Parts of the log for those who ask: one file is opened at the right place, or none if there is nothing
//! new.

use super::index::{Entry, Index, number_of, scan};
use kernel::EventFilter;
use kernel::command::EventsFrom;
use memchr::memmem::Finder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::sync::{Arc, Mutex, MutexGuard};
use vocab::Failure;
use yson::Value;
use yson::json::{JsonFormat, from_json, to_json};

/// A part of the log.
#[derive(Debug, Default)]
pub struct Page {
    /// In order.
    pub events: Vec<Value>,
    /// What to ask for next: behind the last event that was looked at, wanted or not.
    pub next: u64,
    /// The oldest that is kept; events before it are gone.
    pub oldest: u64,
    /// The newest, when it was asked; 0: there never was one.
    pub newest: u64,
    /// Numbers between those of the page that will never be there: from, to.
    pub lost: Vec<(u64, u64)>,
}

/// Bytes that one answer may have, roughly.
const PAGE_BYTES: usize = 16 << 20;

/// Bytes that are looked through for one answer, roughly: whoever wants rare events goes on with the next.
const SEARCH_BYTES: usize = 64 << 20;

/// Knows where everything is.
#[derive(Clone)]
pub struct Reader {
    index: Arc<Mutex<Index>>,
}

impl Reader {
    pub(super) fn new(index: Arc<Mutex<Index>>) -> Reader {
        Reader { index }
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Number of the newest event that can be read; 0 without any.
    pub fn last(&self) -> u64 {
        self.lock().last()
    }

    /// The first file that has something from this number on, with positions to begin at.
    fn file_with(&self, number: u64) -> io::Result<Option<Entry>> {
        let entry = |index: &Index| index.files.iter().find(|f| f.end > number && f.end > f.first).cloned();
        let Some(found) = entry(&self.lock()) else { return Ok(None) };
        if found.marks.is_some() {
            return Ok(Some(found));
        }
        // Of an earlier life, and nobody has read it yet. Not under the lock: the writer needs that.
        let known = match scan(&found.path, found.first, found.end) {
            Ok(known) => known,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Some(found)),
            Err(e) => return Err(e),
        };
        let mut index = self.lock();
        if let Some(place) = index.files.iter_mut().find(|f| f.first == found.first && f.marks.is_none()) {
            *place = known;
        }
        // It may end earlier than it seemed to.
        Ok(entry(&index))
    }
}

/// What is wanted, and how much more of it and of everything else fits into an answer.
struct Search<'a> {
    filter: &'a EventFilter,
    /// What lines have in them if they are wanted, as the log writes it; the others need not be parsed.
    marks: Vec<Finder<'static>>,
    events: usize,
    answer: usize,
    looked: usize,
}

impl<'a> Search<'a> {
    fn new(filter: &'a EventFilter, limit: usize) -> Search<'a> {
        let mark = |(name, word): (&str, String)| {
            let map = to_json(&yson::map! {name => word}.into(), &JsonFormat::utf8());
            Finder::new(&map[1..map.len() - 1]).into_owned()
        };
        let marks = filter.words().into_iter().map(mark).collect();
        Search { filter, marks, events: limit, answer: PAGE_BYTES, looked: SEARCH_BYTES }
    }

    fn is_over(&self) -> bool {
        self.events == 0 || self.answer == 0 || self.looked == 0
    }

    /// The event of a line, if it is wanted.
    fn see(&mut self, number: u64, line: &[u8]) -> Result<Option<Value>, Failure> {
        self.looked = self.looked.saturating_sub(line.len());
        if self.marks.iter().any(|mark| mark.find(line).is_none()) {
            return Ok(None);
        }
        let event = from_json(line, &JsonFormat::utf8())
            .map_err(|e| Failure::new(format!("Event {number} of the log cannot be read: {e}")))?;
        if !self.filter.admits(&event) {
            return Ok(None);
        }
        self.events -= 1;
        self.answer = self.answer.saturating_sub(line.len());
        Ok(Some(event))
    }
}

/// Up to `limit` events from there on, of those that the filter admits.
pub fn read(log: &Reader, from: EventsFrom, limit: usize, filter: &EventFilter) -> Result<Page, Failure> {
    let (oldest, end) = {
        let index = log.lock();
        (index.oldest(), index.last() + 1)
    };
    let from = match from {
        EventsFrom::Oldest => oldest,
        EventsFrom::Number(number) => number.max(oldest),
        EventsFrom::Last(count) => end.saturating_sub(count).max(oldest),
    };
    let mut page = Page { next: from, oldest, newest: end - 1, ..Page::default() };
    let mut search = Search::new(filter, limit);
    let unreadable = |e: io::Error| Failure::new(format!("The event log cannot be read: {e}"));
    while !search.is_over() {
        let Some(file) = log.file_with(page.next).map_err(unreadable)? else { break };
        if file.first > page.next {
            page.lost.push((page.next, file.first - 1));
            page.next = file.first;
        }
        if !read_file(&file, &mut page, &mut search)? {
            break;
        }
    }
    Ok(page)
}

/// Goes on in one file. False: the rest of it is not to be had at the moment.
fn read_file(entry: &Entry, page: &mut Page, search: &mut Search<'_>) -> Result<bool, Failure> {
    let unreadable = |e: io::Error| Failure::new(format!("The event log cannot be read: {e}"));
    let mut file = match File::open(&entry.path) {
        Ok(file) => file,
        // Removed since it was looked up, for its age or by somebody.
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            page.next = entry.end;
            return Ok(true);
        }
        Err(e) => return Err(unreadable(e)),
    };
    let (begin, offset) = entry.position(page.next);
    file.seek(SeekFrom::Start(offset)).map_err(unreadable)?;
    let mut lines = BufReader::with_capacity(1 << 16, file);
    let mut line = Vec::new();
    for number in begin..entry.end {
        if search.is_over() {
            return Ok(true);
        }
        line.clear();
        lines.read_until(b'\n', &mut line).map_err(unreadable)?;
        // The writer has just taken it back: it comes again.
        if line.pop() != Some(b'\n') || number_of(&line) != Some(number) {
            return Ok(false);
        }
        if number < page.next {
            continue;
        }
        page.events.extend(search.see(number, &line)?);
        page.next = number + 1;
    }
    Ok(true)
}
