//! Error trees and the YSON values in their attributes.

use vocab::Failure;
use yson::{Map, Value};

use super::{Malformed, bounds, pb, required};

/// Deepest nesting that is accepted, of values as of errors. A map in a map is three messages deep, and
/// protobuf decoders stop at 100.
pub(super) const MAX_DEPTH: usize = 16;
/// Deepest nesting that is sent: what is deeper is cut, so that one strange attribute never costs a
/// whole message.
pub(super) const SENT_DEPTH: usize = MAX_DEPTH - 1;

impl From<&Failure> for pb::Failure {
    fn from(f: &Failure) -> pb::Failure {
        to_failure(f, SENT_DEPTH)
    }
}

fn to_failure(f: &Failure, depth: usize) -> pb::Failure {
    let inner = if depth == 0 { &[] } else { f.inner_errors.as_slice() };
    pb::Failure {
        code: f.code,
        message: f.message.clone(),
        attributes: entries(&f.attributes, SENT_DEPTH),
        inner_errors: inner.iter().map(|inner| to_failure(inner, depth - 1)).collect(),
    }
}

impl TryFrom<pb::Failure> for Failure {
    type Error = Malformed;
    fn try_from(f: pb::Failure) -> Result<Failure, Malformed> {
        failure(bounds::cut_failure(f), MAX_DEPTH)
    }
}

fn failure(f: pb::Failure, depth: usize) -> Result<Failure, Malformed> {
    let deeper = depth.checked_sub(1).ok_or(Malformed::TooDeep(MAX_DEPTH))?;
    Ok(Failure {
        code: f.code,
        message: f.message,
        attributes: map(f.attributes, MAX_DEPTH)?,
        inner_errors: f
            .inner_errors
            .into_iter()
            .map(|inner| failure(inner, deeper))
            .collect::<Result<_, _>>()?,
    })
}

pub(super) fn entries(map: &Map, depth: usize) -> Vec<pb::Entry> {
    map.iter()
        .map(|(key, value)| pb::Entry { key: key.to_vec(), value: Some(to_value(value, depth)) })
        .collect()
}

fn to_value(value: &Value, depth: usize) -> pb::Value {
    use pb::value::Kind;
    let Some(deeper) = depth.checked_sub(1) else { return pb::Value::default() };
    let kind = match value.bare() {
        Value::Bool(x) => Some(Kind::Boolean(*x)),
        Value::Int(x) => Some(Kind::Int64(*x)),
        Value::Uint(x) => Some(Kind::Uint64(*x)),
        Value::Double(x) => Some(Kind::Double(*x)),
        Value::String(x) => Some(Kind::String(x.clone())),
        Value::List(x) => {
            let items = x.iter().map(|item| to_value(item, deeper)).collect();
            Some(Kind::List(pb::List { items }))
        }
        Value::Map(x) => Some(Kind::Map(pb::Map { entries: entries(x, deeper) })),
        Value::Entity | Value::Attributed(_) => None,
    };
    let attributes = value.attributes().map(|a| entries(a, deeper)).unwrap_or_default();
    pb::Value { kind, attributes }
}

pub(super) fn map(entries: Vec<pb::Entry>, depth: usize) -> Result<Map, Malformed> {
    let mut out = Map::new();
    for entry in entries {
        out.insert_owned(entry.key, from_value(required("entry.value", entry.value)?, depth)?);
    }
    Ok(out)
}

fn from_value(value: pb::Value, depth: usize) -> Result<Value, Malformed> {
    use pb::value::Kind;
    let deeper = depth.checked_sub(1).ok_or(Malformed::TooDeep(MAX_DEPTH))?;
    let bare = match value.kind {
        None => Value::Entity,
        Some(Kind::Boolean(x)) => Value::Bool(x),
        Some(Kind::Int64(x)) => Value::Int(x),
        Some(Kind::Uint64(x)) => Value::Uint(x),
        Some(Kind::Double(x)) => Value::Double(x),
        Some(Kind::String(x)) => Value::String(x),
        Some(Kind::List(x)) => {
            Value::List(x.items.into_iter().map(|item| from_value(item, deeper)).collect::<Result<_, _>>()?)
        }
        Some(Kind::Map(x)) => Value::Map(map(x.entries, deeper)?),
    };
    Ok(bare.with_attributes(map(value.attributes, deeper)?))
}
