//! Events as readers see them, made of what the store holds.

use crate::records;
use vocab::Failure;
use yson::{Map, ParseOptions, Rows};

/// The events of a record ([`Effect::Events`](crate::Effect::Events)), each with its `number`, one by one:
/// complete they take many times the room of what is stored, and the start of a large operation is one record.
/// Readers stop at an error.
pub fn events_of(first: u64, stored: &[u8]) -> impl Iterator<Item = Result<Map, Failure>> {
    let broken = move |number: u64, why: &str| {
        Failure::new(format!("Malformed record {number} of the event log: {why}"))
    };
    let events = items(stored);
    let no_list = events.is_none().then(|| Err(broken(first, "it is not a list")));
    let events = (first..).zip(events.into_iter().flatten()).map(move |(number, event)| {
        let event = event.map_err(|e| broken(number, &e.to_string()))?;
        let event = event.as_map().ok_or_else(|| broken(number, "an event is not a map"))?;
        full(yson::map! {"number" => number}, event)
    });
    no_list.into_iter().chain(events)
}

/// How many events a record has; none: it is not one. They are read one by one here, too.
pub(super) fn count(stored: &[u8]) -> Option<usize> {
    let mut events = items(stored)?;
    events.try_fold(0, |count, event| event.is_ok().then_some(count + 1))
}

fn items(stored: &[u8]) -> Option<Rows<'_>> {
    let items = stored.strip_prefix(b"[")?.strip_suffix(b"]")?;
    Some(Rows::with_options(items, ParseOptions::of_records()))
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
