//! `millpond sim ...`: the shipped core in virtual time.

use super::epilogue;
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;
use vocab::{Span, Time};

/// `millpond sim ...`.
#[derive(Subcommand, Clone, Debug)]
pub enum SimCommand {
    /// Run a scenario: a cluster, a pool tree and a workload in virtual time
    ///
    /// Writes tables (pools, operations, allocations), the scenario as it was in force, summary.json and a
    /// page with charts into a directory. The same scenario and seed give the same bytes, but for the section
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
    /// Run a scenario and changed forms of it side by side
    ///
    /// A variant is a file: {"format":"millpond-variant/1","name":"...","set":{"/json/pointer":value,...}}.
    /// All see the same workload and the same random numbers. Prints who gains and who starves, whose jobs
    /// are preempted, when operations start and end, and the figures that changed most; each run has a
    /// directory of its own, comparison.csv and comparison.json have all figures, report.html has the charts.
    ///
    /// With --from the beginning is a live cluster as it is now (see `millpond sim snapshot`).
    #[command(after_help = epilogue![
        "millpond sim what-if day.json --variant strong.json --variant burst.json --out /tmp/both",
        "millpond sim what-if --from 127.0.0.1:8000 --variant more.json --out /tmp/now",
    ])]
    WhatIf(SimWhatIfArgs),
    /// Write a live cluster as it is now as a scenario
    ///
    /// Pools with their volumes, nodes, unfinished operations, and the jobs that run, on their nodes. How
    /// long jobs will run is guessed by the completed ones of their task; where there is none, by
    /// --job-duration. The cluster is only read.
    #[command(after_help = epilogue![
        "millpond sim snapshot --out /tmp/now",
        "millpond sim run /tmp/now/scenario.json --out /tmp/run --until 12h",
    ])]
    Snapshot(SimSnapshotArgs),
    /// Make a workload of a log: of other schedulers, or of Millpond
    ///
    /// swf: the Standard Workload Format; mjobs: tables of tasks (columns in docs/simulator.md); event-log:
    /// what `millpond events --json` prints. Files may be in gzip. Lines that cannot be used are skipped
    /// and told with their reasons. What was written is read back: jobs, core-seconds and GiB-hours must
    /// be those of the log, otherwise the exit code is 1.
    #[command(after_help = epilogue![
        "millpond sim import swf log.swf.gz --mapping pools.json --out work.jsonl.gz --scenario day.json",
        "millpond sim import mjobs jobs.csv.gz --out work.jsonl",
        "millpond events --from 1 --json > events.jsonl; millpond sim import event-log events.jsonl --out work.jsonl",
    ])]
    Import(SimImportArgs),
    /// Make a page of finished runs: one file with charts and tables
    ///
    /// Pools with usage, demand, fair share and guarantee against time, volumes with their caps, waits,
    /// starvation, who lost to whom, memory, CPU, and all figures. Of several runs all charts are beside
    /// each other, with common axes. The file needs nothing from outside.
    #[command(after_help = epilogue![
        "millpond sim report /tmp/run --out report.html",
        "millpond sim report /tmp/both/base /tmp/both/strong --out both.html",
        "millpond sim report /tmp/run --checks checks.json --out report.html",
    ])]
    Report(SimReportArgs),
    /// Say why an operation of a run had what it had at a time
    ///
    /// The run is repeated up to that time: the same scenario and seed come to the same place. Then the
    /// product explains the operation as `millpond op explain` does.
    #[command(after_help = epilogue![
        "millpond sim explain /tmp/run --operation nightly --at 90m",
        "millpond sim explain /tmp/run --operation nightly --at 2026-01-01T09:30:00Z --json",
    ])]
    Explain(SimExplainArgs),
    /// Compute the fair shares of a described tree once
    ///
    /// The file has `cluster` and `pool_trees` as scenarios have them, and `demand`: resources by pool.
    /// A scenario does as well; its demand is what comes at time 0.
    #[command(after_help = epilogue![
        "millpond sim shares tree.json",
        r#"echo '{"cluster":{"node_groups":[{"name":"n","count":10,"resource_limits":{"cpu":10,"memory":1000000000000,"user_slots":100}}]},
  "pool_trees":{"default_tree":"physical","trees":{"physical":{"pools":{"a":{"weight":3.0},"b":{}}}}},
  "demand":{"a":{"cpu":80},"b":{"cpu":80}}}' > tree.json"#,
    ])]
    Shares(SimSharesArgs),
    /// Let everything go wrong on small clusters, and see that the core keeps its promises
    ///
    /// A seed makes a cluster, a workload, and what goes wrong: lost connections, late and repeated
    /// messages, dying nodes, a slow store, jumps of the clock, and a server that dies between any two
    /// things it wanted done. All invariants are checked all the time; in the end all work is done, each
    /// unit of it once. A violation prints the story and how to see it again. Ctrl-C ends it.
    #[command(after_help = epilogue![
        "millpond sim faults --count 1000",
        "millpond sim faults --seed 17",
        "millpond sim faults --forever",
    ])]
    Faults(SimFaultsArgs),
}

