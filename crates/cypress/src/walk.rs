//! Walking and changing the inside of YSON values by the steps of a path.
//!
//! Documents, values of attributes and every mount that is "just YSON" are served by these five
//! functions; all say 500 about what is missing, naming the nearest thing that exists. `at` is the
//! path of the value itself, for messages only.

use std::borrow::Cow;

use vocab::Failure;
use yson::ypath::Step;
use yson::{Bytes, Map, Value};

use crate::failures::{self, join, no_attribute, no_child, no_item, odd_step_after, unsupported};

/// Escaped form of a key, as it stands in a path.
pub fn literal(key: &[u8]) -> String {
    yson::ypath::escape_literal(key)
}

/// Index into a list of `count` items that a step means: from 0, or from the end when negative.
pub fn list_index(step: &Step, count: usize) -> Option<usize> {
    resolve_index(step.index()?, count)
}

fn resolve_index(index: i64, count: usize) -> Option<usize> {
    let from_start = if index < 0 { index.checked_add_unsigned(count as u64)? } else { index };
    usize::try_from(from_start).ok().filter(|i| *i < count)
}

/// Where a step puts a new item into a list of `count` items; none if it names an existing item.
pub fn insertion_point(step: &Step, count: usize, at: &str) -> Option<Result<usize, Failure>> {
    let place = |index: i64, shift: usize| {
        resolve_index(index, count)
            .map(|i| i + shift)
            .ok_or_else(|| no_item(at, index.to_string().as_bytes(), count))
    };
    match step {
        Step::ListBegin => Some(Ok(0)),
        Step::ListEnd => Some(Ok(count)),
        Step::ListBefore(i) => Some(place(*i, 0)),
        Step::ListAfter(i) => Some(place(*i, 1)),
        _ => None,
    }
}

/// The value at the end of the steps.
pub fn value_get<'v>(value: &'v Value, at: &str, steps: &[Step]) -> Result<Cow<'v, Value>, Failure> {
    let mut here = value;
    let mut path = at.to_owned();
    let mut steps = steps;
    while let [step, rest @ ..] = steps {
        if matches!(step, Step::AllAttributes) && rest.is_empty() {
            return Ok(Cow::Owned(Value::Map(here.attributes().cloned().unwrap_or_default())));
        }
        here = descend(here, &mut path, step)?;
        steps = rest;
    }
    Ok(Cow::Borrowed(here))
}

/// Is there something at the end of the steps?
pub fn value_exists(value: &Value, steps: &[Step]) -> bool {
    value_get(value, "", steps).is_ok()
}

/// Keys of the map at the end of the steps, in its order.
pub fn value_list(value: &Value, at: &str, steps: &[Step]) -> Result<Vec<Bytes>, Failure> {
    let found = value_get(value, at, steps)?;
    match found.as_map() {
        Some(map) => Ok(map.keys().map(<[u8]>::to_vec).collect()),
        None => Err(unsupported("list", &show_steps(at, steps), found.type_name())),
    }
}

/// Puts `new` at the end of the steps. The last key may be new; the others must exist, unless
/// `recursive`, which makes maps of them.
pub fn value_set(
    value: &mut Value,
    at: &str,
    steps: &[Step],
    new: Value,
    recursive: bool,
) -> Result<(), Failure> {
    let Some((last, way)) = steps.split_last() else {
        *value = new;
        return Ok(());
    };
    let mut path = at.to_owned();
    let mut here = value;
    for step in way {
        here = descend_mut(here, &mut path, step, recursive)?;
    }
    match last {
        Step::Attribute(name) => {
            let mut attributes = take_attributes(here);
            attributes.insert(name, new);
            put_attributes(here, attributes);
            Ok(())
        }
        Step::AllAttributes => match new.into_bare() {
            Value::Map(attributes) => {
                put_attributes(here, attributes);
                Ok(())
            }
            other => Err(failures::wrong_type(&format!("Attributes of {path}"), "map", &other)),
        },
        _ => match here.bare_mut() {
            Value::Map(map) => {
                let key = last.key().ok_or_else(|| odd_step_after(&path, last))?;
                map.insert(key, new);
                Ok(())
            }
            Value::List(list) => {
                if let Some(place) = insertion_point(last, list.len(), &path) {
                    list.insert(place?, new);
                    return Ok(());
                }
                let key = last.key().ok_or_else(|| odd_step_after(&path, last))?;
                let index = list_index(last, list.len()).ok_or_else(|| no_item(&path, &key, list.len()))?;
                list[index] = new;
                Ok(())
            }
            scalar => Err(failures::cannot_have_children(&path, scalar.type_name())),
        },
    }
}

