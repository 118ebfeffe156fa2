//! Parameters of a command, read by name and type (http-api.md 2.4).
//!
//! Unknown parameters are ignored. An entity counts as absent: clients send it for "not given".
//! Values that came from a query string are strings; they are converted to the type asked for,
//! while the same string from YSON or JSON is a type error.

use kernel::command::OperationRef;
use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use vocab::{Failure, Guid, ObjectId, OperationId, Span, Time};
use yson::ypath::YPath;
use yson::{Bytes, Map, Value};

/// See the module page.
#[derive(Clone, Debug, Default)]
pub struct Params {
    map: Map,
    /// Names whose values came from the query string.
    from_query: BTreeSet<Bytes>,
    /// What parsers have looked for, if somebody wants to know.
    asked: Option<Arc<Mutex<Vec<Asked>>>>,
}

/// A parameter that a parser has looked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Its name.
    pub name: String,
    /// What it is read as.
    pub kind: Kind,
}

/// What a parameter is read as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // the kinds are what they are called
pub enum Kind {
    Any,
    Text,
    Boolean,
    Count,
    Milliseconds,
    Instant,
    /// A string with a meaning: an id, an enumeration.
    Word,
    Path,
    Map,
    Texts,
}

/// What a parser of parameters gives.
pub type Result<T> = std::result::Result<T, Failure>;

impl Params {
    /// Parameters without a query string.
    pub fn new(map: Map) -> Params {
        Params { map, ..Params::default() }
    }

    /// Parameters that remember what parsers look for.
    pub fn observed(map: Map) -> Params {
        Params { map, asked: Some(Arc::default()), ..Params::default() }
    }

