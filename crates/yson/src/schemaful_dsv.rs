//! Schemaful DSV: the values of columns that the format names, one row per line (http-api.md 2.3).

use crate::dsv::{self, DsvError, DsvFormat};
use crate::error::{Fault, ParseError};
use crate::scan::Cursor;
use crate::{Bytes, Map, Value};

/// Options of the `schemaful_dsv` format, named as in a format description.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchemafulDsvFormat {
    /// What stands in a line, in this order; at least one.
    pub columns: Vec<Bytes>,
    /// Ends a row.
    pub record_separator: u8,
    /// Stands between values.
    pub field_separator: u8,
    /// Backslash escapes; off, separators inside values are written as they are.
    pub enable_escaping: bool,
    /// What becomes of a row that has not all the columns.
    pub missing_value: MissingValue,
}

/// See [`SchemafulDsvFormat::missing_value`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MissingValue {
    /// It is an error.
    Fail,
    /// It is left out.
    SkipRow,
    /// This stands in the place of the value. When rows are read it stands for no value.
    Sentinel(Bytes),
}

impl SchemafulDsvFormat {
    /// How values are written is as in DSV, where no key stands in front of them.
    fn values(&self) -> DsvFormat {
        DsvFormat {
            record_separator: self.record_separator,
            field_separator: self.field_separator,
            enable_escaping: self.enable_escaping,
            ..DsvFormat::default()
        }
    }
}

/// Appends one row. Control rows (`<table_index=1>#`) have no form here and are skipped.
pub fn write_schemaful_dsv_row(
    row: &Value,
    format: &SchemafulDsvFormat,
    out: &mut Vec<u8>,
) -> Result<(), DsvError> {
    let map = match row.bare() {
        Value::Map(map) => map,
        Value::Entity => return Ok(()),
        other => return Err(DsvError::NotAMap { found: other.type_name() }),
    };
    let (start, values) = (out.len(), format.values());
    for (number, column) in format.columns.iter().enumerate() {
        if number > 0 {
            out.push(format.field_separator);
        }
        let shown = || String::from_utf8_lossy(column).into_owned();
        let value = map.get(column).filter(|value| !value.is_entity());
        let refused = match (value.map(Value::bare), &format.missing_value) {
            (Some(nested @ (Value::List(_) | Value::Map(_))), _) => {
                DsvError::NotAScalar { column: shown(), found: nested.type_name() }
            }
            (Some(value), _) => {
                dsv::write_value(value, &values, out);
                continue;
            }
            (None, MissingValue::Sentinel(sentinel)) => {
                out.extend_from_slice(sentinel);
                continue;
            }
            (None, MissingValue::SkipRow) => {
                out.truncate(start);
                return Ok(());
            }
            (None, MissingValue::Fail) => DsvError::Missing { column: shown() },
        };
        out.truncate(start);
        return Err(refused);
    }
    out.push(format.record_separator);
    Ok(())
}

/// Iterator over the rows of a text; after an error it is finished.
pub struct SchemafulDsvRows<'a> {
    cursor: Cursor<'a>,
    format: &'a SchemafulDsvFormat,
    values: DsvFormat,
    failed: bool,
}

/// Reads rows; the last one may lack its record separator.
pub fn from_schemaful_dsv<'a>(input: &'a [u8], format: &'a SchemafulDsvFormat) -> SchemafulDsvRows<'a> {
    SchemafulDsvRows { cursor: Cursor::new(input), format, values: format.values(), failed: false }
}

impl Iterator for SchemafulDsvRows<'_> {
    type Item = Result<Value, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.cursor.peek().is_none() {
            return None;
        }
        let row = self.row().map_err(|f| f.explain(self.cursor.input));
        self.failed = row.is_err();
        Some(row.map(Value::Map))
    }
}

impl SchemafulDsvRows<'_> {
    fn row(&mut self) -> Result<Map, Fault> {
        let format = self.format;
        let mut row = Map::new();
        for (number, column) in format.columns.iter().enumerate() {
            if number > 0 && !self.cursor.eat(format.field_separator) {
                return Err(Fault::expected(self.cursor.pos, "a value for each column of the format"));
            }
            let start = self.cursor.pos;
            let value = dsv::text(&mut self.cursor, &self.values, None)?;
            // As it is written, so that an escaped text is never taken for it.
            let written = &self.cursor.input[start..self.cursor.pos];
            match &format.missing_value {
                MissingValue::Sentinel(sentinel) if written == sentinel.as_slice() => {}
                _ => {
                    row.insert_owned(column.clone(), Value::String(value));
                }
            }
        }
        if !self.cursor.eat(format.record_separator) && self.cursor.peek().is_some() {
            return Err(Fault::expected(self.cursor.pos, "the end of the row: all columns have a value"));
        }
        Ok(row)
    }
}
