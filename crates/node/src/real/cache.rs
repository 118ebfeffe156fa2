//! The file cache: what is here, who uses it, what has to go.
//!
//! A file is named by its id and revision and never changes. Several jobs that want the same one
//! share a download. Files in use are pinned; among the others the longest unused go first when there
//! are too many bytes.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use vocab::{Artifact, JobId, ObjectId};

use super::download::Fetched;
use super::seal::{self, Look};

/// What a cached file is called by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Key {
    pub file_id: ObjectId,
    pub revision: u64,
    /// A link shows the mode of its target, so the two modes are two files.
    pub executable: bool,
    /// Not for others (`bypass_artifact_cache`): it goes when this job has it.
    pub only_for: Option<JobId>,
}

impl Key {
    pub fn of(artifact: &Artifact) -> Key {
        let Artifact { file_id, revision, executable, .. } = *artifact;
        Key { file_id, revision, executable, only_for: None }
    }
    /// The file that this job is given, which may be its own.
    pub fn for_job(artifact: &Artifact, job_id: JobId) -> Key {
        Key { only_for: artifact.bypass_cache.then_some(job_id), ..Key::of(artifact) }
    }
    /// A file for one job has a name that is not read back: at the next start it goes.
    pub fn name(&self) -> String {
        let suffix = if self.executable { "-x" } else { "" };
        let owner = self.only_for.map(|job_id| format!(".{job_id}")).unwrap_or_default();
        format!("{}.{}{suffix}{owner}", self.file_id, self.revision)
    }
    fn parse(name: &str) -> Option<Key> {
        let (name, executable) = name.strip_suffix("-x").map_or((name, false), |n| (n, true));
        let (file_id, revision) = name.split_once('.')?;
        let (file_id, revision) = (file_id.parse().ok()?, revision.parse().ok()?);
        Some(Key { file_id, revision, executable, only_for: None })
    }
}

#[derive(Debug)]
struct Entry {
    size: u64,
    /// Size, inode and time of change when the content was last verified. `None` until the content of a file that an
    /// earlier run of the agent cached is verified.
    look: Option<Look>,
    pins: u32,
    last_used: u64,
}

/// What to do about a wanted file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Want {
    /// It is here.
    Present,
    /// It is on its way for somebody else.
    Joined,
    /// Fetch it, or make sure that what an earlier life has left is as it was; then call [`Cache::fetched`].
    Fetch,
}

/// The book-keeping; downloads themselves are elsewhere.
#[derive(Debug)]
pub(crate) struct Cache {
    directory: PathBuf,
    limit: u64,
    used: u64,
    clock: u64,
    entries: FxHashMap<Key, Entry>,
    /// Unpinned entries by last use.
    idle: BTreeMap<u64, Key>,
    fetching: FxHashMap<Key, Vec<JobId>>,
    pinned: FxHashMap<JobId, Vec<Key>>,
}

impl Cache {
    /// Takes over what an earlier life has left, but for half-fetched files.
    pub fn open(directory: PathBuf, limit: u64) -> std::io::Result<Cache> {
        let mut cache = Cache {
            directory,
            limit,
            used: 0,
            clock: 0,
            entries: FxHashMap::default(),
            idle: BTreeMap::new(),
            fetching: FxHashMap::default(),
            pinned: FxHashMap::default(),
        };
        for entry in std::fs::read_dir(&cache.directory)? {
            let entry = entry?;
            match entry.file_name().to_str().and_then(Key::parse) {
                Some(key) if entry.file_type()?.is_file() => cache.insert(key, entry.metadata()?.len(), None),
                _ if is_digest(&entry.path()) => {}
                _ => std::fs::remove_file(entry.path())?,
            }
        }
        Ok(cache)
    }

    pub fn path(&self, key: &Key) -> PathBuf {
        self.directory.join(key.name())
    }
    /// Where a download gathers; recognised as half-fetched at the next start.
    pub fn temporary_path(&self, key: &Key) -> PathBuf {
        self.directory.join(format!("{}.part", key.name()))
    }

    /// A job wants a file; it is pinned until the job is unpinned.
    pub fn want(&mut self, job_id: JobId, key: Key, size: u64) -> Want {
        if let Some(jobs) = self.fetching.get_mut(&key) {
            jobs.push(job_id);
            return Want::Joined;
        }
        if let Some(Entry { look: Some(look), .. }) = self.entries.get(&key) {
            // Somebody may have tampered with the directory: believe the disk, not the book.
            if look.size == size && Look::of(&self.path(&key)) == Some(*look) {
                self.pin(job_id, key);
                return Want::Present;
            }
            tracing::warn!("cached file {} was changed by another process and is fetched again", key.name());
            self.remove_files(&key);
        }
        self.forget(&key);
        self.fetching.insert(key, vec![job_id]);
        Want::Fetch
    }

