//! Creating, changing, moving, renaming and removing pools (scheduling.md 2.2, 2.4).
//!
//! Everything is checked before anything is changed. After each change all queues are looked at
//! again, so that a raised limit acts at once [D2].

use super::pool::with_presets;
use super::validate::{self, View};
use super::{Ephemeral, Pool, ROOT, Tree};
use crate::config::{GuaranteeType, Mode, PoolConfig, ROOT_NAME, TreeConfig};
use crate::messages::PoolDesc;
use crate::slab::{LeafIdx, PoolIdx};
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{Failure, ObjectId, code};
use yson::Map;

/// Longest name of a pool, in characters.
pub(crate) const MAX_NAME_LENGTH: usize = 100;
/// Deepest explicit level; the first level is 1.
pub(crate) const MAX_DEPTH: usize = 30;

/// Configuration of one pool, read and with presets.
struct Parsed {
    own: Arc<PoolConfig>,
    config: Arc<PoolConfig>,
    custom: Map,
}

impl Tree {
    pub fn create_pool(&mut self, desc: &PoolDesc) -> Result<PoolIdx, Failure> {
        self.check_new_name(&desc.name)?;
        let parent = self.explicit_pool(&desc.parent)?;
        let Parsed { own, config, custom } = self.parse(&desc.options)?;
        self.check_depth(parent, 1)?;
        let newcomer = View { name: &desc.name, config: &config };
        validate::main_resource(newcomer, self.config.main_resource)?;
        self.check_children(parent, None, Some(newcomer), &BTreeMap::new())?;
        self.check_nesting(newcomer, parent, None, &BTreeMap::new())?;
        let remains = self.pool(&desc.name);
        self.check_takeover(&desc.name, &config, remains)?;

        let mut pool = Pool::new(desc.id, &desc.name, Some(parent));
        (pool.own, pool.config, pool.custom) = (own, config, custom);
        if let Some(volume) = self.volumes_of_removed.remove(&pool.name) {
            self.volumes.entry(desc.id).or_insert(volume);
        }
        let name = pool.name.clone();
        let index = self.pools.insert(pool);
        self.by_name.insert(name, index);
        self.pools[parent].children.push(index);
        if let Some(remains) = remains {
            self.absorb(remains, index);
        }
        self.watch_pools();
        self.scan();
        Ok(index)
    }

    /// Sets all options of several pools at once: the rules hold for the result as a whole.
    pub fn set_pool_options(&mut self, changes: &[(&str, &Map)]) -> Result<(), Failure> {
        let mut parsed = BTreeMap::new();
        for (name, options) in changes {
            let index = self.explicit_pool(name)?;
            if index == ROOT {
                return Err(Failure::new(format!("Options of \"{ROOT_NAME}\" cannot be set: it has none")));
            }
            if parsed.insert(index, self.parse(options)?).is_some() {
                return Err(Failure::new(format!("Pool \"{name}\" is named twice in one change")));
            }
        }
        let overlay: BTreeMap<PoolIdx, &PoolConfig> =
            parsed.iter().map(|(index, p)| (*index, &*p.config)).collect();
        for index in parsed.keys() {
            let pool = &self.pools[*index];
            let view = View { name: &pool.name, config: overlay[index] };
            validate::main_resource(view, self.config.main_resource)?;
            self.check_children(*index, None, None, &overlay)?;
            let parent = pool.parent.unwrap_or(ROOT);
            self.check_children(parent, None, None, &overlay)?;
            self.check_nesting(view, parent, Some(*index), &overlay)?;
        }
        for (index, p) in parsed {
            let pool = &mut self.pools[index];
            (pool.own, pool.config, pool.custom) = (p.own, p.config, p.custom);
            self.apply_lightweight(index);
        }
        self.watch_pools();
        self.scan();
        Ok(())
    }

