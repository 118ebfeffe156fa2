//! An option on its way from the map to a variable: present or not, checked or not.

use super::FieldError;
use crate::Value;
use std::fmt::Debug;
use std::ops::{Bound, RangeBounds};

/// The result of a `take_*`: say whether it may be missing to get the value.
#[derive(Debug)]
#[must_use = "choose one of required(), optional(), or()"]
pub struct Taken<T> {
    path: String,
    expected: &'static str,
    state: Result<Option<T>, FieldError>,
    /// The value found, for messages of later checks.
    found: Option<Value>,
}

impl<T> Taken<T> {
    pub(super) fn new(path: String, expected: &'static str, found: Option<(Option<T>, &Value)>) -> Taken<T> {
        match found {
            None => Taken { path, expected, state: Ok(None), found: None },
            Some((Some(converted), value)) => {
                // Only scalars are ever shown by value.
                let found = match value.bare() {
                    Value::List(_) => Value::List(Vec::new()),
                    Value::Map(_) => Value::Map(crate::Map::new()),
                    scalar => scalar.clone(),
                };
                Taken { path, expected, state: Ok(Some(converted)), found: Some(found) }
            }
            Some((None, value)) => {
                let state = Err(FieldError::expected(path.as_str(), expected, value));
                Taken { path, expected, state, found: None }
            }
        }
    }

    /// Missing is fine.
    pub fn optional(self) -> Result<Option<T>, FieldError> {
        self.state
    }

    /// Missing means this.
    pub fn or(self, default: T) -> Result<T, FieldError> {
        self.state.map(|v| v.unwrap_or(default))
    }

    /// Missing means what this makes.
    pub fn or_else(self, default: impl FnOnce() -> T) -> Result<T, FieldError> {
        self.state.map(|v| v.unwrap_or_else(default))
    }

    /// Missing is an error.
    pub fn required(self) -> Result<T, FieldError> {
        let Taken { path, expected, state, .. } = self;
        state?.ok_or_else(|| FieldError::new(path, &format!("required, expected {expected}")))
    }

    /// Leaves the variable alone if missing.
    pub fn into(self, place: &mut T) -> Result<(), FieldError> {
        if let Some(value) = self.state? {
            *place = value;
        }
        Ok(())
    }

    /// A check of one's own; `expected` tells what would have passed.
    pub fn check(mut self, expected: &str, good: impl FnOnce(&T) -> bool) -> Taken<T> {
        if let (Ok(Some(value)), Some(found)) = (&self.state, &self.found)
            && !good(value)
        {
            self.state = Err(FieldError::expected(self.path.as_str(), expected, found));
        }
        self
    }

    /// Converts the value, if there is one.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Taken<U> {
        let state = self.state.map(|v| v.map(convert));
        Taken { path: self.path, expected: self.expected, state, found: self.found }
    }
}

impl<T: PartialOrd + Debug> Taken<T> {
    /// A range check: `expected int64 in 1..=100, found -5`.
    pub fn within(self, range: impl Bounds<T>) -> Taken<T> {
        let kind = self.expected.split(' ').next().unwrap_or(self.expected);
        let expected = format!("{kind} {}", describe(&range));
        self.check(&expected, |v| range.contains(v))
    }
}

/// Any of Rust's ranges.
pub trait Bounds<T>: RangeBounds<T> {}
impl<T, R: RangeBounds<T>> Bounds<T> for R {}

fn describe<T: Debug>(range: &impl RangeBounds<T>) -> String {
    match (range.start_bound(), range.end_bound()) {
        (Bound::Included(a), Bound::Included(b)) => format!("in {a:?}..={b:?}"),
        (Bound::Included(a), Bound::Excluded(b)) => format!("in {a:?}..{b:?} (the end excluded)"),
        (Bound::Included(a), Bound::Unbounded) => format!("of at least {a:?}"),
        (Bound::Excluded(a), Bound::Unbounded) => format!("greater than {a:?}"),
        (Bound::Unbounded, Bound::Included(b)) => format!("of at most {b:?}"),
        (Bound::Unbounded, Bound::Excluded(b)) => format!("less than {b:?}"),
        (Bound::Unbounded, Bound::Unbounded) => "of any size".to_owned(),
        (Bound::Excluded(a), Bound::Included(b)) => format!("greater than {a:?} and at most {b:?}"),
        (Bound::Excluded(a), Bound::Excluded(b)) => format!("greater than {a:?} and less than {b:?}"),
    }
}
