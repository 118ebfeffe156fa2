//! Claims of uids on a host: one file for each node, among the host's locks.
//!
//! A node holds the file while it lives. The claim of a node that died stays in force while the data directory of the node has
//! jobs of the present boot: job proxies outlive their node. Nodes see each other's claims if they have a directory for locks
//! in common (`/run/millpond` or `/tmp`).

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::hash::BuildHasher;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use vocab::{Guid, UidRange};

use super::super::layout::Layout;
use super::super::lock::{Attempt, Lock, Peeked};
use super::super::records;
use crate::NodeError;

/// Names of files with claims.
pub(super) const PREFIX: &str = "job-uids-";
const SUFFIX: &str = ".lock";
/// Held while a node compares its claim with those of others.
const TURN: &str = "job-uids.turn";
/// A process that was killed holds its locks until the kernel has freed its memory.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(20);

/// What a node claims: uids of a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub cluster_id: Guid,
    pub ranges: Vec<UidRange>,
}

impl Part {
    fn overlaps(&self, other: &Part) -> bool {
        self.ranges.iter().any(|range| other.ranges.iter().any(|other| range.overlaps(*other)))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.ranges.iter().enumerate() {
            write!(f, "{}{range}", if index > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

/// Why a claim failed.
pub(super) enum Refusal {
    Overlap(String),
    Host(NodeError),
}

impl From<NodeError> for Refusal {
    fn from(error: NodeError) -> Refusal {
        Refusal::Host(error)
    }
}

/// The claim of this node.
#[derive(Debug)]
pub(super) struct Claim {
    data_directory: PathBuf,
    boot_id: String,
    /// Directories of the host's locks.
    places: Vec<PathBuf>,
    locks: Vec<Lock>,
}

impl Claim {
    pub fn new(data_directory: &Path, boot_id: &str, places: Vec<PathBuf>) -> Claim {
        Claim {
            data_directory: data_directory.to_owned(),
            boot_id: boot_id.to_owned(),
            places,
            locks: Vec::new(),
        }
    }

    /// Claims these uids instead of those before; after an error the claim is what it was. Blocks for some seconds at most.
    pub fn take(&mut self, wanted: &Part) -> Result<(), Refusal> {
        let own = file_of(&self.data_directory);
        let holder = Claimed::holder(std::process::id(), &self.data_directory);
        let busy =
            |holder: String| Refusal::Overlap(format!("uids are being claimed on this host by {holder}"));
        // All turns first: another node must not see half a claim.
        let mut turns = Vec::new();
        for place in &self.places {
            match Lock::take(&place.join(TURN), &holder)? {
                Attempt::Taken(turn) => turns.push(turn),
                Attempt::HeldBy(holder) => return Err(busy(holder)),
            }
        }
        for place in &self.places {
            self.compare(wanted, place, &own)?;
        }
        let content = Claimed::content(wanted, std::process::id(), &self.data_directory);
        let mut locks = Vec::new();
        for place in &self.places {
            let path = place.join(&own);
            if self.locks.is_empty()
                && let Some(found) = still_held(&path)?
            {
                let holder = Claimed::parse(&found).map(|claimed| claimed.to_string());
                return Err(busy(holder.unwrap_or_else(|| format!("the holder of {}", path.display()))));
            }
            locks.push(Lock::replace(&path, &content)?);
        }
        self.locks = locks;
        Ok(())
    }

    /// The node ends and has no jobs.
    pub fn release(&mut self) {
        for (lock, place) in self.locks.drain(..).zip(&self.places) {
            drop(lock.removed_at_end(&place.join(file_of(&self.data_directory))));
        }
    }

    /// Compares with the claims of other nodes in a directory. Those that are not in force are removed.
    fn compare(&self, wanted: &Part, place: &Path, own: &str) -> Result<(), Refusal> {
        for entry in fs::read_dir(place).map_err(NodeError::io("read", place))? {
            let entry = entry.map_err(NodeError::io("read", place))?;
            let name = entry.file_name();
            let is_claim = |name: &&str| name.starts_with(PREFIX) && name.ends_with(SUFFIX) && *name != own;
            let Some(name) = name.to_str().filter(is_claim) else { continue };
            let path = place.join(name);
            let (content, dead) = match Lock::peek(&path)? {
                None => continue,
                Some(Peeked::Held(content)) => (content, None),
                Some(Peeked::Free(content, lock)) => (content, Some(lock)),
            };
            let remedy = match dead {
                None => "stop that node and its jobs".to_owned(),
                Some(_) => {
                    format!("start that node again, or remove {} if none of its jobs runs", path.display())
                }
            };
            let Some(claimed) = Claimed::parse(&content) else {
                return Err(Refusal::Overlap(format!(
                    "{} claims uids for jobs on this host and cannot be understood: {remedy}",
                    path.display()
                )));
            };
            if let Some(lock) = dead
                && !has_jobs(&claimed.data_directory, &self.boot_id)
            {
                drop(lock.removed_at_end(&path));
                continue;
            }
            if claimed.part.cluster_id != wanted.cluster_id && claimed.part.overlaps(wanted) {
                return Err(Refusal::Overlap(format!(
                    "uids {wanted} for jobs are used on this host by another cluster, {} of {claimed}: give option job_uids of \
                     one of the servers another range, or {remedy}",
                    claimed.part
                )));
            }
        }
        Ok(())
    }
}

/// What the file of this node says if another process holds it. The life before may be about to end.
fn still_held(path: &Path) -> Result<Option<Vec<u8>>, NodeError> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        match Lock::peek(path)? {
            Some(Peeked::Held(found)) if Instant::now() >= give_up => return Ok(Some(found)),
            Some(Peeked::Held(_)) => std::thread::sleep(PAUSE),
            _ => return Ok(None),
        }
    }
}

/// Has a data directory jobs of this boot? What cannot be read may be one.
fn has_jobs(data_directory: &Path, boot_id: &str) -> bool {
    let layout = Layout::at(data_directory);
    let slots = match fs::read_dir(layout.slots()) {
        Ok(slots) => slots,
        Err(e) => return e.kind() != io::ErrorKind::NotFound,
    };
    for entry in slots {
        let Ok(entry) = entry else { return true };
        let Some(slot) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        match records::read(&layout.job(slot)) {
            Ok(None) => {}
            Ok(Some(found)) if found.boot_id != boot_id => {}
            Ok(Some(_)) | Err(_) => return true,
        }
    }
    false
}

/// Name of the file of a node's claim.
fn file_of(data_directory: &Path) -> String {
    format!("{PREFIX}{:016x}{SUFFIX}", rustc_hash::FxBuildHasher.hash_one(data_directory))
}

/// What the file of a claim says: a line with the cluster and the ranges, a line with the pid, and the path of the data
/// directory as it is, which may be no text.
#[derive(PartialEq, Eq, Debug)]
struct Claimed {
    part: Part,
    pid: u32,
    data_directory: PathBuf,
}

impl fmt::Display for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Claimed::holder(self.pid, &self.data_directory))
    }
}

