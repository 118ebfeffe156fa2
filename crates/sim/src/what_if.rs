//! The same workload and seed under changed settings, side by side (simulator.md 11).

use crate::effects::{OperationEffect, PoolEffect, effects};
use crate::engine::{Options, Progress, run};
use crate::error::SimError;
use crate::output::{Cell, Column, Format, Table, num, text, write_json};
use crate::scenario::{Scenario, read_value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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

/// How much of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// So many seeds for each: the scenario's, and those after it.
    pub seeds: u64,
    /// So many runs at a time. What comes out is the same.
    pub threads: usize,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan { seeds: 1, threads: 1 }
    }
}

/// A figure of all runs, the base first.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Its path in the summary.
    pub metric: String,
    /// By run, the mean of its seeds; none where the run has no such figure.
    pub values: Vec<Option<f64>>,
    /// By run, of several seeds: where the mean difference to the base of the same seed is, with 95 %.
    pub intervals: Vec<Option<(f64, f64)>>,
}

impl Row {
    /// Another seed might as well have shown the opposite, or nothing.
    pub fn is_noise(&self, run: usize) -> bool {
        self.intervals.get(run).copied().flatten().is_some_and(|(low, high)| low <= 0.0 && high >= 0.0)
    }

    /// The largest relative difference to the base that is not noise.
    pub fn change(&self) -> f64 {
        let base = self.values.first().copied().flatten();
        let change = |value: &Option<f64>| match (base, value) {
            (Some(base), Some(value)) if base == *value => 0.0,
            (Some(base), Some(value)) => (value - base).abs() / base.abs().max(value.abs()),
            (None, None) => 0.0,
            _ => 1.0,
        };
        let real = self.values.iter().enumerate().skip(1).filter(|(run, _)| !self.is_noise(*run));
        real.map(|(_, value)| change(value)).fold(0.0, f64::max)
    }
}

/// Runs side by side.
#[derive(Clone, Debug)]
pub struct SideBySide {
    /// `base`, then the variants.
    pub names: Vec<String>,
    /// Figures by name.
    pub rows: Vec<Row>,
    /// Pools, those that change most first; of the first seed.
    pub pools: Vec<PoolEffect>,
    /// Operations, those that move most first; of the first seed.
    pub operations: Vec<OperationEffect>,
    /// Somebody wanted to stop: not all runs are complete.
    pub interrupted: bool,
}

/// One of the runs that are to be done.
struct Job {
    /// Place of the variant among the names.
    run: usize,
    seed: usize,
    /// Also of its directory.
    name: String,
    scenario: Scenario,
}

/// Runs a scenario and its variants, each into a directory of its name (those of further seeds with the
/// seed), and compares the summaries. `watch` is told which run is how far, and says whether to go on.
pub fn what_if(
    scenario: &Path,
    changes: &[(String, Value)],
    variants: &[Variant],
    folder: &Path,
    options: Options,
    plan: Plan,
    watch: &(dyn Fn(&str, &Progress) -> bool + Sync),
) -> Result<SideBySide, SimError> {
    // All are read before the first of them runs.
    let mut names = vec!["base".to_owned()];
    let mut jobs = Vec::new();
    for (run, variant) in std::iter::once(None).chain(variants.iter().map(Some)).enumerate() {
        if let Some(variant) = variant {
            if names.contains(&variant.name) {
                return Err(SimError::file(Path::new(&variant.name), "two variants have this name"));
            }
            names.push(variant.name.clone());
        }
        let set = variant.map_or(&[][..], |variant| &variant.set);
        let all: Vec<_> = changes.iter().chain(set).cloned().collect();
        let loaded = Scenario::load(scenario, &all)?;
        for seed in 0..plan.seeds.max(1) {
            let mut all = all.clone();
            let number = loaded.seed.wrapping_add(seed);
            all.push(("/seed".to_owned(), number.into()));
            let (name, scenario) = match seed {
                0 => (names[run].clone(), loaded.clone()),
                _ => (format!("{}-seed-{number}", names[run]), Scenario::load(scenario, &all)?),
            };
            jobs.push(Job { run, seed: seed as usize, name, scenario });
        }
    }
    let summaries = run_all(&jobs, folder, options, plan.threads, watch)?;
    let interrupted = summaries.iter().any(Option::is_none);
    let mut figures: BTreeMap<String, Vec<Vec<Option<f64>>>> = BTreeMap::new();
    for (job, summary) in jobs.iter().zip(summaries) {
        let mut numbers = Vec::new();
        flatten("", &Value::Map(summary.unwrap_or_default()), &mut numbers);
        for (metric, value) in numbers {
            let runs = figures
                .entry(metric)
                .or_insert_with(|| vec![vec![None; plan.seeds.max(1) as usize]; names.len()]);
            runs[job.run][job.seed] = Some(value);
        }
    }
    // Different by definition.
    figures.remove("seed");
    let rows = figures.into_iter().map(|(metric, runs)| compared(metric, &runs)).collect();
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

/// Summaries of the runs; none of one that was not finished. Which thread does what changes nothing.
fn run_all(
    jobs: &[Job],
    folder: &Path,
    options: Options,
    threads: usize,
    watch: &(dyn Fn(&str, &Progress) -> bool + Sync),
) -> Result<Vec<Option<Map>>, SimError> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        let mut done = Vec::new();
        while let Some((number, job)) = take(jobs, &next).filter(|_| !stop.load(Ordering::Relaxed)) {
            let mut look = |progress: &Progress| watch(&job.name, progress) && !stop.load(Ordering::Relaxed);
            let out = folder.join(&job.name);
            let ran = run(&job.scenario, &out, options, &mut look, &mut |_| Map::new());
            let whole = ran.as_ref().is_ok_and(|ran| !ran.interrupted);
            stop.fetch_or(!whole, Ordering::Relaxed);
            done.push((number, ran));
        }
        done
    };
    let done = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads.clamp(1, jobs.len())).map(|_| scope.spawn(work)).collect();
        // A thread that panicked is a mistake of the simulator: it goes on here.
        let join = |thread: std::thread::ScopedJoinHandle<'_, Vec<_>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().flat_map(join).collect::<Vec<_>>()
    });
    let mut summaries = vec![None; jobs.len()];
    for (number, ran) in done {
        let ran = ran?;
        summaries[number] = (!ran.interrupted).then_some(ran.summary);
    }
    Ok(summaries)
}

