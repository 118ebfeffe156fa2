//! `list_jobs`: filters, counters, order and paging over the fields of jobs, live and archived ones
//! alike (http-api.md 8.6).

use kernel::ListJobs;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use vocab::{Failure, Time};
use yson::{Map, Value};

/// The reply: `live` are unfinished jobs, `finished` those of the archive; a job in both is taken
/// from the archive (it ended between the two looks).
pub fn list(live: Vec<Map>, finished: Vec<Map>, query: &ListJobs) -> Result<Map, Failure> {
    let order = Order::parse(query)?;
    let ended: std::collections::BTreeSet<Vec<u8>> =
        finished.iter().filter_map(|j| j.get("id").and_then(Value::as_bytes).map(<[u8]>::to_vec)).collect();
    let still_live: Vec<Map> = live
        .into_iter()
        .filter(|j| !j.get("id").and_then(Value::as_bytes).is_some_and(|id| ended.contains(id)))
        .collect();
    let (live_count, archived_count) = (still_live.len(), finished.len());

    let mut types: BTreeMap<String, i64> = BTreeMap::new();
    let mut states: BTreeMap<String, i64> = BTreeMap::new();
    let mut rows = Vec::new();
    for job in still_live.into_iter().chain(finished) {
        if !matches(&job, query) {
            continue;
        }
        let kind = text(&job, "type");
        *types.entry(kind.to_owned()).or_default() += 1;
        if query.job_type.as_ref().is_some_and(|wanted| wanted != kind) {
            continue;
        }
        let state = text(&job, "state");
        *states.entry(state.to_owned()).or_default() += 1;
        if query.state.as_ref().is_some_and(|wanted| wanted != state) {
            continue;
        }
        rows.push(job);
    }
    order.sort(&mut rows);
    let total = rows.len();
    let jobs: Vec<Value> = rows
        .into_iter()
        .skip(query.offset)
        .take(query.limit)
        .map(|job| project(job, query.attributes.as_deref()).into())
        .collect();
    let next = query.offset + jobs.len();
    Ok(yson::map! {
        "jobs" => jobs,
        "cypress_job_count" => Value::Entity,
        "scheduler_job_count" => live_count,
        "controller_agent_job_count" => live_count,
        "archive_job_count" => archived_count,
        "type_counts" => types.into_iter().collect::<Map>(),
        "state_counts" => states.into_iter().collect::<Map>(),
        "errors" => Vec::<Value>::new(),
    }
    // With a limit of 0 only the counts are asked for: it would be the same page again.
    .with_some("continuation_token", (query.limit > 0 && next < total).then(|| next.to_string())))
}

/// Only the wanted fields; `id` stays.
pub fn project(job: Map, attributes: Option<&[String]>) -> Map {
    match attributes {
        None => job,
        Some(wanted) => job
            .into_iter()
            .filter(|(key, _)| key == b"id" || wanted.iter().any(|w| w.as_bytes() == key.as_slice()))
            .collect(),
    }
}

/// Only the wanted attributes of an operation.
pub fn project_named(map: Map, attributes: Option<&[String]>) -> Map {
    match attributes {
        None => map,
        Some(wanted) => {
            map.into_iter().filter(|(key, _)| wanted.iter().any(|w| w.as_bytes() == key.as_slice())).collect()
        }
    }
}

fn text<'a>(job: &'a Map, key: &str) -> &'a str {
    job.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn time(job: &Map, key: &str) -> Option<Time> {
    job.get(key).and_then(Value::as_str).and_then(Time::parse)
}

/// All filters but type and state, which the counters need apart.
fn matches(job: &Map, query: &ListJobs) -> bool {
    let has = |key: &str| job.get(key).and_then(Value::as_u64).is_some_and(|n| n > 0);
    let flag = |key: &str| job.get(key).and_then(Value::as_bool).unwrap_or(false);
    let same = |wanted: &Option<String>, key: &str| wanted.as_ref().is_none_or(|w| w == text(job, key));
    let start = time(job, "start_time");
    query.address.as_ref().is_none_or(|part| text(job, "address").contains(part.as_str()))
        && query.job_id.as_ref().is_none_or(|part| text(job, "id").contains(part.as_str()))
        && same(&query.operation_incarnation, "operation_incarnation")
        && query.with_interruption_info.is_none_or(|wanted| wanted == job.get("interruption_info").is_some())
        && query.with_spec.is_none_or(|wanted| wanted == flag("has_spec"))
        && query.with_competitors.is_none_or(|wanted| wanted == flag("has_competitors"))
        && query
            .with_monitoring_descriptor
            .is_none_or(|wanted| wanted == job.get("monitoring_descriptor").is_some())
        && same(&query.job_competition_id, "job_competition_id")
        && same(&query.monitoring_descriptor, "monitoring_descriptor")
        && query.with_stderr.is_none_or(|wanted| wanted == has("stderr_size"))
        && query.with_fail_context.is_none_or(|wanted| wanted == has("fail_context_size"))
        && same(&query.task_name, "task_name")
        && same(&query.pool_tree, "pool_tree")
        && query.from_time.is_none_or(|from| start.is_some_and(|s| s >= from))
        && query.to_time.is_none_or(|to| start.is_some_and(|s| s <= to))
}

struct Order {
    field: &'static str,
    descending: bool,
}

