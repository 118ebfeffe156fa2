//! What the API needs of the server behind it.

use bytes::Bytes;
use kernel::command::{Command, OperationRef};
use kernel::{SharedValue, Versions};
use std::pin::Pin;
use tokio::sync::watch;
use vocab::{Failure, Guid, JobId, ObjectId, ShellAnswer, ShellRequest};
use yson::ypath::YPath;
use yson::{Format, Map, Value};

/// An answer of the kernel.
#[derive(Clone, Debug)]
pub enum Answer {
    /// One that is only this.
    Value(Value),
    /// A large one that others may be answered with as well: its bytes are counted before it is copied.
    Shared(SharedValue),
}

/// A future that can travel between threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Bytes that come piece by piece. An error ends them.
pub type ByteStream = Pin<Box<dyn tokio_stream::Stream<Item = Result<Bytes, Failure>> + Send>>;

/// The server behind the API.
pub trait Backend: Send + Sync + 'static {
    /// Runs one command of the kernel and gives its natural result:
    ///
    /// - `Get`, `List`, `Exists`: the bare value (the API wraps it);
    /// - `Create`: a map `{node_id}` or `{object_id}`; `CopyMove`, `Link`: `{node_id}`;
    ///   `StartOperation`: `{operation_id}`;
    /// - `GetOperation`, `ListOperations`, `ListJobs`, `GetJob`, `CheckPermission`: the bare map;
    /// - everything else: an entity.
    ///
    /// The request must be in the kernel's queue when this returns, not only when the future is
    /// first polled: the items of a batch take effect in their order because of this.
    ///
    /// `mutation_id` is set for volatile commands of clients that want repetitions recognised.
    fn execute(
        &self,
        user: String,
        mutation_id: Option<Guid>,
        command: Command,
    ) -> BoxFuture<Result<Value, Failure>>;

    /// [`Backend::execute`], but a large value may come uncopied.
    fn answer(
        &self,
        user: String,
        mutation_id: Option<Guid>,
        command: Command,
    ) -> BoxFuture<Result<Answer, Failure>> {
        let value = self.execute(user, mutation_id, command);
        Box::pin(async move { value.await.map(Answer::Value) })
    }

    /// What monitoring is told, in the text form of OpenMetrics.
    fn metrics(&self, user: String) -> BoxFuture<Result<String, Failure>>;

    /// What a job has written to its stderr, running or finished; empty if it has none.
    fn read_stderr(&self, user: String, request: StderrRequest) -> BoxFuture<Result<Bytes, Failure>>;

    /// Opens what a job was given or has left.
    fn read_job_data(&self, user: String, request: JobDataRequest) -> BoxFuture<Result<ByteStream, Failure>>;

    /// `get_job_input_paths`: the tables that a job was given, each with the rows.
    fn job_input_paths(&self, user: String, request: JobDataRequest) -> BoxFuture<Result<Value, Failure>>;

    /// One call of `poll_job_shell`: for a new or a known shell beside a running job.
    fn shell(&self, user: String, request: JobShellRequest) -> BoxFuture<Result<ShellAnswer, Failure>>;

    /// Runs a command beside a running job; its output, as it comes.
    fn run_shell_command(
        &self,
        user: String,
        request: JobShellRequest,
    ) -> BoxFuture<Result<ByteStream, Failure>>;

    /// Writes the content of a file node. The file changes when all of `body` has come, or not at
    /// all: an error in `body` (the client has gone) abandons it.
    fn write_file(
        &self,
        user: String,
        request: WriteFile,
        body: ByteStream,
    ) -> BoxFuture<Result<(), Failure>>;

    /// Opens the content of a file node.
    fn read_file(&self, user: String, request: ReadFile) -> BoxFuture<Result<FileContent, Failure>>;

    /// Writes rows of a table. The table changes when all of `body` has come and has passed all checks,
    /// or not at all.
    fn write_table(
        &self,
        user: String,
        request: WriteTable,
        body: ByteStream,
    ) -> BoxFuture<Result<(), Failure>>;

    /// Opens the rows of a table.
    fn read_table(&self, user: String, request: ReadTable) -> BoxFuture<Result<TableContent, Failure>>;

    /// Numbers of the topics of the event stream, as they stand and as they change.
    fn changes(&self) -> watch::Receiver<Versions>;

    /// Can this server do its work? Asked by `GET /health`; the failure says why not.
    fn health(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// Parameters of `get_job_stderr` (http-api.md 8.6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StderrRequest {
    /// May be absent.
    pub operation: Option<OperationRef>,
    /// Whose.
    pub job_id: JobId,
    /// At most so many bytes.
    pub limit: Option<u64>,
    /// From here.
    pub offset: Option<u64>,
}

