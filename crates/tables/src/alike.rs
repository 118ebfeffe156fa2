//! Rows of tables are nearly always alike: the columns of a row before, in its order, and scalars in them. Such a row
//! is taken in one look. Whatever is different in any way is left to the parser, which makes the same bytes of the
//! same row.

use crate::row::{WEIGHT_OF_ANY, value_weight};
use yson::{Style, Value};

/// The wait for the next look doubles with every row that was not alike, up to this: one row of 64 is looked at.
const LONGEST_WAIT: u32 = 63;

/// Rows with more columns, or with more bytes in their names, are for the parser: what is expected stays in memory for
/// as long as rows come.
const MOST_COLUMNS: usize = 1_000;
const MOST_NAME_BYTES: usize = 64 << 10;

/// What a row is expected to look like.
#[derive(Default)]
pub(crate) struct Alike {
    /// Different from each other.
    columns: Vec<Expected>,
    /// How many rows the last miss left to the parser.
    last_wait: u32,
    /// So many of them are still to come.
    wait: u32,
}

struct Expected {
    name: Vec<u8>,
    /// The name and its `=`, in the inner form and in text.
    inner: Vec<u8>,
    text: Vec<u8>,
}

impl Expected {
    fn new(name: &[u8]) -> Self {
        let value = Value::String(name.to_vec());
        let with_equals = |mut bytes: Vec<u8>| {
            bytes.push(b'=');
            bytes
        };
        let (inner, text) = (with_equals(yson::to_binary(&value)), with_equals(yson::to_text(&value)));
        Expected { name: name.to_vec(), inner, text }
    }
}

/// A row that is as expected.
pub(crate) struct Taken {
    /// How many bytes it has in the stream.
    pub used: usize,
    /// What it weighs.
    pub weight: u64,
    /// Those bytes are its inner form; if not, that is in `out`.
    pub as_it_is: bool,
}

impl Alike {
    /// Expects these columns, which are different from each other; nothing is made of them before a look is due.
    pub fn expect<'n>(&mut self, names: impl Iterator<Item = &'n [u8]> + Clone) {
        if self.wait > 0 {
            return;
        }
        self.columns.clear();
        if names.clone().nth(MOST_COLUMNS).is_some()
            || names.clone().map(<[u8]>::len).sum::<usize>() > MOST_NAME_BYTES
        {
            return;
        }
        self.columns.extend(names.map(Expected::new));
    }

    /// Are these columns the expected ones, or the first of them?
    pub fn are<'n>(&self, names: impl Iterator<Item = &'n [u8]>) -> bool {
        names.enumerate().all(|(at, name)| self.columns.get(at).is_some_and(|known| known.name == name))
    }

    /// Takes the row at the beginning of some bytes if it is as expected, and has its end there. What it makes of it
    /// if it must is in `out`.
    pub fn take(&mut self, input: &[u8], out: &mut Vec<u8>) -> Option<Taken> {
        if self.wait > 0 {
            return None;
        }
        out.clear();
        let as_it_is = input.get(1) == Some(&0x01);
        let (rest, weight) = match as_it_is {
            true => self.inner(input),
            false => self.text(input, out),
        }?;
        self.last_wait = 0;
        Some(Taken { used: input.len() - rest.len(), weight, as_it_is })
    }

    /// The parser has taken a whole row.
    pub fn missed(&mut self) {
        if self.wait > 0 {
            self.wait -= 1;
        } else {
            self.last_wait = (2 * self.last_wait + 1).min(LONGEST_WAIT);
            self.wait = self.last_wait;
        }
    }

    /// What is behind the row, and what it weighs.
    fn inner<'a>(&self, input: &'a [u8]) -> Option<(&'a [u8], u64)> {
        let mut weight = WEIGHT_OF_ANY;
        let mut rest = input.strip_prefix(b"{")?;
        for column in &self.columns {
            if rest.first() == Some(&b'}') {
                break;
            }
            rest = rest.strip_prefix(column.inner.as_slice())?;
            let (scalar, behind) = rest.split_at_checked(inner_scalar(rest)?)?;
            weight += value_weight(scalar);
            rest = behind.strip_prefix(b";")?;
        }
        Some((rest.strip_prefix(b"};")?, weight))
    }

    /// The same; what is made of the row is appended to `out`.
    fn text<'a>(&self, input: &'a [u8], out: &mut Vec<u8>) -> Option<(&'a [u8], u64)> {
        let mut weight = WEIGHT_OF_ANY;
        let mut rest = input.strip_prefix(b"{")?;
        out.push(b'{');
        for column in &self.columns {
            if rest.first() == Some(&b'}') {
                break;
            }
            rest = rest.strip_prefix(column.text.as_slice())?;
            out.extend_from_slice(&column.inner);
            let scalar = out.len();
            rest = text_scalar(rest, out)?;
            weight += value_weight(&out[scalar..]);
            out.push(b';');
            rest = match rest {
                [b';', behind @ ..] => behind,
                [b'}', ..] => rest,
                _ => return None,
            };
        }
        rest = rest.strip_prefix(b"};")?;
        out.extend_from_slice(b"};");
        Some((rest, weight))
    }
}

