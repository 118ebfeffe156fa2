//! Users of this host that jobs run as (S9).
//!
//! The server names the uid of each job, which belongs to the job's user in the cluster. A node gives a job this uid only if
//! the node has claimed it on the host for its cluster, and if no account of the host has it. So two clusters on one host never
//! use the same uid, whatever their configurations say.
//!
//! A claim is a file among the host's locks that the node holds while it lives. The claim of a node that died stays in force
//! while the data directory of the node has jobs of the present boot: job proxies outlive their node.

use std::fs;
use std::hash::BuildHasher;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use vocab::{Failure, Guid, UidRange};
use wire::JobUids;

use super::layout::Layout;
use super::lock::{Attempt, Lock, Peeked};
use super::records;
use super::room::Owner;
use crate::NodeError;

/// The user of the self-check at the start. No default range has it.
pub(crate) const PROBE: Owner = (0x7fff_fff0, 0x7fff_fff0);

/// Accounts and groups of the host, and what users of the host may give to their own containers.
const ACCOUNTS: [&str; 4] = ["/etc/passwd", "/etc/group", "/etc/subuid", "/etc/subgid"];
/// The files above are looked at again after this time.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Names of files with claims.
const PREFIX: &str = "uids-";
/// Held while a node compares its claim with those of others.
const TURN: &str = "uids.turn";

/// The claim of a node and the accounts of its host.
#[derive(Debug)]
pub(crate) struct Users {
    data_directory: PathBuf,
    boot_id: String,
    /// Directories of the host's locks.
    places: Vec<PathBuf>,
    /// As the server said, with the part that is claimed.
    claimed: Option<JobUids>,
    locks: Vec<Lock>,
    accounts: Accounts,
    /// For the log, which tells each refusal once.
    last_refusal: Option<String>,
}

impl Users {
    /// Of a node with this data directory; nothing is claimed yet.
    pub fn new(data_directory: &Path, boot_id: &str) -> Result<Users, NodeError> {
        let places = datadir::runtime_directories()?;
        Ok(Users::of_host(data_directory, boot_id, places, ACCOUNTS.map(PathBuf::from).into()))
    }

    fn of_host(data_directory: &Path, boot_id: &str, places: Vec<PathBuf>, files: Vec<PathBuf>) -> Users {
        Users {
            data_directory: data_directory.to_owned(),
            boot_id: boot_id.to_owned(),
            places,
            claimed: None,
            locks: Vec::new(),
            accounts: Accounts { files, looks: Vec::new(), looked: None, taken: Vec::new() },
            last_refusal: None,
        }
    }

    /// Claims what the server says. A refusal leaves nothing claimed that jobs could be started with.
    pub fn claim(&mut self, wanted: JobUids) -> Result<(), Failure> {
        let before = self.claimed.take();
        // What was claimed for jobs that run stays claimed.
        let kept = before.filter(|b| b.cluster_id == wanted.cluster_id && b.range == wanted.range);
        let claim = match kept {
            Some(kept) if kept.claim.last() > wanted.claim.last() => kept.claim,
            _ => wanted.claim,
        };
        let claimed = self.extend_to(JobUids { claim, ..wanted });
        match &claimed {
            Ok(()) => self.last_refusal = None,
            Err(why) => {
                let text = why.to_string();
                if self.last_refusal.as_ref() != Some(&text) {
                    tracing::warn!("jobs cannot start: {text}");
                }
                self.last_refusal = Some(text);
            }
        }
        claimed
    }

    /// User and group of a job that the server gives this uid.
    pub fn of(&mut self, uid: Option<u32>) -> Result<Owner, Failure> {
        let uid = uid.ok_or_else(|| {
            Failure::new("The server named no user of the host for the job: update the server to the version of the node")
        })?;
        let refused =
            |why: String| Failure::new(format!("Jobs cannot run as uid {uid} here: {why}")).with("uid", uid);
        let Some(claimed) = self.claimed else {
            return Err(refused("the node has claimed no uids on this host".to_owned()));
        };
        if uid == 0 || !claimed.range.contains(uid) {
            let why = format!("the uids of jobs of this cluster are {}", claimed.range);
            return Err(refused(why));
        }
        if !claimed.claim.contains(uid) {
            let claim = claimed.range.up_to_block_of(uid);
            self.extend_to(JobUids { claim, ..claimed }).map_err(|why| refused(why.to_string()))?;
        } else if let Some(holder) = self.accounts.holder_within(uid, uid).map_err(&refused)? {
            return Err(refused(format!("it belongs to {holder}")));
        }
        Ok((uid, uid))
    }

