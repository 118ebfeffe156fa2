//! Spellings of options: the public documentation writes some names with hyphens; `_` is canonical
//! (http-api.md 8.8 [X]). Older names are understood, too. Names that are no options stay as they are.

use scheduler::config::PoolConfig;
use vocab::Failure;
use yson::ypath::Step;
use yson::{Map, Value};

/// Attributes of pools that are no options and have a `_` in their names.
const SYSTEM: [&str; 5] = ["parent_name", "pool_tree", "creation_time", "inherit_acl", "effective_acl"];

/// Name of an attribute of a pool in its canonical spelling.
pub(crate) fn canonical_name(name: &[u8]) -> Vec<u8> {
    if let Some(option) = std::str::from_utf8(name).ok().and_then(PoolConfig::canonical_option) {
        return option.into_bytes();
    }
    let underscored = underscored(name);
    if SYSTEM.iter().any(|system| system.as_bytes() == underscored) { underscored } else { name.to_vec() }
}

/// Attributes of a pool in their canonical spelling; one in both spellings is refused.
pub(crate) fn canonical_names(attributes: Map) -> Result<Map, Failure> {
    let mut canonical = Map::new();
    for (name, value) in attributes {
        let key = canonical_name(&name);
        if canonical.insert_owned(key.clone(), value).is_some() {
            return Err(twice("pool option", &key, &name));
        }
    }
    Ok(canonical)
}

/// The rest of a path inside of an attribute with a canonical name.
pub(crate) fn canonical_option_steps(name: &[u8], inside: &[Step]) -> Vec<Step> {
    match std::str::from_utf8(name) {
        Ok(text) if PoolConfig::canonical_option(text).is_some() => canonical_steps(inside),
        _ => inside.to_vec(),
    }
}

/// Names of options on the way; those of presets are the user's own.
pub(crate) fn canonical_steps(steps: &[Step]) -> Vec<Step> {
    let mut canonical: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps {
        let in_presets =
            canonical.last().and_then(Step::key).is_some_and(|k| &*k == b"pool_config_presets".as_slice());
        canonical.push(match step {
            Step::Child(key) if !in_presets => Step::Child(underscored(key)),
            other => other.clone(),
        });
    }
    canonical
}

/// The configuration of a tree in canonical spelling: all of it are options, but the names of presets.
pub(super) fn canonical_config(config: Map) -> Result<Map, Failure> {
    let mut canonical = canonical_keys(config, |key, value| match (key, value) {
        (b"pool_config_presets", presets) => Ok(presets),
        (_, value) => canonical_value(value),
    })?;
    if let Some(presets) = canonical.get_mut("pool_config_presets").and_then(Value::as_map_mut) {
        let presets = std::mem::take(presets);
        let inside: Result<Map, Failure> =
            presets.into_iter().map(|(name, options)| Ok((name, canonical_value(options)?))).collect();
        canonical.insert("pool_config_presets", inside?);
    }
    Ok(canonical)
}

fn canonical_value(value: Value) -> Result<Value, Failure> {
    match value {
        Value::Map(map) => canonical_keys(map, |_, value| canonical_value(value)).map(Value::Map),
        other => Ok(other),
    }
}

fn canonical_keys(map: Map, inside: impl Fn(&[u8], Value) -> Result<Value, Failure>) -> Result<Map, Failure> {
    let mut canonical = Map::new();
    for (name, value) in map {
        let key = underscored(&name);
        let value = inside(&key, value)?;
        if canonical.insert_owned(key.clone(), value).is_some() {
            return Err(twice("option", &key, &name));
        }
    }
    Ok(canonical)
}

fn twice(what: &str, key: &[u8], name: &[u8]) -> Failure {
    let (a, b) = (String::from_utf8_lossy(key), String::from_utf8_lossy(name));
    Failure::new(format!("The {what} \"{a}\" is given twice: also as \"{b}\"")).with("option", &*a)
}

fn underscored(name: &[u8]) -> Vec<u8> {
    name.iter().map(|b| if *b == b'-' { b'_' } else { *b }).collect()
}

/// Names of attributes in a request, canonical.
pub(crate) fn canonical_list(names: &[String]) -> Vec<String> {
    names.iter().map(|n| String::from_utf8_lossy(&canonical_name(n.as_bytes())).into_owned()).collect()
}

/// The value of an attribute that has to be a string.
pub(super) fn text<'a>(name: &str, value: &'a Value) -> Result<&'a str, Failure> {
    value.as_str().ok_or_else(|| {
        Failure::new(format!("Attribute \"{name}\": expected string, found {} {value:?}", value.type_name()))
            .with("attribute", name)
    })
}
