//! Rows of tables: streamed into chunks, streamed out of them.

use crate::archive::unreadable;
use crate::backend::{ServerBackend, is_unknown, stopping};
use crate::readers::Readers;
use crate::room::{Room, Rooms};
use crate::rows::{Rows, Step, slices};
use crate::streams::{self, Sink, pump};
use ::tables::{Checker, Control, Printer, Schema, Selection, Writer};
use api::{ByteStream, ReadTable, TableContent, WriteTable};
use kernel::{Body, Chunk, Command, TableRows};
use std::sync::Arc;
use store::{BlobWriter, Store};
use vocab::{Failure, ObjectId, code};
use yson::Value;
use yson::ypath::YPath;

/// The blobs of the store, seen as chunks of tables.
#[derive(Clone)]
pub struct Tables {
    store: Arc<dyn Store>,
    rooms: Rooms,
    readers: Readers,
}

/// What the kernel says of a table.
struct Located {
    schema: Value,
    sorted_by: Vec<String>,
    chunks: Vec<Chunk>,
    /// To whoever asked.
    closed_columns: Vec<String>,
    /// Bytes that it may get, by limit.
    room: Option<Value>,
}

impl Tables {
    /// Over this store.
    pub(crate) fn new(store: Arc<dyn Store>, rooms: Rooms, readers: Readers) -> Tables {
        Tables { store, rooms, readers }
    }

    /// Where the chunks are.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// Streams rows into a chunk, then makes it the table's: the table changes whole or not at all.
    pub async fn write(
        self,
        backend: &ServerBackend,
        user: String,
        request: WriteTable,
        body: ByteStream,
    ) -> Result<(), Failure> {
        let WriteTable { path, format, append, sorted_by, schema, transaction, mutation_id } = request;
        Selection::refuse_ranges(&path)?;
        let written = |rows: TableRows| Command::TableWritten { path: path.clone(), rows: Box::new(rows) };
        // Before the rows come, not after gigabytes of them.
        let may = Command::Authorize(Box::new(written(TableRows::default()))).through(transaction);
        backend.value(user.clone(), may).await?;
        let located = locate(backend, &user, &path, transaction, true).await?;
        let replace_schema = schema.is_some();
        let schema = schema.unwrap_or(located.schema);
        let checked = Schema::parse(&schema)?;
        let behind = (append && !located.chunks.is_empty()).then_some(located.sorted_by.as_slice());
        let sorted_by = order(checked.as_ref(), sorted_by, behind)?;
        let schema = if checked.is_some() { schema } else { Value::Entity };
        let checker = Checker::new(checked, sorted_by.clone());
        let store = Arc::clone(&self.store);
        let replaced = if append { 0 } else { located.chunks.iter().map(|chunk| chunk.size).sum() };
        let room = self.rooms.open(path.text(), located.room.as_ref(), replaced);
        let open = move || DraftChunk::begin(&*store, Writer::new(format, checker), room);
        let (chunk, room) = pump(body, open).await?;
        let blob = chunk.blob;
        let chunks = if chunk.rows > 0 { vec![chunk] } else { Vec::new() };
        let rows = TableRows { chunks, append, sorted_by, schema, replace_schema };
        let done = match backend.ask(user, mutation_id, written(rows).through(transaction)) {
            Ok(answer) => match answer.await {
                Ok(done) => done,
                // What became of it is not known: the next start finds out whether somebody refers to it.
                Err(_) => return Err(stopping()),
            },
            Err(failure) => Err(failure),
        };
        // A write that is repeated is answered with the rows of the first time.
        let is_taken = matches!(&done, Ok(Body::Value(taken)) if taken.as_u64() == Some(blob));
        // Nor is it when the store has failed.
        if !is_taken && !done.as_ref().is_err_and(is_unknown) {
            let _ = self.store.delete_blob(blob);
        } else {
            room.settled();
        }
        done.map(drop)
    }

    /// Opens rows.
    pub async fn read(
        self,
        backend: &ServerBackend,
        user: String,
        request: ReadTable,
    ) -> Result<TableContent, Failure> {
        let ReadTable { path, format, control, transaction, omit_inaccessible_columns, start_row_index_only } =
            request;
        let control = Control::parse(&control)?;
        let reading = self.readers.begin();
        let located = locate(backend, &user, &path, transaction, false).await?;
        let reading = reading.of(located.chunks.iter().map(|chunk| chunk.blob));
        let row_count = located.chunks.iter().map(|c| c.rows).sum();
        let Selection { mut columns, mut ranges } = Selection::of(&path, row_count)?;
        let start_row_index = ranges.first().map_or(0, |r| r.start);
        let wanted = ranges.iter().map(|r| r.end - r.start).sum();
        if start_row_index_only {
            ranges.clear();
        }
        let omitted_columns: Vec<String> =
            located.closed_columns.into_iter().filter(|column| columns.reads(column.as_bytes())).collect();
        if let Some(column) = omitted_columns.first().filter(|_| !omit_inaccessible_columns) {
            let message = format!(
                "Access denied for user \"{user}\": \"read\" permission for column \"{column}\" of {path}: select other \
                 columns, or give \"omit_inaccessible_columns\""
            );
            let failure = Failure::coded(code::ACCESS_DENIED, message).with("user", user);
            return Err(failure.with("permission", "read").with("column", column.as_str()));
        }
        columns.closed = omitted_columns.iter().map(|column| column.as_bytes().to_vec()).collect();
        let steps =
            ranges.iter().enumerate().filter(|(_, range)| !range.is_empty()).flat_map(|(index, range)| {
                let mut marks: Vec<Value> = control.marks(0, index as u64, range.start).collect();
                let slices = slices(&located.chunks, range).into_iter();
                slices.map(move |slice| Step { printer: 0, marks: std::mem::take(&mut marks), slice })
            });
        let rows = Rows::new(self.store, vec![Printer::new(format, columns)], steps.collect());
        let body = reading.guard(streams::stream(rows));
        Ok(TableContent { start_row_index, row_count: wanted, omitted_columns, body })
    }
}

