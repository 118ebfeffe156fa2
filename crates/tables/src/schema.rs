//! Schemas: which columns a table has, of which types, and by which of them it is sorted.

use crate::column_types;
use std::collections::{BTreeMap, BTreeSet};
use vocab::Failure;
use yson::Value;

/// Most columns of a schema.
const MAX_COLUMNS: usize = 32_768;

/// One column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What its values may be.
    pub kind: Kind,
    /// A row without it, or with an entity for it, is refused.
    pub required: bool,
    /// It is a part of the key.
    pub key: bool,
}

/// Types of values, as far as they are told apart when a row is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // they are what they are called
pub enum Kind {
    Int { min: i64, max: i64 },
    Uint { max: u64 },
    Double,
    Float,
    Bool,
    String,
    Uuid,
    Utf8,
    Json,
    Null,
    Any,
}

impl Kind {
    /// Is each value of the other type one of this?
    fn covers(self, other: Kind) -> bool {
        match (self, other) {
            (Kind::Any, _) => true,
            (Kind::Int { min, max }, Kind::Int { min: least, max: most }) => min <= least && most <= max,
            (Kind::Uint { max }, Kind::Uint { max: most }) => most <= max,
            (Kind::Double, Kind::Float) => true,
            (Kind::String, Kind::Utf8 | Kind::Json | Kind::Uuid) => true,
            (Kind::Utf8, Kind::Json) => true,
            (wide, narrow) => wide == narrow,
        }
    }
}

/// See the module page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schema {
    /// In their order.
    pub columns: Vec<Column>,
    /// No other columns may be in a row.
    pub strict: bool,
    /// No two rows may have one key.
    pub unique_keys: bool,
}

impl Schema {
    /// Reads `<strict; unique_keys>[{name; type; required; sort_order}]`; an entity is the weak schema:
    /// anything goes.
    pub fn parse(value: &Value) -> Result<Option<Schema>, Failure> {
        if value.is_entity() {
            return Ok(None);
        }
        let bad = |m: String| Failure::new(format!("Bad table schema: {m}"));
        let flag = |name: &str, default: bool| match value.attribute(name) {
            None => Ok(default),
            Some(flag) => flag
                .as_bool()
                .ok_or_else(|| bad(format!("\"{name}\" must be boolean, found {}", flag.type_name()))),
        };
        let (strict, unique_keys) = (flag("strict", true)?, flag("unique_keys", false)?);
        let list = value
            .as_list()
            .ok_or_else(|| bad(format!("expected a list of columns, found {}", value.type_name())))?;
        if list.is_empty() && !strict {
            return Ok(None);
        }
        if list.len() > MAX_COLUMNS {
            return Err(bad(format!("{} columns, at most {MAX_COLUMNS} are allowed", list.len())));
        }
        let mut columns: Vec<Column> = Vec::new();
        let mut names = BTreeSet::new();
        for (index, column) in list.iter().enumerate() {
            let column = Column::parse(column).map_err(|m| bad(format!("column {index}: {m}")))?;
            if !names.insert(column.name.clone()) {
                return Err(bad(format!("column {:?} is there twice", column.name)));
            }
            if column.key && columns.last().is_some_and(|c| !c.key) {
                return Err(bad(format!(
                    "key column {:?} must stand in front of columns that are not sorted by",
                    column.name
                )));
            }
            columns.push(column);
        }
        if unique_keys && !columns.iter().any(|c| c.key) {
            return Err(bad("\"unique_keys\" needs a key column".to_owned()));
        }
        Ok(Some(Schema { columns, strict, unique_keys }))
    }

    /// May rows of the one schema be rows of the other, whatever they are? None is the weak schema.
    pub fn check_change(old: Option<&Schema>, new: Option<&Schema>) -> Result<(), Failure> {
        let Some(new) = new else { return Ok(()) };
        let refuse = |what: String| {
            Err(Failure::new(format!(
                "The table is not empty and its rows need not fit the new schema: {what}"
            )))
        };
        let Some(old) = old else { return refuse("so far they may have any columns".to_owned()) };
        let known = old.by_name();
        for column in &new.columns {
            let shown = format!("column {:?}", column.name);
            match known.get(column.name.as_str()) {
                None if column.required || column.key => {
                    return refuse(format!("{shown} is new, so it can be neither required nor sorted by"));
                }
                None if !old.strict => return refuse(format!("{shown} may be there with any type")),
                None => {}
                Some(found) if !column.kind.covers(found.kind) => {
                    return refuse(format!("{shown} has another type"));
                }
                Some(found) if column.required && !found.required => {
                    return refuse(format!("{shown} was not required"));
                }
                Some(_) => {}
            }
        }
        if new.strict && !old.strict {
            return refuse("other columns were allowed".to_owned());
        }
        let wanted = new.by_name();
        let gone = old.columns.iter().find(|c| !wanted.contains_key(c.name.as_str()));
        if let Some(gone) = gone.filter(|_| new.strict) {
            return refuse(format!("column {:?} is gone", gone.name));
        }
        if !old.key_columns().starts_with(&new.key_columns()) {
            return refuse("they are not sorted like that".to_owned());
        }
        if new.unique_keys && !(old.unique_keys && old.key_columns() == new.key_columns()) {
            return refuse("keys may be there twice".to_owned());
        }
        Ok(())
    }

