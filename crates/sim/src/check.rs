//! Is a run what was expected? `checks.json` against the files of the run (simulator.md 12).

mod expected;
mod metric;
mod read;

use crate::error::SimError;
use expected::Curves;
use read::Rows;
use std::path::Path;
use yson::fields::{FieldError, Fields};
use yson::{Map, Value};

/// One comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// What is compared.
    pub what: String,
    /// What the run has.
    pub found: f64,
    /// What it may be.
    pub allowed: String,
    /// It is.
    pub holds: bool,
}

/// What a run looks like, from its directory.
struct Run {
    summary: Value,
    pools: Rows,
}

/// What must be so of every run: no invariant of the core was violated in it.
pub fn invariants(folder: &Path) -> Result<Vec<Comparison>, SimError> {
    Ok(vec![violations(&crate::scenario::read_value(&folder.join("summary.json"))?)])
}

fn violations(summary: &Value) -> Comparison {
    let found = summary.get("violations").and_then(Value::as_list).map_or(0, |list| list.len());
    let what = "violated invariants (looked for with --check-invariants)".to_owned();
    Comparison { what, found: found as f64, allowed: "0".to_owned(), holds: found == 0 }
}

/// Compares a run with its checks. `folder` is the directory of the run.
pub fn check(folder: &Path, checks: &Path) -> Result<Vec<Comparison>, SimError> {
    let document = crate::scenario::read_value(checks)?;
    let run = Run {
        summary: crate::scenario::read_value(&folder.join("summary.json"))?,
        pools: read::pools(folder)?,
    };
    let map = document.as_map().ok_or_else(|| SimError::file(checks, "expected a JSON object"))?;
    let mut fields = Fields::new(map, "");
    let mut out = vec![violations(&run.summary)];
    let read = compare(&mut fields, &run, checks, &mut out);
    match read {
        Err(Wrong::Field(error)) => return Err(SimError::field(checks, None, error)),
        Err(Wrong::File(error)) => return Err(error),
        Ok(()) => {}
    }
    fields.finish().map_err(|e| SimError::field(checks, None, e))?;
    Ok(out)
}

enum Wrong {
    Field(FieldError),
    File(SimError),
}

impl From<FieldError> for Wrong {
    fn from(error: FieldError) -> Wrong {
        Wrong::Field(error)
    }
}

fn compare(f: &mut Fields<'_>, run: &Run, path: &Path, out: &mut Vec<Comparison>) -> Result<(), Wrong> {
    let series = f.take_str("expected_series").optional()?.map(str::to_owned);
    let ignored = f.take_f64("ignore_seconds_after_change").within(0.0..=1e9).or(0.0)?;
    let mut changes = Vec::new();
    for value in f.take_list("change_points_s").or(&[])? {
        changes
            .push(value.as_f64().ok_or_else(|| f.error("change_points_s", "expected numbers of seconds"))?);
    }
    let outside = f.take_f64("max_share_of_samples_outside").within(0.0..=1.0).or(0.0)?;
    let tolerances = f.take_map("series_tolerances").or(&Map::new())?.clone();
    if let Some(name) = series {
        let file = path.parent().unwrap_or(Path::new("")).join(name);
        let curves = Curves::load(&file).map_err(Wrong::File)?;
        out.extend(curves.compare(&run.pools, &tolerances, &changes, ignored, outside)?);
    }
    f.nested_each("totals", |pool, f| totals(f, run, pool, out))?;
    f.nested("usage", |f| {
        f.take_str("metric").optional()?;
        let max = f.take_f64("max_share_of_total_fair_share").within(0.0..=1.0).required()?;
        let deviation: f64 = run.sum("usage_deviation_cpu_s");
        let found = deviation / run.sum("fair_share_cpu_s");
        out.push(at_most("usage that differs from fair share, part of it", found, max));
        Ok::<_, Wrong>(())
    })?;
    f.nested("guarantee_violation_after_starvation_timeout_cpu_s", |f| {
        let max = f.take_f64("per_pool_max_share_of_guaranteed").within(0.0..=1.0).required()?;
        for (pool, figures) in run.pool_maps() {
            let of = |keys: &[&str]| number_at(figures, keys).unwrap_or(0.0);
            let guaranteed = of(&["guaranteed_cpu_s"]);
            let missing = of(&["violation_cpu_s", "after_timeout"]);
            let found = if guaranteed > 0.0 { missing / guaranteed } else { 0.0 };
            out.push(at_most(&format!("{pool}: guarantee violated, part of it"), found, max));
        }
        Ok::<_, Wrong>(())
    })?;
    for (i, bound) in f.take_list("bounds").or(&[])?.iter().enumerate() {
        bound_of(&format!("bounds/{i}"), bound, run, out)?;
    }
    Ok(())
}

