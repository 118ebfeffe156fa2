//! Where things are in the data directory.

use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use datadir::Care;

use crate::NodeError;

/// Mode of directories that only the node enters, and of sandboxes, which only their jobs' users enter.
pub(crate) const CLOSED: u32 = 0o700;
/// Mode of directories through which a job's user passes to files that are not its own.
pub(crate) const PASSABLE: u32 = 0o711;

/// ```text
/// lock                      held while the node lives; its pid
/// group                     name of the node's control group
/// id                        identifier of the data directory
/// confirmed                 where leases of jobs begin, as the server has confirmed
/// proxies.sock              proxies call here
/// cache/<file>-<revision>   files of jobs; -x for executables
/// slots/<index>/sandbox/    working directory of the job
/// slots/<index>/job/        record (ours); proxy.state, result, stderr (the proxy's)
/// slots/<index>/files/      other names of the cached files of the job: what its links lead to
/// slots/<index>/root/       mount point of the root file system of a job that has its own
/// slots/<index>/changes/    what such a job writes into it
/// layers/<file>.<revision>/ unpacked layers of such root file systems
/// skeleton/                 directories that they all have
/// nothing/                  always empty: covers data directories in the shared directories of jobs
/// ```
///
/// A slot's directories are used again by the next job: making and removing them would cost more
/// than all other file work of a small job. A slot belongs to its job until the server has released
/// it, so a result is never overwritten before it is safe.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Makes what is missing.
    pub fn create(root: &Path) -> Result<Layout, NodeError> {
        // Paths in here go into the environment of jobs and into links: they must be absolute.
        std::fs::create_dir_all(root).map_err(NodeError::io("create", root))?;
        let root = root.canonicalize().map_err(NodeError::io("resolve", root))?;
        for name in ["cache", "slots", "nothing"] {
            let path = root.join(name);
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(CLOSED)
                .create(&path)
                .map_err(NodeError::io("create", &path))?;
        }
        Ok(Layout { root })
    }
    /// Of a directory of another node, to look at.
    pub fn at(root: &Path) -> Layout {
        Layout { root: root.to_owned() }
    }
    /// What a start closes of an entry, by its path in the data directory. Cached files and unpacked layers keep their modes:
    /// jobs of all users read them, through mounts of their own, and nobody else passes the closed directories above them.
    pub fn care(entry: &Path) -> Care {
        let parts: Vec<&str> = entry.iter().map(|part| part.to_str().unwrap_or_default()).collect();
        match parts.as_slice() {
            ["cache", name] if !name.ends_with(super::seal::SUFFIX) && !name.ends_with(".part") => {
                Care::Nothing
            }
            ["layers", name] if !name.ends_with(".size") => Care::Nothing,
            ["skeleton" | "probe"] | ["slots", "quota-probe"] => Care::Nothing,
            ["slots", _, "files"] => Care::Door { permitted: PASSABLE & 0o077 },
            ["slots", _, "sandbox" | "changes" | "root"] => Care::Door { permitted: 0 },
            _ => Care::Whole,
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }
    /// Name of the node's control group.
    pub fn group(&self) -> PathBuf {
        self.root.join("group")
    }
    /// Identifier of the data directory.
    pub fn id(&self) -> PathBuf {
        self.root.join("id")
    }
    /// Where leases of jobs begin, as the server has confirmed.
    pub fn confirmed(&self) -> PathBuf {
        self.root.join("confirmed")
    }
    /// For the self-check at the start.
    pub fn probe(&self) -> PathBuf {
        self.root.join("probe")
    }
    /// For the question whether the file system of the slots has quotas.
    pub fn quota_probe(&self) -> PathBuf {
        self.slots().join("quota-probe")
    }
    /// Unpacked layers of root file systems.
    pub fn layers(&self) -> PathBuf {
        self.root.join("layers")
    }
    /// An empty directory.
    pub fn nothing(&self) -> PathBuf {
        self.root.join("nothing")
    }
    /// The directories that every root file system needs, empty.
    pub fn skeleton(&self) -> PathBuf {
        self.root.join("skeleton")
    }
    /// Where a slot's root file system is put together, in the job's own view.
    pub fn rootfs(&self, slot: u32) -> PathBuf {
        self.slot(slot).join("root")
    }
    /// What a job writes into its root file system.
    pub fn changes(&self, slot: u32) -> PathBuf {
        self.slot(slot).join("changes")
    }
    pub fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }
    pub fn slots(&self) -> PathBuf {
        self.root.join("slots")
    }
    pub fn slot(&self, index: u32) -> PathBuf {
        self.root.join("slots").join(index.to_string())
    }
    pub fn sandbox(&self, slot: u32) -> PathBuf {
        self.slot(slot).join("sandbox")
    }
    /// What the links in a sandbox lead to.
    pub fn files(&self, slot: u32) -> PathBuf {
        self.slot(slot).join("files")
    }
    pub fn job(&self, slot: u32) -> PathBuf {
        self.slot(slot).join("job")
    }
}

/// Makes a directory of the node's own below one that is there. It has this mode afterwards, whatever the umask is, and whether
/// it was there before or not: a node that was killed may have left it without.
pub(crate) fn make_with_mode(path: &Path, mode: u32) -> io::Result<()> {
    match std::fs::create_dir(path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        // A part of the root file systems of jobs that run is not touched without need.
        Err(_) if std::fs::symlink_metadata(path)?.permissions().mode() & 0o7777 == mode => return Ok(()),
        _ => {}
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S9: a node that was killed between the two steps left directories that jobs could not pass.
    #[test]
    fn a_directory_has_its_mode_although_it_was_there() -> io::Result<()> {
        let root = tempfile::tempdir()?;
        let path = root.path().join("skeleton");
        std::fs::DirBuilder::new().mode(CLOSED).create(&path)?;
        for _ in 0..2 {
            make_with_mode(&path, 0o755)?;
            assert_eq!(std::fs::metadata(&path)?.permissions().mode() & 0o7777, 0o755);
        }
        Ok(())
    }

    /// S3.
    #[test]
    fn only_what_jobs_read_or_own_keeps_its_mode() {
        let check = |entry: &str, care: Care| assert_eq!(Layout::care(Path::new(entry)), care, "{entry}");
        for entry in
            ["lock", "group", "cache", "slots", "slots/3", "slots/3/job", "slots/3/job/record", "layers"]
        {
            check(entry, Care::Whole);
        }
        for entry in ["cache/1-2-3-4.5.sha256", "cache/1-2-3-4.5.part", "layers/1-2-3-4.5.size"] {
            check(entry, Care::Whole);
        }
        for entry in ["cache/1-2-3-4.5-x", "layers/1-2-3-4.5", "skeleton"] {
            check(entry, Care::Nothing);
        }
        check("slots/3/sandbox", Care::Door { permitted: 0 });
        check("slots/3/files", Care::Door { permitted: 0o011 });
    }
}
