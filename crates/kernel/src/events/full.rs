//! Events as readers see them, made of what the store holds.

use crate::records;
use vocab::Failure;
use yson::{Map, Value};

/// An event as the store has it: with the record of its job, where it has one, in few bytes.
#[derive(Clone, Debug)]
pub struct StoredEvent {
    /// Its number.
    pub number: u64,
    event: Value,
}

impl StoredEvent {
    /// All of it. It takes many times the room.
    pub fn complete(&self) -> Result<Map, Failure> {
        let event = self.event.as_map().ok_or_else(|| broken(self.number, "an event is not a map"))?;
        full(yson::map! {"number" => self.number}, event)
    }
}

fn broken(number: u64, why: &str) -> Failure {
    Failure::new(format!("Malformed record {number} of the event log: {why}"))
}

/// The events of a record ([`Effect::Events`]).
pub fn stored_events_of(first: u64, stored: &[u8]) -> Result<Vec<StoredEvent>, Failure> {
    match yson::parse_record(stored).map_err(|e| broken(first, &e.to_string()))? {
        Value::List(events) => {
            Ok((first..).zip(events).map(|(number, event)| StoredEvent { number, event }).collect())
        }
        _ => Err(broken(first, "it is not a list")),
    }
}

/// The same, each with its `number`, complete.
pub fn events_of(first: u64, stored: &[u8]) -> Result<Vec<Map>, Failure> {
    stored_events_of(first, stored)?.iter().map(StoredEvent::complete).collect()
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
                    ("job_competition_id", "job_competition_id"),
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
