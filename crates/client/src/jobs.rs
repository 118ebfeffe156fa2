//! Commands about jobs (http-api.md 8.6).

use std::io::Write;

use vocab::{JobId, Span};
use yson::{Map, Value, map};

use crate::operations::named;
use crate::{Client, ClientError};

impl Client {
    /// `list_jobs` of an operation, with filters and paging as in http-api.md 8.6.
    pub fn list_jobs(&self, operation: &str, filters: Map) -> Result<Map, ClientError> {
        let mut parameters = named(operation);
        for (name, value) in filters {
            parameters.insert_owned(name, value);
        }
        self.map("list_jobs", parameters)
    }

    /// `get_job`.
    pub fn get_job(&self, operation: &str, job: JobId) -> Result<Map, ClientError> {
        self.map("get_job", named(operation).with("job_id", job))
    }

    /// `get_job_stderr` from an offset: of a running job what there is so far, so that asking again
    /// with the new offset follows it.
    pub fn get_job_stderr(&self, operation: &str, job: JobId, offset: u64) -> Result<Vec<u8>, ClientError> {
        let parameters = named(operation).with("job_id", job).with("offset", offset);
        let mut bytes = Vec::new();
        self.download("get_job_stderr", parameters, &mut bytes)?;
        Ok(bytes)
    }

    /// `get_job_input`: all rows that a job was given, in its format, as they come; gives the number of bytes.
    pub fn get_job_input(
        &self,
        operation: &str,
        job: JobId,
        output: &mut dyn Write,
    ) -> Result<u64, ClientError> {
        self.download("get_job_input", named(operation).with("job_id", job), output)
    }

    /// `get_job_fail_context`: the rows that a failed job was given last, in its format; at most 10 MiB.
    pub fn get_job_fail_context(&self, operation: &str, job: JobId) -> Result<Vec<u8>, ClientError> {
        let mut bytes = Vec::new();
        self.download("get_job_fail_context", named(operation).with("job_id", job), &mut bytes)?;
        Ok(bytes)
    }

    /// `abort_job`; with a time-out the job is interrupted first and aborted after it.
    pub fn abort_job(&self, job: JobId, interrupt_timeout: Option<Span>) -> Result<(), ClientError> {
        let timeout = interrupt_timeout.map(|t| t.as_millis());
        self.command("abort_job", map! {"job_id" => job}.with_some("interrupt_timeout", timeout), None)
            .map(drop)
    }

    /// `poll_job_shell`, with its inner parameters; gives the inner result.
    pub fn poll_job_shell(
        &self,
        job: JobId,
        shell_name: Option<&str>,
        parameters: Map,
    ) -> Result<Map, ClientError> {
        let all = map! {"job_id" => job, "parameters" => parameters}.with_some("shell_name", shell_name);
        let reply = self.command("poll_job_shell", all, None)?;
        Ok(reply.get("result").and_then(Value::as_map).cloned().unwrap_or_default())
    }

    /// `run_job_shell_command`: what it prints, as it comes; gives the number of bytes.
    pub fn run_job_shell_command(
        &self,
        job: JobId,
        shell_name: Option<&str>,
        command: &str,
        output: &mut dyn Write,
    ) -> Result<u64, ClientError> {
        let parameters = map! {"job_id" => job, "command" => command}.with_some("shell_name", shell_name);
        self.download("run_job_shell_command", parameters, output)
    }

    /// `abandon_job`: the job counts as completed.
    pub fn abandon_job(&self, job: JobId) -> Result<(), ClientError> {
        self.command("abandon_job", map! {"job_id" => job}, None).map(drop)
    }
}
