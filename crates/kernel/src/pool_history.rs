//! What pools wanted, used and were entitled to over the last hours, for charts: in memory, in bounded
//! space ([`history`]), fed at each update, gone with the process.
//!
//! Read as `//sys/scheduler/orchid/scheduler/pool_trees/<tree>/pool_history/<pool>[/<start>[/<end>[/<step>]]]`
//! and by [`Command::GetPoolHistory`](crate::Command).

use crate::changes::Digest;
use crate::history_chart::{Range, read};
use crate::{Body, Kernel};
use history::{History, Settings};
use std::collections::BTreeMap;
use std::sync::Arc;
use vocab::{Failure, Time};
use yson::Value;

/// Names and quanta of the columns: a millionth of the cluster, a thousandth of a cluster-second.
const COLUMNS: [(&str, f64); 7] = [
    ("demand", 1e-6),
    ("usage", 1e-6),
    ("fair_share", 1e-6),
    ("strong_guarantee", 1e-6),
    ("integral_guarantee", 1e-6),
    ("weight_proportional", 1e-6),
    ("accumulated_resource_ratio_volume", 1e-3),
];

/// Bytes for all trees together.
const BUDGET: usize = 160 << 20;

/// Histories by tree.
#[derive(Default)]
pub(crate) struct PoolHistories(BTreeMap<Arc<str>, History<7>>);

impl Kernel {
    /// Remembers the newest snapshot.
    pub(crate) fn record_pool_history(&mut self, now: Time) {
        let snapshot = self.scheduler.snapshot();
        let mut digest = Digest::new();
        for tree in snapshot.trees() {
            let histories = &mut self.pool_history.0;
            if !histories.contains_key(&tree.name) {
                let quanta = COLUMNS.map(|(_, quantum)| quantum);
                let budget = BUDGET / (histories.len() + 1);
                histories.insert(tree.name.clone(), History::new(Settings::new(quanta, budget)));
                histories.values_mut().for_each(|h| h.set_budget(budget));
            }
            let Some(history) = histories.get_mut(&tree.name) else { continue };
            let figures = tree.pool_figures().map(|(name, f)| {
                let columns = [
                    f.demand,
                    f.usage,
                    f.fair_share,
                    f.strong_guarantee,
                    f.integral_guarantee,
                    f.weight_proportional,
                    f.volume,
                ];
                columns.iter().for_each(|x| digest.add(*x));
                (name, columns)
            });
            history.record(now, figures);
        }
        self.changes.pools_are(digest.get());
    }

    /// A renamed pool keeps its history.
    pub(crate) fn rename_pool_history(&mut self, tree: &str, old: &str, new: &str) {
        if let Some(history) = self.pool_history.0.get_mut(tree) {
            history.rename(old, new);
        }
    }

    /// Names of pools of a tree that have a history; removed ones are among them for a while.
    pub(crate) fn pools_with_history(&self, tree: &str) -> impl Iterator<Item = &Arc<str>> {
        self.pool_history.0.get(tree).into_iter().flat_map(History::names)
    }

    /// A part of the history of a pool, column by column. None: there is no such pool.
    pub(crate) fn pool_history(
        &self,
        now: Time,
        tree: &str,
        pool: &str,
        range: Range,
    ) -> Option<Result<Value, Failure>> {
        let history = self.pool_history.0.get(tree)?;
        let names = COLUMNS.map(|(name, _)| name);
        let whose = format!("pool \"{pool}\"");
        let chart = read(now, range, &whose, names, |start, end, step| history.read(pool, start, end, step))?;
        Some(chart.map(|value| match value {
            Value::Map(map) => map.with("pool", pool).with("pool_tree", tree).into(),
            other => other,
        }))
    }
}

impl Kernel {
    /// `GetPoolHistory`.
    pub(crate) fn get_pool_history(
        &self,
        now: Time,
        tree: Option<String>,
        pool: &str,
        range: Range,
    ) -> Result<Body, Failure> {
        let tree = tree.unwrap_or_else(|| self.default_tree());
        let chart = self.pool_history(now, &tree, pool, range).unwrap_or_else(|| {
            Err(Failure::resolve(format!("Nothing is known of a pool \"{pool}\" in tree \"{tree}\""))
                .with("pool", pool)
                .with("pool_tree", tree.as_str()))
        });
        chart.map(Body::Value)
    }
}
