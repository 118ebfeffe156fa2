//! The millpond command line.
