//! Commands of operations (http-api.md 8.5).

use super::params::{Params, Result, required};
use kernel::EventsOfOperation;
use kernel::command::{AccessFilter, Command, ListOperations};
use vocab::{Failure, OperationState, OperationType};
use yson::Value;

/// Larger limits of `list_operations` are cut to this (http-api.md 8.5 [X]).
const MAX_LIST_LIMIT: usize = 1000;

pub(super) fn start(params: &Params) -> Result<Command> {
    Ok(Command::StartOperation {
        operation_type: required("operation_type", params.parsed("operation_type"))?,
        spec: required("spec", params.map("spec"))?,
    })
}

pub(super) fn abort(params: &Params) -> Result<Command> {
    Ok(Command::AbortOperation {
        operation: params.required_operation()?,
        message: params.string("abort_message")?,
    })
}

pub(super) fn suspend(params: &Params) -> Result<Command> {
    Ok(Command::SuspendOperation {
        operation: params.required_operation()?,
        abort_running_jobs: params.flag("abort_running_jobs")?,
        reason: params.string("reason")?,
    })
}

pub(super) fn resume(params: &Params) -> Result<Command> {
    Ok(Command::ResumeOperation { operation: params.required_operation()? })
}

pub(super) fn complete(params: &Params) -> Result<Command> {
    Ok(Command::CompleteOperation { operation: params.required_operation()? })
}

pub(super) fn update_parameters(params: &Params) -> Result<Command> {
    Ok(Command::UpdateOperationParameters {
        operation: params.required_operation()?,
        parameters: required("parameters", params.map("parameters"))?,
    })
}

pub(super) fn patch_spec(params: &Params) -> Result<Command> {
    let patches = required("patches", Ok(params.value("patches").cloned()))?;
    let one = |patch: &Value| {
        let path = patch.get("path").and_then(Value::as_str)?;
        Some((path.to_owned(), patch.get("value")?.clone()))
    };
    let list = patches.as_list().filter(|list| !list.is_empty());
    let patches = list.and_then(|list| list.iter().map(one).collect::<Option<Vec<_>>>());
    let wrong = || {
        let text = "Parameter \"patches\" must be a non-empty list of maps {path=<path in the spec>; value=<new value>}";
        Failure::new(text).with("parameter", "patches")
    };
    Ok(Command::PatchOperationSpec {
        operation: params.required_operation()?,
        patches: patches.ok_or_else(wrong)?,
    })
}

pub(super) fn get(params: &Params) -> Result<Command> {
    Ok(Command::GetOperation {
        operation: params.required_operation()?,
        attributes: params.attribute_names()?,
    })
}

pub(super) fn list(params: &Params) -> Result<Command> {
    Ok(Command::ListOperations(Box::new(ListOperations {
        user: params.string("user")?,
        state: params.name::<OperationState>("state")?,
        operation_type: params.name::<OperationType>("type")?,
        filter: params.string("filter")?,
        pool_tree: params.string("pool_tree")?,
        pool: params.string("pool")?,
        with_failed_jobs: params.boolean("with_failed_jobs")?,
        from_time: params.time("from_time")?,
        to_time: params.time("to_time")?,
        cursor_time: params.time("cursor_time")?,
        cursor_direction: params.string("cursor_direction")?,
        limit: params.count("limit")?.unwrap_or(100).min(MAX_LIST_LIMIT),
        include_counters: params.boolean("include_counters")?.unwrap_or(true),
        access: params.inside("access")?.map(|own| access(&own)).transpose()?,
        attributes: params.attribute_names()?,
    })))
}

/// The filter `access={subject; permissions}`.
fn access(own: &Params) -> Result<AccessFilter> {
    let wrong = |what: &str| {
        Failure::new(format!(
            "Parameter \"access\" must be a map {{subject=<name>; permissions=[<names>]}}: {what}"
        ))
        .with("parameter", "access")
    };
    let subject = own.string("subject").ok().flatten();
    let subject = subject.ok_or_else(|| wrong("\"subject\" must be a string"))?;
    let permissions = own.strings("permissions").ok().flatten();
    let permissions = permissions.ok_or_else(|| wrong("\"permissions\" must be a list of strings"))?;
    if let Some(unknown) = own.names().find(|key| key != "subject" && key != "permissions") {
        return Err(wrong(&format!("unknown key {unknown:?}")));
    }
    Ok(AccessFilter { subject, permissions })
}

/// What can happen to an operation, as far as clients are told.
const EVENT_TYPES: [&str; 2] = ["incarnation_started", "state_changed"];

pub(super) fn events(params: &Params) -> Result<Command> {
    Ok(Command::ListOperationEvents {
        operation: params.required_operation()?,
        query: EventsOfOperation {
            event_type: params.one_of("event_type", &EVENT_TYPES)?,
            limit: params.count("limit")?,
        },
    })
}
