//! Sandboxes: the working directories of jobs, one per slot, used again and again.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use super::clearing::Clearing;
use super::room::{self, Owner, own};
use vocab::{Artifact, Failure, code};

/// Directories with so few plain entries are emptied within the loop, others beside it.
const FEW: usize = 16;
/// A directory that was once full of files stays large on most file systems, and slow to look through: a
/// larger one is replaced.
const LARGE: u64 = 64 << 10;

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
/// system is copied: a link into the cache would not be in memory. With `names`, a directory, links lead to
/// other names of the files there, so that a job can be shown these and not the cache.
pub(crate) fn place(
    sandbox: &Path,
    names: Option<&Path>,
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
            // A file that is not to stay in the cache is the job's own.
            if !copy && !artifact.bypass_cache && !in_memory(&target) {
                return match names {
                    Some(names) => symlink(another_name(cached, names)?, &target),
                    None => symlink(cached, &target),
                };
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

/// The same file in another directory.
fn another_name(cached: &Path, names: &Path) -> io::Result<PathBuf> {
    let name = names.join(cached.file_name().unwrap_or_default());
    match fs::hard_link(cached, &name) {
        // The job has it twice.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) if e.kind() == io::ErrorKind::CrossesDevices => {
            fs::copy(cached, &name)?;
        }
        other => other?,
    }
    Ok(name)
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
    if fs::symlink_metadata(sandbox)?.len() > LARGE {
        return Ok(Condition::Full);
    }
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

/// Empties a sandbox whatever is in it. Blocks for as long as that takes.
pub(crate) fn empty(sandbox: &Path, owner: Option<Owner>) -> Result<(), Failure> {
    match Clearing::of(sandbox).and_then(Clearing::run) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(directory_failure("empty", sandbox, &e)),
        _ => renew(sandbox, owner),
    }
}

/// A fresh directory in the place of an empty one.
pub(crate) fn renew(sandbox: &Path, owner: Option<Owner>) -> Result<(), Failure> {
    let removed = match fs::remove_dir(sandbox) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    };
    removed
        .and_then(|()| fs::DirBuilder::new().mode(0o755).create(sandbox))
        .and_then(|()| own(sandbox, owner))
        .map_err(|e| directory_failure("renew", sandbox, &e))
}

pub(crate) fn directory_failure(action: &str, path: &Path, error: &io::Error) -> Failure {
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

    /// The cache is not shown to a job: its links lead to names of its own.
    #[test]
    fn links_lead_to_names_of_the_jobs_own() -> io::Result<()> {
        use std::os::unix::fs::MetadataExt;
        let root = tempfile::tempdir()?;
        let [cache, names, sandbox] = ["cache", "files", "sandbox"].map(|name| root.path().join(name));
        for directory in [&cache, &names, &sandbox] {
            fs::create_dir(directory)?;
        }
        let cached = cache.join("1-2-3-4.5");
        fs::write(&cached, b"x")?;
        let file = |name: &str| Placement {
            artifact: Artifact {
                file_id: vocab::ObjectId(vocab::Guid([1, 2, 3, 4])),
                revision: 5,
                size: 1,
                file_name: name.to_owned(),
                executable: false,
                bypass_cache: false,
            },
            cached: cached.clone(),
        };
        place(&sandbox, Some(&names), &[file("a"), file("d/b")], false, &[], None).expect("placed");
        for name in ["a", "d/b"] {
            assert_eq!(fs::read_link(sandbox.join(name))?, names.join("1-2-3-4.5"));
        }
        assert_eq!(fs::metadata(&cached)?.nlink(), 2);
        place(&sandbox, None, &[file("c")], false, &[], None).expect("placed");
        assert_eq!(fs::read_link(sandbox.join("c"))?, cached);
        Ok(())
    }

    #[test]
    fn a_directory_that_was_full_is_replaced() -> io::Result<()> {
        let root = tempfile::tempdir()?;
        let sandbox = root.path().join("sandbox");
        make(&sandbox, &root.path().join("job"), None).expect("made");
        let name = "x".repeat(200);
        let names: Vec<PathBuf> = (0..2000).map(|n| sandbox.join(format!("{name}{n}"))).collect();
        for name in &names {
            fs::write(name, b"")?;
        }
        for name in &names {
            fs::remove_file(name)?;
        }
        if fs::symlink_metadata(&sandbox)?.len() > LARGE {
            assert_eq!(tidy(&sandbox)?, Condition::Full);
        } else {
            println!("SKIPPED: on this file system a directory shrinks");
        }
        empty(&sandbox, None).expect("replaced");
        assert_eq!(tidy(&sandbox)?, Condition::Empty);
        Ok(())
    }
}
