//! `events`.

use super::Session;
use crate::args::EventsArgs;
use crate::error::CliError;
use crate::output::Form;
use crate::views::{event_line, text};
use client::{ClientError, EventsFrom, EventsPage};
use std::time::Duration;
use yson::{JsonFormat, Value};

/// How often a follower asks.
const PAUSE: Duration = Duration::from_millis(500);
/// A server that is away for so long will not be waited for.
const PATIENCE: Duration = Duration::from_secs(120);
/// Events of one request.
const PAGE: u64 = 1_000;

/// Prints events as they come, page by page.
pub fn run(session: &Session, args: &EventsArgs) -> Result<(), CliError> {
    let mut from = args.from.map_or(EventsFrom::Last(args.last), EventsFrom::Number);
    let mut left = args.limit.unwrap_or(u64::MAX);
    let wanted = args.operation.map(|id| id.to_string());
    let mut away = Duration::ZERO;
    loop {
        let EventsPage { events, next, lost } = match session.client.events(from, PAGE) {
            // A server that is started again goes on where it was, and so do we.
            Err(ClientError::Connection { .. }) if args.follow && away < PATIENCE => {
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
            if wanted.as_ref().is_some_and(|id| text(&map, "operation_id") != id) {
                continue;
            }
            if left == 0 {
                return Ok(());
            }
            left -= 1;
            let line = match session.screen.form {
                Form::Human => event_line(&map),
                Form::Json => json_line(&event),
                Form::Quiet => text(&map, "event").to_owned(),
            };
            session.screen.print(format!("{line}\n").as_bytes())?;
        }
        from = EventsFrom::Number(next);
        match (at_end, args.follow) {
            (true, false) => return Ok(()),
            (true, true) => std::thread::sleep(PAUSE),
            (false, _) => {}
        }
    }
}

fn json_line(event: &Value) -> String {
    String::from_utf8_lossy(&yson::json::to_json(event, &JsonFormat::utf8())).into_owned()
}
