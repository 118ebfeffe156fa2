//! Files that only this process may read, replaced as a whole.
//!
//! The new contents are written to a draft beside the file: a new file of mode 0600, whatever the umask is, which is no link.
//! Then the draft takes the place of the file. After a crash there are the old contents or the new ones.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Replaces a file with a secret. It survives the loss of power when this returns. A link is refused: the file that it leads to
/// would stay as it is.
pub fn write_secret(file: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    refuse_link(file)?;
    replace(file, contents.as_ref(), true)?;
    sync_directory_of(file)
}

/// Replaces a file that is closed to others and is written often. It survives the death of this process, and not the loss of power.
pub fn write_closed(file: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    replace(file, contents.as_ref(), false)
}

fn replace(file: &Path, contents: &[u8], is_synced: bool) -> io::Result<()> {
    let draft = draft_of(file);
    remove_if_there(&draft)?;
    let written = || {
        let mut out = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(&draft)?;
        out.write_all(contents)?;
        if is_synced {
            out.sync_all()?;
        }
        fs::rename(&draft, file)
    };
    written().inspect_err(|_| {
        let _ = fs::remove_file(&draft);
    })
}

fn sync_directory_of(file: &Path) -> io::Result<()> {
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
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

/// Removes the drafts of a file that killed processes have left. The result of each draft that was there.
pub fn remove_drafts(file: &Path) -> Vec<(PathBuf, io::Result<()>)> {
    // Earlier versions have left out the ending of the name.
    let mut drafts = vec![draft_of(file), file.with_extension("draft")];
    drafts.dedup();
    let remove = |draft: PathBuf| match fs::remove_file(&draft) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        removed => Some((draft, removed)),
    };
    drafts.into_iter().filter_map(remove).collect()
}

fn remove_if_there(draft: &Path) -> io::Result<()> {
    match fs::remove_file(draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Begins with the name of the file, so that a pattern for the one covers the other.
fn draft_of(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or(OsStr::new("secret"));
    file.with_file_name([name, OsStr::new(".draft")].join(OsStr::new("")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    fn mode(file: &Path) -> u32 {
        file.symlink_metadata().expect("there").permissions().mode() & 0o7777
    }

    /// S2.
    #[test]
    fn a_secret_replaces_another_one_and_is_closed() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("secret.pem");
        let writers: [fn(&Path, &str) -> io::Result<()>; 2] =
            [|file, contents| write_secret(file, contents), |file, contents| write_closed(file, contents)];
        for write in writers {
            for contents in ["one\n", "two\n"] {
                // A killed process has left a draft that others can read.
                fs::write(draft_of(&file), "half").expect("written");
                fs::set_permissions(draft_of(&file), fs::Permissions::from_mode(0o666)).expect("changed");
                write(&file, contents).expect("written");
                assert_eq!(fs::read_to_string(&file).expect("there"), contents);
                assert_eq!(mode(&file), 0o600);
            }
            assert_eq!(fs::read_dir(directory.path()).expect("there").count(), 1, "no draft is left");
        }
    }

    /// S1, S2: a file that is open already, or that has another name, would be read by those who have it open.
    #[test]
    fn a_draft_is_a_new_file_and_never_a_link() {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, other) = (directory.path().join("secret"), directory.path().join("other"));
        fs::write(&other, "others").expect("written");
        for is_symbolic in [true, false] {
            match is_symbolic {
                true => symlink(&other, draft_of(&file)).expect("linked"),
                false => fs::hard_link(&other, draft_of(&file)).expect("linked"),
            }
            write_secret(&file, "secret").expect("written");
            assert_eq!(fs::read_to_string(&other).expect("there"), "others");
            let identity = |path: &Path| path.symlink_metadata().expect("there").ino();
            assert!(identity(&file) != identity(&other) && !file.is_symlink());
        }
    }

    /// What was there before stays when nothing can be written.
    #[test]
    fn a_failed_write_changes_nothing_and_leaves_no_draft() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("secret");
        write_secret(&file, "old").expect("written");
        fs::create_dir(draft_of(&file)).expect("in the place of a full disk");
        write_secret(&file, "new").expect_err("there is no draft");
        assert_eq!(fs::read_to_string(&file).expect("there"), "old");
        fs::remove_dir(draft_of(&file)).expect("removed");
        let target = directory.path().join("a directory");
        fs::create_dir(&target).expect("made");
        write_secret(&target, "new").expect_err("a directory is not replaced by a file");
        assert!(!draft_of(&target).exists());
    }

    #[test]
    fn drafts_are_removed_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path();
        for left in ["vault.key.draft", "vault.draft", "root.draft", "vault.key", "other.draft", "id.draft"] {
            fs::write(path.join(left), "secret").expect("written");
        }
        let removed = ["vault.key", "root.token", "id"].map(|name| remove_drafts(&path.join(name)));
        assert_eq!(removed.each_ref().map(Vec::len), [2, 1, 1]);
        assert!(removed.iter().flatten().all(|(_, removed)| removed.is_ok()));
        let left = fs::read_dir(path).expect("there").flatten();
        let mut left: Vec<_> = left.map(|entry| entry.file_name().into_string().expect("text")).collect();
        left.sort();
        assert_eq!(left, ["other.draft", "vault.key"]);
    }

    /// Kubernetes, for example, hands secrets over as links. One that leads nowhere was taken for a missing file.
    #[test]
    fn a_link_is_read_and_never_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let (link, target) = (directory.path().join("secret"), directory.path().join("elsewhere"));
        assert!(crate::read_secret_if_there(&link).expect("nothing there").is_none());
        symlink("elsewhere", &link).expect("linked");
        assert!(crate::read_secret_if_there(&link).is_err(), "its target is not mounted");
        for _ in 0..2 {
            let refused = write_secret(&link, "new").expect_err("a link").to_string();
            assert!(refused.contains("symbolic link"), "{refused}");
            assert!(link.is_symlink());
            fs::write(&target, "old").expect("written");
            fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).expect("closed");
            assert_eq!(crate::read_secret_if_there(&link).expect("read").as_deref(), Some(b"old".as_slice()));
        }
        assert_eq!(fs::read(&target).expect("there"), b"old");
    }
}