/// `millpond sim what-if`.
#[derive(Args, Clone, Debug)]
pub struct SimWhatIfArgs {
    /// The scenario; with --from there is none
    #[arg(required_unless_present = "from", conflicts_with = "from")]
    pub scenario: Option<PathBuf>,
    /// Set a part of the scenario: a JSON pointer and a JSON value; null removes
    #[arg(long, value_name = "POINTER=VALUE")]
    pub set: Vec<String>,
    /// Begin with the state of this cluster; its snapshot is written to the directory `snapshot` of the output
    #[arg(long, value_name = "HOST:PORT")]
    pub from: Option<String>,
    /// What is assumed of the jobs of a cluster
    #[command(flatten)]
    pub assumed: SimAssumptions,
    /// A file with changes; may be given several times
    #[arg(long, value_name = "FILE", required_unless_present = "from")]
    pub variant: Vec<PathBuf>,
    /// Directory of the output; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// End there at the latest: 36h, 90m, 1500ms, or a date
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub until: Option<Moment>,
    /// Run everything with so many seeds; differences that another seed may turn round are grey
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// Runs at a time; what comes out is the same [default: cores of this machine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: Option<u64>,
}

/// What is assumed of the future of a live cluster.
#[derive(Args, Clone, Copy, Debug)]
pub struct SimAssumptions {
    /// How long jobs run of whose task none has completed and none runs: 10m, 1500ms
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "10m")]
    pub job_duration: Span,
    /// Simulate the cluster for so long at most
    #[arg(long, value_name = "TIME", value_parser = parse_span, default_value = "24h")]
    pub duration: Span,
}

/// `millpond sim snapshot`.
#[derive(Args, Clone, Debug)]
pub struct SimSnapshotArgs {
    /// Directory for scenario.json and workload.jsonl; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// What is assumed of its jobs
    #[command(flatten)]
    pub assumed: SimAssumptions,
}

/// `millpond sim import`.
#[derive(Args, Clone, Debug)]
pub struct SimImportArgs {
    /// What the files are
    #[arg(value_enum)]
    pub kind: SimLog,
    /// The files
    #[arg(required = true)]
    pub inputs: Vec<PathBuf>,
    /// What the columns mean here: pools, limits, sizes of jobs
    #[arg(long, value_name = "FILE")]
    pub mapping: Option<PathBuf>,
    /// The workload; packed if it ends with .gz
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Write a scenario, too: the mapping file's cluster and pools, and the pools that operations name
    #[arg(long, value_name = "FILE", requires = "mapping")]
    pub scenario: Option<PathBuf>,
}

/// Forms of logs.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum SimLog {
    /// Standard Workload Format
    Swf,
    /// Tables of tasks
    Mjobs,
    /// Event log of Millpond
    EventLog,
}

/// `millpond sim report`.
#[derive(Args, Clone, Debug)]
pub struct SimReportArgs {
    /// Directories of runs
    #[arg(required = true)]
    pub runs: Vec<PathBuf>,
    /// The page
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// What was expected: checks that do not hold are on the page
    #[arg(long, value_name = "FILE")]
    pub checks: Option<PathBuf>,
}

/// `millpond sim explain`.
#[derive(Args, Clone, Debug)]
pub struct SimExplainArgs {
    /// Directory of a run
    pub run: PathBuf,
    /// Its `id` in the workload
    #[arg(long, value_name = "ID")]
    pub operation: String,
    /// From the start (90m), or a date
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub at: Moment,
}

/// `millpond sim shares`.
#[derive(Args, Clone, Debug)]
pub struct SimSharesArgs {
    /// The tree
    pub tree: PathBuf,
}

/// A time of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Moment {
    /// From its start.
    After(Span),
    /// A date.
    Date(Time),
}

impl Moment {
    /// From the start; dates before it are the start.
    pub fn since(self, start: Time) -> Span {
        match self {
            Moment::After(span) => span,
            Moment::Date(time) => time.since(start),
        }
    }
}

fn parse_span(text: &str) -> Result<Span, String> {
    let positive = Span::parse(text).filter(|span| *span >= Span::from_millis(1));
    positive.ok_or_else(|| "expected a time of at least 1ms, like 36h, 90m, 1500ms".to_owned())
}

fn parse_moment(text: &str) -> Result<Moment, String> {
    let wrong = "expected a time like 36h, 90m, 1500ms, or a date like 2026-01-01T09:30:00Z";
    let span = Span::parse(text).map(Moment::After);
    span.or_else(|| Time::parse(text).map(Moment::Date)).ok_or_else(|| wrong.to_owned())
}

/// `millpond sim faults`.
#[derive(Args, Clone, Debug)]
pub struct SimFaultsArgs {
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "forever")]
    pub count: u64,
    /// One seed after the other until stopped
    #[arg(long)]
    pub forever: bool,
    /// Print the story of every seed
    #[arg(long)]
    pub log: bool,
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
    /// End there at the latest: 36h, 90m, 1500ms, or a date
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub until: Option<Moment>,
    /// Form of the tables
    #[arg(long, value_enum, default_value_t = SimFormat::Csv)]
    pub format: SimFormat,
    /// With two and more, one of them writes the tables; what comes out is the same [default: cores of this machine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub threads: Option<u64>,
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
    /// Typed columns, for data frames
    Parquet,
}

/// `millpond sim check`.
#[derive(Args, Clone, Debug)]
pub struct SimCheckArgs {
    /// Directory of a run
    pub run: PathBuf,
    /// What is expected [default: checks.json of the directory; without it only that no invariant was violated]
    #[arg(long, value_name = "FILE")]
    pub checks: Option<PathBuf>,
}
