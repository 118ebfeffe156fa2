//! Composition of scheduler, controllers and metadata tree.
