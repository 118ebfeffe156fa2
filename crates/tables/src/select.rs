//! Which rows and columns a path asks for (http-api.md 5.4).

use crate::Columns;
use std::ops;
use vocab::Failure;
use yson::ypath::YPath;
use yson::{Map, Value};

/// Rows from, and up to but without.
pub type Range = ops::Range<u64>;

/// See the module page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// Which columns, and under which names.
    pub columns: Columns,
    /// Rows, in the order asked for; bounds behind the end of the table are its end.
    pub ranges: Vec<Range>,
}

/// What a range may say.
const LIMITS: [&str; 3] = ["lower_limit", "upper_limit", "exact"];
/// More ranges in one path are refused: each is looked for in all chunks of the table.
const MAX_RANGES: usize = 1000;

impl Selection {
    /// What the attributes of a path say, of a table of so many rows.
    pub fn of(path: &YPath, row_count: u64) -> Result<Selection, Failure> {
        let ranges = Selection::ranges(path, row_count).map_err(|failure| about(path, failure))?;
        Ok(Selection { columns: Columns::of(path)?, ranges })
    }

    fn ranges(path: &YPath, row_count: u64) -> Result<Vec<Range>, Failure> {
        let given = |name: &str| path.attributes.get(name).filter(|v| !v.is_entity());
        let wrong = |name: &str, expected: &str, found: &Value| {
            let found = found.type_name();
            Failure::new(format!("Attribute \"{name}\" of the path must be {expected}, found {found}"))
        };
        match given("ranges") {
            Some(value) => {
                if let Some(name) = LIMITS.iter().find(|name| given(name).is_some()) {
                    return Err(Failure::new(format!(
                        "Attributes \"ranges\" and \"{name}\" of the path contradict each other: only one of them may be \
                         given"
                    )));
                }
                let expected = "a list of maps";
                let list = value.as_list().ok_or_else(|| wrong("ranges", expected, value))?;
                if list.len() > MAX_RANGES {
                    let found = list.len();
                    return Err(Failure::new(format!(
                        "Attribute \"ranges\" of the path must have at most {MAX_RANGES} items, found {found}"
                    )));
                }
                let of = |v: &Value| {
                    let map = v.as_map().ok_or_else(|| wrong("ranges", expected, v))?;
                    // A word that is not understood would stand for the whole table.
                    if let Some(odd) = map.key_strings().find(|key| !LIMITS.contains(&key.as_str())) {
                        let known = LIMITS.join(", ");
                        return Err(Failure::new(format!(
                            "Unknown key {odd:?} in a range: expected one of {known}"
                        )));
                    }
                    range(map, row_count)
                };
                list.iter().map(of).collect()
            }
            None => Ok(vec![range(&path.attributes, row_count)?]),
        }
    }

    /// Is it a table of so many rows as it is?
    pub fn is_whole(&self, row_count: u64) -> bool {
        self.columns.is_all() && self.ranges.len() == 1 && self.row_count() == row_count
    }

    /// For paths that are written: a table is written, or appended to, as a whole.
    pub fn refuse_ranges(path: &YPath) -> Result<(), Failure> {
        let given = |name: &&&str| path.attributes.get(name).is_some_and(|value| !value.is_entity());
        match ["ranges"].iter().chain(&LIMITS).find(given) {
            None => Ok(()),
            Some(name) => Err(Failure::new(format!(
                "Attribute \"{name}\" of path {path} is not allowed: rows replace the whole table, or are appended with \
                 \"append\""
            ))
            .with("path", path.text())),
        }
    }

    /// The rows of a table of so many that no range names, in order.
    pub fn outside(&self, row_count: u64) -> Vec<Range> {
        let mut named = self.ranges.clone();
        named.sort_by_key(|range| range.start);
        let mut left = Vec::new();
        let mut next = 0;
        for range in named.into_iter().chain(std::iter::once(row_count..row_count)) {
            if range.start > next {
                left.push(next..range.start);
            }
            next = next.max(range.end);
        }
        left
    }

    /// Rows of all ranges together.
    pub fn row_count(&self) -> u64 {
        self.ranges.iter().map(|r| r.end - r.start).sum()
    }
}

/// A failure of what a path says, with the path: an operation has many.
pub fn about(path: &YPath, failure: Failure) -> Failure {
    let path = path.text();
    Failure { message: format!("{path}: {}", failure.message), ..failure }.with("path", path)
}

fn range(map: &Map, row_count: u64) -> Result<Range, Failure> {
    let limit = |name: &str| match map.get(name).filter(|v| !v.is_entity()) {
        Some(value) => row_index(name, value),
        None => Ok(None),
    };
    let (lower, upper) = match limit("exact")? {
        Some(_) if limit("lower_limit")?.or(limit("upper_limit")?).is_some() => {
            let message = "A range has either \"exact\", or \"lower_limit\" and \"upper_limit\", not both";
            return Err(Failure::new(message));
        }
        Some(index) => (index, index.saturating_add(1)),
        // Without a row it would stand for the whole table.
        None if map.get("exact").is_some_and(|exact| !exact.is_entity()) => {
            return Err(Failure::new("Attribute \"exact\" of a range must be {row_index=...}, found {}"));
        }
        None => (limit("lower_limit")?.unwrap_or(0), limit("upper_limit")?.unwrap_or(u64::MAX)),
    };
    let lower = lower.min(row_count);
    Ok(lower..upper.clamp(lower, row_count))
}

fn row_index(name: &str, limit: &Value) -> Result<Option<u64>, Failure> {
    let Some(map) = limit.as_map() else {
        let found = shown(limit);
        return Err(Failure::new(format!("Attribute \"{name}\" of a range must be a map, found {found}")));
    };
    let mut found = None;
    for (key, value) in map.iter() {
        if key != b"row_index" {
            return Err(Failure::new(format!(
                "Attribute \"{name}\" of a range must be {{row_index=...}}: limits by \"{}\" are not supported, \
                 found {}",
                key.escape_ascii(),
                shown(limit)
            )));
        }
        let index = value.as_u64().ok_or_else(|| {
            let shown = shown(value);
            Failure::new(format!("\"row_index\" of \"{name}\" must be a non-negative integer, found {shown}"))
        })?;
        found = Some(index);
    }
    Ok(found)
}

/// A key may be long.
fn shown(value: &Value) -> String {
    yson::write::to_text_string(value).chars().take(100).collect()
}
