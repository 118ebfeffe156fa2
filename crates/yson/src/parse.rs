//! YSON in: one parser for text, binary and any mix of the two (http-api.md 4.1, 4.2).
//!
//! The parser never allocates what the input merely claims, looks at each byte a bounded number of
//! times, and recurses no deeper than [`ParseOptions::max_depth`].

use crate::error::{Fault, FaultKind, ParseError};
use crate::scan::{Cursor, is_bare_first};
use crate::{Bytes, Map, Value};

const VALUE: &str = "a value";
const KEY: &str = "a key";
const NUMBER: &str = "a number: int64, uint64 ending in `u`, or double";

/// Limits of a parser.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseOptions {
    /// How deep lists, maps and attributes may nest; values above
    /// [`ParseOptions::HIGHEST_MAX_DEPTH`] count as that.
    pub max_depth: usize,
}

impl ParseOptions {
    /// Nesting that any thread's stack can bear.
    pub const HIGHEST_MAX_DEPTH: usize = 512;

    /// For what this program wrote itself. Values that were let in with up to 256 levels stand in records a few
    /// levels deeper; those must be readable again.
    pub fn of_records() -> ParseOptions {
        ParseOptions { max_depth: ParseOptions::HIGHEST_MAX_DEPTH }
    }
}

impl Default for ParseOptions {
    /// 256 levels (http-api.md 4.1).
    fn default() -> ParseOptions {
        ParseOptions { max_depth: 256 }
    }
}

/// Parses one node; anything but white space behind it is an error.
pub fn parse(input: &[u8]) -> Result<Value, ParseError> {
    parse_with(input, ParseOptions::default())
}

/// Parses what this program wrote itself ([`ParseOptions::of_records`]).
pub fn parse_record(input: &[u8]) -> Result<Value, ParseError> {
    parse_with(input, ParseOptions::of_records())
}

/// [`parse`] with limits of one's own.
pub fn parse_with(input: &[u8], options: ParseOptions) -> Result<Value, ParseError> {
    Parser::new(input, options).document().map_err(|f| f.explain(input))
}

/// Parses one node of at most `max_values` values, with those in lists, maps and attributes: a large input is refused
/// before there are more of them.
pub fn parse_bounded(input: &[u8], max_values: usize) -> Result<Value, ParseError> {
    Parser::bounded(input, max_values).document().map_err(|f| f.explain(input))
}

/// Parses items separated by `;`, such as the rows of a table; an empty input is an empty list.
pub fn parse_list_fragment(input: &[u8]) -> Result<Vec<Value>, ParseError> {
    crate::Rows::new(input).collect()
}

/// Parses `key=value` pairs separated by `;`; an empty input is an empty map.
pub fn parse_map_fragment(input: &[u8]) -> Result<Map, ParseError> {
    let mut parser = Parser::new(input, ParseOptions::default());
    parser.pairs(None).map_err(|f| f.explain(input))
}

/// Parses the `<...>` in front of a path and says where it ends; no attributes: an empty map and 0.
pub(crate) fn parse_leading_attributes(input: &[u8]) -> Result<(Map, usize), ParseError> {
    let mut parser = Parser::new(input, ParseOptions::default());
    if parser.cursor.peek_token() != Some(b'<') {
        return Ok((Map::new(), 0));
    }
    parser.cursor.pos += 1;
    let map = parser.pairs(Some(b'>')).map_err(|f| f.explain(input))?;
    Ok((map, parser.cursor.pos))
}

pub(crate) struct Parser<'a> {
    pub cursor: Cursor<'a>,
    /// Levels that may still be opened.
    depth_left: usize,
    max_depth: usize,
    /// Values that may still come.
    values_left: usize,
    max_values: usize,
}

