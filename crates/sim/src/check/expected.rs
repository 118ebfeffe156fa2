//! Curves that must come out, with tolerances by column and pool.

use super::read::{Rows, read_csv};
use super::{Comparison, SimError};
use std::collections::BTreeMap;
use std::path::Path;
use yson::Map;
use yson::fields::FieldError;

/// See the module page.
pub(super) struct Curves(Rows);

/// How far a column is off.
#[derive(Default)]
struct Worst {
    samples: u64,
    outside: u64,
    difference: f64,
    second: u64,
    tolerance: f64,
}

impl Curves {
    pub fn load(path: &Path) -> Result<Curves, SimError> {
        read_csv(path, "t_s", 1).map(Curves)
    }

    pub fn compare(
        &self,
        found: &Rows,
        tolerances: &Map,
        changes: &[f64],
        ignored: f64,
        max_outside: f64,
    ) -> Result<Vec<Comparison>, FieldError> {
        let counts = |second: u64| {
            let second = second as f64;
            !changes.iter().any(|change| (*change..*change + ignored).contains(&second))
        };
        let mut worst: BTreeMap<(String, String), Worst> = BTreeMap::new();
        let mut missing = 0u64;
        for (second, pools) in self.0.iter().filter(|(second, _)| counts(**second)) {
            for (pool, columns) in pools {
                let Some(row) = found.get(second).and_then(|row| row.get(pool)) else {
                    missing += 1;
                    continue;
                };
                for (column, want) in columns {
                    let Some(tolerance) = tolerance_of(tolerances, column, pool)? else { continue };
                    // What is not there is as far off as can be.
                    let difference = row.get(column).map_or(f64::INFINITY, |got| (got - want).abs());
                    let entry = worst.entry((pool.clone(), column.clone())).or_default();
                    entry.samples += 1;
                    entry.tolerance = tolerance;
                    if difference > tolerance {
                        entry.outside += 1;
                    }
                    if difference > entry.difference {
                        (entry.difference, entry.second) = (difference, *second);
                    }
                }
            }
        }
        let mut out = vec![Comparison {
            what: "expected samples that the run does not have".to_owned(),
            found: missing as f64,
            allowed: "0".to_owned(),
            holds: missing == 0,
        }];
        for ((pool, column), w) in worst {
            let part = w.outside as f64 / w.samples as f64;
            out.push(Comparison {
                what: format!("{pool}: {column}, largest difference (at {} s)", w.second),
                found: w.difference,
                allowed: format!(
                    "{} but for {} % of {} samples",
                    w.tolerance,
                    max_outside * 100.0,
                    w.samples
                ),
                holds: part <= max_outside,
            });
        }
        Ok(out)
    }
}

/// `{"abs": x}` for all pools, or `{POOL: {"abs": x}}`.
fn tolerance_of(tolerances: &Map, column: &str, pool: &str) -> Result<Option<f64>, FieldError> {
    let Some(of_column) = tolerances.get(column) else { return Ok(None) };
    let at = || format!("series_tolerances/{column}");
    let one = match of_column.get("abs") {
        Some(value) => value,
        None => match of_column.get(pool) {
            Some(of_pool) => of_pool.get("abs").ok_or_else(|| {
                FieldError::expected(format!("{}/{pool}", at()), "{\"abs\": number}", of_pool)
            })?,
            None => return Ok(None),
        },
    };
    let number = one.as_f64().filter(|x| *x >= 0.0);
    number.map(Some).ok_or_else(|| FieldError::expected(at(), "a number >= 0", one))
}
