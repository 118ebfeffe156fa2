//! Real spawner, real proxies, real processes; the node is the test.

mod harness;
mod jobs;
mod measures;
mod shells;
