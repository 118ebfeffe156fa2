//! Statistics of jobs and of operations (jobs-and-nodes.md 7).
//!
//! [`samples`](mod@samples) turns what a node measured and what the controller knows into numbers at public
//! paths; [`aggregate`] sums them over the finished jobs of a task, by state and pool tree;
//! [`tree`] shows both as the maps of the API.

pub mod aggregate;
pub mod samples;
pub mod tree;

pub use aggregate::{Group, TaskStatistics};
pub use samples::{JobFacts, JobSamples, PATHS};
