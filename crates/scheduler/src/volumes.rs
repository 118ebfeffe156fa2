//! Volumes of integral pools on their way to and from the store (fair-share.md 7.1).

use crate::scheduler::Scheduler;
use fairshare::IntegralState;
use std::sync::Arc;
use vocab::{Failure, ObjectId, RESOURCES, Resources, Span, Volume};

/// The volume of a pool, and the pace at which it is spent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PoolVolume<'a> {
    /// Tree of the pool.
    pub tree: &'a Arc<str>,
    /// The pool: moves and renames do not change its id.
    pub pool: ObjectId,
    /// As of the last periodic update.
    pub volume: Volume,
    /// Granted at the last periodic update, and spent since.
    pub last_share: f64,
    /// The cluster.
    total: Resources,
}

impl PoolVolume<'_> {
    /// What is left if the pool spends `share` for so long and nothing flows in.
    pub fn after_spending(&self, share: f64, span: Span) -> Volume {
        let mut left = self.volume;
        for r in RESOURCES {
            let spent = self.total.get(r) * span.as_secs_f64() * share;
            left.set(r, (left.get(r) - spent).max(0.0));
        }
        left
    }
}

impl Scheduler {
    /// Volumes of all pools that have, or had, an integral guarantee; tree by tree, by id.
    pub fn volumes(&self) -> impl Iterator<Item = PoolVolume<'_>> {
        self.trees.iter().flat_map(|tree| {
            tree.volumes.iter().map(|(pool, state)| PoolVolume {
                tree: &tree.name,
                pool: *pool,
                volume: state.accumulated_volume,
                last_share: state.last_share,
                total: tree.total,
            })
        })
    }

    /// The volume that a removed pool has left to a pool of its name.
    pub fn volume_of_removed(&self, tree: &str, name: &str) -> Option<Volume> {
        Some(self.tree(tree).ok()?.volumes_of_removed.get(name)?.accumulated_volume)
    }

    /// Puts back the volume of a removed pool, or forgets it.
    pub fn set_volume_of_removed(
        &mut self,
        tree: &str,
        name: &str,
        volume: Option<Volume>,
    ) -> Result<(), Failure> {
        let volumes = &mut self.tree_mut(tree)?.volumes_of_removed;
        match volume {
            Some(accumulated_volume) => {
                volumes.insert(name.into(), IntegralState { accumulated_volume, last_share: 0.0 });
            }
            None => drop(volumes.remove(name)),
        }
        Ok(())
    }
}
