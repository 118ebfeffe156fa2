//! Attributes of pools and trees that are no options.

use super::ROOT;
use crate::Kernel;
use cypress::failures::{no_attribute, no_child, read_only_attribute};
use vocab::Failure;
use yson::{Map, Value};

impl Kernel {
    /// Sets one system attribute of a pool that is not an option. None: it is an option.
    pub(crate) fn set_pool_attribute(
        &mut self,
        tree: &str,
        pool: &str,
        name: &str,
        value: &Value,
    ) -> Option<Result<(), Failure>> {
        let text = || super::names::text(name, value);
        let parent = self.pools.pool(tree, pool)?.parent.clone();
        Some(match name {
            "name" => text().and_then(|new| self.relocate_pool(tree, pool, &parent, new).map(drop)),
            "parent_name" => text().and_then(|new| self.relocate_pool(tree, pool, new, pool).map(drop)),
            "acl" => cypress::Acl::given(value).map(|acl| {
                if let Some(object) = self.pools.pools.get_mut(&(tree.to_owned(), pool.to_owned())) {
                    object.acl = acl.to_value().as_list().unwrap_or_default().to_vec();
                }
                self.persist_pool(tree, pool);
            }),
            "inherit_acl" => match value.as_bool() {
                Some(inherit) => {
                    if let Some(object) = self.pools.pools.get_mut(&(tree.to_owned(), pool.to_owned())) {
                        object.inherit_acl = inherit;
                    }
                    self.persist_pool(tree, pool);
                    Ok(())
                }
                None => Err(Failure::new(format!(
                    "Attribute \"inherit_acl\": expected boolean, found {}",
                    value.type_name()
                ))),
            },
            name if is_read_only(name) => {
                Err(read_only_attribute(&self.pools.path(tree, pool), name.as_bytes()))
            }
            _ => return None,
        })
    }

    /// Could this attribute of a pool be set?
    pub(super) fn check_pool_attribute(&self, name: &str, value: &Value) -> Result<(), Failure> {
        match name {
            "acl" => cypress::Acl::given(value).map(drop),
            "inherit_acl" if value.as_bool().is_none() => Err(Failure::new(format!(
                "Attribute \"inherit_acl\": expected boolean, found {}",
                value.type_name()
            ))
            .with("attribute", "inherit_acl")),
            _ => Ok(()),
        }
    }

    /// All attributes of a pool: options that were set, and what every node has.
    pub(crate) fn pool_attributes(&self, tree: &str, pool: &str) -> Result<Map, Failure> {
        let object = self
            .pools
            .pool(tree, pool)
            .ok_or_else(|| no_child(&format!("//sys/pool_trees/{tree}"), pool.as_bytes()))?;
        let system = yson::map! {
            "id" => object.id,
            "type" => "scheduler_pool",
            "parent_id" => match object.parent.as_str() {
                ROOT => self.pools.trees.get(tree).map(|tree| tree.id),
                parent => self.pools.pool(tree, parent).map(|parent| parent.id),
            },
            "key" => pool,
            "name" => pool,
            "parent_name" => object.parent.as_str(),
            "pool_tree" => tree,
            "path" => self.pools.path(tree, pool),
            "creation_time" => object.creation_time,
            "acl" => object.acl.clone(),
            "inherit_acl" => object.inherit_acl,
            // Computed for who asks for it by name.
            "effective_acl" => Value::Entity,
            "count" => self.pools.children(tree, pool).count(),
            "opaque" => false,
        };
        Ok(self.pool_options(tree, pool)?.into_iter().chain(system).collect())
    }

    /// All attributes of a tree.
    pub(crate) fn tree_attributes(&self, tree: &str) -> Result<Map, Failure> {
        let object =
            self.pools.trees.get(tree).ok_or_else(|| no_child("//sys/pool_trees", tree.as_bytes()))?;
        Ok(yson::map! {
            "id" => object.id,
            "type" => "scheduler_pool_tree",
            "key" => tree,
            "name" => tree,
            "path" => format!("//sys/pool_trees/{}", yson::ypath::escape_literal(tree)),
            "creation_time" => object.creation_time,
            "effective_acl" => Value::Entity,
            "config" => object.config.clone(),
            "count" => self.pools.children(tree, ROOT).count(),
            "opaque" => false,
        })
    }
}

/// Is it told of every pool, and not to be set? Else it is an option, or an attribute without a meaning.
pub(super) fn is_read_only(name: &str) -> bool {
    match name {
        "acl" | "inherit_acl" => false,
        "id" | "key" | "path" | "type" | "pool_tree" | "count" => true,
        name => crate::mounts::is_common(name),
    }
}

/// An attribute that a pool does not have.
pub(crate) fn no_pool_attribute(path: &str, name: &str) -> Failure {
    no_attribute(path, name.as_bytes())
}
