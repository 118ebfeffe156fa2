//! `//sys/pool_trees/<tree>/<pool>/<subpool>`: pools as nodes (http-api.md 8.8).

use super::{POOL_TREES, attribute_value, cut, dressed, missing, names};
use crate::pools::{
    ROOT, canonical_list, canonical_name, canonical_option_steps, canonical_steps, no_pool_attribute,
};
use crate::{Effect, Kernel};
use cypress::failures::no_child;
use cypress::walk::{value_remove, value_set};
use cypress::{GetOptions, Mounted};
use vocab::{Failure, Time};
use yson::ypath::Step;
use yson::{Map, Value};

/// Who may do what in all, own entries and those from above: long where teams are many.
const EFFECTIVE_ACL: &str = "effective_acl";

/// A tree and a pool in it, as far as there are any.
type Place = (Option<String>, Option<String>);

/// What a path below the mount means.
enum Target<'a> {
    /// `//sys/pool_trees` itself.
    All,
    Tree(&'a str),
    Pool(&'a str, &'a str),
}

impl Kernel {
    /// The deepest existing thing, and the steps that are left.
    fn pool_target<'a, 's>(&'a self, steps: &'s [Step]) -> Result<(Target<'a>, &'s [Step]), Failure> {
        let mut rest = steps;
        let mut target = Target::All;
        while let Some(key) = rest.first().and_then(Step::key) {
            let name = String::from_utf8_lossy(&key).into_owned();
            let next = match target {
                Target::All => self.pools.trees.get_key_value(&name).map(|(tree, _)| Target::Tree(tree)),
                Target::Tree(tree) => self.child_pool(tree, ROOT, &name).map(|p| Target::Pool(tree, p)),
                Target::Pool(tree, parent) => {
                    self.child_pool(tree, parent, &name).map(|p| Target::Pool(tree, p))
                }
            };
            target = match next {
                Some(next) => next,
                None => return Ok((target, rest)),
            };
            rest = &rest[1..];
        }
        Ok((target, rest))
    }

    /// The tree and the pool that steps below the mount lead to, as far as they exist, and what is left.
    pub(crate) fn pool_place(&self, steps: &[Step]) -> Result<(Place, Vec<Step>), Failure> {
        let (target, rest) = self.pool_target(steps)?;
        let (tree, pool) = match target {
            Target::All => (None, None),
            Target::Tree(tree) => (Some(tree.to_owned()), None),
            Target::Pool(tree, pool) => (Some(tree.to_owned()), Some(pool.to_owned())),
        };
        Ok(((tree, pool), rest.to_vec()))
    }

    fn child_pool<'a>(&'a self, tree: &'a str, parent: &str, name: &str) -> Option<&'a str> {
        let key = (tree.to_owned(), name.to_owned());
        let ((_, name), pool) = self.pools.pools.get_key_value(&key)?;
        (pool.parent == parent).then_some(name.as_str())
    }

    fn target_path(&self, target: &Target<'_>) -> String {
        match target {
            Target::All => "//sys/pool_trees".to_owned(),
            Target::Tree(tree) => format!("//sys/pool_trees/{}", yson::ypath::escape_literal(tree)),
            Target::Pool(tree, pool) => self.pools.path(tree, pool),
        }
    }

    /// Attributes; if some are asked for by name, those that take time are computed if they are among them.
    fn target_attributes(
        &self,
        at: &Mounted,
        target: &Target<'_>,
        wanted: &[String],
    ) -> Result<Map, Failure> {
        match target {
            Target::All => Ok(self
                .tree
                .attributes(at.node, wanted)
                .with("default_tree", self.pools.default_tree.as_str())
                .with("count", self.pools.trees.len())),
            Target::Tree(tree) => self.attributes_of(tree, ROOT, wanted),
            Target::Pool(tree, pool) => self.attributes_of(tree, pool, wanted),
        }
    }

