//! The rows that a job was given last, in case it fails (jobs-and-nodes.md 5.5). Nothing is kept in memory but
//! where they lie: they are printed again, from the job's file, when they are wanted.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use tables::{Columns, Printer, row};
use vocab::Failure;
use vocab::job::FAIL_CONTEXT_MAX;
use yson::{Format, Map, Value};

/// Room for the marks in front of the first row.
const MARKS_MAX: u64 = 1 << 10;
/// Bytes read from the disk at a time.
const PIECE: u64 = 64 << 10;

/// See the module page.
pub(super) struct Trail {
    /// Bytes of rows that are kept.
    rows_max: u64,
    /// The pieces that were printed last: together they are not too much, unless one alone is.
    pieces: VecDeque<Piece>,
    /// Bytes of their text.
    printed: u64,
    /// In the job's file: what is behind has not been printed.
    end: u64,
    /// At the end.
    marks: Marks,
}

struct Piece {
    /// In the job's file.
    offset: u64,
    /// Bytes of its text.
    printed: u64,
    /// In front of it.
    marks: Marks,
}

/// What the marks before a row have said of it.
#[derive(Clone, Default)]
struct Marks {
    table: Option<i64>,
    range: Option<i64>,
    row: Option<i64>,
}

impl Trail {
    /// For as much as a fail context may have.
    pub fn new() -> Trail {
        Trail::keeping(FAIL_CONTEXT_MAX - MARKS_MAX)
    }

    fn keeping(rows_max: u64) -> Trail {
        Trail { rows_max, pieces: VecDeque::new(), printed: 0, end: 0, marks: Marks::default() }
    }

    /// Whole rows, and marks, that have become so many bytes of text.
    pub fn add(&mut self, rows: &[u8], printed: usize) {
        let piece = Piece { offset: self.end, printed: printed as u64, marks: self.marks.clone() };
        self.end += rows.len() as u64;
        self.printed += piece.printed;
        self.pieces.push_back(piece);
        row::rows(rows).for_each(|item| self.marks.pass(item));
        while self.printed > self.rows_max && self.pieces.len() > 1 {
            let gone = self.pieces.pop_front().map_or(0, |piece| piece.printed);
            self.printed -= gone;
        }
    }

    /// The last piece was printed, but the job has got nothing of it.
    pub fn take_back(&mut self) {
        if let Some(piece) = self.pieces.pop_back() {
            self.end = piece.offset;
            self.printed -= piece.printed;
            self.marks = piece.marks;
        }
    }

    /// Writes the rows to a file, from the job's file; gives the bytes. No file and 0 if there are no rows.
    pub fn save(&self, input: &Path, format: &Format, to: &Path) -> Result<u64, Failure> {
        let Some(first) = self.pieces.front().filter(|_| self.printed > 0) else { return Ok(0) };
        let cannot = |e: io::Error| Failure::new(format!("Cannot save the input at the failure: {e}"));
        let mut source = File::open(input).map_err(cannot)?;
        source.seek(SeekFrom::Start(first.offset)).map_err(cannot)?;
        let mut source = source.take(self.end - first.offset);
        let mut out = Saved {
            printer: Printer::new(format.clone(), Columns::default()),
            text: Vec::new(),
            size: 0,
            to,
        };
        if self.printed > self.rows_max {
            let mut rows = Vec::new();
            source.read_to_end(&mut rows).map_err(cannot)?;
            return out.last_rows(&rows, first.marks.clone(), self.rows_max);
        }
        let mut file = BufWriter::new(File::create(to).map_err(cannot)?);
        out.marks(&first.marks)?;
        let mut held = Vec::new();
        loop {
            let wanted = PIECE.max(held.len() as u64);
            let read = source.by_ref().take(wanted).read_to_end(&mut held).map_err(cannot)?;
            let mut items = row::rows(&held);
            items.by_ref().for_each(drop);
            let whole = held.len() - items.rest().len();
            out.printer.print(&held[..whole], &mut out.text)?;
            held.drain(..whole);
            out.size += out.text.len() as u64;
            file.write_all(&out.text).map_err(cannot)?;
            out.text.clear();
            if read == 0 {
                file.flush().map_err(cannot)?;
                return Ok(out.size);
            }
        }
    }
}

struct Saved<'a> {
    printer: Printer,
    text: Vec<u8>,
    size: u64,
    to: &'a Path,
}

impl Saved<'_> {
    fn marks(&mut self, marks: &Marks) -> Result<(), Failure> {
        marks.values().try_for_each(|mark| self.printer.mark(&mark, &mut self.text))
    }

    /// Of rows that are too long together: as many of the last as there is room for, or the beginning of the
    /// last one.
    fn last_rows(mut self, rows: &[u8], mut marks: Marks, rows_max: u64) -> Result<u64, Failure> {
        let items: Vec<&[u8]> = row::rows(rows).collect();
        let mut lengths = Vec::with_capacity(items.len());
        for item in &items {
            self.text.clear();
            self.printer.print(item, &mut self.text)?;
            lengths.push(self.text.len() as u64);
        }
        let mut room = rows_max;
        let fitting = lengths.iter().rev().take_while(|length| {
            let fits = **length <= room;
            room = room.saturating_sub(**length);
            fits
        });
        let first = items.len() - fitting.count().max(1).min(items.len());
        items[..first].iter().for_each(|item| marks.pass(item));
        self.text.clear();
        self.marks(&marks)?;
        items[first..].iter().try_for_each(|item| self.printer.print(item, &mut self.text))?;
        self.text.truncate((rows_max + MARKS_MAX) as usize);
        let written = std::fs::write(self.to, &self.text);
        written.map_err(|e| Failure::new(format!("Cannot save the input at the failure: {e}")))?;
        Ok(self.text.len() as u64)
    }
}

impl Marks {
    /// A row, or a mark.
    fn pass(&mut self, item: &[u8]) {
        if row::is_row(item) {
            self.row = self.row.map(|row| row.saturating_add(1));
            return;
        }
        let mark = yson::parse(&item[..item.len() - 1]).unwrap_or_default();
        let said = |name: &str| mark.attribute(name).and_then(Value::as_i64);
        self.table = said("table_index").or(self.table);
        self.range = said("range_index").or(self.range);
        self.row = said("row_index").or(self.row);
    }

    /// The marks that say the same.
    fn values(&self) -> impl Iterator<Item = Value> + use<> {
        let all = [("table_index", self.table), ("range_index", self.range), ("row_index", self.row)];
        let mark = |(name, value): (&str, Option<i64>)| {
            Some(Value::Entity.with_attributes(Map::new().with(name, value?)))
        };
        all.into_iter().filter_map(mark)
    }
}

#[cfg(test)]
mod tests;
