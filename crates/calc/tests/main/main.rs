//! Tests of the calculators.

// A test may look at the clock and at files.
#![allow(clippy::disallowed_methods)]

mod answers;
mod corpus;
mod mutated;
mod refusals;
