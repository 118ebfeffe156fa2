//! What every node has (http-api.md 6.3), for things that are shown as nodes and are none: tools ask it of whatever they
//! list (`yt list -l`).

use super::Mounted;
use crate::Kernel;
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

/// Nothing keeps the time of the last change of such a thing: it is as old as the thing.
const TIMES: &[&str] = &["creation_time", "modification_time", "access_time"];

/// Nobody can lock such a thing or give it attributes without a meaning. Whoever keeps some says so.
fn constants() -> Map {
    yson::map! {
        "acl" => Vec::<Value>::new(),
        "inherit_acl" => true,
        "builtin" => false,
        "opaque" => false,
        "ref_counter" => 1i64,
        "lock_count" => 0i64,
        "lock_mode" => "none",
        "locks" => Vec::<Value>::new(),
        "user_attribute_keys" => Vec::<Value>::new(),
        "user_attributes" => Map::new(),
    }
}

/// Is it one of these?
pub(crate) fn is_common(name: &str) -> bool {
    OF_THE_MOUNT.contains(&name)
        || TIMES.contains(&name)
        || name == "parent_id"
        || constants().contains(name.as_bytes())
}

impl Kernel {
    /// Of a thing right below a mount that exists since then. What is expensive is `#`, except for who asks by name.
    pub(super) fn common_attributes(&self, mount: ObjectId, since: Time, wanted: &[String]) -> Map {
        let times = TIMES.iter().map(|name| (*name, Value::from(since))).collect::<Map>();
        let of_mount: Vec<String> = OF_THE_MOUNT.iter().map(|name| (*name).to_owned()).collect();
        let inherited = match wanted {
            [] => crate::tree::only(self.tree.attributes(mount, &[]), &of_mount),
            _ => of_mount
                .into_iter()
                .filter(|name| wanted.contains(name))
                .filter_map(|name| Some((name.clone(), self.tree.attribute(mount, name.as_bytes())?)))
                .collect(),
        };
        let parent = yson::map! { "parent_id" => mount };
        [constants(), times, parent, inherited].into_iter().flatten().collect()
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
