//! Files that only some runs have: `meta.jsonl`, and a file for each snapshot.

use super::{cannot_write, write_json};
use crate::error::SimError;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use yson::{JsonFormat, Map, Value};

/// See the module page.
#[derive(Default)]
pub(crate) struct Beside {
    /// None: nothing is kept.
    folder: Option<PathBuf>,
    /// Begun with the first operation that has some.
    meta: Option<BufWriter<File>>,
}

impl Beside {
    /// In a directory that is there.
    pub fn create(folder: &Path) -> Result<Beside, SimError> {
        // That of another run would be taken for one of this.
        let old = folder.join("meta.jsonl");
        if old.exists() {
            std::fs::remove_file(&old).map_err(|e| cannot_write(&old, &e))?;
        }
        Ok(Beside { folder: Some(folder.to_owned()), meta: None })
    }

    /// What an event of the scenario wanted to see: `snapshot-<time>-<its place in the scenario>.json`.
    pub fn snapshot(&mut self, at_ms: u64, event: usize, value: &Value) -> Result<(), SimError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        write_json(&folder.join(format!("snapshot-{at_ms}-{event}.json")), value)
    }

    /// What the workload says of an operation besides: a line for each that has something.
    pub fn meta(&mut self, id: &str, meta: &Map) -> Result<(), SimError> {
        let Some(folder) = self.folder.as_ref().filter(|_| !meta.is_empty()) else { return Ok(()) };
        let path = folder.join("meta.jsonl");
        let file = match &mut self.meta {
            Some(file) => file,
            none => none.insert(BufWriter::new(File::create(&path).map_err(|e| cannot_write(&path, &e))?)),
        };
        let line = yson::map! {"id" => id, "meta" => meta.clone()};
        let mut line = yson::json::to_json(&line.into(), &JsonFormat::utf8());
        line.push(b'\n');
        file.write_all(&line).map_err(|e| cannot_write(&path, &e))
    }

    /// The run is over.
    pub fn finish(&mut self) -> Result<(), SimError> {
        let (Some(mut file), Some(folder)) = (self.meta.take(), &self.folder) else { return Ok(()) };
        file.flush().map_err(|e| cannot_write(&folder.join("meta.jsonl"), &e))
    }
}
