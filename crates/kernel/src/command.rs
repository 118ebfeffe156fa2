//! What can be asked of the kernel: one variant per command of the HTTP API (http-api.md 8), with
//! parameters already parsed. The `api` crate makes these from requests and knows nothing else.

pub use crate::explanations::PreemptionQuery;
use crate::{EventFilter, HistoryOf, JoinRequest, Joined, NodeProof, Range, TableRows, Upload};
use controller::ControllerOptions;
use controller::spec::ParsedSpec;
pub use cypress::transactions::locks::Mode as LockMode;
pub use cypress::{CopyOptions, LockOptions, StartOptions};
use vocab::{Failure, Guid, JobId, ObjectId, OperationId, OperationType, Span, Time};
use yson::ypath::YPath;
use yson::{Map, Value};

/// A request with everything the kernel needs to know about who asks.
#[derive(Clone, Debug)]
pub struct Request {
    /// Chosen by the edge; comes back in the reply.
    pub id: u64,
    /// Authenticated user.
    pub user: String,
    /// Mutation id of a volatile command: a repeated one is answered, not executed again.
    pub mutation_id: Option<Guid>,
    /// What to do.
    pub command: Command,
}

/// How an operation is named: by id or by alias (`*name`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OperationRef {
    /// `operation_id`.
    Id(OperationId),
    /// `operation_alias`, with its leading `*`.
    Alias(String),
}

