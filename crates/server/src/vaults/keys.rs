//! The keys of vaults, and the file in which they lie beside the store.
//!
//! The file has one key a line, in 64 hexadecimal digits. The first one encrypts; the others decrypt what older backups of the
//! store have. Empty lines, and lines that begin with `#`, are comments.

use super::seal::{KEY_LEN, Key, KeyId, NoRandomNumbers, key_of, random_key};
use datadir::{SecretError, read_secret_if_there, refuse_link, write_secret};
use kernel::JobTicketKey;
use ring::hmac;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use store::StoreError;
use vocab::Failure;

/// Name of the file in the data directory of the server.
pub const FILE: &str = "vault.key";

/// Keys that are kept for backups. A service that always starts with a new key must not let the file grow for ever.
pub const KEPT: usize = 1000;

/// What the key of tickets is made for. Another key that follows from the same file needs another label (S7).
const OF_TICKETS: &[u8] = b"millpond tickets of jobs";

/// How the file begins that the server writes.
const ABOUT: &str = "# Keys of secure vaults. The first one encrypts, the others are for older records and backups of the store.\n\
                     # Keep a copy where the backups of the store are not: each of the two is of no use to a thief without the other.\n";

/// Why the file of the keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It cannot be read, or others can read it.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// It has a line that is no key.
    #[error("{}, line {line}: expected a key of 64 hexadecimal digits, found {found}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What there is, without telling it.
        found: String,
    },
    /// It has nothing but comments.
    #[error("{} has no key", .0.display())]
    Empty(PathBuf),
}

impl KeyFileError {
    /// Would another file help?
    pub fn is_damage(&self) -> bool {
        !matches!(self, KeyFileError::Secret(_))
    }
}

/// Keys, the newest first, and their file.
pub struct VaultKeys {
    path: PathBuf,
    keys: Vec<(Key, [u8; KEY_LEN])>,
    /// The file has all of them. Nothing is encrypted with a key that could be lost.
    is_written: AtomicBool,
    /// The file is damaged, and is to be moved aside.
    is_damaged: bool,
}

impl VaultKeys {
    /// No keys, for a file that is not there, or is damaged.
    pub fn none(path: &Path, is_damaged: bool) -> VaultKeys {
        VaultKeys { path: path.to_owned(), keys: Vec::new(), is_written: AtomicBool::new(true), is_damaged }
    }

