//! Rows of tables: streamed into chunks, streamed out of them.

use crate::archive::unreadable;
use crate::backend::{ServerBackend, stopping};
use crate::files::{Pieces, pump};
use ::tables::{Checker, Control, Index, Printer, Schema, Selection, TRAILER, Writer};
use api::{ByteStream, ReadTable, TableContent, WriteTable};
use bytes::Bytes;
use kernel::{Chunk, Command, TableRows};
use std::ops::Range;
use std::sync::Arc;
use store::Store;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use vocab::{Failure, ObjectId};
use yson::Value;
use yson::ypath::YPath;

/// Pieces of rows that may wait for a slow reader.
const PIECES_AHEAD: usize = 4;
/// Bytes of rows that are sent at a time.
const PIECE: usize = 256 << 10;

/// The blobs of the store, seen as chunks of tables.
#[derive(Clone)]
pub struct Tables {
    store: Arc<dyn Store>,
}

/// What the kernel says of a table.
struct Located {
    schema: Value,
    sorted_by: Vec<String>,
    chunks: Vec<Chunk>,
}

impl Tables {
    /// Over this store.
    pub fn new(store: Arc<dyn Store>) -> Tables {
        Tables { store }
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
        let WriteTable { path, format, append, sorted_by, schema, transaction } = request;
        let written = |rows: TableRows| Command::TableWritten { path: path.clone(), rows: Box::new(rows) };
        // Before the rows come, not after gigabytes of them.
        let may = Command::Authorize(Box::new(written(TableRows::default()))).through(transaction);
        backend.value(user.clone(), may).await?;
        let located = locate(backend, &user, &path, transaction, true).await?;
        let replace_schema = schema.is_some();
        let schema = schema.unwrap_or(located.schema);
        let checked = Schema::parse(&schema)?;
        let sorted_by = order(checked.as_ref(), sorted_by, append, &located.sorted_by)?;
        let schema = if checked.is_some() { schema } else { Value::Entity };
        let checker = Checker::new(checked, sorted_by.clone());
        let store = Arc::clone(&self.store);
        let chunk =
            pump(body, move |pieces| write_chunk(&*store, Writer::new(format, checker), pieces)).await?;
        let blob = chunk.blob;
        let chunks = if chunk.rows > 0 { vec![chunk] } else { Vec::new() };
        let unused = chunks.is_empty();
        let rows = TableRows { chunks, append, sorted_by, schema, replace_schema };
        let done = match backend.ask(user, None, written(rows).through(transaction)) {
            Ok(answer) => match answer.await {
                Ok(done) => done,
                // What became of it is not known: the next start finds out whether somebody refers to it.
                Err(_) => return Err(stopping()),
            },
            Err(failure) => Err(failure),
        };
        // Nor is it when the store has failed.
        if (done.is_err() || unused) && backend.hub.failure().is_none() {
            let _ = self.store.delete_blob(blob);
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
        let ReadTable { path, format, control, transaction } = request;
        let control = Control::parse(&control)?;
        let located = locate(backend, &user, &path, transaction, false).await?;
        let row_count = located.chunks.iter().map(|c| c.rows).sum();
        let Selection { columns, ranges } = Selection::of(&path, row_count)?;
        let start_row_index = ranges.first().map_or(0, |r| r.start);
        let wanted = ranges.iter().map(|r| r.end - r.start).sum();
        let mut printer = Printer::new(format, columns);
        let body = Outlet::stream(move |out| {
            for (index, range) in ranges.iter().enumerate().filter(|(_, r)| !r.is_empty()) {
                for mark in control.marks(0, index as u64, range.start) {
                    printer.mark(&mark, &mut out.piece)?;
                }
                for slice in slices(&located.chunks, range) {
                    read_slice(&*self.store, &slice, &mut |rows| out.print(&mut printer, rows))?;
                    if out.gone {
                        return Ok(());
                    }
                }
            }
            Ok(())
        });
        Ok(TableContent { start_row_index, row_count: wanted, body })
    }
}

/// By what the rows must be sorted.
fn order(
    schema: Option<&Schema>,
    asked: Option<Vec<String>>,
    append: bool,
    found: &[String],
) -> Result<Vec<String>, Failure> {
    let of_schema = schema.map(Schema::key_columns).unwrap_or_default();
    match asked {
        Some(asked) if of_schema.is_empty() || of_schema.starts_with(&asked) => {
            if append && !found.is_empty() && found != asked && of_schema.is_empty() {
                return Err(Failure::new(format!(
                    "The table is sorted by {found:?}: rows sorted by {asked:?} cannot be appended"
                )));
            }
            Ok(if of_schema.is_empty() { asked } else { of_schema })
        }
        Some(asked) => Err(Failure::new(format!(
            "Rows cannot be sorted by {asked:?}: the schema of the table says {of_schema:?}"
        ))),
        None => Ok(of_schema),
    }
}

/// Where rows go on their way to a reader.
pub struct Outlet {
    sender: mpsc::Sender<Result<Bytes, Failure>>,
    piece: Vec<u8>,
    gone: bool,
}

impl Outlet {
    /// What is put into an outlet, on a thread that may wait, by somebody who fails or comes to an end.
    pub fn stream(work: impl FnOnce(&mut Outlet) -> Result<(), Failure> + Send + 'static) -> ByteStream {
        let (sender, receiver) = mpsc::channel(PIECES_AHEAD);
        tokio::task::spawn_blocking(move || {
            let mut out = Outlet { sender, piece: Vec::new(), gone: false };
            match work(&mut out) {
                Ok(()) => out.flush(),
                Err(failure) => {
                    let _ = out.sender.blocking_send(Err(failure));
                }
            }
        });
        Box::pin(ReceiverStream::new(receiver))
    }

