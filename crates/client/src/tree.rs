//! Commands of the metadata tree (http-api.md 8.1).

use vocab::{ObjectId, Span};
use yson::{Map, Value, map};

use crate::{Client, ClientError};

/// What `create` does about what is or is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateFlags {
    /// Make missing parents.
    pub recursive: bool,
    /// A node of the same type that is there is fine.
    pub ignore_existing: bool,
    /// Replace what is there.
    pub force: bool,
}

impl Client {
    /// `get`, with these attributes on every node.
    pub fn get(&self, path: &str, attributes: &[&str]) -> Result<Value, ClientError> {
        self.command("get", reading(path, attributes), None)
    }

    /// `list`: names, each with these attributes.
    pub fn list(&self, path: &str, attributes: &[&str]) -> Result<Vec<Value>, ClientError> {
        match self.command("list", reading(path, attributes), None)?.into_bare() {
            Value::List(names) => Ok(names),
            other => Err(self.odd("list", "a list", &other)),
        }
    }

    /// `exists`.
    pub fn exists(&self, path: &str) -> Result<bool, ClientError> {
        let reply = self.command("exists", map! {"path" => path}, None)?;
        self.field(&reply, "exists", "value", Value::as_bool)
    }

    /// `set`.
    pub fn set(&self, path: &str, value: &Value, recursive: bool, force: bool) -> Result<(), ClientError> {
        let parameters = map! {"path" => path, "recursive" => recursive, "force" => force};
        self.command("set", parameters, Some(value)).map(drop)
    }

    /// `multiset_attributes`: all or none.
    pub fn set_attributes(&self, path: &str, attributes: Map) -> Result<(), ClientError> {
        let attributes = Value::Map(attributes);
        self.command("multiset_attributes", map! {"path" => path}, Some(&attributes)).map(drop)
    }

    /// `create` of a node with a path.
    pub fn create(
        &self,
        node_type: &str,
        path: &str,
        attributes: Map,
        flags: CreateFlags,
    ) -> Result<ObjectId, ClientError> {
        let parameters = map! {
            "type" => node_type, "path" => path, "attributes" => attributes, "recursive" => flags.recursive,
            "ignore_existing" => flags.ignore_existing, "force" => flags.force,
        };
        let reply = self.command("create", parameters, None)?;
        self.field(&reply, "create", "node_id", |v| v.as_str()?.parse().ok())
    }

    /// `create` of an object without a path: a pool, a pool tree, a user.
    pub fn create_object(
        &self,
        object_type: &str,
        attributes: Map,
        ignore_existing: bool,
    ) -> Result<ObjectId, ClientError> {
        let parameters = map! {
            "type" => object_type, "attributes" => attributes, "ignore_existing" => ignore_existing,
        };
        let reply = self.command("create", parameters, None)?;
        self.field(&reply, "create", "object_id", |v| v.as_str()?.parse().ok())
    }

    /// `remove`.
    pub fn remove(&self, path: &str, recursive: bool, force: bool) -> Result<(), ClientError> {
        let parameters = map! {"path" => path, "recursive" => recursive, "force" => force};
        self.command("remove", parameters, None).map(drop)
    }

    /// `get_current_user`: who the server thinks we are.
    pub fn current_user(&self) -> Result<String, ClientError> {
        let reply = self.command("get_current_user", Map::new(), None)?;
        self.field(&reply, "get_current_user", "user", |v| v.as_str().map(str::to_owned))
    }

    /// `gc_collect`: garbage that waits for a confirmation is removed. Returns the number of blobs.
    pub fn collect_garbage(&self) -> Result<u64, ClientError> {
        let reply = self.command("gc_collect", Map::new(), None)?;
        self.field(&reply, "gc_collect", "blob_count", Value::as_u64)
    }

    /// `extend_leases`: leases of exclusive work begin when this period is over. Returns the end of the period.
    pub fn extend_leases(&self, period: Span) -> Result<String, ClientError> {
        let parameters = map! {"period" => period.as_millis() as i64};
        let reply = self.command("extend_leases", parameters, None)?;
        self.field(&reply, "extend_leases", "until", |v| v.as_str().map(str::to_owned))
    }

    /// `remove_node`: a node that is not connected is forgotten; with `lost` its exclusive units are given away at once.
    /// Returns the number of these units.
    pub fn remove_node(&self, address: &str, lost: bool) -> Result<u64, ClientError> {
        let reply = self.command("remove_node", map! {"address" => address, "lost" => lost}, None)?;
        self.field(&reply, "remove_node", "unit_count", Value::as_u64)
    }

    /// A field of a reply that must be there.
    pub(crate) fn field<T>(
        &self,
        reply: &Value,
        command: &str,
        name: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Result<T, ClientError> {
        reply.get(name).and_then(read).ok_or_else(|| self.odd(command, &format!("{{{name}=...}}"), reply))
    }

    /// A reply of a wrong shape.
    pub(crate) fn odd(&self, command: &str, expected: &str, reply: &Value) -> ClientError {
        let found: String = format!("{reply:?}").chars().take(200).collect();
        let problem = format!("command \"{command}\" should reply with {expected}, got {found}");
        ClientError::Protocol { address: self.address().to_owned(), problem }
    }
}

fn reading(path: &str, attributes: &[&str]) -> Map {
    let attributes = (!attributes.is_empty()).then(|| attributes.to_vec());
    map! {"path" => path, "return_only_value" => true}.with_some("attributes", attributes)
}
