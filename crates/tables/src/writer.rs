//! From the bytes of somebody who writes to the bytes of a chunk.

use crate::row::Row;
use crate::{Checker, ChunkBuilder, Intake};
use vocab::Failure;
use yson::{Format, Value};

/// See the module page. What it gives is to be appended to a blob.
pub struct Writer {
    intake: Intake,
    rows: RowWriter,
}

/// The part of it behind the intake: rows of whatever came.
pub struct RowWriter {
    checker: Checker,
    chunk: ChunkBuilder,
    weight: u64,
    /// Bytes of rows in their inner form.
    size: u64,
}

/// What was written.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Summary {
    /// How many rows.
    pub rows: u64,
    /// What they weigh, see [`weight`](crate::row::weight).
    pub weight: u64,
    /// Their bytes.
    pub size: u64,
    /// Keys of the first and the last row, of a sorted table.
    pub bounds: Option<(Vec<Value>, Vec<Value>)>,
}

impl Summary {
    /// `{rows; row_bytes; weight; bounds}`.
    pub fn to_value(&self) -> Value {
        let bounds = self.bounds.clone().map(|(first, last)| vec![Value::List(first), Value::List(last)]);
        yson::map! {"rows" => self.rows, "row_bytes" => self.size, "weight" => self.weight}
            .with_some("bounds", bounds)
            .into()
    }

    /// The inverse; none if it is malformed.
    pub fn from_value(value: &Value) -> Option<Summary> {
        let number = |key: &str| value.get(key)?.as_u64();
        let bounds = match value.get("bounds") {
            None => None,
            Some(list) => {
                let [first, last] = list.as_list()? else { return None };
                Some((first.as_list()?.to_vec(), last.as_list()?.to_vec()))
            }
        };
        Some(Summary { rows: number("rows")?, weight: number("weight")?, size: number("row_bytes")?, bounds })
    }
}

impl Writer {
    /// Rows in this format that must pass this check.
    pub fn new(format: Format, checker: Checker) -> Writer {
        Writer { intake: Intake::new(format), rows: RowWriter::new(checker) }
    }

    /// Takes a piece of input; appends what is ready to `out`.
    pub fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let Writer { intake, rows } = self;
        intake.push(piece, &mut |_, row| rows.add(row, out))
    }

    /// Says that nothing more comes; appends the rest of the chunk.
    pub fn finish(mut self, out: &mut Vec<u8>) -> Result<Summary, Failure> {
        let Writer { intake, rows } = &mut self;
        intake.finish(&mut |_, row| rows.add(row, out))?;
        Ok(self.rows.finish(out))
    }

    /// Rows so far.
    pub fn count(&self) -> u64 {
        self.rows.chunk.rows()
    }
}

impl RowWriter {
    /// For rows that must pass this check.
    pub fn new(checker: Checker) -> RowWriter {
        RowWriter { checker, chunk: ChunkBuilder::default(), weight: 0, size: 0 }
    }

    /// Takes a row; appends what is ready to `out`.
    pub fn add(&mut self, row: Row<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let row = self.checker.check(row)?;
        self.weight += row.weight;
        self.size += row.bytes.len() as u64;
        self.chunk.add(row.bytes, out);
        Ok(())
    }

    /// Appends the rest of the chunk.
    pub fn finish(self, out: &mut Vec<u8>) -> Summary {
        let summary = self.so_far();
        self.chunk.finish(out);
        Summary { bounds: self.checker.bounds(), ..summary }
    }

    /// What was written so far, without the keys.
    pub fn so_far(&self) -> Summary {
        Summary { rows: self.chunk.rows(), weight: self.weight, size: self.size, bounds: None }
    }
}
