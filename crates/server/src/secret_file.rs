//! Files with one secret each: tokens and keys that the server makes.

use datadir::SecretError;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Reads a secret; `None` if there is nothing of its name. A link that leads nowhere is an error: the secret is elsewhere, on a
/// disk that is not mounted, for example.
pub fn read_if_there(file: &Path) -> Result<Option<Vec<u8>>, SecretError> {
    match file.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        _ => datadir::read_secret(file).map(Some),
    }
}

/// Replaces a file by rename; only its owner can read it, from the first moment. It survives the loss of power when this
/// returns. A link is refused: the file that it leads to would stay as it is.
pub fn write_secret(file: &Path, contents: &str) -> io::Result<()> {
    refuse_link(file)?;
    let draft = draft(file);
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = || {
        let mut out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        out.write_all(contents.as_bytes())?;
        out.sync_all()?;
        std::fs::rename(&draft, file)
    };
    written().inspect_err(|_| {
        let _ = std::fs::remove_file(&draft);
    })?;
    match file.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Refuses to replace a link by a file.
pub fn refuse_link(file: &Path) -> io::Result<()> {
    if file.is_symlink() {
        let text =
            "it is a symbolic link, which is not replaced: remove the link, or put the file itself here";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    Ok(())
}

/// Removes halves of these files, which a killed process has left.
pub fn remove_drafts(directory: &Path, names: &[&str]) {
    for file in names.iter().map(|name| directory.join(name)) {
        // Earlier versions have left out the ending of the name.
        for draft in [draft(&file), file.with_extension("draft")] {
            match std::fs::remove_file(&draft) {
                Ok(()) => tracing::info!(file = %draft.display(), "removed an unfinished file with a secret"),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => tracing::warn!(
                    file = %draft.display(), %error, "this file may hold a secret, and cannot be removed"
                ),
            }
        }
    }
}

/// Begins with the name of the file, so that a pattern for the one covers the other.
fn draft(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or(OsStr::new("secret"));
    file.with_file_name([name, OsStr::new(".draft")].join(OsStr::new("")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_secret_replaces_another_one_and_is_closed() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("secret");
        for contents in ["one\n", "two\n"] {
            // What a killed process has left.
            std::fs::write(draft(&file), "half").expect("written");
            write_secret(&file, contents).expect("written");
            assert_eq!(std::fs::read_to_string(&file).expect("there"), contents);
            let mode = file.metadata().expect("there").permissions().mode() & 0o7777;
            assert_eq!(mode, 0o600);
        }
        assert_eq!(std::fs::read_dir(directory.path()).expect("there").count(), 1);
    }

    #[test]
    fn halves_of_secrets_are_removed_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        for left in ["vault.key.draft", "vault.draft", "root.draft", "vault.key", "other.draft"] {
            std::fs::write(path.join(left), "secret").expect("written");
        }
        remove_drafts(path, &["vault.key", "root.token"]);
        let left = std::fs::read_dir(path).expect("there").flatten();
        let mut left: Vec<_> = left.map(|entry| entry.file_name().into_string().expect("text")).collect();
        left.sort();
        assert_eq!(left, ["other.draft", "vault.key"]);
    }

    /// Kubernetes, for example, hands secrets over as links. One that leads nowhere was taken for a missing file.
    #[test]
    fn a_link_is_read_and_never_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let (link, target) = (directory.path().join("secret"), directory.path().join("elsewhere"));
        assert!(read_if_there(&link).expect("nothing there").is_none());
        std::os::unix::fs::symlink("elsewhere", &link).expect("linked");
        assert!(read_if_there(&link).is_err(), "its target is not mounted");
        for _ in 0..2 {
            let refused = write_secret(&link, "new").expect_err("a link").to_string();
            assert!(refused.contains("symbolic link"), "{refused}");
            assert!(link.is_symlink());
            std::fs::write(&target, "old").expect("written");
            std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o600)).expect("closed");
            assert_eq!(read_if_there(&link).expect("read").as_deref(), Some(b"old".as_slice()));
        }
        assert_eq!(std::fs::read(&target).expect("there"), b"old");
    }
}