impl<'a> Parser<'a> {
    pub fn new(input: &'a [u8], options: ParseOptions) -> Parser<'a> {
        let max_depth = options.max_depth.min(ParseOptions::HIGHEST_MAX_DEPTH);
        let (values_left, max_values) = (usize::MAX, usize::MAX);
        Parser { cursor: Cursor::new(input), depth_left: max_depth, max_depth, values_left, max_values }
    }

    /// A parser of at most so many values, with those in lists, maps and attributes.
    fn bounded(input: &'a [u8], max_values: usize) -> Parser<'a> {
        Parser { values_left: max_values, max_values, ..Parser::new(input, ParseOptions::default()) }
    }

    fn document(&mut self) -> Result<Value, Fault> {
        let value = self.node()?;
        match self.cursor.peek_token() {
            None => Ok(value),
            Some(_) => Err(Fault::expected(self.cursor.pos, "end of input")),
        }
    }

    fn deeper(&mut self) -> Result<(), Fault> {
        match self.depth_left.checked_sub(1) {
            Some(left) => {
                self.depth_left = left;
                Ok(())
            }
            None => Err(Fault { at: self.cursor.pos - 1, kind: FaultKind::TooDeep(self.max_depth) }),
        }
    }

    /// A value with the attributes in front of it.
    pub fn node(&mut self) -> Result<Value, Fault> {
        let Some(left) = self.values_left.checked_sub(1) else {
            return Err(Fault { at: self.cursor.pos, kind: FaultKind::TooMany(self.max_values) });
        };
        self.values_left = left;
        if self.cursor.peek_token() != Some(b'<') {
            return self.value();
        }
        self.cursor.pos += 1;
        self.deeper()?;
        let attributes = self.pairs(Some(b'>'))?;
        self.depth_left += 1;
        self.cursor.skip_space();
        Ok(self.value()?.with_attributes(attributes))
    }

    /// A value without attributes; the cursor is at its first byte.
    fn value(&mut self) -> Result<Value, Fault> {
        let Some(first) = self.cursor.peek() else {
            return Err(Fault::expected(self.cursor.pos, VALUE));
        };
        match first {
            b'0'..=b'9' | b'-' | b'+' => return self.number(),
            b'%' => return percent(&mut self.cursor),
            b'"' | 0x01 => return self.string(VALUE).map(Value::String),
            _ if is_bare_first(first) => return Ok(Value::String(self.cursor.bare().to_vec())),
            _ => self.cursor.pos += 1,
        }
        match first {
            b'[' => self.list(),
            b'{' => {
                self.deeper()?;
                let map = self.pairs(Some(b'}'))?;
                self.depth_left += 1;
                Ok(Value::Map(map))
            }
            b'#' => Ok(Value::Entity),
            0x02 => self.cursor.zigzag().map(Value::Int),
            0x03 => match self.cursor.take(8) {
                Some(b) => Ok(Value::Double(f64::from_le_bytes(b.try_into().expect("eight bytes")))),
                None => Err(Fault::expected(self.cursor.input.len(), "the 8 bytes of a binary double")),
            },
            0x04 => Ok(Value::Bool(false)),
            0x05 => Ok(Value::Bool(true)),
            0x06 => self.cursor.varint().map(Value::Uint),
            _ => Err(Fault::expected(self.cursor.pos - 1, VALUE)),
        }
    }

    /// Items up to `]`; the `[` is taken.
    fn list(&mut self) -> Result<Value, Fault> {
        self.deeper()?;
        let mut items = Vec::new();
        while self.cursor.peek_token() != Some(b']') {
            items.push(self.node()?);
            match self.cursor.peek_token() {
                Some(b';') => self.cursor.pos += 1,
                Some(b']') => {}
                _ => return Err(Fault::expected(self.cursor.pos, "`;` or `]`")),
            }
        }
        self.cursor.pos += 1;
        self.depth_left += 1;
        Ok(Value::List(items))
    }

    /// `key=value` pairs up to the closing byte, which is taken, or to the end of the input.
    /// A repeated key keeps its place and gets the last value (http-api.md 4.1).
    fn pairs(&mut self, close: Option<u8>) -> Result<Map, Fault> {
        let mut map = Map::new();
        loop {
            if self.cursor.peek_token() == close {
                self.cursor.pos += usize::from(close.is_some());
                return Ok(map);
            }
            let key = self.string(KEY)?;
            self.cursor.skip_space();
            if !self.cursor.eat(b'=') {
                return Err(Fault::expected(self.cursor.pos, "`=` after a key"));
            }
            let value = self.node()?;
            map.insert_owned(key, value);
            let next = self.cursor.peek_token();
            if next == Some(b';') {
                self.cursor.pos += 1;
            } else if next != close {
                let expected = match close {
                    Some(b'}') => "`;` or `}`",
                    Some(_) => "`;` or `>`",
                    None => "`;` or end of input",
                };
                return Err(Fault::expected(self.cursor.pos, expected));
            }
        }
    }

    /// A string in any of its three forms.
    fn string(&mut self, expected: &'static str) -> Result<Bytes, Fault> {
        match self.cursor.peek() {
            Some(0x01) => {
                self.cursor.pos += 1;
                self.cursor.binary_string().map(<[u8]>::to_vec)
            }
            Some(b'"') => quoted(&mut self.cursor),
            Some(b) if is_bare_first(b) => Ok(self.cursor.bare().to_vec()),
            _ => Err(Fault::expected(self.cursor.pos, expected)),
        }
    }

    fn number(&mut self) -> Result<Value, Fault> {
        let start = self.cursor.pos;
        let token = self.cursor.number();
        number(token).map_err(|expected| Fault::token(start, self.cursor.pos, expected))
    }
}

/// `%true` and its kin; the cursor is at the `%`.
pub(crate) fn percent(cursor: &mut Cursor<'_>) -> Result<Value, Fault> {
    let start = cursor.pos;
    // `%`, `+`, `-` and letters are all of the class that is glued to numbers.
    match cursor.number() {
        b"%true" => Ok(Value::Bool(true)),
        b"%false" => Ok(Value::Bool(false)),
        b"%nan" => Ok(Value::Double(f64::NAN)),
        b"%inf" | b"%+inf" => Ok(Value::Double(f64::INFINITY)),
        b"%-inf" => Ok(Value::Double(f64::NEG_INFINITY)),
        _ => Err(Fault::token(start, cursor.pos, "one of `%true`, `%false`, `%nan`, `%inf`, `%-inf`")),
    }
}

/// Reads a whole number token; the error says what would have been right.
pub(crate) fn number(token: &[u8]) -> Result<Value, &'static str> {
    // Nearly all numbers are short, and cannot overflow.
    if token.len() <= 18
        && let Some(short) = token.iter().try_fold(0, |value, digit| match digit {
            b'0'..=b'9' => Some(value * 10 + i64::from(digit - b'0')),
            _ => None,
        })
        && !token.is_empty()
    {
        return Ok(Value::Int(short));
    }
    let (negative, digits) = match token {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, token),
    };
    match digits {
        [] => Err(NUMBER),
        [unsigned @ .., b'u'] if !negative => match decimal(unsigned) {
            Some(u) => Ok(Value::Uint(u)),
            None => Err("a uint64: 0u..18446744073709551615u"),
        },
        _ if digits.iter().all(u8::is_ascii_digit) => {
            let magnitude = decimal(digits).map(i128::from);
            magnitude
                .and_then(|m| i64::try_from(if negative { -m } else { m }).ok())
                .map(Value::Int)
                .ok_or("an int64: -9223372036854775808..9223372036854775807 (a uint64 ends in `u`)")
        }
        // Rust's own grammar of floats is wider than ours ("inf", "nan").
        [b'0'..=b'9' | b'.', ..]
            if digits.iter().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) =>
        {
            let text = std::str::from_utf8(token).expect("ASCII, as was just checked");
            text.parse().map(Value::Double).map_err(|_| NUMBER)
        }
        _ => Err(NUMBER),
    }
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    let mut value = 0u64;
    for b in digits {
        if !b.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(b - b'0'))?;
    }
    Some(value)
}

