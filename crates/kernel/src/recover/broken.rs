//! Operations whose records cannot be understood any more: damaged, or of a form that this version does
//! not know. They fail with the reason as their error, and an alert says so; what can be read of them goes
//! to the archive, their jobs are killed when nodes report them, and everybody else goes on.

use super::operations::StoredOperation;
use crate::Kernel;
use crate::alerts::Alerts;
use crate::finished::put_in_archive;
use crate::operation::Event;
use crate::records::{CLEAR_VAULT, event_from_value, event_value, tree_from_value};
use crate::summary::Summary;
use vocab::{Failure, OperationId, OperationState, OperationType, Time};
use yson::{Map, Value};

/// An operation that cannot go on.
pub(super) struct Broken<'a> {
    pub record: &'a StoredOperation,
    pub why: Failure,
}

/// What could not be restored at the last start.
#[derive(Default)]
pub(crate) struct NotRestored {
    reasons: Vec<Failure>,
    count: usize,
}

/// Reasons that the alert shows.
const SHOWN: usize = 10;

impl NotRestored {
    pub fn note(&mut self, why: Failure) {
        self.count += 1;
        if self.reasons.len() < SHOWN {
            self.reasons.push(why);
        }
    }

    /// `operations_not_restored`: until the next start, since nothing that happens meanwhile undoes it.
    pub fn alert(&self) -> Option<Failure> {
        (self.count > 0).then(|| {
            let message = format!("Operations that could not be restored at the last start: {}", self.count);
            let mut alert = Failure::new(message).with("count", self.count);
            alert.inner_errors.clone_from(&self.reasons);
            alert
        })
    }
}

impl Kernel {
    /// Ends it: state `failed`, the reason as its error, its records in the archive.
    pub(super) fn fail_broken(&mut self, now: Time, id: OperationId, broken: Broken<'_>) {
        let error = Failure::new("Operation could not be restored after a restart of the scheduler")
            .with("operation_id", id)
            .because(broken.why);
        let mut summary = summary(now, id, broken.record);
        let attributes = self.attributes_of_broken(&summary, broken.record, &error);
        put_in_archive(&mut self.open.batch, &mut summary, attributes);
        let event = yson::map! {
            "operation_id" => id,
            "operation_type" => summary.operation_type,
            "authenticated_user" => summary.user.as_str(),
            "start_time" => summary.start_time,
            "finish_time" => now,
            "error" => error.to_value(),
        };
        self.log("operation_failed", event);
        if let Some(alias) = &summary.alias {
            self.aliases.insert(alias.clone(), id);
        }
        self.finished.insert(summary);
        self.not_restored.note(error);
    }

    /// As much of `get_operation` as there is.
    fn attributes_of_broken(&self, summary: &Summary, record: &StoredOperation, error: &Failure) -> Map {
        let spec = spec_of(record);
        let brief = ["title", "alias", "pool"].iter().filter_map(|key| Some((*key, spec.get(key)?.clone())));
        let ended = summary.finish_time.unwrap_or_default();
        let changing = |key: &str| record.changing.get(key);
        let mut alerts = Alerts::from_values(changing("alerts"), changing("alert_events"));
        alerts.raise(ended, "operation_not_restored", error.clone());
        let known = record.changing.get("events").and_then(Value::as_list).unwrap_or_default();
        let ends = [OperationState::Failing, OperationState::Failed].map(|state| Event {
            time: ended,
            state,
            attributes: Map::new(),
        });
        let events: Vec<Value> =
            known.iter().filter_map(event_from_value).chain(ends).map(|event| event_value(&event)).collect();
        yson::map! {
            "id" => summary.id,
            "type" => summary.operation_type,
            "operation_type" => summary.operation_type,
            "state" => summary.state,
            "authenticated_user" => summary.user.as_str(),
            "start_time" => summary.start_time,
            "finish_time" => summary.finish_time,
            "suspended" => false,
            "spec" => spec.clone(),
            "provided_spec" => spec.clone(),
            "brief_spec" => brief.collect::<Map>(),
            "brief_progress" => Map::new(),
            "result" => yson::map! { "error" => error.to_value() },
            "alerts" => alerts.to_map(),
            "alert_events" => alerts.events_to_value(),
            "events" => events,
            "has_failed_jobs" => summary.has_failed_jobs,
            "controller_agent_address" => self.config.address.as_str(),
        }
    }
}

/// What lists show: facts that cannot be read have the most harmless value.
fn summary(now: Time, id: OperationId, record: &StoredOperation) -> Summary {
    let fixed = |key: &str| record.fixed.get(key);
    let trees = record.changing.get("trees").and_then(Value::as_list).unwrap_or_default();
    let spec = spec_of(record);
    let text = |key: &str| spec.get(key).and_then(Value::as_str);
    Summary {
        id,
        start_time: fixed("start_time").and_then(Value::as_u64).map_or(now, Time),
        finish_time: Some(now),
        user: fixed("user").and_then(Value::as_str).unwrap_or_default().to_owned(),
        operation_type: fixed("type")
            .and_then(|t| t.as_str()?.parse().ok())
            .unwrap_or(OperationType::Vanilla),
        state: OperationState::Failed,
        alias: text("alias").map(str::to_owned),
        pools: trees.iter().filter_map(tree_from_value).map(|t| (t.tree, t.pool)).collect(),
        has_failed_jobs: false,
        acl: record.changing.get("acl").and_then(Value::as_list).unwrap_or_default().into(),
        owners: record.changing.get("owners").and_then(Value::as_list).unwrap_or_default().into(),
        search: text("title").unwrap_or_default().to_lowercase(),
        archived_bytes: record.archived_bytes,
        text: String::new(),
    }
    .complete()
}

/// Without the secure vault, which versions before the encryption of vaults have left in it.
fn spec_of(record: &StoredOperation) -> Map {
    let mut spec = record.fixed.get("spec").and_then(Value::as_map).cloned().unwrap_or_default();
    spec.remove(CLEAR_VAULT);
    spec
}
