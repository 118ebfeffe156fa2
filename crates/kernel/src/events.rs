//! The event log: what happened to jobs and operations, for whoever reads it later (scheduling.md 20,
//! jobs-and-nodes.md 7.3).
//!
//! Events of a turn become durable in the batch of that turn, under the number of the first of them;
//! when that is done an effect hands them to the edge, which appends them to files and says how far
//! it has come. Only then are the records dropped. So an event is never lost with a crash between
//! the two, and since numbers grow by one a writer that is told something again knows it.
//!
//! A record is what the store holds: small maps, and of a job that is over its record of the archive,
//! which is encoded anyway. [`events_of`] makes full events of it, on the writer's time.

use crate::jobs::Job;
use crate::{Effect, Kernel, Seq, records};
use controller::JobRecord;
use scheduler::StarvationNotice;
use std::collections::VecDeque;
use vocab::batch::{Batch, Table};
use vocab::{AbortReason, Failure, JobIdentity, JobState, OperationId, OperationState, Time};
use yson::{Map, Value};

/// Records that wait for the writer at most. A writer that is stuck for so long has lost the oldest:
/// their numbers are missing in its files.
const UNWRITTEN_LIMIT: usize = 50_000;

/// See the module page.
#[derive(Default)]
pub(crate) struct Events {
    enabled: bool,
    /// The time of this turn.
    now: Time,
    /// Number of the next event.
    next: u64,
    /// Not in the batch yet.
    pending: Vec<Value>,
    /// Records in the store, oldest first: numbers of their first event and behind their last one.
    stored: VecDeque<(u64, u64)>,
    /// The writer has everything up to here.
    written: u64,
}

impl Events {
    pub fn new(enabled: bool, first: u64) -> Events {
        Events { enabled, next: first.max(1), ..Events::default() }
    }

    pub fn set_time(&mut self, now: Time) {
        self.now = now;
    }

    /// Is there anything for the next batch?
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// The writer has everything up to this number, safely.
    pub fn written(&mut self, number: u64) {
        self.written = self.written.max(number);
    }

    /// Moves what has happened into the batch with this number.
    pub fn close(&mut self, seq: Seq, batch: &mut Batch) -> Option<Effect> {
        let effect = (!self.pending.is_empty()).then(|| {
            let events = std::mem::take(&mut self.pending);
            let first = self.next;
            self.next += events.len() as u64;
            self.stored.push_back((first, self.next));
            let stored = yson::to_binary(&events.into());
            batch.put(Table::Events, first.to_be_bytes(), stored.clone());
            Effect::Events { after: seq, first, stored }
        });
        // The newest stays: it says which number is the next.
        while self.stored.len() > 1 && self.stored.front().is_some_and(|(_, end)| *end <= self.written + 1)
            || self.stored.len() > UNWRITTEN_LIMIT
        {
            if let Some((first, _)) = self.stored.pop_front() {
                batch.delete(Table::Events, first.to_be_bytes());
            }
        }
        effect
    }

    /// Reads a record back; its events are handed out again.
    pub fn restore(&mut self, key: &[u8], value: Vec<u8>) -> Result<Effect, Failure> {
        let broken = || Failure::new(format!("Malformed record of the event log: {key:?}"));
        let first = u64::from_be_bytes(key.try_into().map_err(|_| broken())?);
        let count = yson::parse(&value).ok().and_then(|v| Some(v.as_list()?.len())).ok_or_else(broken)?;
        let end = first + count as u64;
        self.stored.push_back((first, end));
        self.next = self.next.max(end);
        Ok(Effect::Events { after: 0, first, stored: value })
    }
}

impl Kernel {
    /// Adds an event.
    pub(crate) fn log(&mut self, event: &str, fields: Map) {
        let events = &mut self.events;
        if events.enabled {
            let head = yson::map! {"event" => event, "time" => events.now};
            events.pending.push(head.into_iter().chain(fields).collect::<Map>().into());
        }
    }

    /// `job_started`: it was settled into its allocation; or, of a life that may not have got round to
    /// writing it down, it was taken over (`adopted`).
    pub(crate) fn log_start(&mut self, identity: &JobIdentity, job: &Job, start: Time, adopted: bool) {
        if !self.events.enabled {
            return;
        }
        let operation = self.operations.get(&job.operation);
        let predecessor = operation.and_then(|o| o.controller.job(identity.job_id)?.predecessor());
        let fields = yson::map! {
            "job_id" => identity.job_id,
            "allocation_id" => identity.allocation_id,
            "operation_id" => identity.operation_id,
            "task_name" => identity.task.as_str(),
            "job_type" => "vanilla",
            "job_cookie" => identity.cookie,
            "job_competition_id" => identity.job_id,
            "tree_id" => identity.tree.as_str(),
            "pool" => job.pool.as_str(),
            "node_address" => job.node.as_str(),
            "start_time" => start,
            "resource_limits" => job.resources.to_value(),
        }
        .with_some("predecessor_type", predecessor.map(|_| AbortReason::ResourceOverdraft))
        .with_some("predecessor_job_id", predecessor)
        .with_some("adopted", adopted.then_some(true));
        self.log("job_started", fields);
    }

