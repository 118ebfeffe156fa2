//! Where the hierarchies are mounted. Always asked, never assumed.

use crate::environment::CageError;
use std::fs;
use std::path::{Path, PathBuf};

/// The cgroup mounts of a mount table in the form of `/proc/PID/mountinfo`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MountTable {
    /// Mount point of the v2 hierarchy.
    pub v2: Option<PathBuf>,
    /// Mount points of v1 hierarchies with their controllers (`cpu,cpuacct` may be together).
    v1: Vec<(PathBuf, Vec<String>)>,
}

impl MountTable {
    pub fn read(path: &Path) -> Result<MountTable, CageError> {
        fs::read_to_string(path).map(|t| MountTable::parse(&t)).map_err(CageError::io("read", path))
    }

    /// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`; the number of
    /// optional fields before the dash varies.
    fn parse(text: &str) -> MountTable {
        let mut table = MountTable::default();
        for line in text.lines() {
            let Some((left, right)) = line.split_once(" - ") else { continue };
            let (Some(point), mut right) = (left.split(' ').nth(4), right.split(' ')) else { continue };
            let (kind, options) = (right.next(), right.nth(1).unwrap_or_default());
            match kind {
                // The first one wins: later ones are usually views of containers.
                Some("cgroup2") if table.v2.is_none() => table.v2 = Some(unescape(point)),
                Some("cgroup") => {
                    table.v1.push((unescape(point), options.split(',').map(str::to_owned).collect()));
                }
                _ => {}
            }
        }
        table
    }

    /// Mount points of all hierarchies.
    pub fn all(&self) -> Vec<PathBuf> {
        self.v2.iter().chain(self.v1.iter().map(|(point, _)| point)).cloned().collect()
    }

    /// Mount point of a v1 controller.
    pub fn v1(&self, controller: &str) -> Option<&Path> {
        self.v1.iter().find(|(_, c)| c.iter().any(|x| x == controller)).map(|(p, _)| p.as_path())
    }

    /// Is the controller available in the v2 hierarchy?
    pub fn v2_has(&self, controller: &str) -> bool {
        self.v2
            .as_ref()
            .and_then(|p| fs::read_to_string(p.join("cgroup.controllers")).ok())
            .is_some_and(|c| c.split_ascii_whitespace().any(|x| x == controller))
    }
}

/// Blanks and the like are written as `\040`.
pub(crate) fn unescape(field: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let bytes = field.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        let octal = bytes.get(i + 1..i + 4).and_then(|d| std::str::from_utf8(d).ok());
        match octal.and_then(|d| u8::from_str_radix(d, 8).ok()) {
            Some(byte) if bytes[i] == b'\\' => {
                out.push(byte);
                i += 4;
            }
            _ => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_hierarchies_in_a_hybrid_table() {
        let table = MountTable::parse(
            "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
             32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 master:2 - cgroup cgroup rw,cpu,cpuacct\n\
             35 31 0:32 / /sys/fs/cgroup/my\\040memory rw,relatime - cgroup cgroup rw,memory\n\
             41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n\
             42 31 0:38 / /elsewhere rw,relatime - cgroup2 cgroup2 rw\n\
             broken line\n",
        );
        assert_eq!(table.v2.as_deref(), Some(Path::new("/sys/fs/cgroup/unified")));
        assert_eq!(table.v1("cpu"), Some(Path::new("/sys/fs/cgroup/cpu,cpuacct")));
        assert_eq!(table.v1("cpu"), table.v1("cpuacct"));
        assert_eq!(table.v1("memory"), Some(Path::new("/sys/fs/cgroup/my memory")));
        assert_eq!(table.v1("pids"), None);
        assert!(!table.v2_has("memory"));
    }
}
