//! Formats: what a client names in `X-YT-Output-Format` or by MIME type, and what can be done with
//! it (http-api.md 2.3).

use crate::dsv::{DsvError, DsvFormat, from_dsv, to_dsv, write_dsv_row};
use crate::fields::{FieldError, Fields};
use crate::json::{self, AttributesMode, JsonFormat};
use crate::schemaful_dsv::{MissingValue, SchemafulDsvFormat, from_schemaful_dsv, write_schemaful_dsv_row};
use crate::write::{self, Style};
use crate::{Map, ParseError, Rows, Value};

/// A format with its options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Format {
    /// `<format=text>yson`; `binary` when the style is not named.
    Yson(Style),
    /// `json`.
    Json(JsonFormat),
    /// `dsv`.
    Dsv(DsvFormat),
    /// `schemaful_dsv`.
    SchemafulDsv(SchemafulDsvFormat),
}

/// Why a format, or data in it, was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FormatError {
    /// A format description that is no string.
    #[error("a format must be a string such as \"json\" or \"<format=text>yson\", found {found}")]
    NotAString {
        /// Type of the description.
        found: &'static str,
    },
    /// No such format.
    #[error("unknown format \"{name}\", expected one of \"yson\", \"json\", \"dsv\", \"schemaful_dsv\"")]
    UnknownFormat {
        /// The name given.
        name: String,
    },
    /// A bad option of a known format.
    #[error("bad format description: {0}")]
    Option(#[from] FieldError),
    /// Data that is not in the format.
    #[error("cannot parse {format}: {error}")]
    Parse {
        /// Name of the format.
        format: &'static str,
        /// Where and why.
        error: ParseError,
    },
    /// A row that the format cannot express.
    #[error("cannot write a row as DSV: {0}")]
    Dsv(#[from] DsvError),
    /// A string that is not UTF-8 where the format wants UTF-8.
    #[error("cannot write row {row} as JSON: a string is not UTF-8 (use <encode_utf8=%true>json for bytes)")]
    NotUtf8 {
        /// Index of the row, from 0.
        row: usize,
    },
}

impl Format {
    /// What structured commands speak when nothing is said.
    pub fn structured_default() -> Format {
        Format::Json(JsonFormat::default())
    }

    /// What tables are read and written in when nothing is said.
    pub fn tabular_default() -> Format {
        Format::Yson(Style::Text)
    }

    /// Reads a format description: a string with options as attributes. Unknown options are ignored:
    /// the client sends many.
    pub fn from_value(value: &Value) -> Result<Format, FormatError> {
        let Some(name) = value.as_bytes() else {
            return Err(FormatError::NotAString { found: value.type_name() });
        };
        let mut fields = Fields::new(value.attributes().unwrap_or(Map::EMPTY), "");
        Ok(match name {
            b"yson" => Format::Yson(yson_style(&mut fields)?),
            b"json" => Format::Json(json_options(&mut fields)?),
            b"dsv" => Format::Dsv(dsv_options(&mut fields)?),
            b"schemaful_dsv" => Format::SchemafulDsv(schemaful_dsv_options(&mut fields)?),
            _ => return Err(FormatError::UnknownFormat { name: name.escape_ascii().to_string() }),
        })
    }

    /// Reads a format description in YSON text: `<format=pretty>yson`.
    pub fn parse(text: &[u8]) -> Result<Format, FormatError> {
        let value =
            crate::parse(text).map_err(|error| FormatError::Parse { format: "format description", error })?;
        Format::from_value(&value)
    }

    /// The format of a media type, parameters (`; charset=...`) disregarded; none if it is not ours.
    pub fn from_mime(mime: &str) -> Option<Format> {
        let mime = mime.split(';').next().unwrap_or(mime).trim();
        MIME_TYPES.iter().find(|(name, _)| name.eq_ignore_ascii_case(mime)).map(|(_, make)| make())
    }

    /// The first known format of an `Accept` header; weights are disregarded.
    pub fn from_accept(header: &str) -> Option<Format> {
        header.split(',').find_map(Format::from_mime)
    }

    /// Media type for `Content-Type`.
    pub fn mime(&self) -> &'static str {
        match self {
            Format::Yson(Style::Binary) => "application/x-yt-yson-binary",
            Format::Yson(Style::Text) => "application/x-yt-yson-text",
            Format::Yson(Style::Pretty) => "application/x-yt-yson-pretty",
            Format::Json(_) => "application/json",
            Format::Dsv(dsv) if dsv.line_prefix.as_deref() == Some(b"tskv") => "text/x-tskv",
            Format::Dsv(_) | Format::SchemafulDsv(_) => "text/tab-separated-values",
        }
    }

    /// Name without options.
    pub fn name(&self) -> &'static str {
        match self {
            Format::Yson(_) => "YSON",
            Format::Json(_) => "JSON",
            Format::Dsv(_) => "DSV",
            Format::SchemafulDsv(_) => "schemaful DSV",
        }
    }

    /// A structured reply. Always succeeds: what a format cannot express is shown as well as it can,
    /// see [`json::to_json`] and [`to_dsv`].
    pub fn serialize(&self, value: &Value) -> Vec<u8> {
        match self {
            Format::Yson(style) => {
                let mut out = Vec::new();
                write::write(value, *style, &mut out);
                out
            }
            Format::Json(json) => json::to_json(value, json),
            Format::Dsv(dsv) => to_dsv(value, dsv),
            // It is for rows; what is no row has no columns.
            Format::SchemafulDsv(_) => to_dsv(value, &DsvFormat::default()),
        }
    }

    /// A structured body. A DSV text is its only row, or the list of its rows.
    pub fn deserialize(&self, input: &[u8]) -> Result<Value, FormatError> {
        self.deserialize_bounded(input, usize::MAX)
    }

    /// [`Format::deserialize`] of at most `max_values` values, with those in lists, maps and attributes. Rows of DSV are
    /// flat, and not counted.
    pub fn deserialize_bounded(&self, input: &[u8], max_values: usize) -> Result<Value, FormatError> {
        let one_or_all =
            |mut rows: Vec<Value>| if rows.len() == 1 { rows.remove(0) } else { Value::List(rows) };
        let parsed = match self {
            Format::Yson(_) => crate::parse_bounded(input, max_values),
            Format::Json(json) => json::from_json_bounded(input, json, max_values),
            Format::Dsv(dsv) => from_dsv(input, dsv).collect::<Result<_, _>>().map(one_or_all),
            Format::SchemafulDsv(dsv) => {
                from_schemaful_dsv(input, dsv).collect::<Result<_, _>>().map(one_or_all)
            }
        };
        parsed.map_err(|error| self.parse_error(error))
    }

    /// Rows of a table, control rows included, each in full or not at all.
    pub fn write_rows<'v>(
        &self,
        rows: impl IntoIterator<Item = &'v Value>,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        for (index, row) in rows.into_iter().enumerate() {
            let start = out.len();
            match self {
                Format::Yson(style) => write::write_row(row, *style, out),
                Format::Json(json) => {
                    if !json::write_json_row(row, json, out) {
                        out.truncate(start);
                        return Err(FormatError::NotUtf8 { row: index });
                    }
                }
                Format::Dsv(dsv) => write_dsv_row(row, dsv, out)?,
                Format::SchemafulDsv(dsv) => write_schemaful_dsv_row(row, dsv, out)?,
            }
        }
        Ok(())
    }

    /// Rows of a table, one at a time. That a row is a map is for the table to check.
    pub fn rows<'a>(&'a self, input: &'a [u8]) -> Box<dyn Iterator<Item = Result<Value, FormatError>> + 'a> {
        let failed = |error| self.parse_error(error);
        match self {
            Format::Yson(_) => Box::new(Rows::new(input).map(move |r| r.map_err(failed))),
            Format::Json(json) => {
                Box::new(json::from_json_stream(input, json).map(move |r| r.map_err(failed)))
            }
            Format::Dsv(dsv) => Box::new(from_dsv(input, dsv).map(move |r| r.map_err(failed))),
            Format::SchemafulDsv(dsv) => {
                Box::new(from_schemaful_dsv(input, dsv).map(move |r| r.map_err(failed)))
            }
        }
    }

    /// All rows of a table.
    pub fn read_rows(&self, input: &[u8]) -> Result<Vec<Value>, FormatError> {
        self.rows(input).collect()
    }

    fn parse_error(&self, error: ParseError) -> FormatError {
        FormatError::Parse { format: self.name(), error }
    }
}

