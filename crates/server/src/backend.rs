//! The API's backend: commands to the kernel, answers completed from the archive.

use crate::archive::Archive;
use crate::core_thread::{Mailbox, refusal_of};
use crate::event_log::Reader;
use crate::files::Files;
use crate::hub::Hub;
use crate::metrics::Measures;
use crate::readers::Readers;
use crate::tables::Tables;
use api::{
    Answer, Backend, BoxFuture, ByteStream, FileContent, JobData, JobDataRequest, JobShellRequest, ReadFile,
    ReadTable, StderrRequest, TableContent, WriteFile, WriteTable,
};
use bytes::Bytes;
use kernel::EventFilter;
use kernel::command::EventsFrom;
use kernel::{Body, Command, FailContext, Input, Request, StderrPlace, Versions};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinError;
use vocab::{Failure, Guid, JobId, ShellAnswer, code};
use yson::Value;

/// How long a node may take to hand out a part of a running job's stderr.
const STDERR_TIMEOUT: Duration = Duration::from_secs(10);

/// Answers from the archive, the event log and snapshots that are made at a time. The bytes of an answer are counted when
/// it is there: this bounds those that are not counted yet.
static MADE_AT_A_TIME: Semaphore = Semaphore::const_new(16);

/// Work on a thread that may wait for the disk, one of [`MADE_AT_A_TIME`]. It must wait for no client and no node.
async fn make<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    let _turn = MADE_AT_A_TIME.acquire().await;
    tokio::task::spawn_blocking(work).await
}

/// See the module page.
#[derive(Clone)]
pub struct ServerBackend {
    pub(crate) mailbox: Mailbox,
    pub(crate) hub: Arc<Hub>,
    pub(crate) archive: Archive,
    pub(crate) files: Files,
    pub(crate) tables: Tables,
    /// What is being read.
    pub(crate) readers: Readers,
    /// Where the event log is, if there is one.
    pub(crate) event_log: Option<Reader>,
    /// What has changed, as the kernel says after each turn.
    pub(crate) changes: watch::Receiver<Versions>,
    /// Grows when something about users, groups or tokens may have changed.
    pub(crate) subjects_changed: Arc<AtomicU64>,
    /// What is measured here.
    pub(crate) measures: Arc<Measures>,
}

impl ServerBackend {
    /// Puts a command into the kernel's queue; the answer comes when it is durable.
    pub(crate) fn ask(
        &self,
        user: String,
        mutation_id: Option<Guid>,
        command: Command,
    ) -> Result<oneshot::Receiver<Result<Body, Failure>>, Failure> {
        if command.changes_something()
            && let Some(failure) = self.hub.failure()
        {
            return Err(refusal_of(&command, &failure));
        }
        let (id, answer) = self.hub.expect_answer();
        self.mailbox.send(Input::Request(Request { id, user, mutation_id, command }));
        Ok(answer)
    }

    /// The kernel's complete answer.
    pub(crate) async fn value(&self, user: String, command: Command) -> Result<Value, Failure> {
        let answer = self.ask(user, None, command)?;
        self.complete(wait(answer).await?).await
    }

    /// Reads what the kernel does not hold. Scans of the store are kept off the runtime's threads.
    async fn complete(&self, body: Body) -> Result<Value, Failure> {
        if let Body::Value(value) = body {
            return Ok(value);
        }
        let archive = self.archive.clone();
        let event_log = self.event_log.clone();
        let read = make(move || match body {
            Body::Value(value) => Ok(value),
            Body::Shared(shared) => Ok(shared.value().clone()),
            Body::Snapshot(query) => Ok(query.answer()),
            Body::Events { from, limit, filter } => events(event_log.as_ref(), from, limit, &filter),
            Body::ArchivedOperation { id, node, attributes, steps } => {
                archive.operation_value(id, node, attributes.as_deref(), &steps)
            }
            Body::ArchivedEvents { id, query } => archive.events(id, &query),
            Body::OperationList { rows, attributes, rest } => {
                archive.operations(rows, attributes.as_deref(), rest).map(Value::from)
            }
            Body::JobList { operation_id, live, query } => {
                archive.jobs(operation_id, live, &query).map(Value::from)
            }
            Body::Job { operation_id, job_id, live, attributes, .. } => {
                let operation =
                    operation_id.ok_or_else(|| Failure::new("The operation of the job is not known"))?;
                archive.job(operation, job_id, live, attributes.as_deref()).map(Value::from)
            }
            Body::Metrics(_) => Err(Failure::new("Metrics are not a structured value")),
            Body::FilesToJoin(_) => Err(Failure::new("What is to be joined is not a structured value")),
            Body::Stderr { .. } | Body::FailContext { .. } | Body::JobInput { .. } => {
                Err(Failure::new("Bytes of a job are not a structured value"))
            }
        });
        read.await.map_err(|e| Failure::new(format!("Reading from the archive failed: {e}")))?
    }