    fn by_name(&self) -> BTreeMap<&str, &Column> {
        self.columns.iter().map(|c| (c.name.as_str(), c)).collect()
    }

    /// May a row have a column of this name?
    pub fn may_have(&self, name: &str) -> bool {
        !self.strict || self.columns.iter().any(|column| column.name == name)
    }

    /// Names of the columns by which rows are sorted.
    pub fn key_columns(&self) -> Vec<String> {
        self.columns.iter().filter(|c| c.key).map(|c| c.name.clone()).collect()
    }
}

impl Column {
    fn parse(value: &Value) -> Result<Column, String> {
        let Some(map) = value.as_map() else {
            return Err(format!("expected a map, found {}", value.type_name()));
        };
        let name = map.get("name").and_then(Value::as_str).filter(|n| !n.is_empty());
        let name = name.ok_or("\"name\" must be a non-empty string")?.to_owned();
        let key = match map.get("sort_order").filter(|v| !v.is_entity()) {
            None => false,
            Some(order) if order.as_str() == Some("ascending") => true,
            Some(order) => {
                return Err(format!(
                    "\"sort_order\" of {name:?} must be \"ascending\", found {}",
                    yson::write::to_text_string(order)
                ));
            }
        };
        let flag = match map.get("required").filter(|v| !v.is_entity()) {
            Some(flag) => Some(flag.as_bool().ok_or("\"required\" must be boolean")?),
            None => None,
        };
        let (kind, required) = match (map.get("type_v3"), map.get("type")) {
            (Some(v3), old) => {
                let (found, required) = of_type_v3(v3)?;
                column_types::agree(v3, old, flag).map_err(|m| format!("column {name:?}: {m}"))?;
                (found, required)
            }
            (None, Some(old)) => {
                let kind = old.as_str().and_then(kind).ok_or_else(|| unknown_type(old))?;
                (kind, flag.unwrap_or(false))
            }
            (None, None) => return Err(format!("column {name:?} needs a \"type\"")),
        };
        if required && kind == Kind::Any && map.get("type_v3").is_none() {
            return Err(format!("column {name:?} of type \"any\" cannot be required"));
        }
        Ok(Column { name, kind, required, key })
    }
}

/// A type name, or `{type_name=optional; item=...}`; other compositions are not looked into.
fn of_type_v3(value: &Value) -> Result<(Kind, bool), String> {
    if let Some(name) = value.as_str() {
        // What is always null is never there.
        return kind(name).map(|k| (k, k != Kind::Null)).ok_or_else(|| unknown_type(value));
    }
    match value.get("type_name").and_then(Value::as_str) {
        Some("optional") => {
            let item = value.get("item").ok_or("an optional type needs an \"item\"")?;
            let (kind, required) = of_type_v3(item)?;
            // An optional of an optional is a list of one: nothing here looks into it.
            Ok((if required { kind } else { Kind::Any }, false))
        }
        Some("list" | "struct" | "tuple" | "variant" | "dict" | "tagged" | "decimal") => {
            Ok((Kind::Any, true))
        }
        Some(name) => kind(name).map(|k| (k, k != Kind::Null)).ok_or_else(|| unknown_type(value)),
        None => Err(unknown_type(value)),
    }
}

fn unknown_type(value: &Value) -> String {
    let shown = yson::write::to_text_string(value);
    let names = "int8..int64, uint8..uint64, float, double, boolean, string, utf8, json, uuid, date, datetime, timestamp, \
                 interval, null, void, any, and for type_v3 bool, yson, optional, list, struct, tuple, variant, dict, \
                 tagged, decimal";
    format!("unknown type {}, expected one of {names}", shown.chars().take(100).collect::<String>())
}

/// Days of a date are fewer: from 1970 up to the year 2106.
const DAYS: u64 = 49_673;
const SECONDS: u64 = DAYS * 86_400;
const MICROSECONDS: u64 = SECONDS * 1_000_000;

