//! Output of jobs: fetched as it grows, cut into lines, each with the name of its job.

use super::Session;
use super::follow::{self, Follow};
use super::operations::explain;
use crate::args::LogsArgs;
use crate::error::CliError;
use crate::output::Form;
use crate::views::{Logs, LogsOfJob, find, integer, text};
use client::{Client, ClientError};
use std::collections::BTreeMap;
use vocab::{JobId, JobState, code};
use yson::{Map, Value, map};

pub fn run(session: &Session, args: &LogsArgs) -> Result<(), CliError> {
    if args.follow {
        let operation = args.operation.clone();
        return follow::follow(
            session,
            &Follow { operation, only_failed: args.failed, abort_on_interrupt: false },
        );
    }
    let mut all = Vec::new();
    for job in jobs(&session.client, &args.operation, args)? {
        let Some(id) = text(&job, "id").parse::<JobId>().ok() else { continue };
        // Thousands of jobs may have ended without anything that was kept.
        if args.job.is_none() && is_finished(&job) && find(&job, "stderr_size").is_none() {
            continue;
        }
        match session.client.get_job_stderr(&args.operation, id, 0) {
            Ok(stderr) => all.push(LogsOfJob { job, stderr }),
            Err(error) if args.job.is_none() && error.contains_code(code::NO_SUCH_JOB) => {}
            Err(error) => return Err(explain(error)),
        }
    }
    if session.screen.form == Form::Json {
        return session.screen.show(&Logs(all));
    }
    all.retain(|one| !one.stderr.is_empty());
    let several = all.len() > 1;
    for one in &all {
        let mut lines = Lines::new(if several { label(&one.job) } else { String::new() });
        session.screen.print(&lines.feed(&one.stderr))?;
        session.screen.print(&lines.finish())?;
    }
    if all.is_empty() {
        session.screen.tell("there is no output");
    }
    Ok(())
}

/// The jobs that are meant, oldest first.
fn jobs(client: &Client, operation: &str, args: &LogsArgs) -> Result<Vec<Map>, CliError> {
    if let Some(id) = args.job {
        return Ok(vec![client.get_job(operation, id).map_err(explain)?.with("id", id)]);
    }
    let state = args.failed.then_some("failed");
    let mut all = Vec::new();
    loop {
        let jobs = page(client, operation, state, all.len() as i64).map_err(explain)?;
        let is_last = (jobs.len() as i64) < PAGE;
        all.extend(jobs);
        if is_last {
            return Ok(all);
        }
    }
}

fn is_finished(job: &Map) -> bool {
    text(job, "state").parse::<JobState>().is_ok_and(JobState::is_finished)
}

/// Jobs of one page of `list_jobs`, oldest first.
fn page(client: &Client, operation: &str, state: Option<&str>, offset: i64) -> Result<Vec<Map>, ClientError> {
    let filters = map! {
        "limit" => PAGE,
        "offset" => offset,
        "sort_field" => "start_time",
        "sort_order" => "ascending",
        "attributes" => vec!["id", "state", "task_name", "job_cookie", "stderr_size", "start_time"],
    }
    .with_some("job_state", state);
    let reply = client.list_jobs(operation, filters)?;
    let list = match reply.get("jobs").map(Value::bare) {
        Some(Value::List(list)) => list.clone(),
        _ => Vec::new(),
    };
    Ok(list.into_iter().filter_map(|job| job.as_map().cloned()).collect())
}

const PAGE: i64 = 1000;
/// So many running jobs are asked each time, whether or not their size has changed.
const POLLED: usize = 32;
/// A job whose output cannot be had after so many attempts is given up.
const ATTEMPTS: u32 = 3;

/// `[task/cookie] `.
fn label(job: &Map) -> String {
    format!("[{}/{}] ", text(job, "task_name"), integer(job, "job_cookie"))
}

/// Output of all jobs of an operation, as it grows.
#[derive(Default)]
pub(crate) struct Tail {
    streams: BTreeMap<JobId, Stream>,
    only_failed: bool,
}

struct Stream {
    offset: u64,
    lines: Lines,
    attempts: u32,
    done: bool,
}

impl Tail {
    pub fn new(only_failed: bool) -> Tail {
        Tail { only_failed, ..Tail::default() }
    }

    /// How many jobs it has seen.
    pub fn len(&self) -> usize {
        self.streams.len()
    }

