//! Why a node cannot start.

use std::io;
use std::path::{Path, PathBuf};

/// Reasons that end the process; everything that concerns one job only is a `Failure` of that job.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The data directory belongs to a living node.
    #[error("Another node runs on the directory {directory:?}, pid {pid}")]
    Locked {
        /// Which directory.
        directory: PathBuf,
        /// Who.
        pid: String,
    },
    /// Something of the file system.
    #[error("Cannot {action} {path:?}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// Proxies could not find us.
    #[error(
        "Path of the unix socket {path:?} is {length} bytes long: at most {max} are possible; set a shorter one"
    )]
    SocketPath {
        /// The path.
        path: PathBuf,
        /// How long it is.
        length: usize,
        /// How long it may be.
        max: usize,
    },
    /// Not an address.
    #[error("Server address {address:?} is not usable: {reason}")]
    ServerAddress {
        /// What was given.
        address: String,
        /// Why not.
        reason: String,
    },
    /// An option that cannot be had here.
    #[error("Option {option} cannot be used: {why}")]
    Option {
        /// Its name.
        option: &'static str,
        /// Why not.
        why: String,
    },
    /// The data directory is not the node's own.
    #[error(transparent)]
    DataDirectory(#[from] datadir::DataDirectoryError),
    /// The job environment.
    #[error(transparent)]
    Environment(#[from] cage::CageError),
}

impl NodeError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> NodeError {
        let path = path.to_owned();
        move |source| NodeError::Io { action, path, source }
    }
}
