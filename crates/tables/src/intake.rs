//! Rows out of a stream in any format: pieces may be cut anywhere.

use crate::alike::Alike;
use crate::row::{self, Row};
use vocab::Failure;
use yson::{Copied, Format, JsonFormat, Style, Value};

/// A row may be so long in its own format: what is held of a stream at a time is bounded by it.
pub const MAX_ROW: usize = 64 << 20;

/// See the module page.
pub struct Intake {
    format: Format,
    /// Number of the table that the next row is for.
    table: usize,
    /// Among so many tables whoever writes may choose; 0: there is only one, and nothing to choose.
    tables: usize,
    /// What has come and is not a whole row yet.
    held: Vec<u8>,
    /// Not before so much is held it is worth looking for the end of a row: a long one that comes in small
    /// pieces is not gone over again for each of them.
    look_again: usize,
    /// Rows so far.
    count: u64,
    scratch: Vec<u8>,
    alike: Alike,
}

/// Takes a row and the number of its table.
pub type Sink<'s> = dyn FnMut(usize, Row<'_>) -> Result<(), Failure> + 's;

impl Intake {
    /// Rows of one table in this format.
    pub fn new(format: Format) -> Intake {
        Intake::among(format, 0, 0)
    }

    /// Rows of this table, until a switch (`<table_index=1>#`) names another one of so many.
    pub fn among(format: Format, table: usize, tables: usize) -> Intake {
        Intake {
            format,
            table,
            tables,
            held: Vec::new(),
            look_again: 0,
            count: 0,
            scratch: Vec::new(),
            alike: Alike::default(),
        }
    }

    /// Rows given so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Number of the table that the next row is for: what is refused was meant for it.
    pub fn table(&self) -> usize {
        self.table
    }

    /// Takes a piece and gives the rows that it completes.
    pub fn push(&mut self, piece: &[u8], sink: &mut Sink<'_>) -> Result<(), Failure> {
        let mut rest = piece;
        while !self.held.is_empty() && !rest.is_empty() {
            // Only the row that was cut is put together; what is behind it is taken from the piece as it is.
            let cut = self.held.len();
            let missing = self.look_again.saturating_sub(cut).max(1);
            let more = &rest[..missing.min(rest.len())];
            self.held.extend_from_slice(more);
            if self.held.len() < self.look_again {
                return Ok(());
            }
            let held = std::mem::take(&mut self.held);
            let used = self.rows(&held, false, sink)?;
            match used.checked_sub(cut) {
                Some(used) => rest = &rest[used..],
                None => {
                    self.held = held;
                    self.held.drain(..used);
                    rest = &rest[more.len()..];
                    self.wait()?;
                }
            }
        }
        let used = self.rows(rest, false, sink)?;
        self.held.extend_from_slice(&rest[used..]);
        self.wait()
    }

    /// What is held is the beginning of a row.
    fn wait(&mut self) -> Result<(), Failure> {
        self.look_again = self.held.len().saturating_mul(2).min(MAX_ROW);
        if self.held.len() > MAX_ROW {
            return Err(Failure::new(format!(
                "Row {} is too long: at most {MAX_ROW} bytes are allowed",
                self.count
            )));
        }
        Ok(())
    }

    /// Says that nothing more comes; gives the row that the end completes.
    pub fn finish(&mut self, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let held = std::mem::take(&mut self.held);
        self.rows(&held, true, sink).map(drop)
    }

    /// Gives the whole rows of some bytes; how many bytes they took.
    fn rows(&mut self, input: &[u8], last: bool, sink: &mut Sink<'_>) -> Result<usize, Failure> {
        let format = self.format.clone();
        match &format {
            Format::Yson(_) => self.yson(input, last, sink),
            Format::Json(json) => self.json(input, last, json, sink),
            Format::Dsv(dsv) => {
                let whole = whole_lines(input, last, (dsv.record_separator, dsv.enable_escaping));
                self.lines(yson::dsv::from_dsv(whole, dsv), sink).map(|()| whole.len())
            }
            Format::SchemafulDsv(dsv) => {
                let whole = whole_lines(input, last, (dsv.record_separator, dsv.enable_escaping));
                let rows = yson::schemaful_dsv::from_schemaful_dsv(whole, dsv);
                self.lines(rows, sink).map(|()| whole.len())
            }
        }
    }

    fn yson(&mut self, input: &[u8], last: bool, sink: &mut Sink<'_>) -> Result<usize, Failure> {
        let mut at = 0;
        loop {
            at += input[at..].iter().take_while(|b| yson::is_space(**b)).count();
            if at == input.len() {
                return Ok(at);
            }
            if let Some(taken) = self.alike.take(&input[at..], &mut self.scratch) {
                let end = at + taken.used;
                let bytes = if taken.as_it_is { &input[at..end] } else { &self.scratch };
                sink(self.table, Row { bytes, weight: taken.weight })?;
                self.count += 1;
                at = end;
                continue;
            }
            self.scratch.clear();
            let copied = yson::copy_row(&input[at..], last, Style::Binary, &mut self.scratch);
            match copied.map_err(|error| self.malformed(&error))? {
                Copied::Row(used) => at += used,
                Copied::Cut => return Ok(at),
                Copied::End => return Ok(input.len()),
            }
            self.alike.missed();
            self.keep_last_of_repeated();
            self.give(sink)?;
        }
    }

