//! Options that were given in words: a query string has no types (http-api.md 2.4), so what it says inside of
//! maps of options is converted here by the type of each option.
//!
//! Whoever has made such a map has taken integers for integers and everything else for strings. Which options
//! there are, and of which types, is known to their readers alone, so they are asked: what a reader refuses is
//! read in another way, if its text can be, and the reader is asked again. What nobody reads stays as it is.

use crate::{Command, Kernel};
use scheduler::config::{PoolConfig, TreeConfig};
use std::collections::BTreeSet;
use std::mem::take;
use vocab::Failure;
use yson::{Map, Value};

/// Options that are read in another way: each costs one more reading of all. More than anybody writes by hand.
const MOST: usize = 64;

/// Attributes in which a refusal says what it is about.
const PLACES: [&str; 4] = ["path", "option", "attribute", "parameter"];

/// Attributes that are of these types at every node; what is the user's own takes any value.
const FLAGS: [&[u8]; 4] = [b"banned", b"executable", b"inherit_acl", b"opaque"];
const TEXTS: [&[u8]; 6] =
    [b"account", b"compression_codec", b"erasure_codec", b"file_name", b"optimize_for", b"owner"];

impl Kernel {
    /// The command with its options in their own types. It is not looked at who asks: this comes before.
    pub(crate) fn out_of_words(&self, mut command: Command) -> Command {
        match &mut command {
            Command::StartOperation { operation_type, spec } => {
                let read = |spec: &Map| {
                    controller::spec::parse(*operation_type, spec, &self.controller_options).map(drop)
                };
                *spec = typed(take(spec), read);
            }
            Command::UpdateOperationParameters { operation, parameters } => {
                *parameters = typed(take(parameters), |map| self.read_parameters(operation, map));
            }
            Command::Create { object_type, attributes, .. } => {
                let given = take(attributes);
                *attributes = match object_type.as_str() {
                    "scheduler_pool" => typed(given, |map| {
                        let options = self.options_of_new_pool(map.clone())?;
                        PoolConfig::parse(&options).map(drop)
                    }),
                    "scheduler_pool_tree" => tree_attributes(given),
                    object_type => node_attributes(object_type, given),
                };
            }
            Command::Link { attributes, .. } => *attributes = node_attributes("link", take(attributes)),
            Command::TransferPoolResources { resource_delta, .. }
            | Command::TransferAccountResources { resource_delta, .. } => {
                *resource_delta = numbers(take(resource_delta));
            }
            _ => {}
        }
        command
    }
}

/// Maps of amounts: nothing in them is a word.
fn numbers(amounts: Map) -> Map {
    let number = |value: Value| match value {
        Value::Map(inner) => numbers(inner).into(),
        value => as_number(value),
    };
    amounts.into_iter().map(|(name, value)| (name, number(value))).collect()
}

fn tree_attributes(attributes: Map) -> Map {
    let typed = |(name, value): (Vec<u8>, Value)| match value {
        Value::Map(config) if name == b"config" => {
            (name, typed(config, |map| TreeConfig::parse(map).map(drop)).into())
        }
        value if name == b"name" => (name, as_text(value)),
        value => (name, value),
    };
    attributes.into_iter().map(typed).collect()
}

fn node_attributes(object_type: &str, attributes: Map) -> Map {
    let typed = |(name, value): (Vec<u8>, Value)| {
        let value = match (object_type, name.as_slice()) {
            (_, name) if FLAGS.contains(&name) => as_flag(value),
            (_, name) if TEXTS.contains(&name) => as_text(value),
            ("boolean_node", b"value") => as_flag(value),
            ("user" | "group" | "account", b"name") | ("string_node", b"value") => as_text(value),
            ("double_node" | "uint64_node", b"value") => as_number(value),
            _ => value,
        };
        (name, value)
    };
    attributes.into_iter().map(typed).collect()
}

fn as_flag(value: Value) -> Value {
    read_as(value, |v| matches!(v, Value::Bool(_)))
}

fn as_text(value: Value) -> Value {
    read_as(value, |v| matches!(v, Value::String(_)))
}

