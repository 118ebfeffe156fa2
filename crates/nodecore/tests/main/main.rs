//! Stories of a node on virtual time, and properties under random ones.

mod deaths;
mod leases;
mod limits;
mod lives;
mod preparation;
mod properties;
mod returns;
mod script;
mod stops;
mod uids;
mod usage;