    fn json(
        &mut self,
        input: &[u8],
        last: bool,
        format: &JsonFormat,
        sink: &mut Sink<'_>,
    ) -> Result<usize, Failure> {
        let mut at = 0;
        loop {
            let Some(space) = input[at..].iter().position(|b| !yson::is_space(*b)) else {
                return Ok(input.len());
            };
            let start = at + space;
            let end = match json_end(&input[start..]) {
                Some(length) => start + length,
                None if last => input.len(),
                None => return Ok(start),
            };
            let value = yson::json::from_json(&input[start..end], format).map_err(|e| self.malformed(&e))?;
            self.scratch.clear();
            yson::write::write_row(&value, Style::Binary, &mut self.scratch);
            self.give(sink)?;
            at = end;
        }
    }

    fn lines(
        &mut self,
        rows: impl Iterator<Item = Result<Value, yson::ParseError>>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Failure> {
        for value in rows {
            let value = value.map_err(|e| self.malformed(&e))?;
            self.scratch.clear();
            yson::write::write_row(&value, Style::Binary, &mut self.scratch);
            self.give(sink)?;
        }
        Ok(())
    }

    /// Only rows in YSON come here as they were written: a column that is there twice has its last value, as a key of
    /// any map (http-api.md 4.1).
    fn keep_last_of_repeated(&mut self) {
        let columns = || row::columns(&self.scratch).map(|(name, _)| name);
        if self.alike.are(columns()) {
            return;
        }
        let mut names: Vec<&[u8]> = columns().collect();
        names.sort_unstable();
        if names.windows(2).all(|pair| pair[0] != pair[1]) {
            self.alike.expect(columns());
            return;
        }
        // A map keeps one of each.
        let row = row::decode(&self.scratch[..self.scratch.len() - 1]);
        self.scratch.clear();
        yson::write::write_row(&row, Style::Binary, &mut self.scratch);
    }

    fn give(&mut self, sink: &mut Sink<'_>) -> Result<(), Failure> {
        if !row::is_row(&self.scratch) {
            let found = row::decode(&self.scratch[..self.scratch.len().saturating_sub(1)]);
            if let Some(index) = switch(&found).filter(|_| self.tables > 0) {
                return self.choose(index);
            }
            let found = match found.as_map() {
                Some(_) => "a map with attributes",
                None => found.type_name(),
            };
            let message = format!("Row {} must be a map, found {found}", self.count);
            return Err(Failure::new(message).with("row_index", self.count));
        }
        sink(self.table, Row::new(&self.scratch))?;
        self.count += 1;
        Ok(())
    }

    fn choose(&mut self, index: &Value) -> Result<(), Failure> {
        let table = index.as_u64().and_then(|index| usize::try_from(index).ok());
        let Some(table) = table.filter(|table| *table < self.tables) else {
            let (row, last) = (self.count, self.tables - 1);
            let found: String = yson::write::to_text_string(index).chars().take(100).collect();
            return Err(Failure::new(format!(
                "\"table_index\" in front of row {row} must be the number of an output table, an integer from 0 to \
                 {last}, found {found}"
            ))
            .with("row_index", row));
        };
        self.table = table;
        Ok(())
    }

    fn malformed(&self, error: &dyn std::fmt::Display) -> Failure {
        let name = self.format.name();
        Failure::new(format!("Cannot parse row {} as {name}: {error} of the row's piece", self.count))
            .with("row_index", self.count)
    }
}

/// What `<table_index=1>#` says; a mark that says something else as well was not made by whoever chooses a table.
fn switch(item: &Value) -> Option<&Value> {
    let attributes = item.attributes().filter(|of| item.is_entity() && of.len() == 1)?;
    attributes.get("table_index")
}

/// Length of the JSON value at the beginning of some bytes; none if it may go on behind them. What is no
/// object is one up to the next white space: the parser says what is wrong with it.
fn json_end(input: &[u8]) -> Option<usize> {
    if input.first() != Some(&b'{') {
        return input.iter().position(|b| yson::is_space(*b)).or((input.len() > 64).then_some(64));
    }
    let mut depth = 0usize;
    let mut at = 0;
    while at < input.len() {
        match input[at] {
            b'"' => {
                at += 1;
                loop {
                    match input.get(at)? {
                        b'"' => break,
                        b'\\' => at += 2,
                        _ => at += 1,
                    }
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                // Brackets that do not match are for the parser to see.
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Up to where the last whole line ends, or all if nothing more comes.
fn whole_lines(input: &[u8], last: bool, (separator, escapes): (u8, bool)) -> &[u8] {
    if last {
        return input;
    }
    let mut end = input.len();
    while let Some(at) = input[..end].iter().rposition(|b| *b == separator) {
        let before = input[..at].iter().rev().take_while(|b| **b == b'\\').count();
        if !escapes || before.is_multiple_of(2) {
            return &input[..at + 1];
        }
        end = at;
    }
    &[]
}
