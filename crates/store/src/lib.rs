//! Durable state behind one trait.