/// See the module page.
#[derive(Clone, Debug)]
pub enum Command {
    /// Another command, through a transaction: it sees and changes what the transaction does. Or only while some live.
    In {
        /// Which, if it goes through one.
        transaction: Option<ObjectId>,
        /// All of these must be active, or nothing is done (code 1000).
        prerequisites: Vec<ObjectId>,
        /// Its options were given in words, without types.
        in_words: bool,
        /// The command; not another one of this kind.
        command: Box<Command>,
    },
    // --- transactions, http-api.md 8.2
    /// `start_transaction`.
    StartTransaction(Box<StartOptions>),
    /// `ping_transaction`.
    PingTransaction {
        /// Which.
        transaction: ObjectId,
        /// Those around it as well.
        ancestors: bool,
    },
    /// `commit_transaction`.
    CommitTransaction {
        /// Which.
        transaction: ObjectId,
    },
    /// `abort_transaction`.
    AbortTransaction {
        /// Which.
        transaction: ObjectId,
    },
    /// `lock`, in a transaction.
    Lock {
        /// What.
        path: YPath,
        /// How.
        options: LockOptions,
    },
    /// `unlock`, in a transaction.
    Unlock {
        /// What.
        path: YPath,
    },
    // --- tree, http-api.md 8.1
    /// `get`.
    Get {
        /// What.
        path: YPath,
        /// Attributes that each returned node carries.
        attributes: Vec<String>,
        /// At most so many children of one node.
        max_size: Option<usize>,
        /// Only these fields of pools (Orchid only, 11.3).
        fields: Option<Vec<String>>,
    },
    /// `list`.
    List {
        /// What.
        path: YPath,
        /// Attributes on the names.
        attributes: Vec<String>,
        /// At most so many names.
        max_size: Option<usize>,
    },
    /// `exists`.
    Exists {
        /// What.
        path: YPath,
    },
    /// `get_file_from_cache`.
    GetFileFromCache {
        /// Its checksum.
        md5: String,
        /// Where the cache is.
        cache_path: YPath,
    },
    /// `put_file_to_cache`.
    PutFileToCache {
        /// The file.
        path: YPath,
        /// Its checksum.
        md5: String,
        /// Where the cache is.
        cache_path: YPath,
        /// Keep `expiration_timeout`.
        preserve_expiration_timeout: bool,
    },
    /// `set`.
    Set {
        /// Where.
        path: YPath,
        /// What.
        value: Value,
        /// Create missing components in the middle.
        recursive: bool,
        /// Replace a map node's children.
        force: bool,
    },
    /// `multiset_attributes`.
    MultisetAttributes {
        /// The node or its `/@`.
        path: YPath,
        /// All or none.
        attributes: Map,
    },
    /// `create`.
    Create {
        /// Type name as given (`map_node`, `scheduler_pool`, ...).
        object_type: String,
        /// Absent for objects (pools, users, ...).
        path: Option<YPath>,
        /// Initial attributes.
        attributes: Map,
        /// Create parents.
        recursive: bool,
        /// An existing one of the same type is fine.
        ignore_existing: bool,
        /// Replace an existing one.
        force: bool,
        /// With `ignore_existing`: an existing one of another type is fine too.
        ignore_type_mismatch: bool,
        /// With `ignore_existing`: lock an existing one (exclusive) in the transaction of the request.
        lock_existing: bool,
    },
    /// `remove`.
    Remove {
        /// What.
        path: YPath,
        /// Non-empty ones too.
        recursive: bool,
        /// Missing ones are fine.
        force: bool,
    },
    /// `copy` and `move`.
    CopyMove {
        /// From.
        source: YPath,
        /// To.
        destination: YPath,
        /// Remove the source afterwards.
        remove_source: bool,
        /// How, and what the copy keeps of the source.
        options: CopyOptions,
    },
    /// `link`.
    Link {
        /// Where it points to.
        target: YPath,
        /// The link.
        link: YPath,
        /// Create parents.
        recursive: bool,
        /// An existing one is fine.
        ignore_existing: bool,
        /// Replace an existing one; the target may be missing.
        force: bool,
        /// Initial attributes.
        attributes: Map,
    },
    /// The end of `write_file`: the content is already durable in the blob store.
    FileWritten {
        /// The file node; it exists.
        path: YPath,
        /// Key of the blob in the store.
        blob: u64,
        /// Bytes.
        size: u64,
        /// Hexadecimal digest if `compute_md5` was given.
        md5: Option<String>,
        /// It begins with this content, behind which more was appended (the edge has joined the two); 0 stands for
        /// the content of a file that was never written. 402 if the file has another one by now.
        behind: Option<u64>,
    },
    /// Where the content of a file is: `{id, revision, blob, size, md5, executable, file_name}`.
    LocateFile {
        /// The file.
        path: YPath,
        /// More is to be appended to it: then who may write it needs not be one who may read it.
        to_write: bool,
    },
    /// The end of `write_table`: the rows are already durable in the blob store.
    TableWritten {
        /// The table; it exists.
        path: YPath,
        /// What was written.
        rows: Box<TableRows>,
    },
    /// Where the rows of a table are: `{id, revision, schema, sorted_by, chunks}`.
    LocateTable {
        /// The table.
        path: YPath,
        /// Rows are to be written to it: then who may write it needs not be one who may read it.
        to_write: bool,
    },
    /// `alter_table`.
    AlterTable {
        /// The table.
        path: YPath,
        /// Its new schema.
        schema: Value,
    },
    /// `get_table_columnar_statistics`.
    GetTableColumnarStatistics {
        /// Tables, with the rows that are wanted.
        paths: Vec<YPath>,
    },
    /// `concatenate` of tables, or of files: then the answer is [`Body::FilesToJoin`](crate::Body::FilesToJoin), nothing
    /// is done yet, and the same is to be asked again with what was joined.
    Concatenate {
        /// Their rows or contents, in this order.
        sources: Vec<YPath>,
        /// Gets them.
        destination: YPath,
        /// Behind what it has.
        append: bool,
        /// What the contents of files make together; it is already durable in the blob store.
        joined: Option<Box<Joined>>,
    },
    /// What a node may upload for a job: `{is_expected; limit; room}`. Asked before the first byte is taken.
    LocateUpload {
        /// What the node has proved: only the node of the job may upload something for it.
        from: NodeProof,
        /// The job.
        job_id: JobId,
        /// What comes.
        upload: Upload,
    },
    /// Where the rows are that a job is to read: `{pieces; columns; control}`. Nodes ask this.
    LocateJobInput {
        /// What the node has proved: only the node of the job gets an answer.
        from: NodeProof,
        /// The job.
        job_id: JobId,
    },
    /// `start_operation` with a specification that was read already ([`Command::read_ahead`]).
    StartReadOperation(Box<ParsedSpec>),
    /// Where the content of a job's file is: `{blob, size}`. Nodes ask this.
    LocateArtifact {
        /// What the node has proved: only a node whose jobs need the file gets an answer.
        from: NodeProof,
        /// The file.
        file_id: ObjectId,
        /// Revision of its content.
        revision: u64,
    },