    /// A pool, or with [`ROOT`] a tree, with all that is below it; pools that the user must not be told of
    /// are entities.
    fn pool_value(&self, tree: &str, pool: &str, wanted: &GetOptions) -> Value {
        let is_closed = |child: &str| {
            self.pools.pool(tree, child).is_some_and(|object| wanted.closed.contains(&object.id))
        };
        let children = self.pools.children(tree, pool).map(|child| match is_closed(child) {
            true => (child, Value::Entity),
            false => (child, self.pool_value(tree, child, wanted)),
        });
        dressed(cut(wanted, children), &wanted.attributes, || {
            self.attributes_of(tree, pool, &wanted.attributes).unwrap_or_default()
        })
    }

    /// Of a pool, or with [`ROOT`] of a tree.
    fn attributes_of(&self, tree: &str, pool: &str, wanted: &[String]) -> Result<Map, Failure> {
        let mount = self.mount_node(POOL_TREES);
        let (own, since) = match pool {
            ROOT => (self.tree_attributes(tree)?, self.pools.trees.get(tree).map(|t| t.creation_time)),
            pool => (self.pool_attributes(tree, pool)?, self.pools.pool(tree, pool).map(|p| p.creation_time)),
        };
        let common = self.common_attributes(mount, since.unwrap_or_default(), wanted);
        let mut attributes: Map = common.into_iter().chain(own).collect();
        if wanted.iter().any(|name| name == EFFECTIVE_ACL) {
            attributes.insert(EFFECTIVE_ACL, self.effective_acl(&self.pool_or_tree(tree, pool)));
        }
        Ok(attributes)
    }

    pub(crate) fn get_pools(&self, at: &Mounted, options: &GetOptions) -> Result<Value, Failure> {
        let (target, rest) = self.pool_target(&at.rest)?;
        let options = &GetOptions { attributes: canonical_list(&options.attributes), ..options.clone() };
        let wanted = &options.attributes;
        match rest {
            [] => Ok(match target {
                Target::All => {
                    let trees = &self.pools.trees;
                    let all = trees.keys().map(|tree| (tree, self.pool_value(tree, ROOT, options)));
                    dressed(cut(options, all), wanted, || {
                        self.target_attributes(at, &target, wanted).unwrap_or_default()
                    })
                }
                Target::Tree(tree) => self.pool_value(tree, ROOT, options),
                Target::Pool(tree, pool) => self.pool_value(tree, pool, options),
            }),
            [Step::AllAttributes] => {
                Ok(crate::tree::only(self.target_attributes(at, &target, wanted)?, wanted).into())
            }
            [Step::Attribute(name), inside @ ..] => {
                let name = canonical_name(name);
                let asked = [String::from_utf8_lossy(&name).into_owned()];
                let attributes = self.target_attributes(at, &target, &asked)?;
                let inside = match target {
                    Target::Tree(_) if name == b"config" => canonical_steps(inside),
                    _ => canonical_option_steps(&name, inside),
                };
                attribute_value(&self.target_path(&target), &attributes, &name, &inside)
            }
            [step, ..] => Err(missing(&self.target_path(&target), step)),
        }
    }

    pub(crate) fn list_pools(&self, at: &Mounted, options: &GetOptions) -> Result<Value, Failure> {
        let (target, rest) = self.pool_target(&at.rest)?;
        let options = &GetOptions { attributes: canonical_list(&options.attributes), ..options.clone() };
        match rest {
            [] => Ok(match target {
                Target::All => names(self.pools.trees.keys().cloned(), options, |tree| {
                    self.attributes_of(tree, ROOT, &options.attributes).unwrap_or_default()
                }),
                Target::Tree(tree) => self.list_children(tree, ROOT, options),
                Target::Pool(tree, parent) => self.list_children(tree, parent, options),
            }),
            _ => {
                let value = self.get_pools(at, &GetOptions::default())?;
                let map = value.as_map().ok_or_else(|| {
                    let path = self.tree.show(&at.as_place());
                    cypress::failures::unsupported("list", &path, value.type_name())
                })?;
                Ok(names(
                    map.key_strings(),
                    &GetOptions { attributes: Vec::new(), ..options.clone() },
                    |_| Map::new(),
                ))
            }
        }
    }

