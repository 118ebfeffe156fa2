//! `events`: one line each.

use crate::views::read::{find, text};
use yson::{Map, Value};

/// Number, time, what happened to whom, and what else is worth a word.
pub fn event_line(event: &Map) -> String {
    let number = event.get("number").and_then(Value::as_u64).unwrap_or(0);
    // Seconds are enough for people; a line of a follower stays true while he looks at it.
    let when: String = text(event, "time").chars().take(19).collect();
    let kind = text(event, "event");
    let mut line = format!("{number:>8}  {when:<19}  {kind:<22} ");
    let of = |line: &mut String, key: &str, word: &str| {
        let value = text(event, key);
        if !value.is_empty() {
            line.push_str(&format!(" {word}{value}"));
        }
    };
    match text(event, "job_id") {
        "" => line.push_str(text(event, "operation_id")),
        job => {
            line.push_str(job);
            of(&mut line, "operation_id", "of ");
        }
    }
    of(&mut line, "task_name", "task ");
    of(&mut line, "pool", "pool ");
    of(&mut line, "node_address", "on ");
    of(&mut line, "node", "on ");
    of(&mut line, "reason", "reason ");
    of(&mut line, "preemption_kind", "");
    if let Some(id) = find(event, "preempted_for/operation_id").and_then(Value::as_str) {
        line.push_str(&format!(" for operation {id}"));
    }
    if let Some(message) = find(event, "error/message").and_then(Value::as_str) {
        // One line is one event, whatever is in a message.
        let message: String =
            message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
        line.push_str(&format!(": {message}"));
    }
    line
}

/// A change: number, time, who, what, and the value before and after.
pub fn audit_line(event: &Map) -> String {
    let number = event.get("number").and_then(Value::as_u64).unwrap_or(0);
    let when: String = text(event, "time").chars().take(19).collect();
    let (user, action) = (text(event, "user"), text(event, "action"));
    let mut line = format!("{number:>8}  {when:<19}  {user:<12} {action} ");
    const KNOWN: [&str; 9] =
        ["number", "time", "event", "user", "action", "before", "after", "denied", "error"];
    let about = event.iter().filter(|(name, _)| !KNOWN.iter().any(|known| known.as_bytes() == *name));
    let about: Vec<String> = about
        .map(|(name, value)| match (name, value.as_str()) {
            (b"path", Some(path)) => path.to_owned(),
            (name, Some(word)) => format!("{}={word}", String::from_utf8_lossy(name)),
            (name, None) => format!("{}={}", String::from_utf8_lossy(name), brief(value)),
        })
        .collect();
    line.push_str(&about.join(" "));
    if event.get("denied").and_then(Value::as_bool) == Some(true) {
        line.push_str(" denied");
        if let Some(message) = find(event, "error/message").and_then(Value::as_str) {
            line.push_str(&format!(": {message}"));
        }
    }
    match (event.get("before"), event.get("after")) {
        (None, None) => {}
        (before, after) => {
            let show = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), brief);
            line.push_str(&format!(": {} -> {}", show(before), show(after)));
        }
    }
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// On one line, and not more than a glance can take.
fn brief(value: &Value) -> String {
    const GLANCE: usize = 120;
    let text = String::from_utf8_lossy(&yson::to_text(value)).into_owned();
    match text.char_indices().nth(GLANCE) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
