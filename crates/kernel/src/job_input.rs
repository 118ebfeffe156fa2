//! What jobs are given to read (http-api.md 8.6): told while their operation runs, and kept after it. The rows
//! themselves are kept as long as the operation runs; then they go with the tables that they were in.

use crate::command::OperationRef;
use crate::operations::tables::InputPiece;
use crate::{Body, Kernel};
use std::ops::Range;
use vocab::{Failure, JobId, OperationId};
use yson::Value;

impl Kernel {
    /// `get_job_input` and `get_job_input_paths`.
    pub(crate) fn get_job_input(
        &self,
        operation: Option<OperationRef>,
        job_id: JobId,
    ) -> Result<Body, Failure> {
        let operation_id = self.operation_of_job(operation.as_ref(), job_id)?;
        let input = match self.jobs.get(job_id) {
            Some(_) => Some(self.locate_job_input(job_id).map_err(|_| no_job_input(job_id))?),
            None => None,
        };
        Ok(Body::JobInput { operation_id, job_id, input })
    }

    /// Rows of the input of an unfinished operation; `#` if it is over.
    pub(crate) fn locate_input(&self, operation_id: OperationId, rows: Range<u64>) -> Value {
        self.operations.get(&operation_id).and_then(|o| o.input_of(rows)).unwrap_or(Value::Entity)
    }
}

/// Some rows of the input of an operation, from the input as it is kept.
pub fn rows_of_input(input: &Value, rows: &Range<u64>) -> Option<Value> {
    let pieces: Vec<InputPiece> =
        input.get("pieces")?.as_list()?.iter().map(InputPiece::from_value).collect::<Option<_>>()?;
    let mut map = input.as_map()?.clone();
    map.insert("pieces", pieces_of(&pieces, rows));
    Some(map.into())
}

/// Rows that are counted through all pieces.
pub(crate) fn pieces_of(pieces: &[InputPiece], rows: &Range<u64>) -> Vec<Value> {
    let mut first = 0;
    let mut found = Vec::new();
    for piece in pieces {
        let count = piece.rows.end - piece.rows.start;
        let (from, to) = (rows.start.max(first) - first, rows.end.clamp(first, first + count) - first);
        if from < to {
            let rows = piece.rows.start + from..piece.rows.start + to;
            found.push(InputPiece { row_index: piece.row_index + from, rows, ..piece.clone() }.to_value());
        }
        first += count;
    }
    found
}

/// The answer about a job without tables.
pub fn no_job_input(job_id: JobId) -> Failure {
    Failure::new(format!("Job {job_id} has no input: it reads no tables")).with("job_id", job_id)
}
