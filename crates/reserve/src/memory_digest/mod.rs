//! Memory reserves of a task's jobs, learned from those that ended (jobs-and-nodes.md 2).
//!
//! A reserve is what the scheduler and the node count for a process: `base * factor`. It is not a
//! limit: a job that uses more is counted with what it uses, and lives as long as its node has memory.
//! When that runs out, jobs above their reserve are aborted (`resource_overdraft`) and run again.
//!
//! ```text
//!                       base                    factor
//! user job              memory_limit            quantile of peak / memory_limit over finished jobs
//! job proxy             footprint + buffers     quantile of peak / base (the footprint is not scaled)
//!
//! new job of a unit:    reserves.request(reserves.factors(unit))
//! it completes:         reserves.completed(peaks); the unit is done: reserves.unit_done(unit)
//! its node lacked room: reserves.overdrafted(unit, ..): the next run of the unit gets more at once,
//!                       and all others learn a sample of 1.1 x what was used
//! it fails, is aborted: nothing is learned
//! ```
//!
//! Modules in reading order: `reserves` is the state of a task, `amounts` its arithmetic, `digest` the
//! histogram, `options` what users and administrators can set, `stored` the durable form.

mod amounts;
mod digest;
mod options;
mod reserves;
mod stored;

pub use amounts::{Bases, Factors, Peaks, Request};
pub use digest::{LogDigest, MAX_BUCKETS};
pub use options::{ClusterOptions, JobProxyOptions, ScriptOptions};
pub use reserves::{Blame, Ended, Origin, Origins, Reserves, Settings};
pub use stored::{BrokenDigest, VERSION};

/// Range of a factor, and how exactly it is told.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounds {
    /// Smallest factor.
    pub lower: f64,
    /// Factor without samples.
    pub default: f64,
    /// Largest factor.
    pub upper: f64,
    /// Relative width of a bucket.
    pub precision: f64,
}

impl Bounds {
    /// Are they positive numbers in order?
    pub fn are_sound(&self) -> bool {
        let positive = [self.lower, self.upper, self.precision].iter().all(|x| x.is_finite() && *x > 0.0);
        positive && (self.lower..=self.upper).contains(&self.default)
    }
}
