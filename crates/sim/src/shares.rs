//! One fair-share update of a described tree (simulator.md 2): who would get what.
//!
//! The demand of a pool is an operation of equal jobs in it; everything else is a scenario's.

use crate::engine::Stopped;
use crate::error::SimError;
use crate::output::Cell;
use crate::scenario::{Document, Scenario, read_document};
use std::path::Path;
use vocab::Span;
use yson::fields::{FieldError, Fields};
use yson::{JsonFormat, Value};

/// Reads a tree, computes its shares once, and gives the rows of `pools.csv` with what was refused.
pub fn shares(path: &Path) -> Result<(Vec<Vec<Cell>>, Vec<String>), SimError> {
    let mut document = read_document(path)?;
    let lines = complete(&mut document)?;
    let mut scenario = Scenario::from_document(document)?;
    scenario.inline = lines;
    let stopped = Stopped::at(&scenario, Span::ZERO, &mut |_| true)?;
    let mut stopped = stopped.ok_or_else(|| SimError::file(path, "stopped"))?;
    Ok((stopped.pools(), stopped.refusals().to_vec()))
}

/// Makes a scenario of it; gives the operations of its demands.
fn complete(document: &mut Document) -> Result<Vec<u8>, SimError> {
    let path = document.path.clone();
    let map = document.value.as_map_mut().ok_or_else(|| SimError::file(&path, "expected a JSON object"))?;
    let demand = map.remove("demand");
    map.entry_or_insert("format", || crate::scenario::FORMAT.into());
    map.entry_or_insert("name", || "shares".into());
    map.entry_or_insert("duration_ms", || 1i64.into());
    map.entry_or_insert("workload", || Value::from(Vec::<Value>::new()));
    // What a job demands is what is told, without a proxy.
    map.entry_or_insert("controller_config", || Value::Map(yson::map! {"footprint_memory" => 0i64}));
    let Some(demand) = demand else { return Ok(Vec::new()) };
    let wrong = |e: FieldError| SimError::field(&path, None, e);
    let pools = demand.as_map();
    let pools =
        pools.ok_or_else(|| wrong(FieldError::expected("demand", "map from pools to resources", &demand)))?;
    let mut lines = Vec::new();
    for (pool, resources) in pools.iter() {
        let pool = String::from_utf8_lossy(pool).into_owned();
        let at = format!("demand/{pool}");
        let inner =
            resources.as_map().ok_or_else(|| wrong(FieldError::expected(at.as_str(), "map", resources)))?;
        let mut fields = Fields::new(inner, at);
        let tasks = tasks(&mut fields).and_then(|tasks| fields.finish().map(|()| tasks)).map_err(wrong)?;
        if tasks.is_empty() {
            continue;
        }
        let line = yson::map! {
            "id" => pool.as_str(), "at" => 0i64, "user" => "root", "pool" => pool.as_str(),
            "spec" => yson::map! {"memory_reserve_factor" => 1.0},
            "tasks" => tasks,
        };
        lines.extend(yson::json::to_json(&line.into(), &JsonFormat::utf8()));
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Jobs that demand this together: of one core each, and one of the rest.
fn tasks(f: &mut Fields<'_>) -> Result<Vec<Value>, FieldError> {
    let cpu = f.take_f64("cpu").within(0.0..=1e7).or(0.0)?;
    let memory = f.take_f64("memory").within(0.0..=1e17).or(0.0)?;
    let gpu = f.take_u64("gpu").within(0..=1_000_000).or(0)?;
    // How many, and which part of everything each of them is. A device cannot be cut, a core can be in a hundred.
    let mut parts = Vec::new();
    if gpu > 0 {
        parts.push((gpu, 1.0 / gpu as f64));
    } else if cpu > 0.0 {
        let (whole, rest) = (cpu.floor(), cpu.fract());
        parts.push((whole as u64, 1.0 / cpu));
        parts.push((u64::from(rest >= 0.005), rest / cpu));
    } else if memory > 0.0 {
        let jobs = (memory / (1u64 << 40) as f64).ceil();
        parts.push((jobs as u64, 1.0 / jobs));
    }
    let used = parts.into_iter().filter(|(jobs, _)| *jobs > 0).enumerate();
    let task = used.map(|(number, (jobs, part))| {
        let task = yson::map! {
            "name" => format!("t{number}"), "job_count" => jobs, "cpu" => cpu * part,
            "memory" => (memory * part).max(1.0) as i64, "duration" => 1000i64,
        };
        Value::Map(task.with_some("gpu", (gpu > 0).then_some(1i64)))
    });
    Ok(task.collect())
}
