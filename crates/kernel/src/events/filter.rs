//! Which events somebody wants to see.

use vocab::{OperationId, Time};
use yson::Value;

/// What events must be like; what is absent may be anything.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EventFilter {
    /// `event`: `audit`, `job_started`, ...
    pub event: Option<String>,
    /// `operation_id`.
    pub operation: Option<OperationId>,
    /// `user`: who asked for a change or opened a shell.
    pub user: Option<String>,
    /// `action`: the command of a change.
    pub action: Option<String>,
    /// `path` of a change, or where something was moved from, is this or below it.
    pub path: Option<String>,
    /// Not before this time.
    pub from_time: Option<Time>,
    /// Before this time.
    pub to_time: Option<Time>,
}

impl EventFilter {
    /// Fields that must have exactly these values.
    pub fn words(&self) -> Vec<(&'static str, String)> {
        let operation = self.operation.map(|id| id.to_string());
        let words = [
            ("event", self.event.clone()),
            ("operation_id", operation),
            ("user", self.user.clone()),
            ("action", self.action.clone()),
        ];
        words.into_iter().filter_map(|(name, word)| Some((name, word?))).collect()
    }

    /// Is it one of those?
    pub fn admits(&self, event: &Value) -> bool {
        let text = |name: &str| event.get(name).and_then(Value::as_str);
        let is_at = |time: Option<Time>| {
            self.from_time.is_none_or(|from| time.is_some_and(|time| from <= time))
                && self.to_time.is_none_or(|to| time.is_some_and(|time| time < to))
        };
        let is_below = |top: &String| {
            // What is moved away is not where it was any more.
            let moved = text("source").filter(|_| text("action") == Some("move"));
            [text("path"), moved].into_iter().flatten().any(|path| is_within(path, top))
        };
        self.words().iter().all(|(name, word)| text(name) == Some(word))
            && is_at(text("time").and_then(Time::parse))
            && self.path.as_ref().is_none_or(is_below)
    }
}

/// `//a/b` and `//a/@x` are within `//a`, `//ab` is not; everything is within `/`.
fn is_within(path: &str, top: &str) -> bool {
    let top = top.trim_end_matches('/');
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (path, top, expected) in [
            ("//sys/a/@x", "//sys", true),
            ("//sys/a", "//sys/a", true),
            ("//sys/a", "//sys/a/", true),
            ("//sys/ab", "//sys/a", false),
            ("//sys", "/", true),
            ("//sys", "//sys/a", false),
        ] {
            assert_eq!(is_within(path, top), expected, "{path} in {top}");
        }
    }

    #[test]
    fn all_conditions_hold_at_once() {
        let seconds = Time::from_secs;
        let set = yson::map! {
            "event" => "audit", "time" => seconds(10), "user" => "ann", "action" => "set", "path" => "//a/b",
        };
        let away = yson::map! {
            "event" => "audit", "time" => seconds(20), "user" => "bob", "action" => "move", "source" => "//a/c",
            "path" => "//d",
        };
        let copy = yson::map! {
            "event" => "audit", "time" => seconds(20), "user" => "bob", "action" => "copy", "source" => "//a/c",
            "path" => "//d",
        };
        let start = yson::map! {
            "event" => "job_started", "time" => seconds(30), "operation_id" => "1-2-103e8-4",
        };
        let events: Vec<Value> = [set, away, copy, start].into_iter().map(Value::from).collect();
        let some = |word: &str| Some(word.to_owned());
        let any = EventFilter::default;
        for (filter, expected) in [
            (any(), &[0, 1, 2, 3][..]),
            (EventFilter { event: some("audit"), ..any() }, &[0, 1, 2]),
            (EventFilter { user: some("bob"), ..any() }, &[1, 2]),
            (EventFilter { user: some("bob"), action: some("set"), ..any() }, &[]),
            (EventFilter { action: some("move"), ..any() }, &[1]),
            (EventFilter { path: some("//a"), ..any() }, &[0, 1]),
            (EventFilter { path: some("//d"), ..any() }, &[1, 2]),
            (EventFilter { path: some("/"), ..any() }, &[0, 1, 2]),
            (EventFilter { operation: "1-2-103e8-4".parse().ok(), ..any() }, &[3]),
            (EventFilter { operation: "1-2-103e8-5".parse().ok(), ..any() }, &[]),
            (EventFilter { from_time: Some(seconds(20)), ..any() }, &[1, 2, 3]),
            (EventFilter { to_time: Some(seconds(20)), ..any() }, &[0]),
            (EventFilter { from_time: Some(seconds(11)), to_time: Some(seconds(30)), ..any() }, &[1, 2]),
            (EventFilter { path: some("//a"), from_time: Some(seconds(11)), ..any() }, &[1]),
        ] {
            let kept: Vec<usize> = (0..events.len()).filter(|n| filter.admits(&events[*n])).collect();
            assert_eq!(kept, expected, "{filter:?}");
        }
    }
}
