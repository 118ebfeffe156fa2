//! YSON out, in the three styles of http-api.md 4.2.
//!
//! The bytes are those of the reference implementation: people `grep` pretty output, and tests
//! compare text with that of the Python client.

use crate::number::{write_digits, write_i64, write_u64};
use crate::{Map, Value};

/// One of the three forms of output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Style {
    /// One line, everything quoted, `;` after each item.
    #[default]
    Text,
    /// Indented by four spaces; for people.
    Pretty,
    /// Binary scalars between the same punctuation.
    Binary,
}

impl Style {
    /// The name used in a format description: `text`, `pretty`, `binary`.
    pub fn name(self) -> &'static str {
        match self {
            Style::Text => "text",
            Style::Pretty => "pretty",
            Style::Binary => "binary",
        }
    }
}

/// The value as one line of text.
pub fn to_text(value: &Value) -> Vec<u8> {
    to_vec(value, Style::Text)
}

/// The value indented for people.
pub fn to_pretty(value: &Value) -> Vec<u8> {
    to_vec(value, Style::Pretty)
}

/// The value in binary.
pub fn to_binary(value: &Value) -> Vec<u8> {
    to_vec(value, Style::Binary)
}

fn to_vec(value: &Value, style: Style) -> Vec<u8> {
    let mut out = Vec::new();
    write(value, style, &mut out);
    out
}

/// Appends a value in a style.
pub fn write(value: &Value, style: Style, out: &mut Vec<u8>) {
    Writer { style, out, indent: 0 }.node(value);
}

/// Appends one item of a list fragment: text and pretty rows end with `;` and a line feed, binary
/// ones with `;`.
pub fn write_row(row: &Value, style: Style, out: &mut Vec<u8>) {
    write(row, style, out);
    end_item(style, out);
}

/// Appends the pairs of a map without its braces.
pub fn write_map_fragment(map: &Map, style: Style, out: &mut Vec<u8>) {
    for (key, value) in map.iter() {
        let mut writer = Writer { style, out, indent: 0 };
        writer.pair(key, value);
        end_item(style, out);
    }
}

pub(crate) fn end_item(style: Style, out: &mut Vec<u8>) {
    out.extend_from_slice(if style == Style::Binary { b";" } else { b";\n" });
}

/// Text of a value without line feeds, for messages and logs; it is ASCII whatever is in the strings.
pub fn to_text_string(value: &Value) -> String {
    String::from_utf8(to_text(value)).expect("text style is ASCII")
}

struct Writer<'a> {
    style: Style,
    out: &'a mut Vec<u8>,
    indent: usize,
}

impl Writer<'_> {
    fn node(&mut self, value: &Value) {
        match value {
            Value::Attributed(b) => {
                self.map(&b.0, b'<', b'>');
                if self.style == Style::Pretty {
                    self.out.push(b' ');
                }
                self.node(&b.1);
            }
            Value::Map(map) => self.map(map, b'{', b'}'),
            Value::List(items) => self.list(items),
            Value::Entity => self.out.push(b'#'),
            scalar if self.style == Style::Binary => binary_scalar(scalar, self.out),
            scalar => text_scalar(scalar, self.out),
        }
    }

    fn map(&mut self, map: &Map, open: u8, close: u8) {
        self.out.push(open);
        if !map.is_empty() {
            self.indent += 1;
            for (key, value) in map.iter() {
                self.line();
                self.pair(key, value);
                self.out.push(b';');
            }
            self.indent -= 1;
            self.line();
        }
        self.out.push(close);
    }

    fn list(&mut self, items: &[Value]) {
        self.out.push(b'[');
        if !items.is_empty() {
            self.indent += 1;
            for item in items {
                self.line();
                self.node(item);
                self.out.push(b';');
            }
            self.indent -= 1;
            self.line();
        }
        self.out.push(b']');
    }

    fn pair(&mut self, key: &[u8], value: &Value) {
        match self.style {
            Style::Binary => binary_string(key, self.out),
            _ => text_string(key, self.out),
        }
        self.out.extend_from_slice(if self.style == Style::Pretty { b" = " } else { b"=" });
        self.node(value);
    }

    /// Begins a line, where lines matter.
    fn line(&mut self) {
        if self.style == Style::Pretty {
            self.out.push(b'\n');
            self.out.resize(self.out.len() + 4 * self.indent, b' ');
        }
    }
}

