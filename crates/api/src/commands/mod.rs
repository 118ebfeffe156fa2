//! The commands: one entry each in [`TABLE`], and the parsers of their parameters by area.
//!
//! To add a command: write a parser (parameters in, [`kernel::command::Command`] out) in the module
//! of its area and an entry here. Descriptors, methods, formats, replies, `execute_batch` and v3
//! follow from the entry.

mod cluster;
mod files;
mod jobs;
mod local;
mod operations;
mod own;
mod params;
mod security;
mod shells;
mod tables;
mod transactions;
mod tree;
pub mod version3;

pub use files::{read_file, write_file};
pub use jobs::{get_job_data, get_job_stderr};
pub use local::Local;
pub use own::{QUESTIONS, Question, is_question};
pub use params::{Asked, Kind, Params, Result, required};
pub use security::set_user_password;
pub use shells::{poll_job_shell, run_job_shell_command, shell_answer};
pub use tables::{read_table, write_table};
pub use transactions::{prerequisites, refuse_prerequisites};

use crate::JobData;
use kernel::command::Command;
use yson::{Map, Value};

/// What goes in or comes out of a command (http-api.md 2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Data {
    /// Nothing beside the parameters.
    Null,
    /// Bytes as they are.
    Binary,
    /// One value in a format.
    Structured,
    /// Rows in a format.
    Tabular,
}

impl Data {
    /// Name in a descriptor.
    fn as_value(self) -> Value {
        match self {
            Data::Null => Value::Entity,
            Data::Binary => "binary".into(),
            Data::Structured => "structured".into(),
            Data::Tabular => "tabular".into(),
        }
    }
}

/// What becomes of the natural result of a structured command (http-api.md 2.5, 8.10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// A value: `{value=...}`, or bare with `return_only_value` and in v3.
    Value,
    /// A map with the one named key: as it is, in v3 only the key's value.
    Named,
    /// As it is.
    Bare,
    /// Nothing: `{}`, in v3 an empty body.
    Empty,
}

