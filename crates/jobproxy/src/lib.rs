//! The process beside each job: starts it, feeds it, measures it, guards it, reports it.
//!
//! A job proxy is a process of its own, so that a restart of the node agent does not touch the job.
//! Since one is needed for every job, starting it must be cheap: the node starts one *spawner*
//! ([`spawner::Spawner`]) which is small and single-threaded, and the spawner forks a proxy per
//! job ([`proxy`]), without another exec. Spawner and node may die; proxies live on.
//!
//! For the node agent, in order of use:
//! 1. [`spawner::Spawner::start`], then [`protocol::ToSpawner::Start`] per job;
//! 2. listen on the unix socket; proxies connect and speak [`protocol`];
//! 3. [`record`]: what a proxy leaves in the job's directory, for restarts and for dead proxies;
//! 4. [`rows`]: where the rows are that a job is to read and those that it has written;
//! 5. [`recovery`]: what to do with a job whose proxy died.
//!
//! The binary's `main` hands `millpond job-proxy-spawner` to [`spawner_main`] before it starts any
//! thread.
//!
//! Not here: files for the sandbox, resources, retries (the node); cgroups (the crate `cage`).
#![forbid(unsafe_code)]

pub mod codec;
pub mod command;
pub mod custom;
pub mod outcome;
pub mod protocol;
pub mod proxy;
pub mod record;
pub mod recovery;
pub mod rows;
pub mod spawner;
pub mod stderr;

pub use spawner::{SPAWNER_SUBCOMMAND, spawner_main};
