//! `millpond job ...`.

use super::epilogue;
use crate::units::parse_span;
use clap::Subcommand;
use vocab::{JobId, Span};

/// `millpond job ...`.
#[derive(Subcommand, Clone, Debug)]
pub enum JobCommand {
    /// List jobs of an operation
    #[command(after_help = epilogue![
        "millpond job list 1-2-103e8-4",
        "millpond job list '*nightly' --state failed",
    ])]
    List {
        /// Id or *alias
        operation: String,
        /// Only in this state: waiting, running, completed, failed, aborted
        #[arg(long)]
        state: Option<String>,
        /// Only of this task
        #[arg(long)]
        task: Option<String>,
        /// At most so many
        #[arg(long, short, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Show a job: where and when it ran, what it used, how it ended
    #[command(after_help = epilogue!["millpond job get 1-2-103e8-4 5-6-10384-8"])]
    Get {
        /// Id or *alias of its operation
        operation: String,
        /// Id of the job
        job: JobId,
    },
    /// Say what was learned about a running job: where its CPU guarantee and its memory reserve stand
    /// and why, and what was saved so far
    #[command(after_help = epilogue![
        "millpond job explain 5-6-10384-8",
        "millpond job explain 5-6-10384-8 --json",
    ])]
    Explain {
        /// Id of the job
        job: JobId,
    },
    /// Print the output of a job
    #[command(after_help = epilogue!["millpond job stderr 1-2-103e8-4 5-6-10384-8 | less"])]
    Stderr {
        /// Id or *alias of its operation
        operation: String,
        /// Id of the job
        job: JobId,
    },
    /// Print what a job of a map was given to read: all its rows, in its format
    ///
    /// As long as its operation runs; after that, as long as the tables keep the rows.
    #[command(after_help = epilogue!["millpond job input 1-2-103e8-4 5-6-10384-8 | ./convert.py"])]
    Input {
        /// Id or *alias of its operation
        operation: String,
        /// Id of the job
        job: JobId,
    },
    /// Print what a job of a map was reading when it failed: the rows that it was given last
    #[command(after_help = epilogue!["millpond job fail-context 1-2-103e8-4 5-6-10384-8 | ./convert.py"])]
    FailContext {
        /// Id or *alias of its operation
        operation: String,
        /// Id of the job
        job: JobId,
    },
    /// Look into a running job: a shell, or a command, in its container, directory and environment
    ///
    /// It runs as the user of the job, within its limits, and ends with it. At a terminal it is interactive
    /// and Ctrl-] leaves it; elsewhere, what the command prints is printed.
    #[command(after_help = epilogue![
        "millpond job shell 5-6-10384-8",
        "millpond job shell 5-6-10384-8 -- top -b -n1",
    ])]
    Shell {
        /// Id of the job
        job: JobId,
        /// One of the shells that the spec names in job_shells
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Run this by bash instead of an interactive shell
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// Abort jobs; their operation runs them again
    #[command(after_help = epilogue!["millpond job abort 5-6-10384-8 --interrupt-timeout 10s"])]
    Abort {
        /// Ids
        #[arg(required = true)]
        jobs: Vec<JobId>,
        /// Ask the job to stop first and wait so long
        #[arg(long, value_name = "TIME", value_parser = parse_span)]
        interrupt_timeout: Option<Span>,
    },
}