/// A quoted string; the cursor is at its `"`.
pub(crate) fn quoted(cursor: &mut Cursor<'_>) -> Result<Bytes, Fault> {
    cursor.pos += 1;
    let start = cursor.pos;
    cursor.skip_plain(0);
    let plain = &cursor.input[start..cursor.pos];
    if cursor.eat(b'"') {
        return Ok(plain.to_vec());
    }
    let mut out = plain.to_vec();
    loop {
        let start = cursor.pos;
        cursor.skip_plain(0);
        out.extend_from_slice(&cursor.input[start..cursor.pos]);
        match cursor.peek() {
            Some(b'"') => {
                cursor.pos += 1;
                return Ok(out);
            }
            Some(_) => {
                cursor.pos += 1;
                escape(cursor, &mut out)?;
            }
            None => return Err(Fault::expected(cursor.pos, "the closing `\"` of a string")),
        }
    }
}

/// Adds what stands behind a backslash, as in C; an unknown letter stands for itself.
fn escape(cursor: &mut Cursor<'_>, out: &mut Bytes) -> Result<(), Fault> {
    let Some(letter) = cursor.peek() else {
        return Err(Fault::expected(cursor.pos, "the rest of an escape sequence"));
    };
    cursor.pos += 1;
    out.push(match letter {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'v' => 0x0b,
        b'x' => {
            let mut value = None;
            for _ in 0..2 {
                let Some(digit) = cursor.peek().and_then(|b| (b as char).to_digit(16)) else { break };
                value = Some(value.unwrap_or(0) << 4 | digit as u8);
                cursor.pos += 1;
            }
            value.unwrap_or(b'x')
        }
        b'u' | b'U' => {
            wide(cursor, if letter == b'u' { 4 } else { 8 }, letter, out);
            return Ok(());
        }
        // At most three digits, at most 0o377: `\400` is `\40` and a `0`.
        b'0'..=b'7' => {
            let mut value = letter - b'0';
            let more = if letter <= b'3' { 2 } else { 1 };
            for _ in 0..more {
                let Some(digit @ b'0'..=b'7') = cursor.peek() else { break };
                value = value << 3 | (digit - b'0');
                cursor.pos += 1;
            }
            value
        }
        other => other,
    });
    Ok(())
}

/// A code point of exactly so many hexadecimal digits, as UTF-8; else the letter for itself.
fn wide(cursor: &mut Cursor<'_>, digits: usize, letter: u8, out: &mut Bytes) {
    let hex = cursor.input.get(cursor.pos..cursor.pos + digits);
    let point = hex.and_then(|hex| {
        hex.iter().try_fold(0u32, |value, b| Some(value.checked_mul(16)? + (*b as char).to_digit(16)?))
    });
    match point.and_then(char::from_u32) {
        Some(c) => {
            cursor.pos += digits;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        None => out.push(letter),
    }
}
