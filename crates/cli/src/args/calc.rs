//! `millpond calc ...`: the shipped core, run by hand on cases that are written down.

use super::epilogue;
use clap::{Args, Subcommand};
use std::num::NonZeroU32;
use std::path::PathBuf;

/// `millpond calc ...`.
#[derive(Subcommand, Clone, Debug)]
pub enum CalcCommand {
    /// Compute fair shares of described pool trees
    ///
    /// Reads cases, one JSON object a line: a pool tree with its settings, the cluster's total, and a
    /// sequence of updates. Prints one line for each case, in their order and as soon as it is computed:
    ///
    /// {"name":...,"steps":[{"errors":[...],"elements":{ID:{"fair_share":[...],...}}}]}
    ///
    /// Vectors are [user_slots, cpu, gpu, memory, network], shares are fractions of the total, numbers
    /// have all digits of a double. The format of cases and all fields are in docs/calculators.md.
    ///
    /// A case that cannot be computed is told on stderr, with its line, the field (a JSON pointer), its
    /// value and what is allowed; the others go on, and the exit code is 1 at the end. Nothing is
    /// printed of a case that is refused. No server is needed.
    #[command(after_help = epilogue![
        "millpond calc fair-share cases.jsonl",
        "millpond calc fair-share cases.jsonl.gz --sparse > answers.jsonl",
        "zcat cases/*.jsonl.gz | millpond calc fair-share --strict",
        "millpond calc fair-share big.jsonl.gz --repeat 20 --sparse | jq -c .update_ns",
    ])]
    FairShare(FairShareArgs),
    /// Show what the CPU monitor makes of a job's CPU time
    ///
    /// Reads cases, one JSON object a line: options of `job_cpu_monitor`, the job's CPU limit, and
    /// readings of its counters (seconds since the start, CPU seconds so far; null: not readable). Prints
    /// one line for each case:
    ///
    /// {"name":...,"checks":[{"t":...,"usage":...,"smoothed":...,"vote":...,"votes_sum":...,"limit":...}],
    /// "statistics":{...}}
    ///
    /// There is one check for each reading; null is what does not exist yet. Cases that are refused are
    /// told as those of fair-share are. No server is needed.
    #[command(after_help = epilogue![
        "millpond calc cpu-monitor cases.jsonl",
        r#"echo '{"name":"idle","cpu_limit":4,"samples":[[0,0],[1,1],[2,1]]}' | millpond calc cpu-monitor"#,
    ])]
    CpuMonitor(LinesArgs),
    /// Show what memory new jobs of a task reserve after others ended
    ///
    /// Reads cases, one JSON object a line: options of memory reserves, the jobs' memory limit, the size
    /// of their memory file systems, and how jobs ended and what they had used. Prints one line for each
    /// case:
    ///
    /// {"name":...,"reserves":[...],"factors":[...],"retry_reserves":[...]}
    ///
    /// Reserves are bytes of the user job: of the first job, and of the next one after each of the jobs.
    /// Cases that are refused are told as those of fair-share are. No server is needed.
    #[command(after_help = epilogue![
        "millpond calc memory-digest cases.jsonl",
        r#"echo '{"name":"x","memory_limit":1073741824,"jobs":[{"outcome":"completed","max_memory":268435456}]}' \
    | millpond calc memory-digest"#,
    ])]
    MemoryDigest(LinesArgs),
    /// Ask what the scheduler would do: play a script of a cluster
    ///
    /// Reads a script, one JSON object a line: nodes, pools, operations, then what happens to them (time
    /// passes, nodes report, allocations end, settings change). Prints one line for each:
    ///
    /// {"event":...,"t":...,"did":...,"starts":[...],"preemptions":[...],"operations":{...},"pools":{...}}
    ///
    /// with what was decided and what has changed since the line before. Time is the script's own, and
    /// allocations are called A.1, A.2, ... after their operation A. All verbs and keys are in
    /// docs/calculators.md.
    ///
    /// A line that is refused is told on stderr as those of fair-share are, and changes nothing. No
    /// server is needed.
    #[command(after_help = epilogue![
        "millpond calc scheduling script.jsonl --text",
        r#"(echo '{"node":"n","limits":{"cpu":4}}'
     echo '{"pool":"p"}'
     echo '{"operation":"A","pool":"p","job":{"cpu":1},"count":6}'
     echo '{"advance":10}') | millpond calc scheduling --text"#,
    ])]
    Scheduling(SchedulingArgs),
}

/// `millpond calc scheduling`.
#[derive(Args, Clone, Debug)]
pub struct SchedulingArgs {
    /// Script, plain or in gzip [default: standard input]
    pub file: Option<PathBuf>,
    /// Print a transcript for people instead of JSON
    #[arg(long)]
    pub text: bool,
    /// Stop at the first line that is refused
    #[arg(long)]
    pub strict: bool,
}

/// `millpond calc cpu-monitor` and `millpond calc memory-digest`.
#[derive(Args, Clone, Debug)]
pub struct LinesArgs {
    /// Cases, plain or in gzip [default: standard input]
    pub file: Option<PathBuf>,
    /// Stop at the first case that is refused
    #[arg(long)]
    pub strict: bool,
}

/// `millpond calc fair-share`.
#[derive(Args, Clone, Debug)]
pub struct FairShareArgs {
    /// Cases, plain or in gzip [default: standard input]
    pub file: Option<PathBuf>,
    /// Compute each case N times more and print how long all its updates took together, in
    /// nanoseconds: "update_ns":{"min":...,"median":...,"max":...}
    #[arg(long, value_name = "N")]
    pub repeat: Option<NonZeroU32>,
    /// Leave out fields that are zero, and positions that there are not
    #[arg(long)]
    pub sparse: bool,
    /// Stop at the first case that is refused
    #[arg(long)]
    pub strict: bool,
}
