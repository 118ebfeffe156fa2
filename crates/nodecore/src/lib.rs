//! The thinking half of an exec node: what happens to a job between the order to start it and the
//! server's word that its end is durable (jobs-and-nodes.md 3, 9.2; scheduling.md 15).
//!
//! One [`NodeCore`] is told what happened ([`NodeInput`]) and answers what must be done
//! ([`NodeEffect`]); it has no clock, no socket, no file and no process:
//!
//! ```text
//! core.handle(now, input, &mut effects);   // any number of times
//! core.flush(now, &mut effects);           // then once: news that came together leave together
//! for effect in effects.drain(..) { ... }  // the edge acts, in this order
//! ```
//!
//! The life of a job: waiting for resources ([`Ledger`]), files fetched, sandbox made, proxy
//! spawned, running, over, cleaned up, released by the server. Every job that was accepted is
//! reported `Finished` exactly once per connection until it is released, whatever happens to it.
//!
//! What it does not know: cgroups, paths, sockets, how a proxy is spoken to, what a container is.
//! What it does not decide: which job runs here; that is the scheduler's work.
//!
//! Where to start reading: [`input`] and [`effect`] (the whole vocabulary), then `job` (the stages),
//! then `core`.
#![forbid(unsafe_code)]

pub mod effect;
pub mod input;
pub mod ledger;
pub mod settings;

mod adoption;
mod core;
mod disk;
mod ending;
mod job;
mod lease;
mod mistrust;
mod overdraft;
mod ports;
mod preparation;
mod registration;
mod running;
mod stopping;
mod timers;
mod uids;

pub use crate::core::NodeCore;
pub use effect::{JobRecord, NodeEffect, ProxyOrder};
pub use input::{Fate, Holds, JobResult, KeptStderr, NodeInput, RecoveredJob, Remains, Source, Supply};
pub use ledger::{IndexPool, Ledger};
pub use ports::PortPool;
pub use settings::Settings;
