//! Rows of tables for jobs and from them: what a job reads goes to its node before it starts, what it has
//! written comes before its end is told.

use crate::backend::{ServerBackend, wait};
use crate::merged_rows::MergedRows;
use crate::room::Room;
use crate::rows::{Rows, Slice, Step};
use crate::streams;
use crate::uploads::Permit;
use ::tables::{Columns, Control, Printer, Summary, TRAILER};
use api::ByteStream;
use kernel::{Body, Chunk, Command, NOT_KEPT, NodeProof};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{Store, StoreError};
use tonic::{Status, Streaming};
use vocab::{Failure, JobId, code};
use wire::proto::{lost_blob, pb};
use yson::{Format, Value};

/// Rows of a unit of work.
pub struct JobInput {
    pieces: Vec<Piece>,
    columns: Vec<Columns>,
    control: Control,
    /// Rows of all tables come in the order of these columns; none: table after table.
    merge_by: Vec<String>,
}

/// Some of them that lie together.
struct Piece {
    table: u64,
    range: u64,
    row_index: u64,
    slice: Slice,
}

impl JobInput {
    /// Of a running job. One that is not known may be so in a moment: this server may be a new one.
    pub async fn locate(backend: &ServerBackend, from: NodeProof, job_id: JobId) -> Result<JobInput, Status> {
        let refused = |f: Failure| match f.code {
            code::ACCESS_DENIED => Status::failed_precondition(f.message),
            _ => Status::unavailable(f.to_string()),
        };
        let command = Command::LocateJobInput { from, job_id };
        let answer = backend.ask("root".into(), None, command).map_err(refused)?;
        match wait(answer).await.map_err(refused)? {
            Body::Value(located) => {
                JobInput::from_value(&located).ok_or_else(|| Status::internal("Malformed input of a job"))
            }
            _ => Err(Status::internal("not a location")),
        }
    }

    /// From what the kernel or the archive says.
    pub fn from_value(value: &Value) -> Option<JobInput> {
        let pieces = value.get("pieces")?.as_list()?.iter().map(|piece| {
            let numbers: Vec<u64> = piece.as_list()?.iter().map(Value::as_u64).collect::<Option<_>>()?;
            let [table, range, row_index, blob, size, from, to] = numbers.try_into().ok()?;
            Some(Piece { table, range, row_index, slice: Slice { blob, size, rows: from..to } })
        });
        let columns = value.get("columns")?.as_list()?.iter().map(Columns::from_value);
        Some(JobInput {
            pieces: pieces.collect::<Option<_>>()?,
            columns: columns.collect::<Option<_>>()?,
            control: Control::parse(value.get("control")?.as_map()?).ok()?,
            merge_by: match value.get("merge_by") {
                Some(columns) => {
                    columns.as_list()?.iter().map(|c| c.as_str().map(str::to_owned)).collect::<Option<_>>()?
                }
                None => Vec::new(),
            },
        })
    }

    /// Contents that the rows are in.
    pub fn blobs(&self) -> BTreeSet<u64> {
        self.pieces.iter().map(|piece| piece.slice.blob).collect()
    }

    /// The number of an input table of which rows are gone: those of an operation that is over are there as long
    /// as somebody else has them.
    pub fn lost_table(&self, store: &dyn Store) -> Option<usize> {
        let mut seen = BTreeSet::new();
        let is_gone = |slice: &Slice| {
            let end = slice.size.saturating_sub(TRAILER as u64);
            match store.read_blob(slice.blob, end, TRAILER) {
                Ok(bytes) => bytes.len() != TRAILER,
                // Whoever reads the rows is told of an error of the disk, which may pass.
                Err(error) => matches!(error, StoreError::NoSuchBlob(_)),
            }
        };
        let lost = self.pieces.iter().find(|piece| seen.insert(piece.slice.blob) && is_gone(&piece.slice));
        lost.and_then(|piece| usize::try_from(piece.table).ok())
    }

