//! Hash function of the keys of maps.
//!
//! Keys come from requests. A sender who knows the hash function finds keys that collide, and a map of `n` such keys costs `n²`
//! steps. So the function depends on two secret numbers of the process, which [`seed_map_keys`] sets.
//!
//! A map keeps the order of insertion, so no result depends on the numbers. A process that sets none (tests, the simulator,
//! benchmarks) has fixed ones.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::OnceLock;

static SEED: OnceLock<[u64; 2]> = OnceLock::new();

/// Digits of e.
const FIXED: [u64; 2] = [0xb7e1_5162_8aed_2a6a, 0xbf71_5880_9cf4_f3c7];

/// Sets the secret numbers of the hash function. They must be random, and set before the first map has a key.
///
/// # Errors
/// The numbers are set already, or a map has used the fixed ones: its keys would not be found with others.
pub fn seed_map_keys(seed: [u64; 2]) -> Result<(), AlreadySeeded> {
    SEED.set(seed).map_err(|_| AlreadySeeded)
}

/// The hash function of maps cannot be changed any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the hash function of maps must be seeded once, before the first map has a key")]
pub struct AlreadySeeded;

/// Makes hashers of byte strings with the secret numbers of the process.
#[derive(Clone, Copy, Default, Debug)]
pub struct KeyHash;

impl BuildHasher for KeyHash {
    type Hasher = KeyHasher;

    #[inline]
    fn build_hasher(&self) -> KeyHasher {
        KeyHasher { seed: *SEED.get_or_init(|| FIXED), hash: 0 }
    }

    /// Out of line, so that the functions of maps stay small enough to become a part of their callers.
    #[inline(never)]
    fn hash_one<T: Hash>(&self, key: T) -> u64 {
        match SEED.get() {
            Some(seed) => hash_with(*seed, key),
            None => hash_first(key),
        }
    }
}

#[inline]
fn hash_with<T: Hash>(seed: [u64; 2], key: T) -> u64 {
    let mut hasher = KeyHasher { seed, hash: 0 };
    key.hash(&mut hasher);
    hasher.finish()
}

#[cold]
#[inline(never)]
fn hash_first<T: Hash>(key: T) -> u64 {
    hash_with(*SEED.get_or_init(|| FIXED), key)
}

/// Hashes one byte string as wyhash and foldhash do: pieces of 16 bytes, each half combined with a secret number, and then the
/// halves of the product. Unlike in `FxHasher` both factors are secret, so no input makes one of them zero.
pub struct KeyHasher {
    seed: [u64; 2],
    hash: u64,
}

