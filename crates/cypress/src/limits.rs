//! How big things may be (http-api.md 3.2, codes 502..505).

use vocab::{Failure, code};
use yson::Value;

/// Limits of a tree; a violated one names itself in the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a key of a map node or of an attribute's name (505).
    pub max_key_length: usize,
    /// Children of one node (502).
    pub max_child_count: usize,
    /// Bytes of a string node (503).
    pub max_string_length: usize,
    /// Bytes of one attribute's value or of a document, roughly as binary YSON (504).
    pub max_attribute_size: usize,
    /// Levels of lists, maps and attributes in one attribute's value or in a document (1). With the levels of
    /// nodes above it a reply stays below the 256 levels that a parser of YSON bears.
    pub max_value_depth: usize,
    /// Levels of nodes; keeps recursive work and the depth of replies bounded (1).
    pub max_depth: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            max_key_length: 4096,
            max_child_count: 50_000,
            max_string_length: 65_536,
            max_attribute_size: 16 << 20,
            max_value_depth: 128,
            max_depth: 64,
        }
    }
}

impl Limits {
    /// A key of a map node or an attribute's name.
    pub fn check_key(&self, key: &[u8], what: &str) -> Result<(), Failure> {
        if key.is_empty() {
            return Err(Failure::new(format!("{what} must not be empty")));
        }
        check(key.len(), self.max_key_length, code::MAX_KEY_LENGTH, || format!("Length of {what}"))
    }

    /// Number of children that a node is about to have.
    pub fn check_child_count(&self, count: usize, path: impl FnOnce() -> String) -> Result<(), Failure> {
        let what = || format!("Number of children of {}", path());
        check(count, self.max_child_count, code::MAX_CHILD_COUNT, what)
    }

    /// Content of a string node.
    pub fn check_string(&self, length: usize, path: impl FnOnce() -> String) -> Result<(), Failure> {
        let what = || format!("String length of {}", path());
        check(length, self.max_string_length, code::MAX_STRING_LENGTH, what)
    }

    /// Value of an attribute or content of a document.
    pub fn check_value(&self, value: &Value, what: impl FnOnce() -> String) -> Result<(), Failure> {
        let nesting = value.nesting();
        if nesting > self.max_value_depth {
            return check(nesting, self.max_value_depth, code::GENERIC, || format!("Nesting of {}", what()));
        }
        check(size(value), self.max_attribute_size, code::MAX_ATTRIBUTE_SIZE, || {
            format!("Size of {}", what())
        })
    }

    /// Level of a node that is about to be made; the root is level 0.
    pub fn check_depth(&self, depth: usize, parent: impl FnOnce() -> String) -> Result<(), Failure> {
        check(depth, self.max_depth, code::GENERIC, || format!("Depth of a node in {}", parent()))
    }
}

fn check(found: usize, limit: usize, code: i64, what: impl FnOnce() -> String) -> Result<(), Failure> {
    if found <= limit {
        return Ok(());
    }
    let message = format!("{} is {found}, more than the limit of {limit}", what());
    Err(Failure::coded(code, message).with("limit", limit).with("found", found))
}

/// Bytes of a value, about as many as its binary form has.
pub fn size(value: &Value) -> usize {
    let map = |m: &yson::Map| m.iter().map(|(k, v)| k.len() + 4 + size(v)).sum::<usize>();
    match value {
        Value::Entity | Value::Bool(_) => 1,
        Value::Int(_) | Value::Uint(_) => 5,
        Value::Double(_) => 9,
        Value::String(s) => s.len() + 2,
        Value::List(l) => 2 + l.iter().map(|v| 1 + size(v)).sum::<usize>(),
        Value::Map(m) => 2 + map(m),
        Value::Attributed(b) => 2 + map(&b.0) + size(&b.1),
    }
}
