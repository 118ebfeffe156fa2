//! `millpond pool ...` and `millpond top`.

use super::epilogue;
use crate::units::{Amounts, parse_option, parse_resources, parse_span};
use clap::{Args, Subcommand, ValueEnum};
use vocab::Span;
use yson::Value;

/// `millpond pool ...`.
#[derive(Subcommand, Clone, Debug)]
pub enum PoolCommand {
    /// List pools with their settings
    #[command(after_help = epilogue!["millpond pool list", "millpond pool list --tree gpu -q"])]
    List(PoolTreeArgs),
    /// Create a pool
    #[command(after_help = epilogue![
        "millpond pool create research --weight 2",
        "millpond pool create prod --guarantee cpu=8,memory=32GiB",
        "millpond pool create nightly --parent prod --mode fifo --max-running 1",
    ])]
    Create {
        /// Name, unique in its tree
        name: String,
        /// Pool above it [default: the root]
        #[arg(long)]
        parent: Option<String>,
        /// A pool that is there already is fine
        #[arg(long, short)]
        ignore_existing: bool,
        /// Tree.
        #[command(flatten)]
        tree: PoolTreeArgs,
        /// Settings.
        #[command(flatten)]
        options: PoolOptions,
    },
    /// Change settings of a pool, all or none
    #[command(after_help = epilogue![
        "millpond pool set research --weight 3",
        "millpond pool set prod strong_guarantee_resources/cpu=16",
        "millpond pool set batch integral_guarantees='{guarantee_type=relaxed; resource_flow={cpu=4}}'",
    ])]
    Set {
        /// Name
        name: String,
        /// Tree.
        #[command(flatten)]
        tree: PoolTreeArgs,
        /// Settings.
        #[command(flatten)]
        options: PoolOptions,
    },
    /// Remove pools
    #[command(after_help = epilogue!["millpond pool remove research", "millpond pool remove prod --recursive"])]
    Remove {
        /// Names
        #[arg(required = true)]
        names: Vec<String>,
        /// With the pools below
        #[arg(long, short)]
        recursive: bool,
        /// Tree.
        #[command(flatten)]
        tree: PoolTreeArgs,
    },
    /// Say why a pool has the fair share that it has, and what would change it
    #[command(after_help = epilogue![
        "millpond pool explain research",
        "millpond pool explain research --json",
        "millpond pool explain research -q     # what binds it, in one word",
    ])]
    Explain {
        /// Name
        name: String,
        /// Tree.
        #[command(flatten)]
        tree: PoolTreeArgs,
    },
    /// Show pools as a tree: demand, usage, fair share, guarantees
    #[command(after_help = epilogue!["millpond pool tree", "millpond pool tree --tree gpu --json"])]
    Tree(PoolTreeArgs),
}

/// Which tree.
#[derive(Args, Clone, Debug)]
pub struct PoolTreeArgs {
    /// Pool tree [default: the default one]
    #[arg(long, value_name = "TREE")]
    pub tree: Option<String>,
}

/// Settings of pools, as flags for the common ones and as YSON for all.
#[derive(Args, Clone, Debug, Default)]
pub struct PoolOptions {
    /// Share among its siblings
    #[arg(long)]
    pub weight: Option<f64>,
    /// How it divides what it has: by fair share or first in, first out
    #[arg(long, value_enum)]
    pub mode: Option<PoolMode>,
    /// Strong guarantee, e.g. cpu=8,memory=32GiB
    #[arg(long, value_name = "RESOURCES", value_parser = parse_resources)]
    pub guarantee: Option<Amounts>,
    /// Never more than this, e.g. cpu=64
    #[arg(long, value_name = "RESOURCES", value_parser = parse_resources)]
    pub limits: Option<Amounts>,
    /// Operations that may run at a time
    #[arg(long, value_name = "N")]
    pub max_running: Option<u32>,
    /// Operations that may run or wait
    #[arg(long, value_name = "N")]
    pub max_operations: Option<u32>,
    /// How long below its fair share before others are preempted for it
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub starvation_timeout: Option<Span>,
    /// Any setting; VALUE is YSON, nested ones are reached with /
    #[arg(value_name = "SETTING=VALUE", value_parser = parse_option)]
    pub settings: Vec<(String, Value)>,
}

/// Modes of pools.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
#[value(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum PoolMode {
    FairShare,
    Fifo,
}

/// `millpond top`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue!["millpond top", "millpond top --once", "millpond top --every 5s --tree gpu"])]
pub struct TopArgs {
    /// Tree.
    #[command(flatten)]
    pub tree: PoolTreeArgs,
    /// Print one picture and end
    #[arg(long)]
    pub once: bool,
    /// Time between pictures
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_span)]
    pub every: Span,
}