#[inline]
fn folded_product(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

#[inline]
fn eight(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

#[inline]
fn four(bytes: &[u8]) -> u64 {
    u64::from(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

/// The pieces of a short string may overlap: the length tells such strings apart.
#[inline]
fn hash_bytes([first, second]: [u64; 2], bytes: &[u8]) -> u64 {
    let length = bytes.len();
    let (x, y) = if length > 16 {
        return hash_long(first, second, bytes);
    } else if length >= 8 {
        (eight(&bytes[..8]), eight(&bytes[length - 8..]))
    } else if length >= 4 {
        (four(&bytes[..4]), four(&bytes[length - 4..]))
    } else if length > 0 {
        let (middle, end) = (bytes[length / 2], bytes[length - 1]);
        (u64::from(bytes[0]), (u64::from(end) << 8) | u64::from(middle))
    } else {
        (0, 0)
    };
    folded_product(first ^ x, second ^ y) ^ length as u64
}

/// More than 16 bytes; the last 16 may overlap with those before.
#[inline(never)]
fn hash_long(mut first: u64, second: u64, bytes: &[u8]) -> u64 {
    let mut rest = &bytes[..bytes.len() - 1];
    while let Some((piece, after)) = rest.split_first_chunk::<16>() {
        first = folded_product(first ^ eight(&piece[..8]), second ^ eight(&piece[8..]));
        rest = after;
    }
    let end = &bytes[bytes.len() - 16..];
    folded_product(first ^ eight(&end[..8]), second ^ eight(&end[8..])) ^ bytes.len() as u64
}

impl Hasher for KeyHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.hash = self.hash.rotate_left(5) ^ hash_bytes(self.seed, bytes);
    }

    /// The length before a byte string, which [`KeyHasher::write`] takes into account.
    #[inline]
    fn write_usize(&mut self, _: usize) {}

    /// The end of a text: a key is one text.
    #[inline]
    fn write_u8(&mut self, _: u8) {}

    #[inline]
    fn finish(&self) -> u64 {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn hash(seed: [u64; 2], key: &[u8]) -> u64 {
        let mut hasher = KeyHasher { seed, hash: 0 };
        key.hash(&mut hasher);
        hasher.finish()
    }

    const SECRET: [u64; 2] = [0x6a09_e667_f3bc_c908, 0xbb67_ae85_84ca_a73b];

    /// Buckets of a table of 2^16, by the lowest bits, and tags of a bucket, by the highest 7: as the table does.
    fn spread(keys: &[Vec<u8>]) -> (usize, usize) {
        let hashes: Vec<u64> = keys.iter().map(|key| hash(SECRET, key)).collect();
        let buckets = hashes.iter().map(|hash| hash & 0xffff).collect::<BTreeSet<_>>().len();
        (buckets, hashes.iter().map(|hash| hash >> 57).collect::<BTreeSet<_>>().len())
    }

    /// S13: keys that collide without a secret. `FxHasher`, which was used before, put all keys of the first three kinds into
    /// one bucket.
    #[test]
    fn keys_that_are_chosen_to_collide_do_not() {
        let numbers = || 0..20_000_u64;
        let pair = |a: u64, b: u64| [a.to_le_bytes(), b.to_le_bytes()].concat();
        // The constants of `FxHasher`.
        let fx = [0x243f_6a88_85a3_08d3_u64, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0];
        let mut kinds: Vec<Vec<Vec<u8>>> = vec![
            numbers().map(|n| pair(fx[0], n)).collect(),
            numbers().map(|n| pair(n, fx[1])).collect(),
            numbers().map(|n| [pair(n, fx[2]), pair(0, 0)].concat()).collect(),
            numbers().map(|n| [pair(0, 0), pair(n, 0)].concat()).collect(),
        ];
        // Keys of everyday life, of all lengths: they must be spread as well.
        for prefix in ["", "task_", "/a/long/common/prefix/of/many/names/"] {
            kinds.push(numbers().map(|n| format!("{prefix}{n}").into_bytes()).collect());
        }
        kinds.push(
            numbers()
                .map(|n| vec![b'a'; n as usize % 300 + 1].into_iter().chain(n.to_be_bytes()).collect())
                .collect(),
        );
        kinds.push(numbers().map(|n| n.to_le_bytes()[..3].to_vec()).collect());
        for (number, keys) in kinds.iter().enumerate() {
            let (buckets, tags) = spread(keys);
            // Random numbers have 17,240 of 65,536 buckets.
            assert!(buckets > 16_500 && tags == 128, "kind {number}: {buckets} buckets, {tags} tags");
        }
    }

    #[test]
    fn every_byte_the_length_and_both_numbers_count() {
        for length in 0..70 {
            let key = vec![7; length];
            let before = hash(SECRET, &key);
            for at in 0..length {
                let mut other = key.clone();
                other[at] ^= 1;
                assert_ne!(hash(SECRET, &other), before, "byte {at} of {length}");
            }
            assert_ne!(hash(SECRET, &vec![7; length + 1]), before, "{length}");
            assert_ne!(hash([SECRET[0] ^ 1, SECRET[1]], &key), before, "{length}");
            assert_ne!(hash([SECRET[0], SECRET[1] ^ 1], &key), before, "{length}");
        }
    }

    #[test]
    fn a_map_fixes_the_numbers() {
        let map = crate::map! {"a" => 1, "b" => 2};
        assert_eq!(seed_map_keys(SECRET), Err(AlreadySeeded));
        assert_eq!(map.get("b").and_then(crate::Value::as_i64), Some(2));
    }
}