type MimeType = (&'static str, fn() -> Format);
static MIME_TYPES: [MimeType; 6] = [
    ("application/json", || Format::Json(JsonFormat::default())),
    ("application/x-yt-yson-binary", || Format::Yson(Style::Binary)),
    ("application/x-yt-yson-text", || Format::Yson(Style::Text)),
    ("application/x-yt-yson-pretty", || Format::Yson(Style::Pretty)),
    ("text/tab-separated-values", || Format::Dsv(DsvFormat::default())),
    ("text/x-tskv", || Format::Dsv(DsvFormat::tskv())),
];

fn yson_style(fields: &mut Fields<'_>) -> Result<Style, FieldError> {
    let styles = [Style::Text, Style::Pretty, Style::Binary];
    let style = |name: &str| styles.into_iter().find(|s| s.name() == name);
    fields.take_parsed("format", "one of \"text\", \"pretty\", \"binary\"", style).or(Style::Binary)
}

fn json_options(fields: &mut Fields<'_>) -> Result<JsonFormat, FieldError> {
    let default = JsonFormat::default();
    let pretty = |name: &str| match name {
        "text" => Some(false),
        "pretty" => Some(true),
        _ => None,
    };
    let mode = |name: &str| match name {
        "on_demand" => Some(AttributesMode::OnDemand),
        "always" => Some(AttributesMode::Always),
        "never" => Some(AttributesMode::Never),
        _ => None,
    };
    Ok(JsonFormat {
        encode_utf8: flag(fields, "encode_utf8", default.encode_utf8)?,
        pretty: fields.take_parsed("format", "one of \"text\", \"pretty\"", pretty).or(default.pretty)?,
        attributes_mode: fields
            .take_parsed("attributes_mode", "one of \"on_demand\", \"always\", \"never\"", mode)
            .or(default.attributes_mode)?,
        annotate_with_types: flag(fields, "annotate_with_types", default.annotate_with_types)?,
        stringify: flag(fields, "stringify", default.stringify)?,
        string_length_limit: fields.take_u64("string_length_limit").map(|n| n as usize).optional()?,
        stringify_nan_and_infinity: flag(
            fields,
            "stringify_nan_and_infinity",
            default.stringify_nan_and_infinity,
        )?,
        support_infinity: flag(fields, "support_infinity", default.support_infinity)?,
        plain_keys: default.plain_keys,
    })
}

fn dsv_options(fields: &mut Fields<'_>) -> Result<DsvFormat, FieldError> {
    let default = DsvFormat::default();
    Ok(DsvFormat {
        record_separator: separator(fields, "record_separator", default.record_separator)?,
        field_separator: separator(fields, "field_separator", default.field_separator)?,
        key_value_separator: separator(fields, "key_value_separator", default.key_value_separator)?,
        enable_escaping: flag(fields, "enable_escaping", default.enable_escaping)?,
        line_prefix: fields.take_bytes("line_prefix").optional()?.map(<[u8]>::to_vec),
    })
}

fn schemaful_dsv_options(fields: &mut Fields<'_>) -> Result<SchemafulDsvFormat, FieldError> {
    let default = DsvFormat::default();
    let listed = fields.take_value("columns").required()?;
    let names = listed.as_list().map(|list| list.iter().map(|v| v.as_bytes().map(<[u8]>::to_vec)).collect());
    let columns: Option<Vec<_>> = names.flatten().filter(|names: &Vec<_>| !names.is_empty());
    let columns = columns.ok_or_else(|| fields.expected("columns", "non-empty list of strings", listed))?;
    // A line of names would have to know which row is the first.
    if flag(fields, "enable_column_names_header", false)? {
        return Err(fields.expected("enable_column_names_header", "%false", &Value::Bool(true)));
    }
    let sentinel = fields.take_bytes("missing_value_sentinel").or(b"")?.to_vec();
    let mode = |name: &str| match name {
        "fail" => Some(MissingValue::Fail),
        "skip_row" => Some(MissingValue::SkipRow),
        "print_sentinel" => Some(MissingValue::Sentinel(sentinel.clone())),
        _ => None,
    };
    let expected = "one of \"fail\", \"skip_row\", \"print_sentinel\"";
    Ok(SchemafulDsvFormat {
        columns,
        record_separator: separator(fields, "record_separator", default.record_separator)?,
        field_separator: separator(fields, "field_separator", default.field_separator)?,
        enable_escaping: flag(fields, "enable_escaping", default.enable_escaping)?,
        missing_value: fields.take_parsed("missing_value_mode", expected, mode).or(MissingValue::Fail)?,
    })
}

/// A Boolean; in format descriptions `<encode_utf8=false>` is written as often as `%false`.
fn flag(fields: &mut Fields<'_>, name: &'static str, default: bool) -> Result<bool, FieldError> {
    let Some(value) = fields.take_value(name).optional()? else { return Ok(default) };
    match (value.as_bool(), value.as_str()) {
        (Some(b), _) => Ok(b),
        (_, Some("true")) => Ok(true),
        (_, Some("false")) => Ok(false),
        _ => Err(fields.expected(name, "boolean", value)),
    }
}

fn separator(fields: &mut Fields<'_>, name: &'static str, default: u8) -> Result<u8, FieldError> {
    let Some(value) = fields.take_value(name).optional()? else { return Ok(default) };
    match value.as_bytes() {
        Some([b]) => Ok(*b),
        _ => Err(fields.expected(name, "string of one byte", value)),
    }
}
