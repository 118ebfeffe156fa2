//! The scenarios of the simulator on the scheduler itself, in virtual time.
//!
//! [`scenario`] reads a description (simulator.md 3, 4), [`world`] is a cluster that obeys the scheduler,
//! [`expected`] are the curves that must come out. `cargo test -p millpond-scheduler --test main scenarios --
//! --nocapture` prints the largest difference of every column.

mod expected;
mod scenario;
mod world;

mod curves;
mod variants;
