//! What every node has (http-api.md 6.3), for things that are shown as nodes and are none: tools ask it of whatever they
//! list (`yt list -l`).

use super::Mounted;
use crate::Kernel;
use cypress::attributes::COMMON;
use vocab::{ObjectId, Time};
use yson::{Map, Value};

/// As the node that the mount is attached to has it. Revisions are those of all that is below it.
const OF_THE_MOUNT: &[&str] = &[
    "account",
    "owner",
    "effective_acl",
    "resource_usage",
    "recursive_resource_usage",
    "revision",
    "attribute_revision",
    "content_revision",
];

/// Whoever shows such a thing has them already, or it has none.
const NOT_HERE: &[&str] = &["id", "type", "expiration_time", "expiration_timeout"];

/// Among all attributes they are `#`, like those of ordinary nodes.
const EXPENSIVE: &[&str] =
    &["effective_acl", "resource_usage", "recursive_resource_usage", "locks", "user_attributes"];

/// Is it one of these?
pub(crate) fn is_common(name: &str) -> bool {
    names_of_all().any(|known| known == name)
}

/// Names of all of these.
pub(super) fn names_of_all() -> impl Iterator<Item = &'static str> {
    COMMON.iter().filter(|name| !NOT_HERE.contains(name)).copied()
}

impl Kernel {
    /// Of a thing right below a mount that exists since then: those that are wanted, or all of them.
    pub(super) fn common_attributes(&self, mount: ObjectId, since: Time, wanted: &[String]) -> Map {
        let is_wanted = |name: &&str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
        let value = |name: &'static str| -> Option<Value> {
            if wanted.is_empty() && EXPENSIVE.contains(&name) {
                return Some(Value::Entity);
            }
            Some(match name {
                "parent_id" => mount.into(),
                // Nothing keeps the time of the last change of such a thing: it is as old as the thing.
                "creation_time" | "modification_time" | "access_time" => since.into(),
                "acl" => Vec::<Value>::new().into(),
                "inherit_acl" => true.into(),
                "builtin" | "opaque" => false.into(),
                "ref_counter" => 1i64.into(),
                // Nobody can lock such a thing or give it attributes without a meaning. Whoever keeps some says so.
                "lock_count" => 0i64.into(),
                "lock_mode" => "none".into(),
                "locks" | "user_attribute_keys" => Vec::<Value>::new().into(),
                "user_attributes" => Map::new().into(),
                name if OF_THE_MOUNT.contains(&name) => self.tree.attribute(mount, name.as_bytes())?,
                _ => return None,
            })
        };
        names_of_all().filter(is_wanted).filter_map(|name| Some((name, value(name)?))).collect()
    }

    /// The same with its place and name.
    pub(super) fn common_attributes_of(
        &self,
        at: &Mounted,
        key: &str,
        since: Time,
        wanted: &[String],
    ) -> Map {
        let path = format!("{}/{}", self.tree.path(at.node), yson::ypath::escape_literal(key));
        self.common_attributes(at.node, since, wanted)
            .into_iter()
            .chain(yson::map! { "key" => key, "path" => path })
            .collect()
    }
}
