//! YPath: the language of addresses in the tree (http-api.md 5).
//!
//! [`YPath::parse`] reads text, [`YPath::from_value`] a path parameter (a string, perhaps with
//! attributes). A path is syntax only: whether `end` means a child of that name or the end of a
//! list depends on the node it meets, see [`Step::key`].

mod literal;
mod parse;
mod print;
mod suffix;

pub use literal::escape_literal;

use crate::{Bytes, Map, ParseError, Value};
use std::borrow::Cow;
use std::fmt;

/// Longest key, in bytes (http-api.md 5.1).
pub const MAX_KEY_LENGTH: usize = 4096;

/// Most steps of a path: none leads further than a tree and the values in it may be deep, and what walks or
/// makes them recurses that far.
pub const MAX_STEPS: usize = 256;

/// A parsed path.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct YPath {
    /// Attributes in front of the path; a suffix (`{a,b}`, `[#1:#2]`) adds `columns` and `ranges`.
    pub attributes: Map,
    /// Where the walk begins.
    pub root: Root,
    /// The walk.
    pub steps: Vec<Step>,
}

/// Where a path begins.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Root {
    /// `/`: the root of the tree.
    #[default]
    Tree,
    /// `#guid`: an object by its id, given without the `#` and as it was written.
    Object(String),
}

/// One step of a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// `/key`: a child by key, or by index in a list ([`Step::index`]).
    Child(Bytes),
    /// `/@name`: an attribute; later steps walk inside its value.
    Attribute(Bytes),
    /// `/@` at the end: the map of all attributes.
    AllAttributes,
    /// `&`: the link itself instead of its target.
    NoFollow,
    /// `/begin`: in front of the first item of a list. On a map: the child of that name.
    ListBegin,
    /// `/end`: behind the last item of a list. On a map: the child of that name.
    ListEnd,
    /// `/before:3`: in front of an item of a list. On a map: the child of that name.
    ListBefore(i64),
    /// `/after:3`: behind an item of a list. On a map: the child of that name.
    ListAfter(i64),
    /// `/*` at the end: all children.
    AllChildren,
    /// `/@*` at the end: all user attributes.
    AllUserAttributes,
}

impl Step {
    /// The key this step means on a map node.
    ///
    /// `//tmp/end` is a list position by syntax only: a map may have a child called `end`. Whoever
    /// walks a map must ask this instead of matching on [`Step::Child`].
    pub fn key(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Step::Child(key) => Some(Cow::Borrowed(key)),
            Step::ListBegin => Some(Cow::Borrowed(b"begin")),
            Step::ListEnd => Some(Cow::Borrowed(b"end")),
            Step::ListBefore(i) => Some(Cow::Owned(format!("before:{i}").into_bytes())),
            Step::ListAfter(i) => Some(Cow::Owned(format!("after:{i}").into_bytes())),
            _ => None,
        }
    }

    /// The index this step means on a list; negative ones count from the end.
    pub fn index(&self) -> Option<i64> {
        match self {
            Step::Child(key) => literal::index(key),
            _ => None,
        }
    }
}

impl YPath {
    /// The root of the tree.
    pub fn root() -> YPath {
        YPath::default()
    }

    /// Parses `[<attributes>] root {step} [suffix]`.
    pub fn parse(text: &[u8]) -> Result<YPath, YPathError> {
        parse::parse(text)
    }

    /// Takes a path parameter: a string whose YSON attributes are those of the path; attributes in
    /// the text itself win (http-api.md 2.4, 5.4).
    pub fn from_value(value: &Value) -> Result<YPath, YPathError> {
        let Some(text) = value.as_bytes() else {
            return Err(YPathError::NotAString { found: value.type_name() });
        };
        let inner = YPath::parse(text)?;
        let mut path = YPath { attributes: value.attributes().cloned().unwrap_or_default(), ..inner };
        for (key, value) in inner.attributes {
            path.attributes.insert_owned(key, value);
        }
        Ok(path)
    }

    /// The path as a parameter: canonical text with YSON attributes.
    pub fn to_value(&self) -> Value {
        Value::from(self.text()).with_attributes(self.attributes.clone())
    }

    /// Canonical text without attributes.
    pub fn text(&self) -> String {
        print::text(self)
    }

    /// The path with one more child step.
    pub fn child(mut self, key: impl AsRef<[u8]>) -> YPath {
        self.steps.push(Step::Child(key.as_ref().to_vec()));
        self
    }

    /// The path with one more attribute step.
    pub fn attribute(mut self, name: impl AsRef<[u8]>) -> YPath {
        self.steps.push(Step::Attribute(name.as_ref().to_vec()));
        self
    }

    /// Is this the root of the tree itself?
    pub fn is_root(&self) -> bool {
        self.root == Root::Tree && self.steps.is_empty()
    }
}

/// Canonical form, attributes included; parses back to the same path.
impl fmt::Display for YPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print::write(self, f)
    }
}

impl std::str::FromStr for YPath {
    type Err = YPathError;
    fn from_str(text: &str) -> Result<YPath, YPathError> {
        YPath::parse(text.as_bytes())
    }
}

/// Why a path is no path.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum YPathError {
    /// The grammar was left.
    #[error("cannot parse path \"{path}\": expected {}, found {} at offset {}", error.expected, error.found, error.offset)]
    Syntax {
        /// The text, escaped for printing.
        path: String,
        /// Where and what.
        error: ParseError,
    },
    /// A key is too long.
    #[error(
        "cannot parse path: a key has {length} bytes at offset {offset}, at most {MAX_KEY_LENGTH} are allowed"
    )]
    KeyTooLong {
        /// Length of the key.
        length: usize,
        /// Where it begins.
        offset: usize,
    },
    /// A walk that is too long.
    #[error("cannot parse path: more than {MAX_STEPS} steps at offset {offset}")]
    TooManySteps {
        /// Where the first step too many begins.
        offset: usize,
    },
    /// A path parameter that is no string.
    #[error("a path must be a string, found {found}")]
    NotAString {
        /// Type of the value.
        found: &'static str,
    },
}
