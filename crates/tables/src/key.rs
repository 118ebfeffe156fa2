//! The order of keys: by type first, then by value, column by column; a shorter key comes before a longer
//! one that begins with it.

use std::cmp::Ordering;
use yson::Value;

/// Compares two keys.
pub fn compare(a: &[Value], b: &[Value]) -> Ordering {
    let columns = a.iter().zip(b).map(|(a, b)| compare_values(a.bare(), b.bare()));
    columns.into_iter().find(|o| o.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Entity => 0,
        Value::Int(_) => 1,
        Value::Uint(_) => 2,
        Value::Double(_) => 3,
        Value::Bool(_) => 4,
        Value::String(_) => 5,
        _ => 6,
    }
}

fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Uint(a), Value::Uint(b)) => a.cmp(b),
        (Value::Double(a), Value::Double(b)) => a.total_cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
    }
}
