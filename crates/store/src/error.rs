//! What can go wrong with a store, and what a person can do about it.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("Cannot {action} {}: {source}{}", path.display(), advice(source))]
    Io {
        /// What was tried, as a verb: "write", "open".
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Another process has the data directory.
    #[error(
        "Data directory {} is in use by another millpond{}: stop it, or choose another data directory",
        path.display(),
        pid.map(|p| format!(" (pid {p})")).unwrap_or_default()
    )]
    InUse {
        /// The data directory.
        path: PathBuf,
        /// Who has it, if that could be read.
        pid: Option<u32>,
    },
    /// Written by another version.
    #[error(
        "Data directory {} has format version {found}, this program reads {} to {}: \
         use the millpond version that wrote it, or start with an empty data directory",
        path.display(),
        supported.start(),
        supported.end()
    )]
    Version {
        /// The data directory.
        path: PathBuf,
        /// What it says.
        found: String,
        /// What this program understands.
        supported: std::ops::RangeInclusive<u32>,
    },
    /// The contents make no sense.
    #[error("Store {} is damaged: {detail}; restore the data directory from a copy", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// Parts of a cluster are missing in the data directory, or belong to another cluster.
    #[error(
        "Data directory {} does not hold one whole cluster: {detail}. Nothing was removed. Restore the whole directory \
         from a backup; or, to begin a new cluster in it, start the server with --new-cluster, which moves what is there \
         into a folder of its own",
        path.display()
    )]
    NotWhole {
        /// The data directory.
        path: PathBuf,
        /// What is missing, or does not fit.
        detail: String,
    },
    /// An earlier write failed; what is on the disk is only known when the store is opened again.
    #[error("Store takes no writes after an earlier failure: {cause}")]
    Poisoned {
        /// The first failure.
        cause: String,
    },
    /// No blob with this id.
    #[error("No blob {0:#x} in the store")]
    NoSuchBlob(u64),
}

impl StoreError {
    /// Is there no room on the disk, or none for this user?
    pub(crate) fn is_lack_of_room(&self) -> bool {
        let StoreError::Io { source, .. } = self else { return false };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }

    /// Makes an [`StoreError::Io`] for `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
        let path = path.to_owned();
        move |source| StoreError::Io { action, path, source }
    }
}

/// A hint for the errors that people can do something about.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => "; free some space on this disk",
        io::ErrorKind::QuotaExceeded => "; raise the quota",
        io::ErrorKind::PermissionDenied => "; the directory must be writable for millpond's user",
        io::ErrorKind::ReadOnlyFilesystem => "; the file system must be mounted writable",
        _ => "",
    }
}
