//! Settings of pools and trees.

use super::attributes::is_read_only;
use super::names::{canonical_config, canonical_names};
use super::records::DEFAULT_TREE_KEY;
use crate::{Effect, Kernel};
use cypress::failures::{no_child, read_only_attribute};
use cypress::{Context, Last, Resolved};
use vocab::batch::Table;
use vocab::{AbortReason, Failure, Time};
use yson::Map;
use yson::ypath::YPath;

impl Kernel {
    /// Sets all options of a pool; names are canonical.
    pub(crate) fn set_pool_options(&mut self, tree: &str, pool: &str, options: Map) -> Result<(), Failure> {
        self.scheduler.set_pool_options(tree, pool, &options).map_err(|f| of_pool(f, tree, pool))?;
        self.persist_pool(tree, pool);
        self.pools_changed();
        Ok(())
    }

    /// Options and custom attributes that were set.
    pub(crate) fn pool_options(&self, tree: &str, pool: &str) -> Result<Map, Failure> {
        let (specified, custom) = self.scheduler.pool_options(tree, pool)?;
        Ok(specified.clone().into_iter().chain(custom.clone()).collect())
    }

    /// Replaces the whole configuration of a tree.
    pub(crate) fn set_tree_config(
        &mut self,
        now: Time,
        name: &str,
        config: Map,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let config = canonical_config(config)?;
        let lost = self.scheduler.set_tree_config(name, &config)?;
        self.abort_allocations(now, &lost, AbortReason::NodeFairShareTreeChanged, out);
        self.note_trees();
        if let Some(tree) = self.pools.trees.get_mut(name) {
            tree.config = config;
        }
        self.persist_tree(name);
        self.pools_changed();
        Ok(())
    }

    /// The tree of operations that name none, and that `//sys/pools` leads to.
    pub(crate) fn set_default_tree(
        &mut self,
        now: Time,
        name: &str,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        if !self.pools.trees.contains_key(name) {
            return Err(no_child("//sys/pool_trees", name.as_bytes()));
        }
        // The system's own link, whatever transactions do; who has put something else there keeps it.
        let sys = YPath::root().child("sys");
        let target = sys.clone().child("pool_trees").child(name);
        if let Ok(Resolved::Local(place)) = self.tree.resolve(&sys.child("pools"), Last::Stay)
            && place.rest.is_empty()
        {
            let context = Context { now, user: "root", ids: &mut self.ids };
            let done = self.tree.overrule(context, |edit| edit.lead_elsewhere(place.node, &target))?;
            self.absorb(done, out);
        }
        self.keep_default_tree(name);
        Ok(())
    }

    pub(super) fn keep_default_tree(&mut self, name: &str) {
        self.pools.default_tree = name.to_owned();
        self.open.batch.put(Table::Meta, DEFAULT_TREE_KEY, name.as_bytes());
        self.pools_changed();
    }

    /// Sets some attributes of a pool, all or none: options, custom ones, and its access list.
    pub(crate) fn multiset_pool(&mut self, tree: &str, pool: &str, attributes: Map) -> Result<(), Failure> {
        let mut options = self.pool_options(tree, pool)?;
        let mut access = Vec::new();
        for (name, value) in canonical_names(attributes)? {
            let text = String::from_utf8_lossy(&name).into_owned();
            match text.as_str() {
                "acl" | "inherit_acl" => {
                    self.check_pool_attribute(&text, &value)?;
                    access.push((text, value));
                }
                "name" | "parent_name" => {
                    return Err(Failure::new(format!(
                        "Attribute \"{text}\" of a pool is set by itself: it moves the pool"
                    ))
                    .with("attribute", text));
                }
                read_only if is_read_only(read_only) => {
                    return Err(read_only_attribute(&self.pools.path(tree, pool), &name));
                }
                _ => drop(options.insert_owned(name, value)),
            }
        }
        self.set_pool_options(tree, pool, options)?;
        for (name, value) in access {
            self.set_pool_attribute(tree, pool, &name, &value).unwrap_or(Ok(()))?;
        }
        Ok(())
    }
}

/// A refusal says which pool it is about.
pub(super) fn of_pool(failure: Failure, tree: &str, pool: &str) -> Failure {
    let failure = match failure.attributes.contains("pool_name") {
        true => failure,
        false => failure.with("pool_name", pool),
    };
    failure.with("pool_tree", tree)
}
