//! Boolean formulas over node tags: `nodes_filter` of a tree, `scheduling_tag_filter` of a pool or
//! an operation (scheduling.md 8.4, 18).
//!
//! Grammar: names, `%true`, `%false`, `!`, `&`, `|`, parentheses; `&` binds tighter than `|`. The
//! empty formula is true.

use std::collections::BTreeSet;
use std::fmt;

/// Nesting that a formula may have; deeper ones are refused instead of overflowing the stack.
const MAX_DEPTH: usize = 64;

/// A parsed formula with the text it was made of.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TagFilter {
    text: String,
    node: Option<Box<Node>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Constant(bool),
    Tag(String),
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
}

impl TagFilter {
    /// Parses a formula; the error says where and what was expected.
    pub fn parse(text: &str) -> Result<TagFilter, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(TagFilter::default());
        }
        let mut parser = Parser { text: text.as_bytes(), at: 0, depth: 0 };
        let node = parser.or()?;
        parser.skip_space();
        if parser.at < parser.text.len() {
            return Err(parser.error("\"&\", \"|\" or the end"));
        }
        Ok(TagFilter { text: text.to_owned(), node: Some(Box::new(node)) })
    }

    /// No formula: every node matches.
    pub fn is_empty(&self) -> bool {
        self.node.is_none()
    }

    /// The formula as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Does a node with these tags satisfy the formula?
    pub fn matches(&self, tags: &BTreeSet<String>) -> bool {
        self.node.as_ref().is_none_or(|n| n.matches(tags))
    }
}

impl fmt::Display for TagFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Node {
    fn matches(&self, tags: &BTreeSet<String>) -> bool {
        match self {
            Node::Constant(b) => *b,
            Node::Tag(t) => tags.contains(t),
            Node::Not(n) => !n.matches(tags),
            Node::And(all) => all.iter().all(|n| n.matches(tags)),
            Node::Or(any) => any.iter().any(|n| n.matches(tags)),
        }
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn error(&self, expected: &str) -> String {
        let found = match self.text.get(self.at) {
            Some(b) => format!("\"{}\"", b.escape_ascii()),
            None => "the end".to_owned(),
        };
        format!("expected {expected}, found {found} at offset {}", self.at)
    }

    fn skip_space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.skip_space();
        let hit = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(hit);
        hit
    }

    fn or(&mut self) -> Result<Node, String> {
        self.chain(b'|', Parser::and, Node::Or)
    }

    fn and(&mut self) -> Result<Node, String> {
        self.chain(b'&', Parser::unary, Node::And)
    }

    fn chain(
        &mut self,
        operator: u8,
        mut operand: impl FnMut(&mut Self) -> Result<Node, String>,
        join: impl Fn(Vec<Node>) -> Node,
    ) -> Result<Node, String> {
        let first = operand(self)?;
        let mut all = vec![first];
        while self.eat(operator) {
            all.push(operand(self)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { join(all) })
    }

    fn unary(&mut self) -> Result<Node, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("nesting deeper than {MAX_DEPTH} at offset {}", self.at));
        }
        let node = if self.eat(b'!') {
            Node::Not(Box::new(self.unary()?))
        } else if self.eat(b'(') {
            let inner = self.or()?;
            if !self.eat(b')') {
                return Err(self.error("\"&\", \"|\" or \")\""));
            }
            inner
        } else {
            self.name()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn name(&mut self) -> Result<Node, String> {
        let start = self.at;
        while self.text.get(self.at).is_some_and(|b| b.is_ascii_alphanumeric() || b"-_./:%@".contains(b)) {
            self.at += 1;
        }
        let name = String::from_utf8_lossy(&self.text[start..self.at]).into_owned();
        match name.as_str() {
            "" => Err(self.error("a tag, \"!\" or \"(\"")),
            "%true" => Ok(Node::Constant(true)),
            "%false" => Ok(Node::Constant(false)),
            _ if name.contains('%') => {
                self.at = start;
                Err(self.error("a tag, %true or %false"))
            }
            _ => Ok(Node::Tag(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truth_tables() {
        let tags = ["a", "b"].map(str::to_owned).into();
        for (formula, expected) in [
            ("", true),
            ("a", true),
            ("c", false),
            ("!c", true),
            ("a&c", false),
            ("a & (c | b)", true),
            ("c | a & b", true),
            ("!(a|c) | %false", false),
            ("!!a", true),
            ("%true", true),
        ] {
            let filter = TagFilter::parse(formula).unwrap_or_else(|e| panic!("{formula}: {e}"));
            assert_eq!(filter.matches(&tags), expected, "{formula}");
            assert_eq!(TagFilter::parse(filter.as_str()), Ok(filter));
        }
    }

    #[test]
    fn mistakes_are_located() {
        for (formula, expected) in [
            ("a &", "expected a tag, \"!\" or \"(\", found the end at offset 3"),
            ("(a", "expected \"&\", \"|\" or \")\", found the end at offset 2"),
            ("a b", "expected \"&\", \"|\" or the end, found \"b\" at offset 2"),
            ("%maybe", "expected a tag, %true or %false, found \"%\" at offset 0"),
        ] {
            assert_eq!(TagFilter::parse(formula), Err(expected.to_owned()), "{formula}");
        }
        assert!(TagFilter::parse(&"!".repeat(100_000)).is_err());
    }
}
