//! What the kernel wants done: values that the edge carries out, in order.

use crate::EventFilter;
use crate::command::{EventsFrom, ListJobs, OperationRef};
use vocab::batch::Batch;
use vocab::{Failure, JobId, OperationId};
use wire::ServerMessage;
use yson::{Map, Value};

/// Number of a batch. 0 means "depends on nothing".
pub type Seq = u64;

/// A connection of a node, chosen by the edge; a node that reconnects gets a new one, so an order
/// that was held back for the old connection cannot reach the new one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeKey(pub u64);

/// See the module page.
#[derive(Debug)]
pub enum Effect {
    /// Make this durable. Numbers grow by one; everything up to a number is durable when it is.
    Commit {
        /// Its number.
        seq: Seq,
        /// What to write, whole or not at all.
        batch: Batch,
    },
    /// Answer a request, not before `after` is durable.
    Reply {
        /// The request.
        request: u64,
        /// What must be durable first.
        after: Seq,
        /// The answer.
        body: Result<Body, Failure>,
    },
    /// Send to a node, not before `after` is durable. Messages to one node keep their order.
    ToNode {
        /// Which connection.
        node: NodeKey,
        /// What must be durable first.
        after: Seq,
        /// What to say.
        message: ServerMessage,
    },
    /// Close a node's connection after what was sent before.
    Disconnect(NodeKey),
    /// A finished operation is no longer kept: remove its archived jobs, their stderrs and blobs.
    ForgetOperation {
        /// What must be durable first.
        after: Seq,
        /// Which.
        id: OperationId,
    },
    /// Append to the event log. Numbers grow by one from event to event, over restarts too; what was
    /// handed out before and never acknowledged ([`Input::EventsWritten`](crate::Input::EventsWritten))
    /// comes again after a restart.
    Events {
        /// What must be durable first.
        after: Seq,
        /// Number of the first event.
        first: u64,
        /// Number behind the last one.
        end: u64,
        /// For [`events_of`](crate::events_of).
        stored: Vec<u8>,
    },
    /// Large contents in the blob store that nothing refers to any more.
    DeleteBlob {
        /// What must be durable first.
        after: Seq,
        /// Which.
        blob: u64,
    },
    /// Remove the blobs that the start has held back ([`Input::GarbageHeld`](crate::Input::GarbageHeld)), and say so
    /// ([`Input::GarbageCollected`](crate::Input::GarbageCollected)).
    CollectGarbage {
        /// What must be durable first.
        after: Seq,
    },
}

/// An answer. Most are complete; some need records of finished operations and jobs, which the
/// kernel does not hold: the edge reads them from the store. Some would take the kernel long: the edge makes them.
#[derive(Debug)]
pub enum Body {
    /// Complete.
    Value(Value),
    /// Complete, and large: whoever answers it copies it, and may count first.
    Shared(crate::SharedValue),
    /// A large part of a published snapshot: whoever wants it makes it.
    Snapshot(crate::SnapshotQuery),
    /// Attributes of a finished operation.
    ArchivedOperation {
        /// Which.
        id: OperationId,
        /// What it has as a node of the tree, unless its record says otherwise; nothing for `get_operation`.
        node: yson::Map,
        /// Only these; all when absent.
        attributes: Option<Vec<String>>,
        /// Walk this path inside the map of attributes (for `//sys/operations/..`); empty = the map.
        steps: Vec<yson::ypath::Step>,
    },
    /// What monitoring is told.
    Metrics(Box<crate::Metrics>),
    /// `list_operation_events` of a finished operation.
    ArchivedEvents {
        /// Which.
        id: OperationId,
        /// Which of its events.
        query: crate::EventsOfOperation,
    },
    /// A page of `list_operations`.
    OperationList {
        /// Newest first.
        rows: Vec<OperationRow>,
        /// Only these attributes.
        attributes: Option<Vec<String>>,
        /// `incomplete` and the counters.
        rest: Map,
    },
    /// `concatenate` of files: not done before these are joined.
    FilesToJoin(crate::FileParts),
    /// A part of the event log: it is in files of the edge.
    Events {
        /// From where.
        from: EventsFrom,
        /// At most so many.
        limit: Option<usize>,
        /// Only these.
        filter: EventFilter,
    },
    /// `list_jobs`: what runs; the edge adds finished jobs from the archive, filters, sorts, cuts.
    JobList {
        /// Of which operation.
        operation_id: OperationId,
        /// Unfinished jobs, each with all its fields.
        live: Vec<Map>,
        /// What was asked.
        query: Box<ListJobs>,
    },
    /// `get_job`.
    Job {
        /// Of which operation, if known.
        operation_id: Option<OperationId>,
        /// How the operation was named, for messages.
        operation: Option<OperationRef>,
        /// Which.
        job_id: JobId,
        /// Its fields if it is not finished.
        live: Option<Map>,
        /// Only these.
        attributes: Option<Vec<String>>,
    },
    /// `get_job_input` and `get_job_input_paths`.
    JobInput {
        /// Of which operation.
        operation_id: OperationId,
        /// Which.
        job_id: JobId,
        /// Where the rows are; none of a job that does not run: what it read is in the archive.
        input: Option<Value>,
    },
    /// `get_job_fail_context`: it is in the archive.
    FailContext {
        /// Of which operation.
        operation_id: OperationId,
        /// Which.
        job_id: JobId,
    },
    /// `get_job_stderr`.
    Stderr {
        /// Of which operation, if the caller said it.
        operation_id: Option<OperationId>,
        /// Which.
        job_id: JobId,
        /// Where it is.
        place: StderrPlace,
        /// At most so many bytes.
        limit: Option<u64>,
        /// From here.
        offset: Option<u64>,
    },
}

/// Where the stderr of a job is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StderrPlace {
    /// The job is over.
    Archive,
    /// It runs, or its node has not told its end yet: then it is in the archive.
    Node {
        /// None: the node is away.
        key: Option<NodeKey>,
        /// Its process is known to have begun: it may have printed something.
        began: bool,
    },
}

/// One row of `list_operations`.
#[derive(Debug)]
pub enum OperationRow {
    /// Unfinished: all its attributes that were asked for.
    Live(Map),
    /// Finished: in the archive.
    Archived(OperationId),
}
