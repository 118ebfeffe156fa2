//! One control group: a directory with files.

use crate::environment::CageError;
use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a removal waits for zombies (jobs-and-nodes.md 4.4).
const REMOVE_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub path: PathBuf,
}

/// Jobs read the limits of their groups (the runtimes of Java and Go do), whatever the umask of this process is.
fn make_readable(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Ok(()) => fs::set_permissions(path, fs::Permissions::from_mode(0o755)),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e),
    }
}

impl Group {
    pub fn new(path: impl Into<PathBuf>) -> Group {
        Group { path: path.into() }
    }
    pub fn child(&self, name: &str) -> Group {
        Group::new(self.path.join(name))
    }
    pub fn exists(&self) -> bool {
        self.path.is_dir()
    }
    pub fn has(&self, file: &str) -> bool {
        self.path.join(file).exists()
    }

    /// One that exists already is taken over.
    pub fn make(&self) -> Result<(), CageError> {
        make_readable(&self.path).map_err(CageError::io("create group", &self.path))
    }
    /// With parents.
    pub fn make_all(&self) -> Result<(), CageError> {
        let make = || {
            let missing: Vec<&Path> = self.path.ancestors().take_while(|path| !path.is_dir()).collect();
            missing.into_iter().rev().try_for_each(make_readable)
        };
        made_with_parents(make).map_err(CageError::io("create group", &self.path))
    }

    pub fn write(&self, file: &str, value: &str) -> Result<(), CageError> {
        let path = self.path.join(file);
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut f| f.write_all(value.as_bytes()))
            .map_err(CageError::io("write", path))
    }
    pub fn read(&self, file: &str) -> Result<String, CageError> {
        let path = self.path.join(file);
        let bytes = crate::process::read_small(&path).map_err(CageError::io("read", path))?;
        // Numbers and keywords only.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Path of a file for the child of a spawn.
    pub fn c_path(&self, file: &str) -> CString {
        crate::spawn::c_path(&self.path.join(file)).expect("paths of groups have no NUL")
    }

    /// Processes of the group and of groups below: a job that runs as root can make some.
    pub fn processes(&self) -> Result<Vec<u32>, CageError> {
        let mut pids: Vec<u32> = match self.read("cgroup.procs") {
            Ok(text) => text.lines().filter_map(|l| l.trim().parse().ok()).collect(),
            Err(CageError::Io { source, .. }) if is_gone(&source) => return Ok(Vec::new()),
            Err(e) => return Err(e),
        };
        for child in self.children() {
            pids.extend(child.processes()?);
        }
        Ok(pids)
    }

    pub fn children(&self) -> Vec<Group> {
        let Ok(entries) = fs::read_dir(&self.path) else { return Vec::new() };
        entries
            .flatten()
            .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()))
            .map(|e| Group::new(e.path()))
            .collect()
    }

    /// Removes the group unless something is in it; one that is not there is fine.
    pub fn remove_if_empty(&self) -> Result<(), CageError> {
        match fs::remove_dir(&self.path) {
            Err(e) if !is_gone(&e) => Err(CageError::io("remove group", &self.path)(e)),
            _ => Ok(()),
        }
    }

    /// Removes the group and those below; one that is not there is fine. Zombies and the kernel's own
    /// clean-up keep a group busy for a moment after its last process, hence the patience.
    pub fn remove(&self) -> Result<(), CageError> {
        let give_up = Instant::now() + REMOVE_PATIENCE;
        let mut pause = Duration::from_micros(50);
        loop {
            match fs::remove_dir(&self.path) {
                Ok(()) => return Ok(()),
                Err(e) if is_gone(&e) => return Ok(()),
                Err(e) if Instant::now() >= give_up => {
                    return Err(CageError::io("remove group", &self.path)(e));
                }
                Err(_) => {}
            }
            for child in self.children() {
                child.remove()?;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }
}

/// Another node may remove an empty parent that is shared between two steps, hence the repetition. Who has made
/// his own directory in there holds the parent.
pub(crate) fn made_with_parents(mut make: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    let mut made = make();
    for _ in 0..20 {
        if !made.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
            break;
        }
        made = make();
    }
    made
}

pub(crate) fn is_gone(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::ENOENT | libc::ENODEV))
}

/// The number after a key in a file of `key value` lines.
pub(crate) fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

/// What a file with one number says; zero if it is not there.
pub(crate) fn number(group: &Group, file: &str) -> i64 {
    group.read(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// All directories of `root` whose names parse.
pub(crate) fn named<T: std::str::FromStr>(root: &Path) -> Vec<T> {
    Group::new(root).children().iter().filter_map(|g| g.path.file_name()?.to_str()?.parse().ok()).collect()
}
