//! Tests of the crate `tables`.

mod alike;
mod chunks;
mod formats;
mod schemas;
