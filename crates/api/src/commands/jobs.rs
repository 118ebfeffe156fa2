//! Commands of jobs (http-api.md 8.6).

use super::params::{Params, Result, required};
use crate::{JobData, JobDataRequest, StderrRequest};
use kernel::command::{Command, ListJobs};
use vocab::{Failure, JobId, JobState};

/// Types of jobs, as the public interface names them; not all operations that have them are implemented.
const JOB_TYPES: [&str; 17] = [
    "vanilla",
    "map",
    "ordered_map",
    "unordered_merge",
    "ordered_merge",
    "sorted_merge",
    "shallow_merge",
    "partition",
    "partition_map",
    "partition_reduce",
    "sorted_reduce",
    "join_reduce",
    "reduce_combiner",
    "simple_sort",
    "intermediate_sort",
    "final_sort",
    "remote_copy",
];

fn job_id(params: &Params) -> Result<JobId> {
    required("job_id", params.parsed("job_id"))
}

/// `include_*` and `data_source` are ignored on purpose: the client sends values that would hide
/// running jobs, and expects them nevertheless.
pub(super) fn list(params: &Params) -> Result<Command> {
    // The client says `job_type`, browsers say `type`.
    let job_type = params.one_of("job_type", &JOB_TYPES)?.or(params.one_of("type", &JOB_TYPES)?);
    let state = params.name::<JobState>("job_state")?.or(params.name::<JobState>("state")?);
    let sort_descending = match params.string("sort_order")?.as_deref() {
        None | Some("ascending") => false,
        Some("descending") => true,
        Some(other) => {
            return Err(Failure::new(format!(
                "Parameter \"sort_order\" must be \"ascending\" or \"descending\", found {other:?}"
            )));
        }
    };
    // Where the page before ended, as the server has said it.
    let offset = match params.string("continuation_token")? {
        None => params.count("offset")?.unwrap_or(0),
        Some(token) => token.parse().map_err(|_| {
            Failure::new(format!(
                "Parameter \"continuation_token\" must be one that list_jobs has answered with, found {token:?}"
            ))
        })?,
    };
    Ok(Command::ListJobs(Box::new(ListJobs {
        operation: Some(params.required_operation()?),
        job_type,
        state,
        address: params.string("address")?,
        job_id: params.string("job_id")?,
        operation_incarnation: params.string("operation_incarnation")?,
        with_stderr: params.boolean("with_stderr")?,
        with_fail_context: params.boolean("with_fail_context")?,
        with_interruption_info: params.boolean("with_interruption_info")?,
        with_spec: params.boolean("with_spec")?,
        with_competitors: params.boolean("with_competitors")?,
        with_monitoring_descriptor: params.boolean("with_monitoring_descriptor")?,
        job_competition_id: params.string("job_competition_id")?,
        monitoring_descriptor: params.string("monitoring_descriptor")?,
        task_name: params.string("task_name")?,
        pool_tree: params.string("pool_tree")?,
        from_time: params.time("from_time")?,
        to_time: params.time("to_time")?,
        sort_field: params.string("sort_field")?,
        sort_descending,
        limit: params.count("limit")?.unwrap_or(1000),
        offset,
        attributes: params.attribute_names()?,
    })))
}

pub(super) fn get(params: &Params) -> Result<Command> {
    Ok(Command::GetJob {
        operation: params.operation()?,
        job_id: job_id(params)?,
        attributes: params.attribute_names()?,
    })
}

pub(super) fn abort(params: &Params) -> Result<Command> {
    let interrupt_timeout = params.milliseconds("interrupt_timeout")?;
    Ok(Command::AbortJob { operation: params.operation()?, job_id: job_id(params)?, interrupt_timeout })
}

pub(super) fn abandon(params: &Params) -> Result<Command> {
    Ok(Command::AbandonJob { operation: params.operation()?, job_id: job_id(params)? })
}

/// Parameters of a command that reads what a job was given or has left.
pub fn get_job_data(params: &Params, data: JobData) -> Result<JobDataRequest> {
    if data == JobData::Input {
        // It is the same everywhere here; in the reference nodes and the archive know different jobs.
        match params.string("job_spec_source")?.as_deref() {
            None | Some("auto" | "node" | "archive") => {}
            Some(other) => {
                return Err(Failure::new(format!(
                    "Parameter \"job_spec_source\" must be \"auto\", \"node\" or \"archive\", found {other:?}"
                )));
            }
        }
    }
    Ok(JobDataRequest { operation: params.operation()?, job_id: job_id(params)?, data })
}

/// Parameters of `get_job_stderr`; none if a stderr is asked for that no job here has.
pub fn get_job_stderr(params: &Params) -> Result<Option<StderrRequest>> {
    let request = StderrRequest {
        operation: params.operation()?,
        job_id: job_id(params)?,
        limit: params.unsigned("limit")?,
        offset: params.unsigned("offset")?,
    };
    match params.string("type")?.as_deref() {
        None | Some("user_job_stderr") => Ok(Some(request)),
        Some("gpu_check_stderr") => Ok(None),
        Some(other) => Err(Failure::new(format!(
            "Parameter \"type\" must be \"user_job_stderr\" or \"gpu_check_stderr\", found {other:?}"
        ))),
    }
}
