//! What was saved by learning, pool by pool (jobs-and-nodes.md 1.6): sums over the jobs of this life of the
//! server, of those that run as of those that are over.
//!
//! A job that was taken over after a restart counts with its whole past. Nothing is stored: these are
//! metrics, and like those of any process they begin anew with it. Pools come and go, ephemeral ones by the
//! thousand: what was saved in one that is gone is the root's then, so memory is bounded and no sum shrinks.

use crate::Kernel;
use controller::Savings;
use scheduler::TreeSnapshot;
use std::collections::BTreeMap;
use vocab::{JobId, Time};
use yson::{Map, Value};

/// Totals by tree and pool, without what is below; and how much of each running job is in them.
#[derive(Default)]
pub(crate) struct PoolSavings {
    totals: BTreeMap<String, BTreeMap<String, Savings>>,
    counted: BTreeMap<JobId, Savings>,
}

impl PoolSavings {
    fn count(&mut self, job: JobId, tree: &str, pool: &str, now: Savings) {
        let before = self.counted.insert(job, now).unwrap_or_default();
        let pools = match self.totals.get_mut(tree) {
            Some(pools) => pools,
            None => self.totals.entry(tree.to_owned()).or_default(),
        };
        match pools.get_mut(pool) {
            Some(total) => *total += now - before,
            None => {
                pools.insert(pool.to_owned(), now - before);
            }
        }
    }
}

impl PoolSavings {
    /// Totals of a tree by pool, without what is below.
    pub fn of_tree(&self, tree: &str) -> BTreeMap<String, Savings> {
        self.totals.get(tree).cloned().unwrap_or_default()
    }
}

/// The pool above all others.
const ROOT: &str = "<Root>";

impl Kernel {
    /// Gives what was saved in pools that are gone to the roots of their trees.
    pub(crate) fn settle_savings(&mut self) {
        let scheduler = &self.scheduler;
        self.pool_savings.totals.retain(|tree, pools| {
            let mut gone: Option<Savings> = None;
            pools.retain(|pool, savings| {
                let is_there = scheduler.has_pool(tree, pool);
                if !is_there {
                    *gone.get_or_insert_default() += *savings;
                }
                is_there
            });
            if let Some(savings) = gone.filter(|_| scheduler.has_pool(tree, ROOT)) {
                *pools.entry(ROOT.to_owned()).or_default() += savings;
            }
            !pools.is_empty()
        });
    }

    /// A running job has reported.
    pub(crate) fn count_savings(&mut self, now: Time, job_id: JobId) {
        let Some(job) = self.jobs.get(job_id) else { return };
        let Some(operation) = self.operations.get(&job.operation) else { return };
        if let Some(view) = operation.controller.job(job_id) {
            let tree = &view.identity().tree;
            self.pool_savings.count(job_id, tree, &job.pool, view.savings(now));
        }
    }

    /// A job is over.
    pub(crate) fn count_last_savings(&mut self, record: &controller::JobRecord, pool: &str) {
        let job_id = record.identity.job_id;
        self.pool_savings.count(job_id, &record.identity.tree, pool, Savings::of(&record.samples));
        self.pool_savings.counted.remove(&job_id);
    }

    /// `pool_savings` of a tree in the Orchid: each pool with all that is below it.
    pub(crate) fn savings_of_pools(&self, tree: &TreeSnapshot) -> Map {
        let parent_only = ["parent"];
        let parent = |pool: &str| {
            let attributes = tree.pool_attributes(pool, Some(&parent_only))?;
            attributes
                .get("parent")
                .and_then(Value::as_str)
                .map(str::to_owned)
                .filter(|name| !name.is_empty())
        };
        let mut sums: BTreeMap<String, Savings> = BTreeMap::new();
        for (pool, own) in self.pool_savings.totals.get(&*tree.name).into_iter().flatten() {
            let mut next = Some(pool.clone());
            while let Some(name) = next {
                next = parent(&name);
                *sums.entry(name).or_default() += *own;
            }
        }
        sums.into_iter().map(|(name, savings)| (name, savings.to_map())).collect()
    }
}