    /// What parsers have looked for so far, in their order.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked
            .as_ref()
            .map(|asked| asked.lock().unwrap_or_else(|e| e.into_inner()).clone())
            .unwrap_or_default()
    }

    fn note(&self, name: &str, kind: Kind) {
        let Some(asked) = &self.asked else { return };
        let mut asked = asked.lock().unwrap_or_else(|e| e.into_inner());
        match asked.iter_mut().find(|a| a.name == name) {
            // The reader of a type looks at the bare value, too.
            Some(known) if known.kind == Kind::Any => known.kind = kind,
            Some(_) => {}
            None => asked.push(Asked { name: name.to_owned(), kind }),
        }
    }

    /// Parameters of a query string.
    pub fn from_query(map: Map) -> Params {
        Params { from_query: map.keys().map(<[u8]>::to_vec).collect(), map, asked: None }
    }

    /// Puts parameters of a later source over these.
    pub fn merge(&mut self, later: Map) {
        for (key, value) in later {
            self.from_query.remove(&key);
            self.map.insert_owned(key, value);
        }
    }

    /// A parameter of any type; none if absent or entity.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.note(name, Kind::Any);
        self.map.get(name).filter(|v| !v.is_entity())
    }

    /// All that is given.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.map.iter().map(|(_, value)| value)
    }

    /// Did this one come from the query string?
    pub fn is_from_query(&self, name: &str) -> bool {
        self.from_query.contains(name.as_bytes())
    }

    /// Names of all that is given.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.map.key_strings()
    }

    /// What is in a map, to be read as parameters are.
    pub fn inside(&self, name: &str) -> Result<Option<Params>> {
        Ok(self.map(name)?.map(|map| self.part_of(name, map)))
    }

    /// Parameters made of one of these, from where that is.
    fn part_of(&self, name: &str, map: Map) -> Params {
        if self.is_from_query(name) { Params::from_query(map) } else { Params::new(map) }
    }

    /// A string, without the attributes it may carry.
    pub fn string(&self, name: &str) -> Result<Option<String>> {
        self.note(name, Kind::Text);
        let Some(value) = self.value(name) else { return Ok(None) };
        if let Some(text) = self.digits(name, value) {
            return Ok(Some(text));
        }
        let bytes = value.as_bytes().ok_or_else(|| wrong_type(name, "string", value))?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => {
                let message = format!("Parameter {name:?} must be a string in UTF-8");
                Err(Failure::new(message).with("parameter", name))
            }
        }
    }

    /// A string that needs not be text: a key.
    pub fn bytes(&self, name: &str) -> Result<Option<Bytes>> {
        self.note(name, Kind::Text);
        let Some(value) = self.value(name) else { return Ok(None) };
        let bytes = value.as_bytes().ok_or_else(|| wrong_type(name, "string", value))?;
        Ok(Some(bytes.to_vec()))
    }

    /// A Boolean; absent means false.
    pub fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.boolean(name)?.unwrap_or(false))
    }

    /// A Boolean.
    pub fn boolean(&self, name: &str) -> Result<Option<bool>> {
        self.note(name, Kind::Boolean);
        self.convert(name, "boolean", Value::as_bool, |text| match text {
            "true" | "%true" | "1" => Some(true),
            "false" | "%false" | "0" => Some(false),
            _ => None,
        })
    }

    /// A number that is not negative.
    pub fn unsigned(&self, name: &str) -> Result<Option<u64>> {
        self.note(name, Kind::Count);
        self.convert(name, "non-negative integer", Value::as_u64, |text| text.parse().ok())
    }

    /// A count.
    pub fn count(&self, name: &str) -> Result<Option<usize>> {
        Ok(self.unsigned(name)?.map(|n| usize::try_from(n).unwrap_or(usize::MAX)))
    }

    /// Milliseconds.
    pub fn milliseconds(&self, name: &str) -> Result<Option<Span>> {
        self.note(name, Kind::Milliseconds);
        let limit = u64::MAX / 1000;
        Ok(self.unsigned(name)?.map(|ms| Span::from_millis(ms.min(limit))))
    }

    /// An instant.
    pub fn time(&self, name: &str) -> Result<Option<Time>> {
        self.note(name, Kind::Instant);
        let Some(text) = self.string(name)? else { return Ok(None) };
        let time = Time::parse(&text);
        time.map(Some).ok_or_else(|| {
            Failure::new(format!(
                "Parameter {name:?} must be a time like \"2026-01-02T03:04:05.678901Z\", found {text:?}"
            ))
            .with("parameter", name)
        })
    }

    /// A string with a meaning: an id, an enumeration.
    pub fn parsed<T: FromStr>(&self, name: &str) -> Result<Option<T>>
    where
        T::Err: std::fmt::Display,
    {
        self.note(name, Kind::Word);
        let Some(text) = self.string(name)? else { return Ok(None) };
        text.parse().map(Some).map_err(|e| {
            Failure::new(format!("Cannot parse parameter {name:?}: {e}")).with("parameter", name)
        })
    }

    /// A word of an enumeration, as it is written.
    pub fn name<T: FromStr + std::fmt::Display>(&self, name: &str) -> Result<Option<String>>
    where
        T::Err: std::fmt::Display,
    {
        Ok(self.parsed::<T>(name)?.map(|word| word.to_string()))
    }

    /// One of a few words: what is mistyped would find nothing, and seem to say that there is nothing.
    pub fn one_of(&self, name: &str, allowed: &[&str]) -> Result<Option<String>> {
        let Some(word) = self.string(name)? else { return Ok(None) };
        if allowed.contains(&word.as_str()) {
            return Ok(Some(word));
        }
        let allowed = allowed.join(", ");
        let message = format!("Parameter {name:?} must be one of {allowed}, found {word:?}");
        Err(Failure::new(message).with("parameter", name))
    }

    /// A path, with its attributes (http-api.md 5.4).
    pub fn path(&self, name: &str) -> Result<Option<YPath>> {
        self.note(name, Kind::Path);
        let Some(value) = self.value(name) else { return Ok(None) };
        let read = if self.is_from_query(name) {
            YPath::from_value(&attributes_of_path(value.clone()))
        } else {
            YPath::from_value(value)
        };
        read.map(Some).map_err(|e| {
            Failure::new(format!("Cannot parse parameter {name:?}: {e}")).with("parameter", name)
        })
    }

    /// A map.
    pub fn map(&self, name: &str) -> Result<Option<Map>> {
        self.note(name, Kind::Map);
        let Some(value) = self.value(name) else { return Ok(None) };
        value.as_map().cloned().map(Some).ok_or_else(|| wrong_type(name, "map", value))
    }

    /// A list of strings.
    pub fn strings(&self, name: &str) -> Result<Option<Vec<String>>> {
        self.note(name, Kind::Texts);
        let Some(value) = self.value(name) else { return Ok(None) };
        let expected = "list of strings";
        let list = value.as_list().ok_or_else(|| wrong_type(name, expected, value))?;
        let text = |v: &Value| v.as_str().map(str::to_owned).or_else(|| self.digits(name, v));
        let own = |v: &Value| text(v).ok_or_else(|| wrong_type(name, expected, v));
        list.iter().map(own).collect::<Result<_>>().map(Some)
    }

    /// Names of attributes: a list, or a map with the list under `keys`.
    pub fn attribute_names(&self) -> Result<Option<Vec<String>>> {
        match self.value("attributes").and_then(|v| v.get("keys")) {
            Some(keys) => {
                let map = Map::new().with("attributes", keys.clone());
                self.part_of("attributes", map).strings("attributes")
            }
            None => self.strings("attributes"),
        }
    }

    /// `operation_id` or `operation_alias`; an id that begins with `*` is taken as an alias.
    pub fn operation(&self) -> Result<Option<OperationRef>> {
        match (self.string("operation_id")?, self.string("operation_alias")?) {
            (Some(_), Some(_)) => Err(Failure::new(
                "Parameters \"operation_id\" and \"operation_alias\" exclude each other: give one",
            )),
            (Some(alias), None) if alias.starts_with('*') => Ok(Some(OperationRef::Alias(alias))),
            (Some(_), None) => Ok(self.parsed("operation_id")?.map(|id: OperationId| OperationRef::Id(id))),
            (None, alias) => Ok(alias.map(OperationRef::Alias)),
        }
    }

    /// [`Params::operation`], not absent.
    pub fn required_operation(&self) -> Result<OperationRef> {
        self.operation()?.ok_or_else(|| {
            Failure::new("Missing required parameter \"operation_id\" (or \"operation_alias\")")
                .with("parameter", "operation_id")
        })
    }

    /// `mutation_id`; the null id is none.
    pub fn mutation_id(&self) -> Result<Option<Guid>> {
        Ok(self.parsed("mutation_id")?.filter(|id: &Guid| !id.is_null()))
    }

    /// `transaction_id`; the null id is none.
    pub fn transaction(&self) -> Result<Option<ObjectId>> {
        Ok(self.parsed("transaction_id")?.filter(|id: &ObjectId| !id.0.is_null()))
    }

    /// The text of what was taken for an integer inside of brackets of the query string.
    fn digits(&self, name: &str, value: &Value) -> Option<String> {
        value.as_i64().filter(|_| self.is_from_query(name)).map(|number| number.to_string())
    }

    fn convert<T>(
        &self,
        name: &str,
        expected: &str,
        typed: impl FnOnce(&Value) -> Option<T>,
        text: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let converted = match value.as_str() {
            Some(string) if self.is_from_query(name) => text(string),
            _ => typed(value).or_else(|| text(&self.digits(name, value)?)),
        };
        converted.map(Some).ok_or_else(|| wrong_type(name, expected, value))
    }
}

