//! The real store: one data directory.
//!
//! ```text
//! DATA_DIR/lock         held while a process uses the directory; contains its pid
//! DATA_DIR/store.redb   all tables
//! DATA_DIR/cluster_id   id of the cluster, as it stands in the store and in blobs/
//! DATA_DIR/blobs/       one file per blob, named by its id; *.part are unfinished; cluster_id
//! ```

mod ahead;
mod blobs;
mod errors;
mod identity;
mod lock;
mod overlay;
mod redb_store;

#[cfg(test)]
mod tests;

pub use redb_store::{OpenOptions, RedbStore};
