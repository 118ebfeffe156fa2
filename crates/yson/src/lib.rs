//! YSON: the data model of the tree, of specs and of the wire.
//!
//! Everything here turns bytes into [`Value`]s and back; nothing here knows what a value means.
//! All parsers take untrusted input: they bound nesting, never allocate on the word of a length
//! field, and never panic. There is no IO, and no state but the seed of maps' hash function ([`seed_map_keys`]).
//!
//! Modules in reading order:
//!
//! 1. [`Value`] and [`Map`]: the data model; [`map!`] builds maps.
//! 2. [`parse()`], [`Rows`] and [`ParseError`]: YSON in, text or binary.
//! 3. [`mod@write`]: YSON out in three styles.
//! 4. [`json`], [`dsv`]: the other formats, mapped to the same values.
//! 5. [`format`](mod@format): a format description (`<format=text>yson`) and what can be done with it.
//! 6. [`ypath`]: addresses in the tree.
//! 7. [`fields`]: options out of maps, with good errors and a list of what was not recognised.
//!
//! ```
//! let spec = yson::parse(b"{pool=research; weight=2.5; tasks={a={job_count=3}}}")?;
//! assert_eq!(spec.get("weight").and_then(|w| w.as_f64()), Some(2.5));
//! assert_eq!(yson::to_text(spec.get("tasks").unwrap()), br#"{"a"={"job_count"=3;};}"#);
//! # Ok::<(), yson::ParseError>(())
//! ```
#![forbid(unsafe_code)]

mod key_hash;
mod value;

mod error;
mod number;
mod scan;

mod parse;
mod rows;
mod transcode;
mod weight;
pub mod write;

pub mod dsv;
pub mod format;
pub mod json;

pub mod fields;
pub mod schemaful_dsv;
pub mod ypath;

pub use error::{ParseError, Position};
pub use format::{Format, FormatError};
pub use json::JsonFormat;
pub use key_hash::{AlreadySeeded, KeyHash, seed_map_keys};
pub use parse::{
    ParseOptions, parse, parse_bounded, parse_list_fragment, parse_map_fragment, parse_record, parse_with,
};
pub use rows::Rows;
pub use scan::is_space;
pub use transcode::{Copied, copy_row};
pub use value::{Bytes, Map, Value};
pub use write::{Style, to_binary, to_pretty, to_text};
