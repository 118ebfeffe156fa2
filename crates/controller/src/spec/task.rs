//! One task of an operation: a user script and how many times to run it
//! (jobs-and-nodes.md 8.3).

use super::merge::path;
use super::reader::Reader;
use super::root::RootOptions;
use super::script::UserScript;
use super::speculation::Speculation;
use vocab::Failure;
use yson::ypath::YPath;
use yson::{Format, Value};

/// A task.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskSpec {
    /// Key in `tasks`; also the job type in statistics.
    pub name: String,
    /// Type of its jobs: `vanilla`, `map`, or a merge.
    pub job_type: &'static str,
    /// What a job runs.
    pub script: UserScript,
    /// Units of work.
    pub job_count: u32,
    /// The operation is not over before `job_count` has been raised to this: its owner sends work as it comes.
    /// Not more than `job_count` if nothing was said.
    pub expected_job_count: u32,
    /// A completed unit is pending again at once: service mode.
    pub restart_completed_jobs: bool,
    /// Ranked jobs of a gang; the rest of `job_count` is reserved.
    pub gang_size: Option<u32>,
    /// Its slow jobs get copies; none if nothing of it may run twice at once.
    pub speculation: Option<Speculation>,
    /// No unit may run twice at once (S19): its jobs have leases, and a unit is given away only when its job is known to be
    /// over or its lease is.
    pub exclusive: bool,
    /// Output tables, in the order of the script's descriptors; may have `append`.
    pub outputs: Vec<YPath>,
}

/// More outputs than descriptors of a process are for.
const MAX_OUTPUTS: usize = 100;

impl TaskSpec {
    /// Its jobs run what a user has written, and not something of ours.
    pub fn has_user_job(&self) -> bool {
        matches!(self.job_type, "vanilla" | "map")
    }

    pub(crate) fn read(
        r: &mut Reader<'_>,
        name: &str,
        root: &RootOptions,
        max_job_count: u32,
    ) -> Result<TaskSpec, Failure> {
        // The bound of the operation's total is checked by the caller; this one keeps sums small.
        let expected = r.int("expected_job_count", 1..=i64::from(max_job_count)).optional()?;
        // With nothing to begin with, if more is to come.
        let least = i64::from(expected.is_none());
        let job_count = r.int("job_count", least..=i64::from(u32::MAX)).required()?;
        if job_count > i64::from(max_job_count) {
            return Err(too_many_jobs(r, job_count, max_job_count));
        }
        let script = UserScript::read(r, &root.job_proxy_memory_digest)?;
        r.map("job_io").or(yson::Map::new())?;
        let listed = r.list(OUTPUTS).or(Vec::new())?;
        let outputs = read_outputs(r, &listed)?;
        if !outputs.is_empty() {
            check_format(r, "output_format", &script.output_format)?;
        }
        let restart_completed_jobs = r.bool("restart_completed_jobs").or(false)?;
        let gang_size = r.optional_section("gang_options", |g| g.int("size", 1..=job_count).or(job_count))?;
        let speculates = r.bool("enable_speculative_jobs").or(false)?;
        if gang_size.is_some() {
            // jobs-and-nodes.md 6.9
            let conflicts = [
                (script.fail_on_job_restart, "fail_on_job_restart"),
                (restart_completed_jobs, "restart_completed_jobs"),
                (speculates, "enable_speculative_jobs"),
                (!outputs.is_empty(), "output_table_paths"),
            ];
            if let Some((_, other)) = conflicts.iter().find(|(set, _)| *set) {
                return Err(r.refuse("gang_options", format_args!("it excludes \"{other}\"")));
            }
        }
        if expected.is_some() {
            // What cannot be resized cannot grow (6.10), and a service is never over.
            let conflicts = [
                (gang_size.is_some(), "gang_options"),
                (script.fail_on_job_restart || root.fail_on_job_restart, "fail_on_job_restart"),
                (restart_completed_jobs, "restart_completed_jobs"),
            ];
            if let Some((_, other)) = conflicts.iter().find(|(set, _)| *set) {
                return Err(r.refuse("expected_job_count", format_args!("it excludes \"{other}\"")));
            }
        }
        if speculates && restart_completed_jobs {
            return Err(r.refuse("enable_speculative_jobs", "it excludes \"restart_completed_jobs\""));
        }
        // Jobs of a vanilla task may do anything, so nobody runs one twice at once unless its owner says
        // that this does no harm (6.7, 8.3).
        let speculation =
            (speculates && !root.try_avoid_duplicating_jobs).then(|| Speculation::of(&script, root));
        Ok(TaskSpec {
            name: name.to_owned(),
            job_type: "vanilla",
            script,
            speculation,
            exclusive: false,
            job_count: job_count as u32,
            expected_job_count: expected.unwrap_or(0) as u32,
            restart_completed_jobs,
            gang_size: gang_size.map(|s| s as u32),
            outputs,
        })
    }
}

fn too_many_jobs(r: &Reader<'_>, found: i64, max: u32) -> Failure {
    r.refuse("job_count", format_args!("maximum total job count is {max}, found {found}"))
        .with("max_total_job_count", i64::from(max))
}

/// The option and its alias.
pub(super) const OUTPUTS: [&str; 2] = ["output_table_paths", "output_paths"];

/// Typed, none of them there twice.
pub(super) fn read_outputs(r: &Reader<'_>, listed: &[Value]) -> Result<Vec<YPath>, Failure> {
    let at = r.path_of(OUTPUTS[0]);
    let numbered = listed.iter().enumerate();
    let outputs: Vec<YPath> =
        numbered.map(|(i, v)| path(v, &format!("{at}/{i}"))).collect::<Result<_, _>>()?;
    if outputs.len() > MAX_OUTPUTS {
        let why = format_args!("at most {MAX_OUTPUTS} output tables are allowed, found {}", outputs.len());
        return Err(r.refuse(OUTPUTS[0], why));
    }
    for (i, output) in outputs.iter().enumerate() {
        if outputs[..i].iter().any(|other| other.text() == output.text()) {
            return Err(r.refuse(OUTPUTS[0], "Duplicate entries in output_table_paths"));
        }
    }
    Ok(outputs)
}

/// Refuses a format that nobody knows, of a script that reads or writes tables.
pub(super) fn check_format(r: &Reader<'_>, name: &str, format: &Value) -> Result<(), Failure> {
    Format::from_value(format).map(drop).map_err(|e| r.refuse(name, e))
}