    pub fn move_pool(&mut self, name: &str, parent: &str) -> Result<(), Failure> {
        let index = self.explicit_pool(name)?;
        let target = self.explicit_pool(parent)?;
        if index == ROOT {
            return Err(Failure::new(format!("Pool \"{ROOT_NAME}\" cannot be moved")));
        }
        if self.chain(target).any(|p| p == index) {
            return Err(Failure::new(format!(
                "Pool \"{name}\" cannot be moved to \"{parent}\": that is the pool itself or inside of it"
            )));
        }
        if self.pools[index].parent == Some(target) {
            return Ok(());
        }
        self.check_depth(target, self.height(index))?;
        let pool = &self.pools[index];
        let newcomer = View { name: &pool.name, config: &pool.config };
        self.check_children(target, Some(index), Some(newcomer), &BTreeMap::new())?;
        self.check_nesting(newcomer, target, Some(index), &BTreeMap::new())?;
        self.reparent(index, target);
        self.watch_pools();
        self.scan();
        Ok(())
    }

    pub fn rename_pool(
        &mut self,
        name: &str,
        new_name: &str,
        default_parent: PoolIdx,
    ) -> Result<(), Failure> {
        let index = self.explicit_pool(name)?;
        if index == ROOT {
            return Err(Failure::new(format!("Pool \"{ROOT_NAME}\" cannot be renamed")));
        }
        if name == new_name {
            return Ok(());
        }
        self.check_new_name(new_name)?;
        let takeover = self.pool(new_name);
        let config = self.pools[index].config.clone();
        self.check_takeover(new_name, &config, takeover)?;

        let old: Arc<str> = self.pools[index].name.clone();
        let new: Arc<str> = new_name.into();
        self.ranks_are_fresh = false;
        self.by_name.remove(&old);
        self.pools[index].name = new.clone();
        self.by_name.insert(new, index);
        let left_behind = self.ephemeral_children(index);
        if !self.pools[index].leaves.is_empty() || !left_behind.is_empty() {
            // Operations stay under the old name, in a pool that only lives as long as they do.
            let parent = self.refuge(default_parent, index);
            let remains = self.create_ephemeral(&old, parent, Ephemeral::Remains);
            self.move_contents(index, remains);
        }
        if let Some(takeover) = takeover {
            self.absorb(takeover, index);
        }
        self.watch_pools();
        self.scan();
        Ok(())
    }

    pub fn remove_pool(&mut self, name: &str, default_parent: PoolIdx) -> Result<(), Failure> {
        let index = self.explicit_pool(name)?;
        if index == ROOT {
            return Err(Failure::new(format!("Pool \"{ROOT_NAME}\" cannot be removed")));
        }
        let pool = &self.pools[index];
        if let Some(child) = pool.children.iter().find(|c| self.pools[**c].ephemeral.is_none()) {
            return Err(Failure::new(format!(
                "Pool \"{name}\" cannot be removed: it has child pool \"{}\"",
                self.pools[*child].name
            ))
            .with("child_name", &*self.pools[*child].name));
        }
        let (id, name) = (pool.id, pool.name.clone());
        if let Some(volume) = self.volumes.remove(&id) {
            self.volumes_of_removed.insert(name, volume);
        }
        if pool.is_empty() {
            self.drop_pool(index);
        } else {
            let refuge = self.refuge(default_parent, index);
            let pool = &mut self.pools[index];
            pool.id = ObjectId::default();
            pool.ephemeral = Some(Ephemeral::Remains);
            pool.own = Arc::new(PoolConfig::default());
            pool.config = pool.own.clone();
            pool.custom = Map::new();
            if self.pools[index].parent != Some(refuge) {
                self.reparent(index, refuge);
            }
            self.apply_lightweight(index);
        }
        self.watch_pools();
        self.scan();
        Ok(())
    }