    async fn job_data(self, user: String, request: JobDataRequest) -> Result<ByteStream, Failure> {
        let JobDataRequest { operation, job_id, data } = request;
        match data {
            JobData::Input => self.job_input(user, JobDataRequest { operation, job_id, data }).await,
            JobData::FailContext => {
                // The operation may be forgotten at any time.
                let reading = self.readers.begin();
                let command = |operation, job_id| Command::GetJobFailContext { operation, job_id };
                let Body::FailContext { operation_id, job_id } =
                    self.ask_about_job(user.clone(), (operation, job_id), command).await?
                else {
                    return Err(Failure::new("The kernel has told something else than a fail context"));
                };
                self.demand_input(user, operation_id, job_id).await?;
                let archive = self.archive.clone();
                let found = tokio::task::spawn_blocking(move || archive.fail_context(operation_id, job_id));
                let FailContext { blob, size } = found.await.map_err(|e| Failure::new(e.to_string()))??;
                Ok(reading.of([blob]).guard(self.files.stream(blob, 0, size)))
            }
        }
    }

    async fn stderr(self, user: String, request: StderrRequest) -> Result<Bytes, Failure> {
        let StderrRequest { operation, job_id, limit, offset } = request;
        let command = |operation, job_id| Command::GetJobStderr { operation, job_id, limit, offset };
        let body = self.ask_about_job(user, (operation, job_id), command).await?;
        let Body::Stderr { operation_id: Some(operation), job_id, place, limit, offset } = body else {
            return Err(Failure::new("The operation of the job is not known"));
        };
        let (offset, limit) = (offset.unwrap_or(0), limit.unwrap_or(u64::MAX));
        let mut answered = false;
        if let StderrPlace::Node { key: Some(node), .. } = place
            && let Some(answer) = self.hub.ask_stderr(node, job_id, offset, limit)
            && let Ok(Ok(told)) = tokio::time::timeout(STDERR_TIMEOUT, answer).await
        {
            match told {
                Ok(bytes) if !bytes.is_empty() => return Ok(bytes.into()),
                // A job that the node has forgotten is over.
                Ok(_) => answered = true,
                Err(failure) => answered = failure.code == code::NO_SUCH_JOB,
            }
        }
        // Over, perhaps since a moment ago: then its node may have forgotten it.
        let archive = self.archive.clone();
        let read = make(move || archive.stderr(operation, job_id, offset, limit));
        match (read.await.map_err(|e| Failure::new(e.to_string()))?, place) {
            (Ok(bytes), _) if !bytes.is_empty() => Ok(bytes.into()),
            (Err(failure), _) if failure.code != code::NO_SUCH_JOB => Err(failure),
            (read, StderrPlace::Archive) => read.map(Bytes::from),
            // Nobody but its node knows.
            (_, StderrPlace::Node { began: true, .. }) if !answered => Err(not_answered(job_id)),
            (_, StderrPlace::Node { .. }) => Ok(Bytes::new()),
        }
    }
}

/// Events of one answer, unless the question says otherwise, and at most.
const EVENTS_USUAL: usize = 1_000;
const EVENTS_LIMIT: usize = 100_000;

/// A part of the event log.
fn events(
    log: Option<&Reader>,
    from: EventsFrom,
    limit: Option<usize>,
    filter: &EventFilter,
) -> Result<Value, Failure> {
    let log = log.ok_or_else(|| {
        Failure::new("This server keeps no event log: \"event_log_files\" is 0 in its configuration")
    })?;
    let limit = limit.unwrap_or(EVENTS_USUAL).min(EVENTS_LIMIT);
    let page = crate::event_log::read(log, from, limit, filter)?;
    let lost = page
        .lost
        .iter()
        .map(|(from, to)| yson::map! {"from" => *from, "to" => *to, "count" => to - from + 1}.into());
    Ok(yson::map! {
        "events" => page.events,
        "next" => page.next,
        "oldest" => page.oldest,
        "newest" => page.newest,
        "lost" => lost.collect::<Vec<Value>>(),
    }
    .into())
}

/// Users, groups and tokens are nodes: every change of the tree may be one of them.
fn may_change_subjects(command: &Command) -> bool {
    matches!(
        command.inner(),
        Command::CommitTransaction { .. }
            | Command::Set { .. }
            | Command::MultisetAttributes { .. }
            | Command::Create { .. }
            | Command::Remove { .. }
            | Command::CopyMove { .. }
            | Command::AddMember { .. }
            | Command::RemoveMember { .. }
            | Command::RevokeToken { .. }
            | Command::RotateToken { .. }
            | Command::SetUserPassword { .. }
    )
}

/// Does work that takes a while on this thread, so that its order is kept; other tasks go on elsewhere.
fn beside_others<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

pub(crate) async fn wait(answer: oneshot::Receiver<Result<Body, Failure>>) -> Result<Body, Failure> {
    answer.await.unwrap_or_else(|_| Err(stopping()))
}

/// It may do so the next time.
pub(crate) fn not_answered(job_id: JobId) -> Failure {
    Failure::coded(code::TIMEOUT, format!("The node of job {job_id} does not answer")).with("job_id", job_id)
}

/// Whether it is not known if the change was made: then nothing that it may refer to is removed.
pub(crate) fn is_unknown(failure: &Failure) -> bool {
    failure.code == code::UNAVAILABLE
}

