//! Rows of sorted tables on their way to a reader who wants all of them in the order of their keys.

use crate::rows::{Blocks, PIECE, Slice};
use crate::streams::Source;
use ::tables::{Printer, compare_keys, row};
use bytes::Bytes;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;
use store::Store;
use vocab::Failure;
use yson::Value;

/// Bytes of blocks in memory at most: one of each run, larger ones if rows are.
const MAX_HELD: usize = 256 << 20;

/// Rows of several runs, each of which is sorted; of equal keys the one of the earlier run comes first.
pub struct MergedRows {
    store: Arc<dyn Store>,
    printer: Printer,
    columns: Vec<String>,
    runs: Vec<Run>,
    /// Keys of the rows with which the runs go on, and the numbers of the runs.
    heads: BinaryHeap<Reverse<Head>>,
    has_begun: bool,
    /// Bytes of the blocks of all runs.
    held: usize,
    piece: Vec<u8>,
}

/// Rows that follow one another in a table.
struct Run {
    /// Not begun.
    slices: std::vec::IntoIter<Slice>,
    current: Option<Blocks>,
    /// Rows of a block, the next one first, and the bytes of all of them.
    rows: Bytes,
    block: usize,
}

struct Head {
    key: Vec<Value>,
    run: usize,
}

impl MergedRows {
    /// Whole rows, by these columns.
    pub fn new(
        store: Arc<dyn Store>,
        printer: Printer,
        columns: Vec<String>,
        runs: impl Iterator<Item = Vec<Slice>>,
    ) -> MergedRows {
        let run = |slices: Vec<Slice>| Run {
            slices: slices.into_iter(),
            current: None,
            rows: Bytes::new(),
            block: 0,
        };
        let (runs, heads) = (runs.map(run).collect(), BinaryHeap::new());
        MergedRows { store, printer, columns, runs, heads, has_begun: false, held: 0, piece: Vec::new() }
    }

    /// Notes the key with which a run goes on, if it does.
    fn look_at(&mut self, run: usize) -> Result<(), Failure> {
        let before = self.runs[run].block;
        self.runs[run].head(&*self.store)?;
        self.held = self.held - before + self.runs[run].block;
        if self.held > MAX_HELD {
            let runs = self.runs.len();
            return Err(Failure::new(format!(
                "Rows of {runs} tables are too large to be merged by their keys at a time: {} bytes of them would be \
                 in memory, at most {MAX_HELD} are allowed",
                self.held
            ))
            .with("max_bytes_in_memory", MAX_HELD as u64));
        }
        if let Some(row) = self.runs[run].head(&*self.store)? {
            let value = |name: &String| row::value(row, name.as_bytes());
            let key = self.columns.iter().map(value).collect();
            self.heads.push(Reverse(Head { key, run }));
        }
        Ok(())
    }
}

impl Run {
    /// Its next row, which stays.
    fn head(&mut self, store: &dyn Store) -> Result<Option<&[u8]>, Failure> {
        while self.rows.is_empty() {
            if let Some(blocks) = &mut self.current {
                match blocks.next(store)? {
                    Some(rows) => (self.block, self.rows) = (rows.len(), rows),
                    None => self.current = None,
                }
            } else if let Some(slice) = self.slices.next() {
                self.current = Some(Blocks::open(store, slice)?);
            } else {
                self.block = 0;
                return Ok(None);
            }
        }
        Ok(row::rows(&self.rows).next())
    }

    /// Takes it.
    fn take(&mut self) -> Bytes {
        let length = row::rows(&self.rows).next().map_or(self.rows.len(), <[u8]>::len);
        self.rows.split_to(length)
    }
}

impl Source for MergedRows {
    fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        if !std::mem::replace(&mut self.has_begun, true) {
            (0..self.runs.len()).try_for_each(|run| self.look_at(run))?;
        }
        while self.piece.len() < PIECE {
            let Some(Reverse(Head { run, .. })) = self.heads.pop() else { break };
            let row = self.runs[run].take();
            self.printer.print(&row, &mut self.piece)?;
            self.look_at(run)?;
        }
        let piece = std::mem::take(&mut self.piece);
        Ok((!piece.is_empty()).then(|| piece.into()))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        compare_keys(&self.key, &other.key).then(self.run.cmp(&other.run))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}
