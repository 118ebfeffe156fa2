//! What the rows of `allocations` come to: memory and cores over time, waits by pool, who lost to whom.

use super::nodes::Nodes;
use super::rows;
use super::series::{Held, thin, value};
use crate::error::SimError;
use std::collections::BTreeMap;
use std::path::Path;
use yson::{Map, Value};

const GIB: f64 = (1u64 << 30) as f64;

/// See the module page.
pub(super) struct Attempts {
    limit: Held,
    reserve: Held,
    peak: Held,
    cores: Held,
    guarantee: Held,
    used: Held,
    has_used: bool,
    /// By pool, seconds.
    waits: BTreeMap<String, Vec<f64>>,
    /// (who lost, to whom): how many, core-seconds.
    lost: BTreeMap<(String, String), (u64, f64)>,
    nodes: Option<Nodes>,
    any: bool,
}

/// Reads the tables of a run that ends after so many seconds.
pub(super) fn read(folder: &Path, end: f64) -> Result<Attempts, SimError> {
    let mut operations: BTreeMap<String, (String, f64)> = BTreeMap::new();
    rows::each(folder, "operations", &["id", "pool", "at_ms"], |row| {
        let at = row.number(2).unwrap_or_default() / 1000.0;
        operations.insert(row.text(0).to_owned(), (row.text(1).to_owned(), at));
    })?;
    let mut all = Attempts {
        limit: Held::new(end),
        reserve: Held::new(end),
        peak: Held::new(end),
        cores: Held::new(end),
        guarantee: Held::new(end),
        used: Held::new(end),
        has_used: false,
        waits: BTreeMap::new(),
        lost: BTreeMap::new(),
        nodes: Nodes::new(folder, end),
        any: false,
    };
    let columns = [
        "operation",
        "attempt",
        "ordered_ms",
        "end_ms",
        "reason",
        "preempted_for",
        "cpu",
        "memory_limit",
        "memory_reserve",
        "memory_peak",
        "cpu_used_mean",
        "cpu_limit_mean",
        "node",
    ];
    let unknown = ("?".to_owned(), 0.0);
    all.any = rows::each(folder, "allocations", &columns, |row| {
        let from = row.number(2).unwrap_or_default() / 1000.0;
        let to = row.number(3).map_or(end, |ms| ms / 1000.0).max(from);
        let cpu = row.number(6).unwrap_or_default();
        let (pool, at) = operations.get(row.text(0)).unwrap_or(&unknown);
        all.cores.add(from, to, cpu);
        if let Some(nodes) = &mut all.nodes {
            nodes.add(row.text(12), from, to, cpu);
        }
        if let Some(used) = row.number(10) {
            all.used.add(from, to, used);
            all.guarantee.add(from, to, row.number(11).unwrap_or(cpu));
            all.has_used = true;
        }
        let limit = row.number(7).unwrap_or_default() / GIB;
        all.limit.add(from, to, limit);
        all.reserve.add(from, to, row.number(8).unwrap_or_default() / GIB);
        all.peak.add(from, to, row.number(9).map_or(0.0, |bytes| bytes / GIB));
        if row.number(1) == Some(1.0) {
            all.waits.entry(pool.clone()).or_default().push((from - at).max(0.0));
        }
        if row.text(4) == "preemption" {
            let winner = operations.get(row.text(5)).map_or("?", |(pool, _)| pool);
            let entry = all.lost.entry((pool.clone(), winner.to_owned())).or_default();
            entry.0 += 1;
            entry.1 += cpu * (to - from);
        }
    })?;
    Ok(all)
}

impl Attempts {
    pub fn into_map(mut self) -> Map {
        if !self.any {
            return Map::new();
        }
        let line = |held: &Held| value(&thin(&held.line()));
        let memory = yson::map! {
            "limits" => line(&self.limit),
            "reserved" => line(&self.reserve),
            "peaks" => line(&self.peak),
        };
        let mut cpu = yson::map! {"specified" => line(&self.cores)};
        if self.has_used {
            cpu.insert("guaranteed", line(&self.guarantee));
            cpu.insert("used", line(&self.used));
        }
        let waits = self.waits.iter_mut().map(|(pool, waits)| {
            waits.sort_by(f64::total_cmp);
            let at = |p: f64| waits[((p * waits.len() as f64).ceil() as usize).saturating_sub(1)];
            let list: Vec<Value> = [0.5, 0.9, 0.95, 0.99, 1.0].iter().map(|p| at(*p).into()).collect();
            let curve: Vec<Value> = distribution(waits)
                .into_iter()
                .map(|(x, part)| vec![Value::from(x), part.into()].into())
                .collect();
            (pool.as_str(), yson::map! {"jobs" => waits.len(), "seconds" => list, "curve" => curve})
        });
        let waits: Map = waits.collect();
        let lost = self.lost.iter().map(|((loser, winner), (count, core_s))| {
            let row = yson::map! {
                "loser" => loser.as_str(), "winner" => winner.as_str(), "jobs" => *count,
                "core_hours" => (core_s / 36.0).round() / 100.0,
            };
            Value::Map(row)
        });
        let nodes = self.nodes.as_ref().map(Nodes::to_map);
        let lost = lost.collect::<Vec<_>>();
        yson::map! {"memory" => memory, "cpu" => cpu, "waits" => waits, "lost" => lost}
            .with_some("nodes", nodes)
    }
}

/// Of sorted waits: seconds, and the part of the jobs that waited no longer; two hundred points at most.
fn distribution(waits: &[f64]) -> Vec<(f64, f64)> {
    let count = waits.len();
    let points = count.min(200);
    let point = |i: usize| {
        let place = (i + 1) * count / points - 1;
        let part = (place + 1) as f64 / count as f64;
        ((waits[place] * 1000.0).round() / 1000.0, (part * 10_000.0).round() / 10_000.0)
    };
    (0..points).map(point).collect()
}