    /// The node ends and has no jobs.
    pub fn release(&mut self) {
        self.claimed = None;
        for (lock, place) in self.locks.drain(..).zip(&self.places) {
            drop(lock.removed_at_end(&place.join(file_of(&self.data_directory))));
        }
    }

    /// Claims `wanted.claim`; after an error the claim is what it was.
    fn extend_to(&mut self, wanted: JobUids) -> Result<(), Failure> {
        let (first, last) = (wanted.claim.first(), wanted.claim.last());
        if let Some(holder) = self.accounts.holder_within(first, last).map_err(Failure::new)? {
            let text = format!(
                "uids {first}-{last} for jobs are not free on this host: {holder}; give option job_uids of the server another range"
            );
            return Err(Failure::new(text).with("job_uids", wanted.range.to_string()));
        }
        self.take(wanted).map_err(|why| match why {
            Refusal::Overlap(text) => Failure::new(text).with("job_uids", wanted.range.to_string()),
            Refusal::Host(error) => Failure::new(error.to_string()),
        })?;
        self.claimed = Some(wanted);
        Ok(())
    }

    fn take(&mut self, wanted: JobUids) -> Result<(), Refusal> {
        let own = file_of(&self.data_directory);
        let holder =
            format!("process {} with data directory {}", std::process::id(), self.data_directory.display());
        let line = format!("{} {} {holder}", wanted.cluster_id, wanted.claim);
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
            for other in self.others_in(place, &own)? {
                if other.cluster_id != wanted.cluster_id && other.range.overlaps(wanted.claim) {
                    return Err(Refusal::Overlap(format!(
                        "uids {} for jobs are used on this host by another cluster, {} of {}: give option job_uids of one of \
                         the servers another range, or stop that node and its jobs",
                        wanted.claim, other.range, other.holder
                    )));
                }
            }
        }
        if self.locks.is_empty() {
            for place in &self.places {
                match Lock::take(&place.join(&own), &line)? {
                    Attempt::Taken(lock) => self.locks.push(lock),
                    Attempt::HeldBy(holder) => {
                        self.locks.clear();
                        return Err(busy(holder));
                    }
                }
            }
            return Ok(());
        }
        for (lock, place) in self.locks.iter_mut().zip(&self.places) {
            lock.rewrite(&place.join(&own), &line)?;
        }
        Ok(())
    }

    /// Claims of other nodes that are in force. Others are removed.
    fn others_in(&self, place: &Path, own: &str) -> Result<Vec<Claimed>, NodeError> {
        let mut found = Vec::new();
        for entry in fs::read_dir(place).map_err(NodeError::io("read", place))? {
            let entry = entry.map_err(NodeError::io("read", place))?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX) && *name != own) else {
                continue;
            };
            let path = place.join(name);
            match Lock::peek(&path)? {
                None => {}
                Some(Peeked::Held(line)) => {
                    let claimed = Claimed::parse(&line);
                    found.push(claimed.ok_or_else(|| {
                        NodeError::io("understand", &path)(io::ErrorKind::InvalidData.into())
                    })?);
                }
                Some(Peeked::Free(line, lock)) => match Claimed::parse(&line) {
                    Some(claimed) if self.has_jobs(&claimed.data_directory) => found.push(claimed),
                    _ => drop(lock.removed_at_end(&path)),
                },
            }
        }
        Ok(found)
    }

    /// Of this boot. What cannot be read may be one.
    fn has_jobs(&self, data_directory: &Path) -> bool {
        let layout = Layout::at(data_directory);
        let slots = match fs::read_dir(layout.slots()) {
            Ok(slots) => slots,
            Err(e) => return e.kind() != io::ErrorKind::NotFound,
        };
        let mut numbers = slots.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        numbers.any(|slot| match records::read(&layout.job(slot)) {
            Ok(None) => false,
            Ok(Some(found)) => found.boot_id == self.boot_id,
            Err(_) => true,
        })
    }
}

/// Why a claim failed.
enum Refusal {
    Overlap(String),
    Host(NodeError),
}

impl From<NodeError> for Refusal {
    fn from(error: NodeError) -> Refusal {
        Refusal::Host(error)
    }
}

/// Name of the file of a node's claim.
fn file_of(data_directory: &Path) -> String {
    format!("{PREFIX}{:016x}.lock", rustc_hash::FxBuildHasher.hash_one(data_directory))
}

