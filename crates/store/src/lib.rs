//! Durable state behind one trait: ordered tables of byte keys and values, batches that are written
//! whole or not at all.
//!
//! The kernel never sees this crate: it emits batches with sequence numbers, the server writes them
//! (many at once: group commit) and holds back every reply and order that depends on a number until
//! that number is durable.
#![forbid(unsafe_code)]