    /// Replaces the configuration of the tree; presets of pools are applied anew.
    pub fn set_config(&mut self, config: TreeConfig, unrecognized: Map) -> Result<(), Failure> {
        let mut effective = Vec::new();
        for (index, pool) in self.pools.iter().filter(|(i, _)| *i != ROOT) {
            let new = with_presets(&pool.own, &config).map_err(|e| {
                Failure::new(format!("Pool \"{}\" does not agree with the new tree configuration", pool.name))
                    .because(e)
            })?;
            validate::main_resource(View { name: &pool.name, config: &new }, config.main_resource)?;
            effective.push((index, new));
        }
        let overlay: BTreeMap<PoolIdx, &PoolConfig> = effective.iter().map(|(i, c)| (*i, &**c)).collect();
        for (index, new) in &effective {
            let pool = &self.pools[*index];
            self.check_children(*index, None, None, &overlay)?;
            let view = View { name: &pool.name, config: new };
            self.check_nesting(view, pool.parent.unwrap_or(ROOT), Some(*index), &overlay)?;
        }
        self.config = Arc::new(config);
        self.unrecognized = unrecognized;
        for (index, config) in effective {
            self.pools[index].config = config;
            self.apply_lightweight(index);
        }
        self.watch_pools();
        self.scan();
        Ok(())
    }

    fn parse(&self, options: &Map) -> Result<Parsed, Failure> {
        let (own, custom) = PoolConfig::parse(options)?;
        let own = Arc::new(own);
        let config = with_presets(&own, &self.config)?;
        Ok(Parsed { own, config, custom })
    }

    fn check_new_name(&self, name: &str) -> Result<(), Failure> {
        let good = |c: char| c.is_ascii_alphanumeric() || "-_:".contains(c);
        if name.is_empty() || name.chars().count() > MAX_NAME_LENGTH || !name.chars().all(good) {
            let shown: String = name.chars().take(MAX_NAME_LENGTH + 1).collect();
            return Err(Failure::new(format!(
                "Bad pool name \"{shown}\": expected 1 to {MAX_NAME_LENGTH} characters of letters, digits, \
                 \"-\", \"_\", \":\""
            ))
            .with("pool", shown)
            .with("option", "name"));
        }
        if self.explicit_pool(name).is_ok() {
            return Err(Failure::coded(
                code::ALREADY_EXISTS,
                format!("Pool \"{name}\" already exists in tree \"{}\"", self.name),
            )
            .with("pool", name)
            .with("option", "name"));
        }
        Ok(())
    }

    /// May a subtree of `height` levels be put below `parent`?
    fn check_depth(&self, parent: PoolIdx, height: usize) -> Result<(), Failure> {
        let above = self.chain(parent).filter(|p| *p != ROOT).count();
        if above + height <= MAX_DEPTH {
            return Ok(());
        }
        Err(Failure::new(format!(
            "Nesting of pools would be {} levels deep below \"{}\", at most {MAX_DEPTH} are allowed",
            above + height,
            self.pools[parent].name
        )))
    }

    /// Explicit levels of a subtree, the pool itself included.
    fn height(&self, index: PoolIdx) -> usize {
        let explicit = self.pools[index].children.iter().filter(|c| self.pools[**c].ephemeral.is_none());
        1 + explicit.map(|c| self.height(*c)).max().unwrap_or(0)
    }

    /// Rules of a parent about its children: without `gone`, with `newcomer`, with new configurations
    /// of some.
    fn check_children(
        &self,
        parent: PoolIdx,
        gone: Option<PoolIdx>,
        newcomer: Option<View<'_>>,
        overlay: &BTreeMap<PoolIdx, &PoolConfig>,
    ) -> Result<(), Failure> {
        let view = |index: PoolIdx| {
            let pool = &self.pools[index];
            View { name: &pool.name, config: overlay.get(&index).copied().unwrap_or(&pool.config) }
        };
        let old = self.pools[parent].children.iter().copied().filter(|c| Some(*c) != gone).map(view);
        validate::children(view(parent), parent == ROOT, old.chain(newcomer))
    }

