//! What the cluster says about itself: pools from the scheduler's state, operations and jobs from the
//! commands that any user has.

use std::collections::BTreeMap;

use client::{Client, ClientError};
use vocab::{OperationId, OperationState, Time};
use yson::{Map, Value, map};

use crate::pools::POOLS;

/// A pool at one moment, in cores.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PoolNow {
    /// What its jobs have.
    pub usage: f64,
    /// What it would take.
    pub demand: f64,
    /// What it is entitled to now.
    pub fair: f64,
    /// What it is guaranteed.
    pub guarantee: f64,
    /// Operations that may run jobs.
    pub running: i64,
    /// Operations that wait for their turn to run.
    pub pending: i64,
}

/// All pools, in the order of [`POOLS`], from one snapshot of the scheduler.
pub fn pools(client: &Client, tree: &str) -> Result<Vec<PoolNow>, ClientError> {
    const FIELDS: [&str; 6] = [
        "resource_usage",
        "resource_demand",
        "fair_resources",
        "effective_strong_guarantee_resources",
        "operation_count",
        "running_operation_count",
    ];
    let path = format!("//sys/scheduler/orchid/scheduler/pool_trees/{tree}/pools");
    let parameters = map! {"path" => path, "fields" => FIELDS.to_vec(), "return_only_value" => true};
    let reply = client.command("get", parameters, None)?;
    Ok(POOLS.iter().map(|pool| reply.get(pool.name).map_or_else(PoolNow::default, pool_now)).collect())
}

fn pool_now(value: &Value) -> PoolNow {
    let cores = |name: &str| value.get(name).and_then(|map| map.get("cpu")?.as_f64()).unwrap_or(0.0);
    let count = |name: &str| value.get(name).and_then(Value::as_i64).unwrap_or(0);
    let running = count("running_operation_count");
    PoolNow {
        usage: cores("resource_usage"),
        demand: cores("resource_demand"),
        fair: cores("fair_resources"),
        guarantee: cores("effective_strong_guarantee_resources"),
        running,
        pending: count("operation_count") - running,
    }
}

/// States of all operations.
pub fn operations(client: &Client) -> Result<BTreeMap<OperationId, OperationState>, ClientError> {
    let reply = client.list_operations(map! {
        "attributes" => vec!["id", "state"], "limit" => 1000i64, "include_counters" => false,
    })?;
    let rows = reply.get("operations").and_then(Value::as_list).unwrap_or_default();
    Ok(rows.iter().filter_map(|row| Some((parsed(row, "id")?, parsed(row, "state")?))).collect())
}

/// What became of one operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Why it did not complete; none: it did.
    pub problem: Option<String>,
    /// Seconds from its submission to the start of its first process.
    pub wait: Option<f64>,
    /// Jobs that completed.
    pub completed: u64,
    /// Jobs that failed.
    pub failed: u64,
    /// Jobs that were stopped and run again: preempted, most of the time.
    pub aborted: u64,
    /// Seconds of CPU that its completed jobs burnt.
    pub cpu: f64,
    /// Most memory that one of them held, in bytes.
    pub memory: u64,
}

/// Looks at a finished operation and its jobs.
pub fn outcome(client: &Client, id: OperationId) -> Result<Outcome, ClientError> {
    let id = id.to_string();
    let operation = client.get_operation(&id, Some(&["state", "start_time", "result", "progress"]))?;
    let filters = map! {"limit" => 1000i64, "attributes" => vec!["state", "events"]};
    let jobs = client.list_jobs(&id, filters)?;
    Ok(read_outcome(&operation.into(), &jobs.into()))
}

fn read_outcome(operation: &Value, jobs: &Value) -> Outcome {
    let jobs = jobs.get("jobs").and_then(Value::as_list).unwrap_or_default();
    let in_state = |wanted: &str| {
        jobs.iter().filter(|job| job.get("state").and_then(Value::as_str) == Some(wanted)).count() as u64
    };
    // The event of the state `running` is the start of the user's process.
    let first = jobs
        .iter()
        .filter_map(|job| job.get("events")?.as_list())
        .flatten()
        .filter(|event| event.get("state").and_then(Value::as_str) == Some("running"))
        .filter_map(|event| Time::parse(event.get("time")?.as_str()?))
        .min();
    let submitted = operation.get("start_time").and_then(Value::as_str).and_then(Time::parse);
    let statistics = |path: &[&str], field: &str| {
        completed_summary(operation, path).and_then(|summary| summary.get(field)?.as_i64()).unwrap_or(0)
    };
    let milliseconds =
        statistics(&["user_job", "cpu", "user"], "sum") + statistics(&["user_job", "cpu", "system"], "sum");
    let state: Option<OperationState> = parsed(operation, "state");
    Outcome {
        problem: (state != Some(OperationState::Completed)).then(|| problem(operation, state)),
        wait: first.zip(submitted).map(|(first, submitted)| first.since(submitted).as_secs_f64()),
        completed: in_state("completed"),
        failed: in_state("failed"),
        aborted: in_state("aborted"),
        cpu: milliseconds as f64 / 1e3,
        memory: u64::try_from(statistics(&["user_job", "max_memory"], "max")).unwrap_or(0),
    }
}

