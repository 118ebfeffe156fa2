//! Moves, renames and removal of pools.

use super::options::of_pool;
use crate::Kernel;
use cypress::failures::{already_exists, no_child};
use vocab::batch::Table;
use vocab::{Failure, ObjectId, Time};

impl Kernel {
    /// Moves and renames: `set @parent_name`, `set @name`, `move`.
    pub(crate) fn relocate_pool(
        &mut self,
        tree: &str,
        pool: &str,
        parent: &str,
        name: &str,
    ) -> Result<ObjectId, Failure> {
        let Some(object) = self.pools.pool(tree, pool).cloned() else {
            return Err(no_child(&format!("//sys/pool_trees/{tree}"), pool.as_bytes()));
        };
        if object.parent != parent && name != pool && self.pools.pool(tree, name).is_some() {
            return Err(already_exists(&self.pools.path(tree, name)));
        }
        if object.parent != parent {
            self.scheduler.move_pool(tree, pool, parent).map_err(|f| of_pool(f, tree, pool))?;
        }
        if name != pool
            && let Err(failure) = self.scheduler.rename_pool(tree, pool, name)
        {
            // Both or nothing.
            let back = self.scheduler.move_pool(tree, pool, &object.parent);
            debug_assert!(back.is_ok() || object.parent == parent, "a pool can go back to where it was");
            return Err(failure);
        }
        if let Some(mut moved) = self.pools.take_pool(tree, pool) {
            parent.clone_into(&mut moved.parent);
            self.pools.put_pool(tree, name, moved);
        }
        if name != pool {
            self.rename_pool_history(tree, pool, name);
            let children: Vec<String> = self.pools.children(tree, pool).map(str::to_owned).collect();
            for child in children {
                if let Some(object) = self.pools.pools.get_mut(&(tree.to_owned(), child.clone())) {
                    name.clone_into(&mut object.parent);
                }
                self.persist_pool(tree, &child);
            }
        }
        self.persist_pool(tree, name);
        self.pools_changed();
        Ok(object.id)
    }

    /// Removes a pool; with `recursive` its subpools first. Operations go on.
    pub(crate) fn remove_pool(
        &mut self,
        now: Time,
        tree: &str,
        pool: &str,
        recursive: bool,
    ) -> Result<(), Failure> {
        let children: Vec<String> = self.pools.children(tree, pool).map(str::to_owned).collect();
        if !children.is_empty() && !recursive {
            let path = self.pools.path(tree, pool);
            return Err(Failure::new(format!(
                "Cannot remove {path}: it has {} subpools, use \"recursive\" to remove them too",
                children.len()
            ))
            .with("path", path));
        }
        for child in children {
            self.remove_pool(now, tree, &child, true)?;
        }
        self.scheduler.remove_pool(tree, pool)?;
        if let Some(object) = self.pools.take_pool(tree, pool) {
            self.open.batch.delete(Table::Pools, object.id.0.to_bytes());
            self.changes.touch(crate::Topic::Pools);
            self.volume_left_behind(now, tree, pool, object.id);
        }
        self.pools_changed();
        Ok(())
    }
}
