//! `millpond sim ...`: the shipped core in virtual time.

use super::epilogue;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use vocab::Span;

/// `millpond sim ...`.
#[derive(Subcommand, Clone, Debug)]
pub enum SimCommand {
    /// Run a scenario: a cluster, a pool tree and a workload in virtual time
    ///
    /// Writes tables (pools, operations, allocations), the scenario as it was in force, and summary.json
    /// into a directory. The same scenario and seed give the same bytes, but for the section
    /// `performance` of the summary. Ctrl-C ends the run early; the files are complete up to that time.
    ///
    /// Progress goes to stderr, at most once a second. No server is needed. The format of scenarios is in
    /// docs/simulator.md.
    #[command(after_help = epilogue![
        "millpond sim run burst.json --out /tmp/run",
        "millpond sim run burst.json --out /tmp/run --until 36h --seed 7",
        "millpond sim run burst.json --out /tmp/run --set /cluster/node_groups/0/count=150",
    ])]
    Run(SimRunArgs),
    /// Compare a finished run with what was expected
    ///
    /// Prints every comparison; the exit code is 1 if one of them does not hold.
    #[command(after_help = epilogue![
        "millpond sim check /tmp/run --checks checks.json",
    ])]
    Check(SimCheckArgs),
    /// Read a scenario and its whole workload without running it
    ///
    /// An error names the file, the line or field (a JSON pointer), the value and what is allowed.
    #[command(after_help = epilogue![
        "millpond sim validate burst.json",
        "millpond sim validate burst.json --set /seed=7 --json",
    ])]
    Validate(SimScenarioArgs),
}

/// A scenario with changes.
#[derive(Args, Clone, Debug)]
pub struct SimScenarioArgs {
    /// The scenario
    pub scenario: PathBuf,
    /// Set a part of the scenario: a JSON pointer and a JSON value; null removes
    #[arg(long, value_name = "POINTER=VALUE")]
    pub set: Vec<String>,
}

/// `millpond sim run`.
#[derive(Args, Clone, Debug)]
pub struct SimRunArgs {
    /// The scenario and its changes
    #[command(flatten)]
    pub scenario: SimScenarioArgs,
    /// Directory of the output; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Seed of all random numbers, instead of the scenario's
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// End there at the latest: 36h, 90m, 1500ms
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub until: Option<Span>,
    /// Form of the tables
    #[arg(long, value_enum, default_value_t = SimFormat::Csv)]
    pub format: SimFormat,
    /// Process every heartbeat in full; the output is the same
    #[arg(long)]
    pub no_shortcuts: bool,
    /// Check the invariants of the core after every update; slow
    #[arg(long)]
    pub check_invariants: bool,
}

/// Form of tables.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum SimFormat {
    /// Comma separated, with a header
    Csv,
    /// A JSON object a line
    Jsonl,
}

/// `millpond sim check`.
#[derive(Args, Clone, Debug)]
pub struct SimCheckArgs {
    /// Directory of a run
    pub run: PathBuf,
    /// What is expected
    #[arg(long, value_name = "FILE")]
    pub checks: PathBuf,
}

fn parse_span(text: &str) -> Result<Span, String> {
    Span::parse(text).ok_or_else(|| "expected a time like 36h, 90m, 10s or 1500ms".to_owned())
}