/// The summary of a statistic over the completed jobs (http-api.md 9.3).
fn completed_summary<'v>(operation: &'v Value, path: &[&str]) -> Option<&'v Map> {
    let statistics = operation.get("progress")?.get("job_statistics_v2")?;
    let leaf = path.iter().try_fold(statistics, |node, key| node.get(key))?;
    let of_state = |entry: &&Value| {
        entry.get("tags").and_then(|tags| tags.get("job_state")).and_then(Value::as_str) == Some("completed")
    };
    leaf.as_list()?.iter().find(of_state)?.get("summary")?.as_map()
}

fn problem(operation: &Value, state: Option<OperationState>) -> String {
    let state = state.map_or_else(|| "in no known state".to_owned(), |state| state.to_string());
    // The innermost error is the cause, and the first one is as good as any.
    let mut error = operation.get("result").and_then(|result| result.get("error"));
    let mut messages = Vec::new();
    while let Some(one) = error {
        messages.extend(one.get("message").and_then(Value::as_str).filter(|text| !text.is_empty()));
        error = one.get("inner_errors").and_then(|inner| inner.as_list()?.first());
    }
    match messages.is_empty() {
        true => state,
        false => format!("{state}: {}", messages.join(": ")),
    }
}

fn parsed<T: std::str::FromStr>(value: &Value, name: &str) -> Option<T> {
    value.get(name)?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        yson::parse(text.as_bytes()).expect("YSON")
    }

    #[test]
    fn pools_in_cores() {
        let now = pool_now(&value(
            "{resource_usage={cpu=3.;memory=1};resource_demand={cpu=5.};fair_resources={cpu=4.5};\
             effective_strong_guarantee_resources={cpu=2.};operation_count=7;running_operation_count=3}",
        ));
        let expected = PoolNow { usage: 3.0, demand: 5.0, fair: 4.5, guarantee: 2.0, running: 3, pending: 4 };
        assert_eq!(now, expected);
        assert_eq!(pool_now(&value("{}")), PoolNow::default());
    }

    #[test]
    fn an_outcome_is_read_from_the_operation_and_its_jobs() {
        let operation = value(
            r#"{state=completed;start_time="2026-01-01T00:00:10.000000Z";progress={job_statistics_v2={user_job={
               max_memory=[{tags={job_state=completed};summary={sum=30;max=20}};{tags={job_state=aborted};summary={max=99}}];
               cpu={user=[{tags={job_state=completed};summary={sum=1500}}];system=[{tags={job_state=completed};summary={sum=500}}]}}}}}"#,
        );
        let jobs = value(
            r#"{jobs=[
               {state=completed;events=[{time="2026-01-01T00:00:11.000000Z";state=waiting};{time="2026-01-01T00:00:12.500000Z";state=running}]};
               {state=aborted;events=[{time="2026-01-01T00:00:12.000000Z";state=running}]};
               {state=aborted;events=[{time="2026-01-01T00:00:11.000000Z";state=waiting}]}]}"#,
        );
        let expected = Outcome {
            problem: None,
            wait: Some(2.0),
            completed: 1,
            failed: 0,
            aborted: 2,
            cpu: 2.0,
            memory: 20,
        };
        assert_eq!(read_outcome(&operation, &jobs), expected);
    }

    #[test]
    fn the_problem_is_named_down_to_the_cause() {
        let operation = value(
            r#"{state=failed;result={error={code=215;message="Failed jobs limit exceeded";
               inner_errors=[{message="User job failed";inner_errors=[{message="Memory limit exceeded"}]}]}}}"#,
        );
        assert_eq!(
            read_outcome(&operation, &value("{jobs=[]}")).problem.as_deref(),
            Some("failed: Failed jobs limit exceeded: User job failed: Memory limit exceeded")
        );
        assert_eq!(read_outcome(&value("{state=running}"), &value("{}")).problem.as_deref(), Some("running"));
        assert!(read_outcome(&value("{}"), &value("{}")).problem.is_some(), "no state is no success");
    }
}