/// Removes what is at the end of the steps, of which there must be at least one. `/*` empties a map
/// or list, `/@*` drops attributes. Gives true if something was there to be removed.
pub fn value_remove(value: &mut Value, at: &str, steps: &[Step], force: bool) -> Result<bool, Failure> {
    let Some((last, way)) = steps.split_last() else {
        return Err(Failure::new(format!("{at} cannot be removed")).with("path", at));
    };
    let mut path = at.to_owned();
    let mut here = value;
    for step in way {
        match descend_mut(here, &mut path, step, false) {
            Ok(next) => here = next,
            Err(_) if force => return Ok(false),
            Err(failure) => return Err(failure),
        }
    }
    let (removed, missing) = match last {
        Step::Attribute(name) => {
            let mut attributes = take_attributes(here);
            let removed = attributes.remove(name).is_some();
            put_attributes(here, attributes);
            (removed, no_attribute(&path, name))
        }
        Step::AllAttributes | Step::AllUserAttributes => {
            take_attributes(here);
            return Ok(true);
        }
        Step::AllChildren => match here.bare_mut() {
            Value::Map(map) => {
                *map = Map::new();
                return Ok(true);
            }
            Value::List(list) => {
                list.clear();
                return Ok(true);
            }
            scalar => return Err(failures::cannot_have_children(&path, scalar.type_name())),
        },
        _ => {
            let key = last.key().ok_or_else(|| odd_step_after(&path, last))?;
            match here.bare_mut() {
                Value::Map(map) => (map.remove(&key).is_some(), no_child(&path, &key)),
                Value::List(list) => match list_index(last, list.len()) {
                    Some(index) => {
                        list.remove(index);
                        return Ok(true);
                    }
                    None => (false, no_item(&path, &key, list.len())),
                },
                scalar => (false, failures::cannot_have_children(&path, scalar.type_name())),
            }
        }
    };
    if removed || force { Ok(removed) } else { Err(missing) }
}

fn descend<'v>(here: &'v Value, path: &mut String, step: &Step) -> Result<&'v Value, Failure> {
    if let Step::Attribute(name) = step {
        let found = here.attributes().and_then(|a| a.get(name)).ok_or_else(|| no_attribute(path, name))?;
        *path = format!("{path}/@{}", literal(name));
        return Ok(found);
    }
    let key = step.key().ok_or_else(|| odd_step_after(path, step))?;
    let found = match here.bare() {
        Value::Map(map) => map.get(&key).ok_or_else(|| no_child(path, &key))?,
        Value::List(list) => {
            let index = list_index(step, list.len()).ok_or_else(|| no_item(path, &key, list.len()))?;
            &list[index]
        }
        scalar => return Err(failures::cannot_have_children(path, scalar.type_name())),
    };
    *path = join(path, &key);
    Ok(found)
}

fn descend_mut<'v>(
    here: &'v mut Value,
    path: &mut String,
    step: &Step,
    recursive: bool,
) -> Result<&'v mut Value, Failure> {
    if let Step::Attribute(name) = step {
        let Value::Attributed(parts) = here else { return Err(no_attribute(path, name)) };
        let found = parts.0.get_mut(name).ok_or_else(|| no_attribute(path, name))?;
        *path = format!("{path}/@{}", literal(name));
        return Ok(found);
    }
    let key = step.key().ok_or_else(|| odd_step_after(path, step))?;
    let type_name = here.type_name();
    let found = match here.bare_mut() {
        Value::Map(map) => {
            if recursive {
                map.entry_or_insert(&key, || Value::Map(Map::new()));
            }
            map.get_mut(&key).ok_or_else(|| no_child(path, &key))?
        }
        Value::List(list) => {
            let count = list.len();
            let index = list_index(step, count).ok_or_else(|| no_item(path, &key, count))?;
            &mut list[index]
        }
        _ => return Err(failures::cannot_have_children(path, type_name)),
    };
    *path = join(path, &key);
    Ok(found)
}

fn take_attributes(value: &mut Value) -> Map {
    let (attributes, bare) = std::mem::take(value).split();
    *value = bare;
    attributes
}

fn put_attributes(value: &mut Value, attributes: Map) {
    *value = std::mem::take(value).with_attributes(attributes);
}

/// A path with some more steps, for messages.
pub fn show_steps(at: &str, steps: &[Step]) -> String {
    let mut out = at.to_owned();
    for step in steps {
        match step {
            Step::Attribute(name) => {
                out.push_str("/@");
                out.push_str(&literal(name));
            }
            Step::AllAttributes => out.push_str("/@"),
            Step::NoFollow => out.push('&'),
            Step::AllChildren => out.push_str("/*"),
            Step::AllUserAttributes => out.push_str("/@*"),
            other => {
                let key = other.key().unwrap_or_default();
                out.push('/');
                out.push_str(&literal(&key));
            }
        }
    }
    out
}
