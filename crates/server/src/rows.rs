//! Rows of tables on their way from chunks to a reader.

use crate::archive::unreadable;
use crate::streams::Source;
use ::tables::{Block, Index, Printer, TRAILER};
use bytes::Bytes;
use kernel::Chunk;
use std::ops::Range;
use std::sync::Arc;
use store::Store;
use vocab::Failure;
use yson::Value;

/// Bytes of rows that are sent at a time.
pub(crate) const PIECE: usize = 256 << 10;

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

/// Rows to be printed, and what comes before them.
pub struct Step {
    /// Number of the printer.
    pub printer: usize,
    /// Control rows.
    pub marks: Vec<Value>,
    /// Which rows.
    pub slice: Slice,
}

/// Rows as they are printed, step by step.
pub struct Rows {
    store: Arc<dyn Store>,
    printers: Vec<Printer>,
    steps: std::vec::IntoIter<Step>,
    /// The step that is being done: its printer and what is left of its slice.
    current: Option<(usize, Blocks)>,
    piece: Vec<u8>,
}

impl Rows {
    /// Each step names one of the printers.
    pub fn new(store: Arc<dyn Store>, printers: Vec<Printer>, steps: Vec<Step>) -> Rows {
        Rows { store, printers, steps: steps.into_iter(), current: None, piece: Vec::new() }
    }
}

impl Source for Rows {
    fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        while self.piece.len() < PIECE {
            let Some((printer, blocks)) = &mut self.current else {
                let Some(Step { printer, marks, slice }) = self.steps.next() else { break };
                for mark in &marks {
                    self.printers[printer].mark(mark, &mut self.piece)?;
                }
                self.current = Some((printer, Blocks::open(&*self.store, slice)?));
                continue;
            };
            let printer = &mut self.printers[*printer];
            match blocks.next(&*self.store)? {
                None => self.current = None,
                Some(rows) if self.piece.is_empty() && printer.copies() && rows.len() >= PIECE => {
                    return Ok(Some(rows));
                }
                Some(rows) => printer.print(&rows, &mut self.piece)?,
            }
        }
        let piece = std::mem::take(&mut self.piece);
        Ok((!piece.is_empty()).then(|| piece.into()))
    }
}

/// Names the blob of a chunk that is not as it was written: as lost as a chunk without a blob.
fn damaged(blob: u64) -> impl FnOnce(Failure) -> Failure {
    move |failure| failure.with("missing_blob", blob)
}

/// The blocks of a slice that have not been read.
pub(crate) struct Blocks {
    slice: Slice,
    left: std::vec::IntoIter<Block>,
}

impl Blocks {
    pub fn open(store: &dyn Store, slice: Slice) -> Result<Blocks, Failure> {
        let blob = slice.blob;
        let read = |offset: u64, length: usize| store.read_blob(blob, offset, length).map_err(unreadable);
        let trailer = read(slice.size.saturating_sub(TRAILER as u64), TRAILER)?;
        let place = Index::place(&trailer, slice.size).map_err(damaged(blob))?;
        let index = read(place.start, (place.end - place.start) as usize)?;
        let index = Index::parse(&index, &trailer, place.start).map_err(damaged(blob))?;
        let left = index.blocks_with(&slice.rows).to_vec().into_iter();
        Ok(Blocks { slice, left })
    }

    /// Rows in their inner form; some, or none at the end.
    pub fn next(&mut self, store: &dyn Store) -> Result<Option<Bytes>, Failure> {
        for block in self.left.by_ref() {
            let bytes = store.read_blob(self.slice.blob, block.offset, block.size).map_err(unreadable)?;
            let bytes = Bytes::from(bytes);
            let rows = block.rows(&bytes, &self.slice.rows).map_err(damaged(self.slice.blob))?;
            if !rows.is_empty() {
                return Ok(Some(bytes.slice_ref(rows)));
            }
        }
        Ok(None)
    }
}
