//! `events`, `audit`.

use super::Session;
use crate::args::{AuditArgs, EventsArgs};
use crate::error::CliError;
use crate::output::Form;
use crate::views::{audit_line, event_line, text};
use client::{ClientError, EventsFrom, EventsPage};
use std::time::Duration;
use yson::{JsonFormat, Map, Value};

/// How often a follower asks.
const PAUSE: Duration = Duration::from_millis(500);
/// A server that is away for so long will not be waited for.
const PATIENCE: Duration = Duration::from_secs(120);
/// Events of one request.
const PAGE: u64 = 1_000;

/// `events`.
pub fn run(session: &Session, args: &EventsArgs) -> Result<(), CliError> {
    let wanted = args.operation.map(|id| id.to_string());
    let range = Range { from: args.from, last: args.last, limit: args.limit, follow: args.follow };
    let keep = |event: &Map| wanted.as_ref().is_none_or(|id| text(event, "operation_id") == id);
    print(session, &range, &keep, event_line)
}

/// `audit`.
pub fn audit(session: &Session, args: &AuditArgs) -> Result<(), CliError> {
    let range = Range { from: args.from, last: args.last, limit: args.limit, follow: args.follow };
    let keep = |event: &Map| {
        let is = |key: &str, wanted: &Option<String>| wanted.as_ref().is_none_or(|w| text(event, key) == w);
        let below = |wanted: &String| is_within(text(event, "path"), wanted);
        text(event, "event") == "audit"
            && is("user", &args.user)
            && is("action", &args.action)
            && args.path.as_ref().is_none_or(below)
    };
    print(session, &range, &keep, audit_line)
}

/// `//a/b` and `//a/@x` are within `//a`, `//ab` is not.
fn is_within(path: &str, top: &str) -> bool {
    let top = top.trim_end_matches('/');
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Which part of the log.
struct Range {
    from: Option<u64>,
    last: u64,
    limit: Option<u64>,
    follow: bool,
}

/// Prints events as they come, page by page.
fn print(
    session: &Session,
    range: &Range,
    keep: &dyn Fn(&Map) -> bool,
    line: fn(&Map) -> String,
) -> Result<(), CliError> {
    let mut from = range.from.map_or(EventsFrom::Last(range.last), EventsFrom::Number);
    let mut left = range.limit.unwrap_or(u64::MAX);
    let mut away = Duration::ZERO;
    loop {
        let EventsPage { events, next, lost } = match session.client.events(from, PAGE) {
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
        let at_end = events.is_empty();
        for (first, last) in lost {
            let count = last - first + 1;
            session.screen.tell(&format!("{count} events are lost: numbers {first} to {last}"));
        }
        for event in events {
            let map = event.as_map().cloned().unwrap_or_default();
            if !keep(&map) {
                continue;
            }
            if left == 0 {
                return Ok(());
            }
            left -= 1;
            let shown = match session.screen.form {
                Form::Human => line(&map),
                Form::Json => json_line(&event),
                Form::Quiet => text(&map, "event").to_owned(),
            };
            session.screen.print(format!("{shown}\n").as_bytes())?;
        }
        from = EventsFrom::Number(next);
        match (at_end, range.follow) {
            (true, false) => return Ok(()),
            (true, true) => std::thread::sleep(PAUSE),
            (false, _) => {}
        }
    }
}

fn json_line(event: &Value) -> String {
    String::from_utf8_lossy(&yson::json::to_json(event, &JsonFormat::utf8())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::is_within;

    #[test]
    fn paths() {
        for (path, top, expected) in [
            ("//sys/a/@x", "//sys", true),
            ("//sys/a", "//sys/a", true),
            ("//sys/a", "//sys/a/", true),
            ("//sys/ab", "//sys/a", false),
            ("//sys", "/", true),
            ("", "//sys", false),
        ] {
            assert_eq!(is_within(path, top), expected, "{path} in {top}");
        }
    }
}
