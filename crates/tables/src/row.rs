//! Rows in their inner form, looked at without making values of them.
//!
//! The functions trust the form: it comes from [`crate::Intake`] or from a checksummed block. Bytes of
//! another form give fewer columns, never a panic.

use yson::Value;

/// A row and what it weighs: most rows of a stream are weighed while they are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row<'r> {
    /// Its inner form, with its `;`.
    pub bytes: &'r [u8],
    pub(crate) weight: u64,
}

impl<'r> Row<'r> {
    /// Weighs it now.
    pub fn new(bytes: &'r [u8]) -> Self {
        Row { bytes, weight: weight(bytes) }
    }
}

/// Columns of a row, in its order: name, and value in binary YSON.
pub fn columns(row: &[u8]) -> Columns<'_> {
    let rest = row.strip_prefix(b"{").unwrap_or_default();
    Columns { rest }
}

/// See [`columns`].
#[derive(Clone)]
pub struct Columns<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Columns<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (name, rest) = string(self.rest)?;
        let rest = rest.strip_prefix(b"=")?;
        let length = value_length(rest)?;
        let (value, rest) = rest.split_at(length);
        self.rest = rest.strip_prefix(b";")?;
        Some((name, value))
    }
}

/// The value of a column; the last one if the row repeats it.
pub fn column<'a>(row: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    columns(row).filter(|(n, _)| *n == name).last().map(|(_, value)| value)
}

/// The value of a column; what is not there is null.
pub fn value(row: &[u8], name: &[u8]) -> Value {
    column(row, name).map_or(Value::Entity, decode)
}

/// Rows of a block: each with its `;`.
pub fn rows(block: &[u8]) -> Rows<'_> {
    Rows { rest: block }
}

/// See [`rows`].
pub struct Rows<'a> {
    rest: &'a [u8],
}

impl<'a> Rows<'a> {
    /// What has not been given yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let length = value_length(self.rest)?;
        if self.rest.get(length) != Some(&b';') {
            return None;
        }
        let (row, rest) = self.rest.split_at(length + 1);
        self.rest = rest;
        Some(row)
    }
}

/// What a row weighs: bytes of strings, 8 for numbers, 1 for Booleans, encoded bytes of anything nested,
/// and 1 for the row.
pub fn weight(row: &[u8]) -> u64 {
    WEIGHT_OF_ANY + columns(row).map(|(_, value)| value_weight(value)).sum::<u64>()
}

/// What a row weighs beside its columns.
pub(crate) const WEIGHT_OF_ANY: u64 = 1;

/// What a scalar or anything nested weighs in a row.
#[inline]
pub(crate) fn value_weight(value: &[u8]) -> u64 {
    match value.first() {
        Some(0x01) => string(value).map_or(0, |(s, _)| s.len() as u64),
        Some(0x02 | 0x03 | 0x06) => 8,
        Some(0x04 | 0x05) => 1,
        Some(b'#') | None => 0,
        Some(_) => value.len() as u64,
    }
}

/// Is it a row, not one of the marks between rows (`<table_index=1>#`)?
pub fn is_row(item: &[u8]) -> bool {
    item.first() == Some(&b'{')
}

/// A value that was written by this crate.
pub(crate) fn decode(value: &[u8]) -> Value {
    yson::parse(value).unwrap_or_default()
}

/// A string at the beginning of some bytes, and what is behind it.
#[inline]
pub(crate) fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = bytes.strip_prefix(&[0x01])?;
    let (length, used) = varint(rest)?;
    // Lengths are zig-zag: even numbers are not negative.
    let length = usize::try_from(length >> 1).ok()?;
    rest[used..].split_at_checked(length)
}

#[inline]
pub(crate) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    // Nearly all lengths are short.
    match bytes.first() {
        Some(byte) if byte & 0x80 == 0 => Some((u64::from(*byte), 1)),
        _ => long_varint(bytes),
    }
}

fn long_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

/// Length of the value at the beginning of some bytes, attributes included.
#[inline]
pub(crate) fn value_length(bytes: &[u8]) -> Option<usize> {
    match scalar_length(bytes)? {
        0 => nested_length(bytes),
        length => Some(length),
    }
}

/// Length of a scalar without attributes; 0 for anything else.
#[inline]
fn scalar_length(bytes: &[u8]) -> Option<usize> {
    match *bytes.first()? {
        0x01 => Some(bytes.len() - string(bytes)?.1.len()),
        0x02 | 0x06 => Some(1 + varint(&bytes[1..])?.1),
        0x03 => (bytes.len() >= 9).then_some(9),
        0x04 | 0x05 | b'#' => Some(1),
        _ => Some(0),
    }
}

fn nested_length(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    let mut depth = 0usize;
    loop {
        let rest = &bytes[at..];
        let scalar = scalar_length(rest)?;
        let mut whole = true;
        match rest[0] {
            _ if scalar > 0 => at += scalar,
            b'{' | b'[' | b'<' => {
                depth += 1;
                at += 1;
                whole = false;
            }
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                at += 1;
            }
            // The value itself is still to come.
            b'>' => {
                depth = depth.checked_sub(1)?;
                at += 1;
                whole = false;
            }
            b'=' | b';' => {
                at += 1;
                whole = false;
            }
            _ => return None,
        }
        if whole && depth == 0 {
            return Some(at);
        }
    }
}
