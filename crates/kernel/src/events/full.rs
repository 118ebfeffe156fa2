//! Events as readers see them, made of what the store holds.

use crate::records;
use vocab::Failure;
use yson::Map;

/// The events of a record ([`Effect::Events`]), each with its `number`, complete.
pub fn events_of(first: u64, stored: &[u8]) -> Result<Vec<Map>, Failure> {
    let broken = |why: &str| Failure::new(format!("Malformed record {first} of the event log: {why}"));
    let value = yson::parse_record(stored).map_err(|e| broken(&e.to_string()))?;
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
