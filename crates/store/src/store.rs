//! The trait that all stores fulfil.

use crate::StoreError;
use std::ops::{Bound, ControlFlow};
use vocab::{Batch, Table};

/// Result of a store's call.
pub type Result<T> = std::result::Result<T, StoreError>;

/// Durable ordered tables and blobs.
///
/// Reads see every finished [`Store::write`]. After a failed write nobody knows what is on the disk,
/// so all later writes are refused ([`StoreError::Poisoned`]) while reads go on, until the store is opened again
/// ([`crate::RedbStore::reopen`]): the server stops acknowledging and stays able to explain itself.
pub trait Store: Send + Sync + 'static {
    /// Writes all batches in order as one transaction; they are durable when it returns.
    fn write(&self, batches: &[Batch]) -> Result<()>;

    /// [`Store::write`] of batches that the caller does not need any more: a store that changes values on their way may do so
    /// in place. What the batches hold afterwards is not defined.
    fn write_taken(&self, batches: &mut [Batch]) -> Result<()> {
        self.write(batches)
    }

    /// The value of a key.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Calls `visit` for the keys within the bounds, ascending or (`reverse`) descending, until it
    /// breaks. All of it is one consistent snapshot; `visit` may call the store.
    #[allow(clippy::type_complexity)] // a name for the visitor would say less than its type
    fn scan(
        &self,
        table: Table,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reverse: bool,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()>;

    /// Starts a blob. Nothing of it is visible, or survives, before [`BlobWriter::finish`].
    fn begin_blob(&self) -> Result<Box<dyn BlobWriter>>;

    /// Up to `len` bytes of a blob from `offset`; fewer where it ends, none behind its end.
    fn read_blob(&self, id: u64, offset: u64, len: usize) -> Result<Vec<u8>>;

    /// Size of a blob; [`StoreError::NoSuchBlob`] if there is none.
    fn blob_len(&self, id: u64) -> Result<u64>;

    /// Removes a blob; a missing one is fine. Call it after the batch that dropped the last
    /// reference is durable: the other order loses data in a crash.
    fn delete_blob(&self, id: u64) -> Result<()>;

    /// All finished blobs, ascending: at start the server deletes those that nobody refers to (a
    /// crash between `finish` and the batch that refers to it leaves one behind).
    fn blob_ids(&self) -> Result<Vec<u64>>;

    /// How many times this store has been opened, from 1: a seed for ids that are unique for ever.
    fn life(&self) -> u64;
}

/// A blob being written; dropping it without [`BlobWriter::finish`] discards it.
pub trait BlobWriter: Send {
    /// The id that it will have; never used before or after by this store.
    fn id(&self) -> u64;
    /// Adds bytes at the end.
    fn append(&mut self, chunk: &[u8]) -> Result<()>;
    /// Bytes so far.
    fn len(&self) -> u64;
    /// No bytes so far?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Makes it durable and visible; gives its id.
    fn finish(self: Box<Self>) -> Result<u64>;
}

/// Ids of blobs: the store's life in the high half, so that an id is never given twice.
pub(crate) fn blob_id(life: u64, number: u64) -> u64 {
    (life << 32) | number
}

/// The life of the store in which a blob was written.
pub fn life_of_blob(id: u64) -> u64 {
    id >> 32
}

/// Bounds that are the wrong way round are an empty range here, not a panic as in `BTreeMap`.
pub(crate) fn is_empty_range(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(a), Bound::Included(b)) => a > b,
        (Bound::Included(a) | Bound::Excluded(a), Bound::Included(b) | Bound::Excluded(b)) => a >= b,
    }
}
