//! Verifies cached files: by a digest beside the file after a start of the agent, by [`Look`] during its run.
//!
//! A fault of the disk, or a process with rights on the host, may change a cached file. The next job must not get the changed
//! file. A job without isolation has the rights of the node and can change everything, also the digests: isolation protects the
//! cache from jobs.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::beneath::open_file;

/// SHA-256.
pub(crate) type Digest = [u8; 32];

/// The file beside a cached one that holds its digest in hexadecimal.
pub(crate) fn path_of(cached: &Path) -> PathBuf {
    let mut name = cached.file_name().unwrap_or_default().to_owned();
    name.push(SUFFIX);
    cached.with_file_name(name)
}

/// End of the names of such files.
pub(crate) const SUFFIX: &str = ".sha256";

/// Writes the digest beside a cached file. An incomplete digest does not match, so the file is fetched again.
pub(crate) fn write(cached: &Path, digest: &Digest) -> io::Result<()> {
    fs::write(path_of(cached), hexadecimal(digest))
}

/// The digest of the cached file if it equals the digest beside the file. Reads the whole file.
pub(crate) fn holds(cached: &Path) -> io::Result<Option<Digest>> {
    let expected = fs::read_to_string(path_of(cached))?;
    let digest = digest_of(&mut open_file(cached)?)?;
    Ok((hexadecimal(&digest) == expected).then_some(digest))
}

fn hexadecimal(digest: &Digest) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest_of(file: &mut File) -> io::Result<Digest> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 128 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().into()),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// Size, inode and time of the last change of a file: a write to the file changes at least one of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Look {
    pub size: u64,
    inode: u64,
    modified: (i64, i64),
}

impl Look {
    /// None for what is no file, a link above all.
    pub fn of(path: &Path) -> Option<Look> {
        let found = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Look { size: found.size(), inode: found.ino(), modified: (found.mtime(), found.mtime_nsec()) })
    }
}
