//! What the client must know about a command to send it: the kinds of input and output and whether
//! it changes anything (http-api.md 2.1).

/// Kind of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// No body.
    Null,
    /// One value in a structured format.
    Structured,
    /// Rows.
    Tabular,
    /// Bytes as they are.
    Binary,
}

/// HTTP method of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Parameters in headers.
    Get,
    /// Parameters in the body.
    Post,
    /// Parameters in headers, input in the body.
    Put,
}

/// One command of the API.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Name, also the last part of the address.
    pub name: &'static str,
    /// Body of the request.
    pub input: Kind,
    /// Body of the reply.
    pub output: Kind,
    /// Does it change anything? Such light commands carry a mutation id.
    pub is_volatile: bool,
    /// Does it move much data? Such commands are not recognised when repeated.
    pub is_heavy: bool,
}

impl Command {
    /// By name.
    pub fn find(name: &str) -> Option<&'static Command> {
        COMMANDS.iter().find(|c| c.name == name)
    }

    /// The method follows from the table, in the reference client too.
    pub fn method(&self) -> Method {
        match (self.input, self.is_volatile) {
            (Kind::Null, true) => Method::Post,
            (Kind::Null, false) => Method::Get,
            _ => Method::Put,
        }
    }

    /// Will the server recognise a repeated request by its mutation id?
    pub fn takes_mutation_id(&self) -> bool {
        self.is_volatile && !self.is_heavy
    }
}

const fn command(
    name: &'static str,
    input: Kind,
    output: Kind,
    is_volatile: bool,
    is_heavy: bool,
) -> Command {
    Command { name, input, output, is_volatile, is_heavy }
}

/// A light command that changes something and replies with a value.
const fn change(name: &'static str) -> Command {
    command(name, Kind::Null, Kind::Structured, true, false)
}

/// A light command that changes something to the value in its body.
const fn put(name: &'static str) -> Command {
    command(name, Kind::Structured, Kind::Structured, true, false)
}

/// A light command that only looks.
const fn look(name: &'static str) -> Command {
    command(name, Kind::Null, Kind::Structured, false, false)
}

/// A heavy command that replies with bytes.
const fn bytes(name: &'static str) -> Command {
    command(name, Kind::Null, Kind::Binary, false, true)
}

/// Every command that this client can send.
pub const COMMANDS: &[Command] = &[
    look("get"),
    look("list"),
    look("exists"),
    put("set"),
    put("multiset_attributes"),
    change("create"),
    change("remove"),
    change("copy"),
    change("move"),
    change("link"),
    change("lock"),
    change("unlock"),
    change("start_transaction"),
    change("ping_transaction"),
    change("commit_transaction"),
    change("abort_transaction"),
    change("start_operation"),
    change("abort_operation"),
    change("suspend_operation"),
    change("resume_operation"),
    change("complete_operation"),
    change("update_operation_parameters"),
    change("patch_operation_spec"),
    look("get_operation"),
    look("list_operations"),
    look("list_operation_events"),
    look("list_jobs"),
    look("get_job"),
    // These two change something and are still read-only in the reference (http-api.md 2.1).
    look("abort_job"),
    look("abandon_job"),
    bytes("get_job_stderr"),
    bytes("get_job_input"),
    bytes("get_job_fail_context"),
    command("get_job_spec", Kind::Null, Kind::Structured, false, true),
    change("dump_job_context"),
    change("poll_job_shell"),
    command("run_job_shell_command", Kind::Null, Kind::Binary, true, true),
    command("write_file", Kind::Binary, Kind::Structured, true, true),
    bytes("read_file"),
    look("get_file_from_cache"),
    change("put_file_to_cache"),
    command("write_table", Kind::Tabular, Kind::Structured, true, true),
    command("read_table", Kind::Null, Kind::Tabular, false, true),
    change("concatenate"),
    change("alter_table"),
    look("check_permission"),
    look("check_permission_by_acl"),
    look("check_operation_permission"),
    change("add_member"),
    change("remove_member"),
    look("get_current_user"),
    change("issue_token"),
    change("revoke_token"),
    change("rotate_token"),
    look("list_user_tokens"),
    change("transfer_pool_resources"),
    change("gc_collect"),
    change("extend_leases"),
    change("remove_node"),
    change("create_join_token"),
    change("revoke_join_token"),
    change("approve_node"),
    change("revoke_node"),
    look("list_node_identities"),
    change("execute_batch"),
    look("get_version"),
    look("get_supported_features"),
    look("generate_timestamp"),
    look("parse_ypath"),
];
