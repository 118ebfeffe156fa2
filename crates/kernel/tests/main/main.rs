//! Tests of the kernel as a whole: scripts with transcripts, and random scripts with invariants.

// The environment chooses the number of random scripts; the kernel itself does not read it.
#![allow(clippy::disallowed_methods)]

mod console;
mod events;
mod node;
mod orchid;
mod pools;
mod preemption;
mod random;
mod restarts;
mod storm;
mod volumes;
mod walks;
mod world;