    // --- operations, 8.5
    /// `start_operation`.
    StartOperation {
        /// Which kind.
        operation_type: OperationType,
        /// As the user gave it.
        spec: Map,
    },
    /// `abort_operation`.
    AbortOperation {
        /// Which.
        operation: OperationRef,
        /// User's text.
        message: Option<String>,
    },
    /// `suspend_operation`.
    SuspendOperation {
        /// Which.
        operation: OperationRef,
        /// Abort what runs.
        abort_running_jobs: bool,
        /// User's text.
        reason: Option<String>,
    },
    /// `resume_operation`.
    ResumeOperation {
        /// Which.
        operation: OperationRef,
    },
    /// `complete_operation`.
    CompleteOperation {
        /// Which.
        operation: OperationRef,
    },
    /// `update_operation_parameters`.
    UpdateOperationParameters {
        /// Which.
        operation: OperationRef,
        /// What to change.
        parameters: Map,
    },
    /// `patch_operation_spec`.
    PatchOperationSpec {
        /// Which.
        operation: OperationRef,
        /// Paths in the spec, and the new values.
        patches: Vec<(String, Value)>,
    },
    /// `get_operation`.
    GetOperation {
        /// Which.
        operation: OperationRef,
        /// Only these; all when absent.
        attributes: Option<Vec<String>>,
    },
    /// `list_operations`.
    ListOperations(Box<ListOperations>),

    // --- jobs, 8.6
    /// What monitoring is told: `GET /metrics`.
    GetMetrics,
    /// `list_operation_events`.
    ListOperationEvents {
        /// Of which.
        operation: OperationRef,
        /// Which of them.
        query: crate::EventsOfOperation,
    },
    /// `list_jobs`.
    ListJobs(Box<ListJobs>),
    /// `get_job`.
    GetJob {
        /// May be absent.
        operation: Option<OperationRef>,
        /// Which.
        job_id: JobId,
        /// Only these; all when absent.
        attributes: Option<Vec<String>>,
    },
    /// `get_job_stderr`: where it is.
    GetJobStderr {
        /// May be absent.
        operation: Option<OperationRef>,
        /// Which.
        job_id: JobId,
        /// At most so many bytes.
        limit: Option<u64>,
        /// From here.
        offset: Option<u64>,
    },
    /// `get_job_input` and `get_job_input_paths`: where the rows are.
    GetJobInput {
        /// May be absent while the job is not over.
        operation: Option<OperationRef>,
        /// Which.
        job_id: JobId,
    },
    /// Where rows of the input of an operation are; `#` if it is over. For the server's own questions.
    LocateInput {
        /// Which.
        operation_id: OperationId,
        /// Counted through all of its input.
        rows: std::ops::Range<u64>,
    },
    /// `get_job_fail_context`: where it is.
    GetJobFailContext {
        /// May be absent while the job is not over.
        operation: Option<OperationRef>,
        /// Which.
        job_id: JobId,
    },
    /// `poll_job_shell`, operation `spawn`: may it, and where is the job?
    OpenJobShell {
        /// Which.
        job_id: JobId,
        /// One of the spec's `job_shells`.
        shell_name: Option<String>,
        /// What it is to run, for the event log; none: an interactive one.
        command: Option<String>,
    },
    /// The other operations of `poll_job_shell`.
    LocateJobShell {
        /// Who asks.
        user: String,
        /// Which.
        job_id: JobId,
        /// One of the spec's `job_shells`.
        shell_name: Option<String>,
    },
    /// `abort_job`.
    AbortJob {
        /// Of which it must be, if one is named.
        operation: Option<OperationRef>,
        /// Which.
        job_id: JobId,
        /// Interrupt first and wait so long.
        interrupt_timeout: Option<Span>,
    },
    /// `abandon_job`.
    AbandonJob {
        /// Of which it must be, if one is named.
        operation: Option<OperationRef>,
        /// Which.
        job_id: JobId,
    },

