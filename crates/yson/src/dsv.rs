//! DSV: rows of `key=value` fields, one row per line (http-api.md 4.4).
//!
//! All values read are strings; nulls are not written, containers cannot be.

use crate::error::{Fault, ParseError};
use crate::number::{write_digits, write_i64, write_u64};
use crate::scan::Cursor;
use crate::{Bytes, Map, Value, write};

/// Options of the `dsv` format, named as in a format description.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DsvFormat {
    /// Ends a row.
    pub record_separator: u8,
    /// Stands between fields.
    pub field_separator: u8,
    /// Stands between key and value.
    pub key_value_separator: u8,
    /// Backslash escapes; off, separators inside keys and values are written as they are.
    pub enable_escaping: bool,
    /// First field of each line, without a value: `tskv`.
    pub line_prefix: Option<Bytes>,
}

impl Default for DsvFormat {
    fn default() -> DsvFormat {
        DsvFormat {
            record_separator: b'\n',
            field_separator: b'\t',
            key_value_separator: b'=',
            enable_escaping: true,
            line_prefix: None,
        }
    }
}

impl DsvFormat {
    /// DSV with `tskv` at the start of each line.
    pub fn tskv() -> DsvFormat {
        DsvFormat { line_prefix: Some(b"tskv".to_vec()), ..DsvFormat::default() }
    }
}

/// A row that has no form in DSV.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DsvError {
    /// A container as a value.
    #[error("column \"{column}\" holds a {found}, DSV has only scalars")]
    NotAScalar {
        /// Name of the column.
        column: String,
        /// Type of its value.
        found: &'static str,
    },
    /// A column that must be there.
    #[error("column \"{column}\" is missing")]
    Missing {
        /// Name of the column.
        column: String,
    },
    /// A row that is no map.
    #[error("a row must be a map, found {found}")]
    NotAMap {
        /// Type of the row.
        found: &'static str,
    },
}

/// Appends one row. Control rows (`<table_index=1>#`) have no form in DSV and are skipped.
pub fn write_dsv_row(row: &Value, format: &DsvFormat, out: &mut Vec<u8>) -> Result<(), DsvError> {
    let map = match row.bare() {
        Value::Map(map) => map,
        Value::Entity => return Ok(()),
        other => return Err(DsvError::NotAMap { found: other.type_name() }),
    };
    let nested = map.iter().find(|(_, v)| matches!(v.bare(), Value::List(_) | Value::Map(_)));
    if let Some((column, value)) = nested {
        let column = String::from_utf8_lossy(column).into_owned();
        return Err(DsvError::NotAScalar { column, found: value.type_name() });
    }
    write_fields(map, format, out);
    Ok(())
}

/// Any value in something like DSV, for structured replies: a map is a row, a list is its items, a
/// scalar is itself, and containers inside a row are YSON text.
pub fn to_dsv(value: &Value, format: &DsvFormat) -> Vec<u8> {
    let mut out = Vec::new();
    structured(value, format, &mut out);
    out
}

fn structured(value: &Value, format: &DsvFormat, out: &mut Vec<u8>) {
    match value.bare() {
        Value::Map(map) => write_fields(map, format, out),
        Value::List(items) => items.iter().for_each(|item| structured(item, format, out)),
        scalar => {
            write_value(scalar, format, out);
            out.push(format.record_separator);
        }
    }
}

fn write_fields(map: &Map, format: &DsvFormat, out: &mut Vec<u8>) {
    let mut first = true;
    if let Some(prefix) = &format.line_prefix {
        out.extend_from_slice(prefix);
        first = false;
    }
    for (key, value) in map.iter().filter(|(_, v)| !v.is_entity()) {
        if !first {
            out.push(format.field_separator);
        }
        first = false;
        escape(key, format, true, out);
        out.push(format.key_value_separator);
        write_value(value, format, out);
    }
    out.push(format.record_separator);
}

