//! YSON: the data model of the tree, of specs and of the wire.
//!
//! Start at [`Value`]; then [`parse`] and [`write`](mod@write).
#![forbid(unsafe_code)]

mod value;

pub use value::{Bytes, Map, Value};
