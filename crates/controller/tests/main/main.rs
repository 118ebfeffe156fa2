//! Tests of the controller, by subject.

mod bench;
mod jobs;
mod life;
mod measured;
mod memory;
mod properties;
mod revival;
mod script;
mod specs;
