//! Commands about a job that are put together of others (http-api.md 8.6).

use crate::api::Caller;
use crate::commands::{Params, Result, get_job_data, required};
use crate::{JobData, JobDataRequest, WriteFile};
use kernel::{Command, OperationRef};
use vocab::{Failure, Guid, JobId, OperationId, code};
use yson::ypath::YPath;
use yson::{Map, Value};

/// Parameters of `get_job_spec`.
pub struct JobSpecRequest {
    job: JobDataRequest,
    omit_input_table_specs: bool,
    omit_output_table_specs: bool,
}

/// Parameters of `get_job_spec`. There is no node directory that could be left out.
pub fn get_job_spec(params: &Params) -> Result<JobSpecRequest> {
    params.flag("omit_node_directory")?;
    Ok(JobSpecRequest {
        job: get_job_data(params, JobData::Input)?,
        omit_input_table_specs: params.flag("omit_input_table_specs")?,
        omit_output_table_specs: params.flag("omit_output_table_specs")?,
    })
}

/// Parameters of `dump_job_context`.
pub fn dump_job_context(params: &Params) -> Result<(JobDataRequest, YPath)> {
    Ok((get_job_data(params, JobData::Input)?, required("path", params.path("path"))?))
}

/// Parameters of `list_job_traces` and `get_job_trace`. Jobs here leave no traces of calls.
pub fn job_traces(params: &Params) -> Result<()> {
    get_job_data(params, JobData::Input).map(drop)
}

impl Caller {
    async fn ask(&self, command: Command) -> Result<Value> {
        self.api.backend.execute(self.user.clone(), None, command).await
    }

    /// What a job is told to do: who it is, its user script with every option, and its tables. Secrets of the
    /// operation are in none of these.
    pub(crate) async fn job_spec(&self, request: JobSpecRequest) -> Result<Value> {
        let JobDataRequest { operation, job_id, .. } = request.job.clone();
        let job = self.ask(Command::GetJob { operation, job_id, attributes: None }).await?;
        let id = job.get("operation_id").and_then(Value::as_str).and_then(|id| id.parse().ok());
        let id: OperationId = id.ok_or_else(|| no_operation(job_id))?;
        let operation = OperationRef::Id(id);
        // Who may read what jobs are given may know how.
        let may = Command::GetJobInput { operation: Some(operation.clone()), job_id };
        self.ask(Command::Authorize(Box::new(may))).await?;
        let attributes = Some(vec!["full_spec".to_owned()]);
        let known = self.ask(Command::GetOperation { operation: operation.clone(), attributes }).await?;
        let full = known.get("full_spec").and_then(Value::as_map).cloned().unwrap_or_default();
        let task = job.get("task_name").and_then(Value::as_str).unwrap_or_default();
        let script = full.get("tasks").and_then(|tasks| tasks.get(task)).or_else(|| full.get("mapper"));
        let mut spec: Map = ["job_id", "operation_id", "type", "task_name", "job_cookie", "pool_tree"]
            .into_iter()
            .filter_map(|name| Some((name, job.get(name)?.clone())))
            .collect();
        if let Some(script) = script {
            spec.insert("user_job_spec", script.clone());
        }
        if !request.omit_input_table_specs {
            let request = JobDataRequest { operation: Some(operation), ..request.job };
            // A job without tables has none.
            let paths = self.api.backend.job_input_paths(self.user.clone(), request).await;
            spec.insert("input_table_specs", paths.unwrap_or_else(|_| Value::List(Vec::new())));
        }
        if !request.omit_output_table_specs {
            let of_task = script.and_then(|script| script.get("output_table_paths"));
            let outputs = of_task.or_else(|| full.get("output_table_paths")).cloned();
            let single = full.get("output_table_path").map(|path| Value::List(vec![path.clone()]));
            let outputs = outputs.or(single).unwrap_or_else(|| Value::List(Vec::new()));
            spec.insert("output_table_specs", outputs);
        }
        Ok(spec.into())
    }

    /// Puts what a running job was given to read into a new file. A repetition finds the file that it has made, and
    /// writes the same again.
    pub(crate) async fn dump_context(
        &self,
        (request, path): (JobDataRequest, YPath),
        mutation_id: Option<Guid>,
    ) -> Result<Value> {
        let job_id = request.job_id;
        // Not a question about somebody's rows only: it is asked of those who steer the operation.
        self.ask(Command::Authorize(Box::new(Command::AbandonJob { operation: None, job_id }))).await?;
        // Who steers a job that is over is not known any more, and there is nothing to steer.
        let job = self.ask(Command::GetJob { operation: None, job_id, attributes: None }).await?;
        let state = job.get("state").and_then(Value::as_str).unwrap_or_default();
        if ["completed", "failed", "aborted"].contains(&state) {
            let message =
                format!("Job {job_id} is {state}: only what a running job reads is put into a file");
            return Err(Failure::coded(code::NO_SUCH_JOB, message));
        }
        let rows = self.api.backend.read_job_data(self.user.clone(), request).await?;
        let bare = YPath { attributes: Map::new(), ..path };
        let create = Command::Create {
            object_type: "file".to_owned(),
            path: Some(bare.clone()),
            attributes: Map::new(),
            recursive: false,
            ignore_existing: false,
            force: false,
            ignore_type_mismatch: false,
            lock_existing: false,
        };
        self.api.backend.execute(self.user.clone(), mutation_id, create).await?;
        let write = WriteFile { path: bare.clone(), append: false, compute_md5: false, transaction: None };
        let written = self.api.backend.write_file(self.user.clone(), write, rows).await;
        if written.is_err() {
            // Half a file is none.
            let _ = self.ask(Command::Remove { path: bare, recursive: false, force: true }).await;
        }
        written.map(|()| Value::Entity)
    }
}

fn no_operation(job_id: JobId) -> Failure {
    Failure::new(format!("Job {job_id} does not say of which operation it is"))
}
