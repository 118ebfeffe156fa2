//! Workloads of others in the native format (simulator.md 6).
//!
//! ```text
//! swf | mjobs | event log --> [Row] --mapping--> operations --> workload.jsonl[.gz], scenario.json
//! ```
//!
//! A line that cannot be used is skipped and counted by its reason; the rest is imported. What was written
//! is read back by the reader of workloads, and its jobs and core-seconds are compared with those of the
//! rows: an import that loses work is an error.

mod build;
mod event_log;
mod mapping;
mod mjobs;
mod peaks;
mod places;
mod row;
mod swf;
mod totals;
mod write;

pub use mapping::Mapping;
pub use totals::Totals;

use crate::error::SimError;
use crate::workload::open;
use row::Row;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use yson::Map;

/// What is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Standard Workload Format, 18 columns.
    Swf,
    /// Tables of tasks, `traces/README.md`.
    Mjobs,
    /// What `millpond events --json` prints.
    EventLog,
}

/// Lines that could not be used: how many by reason, and the first of each.
#[derive(Clone, Debug, Default)]
pub struct Skipped {
    reasons: BTreeMap<String, (u64, String)>,
}

impl Skipped {
    fn add(&mut self, path: &Path, line: u64, reason: &str) {
        let place = || format!("{}, line {line}", path.display());
        self.reasons.entry(reason.to_owned()).or_insert_with(|| (0, place())).0 += 1;
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.reasons.values().map(|(count, _)| count).sum()
    }

    /// Reasons with how many, and where the first of them is.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64, &str)> {
        self.reasons.iter().map(|(reason, (count, first))| (reason.as_str(), *count, first.as_str()))
    }
}

/// What an import came to.
#[derive(Clone, Debug)]
pub struct Imported {
    /// Lines that could not be used.
    pub skipped: Skipped,
    /// What was left out or bent on purpose, with how many.
    pub notes: BTreeMap<&'static str, u64>,
    /// Of what was written.
    pub totals: Totals,
    /// Part of the cores of the mapping's cluster that the work fills from the first submission to the last.
    pub load: Option<f64>,
}

/// Imports files into a workload; with `scenario` also a scenario of the cluster and the pools that the
/// mapping file has, in which all pools are that operations name.
pub fn import(
    kind: Kind,
    inputs: &[PathBuf],
    mapping: &Mapping,
    out: &Path,
    scenario: Option<&Path>,
) -> Result<Imported, SimError> {
    let mut skipped = Skipped::default();
    let mut rows = Vec::new();
    for input in inputs {
        match kind {
            Kind::Swf => swf::read(input, mapping.processors_used, &mut rows, &mut skipped)?,
            Kind::Mjobs => mjobs::read(input, &mut rows, &mut skipped)?,
            Kind::EventLog => event_log::read(input, mapping.start_time, &mut rows, &mut skipped)?,
        }
    }
    let mut notes = BTreeMap::new();
    let rows = build::prepare(rows, mapping, &mut notes);
    let operations = build::operations(rows, mapping, &mut notes);
    let want = operations.iter().fold(Totals::default(), |sum, o| sum.and(&o.totals));
    write::workload(out, &operations)?;
    let totals = totals::of_file(out)?;
    totals.must_be(&want, out)?;
    if let Some(path) = scenario {
        write::scenario(path, out, mapping, &operations)?;
    }
    let load = mapping.cores().filter(|cores| *cores > 0.0 && totals.last_ms > totals.first_ms);
    let span = (totals.last_ms - totals.first_ms) as f64 / 1000.0;
    let load = load.map(|cores| totals.core_seconds / (cores * span));
    Ok(Imported { skipped, notes, totals, load })
}

impl Imported {
    /// For people and programs.
    pub fn to_map(&self) -> Map {
        let skipped = self
            .skipped
            .iter()
            .map(|(reason, count, first)| (reason, yson::map! {"lines" => count, "first" => first}));
        let notes = self.notes.iter().map(|(what, count)| (*what, *count));
        let mut map = self.totals.to_map();
        map.insert("skipped", skipped.collect::<Map>());
        map.insert("notes", notes.collect::<Map>());
        map.with_some("load", self.load.map(|load| (load * 1000.0).round() / 1000.0))
    }
}

/// The lines of a file, without their ends, with their numbers.
fn each_line(
    path: &Path,
    skipped: &mut Skipped,
    mut act: impl FnMut(&str, u64, &mut Skipped),
) -> Result<(), SimError> {
    let mut input = open(path)?;
    let (mut buffer, mut number) = (Vec::new(), 0);
    loop {
        buffer.clear();
        number += 1;
        let read = input.read_until(b'\n', &mut buffer);
        let read = read.map_err(|e| SimError::file(path, format!("line {number} cannot be read: {e}")))?;
        if read == 0 {
            return Ok(());
        }
        match std::str::from_utf8(buffer.trim_ascii()) {
            Ok("") => {}
            Ok(line) => act(line, number, skipped),
            Err(_) => skipped.add(path, number, "not UTF-8"),
        }
    }
}