    /// A download has ended: puts the file in its place and gives the jobs that wait for it, the one that
    /// it was begun for first.
    pub fn fetched(
        &mut self,
        key: Key,
        result: Result<Fetched, vocab::Failure>,
    ) -> (Vec<JobId>, Result<(), vocab::Failure>) {
        let jobs = self.fetching.remove(&key).unwrap_or_default();
        let temporary = self.temporary_path(&key);
        let result = result.and_then(|fetched| {
            self.take_in(key, &fetched)
                .map_err(|e| vocab::Failure::new(format!("Cannot put {} into the cache: {e}", key.name())))
        });
        match &result {
            Ok(()) => {
                for job in &jobs {
                    self.pin(*job, key);
                }
                self.evict();
            }
            Err(_) => {
                let _ = std::fs::remove_file(temporary);
            }
        }
        (jobs, result)
    }

    fn take_in(&mut self, key: Key, fetched: &Fetched) -> std::io::Result<()> {
        let (path, temporary) = (self.path(&key), self.temporary_path(&key));
        if !fetched.was_known {
            let mode = if key.executable { 0o555 } else { 0o444 };
            std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(mode))?;
            std::fs::rename(&temporary, &path)?;
            if key.only_for.is_none() {
                seal::write(&path, &fetched.digest)?;
            }
        }
        self.insert(key, fetched.size, Look::of(&path));
        Ok(())
    }

    fn remove_files(&self, key: &Key) {
        let path = self.path(key);
        for file in [seal::path_of(&path), path] {
            let _ = std::fs::remove_file(file);
        }
    }

    /// The job does not need its files any more.
    pub fn unpin(&mut self, job_id: JobId) {
        for key in self.pinned.remove(&job_id).unwrap_or_default() {
            if key.only_for.is_some() {
                self.remove_files(&key);
                self.forget(&key);
                continue;
            }
            self.clock += 1;
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.pins -= 1;
                if entry.pins == 0 {
                    entry.last_used = self.clock;
                    self.idle.insert(self.clock, key);
                }
            }
        }
        self.evict();
    }

    fn pin(&mut self, job_id: JobId, key: Key) {
        if let Some(entry) = self.entries.get_mut(&key) {
            if entry.pins == 0 {
                self.idle.remove(&entry.last_used);
            }
            entry.pins += 1;
            self.pinned.entry(job_id).or_default().push(key);
        }
    }

    fn insert(&mut self, key: Key, size: u64, look: Option<Look>) {
        self.clock += 1;
        self.used += size;
        self.entries.insert(key, Entry { size, look, pins: 0, last_used: self.clock });
        self.idle.insert(self.clock, key);
    }

    /// Drops an entry from the book; those who have it pinned keep what they have.
    fn forget(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.used -= entry.size;
            self.idle.remove(&entry.last_used);
            for keys in self.pinned.values_mut() {
                keys.retain(|k| k != key);
            }
        }
    }

    fn evict(&mut self) {
        while self.used > self.limit
            && let Some((_, key)) = self.idle.pop_first()
        {
            self.remove_files(&key);
            self.forget(&key);
        }
    }
}

/// Is it the digest of a file that is there?
fn is_digest(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let file = name.strip_suffix(seal::SUFFIX).filter(|file| Key::parse(file).is_some());
    file.is_some_and(|file| path.with_file_name(file).exists())
}

