//! Tests of what is learned.

mod digest;
mod monitor;
mod options;
mod reserves;
mod stored;
