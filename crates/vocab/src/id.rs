//! Identifiers: four hexadecimal numbers joined by `-` (http-api.md 6.2).

use std::fmt;
use std::str::FromStr;

/// 128-bit identifier, printed as `a-b-c-d` without leading zeros. The low 16 bits of `c` are the
/// type of the object, the high 16 bits the cell tag (always 1 here).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Guid(pub [u32; 4]);

/// Type codes of objects, the low half of the third part of an id.
#[allow(missing_docs)]
pub mod object_type {
    pub const TRANSACTION: u16 = 1;
    pub const LOCK: u16 = 200;
    pub const STRING_NODE: u16 = 300;
    pub const INT64_NODE: u16 = 301;
    pub const DOUBLE_NODE: u16 = 302;
    pub const MAP_NODE: u16 = 303;
    pub const LIST_NODE: u16 = 304;
    pub const BOOLEAN_NODE: u16 = 305;
    pub const UINT64_NODE: u16 = 306;
    pub const FILE: u16 = 400;
    pub const TABLE: u16 = 401;
    pub const ORCHID: u16 = 412;
    pub const LINK: u16 = 417;
    pub const DOCUMENT: u16 = 421;
    pub const ACCOUNT: u16 = 500;
    pub const USER: u16 = 501;
    pub const GROUP: u16 = 502;
    pub const CLUSTER_NODE: u16 = 802;
    pub const JOB: u16 = 900;
    pub const OPERATION: u16 = 1000;
    pub const SCHEDULER_POOL: u16 = 1001;
    pub const SCHEDULER_POOL_TREE: u16 = 1002;
    /// Not an object of the reference: allocations and everything else that only needs to be unique.
    pub const OTHER: u16 = 0x7fff;
}

impl Guid {
    /// `0-0-0-0`: none.
    pub const NULL: Guid = Guid([0; 4]);
    /// Is it `0-0-0-0`?
    pub fn is_null(self) -> bool {
        self == Guid::NULL
    }
    /// The object type in it.
    pub fn object_type(self) -> u16 {
        self.0[2] as u16
    }
    /// Big-endian bytes, for keys of the store.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut out = [0; 16];
        for (chunk, part) in out.chunks_exact_mut(4).zip(self.0) {
            chunk.copy_from_slice(&part.to_be_bytes());
        }
        out
    }
    /// Inverse of [`Guid::to_bytes`].
    pub fn from_bytes(bytes: [u8; 16]) -> Guid {
        let mut parts = [0; 4];
        for (part, chunk) in parts.iter_mut().zip(bytes.chunks_exact(4)) {
            *part = u32::from_be_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
        }
        Guid(parts)
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = self.0;
        write!(f, "{a:x}-{b:x}-{c:x}-{d:x}")
    }
}
impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Malformed id {0:?}: expected four hexadecimal numbers of at most eight digits joined by \"-\"")]
pub struct MalformedId(pub String);

impl FromStr for Guid {
    type Err = MalformedId;
    /// Accepts upper case and leading zeros.
    fn from_str(text: &str) -> Result<Guid, MalformedId> {
        let bad = || MalformedId(text.chars().take(100).collect());
        let mut parts = [0; 4];
        let mut n = 0;
        for piece in text.split('-') {
            if n == 4 || piece.is_empty() || piece.len() > 8 || !piece.bytes().all(|b| b.is_ascii_hexdigit())
            {
                return Err(bad());
            }
            parts[n] = u32::from_str_radix(piece, 16).map_err(|_| bad())?;
            n += 1;
        }
        if n == 4 { Ok(Guid(parts)) } else { Err(bad()) }
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub Guid);
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(&self.0, f) }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(&self.0, f) }
        }
        impl FromStr for $name {
            type Err = MalformedId;
            fn from_str(text: &str) -> Result<$name, MalformedId> { text.parse().map($name) }
        }
        impl From<$name> for yson::Value {
            fn from(id: $name) -> yson::Value { id.to_string().into() }
        }
    )*};
}
ids! {
    /// An operation.
    OperationId,
    /// A place on a node that the scheduler gave to an operation.
    AllocationId,
    /// One run of user code inside an allocation.
    JobId,
    /// Anything in the metadata tree: nodes, pools, users, transactions.
    ObjectId,
}

/// Makes ids that are unique for ever without a random source in the core.
///
/// `seed` must differ between lives of the process (a counter kept in the store does), inside one
/// life a counter makes them differ. The bits are mixed so that ids spread over key ranges.
#[derive(Debug, Clone)]
pub struct GuidGenerator {
    seed: u64,
    counter: u64,
}

impl GuidGenerator {
    /// A generator for one life of the process.
    pub fn new(seed: u64) -> GuidGenerator {
        GuidGenerator { seed, counter: 0 }
    }

    /// The next id of the given object type.
    pub fn next(&mut self, object_type: u16) -> Guid {
        self.counter += 1;
        let low = mix(self.counter.wrapping_add(self.first()));
        Guid([(low >> 32) as u32, self.life(), (1 << 16) | u32::from(object_type), low as u32])
    }

    /// How many ids it has made.
    pub fn made(&self) -> u64 {
        self.counter
    }

    /// The how-manieth id of this life it is, or would be; none, if it is of another life.
    pub fn number_of(&self, id: Guid) -> Option<u64> {
        let [high, life, _, low] = id.0;
        let number = unmix(u64::from(high) << 32 | u64::from(low)).wrapping_sub(self.first());
        (life == self.life()).then_some(number)
    }

    fn first(&self) -> u64 {
        self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn life(&self) -> u32 {
        mix(self.seed) as u32
    }
}

/// splitmix64: a bijection of the counter, so ids of one life never collide.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Inverse of [`mix`]: the factors are the inverses of those there, modulo 2^64.
fn unmix(mut z: u64) -> u64 {
    z = (z ^ (z >> 31) ^ (z >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    z = (z ^ (z >> 27) ^ (z >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    z ^ (z >> 30) ^ (z >> 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form() {
        let g: Guid = "9F1975f7-0038-103e8-5ec868DB".parse().expect("a good id");
        assert_eq!(g.to_string(), "9f1975f7-38-103e8-5ec868db");
        assert_eq!(Guid::from_bytes(g.to_bytes()), g);
        for bad in ["", "1-2-3", "1-2-3-4-5", "1-2-3-g", "1--2-3", "123456789-0-0-0", "+1-2-3-4"] {
            assert!(bad.parse::<Guid>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_id_tells_its_number() {
        for seed in [0, 1, 7, u64::MAX, 0x0123_4567_89ab_cdef] {
            let mut g = GuidGenerator::new(seed);
            for number in 1..1000 {
                let id = g.next(object_type::JOB);
                assert_eq!((g.made(), g.number_of(id)), (number, Some(number)));
                assert_eq!(GuidGenerator::new(seed ^ 0x100).number_of(id), None);
            }
        }
    }

    #[test]
    fn generated_ids_differ_between_lives() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..20 {
            let mut g = GuidGenerator::new(seed);
            for _ in 0..1000 {
                let id = g.next(object_type::JOB);
                assert_eq!(id.object_type(), object_type::JOB);
                assert!(seen.insert(id));
            }
        }
    }
}
