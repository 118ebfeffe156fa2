//! The demo and the program that its jobs run. The binary runs both.

use super::epilogue;
use super::processes::parse_job_environment;
use clap::Args;
use std::path::PathBuf;

/// `millpond demo`.
#[derive(Args, Clone, Debug)]
#[command(
    long_about = "Start a cluster in a temporary directory and replay six hours of a real grid on it in about two \
        minutes, with real processes that burn CPU and hold memory. Shows each pool's usage against its guarantee \
        and its fair share while it runs, and a summary at the end. Ctrl-C stops it and cleans up.\n\n\
        The exit code is 0 only if every operation completed and no process, mount or control group is left.",
    after_help = epilogue![
        "millpond demo",
        "millpond demo --seconds 60",
        "millpond demo --keep --directory /var/tmp/demo",
    ],
)]
pub struct DemoArgs {
    /// About how long the replay takes
    #[arg(long, value_name = "N", default_value_t = 120, value_parser = clap::value_parser!(u64).range(10..=3600))]
    pub seconds: u64,
    /// Where the cluster keeps its data [default: a new directory among the temporary files]
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Leave the cluster running after the summary, until Ctrl-C
    #[arg(long)]
    pub keep: bool,
    /// How jobs are held together: auto, hybrid, cgroup_v2, cgroup_v1, rootless or simple [default: auto]
    #[arg(long, value_name = "NAME", value_parser = parse_job_environment)]
    pub job_environment: Option<String>,
}

/// `millpond burn`.
#[derive(Args, Clone, Copy, Debug)]
#[command(after_help = epilogue!["millpond burn --seconds 2.5 --memory 67108864 --cpu 0.5"])]
pub struct BurnArgs {
    /// Seconds by the wall clock
    #[arg(long, value_name = "S")]
    pub seconds: f64,
    /// Bytes to hold
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub memory: u64,
    /// Fraction of a core to burn, 0 to 1
    #[arg(long, value_name = "FRACTION", default_value_t = 1.0)]
    pub cpu: f64,
}
