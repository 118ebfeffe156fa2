//! HTTP: commands, formats, errors.
