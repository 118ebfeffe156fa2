//! The real store: one data directory.
//!
//! ```text
//! DATA_DIR/lock         held while a process uses the directory; contains its pid
//! DATA_DIR/store.redb   all tables
//! DATA_DIR/blobs/       one file per blob, named by its id; *.part are unfinished
//! ```

mod ahead;
mod blobs;
mod errors;
mod lock;
mod overlay;
mod redb_store;

#[cfg(test)]
mod tests;

pub use redb_store::RedbStore;