impl Claimed {
    fn holder(pid: u32, data_directory: &Path) -> String {
        format!("process {pid} with data directory {}", data_directory.display())
    }

    fn content(part: &Part, pid: u32, data_directory: &Path) -> Vec<u8> {
        let mut content = format!("{} {part}\n{pid}\n", part.cluster_id).into_bytes();
        content.extend_from_slice(data_directory.as_os_str().as_bytes());
        content
    }

    fn parse(content: &[u8]) -> Option<Claimed> {
        let mut lines = content.splitn(3, |byte| *byte == b'\n');
        let mut line = || str::from_utf8(lines.next()?).ok();
        let (cluster_id, ranges) = line()?.split_once(' ')?;
        let pid = line()?.parse().ok()?;
        let ranges = ranges.split(',').map(|range| range.parse().ok()).collect::<Option<Vec<UidRange>>>()?;
        let data_directory = PathBuf::from(OsStr::from_bytes(lines.next()?));
        let part = Part { cluster_id: cluster_id.parse().ok()?, ranges };
        data_directory.is_absolute().then_some(Claimed { part, pid, data_directory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S9: a path that is no text was written as another one, so that the jobs of a dead node were not found.
    #[test]
    fn what_a_file_says_comes_back() {
        let range = |first, last| UidRange::new(first, last).expect("a range");
        let part =
            Part { cluster_id: Guid([1, 2, 3, 4]), ranges: vec![range(5000, 6000), range(7000, 7000)] };
        for path in [&b"/data"[..], b"/with space\nand line", b"/no\xfftext"] {
            let path = PathBuf::from(OsStr::from_bytes(path));
            let content = Claimed::content(&part, 17, &path);
            let expected = Claimed { part: part.clone(), pid: 17, data_directory: path };
            assert_eq!(Claimed::parse(&content), Some(expected));
        }
        for wrong in ["", "1-2-3-4 5000-6000\n17\n", "1-2-3-4 5000\n17\n/data", "1-2-3-4\n17\n/data", "x"] {
            assert_eq!(Claimed::parse(wrong.as_bytes()), None, "{wrong:?}");
        }
    }

    /// S9: the file of a claim was emptied before it was written; a node that died in between had none.
    #[test]
    fn a_claim_that_cannot_be_understood_is_in_force() {
        let host = tempfile::tempdir().expect("a directory");
        let range = UidRange::new(5000, 6000).expect("a range");
        let wanted = Part { cluster_id: Guid([1, 2, 3, 4]), ranges: vec![range] };
        let claim = || Claim::new(Path::new("/data"), "this boot", vec![host.path().to_owned()]);
        let other = host.path().join(format!("{PREFIX}0123{SUFFIX}"));
        fs::write(&other, "").expect("written");
        let Err(Refusal::Overlap(why)) = claim().take(&wanted) else { panic!("it is refused") };
        assert!(why.contains(&format!("remove {}", other.display())), "{why}");
        fs::remove_file(&other).expect("there");
        assert!(claim().take(&wanted).is_ok());
        let names: Vec<_> =
            fs::read_dir(host.path()).expect("there").flatten().map(|e| e.file_name()).collect();
        assert_eq!(names.len(), 2, "the turn and the claim: {names:?}");
    }
}
