//! `job list`, `job get`, and output of jobs as an answer.

use crate::output::{Look, Output};
use crate::units::{age, bytes, count, span};
use crate::views::read::{error_lines, error_of, find, integer, text, time};
use crate::views::table::{Grid, Text, card, or_dash, shorten, state_colour};
use vocab::{Span, Time};
use yson::{Map, Value, map};

/// A page of jobs.
pub struct JobTable {
    /// Reply of `list_jobs`.
    pub reply: Map,
}

impl JobTable {
    fn jobs(&self) -> impl Iterator<Item = &Map> {
        let list = self.reply.get("jobs").and_then(Value::as_list).unwrap_or_default();
        list.iter().filter_map(Value::as_map)
    }
}

/// Why it ended so, in a few words.
fn reason(job: &Map) -> String {
    match (text(job, "abort_reason"), error_of(job, "error")) {
        ("" | "none", None) => String::new(),
        ("" | "none", Some(error)) => innermost(&error).to_owned(),
        (reason, _) => reason.to_owned(),
    }
}

/// The first cause says more than "User job failed".
fn innermost(error: &vocab::Failure) -> &str {
    error.inner_errors.first().map_or(error.message.as_str(), innermost)
}

fn lasted(job: &Map, now: Time) -> Option<Span> {
    Some(time(job, "finish_time").unwrap_or(now).since(time(job, "start_time")?))
}

impl Output for JobTable {
    fn human(&self, look: &Look) -> String {
        let headers = ["ID", "TASK", ">COOKIE", "STATE", "NODE", "STARTED", ">TIME", ">OUTPUT", "REASON"];
        let mut grid = Grid::new(look, &headers);
        let mut rows = 0;
        for job in self.jobs() {
            rows += 1;
            let state = text(job, "state");
            grid.row([
                text(job, "id").into(),
                or_dash(text(job, "task_name")).into(),
                integer(job, "job_cookie").to_string().into(),
                Text::coloured(or_dash(state), state_colour(state)),
                or_dash(text(job, "address")).into(),
                time(job, "start_time").map_or("-".to_owned(), |t| age(t, look.now)).into(),
                lasted(job, look.now).map_or("-".to_owned(), span).into(),
                match find(job, "stderr_size") {
                    Some(_) => bytes(integer(job, "stderr_size")),
                    None => "-".to_owned(),
                }
                .into(),
                shorten(&reason(job), 60).into(),
            ]);
        }
        if rows == 0 {
            return "No jobs.".to_owned();
        }
        let counts = find(&self.reply, "state_counts").and_then(Value::as_map);
        let counts: Vec<String> = counts
            .into_iter()
            .flat_map(Map::iter)
            .map(|(state, n)| {
                format!("{} {}", count(n.as_i64().unwrap_or_default()), String::from_utf8_lossy(state))
            })
            .collect();
        let all: i64 = find(&self.reply, "state_counts")
            .and_then(Value::as_map)
            .map_or(0, |m| m.iter().filter_map(|(_, n)| n.as_i64()).sum());
        let more = if all > rows {
            format!("\n(shown {rows} of {}: {})", count(all), counts.join(", "))
        } else {
            String::new()
        };
        grid.finish() + &more
    }
    fn json(&self) -> Value {
        self.reply.get("jobs").cloned().unwrap_or_default()
    }
    fn quiet(&self) -> String {
        self.jobs().map(|job| text(job, "id")).collect::<Vec<_>>().join("\n")
    }
}

/// One job.
pub struct JobCard {
    /// Reply of `get_job`.
    pub job: Map,
}

impl Output for JobCard {
    fn human(&self, look: &Look) -> String {
        let job = &self.job;
        let sum = |path: &str| find(job, &format!("statistics/{path}/sum")).and_then(Value::as_i64);
        let max = |path: &str| find(job, &format!("statistics/{path}/max")).and_then(Value::as_i64);
        let milliseconds = |ms: i64| span(Span::from_millis(ms.max(0) as u64));
        let facts = card(&[
            (
                "Job",
                [text(job, "job_id"), text(job, "id")]
                    .into_iter()
                    .find(|s| !s.is_empty())
                    .unwrap_or_default()
                    .to_owned(),
            ),
            ("Operation", text(job, "operation_id").to_owned()),
            ("Task", format!("{}, cookie {}", or_dash(text(job, "task_name")), integer(job, "job_cookie"))),
            ("State", text(job, "state").to_owned()),
            ("Node", text(job, "address").to_owned()),
            ("Pool", text(job, "pool").to_owned()),
            (
                "Started",
                time(job, "start_time").map(|t| format!("{t} ({})", age(t, look.now))).unwrap_or_default(),
            ),
            (
                "Finished",
                time(job, "finish_time").map(|t| format!("{t} ({})", age(t, look.now))).unwrap_or_default(),
            ),
            ("Time", lasted(job, look.now).map(span).unwrap_or_default()),
            ("CPU time", sum("user_job/cpu/user").map(milliseconds).unwrap_or_default()),
            ("Memory", max("user_job/max_memory").map(bytes).unwrap_or_default()),
            (
                "Output",
                find(job, "stderr_size").map(|_| bytes(integer(job, "stderr_size"))).unwrap_or_default(),
            ),
        ]);
        let mut parts = vec![facts];
        let events = find(job, "events").and_then(Value::as_list).unwrap_or_default();
        if !events.is_empty() {
            let line = |event: &Map| {
                format!(
                    "  {}  {} {}",
                    or_dash(text(event, "time")),
                    text(event, "state"),
                    text(event, "phase")
                )
                .trim_end()
                .to_owned()
            };
            let lines: Vec<String> = events.iter().filter_map(Value::as_map).map(line).collect();
            parts.push(format!("Events:\n{}", lines.join("\n")));
        }
        if let Some(failure) = error_of(job, "error") {
            let mut lines = vec!["Error:".to_owned()];
            error_lines(&failure, 1, &mut lines);
            parts.push(lines.join("\n"));
        }
        parts.join("\n\n")
    }
    fn json(&self) -> Value {
        self.job.clone().into()
    }
    fn quiet(&self) -> String {
        text(&self.job, "state").to_owned()
    }
}

/// Output of one job.
pub struct LogsOfJob {
    /// Element of `list_jobs`.
    pub job: Map,
    /// What it has written.
    pub stderr: Vec<u8>,
}

/// Output of jobs, for programs; people get it as it comes.
pub struct Logs(pub Vec<LogsOfJob>);

impl Output for Logs {
    fn human(&self, _: &Look) -> String {
        self.0.iter().map(|one| String::from_utf8_lossy(&one.stderr)).collect()
    }
    fn json(&self) -> Value {
        let one = |logs: &LogsOfJob| {
            map! {
                "job_id" => text(&logs.job, "id"),
                "task_name" => text(&logs.job, "task_name"),
                "job_cookie" => integer(&logs.job, "job_cookie"),
                "state" => text(&logs.job, "state"),
                "stderr" => logs.stderr.as_slice(),
            }
        };
        self.0.iter().map(one).collect::<Vec<_>>().into()
    }
    fn quiet(&self) -> String {
        self.human(&Look { colour: false, now: Time::ZERO })
    }
}
