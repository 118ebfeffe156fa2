//! Both stores against a map, restarts, crashes, group commit.

mod crash;
mod group;
mod kill;
mod model;
mod parts;
mod reopen;
