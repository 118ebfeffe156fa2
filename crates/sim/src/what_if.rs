//! The same workload and seed under changed settings, side by side (simulator.md 11).

use crate::effects::{OperationEffect, PoolEffect, effects};
use crate::engine::{Options, Progress, run};
use crate::error::SimError;
use crate::output::{Cell, Format, Table, write_json};
use crate::scenario::{Scenario, read_value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use yson::fields::{FieldError, Fields};
use yson::{Map, Value};

/// Changes to a scenario, from a file.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name, also of its directory.
    pub name: String,
    /// JSON pointers and values; `null` removes.
    pub set: Vec<(String, Value)>,
}

impl Variant {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Variant, SimError> {
        let value = read_value(path)?;
        let map = value.as_map().ok_or_else(|| SimError::file(path, "expected a JSON object"))?;
        let mut fields = Fields::new(map, "");
        let variant = read(&mut fields).and_then(|v| fields.finish().map(|()| v));
        variant.map_err(|e| SimError::field(path, None, e))
    }
}

fn read(f: &mut Fields<'_>) -> Result<Variant, FieldError> {
    const FORMAT: &str = "millpond-variant/1";
    f.take_parsed("format", "\"millpond-variant/1\"", |s| (s == FORMAT).then_some(())).required()?;
    f.take_str("description").optional()?;
    let name = f
        .take_str("name")
        .check("a name of letters, digits, \"_\", \"-\" and \".\" that is not \"base\"", |s| {
            let good = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
            !s.is_empty() && !s.starts_with('.') && *s != "base" && s.bytes().all(good)
        })
        .required()?
        .to_owned();
    let set = f.take_map("set").required()?;
    let set = set.iter().map(|(at, value)| (String::from_utf8_lossy(at).into_owned(), value.clone()));
    Ok(Variant { name, set: set.collect() })
}

/// A figure of all runs, the base first.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Its path in the summary.
    pub metric: String,
    /// By run; none where the run has no such figure.
    pub values: Vec<Option<f64>>,
}

impl Row {
    /// The largest relative difference to the base.
    pub fn change(&self) -> f64 {
        let base = self.values.first().copied().flatten();
        let change = |value: &Option<f64>| match (base, value) {
            (Some(base), Some(value)) if base == *value => 0.0,
            (Some(base), Some(value)) => (value - base).abs() / base.abs().max(value.abs()),
            (None, None) => 0.0,
            _ => 1.0,
        };
        self.values.iter().skip(1).map(change).fold(0.0, f64::max)
    }
}

/// Runs side by side.
#[derive(Clone, Debug)]
pub struct SideBySide {
    /// `base`, then the variants.
    pub names: Vec<String>,
    /// Figures by name.
    pub rows: Vec<Row>,
    /// Pools, those that change most first.
    pub pools: Vec<PoolEffect>,
    /// Operations, those that move most first.
    pub operations: Vec<OperationEffect>,
    /// Somebody wanted to stop: the last run is not complete.
    pub interrupted: bool,
}

/// Runs a scenario and its variants, each into a directory of its name, and compares the summaries.
pub fn what_if(
    scenario: &Path,
    changes: &[(String, Value)],
    variants: &[Variant],
    folder: &Path,
    options: Options,
    watch: &mut dyn FnMut(&str, &Progress) -> bool,
) -> Result<SideBySide, SimError> {
    // All are read before the first of them runs.
    let mut runs = vec![("base".to_owned(), Scenario::load(scenario, changes)?)];
    for variant in variants {
        if runs.iter().any(|(name, _)| *name == variant.name) {
            return Err(SimError::file(Path::new(&variant.name), "two variants have this name"));
        }
        let all: Vec<_> = changes.iter().chain(&variant.set).cloned().collect();
        runs.push((variant.name.clone(), Scenario::load(scenario, &all)?));
    }
    let mut figures: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
    let mut interrupted = false;
    let count = runs.len();
    for (number, (name, scenario)) in runs.iter().enumerate() {
        let ran = run(scenario, &folder.join(name), options, &mut |p| watch(name, p), &mut |_| Map::new())?;
        interrupted |= ran.interrupted;
        let mut numbers = Vec::new();
        flatten("", &Value::Map(ran.summary), &mut numbers);
        for (metric, value) in numbers {
            figures.entry(metric).or_insert_with(|| vec![None; count])[number] = Some(value);
        }
        if interrupted {
            break;
        }
    }
    let names: Vec<String> = runs.into_iter().map(|(name, _)| name).collect();
    let rows = figures.into_iter().map(|(metric, values)| Row { metric, values }).collect();
    let (mut pools, mut operations) = (Vec::new(), Vec::new());
    if !interrupted {
        let folders: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        (pools, operations) = effects(&folders.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
        crate::effects::write(folder, &names, &operations, options.format)?;
    }
    let result = SideBySide { names, rows, pools, operations, interrupted };
    write(folder, &result, options.format)?;
    Ok(result)
}

const COLUMNS: &[&str] = &["metric", "run", "base", "value", "difference", "relative"];

fn write(folder: &Path, all: &SideBySide, format: Format) -> Result<(), SimError> {
    let mut table = Table::create(folder, "comparison", COLUMNS, format)?;
    let mut document = Map::new();
    for row in &all.rows {
        let named = all.names.iter().zip(&row.values);
        document
            .insert(&row.metric, named.clone().map(|(n, v)| (n.as_str(), Value::from(*v))).collect::<Map>());
        let base = row.values[0];
        let cell = |x: Option<f64>| x.map_or(Cell::Empty, Cell::Number);
        for (name, value) in named.skip(1) {
            let difference = base.zip(*value).map(|(base, value)| value - base);
            let relative = base.zip(difference).filter(|(b, _)| *b != 0.0).map(|(b, d)| d / b.abs());
            table.row(&[
                Cell::text(&row.metric),
                Cell::text(name),
                cell(base),
                cell(*value),
                cell(difference),
                cell(relative),
            ])?;
        }
    }
    table.finish()?;
    write_json(&folder.join("comparison.json"), &document.into())
}

fn flatten(at: &str, value: &Value, out: &mut Vec<(String, f64)>) {
    match value {
        Value::Map(map) => {
            for (key, inner) in map.iter() {
                let key = String::from_utf8_lossy(key);
                flatten(&if at.is_empty() { key.into_owned() } else { format!("{at}.{key}") }, inner, out);
            }
        }
        other => out.extend(other.as_f64().map(|x| (at.to_owned(), x))),
    }
}