    // --- of our own
    /// Why a pool has the fair share that it has.
    ExplainPool {
        /// The default one when absent.
        tree: Option<String>,
        /// Name.
        pool: String,
    },
    /// Why an operation has what it has, and what would change it.
    ExplainOperation {
        /// Which.
        operation: OperationRef,
    },
    /// What was learned about a running job, and what it saves.
    ExplainJob {
        /// Which.
        job_id: JobId,
    },
    /// Who lost what for whom.
    GetPreemptionLog(PreemptionQuery),
    /// Events of the event log from a number on (scheduling.md 20).
    GetEvents {
        /// From where.
        from: EventsFrom,
        /// At most so many.
        limit: Option<usize>,
        /// Only these.
        filter: EventFilter,
    },
    /// What a pool wanted, used and was entitled to.
    GetPoolHistory {
        /// The default one when absent.
        tree: Option<String>,
        /// Name.
        pool: String,
        /// Which part.
        range: Range,
    },
    /// What a job used and was promised, what was taken of a node.
    GetHistory {
        /// Whose.
        of: HistoryOf,
        /// Which part.
        range: Range,
    },

    // --- security and the rest, 8.4, 8.9
    /// `check_permission`.
    CheckPermission {
        /// Who.
        user: String,
        /// What.
        permission: String,
        /// Where.
        path: YPath,
        /// Of a table, one by one.
        columns: Option<Vec<String>>,
    },
    /// `check_permission_by_acl`.
    CheckPermissionByAcl {
        /// Who.
        user: String,
        /// What.
        permission: String,
        /// By this list alone.
        acl: Value,
    },
    /// `check_operation_permission`.
    CheckOperationPermission {
        /// Who.
        user: String,
        /// `read` or `manage`.
        permission: String,
        /// Which.
        operation: OperationRef,
    },
    /// `add_member`.
    AddMember {
        /// To which group.
        group: String,
        /// A user or a group.
        member: String,
    },
    /// `remove_member`.
    RemoveMember {
        /// From which group.
        group: String,
        /// A user or a group.
        member: String,
    },
    /// `issue_token`; the token itself stays outside.
    IssueToken {
        /// Whose.
        user: String,
        /// SHA-256 in hexadecimal.
        token_sha256: String,
        /// For the owner to know it by.
        description: Option<String>,
        /// Time until its end; `None`: it has no end.
        ttl: Option<Span>,
    },
    /// `rotate_token`: a new token in the place of another one.
    RotateToken {
        /// Whose.
        user: String,
        /// SHA-256 of the token that is replaced.
        old_sha256: String,
        /// SHA-256 of the new one.
        token_sha256: String,
        /// Time until the end of the new one; `None`: as long as the old one was valid, if that has an end.
        ttl: Option<Span>,
        /// Time for which the old one stays valid; `None`: it ends at once.
        grace: Option<Span>,
    },
    /// `revoke_token`.
    RevokeToken {
        /// Whose.
        user: String,
        /// SHA-256 in hexadecimal.
        token_sha256: String,
    },
    /// `list_user_tokens`.
    ListUserTokens {
        /// Whose.
        user: String,
        /// Descriptions and times, too.
        with_metadata: bool,
    },
    /// `set_user_password`; the password itself stays outside.
    SetUserPassword {
        /// Whose.
        user: String,
        /// Argon2 hash.
        hash: String,
    },
    /// Extends all leases of exclusive work before planned work: they begin when this time is over. Gives `{until; node_count}`.
    ExtendLeases {
        /// From now on; more than 0, at most 7 days.
        period: Span,
    },
    /// Forgets a node that is not connected. Gives `{address; unit_count}`.
    RemoveNode {
        /// Address of the node.
        address: String,
        /// Nothing runs there any more: units of exclusive work are given away before their leases are over.
        lost: bool,
    },
    // --- identities of nodes, of our own
    /// `create_join_token`; the token itself stays outside.
    CreateJoinToken {
        /// SHA-256 of its secret in hexadecimal.
        token_sha256: String,
        /// The only node that may use it; `None`: any one whose name is free.
        name: Option<String>,
        /// Time until its end; `None`: 24 hours.
        ttl: Option<Span>,
        /// The node takes its name over from the identity that has it, which is revoked then.
        replace: bool,
    },
    /// `revoke_join_token`.
    RevokeJoinToken {
        /// SHA-256 of its secret in hexadecimal.
        token_sha256: String,
    },
    /// `approve_node`: a node that waits gets its identity.
    ApproveNode {
        /// Its name.
        name: String,
        /// SHA-256 of its key; needed if several nodes wait under one name.
        key_sha256: Option<String>,
    },
    /// `revoke_node`: its identity is refused from now on.
    RevokeNode {
        /// Its name.
        name: String,
    },
    /// `list_node_identities`: identities, nodes that wait for an approval, and join tokens.
    ListNodeIdentities,
    /// A node wants an identity. The edge asks this, when it has verified the node's request.
    JoinNode(Box<JoinRequest>),
    /// A node wants its next certificate. The edge asks this.
    RenewNode {
        /// SHA-256 of the key that its connection has proved to have.
        key_sha256: String,
    },
    /// Which node has this key: `{name}`. The edge asks this.
    IdentifyNode {
        /// What its connection has proved.
        from: NodeProof,
    },
    /// `gc_collect`: an administrator confirms that the garbage is removed which the start has held back.
    CollectGarbage,
    /// Would this command be allowed? For what is costly to prepare: the content of a file, the hash of
    /// a password.
    Authorize(Box<Command>),
    /// What a user is: `{superuser; groups}`.
    DescribeUser {
        /// Who.
        user: String,
    },
    /// Who a request runs as: `{user}`. The edge asks this.
    Identify {
        /// What the client has shown.
        proof: Proof,
        /// Whom it wants to be.
        act_as: Option<String>,
    },
    /// The hash of a user's password. The edge asks this.
    PasswordHash {
        /// Whose.
        user: String,
    },
    /// `transfer_pool_resources`.
    TransferPoolResources {
        /// From.
        source_pool: String,
        /// To.
        destination_pool: String,
        /// In which tree.
        pool_tree: String,
        /// How much.
        resource_delta: Map,
    },
    /// `transfer_account_resources`.
    TransferAccountResources {
        /// From.
        source_account: String,
        /// To.
        destination_account: String,
        /// How much.
        resource_delta: Map,
    },
}

