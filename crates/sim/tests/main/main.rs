//! Tests of the simulator.

mod desk;
mod import;
mod live;
mod models;
mod pages;
mod reference;
mod refusals;
mod runs;
mod soak;
mod variants;