pub(crate) fn write_value(value: &Value, format: &DsvFormat, out: &mut Vec<u8>) {
    match value.bare() {
        Value::Entity => {}
        Value::Bool(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
        Value::Int(i) => write_i64(*i, out),
        Value::Uint(u) => write_u64(*u, out),
        Value::Double(d) if d.is_finite() => write_digits(*d, b"", out),
        Value::Double(d) if d.is_nan() => out.extend_from_slice(b"nan"),
        Value::Double(d) => out.extend_from_slice(if *d > 0.0 { b"inf" } else { b"-inf" }),
        Value::String(s) => escape(s, format, false, out),
        container => escape(&write::to_text(container), format, false, out),
    }
}

fn escape(bytes: &[u8], format: &DsvFormat, is_key: bool, out: &mut Vec<u8>) {
    if !format.enable_escaping {
        return out.extend_from_slice(bytes);
    }
    for byte in bytes {
        let letter = match *byte {
            b'\0' => b'0',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            b'\\' => b'\\',
            b if b == format.field_separator || b == format.record_separator => b,
            b if is_key && b == format.key_value_separator => b,
            b => {
                out.push(b);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
}

/// Iterator over the rows of a DSV text; after an error it is finished.
pub struct DsvRows<'a> {
    cursor: Cursor<'a>,
    format: &'a DsvFormat,
    failed: bool,
}

/// Reads rows; the last one may lack its record separator.
pub fn from_dsv<'a>(input: &'a [u8], format: &'a DsvFormat) -> DsvRows<'a> {
    DsvRows { cursor: Cursor::new(input), format, failed: false }
}

impl Iterator for DsvRows<'_> {
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

impl DsvRows<'_> {
    fn row(&mut self) -> Result<Map, Fault> {
        let format = self.format;
        let mut row = Map::new();
        if let Some(prefix) = &format.line_prefix {
            let start = self.cursor.pos;
            if self.cursor.take(prefix.len()) != Some(&prefix[..]) {
                return Err(Fault::expected(start, "the line prefix of the format"));
            }
            if self.cursor.eat(format.record_separator) || self.cursor.peek().is_none() {
                return Ok(row);
            }
            if !self.cursor.eat(format.field_separator) {
                return Err(Fault::expected(self.cursor.pos, "a field separator after the line prefix"));
            }
        } else if self.cursor.eat(format.record_separator) {
            return Ok(row);
        }
        loop {
            let key = text(&mut self.cursor, format, Some(format.key_value_separator))?;
            if !self.cursor.eat(format.key_value_separator) {
                return Err(Fault::expected(self.cursor.pos, "`=` and a value after a key"));
            }
            let value = text(&mut self.cursor, format, None)?;
            row.insert_owned(key, Value::String(value));
            if self.cursor.eat(format.record_separator) || self.cursor.peek().is_none() {
                return Ok(row);
            }
            // Nothing else ends a value.
            self.cursor.eat(format.field_separator);
        }
    }
}

/// Text up to a separator, which is not taken.
pub(crate) fn text(cursor: &mut Cursor<'_>, format: &DsvFormat, stop: Option<u8>) -> Result<Bytes, Fault> {
    let mut out = Bytes::new();
    loop {
        let rest = &cursor.input[cursor.pos..];
        let run = rest.iter().position(|b| {
            *b == format.field_separator
                || *b == format.record_separator
                || Some(*b) == stop
                || (*b == b'\\' && format.enable_escaping)
        });
        let run = run.unwrap_or(rest.len());
        out.extend_from_slice(&rest[..run]);
        cursor.pos += run;
        if !format.enable_escaping || !cursor.eat(b'\\') {
            return Ok(out);
        }
        let Some(letter) = cursor.peek() else {
            return Err(Fault::expected(cursor.pos, "the rest of an escape sequence"));
        };
        cursor.pos += 1;
        out.push(match letter {
            b'0' => b'\0',
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            other => other,
        });
    }
}