pub(crate) fn text_scalar(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(true) => out.extend_from_slice(b"%true"),
        Value::Bool(false) => out.extend_from_slice(b"%false"),
        Value::Int(i) => write_i64(*i, out),
        Value::Uint(u) => {
            write_u64(*u, out);
            out.push(b'u');
        }
        Value::Double(d) => double(*d, out),
        Value::String(s) => text_string(s, out),
        _ => unreachable!("not a scalar"),
    }
}

pub(crate) fn binary_scalar(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(false) => out.push(0x04),
        Value::Bool(true) => out.push(0x05),
        Value::Int(i) => binary_int(*i, out),
        Value::Uint(u) => {
            out.push(0x06);
            varint(*u, out);
        }
        Value::Double(d) => {
            out.push(0x03);
            out.extend_from_slice(&d.to_le_bytes());
        }
        Value::String(s) => binary_string(s, out),
        _ => unreachable!("not a scalar"),
    }
}

/// Appends a string in binary.
pub fn binary_string(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(0x01);
    varint(zigzag(bytes.len() as i64), out);
    out.extend_from_slice(bytes);
}

/// Appends an integer in binary.
pub fn binary_int(i: i64, out: &mut Vec<u8>) {
    out.push(0x02);
    varint(zigzag(i), out);
}

fn zigzag(i: i64) -> u64 {
    (i << 1 ^ i >> 63) as u64
}

fn varint(mut u: u64, out: &mut Vec<u8>) {
    while u >= 0x80 {
        out.push(u as u8 | 0x80);
        u >>= 7;
    }
    out.push(u as u8);
}

/// A double that can be told from an integer: it has a point, an exponent or a name.
fn double(d: f64, out: &mut Vec<u8>) {
    if d.is_nan() {
        out.extend_from_slice(b"%nan");
    } else if d.is_infinite() {
        out.extend_from_slice(if d > 0.0 { b"%inf" } else { b"%-inf" });
    } else {
        write_digits(d, b".", out);
    }
}

/// Does a byte stand for itself between quotes?
fn is_plain(byte: &u8) -> bool {
    // No branch in it, so that the compiler looks at many bytes at once.
    (0x20..0x7f).contains(byte) & (*byte != b'"') & (*byte != b'\\')
}

/// Bytes at the beginning that stand for themselves. Many at a time: strings are most of the bytes of most documents.
fn plain_bytes(bytes: &[u8]) -> usize {
    let (chunks, _) = bytes.as_chunks::<32>();
    let all_plain = |chunk: &&[u8; 32]| chunk.iter().fold(true, |all, byte| all & is_plain(byte));
    let looked_at = 32 * chunks.iter().take_while(all_plain).count();
    looked_at + bytes[looked_at..].iter().take_while(|byte| is_plain(byte)).count()
}

/// Appends a string in quotes; everything outside printable ASCII is escaped, so that text survives terminals.
pub fn text_string(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut rest = bytes;
    loop {
        let (plain, odd) = rest.split_at(plain_bytes(rest));
        out.extend_from_slice(plain);
        let Some((first, behind)) = odd.split_first() else { break };
        escaped(*first, behind.first().copied(), out);
        rest = behind;
    }
    out.push(b'"');
}

/// One escaped byte. The form depends on what follows: `\1` before a digit would swallow it.
fn escaped(byte: u8, next: Option<u8>, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0..=7 if !next.is_some_and(|n| matches!(n, b'0'..=b'7')) => byte + b'0',
        _ if !next.is_some_and(|n| n.is_ascii_hexdigit()) => {
            out.extend_from_slice(&[b'\\', b'x', HEX[byte as usize >> 4], HEX[byte as usize & 15]]);
            return;
        }
        _ => {
            out.extend_from_slice(&[b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}
