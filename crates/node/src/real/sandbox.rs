//! Sandboxes: the working directories of jobs, one per slot, used again and again.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::beneath::{Directory, give_to, open_file};
use super::clearing::Clearing;
use super::layout::{CLOSED, Layout, PASSABLE};
use super::room::{Owner, free_space, own};
use vocab::sandbox_path::check_file_name;
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

/// Makes a slot's directories, the sandbox for its user; harmless if they are there. All of them, whatever the first job
/// needs: what one job does without the next one may be shown.
pub(crate) fn make(layout: &Layout, slot: u32, owner: Option<Owner>) -> Result<(), Failure> {
    let (sandbox, files) = (layout.sandbox(slot), layout.files(slot));
    for directory in [&sandbox, &layout.job(slot), &files] {
        let made = fs::DirBuilder::new().recursive(true).mode(CLOSED).create(directory);
        made.map_err(|e| directory_failure("create", directory, &e))?;
    }
    let passable = fs::set_permissions(&files, fs::Permissions::from_mode(PASSABLE));
    passable.map_err(|e| directory_failure("open", &files, &e))?;
    own(&sandbox, owner).map_err(|e| directory_failure("give away", &sandbox, &e))
}

/// Links or copies files into an empty sandbox. Copies are the user's. What lies on a memory file
/// system is copied: a link into the cache would not be in memory. With `names`, a directory, links lead to
/// other names of the files there, so that a job can be shown these and not the cache. `bounded`: the system bounds
/// the space of the sandbox at the job's request.
pub(crate) fn place(
    sandbox: &Path,
    names: Option<&Path>,
    files: &[Placement],
    copy: bool,
    volumes: &[PathBuf],
    (owner, bounded): (Option<Owner>, bool),
) -> Result<(), Failure> {
    let in_memory = |target: &Path| volumes.iter().any(|volume| target.starts_with(volume));
    for file in files {
        let name = checked_name(&file.artifact.file_name)?;
        let in_memory = in_memory(&sandbox.join(name));
        // A file that is not to stay in the cache is the job's own.
        let copied = copy || file.artifact.bypass_cache || in_memory;
        place_one(sandbox, names, name, file, copied, owner).map_err(|e| {
            let text = format!("Cannot place file {:?} into the sandbox: {e}", file.artifact.file_name);
            let failure = Failure::coded(code::ARTIFACT_COPYING_FAILED, text);
            // Its size and name were the user's choice and the next run would fail as well (3.8).
            match is_of_the_name(&e) || does_not_fit(&e, sandbox, file.artifact.size, (in_memory, bounded)) {
                true => of_the_user(failure),
                false => failure,
            }
        })?;
    }
    Ok(())
}

/// Is a file too large for the job's own bound, and not for the disk of the node?
fn does_not_fit(error: &io::Error, sandbox: &Path, size: u64, (in_memory, bounded): (bool, bool)) -> bool {
    // Outside of the sandbox, to which some file systems apply the bound of the job.
    let disk_has_room = || {
        let around = sandbox.parent().unwrap_or(sandbox);
        free_space(around).is_ok_and(|free| free > size)
    };
    match error.kind() {
        io::ErrorKind::QuotaExceeded => bounded,
        // Some file systems say this of the quota of a project, too.
        io::ErrorKind::StorageFull => in_memory || (bounded && disk_has_room()),
        _ => false,
    }
}

fn place_one(
    sandbox: &Path,
    names: Option<&Path>,
    name: &Path,
    file: &Placement,
    copied: bool,
    owner: Option<Owner>,
) -> io::Result<()> {
    let Placement { artifact, cached } = file;
    let directory = Directory::open(sandbox)?.make(name.parent().unwrap_or(Path::new("")), owner)?;
    let last = name.file_name().unwrap_or_default();
    if !copied {
        let target = names.map_or(Ok(cached.clone()), |names| another_name(cached, names))?;
        return directory.create_link(last, &target);
    }
    let mut copy = directory.create_file(last, if artifact.executable { 0o700 } else { 0o600 })?;
    io::copy(&mut open_file(cached)?, &mut copy)?;
    give_to(&copy, owner)
}