fn at_most(what: &str, found: f64, max: f64) -> Comparison {
    Comparison { what: what.to_owned(), found, allowed: format!("at most {max}"), holds: found <= max }
}

fn totals(f: &mut Fields<'_>, run: &Run, pool: &str, out: &mut Vec<Comparison>) -> Result<(), Wrong> {
    let tolerance = f.take_f64("rel_tol").within(0.0..=1.0).or(0.01)?;
    let figures = run.pool_maps().find(|(name, _)| *name == pool).map(|(_, figures)| figures);
    let figures = figures.ok_or_else(|| f.error("", "the run has no such pool"))?;
    let names =
        ["fair_share_cpu_s", "integral_cpu_s", "final_volume_cpu_s", "min_volume_cpu_s", "max_volume_cpu_s"];
    for name in names {
        let Some(want) = f.take_f64(name).optional()? else { continue };
        let found = number_at(figures, &[name]).unwrap_or(f64::NAN);
        out.push(Comparison {
            what: format!("{pool}: {name}"),
            found,
            allowed: format!("{want} within {} %", tolerance * 100.0),
            holds: (found - want).abs() <= tolerance * want.abs(),
        });
    }
    Ok(())
}

/// `{"metric":"pools.prod.usage_cpu_s","min":..,"max":..}`: a path in the summary.
fn bound_of(at: &str, value: &Value, run: &Run, out: &mut Vec<Comparison>) -> Result<(), Wrong> {
    let map = value.as_map().ok_or_else(|| FieldError::expected(at, "map", value))?;
    let mut f = Fields::new(map, at);
    let metric = f.take_str("metric").required()?;
    let (min, max) = (f.take_f64("min").optional()?, f.take_f64("max").optional()?);
    let found = metric::find(&run.summary, metric).map_err(|why| f.error("metric", &why))?;
    let holds = min.is_none_or(|min| found >= min) && max.is_none_or(|max| found <= max);
    let allowed = match (min, max) {
        (Some(min), Some(max)) => format!("from {min} to {max}"),
        (Some(min), None) => format!("at least {min}"),
        (None, Some(max)) => format!("at most {max}"),
        (None, None) => return Err(f.error("metric", "expected \"min\" or \"max\" beside it").into()),
    };
    f.finish()?;
    out.push(Comparison { what: metric.to_owned(), found, allowed, holds });
    Ok(())
}

fn number_at(value: &Value, keys: &[&str]) -> Option<f64> {
    keys.iter().try_fold(value, |value, key| value.get(key))?.as_f64()
}

impl Run {
    /// Pools of all trees; names are unique enough for checks.
    fn pool_maps(&self) -> impl Iterator<Item = (&str, &Value)> {
        let trees = self.summary.get("pools").and_then(Value::as_map).into_iter().flat_map(Map::iter);
        let pools = trees.filter_map(|(_, pools)| pools.as_map()).flat_map(Map::iter);
        pools.map(|(name, figures)| (std::str::from_utf8(name).unwrap_or("?"), figures))
    }

    /// Over pools that have children the children's would be counted twice, the root is everything.
    fn sum(&self, name: &str) -> f64 {
        let pools = self.pool_maps().filter(|(pool, _)| *pool != "<Root>");
        pools.filter_map(|(_, figures)| number_at(figures, &[name])).sum()
    }
}