    fn list_children(&self, tree: &str, parent: &str, options: &GetOptions) -> Value {
        let children = self.pools.children(tree, parent).map(str::to_owned);
        names(children, options, |child| match self.pools.pool(tree, child) {
            Some(pool) if options.closed.contains(&pool.id) => Map::new(),
            _ => self.attributes_of(tree, child, &options.attributes).unwrap_or_default(),
        })
    }

    pub(crate) fn set_pools(
        &mut self,
        now: Time,
        user: &str,
        at: &Mounted,
        value: Value,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let (target, rest) = self.pool_target(&at.rest)?;
        let path = self.target_path(&target);
        let (name, inside) = match rest {
            [Step::Attribute(name), inside @ ..] => (canonical_name(name), inside.to_vec()),
            [step, ..] => return Err(missing(&path, step)),
            [] => {
                return Err(Failure::new(format!(
                    "{path} cannot be set: create pools with type scheduler_pool"
                ))
                .with("path", path));
            }
        };
        let text = String::from_utf8_lossy(&name).into_owned();
        match target {
            Target::All if text == "default_tree" => {
                let tree = value.as_str().map(str::to_owned);
                let tree = tree.ok_or_else(|| Failure::new("\"default_tree\": expected string"))?;
                self.set_default_tree(now, &tree, out)
            }
            Target::All => {
                let place = at.as_place();
                self.edit(now, user, out, |edit| edit.set(&place, value, cypress::SetOptions::default()))
            }
            Target::Tree(tree) => {
                let tree = tree.to_owned();
                if text != "config" {
                    return Err(Failure::new(format!(
                        "Attribute \"{text}\" of pool tree \"{tree}\" cannot be set: its options are in @config"
                    ))
                    .with("attribute", text));
                }
                let mut config = Value::Map(self.pools.trees[&tree].config.clone());
                value_set(&mut config, &format!("{path}/@config"), &canonical_steps(&inside), value, true)?;
                let config = config.as_map().cloned().ok_or_else(|| {
                    Failure::new(format!("Attribute \"config\" of pool tree \"{tree}\": expected map"))
                        .with("attribute", "config")
                })?;
                self.set_tree_config(now, &tree, config, out)
            }
            Target::Pool(tree, pool) => {
                let (tree, pool) = (tree.to_owned(), pool.to_owned());
                if inside.is_empty()
                    && let Some(done) = self.set_pool_attribute(&tree, &pool, &text, &value)
                {
                    return done;
                }
                if text == "acl" {
                    let mut acl: Value =
                        self.pool_attributes(&tree, &pool)?.remove("acl").unwrap_or_default();
                    value_set(&mut acl, &format!("{path}/@acl"), &inside, value, false)?;
                    return self.set_pool_attribute(&tree, &pool, "acl", &acl).unwrap_or(Ok(()));
                }
                let mut options = Value::Map(self.pool_options(&tree, &pool)?);
                let inside = canonical_option_steps(&name, &inside);
                let mut steps = vec![Step::Child(name)];
                steps.extend(inside);
                // Maps on the way are made: `set @integral_guarantees/guarantee_type` on a fresh pool.
                value_set(&mut options, &path, &steps, value, true)?;
                self.set_pool_options(&tree, &pool, options.as_map().cloned().unwrap_or_default())
            }
        }
    }

    pub(crate) fn multiset_pools(&mut self, at: &Mounted, attributes: Map) -> Result<(), Failure> {
        let (target, rest) = self.pool_target(&at.rest)?;
        let path = self.target_path(&target);
        match (target, rest) {
            (Target::Pool(tree, pool), [] | [Step::AllAttributes]) => {
                let (tree, pool) = (tree.to_owned(), pool.to_owned());
                self.multiset_pool(&tree, &pool, attributes)
            }
            (_, [step, ..]) => Err(missing(&path, step)),
            (_, []) => Err(Failure::new(format!("{path}: only attributes of pools can be set together"))),
        }
    }

