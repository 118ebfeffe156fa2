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