/// What a client has shown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Proof {
    /// A token, by its SHA-256 in hexadecimal.
    Token(String),
    /// A password that the edge has checked, by the hash that is kept of it: it is not changed since.
    Password {
        /// Who.
        user: String,
        /// What [`Command::PasswordHash`] answered.
        hash: String,
    },
    /// The edge knows the user by its configuration.
    Configured(String),
}

/// An instant, or how long ago it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// That instant.
    At(Time),
    /// So long before now.
    Ago(Span),
}

impl When {
    /// `now`, `-15m`, `2026-01-02T03:04:05Z`.
    pub fn parse(text: &str) -> Option<When> {
        match text.strip_prefix('-') {
            Some(span) => Span::parse(span).map(When::Ago),
            None if text == "now" => Some(When::Ago(Span::ZERO)),
            None => Time::parse(text).map(When::At),
        }
    }

    /// As an instant.
    pub fn at(self, now: Time) -> Time {
        match self {
            When::At(time) => time,
            When::Ago(span) => now - span,
        }
    }
}

/// Filters and paging of `list_operations`.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)] // names and meanings are those of http-api.md 8.5
pub struct ListOperations {
    pub user: Option<String>,
    pub state: Option<String>,
    pub operation_type: Option<String>,
    pub filter: Option<String>,
    pub pool_tree: Option<String>,
    pub pool: Option<String>,
    pub with_failed_jobs: Option<bool>,
    pub from_time: Option<Time>,
    pub to_time: Option<Time>,
    pub cursor_time: Option<Time>,
    /// `past`, `future`, `none`.
    pub cursor_direction: Option<String>,
    pub limit: usize,
    pub include_counters: bool,
    /// Only operations that this subject may do all of this with.
    pub access: Option<AccessFilter>,
    pub attributes: Option<Vec<String>>,
}

/// `{subject; permissions}`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct AccessFilter {
    pub subject: String,
    /// Names of permissions.
    pub permissions: Vec<String>,
}

/// Filters and paging of `list_jobs`.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs)] // names and meanings are those of http-api.md 8.6
pub struct ListJobs {
    pub operation: Option<OperationRef>,
    pub job_type: Option<String>,
    pub state: Option<String>,
    pub address: Option<String>,
    /// A part of the id.
    pub job_id: Option<String>,
    pub operation_incarnation: Option<String>,
    pub with_stderr: Option<bool>,
    pub with_fail_context: Option<bool>,
    pub with_interruption_info: Option<bool>,
    pub with_spec: Option<bool>,
    pub with_competitors: Option<bool>,
    pub with_monitoring_descriptor: Option<bool>,
    pub job_competition_id: Option<String>,
    pub monitoring_descriptor: Option<String>,
    pub task_name: Option<String>,
    pub pool_tree: Option<String>,
    pub from_time: Option<Time>,
    pub to_time: Option<Time>,
    /// `none type state start_time finish_time address duration progress id task_name`.
    pub sort_field: Option<String>,
    pub sort_descending: bool,
    pub limit: usize,
    pub offset: usize,
    pub attributes: Option<Vec<String>>,
}

