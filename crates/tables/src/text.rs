//! Rows in text: straight from their inner form, with no parser and no values between.

use crate::row::{string, value_length, varint};
use yson::{Copied, Style, Value};

/// Appends the row at the beginning of some bytes; gives how many of them it takes. None, and nothing appended, if that
/// is not a whole row.
pub(crate) fn print(rows: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let start = out.len();
    let rest = row(rows, out);
    if rest.is_none() {
        out.truncate(start);
    }
    Some(rows.len() - rest?.len())
}

fn row<'a>(rows: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let mut rest = rows.strip_prefix(b"{")?;
    out.push(b'{');
    while rest.first() != Some(&b'}') {
        let (name, behind) = string(rest)?;
        yson::write::text_string(name, out);
        out.push(b'=');
        rest = value(behind.strip_prefix(b"=")?, out)?.strip_prefix(b";")?;
        out.push(b';');
    }
    rest = rest.strip_prefix(b"};")?;
    out.extend_from_slice(b"};\n");
    Some(rest)
}

/// Gives what is behind the value.
fn value<'a>(bytes: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (first, rest) = bytes.split_first()?;
    let (scalar, rest) = match first {
        0x01 => {
            let (bytes, rest) = string(bytes)?;
            yson::write::text_string(bytes, out);
            return Some(rest);
        }
        0x02 => {
            let (zigzag, used) = varint(rest)?;
            (Value::Int((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)), &rest[used..])
        }
        0x03 => {
            let (bytes, rest) = rest.split_first_chunk()?;
            (Value::Double(f64::from_le_bytes(*bytes)), rest)
        }
        0x04 => (Value::Bool(false), rest),
        0x05 => (Value::Bool(true), rest),
        0x06 => {
            let (number, used) = varint(rest)?;
            (Value::Uint(number), &rest[used..])
        }
        b'#' => (Value::Entity, rest),
        _ => return nested(bytes, out),
    };
    yson::write::write(&scalar, Style::Text, out);
    Some(rest)
}

fn nested<'a>(bytes: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    let (value, rest) = bytes.split_at(value_length(bytes)?);
    let Ok(Copied::Row(_)) = yson::copy_row(value, true, Style::Text, out) else { return None };
    // It is no row of its own.
    out.truncate(out.len() - b";\n".len());
    Some(rest)
}
