//! How far jobs are kept apart from the host, as the node is told (jobs-and-nodes.md 4.7, 4.9, 10).

use std::path::PathBuf;
use std::str::FromStr;

/// Whether jobs get namespaces, users and a read-only view of the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IsolationChoice {
    /// As far as this host lets the node. Without it no job starts on a node of root, or of a cluster with authentication; on
    /// others what is not enforced is an alert, and jobs in the environment `simple` are not isolated.
    #[default]
    Auto,
    /// All of it, or no node.
    Full,
    /// Jobs run as the node itself does.
    None,
}

impl IsolationChoice {
    /// The public names.
    pub const ALL: [&str; 3] = ["auto", "full", "none"];
}

impl FromStr for IsolationChoice {
    type Err = String;
    fn from_str(text: &str) -> Result<IsolationChoice, String> {
        match text {
            "auto" => Ok(IsolationChoice::Auto),
            "full" => Ok(IsolationChoice::Full),
            "none" => Ok(IsolationChoice::None),
            _ => Err(format!("{text:?}: expected one of {}", IsolationChoice::ALL.join(", "))),
        }
    }
}

/// A directory of the host that all jobs see at the same path, also where they would see another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedDirectory {
    /// Absolute.
    pub path: PathBuf,
    /// Jobs may write to it, as far as its permissions let their users.
    pub writable: bool,
}

impl FromStr for SharedDirectory {
    type Err = String;
    /// `/path` or `/path:rw`.
    fn from_str(text: &str) -> Result<SharedDirectory, String> {
        let (path, writable) = text.strip_suffix(":rw").map_or((text, false), |path| (path, true));
        let path = PathBuf::from(path);
        match path.is_absolute() {
            true => Ok(SharedDirectory { path, writable }),
            false => {
                Err(format!("{text:?}: expected an absolute path, with \":rw\" if jobs may write to it"))
            }
        }
    }
}

/// Options of the rooms that jobs work in; names and defaults of jobs-and-nodes.md 10.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoomOptions {
    /// How far jobs are kept apart.
    pub isolation: IsolationChoice,
    /// Project of the disk quota of slot i is this plus i. Nodes of one host should not overlap.
    pub start_project_id: u32,
    /// Isolated jobs keep the node's user, without its capabilities.
    pub do_not_set_user_id: bool,
    /// Mount memory file systems; otherwise they are plain directories.
    pub enable_tmpfs: bool,
    /// Free bytes on the disk of the sandboxes below which no job is started.
    pub min_required_disk_space: u64,
    /// Bytes on the disk of the sandboxes that jobs may ask for together; none: all there are.
    pub disk_quota: Option<u64>,
    /// Bytes of them that no job is promised (jobs-and-nodes.md 3.10).
    pub disk_usage_watermark: u64,
    /// Directories of the host that all jobs see.
    pub shared_directories: Vec<SharedDirectory>,
}

impl Default for RoomOptions {
    fn default() -> RoomOptions {
        RoomOptions {
            isolation: IsolationChoice::Auto,
            start_project_id: 10_000,
            do_not_set_user_id: false,
            enable_tmpfs: true,
            min_required_disk_space: 100 << 20,
            disk_quota: None,
            disk_usage_watermark: 10 << 30,
            shared_directories: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_directories_are_absolute() {
        let shared = |text: &str| text.parse::<SharedDirectory>();
        assert_eq!(shared("/a"), Ok(SharedDirectory { path: "/a".into(), writable: false }));
        assert_eq!(shared("/a:rw"), Ok(SharedDirectory { path: "/a".into(), writable: true }));
        assert!(shared("a").expect_err("relative").contains("absolute"));
        assert!("some".parse::<IsolationChoice>().expect_err("unknown").contains("auto, full, none"));
    }
}
