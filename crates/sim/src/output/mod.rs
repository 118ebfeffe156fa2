//! The files of a run (simulator.md 8).

mod beside;
mod column;
mod parquet;
pub mod pools;
mod table;

pub(crate) use beside::Beside;
pub use column::{Column, Kind, int, num, text};
pub use table::{Cell, Format, Table, cannot_write, number};

use crate::engine::ledger::{ALLOCATIONS, OPERATIONS};
use crate::error::SimError;
use crate::scenario::Scenario;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use yson::{JsonFormat, Map, Value};

/// Where everything goes.
pub struct Sink {
    folder: PathBuf,
    pools: Option<Table>,
    operations: Option<Table>,
    allocations: Option<Table>,
    events: Option<BufWriter<File>>,
}

impl Sink {
    /// Begins the files of a run in a directory, which is made if it is not there.
    pub fn create(folder: &Path, scenario: &Scenario, format: Format) -> Result<Sink, SimError> {
        std::fs::create_dir_all(folder).map_err(|e| cannot_write(folder, &e))?;
        write_json(&folder.join("scenario.json"), &scenario.standalone())?;
        let events = match scenario.output.event_log {
            true => {
                let path = folder.join("events.jsonl");
                Some(BufWriter::new(File::create(&path).map_err(|e| cannot_write(&path, &e))?))
            }
            false => None,
        };
        let allocations = match scenario.output.allocations {
            true => Some(Table::create(folder, "allocations", ALLOCATIONS, format)?),
            false => None,
        };
        Ok(Sink {
            folder: folder.to_owned(),
            pools: Some(Table::create(folder, "pools", pools::COLUMNS, format)?),
            operations: Some(Table::create(folder, "operations", OPERATIONS, format)?),
            allocations,
            events,
        })
    }

    /// Of a run of which nothing is kept.
    pub(crate) fn nowhere() -> Sink {
        Sink { folder: PathBuf::new(), pools: None, operations: None, allocations: None, events: None }
    }

    pub(crate) fn pool(&mut self, row: &[Cell]) -> Result<(), SimError> {
        self.pools.as_mut().map_or(Ok(()), |table| table.row(row))
    }

    pub(crate) fn operation(&mut self, row: &[Cell]) -> Result<(), SimError> {
        self.operations.as_mut().map_or(Ok(()), |table| table.row(row))
    }

    pub(crate) fn wants_allocations(&self) -> bool {
        self.allocations.is_some()
    }

    pub(crate) fn allocation(&mut self, row: &[Cell]) -> Result<(), SimError> {
        self.allocations.as_mut().map_or(Ok(()), |table| table.row(row))
    }

    pub(crate) fn event(&mut self, event: &Map) -> Result<(), SimError> {
        let Some(file) = &mut self.events else { return Ok(()) };
        let line = yson::json::to_json(&Value::Map(event.clone()), &JsonFormat::utf8());
        let path = self.folder.join("events.jsonl");
        file.write_all(&line).and_then(|()| file.write_all(b"\n")).map_err(|e| cannot_write(&path, &e))
    }

    /// Writes the summary and closes everything.
    pub fn finish(self, summary: Map) -> Result<(), SimError> {
        let Sink { folder, pools, operations, allocations, events } = self;
        for table in [pools, operations, allocations].into_iter().flatten() {
            table.finish()?;
        }
        if let Some(mut file) = events {
            file.flush().map_err(|e| cannot_write(&folder.join("events.jsonl"), &e))?;
        }
        write_json(&folder.join("summary.json"), &summary.into())
    }
}

/// Writes a document for people and programs.
pub fn write_json(path: &Path, value: &Value) -> Result<(), SimError> {
    let mut bytes = yson::json::to_json(value, &JsonFormat { pretty: true, ..JsonFormat::utf8() });
    bytes.push(b'\n');
    std::fs::write(path, bytes).map_err(|e| cannot_write(path, &e))
}