/// The same file in another directory.
fn another_name(cached: &Path, names: &Path) -> io::Result<PathBuf> {
    let last = cached.file_name().unwrap_or_default();
    let name = names.join(last);
    match fs::hard_link(cached, &name) {
        // The job has it twice.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) if e.kind() == io::ErrorKind::CrossesDevices => {
            let mode = fs::metadata(cached)?.permissions().mode();
            let mut copy = Directory::open(names)?.create_file(last, mode & 0o777)?;
            io::copy(&mut open_file(cached)?, &mut copy)?;
        }
        other => other?,
    }
    Ok(name)
}

/// Inside the sandbox and nowhere else (jobs-and-nodes.md 3.7 step 4). The controller has checked it
/// too; a node trusts nobody with its host's files.
fn checked_name(name: &str) -> Result<&Path, Failure> {
    match check_file_name(name) {
        Ok(()) => Ok(Path::new(name)),
        Err(why) => {
            let text = format!("File name {name:?} is not allowed: {why}");
            Err(of_the_user(Failure::coded(code::ARTIFACT_COPYING_FAILED, text)))
        }
    }
}

/// Does the system refuse the name, or what it names together with another? Then every node would.
pub(super) fn is_of_the_name(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let of_the_name = [
        Errno::NAMETOOLONG,
        Errno::NOTDIR,
        Errno::ISDIR,
        Errno::EXIST,
        Errno::LOOP,
        Errno::TOOBIG,
        Errno::INVAL,
    ];
    Errno::from_io_error(error).is_some_and(|errno| of_the_name.contains(&errno))
}

/// A failure of the job, not of the node, that another run would meet again.
pub(super) fn of_the_user(failure: Failure) -> Failure {
    failure.with("user_fault", true).with("fatal", true)
}

/// What a look at a used sandbox shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// As new.
    Empty,
    /// Trees, or very much: to be emptied beside the loop.
    Full,
}

/// Takes a sandbox from its last user. Other jobs of this user may hold it open: from now on they can neither change nor enter it.
fn take_back(sandbox: &Path) -> io::Result<()> {
    let node = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    own(sandbox, Some(node))?;
    fs::set_permissions(sandbox, fs::Permissions::from_mode(CLOSED))
}

/// Puts a new directory in the place of the sandbox of a job that has ended, if emptying the old one is quickly done. The next
/// job must not get the old one: the last user's other jobs may hold it open.
pub(crate) fn recycle(sandbox: &Path) -> io::Result<Condition> {
    match take_back(sandbox) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Condition::Full),
        other => other?,
    }
    if tidy(sandbox, CLOSED)? == Condition::Full {
        return Ok(Condition::Full);
    }
    fs::remove_dir(sandbox)?;
    fs::DirBuilder::new().mode(CLOSED).create(sandbox)?;
    Ok(Condition::Empty)
}

/// Empties a sandbox, or another directory of a slot, if that is quickly done: most small jobs leave nothing, or a link or two.
/// It has `mode` then.
pub(crate) fn tidy(sandbox: &Path, mode: u32) -> io::Result<Condition> {
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
    fs::set_permissions(sandbox, fs::Permissions::from_mode(mode))?;
    Ok(Condition::Empty)
}

