//! The node as a process between a server and real jobs.

mod harness;
mod lives;
mod restarts;
mod server;
