//! Alerts of operations, and when each came and went (http-api.md 9.1, scheduling.md 20).
//!
//! What an operation should do better follows from sums over its jobs, so the controller is asked for it
//! now and then (jobs-and-nodes.md 6.11); all others are raised where their reason arises.

use crate::Kernel;
use crate::operation::Operation;
use std::collections::BTreeMap;
use vocab::{Failure, JobId, OperationId, OperationState, Span, Time};
use yson::{Map, Value};

/// An order to start was given up: its node never said a word about it (17.3).
const SCHEDULE_JOB_TIMED_OUT: &str = "schedule_job_timed_out";
/// For so long after the last one.
const TIMED_OUT_SHOWN: Span = Span::from_secs(15 * 60);
/// Controllers are asked so often (jobs-and-nodes.md 6.11).
const LOOK_PERIOD: Span = Span::from_secs(10);
/// Events kept of each type of alert, the newest: with a few dozen types the list of an operation is
/// bounded, and an alert that comes and goes all day does not push out the others.
const KEPT_OF_TYPE: usize = 4;

/// An alert came or went.
#[derive(Clone, PartialEq, Debug)]
struct AlertEvent {
    time: Time,
    alert_type: String,
    /// What it says; none: it is gone.
    error: Option<Failure>,
}

/// Alerts of one operation, by name, and the events that led there, oldest first.
///
/// The events of a type come and go in turns. An alert that is there and says something else from now on
/// is the same alert: its event keeps the time and gets the new words.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Alerts {
    present: BTreeMap<String, Failure>,
    events: Vec<AlertEvent>,
}

impl Alerts {
    /// From the forms that [`Alerts::to_map`] and [`Alerts::events_to_value`] give; records of older
    /// versions have no events.
    pub fn from_values(present: Option<&Value>, events: Option<&Value>) -> Alerts {
        let present = present.and_then(Value::as_map).unwrap_or(Map::EMPTY);
        let present =
            present.iter().map(|(k, e)| (String::from_utf8_lossy(k).into_owned(), Failure::from_value(e)));
        let event = |value: &Value| {
            let error = Failure::from_value(value.get("error")?);
            Some(AlertEvent {
                time: Time::parse(value.get("time")?.as_str()?)?,
                alert_type: value.get("alert_type")?.as_str()?.to_owned(),
                error: (error.code != vocab::code::OK).then_some(error),
            })
        };
        Alerts {
            present: present.collect(),
            events: events.and_then(Value::as_list).unwrap_or_default().iter().filter_map(event).collect(),
        }
    }

    /// Sets an alert. False if it is there and says the same.
    pub fn raise(&mut self, now: Time, name: &str, error: Failure) -> bool {
        if self.present.get(name) == Some(&error) {
            return false;
        }
        match self.last_event(name) {
            Some(AlertEvent { error: Some(known), .. }) => *known = error.clone(),
            _ => self.push(now, name, Some(error.clone())),
        }
        self.present.insert(name.to_owned(), error);
        true
    }

    /// Takes an alert away. False if it is not there.
    pub fn clear(&mut self, now: Time, name: &str) -> bool {
        if self.present.remove(name).is_none() {
            return false;
        }
        // An end without a beginning would tell nothing: this one is of an older version's record.
        if matches!(self.last_event(name), Some(AlertEvent { error: Some(_), .. })) {
            self.push(now, name, None);
        }
        true
    }

    pub fn get(&self, name: &str) -> Option<&Failure> {
        self.present.get(name)
    }

    /// `alerts`: `{name = error}`.
    pub fn to_map(&self) -> Map {
        self.present.iter().map(|(name, e)| (name.as_str(), e.to_value())).collect()
    }

    /// `alert_events`: `[{time; alert_type; error}]`, oldest first; an error with code 0 where an alert
    /// went.
    pub fn events_to_value(&self) -> Vec<Value> {
        let gone = || Failure::coded(vocab::code::OK, "");
        let value = |event: &AlertEvent| {
            let error = event.error.as_ref().map_or_else(|| gone().to_value(), Failure::to_value);
            let alert_type = event.alert_type.as_str();
            yson::map! { "time" => event.time, "alert_type" => alert_type, "error" => error }.into()
        };
        self.events.iter().map(value).collect()
    }

    fn last_event(&mut self, name: &str) -> Option<&mut AlertEvent> {
        self.events.iter_mut().rfind(|event| event.alert_type == name)
    }

    fn push(&mut self, time: Time, name: &str, error: Option<Failure>) {
        self.events.push(AlertEvent { time, alert_type: name.to_owned(), error });
        let of_type = |event: &AlertEvent| event.alert_type == name;
        if self.events.iter().filter(|e| of_type(e)).count() > KEPT_OF_TYPE
            && let Some(oldest) = self.events.iter().position(of_type)
        {
            self.events.remove(oldest);
        }
    }
}

impl Operation {
    /// Alerts that follow from what its jobs have done. True if something is new.
    pub fn look_for_alerts(&mut self, now: Time) -> bool {
        let found = self.controller.alerts();
        let over = controller::ALERTS.iter().filter(|name| found.iter().all(|(other, _)| other != *name));
        let over = over.fold(false, |changed, name| self.alerts.clear(now, name) | changed);
        let changed =
            found.into_iter().fold(over, |changed, (name, e)| self.alerts.raise(now, name, e) | changed);
        self.dirty |= changed;
        changed
    }
}

