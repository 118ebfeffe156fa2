//! Dense storage with stable indices: names become indices once, the hot path works on vectors.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A typed index of a [`Slab`].
pub(crate) trait Key: Copy {
    fn new(index: u32) -> Self;
    fn index(self) -> usize;
}

macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub(crate) struct $name(pub u32);
        impl Key for $name {
            fn new(index: u32) -> Self { $name(index) }
            fn index(self) -> usize { self.0 as usize }
        }
    )*};
}
keys! {
    /// A pool tree of the cluster.
    TreeIdx,
    /// A pool of a tree; the root is 0.
    PoolIdx,
    /// An operation in one tree.
    LeafIdx,
    /// An operation.
    OpIdx,
    /// A node.
    NodeIdx,
    /// An allocation.
    AllocIdx,
}

/// Vector with holes. Iteration goes by index, so it is the same in every run.
#[derive(Clone, Debug)]
pub(crate) struct Slab<K, T> {
    items: Vec<Option<T>>,
    free: Vec<u32>,
    key: PhantomData<K>,
}

impl<K, T> Default for Slab<K, T> {
    fn default() -> Self {
        Slab { items: Vec::new(), free: Vec::new(), key: PhantomData }
    }
}

impl<K: Key, T> Slab<K, T> {
    /// Where the next item will go.
    pub fn next_key(&self) -> K {
        K::new(self.free.last().copied().unwrap_or(self.items.len() as u32))
    }

    pub fn insert(&mut self, item: T) -> K {
        match self.free.pop() {
            Some(i) => {
                self.items[i as usize] = Some(item);
                K::new(i)
            }
            None => {
                // Items may be large: a quarter of empty room is enough.
                if self.items.len() == self.items.capacity() {
                    self.items.reserve_exact(self.items.len() / 4 + 16);
                }
                self.items.push(Some(item));
                K::new(self.items.len() as u32 - 1)
            }
        }
    }

    /// Takes an item out; its index may be given to another one later.
    pub fn remove(&mut self, key: K) -> T {
        let item = self.items[key.index()].take().expect("an index in use");
        self.free.push(key.index() as u32);
        item
    }

    pub fn get(&self, key: K) -> Option<&T> {
        self.items.get(key.index()).and_then(Option::as_ref)
    }

    /// Indices are below this.
    pub fn capacity(&self) -> usize {
        self.items.len()
    }

    pub fn len(&self) -> usize {
        self.items.len() - self.free.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        self.items.iter().enumerate().filter_map(|(i, x)| Some((K::new(i as u32), x.as_ref()?)))
    }

    pub fn keys(&self) -> Vec<K> {
        self.iter().map(|(k, _)| k).collect()
    }

    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.items.iter().flatten()
    }
}

impl<K: Key, T> Index<K> for Slab<K, T> {
    type Output = T;
    fn index(&self, key: K) -> &T {
        self.items[key.index()].as_ref().expect("an index in use")
    }
}

impl<K: Key, T> IndexMut<K> for Slab<K, T> {
    fn index_mut(&mut self, key: K) -> &mut T {
        self.items[key.index()].as_mut().expect("an index in use")
    }
}
