//! Real spawner, real proxies, real processes; the node is the test.

#[path = "../../../cage/tests/main/bomb.rs"]
mod bomb;
mod harness;
mod jobs;
mod leases;
mod measures;
mod quota;
mod rows;
mod shells;