/// Who answers.
#[derive(Clone, Copy)]
pub enum Run {
    /// The kernel: the parser makes its command.
    Kernel(fn(&Params) -> Result<Command>),
    /// The kernel: the parser takes the body as well.
    KernelWithInput(fn(&Params, Value) -> Result<Command>),
    /// The API itself.
    Local(fn(&Local<'_>, &Params) -> Result<Value>),
    /// `execute_batch`.
    Batch,
    /// A new token: the reply is what the kernel must not know. The parser takes the token, too.
    NewToken(fn(&Params, String) -> Result<(Command, String)>),
    /// The same for a token by which a node joins: its text carries the digest of the server's authority for nodes.
    NewJoinToken(fn(&Params, String) -> Result<(Command, String)>),
    /// `set_user_password`: the kernel gets a hash, which is costly to make.
    SetPassword,
    /// `get_job_stderr`.
    Stderr,
    /// What a job was given or has left.
    JobData(JobData),
    /// `get_job_input_paths`.
    JobInputPaths,
    /// `get_job_spec`.
    JobSpec,
    /// `dump_job_context`.
    DumpJobContext,
    /// `get_job_trace`: no bytes.
    JobTrace,
    /// `poll_job_shell`.
    Shell,
    /// `run_job_shell_command`.
    ShellCommand,
    /// `read_file`.
    ReadFile,
    /// `write_file`.
    WriteFile,
    /// `read_table`.
    ReadTable,
    /// `write_table`.
    WriteTable,
}

/// One command.
pub struct Descriptor {
    /// Name in v4.
    pub name: &'static str,
    /// Body of the request.
    pub input: Data,
    /// Body of the reply.
    pub output: Data,
    /// Carries a mutation id.
    pub volatile: bool,
    /// Changes something. Nearly the same, but for two actions that clients take for questions.
    pub changes: bool,
    /// Goes to a heavy proxy.
    pub heavy: bool,
    /// Shape of the reply.
    pub reply: Reply,
    /// Who answers.
    pub run: Run,
}

/// A question to the kernel, with GET.
const fn read(name: &'static str, reply: Reply, parse: fn(&Params) -> Result<Command>) -> Descriptor {
    let (input, output) = (Data::Null, Data::Structured);
    let run = Run::Kernel(parse);
    Descriptor { name, input, output, volatile: false, changes: false, heavy: false, reply, run }
}

/// A change, with POST.
const fn change(name: &'static str, reply: Reply, parse: fn(&Params) -> Result<Command>) -> Descriptor {
    Descriptor { volatile: true, changes: true, ..read(name, reply, parse) }
}

/// A change that really is non-volatile in v4 (http-api.md 2.1), with GET.
const fn action(name: &'static str, parse: fn(&Params) -> Result<Command>) -> Descriptor {
    Descriptor { changes: true, ..read(name, Reply::Empty, parse) }
}

/// A change with a value as the body, with PUT.
const fn put(name: &'static str, parse: fn(&Params, Value) -> Result<Command>) -> Descriptor {
    let (input, output) = (Data::Structured, Data::Structured);
    let run = Run::KernelWithInput(parse);
    let reply = Reply::Empty;
    Descriptor { name, input, output, volatile: true, changes: true, heavy: false, reply, run }
}

/// Answered without the kernel.
const fn local(
    name: &'static str,
    reply: Reply,
    answer: fn(&Local<'_>, &Params) -> Result<Value>,
) -> Descriptor {
    let (input, output) = (Data::Null, Data::Structured);
    let run = Run::Local(answer);
    Descriptor { name, input, output, volatile: false, changes: false, heavy: false, reply, run }
}

/// Bytes of a job, with GET.
const fn job_data(name: &'static str, data: JobData) -> Descriptor {
    let (input, output) = (Data::Null, Data::Binary);
    let run = Run::JobData(data);
    let reply = Reply::Bare;
    Descriptor { name, input, output, volatile: false, changes: false, heavy: true, reply, run }
}

/// All commands that are served. Only these are listed to clients.
pub static TABLE: &[Descriptor] = &[
    // --- tree
    read("get", Reply::Value, tree::get),
    read("list", Reply::Value, tree::list),
    read("exists", Reply::Value, tree::exists),
    put("set", tree::set),
    put("multiset_attributes", tree::multiset_attributes),
    change("create", Reply::Named, tree::create),
    change("remove", Reply::Empty, tree::remove),
    change("copy", Reply::Named, tree::copy),
    change("move", Reply::Named, tree::move_),
    change("link", Reply::Named, tree::link),
    local("parse_ypath", Reply::Named, local::parse_ypath),
    // --- transactions
    change("start_transaction", Reply::Named, transactions::start),
    change("ping_transaction", Reply::Empty, transactions::ping),
    change("commit_transaction", Reply::Empty, transactions::commit),
    change("abort_transaction", Reply::Empty, transactions::abort),
    change("lock", Reply::Bare, transactions::lock),
    change("unlock", Reply::Empty, transactions::unlock),
    // --- files
    Descriptor {
        name: "write_file",
        input: Data::Binary,
        output: Data::Structured,
        volatile: true,
        changes: true,
        heavy: true,
        reply: Reply::Empty,
        run: Run::WriteFile,
    },
    Descriptor {
        name: "read_file",
        input: Data::Null,
        output: Data::Binary,
        volatile: false,
        changes: false,
        heavy: true,
        reply: Reply::Bare,
        run: Run::ReadFile,
    },
    read("get_file_from_cache", Reply::Bare, files::get_file_from_cache),
    change("put_file_to_cache", Reply::Bare, files::put_file_to_cache),
    // --- tables
    Descriptor {
        name: "write_table",
        input: Data::Tabular,
        output: Data::Structured,
        volatile: true,
        changes: true,
        heavy: true,
        reply: Reply::Empty,
        run: Run::WriteTable,
    },
    Descriptor {
        name: "read_table",
        input: Data::Null,
        output: Data::Tabular,
        volatile: false,
        changes: false,
        heavy: true,
        reply: Reply::Bare,
        run: Run::ReadTable,
    },
    read("get_table_columnar_statistics", Reply::Bare, tables::columnar_statistics),
    change("alter_table", Reply::Empty, tables::alter_table),
    change("concatenate", Reply::Empty, tables::concatenate),
    // --- operations
    change("start_operation", Reply::Named, operations::start),
    change("abort_operation", Reply::Empty, operations::abort),
    change("suspend_operation", Reply::Empty, operations::suspend),
    change("resume_operation", Reply::Empty, operations::resume),
    change("complete_operation", Reply::Empty, operations::complete),
    change("update_operation_parameters", Reply::Empty, operations::update_parameters),
    change("patch_operation_spec", Reply::Empty, operations::patch_spec),
    read("get_operation", Reply::Bare, operations::get),
    read("list_operations", Reply::Bare, operations::list),
    read("list_operation_events", Reply::Bare, operations::events),
    // --- jobs
    read("list_jobs", Reply::Bare, jobs::list),
    read("get_job", Reply::Bare, jobs::get),
    Descriptor {
        name: "get_job_stderr",
        input: Data::Null,
        output: Data::Binary,
        volatile: false,
        changes: false,
        heavy: true,
        reply: Reply::Bare,
        run: Run::Stderr,
    },
    job_data("get_job_input", JobData::Input),
    Descriptor {
        name: "get_job_input_paths",
        input: Data::Null,
        output: Data::Structured,
        volatile: false,
        changes: false,
        heavy: true,
        reply: Reply::Bare,
        run: Run::JobInputPaths,
    },
    job_data("get_job_fail_context", JobData::FailContext),
    Descriptor {
        name: "get_job_spec",
        input: Data::Null,
        output: Data::Structured,
        volatile: false,
        changes: false,
        heavy: true,
        reply: Reply::Bare,
        run: Run::JobSpec,
    },
    Descriptor {
        name: "dump_job_context",
        input: Data::Null,
        output: Data::Structured,
        volatile: true,
        changes: true,
        heavy: false,
        reply: Reply::Empty,
        run: Run::DumpJobContext,
    },
    local("list_job_traces", Reply::Bare, local::list_job_traces),
    Descriptor {
        name: "get_job_trace",
        input: Data::Null,
        output: Data::Binary,
        volatile: false,
        changes: false,
        heavy: true,
        reply: Reply::Bare,
        run: Run::JobTrace,
    },
    action("abort_job", jobs::abort),
    action("abandon_job", jobs::abandon),
    // --- shells beside jobs
    Descriptor {
        name: "poll_job_shell",
        input: Data::Null,
        output: Data::Structured,
        volatile: true,
        changes: true,
        heavy: false,
        reply: Reply::Named,
        run: Run::Shell,
    },
    Descriptor {
        name: "run_job_shell_command",
        input: Data::Null,
        output: Data::Binary,
        volatile: true,
        changes: true,
        heavy: true,
        reply: Reply::Bare,
        run: Run::ShellCommand,
    },
    // --- security, pools
    read("check_permission", Reply::Bare, security::check_permission),
    read("check_permission_by_acl", Reply::Bare, security::check_permission_by_acl),
    read("check_operation_permission", Reply::Bare, security::check_operation_permission),
    change("add_member", Reply::Empty, security::add_member),
    change("remove_member", Reply::Empty, security::remove_member),
    Descriptor {
        name: "issue_token",
        input: Data::Null,
        output: Data::Structured,
        volatile: true,
        changes: true,
        heavy: false,
        reply: Reply::Bare,
        run: Run::NewToken(security::issue_token),
    },
    Descriptor {
        name: "rotate_token",
        input: Data::Null,
        output: Data::Structured,
        volatile: true,
        changes: true,
        heavy: false,
        reply: Reply::Bare,
        run: Run::NewToken(security::rotate_token),
    },
    change("revoke_token", Reply::Empty, security::revoke_token),
    read("list_user_tokens", Reply::Bare, security::list_user_tokens),
    Descriptor {
        name: "set_user_password",
        input: Data::Null,
        output: Data::Structured,
        volatile: true,
        changes: true,
        heavy: false,
        reply: Reply::Empty,
        run: Run::SetPassword,
    },
    local("get_current_user", Reply::Bare, local::get_current_user),
    change("transfer_pool_resources", Reply::Empty, security::transfer_pool_resources),
    change("transfer_account_resources", Reply::Empty, security::transfer_account_resources),
    // --- the server itself
    change("gc_collect", Reply::Bare, security::gc_collect),
    change("extend_leases", Reply::Bare, cluster::extend_leases),
    change("remove_node", Reply::Bare, cluster::remove_node),
    Descriptor {
        name: "create_join_token",
        input: Data::Null,
        output: Data::Structured,
        volatile: true,
        changes: true,
        heavy: false,
        reply: Reply::Bare,
        run: Run::NewJoinToken(security::create_join_token),
    },
    change("revoke_join_token", Reply::Empty, security::revoke_join_token),
    change("approve_node", Reply::Bare, security::approve_node),
    change("revoke_node", Reply::Bare, security::revoke_node),
    read("list_node_identities", Reply::Bare, security::list_node_identities),
    // --- others
    Descriptor {
        name: "execute_batch",
        input: Data::Null,
        output: Data::Structured,
        volatile: true,
        changes: true,
        heavy: false,
        reply: Reply::Named,
        run: Run::Batch,
    },
    local("get_version", Reply::Named, local::get_version),
    local("get_supported_features", Reply::Named, local::get_supported_features),
    local("generate_timestamp", Reply::Named, local::generate_timestamp),
    local("discover_proxies", Reply::Named, local::discover_proxies),
];

impl Descriptor {
    /// The command of this name in v4.
    pub fn find(name: &str) -> Option<&'static Descriptor> {
        TABLE.iter().find(|d| d.name == name)
    }

    /// What clients see: exactly these five keys, because the client passes them on as keyword
    /// arguments (http-api.md 2.1).
    pub fn to_map(&self, name: &str) -> Map {
        yson::map! {
            "name" => name,
            "input_type" => self.input.as_value(),
            "output_type" => self.output.as_value(),
            "is_volatile" => self.volatile,
            "is_heavy" => self.heavy,
        }
    }

    /// Does what is behind it in a batch wait for its end? Contents are joined, and rows written, outside of the
    /// kernel: those who look at what comes of them, or remove what they were made of, come later.
    pub fn holds_up(&self) -> bool {
        matches!(self.name, "concatenate" | "write_table")
    }

    /// Does it carry the specification of an operation, or parts of one?
    pub fn has_spec(&self) -> bool {
        matches!(self.name, "start_operation" | "patch_operation_spec")
    }

    /// Methods by which it may be called (http-api.md 2.1 [X]), in the form of an `Allow` header.
    pub fn methods(&self) -> &'static str {
        if self.volatile { "POST, PUT" } else { "GET, POST" }
    }
}

/// The natural result in the shape of the reply; none for a reply without a body.
pub fn shape(reply: Reply, version: Version, only_value: bool, natural: Value) -> Option<Value> {
    match (reply, version) {
        (Reply::Value, Version::V4) if !only_value => Some(yson::map! {"value" => natural}.into()),
        (Reply::Named, Version::V3) => match natural {
            Value::Map(map) if map.len() == 1 => map.into_iter().next().map(|(_, value)| value),
            other => Some(other),
        },
        (Reply::Empty, Version::V4) => Some(Map::new().into()),
        (Reply::Empty, Version::V3) => None,
        (Reply::Value | Reply::Named | Reply::Bare, _) => Some(natural),
    }
}

/// Version of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// Old names, bare replies.
    V3,
    /// What clients speak.
    V4,
}

/// A command by its name in a version, and the parameters that the name itself implies.
pub fn find(version: Version, name: &str) -> Option<(&'static Descriptor, Map)> {
    match version {
        Version::V4 => Descriptor::find(name).map(|d| (d, Map::new())),
        Version::V3 => version3::find(name),
    }
}

/// Is there a command of this name in any version?
pub fn is_command(name: &str) -> bool {
    find(Version::V4, name).is_some() || find(Version::V3, name).is_some()
}

/// The list of descriptors of a version.
pub fn descriptors(version: Version) -> Value {
    let list: Vec<Map> = match version {
        Version::V4 => TABLE.iter().map(|d| d.to_map(d.name)).collect(),
        Version::V3 => version3::names().map(|(name, d)| d.to_map(name)).collect(),
    };
    list.into()
}
