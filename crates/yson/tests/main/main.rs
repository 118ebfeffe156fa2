//! Tests of the public surface: corpora made with the reference client, tables, and seeded floods of
//! broken input.

mod dsv;
mod fields;
mod format;
mod json;
mod parse;
mod smoke;
mod styles;
mod support;
mod ypath;