/// Attributes of a path in the types that they have, if they are from the query string (http-api.md 5.4).
fn attributes_of_path(path: Value) -> Value {
    let (attributes, path) = path.split();
    let own = Params::from_query(attributes.clone());
    let typed = |(name, value): (Bytes, Value)| {
        let read = match std::str::from_utf8(&name) {
            Ok(name @ ("append" | "executable")) => own.boolean(name).map(|flag| flag.map(Value::from)),
            Ok(name @ "columns") => own.strings(name).map(|list| list.map(Value::from)),
            _ => Ok(None),
        };
        // What is wrong is refused by whoever knows what it is for.
        (name, read.ok().flatten().unwrap_or(value))
    };
    path.with_attributes(attributes.into_iter().map(typed).collect())
}

/// Makes a missing parameter an error.
pub fn required<T>(name: &str, value: Result<Option<T>>) -> Result<T> {
    value?.ok_or_else(|| Failure::new(format!("Missing required parameter {name:?}")).with("parameter", name))
}

fn wrong_type(name: &str, expected: &str, found: &Value) -> Failure {
    // Long values do not belong into a message.
    let shown = match found.bare() {
        Value::List(_) | Value::Map(_) => String::new(),
        Value::String(s) if s.len() > 100 => String::new(),
        scalar => format!(" {scalar:?}"),
    };
    let message = format!("Parameter {name:?} must be {expected}, found {}{shown}", found.type_name());
    Failure::new(message).with("parameter", name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(text: &str) -> Params {
        let value = yson::parse(text.as_bytes()).expect("good YSON");
        Params::new(value.as_map().expect("a map").clone())
    }

    #[test]
    fn types_are_strict_outside_the_query() {
        let p = params("{a=\"true\"; b=5u; c=-1; d=#; e=<x=1>\"text\"; f=2.0; g=[x; 1]}");
        assert!(
            p.flag("a").expect_err("a string").message.contains("must be boolean, found string \"true\"")
        );
        assert_eq!(p.unsigned("b"), Ok(Some(5)));
        assert!(p.unsigned("c").expect_err("negative").message.contains("found int64 -1"));
        assert_eq!(p.flag("d"), Ok(false));
        assert_eq!(p.string("e"), Ok(Some("text".to_owned())));
        assert!(p.unsigned("f").is_err());
        assert!(p.strings("g").is_err());
        let missing = required("nope", p.string("nope")).expect_err("absent");
        assert_eq!(missing.message, "Missing required parameter \"nope\"");
    }

    #[test]
    fn the_query_is_converted_until_something_later_wins() {
        let mut p = Params::from_query(yson::map! {"a" => "true", "b" => "17", "c" => "x"});
        assert_eq!(p.flag("a"), Ok(true));
        assert_eq!(p.unsigned("b"), Ok(Some(17)));
        assert!(p.unsigned("c").is_err());
        p.merge(yson::map! {"b" => "17"});
        assert!(p.unsigned("b").is_err(), "a string in YSON is a string");
    }

    #[test]
    fn brackets_of_the_query_are_converted_too() {
        let map = yson::map! {
            "list" => vec![Value::from("a"), 5i64.into()],
            "map" => yson::map! {"text" => 5i64, "flag" => 1i64, "count" => "7", "odd" => "x"},
        };
        let query = Params::from_query(map.clone());
        assert_eq!(query.strings("list"), Ok(Some(vec!["a".to_owned(), "5".to_owned()])));
        let inside = query.inside("map").expect("a map").expect("there");
        assert_eq!(inside.string("text"), Ok(Some("5".to_owned())));
        assert_eq!((inside.flag("flag"), inside.unsigned("count")), (Ok(true), Ok(Some(7))));
        assert!(inside.flag("odd").is_err());

        let path = yson::parse(b"<append=1; columns=[a; 5]; file_name=\"true\">\"//t\"").expect("good YSON");
        let attributes = |params: &Params| params.path("path").expect("a path").expect("there").attributes;
        let query = Params::from_query(yson::map! {"path" => path.clone()});
        let wanted =
            yson::parse(b"{append=%true; columns=[a; \"5\"]; file_name=\"true\"}").expect("good YSON");
        assert_eq!(Value::from(attributes(&query)), wanted);
        assert_eq!(Some(&attributes(&Params::new(yson::map! {"path" => path.clone()}))), path.attributes());

        let typed = Params::new(map);
        assert!(typed.strings("list").is_err());
        let inside = typed.inside("map").expect("a map").expect("there");
        assert!(
            inside.string("text").is_err()
                && inside.flag("flag").is_err()
                && inside.unsigned("count").is_err()
        );
    }

    #[test]
    fn operations_by_id_and_alias() {
        let id = "1-2-3-4".parse().map(OperationRef::Id).expect("an id");
        let alias = OperationRef::Alias("*x".to_owned());
        assert_eq!(params("{operation_id=\"1-2-3-4\"}").operation(), Ok(Some(id)));
        assert_eq!(params("{operation_id=\"*x\"}").operation(), Ok(Some(alias.clone())));
        assert_eq!(params("{operation_alias=\"*x\"}").operation(), Ok(Some(alias)));
        assert!(params("{operation_id=xyz}").operation().is_err());
        assert!(params("{operation_id=\"1-2-3-4\"; operation_alias=\"*x\"}").operation().is_err());
        assert_eq!(params("{mutation_id=\"0-0-0-0\"}").mutation_id(), Ok(None));
    }
}
