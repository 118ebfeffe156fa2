//! Tokens and passwords: made here, known elsewhere only by their digests.

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use sha2::{Digest, Sha256};
use std::io::Read;
use vocab::{Failure, Guid};

/// 32 random bytes in hexadecimal.
pub fn random_token() -> Result<String, Failure> {
    random_bytes::<32>().map(|bytes| hex(&bytes))
}

/// An id that nobody can guess.
pub fn random_guid() -> Result<Guid, Failure> {
    random_bytes::<16>().map(Guid::from_bytes)
}

/// The id that belongs to these parts together; none of them can be found out from it, and without all
/// of them nobody gets there.
pub fn guid_of(parts: &[&[u8]]) -> Guid {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest_of(parts)[..16]);
    Guid::from_bytes(bytes)
}

/// What a token is for. Tokens for different purposes differ, also if their parts are the same (S7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// The token of a user.
    UserToken,
    /// The secret of a join token.
    JoinToken,
}

impl Purpose {
    /// First part of the digest. No label has 16 bytes, as the first part of an id has ([`guid_of`]).
    const fn label(self) -> &'static [u8] {
        match self {
            Purpose::UserToken => b"millpond token of a user 1",
            Purpose::JoinToken => b"millpond join token 1",
        }
    }
}

/// The token for a purpose that belongs to these parts together; the same holds of it.
pub fn token_of(purpose: Purpose, parts: &[&[u8]]) -> String {
    hex(&digest_of(&[&[purpose.label()], parts].concat()))
}

fn digest_of(parts: &[&[u8]]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for part in parts {
        // With their lengths: no two lists of parts look the same.
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

/// SHA-256 in lower-case hexadecimal, as clients write it too.
pub fn sha256(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// The same of bytes.
pub fn sha256_of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// What is stored of a password: an Argon2id hash, with its salt and parameters. Takes tens of
/// milliseconds of one core, on purpose.
pub fn hash_password(password_sha256: &str) -> Result<String, Failure> {
    let salt = SaltString::encode_b64(&random_bytes::<16>()?)
        .map_err(|e| Failure::new(format!("Cannot make a salt: {e}")))?;
    let hash = Argon2::default().hash_password(password_sha256.as_bytes(), &salt);
    hash.map(|hash| hash.to_string()).map_err(|e| Failure::new(format!("Cannot hash a password: {e}")))
}

/// Is it the password with this hash? As slow as [`hash_password`].
pub fn is_password(password_sha256: &str, hash: &str) -> bool {
    PasswordHash::new(hash)
        .is_ok_and(|hash| Argon2::default().verify_password(password_sha256.as_bytes(), &hash).is_ok())
}

/// Are they equal? Takes the same time wherever they differ.
pub fn same_secret(a: &str, b: &str) -> bool {
    Sha256::digest(a.as_bytes()) == Sha256::digest(b.as_bytes())
}

fn random_bytes<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map(|()| bytes).map_err(|e| Failure::new(format!("Cannot read random numbers: {e}")))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256("abc"), expected);
        let (one, other) = (random_token().expect("random"), random_token().expect("random"));
        assert!(one != other && one.len() == 64 && !same_secret(&one, &other) && same_secret(&one, &one));
    }

    #[test]
    fn ids_of_parts() {
        let (a, b): (&[u8], &[u8]) = (b"a", b"b");
        assert_eq!(guid_of(&[a, b]), guid_of(&[a, b]));
        for other in [&[b, a][..], &[a], &[b"ab"], &[b"ab", b""], &[b"", b"ab"]] {
            assert_ne!(guid_of(&[a, b]), guid_of(other), "{other:?}");
        }
        assert_ne!(random_guid().expect("random"), random_guid().expect("random"));
    }

    /// S7: a join token and a token of a user that were made by one request were the same.
    #[test]
    fn tokens_for_different_purposes_differ() {
        let purposes = [Purpose::UserToken, Purpose::JoinToken];
        let parts: &[&[u8]] = &[b"secret", b"root", &[7; 16]];
        let [user, join] = purposes.map(|purpose| token_of(purpose, parts));
        assert_ne!(user, join);
        assert_eq!(user, token_of(Purpose::UserToken, parts), "a repeated request gets the same one");
        for purpose in purposes {
            assert_ne!(token_of(purpose, parts), hex(&digest_of(parts)));
            assert_ne!(purpose.label().len(), 16);
        }
    }

    #[test]
    fn passwords() {
        let (hash, again) =
            (hash_password("secret").expect("a hash"), hash_password("secret").expect("a hash"));
        assert!(hash.starts_with("$argon2id$") && !hash.contains("secret"));
        assert_ne!(hash, again, "each has a salt of its own");
        assert!(is_password("secret", &hash) && is_password("secret", &again));
        assert!(!is_password("Secret", &hash) && !is_password("secret", "") && !is_password("", &hash));
    }
}
