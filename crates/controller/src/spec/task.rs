//! One task of an operation: a user script and how many times to run it
//! (jobs-and-nodes.md 8.3).

use super::reader::{Reader, expected};
use super::root::RootOptions;
use super::script::UserScript;
use super::speculation::Speculation;
use vocab::Failure;

/// A task.
#[derive(Clone, PartialEq, Debug)]
pub struct TaskSpec {
    /// Key in `tasks`; also the job type in statistics.
    pub name: String,
    /// Type of its jobs: `vanilla` or `map`.
    pub job_type: &'static str,
    /// What a job runs.
    pub script: UserScript,
    /// Units of work.
    pub job_count: u32,
    /// A completed unit is pending again at once: service mode.
    pub restart_completed_jobs: bool,
    /// Ranked jobs of a gang; the rest of `job_count` is reserved.
    pub gang_size: Option<u32>,
    /// Its slow jobs get copies; none if nothing of it may run twice at once.
    pub speculation: Option<Speculation>,
    /// Output tables as given.
    pub output_table_paths: Vec<yson::Value>,
}

impl TaskSpec {
    pub(crate) fn read(
        r: &mut Reader<'_>,
        name: &str,
        root: &RootOptions,
        max_job_count: u32,
    ) -> Result<TaskSpec, Failure> {
        // The bound of the operation's total is checked by the caller; this one keeps sums small.
        let job_count = r.int("job_count", 1..=i64::from(u32::MAX)).required()?;
        if job_count > i64::from(max_job_count) {
            return Err(too_many_jobs(r, job_count, max_job_count));
        }
        let script = UserScript::read(r, &root.job_proxy_memory_digest)?;
        r.map("job_io").or(yson::Map::new())?;
        let output_table_paths = read_outputs(r)?;
        let restart_completed_jobs = r.bool("restart_completed_jobs").or(false)?;
        let gang_size = r.optional_section("gang_options", |g| g.int("size", 1..=job_count).or(job_count))?;
        let speculates = r.bool("enable_speculative_jobs").or(false)?;
        if gang_size.is_some() {
            // jobs-and-nodes.md 6.9
            let conflicts = [
                (script.fail_on_job_restart, "fail_on_job_restart"),
                (restart_completed_jobs, "restart_completed_jobs"),
                (speculates, "enable_speculative_jobs"),
                (!output_table_paths.is_empty(), "output_table_paths"),
            ];
            if let Some((_, other)) = conflicts.iter().find(|(set, _)| *set) {
                return Err(r.refuse("gang_options", format_args!("it excludes \"{other}\"")));
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
            job_count: job_count as u32,
            restart_completed_jobs,
            gang_size: gang_size.map(|s| s as u32),
            output_table_paths,
        })
    }
}

fn too_many_jobs(r: &Reader<'_>, found: i64, max: u32) -> Failure {
    r.refuse("job_count", format_args!("maximum total job count is {max}, found {found}"))
        .with("max_total_job_count", i64::from(max))
}

fn read_outputs(r: &mut Reader<'_>) -> Result<Vec<yson::Value>, Failure> {
    let paths = r.list(["output_table_paths", "output_paths"]).or(Vec::new())?;
    for (i, path) in paths.iter().enumerate() {
        let Some(text) = path.as_bytes() else {
            return Err(r.refuse("output_table_paths", expected("list of paths", path)));
        };
        if paths[..i].iter().any(|other| other.as_bytes() == Some(text)) {
            return Err(r.refuse("output_table_paths", "Duplicate entries in output_table_paths"));
        }
    }
    Ok(paths)
}