/// Is there room for so many bytes, and some more for the host to breathe?
pub(crate) fn has_room(directory: &Path, size: u64) -> bool {
    /// `min_required_disk_space` (jobs-and-nodes.md 4.9).
    const RESERVE: u64 = 100 << 20;
    match rustix::fs::statvfs(directory) {
        Ok(fs) => fs.f_bavail.saturating_mul(fs.f_frsize) >= size.saturating_add(RESERVE),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::Digest as _;
    use vocab::Guid;

    fn key(n: u32) -> Key {
        Key { file_id: ObjectId(Guid([n, 0, 0, 1])), revision: 7, executable: n % 2 == 1, only_for: None }
    }
    fn fetched(size: u64) -> Fetched {
        Fetched { size, digest: [0; 32], was_known: false }
    }
    fn job(n: u32) -> JobId {
        JobId(Guid([n, 0, 0, 2]))
    }

    #[test]
    fn names_are_read_back() {
        for n in 0..3 {
            assert_eq!(Key::parse(&key(n).name()), Some(key(n)));
        }
        for bad in ["", "x", "1-2-3-4", "1-2-3-4.x", "1-2-3-4.5.part", "1-2-3-4.5-x.part"] {
            assert_eq!(Key::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_file_past_the_cache_is_for_one_job_and_goes_with_it() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        let mut cache = Cache::open(directory.path().to_owned(), 1000)?;
        for n in [1, 2] {
            let own = Key { only_for: Some(job(n)), ..key(2) };
            assert_eq!(Key::parse(&own.name()), None, "it does not outlive the agent either");
            assert_eq!(cache.want(job(n), own, 10), Want::Fetch, "not even from another job that bypasses");
            std::fs::write(cache.temporary_path(&own), [0; 10])?;
            assert_eq!(cache.fetched(own, Ok(fetched(10))), (vec![job(n)], Ok(())));
        }
        cache.unpin(job(1));
        cache.unpin(job(2));
        assert_eq!((cache.used, std::fs::read_dir(directory.path())?.count()), (0, 0));
        Ok(())
    }

    #[test]
    fn shared_downloads_pins_and_eviction() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        let open = || Cache::open(directory.path().to_owned(), 25);
        let mut cache = open()?;
        let fetch = |cache: &mut Cache, n: u32| {
            std::fs::write(cache.temporary_path(&key(n)), [0; 10]).expect("written");
            cache.fetched(key(n), Ok(fetched(10)))
        };
        assert_eq!(cache.want(job(1), key(1), 10), Want::Fetch);
        assert_eq!(cache.want(job(2), key(1), 10), Want::Joined);
        assert_eq!(fetch(&mut cache, 1), (vec![job(1), job(2)], Ok(())));
        assert_eq!(cache.want(job(3), key(1), 10), Want::Present);
        for n in [2, 3] {
            assert_eq!(cache.want(job(n), key(n), 10), Want::Fetch);
            assert_eq!(fetch(&mut cache, n).1, Ok(()));
        }
        assert_eq!(cache.used, 30, "all in use: nothing can go");
        cache.unpin(job(1));
        cache.unpin(job(2));
        assert!(cache.path(&key(1)).exists() && !cache.path(&key(2)).exists(), "the idle one went");
        cache.unpin(job(3));
        assert_eq!(cache.used, 20);
        std::fs::write(cache.temporary_path(&key(5)), b"half")?;
        let mut cache = open()?;
        assert_eq!(cache.used, 20);
        assert!(!cache.temporary_path(&key(5)).exists());
        assert_eq!(cache.want(job(4), key(1), 10), Want::Fetch, "it may have changed meanwhile");
        let known = Fetched { was_known: true, ..fetched(10) };
        assert_eq!(cache.fetched(key(1), Ok(known)), (vec![job(4)], Ok(())));
        assert_eq!(cache.want(job(5), key(1), 10), Want::Present);
        std::fs::remove_file(cache.path(&key(1)))?;
        assert_eq!(cache.want(job(6), key(1), 10), Want::Fetch, "the disk is believed");
        Ok(())
    }

    /// S1: a job does not get a cached file whose content was changed, even if the size is the same.
    #[test]
    fn what_was_changed_is_fetched_again() -> std::io::Result<()> {
        let directory = tempfile::tempdir()?;
        let open = || Cache::open(directory.path().to_owned(), 1000);
        let mut cache = open()?;
        assert_eq!(cache.want(job(1), key(2), 4), Want::Fetch);
        std::fs::write(cache.temporary_path(&key(2)), "good")?;
        let digest = sha2::Sha256::digest("good").into();
        assert_eq!(cache.fetched(key(2), Ok(Fetched { size: 4, digest, was_known: false })).1, Ok(()));
        let path = cache.path(&key(2));
        assert_eq!(seal::holds(&path)?, Some(digest));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644))?;
        let before = std::fs::metadata(&path)?.modified()?;
        while std::fs::metadata(&path)?.modified()? == before {
            std::fs::write(&path, "evil")?;
        }
        assert_eq!(seal::holds(&path)?, None);
        let mut later = open()?;
        assert_eq!(later.want(job(2), key(2), 4), Want::Fetch, "an agent that starts compares the digest");
        assert_eq!(cache.want(job(2), key(2), 4), Want::Fetch);
        assert!(!path.exists() && !seal::path_of(&path).exists(), "and it is gone");
        Ok(())
    }
}
