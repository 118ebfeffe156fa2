//! JSON in.

use super::{JsonFormat, string};
use crate::error::{Fault, FaultKind, ParseError};
use crate::scan::Cursor;
use crate::{Bytes, Map, ParseOptions, Value};

const VALUE: &str = "a JSON value";

/// Parses one JSON value; anything but white space behind it is an error.
pub fn from_json(input: &[u8], format: &JsonFormat) -> Result<Value, ParseError> {
    from_json_bounded(input, format, usize::MAX)
}

/// [`from_json`] of at most `max_values` values, with those in arrays and objects.
pub fn from_json_bounded(input: &[u8], format: &JsonFormat, max_values: usize) -> Result<Value, ParseError> {
    let mut reader = Reader { values_left: max_values, max_values, ..Reader::new(input, format) };
    let value = reader.node().and_then(|value| match reader.cursor.peek_token() {
        None => Ok(value),
        Some(_) => Err(Fault::expected(reader.cursor.pos, "end of input")),
    });
    value.map_err(|f| f.explain(input))
}

/// Values one after another with any white space, or none at all, between them: rows of a table as
/// the client's JSON writer sends them (http-api.md 4.3).
pub fn from_json_stream<'a>(input: &'a [u8], format: &'a JsonFormat) -> JsonRows<'a> {
    JsonRows { reader: Reader::new(input, format), failed: false }
}

/// Iterator of [`from_json_stream`]; after an error it is finished.
pub struct JsonRows<'a> {
    reader: Reader<'a>,
    failed: bool,
}

impl Iterator for JsonRows<'_> {
    type Item = Result<Value, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.reader.cursor.peek_token().is_none() {
            return None;
        }
        let row = self.reader.node().map_err(|f| f.explain(self.reader.cursor.input));
        self.failed = row.is_err();
        Some(row)
    }
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    format: &'a JsonFormat,
    depth_left: usize,
    max_depth: usize,
    /// Values that may still come.
    values_left: usize,
    max_values: usize,
}

/// Keys of a wrapped value, gathered while its object is read.
#[derive(Default)]
struct Wrapping {
    value: Option<(Value, usize)>,
    attributes: Option<Map>,
    kind: Option<(Bytes, usize)>,
    any: bool,
}

impl<'a> Reader<'a> {
    fn new(input: &'a [u8], format: &'a JsonFormat) -> Reader<'a> {
        let max_depth = ParseOptions::default().max_depth;
        let (values_left, max_values) = (usize::MAX, usize::MAX);
        Reader {
            cursor: Cursor::new(input),
            format,
            depth_left: max_depth,
            max_depth,
            values_left,
            max_values,
        }
    }

    fn node(&mut self) -> Result<Value, Fault> {
        let Some(left) = self.values_left.checked_sub(1) else {
            return Err(Fault { at: self.cursor.pos, kind: FaultKind::TooMany(self.max_values) });
        };
        self.values_left = left;
        let Some(first) = self.cursor.peek_token() else {
            return Err(Fault::expected(self.cursor.pos, VALUE));
        };
        match first {
            b'{' => self.nested(Reader::object),
            b'[' => self.nested(Reader::array),
            b'"' => string::read(&mut self.cursor, self.format.encode_utf8).map(Value::String),
            _ => self.word(),
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<Value, Fault>) -> Result<Value, Fault> {
        if self.depth_left == 0 {
            return Err(Fault { at: self.cursor.pos, kind: FaultKind::TooDeep(self.max_depth) });
        }
        self.cursor.pos += 1;
        self.depth_left -= 1;
        let value = read(self)?;
        self.depth_left += 1;
        Ok(value)
    }

    fn array(&mut self) -> Result<Value, Fault> {
        let mut items = Vec::new();
        if self.cursor.peek_token() == Some(b']') {
            self.cursor.pos += 1;
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.node()?);
            match self.cursor.peek_token() {
                Some(b',') => self.cursor.pos += 1,
                Some(b']') => break,
                _ => return Err(Fault::expected(self.cursor.pos, "`,` or `]`")),
            }
        }
        self.cursor.pos += 1;
        Ok(Value::List(items))
    }

    /// An object: a map, or a value wrapped into `$value` with its attributes and type.
    fn object(&mut self) -> Result<Value, Fault> {
        let start = self.cursor.pos - 1;
        let mut map = Map::new();
        let mut wrapping = Wrapping::default();
        if self.cursor.peek_token() == Some(b'}') {
            self.cursor.pos += 1;
            return Ok(Value::Map(map));
        }
        loop {
            self.pair(&mut map, &mut wrapping)?;
            match self.cursor.peek_token() {
                Some(b',') => self.cursor.pos += 1,
                Some(b'}') => break,
                _ => return Err(Fault::expected(self.cursor.pos, "`,` or `}`")),
            }
        }
        self.cursor.pos += 1;
        if !wrapping.any {
            return Ok(Value::Map(map));
        }
        if !map.is_empty() {
            return Err(Fault::token(start, start + 1, "no other keys beside `$value` and `$attributes`"));
        }
        let Some((value, at)) = wrapping.value else {
            return Err(Fault::token(start, start + 1, "an object with `$value` beside its other `$` keys"));
        };
        let value = match wrapping.kind {
            Some((kind, kind_at)) => typed(value, at, &kind, kind_at)?,
            None => value,
        };
        Ok(match wrapping.attributes {
            // Attributes of the wrapper come in front of those of the value inside.
            Some(outer) => {
                let (inner, bare) = value.split();
                let mut all = outer;
                for (key, value) in inner {
                    all.insert_owned(key, value);
                }
                bare.with_attributes(all)
            }
            None => value,
        })
    }

    fn pair(&mut self, map: &mut Map, wrapping: &mut Wrapping) -> Result<(), Fault> {
        if self.cursor.peek_token() != Some(b'"') {
            return Err(Fault::expected(self.cursor.pos, "a key in quotes"));
        }
        let key_at = self.cursor.pos;
        let mut key = string::read(&mut self.cursor, self.format.encode_utf8)?;
        self.cursor.skip_space();
        if !self.cursor.eat(b':') {
            return Err(Fault::expected(self.cursor.pos, "`:` after a key"));
        }
        self.cursor.skip_space();
        let at = self.cursor.pos;
        let value = self.node()?;
        if key.first() != Some(&b'$') {
            map.insert_owned(key, value);
            return Ok(());
        }
        if key.get(1) == Some(&b'$') {
            key.remove(0);
            map.insert_owned(key, value);
            return Ok(());
        }
        wrapping.any = true;
        match (&key[..], value) {
            (b"$value", value) => wrapping.value = Some((value, at)),
            (b"$attributes", Value::Map(attributes)) => wrapping.attributes = Some(attributes),
            (b"$attributes", Value::Entity) => {}
            (b"$attributes", _) => return Err(Fault::expected(at, "a map of attributes")),
            (b"$type", Value::String(kind)) => wrapping.kind = Some((kind, at)),
            (b"$incomplete", Value::Bool(_)) => {}
            _ => {
                let expected = "`$value`, `$attributes`, `$type` or a key with its first `$` doubled";
                return Err(Fault::token(key_at, self.cursor.pos, expected));
            }
        }
        Ok(())
    }

    /// A word without quotes: number, Boolean, null.
    fn word(&mut self) -> Result<Value, Fault> {
        let start = self.cursor.pos;
        let token = self.cursor.number();
        let infinite = self.format.support_infinity;
        match token {
            b"null" => Ok(Value::Entity),
            b"true" => Ok(Value::Bool(true)),
            b"false" => Ok(Value::Bool(false)),
            b"inf" | b"Infinity" if infinite => Ok(Value::Double(f64::INFINITY)),
            b"-inf" | b"-Infinity" if infinite => Ok(Value::Double(f64::NEG_INFINITY)),
            [] => Err(Fault::expected(start, VALUE)),
            _ => number(token).map_err(|expected| Fault::token(start, self.cursor.pos, expected)),
        }
    }
}

