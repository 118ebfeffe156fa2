//! What the readers of options have in common.

use std::ops::RangeInclusive;
use vocab::Span;
use yson::Value;
use yson::fields::{FieldError, Fields, Names, Taken};

/// Names of one option: the canonical one first.
///
/// An option that is given under two of its names is refused, because one of the two would be
/// ignored in silence.
pub(crate) fn one_of<'n>(
    fields: &Fields<'_>,
    names: &'n [&'static str],
) -> Result<&'n [&'static str], FieldError> {
    let mut given = names.iter().filter(|name| fields.has(name));
    match (given.next(), given.next()) {
        (Some(first), Some(second)) => {
            Err(fields.error(second, &format!("the same option is also given as {first:?}")))
        }
        _ => Ok(names),
    }
}

/// A number in a closed range. A value of a wrong type is told the range too.
pub(crate) fn number(f: &mut Fields<'_>, names: impl Names, range: RangeInclusive<f64>) -> Taken<f64> {
    let allowed = format!("a number from {} to {}", range.start(), range.end());
    number_that(f, names, &allowed, |x| range.contains(&x))
}

/// A part of something: above 0 and at most 1.
pub(crate) fn part(f: &mut Fields<'_>, names: impl Names) -> Taken<f64> {
    number_that(f, names, "a number greater than 0 and at most 1", |x| x > 0.0 && x <= 1.0)
}

/// A finite number above 0.
pub(crate) fn positive(f: &mut Fields<'_>, names: impl Names) -> Taken<f64> {
    number_that(f, names, "a finite number greater than 0", |x| x > 0.0 && x.is_finite())
}

fn number_that(
    f: &mut Fields<'_>,
    names: impl Names,
    allowed: &str,
    good: impl Fn(f64) -> bool,
) -> Taken<f64> {
    let value = f.take_value(names).check(allowed, |v| v.as_f64().is_some_and(good));
    value.map(|v| v.as_f64().unwrap_or_default())
}

/// An integer of at least 1.
pub(crate) fn count(f: &mut Fields<'_>, names: impl Names) -> Taken<i64> {
    let good = |v: &&Value| v.as_i64().is_some_and(|n| n >= 1);
    f.take_value(names).check("an integer of at least 1", good).map(|v| v.as_i64().unwrap_or_default())
}

/// A duration of at least so many milliseconds.
pub(crate) fn duration(f: &mut Fields<'_>, names: impl Names, least_ms: u64) -> Taken<Span> {
    let allowed = format!("a duration (milliseconds, or text like \"10s\") of at least {least_ms} ms");
    let good = |v: &&Value| read_duration(v).is_some_and(|span| span >= Span::from_millis(least_ms));
    f.take_value(names).check(&allowed, good).map(|v| read_duration(v).unwrap_or_default())
}

/// Whole milliseconds, or text with a unit (jobs-and-nodes.md 0).
fn read_duration(value: &Value) -> Option<Span> {
    match value.as_u64() {
        Some(ms) => ms.checked_mul(1_000).map(Span::from_micros),
        None => value.as_str().and_then(Span::parse),
    }
}

/// Durations of specs are shown in whole milliseconds (jobs-and-nodes.md 0).
pub(crate) fn millis(span: Span) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

/// The option's path as a list of keys, and what is wrong, without the path.
///
/// [`FieldError`] has one text for both; places that show paths in a way of their own need them apart.
pub fn error_parts(error: &FieldError) -> (&str, &str) {
    let named = error.message.strip_prefix("option \"").and_then(|rest| rest.strip_prefix(&*error.path));
    let why = named.and_then(|rest| rest.strip_prefix("\": ")).unwrap_or(&error.message);
    (&error.path, why)
}
