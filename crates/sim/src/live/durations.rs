//! How long jobs run that have not ended yet: as long as those of their task that have completed did.

use super::Operation;
use vocab::{Span, Time};
use yson::{Map, Value};

/// Of a task, in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Guess {
    pub ms: f64,
    /// Nothing of the task has completed.
    pub blind: bool,
}

/// The mean of what completed; otherwise twice the oldest that runs; otherwise what is assumed.
pub(super) fn of_task(operation: &Operation, task: &str, oldest: Option<Span>, assumed: Span) -> Guess {
    let of_task = operation.completed.iter().filter(|job| text(job, "task_name") == task);
    let spans: Vec<f64> = of_task.filter_map(ran).collect();
    if !spans.is_empty() {
        let mean = spans.iter().sum::<f64>() / spans.len() as f64;
        return Guess { ms: mean.max(1.0), blind: false };
    }
    let twice = oldest.map(|age| 2.0 * age.as_millis() as f64).filter(|ms| *ms >= 1.0);
    Guess { ms: twice.unwrap_or(assumed.as_millis() as f64), blind: true }
}

/// The whole of a job that runs: as guessed, but one that has run longer already goes on for a quarter of
/// its age.
pub(super) fn of_running(guess: Guess, age: Span) -> f64 {
    guess.ms.max(1.25 * age.as_millis() as f64).max(1.0)
}

fn ran(job: &Map) -> Option<f64> {
    let (start, end) = (Time::parse(text(job, "start_time"))?, Time::parse(text(job, "finish_time"))?);
    Some(end.since(start).as_micros() as f64 / 1000.0)
}

fn text<'a>(job: &'a Map, key: &str) -> &'a str {
    job.get(key).and_then(Value::as_str).unwrap_or_default()
}
