//! `millpond op ...`.

use super::epilogue;
use clap::{Args, Subcommand};

/// `millpond op ...`.
#[derive(Subcommand, Clone, Debug)]
pub enum OpCommand {
    /// List operations, newest first
    #[command(after_help = epilogue![
        "millpond op list",
        "millpond op list --state running --pool research",
        "millpond op list --filter nightly --limit 5 -q",
    ])]
    List {
        /// Only in this state, e.g. running, pending, failed
        #[arg(long)]
        state: Option<String>,
        /// Only of this user
        #[arg(long)]
        user: Option<String>,
        /// Only in this pool
        #[arg(long, short)]
        pool: Option<String>,
        /// Only with this text in id, title, alias, user, pool or state
        #[arg(long, value_name = "TEXT")]
        filter: Option<String>,
        /// At most so many
        #[arg(long, short, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Show an operation: state, tasks, jobs, why it waits, how it ended
    #[command(after_help = epilogue![
        "millpond op get 1-2-103e8-4",
        "millpond op get '*nightly' --json",
    ])]
    Get {
        /// Id or *alias
        operation: String,
        /// Only these attributes, as YSON
        #[arg(long, short, value_name = "NAME")]
        attribute: Vec<String>,
    },
    /// Say why an operation has what it has: why it waits, starves or lost jobs, and what would help
    #[command(after_help = epilogue![
        "millpond op explain 1-2-103e8-4",
        "millpond op explain '*nightly' --json",
        "millpond op explain 1-2-103e8-4 -q     # the reason, in one word",
    ])]
    Explain {
        /// Id or *alias
        operation: String,
    },
    /// List preemptions, the newest last: who lost what for whom, and why
    #[command(after_help = epilogue![
        "millpond op preemptions",
        "millpond op preemptions 1-2-103e8-4      # what it lost, and what others lost for it",
        "millpond op preemptions --pool research --limit 100",
    ])]
    Preemptions {
        /// Id or *alias
        operation: Option<String>,
        /// Only of operations in this pool
        #[arg(long, short)]
        pool: Option<String>,
        /// At most so many
        #[arg(long, short, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=4096))]
        limit: u32,
    },
    /// Look into a running operation: a shell, or a command, beside the job that has run longest
    ///
    /// The same as `millpond job shell` of that job, which is named on standard error.
    #[command(after_help = epilogue![
        "millpond op shell 1-2-103e8-4",
        "millpond op shell '*nightly' --task train -- nvidia-smi",
    ])]
    Shell {
        /// Id or *alias
        operation: String,
        /// Only of this task
        #[arg(long)]
        task: Option<String>,
        /// One of the shells that the spec names in job_shells
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Run this by bash instead of an interactive shell
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Abort operations
    #[command(after_help = epilogue!["millpond op abort 1-2-103e8-4 --message 'wrong input'"])]
    Abort {
        /// Ids or *aliases
        #[arg(required = true)]
        operations: Vec<String>,
        /// Why
        #[arg(long, short, value_name = "TEXT")]
        message: Option<String>,
    },
    /// Start no new jobs of operations
    #[command(after_help = epilogue!["millpond op suspend '*nightly' --abort-jobs"])]
    Suspend {
        /// Ids or *aliases
        #[arg(required = true)]
        operations: Vec<String>,
        /// Abort the running jobs too
        #[arg(long)]
        abort_jobs: bool,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Let suspended operations go on
    #[command(after_help = epilogue!["millpond op resume '*nightly'"])]
    Resume {
        /// Ids or *aliases
        #[arg(required = true)]
        operations: Vec<String>,
    },
    /// End operations as if all their jobs were done
    #[command(after_help = epilogue!["millpond op complete 1-2-103e8-4"])]
    Complete {
        /// Ids or *aliases
        #[arg(required = true)]
        operations: Vec<String>,
    },
    /// Change pool or weight of an operation
    #[command(after_help = epilogue!["millpond op update 1-2-103e8-4 --pool urgent --weight 5"])]
    Update {
        /// Id or *alias
        operation: String,
        /// Move to this pool
        #[arg(long, short, required_unless_present = "weight")]
        pool: Option<String>,
        /// Weight among the operations of the pool
        #[arg(long)]
        weight: Option<f64>,
    },
    /// Print the output of jobs
    ///
    /// Of running jobs what there is so far, of finished ones what was kept (ten jobs of an operation,
    /// unless its specification says otherwise). Lines begin with [task/cookie] when there are several
    /// jobs.
    Logs(LogsArgs),
}

/// `millpond op logs`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  millpond op logs 1-2-103e8-4
  millpond op logs '*nightly' --failed
  millpond op logs 1-2-103e8-4 --follow

Exit codes: 0 done, or with --follow completed; 1 failed; 2 wrong usage; 3 aborted; 4 no server;
130 interrupted while following.")]
pub struct LogsArgs {
    /// Id or *alias
    pub operation: String,
    /// Only of this job
    #[arg(long, value_name = "ID")]
    pub job: Option<vocab::JobId>,
    /// Only of failed jobs
    #[arg(long, conflicts_with = "job")]
    pub failed: bool,
    /// Go on until the operation ends
    #[arg(long, short, conflicts_with = "job")]
    pub follow: bool,
}
