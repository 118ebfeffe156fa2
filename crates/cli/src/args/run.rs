//! `millpond run`.

use crate::units::{parse_cores, parse_env, parse_file, parse_size, parse_span};
use clap::Args;
use std::path::PathBuf;
use vocab::{Cpu, Span};

/// A file for the sandbox of every job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileArg {
    /// Where it is on this machine.
    pub path: PathBuf,
    /// What it is called in the sandbox.
    pub name: String,
}

/// `millpond run`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  millpond run --pool research -- ./train.sh --epochs 3
  millpond run -p research --cpu 2 --memory 4GiB --file train.py -f -- python3 train.py
  millpond run -p batch --jobs 100 --name shard -- bash -c 'echo part $YT_JOB_COOKIE'
  millpond op logs $(millpond run -q -p research -- make) --follow

Exit codes: 0 started, or with --follow completed; 1 failed; 2 wrong usage; 3 aborted; 4 no server;
130 interrupted while following (the operation goes on, unless --abort-on-interrupt).")]
pub struct RunArgs {
    /// Pool to run in [default: a pool of your own]
    #[arg(long, short)]
    pub pool: Option<String>,
    /// Pool tree [default: the default one]
    #[arg(long, value_name = "TREE")]
    pub tree: Option<String>,
    /// Cores for each job, fractions allowed
    #[arg(long, value_name = "CORES", default_value = "1", value_parser = parse_cores)]
    pub cpu: Cpu,
    /// Memory for each job, e.g. 1GiB, 512MiB
    #[arg(long, short, value_name = "SIZE", default_value = "512MiB", value_parser = parse_size)]
    pub memory: i64,
    /// Devices for each job
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub gpu: u32,
    /// Number of jobs
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: u32,
    /// Name of the task
    #[arg(long, value_name = "TASK", default_value = "task")]
    pub name: String,
    /// Title of the operation [default: the command]
    #[arg(long)]
    pub title: Option<String>,
    /// Second name of the operation, *NAME
    #[arg(long, value_name = "*NAME")]
    pub alias: Option<String>,
    /// Weight among the operations of the pool
    #[arg(long)]
    pub weight: Option<f64>,
    /// Variable for the jobs; without a value it is taken from here
    #[arg(long, short, value_name = "KEY[=VALUE]", value_parser = parse_env)]
    pub env: Vec<(String, String)>,
    /// File for the sandbox, with its name there
    #[arg(long, value_name = "PATH[:NAME]", value_parser = parse_file)]
    pub file: Vec<FileArg>,
    /// Print the output of the jobs and wait for the end
    #[arg(long, short)]
    pub follow: bool,
    /// The operation fails when so many of its jobs have failed [default: 10]
    #[arg(long, value_name = "N")]
    pub max_failed: Option<u32>,
    /// Longest time for the operation, e.g. 30s, 10m, 2h
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub time_limit: Option<Span>,
    /// Longest time for each job
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub job_time_limit: Option<Span>,
    /// Abort the operation on Ctrl-C while following it
    #[arg(long, requires = "follow")]
    pub abort_on_interrupt: bool,
    /// Print the specification and start nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Program and arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
