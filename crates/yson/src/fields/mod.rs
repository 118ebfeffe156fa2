//! Reading options out of maps, with errors that a person can act on.
//!
//! ```ignore
//! let mut f = Fields::new(&map, "spec");
//! let weight = f.take_f64("weight").within(0.0..).or(1.0)?;
//! let title = f.take_str("title").optional()?;
//! let limit = f.take_i64(["max_failed_job_count", "max-failed-job-count"]).within(0..=1000).or(10)?;
//! let period = f.take_duration_ms("period").required()?;
//! let cpu = f.nested("job_cpu_monitor", |f| CpuMonitor::read(f))?.unwrap_or_default();
//! let unrecognized = f.unrecognized(); // what nobody asked for, same nesting
//! ```
//!
//! Rules (http-api.md 2.4, 4.2): an integer is taken where a double is expected, a double is never
//! taken where an integer is; signedness does not matter while the value is in range; attributes on
//! a value are ignored. `#` counts as "not given", so that a default can be restored by `set`.

mod taken;

pub use taken::{Bounds, Taken};

use crate::write::to_text_string;
use crate::{Map, Value};
use std::time::Duration;

/// An option that is missing or wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct FieldError {
    /// Path of the option: `tasks/worker/memory_limit`.
    pub path: String,
    /// One sentence that names the option, what is allowed and what was found.
    pub message: String,
}

impl FieldError {
    /// `option "path": expected ..., found <value>`.
    pub fn expected(path: impl Into<String>, expected: &str, found: &Value) -> FieldError {
        FieldError::new(path, &format!("expected {expected}, found {}", shown(found)))
    }

    /// `option "path": <what>`.
    pub fn new(path: impl Into<String>, what: &str) -> FieldError {
        let path = path.into();
        FieldError { message: format!("option \"{path}\": {what}"), path }
    }
}

/// A value in an error: scalars as they are (cut when long), containers by type.
fn shown(value: &Value) -> String {
    const LIMIT: usize = 60;
    match value.bare() {
        Value::List(_) | Value::Map(_) => format!("a {}", value.type_name()),
        scalar => {
            let text = to_text_string(scalar);
            let cut = if text.len() > LIMIT { format!("{}...", &text[..LIMIT]) } else { text };
            match scalar {
                Value::Int(_) | Value::Entity => cut,
                _ => format!("{} {cut}", scalar.type_name()),
            }
        }
    }
}

/// Names of one option: the first is the real one, the others are aliases. When several are given,
/// the first in this order wins; the others count as recognised.
pub trait Names {
    /// The names, at least one.
    fn names(&self) -> &[&str];
}
impl<const N: usize> Names for [&str; N] {
    fn names(&self) -> &[&str] {
        self
    }
}
impl Names for &[&str] {
    fn names(&self) -> &[&str] {
        self
    }
}
impl Names for &str {
    fn names(&self) -> &[&str] {
        std::slice::from_ref(self)
    }
}

/// The options of one map, and which of them were asked for.
#[derive(Debug)]
pub struct Fields<'a> {
    map: &'a Map,
    path: String,
    /// By position in the map.
    taken: Vec<bool>,
    /// What nested readers left, by name.
    left_inside: Map,
}

