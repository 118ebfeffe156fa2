//! JSON out.

use super::{AttributesMode, JsonFormat, string};
use crate::number::{write_digits, write_i64, write_u64};
use crate::{Map, Value};

/// The value as JSON.
///
/// Always succeeds: NaN and infinities become `null` unless options say otherwise, and with
/// `encode_utf8` off bytes that are not UTF-8 become U+FFFD. A page of the scheduler must not die of
/// one bad number or name.
pub fn to_json(value: &Value, format: &JsonFormat) -> Vec<u8> {
    let mut out = Vec::new();
    write_json(value, format, &mut out);
    out
}

/// [`to_json`] behind what is in `out`.
pub fn write_json(value: &Value, format: &JsonFormat, out: &mut Vec<u8>) {
    Writer { format, out, indent: 0, lossy: false }.node(value);
}

/// Appends a row and a line feed; always compact, so that one row is one line.
///
/// False if bytes that are not UTF-8 had to be replaced: data, unlike pages, should not be changed
/// silently.
pub fn write_json_row(row: &Value, format: &JsonFormat, out: &mut Vec<u8>) -> bool {
    let compact;
    let format = if format.pretty {
        compact = JsonFormat { pretty: false, ..format.clone() };
        &compact
    } else {
        format
    };
    let mut writer = Writer { format, out, indent: 0, lossy: false };
    writer.node(row);
    let exact = !writer.lossy;
    out.push(b'\n');
    exact
}

struct Writer<'a> {
    format: &'a JsonFormat,
    out: &'a mut Vec<u8>,
    indent: usize,
    /// Something was replaced.
    lossy: bool,
}

impl Writer<'_> {
    fn node(&mut self, value: &Value) {
        let bare = value.bare();
        let attributes = match self.format.attributes_mode {
            AttributesMode::OnDemand => value.attributes(),
            AttributesMode::Always => Some(value.attributes().unwrap_or(Map::EMPTY)),
            AttributesMode::Never => None,
        };
        let kind = self.format.annotate_with_types.then(|| self.annotation(bare)).flatten();
        let incomplete = match (bare, self.format.string_length_limit) {
            (Value::String(s), Some(limit)) => s.len() > limit,
            _ => false,
        };
        if attributes.is_none() && kind.is_none() && !incomplete {
            return self.bare(bare);
        }
        self.open(b'{');
        if let Some(attributes) = attributes {
            self.key(true, b"$attributes");
            self.map(attributes);
        }
        let mut first = attributes.is_none();
        if incomplete {
            self.key(first, b"$incomplete");
            self.out.extend_from_slice(b"true");
            first = false;
        }
        if let Some(kind) = kind {
            self.key(first, b"$type");
            self.string(kind.as_bytes());
            first = false;
        }
        self.key(first, b"$value");
        self.bare(bare);
        self.close(b'}');
    }

    fn bare(&mut self, value: &Value) {
        match value {
            Value::Entity => self.out.extend_from_slice(b"null"),
            Value::Bool(b) => self.scalar(|out| out.extend_from_slice(if *b { b"true" } else { b"false" })),
            Value::Int(i) => self.scalar(|out| write_i64(*i, out)),
            Value::Uint(u) => self.scalar(|out| write_u64(*u, out)),
            Value::Double(d) if d.is_finite() => self.scalar(|out| write_digits(*d, b".0", out)),
            Value::Double(d) => self.special_double(*d),
            Value::String(s) => match self.format.string_length_limit {
                Some(limit) if s.len() > limit => self.string(string::cut(s, limit, self.format.encode_utf8)),
                _ => self.string(s),
            },
            Value::List(items) => {
                self.open(b'[');
                for (i, item) in items.iter().enumerate() {
                    self.item(i == 0);
                    self.node(item);
                }
                self.close_if(b']', !items.is_empty());
            }
            Value::Map(map) => self.map(map),
            Value::Attributed(_) => unreachable!("bare() never yields an attributed value"),
        }
    }

    fn map(&mut self, map: &Map) {
        self.open(b'{');
        for (i, (key, value)) in map.iter().enumerate() {
            if key.first() == Some(&b'$') && !self.format.plain_keys {
                // One more `$` tells a user's key from ours.
                self.key(i == 0, &[b"$", key].concat());
            } else {
                self.key(i == 0, key);
            }
            self.node(value);
        }
        self.close_if(b'}', !map.is_empty());
    }

    fn scalar(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.format.stringify {
            self.out.push(b'"');
            write(self.out);
            self.out.push(b'"');
        } else {
            write(self.out);
        }
    }

    /// NaN and infinities: JSON has no word for them. Refusing them is the reference's way; ours is
    /// `null` (http-api.md 4.3).
    fn special_double(&mut self, d: f64) {
        let name = match d {
            _ if d.is_nan() => "nan",
            _ if d > 0.0 => "inf",
            _ => "-inf",
        };
        if self.becomes_null(d) {
            self.out.extend_from_slice(b"null");
        } else if self.format.stringify_nan_and_infinity || self.format.stringify {
            self.string(name.as_bytes());
        } else {
            self.out.extend_from_slice(name.as_bytes());
        }
    }

    fn becomes_null(&self, d: f64) -> bool {
        let as_string = self.format.stringify_nan_and_infinity || self.format.stringify;
        let as_word = self.format.support_infinity && !d.is_nan();
        !d.is_finite() && !as_string && !as_word
    }

    /// The `$type` of a scalar; containers and null are not annotated.
    fn annotation(&self, value: &Value) -> Option<&'static str> {
        match value {
            Value::Entity | Value::List(_) | Value::Map(_) => None,
            Value::Double(d) if self.becomes_null(*d) => None,
            scalar => Some(scalar.type_name()),
        }
    }

    fn string(&mut self, bytes: &[u8]) {
        self.lossy |= !string::write(bytes, self.format.encode_utf8, self.out);
    }

    fn open(&mut self, bracket: u8) {
        self.out.push(bracket);
        self.indent += 1;
    }

    fn item(&mut self, first: bool) {
        if !first {
            self.out.push(b',');
        }
        self.line();
    }

    fn key(&mut self, first: bool, key: &[u8]) {
        self.item(first);
        self.string(key);
        self.out.extend_from_slice(if self.format.pretty { b": " } else { b":" });
    }

    fn close(&mut self, bracket: u8) {
        self.close_if(bracket, true);
    }

    fn close_if(&mut self, bracket: u8, any: bool) {
        self.indent -= 1;
        if any {
            self.line();
        }
        self.out.push(bracket);
    }

    fn line(&mut self) {
        if self.format.pretty {
            self.out.push(b'\n');
            self.out.resize(self.out.len() + 4 * self.indent, b' ');
        }
    }
}
