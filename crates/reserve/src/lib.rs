//! What is learned about jobs while they run and after they end: how much CPU a running job needs to
//! be guaranteed, and how much memory a new job of a task should be counted with.
//!
//! * [`cpu_monitor`] (jobs-and-nodes.md 1): one machine per running job. It is fed the CPU time that
//!   the job has used and moves the job's guarantee.
//! * [`memory_digest`] (jobs-and-nodes.md 2): one digest per task and process. It is fed the peaks of
//!   finished jobs and answers which part of its limit a new one should reserve.
//!
//! ```text
//! job proxy, simulator, calculators      controller, simulator, calculators
//!     Monitor::check(time, cpu) -> Check     Reserves::request(factors(cookie)) -> bytes
//!          apply(new limit) -> bool          Reserves::completed(peaks), overdrafted(.., peaks)
//! ```
//!
//! What this crate is: the two machines, their options (names, aliases, ranges, defaults, the form in
//! which effective values are shown) and the form in which a digest is stored. What it is not: it
//! reads no counter and no clock, writes to no container and to no store, and knows neither pools nor
//! nodes. The same code runs in production, in the simulator and under `millpond calc`.
//!
//! Where to start: [`cpu_monitor::Monitor`] and [`memory_digest::Reserves`].
#![forbid(unsafe_code)]

pub mod cpu_monitor;
pub mod memory_digest;

mod options;

pub use options::error_parts;
