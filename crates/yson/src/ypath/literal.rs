//! Literals: keys and attribute names with their escapes.

use super::Step;
use crate::Bytes;
use crate::error::Fault;
use crate::scan::Cursor;

/// Bytes with a meaning of their own, escaped by a backslash (http-api.md 5.1).
pub(super) fn is_special(byte: u8) -> bool {
    matches!(byte, b'\\' | b'/' | b'@' | b'&' | b'[' | b'{' | b'*')
}

/// The bytes as they are written inside a path: special characters behind `\`, bytes outside
/// printable ASCII as `\xHH`.
pub fn escape_literal(bytes: impl AsRef<[u8]>) -> String {
    let mut out = String::new();
    for byte in bytes.as_ref() {
        push_escaped(*byte, &mut out);
    }
    out
}

pub(super) fn push_escaped(byte: u8, out: &mut String) {
    match byte {
        b' '..=b'~' => {
            if is_special(byte) {
                out.push('\\');
            }
            out.push(byte as char);
        }
        _ => push_hex(byte, out),
    }
}

pub(super) fn push_hex(byte: u8, out: &mut String) {
    out.push_str("\\x");
    for digit in [byte >> 4, byte & 15] {
        out.push(char::from_digit(u32::from(digit), 16).expect("four bits"));
    }
}

/// A decoded literal and whether it was written without escapes.
pub(super) struct Literal {
    pub bytes: Bytes,
    pub plain: bool,
}

/// Reads a literal, possibly empty, up to the next special character.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Literal, Fault> {
    let mut bytes = Bytes::new();
    let mut plain = true;
    while let Some(b) = cursor.peek() {
        let start = cursor.pos;
        if b == b'\\' {
            plain = false;
            cursor.pos += 1;
            bytes.push(escape(cursor).ok_or_else(|| {
                let end = (cursor.pos + 1).min(cursor.input.len());
                Fault::token(start, end, "an escape: `\\` and one of `\\/@&[{*`, or `\\xHH`")
            })?);
        } else if matches!(b, b'@' | b'*') && !bytes.is_empty() {
            return Err(Fault::token(
                start,
                start + 1,
                "no unescaped `@` or `*` inside a key (write `\\@`, `\\*`)",
            ));
        } else if is_special(b) {
            break;
        } else {
            bytes.push(b);
            cursor.pos += 1;
        }
    }
    Ok(Literal { bytes, plain })
}

fn escape(cursor: &mut Cursor<'_>) -> Option<u8> {
    let b = cursor.peek()?;
    if is_special(b) {
        cursor.pos += 1;
        return Some(b);
    }
    if b != b'x' {
        return None;
    }
    let hex = cursor.input.get(cursor.pos + 1..cursor.pos + 3)?;
    let mut value = 0;
    for digit in hex {
        value = value * 16 + (*digit as char).to_digit(16)?;
    }
    cursor.pos += 3;
    u8::try_from(value).ok()
}

/// The list position that a plain literal is by its looks.
pub(super) fn list_position(literal: &[u8]) -> Option<Step> {
    match literal {
        b"begin" => Some(Step::ListBegin),
        b"end" => Some(Step::ListEnd),
        _ => {
            if let Some(i) = literal.strip_prefix(b"before:") {
                index(i).map(Step::ListBefore)
            } else {
                index(literal.strip_prefix(b"after:")?).map(Step::ListAfter)
            }
        }
    }
}

/// A canonical decimal number: `007` and `+7` are keys, not indices.
pub(super) fn index(literal: &[u8]) -> Option<i64> {
    let digits = literal.strip_prefix(b"-").unwrap_or(literal);
    let canonical = match digits {
        [] => false,
        [b'0', rest @ ..] => rest.is_empty() && digits.len() == literal.len(),
        _ => digits.iter().all(u8::is_ascii_digit),
    };
    if !canonical {
        return None;
    }
    std::str::from_utf8(literal).ok()?.parse().ok()
}