    pub(crate) fn remove_pools(
        &mut self,
        now: Time,
        user: &str,
        at: &Mounted,
        recursive: bool,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let (target, rest) = self.pool_target(&at.rest)?;
        let path = self.target_path(&target);
        match (target, rest) {
            (Target::Pool(tree, pool), []) => {
                let (tree, pool) = (tree.to_owned(), pool.to_owned());
                self.remove_pool(now, &tree, &pool, recursive)
            }
            (Target::Pool(tree, pool), [Step::Attribute(name), inside @ ..]) => {
                let (tree, pool) = (tree.to_owned(), pool.to_owned());
                let name = canonical_name(name);
                let mut options = Value::Map(self.pool_options(&tree, &pool)?);
                if options.as_map().is_none_or(|m| !m.contains(&name)) {
                    return Err(no_pool_attribute(&path, &String::from_utf8_lossy(&name)));
                }
                let inside = canonical_option_steps(&name, inside);
                let mut steps = vec![Step::Child(name)];
                steps.extend(inside);
                value_remove(&mut options, &path, &steps, false)?;
                self.set_pool_options(&tree, &pool, options.as_map().cloned().unwrap_or_default())
            }
            (Target::Tree(tree), [Step::Attribute(name), inside @ ..])
                if name == b"config" && !inside.is_empty() =>
            {
                let tree = tree.to_owned();
                let mut config = Value::Map(self.pools.trees[&tree].config.clone());
                value_remove(&mut config, &format!("{path}/@config"), &canonical_steps(inside), false)?;
                self.set_tree_config(now, &tree, config.as_map().cloned().unwrap_or_default(), out)
            }
            (Target::All, [Step::Attribute(_), ..]) => {
                let place = at.as_place();
                self.edit(now, user, out, |edit| edit.remove(&place, cypress::RemoveOptions::default()))
            }
            (_, [step, ..]) => Err(missing(&path, step)),
            (Target::Tree(tree), []) => {
                let why = "a pool tree cannot be removed: operations, nodes and volumes belong to it for good. \
                           Its pools can be removed, and a \"nodes_filter\" that no node satisfies takes its \
                           nodes away";
                let message = format!("{path} cannot be removed: {why}");
                Err(Failure::new(message).with("path", path.as_str()).with("pool_tree", tree))
            }
            (Target::All, []) => {
                let why = "it holds the pool trees of the cluster";
                Err(Failure::new(format!("{path} cannot be removed: {why}")).with("path", path.as_str()))
            }
        }
    }

    /// `move //sys/pool_trees/t/a //sys/pool_trees/t/b/c`: another parent, another name, or both.
    pub(crate) fn move_pools(&mut self, from: &Mounted, to: &Mounted) -> Result<Value, Failure> {
        let (Target::Pool(tree, pool), []) = self.pool_target(&from.rest)? else {
            return Err(Failure::resolve(format!("{} is not a pool", self.tree.show(&from.as_place()))));
        };
        let (target, rest) = self.pool_target(&to.rest)?;
        let [last] = rest else {
            return Err(match rest {
                [] => cypress::failures::already_exists(&self.target_path(&target)),
                [step, ..] => missing(&self.target_path(&target), step),
            });
        };
        let name = last.key().map(|k| String::from_utf8_lossy(&k).into_owned());
        let name = name.ok_or_else(|| missing(&self.target_path(&target), last))?;
        let (other_tree, parent) = match target {
            Target::All => return Err(no_child("//sys/pool_trees", name.as_bytes())),
            Target::Tree(tree) => (tree, ROOT),
            Target::Pool(tree, parent) => (tree, parent),
        };
        if other_tree != tree {
            let message =
                format!("Pool \"{pool}\" cannot move from tree \"{tree}\" to tree \"{other_tree}\"");
            return Err(Failure::new(message));
        }
        let (tree, pool, parent) = (tree.to_owned(), pool.to_owned(), parent.to_owned());
        let id = self.relocate_pool(&tree, &pool, &parent, &name)?;
        Ok(Value::Map(yson::map! { "node_id" => id }))
    }
}
