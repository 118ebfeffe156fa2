//! Tests of the simulator.

mod desk;
mod reference;
mod refusals;
mod runs;
mod soak;
mod variants;
