//! Open tables and the event log of a run.

use super::{Cell, Format, TABLES, Table, Which, cannot_write};
use crate::error::SimError;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use yson::{JsonFormat, Map, Value};

/// See the module page.
pub(super) struct Files {
    tables: Vec<(Which, Table)>,
    events: Option<(PathBuf, BufWriter<File>)>,
}

impl Files {
    pub fn create(
        folder: &Path,
        wanted: &[Which],
        event_log: bool,
        format: Format,
    ) -> Result<Files, SimError> {
        let mut tables = Vec::new();
        for (which, name, columns) in TABLES.iter().filter(|(which, ..)| wanted.contains(which)) {
            tables.push((*which, Table::create(folder, name, columns, format)?));
        }
        let path = folder.join("events.jsonl");
        let events = match event_log {
            true => {
                let file = File::create(&path).map_err(|e| cannot_write(&path, &e))?;
                Some((path, BufWriter::new(file)))
            }
            false => None,
        };
        Ok(Files { tables, events })
    }

    pub fn row(&mut self, which: Which, row: &[Cell]) -> Result<(), SimError> {
        let table = self.tables.iter_mut().find(|(w, _)| *w == which);
        table.map_or(Ok(()), |(_, table)| table.row(row))
    }

    pub fn event(&mut self, event: &Map) -> Result<(), SimError> {
        let Some((path, file)) = &mut self.events else { return Ok(()) };
        let line = yson::json::to_json(&Value::Map(event.clone()), &JsonFormat::utf8());
        file.write_all(&line).and_then(|()| file.write_all(b"\n")).map_err(|e| cannot_write(path, &e))
    }

    /// Everything is in the files after this.
    pub fn finish(self) -> Result<(), SimError> {
        for (_, table) in self.tables {
            table.finish()?;
        }
        match self.events {
            Some((path, mut file)) => file.flush().map_err(|e| cannot_write(&path, &e)),
            None => Ok(()),
        }
    }
}
