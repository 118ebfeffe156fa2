//! A run as the page shows it.

use super::attempts;
use super::rows;
use super::series::{Line, means, thin, value};
use crate::check::Comparison;
use crate::error::SimError;
use crate::scenario::read_value;
use std::collections::BTreeMap;
use std::path::Path;
use yson::{Map, Value};

/// A run that is repeated is the same page: how fast it was is left out.
fn shown(mut summary: Value) -> Value {
    if let Some(map) = summary.as_map_mut() {
        map.remove("performance");
    }
    summary
}

/// Columns of a pool that are drawn.
const LINES: &[&str] = &[
    "demand_cpu",
    "usage_cpu",
    "fair_share_cpu",
    "guarantee_cpu",
    "accumulated_volume_cpu_s",
    "integral_pool_capacity_cpu_s",
    "starving",
    "demand_gpu",
    "usage_gpu",
    "fair_share_gpu",
    "usage_memory",
];

/// A pool of a tree, by the scenario.
struct Pool {
    name: String,
    depth: usize,
    integral: bool,
}

/// Reads the directory of a run.
pub(super) fn read(folder: &Path, checks: &[Comparison]) -> Result<Map, SimError> {
    let summary = read_value(&folder.join("summary.json"))?;
    let scenario = read_value(&folder.join("scenario.json"))?;
    let seconds = summary.get("virtual_ms").and_then(Value::as_f64).unwrap_or_default() / 1000.0;
    let mut series = read_series(folder)?;
    let mut trees = Map::new();
    let listed = scenario.get("pool_trees").and_then(|t| t.get("trees")?.as_map());
    for (name, tree) in listed.unwrap_or(Map::EMPTY).iter() {
        let name = String::from_utf8_lossy(name).into_owned();
        let mut pools = vec![Pool { name: "<Root>".into(), depth: 0, integral: false }];
        walk(tree, 1, &mut pools);
        // Pools that came in the course of the run.
        let mut own = series.remove(&name).unwrap_or_default();
        let new: Vec<String> = own.keys().filter(|p| !pools.iter().any(|q| q.name == **p)).cloned().collect();
        pools.extend(new.into_iter().map(|name| Pool { name, depth: 1, integral: false }));
        let figures = summary.get("pools").and_then(|all| all.get(&name)).cloned().unwrap_or_default();
        trees.insert(&name, tree_map(&pools, &mut own, &figures));
    }
    let broken = checks.iter().map(|c| {
        let map = yson::map! {
            "what" => c.what.as_str(), "found" => c.found, "allowed" => c.allowed.as_str(), "holds" => c.holds,
        };
        Value::Map(map)
    });
    let name = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(yson::map! {
        "name" => name,
        "scenario" => summary.get("scenario").cloned().unwrap_or_default(),
        "seconds" => seconds,
        "summary" => shown(summary.clone()),
        "trees" => trees,
        "attempts" => attempts::read(folder, seconds)?.into_map(),
        "checks" => broken.collect::<Vec<_>>(),
    })
}

fn walk(value: &Value, depth: usize, out: &mut Vec<Pool>) {
    let Some(pools) = value.get("pools").and_then(Value::as_map) else { return };
    for (name, pool) in pools.iter() {
        let name = String::from_utf8_lossy(name).into_owned();
        let kind = pool.get("integral_guarantees").and_then(|g| g.get("guarantee_type")?.as_str());
        out.push(Pool { name, depth, integral: kind.is_some_and(|kind| kind != "none") });
        walk(pool, depth + 1, out);
    }
}

/// Lines by tree, pool and column.
type Series = BTreeMap<String, BTreeMap<String, Vec<Line>>>;