/// Empties a sandbox whatever is in it. Blocks for as long as that takes.
pub(crate) fn empty(sandbox: &Path, owner: Option<Owner>) -> Result<(), Failure> {
    match take_back(sandbox).and_then(|()| Clearing::of(sandbox)).and_then(Clearing::run) {
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
        .and_then(|()| fs::DirBuilder::new().mode(CLOSED).create(sandbox))
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
    use std::os::unix::fs::symlink;

    #[test]
    fn a_used_sandbox_becomes_empty() -> io::Result<()> {
        let root = tempfile::tempdir()?;
        let layout = Layout::create(root.path()).expect("made");
        let sandbox = layout.sandbox(0);
        make(&layout, 0, None).expect("made");
        assert_eq!(tidy(&sandbox, CLOSED)?, Condition::Empty);
        fs::write(sandbox.join("a"), b"x")?;
        symlink("/nowhere", sandbox.join("b"))?;
        assert_eq!(tidy(&sandbox, CLOSED)?, Condition::Empty);
        assert_eq!(fs::read_dir(&sandbox)?.count(), 0);
        fs::create_dir_all(sandbox.join("deep/er"))?;
        fs::write(sandbox.join("deep/er/file"), b"x")?;
        fs::set_permissions(sandbox.join("deep"), fs::Permissions::from_mode(0o000))?;
        assert_eq!(tidy(&sandbox, CLOSED)?, Condition::Full);
        empty(&sandbox, None).expect("emptied");
        assert_eq!(fs::read_dir(&sandbox)?.count(), 0);
        fs::remove_dir(&sandbox)?;
        assert_eq!(tidy(&sandbox, CLOSED)?, Condition::Full, "a job may remove its own directory");
        empty(&sandbox, None).expect("made again");
        Ok(())
    }

    /// S9: another job of the user can hold the directory open, by a descriptor that the job has passed on, and opened it to
    /// itself again when the next user's job had it.
    #[test]
    fn a_sandbox_is_a_new_directory_for_the_next_job() -> io::Result<()> {
        use std::os::unix::fs::MetadataExt;
        let root = tempfile::tempdir()?;
        let layout = Layout::create(root.path()).expect("made");
        let sandbox = layout.sandbox(0);
        let node = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let owner = rustix::process::geteuid().is_root().then_some((2_100_000_000, 2_100_000_000));
        make(&layout, 0, owner).expect("made");
        type Fill = fn(&Path) -> io::Result<()>;
        let nothing: Fill = |_| Ok(());
        let file: Fill = |sandbox| fs::write(sandbox.join("file"), "x");
        let tree: Fill = |sandbox| fs::create_dir_all(sandbox.join("a/b"));
        for (fill, expected) in
            [(nothing, Condition::Empty), (file, Condition::Empty), (tree, Condition::Full)]
        {
            own(&sandbox, owner)?;
            fs::set_permissions(&sandbox, fs::Permissions::from_mode(0o777))?;
            fill(&sandbox)?;
            // While it is open no other directory can have its number.
            let held = fs::File::open(&sandbox)?;
            assert_eq!(recycle(&sandbox)?, expected);
            let found = held.metadata()?;
            assert_eq!((found.uid(), found.gid(), found.mode() & 0o7777), (node.0, node.1, CLOSED));
            if expected == Condition::Full {
                empty(&sandbox, None).expect("emptied");
            }
            let next = fs::symlink_metadata(&sandbox)?;
            assert_ne!(next.ino(), found.ino(), "{expected:?}: the directory is used again");
            assert_eq!((next.uid(), next.mode() & 0o7777), (node.0, CLOSED));
            assert_eq!(fs::read_dir(&sandbox)?.count(), 0);
        }
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
        place(&sandbox, Some(&names), &[file("a"), file("d/b")], false, &[], (None, false)).expect("placed");
        for name in ["a", "d/b"] {
            assert_eq!(fs::read_link(sandbox.join(name))?, names.join("1-2-3-4.5"));
        }
        assert_eq!(fs::metadata(&cached)?.nlink(), 2);
        place(&sandbox, None, &[file("c")], false, &[], (None, false)).expect("placed");
        assert_eq!(fs::read_link(sandbox.join("c"))?, cached);
        Ok(())
    }

    /// S1: the second name of a place wrote through the link that the first one had put there, into the cache.
    #[test]
    fn a_copy_never_goes_through_a_link() -> io::Result<()> {
        let root = tempfile::tempdir()?;
        let layout = Layout::create(root.path()).expect("made");
        make(&layout, 0, None).expect("made");
        let sandbox = layout.sandbox(0);
        let [good, evil] = ["good", "evil"].map(|name| layout.cache().join(name));
        fs::write(&good, "good")?;
        fs::write(&evil, "evil")?;
        let file = |name: &str, cached: &Path, bypass_cache| Placement {
            artifact: Artifact {
                file_id: vocab::ObjectId(vocab::Guid([1, 2, 3, 4])),
                revision: 5,
                size: 4,
                file_name: name.to_owned(),
                executable: true,
                bypass_cache,
            },
            cached: cached.to_owned(),
        };
        for second in ["d/f", "d//f", "d/./f", "./d/f"] {
            let files = [file("d/f", &good, false), file(second, &evil, true)];
            let refused = place(&sandbox, Some(&layout.files(0)), &files, false, &[], (None, false));
            let failure = refused.expect_err(second);
            assert_eq!(
                failure.find_attribute("user_fault").and_then(yson::Value::as_bool),
                Some(true),
                "{second}"
            );
            assert_eq!(fs::read_to_string(&good)?, "good", "{second}");
            empty(&sandbox, None).expect("emptied");
        }
        Ok(())
    }

    /// S4: each of these was an abort, without end. The controller refuses most of them, but a node must not depend on
    /// that.
    #[test]
    fn s4_names_that_the_system_refuses_are_failures_of_the_job() -> io::Result<()> {
        let root = tempfile::tempdir()?;
        let layout = Layout::create(root.path()).expect("made");
        make(&layout, 0, None).expect("made");
        let (sandbox, cached) = (layout.sandbox(0), layout.cache().join("cached"));
        fs::write(&cached, "content")?;
        let file = |name: &str| Placement {
            artifact: Artifact {
                file_id: vocab::ObjectId(vocab::Guid([1, 2, 3, 4])),
                revision: 5,
                size: 7,
                file_name: name.to_owned(),
                executable: false,
                bypass_cache: false,
            },
            cached: cached.clone(),
        };
        symlink("loop", sandbox.join("loop"))?;
        fs::create_dir(sandbox.join("directory"))?;
        fs::write(sandbox.join("file"), "")?;
        let long = "x".repeat(300);
        for (name, errno) in [
            (long.as_str(), "ENAMETOOLONG"),
            ("file/below", "ENOTDIR"),
            ("directory", "EISDIR or EEXIST"),
            ("file", "EEXIST"),
            ("loop/below", "ELOOP"),
        ] {
            for copy in [false, true] {
                let placed = place(&sandbox, Some(&layout.files(0)), &[file(name)], copy, &[], (None, false));
                let failure = placed.expect_err(errno);
                let is =
                    |name: &str| failure.attributes.get(name).and_then(yson::Value::as_bool) == Some(true);
                assert!(is("user_fault") && is("fatal"), "{errno}, copy {copy}: {failure:?}");
            }
        }
        // What is wrong with the cache is the node's fault.
        fs::remove_file(&cached)?;
        let failure = place(&sandbox, None, &[file("fine")], true, &[], (None, true)).expect_err("no source");
        assert!(failure.find_attribute("user_fault").is_none(), "{failure:?}");
        Ok(())
    }

    #[test]
    fn s4_space_is_the_jobs_own_where_it_is_bounded() {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        let is_users = |kind, in_memory, bounded, size| {
            does_not_fit(&io::Error::from(kind), Path::new("/proc/self"), size, (in_memory, bounded))
        };
        assert!(is_users(QuotaExceeded, false, true, 1) && !is_users(QuotaExceeded, false, false, 1));
        assert!(is_users(StorageFull, true, false, 1), "its memory file system is full");
        assert!(!is_users(StorageFull, false, false, 1), "the disk of the node is full");
        // `/proc` has no room at all, so its disk is full.
        assert!(!is_users(StorageFull, false, true, 1));
        assert!(!is_users(io::ErrorKind::PermissionDenied, true, true, 1));
    }

    #[test]
    fn a_directory_that_was_full_is_replaced() -> io::Result<()> {
        let root = tempfile::tempdir()?;
        let layout = Layout::create(root.path()).expect("made");
        let sandbox = layout.sandbox(0);
        make(&layout, 0, None).expect("made");
        let name = "x".repeat(200);
        let names: Vec<PathBuf> = (0..2000).map(|n| sandbox.join(format!("{name}{n}"))).collect();
        for name in &names {
            fs::write(name, b"")?;
        }
        for name in &names {
            fs::remove_file(name)?;
        }
        if fs::symlink_metadata(&sandbox)?.len() > LARGE {
            assert_eq!(tidy(&sandbox, CLOSED)?, Condition::Full);
        } else {
            println!("SKIPPED: on this file system a directory shrinks");
        }
        empty(&sandbox, None).expect("replaced");
        assert_eq!(tidy(&sandbox, CLOSED)?, Condition::Empty);
        Ok(())
    }
}
