//! Tests of the update through its public interface.

mod case;
mod conformance;
mod decisions;
mod fixture;
mod invariants;
mod random;
mod scenarios;
mod steady;
mod worked;
