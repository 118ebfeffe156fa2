//! The workload as a file, and a scenario around it.

use super::build::Built;
use super::mapping::Mapping;
use super::places;
use crate::error::SimError;
use crate::output::{cannot_write, write_json};
use flate2::{Compression, write::GzEncoder};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use yson::{JsonFormat, Map, Value};

/// The longest that the last jobs of a log may take after it: the run ends when all is done.
const AFTERMATH_MS: u64 = 365 * 86_400_000;

/// Writes JSON lines, in gzip if the name ends with `.gz`.
pub(super) fn workload(path: &Path, operations: &[Built]) -> Result<(), SimError> {
    let file = File::create(path).map_err(|e| cannot_write(path, &e))?;
    let file = BufWriter::with_capacity(1 << 18, file);
    let written = match path.extension().is_some_and(|e| e == "gz") {
        true => {
            let mut packed = GzEncoder::new(file, Compression::default());
            lines(&mut packed, operations).and_then(|()| packed.finish()).and_then(|mut file| file.flush())
        }
        false => {
            let mut file = file;
            lines(&mut file, operations).and_then(|()| file.flush())
        }
    };
    written.map_err(|e| cannot_write(path, &e))
}

fn lines(out: &mut dyn Write, operations: &[Built]) -> std::io::Result<()> {
    for operation in operations {
        // The line is borrowed for the writing of it alone.
        out.write_all(&yson::json::to_json(&Value::Map(operation.line.clone()), &JsonFormat::utf8()))?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Writes a scenario with the cluster and the pools of the mapping file. Pools that operations name and that
/// are not there are added to it: below `fallback_parent`, if the first part of their path is new.
pub(super) fn scenario(
    path: &Path,
    workload: &Path,
    mapping: &Mapping,
    operations: &[Built],
) -> Result<(), SimError> {
    let missing = |key: &str| {
        let what = format!("a scenario needs {key:?} beside \"import\" in the mapping file");
        SimError::file(path, what)
    };
    let cluster = mapping.cluster.clone().ok_or_else(|| missing("cluster"))?;
    let mut pool_trees = mapping.pool_trees.clone().ok_or_else(|| missing("pool_trees"))?;
    let tree = pool_trees.get("default_tree").and_then(Value::as_str).map(str::to_owned);
    let mut scheduler_config = Map::new();
    make_room(&mut scheduler_config, &[CLUSTER_LIMIT], operations.len());
    let pools = tree.and_then(|tree| {
        let trees = pool_trees.as_map_mut()?.get_mut("trees")?.as_map_mut()?;
        let tree = trees.get_mut(&tree)?.as_map_mut()?;
        let config = tree.entry_or_insert("config", || Value::Map(Map::new()));
        make_room(config.as_map_mut()?, TREE_LIMITS, operations.len());
        Some(tree.entry_or_insert("pools", || Value::Map(Map::new())))
    });
    let pools = pools.and_then(Value::as_map_mut).ok_or_else(|| missing("pool_trees/default_tree"))?;
    for operation in operations {
        let mut at = &mut *pools;
        let Some(first) = operation.place.first() else { continue };
        if let Some(parent) = mapping.fallback_parent.as_ref().filter(|_| !at.contains(first)) {
            at = child(at, parent).ok_or_else(|| missing("pool_trees"))?;
        }
        for depth in 1..=operation.place.len() {
            at = child(at, &places::name(&operation.place[..depth])).ok_or_else(|| missing("pool_trees"))?;
        }
    }
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let last = operations.last().map_or(0, |operation| operation.at_ms);
    let document = yson::map! {
        "format" => crate::scenario::FORMAT,
        "name" => name,
        "seed" => 1u64,
        "duration_ms" => last + AFTERMATH_MS,
        "stop" => "when_idle",
        "cluster" => cluster,
        "pool_trees" => pool_trees,
        "scheduler_config" => scheduler_config,
        "workload" => vec![Value::from(beside(path, workload).as_str())],
    };
    write_json(path, &document.into())
}

/// How many operations a tree takes, with the defaults of production.
const TREE_LIMITS: &[(&str, usize)] = &[
    ("max_operation_count", 50_000),
    ("max_running_operation_count", 2000),
    ("max_operation_count_per_pool", 50),
    ("max_running_operation_count_per_pool", 50),
];
/// And the cluster.
const CLUSTER_LIMIT: (&str, usize) = ("max_operation_count", 5000);

/// A log has one operation for each job that somebody submitted, and what it had was accepted: limits on
/// numbers of operations that nobody has set are as high as it needs.
fn make_room(config: &mut Map, limits: &[(&str, usize)], operations: usize) {
    for (name, default) in limits {
        if operations > *default && !config.contains(name) {
            config.insert(name, operations);
        }
    }
}

/// The pools below a pool, which is made if it is not there.
fn child<'a>(pools: &'a mut Map, name: &str) -> Option<&'a mut Map> {
    let pool = pools.entry_or_insert(name, || Value::Map(Map::new()));
    pool.as_map_mut()?.entry_or_insert("pools", || Value::Map(Map::new())).as_map_mut()
}

/// The name of a file for one that stands in a folder.
fn beside(scenario: &Path, workload: &Path) -> String {
    let folder = |path: &Path| path.parent().unwrap_or(Path::new("")).to_owned();
    match folder(scenario) == folder(workload) {
        true => workload.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        false => std::path::absolute(workload).unwrap_or_else(|_| workload.to_owned()).display().to_string(),
    }
}
