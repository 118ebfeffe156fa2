//! Volumes of integral pools in the store: what they are after a crash is a little less than what they
//! were, never more, so that nothing is spent twice (fair-share.md 7.1).
//!
//! A record holds the volume less what its pool may spend until the next one is written. It is written
//! anew every [`VOLUMES_PERIOD`], and at once when a pool is granted more than its record allows for.
//! At a stop that was asked for, records hold all that there is.

use crate::{Kernel, VOLUMES_PERIOD};
use std::collections::BTreeMap;
use vocab::batch::Table;
use vocab::{Failure, ObjectId, RESOURCES, Resource, Span, Time, Volume};
use yson::{Map, Value};

/// What of the volumes is in the store.
pub(crate) struct Volumes {
    records: BTreeMap<ObjectId, Record>,
    /// Of removed pools, by tree and name: a pool of that name takes the volume over.
    removed: BTreeMap<(String, String), Removed>,
    next_write: Time,
}

struct Record {
    bytes: Vec<u8>,
    /// Share that the pool may spend until the next record.
    allowance: f64,
}

#[derive(Clone, Copy)]
struct Removed {
    pool: ObjectId,
    at: Time,
}

/// A share that moves by less than this is no reason to write.
const SLACK: f64 = 1.02;
/// Volumes of removed pools that are kept.
const MAX_REMOVED: usize = 1_000;

impl Volumes {
    pub fn new(now: Time) -> Volumes {
        Volumes { records: BTreeMap::new(), removed: BTreeMap::new(), next_write: now + VOLUMES_PERIOD }
    }
}

impl Kernel {
    /// Writes what has to be written in this turn; `updated` if shares were computed in it.
    pub(crate) fn persist_volumes(&mut self, now: Time, updated: bool) {
        let due = now >= self.volumes.next_write;
        if due {
            self.volumes.next_write = now + VOLUMES_PERIOD;
        } else if !updated {
            return;
        }
        // What was spent since the update is not in the volumes yet.
        let ahead = VOLUMES_PERIOD + self.since_update(now);
        for v in self.scheduler.volumes() {
            let allowance = self.volumes.records.get(&v.pool).map_or(0.0, |r| r.allowance);
            if !due && v.last_share <= allowance {
                continue;
            }
            let allowance = v.last_share * SLACK;
            let bytes = record(v.tree, v.after_spending(allowance, ahead), None);
            if self.volumes.records.get(&v.pool).is_none_or(|r| r.bytes != bytes) {
                self.open.batch.put(Table::Volumes, v.pool.0.to_bytes(), bytes.clone());
            }
            self.volumes.records.insert(v.pool, Record { bytes, allowance });
        }
    }

    /// Writes all volumes as they are: nothing is spent after this.
    pub(crate) fn persist_volumes_at_stop(&mut self, now: Time) {
        let ahead = self.since_update(now);
        for v in self.scheduler.volumes() {
            let bytes = record(v.tree, v.after_spending(v.last_share, ahead), None);
            self.open.batch.put(Table::Volumes, v.pool.0.to_bytes(), bytes);
        }
    }

    /// Time since the last periodic update.
    fn since_update(&self, now: Time) -> Span {
        let period = self.scheduler.config().fair_share_update_period;
        now.since(self.periodic.update - period)
    }

    /// A pool was created: it may have taken over the volume of a removed one.
    pub(crate) fn volume_taken_over(&mut self, now: Time, tree: &str, name: &str) {
        if let Some(removed) = self.volumes.removed.remove(&(tree.to_owned(), name.to_owned())) {
            self.open.batch.delete(Table::Volumes, removed.pool.0.to_bytes());
            // Under its new id, in the same batch.
            self.volumes.next_write = now;
        }
    }

    /// A pool was removed: its volume stays, for a pool of the same name.
    pub(crate) fn volume_left_behind(&mut self, now: Time, tree: &str, name: &str, pool: ObjectId) {
        let written = self.volumes.records.remove(&pool).is_some();
        match self.scheduler.volume_of_removed(tree, name) {
            Some(volume) => {
                let bytes = record(tree, volume, Some((name, now)));
                self.open.batch.put(Table::Volumes, pool.0.to_bytes(), bytes);
                let key = (tree.to_owned(), name.to_owned());
                if let Some(older) = self.volumes.removed.insert(key, Removed { pool, at: now }) {
                    self.open.batch.delete(Table::Volumes, older.pool.0.to_bytes());
                }
                self.forget_oldest_removed();
            }
            None if written => self.open.batch.delete(Table::Volumes, pool.0.to_bytes()),
            None => {}
        }
    }

    fn forget_oldest_removed(&mut self) {
        if self.volumes.removed.len() <= MAX_REMOVED {
            return;
        }
        let oldest = self.volumes.removed.iter().min_by_key(|(_, r)| r.at);
        let Some((key, removed)) = oldest.map(|(key, removed)| (key.clone(), *removed)) else { return };
        self.volumes.removed.remove(&key);
        self.open.batch.delete(Table::Volumes, removed.pool.0.to_bytes());
        let forgotten = self.scheduler.set_volume_of_removed(&key.0, &key.1, None);
        debug_assert!(forgotten.is_ok(), "trees are never removed");
    }

    /// Reads a record back, after the pools.
    pub(crate) fn restore_volume(&mut self, pool: ObjectId, value: &Value) -> Result<(), Failure> {
        let mut volume = Volume::default();
        for r in RESOURCES {
            let amount = value.get(Resource::as_str(r)).and_then(Value::as_f64);
            volume.set(r, amount.filter(|x| x.is_finite()).unwrap_or(0.0));
        }
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        let Some(tree) = text("tree").filter(|tree| self.pools.trees.contains_key(*tree)) else {
            // A tree that is gone takes its volumes with it.
            self.open.batch.delete(Table::Volumes, pool.0.to_bytes());
            return Ok(());
        };
        match text("removed") {
            Some(name) => {
                let at = Time(value.get("removal_time").and_then(Value::as_u64).unwrap_or_default());
                let key = (tree.to_owned(), name.to_owned());
                self.volumes.removed.insert(key, Removed { pool, at });
                self.scheduler.set_volume_of_removed(tree, name, Some(volume))
            }
            None if self.pools.by_id(pool).is_some() => self.scheduler.import_volume(tree, pool, volume),
            None => {
                self.open.batch.delete(Table::Volumes, pool.0.to_bytes());
                Ok(())
            }
        }
    }
}

fn record(tree: &str, volume: Volume, removed: Option<(&str, Time)>) -> Vec<u8> {
    let amounts: Map = RESOURCES.into_iter().map(|r| (r.as_str(), volume.get(r))).collect();
    let record = amounts
        .with("tree", tree)
        .with_some("removed", removed.map(|(name, _)| name))
        .with_some("removal_time", removed.map(|(_, at)| at.as_micros()));
    yson::to_binary(&record.into())
}
