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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use yson::Style;

    const KIB: usize = 1 << 10;
    /// Ten of what is ten mebibytes elsewhere.
    const ROWS_MAX: u64 = 10 * KIB as u64;

    fn item(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        yson::write::write_row(value, Style::Binary, &mut out);
        out
    }

    fn text(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        Printer::new(Format::Yson(Style::Text), Columns::default())
            .print(&item(value), &mut out)
            .expect("printed");
        out
    }

    fn mark(name: &str, value: i64) -> Value {
        Value::Entity.with_attributes(Map::new().with(name, value))
    }

    fn row_of(size: usize) -> Value {
        yson::map! {"s" => "x".repeat(size)}.into()
    }

    /// Saves what is left of a trail along pieces of rows and marks.
    fn saved(pieces: &[Vec<Value>], taken_back: bool) -> Vec<u8> {
        let directory = tempfile::tempdir().expect("a directory");
        let (input, to) = (directory.path().join("input"), directory.path().join("saved"));
        let mut trail = Trail::keeping(ROWS_MAX);
        let mut all = Vec::new();
        for piece in pieces {
            let rows = piece.iter().flat_map(item).collect::<Vec<_>>();
            trail.add(&rows, piece.iter().map(|value| text(value).len()).sum());
            all.extend(rows);
        }
        std::fs::write(&input, all).expect("written");
        if taken_back {
            trail.take_back();
        }
        let size = trail.save(&input, &Format::Yson(Style::Text), &to).expect("saved");
        let found = std::fs::read(&to).unwrap_or_default();
        assert_eq!((found.len() as u64, to.exists()), (size, size > 0));
        found
    }

    fn joined<'v>(values: impl IntoIterator<Item = &'v Value>) -> Vec<u8> {
        values.into_iter().flat_map(text).collect()
    }

    #[test]
    fn everything_if_it_is_little() {
        let pieces =
            [vec![mark("table_index", 0), row_of(1)], vec![row_of(2), mark("table_index", 1), row_of(3)]];
        assert_eq!(saved(&pieces, false), joined(pieces.iter().flatten()));
        assert_eq!(saved(&pieces, true), joined(&pieces[0]));
        assert_eq!(saved(&[], false), b"");
        assert_eq!(saved(&pieces[..1], true), b"");
    }

    #[test]
    fn the_last_rows_and_what_the_marks_before_them_say() {
        let beginning = vec![mark("table_index", 3), mark("range_index", 1), mark("row_index", 10)];
        let many: Vec<Vec<Value>> = (0..6).map(|_| vec![row_of(KIB), row_of(KIB)]).collect();
        let pieces = [&[beginning][..], &many].concat();
        let found = saved(&pieces, false);
        let [table, range, row] = [mark("table_index", 3), mark("range_index", 1), mark("row_index", 14)];
        let kept = [&[table, range, row][..], &vec![row_of(KIB); 8]].concat();
        assert!(found == joined(&kept), "{} bytes of {}", found.len(), joined(&kept).len());
    }

    #[test]
    fn one_piece_that_is_too_long_gives_its_last_rows_or_the_beginning_of_one() {
        let (large, small) = (row_of(11 * KIB), row_of(7));
        let found = saved(&[vec![mark("row_index", 5), large.clone(), small.clone(), small.clone()]], false);
        assert_eq!(found, joined(&[mark("row_index", 6), small.clone(), small.clone()]));
        let found = saved(&[vec![small], vec![mark("row_index", 5), large.clone()]], false);
        assert_eq!(found.len() as u64, ROWS_MAX + MARKS_MAX);
        assert!(joined(&[mark("row_index", 5), large]).starts_with(&found));
    }

    proptest! {
        /// Whole rows from the end, at most so many bytes, and no fewer than a piece less than that.
        #[test]
        fn as_much_as_fits(sizes in prop::collection::vec(prop::collection::vec(1_usize..3_000, 1..4), 1..10)) {
            let pieces: Vec<Vec<Value>> =
                sizes.iter().map(|piece| piece.iter().map(|size| row_of(*size)).collect()).collect();
            let found = saved(&pieces, false);
            let all = joined(pieces.iter().flatten());
            prop_assert!(found.len() as u64 <= ROWS_MAX + MARKS_MAX && all.ends_with(&found) && found.first() == text(&row_of(1)).first());
            let next = pieces.iter().rev().scan(0, |sum, piece| { *sum += joined(piece).len(); Some(*sum) })
                .find(|sum| *sum > found.len());
            prop_assert!(next.is_none_or(|more| more as u64 > ROWS_MAX));
        }
    }
}
