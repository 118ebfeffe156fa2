//! Where things are in the data directory.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::NodeError;

/// ```text
/// lock                      held while the node lives; its pid
/// group                     name of the node's control group
/// proxies.sock              proxies call here
/// cache/<file>-<revision>   files of jobs; -x for executables
/// slots/<index>/sandbox/    working directory of the job
/// slots/<index>/job/        record (ours); proxy.state, result, stderr (the proxy's)
/// slots/<index>/files/      other names of the cached files of the job: what its links lead to
/// slots/<index>/root/       mount point of the root file system of a job that has its own
/// slots/<index>/changes/    what such a job writes into it
/// layers/<file>.<revision>/ unpacked layers of such root file systems
/// skeleton/                 directories that they all have
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
        for name in ["cache", "slots"] {
            let path = root.join(name);
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o755)
                .create(&path)
                .map_err(NodeError::io("create", &path))?;
        }
        Ok(Layout { root })
    }
    pub fn root(&self) -> &Path {
        &self.root
    }
    /// Name of the node's control group.
    pub fn group(&self) -> PathBuf {
        self.root.join("group")
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
