//! Rows in the format that somebody wants to read.

use crate::{Columns, row, text};
use vocab::Failure;
use yson::{Format, Map, Style, Value};

/// Marks between rows that a reader asks for (http-api.md 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Control {
    /// `<table_index=1>#` where rows of another table begin.
    pub table_index: bool,
    /// `<row_index=10>#` where rows do not go on from the last one.
    pub row_index: bool,
    /// `<range_index=1>#` where another range begins.
    pub range_index: bool,
}

impl Control {
    /// `{enable_table_index; enable_row_index; enable_range_index}`.
    pub fn parse(map: &Map) -> Result<Control, Failure> {
        let flag = |name: &str| match map.get(name).filter(|v| !v.is_entity()) {
            None => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| {
                let found = value.type_name();
                Failure::new(format!("Control attribute \"{name}\" must be boolean, found {found}"))
            }),
        };
        Ok(Control {
            table_index: flag("enable_table_index")?,
            row_index: flag("enable_row_index")?,
            range_index: flag("enable_range_index")?,
        })
    }

    /// The marks in front of rows of a table, a range of it, from a row. Each says one thing, and that of a
    /// range comes before that of a row: the client asserts it.
    pub fn marks(&self, table: u64, range: u64, first_row: u64) -> impl Iterator<Item = Value> + use<> {
        [
            (self.table_index, "table_index", table),
            (self.range_index, "range_index", range),
            (self.row_index, "row_index", first_row),
        ]
        .into_iter()
        .filter(|(wanted, ..)| *wanted)
        .map(|(_, name, value)| Value::Entity.with_attributes(Map::new().with(name, value as i64)))
    }
}

/// Rows of a table, out of their inner form into a format.
pub struct Printer {
    format: Format,
    columns: Columns,
    scratch: Vec<u8>,
    count: u64,
}

impl Printer {
    /// In a format, with some columns or all.
    pub fn new(format: Format, columns: Columns) -> Printer {
        Printer { format, columns, scratch: Vec::new(), count: 0 }
    }

    /// Are rows printed as they are?
    pub fn copies(&self) -> bool {
        self.columns.is_all() && self.format == Format::Yson(Style::Binary)
    }

    /// Appends rows, and marks between them.
    pub fn print(&mut self, rows: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        if self.copies() {
            out.extend_from_slice(rows);
            return Ok(());
        }
        let mut rest = rows;
        while !rest.is_empty() {
            if self.takes_text_as_it_is()
                && let Some(used) = text::print(rest, out)
            {
                self.count += 1;
                rest = &rest[used..];
                continue;
            }
            let Some(item) = row::rows(rest).next() else { break };
            self.item(item, out)?;
            rest = &rest[item.len()..];
        }
        Ok(())
    }

    /// Is nothing done with rows but that they are written in text?
    fn takes_text_as_it_is(&self) -> bool {
        self.columns.is_all() && self.format == Format::Yson(Style::Text)
    }

    /// Appends one mark: `<row_index=10>#`.
    pub fn mark(&mut self, mark: &Value, out: &mut Vec<u8>) -> Result<(), Failure> {
        // A line of DSV has no room for it.
        if matches!(self.format, Format::Dsv(_) | Format::SchemafulDsv(_)) {
            return Ok(());
        }
        self.value(mark, out)
    }

    fn item(&mut self, item: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        if !row::is_row(item) {
            let mark = row::decode(&item[..item.len() - 1]);
            return self.mark(&mark, out);
        }
        let mut row = item;
        let mut scratch = std::mem::take(&mut self.scratch);
        if !self.columns.is_all() {
            self.columns.cut(row, &mut scratch);
            row = &scratch;
        }
        let printed = self.row(row, out);
        self.scratch = scratch;
        self.count += 1;
        printed
    }

    fn row(&mut self, row: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        match &self.format {
            Format::Yson(Style::Binary) => {
                out.extend_from_slice(row);
                Ok(())
            }
            Format::Yson(Style::Text) => match text::print(row, out) {
                Some(_) => Ok(()),
                None => Err(Failure::new(format!("Row {} of those that are read is damaged", self.count))),
            },
            _ => self.value(&row::decode(&row[..row.len() - 1]), out),
        }
    }

    fn value(&mut self, value: &Value, out: &mut Vec<u8>) -> Result<(), Failure> {
        self.format
            .write_rows([value], out)
            .map_err(|e| Failure::new(format!("Cannot print row {}: {e}", self.count)))
    }
}