/// By what the rows must be sorted, and by what those are that they are to be behind, if there are any.
fn order(
    schema: Option<&Schema>,
    asked: Option<Vec<String>>,
    behind: Option<&[String]>,
) -> Result<Vec<String>, Failure> {
    let of_schema = schema.map(Schema::key_columns).unwrap_or_default();
    let Some(asked) = asked else { return Ok(of_schema) };
    if !of_schema.is_empty() {
        return match of_schema.starts_with(&asked) {
            true => Ok(of_schema),
            false => Err(Failure::new(format!(
                "Rows cannot be sorted by {asked:?}: the schema of the table says {of_schema:?}"
            ))),
        };
    }
    if let Some(odd) = asked.iter().find(|name| schema.is_some_and(|schema| !schema.may_have(name))) {
        return Err(Failure::new(format!(
            "Rows cannot be sorted by {asked:?}: the schema of the table has no column {odd:?}"
        )));
    }
    match behind {
        Some([]) => Err(Failure::new(format!(
            "The table is not sorted: rows sorted by {asked:?} cannot be appended, only rows in any order"
        ))),
        Some(found) if found != asked => Err(Failure::new(format!(
            "The table is sorted by {found:?}: rows sorted by {asked:?} cannot be appended"
        ))),
        _ => Ok(asked),
    }
}

/// A chunk on its way to be one of a table.
struct DraftChunk {
    blob: Box<dyn BlobWriter>,
    writer: Writer,
    ready: Vec<u8>,
    room: Room,
}

impl DraftChunk {
    fn begin(store: &dyn Store, writer: Writer, room: Room) -> Result<DraftChunk, Failure> {
        Ok(DraftChunk { blob: store.begin_blob().map_err(unreadable)?, writer, ready: Vec::new(), room })
    }
}

impl Sink for DraftChunk {
    type Written = (Chunk, Room);

    fn add(&mut self, piece: &[u8]) -> Result<(), Failure> {
        self.writer.push(piece, &mut self.ready)?;
        if !self.ready.is_empty() {
            self.room.grow_to(self.blob.len() + self.ready.len() as u64)?;
            self.blob.append(&self.ready).map_err(unreadable)?;
            self.ready.clear();
        }
        Ok(())
    }

    fn finish(self) -> Result<(Chunk, Room), Failure> {
        let DraftChunk { mut blob, writer, mut ready, mut room } = self;
        let ::tables::Summary { rows, weight, size: row_bytes, bounds } = writer.finish(&mut ready)?;
        room.grow_to(blob.len() + ready.len() as u64)?;
        blob.append(&ready).map_err(unreadable)?;
        let size = blob.len();
        let blob = blob.finish().map_err(unreadable)?;
        Ok((Chunk { blob, size, rows, row_bytes, weight, bounds }, room))
    }
}

async fn locate(
    backend: &ServerBackend,
    user: &str,
    path: &YPath,
    transaction: Option<ObjectId>,
    to_write: bool,
) -> Result<Located, Failure> {
    let command = Command::LocateTable { path: path.clone(), to_write }.through(transaction);
    let value = backend.value(user.to_owned(), command).await?;
    let malformed = || Failure::new("Malformed description of a table");
    let list = |key: &str| value.get(key).and_then(Value::as_list).ok_or_else(malformed);
    let chunks = list("chunks")?.iter().map(|c| Chunk::from_value(c).ok_or_else(malformed));
    let names = |key: &str| {
        let names = list(key)?.iter().map(|n| n.as_str().map(str::to_owned).ok_or_else(malformed));
        names.collect::<Result<Vec<String>, Failure>>()
    };
    Ok(Located {
        schema: value.get("schema").cloned().unwrap_or_default(),
        sorted_by: names("sorted_by")?,
        closed_columns: names("closed_columns")?,
        chunks: chunks.collect::<Result<_, _>>()?,
        room: value.get("room").cloned(),
    })
}
