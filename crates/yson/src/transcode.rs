//! Rows from any mix of YSON forms into one, without making values of them: what tables are written and
//! read with, a gigabyte at a time.

use crate::error::{Fault, FaultKind, ParseError};
use crate::parse::{ParseOptions, number, quoted};
use crate::scan::{Cursor, is_bare_first};
use crate::write::{Style, binary_scalar, binary_string, text_scalar, text_string};
use crate::{Value, write};

/// What [`copy_row`] has found at the beginning of a piece of a list fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Copied {
    /// A row, copied; so many bytes of the input are used up.
    Row(usize),
    /// Nothing but white space is left.
    End,
    /// A row that goes on behind the end of the piece; nothing has been copied.
    Cut,
}

/// Copies the first row of a piece of a list fragment, in text or binary form. `last` says that nothing
/// comes behind the piece: a row that is not whole is an error then.
///
/// Repeated keys are copied as they are: the last one wins for whoever reads the row.
pub fn copy_row(input: &[u8], last: bool, style: Style, out: &mut Vec<u8>) -> Result<Copied, ParseError> {
    let start = out.len();
    let depth_left = ParseOptions::default().max_depth;
    let mut copy = Copier { cursor: Cursor::new(input), out, text: style != Style::Binary, depth_left };
    if copy.cursor.peek_token().is_none() {
        return Ok(Copied::End);
    }
    match copy.row(last) {
        Ok(true) => {
            let used = copy.cursor.pos;
            write::end_item(style, out);
            Ok(Copied::Row(used))
        }
        Ok(false) => {
            out.truncate(start);
            Ok(Copied::Cut)
        }
        Err(fault) => {
            let reached = copy.cursor.pos;
            out.truncate(start);
            if !last && may_be_cut(&fault, reached, input.len()) {
                return Ok(Copied::Cut);
            }
            Err(fault.explain(input))
        }
    }
}

/// Longer than any token that is no string: a fault so near to the end may only be that of the cut.
const LONGEST_TOKEN: usize = 64;

fn may_be_cut(fault: &Fault, reached: usize, length: usize) -> bool {
    match fault.kind {
        FaultKind::TooDeep(_) | FaultKind::TooMany(_) | FaultKind::NegativeLength(_) => false,
        FaultKind::StringLength { .. } => true,
        FaultKind::Expected(_) | FaultKind::Token { .. } => {
            reached == length || fault.at + LONGEST_TOKEN >= length
        }
    }
}

struct Copier<'a, 'o> {
    cursor: Cursor<'a>,
    out: &'o mut Vec<u8>,
    text: bool,
    depth_left: usize,
}

impl Copier<'_, '_> {
    /// False if the row may go on behind the piece.
    fn row(&mut self, last: bool) -> Result<bool, Fault> {
        self.node()?;
        match self.cursor.peek_token() {
            Some(b';') => {
                self.cursor.pos += 1;
                Ok(true)
            }
            None => Ok(last),
            Some(_) => Err(Fault::expected(self.cursor.pos, "`;` between rows or end of input")),
        }
    }

    fn deeper(&mut self) -> Result<(), Fault> {
        match self.depth_left.checked_sub(1) {
            Some(left) => {
                self.depth_left = left;
                Ok(())
            }
            None => {
                let limit = ParseOptions::default().max_depth;
                Err(Fault { at: self.cursor.pos - 1, kind: FaultKind::TooDeep(limit) })
            }
        }
    }

    fn node(&mut self) -> Result<(), Fault> {
        if self.cursor.peek_token() == Some(b'<') {
            self.pairs(b'>')?;
            self.cursor.skip_space();
        }
        self.value()
    }

