//! Vector hierarchical fair share with strong and integral guarantees (fair-share.md).
//!
//! An [`Updater`] holds one pool tree and updates it again and again:
//!
//! ```text
//! let mut updater = Updater::new(input)?;
//! updater.operation_mut(e).expect("an operation").demand = demand;
//! let results = updater.update(&mut volumes, Cycle::Periodic { since_previous })?;
//! results.fair_share(i).total              // what element i of the input is entitled to
//! ```
//!
//! [`Results`] are read element by element. [`update()`] does the same once, for who has no use for the
//! updater afterwards, and gives everything in one piece.
//!
//! The tree comes as a dense arena, parents before children, the root at index 0; an element is a
//! *pool* or an *operation*, which here means nothing but "a leaf with demand and usage". The only
//! thing that is part of a result and goes into the next one is one [`IntegralState`] for each pool.
//!
//! Around it: [`demand_within_limits`], [`best_allocation_share`] and [`HistoricUsage`] help to prepare the
//! input, [`local_satisfaction`] reads the output.
//!
//! With [`TreeOptions::compat_strict`] the numbers are those of the reference, quirks included; without
//! it Millpond's own decisions apply (fair-share.md 18).
//!
//! What this crate is not: it reads no clock, keeps no configuration, validates no pool attributes
//! (fair-share.md 11.1 belongs to the scheduler) and knows no jobs, nodes, starvation or preemption.
//!
//! Where to start reading: `update` and [`Updater`] have the list of steps, each in the module of its
//! subject. The functions of fair-share.md 4 and the distribution exist twice. `fast` is what is shipped:
//! functions are followed as far as somebody asks, and kept while nothing changes. `plain` is the text of
//! the specification line by line, and exists in tests only, as the oracle that the first is compared with.
#![forbid(unsafe_code)]

// In reading order: what goes in and comes out, then the steps.
mod input;
mod output;
mod results;
mod update;
mod updater;

mod check;
mod state;
mod tree;

mod cumulative;
mod fifo;
mod inferred;
mod volume;

mod adjust;
mod estimates;
mod weights;

mod burst;
mod integral;
mod relaxed;

mod promised;

#[cfg(test)]
mod compared;
mod fast;
#[cfg(test)]
mod plain;

mod historic;
mod numbers;
mod prepare;
mod satisfaction;

// Trees for the tests of single functions are written and drawn as in the integration tests.
#[cfg(test)]
extern crate self as fairshare;
#[cfg(test)]
#[allow(dead_code)] // Steps and names are for those who compare with answers.
#[path = "../tests/main/case.rs"]
mod case;
#[cfg(test)]
#[path = "../tests/main/fixture.rs"]
mod fixture;
#[cfg(test)]
#[path = "../tests/main/random.rs"]
mod random;

pub use check::InputError;
pub use historic::HistoricUsage;
pub use input::{
    Configured, Cycle, Element, FifoSortParameter, GuaranteeType, Input, IntegralGuarantees, IntegralState,
    Kind, Mode, Operation, Pool, TreeOptions,
};
pub use output::{ElementOutput, FairShare, IntegralOutput, OperationOutput, Output, Problem, Tiers};
pub use prepare::{best_allocation_share, demand_within_limits};
pub use results::Results;
pub use satisfaction::{NO_FAIR_SHARE, local_satisfaction};
pub use update::update;
pub use updater::Updater;
