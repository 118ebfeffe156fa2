//! Elements of a snapshot by name or id.

use std::borrow::Borrow;

/// A sorted list: it is made anew with every update, and nothing is ever added to it.
#[derive(Clone, Debug)]
pub(crate) struct Index<K>(Vec<(K, usize)>);

impl<K: Ord> Index<K> {
    /// Of keys that are all different, in any order.
    pub fn new(mut entries: Vec<(K, usize)>) -> Index<K> {
        entries.sort_unstable();
        Index(entries)
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        let place = self.0.binary_search_by(|(k, _)| k.borrow().cmp(key)).ok()?;
        Some(self.0[place].1)
    }

    /// Sorted by key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&K, usize)> {
        self.0.iter().map(|(key, element)| (key, *element))
    }

    pub fn keys(&self) -> impl ExactSizeIterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }
}
