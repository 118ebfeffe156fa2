//! The protobuf form of the node protocol, for gRPC.
//!
//! The generated types are in [`pb`], client and server in `pb::node_service_client` and
//! `pb::node_service_server`. Plain types go out by `From` and come in by `TryFrom`: nothing that
//! arrives is trusted, and [`Malformed`] names the field.

pub mod bounds;
mod failure;
mod job;
mod message;
mod shell;
mod statistics;
mod tables;

#[cfg(test)]
mod tests;

/// Generated code.
#[allow(missing_docs, clippy::all, clippy::pedantic, clippy::doc_markdown)]
pub mod pb {
    tonic::include_proto!("millpond.node.v1");
}

use vocab::{Cpu, Guid, Resources};

/// Most bytes in one [`pb::Chunk`] or [`pb::TextChunk`]: well below gRPC's bound on messages.
pub const CHUNK_SIZE: usize = 256 << 10;

/// Bound of one message in both directions. A Hello carries the finished jobs with their stderr.
pub const MAX_MESSAGE_SIZE: usize = 256 << 20;

/// A message that does not mean anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A part without which the message has no meaning is missing.
    #[error("Field {0:?} of the node protocol is missing")]
    Missing(&'static str),
    /// An id that is not 16 bytes long.
    #[error("Id {field:?} of the node protocol has {length} bytes: expected 16")]
    Id {
        /// Which field.
        field: &'static str,
        /// What was there.
        length: usize,
    },
    /// A name that is not in the list.
    #[error("Field {field:?} of the node protocol: {error}")]
    Name {
        /// Which field.
        field: &'static str,
        /// What was there and what is allowed.
        error: vocab::states::UnknownName,
    },
    /// Not a range of uids that jobs may get.
    #[error("Field {field:?} of the node protocol: {error}")]
    Uids {
        /// Which field.
        field: &'static str,
        /// What is allowed and what was there.
        error: String,
    },
    /// Bytes that should be a YSON value.
    #[error("Field {0:?} of the node protocol is not a YSON value")]
    Yson(&'static str),
    /// More than any node has.
    #[error("Field {field:?} of the node protocol: expected at most {limit} bytes, found {found}")]
    TooLong {
        /// Which field.
        field: &'static str,
        /// Bytes that are allowed.
        limit: usize,
        /// Bytes that were there.
        found: usize,
    },
    /// Values in values without end.
    #[error("A value or error of the node protocol is nested deeper than {0} levels")]
    TooDeep(usize),
}

impl From<Malformed> for tonic::Status {
    fn from(error: Malformed) -> tonic::Status {
        tonic::Status::invalid_argument(error.to_string())
    }
}

/// Bytes of a message in its protobuf form.
pub fn encoded_size(message: &pb::NodeMessage) -> usize {
    prost::Message::encoded_len(message)
}

/// An id as bytes.
pub fn id_bytes(id: Guid) -> Vec<u8> {
    id.to_bytes().to_vec()
}

/// An id from bytes.
pub fn id_from(field: &'static str, bytes: &[u8]) -> Result<Guid, Malformed> {
    let array = bytes.try_into().map_err(|_| Malformed::Id { field, length: bytes.len() })?;
    Ok(Guid::from_bytes(array))
}

/// The answer to a node that asks for content which the store does not have, or has damaged (S20): trying again does not
/// help.
pub fn lost_blob(blob: u64, why: &str) -> tonic::Status {
    let details = blob.to_be_bytes().to_vec();
    tonic::Status::with_details(tonic::Code::DataLoss, format!("blob {blob}: {why}"), details.into())
}

/// The blob that an answer of [`lost_blob`] names.
pub fn blob_lost(status: &tonic::Status) -> Option<u64> {
    status.details().try_into().ok().map(u64::from_be_bytes)
}

fn name_from<T>(field: &'static str, text: &str) -> Result<T, Malformed>
where
    T: std::str::FromStr<Err = vocab::states::UnknownName>,
{
    text.parse().map_err(|error| Malformed::Name { field, error })
}

/// Unwraps a message field, which protobuf always lets be absent.
fn required<T>(field: &'static str, value: Option<T>) -> Result<T, Malformed> {
    value.ok_or(Malformed::Missing(field))
}

impl From<&Resources> for pb::Resources {
    fn from(r: &Resources) -> pb::Resources {
        pb::Resources {
            user_slots: r.user_slots,
            cpu_hundredths: r.cpu.0,
            gpu: r.gpu,
            memory: r.memory,
            network: r.network,
        }
    }
}
impl From<pb::Resources> for Resources {
    fn from(r: pb::Resources) -> Resources {
        Resources {
            user_slots: r.user_slots,
            cpu: Cpu(r.cpu_hundredths),
            gpu: r.gpu,
            memory: r.memory,
            network: r.network,
        }
    }
}
