//! Tests of the calculators.

// A test may look at the clock and at files.
#![allow(clippy::disallowed_methods)]

mod answers;
mod corpus;
mod digest;
mod monitor;
mod mutated;
mod refusals;
mod scheduling;
mod scheduling_lines;
mod scheduling_random;
