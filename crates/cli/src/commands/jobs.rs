//! `job ...`.

use super::Session;
use super::operations::explain;
use crate::args::JobCommand;
use crate::error::CliError;
use crate::views::{Done, JobCard, JobExplanation, JobTable};
use std::io::{Write, stdout};
use yson::{Value, map};

pub fn run(session: &Session, command: JobCommand) -> Result<(), CliError> {
    let client = &session.client;
    match command {
        JobCommand::List { operation, state, task, limit } => {
            let filters = map! {"limit" => i64::from(limit), "sort_field" => "start_time", "sort_order" => "descending"}
                .with_some("job_state", state)
                .with_some("task_name", task);
            let reply = client.list_jobs(&operation, filters).map_err(explain)?;
            session.screen.show(&JobTable { reply })
        }
        JobCommand::Get { operation, job } => {
            session.screen.show(&JobCard { job: client.get_job(&operation, job).map_err(explain)? })
        }
        JobCommand::Explain { job } => {
            match client.question("job_explanation", &[("job_id", job.to_string())])?.into_bare() {
                Value::Map(map) => session.screen.show(&JobExplanation(map)),
                other => Err(CliError::failed(format!(
                    "the server's explanation is {}, expected a map",
                    other.type_name()
                ))),
            }
        }
        JobCommand::Stderr { operation, job } => {
            let bytes = client.get_job_stderr(&operation, job, 0).map_err(explain)?;
            session.screen.print(&bytes)
        }
        JobCommand::Input { operation, job } => {
            let mut out = stdout().lock();
            client.get_job_input(&operation, job, &mut out).map_err(explain)?;
            out.flush().map_err(|e| CliError::output(&e))
        }
        JobCommand::FailContext { operation, job } => {
            let bytes = client.get_job_fail_context(&operation, job).map_err(explain)?;
            session.screen.print(&bytes)
        }
        JobCommand::Shell { job, name, command } => {
            super::shell::run(session, job, name.as_deref(), &command)
        }
        JobCommand::Abort { jobs, interrupt_timeout } => {
            for job in &jobs {
                client.abort_job(*job, interrupt_timeout)?;
            }
            session
                .screen
                .show(&Done { verb: "aborted", names: jobs.iter().map(ToString::to_string).collect() })
        }
    }
}