fn as_number(value: Value) -> Value {
    read_as(value, |v| matches!(v, Value::Uint(_) | Value::Double(_)))
}

fn read_as(value: Value, wanted: impl Fn(&Value) -> bool) -> Value {
    let other = if wanted(&value) { None } else { other_readings(&value).into_iter().find(wanted) };
    other.unwrap_or(value)
}

/// The options as `read` takes them, as far as it does.
fn typed(mut options: Map, read: impl Fn(&Map) -> Result<(), Failure>) -> Map {
    let mut done = BTreeSet::new();
    let refused = |options: &Map| read(options).err().map(|failure| place(&failure).unwrap_or_default());
    let mut next = refused(&options);
    while let Some(place) = next.take()
        && !place.is_empty()
        && done.len() < MOST
        && done.insert(place.clone())
    {
        let Some(found) = at(&mut options, &place).map(|value| value.clone()) else { break };
        let readings = other_readings(&found);
        let put = |options: &mut Map, reading: &Value| {
            if let Some(value) = at(options, &place) {
                value.clone_from(reading);
            }
        };
        let better = readings.iter().find_map(|reading| {
            put(&mut options, reading);
            Some(refused(&options)).filter(|refused| refused.as_ref() != Some(&place))
        });
        match better {
            Some(then) => next = then,
            // A number that is refused, too, is refused as the number that it is.
            None if matches!(found, Value::String(_)) => {
                put(&mut options, readings.first().unwrap_or(&found))
            }
            None => put(&mut options, &found),
        }
    }
    options
}

/// The names on the way to what a refusal is about: `/tasks/a\/b/command` has three.
fn place(failure: &Failure) -> Option<Vec<String>> {
    let text = PLACES.iter().find_map(|name| failure.find_attribute(name)?.as_str())?;
    let (mut names, mut escaped) = (vec![String::new()], false);
    for c in text.strip_prefix('/').unwrap_or(text).chars() {
        match (c, names.last_mut()) {
            ('\\', _) if !escaped => escaped = true,
            ('/', _) if !escaped => names.push(String::new()),
            (c, Some(name)) => {
                name.push(c);
                escaped = false;
            }
            (_, None) => {}
        }
    }
    Some(names)
}

/// What is there. Options may be spelled with `-`, and refused with `_`; other names are what they are.
fn at<'m>(options: &'m mut Map, place: &[String]) -> Option<&'m mut Value> {
    let (first, rest) = place.split_first()?;
    let is_so = |name: &[u8]| String::from_utf8_lossy(name).replace('-', "_") == *first;
    let name = match options.contains(first) {
        true => first.as_bytes().to_vec(),
        false => options.keys().find(|name| is_so(name))?.to_vec(),
    };
    let value = options.get_mut(name)?;
    if rest.is_empty() { Some(value) } else { at(value.as_map_mut()?, rest) }
}