impl<'a> Fields<'a> {
    /// Starts reading; `path` is where the map is, for errors ("" at the top).
    pub fn new(map: &'a Map, path: impl Into<String>) -> Fields<'a> {
        Fields { map, path: path.into(), taken: vec![false; map.len()], left_inside: Map::new() }
    }

    /// Path of an option of this map.
    pub fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}/{name}", self.path) }
    }

    /// The error "expected ..., found ..." about an option of this map, for checks of one's own.
    pub fn expected(&self, name: &str, expected: &str, found: &Value) -> FieldError {
        FieldError::expected(self.path_of(name), expected, found)
    }

    /// An error about an option of this map.
    pub fn error(&self, name: &str, what: &str) -> FieldError {
        FieldError::new(self.path_of(name), what)
    }

    /// Is the option there, and not `#`? Does not count as taking it.
    pub fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|v| !v.is_entity())
    }

    /// Marks an option as recognised without looking at it.
    pub fn ignore(&mut self, names: impl Names) {
        self.find(names.names());
    }

    /// The value under one of the names and the name it was found by.
    fn find<'n>(&mut self, names: &[&'n str]) -> (&'n str, Option<&'a Value>) {
        let mut found = (names[0], None);
        for name in names {
            if let Some((at, value)) = self.map.get_full(name) {
                self.taken[at] = true;
                if found.1.is_none() && !value.is_entity() {
                    found = (name, Some(value));
                }
            }
        }
        found
    }

    fn take<T>(
        &mut self,
        names: impl Names,
        expected: &'static str,
        convert: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Taken<T> {
        let (name, found) = self.find(names.names());
        let path = self.path_of(name);
        Taken::new(path, expected, found.map(|value| (convert(value), value)))
    }

    /// Any value.
    pub fn take_value(&mut self, names: impl Names) -> Taken<&'a Value> {
        self.take(names, "a value", Some)
    }

    /// String in UTF-8.
    pub fn take_str(&mut self, names: impl Names) -> Taken<&'a str> {
        self.take(names, "string", Value::as_str)
    }

    /// Byte string.
    pub fn take_bytes(&mut self, names: impl Names) -> Taken<&'a [u8]> {
        self.take(names, "string", Value::as_bytes)
    }

    /// Signed integer.
    pub fn take_i64(&mut self, names: impl Names) -> Taken<i64> {
        self.take(names, "int64", Value::as_i64)
    }

    /// Unsigned integer.
    pub fn take_u64(&mut self, names: impl Names) -> Taken<u64> {
        self.take(names, "uint64", Value::as_u64)
    }

    /// Double; integers are taken too. NaN is refused, infinities are not.
    pub fn take_f64(&mut self, names: impl Names) -> Taken<f64> {
        self.take(names, "double", |v| v.as_f64().filter(|d| !d.is_nan()))
    }

    /// Boolean.
    pub fn take_bool(&mut self, names: impl Names) -> Taken<bool> {
        self.take(names, "boolean", Value::as_bool)
    }

    /// Duration: an integer of milliseconds, or a string with a unit: `"500ms"`, `"10s"`, `"5m"`,
    /// `"1h"`, `"2d"` (jobs-and-nodes.md 0).
    pub fn take_duration_ms(&mut self, names: impl Names) -> Taken<Duration> {
        const EXPECTED: &str = "duration (milliseconds, or a string like \"500ms\", \"10s\", \"5m\", \"1h\")";
        self.take(names, EXPECTED, duration)
    }

    /// Map; everything in it counts as recognised. See [`Fields::nested`] for maps of options.
    pub fn take_map(&mut self, names: impl Names) -> Taken<&'a Map> {
        self.take(names, "map", Value::as_map)
    }

    /// List; everything in it counts as recognised.
    pub fn take_list(&mut self, names: impl Names) -> Taken<&'a [Value]> {
        self.take(names, "list", Value::as_list)
    }

    /// List of strings.
    pub fn take_str_list(&mut self, names: impl Names) -> Taken<Vec<&'a str>> {
        self.take(names, "list of strings", |v| v.as_list()?.iter().map(Value::as_str).collect())
    }

    /// A string with a meaning: an enumeration, an id, a path. `expected` names what is allowed.
    pub fn take_parsed<T>(
        &mut self,
        names: impl Names,
        expected: &'static str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Taken<T> {
        self.take(names, expected, |v| parse(v.as_str()?))
    }

    /// A map of options: `read` gets its fields, and what it leaves is unrecognised here too.
    pub fn nested<T, E: From<FieldError>>(
        &mut self,
        names: impl Names,
        read: impl FnOnce(&mut Fields<'a>) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        let (name, found) = self.find(names.names());
        let Some(value) = found else { return Ok(None) };
        let (result, left) = self.inside(name, value, read)?;
        self.leave(name, left);
        Ok(Some(result))
    }

    /// A map whose keys are names of the user's (tasks, trees): `read` is called for each of its
    /// maps in order. A missing map is an empty one.
    pub fn nested_each<T, E: From<FieldError>>(
        &mut self,
        names: impl Names,
        mut read: impl FnMut(&'a str, &mut Fields<'a>) -> Result<T, E>,
    ) -> Result<Vec<(&'a str, T)>, E> {
        let (name, found) = self.find(names.names());
        let Some(value) = found else { return Ok(Vec::new()) };
        let map = value.as_map().ok_or_else(|| self.expected(name, "map", value))?;
        let outer = Fields::new(map, self.path_of(name));
        let mut results = Vec::with_capacity(map.len());
        let mut left_inside = Map::new();
        for (key, value) in map.iter() {
            let key = std::str::from_utf8(key)
                .map_err(|_| self.error(name, &format!("key {} is not UTF-8", crate::error::quote(key))))?;
            let (result, left) = outer.inside(key, value, |f| read(key, f))?;
            results.push((key, result));
            if !left.is_empty() {
                left_inside.insert(key, left);
            }
        }
        self.leave(name, left_inside);
        Ok(results)
    }

    fn inside<T, E: From<FieldError>>(
        &self,
        name: &str,
        value: &'a Value,
        read: impl FnOnce(&mut Fields<'a>) -> Result<T, E>,
    ) -> Result<(T, Map), E> {
        let map = value.as_map().ok_or_else(|| self.expected(name, "map", value))?;
        let mut fields = Fields::new(map, self.path_of(name));
        let result = read(&mut fields)?;
        Ok((result, fields.unrecognized()))
    }

    fn leave(&mut self, name: &str, left: Map) {
        if !left.is_empty() {
            self.left_inside.insert(name, left);
        }
    }

    /// What nobody took, in the order of the map, nested maps reduced to what is left of them.
    pub fn unrecognized(&self) -> Map {
        let mut left = Map::new();
        for ((key, value), taken) in self.map.iter().zip(&self.taken) {
            match self.left_inside.get(key) {
                Some(inside) => left.insert(key, inside.clone()),
                None if !taken => left.insert(key, value.clone()),
                None => continue,
            };
        }
        left
    }

    /// Refuses the map if anything is left, for places where unknown options are errors.
    pub fn finish(self) -> Result<(), FieldError> {
        match first_leaf(&self.unrecognized(), &self.path, self.map) {
            Some(path) => Err(FieldError::new(path, "unknown option")),
            None => Ok(()),
        }
    }
}

/// Path of the first option in a map of unrecognised ones: walks down while the map there is only
/// a part of the original, that is, while some of the original was recognised.
fn first_leaf(left: &Map, path: &str, original: &Map) -> Option<String> {
    let (key, value) = left.iter().next()?;
    let name = String::from_utf8_lossy(key);
    let path = if path.is_empty() { name.into_owned() } else { format!("{path}/{name}") };
    match (value.as_map(), original.get(key).and_then(Value::as_map)) {
        (Some(part), Some(whole)) if part != whole => first_leaf(part, &path, whole),
        _ => Some(path),
    }
}

/// A duration as users write it.
fn duration(value: &Value) -> Option<Duration> {
    if let Some(text) = value.as_str() {
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number: u64 = text[..split].parse().ok()?;
        let unit_us = match &text[split..] {
            "us" => 1,
            "" | "ms" => 1_000,
            "s" => 1_000_000,
            "m" => 60_000_000,
            "h" => 3_600_000_000,
            "d" => 86_400_000_000,
            _ => return None,
        };
        return number.checked_mul(unit_us).map(Duration::from_micros);
    }
    value.as_u64().filter(|ms| *ms <= u64::MAX / 1000).map(Duration::from_millis)
}
