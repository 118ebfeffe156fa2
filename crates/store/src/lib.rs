//! Durable state behind one trait: ordered tables of byte keys and values, batches that are written
//! whole or not at all, and blobs for what is too large for a table.
//!
//! The kernel never sees this crate: it emits [`Batch`]es with sequence numbers, the server hands
//! them to [`GroupCommit`], which writes many at once and says which number is durable; replies and
//! orders that depend on a number are held back until then.
//!
//! Start at [`Store`]. [`RedbStore`] is the real one: one data directory, one process at a time.
//! [`MemoryStore`] is for tests and the simulator: it can fail and crash on demand.
//!
//! What it does not do: it knows no meaning of any key, it never retries, and it never waits for
//! anything but the disk.
#![forbid(unsafe_code)]

mod disk;
mod error;
mod group_commit;
mod memory;
mod store;

pub use disk::{OpenOptions, RedbStore};
pub use error::StoreError;
pub use group_commit::{GroupBounds, GroupCommit};
pub use memory::{Fault, MemoryStore};
pub use store::{BlobWriter, Result, Store, life_of_blob};
pub use vocab::batch::{Batch, Op, Table, prefix_end};