const SORT_FIELDS: &[&str] = &[
    "none",
    "type",
    "state",
    "start_time",
    "finish_time",
    "address",
    "duration",
    "progress",
    "id",
    "task_name",
];

impl Order {
    fn parse(query: &ListJobs) -> Result<Order, Failure> {
        let wanted = query.sort_field.as_deref().unwrap_or("none");
        let field = SORT_FIELDS.iter().find(|f| **f == wanted).ok_or_else(|| {
            Failure::new(format!("Unknown \"sort_field\" {wanted:?}: expected one of {SORT_FIELDS:?}"))
        })?;
        Ok(Order { field, descending: query.sort_descending })
    }

    /// Stable; ties, and the field `none`, are in the order of start, then id, so that pages do not overlap.
    fn sort(&self, rows: &mut [Map]) {
        rows.sort_by(|a, b| {
            let by_field = match self.field {
                "none" => Ordering::Equal,
                "duration" => duration(a).cmp(&duration(b)),
                "progress" => {
                    let of = |j: &Map| j.get("progress").and_then(Value::as_f64).unwrap_or(0.0);
                    of(a).total_cmp(&of(b))
                }
                field => text(a, field).cmp(text(b, field)),
            };
            let by_field = if self.descending { by_field.reverse() } else { by_field };
            by_field
                .then_with(|| text(a, "start_time").cmp(text(b, "start_time")))
                .then_with(|| text(a, "id").cmp(text(b, "id")))
        });
    }
}

/// Of finished jobs; running ones count as longer than all of them.
fn duration(job: &Map) -> u64 {
    match (time(job, "start_time"), time(job, "finish_time")) {
        (Some(start), Some(finish)) => finish.since(start).as_micros(),
        (Some(_), None) => u64::MAX,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: &str, state: &str, start: u64, finish: Option<u64>) -> Map {
        yson::map! {
            "id" => id, "state" => state, "type" => "vanilla", "task_name" => "t", "address" => "n1:1",
            "start_time" => Time::from_secs(start), "operation_incarnation" => "first",
        }
        .with_some(
            "interruption_info",
            (id == "a").then(|| yson::map! {"interruption_reason" => "preemption"}),
        )
        .with_some("finish_time", finish.map(Time::from_secs))
        .with_some("stderr_size", finish.map(|_| 3u64))
    }

    fn ids(query: ListJobs) -> Vec<String> {
        let live = vec![job("b", "running", 5, None), job("x", "running", 1, None)];
        let finished = vec![
            job("a", "failed", 3, Some(4)),
            job("c", "completed", 2, Some(9)),
            job("x", "completed", 1, Some(2)),
        ];
        let reply = list(live, finished, &query).expect("a good query");
        let jobs = reply.get("jobs").and_then(Value::as_list).expect("jobs").to_vec();
        jobs.iter().map(|j| j.get("id").and_then(Value::as_str).expect("id").to_owned()).collect()
    }

    fn query() -> ListJobs {
        ListJobs { limit: 100, ..ListJobs::default() }
    }

    #[test]
    fn filters_orders_and_pages() {
        assert_eq!(ids(query()), ["x", "c", "a", "b"]);
        assert_eq!(ids(ListJobs { state: Some("completed".into()), ..query() }), ["x", "c"]);
        assert_eq!(ids(ListJobs { with_stderr: Some(false), ..query() }), ["b"]);
        assert_eq!(ids(ListJobs { with_spec: Some(true), ..query() }), [""; 0]);
        assert_eq!(ids(ListJobs { with_competitors: Some(false), limit: 1, ..query() }), ["x"]);
        assert_eq!(ids(ListJobs { job_competition_id: Some("7-7-7-7".into()), ..query() }), [""; 0]);
        let by_duration = ListJobs { sort_field: Some("duration".into()), sort_descending: true, ..query() };
        assert_eq!(ids(by_duration), ["b", "c", "x", "a"]);
        assert_eq!(ids(ListJobs { limit: 2, offset: 1, ..query() }), ["c", "a"]);
        assert_eq!(ids(ListJobs { address: Some("n2".into()), ..query() }), [""; 0]);
        assert_eq!(ids(ListJobs { job_id: Some("x".into()), ..query() }), ["x"]);
        assert_eq!(ids(ListJobs { with_interruption_info: Some(true), ..query() }), ["a"]);
        assert_eq!(ids(ListJobs { with_interruption_info: Some(false), ..query() }), ["x", "c", "b"]);
        let incarnation = |name: &str| ids(ListJobs { operation_incarnation: Some(name.into()), ..query() });
        assert_eq!(incarnation("first"), ["x", "c", "a", "b"]);
        assert_eq!(incarnation("second"), [""; 0]);
    }

    #[test]
    fn counters_and_errors() {
        let finished = vec![job("a", "failed", 3, Some(4)), job("c", "completed", 2, Some(9))];
        let q = ListJobs { state: Some("failed".into()), limit: 0, ..query() };
        let reply = list(vec![], finished, &q).expect("a good query");
        let count =
            |state: &str| reply.get("state_counts").and_then(|c| c.get(state)).and_then(Value::as_i64);
        assert_eq!((count("failed"), count("completed")), (Some(1), Some(1)));
        assert!(list(vec![], vec![], &ListJobs { sort_field: Some("size".into()), ..query() }).is_err());
    }
}
