//! Millpond's own questions (http-api.md 1): below `/api/millpond`, not among the commands of the `yt`
//! client. By GET with a query string; the answer is JSON.

use super::params::{Params, Result, required};
use kernel::command::{Command, EventsFrom, PreemptionQuery, When};
use kernel::{EventFilter, HistoryOf, Range};
use vocab::{Failure, Span};

/// A question: its name and the parser of its parameters.
pub type Question = (&'static str, fn(&Params) -> Result<Command>);

/// All questions.
pub static QUESTIONS: &[Question] = &[
    ("events", events),
    ("job_history", job_history),
    ("job_explanation", job_explanation),
    ("node_history", node_history),
    ("operation_explanation", operation_explanation),
    ("pool_explanation", pool_explanation),
    ("pool_history", pool_history),
    ("preemption_log", preemption_log),
];

/// Is something answered under this name?
pub fn is_question(name: &str) -> bool {
    name == "stream" || QUESTIONS.iter().any(|(question, _)| *question == name)
}

fn events(params: &Params) -> Result<Command> {
    let (number, last) = (params.parsed("from")?, params.parsed("last")?);
    let from = match (number, last) {
        (Some(_), Some(_)) => {
            let message =
                "Parameters \"from\" and \"last\" cannot be given together: each says where to begin";
            return Err(Failure::new(message));
        }
        (Some(number), None) => EventsFrom::Number(number),
        (None, Some(last)) => EventsFrom::Last(last),
        (None, None) => EventsFrom::Oldest,
    };
    let filter = EventFilter {
        event: params.string("event")?,
        operation: params.parsed("operation_id")?,
        user: params.string("user")?,
        action: params.string("action")?,
        path: top_of_paths(params)?,
        from_time: params.time("from_time")?,
        to_time: params.time("to_time")?,
    };
    Ok(Command::GetEvents { from, limit: params.count("limit")?, filter })
}

fn top_of_paths(params: &Params) -> Result<Option<String>> {
    let path = params.string("path")?;
    match path.as_deref().filter(|path| !path.starts_with('/')) {
        None => Ok(path),
        Some(word) => Err(Failure::new(format!(
            "Parameter \"path\" must be a path like \"//sys/pool_trees\", found {word:?}"
        ))
        .with("parameter", "path")),
    }
}

fn operation_explanation(params: &Params) -> Result<Command> {
    Ok(Command::ExplainOperation { operation: params.required_operation()? })
}

fn job_explanation(params: &Params) -> Result<Command> {
    Ok(Command::ExplainJob { job_id: required("job_id", params.parsed("job_id"))? })
}

fn preemption_log(params: &Params) -> Result<Command> {
    Ok(Command::GetPreemptionLog(PreemptionQuery {
        tree: params.string("pool_tree")?,
        operation: params.parsed("operation_id")?,
        pool: params.string("pool")?,
        limit: params.count("limit")?,
    }))
}

fn pool_explanation(params: &Params) -> Result<Command> {
    Ok(Command::ExplainPool {
        tree: params.string("pool_tree")?,
        pool: required("pool", params.string("pool"))?,
    })
}

fn pool_history(params: &Params) -> Result<Command> {
    Ok(Command::GetPoolHistory {
        tree: params.string("pool_tree")?,
        pool: required("pool", params.string("pool"))?,
        range: range(params)?,
    })
}

fn job_history(params: &Params) -> Result<Command> {
    let of = HistoryOf::Job(required("job_id", params.parsed("job_id"))?);
    Ok(Command::GetHistory { of, range: range(params)? })
}

fn node_history(params: &Params) -> Result<Command> {
    let of = HistoryOf::Node(required("address", params.string("address"))?);
    Ok(Command::GetHistory { of, range: range(params)? })
}

fn range(params: &Params) -> Result<Range> {
    Ok(Range { start: when(params, "start")?, end: when(params, "end")?, step: step(params)? })
}

fn when(params: &Params, name: &str) -> Result<Option<When>> {
    let Some(text) = params.string(name)? else { return Ok(None) };
    When::parse(&text).map(Some).ok_or_else(|| {
        Failure::new(format!(
            "Parameter {name:?} must be a time like \"2026-01-02T03:04:05Z\", or like \"-15m\" or \"now\", found {text:?}"
        ))
        .with("parameter", name)
    })
}

fn step(params: &Params) -> Result<Option<Span>> {
    let Some(text) = params.string("step")? else { return Ok(None) };
    Span::parse(&text).filter(|step| *step > Span::ZERO).map(Some).ok_or_else(|| {
        Failure::new(format!("Parameter \"step\" must be a duration like \"10s\", found {text:?}"))
            .with("parameter", "step")
    })
}
