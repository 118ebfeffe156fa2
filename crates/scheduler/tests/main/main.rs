//! Tests of the scheduler through its public face.

// A test may look at the clock and at its environment.
#![allow(clippy::disallowed_methods)]

mod common;
mod random;

mod attributes;
mod books;
mod config;
mod counts;
mod explain;
mod explain_pool;
mod planning;
mod policy;
mod pools;
mod preemption;
mod snapshots;
mod stuck;

mod model;
mod preempt_scripts;
mod scenarios;
mod scripts;
