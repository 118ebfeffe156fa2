//! What can go wrong between a command and its result.

use std::io;

use vocab::{Failure, code};

/// Why a command has no result.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server said no.
    #[error("{0}")]
    Server(Failure),
    /// There was no reply, or only part of one.
    #[error("cannot talk to the server at {address}: {cause}")]
    Connection {
        /// The server.
        address: String,
        /// What the network said.
        cause: String,
    },
    /// There was a reply, but not of this API.
    #[error("the server at {address} sent a reply that makes no sense: {problem}")]
    Protocol {
        /// The server.
        address: String,
        /// What is odd about it.
        problem: String,
    },
    /// What was to be uploaded could not be read.
    #[error("cannot read the input: {0}")]
    Input(#[source] io::Error),
    /// What was downloaded could not be written.
    #[error("cannot write the output: {0}")]
    Output(#[source] io::Error),
    /// The request makes no sense: nothing was sent.
    #[error("{0}")]
    Usage(String),
}

impl ClientError {
    /// The server's error, if it is one.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            ClientError::Server(failure) => Some(failure),
            _ => None,
        }
    }

    /// Is this code anywhere in the server's error?
    pub fn contains_code(&self, code: i64) -> bool {
        self.failure().is_some_and(|failure| failure.contains_code(code))
    }

    /// What the user can do about it, if that can be known.
    pub fn hint(&self) -> Option<String> {
        match self {
            ClientError::Connection { .. } => Some(
                "is it running? Start a cluster with `millpond up`, or name another server with \
                 --proxy or MILLPOND_PROXY"
                    .to_owned(),
            ),
            ClientError::Protocol { address, .. } => {
                Some(format!("is {address} really the address of a millpond server?"))
            }
            ClientError::Server(failure) if failure.contains_code(code::INVALID_CREDENTIALS) => {
                Some("give a token in MILLPOND_TOKEN or YT_TOKEN".to_owned())
            }
            _ => None,
        }
    }
}
