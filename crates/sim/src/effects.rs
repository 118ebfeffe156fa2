//! What a change means for people: who gains cores, who starves, when an operation starts and ends, whose
//! jobs are preempted; from the tables of runs side by side (simulator.md 11).

use crate::error::SimError;
use crate::output::{Cell, Column, Format, Table, int, text};
use crate::report::each;
use std::collections::BTreeMap;
use std::path::Path;

/// A pool in one run.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct PoolFate {
    /// Cores in use, on average over the time that all runs have, up to the last end of an operation.
    pub usage_cpu: f64,
    /// Part of that time in which it starved.
    pub starving: f64,
}

/// A pool in all runs, the base first.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolEffect {
    /// Its tree.
    pub tree: String,
    /// Its name.
    pub pool: String,
    /// By run; none where there is no such pool.
    pub runs: Vec<Option<PoolFate>>,
}

/// An operation in one run.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct OperationFate {
    /// At the end of the run.
    pub state: String,
    /// From the submission to the first job; none: it had none.
    pub wait_ms: Option<i64>,
    /// From the submission to the end; none: it had not ended.
    pub lasts_ms: Option<i64>,
    /// From the start of the run to its end.
    pub ends_ms: Option<i64>,
    /// Jobs that had to give way, were they aborted or did they stop when they were asked to.
    pub preempted: i64,
    /// Time in which it starved.
    pub starving_ms: i64,
}

/// An operation in all runs, the base first.
#[derive(Clone, PartialEq, Debug)]
pub struct OperationEffect {
    /// Its `id` in the workload.
    pub id: String,
    /// By run; none where there is no such operation.
    pub runs: Vec<Option<OperationFate>>,
}

impl PoolEffect {
    /// The largest difference of cores to the base.
    pub fn change(&self) -> f64 {
        let usage = |fate: &Option<PoolFate>| fate.map_or(0.0, |fate| fate.usage_cpu);
        let base = self.runs.first().map_or(0.0, usage);
        self.runs.iter().map(|fate| (usage(fate) - base).abs()).fold(0.0, f64::max)
    }
}

impl OperationEffect {
    /// How far its start and its end move; what never comes is further away than anything.
    pub fn change(&self) -> u64 {
        let moved = |of: fn(&OperationFate) -> Option<i64>| {
            let at = |fate: &Option<OperationFate>| fate.as_ref().and_then(of);
            let base = self.runs.first().and_then(at);
            let by_run = self.runs.iter().skip(1).map(move |fate| match (base, at(fate)) {
                (Some(base), Some(found)) => base.abs_diff(found),
                (None, None) => 0,
                _ => u64::MAX / 2,
            });
            by_run.max().unwrap_or(0)
        };
        moved(|fate| fate.lasts_ms).max(moved(|fate| fate.wait_ms))
    }
}

/// Pools and operations of runs in these directories, those that change most first.
pub fn effects(folders: &[&Path]) -> Result<(Vec<PoolEffect>, Vec<OperationEffect>), SimError> {
    let mut operations: BTreeMap<String, Vec<Option<OperationFate>>> = BTreeMap::new();
    let mut series = Vec::new();
    for (run, folder) in folders.iter().enumerate() {
        for (id, fate) in operations_of(folder)? {
            operations.entry(id).or_insert_with(|| vec![None; folders.len()])[run] = Some(fate);
        }
        series.push(pools_of(folder)?);
    }
    // Nobody gains or loses when all work is done, or is suspended.
    let ended = operations.values().flatten().flatten().filter_map(|fate| fate.ends_ms).max();
    let common = series.iter().map(|pools| pools.last).min().unwrap_or(0);
    let common = ended.map_or(common, |end| common.min(end.unsigned_abs()));
    let mut pools: BTreeMap<(String, String), Vec<Option<PoolFate>>> = BTreeMap::new();
    for (run, found) in series.iter().enumerate() {
        for (name, rows) in &found.by_pool {
            pools.entry(name.clone()).or_insert_with(|| vec![None; folders.len()])[run] = mean(rows, common);
        }
    }
    let pools = pools.into_iter().map(|((tree, pool), runs)| PoolEffect { tree, pool, runs });
    let mut pools: Vec<PoolEffect> = pools.collect();
    let operations = operations.into_iter().map(|(id, runs)| OperationEffect { id, runs });
    let mut operations: Vec<OperationEffect> = operations.collect();
    pools.sort_by(|a, b| b.change().total_cmp(&a.change()));
    operations.sort_by_key(|operation| std::cmp::Reverse(operation.change()));
    Ok((pools, operations))
}

