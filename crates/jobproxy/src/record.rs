//! What a proxy leaves in the job's directory: `proxy.state` while it lives, `result` at the end.
//!
//! Without fsync: they must survive the death of processes. The death of the host is told by the boot id
//! (jobs-and-nodes.md 9.2 step 1).
//!
//! The specification's way is a temporary name and a rename. Here the file is overwritten in place by one
//! write, and a checksum takes the part of the rename: half a file is refused. The reason is measured:
//! with a rename every file of every job is a new inode and an old one freed, and ext4 looks through all
//! inodes freed in the last five seconds for each new one. At some hundred jobs per second that was the
//! largest part of a proxy's time. So directories of jobs are best used again: a record names its job,
//! and readers must compare it, since what they find may be of an earlier job in the same place.

use crate::codec::{CodecError, Wire, decode_all, wire};
use crate::protocol::{Holds, ProxyResult};
use cage::ProcessId;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use vocab::{JobId, Time};

/// Name of the state file.
pub const STATE_FILE: &str = "proxy.state";
/// Name of the result file.
pub const RESULT_FILE: &str = "result";
/// First bytes of both, with the version of the format. Then: length (4 bytes) and checksum (8) of the
/// content, the content, and possibly the rest of an earlier and longer one.
const MAGIC: &[u8; 8] = b"mpproxy2";
const HEADER: usize = MAGIC.len() + 4 + 8;

/// Who runs a job; enough to find or kill it without its help.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProxyState {
    /// Which job.
    pub job_id: JobId,
    /// Process of the proxy.
    pub pid: u32,
    /// Field 22 of its `/proc/PID/stat`.
    pub pid_start_time: u64,
    /// Boot of the host, `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// Driver of its container.
    pub driver: String,
    /// Root group of its container.
    pub root_group: String,
    /// When the user's process started; none: not yet.
    pub start_time: Option<Time>,
    /// Pid of the user's process.
    pub user_pid: Option<u32>,
    /// What the job was last said to hold.
    pub holds: Holds,
}
wire!(struct ProxyState {
    job_id, pid, pid_start_time, boot_id, driver, root_group, start_time, user_pid, holds,
});

impl ProxyState {
    /// Is this very process alive, on this very boot of the host?
    pub fn is_alive(&self) -> bool {
        cage::process::boot_id().is_ok_and(|id| id == self.boot_id)
            && (ProcessId { pid: self.pid, start_time: self.pid_start_time }).is_alive()
    }
}

/// A file of the job's directory that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Reading or writing failed.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: String,
        /// The system's word.
        source: io::Error,
    },
    /// Not one of ours.
    #[error("{path}: {source}")]
    Malformed {
        /// Which file.
        path: String,
        /// What is wrong.
        source: CodecError,
    },
    /// The writer died in the middle of it, or is in the middle.
    #[error("{path}: half written")]
    Damaged {
        /// Which file.
        path: String,
    },
}

/// Reads `proxy.state`; none if there is no such file.
pub fn read_state(job_directory: &Path) -> Result<Option<ProxyState>, RecordError> {
    read(&job_directory.join(STATE_FILE))
}

/// Reads `result`; none if there is no such file.
pub fn read_result(job_directory: &Path) -> Result<Option<ProxyResult>, RecordError> {
    read(&job_directory.join(RESULT_FILE))
}

pub(crate) fn write_state(job_directory: &Path, state: &ProxyState) -> Result<(), RecordError> {
    write(job_directory, STATE_FILE, state)
}

pub(crate) fn write_result(job_directory: &Path, result: &ProxyResult) -> Result<(), RecordError> {
    write(job_directory, RESULT_FILE, result)
}

/// Name of the log of a proxy: exists only if something went wrong that did not change the outcome.
pub const LOG_FILE: &str = "proxy.log";

/// Adds a line to the log. There is nobody to tell if that fails.
pub(crate) fn log(job_directory: &Path, text: &str) {
    use std::io::Write;
    let file = fs::File::options().append(true).create(true).open(job_directory.join(LOG_FILE));
    let _ = file.and_then(|mut f| writeln!(f, "{text}"));
}

/// Looks again a few times when the writer seems to be at work.
fn read<T: Wire>(path: &Path) -> Result<Option<T>, RecordError> {
    for _ in 0..5 {
        match read_once(path) {
            Err(RecordError::Damaged { .. }) => std::thread::sleep(std::time::Duration::from_millis(1)),
            other => return other,
        }
    }
    read_once(path)
}

