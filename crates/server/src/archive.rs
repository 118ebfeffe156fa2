//! What is read from the store: finished operations and jobs, kept stderr.

use crate::job_list;
use kernel::{
    EventsOfOperation, FailContext, ListJobs, OperationRow, STDERR_BLOB, STDERR_INLINE, archived_job,
    archived_job_in_full, input_key, is_listed, job_key, listed_key, no_fail_context, no_job_input,
    rows_of_archived_job, rows_of_input,
};
use std::ops::{Bound, ControlFlow, Range};
use std::sync::Arc;
use store::{Store, StoreError, Table, prefix_end};
use vocab::{Failure, Guid, JobId, OperationId, code};
use yson::ypath::Step;
use yson::{Map, Value};

/// The reading half of the store.
#[derive(Clone)]
pub struct Archive {
    store: Arc<dyn Store>,
}

impl Archive {
    /// Over this store.
    pub fn new(store: Arc<dyn Store>) -> Archive {
        Archive { store }
    }

    /// Attributes of a finished operation.
    pub fn operation(&self, id: OperationId) -> Result<Map, Failure> {
        let record = self.store.get(Table::OperationArchive, &id.0.to_bytes()).map_err(unreadable)?;
        let record = record.ok_or_else(|| {
            Failure::coded(code::API_NO_SUCH_OPERATION, format!("Operation {id} is not kept any more"))
        })?;
        map_of(id, &record)
    }

    /// What `list_operations` usually shows of a finished operation.
    fn listed(&self, id: OperationId) -> Result<Map, Failure> {
        match self.store.get(Table::OperationArchive, &listed_key(id)).map_err(unreadable)? {
            Some(record) => map_of(id, &record),
            // Older versions have put down everything in one record.
            None => self.operation(id),
        }
    }

    /// `list_operation_events` of a finished operation.
    pub fn events(&self, id: OperationId, query: &EventsOfOperation) -> Result<Value, Failure> {
        let all = self.operation(id)?;
        Ok(query.of(all.get("events").and_then(Value::as_list).unwrap_or_default()))
    }

    /// Some attributes of a finished operation, or what a path inside them leads to.
    pub fn operation_value(
        &self,
        id: OperationId,
        node: Map,
        attributes: Option<&[String]>,
        steps: &[Step],
    ) -> Result<Value, Failure> {
        let map: Map = node.into_iter().chain(self.operation(id)?).collect();
        match steps {
            [] => Ok(job_list::project_named(map, attributes).into()),
            _ => kernel::walk(&map.into(), &format!("//sys/operations/{id}/@"), steps),
        }
    }

    /// A page of `list_operations`.
    pub fn operations(
        &self,
        rows: Vec<OperationRow>,
        attributes: Option<&[String]>,
        rest: Map,
    ) -> Result<Map, Failure> {
        let listed = is_listed(attributes);
        let mut operations: Vec<Value> = Vec::with_capacity(rows.len());
        for row in rows {
            match row {
                OperationRow::Live(map) => operations.push(map.into()),
                // An operation may be forgotten between the two looks: then it is not in the list.
                OperationRow::Archived(id) => {
                    let map = if listed { self.listed(id) } else { self.operation(id) };
                    if let Ok(map) = map {
                        operations.push(job_list::project_named(map, attributes).into());
                    }
                }
            }
        }
        Ok(rest.into_iter().chain(yson::map! { "operations" => operations }).collect())
    }

    /// `list_jobs` over unfinished and archived jobs.
    pub fn jobs(&self, operation: OperationId, live: Vec<Map>, query: &ListJobs) -> Result<Map, Failure> {
        let prefix = operation.0.to_bytes();
        let end = prefix_end(&prefix);
        let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut finished = Vec::new();
        let mut broken = None;
        let mut visit = |_: &[u8], record: &[u8]| match archived_job(record) {
            Ok(job) => {
                finished.push(job);
                ControlFlow::Continue(())
            }
            Err(failure) => {
                broken = Some(failure);
                ControlFlow::Break(())
            }
        };
        self.store
            .scan(Table::JobArchive, Bound::Included(&prefix), to, false, &mut visit)
            .map_err(unreadable)?;
        match broken {
            Some(failure) => Err(failure),
            None => job_list::list(live, finished, query),
        }
    }