/// What the file of a claim says.
#[derive(PartialEq, Eq, Debug)]
struct Claimed {
    cluster_id: Guid,
    range: UidRange,
    holder: String,
    data_directory: PathBuf,
}

impl Claimed {
    fn parse(line: &str) -> Option<Claimed> {
        let (cluster_id, rest) = line.split_once(' ')?;
        let (range, holder) = rest.split_once(' ')?;
        let (_, data_directory) = holder.split_once(" with data directory ")?;
        Some(Claimed {
            cluster_id: cluster_id.parse().ok()?,
            range: range.parse().ok()?,
            holder: holder.to_owned(),
            data_directory: PathBuf::from(data_directory),
        })
    }
}

/// Numbers that the host has given away.
#[derive(Debug)]
struct Accounts {
    files: Vec<PathBuf>,
    /// Size, inode and time of change of each file when it was read.
    looks: Vec<Option<(u64, u64, i64, i64)>>,
    looked: Option<Instant>,
    /// First number, last number, what they belong to.
    taken: Vec<(u32, u32, String)>,
}

impl Accounts {
    /// What has one of the numbers from `first` to `last`. Files that are there and cannot be read are an error.
    fn holder_within(&mut self, first: u32, last: u32) -> Result<Option<&str>, String> {
        self.refresh().map_err(|(path, e)| format!("cannot read {}: {e}", path.display()))?;
        let found = self.taken.iter().find(|(begin, end, _)| *begin <= last && first <= *end);
        Ok(found.map(|(.., holder)| holder.as_str()))
    }

    fn refresh(&mut self) -> Result<(), (PathBuf, io::Error)> {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK_PERIOD) {
            return Ok(());
        }
        let look = |path: &PathBuf| {
            let found = fs::metadata(path).ok()?;
            Some((found.size(), found.ino(), found.mtime(), found.mtime_nsec()))
        };
        let looks: Vec<_> = self.files.iter().map(look).collect();
        if looks != self.looks {
            let mut taken = Vec::new();
            for path in &self.files {
                let text = match fs::read(path) {
                    Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                    other => other.map_err(|e| (path.clone(), e))?,
                };
                taken
                    .extend(String::from_utf8_lossy(&text).lines().filter_map(|line| numbers_of(line, path)));
            }
            (self.taken, self.looks) = (taken, looks);
        }
        self.looked = Some(Instant::now());
        Ok(())
    }
}

