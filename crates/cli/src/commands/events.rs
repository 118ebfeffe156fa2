//! `events`, `audit`.

use super::Session;
use crate::args::{AuditArgs, EventRange, EventsArgs};
use crate::error::CliError;
use crate::output::Form;
use crate::views::{audit_line, event_line, text};
use client::{ClientError, EventFilter, EventsFrom, EventsPage};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use vocab::Time;
use yson::{JsonFormat, Map, Value};

/// How often a follower asks.
const PAUSE: Duration = Duration::from_millis(500);
/// A server that is away for so long will not be waited for.
const PATIENCE: Duration = Duration::from_secs(120);
/// Events of one request.
const PAGE: u64 = 1_000;

/// `events`.
pub fn run(session: &Session, args: &EventsArgs) -> Result<(), CliError> {
    let filter =
        EventFilter { event: args.event.clone(), operation: args.operation, ..EventFilter::default() };
    print(session, &args.range, args.last, filter, event_line)
}

/// `audit`.
pub fn audit(session: &Session, args: &AuditArgs) -> Result<(), CliError> {
    let filter = EventFilter {
        event: Some("audit".to_owned()),
        user: args.user.clone(),
        action: args.action.clone(),
        path: args.path.clone(),
        ..EventFilter::default()
    };
    print(session, &args.range, args.last, filter, audit_line)
}

/// Prints events as they come, page by page.
fn print(
    session: &Session,
    range: &EventRange,
    last: u64,
    mut filter: EventFilter,
    line: fn(&Map) -> String,
) -> Result<(), CliError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Time::from_micros(u64::try_from(now.as_micros()).unwrap_or(u64::MAX));
    (filter.from_time, filter.to_time) = (range.since.map(|t| t.at(now)), range.until.map(|t| t.at(now)));
    let mut from = match (range.from, range.since) {
        (Some(number), _) => EventsFrom::Number(number),
        // That may be long ago: from the oldest that is kept.
        (None, Some(_)) => EventsFrom::Number(0),
        (None, None) => EventsFrom::Last(last),
    };
    let mut left = range.limit.unwrap_or(u64::MAX);
    let mut end = None;
    let mut away = Duration::ZERO;
    while left > 0 {
        let EventsPage { events, next, newest, lost } =
            match session.client.events(from, PAGE.min(left), &filter) {
                // A server that is started again goes on where it was, and so do we.
                Err(ClientError::Connection { .. }) if range.follow && away < PATIENCE => {
                    if away.is_zero() {
                        session.screen.tell("the server does not answer; waiting for it");
                    }
                    away += PAUSE;
                    std::thread::sleep(PAUSE);
                    continue;
                }
                answer => answer?,
            };
        away = Duration::ZERO;
        for (first, last) in lost {
            let count = last - first + 1;
            session.screen.tell(&format!("{count} events are lost: numbers {first} to {last}"));
        }
        left = left.saturating_sub(events.len() as u64);
        for event in events {
            let map = event.as_map().cloned().unwrap_or_default();
            let shown = match session.screen.form {
                Form::Human => line(&map),
                Form::Json => json_line(&event),
                Form::Quiet => text(&map, "event").to_owned(),
            };
            session.screen.print(format!("{shown}\n").as_bytes())?;
        }
        // Without `--follow` what has happened since is not waited for: that may never end.
        let end = *end.get_or_insert(newest);
        let stands = from == EventsFrom::Number(next);
        match range.follow {
            true if stands => std::thread::sleep(PAUSE),
            false if stands || next > end => return Ok(()),
            _ => {}
        }
        from = EventsFrom::Number(next);
    }
    Ok(())
}

fn json_line(event: &Value) -> String {
    String::from_utf8_lossy(&yson::json::to_json(event, &JsonFormat::utf8())).into_owned()
}