/// What became of a command is not known.
pub(crate) fn stopping() -> Failure {
    Failure::new("The server is stopping")
}

impl Backend for ServerBackend {
    fn execute(
        &self,
        user: String,
        mutation_id: Option<Guid>,
        command: Command,
    ) -> BoxFuture<Result<Value, Failure>> {
        if command.is_concatenate() {
            return self.concatenate(user, mutation_id, command);
        }
        if let Command::GetJob { operation: None, job_id, attributes } = command.inner() {
            let (this, job_id, attributes) = (self.clone(), *job_id, attributes.clone());
            let transaction = command.transaction();
            return Box::pin(async move {
                let command = |operation, job_id| {
                    Command::GetJob { operation, job_id, attributes: attributes.clone() }.through(transaction)
                };
                this.complete(this.ask_about_job(user, (None, job_id), command).await?).await
            });
        }
        let command = match command.has_large_spec() {
            true => match beside_others(|| command.read_ahead()) {
                Ok(command) => command,
                Err(failure) => return Box::pin(std::future::ready(Err(failure))),
            },
            false => command,
        };
        let about_subjects = may_change_subjects(&command);
        match self.ask(user, mutation_id, command) {
            Ok(answer) => {
                let this = self.clone();
                Box::pin(async move {
                    let body = wait(answer).await;
                    if about_subjects {
                        this.subjects_changed.fetch_add(1, Ordering::AcqRel);
                    }
                    this.complete(body?).await
                })
            }
            Err(failure) => Box::pin(std::future::ready(Err(failure))),
        }
    }

    fn answer(
        &self,
        user: String,
        mutation_id: Option<Guid>,
        command: Command,
    ) -> BoxFuture<Result<Answer, Failure>> {
        // Only questions about nodes have such answers.
        if !matches!(command.inner(), Command::Get { .. }) {
            let value = self.execute(user, mutation_id, command);
            return Box::pin(async move { value.await.map(Answer::Value) });
        }
        match self.ask(user, mutation_id, command) {
            Ok(answer) => {
                let this = self.clone();
                Box::pin(async move {
                    match wait(answer).await? {
                        Body::Shared(shared) => Ok(Answer::Shared(shared)),
                        body => this.complete(body).await.map(Answer::Value),
                    }
                })
            }
            Err(failure) => Box::pin(std::future::ready(Err(failure))),
        }
    }

    fn metrics(&self, user: String) -> BoxFuture<Result<String, Failure>> {
        let this = self.clone();
        Box::pin(async move {
            let Body::Metrics(told) = wait(this.ask(user, None, Command::GetMetrics)?).await? else {
                return Err(Failure::new("The kernel has told something else than metrics"));
            };
            // Thousands of pools are some megabytes of text.
            let text = make(move || this.measures.text(*told)).await;
            text.map_err(|e| Failure::new(format!("Writing the metrics failed: {e}")))?
        })
    }

    fn read_stderr(&self, user: String, request: StderrRequest) -> BoxFuture<Result<Bytes, Failure>> {
        Box::pin(self.clone().stderr(user, request))
    }

    fn read_job_data(&self, user: String, request: JobDataRequest) -> BoxFuture<Result<ByteStream, Failure>> {
        Box::pin(self.clone().job_data(user, request))
    }

    fn job_input_paths(&self, user: String, request: JobDataRequest) -> BoxFuture<Result<Value, Failure>> {
        Box::pin(self.clone().job_input_paths(user, request))
    }

    fn shell(&self, user: String, request: JobShellRequest) -> BoxFuture<Result<ShellAnswer, Failure>> {
        Box::pin(self.clone().ask_shell(user, request))
    }

    fn run_shell_command(
        &self,
        user: String,
        request: JobShellRequest,
    ) -> BoxFuture<Result<ByteStream, Failure>> {
        Box::pin(self.clone().shell_command(user, request))
    }

    fn write_file(
        &self,
        user: String,
        request: WriteFile,
        body: ByteStream,
    ) -> BoxFuture<Result<(), Failure>> {
        let this = self.clone();
        Box::pin(async move { this.files.clone().write(&this, user, request, body).await })
    }

    fn read_file(&self, user: String, request: ReadFile) -> BoxFuture<Result<FileContent, Failure>> {
        let this = self.clone();
        Box::pin(async move { this.files.clone().read(&this, user, request).await })
    }

    fn write_table(
        &self,
        user: String,
        request: WriteTable,
        body: ByteStream,
    ) -> BoxFuture<Result<(), Failure>> {
        let this = self.clone();
        Box::pin(async move { this.tables.clone().write(&this, user, request, body).await })
    }

    fn read_table(&self, user: String, request: ReadTable) -> BoxFuture<Result<TableContent, Failure>> {
        let this = self.clone();
        Box::pin(async move { this.tables.clone().read(&this, user, request).await })
    }

    fn changes(&self) -> watch::Receiver<Versions> {
        self.changes.clone()
    }

    fn health(&self) -> Result<(), Failure> {
        self.hub.failure().map_or(Ok(()), Err)
    }
}
