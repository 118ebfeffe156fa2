//! Mutation ids: unique without a random number library.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use vocab::Guid;

/// An id that no other request has. Every `RandomState` has keys from the system's random source,
/// and hashing with unknown keys is as good as a random number here: these ids must differ, not be
/// hard to guess.
pub(crate) fn mutation_id() -> Guid {
    let keys = RandomState::new();
    let half = |salt: u64| {
        let mut hasher = keys.build_hasher();
        hasher.write_u64(salt);
        hasher.write_u32(std::process::id());
        hasher.finish()
    };
    let (high, low) = (half(1), half(2));
    Guid([(high >> 32) as u32, high as u32, (low >> 32) as u32, low as u32])
}

#[cfg(test)]
mod tests {
    #[test]
    fn ids_differ() {
        let ids: std::collections::BTreeSet<_> = (0..1000).map(|_| super::mutation_id()).collect();
        assert_eq!(ids.len(), 1000);
        assert!(ids.iter().all(|id| !id.is_null()));
    }
}