fn take<'a>(jobs: &'a [Job], next: &AtomicUsize) -> Option<(usize, &'a Job)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, jobs.get(number)?))
}

/// Means, and intervals of the differences between runs of the same seed.
fn compared(metric: String, runs: &[Vec<Option<f64>>]) -> Row {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let known = |seeds: &[Option<f64>]| seeds.iter().copied().flatten().collect::<Vec<f64>>();
    let value = |seeds: &Vec<Option<f64>>| Some(known(seeds)).filter(|v| !v.is_empty()).map(|v| mean(&v));
    let interval = |seeds: &Vec<Option<f64>>| {
        let pairs = seeds.iter().zip(&runs[0]);
        let differences: Vec<f64> = pairs.filter_map(|(value, base)| Some((*value)? - (*base)?)).collect();
        let count = differences.len();
        if count < 2 {
            return None;
        }
        let middle = mean(&differences);
        let spread = differences.iter().map(|d| (d - middle).powi(2)).sum::<f64>() / (count - 1) as f64;
        let half = student(count - 1) * (spread / count as f64).sqrt();
        Some((middle - half, middle + half))
    };
    Row { metric, values: runs.iter().map(value).collect(), intervals: runs.iter().map(interval).collect() }
}

/// Two-sided 95 % quantile of Student's distribution.
fn student(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    TABLE.get(freedom.saturating_sub(1)).copied().unwrap_or(1.96)
}

const COLUMNS: &[Column] = &[
    text("metric"),
    text("run"),
    num("base"),
    num("value"),
    num("difference"),
    num("relative"),
    num("difference_from"),
    num("difference_to"),
];

fn write(folder: &Path, all: &SideBySide, format: Format) -> Result<(), SimError> {
    let mut table = Table::create(folder, "comparison", COLUMNS, format)?;
    let mut document = Map::new();
    for row in &all.rows {
        let named = all.names.iter().zip(&row.values);
        document
            .insert(&row.metric, named.clone().map(|(n, v)| (n.as_str(), Value::from(*v))).collect::<Map>());
        let base = row.values[0];
        let cell = |x: Option<f64>| x.map_or(Cell::Empty, Cell::Number);
        for ((name, value), interval) in named.zip(&row.intervals).skip(1) {
            let difference = base.zip(*value).map(|(base, value)| value - base);
            let relative = base.zip(difference).filter(|(b, _)| *b != 0.0).map(|(b, d)| d / b.abs());
            table.row(&[
                Cell::text(&row.metric),
                Cell::text(name),
                cell(base),
                cell(*value),
                cell(difference),
                cell(relative),
                cell(interval.map(|(low, _)| low)),
                cell(interval.map(|(_, high)| high)),
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
