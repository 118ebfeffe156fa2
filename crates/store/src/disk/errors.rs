//! Errors of redb in our words.

use crate::StoreError;
use std::path::Path;

/// Turns any error of redb into ours; `action` is the verb of what was tried.
pub(super) fn explain<E: Into<redb::Error>>(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(E) -> StoreError {
    let path = path.to_owned();
    move |error| match error.into() {
        redb::Error::Io(source) => StoreError::Io { action, path, source },
        redb::Error::DatabaseAlreadyOpen => StoreError::InUse { path, pid: None },
        redb::Error::UpgradeRequired(version) => StoreError::Version {
            path,
            found: format!("of the database file {version}"),
            supported: super::redb_store::SUPPORTED,
        },
        redb::Error::PreviousIo => StoreError::Poisoned { cause: "an earlier error of the disk".to_owned() },
        other => StoreError::Corrupt { path, detail: other.to_string() },
    }
}
