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
    /// A living node of this host has the name or the control group.
    #[error(
        "The {kind} {name:?} is used on this host by {holder}: choose another name for this node (--name), or stop that one"
    )]
    Claimed {
        /// `node` or `group`.
        kind: &'static str,
        /// Which one.
        name: String,
        /// The process, and its data directory.
        holder: String,
    },
    /// The file with the name of the node's control group was changed.
    #[error("File {path:?} must have the name of a control group below the root, it has {found:?}")]
    GroupFile {
        /// The file.
        path: PathBuf,
        /// Its contents.
        found: String,
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
    /// The file with the node's token is open to others.
    #[error(transparent)]
    Secret(#[from] datadir::SecretError),
    /// The file with the node's identity was changed.
    #[error(
        "The identity of this node in {path:?} cannot be used: {reason}; remove the file, and let the node join again with a token of \
         `millpond node token create --name NAME --replace`"
    )]
    Identity {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The node has not joined.
    #[error("Cannot join the cluster of {server}: {why}")]
    Join {
        /// Address of the server.
        server: String,
        /// Why not.
        why: String,
    },
    /// What the server has said needs a new start.
    #[error("This node must be started again: {0}")]
    StartAgain(&'static str),
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