/// What of a job is read as a stream of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobData {
    /// `get_job_input`: all rows that a job was given, in its format.
    Input,
    /// `get_job_fail_context`: the rows that a failed job was given last, in its format, at most 10 MiB
    /// (jobs-and-nodes.md 5.5).
    FailContext,
}

/// Parameters of the commands that read such (http-api.md 8.6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobDataRequest {
    /// May be absent.
    pub operation: Option<OperationRef>,
    /// Whose.
    pub job_id: JobId,
    /// What.
    pub data: JobData,
}

/// Parameters of `poll_job_shell` and `run_job_shell_command` (http-api.md 8.7).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobShellRequest {
    /// Beside which job.
    pub job_id: JobId,
    /// One of the spec's `job_shells`.
    pub shell_name: Option<String>,
    /// What is wanted. A new shell has no id yet: the backend gives it one that nobody can guess and
    /// that only its opener can use.
    pub request: ShellRequest,
}

/// Parameters of `write_file` (http-api.md 8.3).
#[derive(Clone, PartialEq, Debug)]
pub struct WriteFile {
    /// The file node; attributes of the path are kept.
    pub path: YPath,
    /// Add to what is there (`<append=%true>` on the path).
    pub append: bool,
    /// Store the checksum as `@md5`.
    pub compute_md5: bool,
    /// The transaction that sees the new content before others.
    pub transaction: Option<ObjectId>,
}

/// Parameters of `read_file` (http-api.md 8.3).
#[derive(Clone, PartialEq, Debug)]
pub struct ReadFile {
    /// The file node.
    pub path: YPath,
    /// Where to begin.
    pub offset: u64,
    /// At most so many bytes.
    pub length: Option<u64>,
    /// The transaction with whose eyes the file is read.
    pub transaction: Option<ObjectId>,
}

/// Parameters of `write_table` (http-api.md 8.3).
#[derive(Clone, PartialEq, Debug)]
pub struct WriteTable {
    /// The table; attributes of the path are kept.
    pub path: YPath,
    /// Of the rows.
    pub format: Format,
    /// Behind the rows that are there.
    pub append: bool,
    /// The rows must be, and the table will be, sorted by these columns.
    pub sorted_by: Option<Vec<String>>,
    /// New schema of the table.
    pub schema: Option<Value>,
    /// The transaction that sees the new rows before others.
    pub transaction: Option<ObjectId>,
    /// Of an item of a batch: a batch that is repeated does not append its rows twice.
    pub mutation_id: Option<Guid>,
}

/// Parameters of `read_table` (http-api.md 8.3).
#[derive(Clone, PartialEq, Debug)]
pub struct ReadTable {
    /// The table; attributes of the path say which rows and columns.
    pub path: YPath,
    /// Of the rows.
    pub format: Format,
    /// Marks between the rows.
    pub control: Map,
    /// The transaction with whose eyes the table is read.
    pub transaction: Option<ObjectId>,
    /// Columns that the user may not read are left out; else they are an error.
    pub omit_inaccessible_columns: bool,
    /// No rows, only what is said beside them.
    pub start_row_index_only: bool,
}

/// Rows of a table, on their way to the client.
pub struct TableContent {
    /// Number of the first row of the first range.
    pub start_row_index: u64,
    /// How many rows will come.
    pub row_count: u64,
    /// Columns that were asked for and are left out.
    pub omitted_columns: Vec<String>,
    /// The rows in the format that was asked for.
    pub body: ByteStream,
}

/// The content of a file node, on its way to the client.
pub struct FileContent {
    /// The node.
    pub id: ObjectId,
    /// Revision of the content.
    pub revision: u64,
    /// Bytes that `body` will give, after `offset` and `length` have been applied.
    pub length: u64,
    /// The bytes.
    pub body: ByteStream,
}
