//! Tests of the kernel as a whole: scripts with transcripts, and random scripts with invariants.

mod console;
mod node;
mod orchid;
mod pools;
mod restarts;
mod walks;
mod world;
