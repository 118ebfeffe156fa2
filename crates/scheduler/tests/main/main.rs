//! Tests of the scheduler through its public face.

// A test may look at the clock and at its environment.
#![allow(clippy::disallowed_methods)]

mod common;
mod random;

mod attributes;
mod books;
mod config;
mod counts;
mod planning;
mod pools;

mod model;
mod scripts;
