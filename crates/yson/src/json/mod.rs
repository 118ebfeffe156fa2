//! JSON, mapped to YSON values (http-api.md 4.3).
//!
//! The reader and writer are our own because the mapping is part of the format: strings are bytes
//! (`encode_utf8`), integers are exact up to 64 bits, attributes and types travel in `$` keys.

mod read;
mod string;
mod write;

pub use read::{JsonRows, from_json, from_json_bounded, from_json_stream};
pub use write::{to_json, write_json, write_json_row};

/// Options of the `json` format, named as in a format description.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonFormat {
    /// Each *byte* of a string is the code point of the same number: lossless for any bytes, but
    /// UTF-8 text looks garbled. Off: strings are UTF-8 and pass as they are.
    pub encode_utf8: bool,
    /// Indented output (`format=pretty`).
    pub pretty: bool,
    /// When values are wrapped into `$attributes` and `$value`.
    pub attributes_mode: AttributesMode,
    /// Scalars become `{"$type": ..., "$value": ...}`.
    pub annotate_with_types: bool,
    /// Numbers and Booleans become strings.
    pub stringify: bool,
    /// Strings longer than this many bytes are cut and marked `$incomplete`.
    pub string_length_limit: Option<usize>,
    /// `"nan"`, `"inf"`, `"-inf"` as strings instead of `null`.
    pub stringify_nan_and_infinity: bool,
    /// `inf` and `-inf` as bare words (which is not JSON proper) instead of `null`.
    pub support_infinity: bool,
    /// Keys that begin with `$` are written as they are: for those who know of no attributes.
    pub plain_keys: bool,
}

impl Default for JsonFormat {
    /// Compact, `encode_utf8` on.
    fn default() -> JsonFormat {
        JsonFormat {
            encode_utf8: true,
            pretty: false,
            attributes_mode: AttributesMode::OnDemand,
            annotate_with_types: false,
            stringify: false,
            string_length_limit: None,
            stringify_nan_and_infinity: false,
            support_infinity: false,
            plain_keys: false,
        }
    }
}

impl JsonFormat {
    /// Plain UTF-8 JSON as browsers and error headers want it: `encode_utf8=%false`.
    pub fn utf8() -> JsonFormat {
        JsonFormat { encode_utf8: false, ..JsonFormat::default() }
    }
}

/// When a value is wrapped into `{"$attributes": ..., "$value": ...}`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AttributesMode {
    /// If it has attributes.
    #[default]
    OnDemand,
    /// Always.
    Always,
    /// Never: attributes are dropped.
    Never,
}