fn operations_of(folder: &Path) -> Result<BTreeMap<String, OperationFate>, SimError> {
    let columns = [
        "id",
        "state",
        "at_ms",
        "first_allocation_ms",
        "finish_ms",
        "preempted_job_count",
        "starving_ms",
        "interrupted",
    ];
    let mut all = BTreeMap::new();
    each(folder, "operations", &columns, |row| {
        let whole = |column| row.number(column).map(|ms| ms as i64);
        let at = whole(2).unwrap_or(0);
        let fate = OperationFate {
            state: row.text(1).to_owned(),
            wait_ms: whole(3).map(|ms| ms - at),
            lasts_ms: whole(4).map(|ms| ms - at),
            ends_ms: whole(4),
            preempted: whole(5).unwrap_or(0) + whole(7).unwrap_or(0),
            starving_ms: whole(6).unwrap_or(0),
        };
        all.insert(row.text(0).to_owned(), fate);
    })?;
    Ok(all)
}

/// Time, cores, starving.
type Sample = (u64, f64, bool);

struct PoolRows {
    by_pool: BTreeMap<(String, String), Vec<Sample>>,
    last: u64,
}

fn pools_of(folder: &Path) -> Result<PoolRows, SimError> {
    let mut rows = PoolRows { by_pool: BTreeMap::new(), last: 0 };
    each(folder, "pools", &["t_ms", "tree", "pool", "usage_cpu", "starving"], |row| {
        let at = row.number(0).unwrap_or(0.0) as u64;
        let sample = (at, row.number(3).unwrap_or(0.0), row.number(4).is_some_and(|level| level > 0.0));
        let name = (row.text(1).to_owned(), row.text(2).to_owned());
        rows.by_pool.entry(name).or_default().push(sample);
        rows.last = rows.last.max(at);
    })?;
    Ok(rows)
}

fn mean(rows: &[Sample], until: u64) -> Option<PoolFate> {
    let common: Vec<&Sample> = rows.iter().filter(|(at, ..)| *at <= until).collect();
    let count = common.len() as f64;
    (count > 0.0).then(|| PoolFate {
        usage_cpu: common.iter().map(|(_, cores, _)| cores).sum::<f64>() / count,
        starving: common.iter().filter(|(.., starving)| *starving).count() as f64 / count,
    })
}

const COLUMNS: &[Column] = &[
    text("operation"),
    text("run"),
    text("state"),
    int("wait_ms"),
    int("lasts_ms"),
    int("preempted_job_count"),
    int("starving_ms"),
];

/// Writes what comes of operations, a row for each run.
pub(crate) fn write(
    folder: &Path,
    names: &[String],
    operations: &[OperationEffect],
    format: Format,
) -> Result<(), SimError> {
    let mut table = Table::create(folder, "comparison_operations", COLUMNS, format)?;
    let cell = |ms: Option<i64>| ms.map_or(Cell::Empty, Cell::Int);
    for operation in operations {
        for (name, fate) in names.iter().zip(&operation.runs) {
            let Some(fate) = fate else { continue };
            table.row(&[
                Cell::text(&operation.id),
                Cell::text(name),
                Cell::text(&fate.state),
                cell(fate.wait_ms),
                cell(fate.lasts_ms),
                Cell::Int(fate.preempted),
                Cell::Int(fate.starving_ms),
            ])?;
        }
    }
    table.finish()
}
