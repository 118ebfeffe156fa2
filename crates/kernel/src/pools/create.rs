//! `create` of pools and pool trees.

use super::attributes::is_read_only;
use super::names::{canonical_config, canonical_names, text};
use super::options::of_pool;
use super::{PoolObject, ROOT, TreeObject};
use crate::Kernel;
use cypress::failures::{already_exists, no_child, read_only_attribute};
use scheduler::PoolDesc;
use vocab::{Failure, ObjectId, Time, object_type};
use yson::{Map, Value};

/// What a pool of the tree is created from.
struct NewPool {
    tree: String,
    name: String,
    parent: String,
    options: Map,
    acl: Vec<Value>,
    inherit_acl: bool,
}

impl Kernel {
    /// `create scheduler_pool`.
    pub(crate) fn create_pool(
        &mut self,
        now: Time,
        attributes: Map,
        ignore_existing: bool,
    ) -> Result<ObjectId, Failure> {
        let new = self.read_new_pool(attributes)?;
        if let Some(existing) = self.pools.pool(&new.tree, &new.name) {
            if ignore_existing && existing.parent == new.parent {
                return Ok(existing.id);
            }
            return Err(
                already_exists(&self.pools.path(&new.tree, &new.name)).with("pool_name", new.name.as_str())
            );
        }
        let id = ObjectId(self.ids.next(object_type::SCHEDULER_POOL));
        let desc = PoolDesc { id, name: new.name.clone(), parent: new.parent.clone(), options: new.options };
        self.scheduler.create_pool(&new.tree, &desc).map_err(|f| of_pool(f, &new.tree, &new.name))?;
        let order = self.pools.next_order;
        let object = PoolObject {
            id,
            parent: new.parent,
            creation_time: now,
            order,
            acl: new.acl,
            inherit_acl: new.inherit_acl,
        };
        self.pools.put_pool(&new.tree, &new.name, object);
        self.persist_pool(&new.tree, &new.name);
        self.volume_taken_over(now, &new.tree, &new.name);
        self.pools_changed();
        Ok(id)
    }

    /// What is left of the attributes of a new pool for its options.
    pub(crate) fn options_of_new_pool(&self, attributes: Map) -> Result<Map, Failure> {
        self.read_new_pool(attributes).map(|new| new.options)
    }

    fn read_new_pool(&self, attributes: Map) -> Result<NewPool, Failure> {
        let mut attributes = canonical_names(attributes)?;
        let mut take = |key: &str| -> Result<Option<String>, Failure> {
            attributes.remove(key).map(|value| text(key, &value).map(str::to_owned)).transpose()
        };
        let missing = |key: &str| {
            Failure::new(format!("Attribute \"{key}\" is required to create a scheduler_pool"))
                .with("attribute", key)
        };
        let name = take("name")?.ok_or_else(|| missing("name"))?;
        let tree = take("pool_tree")?.ok_or_else(|| missing("pool_tree"))?;
        let parent = take("parent_name")?.unwrap_or_else(|| ROOT.to_owned());
        if !self.pools.trees.contains_key(&tree) {
            return Err(no_child("//sys/pool_trees", tree.as_bytes()).with("pool_tree", tree));
        }
        if parent != ROOT && self.pools.pool(&tree, &parent).is_none() {
            let message =
                format!("No such pool \"{parent}\" in tree \"{tree}\" to be the parent of \"{name}\"");
            return Err(Failure::resolve(message).with("pool_name", name).with("parent_name", parent));
        }
        let acl = match attributes.remove("acl") {
            Some(value) => cypress::Acl::given(&value)?.to_value().as_list().unwrap_or_default().to_vec(),
            None => Vec::new(),
        };
        if let Some(read_only) = attributes.key_strings().find(|name| is_read_only(name)) {
            return Err(read_only_attribute(&self.pools.path(&tree, &name), read_only.as_bytes()));
        }
        let inherit_acl = match attributes.remove("inherit_acl") {
            Some(value) => {
                self.check_pool_attribute("inherit_acl", &value)?;
                value.as_bool().unwrap_or(true)
            }
            None => true,
        };
        Ok(NewPool { tree, name, parent, options: attributes, acl, inherit_acl })
    }

    /// `create scheduler_pool_tree`.
    pub(crate) fn create_pool_tree(
        &mut self,
        now: Time,
        mut attributes: Map,
        ignore_existing: bool,
    ) -> Result<ObjectId, Failure> {
        let name =
            attributes.remove("name").and_then(|v| v.as_str().map(str::to_owned)).ok_or_else(|| {
                Failure::new("Attribute \"name\" (string) is required to create a scheduler_pool_tree")
                    .with("attribute", "name")
            })?;
        if let Some(existing) = self.pools.trees.get(&name) {
            if ignore_existing {
                return Ok(existing.id);
            }
            return Err(already_exists(&format!("//sys/pool_trees/{name}")));
        }
        let config = match attributes.remove("config") {
            Some(value) => value.as_map().cloned().ok_or_else(|| {
                Failure::new(format!(
                    "Attribute \"config\" of a pool tree: expected map, found {}",
                    value.type_name()
                ))
            })?,
            None => Map::new(),
        };
        let config = canonical_config(config)?;
        if let Some(other) = attributes.key_strings().next() {
            return Err(Failure::new(format!(
                "Unknown attribute \"{other}\" of a pool tree: options belong into \"config\""
            ))
            .with("attribute", other));
        }
        self.scheduler.create_tree(&name, &config)?;
        self.note_trees();
        let id = ObjectId(self.ids.next(object_type::SCHEDULER_POOL_TREE));
        self.put_tree(&name, TreeObject { id, config, creation_time: now });
        self.persist_tree(&name);
        self.pools_changed();
        Ok(id)
    }

    pub(super) fn put_tree(&mut self, name: &str, tree: TreeObject) {
        self.pools.by_id.insert(tree.id, (name.to_owned(), None));
        self.pools.trees.insert(name.to_owned(), tree);
    }
}
