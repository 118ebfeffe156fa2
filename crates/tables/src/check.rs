//! Are rows what their table says they are?

use crate::row::Row;
use crate::schema::{Column, Kind, Schema};
use crate::{key, row};
use std::cmp::Ordering;
use vocab::Failure;
use yson::{Style, Value};

/// Most bytes of a key: the first and last one of a chunk are kept with the metadata.
const MAX_KEY_BYTES: usize = 16 << 10;

/// Checks rows one after another: against a schema, and their order.
pub struct Checker {
    schema: Option<Schema>,
    sorted_by: Vec<String>,
    unique: bool,
    /// Key of the first row, and of the last one so far.
    bounds: Option<(Vec<Value>, Vec<Value>)>,
    count: u64,
    converted: Vec<u8>,
}

impl Checker {
    /// For a table with this schema (or none), sorted by these columns (or none).
    pub fn new(schema: Option<Schema>, sorted_by: Vec<String>) -> Checker {
        let unique = schema.as_ref().is_some_and(|s| s.unique_keys);
        Checker { schema, sorted_by, unique, bounds: None, count: 0, converted: Vec::new() }
    }

    /// Keys of the first and of the last row, of a sorted table that is not empty.
    pub fn bounds(self) -> Option<(Vec<Value>, Vec<Value>)> {
        self.bounds
    }

    /// The row as the table holds it.
    pub fn check<'a>(&'a mut self, row: Row<'a>) -> Result<Row<'a>, Failure> {
        let index = self.count;
        let in_row =
            |message: String| Failure::new(format!("Row {index}: {message}")).with("row_index", index);
        let mut row = row;
        if let Some(schema) = &self.schema {
            match verdict(schema, row.bytes).map_err(in_row)? {
                Verdict::Fine => {}
                Verdict::Convert => {
                    convert(schema, row.bytes, &mut self.converted).map_err(in_row)?;
                    row = Row::new(&self.converted);
                }
            }
        }
        if !self.sorted_by.is_empty() {
            let key: Vec<Value> =
                self.sorted_by.iter().map(|name| row::value(row.bytes, name.as_bytes())).collect();
            let bytes: usize = key.iter().map(key_bytes).sum();
            if bytes > MAX_KEY_BYTES {
                return Err(in_row(format!(
                    "its key ({:?}) has {bytes} bytes, at most {MAX_KEY_BYTES} are allowed",
                    self.sorted_by
                )));
            }
            match &mut self.bounds {
                None => self.bounds = Some((key.clone(), key)),
                Some((_, last)) => {
                    let shown = |key: &[Value]| yson::write::to_text_string(&key.to_vec().into());
                    match key::compare(last, &key) {
                        Ordering::Less => {}
                        Ordering::Equal if !self.unique => {}
                        Ordering::Equal => return Err(in_row(format!("key {} is there twice", shown(&key)))),
                        Ordering::Greater => {
                            return Err(in_row(format!(
                                "the table is sorted, but key {} comes behind {}",
                                shown(&key),
                                shown(last)
                            )));
                        }
                    }
                    *last = key;
                }
            }
        }
        self.count += 1;
        Ok(row)
    }
}

fn key_bytes(value: &Value) -> usize {
    match value {
        Value::String(s) => s.len(),
        Value::List(_) | Value::Map(_) | Value::Attributed(_) => yson::to_binary(value).len(),
        _ => 8,
    }
}

/// An entity, with whatever attributes.
fn is_null(value: &[u8]) -> bool {
    value == b"#" || (value.first() == Some(&b'<') && row::decode(value).is_entity())
}

enum Verdict {
    Fine,
    Convert,
}

fn find<'s>(schema: &'s Schema, name: &[u8]) -> Result<Option<&'s Column>, String> {
    match schema.columns.iter().find(|c| c.name.as_bytes() == name) {
        Some(column) => Ok(Some(column)),
        None if !schema.strict => Ok(None),
        None => Err(format!("column \"{}\" is not in the schema", name.escape_ascii())),
    }
}

fn verdict(schema: &Schema, row: &[u8]) -> Result<Verdict, String> {
    let mut verdict = Verdict::Fine;
    for (name, value) in row::columns(row) {
        let Some(column) = find(schema, name)? else { continue };
        if value == b"#" {
            continue;
        }
        if !column.kind.fits(value) {
            verdict = Verdict::Convert;
        }
    }
    for column in schema.columns.iter().filter(|c| c.required) {
        if row::column(row, column.name.as_bytes()).is_none_or(is_null) {
            return Err(format!("required column {:?} is missing", column.name));
        }
    }
    Ok(verdict)
}

fn convert(schema: &Schema, row: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    out.clear();
    let mut map = match row::decode(&row[..row.len() - 1]) {
        Value::Map(map) => map,
        other => return Err(format!("expected a map, found {}", other.type_name())),
    };
    for (name, value) in map.iter_mut() {
        let Some(column) = find(schema, name)? else { continue };
        if value.is_entity() {
            if column.kind != Kind::Any {
                *value = Value::Entity;
            }
            continue;
        }
        let found = std::mem::take(value);
        *value = column.kind.convert(found).map_err(|m| format!("column {:?}: {m}", column.name))?;
    }
    yson::write::write_row(&map.into(), Style::Binary, out);
    Ok(())
}
