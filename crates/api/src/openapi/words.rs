//! What commands and parameters mean, in a line.

/// What a command does; its name, if nobody has said more.
pub(super) fn of_command(name: &'static str) -> &'static str {
    COMMANDS.iter().find(|(known, _)| *known == name).map_or(name, |(_, what)| what)
}

/// What a parameter means, if somebody has said.
pub(super) fn of_parameter(name: &str) -> Option<&'static str> {
    PARAMETERS.iter().find(|(known, _)| *known == name).map(|(_, what)| *what)
}

const COMMANDS: &[(&str, &str)] = &[
    ("get", "The value of a node or attribute"),
    ("list", "Names of the children of a node"),
    ("exists", "Is there something at a path?"),
    ("set", "Writes a node or attribute"),
    ("multiset_attributes", "Writes several attributes of a node at once"),
    ("create", "Makes a node, a pool, a user or another object"),
    ("remove", "Removes a node or attribute"),
    ("copy", "Copies a node with all below it"),
    ("move", "Moves a node"),
    ("link", "Makes a link to a node"),
    ("start_transaction", "Begins a transaction"),
    ("ping_transaction", "Keeps a transaction alive"),
    ("commit_transaction", "Ends a transaction, its changes become visible"),
    ("abort_transaction", "Ends a transaction, its changes are dropped"),
    ("lock", "Locks a node for a transaction"),
    ("unlock", "Drops the locks of a transaction on a node"),
    ("write_file", "Writes the content of a file"),
    ("read_file", "The content of a file"),
    ("write_table", "Writes rows of a table"),
    ("read_table", "Rows of a table"),
    ("alter_table", "Gives a table another schema"),
    ("concatenate", "Puts the rows of tables one after another into one"),
    ("start_operation", "Starts an operation"),
    ("abort_operation", "Ends an operation, its jobs are killed"),
    ("suspend_operation", "No new jobs of an operation are started"),
    ("resume_operation", "A suspended operation goes on"),
    ("complete_operation", "Ends an operation as if all its jobs were done"),
    ("update_operation_parameters", "Changes pool, weight and permissions of a running operation"),
    ("get_operation", "What is known of an operation"),
    ("list_operations", "Operations, running and finished, with filters and counters"),
    ("list_operation_events", "What happened to an operation"),
    ("list_jobs", "Jobs of an operation, running and finished, with filters and counters"),
    ("get_job", "What is known of a job"),
    ("get_job_stderr", "What a job has written to its stderr"),
    ("get_job_input", "The rows that a job was given"),
    ("get_job_input_paths", "The tables that a job was given, each with the rows"),
    ("get_job_fail_context", "The rows that a failed job was given last"),
    ("abort_job", "Ends a job; it is run again"),
    ("abandon_job", "Ends a job; it counts as done"),
    ("execute_batch", "Several commands in one request"),
];

const PARAMETERS: &[(&str, &str)] = &[
    ("path", "A path of the tree, such as //tmp/x or //tmp/x/@attribute"),
    ("attributes", "Names of attributes that are wanted, or attributes of the new object"),
    ("max_size", "At most so many children"),
    ("fields", "Only these fields of pools and operations of the Orchid"),
    ("recursive", "Make what is missing on the way, or remove what is below"),
    ("force", "Replace what is there, or do not mind what is missing"),
    ("ignore_existing", "Be content with what is there"),
    ("operation_id", "Id of an operation, or its alias with the asterisk"),
    ("operation_alias", "Alias of an operation, in the place of its id"),
    ("job_id", "Id of a job"),
    ("transaction_id", "Look and change through this transaction"),
    ("mutation_id", "Id of this change: repeated with the same id, it is answered and not done again"),
    ("retry", "This is a repetition"),
    ("limit", "At most so many"),
    ("offset", "Leave out so many"),
    ("control_attributes", "Marks between rows: {enable_row_index; enable_range_index}"),
    ("schema", "Columns: [{name; type; required; sort_order}]"),
    ("filter", "Only what has this text in its id, title, user, pool or paths"),
    ("from_time", "Only from this time on"),
    ("to_time", "Only up to this time"),
    ("cursor_time", "The page begins here"),
    ("cursor_direction", "past, future or none"),
    ("include_counters", "With counters"),
    ("access", "Only what this subject has these permissions for: {subject; permissions}"),
    ("continuation_token", "Where the page before ended"),
    ("sort_field", "The order of jobs"),
    ("sort_order", "ascending or descending"),
    ("spec", "Specification of the operation"),
    ("operation_type", "vanilla, map, merge, ..."),
    ("timeout", "Milliseconds without a sign of life after which a transaction is aborted"),
    ("return_only_value", "The value alone, without a map around it"),
];
