//! Tests of the crate `tables`.

mod chunks;
mod formats;
mod schemas;
