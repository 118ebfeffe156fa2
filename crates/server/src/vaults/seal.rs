//! Encryption of one secure vault with one key: AES-256-GCM.
//!
//! An encrypted vault is `mpvault1`, 8 bytes that name the key, a random nonce of 12 bytes, and the ciphertext with its tag of
//! 16 bytes. The key of the record, which has the id of the operation in it, is authenticated as well: a vault that is moved
//! into the record of another operation does not decrypt.
//!
//! Nonces are random. That is safe for 2^32 vaults with one key; a cluster that starts a thousand operations with vaults a
//! second needs fifty days for so many, and then a new key (`--new-vault-key`).

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{Context, SHA256};
use ring::rand::{SecureRandom, SystemRandom};

/// Bytes of a key.
pub const KEY_LEN: usize = 32;
/// Beginning of every encrypted vault, with the version of the form.
const MAGIC: &[u8; 8] = b"mpvault1";
/// Bytes before the nonce.
const HEADER: usize = MAGIC.len() + KeyId::LEN;

/// Names a key without telling anything about it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct KeyId([u8; KeyId::LEN]);

impl KeyId {
    const LEN: usize = 8;
}

impl std::fmt::Display for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One key. It is not printed.
pub struct Key {
    id: KeyId,
    cipher: LessSafeKey,
}

/// The system has no random numbers.
#[derive(Debug)]
pub struct NoRandomNumbers;

impl Key {
    /// A key of these bytes.
    pub fn new(bytes: &[u8; KEY_LEN]) -> Key {
        let cipher = UnboundKey::new(&AES_256_GCM, bytes).expect("the length is that of the algorithm");
        let mut digest = Context::new(&SHA256);
        digest.update(b"millpond vault key");
        digest.update(bytes);
        let mut id = [0; KeyId::LEN];
        id.copy_from_slice(&digest.finish().as_ref()[..KeyId::LEN]);
        Key { id: KeyId(id), cipher: LessSafeKey::new(cipher) }
    }

    /// Its name.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// Encrypts the vault of the record with this key in the store.
    pub fn seal(&self, record: &[u8], clear: &[u8]) -> Result<Vec<u8>, NoRandomNumbers> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| NoRandomNumbers)?;
        let mut sealed = [MAGIC.as_slice(), &self.id.0].concat();
        let associated = Aad::from([&sealed, record].concat());
        let mut body = clear.to_vec();
        let nonce_of_body = Nonce::assume_unique_for_key(nonce);
        self.cipher
            .seal_in_place_append_tag(nonce_of_body, associated, &mut body)
            .expect("a vault is shorter than the algorithm allows");
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(&body);
        Ok(sealed)
    }

    /// Decrypts it; `None` if it was encrypted with another key, is of another record, or was changed.
    pub fn open(&self, record: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        if key_of(sealed) != Some(self.id) {
            return None;
        }
        let (header, rest) = sealed.split_at_checked(HEADER)?;
        let (nonce, body) = rest.split_first_chunk::<NONCE_LEN>()?;
        let associated = Aad::from([header, record].concat());
        let mut body = body.to_vec();
        let clear = self.cipher.open_in_place(Nonce::assume_unique_for_key(*nonce), associated, &mut body);
        clear.ok().map(|clear| clear.to_vec())
    }
}

/// The name of the key that an encrypted vault needs; `None` if this is no encrypted vault.
pub fn key_of(sealed: &[u8]) -> Option<KeyId> {
    sealed.strip_prefix(MAGIC)?.first_chunk().map(|id| KeyId(*id))
}

/// A new key.
pub fn random_key() -> Result<[u8; KEY_LEN], NoRandomNumbers> {
    let mut bytes = [0; KEY_LEN];
    SystemRandom::new().fill(&mut bytes).map_err(|_| NoRandomNumbers)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vault_comes_back_with_its_key_and_its_record_alone() {
        let (key, other) = (Key::new(&[1; KEY_LEN]), Key::new(&[2; KEY_LEN]));
        for clear in [b"".as_slice(), b"{token=secret}", &[7; 100_000]] {
            let sealed = key.seal(b"record", clear).expect("random numbers");
            assert_eq!(key.open(b"record", &sealed).as_deref(), Some(clear));
            assert_eq!(key.open(b"other record", &sealed), None);
            assert_eq!(other.open(b"record", &sealed), None);
            assert_eq!(key_of(&sealed), Some(key.id()));
            assert!(clear.is_empty() || !sealed.windows(clear.len()).any(|bytes| bytes == clear));
            assert_ne!(key.seal(b"record", clear).expect("random numbers"), sealed, "every nonce is another");
        }
        assert_ne!(key.id(), other.id());
    }

    #[test]
    fn every_changed_byte_is_found_and_nothing_that_is_cut_is_opened() {
        let key = Key::new(&[3; KEY_LEN]);
        let sealed = key.seal(b"record", b"{a=b}").expect("random numbers");
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(key.open(b"record", &changed), None, "byte {at}");
            assert_eq!(key.open(b"record", &sealed[..at]), None, "cut at {at}");
        }
        for nothing in
            [b"".as_slice(), b"mpvault1", b"{a=b}", b"mpvault2aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"]
        {
            assert_eq!(key.open(b"record", nothing), None);
        }
        assert_eq!(key_of(b"mpvault1aaaaaaa"), None);
    }
}