    /// `job_completed`, `job_failed` or `job_aborted`; `job` is what the kernel knew of it.
    pub(crate) fn log_end(&mut self, record: &JobRecord, encoded: &[u8], job: Option<&Job>) {
        if !self.events.enabled {
            return;
        }
        let event = match record.state {
            JobState::Completed => "job_completed",
            JobState::Failed => "job_failed",
            _ => "job_aborted",
        };
        let preemptor = record.preempted_for.map(|(allocation, operation)| {
            let job = self.preemptions.jobs_of(record.identity.allocation_id).preemptor;
            yson::map! {"operation_id" => operation, "allocation_id" => allocation}.with_some("job_id", job)
        });
        let fields = yson::map! {"record" => Value::String(encoded.to_vec())}
            .with_some("pool", job.map(|j| j.pool.as_str()))
            .with_some("resource_limits", job.map(|j| j.resources.to_value()))
            .with_some("preempted_for", preemptor);
        self.log(event, fields);
    }

    /// Events of the life of an operation; nothing if the state is not one of them.
    pub(crate) fn log_state(&mut self, id: OperationId, state: OperationState) {
        self.changes.touch(crate::Topic::Operations);
        let Some(operation) = self.operations.get(&id).filter(|_| self.events.enabled) else { return };
        let event = match state {
            OperationState::Starting => "operation_started",
            OperationState::Pending => "operation_prepared",
            OperationState::Running => "operation_materialized",
            OperationState::Completed => "operation_completed",
            OperationState::Failed => "operation_failed",
            OperationState::Aborted => "operation_aborted",
            _ => return,
        };
        let trees = operation.trees.iter().map(|t| {
            let place =
                yson::map! {"pool" => t.pool.as_str(), "resource_limits" => t.resource_limits.clone()};
            (t.tree.as_str(), place.with_some("weight", t.weight))
        });
        let mut fields = yson::map! {
            "operation_id" => id,
            "operation_type" => operation.operation_type,
            "authenticated_user" => operation.user.as_str(),
            "start_time" => operation.start_time,
            "trees" => trees.collect::<Map>(),
        };
        match state {
            OperationState::Starting => {
                fields.insert("spec", operation.spec.provided.clone());
            }
            _ if state.is_finished() => {
                fields.insert("finish_time", self.events.now);
                if let Some(error) = &operation.result {
                    fields.insert("error", error.to_value());
                }
                fields.insert("alerts", operation.alert_map());
                let progress = operation.controller.brief_progress(self.events.now, state);
                if let Some(jobs) = progress.get("jobs") {
                    fields.insert("jobs", jobs.clone());
                }
            }
            _ => {}
        }
        self.log(event, fields);
    }

    /// `operation_banned_in_tree`: it may not use this tree any more.
    pub(crate) fn log_ban(&mut self, id: OperationId, tree: &str, error: &Failure) {
        let fields = yson::map! {"operation_id" => id, "tree_id" => tree, "error" => error.to_value()};
        self.log("operation_banned_in_tree", fields);
    }

    /// `operation_starvation_started` and `operation_starvation_finished`, of trees that want them.
    pub(crate) fn log_starvation(&mut self, notice: &StarvationNotice) {
        let fields = yson::map! {"operation_id" => notice.operation, "tree_id" => &*notice.tree};
        match notice.ended {
            None => self.log("operation_starvation_started", fields),
            Some((reason, lasted)) => {
                let fields = fields.with("reason", reason.as_str());
                self.log("operation_starvation_finished", fields.with("duration", lasted.as_millis() as i64));
            }
        }
    }
}

/// The events of a record ([`Effect::Events`]), each with its `number`, complete.
pub fn events_of(first: u64, stored: &[u8]) -> Result<Vec<Map>, Failure> {
    let broken = |why: &str| Failure::new(format!("Malformed record {first} of the event log: {why}"));
    let value = yson::parse(stored).map_err(|e| broken(&e.to_string()))?;
    let events = value.as_list().ok_or_else(|| broken("it is not a list"))?;
    let numbered = events.iter().zip(first..);
    numbered
        .map(|(event, number)| {
            let event = event.as_map().ok_or_else(|| broken("an event is not a map"))?;
            full(yson::map! {"number" => number}, event)
        })
        .collect()
}

/// Writes out the archived record of a job.
fn full(mut out: Map, event: &Map) -> Result<Map, Failure> {
    for (key, value) in event.iter() {
        match value.as_bytes().filter(|_| key == b"record") {
            None => drop(out.insert(key, value.clone())),
            Some(record) => {
                let job = records::archived_job_in_full(record)?;
                // What lists of jobs say for their own sake is left out; some names are others here.
                let names = [
                    ("job_id", "job_id"),
                    ("allocation_id", "allocation_id"),
                    ("operation_id", "operation_id"),
                    ("task_name", "task_name"),
                    ("type", "job_type"),
                    ("job_cookie", "job_cookie"),
                    ("job_id", "job_competition_id"),
                    ("pool_tree", "tree_id"),
                    ("address", "node_address"),
                    ("start_time", "start_time"),
                    ("finish_time", "finish_time"),
                    ("gang_rank", "gang_rank"),
                    ("error", "error"),
                    ("abort_reason", "reason"),
                    ("predecessor_type", "predecessor_type"),
                    ("predecessor_job_id", "predecessor_job_id"),
                    ("statistics", "statistics"),
                ];
                for (from, to) in names {
                    if let Some(value) = job.get(from) {
                        out.insert(to, value.clone());
                    }
                }
                let interruption = job.get("interruption_info").and_then(|i| i.get("interruption_reason"));
                if let Some(reason) = interruption {
                    out.insert("interruption_reason", reason.clone());
                }
            }
        }
    }
    Ok(out)
}
