//! Which part of a history is asked for, and charts as values.

use crate::command::When;
use history::{Chart, ReadError};
use vocab::{Failure, Span, Time};
use yson::{Map, Value};

/// What is shown if nobody says since when.
const USUAL_RANGE: Span = Span::from_secs(3600);

/// Which part of a history.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Range {
    /// From; an hour before the end when absent.
    pub start: Option<When>,
    /// Until; now when absent.
    pub end: Option<When>,
    /// One mean for each; sensible when absent.
    pub step: Option<Span>,
}

impl Range {
    /// From the end of an Orchid path: times and a step, as far as they are there; and how many steps
    /// of the path they are.
    pub(crate) fn from_path(keys: &[&str]) -> (Range, usize) {
        let when = |i: usize| keys.get(i).and_then(|key| When::parse(key));
        let start = when(0);
        let end = start.and_then(|_| when(1));
        let step = end.and_then(|_| Span::parse(keys.get(2)?));
        let used = [start.is_some(), end.is_some(), step.is_some()].iter().filter(|given| **given).count();
        (Range { start, end, step }, used)
    }
}

/// The chart of a range, column by column; `whose` it is in words. None: nobody is known by that name.
pub(crate) fn read<const N: usize>(
    now: Time,
    range: Range,
    whose: &str,
    columns: [&'static str; N],
    ask: impl FnOnce(Time, Time, Option<Span>) -> Option<Result<Chart<N>, ReadError>>,
) -> Option<Result<Value, Failure>> {
    let end = range.end.map_or(now, |when| when.at(now));
    let start = range.start.map_or(end - USUAL_RANGE, |when| when.at(now));
    Some(match ask(start, end, range.step)? {
        Ok(chart) => Ok(to_value(columns, &chart)),
        Err(error) => {
            let text = format!("Cannot read the history of {whose}: {error}");
            Err(Failure::new(text).with("start", start).with("end", end))
        }
    })
}

fn to_value<const N: usize>(names: [&'static str; N], chart: &Chart<N>) -> Value {
    let millis = |span: Span| span.as_millis() as i64;
    let column = |i: usize| -> Vec<Value> {
        chart.points.iter().map(|point| point.map_or(Value::Entity, |p| p[i].into())).collect()
    };
    let columns: Map = names.iter().enumerate().map(|(i, name)| (*name, column(i))).collect();
    yson::map! {
        "start" => chart.start,
        "step" => millis(chart.step),
        "source_step" => millis(chart.source_step),
        "count" => chart.points.len(),
        "columns" => columns,
    }
    .into()
}
