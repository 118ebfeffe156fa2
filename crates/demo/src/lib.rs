//! `millpond demo`: a cluster on this machine that lives through six hours of a real grid in two
//! minutes, and `millpond burn`: the program that its jobs run.
//!
//! ```text
//!   window (SWF) --swf--> jobs --plan--> arrivals, sizes --replay--> operations
//!                                                                        |
//!   leftovers <--- cluster stopped <--- summary <--- meter <--- watch <--+
//! ```
//!
//! * [`swf`]: the lines of the log; [`plan`]: the same jobs, with time and sizes of this machine;
//!   [`pools`]: the tree of pools and which queue of the log goes where.
//! * [`cluster`]: `millpond up` as a child process; [`replay`]: submits what is due; `stage`: looks and
//!   shows meanwhile.
//! * [`watch`]: what the scheduler says about pools and operations; [`meter`]: sums over time.
//! * [`screen`]: live progress; [`summary`]: the table at the end.
//! * [`leftovers`]: processes, mounts and control groups that should be gone.
//! * [`burn`]: burns CPU and holds memory for a while.
//!
//! It is a user of the cluster like any other: it knows the HTTP API and the command line, and
//! nothing of what is behind them.
//!
//! Where to start: [`run`].
#![forbid(unsafe_code)]

pub mod burn;
pub mod cluster;
pub mod interrupt;
pub mod leftovers;
pub mod meter;
pub mod plan;
pub mod pools;
pub mod replay;
pub mod screen;
pub mod summary;
pub mod swf;
pub mod watch;

mod run;
mod stage;
mod words;

pub use burn::{BurnConfig, burn};
pub use run::{DemoConfig, run};

/// The window of the log, as it is in `examples/demo`: the binary alone can run the demo.
pub const WINDOW: &str = include_str!("../../../examples/demo/metacentrum-window.swf");
