//! Reading JSON with errors that name the place.
//!
//! A [`Node`] is a value together with the way to it; the way is a list on the stack, so that reading
//! a hundred thousand elements builds no paths, and an error still has one.

mod amounts;
mod place;

pub(crate) use amounts::{configured, limits, ratio, resources, seconds, share, volume};

use crate::Refusal;
use std::ops::RangeInclusive;
use yson::{JsonFormat, Map, Value};

/// One JSON value that is the whole line.
pub(crate) fn parse(line: &[u8]) -> Result<Value, Refusal> {
    // Infinities are read in order to be refused where they stand; JSON writers do produce them.
    let format = JsonFormat { support_infinity: true, ..JsonFormat::utf8() };
    let value = yson::json::from_json(line, &format).map_err(|e| Refusal {
        pointer: place::pointer_at(line, e.offset),
        message: format!("expected {}, found {} in column {}", e.expected, e.found, e.offset + 1),
    })?;
    match place::repeated_key(line) {
        None => Ok(value),
        // Which of them is meant is not ours to guess.
        Some((offset, name)) => Err(Refusal {
            pointer: place::pointer_at(line, offset),
            message: format!("expected each key once, found {name:?} a second time in column {}", offset + 1),
        }),
    }
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

/// A value and the way to it.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    pub(crate) value: &'a Value,
    above: Option<&'a Node<'a>>,
    step: Step<'a>,
}

/// A node that is an object, with known keys only.
pub(crate) struct Object<'a> {
    node: Node<'a>,
    map: &'a Map,
}

impl<'a> Node<'a> {
    pub(crate) fn root(value: &'a Value) -> Node<'a> {
        Node { value, above: None, step: Step::Root }
    }

    fn pointer(&self) -> String {
        let mut above = self.above.map(Node::pointer).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Key(key) => {
                above.push('/');
                above.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            Step::Index(index) => above.push_str(&format!("/{index}")),
        }
        above
    }

    /// "expected ..., found the value".
    #[cold]
    pub(crate) fn expected(&self, allowed: &str) -> Refusal {
        self.refuse(format!("expected {allowed}, found {}", shown(self.value)))
    }

    #[cold]
    pub(crate) fn refuse(&self, message: String) -> Refusal {
        Refusal { pointer: self.pointer(), message }
    }

    /// An object in which nothing stands but keys of the list.
    pub(crate) fn object(&'a self, known: &[&str]) -> Result<Object<'a>, Refusal> {
        let object = self.any_object()?;
        for (key, value) in object.map.iter() {
            if !known.iter().any(|k| k.as_bytes() == key) {
                let key = String::from_utf8_lossy(key);
                return Err(Node { value, above: Some(self), step: Step::Key(&key) }
                    .refuse(format!("unknown key, known are {}", known.join(", "))));
            }
        }
        Ok(object)
    }

    /// An object whose keys are names of the user's.
    pub(crate) fn any_object(&'a self) -> Result<Object<'a>, Refusal> {
        if self.value.attributes().is_some() {
            return Err(self.refuse("unknown key \"$attributes\"".to_owned()));
        }
        let map = self.value.as_map().ok_or_else(|| self.expected("an object"))?;
        Ok(Object { node: *self, map })
    }

    pub(crate) fn list(&'a self) -> Result<impl ExactSizeIterator<Item = Node<'a>>, Refusal> {
        let list = self.value.as_list().ok_or_else(|| self.expected("a list"))?;
        let above = Some(self);
        Ok(list.iter().enumerate().map(move |(i, value)| Node { value, above, step: Step::Index(i) }))
    }

    pub(crate) fn text(&self) -> Result<&'a str, Refusal> {
        self.value.as_str().ok_or_else(|| self.expected("a string"))
    }

    pub(crate) fn flag(&self) -> Result<bool, Refusal> {
        self.value.as_bool().ok_or_else(|| self.expected("true or false"))
    }

    /// One of the names.
    pub(crate) fn choice<T: Copy>(&self, names: &[(&str, T)]) -> Result<T, Refusal> {
        let text = self.value.as_str();
        names.iter().find(|(name, _)| Some(*name) == text).map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<String> = names.iter().map(|(name, _)| format!("\"{name}\"")).collect();
            self.expected(&names.join(" or "))
        })
    }

    /// A number in a range; `allowed` says it in words.
    pub(crate) fn number(&self, range: RangeInclusive<f64>, allowed: &str) -> Result<f64, Refusal> {
        self.value.as_f64().filter(|x| range.contains(x)).ok_or_else(|| self.expected(allowed))
    }
}

impl<'a> Object<'a> {
    /// The value of a key; null is as good as none.
    pub(crate) fn get<'b>(&'b self, key: &'b str) -> Option<Node<'b>> {
        let value = self.map.get(key).filter(|v| !v.is_entity())?;
        Some(Node { value, above: Some(&self.node), step: Step::Key(key) })
    }

    /// The place of a key, whatever is there: for errors.
    pub(crate) fn at<'b>(&'b self, key: &'b str) -> Node<'b> {
        static NOTHING: Value = Value::Entity;
        let value = self.map.get(key).unwrap_or(&NOTHING);
        Node { value, above: Some(&self.node), step: Step::Key(key) }
    }

    pub(crate) fn required<'b>(&'b self, key: &'b str, allowed: &str) -> Result<Node<'b>, Refusal> {
        self.get(key).ok_or_else(|| self.at(key).refuse(format!("required, expected {allowed}")))
    }

    /// All keys, each of which is text, as the line is.
    pub(crate) fn entries<'b>(&'b self) -> impl Iterator<Item = (&'b str, Node<'b>)> {
        self.map.iter().map(|(key, value)| {
            let key = std::str::from_utf8(key).unwrap_or_default();
            (key, Node { value, above: Some(&self.node), step: Step::Key(key) })
        })
    }

    /// Reads a key if it is there.
    pub(crate) fn optional<'b, T>(
        &'b self,
        key: &'b str,
        read: impl FnOnce(Node<'b>) -> Result<T, Refusal>,
    ) -> Result<Option<T>, Refusal> {
        self.get(key).map(read).transpose()
    }

    /// Is a value there, null too?
    pub(crate) fn contains(&self, key: &str) -> bool {
        self.map.contains(key)
    }

    /// The object as a value again.
    pub(crate) fn as_node(&self) -> Node<'a> {
        self.node
    }

    pub(crate) fn flag_or(&self, key: &str, default: bool) -> Result<bool, Refusal> {
        Ok(self.optional(key, |n| n.flag())?.unwrap_or(default))
    }
}

/// A value in an error: scalars as they are (cut when long), containers by type.
pub(crate) fn shown(value: &Value) -> String {
    const LIMIT: usize = 60;
    match value {
        Value::Entity => "null".to_owned(),
        Value::List(_) => "a list".to_owned(),
        Value::Map(_) => "an object".to_owned(),
        // Written out or too large for a double: the difference is gone by now.
        Value::Double(d) if d.is_infinite() => "an infinite number".to_owned(),
        scalar => {
            let json = yson::json::to_json(scalar, &JsonFormat::utf8());
            let text = String::from_utf8_lossy(&json);
            match text.char_indices().nth(LIMIT) {
                Some((end, _)) => format!("{}...", &text[..end]),
                None => text.into_owned(),
            }
        }
    }
}
