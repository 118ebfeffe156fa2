//! The files of a run (simulator.md 8).

mod beside;
mod column;
mod files;
mod parquet;
pub mod pools;
mod table;
mod writer;

pub(crate) use beside::Beside;
pub use column::{Column, Kind, int, num, text};
pub use table::{Cell, Format, Table, cannot_write, number};

use crate::engine::columns::{ALLOCATIONS, OPERATIONS};
use crate::engine::series::{NODES, OPERATION_SERIES};
use crate::error::SimError;
use crate::scenario::Scenario;
use files::Files;
use std::path::{Path, PathBuf};
use writer::{Piece, Writer};
use yson::{JsonFormat, Map, Value};

/// Tables of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    Pools,
    Operations,
    Allocations,
    Nodes,
    OperationSeries,
}

const TABLES: [(Which, &str, &[Column]); 5] = [
    (Which::Pools, "pools", pools::COLUMNS),
    (Which::Operations, "operations", OPERATIONS),
    (Which::Allocations, "allocations", ALLOCATIONS),
    (Which::Nodes, "nodes", NODES),
    (Which::OperationSeries, "operation_series", OPERATION_SERIES),
];

/// Where everything goes.
pub struct Sink {
    folder: PathBuf,
    wanted: Vec<Which>,
    wants_events: bool,
    way: Way,
}

enum Way {
    /// Nothing is kept.
    Nowhere,
    Here(Files),
    Thread(Writer),
}

impl Sink {
    /// Begins the files of a run in a directory, which is made if it is not there. With two threads and more
    /// one of them writes the tables.
    pub fn create(
        folder: &Path,
        scenario: &Scenario,
        format: Format,
        threads: usize,
    ) -> Result<Sink, SimError> {
        std::fs::create_dir_all(folder).map_err(|e| cannot_write(folder, &e))?;
        write_json(&folder.join("scenario.json"), &scenario.standalone())?;
        let output = &scenario.output;
        let is_wanted = |which: &Which| match which {
            Which::Pools | Which::Operations => true,
            Which::Allocations => output.allocations,
            Which::Nodes => output.node_series,
            Which::OperationSeries => output.operation_series,
        };
        let wanted: Vec<Which> = TABLES.iter().map(|(which, ..)| *which).filter(is_wanted).collect();
        let files = Files::create(folder, &wanted, output.event_log, format)?;
        let way = if threads > 1 { Way::Thread(Writer::start(files)) } else { Way::Here(files) };
        Ok(Sink { folder: folder.to_owned(), wanted, wants_events: output.event_log, way })
    }

    /// Of a run of which nothing is kept.
    pub(crate) fn nowhere() -> Sink {
        Sink { folder: PathBuf::new(), wanted: Vec::new(), wants_events: false, way: Way::Nowhere }
    }

    pub(crate) fn wants(&self, which: Which) -> bool {
        self.wanted.contains(&which)
    }

    pub(crate) fn row(&mut self, which: Which, row: Vec<Cell>) -> Result<(), SimError> {
        if !self.wants(which) {
            return Ok(());
        }
        match &mut self.way {
            Way::Nowhere => Ok(()),
            Way::Here(files) => files.row(which, &row),
            Way::Thread(writer) => writer.send(Piece::Row(which, row)),
        }
    }

    pub(crate) fn event(&mut self, event: &Map) -> Result<(), SimError> {
        if !self.wants_events {
            return Ok(());
        }
        match &mut self.way {
            Way::Nowhere => Ok(()),
            Way::Here(files) => files.event(event),
            Way::Thread(writer) => writer.send(Piece::Event(event.clone())),
        }
    }

    /// Writes the summary and closes everything.
    pub fn finish(self, summary: Map) -> Result<(), SimError> {
        match self.way {
            Way::Nowhere => return Ok(()),
            Way::Here(files) => files.finish()?,
            Way::Thread(writer) => writer.finish()?,
        }
        write_json(&self.folder.join("summary.json"), &summary.into())
    }
}

/// Writes a document for people and programs.
pub fn write_json(path: &Path, value: &Value) -> Result<(), SimError> {
    let mut bytes = yson::json::to_json(value, &JsonFormat { pretty: true, ..JsonFormat::utf8() });
    bytes.push(b'\n');
    std::fs::write(path, bytes).map_err(|e| cannot_write(path, &e))
}
