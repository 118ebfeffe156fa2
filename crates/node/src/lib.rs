//! The exec node process.