    /// `get_job`.
    pub fn job(
        &self,
        operation: OperationId,
        job_id: JobId,
        live: Option<Map>,
        attributes: Option<&[String]>,
    ) -> Result<Map, Failure> {
        let record = self.store.get(Table::JobArchive, &job_key(operation, job_id)).map_err(unreadable)?;
        let map = match (record, live) {
            (Some(record), _) => archived_job_in_full(&record)?,
            (None, Some(live)) => live,
            (None, None) => return Err(no_such_job(job_id)),
        };
        Ok(job_list::project(map, attributes))
    }

    /// The operation of a finished job.
    pub fn operation_of(&self, job_id: JobId) -> Result<Option<OperationId>, Failure> {
        let found = self.store.get(Table::JobIndex, &job_id.0.to_bytes()).map_err(unreadable)?;
        let operation = found.as_deref().and_then(|id| id.try_into().ok());
        Ok(operation.map(|id| OperationId(Guid::from_bytes(id))))
    }

    /// Which rows of its operation's input a finished job was given.
    pub fn rows_of_job(&self, operation: OperationId, job_id: JobId) -> Result<Range<u64>, Failure> {
        let record = self.store.get(Table::JobArchive, &job_key(operation, job_id)).map_err(unreadable)?;
        let record = record.ok_or_else(|| no_such_job(job_id))?;
        rows_of_archived_job(&record)?.ok_or_else(|| no_job_input(job_id))
    }

    /// Where rows of the input of a finished operation were.
    pub fn input(&self, operation: OperationId, rows: &Range<u64>) -> Result<Value, Failure> {
        let record = self.store.get(Table::OperationArchive, &input_key(operation)).map_err(unreadable)?;
        let record = record.ok_or_else(|| malformed(operation, "its input is missing"))?;
        let input = yson::parse_record(&record).map_err(|e| malformed(operation, &e.to_string()))?;
        rows_of_input(&input, rows).ok_or_else(|| malformed(operation, "its input is not what it should be"))
    }

    /// What a failed job was reading.
    pub fn fail_context(&self, operation: OperationId, job_id: JobId) -> Result<FailContext, Failure> {
        let key = job_key(operation, job_id);
        match self.store.get(Table::FailContext, &key).map_err(unreadable)? {
            Some(record) => {
                FailContext::decode(&record).ok_or_else(|| Failure::new("Malformed record of a fail context"))
            }
            None => match self.store.get(Table::JobArchive, &key).map_err(unreadable)? {
                Some(_) => Err(no_fail_context(operation, job_id)),
                None => Err(no_such_job(job_id)),
            },
        }
    }

    /// The kept stderr of a finished job; empty if it has none.
    pub fn stderr(
        &self,
        operation: OperationId,
        job_id: JobId,
        offset: u64,
        limit: u64,
    ) -> Result<Vec<u8>, Failure> {
        let key = job_key(operation, job_id);
        let record = self.store.get(Table::Stderr, &key).map_err(unreadable)?;
        match record.as_deref() {
            Some([STDERR_INLINE, text @ ..]) => {
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
                let len = usize::try_from(limit).unwrap_or(usize::MAX).min(text.len() - from);
                Ok(text[from..from + len].to_vec())
            }
            Some([STDERR_BLOB, number @ ..]) => {
                let number: [u8; 8] =
                    number.try_into().map_err(|_| Failure::new("Malformed record of a stderr"))?;
                let len = usize::try_from(limit).unwrap_or(usize::MAX);
                self.store.read_blob(u64::from_be_bytes(number), offset, len).map_err(unreadable)
            }
            Some(_) => Err(Failure::new("Malformed record of a stderr")),
            None => match self.store.get(Table::JobArchive, &key).map_err(unreadable)? {
                Some(_) => Ok(Vec::new()),
                None => Err(no_such_job(job_id)),
            },
        }
    }
}

fn no_such_job(job_id: JobId) -> Failure {
    let message = format!("No such job {job_id}");
    Failure::coded(code::NO_SUCH_JOB, message.clone())
        .with("job_id", job_id)
        .because(Failure::coded(code::API_NO_SUCH_JOB, message))
}

/// The store could not be read.
pub fn unreadable(error: StoreError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        StoreError::NoSuchBlob(blob) => failure.with("missing_blob", blob),
        _ => failure,
    }
}

fn map_of(id: OperationId, record: &[u8]) -> Result<Map, Failure> {
    match yson::parse_record(record).map_err(|e| malformed(id, &e.to_string()))? {
        Value::Map(map) => Ok(map),
        _ => Err(malformed(id, "it is not a map")),
    }
}

fn malformed(id: OperationId, why: &str) -> Failure {
    Failure::new(format!("Malformed archive record of operation {id}: {why}"))
}
