//! The keys of vaults, and the file in which they lie beside the store.
//!
//! The file has one key a line, in 64 hexadecimal digits. The first one encrypts; the others decrypt what older backups of the
//! store have. Empty lines, and lines that begin with `#`, are comments.

use super::seal::{KEY_LEN, Key, KeyId, NoRandomNumbers, key_of, random_key};
use crate::secret_file::write_secret;
use datadir::SecretError;
use kernel::JobTicketKey;
use ring::hmac;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use store::StoreError;
use vocab::Failure;

/// Name of the file in the data directory of the server.
pub const FILE: &str = "vault.key";

/// Keys that are kept. A service that always starts with a new key must not let the file grow for ever.
const KEPT: usize = 16;

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

    fn is_missing(&self) -> bool {
        matches!(self, KeyFileError::Secret(SecretError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound)
    }
}

/// Keys, the newest first.
pub struct VaultKeys {
    keys: Vec<(Key, [u8; KEY_LEN])>,
}

impl VaultKeys {
    /// The keys of a file; none without the file.
    pub fn read(path: &Path) -> Result<VaultKeys, KeyFileError> {
        let bytes = match datadir::read_secret(path).map_err(KeyFileError::from) {
            Err(error) if error.is_missing() => return Ok(VaultKeys { keys: Vec::new() }),
            other => other?,
        };
        let damaged = |line, found| KeyFileError::Damaged { path: path.to_owned(), line, found };
        let text = String::from_utf8_lossy(&bytes);
        let mut keys = VaultKeys { keys: Vec::new() };
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

    /// Writes the file.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut text = ABOUT.to_owned();
        for (_, bytes) in &self.keys {
            for byte in bytes {
                // Writing into a string does not fail.
                let _ = write!(text, "{byte:02x}");
            }
            text.push('\n');
        }
        write_secret(path, &text)
    }

    /// Puts a new key before the others. Of those only the newest stay ([`KEPT`] with the new one).
    pub fn add_new(&mut self) -> Result<(), NoRandomNumbers> {
        let bytes = random_key()?;
        self.keys.insert(0, (Key::new(&bytes), bytes));
        self.keys.truncate(KEPT);
        Ok(())
    }

    /// Keys of the tickets of jobs, in the same order. They follow from the keys of vaults, so that there is one secret beside the
    /// store and not two.
    pub fn job_ticket_keys(&self) -> Vec<JobTicketKey> {
        let derive = |(_, key): &(Key, [u8; KEY_LEN])| {
            let code = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), b"millpond tickets of jobs");
            let mut derived = [0; 32];
            derived.copy_from_slice(code.as_ref());
            JobTicketKey(derived)
        };
        self.keys.iter().map(derive).collect()
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
        keys.write(&path).expect("written");
        assert_eq!(path.metadata().expect("there").permissions().mode() & 0o7777, 0o600);
        let old = keys.seal(b"r", b"clear").expect("sealed");
        let mut again = VaultKeys::read(&path).expect("read");
        again.add_new().expect("random numbers");
        again.write(&path).expect("written");
        let both = VaultKeys::read(&path).expect("read");
        assert_eq!(both.open(b"r", &old).expect("an older key"), b"clear");
        assert_ne!(both.current(), keys.current());
        // S7: tickets that an older key has made are still good, and tell nothing about the key.
        let [new, older] = &both.job_ticket_keys()[..] else { panic!("two keys") };
        assert_eq!([older.clone()], keys.job_ticket_keys()[..]);
        assert!(new != older && both.keys.iter().all(|(_, key)| *key != new.0 && *key != older.0));
        assert_eq!(key_of(&both.seal(b"r", b"clear").expect("sealed")), both.current());
        let failure = keys.open(b"r", &both.seal(b"r", b"clear").expect("sealed")).expect_err("another key");
        assert!(failure.message.contains(FILE), "{failure}");
        assert!(keys.open(b"r", b"{clear=vault}").expect_err("not encrypted").message.contains("damaged"));
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
}
