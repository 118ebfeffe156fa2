//! The server process: the kernel on a thread of its own, and everything that it must not do itself.
//!
//! ```text
//! HTTP (api) --> backend --+                       +--> outbox --> replies, orders (hub)
//! gRPC (node_service) -----+--> core_thread(kernel)+--> commit thread (store)
//! ```
//!
//! [`run`] is the way in. `backend` answers the API: it sends commands to the kernel and completes
//! answers that need records of finished operations and jobs from the store (`archive`).
//! `node_service` is the other side of the node protocol, `hub` knows which node is on which stream.
//! `streams` carries bytes between clients and the disk. `event_log` appends what happened to files, `page` serves the web page. `outbox` holds replies and orders back until what they depend on is durable.
//! `vaults` encrypts secure vaults before the store gets them.
//!
//! What it does not do: it decides nothing about operations, pools or jobs.
#![forbid(unsafe_code)]

mod access;
mod archive;
mod back_off;
mod backend;
mod concatenate;
mod configured_tokens;
mod core_thread;
mod event_log;
mod exposure;
mod files;
#[cfg(fuzzing)]
pub mod fuzzing;
mod garbage;
mod hub;
mod job_input;
mod job_list;
mod job_rows;
mod merged_rows;
mod metrics;
mod node_authority;
mod node_gate;
mod node_service;
mod other_family;
mod outbox;
mod page;
mod password_checks;
mod readers;
mod refusals;
mod room;
mod rows;
mod run;
mod secret_file;
mod security_headers;
mod shells;
mod start;
mod streams;
mod tables;
mod uploads;
mod vaults;

pub use api::{InFlightLimits, RequestLimits};
pub use event_log::Limits as EventLogLimits;
pub use exposure::exposure;
pub use kernel::Retention;
pub use kernel::TreeLimits;
pub use other_family::hold_other_family;
pub use run::{ServerConfig, run};
