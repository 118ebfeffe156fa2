//! Millpond's own event log, JSON lines as `millpond events --json` prints them: every job that ended, but
//! for those that preemption ended, is work of its operation (simulator.md 6).

use super::{Row, Skipped, each_line};
use crate::error::SimError;
use std::collections::BTreeMap;
use std::path::Path;
use vocab::Time;
use yson::{JsonFormat, Map, Value};

/// What is known of an operation from its start.
struct Known {
    user: String,
    at: Time,
    tasks: Map,
}

/// A job that ended.
struct Ended {
    /// Of the file.
    line: u64,
    operation: String,
    task: String,
    /// Its place in the task; none: a log that does not say.
    cookie: Option<i64>,
    pool: Option<String>,
    start: Time,
    finish: Time,
    /// Granted to it: cores, and bytes with those of its proxy.
    granted: (Option<f64>, Option<f64>),
    cpu_s: Option<f64>,
    peak: Option<f64>,
    state: &'static str,
}

/// `start`: the moment that is 0, if it is not the first event.
pub(super) fn read(
    path: &Path,
    start: Option<Time>,
    rows: &mut Vec<Row>,
    skipped: &mut Skipped,
) -> Result<(), SimError> {
    let mut known: BTreeMap<String, Known> = BTreeMap::new();
    let mut jobs = Vec::new();
    let mut begin: Option<Time> = None;
    each_line(path, skipped, |line, number, skipped| {
        let event = yson::json::from_json(line.as_bytes(), &JsonFormat::utf8()).ok();
        let Some(event) = event.as_ref().and_then(Value::as_map) else {
            return skipped.add(path, number, "no JSON object");
        };
        let Some(time) = time(event, "time") else { return skipped.add(path, number, "no time") };
        begin = Some(begin.map_or(time, |begin| begin.min(time)));
        match text(event, "event") {
            Some("operation_started") => match start_of(event, time) {
                Some((id, operation)) => drop(known.insert(id, operation)),
                None => skipped.add(path, number, "an operation without an id"),
            },
            Some("job_completed") => end_of(event, "completed", &mut jobs, path, number, skipped),
            Some("job_failed") => end_of(event, "failed", &mut jobs, path, number, skipped),
            Some("job_aborted") => end_of(event, "aborted", &mut jobs, path, number, skipped),
            Some(_) => {}
            None => skipped.add(path, number, "no name of an event"),
        }
    })?;
    let begin = start.or(begin).unwrap_or(Time::ZERO);
    jobs.retain(|job| {
        let counts = start.is_none_or(|start| job.finish >= start);
        if !counts {
            skipped.add(path, job.line, "a job that ended before start_time");
        }
        counts
    });
    // They start in this order, and ended in another: what ends soon would run first.
    jobs.sort_by_key(|job| job.cookie.unwrap_or(i64::MAX));
    rows.extend(jobs.into_iter().map(|job| row(job, &known, begin)));
    Ok(())
}

fn text<'a>(event: &'a Map, key: &str) -> Option<&'a str> {
    event.get(key).and_then(Value::as_str)
}

fn time(event: &Map, key: &str) -> Option<Time> {
    Time::parse(text(event, key)?)
}

fn start_of(event: &Map, time: Time) -> Option<(String, Known)> {
    let id = text(event, "operation_id")?.to_owned();
    let tasks = event.get("spec").and_then(|spec| spec.get("tasks")?.as_map().cloned()).unwrap_or_default();
    let user = text(event, "authenticated_user").unwrap_or("unknown").to_owned();
    Some((id, Known { user, at: self::time(event, "start_time").unwrap_or(time), tasks }))
}

fn end_of(
    event: &Map,
    state: &'static str,
    jobs: &mut Vec<Ended>,
    path: &Path,
    number: u64,
    skipped: &mut Skipped,
) {
    if text(event, "reason") == Some("preemption") {
        return skipped.add(path, number, "preempted: its work was done again by another job");
    }
    let (Some(operation), Some(task)) = (text(event, "operation_id"), text(event, "task_name")) else {
        return skipped.add(path, number, "a job without operation_id and task_name");
    };
    let (Some(start), Some(finish)) = (time(event, "start_time"), time(event, "finish_time")) else {
        return skipped.add(path, number, "a job that did not start or whose times are not known");
    };
    let limits = event.get("resource_limits");
    let granted = |name: &str| limits.and_then(|l| l.get(name)?.as_f64());
    let statistics = event.get("statistics");
    let sum = |names: &[&str], what: &str| {
        let leaf = names.iter().try_fold(statistics?, |v, key| v.get(key))?;
        leaf.as_f64().or_else(|| leaf.get(what)?.as_f64())
    };
    let cpu_ms = |kind: &str| sum(&["user_job", "cpu", kind], "sum");
    let cpu_s = match (cpu_ms("user"), cpu_ms("system")) {
        (None, None) => None,
        (user, system) => Some((user.unwrap_or(0.0) + system.unwrap_or(0.0)) / 1000.0),
    };
    jobs.push(Ended {
        line: number,
        operation: operation.to_owned(),
        task: task.to_owned(),
        cookie: event.get("job_cookie").and_then(Value::as_i64),
        pool: text(event, "pool").map(str::to_owned),
        start,
        finish,
        granted: (granted("cpu"), granted("memory")),
        cpu_s,
        peak: sum(&["user_job", "max_memory"], "max").filter(|peak| *peak > 0.0),
        state,
    });
}

fn row(job: Ended, known: &BTreeMap<String, Known>, begin: Time) -> Row {
    let operation = known.get(&job.operation);
    let spec = operation.and_then(|o| o.tasks.get(&job.task));
    let asked = |name: &str| spec.and_then(|task| task.get(name)?.as_f64());
    let ran = job.finish.since(job.start).as_secs_f64();
    // What began before the log has the time left.
    let run_s = job.finish.since(job.start.max(begin)).as_secs_f64();
    let submitted = operation.map_or(begin, |o| o.at).max(begin);
    Row {
        operation: job.operation,
        task: job.task,
        user: operation.map(|o| o.user.clone()),
        status: Some(job.state.to_owned()),
        pool: job.pool,
        submit_s: submitted.since(begin).as_secs_f64(),
        wait_s: None,
        // A job of less than a millisecond is work, too.
        run_s: Some(run_s.max(0.001)),
        jobs: 1,
        cpu: asked("cpu_limit").or(job.granted.0),
        cpu_used: job.cpu_s.filter(|_| ran > 0.0).map(|cpu_s| cpu_s / ran),
        memory: asked("memory_limit").or(job.granted.1),
        memory_used: job.peak,
        gpu: asked("gpu_limit").unwrap_or(0.0),
        ..Row::default()
    }
}
