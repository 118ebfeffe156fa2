//! Millpond's own questions (http-api.md 1): `/api/millpond/<question>`, JSON.

use crate::{Client, ClientError};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use vocab::{OperationId, Time};
use yson::Value;

/// What is quoted in the values of a query string.
const QUOTED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b':').remove(b'/');

impl Client {
    /// Asks.
    pub fn question(&self, name: &str, parameters: &[(&str, String)]) -> Result<Value, ClientError> {
        let quoted = |value: &str| utf8_percent_encode(value, QUOTED).to_string();
        let query: Vec<String> =
            parameters.iter().map(|(key, value)| format!("{key}={}", quoted(value))).collect();
        self.ask(&format!("/api/millpond/{name}?{}", query.join("&")))
    }

    /// The newest events of the event log, or those from a number on: up to `limit` of those that the filter
    /// admits.
    pub fn events(
        &self,
        from: EventsFrom,
        limit: u64,
        filter: &EventFilter,
    ) -> Result<EventsPage, ClientError> {
        let begin = match from {
            EventsFrom::Number(number) => ("from", number.to_string()),
            EventsFrom::Last(count) => ("last", count.to_string()),
        };
        let mut parameters = vec![begin, ("limit", limit.to_string())];
        parameters.extend(filter.parameters());
        let reply = self.question("events", &parameters)?;
        let next = reply.get("next").and_then(Value::as_u64);
        match (reply.get("events").and_then(Value::as_list), next) {
            (Some(events), Some(next)) => {
                let newest = reply.get("newest").and_then(Value::as_u64).unwrap_or(u64::MAX);
                Ok(EventsPage { events: events.to_vec(), next, newest, lost: lost(&reply) })
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

/// What events must be like (docs/operator-guide.md); what is absent may be anything.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventFilter {
    /// `event`: `audit`, `job_started`, ...
    pub event: Option<String>,
    /// `operation_id`.
    pub operation: Option<OperationId>,
    /// `user`.
    pub user: Option<String>,
    /// `action`: the command of a change.
    pub action: Option<String>,
    /// `path` of a change is this or below it.
    pub path: Option<String>,
    /// Not before this time.
    pub from_time: Option<Time>,
    /// Before this time.
    pub to_time: Option<Time>,
}

impl EventFilter {
    fn parameters(&self) -> impl Iterator<Item = (&'static str, String)> {
        let word = |word: &Option<String>| word.clone();
        let time = |time: Option<Time>| time.map(|time| time.to_string());
        let all = [
            ("event", word(&self.event)),
            ("operation_id", self.operation.map(|id| id.to_string())),
            ("user", word(&self.user)),
            ("action", word(&self.action)),
            ("path", word(&self.path)),
            ("from_time", time(self.from_time)),
            ("to_time", time(self.to_time)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}

/// A part of the event log.
#[derive(Clone, PartialEq, Debug)]
pub struct EventsPage {
    /// In order.
    pub events: Vec<Value>,
    /// The number to go on with: there may be more even if there are no events here.
    pub next: u64,
    /// The number of the newest event of all.
    pub newest: u64,
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