impl Command {
    /// What is done, without where it is done.
    pub fn inner(&self) -> &Command {
        match self {
            Command::In { command, .. } => command,
            command => command,
        }
    }

    /// The transaction that it goes through, if it does.
    pub fn transaction(&self) -> Option<ObjectId> {
        match self {
            Command::In { transaction, .. } => *transaction,
            _ => None,
        }
    }

    /// Does it look at nodes with the eyes of a transaction? Pools, users and operations are outside
    /// of all transactions (http-api.md 8.2); the files of an operation are not.
    pub fn is_about_nodes(&self) -> bool {
        use Command::*;
        match self {
            Get { .. } | List { .. } | Exists { .. } | Set { .. } | MultisetAttributes { .. } => true,
            Remove { .. } | CopyMove { .. } | Link { .. } | Lock { .. } | Unlock { .. } => true,
            GetFileFromCache { .. } | PutFileToCache { .. } => true,
            Authorize(command) => command.is_about_nodes(),
            GetTableColumnarStatistics { .. } => true,
            TableWritten { .. } | LocateTable { .. } | AlterTable { .. } | Concatenate { .. } => true,
            FileWritten { .. } | LocateFile { .. } | CheckPermission { .. } => true,
            StartOperation { .. } | StartReadOperation(_) => true,
            Create { object_type, path, .. } => {
                path.is_some() && cypress::NodeType::parse(object_type).is_ok_and(|t| t.is_plain())
            }
            _ => false,
        }
    }

    /// Is `transaction_id` what it is about, and not a way to look at something else?
    pub fn names_its_transaction(&self) -> bool {
        use Command::*;
        matches!(
            self,
            StartTransaction(_) | PingTransaction { .. } | CommitTransaction { .. } | AbortTransaction { .. }
        )
    }

    /// The same command through a transaction, if there is one.
    pub fn through(self, transaction: Option<ObjectId>) -> Command {
        self.under(transaction, Vec::new())
    }

    /// The same command through a transaction, if there is one, and only while some are active.
    pub fn under(self, transaction: Option<ObjectId>, prerequisites: Vec<ObjectId>) -> Command {
        match (transaction, prerequisites.as_slice()) {
            (None, []) => self,
            _ => Command::In { transaction, prerequisites, in_words: false, command: Box::new(self) },
        }
    }

    /// Reads a large specification on the thread that calls this, so that the kernel's, which everybody waits for, does
    /// not have to. The kernel looks at the limits that are in force. Every other command is given back as it is.
    pub fn read_ahead(self) -> Result<Command, Failure> {
        match self {
            Command::StartOperation { operation_type, spec } if is_large(&spec) => {
                let options = ControllerOptions::before_limits();
                let parsed = controller::spec::parse(operation_type, &spec, &options)
                    .map_err(|inner| Failure::new("Error parsing operation spec").because(inner))?;
                Ok(Command::StartReadOperation(Box::new(parsed)))
            }
            Command::In { transaction, prerequisites, in_words: false, command } => {
                let command = Box::new(command.read_ahead()?);
                Ok(Command::In { transaction, prerequisites, in_words: false, command })
            }
            other => Ok(other),
        }
    }

    /// Is it worth reading ahead?
    pub fn has_large_spec(&self) -> bool {
        match self {
            Command::StartOperation { spec, .. } => is_large(spec),
            Command::In { in_words: false, command, .. } => command.has_large_spec(),
            _ => false,
        }
    }

