//! Memory file systems that the node mounts for a job (jobs-and-nodes.md 4.9).
//!
//! They are mounted on the host, where the node can place files and the proxy can ask for their
//! size, and a job's own namespace has a copy of the mount. An unmount here is lazy: whoever still holds a
//! file keeps it.

use std::io;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Mounts an empty file system in memory on an existing directory, owned by a user and group and closed to others.
pub fn mount_tmpfs(path: &Path, size: i64, (uid, gid): (u32, u32)) -> io::Result<()> {
    let options = format!("size={size},mode=0700,uid={uid},gid={gid}");
    let options = std::ffi::CString::new(options)?;
    mount(TMPFS_NAME, path, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(options.as_c_str()))?;
    Ok(())
}

/// Source of our mounts in the mount table: what a search for things left behind looks for.
const TMPFS_NAME: &str = "millpond";

/// Takes away a mount; one that is not there is fine.
pub fn detach(path: &Path) -> io::Result<()> {
    match unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        Err(e) if ![rustix::io::Errno::INVAL, rustix::io::Errno::NOENT].contains(&e) => Err(e.into()),
        _ => Ok(()),
    }
}

/// Mount points at and below a directory, the innermost first, as the mount table has them.
pub fn mounts_below(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let table = std::fs::read_to_string("/proc/self/mountinfo")?;
    let mut found: Vec<PathBuf> = table
        .lines()
        .filter_map(|line| line.split(' ').nth(4).map(crate::mounts::unescape))
        .filter(|point| point.starts_with(directory))
        .collect();
    // The table is in the order of mounting.
    found.reverse();
    Ok(found)
}
