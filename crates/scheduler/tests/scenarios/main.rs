//! The scenarios of the simulator on the scheduler itself, in virtual time: one binary of its own, as
//! days of cluster time pass in it.
//!
//! [`scenario`] reads a description (simulator.md 3, 4), [`world`] is a cluster that obeys the scheduler,
//! [`expected`] are the curves that must come out. `cargo test -p millpond-scheduler --test scenarios --
//! --nocapture` prints the largest difference of every column.

// A test may look at files.
#![allow(clippy::disallowed_methods)]

mod expected;
mod scenario;
mod world;

mod curves;
mod variants;