    /// Nobody reads any more.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// Adds what is printed already.
    pub fn put(&mut self, printed: &[u8]) {
        self.piece.extend_from_slice(printed);
    }

    /// False if nobody reads any more.
    pub fn print(&mut self, printer: &mut Printer, rows: Bytes) -> Result<bool, Failure> {
        if self.piece.is_empty() && printer.copies() && rows.len() >= PIECE {
            self.gone |= self.sender.blocking_send(Ok(rows)).is_err();
        } else {
            printer.print(&rows, &mut self.piece)?;
            if self.piece.len() >= PIECE {
                self.flush();
            }
        }
        Ok(!self.gone)
    }

    fn flush(&mut self) {
        let piece = std::mem::take(&mut self.piece);
        if !piece.is_empty() {
            self.gone |= self.sender.blocking_send(Ok(piece.into())).is_err();
        }
    }
}

/// Some rows of one chunk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slice {
    /// Its blob.
    pub blob: u64,
    /// Bytes of the blob.
    pub size: u64,
    /// Which rows of the chunk.
    pub rows: Range<u64>,
}

/// The parts of chunks that are these rows of the table.
pub fn slices(chunks: &[Chunk], wanted: &Range<u64>) -> Vec<Slice> {
    let mut first = 0;
    let mut slices = Vec::new();
    for chunk in chunks {
        let start = wanted.start.max(first) - first;
        let end = wanted.end.clamp(first, first + chunk.rows) - first;
        if start < end {
            slices.push(Slice { blob: chunk.blob, size: chunk.size, rows: start..end });
        }
        first += chunk.rows;
    }
    slices
}

/// Reads rows in their inner form until `take` says that it is enough.
pub fn read_slice(
    store: &dyn Store,
    slice: &Slice,
    take: &mut dyn FnMut(Bytes) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let read = |offset: u64, length: usize| store.read_blob(slice.blob, offset, length).map_err(unreadable);
    let trailer = read(slice.size.saturating_sub(TRAILER as u64), TRAILER)?;
    let place = Index::place(&trailer, slice.size)?;
    let index = Index::parse(&read(place.start, (place.end - place.start) as usize)?, &trailer)?;
    for block in index.blocks_with(&slice.rows) {
        let bytes = Bytes::from(read(block.offset, block.size)?);
        let rows = block.rows(&bytes, &slice.rows)?;
        if !rows.is_empty() && !take(bytes.slice_ref(rows))? {
            break;
        }
    }
    Ok(())
}

/// Writes what comes as a chunk.
pub fn write_chunk(store: &dyn Store, mut writer: Writer, mut pieces: Pieces) -> Result<Chunk, Failure> {
    let mut blob = store.begin_blob().map_err(unreadable)?;
    let mut ready = Vec::new();
    while let Some(piece) = pieces.next()? {
        writer.push(&piece, &mut ready)?;
        if !ready.is_empty() {
            blob.append(&ready).map_err(unreadable)?;
            ready.clear();
        }
    }
    let summary = writer.finish(&mut ready)?;
    blob.append(&ready).map_err(unreadable)?;
    let size = blob.len();
    let blob = blob.finish().map_err(unreadable)?;
    let ::tables::Summary { rows, weight, size: row_bytes, bounds } = summary;
    Ok(Chunk { blob, size, rows, row_bytes, weight, bounds })
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
    let names = list("sorted_by")?.iter().map(|n| n.as_str().map(str::to_owned).ok_or_else(malformed));
    Ok(Located {
        schema: value.get("schema").cloned().unwrap_or_default(),
        sorted_by: names.collect::<Result<_, _>>()?,
        chunks: chunks.collect::<Result<_, _>>()?,
    })
}