fn read_series(folder: &Path) -> Result<Series, SimError> {
    let mut series = Series::new();
    let mut columns = vec!["t_ms", "tree", "pool"];
    columns.extend(LINES);
    rows::each(folder, "pools", &columns, |row| {
        let t = row.number(0).unwrap_or_default() / 1000.0;
        if !series.contains_key(row.text(1)) {
            series.insert(row.text(1).to_owned(), BTreeMap::new());
        }
        let Some(tree) = series.get_mut(row.text(1)) else { return };
        if !tree.contains_key(row.text(2)) {
            tree.insert(row.text(2).to_owned(), vec![Line::new(); LINES.len()]);
        }
        let Some(lines) = tree.get_mut(row.text(2)) else { return };
        for (place, line) in lines.iter_mut().enumerate() {
            line.extend(row.number(3 + place).map(|x| (t, x)));
        }
    })?;
    Ok(series)
}

fn line_of<'a>(lines: &'a [Line], name: &str) -> &'a Line {
    let place = LINES.iter().position(|line| *line == name).unwrap_or_default();
    &lines[place]
}

fn tree_map(pools: &[Pool], series: &mut BTreeMap<String, Vec<Line>>, figures: &Value) -> Map {
    let empty = vec![Line::new(); LINES.len()];
    let mut list = Vec::new();
    for pool in pools {
        let lines = series.get(&pool.name).unwrap_or(&empty);
        let mut map = yson::map! {
            "name" => pool.name.as_str(),
            "depth" => pool.depth,
            "integral" => pool.integral,
            "figures" => figures.get(&pool.name).cloned().unwrap_or_default(),
        };
        // Every pool has its lines of use; those of volumes are drawn of integral pools.
        let mut drawn = vec!["demand_cpu", "usage_cpu", "fair_share_cpu", "guarantee_cpu"];
        if pool.integral {
            drawn.extend(["accumulated_volume_cpu_s", "integral_pool_capacity_cpu_s"]);
        }
        let any_gpu = line_of(lines, "demand_gpu").iter().any(|p| p.1 > 0.0);
        if any_gpu {
            drawn.extend(["demand_gpu", "usage_gpu", "fair_share_gpu"]);
        }
        // Two hundred pools with all lines would be a page of a hundred megabytes.
        if pool.depth <= 1 || pool.integral || pools.len() <= 40 {
            let each = drawn.iter().map(|name| (*name, value(&thin(line_of(lines, name)))));
            map.insert("lines", each.collect::<Map>());
        }
        map.insert("starving", spans(line_of(lines, "starving"), &|x| x > 0.0));
        map.insert("violated", spans(&violation(lines), &|x| x > 0.5));
        list.push(Value::Map(map));
    }
    let top: Vec<&Pool> = pools.iter().filter(|p| p.depth == 1).collect();
    let stack = |column: &str| {
        let lines: Vec<Line> =
            top.iter().map(|p| line_of(series.get(&p.name).unwrap_or(&empty), column).clone()).collect();
        let named = top.iter().zip(means(&lines)).map(|(pool, line)| (pool.name.as_str(), value(&line)));
        named.collect::<Map>()
    };
    yson::map! {"pools" => list, "stack_cpu" => stack("usage_cpu"), "stack_gpu" => stack("usage_gpu")}
}

/// What is missing of min(demand, guarantee).
fn violation(lines: &[Line]) -> Line {
    let (demand, usage) = (line_of(lines, "demand_cpu"), line_of(lines, "usage_cpu"));
    let guarantee = line_of(lines, "guarantee_cpu");
    let each = demand.iter().zip(usage).zip(guarantee);
    each.map(|((d, u), g)| (d.0, (d.1.min(g.1) - u.1).max(0.0))).collect()
}

/// Stretches of time in which something holds: from and to.
fn spans(line: &Line, holds: &dyn Fn(f64) -> bool) -> Value {
    let mut out: Vec<Value> = Vec::new();
    let mut since = None;
    for (t, x) in line {
        match (since, holds(*x)) {
            (None, true) => since = Some(*t),
            (Some(from), false) => {
                out.push(vec![Value::from(from), Value::from(*t)].into());
                since = None;
            }
            _ => {}
        }
    }
    if let (Some(from), Some(last)) = (since, line.last()) {
        out.push(vec![Value::from(from), Value::from(last.0)].into());
    }
    // What cannot be seen apart need not be drawn apart.
    out.truncate(2_000);
    out.into()
}
