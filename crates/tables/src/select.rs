//! Which rows and columns a path asks for (http-api.md 5.4).

use std::ops;
use vocab::Failure;
use yson::ypath::YPath;
use yson::{Map, Value};

/// Rows from, and up to but without.
pub type Range = ops::Range<u64>;

/// See the module page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// Only these columns; none for all.
    pub columns: Option<Vec<Vec<u8>>>,
    /// Rows, in the order asked for; bounds behind the end of the table are its end.
    pub ranges: Vec<Range>,
}

impl Selection {
    /// What the attributes of a path say, of a table of so many rows.
    pub fn of(path: &YPath, row_count: u64) -> Result<Selection, Failure> {
        let given = |name: &str| path.attributes.get(name).filter(|v| !v.is_entity());
        let wrong = |name: &str, expected: &str, found: &Value| {
            let found = found.type_name();
            Failure::new(format!("Attribute \"{name}\" of the path must be {expected}, found {found}"))
        };
        let columns = match given("columns") {
            None => None,
            Some(value) => {
                let expected = "a list of strings";
                let list = value.as_list().ok_or_else(|| wrong("columns", expected, value))?;
                let own = |v: &Value| v.as_bytes().map(<[u8]>::to_vec);
                let names = list.iter().map(|v| own(v).ok_or_else(|| wrong("columns", expected, v)));
                Some(names.collect::<Result<_, _>>()?)
            }
        };
        for name in ["rename_columns"] {
            if given(name).is_some() {
                return Err(Failure::new(format!("Attribute \"{name}\" of the path is not supported")));
            }
        }
        let ranges = match given("ranges") {
            Some(value) => {
                let expected = "a list of maps";
                let list = value.as_list().ok_or_else(|| wrong("ranges", expected, value))?;
                let of = |v: &Value| {
                    let map = v.as_map().ok_or_else(|| wrong("ranges", expected, v))?;
                    range(map, row_count)
                };
                list.iter().map(of).collect::<Result<_, _>>()?
            }
            None => vec![range(&path.attributes, row_count)?],
        };
        Ok(Selection { columns, ranges })
    }

    /// Rows of all ranges together.
    pub fn row_count(&self) -> u64 {
        self.ranges.iter().map(|r| r.end - r.start).sum()
    }
}

fn range(map: &Map, row_count: u64) -> Result<Range, Failure> {
    let limit = |name: &str| match map.get(name).filter(|v| !v.is_entity()) {
        Some(value) => row_index(name, value),
        None => Ok(None),
    };
    let (lower, upper) = match limit("exact")? {
        Some(index) => (index, index.saturating_add(1)),
        None => (limit("lower_limit")?.unwrap_or(0), limit("upper_limit")?.unwrap_or(u64::MAX)),
    };
    let lower = lower.min(row_count);
    Ok(lower..upper.clamp(lower, row_count))
}

fn row_index(name: &str, limit: &Value) -> Result<Option<u64>, Failure> {
    let Some(map) = limit.as_map() else {
        let found = limit.type_name();
        return Err(Failure::new(format!("Attribute \"{name}\" of a range must be a map, found {found}")));
    };
    let mut found = None;
    for (key, value) in map.iter() {
        if key != b"row_index" {
            return Err(Failure::new(format!(
                "Attribute \"{name}\" of a range must be {{row_index=...}}: limits by \"{}\" are not supported",
                key.escape_ascii()
            )));
        }
        let index = value.as_u64().ok_or_else(|| {
            let shown = yson::write::to_text_string(value);
            Failure::new(format!("\"row_index\" of \"{name}\" must be a non-negative integer, found {shown}"))
        })?;
        found = Some(index);
    }
    Ok(found)
}