impl Kernel {
    /// Raises `schedule_job_timed_out`.
    pub(crate) fn note_timed_out(&mut self, now: Time, id: OperationId, job: JobId, node: &str, limit: Span) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        let message = format!(
            "Scheduling of a job took longer than \"schedule_allocation_time_limit\" ({limit}): node {node} has \
             not confirmed it"
        );
        let alert = Failure::new(message).with("job_id", job).with("node", node).with("time", now);
        operation.raise_alert(now, SCHEDULE_JOB_TIMED_OUT, alert);
        self.pending_work.dirty.insert(id);
    }

    /// Takes away alerts whose time is over; those of the life before carry their time with them.
    pub(crate) fn clear_old_alerts(&mut self, now: Time) {
        for operation in self.operations.values_mut() {
            let Some(alert) = operation.alerts.get(SCHEDULE_JOB_TIMED_OUT) else { continue };
            let raised = alert.attributes.get("time").and_then(|t| Time::parse(t.as_str()?));
            if raised.is_none_or(|raised| now.since(raised) >= TIMED_OUT_SHOWN) {
                operation.clear_alert(now, SCHEDULE_JOB_TIMED_OUT);
                self.pending_work.dirty.insert(operation.id);
            }
        }
    }

    /// Asks the controllers of operations that have changed since the last look. One that does not run
    /// has nothing new to tell: after a restart it does not even know of its jobs yet.
    pub(crate) fn look_for_alerts(&mut self, now: Time) {
        if now < self.periodic.alerts {
            return;
        }
        self.periodic.alerts = now + LOOK_PERIOD;
        for id in std::mem::take(&mut self.alerts_due) {
            let running = self.operations.get_mut(&id).filter(|o| o.state == OperationState::Running);
            if running.is_some_and(|operation| operation.look_for_alerts(now)) {
                self.pending_work.dirty.insert(id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> Time {
        Time(second * 1_000_000)
    }

    /// `second+name:message` of what came, `second-name` of what went.
    fn story(alerts: &Alerts) -> Vec<String> {
        let line = |event: &AlertEvent| {
            let second = event.time.as_micros() / 1_000_000;
            match &event.error {
                Some(error) => format!("{second}+{}:{}", event.alert_type, error.message),
                None => format!("{second}-{}", event.alert_type),
            }
        };
        alerts.events.iter().map(line).collect()
    }

    #[test]
    fn comes_changes_its_words_goes_and_comes_again() {
        let mut alerts = Alerts::default();
        assert!(!alerts.clear(at(1), "slow"), "nothing is there");
        assert!(alerts.raise(at(2), "slow", Failure::new("a")));
        assert!(!alerts.raise(at(3), "slow", Failure::new("a")), "nothing new");
        assert!(alerts.raise(at(4), "slow", Failure::new("b")));
        assert_eq!(story(&alerts), ["2+slow:b"], "since when it is there, and what it says now");
        assert!(alerts.clear(at(5), "slow"));
        assert!(alerts.raise(at(6), "slow", Failure::new("a")));
        assert_eq!(story(&alerts), ["2+slow:b", "5-slow", "6+slow:a"]);
        assert_eq!(alerts.to_map().len(), 1);
    }

    #[test]
    fn the_newest_events_of_each_type_are_kept() {
        let mut alerts = Alerts::default();
        alerts.raise(at(0), "rare", Failure::new("r"));
        for turn in 1..=50 {
            alerts.raise(at(2 * turn), "often", Failure::new("o"));
            alerts.clear(at(2 * turn + 1), "often");
        }
        assert_eq!(story(&alerts), ["0+rare:r", "98+often:o", "99-often", "100+often:o", "101-often"]);
    }

    #[test]
    fn records_of_older_versions_have_no_events() {
        let present = Value::from(yson::map! { "slow" => Failure::new("a").to_value() });
        let mut alerts = Alerts::from_values(Some(&present), None);
        assert_eq!(alerts.to_map().len(), 1);
        assert!(alerts.clear(at(1), "slow") && alerts.to_map().is_empty());
        assert!(alerts.events_to_value().is_empty(), "nobody knows when it came");
        assert_eq!(Alerts::from_values(None, None), Alerts::default());
        let odd = Value::from(vec![Value::from("an event?"), Value::from(yson::map! { "time" => 5 })]);
        assert_eq!(Alerts::from_values(Some(&odd), Some(&odd)), Alerts::default());
    }

    /// Every sequence of six steps out of five.
    #[test]
    fn whatever_happens_events_tell_what_is_there() {
        for number in 0..5u32.pow(6) {
            let mut alerts = Alerts::default();
            for step in 0..6 {
                let now = at(u64::from(step));
                match number / 5u32.pow(step) % 5 {
                    0 => alerts.raise(now, "a", Failure::new("x")),
                    1 => alerts.raise(now, "a", Failure::new("y")),
                    2 => alerts.clear(now, "a"),
                    3 => alerts.raise(now, "b", Failure::new("x")),
                    _ => alerts.clear(now, "b"),
                };
            }
            for name in ["a", "b"] {
                let of_type: Vec<_> = alerts.events.iter().filter(|e| e.alert_type == name).collect();
                assert!(of_type.len() <= KEPT_OF_TYPE);
                assert!(
                    of_type.windows(2).all(|w| w[0].error.is_some() != w[1].error.is_some()),
                    "they come and go in turns: {alerts:?}"
                );
                assert_eq!(of_type.last().and_then(|e| e.error.as_ref()), alerts.get(name), "{alerts:?}");
            }
            assert!(alerts.events.is_sorted_by_key(|e| e.time));
            let (map, events) = (Value::from(alerts.to_map()), Value::from(alerts.events_to_value()));
            assert_eq!(Alerts::from_values(Some(&map), Some(&events)), alerts);
        }
    }
}
