//! What is kept of a finished job: its record, its stderr, and what it was reading when it failed
//! (jobs-and-nodes.md 5.4, 5.5).

use crate::jobs::Job;
use crate::records::job_key;
use crate::{Effect, Kernel};
use controller::JobVerdict;
use vocab::batch::Table;

/// What a node has brought of a job before its end.
#[derive(Default)]
pub(crate) struct Left {
    pub stderr: Option<Stderr>,
    pub fail_context: Option<FailContext>,
}

/// What a failed job was reading (`get_job_fail_context`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailContext {
    /// Where it is.
    pub blob: u64,
    /// Bytes.
    pub size: u64,
}

impl FailContext {
    fn encode(self) -> Vec<u8> {
        [self.blob, self.size].map(u64::to_be_bytes).concat()
    }

    /// From a record of `Table::FailContext`: the two numbers, big-endian.
    pub fn decode(record: &[u8]) -> Option<FailContext> {
        let (blob, size) = record.split_first_chunk::<8>()?;
        Some(FailContext { blob: u64::from_be_bytes(*blob), size: u64::from_be_bytes(size.try_into().ok()?) })
    }
}

/// Where a stderr is.
pub(crate) enum Stderr {
    Inline(Vec<u8>),
    /// The bytes and the blob.
    Blob(u64, u64),
}

/// First byte of a record of `Table::Stderr`: the text itself follows.
pub const STDERR_INLINE: u8 = 0;
/// First byte of a record of `Table::Stderr`: the number of a blob follows, big-endian.
pub const STDERR_BLOB: u8 = 1;

/// So much of a stderr is told with the error of a job.
const TAIL: usize = 2048;

impl Stderr {
    /// Its end, as far as it is text. A long one is not at hand.
    pub fn tail(&self) -> Option<String> {
        let Stderr::Inline(bytes) = self else { return None };
        let tail = &bytes[bytes.len().saturating_sub(TAIL)..];
        (!tail.is_empty()).then(|| String::from_utf8_lossy(tail).into_owned())
    }

    pub fn size(&self) -> u64 {
        match self {
            Stderr::Inline(bytes) => bytes.len() as u64,
            Stderr::Blob(size, _) => *size,
        }
    }

    pub fn encode(self) -> Vec<u8> {
        match self {
            Stderr::Inline(mut bytes) => {
                bytes.insert(0, STDERR_INLINE);
                bytes
            }
            Stderr::Blob(_, blob) => std::iter::once(STDERR_BLOB).chain(blob.to_be_bytes()).collect(),
        }
    }
}

impl Kernel {
    /// The record of a finished job, and of what it has left that which the verdict keeps, into the batch; `job`
    /// is what we knew of it.
    pub(crate) fn archive_job(
        &mut self,
        verdict: &mut JobVerdict,
        job: Option<&Job>,
        mut left: Left,
        out: &mut Vec<Effect>,
    ) {
        verdict.record.pool = job.map(|job| job.pool.clone());
        let identity = &verdict.record.identity;
        let key = job_key(identity.operation_id, identity.job_id);
        let mut bytes = key.len() as u64;
        if let Some(stderr) = left.stderr.take_if(|_| verdict.keep_stderr) {
            bytes += key.len() as u64 + verdict.record.stderr_size;
            self.open.batch.put(Table::Stderr, key.clone(), stderr.encode());
        }
        if let Some(context) = left.fail_context.take_if(|_| verdict.keep_fail_context) {
            bytes += key.len() as u64 + context.size;
            self.open.batch.put(Table::FailContext, key.clone(), context.encode());
        }
        // Who asks for what is left of it may name the job alone.
        let (job_id, operation_id) = (identity.job_id.0.to_bytes(), identity.operation_id.0.to_bytes());
        bytes += (job_id.len() + operation_id.len()) as u64;
        self.open.batch.put(Table::JobIndex, job_id, operation_id);
        self.drop_left(left, out);
        if verdict.is_owed {
            self.expect_end(verdict.record.clone());
        }
        if let Some(job) = job {
            self.count_last_savings(&verdict.record, &job.pool);
        }
        let record = verdict.record.encode();
        self.log_end(&verdict.record, &record, job);
        self.counters.job_ended(&verdict.record);
        if let Some(operation) = self.operations.get_mut(&identity.operation_id) {
            operation.archived_bytes += bytes + record.len() as u64;
            operation.has_archived = true;
        }
        self.open.batch.put(Table::JobArchive, key, record);
    }

    /// Nobody wants it.
    pub(crate) fn drop_left(&mut self, left: Left, out: &mut Vec<Effect>) {
        if let Some(Stderr::Blob(_, blob)) = left.stderr {
            self.delete_blob(blob, out);
        }
        if let Some(context) = left.fail_context {
            self.delete_blob(context.blob, out);
        }
    }
}
