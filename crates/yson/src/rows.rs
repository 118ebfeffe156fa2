//! Rows of a list fragment, one at a time: tables are not held as one big list.

use crate::Value;
use crate::error::{Fault, ParseError};
use crate::parse::{ParseOptions, Parser};

/// Iterator over the items of a list fragment (http-api.md 4.1, 4.4).
///
/// Control rows (`<table_index=1>#`) come as what they are: entities with attributes. After an
/// error the iterator is finished.
pub struct Rows<'a> {
    parser: Parser<'a>,
    failed: bool,
}

impl<'a> Rows<'a> {
    /// Starts at the beginning of a fragment.
    pub fn new(input: &'a [u8]) -> Rows<'a> {
        Rows::with_options(input, ParseOptions::default())
    }

    /// [`Rows::new`] with limits of one's own; the depth is that of one row.
    pub fn with_options(input: &'a [u8], options: ParseOptions) -> Rows<'a> {
        Rows { parser: Parser::new(input, options), failed: false }
    }

    /// Bytes consumed so far.
    pub fn offset(&self) -> usize {
        self.parser.cursor.pos
    }

    fn row(&mut self) -> Result<Value, Fault> {
        let row = self.parser.node()?;
        match self.parser.cursor.peek_token() {
            Some(b';') => self.parser.cursor.pos += 1,
            None => {}
            Some(_) => {
                return Err(Fault::expected(self.parser.cursor.pos, "`;` between rows or end of input"));
            }
        }
        Ok(row)
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Value, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.parser.cursor.peek_token().is_none() {
            return None;
        }
        let row = self.row().map_err(|f| f.explain(self.parser.cursor.input));
        self.failed = row.is_err();
        Some(row)
    }
}
