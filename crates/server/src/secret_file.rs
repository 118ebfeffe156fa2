//! Drafts of files with secrets, which a killed server has left.

use std::path::Path;

/// Removes the drafts of these files.
pub fn remove_drafts(directory: &Path, names: &[&str]) {
    for (draft, removed) in names.iter().flat_map(|name| datadir::remove_drafts(&directory.join(name))) {
        match removed {
            Ok(()) => tracing::info!(file = %draft.display(), "removed an unfinished file with a secret"),
            Err(error) => tracing::warn!(
                file = %draft.display(), %error, "this file may hold a secret, and cannot be removed"
            ),
        }
    }
}
