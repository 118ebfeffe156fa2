//! What the schema of a table hands down to another one that takes its rows.

use crate::{Columns, Schema, shown_schema};
use vocab::Failure;
use yson::{Map, Value};

/// What is left of a column: what is said of its values.
const KEPT: [&str; 4] = ["name", "required", "type", "type_v3"];

/// The schema of rows that are read like this of a table with that schema, and are sorted by these columns or none;
/// an entity if rows may be anything, or if a key is not among the columns.
pub fn inherit(schema: &Value, columns: &Columns, keys: &[String]) -> Result<Value, Failure> {
    if Schema::parse(schema)?.is_none() {
        return Ok(Value::Entity);
    }
    let schema = shown_schema(schema);
    let mut found: Vec<Map> = Vec::new();
    for column in schema.as_list().into_iter().flatten().filter_map(Value::as_map) {
        let name = column.get("name").and_then(Value::as_bytes).unwrap_or_default();
        let Some(name) = columns.shown(name) else { continue };
        let kept = column.iter().filter(|(key, _)| KEPT.iter().any(|kept| kept.as_bytes() == *key));
        let kept: Map = kept.map(|(key, value)| (key, value.clone())).collect();
        found.push(kept.with("name", Value::String(name.to_vec())));
    }
    let mut sorted = Vec::new();
    for key in keys {
        let is_key = |column: &Map| column.get("name").and_then(Value::as_str) == Some(key);
        let Some(at) = found.iter().position(is_key) else { return Ok(Value::Entity) };
        sorted.push(found.remove(at).with("sort_order", "ascending"));
    }
    let strict = schema.attribute("strict").cloned();
    let list = sorted.into_iter().chain(found).map(Value::from).collect();
    Ok(Value::List(list).with_attributes(Map::new().with_some("strict", strict)))
}

/// Do two such schemas say the same? The order of columns says nothing but for keys.
pub fn inherit_the_same(one: &Value, other: &Value) -> bool {
    let by_name = |schema: &Value| {
        let mut columns = schema.as_list().unwrap_or_default().to_vec();
        columns.sort_by(|a, b| name_of(a).cmp(&name_of(b)));
        (schema.attributes().cloned(), columns)
    };
    by_name(one) == by_name(other)
}

fn name_of(column: &Value) -> Option<&[u8]> {
    column.get("name").and_then(Value::as_bytes)
}