/// Length of a scalar in the form in which it is kept.
fn inner_scalar(bytes: &[u8]) -> Option<usize> {
    let (first, rest) = bytes.split_first()?;
    match first {
        0x01 => {
            let (length, used) = shortest(rest)?;
            // Lengths are zig-zag: odd numbers are negative.
            (length & 1 == 0).then_some(())?;
            usize::try_from(length >> 1).ok()?.checked_add(1 + used)
        }
        0x02 | 0x06 => Some(1 + shortest(rest)?.1),
        0x03 => Some(9),
        0x04 | 0x05 | b'#' => Some(1),
        _ => None,
    }
}

/// A varint of at most 64 bits that could not be shorter, and how many bytes it has.
fn shortest(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            let fits = at < 9 || *byte == 1;
            return (fits && (*byte != 0 || at == 0)).then_some((value, at + 1));
        }
    }
    None
}

/// Copies a scalar of text that needs no closer look; gives what is behind it.
fn text_scalar<'a>(bytes: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    match bytes.first()? {
        b'"' => {
            let body = &bytes[1..];
            let end = memchr::memchr2(b'"', b'\\', body)?;
            let (string, rest) = body.split_at(end);
            let rest = rest.strip_prefix(b"\"")?;
            yson::write::binary_string(string, out);
            Some(rest)
        }
        b'#' => {
            out.push(b'#');
            Some(&bytes[1..])
        }
        _ => short_integer(bytes, out).or_else(|| word(bytes, out)),
    }
}

/// One that cannot overflow.
fn short_integer<'a>(bytes: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    const MOST_DIGITS: usize = 18;
    let mut value = 0i64;
    let mut digits = 0;
    while let Some(digit @ b'0'..=b'9') = bytes.get(digits) {
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
        digits += 1;
    }
    let rest = &bytes[digits..];
    ((1..=MOST_DIGITS).contains(&digits) && matches!(rest.first(), Some(b';' | b'}'))).then_some(())?;
    yson::write::binary_int(value, out);
    Some(rest)
}

/// Any other number, or a word such as `%true`.
fn word<'a>(bytes: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    matches!(bytes.first(), Some(b'0'..=b'9' | b'-' | b'+' | b'%')).then_some(())?;
    let belongs = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'%' | b'-' | b'+' | b'.');
    let length = bytes.iter().take_while(|byte| belongs(byte)).count();
    let (word, rest) = bytes.split_at(length);
    yson::write::write(&yson::parse(word).ok()?, Style::Binary, out);
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expecting(names: &[&[u8]]) -> Alike {
        let mut alike = Alike::default();
        alike.expect(names.iter().copied());
        alike
    }

    /// The spellings of whoever writes much: the client in Python, its own text, and what leaves out the last `;`.
    #[test]
    fn rows_of_other_writers_are_taken() {
        const INNER: &[u8] = b"{\x01\x02a=\x02\x02;\x01\x04id=\x01\x02x;};";
        let mut alike = expecting(&[b"a", b"id"]);
        let mut out = Vec::new();
        let taken = alike.take(INNER, &mut out).expect("it is as expected");
        assert!(taken.as_it_is);
        assert_eq!((taken.used, taken.weight), (INNER.len(), 10));
        for text in [&b"{\"a\"=1;\"id\"=\"x\";};"[..], b"{\"a\"=1;\"id\"=\"x\"};"] {
            let taken = alike.take(text, &mut out).expect("it is as expected");
            assert!(!taken.as_it_is);
            assert_eq!((taken.used, taken.weight), (text.len(), 10));
            assert_eq!(out, INNER);
        }
    }

    /// Looks that find nothing become rare, and each one that finds something makes them frequent again.
    #[test]
    fn looks_become_rare_where_rows_differ() {
        const OTHER: &[u8] = b"{\"b\"=1;};";
        let mut alike = expecting(&[b"a"]);
        let mut looks = Vec::new();
        for row in 0..300 {
            if alike.wait == 0 {
                looks.push(row);
            }
            assert!(alike.take(OTHER, &mut Vec::new()).is_none());
            alike.missed();
        }
        assert_eq!(looks, [0, 2, 6, 14, 30, 62, 126, 190, 254]);
        alike.wait = 0;
        assert!(alike.take(b"{\"a\"=1;};", &mut Vec::new()).is_some());
        alike.missed();
        assert_eq!(alike.wait, 1);
    }

    #[test]
    fn what_is_expected_is_bounded() {
        let names = |count: usize| (0..count).map(|n| n.to_string().into_bytes()).collect::<Vec<_>>();
        let expected = |names: &[Vec<u8>]| {
            let mut alike = expecting(&[b"a"]);
            alike.expect(names.iter().map(Vec::as_slice));
            alike.columns.len()
        };
        assert_eq!(expected(&names(MOST_COLUMNS)), MOST_COLUMNS);
        assert_eq!(expected(&names(MOST_COLUMNS + 1)), 0);
        assert_eq!(expected(&[vec![b'x'; MOST_NAME_BYTES]]), 1);
        assert_eq!(expected(&[vec![b'x'; MOST_NAME_BYTES], b"y".to_vec()]), 0);
    }
}
