//! Calculators: the code that is shipped, run by hand on cases that are written down.
//!
//! ```text
//! a line (JSON)  -->  Case  -->  the crate that decides  -->  a line (JSON)
//!                       \-->  Refusal: which field, what it is, what is allowed
//! ```
//!
//! The calculators, one module each:
//!
//! * [`fair_share`]: a pool tree and a sequence of updates in, the attributes of every element out;
//! * [`cpu_monitor`]: readings of a job's CPU time in, votes and limits out;
//! * [`memory_digest`]: ends of jobs in, what the next ones reserve out;
//! * [`scheduling`]: what happens in a cluster in, what the scheduler decides out.
//!
//! What this crate is: readers of cases, writers of answers, and nothing in between but a call of the
//! crate whose answer is asked for. What it is not: it has no rule of its own, reads no
//! file and no clock (one that measures is passed in), and keeps nothing from line to line (but for a script
//! of [`scheduling`], which is a world of its own).
//!
//! Where to start: [`fair_share::answer`]. Below it, `read` turns JSON values into amounts and numbers
//! and says where in the line a bad one stands.
#![forbid(unsafe_code)]

mod options;
mod read;
mod refusal;
mod write;

pub mod cpu_monitor;
pub mod fair_share;
pub mod memory_digest;
pub mod scheduling;

pub use refusal::Refusal;