/// Numbers in a line of `passwd`, `group` (name, password, number), `subuid` or `subgid` (name, first number, count).
fn numbers_of(line: &str, path: &Path) -> Option<(u32, u32, String)> {
    let fields: Vec<&str> = line.split(':').collect();
    let is_range =
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("sub"));
    let at = |index: usize| fields.get(index)?.trim().parse::<u32>().ok();
    let (first, last) = match is_range {
        true => (at(1)?, at(1)?.saturating_add(at(2)?.checked_sub(1)?)),
        false => (at(2)?, at(2)?),
    };
    Some((first, last, format!("{first} is {:?} in {}", fields[0], path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Host {
        directory: tempfile::TempDir,
    }

    impl Host {
        fn new() -> Host {
            let directory = tempfile::tempdir().expect("a directory");
            for name in ["run", "tmp", "etc"] {
                fs::create_dir(directory.path().join(name)).expect("made");
            }
            Host { directory }
        }
        fn at(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }
        fn node(&self, name: &str) -> Users {
            let data = self.at(name);
            fs::create_dir_all(&data).expect("made");
            let files = ["passwd", "group", "subuid", "subgid"].map(|file| self.at("etc").join(file));
            Users::of_host(&data, "this boot", vec![self.at("run"), self.at("tmp")], files.into())
        }
        fn claims(&self) -> usize {
            let entries = fs::read_dir(self.at("run")).expect("there").flatten();
            entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)).count()
        }
    }

    fn uids(cluster: u32, first: u32, last: u32) -> JobUids {
        let range = UidRange::new(first, last).expect("a range");
        JobUids { cluster_id: Guid([cluster, 0, 0, 1]), range, claim: range }
    }

    /// S9: two clusters on one host.
    #[test]
    fn a_range_belongs_to_one_cluster_of_a_host() {
        let host = Host::new();
        let (mut one, mut same, mut other) = (host.node("one"), host.node("same"), host.node("other"));
        one.claim(uids(1, 100_000, 110_000)).expect("free");
        same.claim(uids(1, 100_000, 110_000)).expect("a second node of the cluster");
        for _ in 0..2 {
            let refused = other.claim(uids(2, 110_000, 120_000)).expect_err("taken").to_string();
            assert!(refused.contains("100000-110000") && refused.contains("job_uids"), "{refused}");
            assert!(
                refused.contains(&host.at("one").display().to_string())
                    || refused.contains(&host.at("same").display().to_string())
            );
            other.of(Some(115_000)).expect_err("nothing is claimed");
        }
        other.claim(uids(2, 110_001, 120_000)).expect("free");
        // A node that ends without jobs gives its claim back, and so does one that dies.
        one.release();
        drop(same);
        let mut third = host.node("third");
        third.claim(uids(3, 100_000, 110_000)).expect("free again");
        assert_eq!(host.claims(), 2);
    }

    /// Job proxies outlive their node.
    #[test]
    fn a_dead_node_with_jobs_keeps_its_claim() {
        let host = Host::new();
        let mut one = host.node("one");
        one.claim(uids(1, 100_000, 110_000)).expect("free");
        let job = Layout::at(&host.at("one")).job(3);
        fs::create_dir_all(&job).expect("made");
        fs::write(job.join(records::NAME), "a record").expect("written");
        drop(one);
        let mut other = host.node("other");
        other.claim(uids(2, 100_000, 110_000)).expect_err("a job may live");
        host.node("one").claim(uids(1, 100_000, 110_000)).expect("its own");
        fs::remove_file(job.join(records::NAME)).expect("removed");
        other.claim(uids(2, 100_000, 110_000)).expect("no job lives");
    }

    /// S9: a node that gets another uid than it should refuses the job.
    #[test]
    fn only_claimed_uids_of_no_account_are_used() {
        let host = Host::new();
        let passwd = "root:x:0:0:root:/root:/bin/bash\nann:x:100300:100300::/home/ann:/bin/bash\nbroken\n";
        fs::write(host.at("etc").join("passwd"), passwd).expect("written");
        fs::write(host.at("etc").join("subuid"), "ann:200000:65536\n").expect("written");
        let mut node = host.node("one");
        let why = node.of(Some(100_000)).expect_err("too early").to_string();
        assert!(why.contains("claimed no uids"), "{why}");
        let range = UidRange::new(100_000, 165_535).expect("a range");
        let claim = range.up_to_block_of(100_000);
        let wanted = JobUids { cluster_id: Guid([1, 0, 0, 1]), range, claim };
        node.claim(wanted).expect("free");
        assert_eq!(node.of(Some(100_000)).expect("claimed"), (100_000, 100_000));
        for (uid, why) in
            [(None, "update the server"), (Some(0), "100000-165535"), (Some(99_999), "100000-165535")]
        {
            let refused = node.of(uid).expect_err("refused").to_string();
            assert!(refused.contains(why), "{uid:?}: {refused}");
        }
        // The next block has an account of the host in it.
        let refused = node.of(Some(100_256)).expect_err("refused").to_string();
        assert!(refused.contains("\"ann\"") && refused.contains("passwd"), "{refused}");
        assert_eq!(node.of(Some(100_255)).expect("still claimed"), (100_255, 100_255));
        let refused = node.claim(uids(1, 250_000, 250_001)).expect_err("a container of ann").to_string();
        assert!(refused.contains("subuid"), "{refused}");
        node.of(Some(100_000)).expect_err("nothing is claimed any more");
        // An account that was made meanwhile.
        node.claim(wanted).expect("free");
        fs::write(host.at("etc").join("group"), "new:x:100007:\n").expect("written");
        node.accounts.looked = None;
        let refused = node.of(Some(100_007)).expect_err("refused").to_string();
        assert!(refused.contains("\"new\""), "{refused}");
    }

    #[test]
    fn more_is_claimed_when_it_is_needed() {
        let host = Host::new();
        let (mut one, mut other) = (host.node("one"), host.node("other"));
        let range = UidRange::new(100_000, 165_535).expect("a range");
        let wanted = JobUids { cluster_id: Guid([1, 0, 0, 1]), range, claim: range.up_to_block_of(100_000) };
        one.claim(wanted).expect("free");
        other.claim(uids(2, 100_600, 100_700)).expect("free");
        assert_eq!(one.of(Some(100_300)).expect("free"), (100_300, 100_300));
        let refused = one.of(Some(100_600)).expect_err("another cluster's").to_string();
        assert!(refused.contains("another cluster"), "{refused}");
        // Told again after a reconnection: what is claimed stays claimed.
        one.claim(wanted).expect("as before");
        host.node("third").claim(uids(3, 100_300, 100_301)).expect_err("claimed");
    }
}