/// A number: an int64 if it fits, else a uint64; a double if it has a point or an exponent.
fn number(token: &[u8]) -> Result<Value, &'static str> {
    let digits = token.strip_prefix(b"-").unwrap_or(token);
    let whole = digits.iter().take_while(|b| b.is_ascii_digit()).count();
    if whole == 0 || (whole > 1 && digits[0] == b'0') {
        return Err(VALUE);
    }
    let text = std::str::from_utf8(token).map_err(|_| VALUE)?;
    if whole == digits.len() {
        return (text.parse().map(Value::Int))
            .or_else(|_| text.parse().map(Value::Uint))
            .map_err(|_| "an integer within int64 or uint64");
    }
    // JSON wants digits on both sides of the point and behind the exponent; the standard library
    // checks the latter but would take `1.`.
    let bad_point = digits[whole] == b'.' && !digits.get(whole + 1).is_some_and(u8::is_ascii_digit);
    if bad_point || !digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
        return Err(VALUE);
    }
    text.parse().map(Value::Double).map_err(|_| VALUE)
}

/// Applies `$type`: the value may be of that type already, or a string that spells it.
fn typed(value: Value, at: usize, kind: &[u8], kind_at: usize) -> Result<Value, Fault> {
    let (attributes, bare) = value.split();
    let text = match &bare {
        Value::String(s) => std::str::from_utf8(s).ok(),
        _ => None,
    };
    let (converted, expected) = match kind {
        b"string" => (bare.as_bytes().map(Value::from), "a string, as `$type` says"),
        b"int64" => {
            let int = bare.as_i64().or_else(|| text?.parse().ok());
            (int.map(Value::Int), "an int64, as `$type` says")
        }
        b"uint64" => {
            let uint = bare.as_u64().or_else(|| text?.parse().ok());
            (uint.map(Value::Uint), "a uint64, as `$type` says")
        }
        b"double" => {
            let double = bare.as_f64().or_else(|| text?.parse().ok());
            (double.map(Value::Double), "a double, as `$type` says")
        }
        b"boolean" => {
            let boolean = bare.as_bool().or_else(|| text?.parse().ok());
            (boolean.map(Value::Bool), "a boolean, as `$type` says")
        }
        _ => {
            let expected = "one of the types `string`, `int64`, `uint64`, `double`, `boolean`";
            return Err(Fault::expected(kind_at, expected));
        }
    };
    // What has no number to show is null whatever its type (NaN, see the writer).
    match converted {
        Some(value) => Ok(value.with_attributes(attributes)),
        None if bare.is_entity() => Ok(bare.with_attributes(attributes)),
        None => Err(Fault::expected(at, expected)),
    }
}
