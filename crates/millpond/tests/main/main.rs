//! Tests of the house itself and of the whole binary.

mod architecture;
mod messages;
mod names;
mod up;