    /// The keys of a file; none without the file.
    pub fn read(path: &Path) -> Result<VaultKeys, KeyFileError> {
        let mut keys = VaultKeys::none(path, false);
        let Some(bytes) = read_secret_if_there(path)? else { return Ok(keys) };
        let damaged = |line, found| KeyFileError::Damaged { path: path.to_owned(), line, found };
        let text = String::from_utf8_lossy(&bytes);
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let key = key_from_hex(line)
                .ok_or_else(|| damaged(number + 1, format!("{} other characters", line.chars().count())))?;
            keys.keys.push((Key::new(&key), key));
        }
        match keys.keys.is_empty() {
            true => Err(KeyFileError::Empty(path.to_owned())),
            false => Ok(keys),
        }
    }

    /// Writes the file, unless it has all keys. A damaged one is moved aside.
    pub fn write(&self) -> io::Result<()> {
        if self.is_written.load(Ordering::Acquire) {
            return Ok(());
        }
        if self.is_damaged && self.path.exists() {
            let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let aside = self.path.with_extension(format!("key.damaged-{seconds}"));
            std::fs::rename(&self.path, &aside)?;
            tracing::warn!(file = %aside.display(), "the damaged file of the keys of vaults was moved here");
        }
        self.write_some(|_, _| true)?;
        self.is_written.store(true, Ordering::Release);
        tracing::info!(file = %self.path.display(), "a new key of secure vaults is in this file: copies of the store need it");
        Ok(())
    }

    /// Removes keys from the file beyond the newest [`KEPT`], unless records need them.
    pub fn prune(&self, needed: &BTreeSet<KeyId>) -> io::Result<()> {
        self.write_some(|place, id| place < KEPT || needed.contains(&id))
    }

    fn write_some(&self, is_kept: impl Fn(usize, KeyId) -> bool) -> io::Result<()> {
        let mut text = ABOUT.to_owned();
        for (place, (key, bytes)) in self.keys.iter().enumerate() {
            if is_kept(place, key.id()) {
                for byte in bytes {
                    // Writing into a string does not fail.
                    let _ = write!(text, "{byte:02x}");
                }
                text.push('\n');
            }
        }
        write_secret(&self.path, &text)
    }

    /// Puts a new key before the others. It encrypts after [`VaultKeys::write`].
    pub fn add_new(&mut self) -> Result<(), NoRandomNumbers> {
        let bytes = random_key()?;
        self.keys.insert(0, (Key::new(&bytes), bytes));
        self.is_written = AtomicBool::new(false);
        Ok(())
    }

    /// Keys of the tickets of jobs, in the same order. They follow from the keys of vaults, so that there is one secret beside the
    /// store and not two.
    pub fn job_ticket_keys(&self) -> Vec<JobTicketKey> {
        let derive = |(_, key): &(Key, [u8; KEY_LEN])| {
            let code = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), OF_TICKETS);
            let mut derived = [0; 32];
            derived.copy_from_slice(code.as_ref());
            JobTicketKey(derived)
        };
        self.keys.iter().map(derive).collect()
    }

    /// Could the file be replaced?
    pub fn refuse_link(&self) -> io::Result<()> {
        refuse_link(&self.path)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// There is no key.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Name of the key that encrypts.
    pub fn current(&self) -> Option<KeyId> {
        self.keys.first().map(|(key, _)| key.id())
    }

    /// Is the key with this name one of them?
    pub fn has(&self, id: KeyId) -> bool {
        self.keys.iter().any(|(key, _)| key.id() == id)
    }

    /// Encrypts the vault of a record with the newest key.
    pub fn seal(&self, record: &[u8], clear: &[u8]) -> Result<Vec<u8>, StoreError> {
        let failed = |why: &str| StoreError::Io {
            action: "encrypt a vault for",
            path: "the store".into(),
            source: std::io::Error::other(why.to_owned()),
        };
        let (key, _) = self.keys.first().ok_or_else(|| failed("there is no key"))?;
        if !self.is_written.load(Ordering::Acquire) {
            return Err(failed("the new key is not in its file yet"));
        }
        key.seal(record, clear).map_err(|NoRandomNumbers| failed("the system has no random numbers"))
    }

    /// Decrypts the vault of a record.
    pub fn open(&self, record: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Failure> {
        let Some(id) = key_of(sealed) else {
            return Err(Failure::new(
                "The secure vault of the operation is damaged: its record is not an encrypted one",
            ));
        };
        let Some((key, _)) = self.keys.iter().find(|(key, _)| key.id() == id) else {
            let text = format!(
                "The secure vault of the operation was encrypted with key {id}, which is not in {FILE}"
            );
            return Err(Failure::new(text).with("key_id", id.to_string()));
        };
        key.open(record, sealed).ok_or_else(|| {
            Failure::new("The secure vault of the operation is damaged: its record was changed, or is that of another operation")
        })
    }
}

fn key_from_hex(text: &str) -> Option<[u8; KEY_LEN]> {
    let mut key = [0; KEY_LEN];
    if text.len() != 2 * KEY_LEN || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in key.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_comes_back_and_the_first_key_encrypts() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(FILE);
        let mut keys = VaultKeys::read(&path).expect("no file is no error");
        assert!(keys.is_empty() && keys.seal(b"r", b"clear").is_err());
        keys.add_new().expect("random numbers");
        let early = keys.seal(b"r", b"clear").expect_err("the key could be lost").to_string();
        assert!(early.contains("not in its file"), "{early}");
        keys.write().expect("written");
        assert_eq!(path.metadata().expect("there").permissions().mode() & 0o7777, 0o600);
        let old = keys.seal(b"r", b"clear").expect("sealed");
        let mut again = VaultKeys::read(&path).expect("read");
        again.add_new().expect("random numbers");
        again.write().expect("written");
        let both = VaultKeys::read(&path).expect("read");
        assert_eq!(both.open(b"r", &old).expect("an older key"), b"clear");
        assert_ne!(both.current(), keys.current());
        // S7: tickets that an older key has made are still good, and tell nothing about the key.
        let [new, older] = &both.job_ticket_keys()[..] else { panic!("two keys") };
        assert_eq!(std::slice::from_ref(older), &keys.job_ticket_keys()[..]);
        assert!(new != older && both.keys.iter().all(|(_, key)| *key != new.0 && *key != older.0));
        assert_eq!(key_of(&both.seal(b"r", b"clear").expect("sealed")), both.current());
        let failure = keys.open(b"r", &both.seal(b"r", b"clear").expect("sealed")).expect_err("another key");
        assert!(failure.message.contains(FILE), "{failure}");
        assert!(keys.open(b"r", b"{clear=vault}").expect_err("not encrypted").message.contains("damaged"));
    }

    /// S7: tickets that nodes have are good after an update of the server. The code was made by another program.
    #[test]
    fn the_key_of_tickets_that_nodes_have_does_not_change() {
        let mut keys = VaultKeys::none(Path::new(FILE), false);
        keys.keys.push((Key::new(&[1; KEY_LEN]), [1; KEY_LEN]));
        let [JobTicketKey(derived)] = keys.job_ticket_keys()[..] else { panic!("one key") };
        let hex = derived.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex, "8c70e53a5a714d379ae8f5892f125dde90c971c204b286d19c98929d18069361");
    }

    #[test]
    fn a_damaged_file_is_refused_without_telling_what_is_in_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(FILE);
        let good = "0123456789abcdef".repeat(4);
        for (text, told) in [
            ("", "has no key"),
            ("# nothing\n", "has no key"),
            (&good[1..], "line 1"),
            (&format!("{good}\n{good}0"), "line 2"),
            (&good.replace('a', "g"), "line 1"),
            ("\u{fffd}", "line 1"),
        ] {
            std::fs::write(&path, text).expect("written");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("closed");
            let error = VaultKeys::read(&path).err().expect("damaged").to_string();
            assert!(error.contains(told) && error.contains(FILE) && !error.contains("0123"), "{error}");
        }
        std::fs::write(&path, format!("# a comment\n\n {} \n", good.to_uppercase())).expect("written");
        assert!(VaultKeys::read(&path).is_ok_and(|keys| keys.keys.len() == 1));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("opened");
        assert!(VaultKeys::read(&path).err().expect("open to others").to_string().contains("0644"));
    }

    /// The seventeenth key of a rotation dropped the first, which vaults still needed.
    #[test]
    fn no_key_is_dropped_that_a_record_needs() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(FILE);
        let mut keys = VaultKeys::none(&path, false);
        for _ in 0..KEPT + 3 {
            keys.add_new().expect("random numbers");
        }
        keys.write().expect("written");
        let all = VaultKeys::read(&path).expect("read");
        assert_eq!(all.len(), KEPT + 3, "a new key alone drops none");
        let oldest = all.keys[KEPT + 2].0.id();
        all.prune(&BTreeSet::from([oldest])).expect("written");
        let left = VaultKeys::read(&path).expect("read");
        assert_eq!(left.len(), KEPT + 1);
        assert!(left.has(oldest) && left.current() == all.current());
        assert!(!left.has(all.keys[KEPT].0.id()));
    }
}