/// What else the text of a value may mean.
fn other_readings(value: &Value) -> Vec<Value> {
    let (text, number) = match value {
        Value::List(items) => {
            let text = |item: &Value| item.as_i64().map_or_else(|| item.clone(), |n| n.to_string().into());
            return vec![Value::List(items.iter().map(text).collect())];
        }
        Value::Int(number) => (number.to_string(), true),
        Value::String(text) => (String::from_utf8_lossy(text).into_owned(), false),
        _ => return Vec::new(),
    };
    let flag = match text.as_str() {
        "true" | "%true" | "1" => Some(Value::Bool(true)),
        "false" | "%false" | "0" => Some(Value::Bool(false)),
        _ => None,
    };
    if number {
        return flag.into_iter().chain([text.into()]).collect();
    }
    let unsigned = text.parse().ok().map(Value::Uint);
    // Not `inf`, not `nan`: names may be so.
    let double = text.parse().ok().filter(|x: &f64| x.is_finite()).map(Value::Double);
    flag.into_iter().chain(unsigned).chain(double).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> Map {
        yson::parse(text.as_bytes()).expect("it is YSON").as_map().expect("a map").clone()
    }

    /// Refuses what is not of these types: `b` a flag, `d` a double, `i` an integer, `s` a string, `m/s` too, `l` strings.
    fn read(options: &Map) -> Result<(), Failure> {
        let fits = |place: &str, value: &Value| match place {
            "b" => value.as_bool().is_some(),
            "d" => value.as_f64().is_some_and(|x| x > 0.0),
            "i" => value.as_i64().is_some(),
            "l" => value.as_list().is_some_and(|list| list.iter().all(|item| item.as_str().is_some())),
            "s" | "m/s" => value.as_str().is_some(),
            _ => true,
        };
        for (name, value) in options.iter() {
            let name = String::from_utf8_lossy(name);
            let inner = value.as_map().unwrap_or(Map::EMPTY);
            let inner =
                inner.iter().map(|(key, value)| (format!("{name}/{}", String::from_utf8_lossy(key)), value));
            for (place, value) in inner.chain([(name.to_string(), value)]) {
                if !fits(&place, value) {
                    return Err(Failure::new("no").with("path", format!("/{place}")));
                }
            }
        }
        Ok(())
    }

    #[test]
    fn options_get_the_types_that_their_reader_takes() {
        for (given, wanted) in [
            ("{b=\"true\"; s=\"true\"; x=\"true\"}", "{b=%true; s=\"true\"; x=\"true\"}"),
            ("{b=0; i=0; s=0; x=0}", "{b=%false; i=0; s=\"0\"; x=0}"),
            ("{d=\"2.5\"; s=\"2.5\"}", "{d=2.5; s=\"2.5\"}"),
            ("{d=7; m={s=8; x=9}}", "{d=7; m={s=\"8\"; x=9}}"),
            ("{l=[a; 5; \"true\"]}", "{l=[a; \"5\"; \"true\"]}"),
            // What is wrong stays wrong, and is shown as what it is.
            ("{b=yes; d=\"2.5\"}", "{b=yes; d=\"2.5\"}"),
            ("{d=\"-2.5\"; s=5}", "{d=-2.5; s=5}"),
        ] {
            assert_eq!(typed(map(given), read), map(wanted), "{given}");
        }
    }

    #[test]
    fn names_are_found_as_they_are_first() {
        let mut options = map("{\"a-b\"=1; \"a_b\"={\"c-d\"=2; \"e/f\"=3}; g=4}");
        for (path, found) in [
            ("/a-b", Some(1)),
            ("/a_b/c_d", Some(2)),
            ("a_b/c-d", Some(2)),
            ("/a_b/e\\/f", Some(3)),
            ("/a_b/e/f", None),
            ("/g", Some(4)),
            ("/g/h", None),
            ("", None),
        ] {
            let place = place(&Failure::new("no").with("path", path)).expect("it has one");
            assert_eq!(at(&mut options, &place).and_then(|v| v.as_i64()), found, "{path}");
        }
    }

    #[test]
    fn attributes_of_nodes_are_known_by_name() {
        let given = "{inherit_acl=\"false\"; name=5; mine=\"true\"; opaque=1; owner=7; banned=0}";
        let wanted =
            "{inherit_acl=%false; name=\"5\"; mine=\"true\"; opaque=%true; owner=\"7\"; banned=%false}";
        assert_eq!(node_attributes("user", map(given)), map(wanted));
        // These are the user's own.
        let given = "{name=5; value=\"true\"}";
        assert_eq!(node_attributes("map_node", map(given)), map(given));
        for (object_type, given, wanted) in [
            ("boolean_node", "\"true\"", "%true"),
            ("double_node", "\"1.5\"", "1.5"),
            ("string_node", "15", "\"15\""),
            ("int64_node", "15", "15"),
        ] {
            let of = |value: &str| map(&format!("{{value={value}}}"));
            assert_eq!(node_attributes(object_type, of(given)), of(wanted), "{object_type}");
        }
    }

    #[test]
    fn amounts_are_numbers() {
        let given = map("{cpu=\"1.5\"; memory=5; disk_space_per_medium={default=\"-2\"; other=x}}");
        let wanted = map("{cpu=1.5; memory=5; disk_space_per_medium={default=-2.0; other=x}}");
        assert_eq!(numbers(given), wanted);
    }
}
