//! What the kernel is told.

use crate::command::Request;
use crate::effect::NodeKey;
use crate::{FailContext, HeldGarbage, NodeProof, Upload};
use cypress::Chunk;
use std::net::IpAddr;
use vocab::{Failure, JobId, Span};
use wire::NodeMessage;

/// See the module page.
#[derive(Debug)]
pub enum Input {
    /// Somebody asks for something.
    Request(Request),
    /// A node has opened a connection, and has proved this about itself. Comes before its first message.
    NodeConnected {
        /// On which connection.
        node: NodeKey,
        /// What the edge has verified.
        proof: NodeProof,
    },
    /// A node said something. The first message of a connection is `Hello`.
    Node {
        /// On which connection.
        node: NodeKey,
        /// What.
        message: NodeMessage,
    },
    /// A heartbeat of a node that would say just what its last one said. It counts as that one.
    NodeUnchanged(NodeKey),
    /// A node's connection is closed. Its jobs go on; it will come back or time out.
    NodeDisconnected(NodeKey),
    /// A long stderr was uploaded; the job's end is reported right after.
    StderrUploaded {
        /// What the caller has proved.
        from: NodeProof,
        /// Of which job.
        job_id: JobId,
        /// Where it is now.
        blob: u64,
        /// Bytes.
        size: u64,
    },
    /// What a failed job was reading was uploaded; its end is reported afterwards.
    FailContextUploaded {
        /// What the caller has proved.
        from: NodeProof,
        /// Of which job.
        job_id: JobId,
        /// Where it is now.
        context: FailContext,
    },
    /// Rows that a job has written to one of its output tables were uploaded; its end is reported afterwards.
    RowsUploaded {
        /// What the caller has proved.
        from: NodeProof,
        /// Of which job.
        job_id: JobId,
        /// Number of the table.
        table: u32,
        /// Where they are now.
        chunk: Box<Chunk>,
    },
    /// An upload was larger than its limit. It was dropped.
    UploadTooLarge {
        /// What the caller has proved.
        from: NodeProof,
        /// Of which job.
        job_id: JobId,
        /// What was uploaded.
        upload: Upload,
    },
    /// The event log has everything up to this number, safely.
    EventsWritten(u64),
    /// The event log cannot be written at the moment, and why.
    EventsFailing(Failure),
    /// These numbers are missing in the event log and will not come.
    EventsLost {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
    /// The store cannot be written, and why: this kernel only answers questions.
    StoreFailing(Failure),
    /// The start has not removed blobs that nothing refers to: an administrator has to confirm it.
    GarbageHeld(HeldGarbage),
    /// Blobs that nothing referred to at the start are removed.
    GarbageCollected,
    /// The edge has refused a client that showed a wrong password or token, for the audit log.
    SignInRefused(Box<RefusedSignIn>),
    /// Nothing happened but time: periodic work is due.
    Tick,
}

/// A password or token that was refused.
#[derive(Clone, PartialEq, Debug)]
pub struct RefusedSignIn {
    /// What the client has shown: `password`, `token`, `node_token`, `join_token`, `node_certificate`.
    pub shown: &'static str,
    /// Name that the client gave, or user of the token; there need not be such a user.
    pub user: Option<String>,
    /// Address of the client; `None` if the connection does not tell.
    pub address: Option<IpAddr>,
    /// What the client was answered.
    pub error: Failure,
    /// Delay before the next try of the same client is looked at.
    pub retry_after: Option<Span>,
    /// Refusals since the last record that have no record of their own.
    pub unreported: u64,
}
