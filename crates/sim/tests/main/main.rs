//! Tests of the simulator.

mod acceptance;
mod desk;
mod events;
mod figures;
mod fluid;
mod forms;
mod import;
mod live;
mod models;
mod packed;
mod pages;
mod reference;
mod refusals;
mod runs;
mod soak;
mod variants;
mod waits;
mod whole;