    /// Fetches what is new and gives it to `sink`. `several`: lines get names. True if asking again may
    /// give more: something came, or could not be had this time.
    pub fn pump(
        &mut self,
        client: &Client,
        operation: &str,
        several: bool,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), CliError>,
    ) -> Result<bool, CliError> {
        let mut offset = 0;
        let mut polled = 0;
        let mut moved = false;
        loop {
            let jobs = page(client, operation, self.only_failed.then_some("failed"), offset)?;
            for job in &jobs {
                moved |= self.pump_job(client, operation, job, several, &mut polled, sink)?;
            }
            if (jobs.len() as i64) < PAGE {
                return Ok(moved);
            }
            offset += PAGE;
        }
    }

    fn pump_job(
        &mut self,
        client: &Client,
        operation: &str,
        job: &Map,
        several: bool,
        polled: &mut usize,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), CliError>,
    ) -> Result<bool, CliError> {
        let Ok(id) = text(job, "id").parse::<JobId>() else { return Ok(false) };
        let finished = is_finished(job);
        let size = find(job, "stderr_size").and_then(Value::as_u64).unwrap_or_default();
        let stream = self.streams.entry(id).or_insert_with(|| Stream {
            offset: 0,
            lines: Lines::new(if several { label(job) } else { String::new() }),
            attempts: 0,
            done: false,
        });
        if stream.done {
            return Ok(false);
        }
        // The size of a running job comes with heartbeats and lags behind: ask some of them anyway.
        let mut more = false;
        if size > stream.offset || (!finished && *polled < POLLED) {
            *polled += usize::from(!finished);
            match client.get_job_stderr(operation, id, stream.offset) {
                Ok(bytes) => {
                    stream.offset += bytes.len() as u64;
                    more = !bytes.is_empty();
                    let lines = stream.lines.feed(&bytes);
                    if !lines.is_empty() {
                        sink(&lines)?;
                    }
                }
                Err(error @ ClientError::Connection { .. }) => return Err(error.into()),
                // It was not kept, or has just ended, or its node is away: the next round will tell.
                Err(_) if finished => {
                    stream.attempts += 1;
                    more = stream.attempts < ATTEMPTS;
                }
                Err(_) => {}
            }
        }
        if finished && (size <= stream.offset || !more) {
            stream.done = true;
            let rest = stream.lines.finish();
            if !rest.is_empty() {
                sink(&rest)?;
            }
        }
        Ok(more)
    }
}

/// Cuts bytes into lines and puts a label before each. Without a label bytes pass as they come.
pub(crate) struct Lines {
    label: String,
    partial: Vec<u8>,
}

impl Lines {
    pub fn new(label: String) -> Lines {
        Lines { label, partial: Vec::new() }
    }

    /// Whole lines; the rest waits for its end.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        if self.label.is_empty() {
            self.partial =
                bytes.last().filter(|b| **b != b'\n').map(|b| vec![*b]).unwrap_or_else(|| match bytes {
                    [] => std::mem::take(&mut self.partial),
                    _ => Vec::new(),
                });
            return bytes.to_vec();
        }
        let mut out = Vec::new();
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            if piece.ends_with(b"\n") {
                out.extend_from_slice(self.label.as_bytes());
                out.append(&mut self.partial);
                out.extend_from_slice(piece);
            } else {
                self.partial.extend_from_slice(piece);
            }
        }
        out
    }

    /// The last line, if it has no end, with one.
    pub fn finish(&mut self) -> Vec<u8> {
        let partial = std::mem::take(&mut self.partial);
        match (partial.is_empty(), self.label.is_empty()) {
            (true, _) => Vec::new(),
            // It has been printed already but for its end.
            (false, true) => b"\n".to_vec(),
            (false, false) => [self.label.as_bytes(), &partial, b"\n"].concat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    fn check(label: &str, pieces: &[&str], expected: &str) {
        let mut lines = Lines::new(label.to_owned());
        let mut out = Vec::new();
        for piece in pieces {
            out.extend(lines.feed(piece.as_bytes()));
        }
        out.extend(lines.finish());
        assert_eq!(String::from_utf8_lossy(&out), expected, "{label:?} {pieces:?}");
    }

    #[test]
    fn lines_have_labels() {
        check("[t/0] ", &["a\nb\n"], "[t/0] a\n[t/0] b\n");
        check("[t/0] ", &["a", "b", "\nc"], "[t/0] ab\n[t/0] c\n");
        check("[t/0] ", &["", "\n"], "[t/0] \n");
        check("[t/0] ", &[], "");
    }

    #[test]
    fn without_a_label_bytes_pass() {
        check("", &["a", "b\n", "c"], "ab\nc\n");
        check("", &["a\n", ""], "a\n");
        check("", &["a", ""], "a\n");
    }
}
