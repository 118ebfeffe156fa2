//! Stories on virtual time, and properties under random ones.

mod properties;
mod script;
mod stories;
mod usage;
