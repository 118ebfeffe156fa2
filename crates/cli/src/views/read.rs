//! Fields of replies.

use vocab::{Cpu, Failure, RESOURCES, Resource, Resources, Time};
use yson::{Map, Value};

/// A value some keys down.
pub fn find<'a>(map: &'a Map, path: &str) -> Option<&'a Value> {
    let mut keys = path.split('/');
    let mut value = map.get(keys.next()?)?;
    for key in keys {
        value = value.get(key)?;
    }
    (!value.is_entity()).then_some(value)
}

/// Text, or nothing.
pub fn text<'a>(map: &'a Map, path: &str) -> &'a str {
    find(map, path).and_then(Value::as_str).unwrap_or_default()
}

/// An integer, or 0.
pub fn integer(map: &Map, path: &str) -> i64 {
    find(map, path).and_then(Value::as_i64).unwrap_or_default()
}

/// A number, or 0.
pub fn number(map: &Map, path: &str) -> f64 {
    find(map, path).and_then(Value::as_f64).unwrap_or_default()
}

/// A yes or no; no when absent.
pub(crate) fn flag(map: &Map, path: &str) -> bool {
    find(map, path).and_then(Value::as_bool).unwrap_or_default()
}

/// An instant.
pub(crate) fn time(map: &Map, path: &str) -> Option<Time> {
    find(map, path).and_then(Value::as_str).and_then(Time::parse)
}

/// A map of resources.
pub(crate) fn amounts(map: &Map, path: &str) -> Resources {
    let mut all = Resources::ZERO;
    if let Some(given) = find(map, path).and_then(Value::as_map) {
        for r in RESOURCES {
            let raw = match (r, given.get(r.as_str())) {
                (_, None) => 0,
                (Resource::Cpu, Some(v)) => v.as_f64().map_or(0, |x| Cpu::from_f64(x).0),
                (_, Some(v)) => v.as_f64().map_or(0, |x| x as i64),
            };
            all.set_raw(r, raw);
        }
    }
    all
}

/// The error of an operation or a job, if it has one to speak of.
pub fn error_of(map: &Map, path: &str) -> Option<Failure> {
    let failure = Failure::from_value(find(map, path)?);
    (failure.code != vocab::code::OK).then_some(failure)
}

/// One line for each error of the tree.
pub(crate) fn error_lines(failure: &Failure, depth: usize, out: &mut Vec<String>) {
    out.push(format!("{}{} (code {})", "  ".repeat(depth), failure.message, failure.code));
    for inner in &failure.inner_errors {
        error_lines(inner, depth + 1, out);
    }
}
