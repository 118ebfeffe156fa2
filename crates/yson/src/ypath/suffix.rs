//! Columns and row ranges behind a path (http-api.md 5.4), turned into the attributes that the
//! Python client would have sent.

use crate::error::Fault;
use crate::parse::{number, quoted};
use crate::scan::{Cursor, is_bare_first};
use crate::{Map, Value};

/// Reads `{a,b}`, then `[...]`, each of them optional, up to the end of the path.
pub(super) fn read(cursor: &mut Cursor<'_>, attributes: &mut Map) -> Result<(), Fault> {
    if cursor.eat(b'{') {
        let columns = columns(cursor)?;
        attributes.insert("columns", Value::List(columns));
        cursor.skip_space();
    }
    if cursor.eat(b'[') {
        let ranges = ranges(cursor)?;
        attributes.insert("ranges", Value::List(ranges));
        cursor.skip_space();
    }
    match cursor.peek() {
        None => Ok(()),
        Some(_) => Err(Fault::expected(cursor.pos, "the end of the path")),
    }
}

fn columns(cursor: &mut Cursor<'_>) -> Result<Vec<Value>, Fault> {
    let mut columns = Vec::new();
    loop {
        match cursor.peek_token() {
            Some(b'}') => break,
            Some(b'"') => columns.push(Value::String(quoted(cursor)?)),
            Some(b) if is_bare_first(b) => columns.push(cursor.bare().into()),
            _ => return Err(Fault::expected(cursor.pos, "a column name or `}`")),
        }
        match cursor.peek_token() {
            Some(b',') => cursor.pos += 1,
            Some(b'}') => break,
            _ => return Err(Fault::expected(cursor.pos, "`,` or `}`")),
        }
    }
    cursor.pos += 1;
    Ok(columns)
}

fn ranges(cursor: &mut Cursor<'_>) -> Result<Vec<Value>, Fault> {
    let mut ranges = Vec::new();
    loop {
        let lower = limit(cursor)?;
        let range = if cursor.peek_token() == Some(b':') {
            cursor.pos += 1;
            let upper = limit(cursor)?;
            Map::new().with_some("lower_limit", lower).with_some("upper_limit", upper)
        } else {
            Map::new().with_some("exact", lower)
        };
        ranges.push(Value::Map(range));
        let done = cursor.peek_token() == Some(b']');
        if !done && cursor.peek() != Some(b',') {
            return Err(Fault::expected(cursor.pos, "`,` or `]`"));
        }
        cursor.pos += 1;
        if done {
            return Ok(ranges);
        }
    }
}

/// `#5`, `key` or `(key,key)`; nothing at all is no limit.
fn limit(cursor: &mut Cursor<'_>) -> Result<Option<Map>, Fault> {
    match cursor.peek_token() {
        Some(b':' | b',' | b']') => Ok(None),
        Some(b'#') => {
            cursor.pos += 1;
            cursor.skip_space();
            let start = cursor.pos;
            match number(cursor.number()) {
                Ok(index @ Value::Int(_)) => Ok(Some(Map::new().with("row_index", index))),
                _ => Err(Fault::token(start, cursor.pos, "a row index after `#`")),
            }
        }
        Some(b'(') => {
            cursor.pos += 1;
            let mut key = Vec::new();
            while cursor.peek_token() != Some(b')') {
                key.push(key_part(cursor)?);
                match cursor.peek_token() {
                    Some(b',') => cursor.pos += 1,
                    Some(b')') => {}
                    _ => return Err(Fault::expected(cursor.pos, "`,` or `)`")),
                }
            }
            cursor.pos += 1;
            Ok(Some(Map::new().with("key", Value::List(key))))
        }
        _ => Ok(Some(Map::new().with("key", Value::List(vec![key_part(cursor)?])))),
    }
}

fn key_part(cursor: &mut Cursor<'_>) -> Result<Value, Fault> {
    let start = cursor.pos;
    match cursor.peek() {
        Some(b'"') => quoted(cursor).map(Value::String),
        Some(b'#') => {
            cursor.pos += 1;
            Ok(Value::Entity)
        }
        Some(b'0'..=b'9' | b'-' | b'+') => {
            number(cursor.number()).map_err(|expected| Fault::token(start, cursor.pos, expected))
        }
        Some(b'%') => {
            cursor.pos += 1;
            match cursor.bare() {
                b"true" => Ok(Value::Bool(true)),
                b"false" => Ok(Value::Bool(false)),
                _ => Err(Fault::token(start, cursor.pos, "`%true` or `%false`")),
            }
        }
        Some(b) if is_bare_first(b) => Ok(cursor.bare().into()),
        _ => Err(Fault::expected(start, "a row limit: `#index`, a key or `(key,...)`")),
    }
}
