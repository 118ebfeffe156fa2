//! The simulator: the shipped core in virtual time, on a described cluster, pool tree and workload.
//!
//! ```text
//! scenario + workload --> [engine: clock, queue, nodes' physics] <--> kernel, nodecore (shipped)
//!                                      \--> output: tables, summary
//! ```
//!
//! It owns the clock, what happens to jobs, the workload and the output, and no rule of scheduling:
//! fair shares, plans, preemption, retries, memory reserves and the life of jobs on nodes are the crates
//! that production runs, called as production calls them. Same input, same seed: the same bytes come out.
//!
//! Reading order: [`scenario`] and [`workload`] (what is simulated), [`engine`] (the loop), [`output`]
//! (what is written), [`metrics`] (what it comes to), [`check`] (is it what was expected).
#![forbid(unsafe_code)]

pub mod check;
pub mod dist;
pub mod effects;
pub mod engine;
mod error;
pub mod import;
pub mod live;
pub(crate) mod metrics;
pub mod output;
pub mod random;
pub mod report;
pub mod scenario;
pub mod shares;
pub mod soak;
pub mod validate;
pub mod what_if;
pub mod workload;

pub use engine::{Meter, Options, Progress, Ran, Stopped, run};
pub use error::SimError;
pub use scenario::Scenario;