    /// Integral pools do not nest, however far apart they are: the fair-share update could not make
    /// sense of it (fair-share.md 11.1, 18). `subtree` is the pool itself, if it exists already.
    fn check_nesting(
        &self,
        pool: View<'_>,
        parent: PoolIdx,
        subtree: Option<PoolIdx>,
        overlay: &BTreeMap<PoolIdx, &PoolConfig>,
    ) -> Result<(), Failure> {
        let of = |index: PoolIdx| overlay.get(&index).copied().unwrap_or(&self.pools[index].config);
        let is_integral =
            |config: &PoolConfig| config.integral_guarantees.guarantee_type != GuaranteeType::None;
        let above = self.chain(parent).find(|p| is_integral(of(*p)));
        if above.is_none() && !is_integral(pool.config) {
            return Ok(());
        }
        let outer = above.map_or(pool.name, |p| &self.pools[p].name);
        let mut stack: Vec<PoolIdx> = subtree.map(|s| self.pools[s].children.clone()).unwrap_or_default();
        let mut inner = (above.is_some() && is_integral(pool.config)).then_some(pool.name);
        while let Some(index) = stack.pop()
            && inner.is_none()
        {
            inner = is_integral(of(index)).then_some(&*self.pools[index].name);
            stack.extend(&self.pools[index].children);
        }
        match inner {
            None => Ok(()),
            Some(inner) => Err(Failure::new(format!(
                "Integral pool \"{outer}\" cannot have integral pool \"{inner}\" inside"
            ))
            .with("pool_name", outer)
            .with("child_name", inner)
            .with("option", "integral_guarantees/guarantee_type")),
        }
    }

    /// May a pool with this configuration take over what is left under its name?
    fn check_takeover(
        &self,
        name: &str,
        config: &PoolConfig,
        remains: Option<PoolIdx>,
    ) -> Result<(), Failure> {
        let Some(remains) = remains else { return Ok(()) };
        let children = self.pools[remains].children.iter().map(|c| {
            let pool = &self.pools[*c];
            View { name: &pool.name, config: &pool.config }
        });
        validate::children(View { name, config }, false, children)
    }

    /// Where the remains of a pool go: below the default parent, or below the root if the pool was
    /// that itself, contains it, or if it cannot have pools inside.
    fn refuge(&self, default_parent: PoolIdx, pool: PoolIdx) -> PoolIdx {
        let inside = self.chain(default_parent).any(|p| p == pool);
        let fifo = default_parent != ROOT && self.pools[default_parent].config.mode == Mode::Fifo;
        if inside || fifo { ROOT } else { default_parent }
    }

    fn ephemeral_children(&self, index: PoolIdx) -> Vec<PoolIdx> {
        let children = self.pools[index].children.iter().copied();
        children.filter(|c| self.pools[*c].ephemeral.is_some()).collect()
    }

    /// Takes a pool with everything in it to another parent, counters and usage with it
    /// (scheduling.md 2.4, 16.6).
    fn reparent(&mut self, index: PoolIdx, parent: PoolIdx) {
        self.ranks_are_fresh = false;
        let (counts, usage) = (self.pools[index].counts, self.pools[index].usage);
        if let Some(old) = self.pools[index].parent {
            self.count(old, counts.negated());
            self.charge_pools(old, vocab::Resources::ZERO - usage);
            self.pools[old].children.retain(|c| *c != index);
        }
        self.count(parent, counts);
        self.charge_pools(parent, usage);
        self.pools[parent].children.push(index);
        self.pools[index].parent = Some(parent);
    }

    /// Moves operations and ephemeral pools from one pool to another.
    fn move_contents(&mut self, from: PoolIdx, to: PoolIdx) {
        for child in self.ephemeral_children(from) {
            self.reparent(child, to);
        }
        let leaves: Vec<LeafIdx> = self.pools[from].leaves.values().copied().collect();
        for leaf in leaves {
            self.transfer(leaf, to);
        }
    }

    /// An explicit pool takes over everything of the ephemeral pool of its name, which goes away.
    fn absorb(&mut self, remains: PoolIdx, into: PoolIdx) {
        self.move_contents(remains, into);
        // Operations deeper below may wait for a limit of the pool that goes away.
        while let Some((_, leaf)) = self.pools[remains].queue.pop_first() {
            self.enqueue(leaf, into);
        }
        self.drop_pool(remains);
    }
}
