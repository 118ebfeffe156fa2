//! Tests of the kernel as a whole: scripts with transcripts, and random scripts with invariants.

// The environment chooses the number of random scripts; the kernel itself does not read it.
#![allow(clippy::disallowed_methods)]

mod aborts;
mod access;
mod accounts;
mod alerts;
mod archive;
mod broken_records;
mod changes;
mod console;
mod damaged_records;
mod events;
mod expiration;
mod garbage;
mod job_owners;
mod learning;
mod leases;
mod node;
mod node_identities;
mod nodes;
mod options_page;
mod orchid;
mod overdraft;
mod pool_options;
mod pools;
mod preemption;
mod random;
mod requests;
mod restarts;
mod shared_values;
mod slow_store;
mod stderrs;
mod storm;
mod transactions;
mod uids;
mod units;
mod usage_history;
mod vaults;
mod volumes;
mod walks;
mod world;
