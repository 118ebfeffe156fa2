//! Which pool an operation goes to, and ephemeral pools (scheduling.md 2.3, 4.2).

use super::edit::MAX_NAME_LENGTH;
use super::pool::with_presets;
use super::{Ephemeral, Pool, ROOT, Tree};
use crate::config::{Mode, NamePattern, PoolConfig, mode_name};
use crate::messages::{Event, OperationDesc};
use crate::slab::PoolIdx;
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{Failure, ObjectId, code};
use yson::Map;

/// Where an operation is to be put.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Placement {
    /// Into a pool that exists.
    Existing(PoolIdx),
    /// Into a pool that is created on demand.
    New { name: String, parent: PoolIdx, ephemeral: Ephemeral },
}

impl Placement {
    /// The pool itself or the one that it will be created in: where limits are looked for.
    pub fn lowest_existing(&self) -> PoolIdx {
        match self {
            Placement::Existing(pool) => *pool,
            Placement::New { parent, .. } => *parent,
        }
    }
}

/// What is needed to place somebody besides the tree.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub user_to_default_pool: &'a BTreeMap<String, String>,
    pub name_pattern: &'a NamePattern,
    pub require_pools: bool,
}

impl Tree {
    /// Finds the place for an operation of `user` that names `pool` (or none).
    pub fn place(&self, pool: Option<&str>, user: &str, context: Context<'_>) -> Result<Placement, Failure> {
        let name = pool.unwrap_or(user);
        if let Some(found) = self.pool(name) {
            if !self.pools[found].config.create_ephemeral_subpools {
                return Ok(Placement::Existing(found));
            }
            let name = format!("{}${user}", self.pools[found].name);
            return Ok(match self.pool(&name) {
                Some(subpool) => Placement::Existing(subpool),
                None => Placement::New { name, parent: found, ephemeral: Ephemeral::Subpool },
            });
        }
        if context.require_pools && pool.is_some() {
            return Err(self.about_pool(
                Failure::resolve(format!(
                    "Pool \"{name}\" does not exist in tree \"{}\" and must exist",
                    self.name
                )),
                name,
            ));
        }
        let pattern = context.name_pattern;
        if !pattern.matches(name) || name.chars().count() > MAX_NAME_LENGTH {
            return Err(self.about_pool(
                Failure::new(format!(
                    "Bad name of an ephemeral pool \"{name}\": expected at most {MAX_NAME_LENGTH} characters \
                     that match {:?}",
                    pattern.as_str()
                )),
                name,
            ));
        }
        let parent = self.default_parent(user, context.user_to_default_pool);
        if parent != ROOT && self.pools[parent].config.mode == Mode::Fifo {
            return Err(self.about_pool(
                Failure::new(format!(
                    "Pool \"{name}\" cannot be created in the default parent pool \"{}\", which is in FIFO mode",
                    self.pools[parent].name
                )),
                name,
            ));
        }
        Ok(Placement::New { name: name.to_owned(), parent, ephemeral: Ephemeral::OfUser(user.to_owned()) })
    }

    fn about_pool(&self, failure: Failure, pool: &str) -> Failure {
        failure.with("pool", pool).with("pool_tree", &*self.name)
    }

    /// The pool below which pools of the user are created.
    pub fn default_parent(&self, user: &str, user_to_default_pool: &BTreeMap<String, String>) -> PoolIdx {
        let mapped = user_to_default_pool.get(user).filter(|_| self.config.use_user_default_parent_pool_map);
        mapped
            .and_then(|name| self.explicit_pool(name).ok())
            .or_else(|| self.explicit_pool(&self.config.default_parent_pool).ok())
            .unwrap_or(ROOT)
    }

    /// Rules about the pool that do not depend on counts (scheduling.md 4.2, step 4).
    pub fn check_place(&self, place: &Placement, desc: &OperationDesc) -> Result<(), Failure> {
        let gangs_only_in_fifo = self.config.allow_gang_operations_only_in_fifo_pools && desc.is_gang;
        let (name, mode) = match place {
            Placement::Existing(pool) => {
                let p = &self.pools[*pool];
                let forbidden = match *pool {
                    ROOT => self.config.forbid_immediate_operations_in_root,
                    _ => p.config.forbid_immediate_operations,
                };
                if forbidden {
                    return Err(self.about_pool(
                        Failure::new(format!(
                            "Starting operations immediately in pool \"{}\" of tree \"{}\" is forbidden",
                            p.name, self.name
                        )),
                        &p.name,
                    ));
                }
                (&*p.name, p.config.mode)
            }
            Placement::New { name, parent, .. } => {
                let config = self.pools[*parent].config.ephemeral_subpool_config.as_ref();
                (name.as_str(), config.map(|c| c.mode).unwrap_or_default())
            }
        };
        if gangs_only_in_fifo && mode != Mode::Fifo {
            return Err(self.about_pool(
                Failure::new(format!(
                    "Gang operations are allowed only in FIFO pools in tree \"{}\", pool \"{name}\" is in {} mode",
                    self.name,
                    mode_name(mode)
                )),
                name,
            ));
        }
        Ok(())
    }

    /// Limits of operations and of ephemeral pools (scheduling.md 4.2, step 5).
    pub fn check_limits(&self, place: &Placement) -> Result<(), Failure> {
        let violated = self.chain(place.lowest_existing()).find(|p| {
            let pool = &self.pools[*p];
            pool.counts.operations >= pool.max_operation_count(&self.config)
        });
        if let Some(pool) = violated {
            return Err(self.too_many(pool));
        }
        self.check_limits_of_user(place)
    }