pub(crate) fn kind(name: &str) -> Option<Kind> {
    let int = |bits: u32| Kind::Int { min: i64::MIN >> (64 - bits), max: i64::MAX >> (64 - bits) };
    let uint = |bits: u32| Kind::Uint { max: u64::MAX >> (64 - bits) };
    Some(match name {
        "int64" => int(64),
        "int32" => int(32),
        "int16" => int(16),
        "int8" => int(8),
        "uint64" => uint(64),
        "uint32" => uint(32),
        "uint16" => uint(16),
        "uint8" => uint(8),
        "date" => Kind::Uint { max: DAYS - 1 },
        "datetime" => Kind::Uint { max: SECONDS - 1 },
        "timestamp" => Kind::Uint { max: MICROSECONDS - 1 },
        "interval" => Kind::Int { min: 1 - MICROSECONDS as i64, max: MICROSECONDS as i64 - 1 },
        "double" => Kind::Double,
        "float" => Kind::Float,
        "boolean" | "bool" => Kind::Bool,
        "string" => Kind::String,
        "uuid" => Kind::Uuid,
        "utf8" => Kind::Utf8,
        "json" => Kind::Json,
        "null" | "void" => Kind::Null,
        "any" | "yson" => Kind::Any,
        _ => return None,
    })
}

impl Kind {
    /// The value as a column of this type holds it. Integers of the other signedness are taken in range,
    /// and integers for doubles (http-api.md 4.2).
    pub(crate) fn convert(self, value: Value) -> Result<Value, String> {
        let expected = |what: &str| Err(format!("expected {what}, found {}", shown(&value)));
        let fitting = match self {
            Kind::Any => return Ok(value),
            Kind::Null => value.is_entity().then_some(Value::Entity),
            Kind::Int { min, max } => match value.as_i64() {
                Some(i) if (min..=max).contains(&i) => Some(Value::Int(i)),
                _ => return expected(&format!("an integer from {min} to {max}")),
            },
            Kind::Uint { max } => match value.as_u64() {
                Some(u) if u <= max => Some(Value::Uint(u)),
                _ => return expected(&format!("an integer from 0 to {max}")),
            },
            Kind::Double => match value {
                Value::Double(_) | Value::Int(_) | Value::Uint(_) => value.as_f64().map(Value::Double),
                _ => return expected("a number"),
            },
            Kind::Float => match value.as_f64() {
                Some(number) if number.abs() <= f64::from(f32::MAX) || !number.is_finite() => {
                    Some(Value::Double(number))
                }
                _ => return expected(&format!("a number from -{0:e} to {0:e}", f32::MAX)),
            },
            Kind::Bool => value.as_bool().map(Value::Bool),
            Kind::String => value.as_bytes().map(|b| Value::String(b.to_vec())),
            Kind::Utf8 => match value.as_str() {
                Some(text) => Some(text.into()),
                None => return expected("a string in UTF-8"),
            },
            Kind::Uuid => match value.as_bytes() {
                Some(bytes) if bytes.len() == 16 => Some(Value::String(bytes.to_vec())),
                _ => return expected("a string of 16 bytes"),
            },
            Kind::Json => match value.as_str() {
                Some(text) if is_json(text) => Some(text.into()),
                _ => return expected("a string of JSON"),
            },
        };
        let name = match self {
            Kind::Null => "null",
            Kind::Bool => "boolean",
            _ => "string",
        };
        fitting.map_or_else(|| expected(name), Ok)
    }

    /// Does a value in binary form fit without any change? Quick, and no is not final.
    pub(crate) fn fits(self, value: &[u8]) -> bool {
        match (self, value.first()) {
            (Kind::Any, _) => true,
            (Kind::Int { min: i64::MIN, .. }, Some(0x02))
            | (Kind::Uint { max: u64::MAX }, Some(0x06))
            | (Kind::Double, Some(0x03))
            | (Kind::Bool, Some(0x04 | 0x05))
            | (Kind::String, Some(0x01))
            | (Kind::Null, Some(b'#')) => true,
            (Kind::Utf8, Some(0x01)) => {
                crate::row::string(value).is_some_and(|(s, _)| std::str::from_utf8(s).is_ok())
            }
            _ => false,
        }
    }
}

fn is_json(text: &str) -> bool {
    let format = yson::JsonFormat { encode_utf8: false, ..yson::JsonFormat::default() };
    yson::json::from_json(text.as_bytes(), &format).is_ok()
}

fn shown(value: &Value) -> String {
    let text = yson::write::to_text_string(value);
    let cut: String = text.chars().take(100).collect();
    format!("{} {cut}", value.type_name())
}
