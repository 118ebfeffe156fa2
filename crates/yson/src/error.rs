//! What a parser says when it gives up: where, what it found, what it would have taken.

use std::fmt;

/// A syntax error of any textual or binary form in this crate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// Byte offset in the input, from 0; equal to the input's length when it ended too early.
    pub offset: usize,
    /// Line and column, where they mean something: not behind binary scalars.
    pub position: Option<Position>,
    /// What is there, in words or in quotes.
    pub found: String,
    /// What would have been accepted there.
    pub expected: String,
}

/// Place in a text; both numbers from 1, columns in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// Line number.
    pub line: usize,
    /// Byte within the line.
    pub column: usize,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, found {} at offset {}", self.expected, self.found, self.offset)?;
        match self.position {
            Some(p) => write!(f, " (line {}, column {})", p.line, p.column),
            None => Ok(()),
        }
    }
}
impl std::error::Error for ParseError {}

/// The parsers' own error: small, and without words until somebody reads it.
///
/// Parsers return results of this at every step; the full [`ParseError`] is built once, at the
/// boundary, where the input is at hand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub at: usize,
    pub kind: FaultKind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum FaultKind {
    /// The byte (or the end) at `at` is none of these.
    Expected(&'static str),
    /// The `len` bytes at `at` are a token that is none of these.
    Token { len: usize, expected: &'static str },
    /// A binary string claims more bytes than there are.
    StringLength { length: u64, left: usize },
    /// A binary string's length is negative.
    NegativeLength(i64),
    /// Nesting beyond the limit.
    TooDeep(usize),
    /// More values than the limit.
    TooMany(usize),
}

impl Fault {
    pub fn expected(at: usize, expected: &'static str) -> Fault {
        Fault { at, kind: FaultKind::Expected(expected) }
    }

    pub fn token(start: usize, end: usize, expected: &'static str) -> Fault {
        Fault { at: start, kind: FaultKind::Token { len: end - start, expected } }
    }

    #[cold]
    pub fn explain(self, input: &[u8]) -> ParseError {
        let (found, expected) = match self.kind {
            FaultKind::Expected(e) => (describe(input.get(self.at).copied()), e.to_owned()),
            FaultKind::Token { len, expected } => {
                (quote(&input[self.at..self.at + len]), expected.to_owned())
            }
            FaultKind::StringLength { length, left } => {
                (format!("length {length}"), format!("a string within the {left} bytes that are left"))
            }
            FaultKind::NegativeLength(length) => {
                (format!("length {length}"), "a string length of at least 0".to_owned())
            }
            FaultKind::TooMany(limit) => ("one more".to_owned(), format!("at most {limit} values")),
            FaultKind::TooDeep(limit) => {
                ("a deeper one".to_owned(), format!("at most {limit} levels of nesting"))
            }
        };
        ParseError { offset: self.at, position: position(input, self.at), found, expected }
    }
}

/// Line and column of an offset; none if binary scalars come before it.
fn position(input: &[u8], offset: usize) -> Option<Position> {
    let before = &input[..offset.min(input.len())];
    if before.iter().any(|b| (1..=6).contains(b)) {
        return None;
    }
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |p| p + 1);
    Some(Position { line, column: offset - start + 1 })
}

fn describe(byte: Option<u8>) -> String {
    match byte {
        None => "end of input".to_owned(),
        Some(b @ b' '..=b'~') => format!("`{}`", b as char),
        Some(b) => format!("byte 0x{b:02x}"),
    }
}

/// Up to 40 bytes of a token, in quotes.
pub(crate) fn quote(token: &[u8]) -> String {
    const LIMIT: usize = 40;
    let cut = &token[..token.len().min(LIMIT)];
    let dots = if token.len() > LIMIT { "..." } else { "" };
    format!("`{}{dots}`", cut.escape_ascii())
}
