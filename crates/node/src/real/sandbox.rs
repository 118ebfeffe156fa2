//! Sandboxes: the working directories of jobs, one per slot, used again and again.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use super::room::{self, Owner, own};
use vocab::{Artifact, Failure, code};

/// Directories with so few plain entries are emptied within the loop, others beside it.
const FEW: usize = 16;

/// A file to place and where it lies in the cache.
#[derive(Clone, Debug)]
pub(crate) struct Placement {
    pub artifact: Artifact,
    pub cached: PathBuf,
}

/// Makes a slot's directories, the sandbox for its user; harmless if they are there.
pub(crate) fn make(sandbox: &Path, job: &Path, owner: Option<Owner>) -> Result<(), Failure> {
    for directory in [sandbox, job] {
        let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(directory);
        made.map_err(|e| directory_failure("create", directory, &e))?;
    }
    own(sandbox, owner).map_err(|e| directory_failure("give away", sandbox, &e))
}

/// Links or copies files into an empty sandbox. Copies are the user's. What lies on a memory file
/// system is copied: a link into the cache would not be in memory.
pub(crate) fn place(
    sandbox: &Path,
    files: &[Placement],
    copy: bool,
    volumes: &[PathBuf],
    owner: Option<Owner>,
) -> Result<(), Failure> {
    let in_memory = |target: &Path| volumes.iter().any(|volume| target.starts_with(volume));
    for Placement { artifact, cached } in files {
        let name = checked_name(&artifact.file_name)?;
        let target = sandbox.join(name);
        let placed = (|| {
            if let Some(parent) = target.parent()
                && parent != sandbox
            {
                room::make_path(sandbox, parent, owner)?;
            }
            if !copy && !in_memory(&target) {
                return symlink(cached, &target);
            }
            fs::copy(cached, &target)?;
            let mode = if artifact.executable { 0o755 } else { 0o644 };
            fs::set_permissions(&target, fs::Permissions::from_mode(mode))?;
            own(&target, owner)
        })();
        placed.map_err(|e| {
            let text = format!("Cannot place file {:?} into the sandbox: {e}", artifact.file_name);
            let failure = Failure::coded(code::ARTIFACT_COPYING_FAILED, text);
            // Its size was the user's choice and the next run would fail as well (3.8).
            match e.kind() == io::ErrorKind::StorageFull && in_memory(&target) {
                true => failure.with("user_fault", true).with("fatal", true),
                false => failure,
            }
        })?;
    }
    Ok(())
}

/// Inside the sandbox and nowhere else (jobs-and-nodes.md 3.7 step 4). The controller has checked it
/// too; a node trusts nobody with its host's files.
fn checked_name(name: &str) -> Result<&Path, Failure> {
    let path = Path::new(name);
    let inside = !name.contains('\0')
        && path.components().next().is_some()
        && path.components().all(|c| matches!(c, Component::Normal(_)));
    if inside {
        return Ok(path);
    }
    Err(Failure::coded(
        code::ARTIFACT_COPYING_FAILED,
        format!("File name {name:?} is not allowed: expected a relative path without \"..\""),
    ))
}

/// What a look at a used sandbox shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// As new.
    Empty,
    /// Trees, or very much: to be emptied beside the loop.
    Full,
}

/// Empties a sandbox if that is quickly done: most small jobs leave nothing, or a link or two.
pub(crate) fn tidy(sandbox: &Path) -> io::Result<Condition> {
    let entries = match fs::read_dir(sandbox) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Condition::Full),
        other => other?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        if files.len() == FEW || entry.file_type()?.is_dir() {
            return Ok(Condition::Full);
        }
        files.push(entry.path());
    }
    for file in files {
        fs::remove_file(file)?;
    }
    // Its user may have changed them.
    fs::set_permissions(sandbox, fs::Permissions::from_mode(0o755))?;
    Ok(Condition::Empty)
}

/// Empties a sandbox by all means: directories that were made unreadable too.
pub(crate) fn empty(sandbox: &Path, owner: Option<Owner>) -> Result<(), Failure> {
    let failed = |e: io::Error| directory_failure("empty", sandbox, &e);
    if let Err(e) = fs::remove_dir_all(sandbox)
        && e.kind() != io::ErrorKind::NotFound
    {
        open_up(sandbox);
        fs::remove_dir_all(sandbox).map_err(failed)?;
    }
    fs::DirBuilder::new().mode(0o755).create(sandbox).and_then(|()| own(sandbox, owner)).map_err(failed)
}

/// Makes every directory of the tree writable, as far as possible.
fn open_up(directory: &Path) {
    let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
        open_up(&entry.path());
    }
}

fn directory_failure(action: &str, path: &Path, error: &io::Error) -> Failure {
    let code = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => code::NOT_ENOUGH_DISK_SPACE,
        _ => code::NODE_DIRECTORY_PREPARATION_FAILED,
    };
    Failure::coded(code, format!("Cannot {action} directory {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside() {
        for good in ["a", "dir/a", "a..b", ".hidden"] {
            assert!(checked_name(good).is_ok(), "{good}");
        }
        for bad in ["", "/etc/passwd", "../a", "a/../../b", "a\0b", ".", "./a"] {
            assert!(checked_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_used_sandbox_becomes_empty() -> io::Result<()> {
        let root = tempfile::tempdir()?;
        let sandbox = root.path().join("sandbox");
        make(&sandbox, &root.path().join("job"), None).expect("made");
        assert_eq!(tidy(&sandbox)?, Condition::Empty);
        fs::write(sandbox.join("a"), b"x")?;
        symlink("/nowhere", sandbox.join("b"))?;
        assert_eq!(tidy(&sandbox)?, Condition::Empty);
        assert_eq!(fs::read_dir(&sandbox)?.count(), 0);
        fs::create_dir_all(sandbox.join("deep/er"))?;
        fs::write(sandbox.join("deep/er/file"), b"x")?;
        fs::set_permissions(sandbox.join("deep"), fs::Permissions::from_mode(0o000))?;
        assert_eq!(tidy(&sandbox)?, Condition::Full);
        empty(&sandbox, None).expect("emptied");
        assert_eq!(fs::read_dir(&sandbox)?.count(), 0);
        fs::remove_dir(&sandbox)?;
        assert_eq!(tidy(&sandbox)?, Condition::Full, "a job may remove its own directory");
        empty(&sandbox, None).expect("made again");
        Ok(())
    }
}
