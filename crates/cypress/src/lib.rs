//! The metadata tree.