    /// The limit of ephemeral pools of one user (scheduling.md 2.3).
    pub fn check_limits_of_user(&self, place: &Placement) -> Result<(), Failure> {
        let Placement::New { name, ephemeral: Ephemeral::OfUser(user), .. } = place else { return Ok(()) };
        let limit = self.config.max_ephemeral_pools_per_user;
        match self.ephemeral_of_user.get(user) {
            Some(pools) if pools.len() as i64 >= limit => {
                let have: Vec<String> = pools.iter().map(|p| p.to_string()).collect();
                Err(self.about_pool(
                    Failure::new(format!(
                        "Ephemeral pool \"{name}\" cannot be created: limit {limit} of ephemeral pools of user \
                         \"{user}\" in tree \"{}\" is reached by pools {have:?}",
                        self.name
                    )),
                    name,
                )
                .with("user", user.as_str())
                .with("limit", limit)
                .with("ephemeral_pools", have))
            }
            _ => Ok(()),
        }
    }

    /// The refusal because of `max_operation_count` of a pool.
    pub fn too_many(&self, pool: PoolIdx) -> Failure {
        let pool = &self.pools[pool];
        let limit = pool.max_operation_count(&self.config);
        self.about_pool(
            Failure::coded(
                code::TOO_MANY_OPERATIONS,
                format!(
                    "Limit for the number of concurrent operations {limit} for pool \"{}\" in tree \"{}\" \
                     has been reached",
                    pool.name, self.name
                ),
            ),
            &pool.name,
        )
        .with("limit", limit)
    }

    /// The pool of a placement, created if need be.
    pub fn realize(&mut self, place: Placement) -> PoolIdx {
        match place {
            Placement::Existing(pool) => pool,
            Placement::New { name, parent, ephemeral } => self.create_ephemeral(&name, parent, ephemeral),
        }
    }

    pub fn create_ephemeral(&mut self, name: &str, parent: PoolIdx, ephemeral: Ephemeral) -> PoolIdx {
        let mut pool = Pool::new(ObjectId::default(), name, Some(parent));
        if ephemeral != Ephemeral::Remains {
            pool.own = self.ephemeral_config(parent);
            pool.config = with_presets(&pool.own, &self.config).expect("an ephemeral pool has no presets");
        }
        if let Ephemeral::OfUser(user) = &ephemeral {
            self.ephemeral_of_user.entry(user.clone()).or_default().insert(pool.name.clone());
        }
        pool.ephemeral = Some(ephemeral);
        let name = pool.name.clone();
        let index = self.pools.insert(pool);
        self.by_name.insert(name.clone(), index);
        self.pools[parent].children.push(index);
        self.events.push(Event::EphemeralPoolCreated { tree: self.name.clone(), pool: name });
        index
    }

    /// Default options overlaid by those that the parent gives.
    fn ephemeral_config(&self, parent: PoolIdx) -> Arc<PoolConfig> {
        let Some(given) = &self.pools[parent].config.ephemeral_subpool_config else {
            return Arc::new(PoolConfig::default());
        };
        let options = Map::new()
            .with("mode", mode_name(given.mode))
            .with_some("max_operation_count", given.max_operation_count)
            .with_some("max_running_operation_count", given.max_running_operation_count)
            .with_some("resource_limits", Some(given.resource_limits.to_map()).filter(|m| !m.is_empty()));
        // The parts were read with the parent's options; only the two counts may disagree, and then the
        // larger one is meant.
        let parsed = PoolConfig::parse(&options).or_else(|_| {
            let mut options = options.clone();
            options.insert("max_operation_count", given.max_running_operation_count);
            PoolConfig::parse(&options)
        });
        Arc::new(parsed.map(|(config, _)| config).unwrap_or_default())
    }

    /// Removes the pool if it is ephemeral and empty, then its parent likewise, and so on.
    pub fn remove_empty_ephemeral(&mut self, from: PoolIdx) {
        let mut at = Some(from);
        while let Some(index) = at {
            let pool = &self.pools[index];
            if pool.ephemeral.is_none() || !pool.is_empty() {
                return;
            }
            at = pool.parent;
            self.drop_pool(index);
        }
    }

    /// Takes a pool without operations and children out of the tree.
    pub fn drop_pool(&mut self, index: PoolIdx) {
        let pool = self.pools.remove(index);
        self.over_limits -= usize::from(pool.over_limits);
        if let Some(parent) = pool.parent {
            self.pools[parent].children.retain(|c| *c != index);
        }
        if self.by_name.get(&pool.name) == Some(&index) {
            self.by_name.remove(&pool.name);
        }
        self.forget_owner(pool.ephemeral.as_ref(), &pool.name);
        if pool.ephemeral.is_some() {
            self.events.push(Event::EphemeralPoolRemoved { tree: self.name.clone(), pool: pool.name });
        }
    }

    /// The pool no longer counts among the ephemeral pools of its user.
    pub fn forget_owner(&mut self, ephemeral: Option<&Ephemeral>, name: &Arc<str>) {
        if let Some(Ephemeral::OfUser(user)) = ephemeral
            && let Some(pools) = self.ephemeral_of_user.get_mut(user)
        {
            pools.remove(name);
            if pools.is_empty() {
                self.ephemeral_of_user.remove(user);
            }
        }
    }
}
