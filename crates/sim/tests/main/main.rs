//! Tests of the simulator.

mod desk;
mod import;
mod reference;
mod refusals;
mod runs;
mod soak;
mod variants;
