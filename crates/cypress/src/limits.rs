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
    /// Bytes of one attribute's value, of all attributes of users of one node, or of a document, roughly as binary YSON
    /// (504).
    pub max_attribute_size: usize,
    /// Levels of lists, maps and attributes in one attribute's value or in a document (1). With the levels of
    /// nodes above it a reply stays below the 256 levels that a parser of YSON bears.
    pub max_value_depth: usize,
    /// Levels of nodes; keeps recursive work and the depth of replies bounded (1).
    pub max_depth: usize,
    /// Values in one attribute's value, in all attributes of users of one node, or in a document: scalars, lists, maps, and what is in them (1).
    pub max_value_count: usize,
    /// Nodes that one command makes, changes and removes (1). A subtree of more nodes is removed in slices.
    pub max_nodes_per_request: usize,
    /// Bytes in memory of the nodes that one command copies, or removes at once (1): values, attributes, lists, 64 of each
    /// chunk. One node by itself may have more. A subtree of more bytes is removed in slices.
    pub max_bytes_per_request: i64,
    /// Nodes that one transaction changes (1), and nodes that it has locks on (1).
    pub max_nodes_per_transaction: usize,
    /// Values that one `get` or `list` shows: one for each node, for each of its attributes and each value in them, and
    /// for each kilobyte of their strings and keys (1). A document or an attribute by itself is shown whatever its size.
    pub max_values_per_read: usize,
    /// Attributes of users of one node (1).
    pub max_attribute_count: usize,
    /// Entries of one access control list (1).
    pub max_acl_entries: usize,
    /// Subjects, permissions and columns of all entries of one access control list (1).
    pub max_acl_names: usize,
    /// Nodes of an account that does not say how many it may have (902).
    pub account_node_count: i64,
    /// Bytes of files and tables of an account that does not say how many it may have (902).
    pub account_disk_space: i64,
    /// Bytes of values and attributes of an account that does not say how many it may have (902).
    pub account_memory: i64,
    /// Transactions of one user at a time (1).
    pub max_transactions_per_user: usize,
    /// Locks of the transactions of one user, taken or waited for (1).
    pub max_locks_per_user: usize,
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
            max_value_count: 100_000,
            max_nodes_per_request: 2_000,
            max_bytes_per_request: 32 << 20,
            max_nodes_per_transaction: 2_000,
            max_values_per_read: 50_000,
            max_attribute_count: 1000,
            max_acl_entries: 1000,
            max_acl_names: 10_000,
            account_node_count: 500_000,
            account_disk_space: 1 << 40,
            account_memory: 1 << 30,
            max_transactions_per_user: 5_000,
            max_locks_per_user: 10_000,
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

    /// Number of attributes of users that a node is about to have.
    pub fn check_attribute_count(&self, count: usize, path: impl FnOnce() -> String) -> Result<(), Failure> {
        let what = || format!("Number of attributes of {}", path());
        check(count, self.max_attribute_count, code::GENERIC, what)
    }

    /// Values and bytes that all attributes of users of one node are about to have together.
    pub fn check_attributes(
        &self,
        values: usize,
        bytes: usize,
        path: impl Fn() -> String,
    ) -> Result<(), Failure> {
        let what = || format!("Number of values in all attributes of {}", path());
        check(values, self.max_value_count, code::GENERIC, what)?;
        let what = || format!("Size of all attributes of {}", path());
        check(bytes, self.max_attribute_size, code::MAX_ATTRIBUTE_SIZE, what)
    }

    /// An access control list in its public form, before any of it is read. What is no list of maps is refused elsewhere.
    pub fn check_acl(&self, acl: &Value) -> Result<(), Failure> {
        let entries = acl.as_list().unwrap_or_default();
        let what = || "Number of entries of the access control list".to_owned();
        check(entries.len(), self.max_acl_entries, code::GENERIC, what)?;
        let words =
            |entry: &Value, name: &str| entry.get(name).and_then(Value::as_list).map_or(0, <[Value]>::len);
        let of = |entry: &Value| {
            ["subjects", "permissions", "columns"].iter().map(|n| words(entry, n)).sum::<usize>()
        };
        let what = || "Number of subjects, permissions and columns in the access control list".to_owned();
        check(entries.iter().map(of).sum(), self.max_acl_names, code::GENERIC, what)
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
        let mut left = self.max_value_count;
        if !fits(value, &mut left) {
            let limit = self.max_value_count;
            let message = format!("{} has more than {limit} values, which is the limit", what());
            return Err(Failure::new(message).with("limit", limit));
        }
        check(size(value), self.max_attribute_size, code::MAX_ATTRIBUTE_SIZE, || {
            format!("Size of {}", what())
        })
    }

    /// Number of nodes that a command is about to have changed.
    pub fn check_request(&self, count: usize) -> Result<(), Failure> {
        if count <= self.max_nodes_per_request {
            return Ok(());
        }
        let limit = self.max_nodes_per_request;
        let message = format!(
            "The request changes more than {limit} nodes, which is the limit (max_nodes_per_request): do it in parts"
        );
        Err(Failure::new(message).with("limit", limit).with("option", "max_nodes_per_request"))
    }

    /// Number of values that a question is about to be answered with.
    pub fn check_read(&self, count: usize, path: impl FnOnce() -> String) -> Result<(), Failure> {
        if count <= self.max_values_per_read {
            return Ok(());
        }
        let (limit, path) = (self.max_values_per_read, path());
        let message = format!(
            "{path} has more than {limit} nodes and attributes to show, which is the limit (max_values_per_read): ask for parts \
             of it, for fewer attributes, or give \"max_size\""
        );
        Err(Failure::new(message)
            .with("path", path)
            .with("limit", limit)
            .with("option", "max_values_per_read"))
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

/// Values in a value: itself, and what is in it.
pub(crate) fn count_values(value: &Value) -> usize {
    let mut left = usize::MAX;
    fits(value, &mut left);
    usize::MAX - left
}

/// Takes the values of one from what is left; false if there are more.
fn fits(value: &Value, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else { return false };
    *left = rest;
    let all = |map: &yson::Map, left: &mut usize| map.iter().all(|(_, value)| fits(value, left));
    match value {
        Value::List(items) => items.iter().all(|item| fits(item, left)),
        Value::Map(map) => all(map, left),
        Value::Attributed(both) => all(&both.0, left) && fits(&both.1, left),
        _ => true,
    }
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
