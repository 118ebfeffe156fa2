//! The one binary: dispatch to the bodies.
fn main() {}
