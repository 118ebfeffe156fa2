//! Strings of JSON: bytes or text, see `encode_utf8`.

use crate::Bytes;
use crate::error::Fault;
use crate::scan::Cursor;

/// Writes a string; false if something had to be replaced.
pub(super) fn write(bytes: &[u8], encode_utf8: bool, out: &mut Vec<u8>) -> bool {
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut exact = true;
    if encode_utf8 {
        latin(bytes, out);
    } else {
        for chunk in bytes.utf8_chunks() {
            escape(chunk.valid().as_bytes(), out);
            if !chunk.invalid().is_empty() {
                out.extend_from_slice("\u{fffd}".as_bytes());
                exact = false;
            }
        }
    }
    out.push(b'"');
    exact
}

fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Each byte as the code point of its number.
fn latin(mut bytes: &[u8], out: &mut Vec<u8>) {
    while let Some(ascii) = bytes.iter().position(|b| *b >= 0x80) {
        escape(&bytes[..ascii], out);
        let byte = bytes[ascii];
        out.extend_from_slice(&[0xc0 | byte >> 6, 0x80 | byte & 0x3f]);
        bytes = &bytes[ascii + 1..];
    }
    escape(bytes, out);
}

fn escape(mut bytes: &[u8], out: &mut Vec<u8>) {
    while let Some(plain) = bytes.iter().position(|b| needs_escape(*b)) {
        out.extend_from_slice(&bytes[..plain]);
        let byte = bytes[plain];
        let letter = match byte {
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            b'"' | b'\\' => byte,
            _ => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[byte as usize >> 4], HEX[byte as usize & 15]]);
                bytes = &bytes[plain + 1..];
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
        bytes = &bytes[plain + 1..];
    }
    out.extend_from_slice(bytes);
}

/// The first `limit` bytes, less a character of UTF-8 that would be cut in two.
pub(super) fn cut(bytes: &[u8], limit: usize, encode_utf8: bool) -> &[u8] {
    if encode_utf8 {
        return &bytes[..limit];
    }
    // A character has at most four bytes: look back over at most three continuations.
    let mut end = limit;
    while end > 0 && limit - end < 3 && bytes[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    &bytes[..end]
}

/// Reads a string; the cursor is at its opening quote.
pub(super) fn read(cursor: &mut Cursor<'_>, encode_utf8: bool) -> Result<Bytes, Fault> {
    cursor.pos += 1;
    let mut out = Bytes::new();
    loop {
        let start = cursor.pos;
        cursor.skip_plain(0x20);
        let run = &cursor.input[start..cursor.pos];
        if run.is_ascii() {
            out.extend_from_slice(run);
        } else {
            wide_run(run, start, encode_utf8, &mut out)?;
        }
        match cursor.peek() {
            Some(b'"') => {
                cursor.pos += 1;
                return Ok(out);
            }
            Some(b'\\') => {
                let at = cursor.pos;
                let c = unescape(cursor)?;
                push(c, at, cursor.pos, encode_utf8, &mut out)?;
            }
            Some(_) => return Err(Fault::expected(cursor.pos, "no raw control characters in a string")),
            None => return Err(Fault::expected(cursor.pos, "the closing `\"` of a string")),
        }
    }
}

fn wide_run(run: &[u8], start: usize, encode_utf8: bool, out: &mut Bytes) -> Result<(), Fault> {
    let text = std::str::from_utf8(run).map_err(|e| {
        let at = start + e.valid_up_to();
        Fault::token(at, at + 1, "UTF-8")
    })?;
    if !encode_utf8 {
        out.extend_from_slice(run);
        return Ok(());
    }
    for (at, c) in text.char_indices() {
        push(c, start + at, start + at + c.len_utf8(), true, out)?;
    }
    Ok(())
}

fn push(c: char, start: usize, end: usize, encode_utf8: bool, out: &mut Bytes) -> Result<(), Fault> {
    if encode_utf8 {
        let byte = u8::try_from(u32::from(c)).map_err(|_| {
            Fault::token(start, end, "a code point below 256 (the format has encode_utf8=%true)")
        })?;
        out.push(byte);
    } else {
        let mut scratch = [0; 4];
        out.extend_from_slice(c.encode_utf8(&mut scratch).as_bytes());
    }
    Ok(())
}

/// An escape sequence; the cursor is at its backslash.
fn unescape(cursor: &mut Cursor<'_>) -> Result<char, Fault> {
    const EXPECTED: &str = r#"one of the escapes \" \\ \/ \b \f \n \r \t \uXXXX"#;
    let start = cursor.pos;
    cursor.pos += 1;
    let letter = cursor.peek();
    cursor.pos += usize::from(letter.is_some());
    let bad = |cursor: &Cursor<'_>| Fault::token(start, cursor.pos, EXPECTED);
    Ok(match letter {
        Some(c @ (b'"' | b'\\' | b'/')) => c as char,
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => {
            let first = hex4(cursor).ok_or_else(|| bad(cursor))?;
            let code = if (0xd800..0xdc00).contains(&first) {
                let pair = cursor.take(2) == Some(b"\\u");
                let second = if pair { hex4(cursor) } else { None };
                match second {
                    Some(low @ 0xdc00..0xe000) => 0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00),
                    _ => return Err(Fault::token(start, cursor.pos, "a whole surrogate pair")),
                }
            } else {
                first
            };
            char::from_u32(code).ok_or_else(|| Fault::token(start, cursor.pos, "a whole surrogate pair"))?
        }
        _ => return Err(bad(cursor)),
    })
}

fn hex4(cursor: &mut Cursor<'_>) -> Option<u32> {
    let mut value = 0;
    for digit in cursor.take(4)? {
        value = value * 16 + (*digit as char).to_digit(16)?;
    }
    Some(value)
}
