//! `op ...`.

use super::{Session, logs, preemptions};
use crate::args::OpCommand;
use crate::error::{CliError, exit};
use crate::views::{Done, OperationCard, OperationExplanation, OperationTable, Tree, integer, text};
use client::ClientError;
use vocab::{JobId, OperationState};
use yson::{Map, Value, map};

pub fn run(session: &Session, command: OpCommand) -> Result<(), CliError> {
    let client = &session.client;
    match command {
        OpCommand::List { state, user, pool, filter, limit } => {
            if let Some(state) = &state {
                check_state(state)?;
            }
            let filters = map! {
                "limit" => i64::from(limit),
                "include_counters" => false,
                "attributes" => OperationTable::ATTRIBUTES.to_vec(),
            }
            .with_some("state", state)
            .with_some("user", user)
            .with_some("pool", pool)
            .with_some("filter", filter);
            session.screen.show(&OperationTable { reply: client.list_operations(filters)? })
        }
        OpCommand::Get { operation, attribute } => {
            let attributes: Vec<&str> = attribute.iter().map(String::as_str).collect();
            if attributes.is_empty() {
                let operation = client.get_operation(&operation, None).map_err(explain)?;
                return session.screen.show(&OperationCard { operation });
            }
            let mut reply = client.get_operation(&operation, Some(&attributes)).map_err(explain)?;
            let value = match attributes.as_slice() {
                [one] => reply.remove(one).unwrap_or_default(),
                _ => reply.into(),
            };
            session.screen.show(&Tree(value))
        }
        OpCommand::Explain { operation } => {
            let id = id_of(session, &operation)?;
            let path = format!("//sys/scheduler/orchid/scheduler/operation_explanations/{id}");
            match client.get(&path, &[])?.into_bare() {
                Value::Map(map) => session.screen.show(&OperationExplanation(map)),
                other => Err(CliError::failed(format!(
                    "the server's explanation is {}, expected a map",
                    other.type_name()
                ))),
            }
        }
        OpCommand::Preemptions { operation, pool, limit } => {
            let operation = operation.map(|name| id_of(session, &name)).transpose()?;
            preemptions::run(session, operation.as_deref(), pool.as_deref(), limit as usize)
        }
        OpCommand::Shell { operation, task, name, command } => {
            let job = job_to_look_into(session, &operation, task.as_deref())?;
            super::shell::run(session, job, name.as_deref(), &command)
        }
        OpCommand::Abort { operations, message } => {
            each(session, "aborted", operations, |id| client.abort_operation(id, message.as_deref()))
        }
        OpCommand::Suspend { operations, abort_jobs, reason } => {
            each(session, "suspended", operations, |id| {
                client.suspend_operation(id, abort_jobs, reason.as_deref())
            })
        }
        OpCommand::Resume { operations } => {
            each(session, "resumed", operations, |id| client.resume_operation(id))
        }
        OpCommand::Complete { operations } => {
            each(session, "completed", operations, |id| client.complete_operation(id))
        }
        OpCommand::Update { operation, pool, weight } => {
            let parameters = Map::new().with_some("pool", pool).with_some("weight", weight);
            each(session, "updated", vec![operation], |id| {
                client.update_operation_parameters(id, parameters.clone())
            })
        }
        OpCommand::Logs(args) => logs::run(session, &args),
    }
}

/// The id behind an id or an alias, which the server must know.
fn id_of(session: &Session, name: &str) -> Result<String, CliError> {
    let operation = session.client.get_operation(name, Some(&["id"])).map_err(explain)?;
    Ok(text(&operation, "id").to_owned())
}

/// The running job that has run longest, told by its task and cookie.
fn job_to_look_into(session: &Session, operation: &str, task: Option<&str>) -> Result<JobId, CliError> {
    let oldest_first = map! {
        "limit" => 1_i64, "job_state" => "running", "sort_field" => "start_time", "sort_order" => "ascending",
    };
    let reply =
        session.client.list_jobs(operation, oldest_first.with_some("task_name", task)).map_err(explain)?;
    let found = reply.get("jobs").and_then(Value::as_list).and_then(<[Value]>::first).and_then(Value::as_map);
    let Some(job) = found else {
        let of_task = task.map(|task| format!(" of task {task:?}")).unwrap_or_default();
        return Err(CliError::failed(format!("operation {operation} has no running job{of_task}"))
            .with_hint(format!("`millpond op explain {operation}` says why nothing runs")));
    };
    let id = text(job, "id");
    let cookie = integer(job, "job_cookie");
    session.screen.tell(&format!("job {id} ({}/{cookie})", text(job, "task_name")));
    id.parse().map_err(|_| CliError::failed(format!("the server calls a job {id:?}, expected an id")))
}

fn check_state(state: &str) -> Result<(), CliError> {
    let known = OperationState::ALL.iter().map(|s| s.as_str());
    if known.clone().any(|s| s == state) {
        return Ok(());
    }
    Err(CliError::usage(format!("there is no state {state:?} of operations"))
        .with_hint(format!("states are {}", known.collect::<Vec<_>>().join(", "))))
}

/// Does the same to all, goes on after errors, and shows what was done.
fn each(
    session: &Session,
    verb: &'static str,
    names: Vec<String>,
    act: impl Fn(&str) -> Result<(), ClientError>,
) -> Result<(), CliError> {
    let mut done = Vec::new();
    let mut code = None;
    for name in names {
        match act(&name).map_err(explain) {
            Ok(()) => done.push(name),
            Err(error) if error.exit_code() == exit::NO_SERVER => return Err(error),
            Err(error) => {
                session.screen.complain(&error);
                code = Some(error.exit_code());
            }
        }
    }
    session.screen.show(&Done { verb, names: done })?;
    code.map_or(Ok(()), |code| Err(CliError::Silent(code)))
}

/// An error of the server with what to do about it.
pub(crate) fn explain(error: ClientError) -> CliError {
    const API_NO_SUCH_OPERATION: i64 = 1915;
    let unknown = error.contains_code(API_NO_SUCH_OPERATION);
    let error = CliError::from(error);
    match unknown {
        true => error.with_hint("`millpond op list` shows operations; an alias begins with *"),
        false => error,
    }
}
