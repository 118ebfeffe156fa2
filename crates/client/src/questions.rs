//! Millpond's own questions (http-api.md 1): `/api/millpond/<question>`, JSON.

use crate::{Client, ClientError};
use yson::Value;

impl Client {
    /// Asks; values of parameters are numbers, names and ids, which need no quoting in a URL.
    pub fn question(&self, name: &str, parameters: &[(&str, String)]) -> Result<Value, ClientError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        if let Some((key, value)) = parameters.iter().find(|(_, value)| !value.chars().all(plain)) {
            return Err(ClientError::Usage(format!("{value:?} cannot be the value of parameter \"{key}\"")));
        }
        let query: Vec<String> = parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
        self.ask(&format!("/api/millpond/{name}?{}", query.join("&")))
    }

    /// The newest events of the event log, or those from a number on.
    pub fn events(&self, from: EventsFrom, limit: u64) -> Result<EventsPage, ClientError> {
        let begin = match from {
            EventsFrom::Number(number) => ("from", number.to_string()),
            EventsFrom::Last(count) => ("last", count.to_string()),
        };
        let reply = self.question("events", &[begin, ("limit", limit.to_string())])?;
        let next = reply.get("next").and_then(Value::as_u64);
        match (reply.get("events").and_then(Value::as_list), next) {
            (Some(events), Some(next)) => {
                Ok(EventsPage { events: events.to_vec(), next, lost: lost(&reply) })
            }
            _ => Err(ClientError::Protocol {
                address: self.address().to_owned(),
                problem: "the answer about events is not one".to_owned(),
            }),
        }
    }
}

/// Ranges of numbers that the log does not have.
fn lost(reply: &Value) -> Vec<(u64, u64)> {
    let ranges = reply.get("lost").and_then(Value::as_list).unwrap_or_default();
    let range = |r: &Value| Some((r.get("from")?.as_u64()?, r.get("to")?.as_u64()?));
    ranges.iter().filter_map(range).collect()
}

/// A part of the event log.
#[derive(Clone, PartialEq, Debug)]
pub struct EventsPage {
    /// In order.
    pub events: Vec<Value>,
    /// The number to go on with.
    pub next: u64,
    /// Numbers between those that were lost: from, to.
    pub lost: Vec<(u64, u64)>,
}

/// Where to begin reading the event log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventsFrom {
    /// At this number.
    Number(u64),
    /// So many before the end.
    Last(u64),
}