fn read_once<T: Wire>(path: &Path) -> Result<Option<T>, RecordError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(RecordError::Io { path: path.display().to_string(), source }),
    };
    let name = || path.display().to_string();
    if !bytes.starts_with(&MAGIC[..bytes.len().min(MAGIC.len())]) {
        let found = String::from_utf8_lossy(&bytes[..bytes.len().min(MAGIC.len())]).into_owned();
        let source = CodecError::Unknown { what: "file format", value: found };
        return Err(RecordError::Malformed { path: name(), source });
    }
    let whole = bytes.split_at_checked(HEADER).and_then(|(header, rest)| {
        let length = u32::from_le_bytes(*header[MAGIC.len()..].first_chunk()?) as usize;
        let sum = u64::from_le_bytes(*header[MAGIC.len() + 4..].first_chunk()?);
        rest.get(..length).filter(|body| checksum(body) == sum)
    });
    let body = whole.ok_or_else(|| RecordError::Damaged { path: name() })?;
    decode_all(body).map(Some).map_err(|source| RecordError::Malformed { path: name(), source })
}

fn write<T: Wire>(job_directory: &Path, name: &str, value: &T) -> Result<(), RecordError> {
    let mut bytes = MAGIC.to_vec();
    bytes.resize(HEADER, 0);
    value.encode(&mut bytes);
    let (length, sum) = ((bytes.len() - HEADER) as u32, checksum(&bytes[HEADER..]));
    bytes[MAGIC.len()..MAGIC.len() + 4].copy_from_slice(&length.to_le_bytes());
    bytes[MAGIC.len() + 4..HEADER].copy_from_slice(&sum.to_le_bytes());
    let path = job_directory.join(name);
    fs::File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .and_then(|file| file.write_all_at(&bytes, 0))
        .map_err(|source| RecordError::Io { path: path.display().to_string(), source })
}

/// FNV-1a: finds torn writes, which is all that can happen here.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_survives_and_a_foreign_file_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(read_state(dir.path()).expect("no file is no error"), None);
        let own = ProcessId::own().expect("we are alive");
        let state = ProxyState {
            job_id: JobId::default(),
            pid: own.pid,
            pid_start_time: own.start_time,
            boot_id: cage::process::boot_id().expect("a boot id"),
            driver: "simple".to_owned(),
            root_group: String::new(),
            start_time: Some(Time(7)),
            user_pid: None,
            holds: Holds { cpu: vocab::Cpu(250), total_peak: 7 },
        };
        write_state(dir.path(), &state).expect("written");
        assert_eq!(read_state(dir.path()).expect("read"), Some(state.clone()));
        assert!(state.is_alive());
        assert!(!ProxyState { pid_start_time: own.start_time + 1, ..state.clone() }.is_alive());
        assert!(!ProxyState { boot_id: "another".to_owned(), ..state }.is_alive());
        fs::write(dir.path().join(STATE_FILE), b"something else").expect("written");
        assert!(matches!(read_state(dir.path()), Err(RecordError::Malformed { .. })));
    }

    #[test]
    fn a_shorter_record_replaces_a_longer_one_and_half_a_one_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let (long, short) = ("a long text".repeat(1000), "short".to_owned());
        for text in [&long, &short] {
            write(dir.path(), "x", text).expect("written");
            assert_eq!(read::<String>(&dir.path().join("x")).expect("read").as_ref(), Some(text));
        }
        write(dir.path(), "x", &long).expect("written");
        let whole = fs::read(dir.path().join("x")).expect("there");
        for cut in [1, 7, 8, 12, 19, 20, 100, whole.len() - 1] {
            fs::write(dir.path().join("x"), &whole[..cut]).expect("written");
            let got = read::<String>(&dir.path().join("x"));
            assert!(matches!(got, Err(RecordError::Damaged { .. })), "{cut}: {got:?}");
        }
        // The head is new, the tail of an earlier one.
        let mut mixed = whole.clone();
        mixed[200] ^= 1;
        fs::write(dir.path().join("x"), &mixed).expect("written");
        assert!(matches!(read::<String>(&dir.path().join("x")), Err(RecordError::Damaged { .. })));
    }
}
