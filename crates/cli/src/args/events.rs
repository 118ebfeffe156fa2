//! `millpond events`, `millpond audit`.

use super::epilogue;
use clap::Args;

/// `millpond events`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue![
    "millpond events",
    "millpond events --follow",
    "millpond events --from 1 --limit 100000 --json > events.jsonl",
    "millpond events --last 10000 --operation 1-2-103e8-4",
])]
pub struct EventsArgs {
    /// Begin with this number
    #[arg(long, value_name = "NUMBER", conflicts_with = "last")]
    pub from: Option<u64>,
    /// Begin so many before the end
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub last: u64,
    /// At most so many
    #[arg(long, short, value_name = "N")]
    pub limit: Option<u64>,
    /// Only of this operation
    #[arg(long, value_name = "ID")]
    pub operation: Option<vocab::OperationId>,
    /// Go on with what happens
    #[arg(long, short, conflicts_with = "limit")]
    pub follow: bool,
}

/// `millpond audit`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue![
    "millpond audit",
    "millpond audit --path //sys/pool_trees --follow",
    "millpond audit --from 1 --user ann --action set --json",
])]
pub struct AuditArgs {
    /// Look through the event log from this number on
    #[arg(long, value_name = "NUMBER", conflicts_with = "last")]
    pub from: Option<u64>,
    /// Look through the last so many events of the event log
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100_000)]
    pub last: u64,
    /// At most so many changes
    #[arg(long, short, value_name = "N")]
    pub limit: Option<u64>,
    /// Only by this user
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Only by this command: set, create, remove, abort_operation, add_member, ...
    #[arg(long, value_name = "COMMAND")]
    pub action: Option<String>,
    /// Only of this path and what is below it
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// Go on with what happens
    #[arg(long, short, conflicts_with = "limit")]
    pub follow: bool,
}