    fn value(&mut self) -> Result<(), Fault> {
        const VALUE: &str = "a value";
        let Some(first) = self.cursor.peek() else {
            return Err(Fault::expected(self.cursor.pos, VALUE));
        };
        match first {
            b'0'..=b'9' | b'-' | b'+' => {
                let start = self.cursor.pos;
                let token = self.cursor.number();
                let value = number(token).map_err(|e| Fault::token(start, self.cursor.pos, e))?;
                self.scalar(&value);
            }
            b'%' => {
                let value = crate::parse::percent(&mut self.cursor)?;
                self.scalar(&value);
            }
            b'"' | 0x01 => self.string(VALUE)?,
            _ if is_bare_first(first) => self.string(VALUE)?,
            b'[' => self.list()?,
            b'{' => self.pairs(b'}')?,
            _ => {
                self.cursor.pos += 1;
                let value = match first {
                    b'#' => {
                        self.out.push(b'#');
                        return Ok(());
                    }
                    0x02 => Value::Int(self.cursor.zigzag()?),
                    0x03 => match self.cursor.take(8) {
                        Some(b) => Value::Double(f64::from_le_bytes(b.try_into().expect("eight bytes"))),
                        None => {
                            let end = self.cursor.input.len();
                            return Err(Fault::expected(end, "the 8 bytes of a binary double"));
                        }
                    },
                    0x04 => Value::Bool(false),
                    0x05 => Value::Bool(true),
                    0x06 => Value::Uint(self.cursor.varint()?),
                    _ => return Err(Fault::expected(self.cursor.pos - 1, VALUE)),
                };
                self.scalar(&value);
            }
        }
        Ok(())
    }

    fn list(&mut self) -> Result<(), Fault> {
        self.cursor.pos += 1;
        self.deeper()?;
        self.out.push(b'[');
        while self.cursor.peek_token() != Some(b']') {
            self.node()?;
            self.out.push(b';');
            match self.cursor.peek_token() {
                Some(b';') => self.cursor.pos += 1,
                Some(b']') => {}
                _ => return Err(Fault::expected(self.cursor.pos, "`;` or `]`")),
            }
        }
        self.cursor.pos += 1;
        self.out.push(b']');
        self.depth_left += 1;
        Ok(())
    }

    /// The cursor is at the opening bracket.
    fn pairs(&mut self, close: u8) -> Result<(), Fault> {
        self.out.push(self.cursor.input[self.cursor.pos]);
        self.cursor.pos += 1;
        self.deeper()?;
        while self.cursor.peek_token() != Some(close) {
            self.string("a key")?;
            self.cursor.skip_space();
            if !self.cursor.eat(b'=') {
                return Err(Fault::expected(self.cursor.pos, "`=` after a key"));
            }
            self.out.push(b'=');
            self.node()?;
            self.out.push(b';');
            let next = self.cursor.peek_token();
            if next == Some(b';') {
                self.cursor.pos += 1;
            } else if next != Some(close) {
                let expected = if close == b'}' { "`;` or `}`" } else { "`;` or `>`" };
                return Err(Fault::expected(self.cursor.pos, expected));
            }
        }
        self.cursor.pos += 1;
        self.out.push(close);
        self.depth_left += 1;
        Ok(())
    }

    /// A string in any of its three forms.
    fn string(&mut self, expected: &'static str) -> Result<(), Fault> {
        match self.cursor.peek() {
            Some(0x01) => {
                self.cursor.pos += 1;
                let bytes = self.cursor.binary_string()?;
                self.put(bytes);
            }
            Some(b'"') => {
                let start = self.cursor.pos + 1;
                let mut plain = Cursor { pos: start, ..self.cursor };
                plain.skip_plain(0);
                if plain.peek() == Some(b'"') {
                    let bytes = &self.cursor.input[start..plain.pos];
                    self.cursor.pos = plain.pos + 1;
                    self.put(bytes);
                } else {
                    let bytes = quoted(&mut self.cursor)?;
                    self.put(&bytes);
                }
            }
            Some(b) if is_bare_first(b) => {
                let bytes = self.cursor.bare();
                self.put(bytes);
            }
            _ => return Err(Fault::expected(self.cursor.pos, expected)),
        }
        Ok(())
    }

    fn put(&mut self, string: &[u8]) {
        if self.text { text_string(string, self.out) } else { binary_string(string, self.out) }
    }

    fn scalar(&mut self, value: &Value) {
        if self.text { text_scalar(value, self.out) } else { binary_scalar(value, self.out) }
    }
}
