//! Commands about operations (http-api.md 8.5).
//!
//! Operations are named as users name them: by id, or by alias with its leading `*`.

use vocab::{OperationId, OperationType};
use yson::{Map, Value, map};

use crate::{Client, ClientError};

/// Parameters that name an operation.
pub(crate) fn named(operation: &str) -> Map {
    let name = if operation.starts_with('*') { "operation_alias" } else { "operation_id" };
    map! {name => operation}
}

impl Client {
    /// `start_operation`. Repeated attempts start it once.
    pub fn start_operation(
        &self,
        operation_type: OperationType,
        spec: Map,
    ) -> Result<OperationId, ClientError> {
        let parameters = map! {"operation_type" => operation_type, "spec" => spec};
        let reply = self.command("start_operation", parameters, None)?;
        self.field(&reply, "start_operation", "operation_id", |v| v.as_str()?.parse().ok())
    }

    /// `get_operation`: these attributes, or all that exist.
    pub fn get_operation(&self, operation: &str, attributes: Option<&[&str]>) -> Result<Map, ClientError> {
        let parameters = named(operation).with_some("attributes", attributes.map(<[&str]>::to_vec));
        self.map("get_operation", parameters)
    }

    /// `list_operations` with filters and paging as in http-api.md 8.5.
    pub fn list_operations(&self, filters: Map) -> Result<Map, ClientError> {
        self.map("list_operations", filters)
    }

    /// `abort_operation`.
    pub fn abort_operation(&self, operation: &str, message: Option<&str>) -> Result<(), ClientError> {
        self.command("abort_operation", named(operation).with_some("abort_message", message), None).map(drop)
    }

    /// `suspend_operation`: no new jobs; the running ones go on unless they are to be aborted.
    pub fn suspend_operation(
        &self,
        operation: &str,
        abort_running_jobs: bool,
        reason: Option<&str>,
    ) -> Result<(), ClientError> {
        let parameters =
            named(operation).with("abort_running_jobs", abort_running_jobs).with_some("reason", reason);
        self.command("suspend_operation", parameters, None).map(drop)
    }

    /// `resume_operation`.
    pub fn resume_operation(&self, operation: &str) -> Result<(), ClientError> {
        self.command("resume_operation", named(operation), None).map(drop)
    }

    /// `complete_operation`: as if all jobs were done.
    pub fn complete_operation(&self, operation: &str) -> Result<(), ClientError> {
        self.command("complete_operation", named(operation), None).map(drop)
    }

    /// `update_operation_parameters`: all or nothing.
    pub fn update_operation_parameters(&self, operation: &str, parameters: Map) -> Result<(), ClientError> {
        let parameters = named(operation).with("parameters", parameters);
        self.command("update_operation_parameters", parameters, None).map(drop)
    }

    /// Runs a command that replies with a bare map.
    pub(crate) fn map(&self, command: &str, parameters: Map) -> Result<Map, ClientError> {
        match self.command(command, parameters, None)?.into_bare() {
            Value::Map(map) => Ok(map),
            other => Err(self.odd(command, "a map", &other)),
        }
    }
}