    /// The parameter that is a map of its options, each of a type of its own.
    pub fn options_parameter(&self) -> Option<&'static str> {
        match self.inner() {
            Command::StartOperation { .. } => Some("spec"),
            Command::UpdateOperationParameters { .. } => Some("parameters"),
            Command::Create { .. } | Command::Link { .. } => Some("attributes"),
            Command::TransferPoolResources { .. } | Command::TransferAccountResources { .. } => {
                Some("resource_delta")
            }
            _ => None,
        }
    }

    /// The same command, whose [options](Command::options_parameter) were given in words (http-api.md 2.4).
    pub fn in_words(self) -> Command {
        match self {
            Command::In { transaction, prerequisites, command, .. } => {
                Command::In { transaction, prerequisites, in_words: true, command }
            }
            command => Command::In {
                transaction: None,
                prerequisites: Vec::new(),
                in_words: true,
                command: Box::new(command),
            },
        }
    }

    /// Is it `concatenate`?
    pub fn is_concatenate(&self) -> bool {
        matches!(self.inner(), Command::Concatenate { .. })
    }

    /// `concatenate` again, now that the contents of the files are joined.
    pub fn with_joined(mut self, contents: Joined) -> Command {
        let command = match &mut self {
            Command::In { command, .. } => &mut **command,
            command => command,
        };
        if let Command::Concatenate { joined, .. } = command {
            *joined = Some(Box::new(contents));
        }
        self
    }

    /// Does it change anything, or ask whether something may be changed?
    pub fn changes_something(&self) -> bool {
        match self.inner() {
            Command::Authorize(command) => command.is_mutation(),
            _ => self.is_mutation(),
        }
    }

    /// Does it change anything? Only these are remembered by mutation id.
    pub fn is_mutation(&self) -> bool {
        !matches!(
            self.inner(),
            Command::Get { .. }
                | Command::List { .. }
                | Command::Exists { .. }
                | Command::LocateFile { .. }
                | Command::LocateTable { .. }
                | Command::GetTableColumnarStatistics { .. }
                | Command::GetFileFromCache { .. }
                | Command::LocateArtifact { .. }
                | Command::LocateJobInput { .. }
                | Command::LocateUpload { .. }
                | Command::GetOperation { .. }
                | Command::ListOperations(_)
                | Command::GetMetrics
                | Command::ListOperationEvents { .. }
                | Command::ListJobs(_)
                | Command::GetJob { .. }
                | Command::GetJobStderr { .. }
                | Command::GetJobFailContext { .. }
                | Command::GetJobInput { .. }
                | Command::LocateInput { .. }
                | Command::LocateJobShell { .. }
                | Command::CheckPermission { .. }
                | Command::CheckPermissionByAcl { .. }
                | Command::CheckOperationPermission { .. }
                | Command::ListUserTokens { .. }
                | Command::ListNodeIdentities
                | Command::IdentifyNode { .. }
                | Command::Authorize(_)
                | Command::DescribeUser { .. }
                | Command::Identify { .. }
                | Command::PasswordHash { .. }
                | Command::ExplainPool { .. }
                | Command::ExplainOperation { .. }
                | Command::ExplainJob { .. }
                | Command::GetPreemptionLog(_)
                | Command::GetEvents { .. }
                | Command::GetPoolHistory { .. }
                | Command::GetHistory { .. }
        )
    }
}

/// Values of a specification that the kernel reads itself.
const SMALL: usize = 500;

fn is_large(spec: &Map) -> bool {
    fn fits(value: &Value, left: &mut usize) -> bool {
        let Some(rest) = left.checked_sub(1) else { return false };
        *left = rest;
        let map = |map: &Map, left: &mut usize| map.iter().all(|(_, value)| fits(value, left));
        match value {
            Value::List(items) => items.iter().all(|item| fits(item, left)),
            Value::Map(inner) => map(inner, left),
            Value::Attributed(both) => map(&both.0, left) && fits(&both.1, left),
            // A long text is copied, which takes its time, too.
            Value::String(text) => {
                *left = left.saturating_sub(text.len() >> 10);
                *left > 0
            }
            _ => true,
        }
    }
    // The kernel refuses these without reading them.
    let tasks = spec.get("tasks").and_then(Value::as_map).map_or(0, Map::len);
    if tasks > ControllerOptions::LARGEST_TASK_COUNT {
        return false;
    }
    let mut left = SMALL;
    !spec.iter().all(|(_, value)| fits(value, &mut left))
}

/// Where to begin reading the event log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventsFrom {
    /// The oldest that is kept.
    Oldest,
    /// This number, or the oldest that is kept.
    Number(u64),
    /// So many before the end.
    Last(u64),
}
