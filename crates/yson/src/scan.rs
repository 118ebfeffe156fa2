//! Byte classes and the cursor: the part of parsing that must be fast.

use crate::error::{Fault, FaultKind};

/// White space between tokens, as C's `isspace` has it.
const SPACE: u8 = 1;
const BARE_FIRST: u8 = 2;
const BARE: u8 = 4;
/// Everything that may be glued to a number; what does not belong there makes it a bad number.
const NUMBER: u8 = 8;

/// One look-up instead of a chain of comparisons per byte.
static CLASS: [u8; 256] = {
    let mut table = [0u8; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        if matches!(b, b' ' | b'\t'..=b'\r') {
            table[i] |= SPACE;
        }
        if b.is_ascii_alphabetic() || b == b'_' {
            table[i] |= BARE_FIRST | BARE | NUMBER;
        }
        if b.is_ascii_digit() {
            table[i] |= BARE | NUMBER;
        }
        if matches!(b, b'-' | b'.' | b'%') {
            table[i] |= BARE | NUMBER;
        }
        if b == b'+' {
            table[i] |= NUMBER;
        }
        i += 1;
    }
    table
};

/// Is it white space between tokens? That of YSON, and of JSON as it is read here.
pub fn is_space(byte: u8) -> bool {
    is(byte, SPACE)
}

fn is(byte: u8, class: u8) -> bool {
    CLASS[byte as usize] & class != 0
}

/// May a bare (unquoted) string start with this byte? (http-api.md 4.1)
pub(crate) fn is_bare_first(byte: u8) -> bool {
    is(byte, BARE_FIRST)
}

/// Position in an input.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    pub input: &'a [u8],
    pub pos: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(input: &'a [u8]) -> Cursor<'a> {
        Cursor { input, pos: 0 }
    }

    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.input.get(self.pos).copied()
    }

    /// Takes one byte if it is the given one.
    #[inline]
    pub fn eat(&mut self, byte: u8) -> bool {
        let hit = self.peek() == Some(byte);
        self.pos += usize::from(hit);
        hit
    }

    #[inline]
    pub fn skip_space(&mut self) {
        while let Some(b) = self.peek()
            && is(b, SPACE)
        {
            self.pos += 1;
        }
    }

    /// First byte after white space, not taken.
    #[inline]
    pub fn peek_token(&mut self) -> Option<u8> {
        self.skip_space();
        self.peek()
    }

    fn take_class(&mut self, class: u8) -> &'a [u8] {
        let rest = &self.input[self.pos..];
        let length = rest.iter().position(|b| !is(*b, class)).unwrap_or(rest.len());
        self.pos += length;
        &rest[..length]
    }

    /// A bare string; the caller has seen that its first byte may start one.
    pub fn bare(&mut self) -> &'a [u8] {
        self.take_class(BARE)
    }

    /// A number with whatever is glued to it.
    pub fn number(&mut self) -> &'a [u8] {
        self.take_class(NUMBER)
    }

    /// Exactly `n` bytes.
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let bytes = self.input.get(self.pos..self.pos.checked_add(n)?)?;
        self.pos += n;
        Some(bytes)
    }

    /// Little-endian base-128 number of at most 64 bits.
    pub fn varint(&mut self) -> Result<u64, Fault> {
        let start = self.pos;
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let Some(b) = self.peek() else {
                return Err(Fault::expected(self.pos, "the next byte of a varint"));
            };
            // The tenth byte has room for one bit only.
            if shift == 63 && b > 1 {
                break;
            }
            self.pos += 1;
            value |= u64::from(b & 0x7f) << shift;
            if b & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Fault::expected(start, "a varint of at most 64 bits"))
    }

    /// Signed number: 0, -1, 1, -2, ... are 0, 1, 2, 3, ...
    pub fn zigzag(&mut self) -> Result<i64, Fault> {
        self.varint().map(|u| (u >> 1) as i64 ^ -((u & 1) as i64))
    }

    /// Body of a binary string, behind its marker. The length is checked against what is there
    /// before anything is allocated.
    pub fn binary_string(&mut self) -> Result<&'a [u8], Fault> {
        let at = self.pos;
        let length = self.zigzag()?;
        let left = self.input.len() - self.pos;
        match u64::try_from(length) {
            Err(_) => Err(Fault { at, kind: FaultKind::NegativeLength(length) }),
            Ok(n) if n > left as u64 => Err(Fault { at, kind: FaultKind::StringLength { length: n, left } }),
            Ok(n) => {
                let start = self.pos;
                self.pos += n as usize;
                Ok(&self.input[start..self.pos])
            }
        }
    }

    /// Moves to the next `"`, `\` (or control character below `below`), or to the end.
    ///
    /// Eight bytes at a time: strings are most of the bytes of most documents.
    pub fn skip_plain(&mut self, below: u8) {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        // High bit of each byte that is zero; may also mark bytes above a true hit, which is
        // harmless as the lowest mark is exact.
        let zeros = |x: u64| x.wrapping_sub(ONES) & !x & HIGH;
        let rest = &self.input[self.pos..];
        let mut at = 0;
        for chunk in rest.chunks_exact(8) {
            let word = u64::from_le_bytes(chunk.try_into().expect("chunks of eight"));
            let control = word.wrapping_sub(ONES * u64::from(below)) & !word & HIGH;
            let hits =
                zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\'))) | control;
            if hits != 0 {
                self.pos += at + (hits.trailing_zeros() / 8) as usize;
                return;
            }
            at += 8;
        }
        let tail = &rest[at..];
        let more = tail.iter().position(|b| *b == b'"' || *b == b'\\' || *b < below);
        self.pos += at + more.unwrap_or(tail.len());
    }
}