    /// The rows, with the marks that are wanted between them.
    pub fn stream(self, store: Arc<dyn Store>, format: Format) -> Result<ByteStream, Failure> {
        let columns = self.columns.into_iter();
        let mut printers: Vec<Printer> =
            columns.map(|columns| Printer::new(format.clone(), columns)).collect();
        if !self.merge_by.is_empty() {
            let mut runs: Vec<((u64, u64), Vec<Slice>)> = Vec::new();
            for Piece { table, range, slice, .. } in self.pieces {
                match runs.last_mut() {
                    Some((run, slices)) if *run == (table, range) => slices.push(slice),
                    _ => runs.push(((table, range), vec![slice])),
                }
            }
            // Whole rows: all tables have the same printer.
            let printer = printers.pop().ok_or_else(|| Failure::new("A job without input tables"))?;
            let runs = runs.into_iter().map(|(_, slices)| slices);
            return Ok(streams::stream(MergedRows::new(store, printer, self.merge_by, runs)));
        }
        let mut steps = Vec::with_capacity(self.pieces.len());
        let mut before = None;
        for Piece { table, range, row_index, slice } in self.pieces {
            let printer = usize::try_from(table).ok().filter(|printer| *printer < printers.len());
            let printer =
                printer.ok_or_else(|| Failure::new(format!("Input table {table} of a job is not known")))?;
            let goes_on = before == Some((table, range, row_index));
            before = Some((table, range, row_index + (slice.rows.end - slice.rows.start)));
            let marks = self.control.marks(table, range, row_index).filter(|_| !goes_on).collect();
            steps.push(Step { printer, marks, slice });
        }
        Ok(streams::stream(Rows::new(store, printers, steps)))
    }
}

/// The answer to a node whose rows cannot be read any further.
pub fn unread_rows(failure: &Failure) -> Status {
    match failure.find_attribute("missing_blob").and_then(Value::as_u64) {
        // S20: trying again does not help.
        Some(blob) => lost_blob(blob, &failure.to_string()),
        // Nor here, but nothing is lost.
        None if failure.find_attribute("max_bytes_in_memory").is_some() => {
            Status::invalid_argument(failure.to_string())
        }
        // An error of the disk may pass.
        None => Status::unavailable(failure.to_string()),
    }
}

/// Longest summary of a chunk, which the store keeps: a few numbers, and two keys of at most 16 KiB each.
const SUMMARY_MAX: usize = 256 << 10;

/// Takes a chunk that a job has written; `None` if it is larger than the permit allows. `first` is its first piece.
pub async fn receive(
    backend: &ServerBackend,
    store: &Arc<dyn Store>,
    permit: &mut Permit,
    first: pb::RowsChunk,
    mut incoming: Streaming<pb::RowsChunk>,
) -> Result<Option<(Chunk, Option<Room>)>, Status> {
    let unavailable = |e: store::StoreError| Status::unavailable(e.to_string());
    let (job_id, table) = (permit.job_id(), first.table);
    // The store keeps it: the bound comes before the parsing.
    if first.summary.len() > SUMMARY_MAX {
        let found = first.summary.len();
        let text = format!("summary: expected at most {SUMMARY_MAX} bytes, found {found}");
        return Err(Status::invalid_argument(text));
    }
    let summary = yson::parse_record(&first.summary).ok().as_ref().and_then(Summary::from_value);
    let summary = summary.ok_or_else(|| Status::invalid_argument("Malformed summary of a chunk"))?;
    let path = format!("output table {table} of job {job_id}");
    let mut room = backend.files.rooms().open(path, permit.room(), 0);
    let mut writer = store.begin_blob().map_err(unavailable)?;
    let mut next = Some(first);
    while let Some(piece) = next {
        if !permit.allows(writer.len(), piece.data.len()) {
            return Ok(None);
        }
        let size = writer.len() + piece.data.len() as u64;
        if room.grow_to(size).is_err() {
            // The kernel hears of rows that are too many, and fails the job.
            drop((writer, room));
            let drained = drain(permit, incoming, size).await?;
            return Ok(drained.map(|size| (chunk_of(summary, NOT_KEPT, size), None)));
        }
        // The disk may be slow, and who else is served by this thread must not wait for it.
        let appended = tokio::task::spawn_blocking(move || writer.append(&piece.data).map(|()| writer)).await;
        writer = appended.map_err(|e| Status::internal(e.to_string()))?.map_err(unavailable)?;
        next = permit.unless_displaced(incoming.message()).await?;
    }
    let size = writer.len();
    let finished = tokio::task::spawn_blocking(move || writer.finish()).await;
    let blob = finished.map_err(|e| Status::internal(e.to_string()))?.map_err(unavailable)?;
    Ok(Some((chunk_of(summary, blob, size), Some(room))))
}

fn chunk_of(summary: Summary, blob: u64, size: u64) -> Chunk {
    let Summary { rows, weight, size: row_bytes, bounds } = summary;
    Chunk { blob, size, rows, row_bytes, weight, bounds }
}

/// Reads the rest of an upload that is not kept; how many bytes it has in all. `None` if they are more than the permit allows.
async fn drain(
    permit: &mut Permit,
    mut incoming: Streaming<pb::RowsChunk>,
    mut size: u64,
) -> Result<Option<u64>, Status> {
    while let Some(piece) = permit.unless_displaced(incoming.message()).await? {
        if !permit.allows(size, piece.data.len()) {
            return Ok(None);
        }
        size += piece.data.len() as u64;
    }
    Ok(Some(size))
}

#[cfg(test)]
mod tests;
