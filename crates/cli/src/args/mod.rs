//! What can be typed. Nothing here does anything.

mod calc;
mod demo;
mod events;
mod jobs;
mod nodes;
mod operations;
mod pools;
mod processes;
mod run;
mod sim;
mod tokens;
mod tree;

pub use calc::{CalcCommand, FairShareArgs, LinesArgs, SchedulingArgs};
pub use demo::{BurnArgs, DemoArgs};
pub use events::{AuditArgs, EventRange, EventsArgs};
pub use jobs::JobCommand;
pub use nodes::{NodeCommand, NodeJoinArgs, NodeTokenCommand, NodeTokenCreateArgs, parse_sha256};
pub use operations::{LogsArgs, OpCommand};
pub use pools::{PoolCommand, PoolMode, PoolOptions, PoolTreeArgs, TopArgs};
pub use processes::{JOB_ENVIRONMENTS, NodeArgs, ServerArgs, ServerCommand, UpArgs};
pub use run::{FileArg, RunArgs};
pub use sim::{
    Moment, SimAssumptions, SimCheckArgs, SimCommand, SimExplainArgs, SimFaultsArgs, SimFormat,
    SimImportArgs, SimLog, SimReportArgs, SimRunArgs, SimScenarioArgs, SimSharesArgs, SimSnapshotArgs,
    SimWhatIfArgs,
};
pub use tokens::{TokenCommand, TokenCreateArgs, TokenRevokeArgs, TokenRotateArgs, TokenUserArgs};
pub use tree::{CreateArgs, GetArgs, ListArgs, PathArgs, RemoveArgs, SetArgs};

use clap::{Args, Parser, Subcommand};

/// The epilogue of a command's help: examples, then exit codes.
macro_rules! epilogue {
    ($($example:literal),* $(,)?) => {
        concat!(
            "Examples:\n", $("  ", $example, "\n",)*
            "\nExit codes: 0 done, 1 refused or failed, 2 wrong usage, 4 no server."
        )
    };
}
pub(crate) use epilogue;

/// The whole command line.
#[derive(Parser, Debug)]
#[command(
    name = "millpond",
    version,
    about = "Millpond: shares a cluster among teams through a tree of pools",
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "\
Start here:
  millpond up                                   a cluster on this machine
  millpond pool create research --weight 2      a pool
  millpond run --pool research -f -- make -j4   run something in it
  millpond top                                  who gets what

Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 the operation was aborted, 4 no server,
130 interrupted.

Environment: MILLPOND_PROXY or YT_PROXY (server), MILLPOND_TOKEN or YT_TOKEN (token),
MILLPOND_DATA (data of `up`), NO_COLOR."
)]
pub struct Cli {
    /// Options of all commands.
    #[command(flatten)]
    pub common: Common,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of all commands.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub struct Common {
    /// Server to talk to [env: MILLPOND_PROXY or YT_PROXY] [default: 127.0.0.1:8000]
    #[arg(long, global = true, value_name = "HOST:PORT")]
    pub proxy: Option<String>,
    /// JSON for programs
    #[arg(long, global = true, conflicts_with = "quiet")]
    pub json: bool,
    /// Only what a script needs: ids, names, values
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// Address of the server when nobody says another one.
pub const DEFAULT_PROXY: &str = "127.0.0.1:8000";

impl Common {
    /// Address of the server: the option, else the environment, else this machine.
    pub fn address(&self, env: impl Fn(&str) -> Option<String>) -> String {
        let given = |name| env(name).filter(|v| !v.is_empty());
        self.proxy
            .clone()
            .or_else(|| given("MILLPOND_PROXY"))
            .or_else(|| given("YT_PROXY"))
            .unwrap_or_else(|| DEFAULT_PROXY.to_owned())
    }

    /// Token, from the environment only: what is typed can be seen by everybody on the machine.
    pub fn token(&self, env: impl Fn(&str) -> Option<String>) -> Option<String> {
        let given = |name| env(name).filter(|v| !v.is_empty());
        given("MILLPOND_TOKEN").or_else(|| given("YT_TOKEN"))
    }
}

/// Commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Start a cluster on this machine: a server and nodes
    ///
    /// One server and some nodes run as processes of their own, and one that dies is started again.
    /// Ctrl-C or SIGTERM stops everything: first the nodes, which stop their jobs, then the server; a
    /// second Ctrl-C kills. Options on the command line win over those in the configuration file.
    Up(UpArgs),
    /// Run the server process
    ///
    /// Metadata tree, scheduler, controllers, HTTP API and node protocol are in this one process.
    /// SIGTERM or Ctrl-C stops it; jobs go on and are taken over by the next start.
    Server(ServerArgs),
    /// Run an exec node process, or list the nodes of the cluster
    ///
    /// A node takes jobs from the server and runs them. SIGTERM or Ctrl-C stops the node and leaves its
    /// jobs running, for the next start to take over, unless --stop-jobs is given.
    Node(NodeArgs),
    /// Run a command as an operation
    ///
    /// The command becomes a vanilla operation: one task with some equal jobs. It is run by a shell in
    /// an empty directory, with every argument quoted: for pipes and variables write `-- bash -c '...'`.
    ///
    /// The id of the operation is printed. With --follow the output of the jobs is printed instead
    /// (stdout and stderr of a job are one stream), and millpond ends as the operation does.
    Run(Box<RunArgs>),
    /// Operations
    #[command(subcommand, visible_alias = "operation")]
    Op(OpCommand),
    /// Jobs of operations
    #[command(subcommand)]
    Job(JobCommand),
    /// Pools
    #[command(subcommand)]
    Pool(PoolCommand),
    /// Tokens of users
    #[command(subcommand)]
    Token(TokenCommand),
    /// Show the event log: starts and ends of jobs and operations, preemptions, starvation
    ///
    /// Events are numbered without gaps. With --json there is one object a line, as in the files of the
    /// log (directory event-log in the data of the server).
    Events(EventsArgs),
    /// Who changed what
    ///
    /// Every change that somebody asked for and got, with the value before and after where it is a single
    /// one: the events `audit` of the event log. Needs permission to read that.
    Audit(AuditArgs),
    /// Show a node of the tree and what is below it
    Get(GetArgs),
    /// Set a node or an attribute to a YSON value
    Set(SetArgs),
    /// List the children of a node
    List(ListArgs),
    /// Say whether a path exists
    ///
    /// Prints true or false; the exit code is 0 for both.
    Exists(PathArgs),
    /// Create a node or an object
    ///
    /// A node has a path; an object (user, group, scheduler_pool, scheduler_pool_tree) has none and is
    /// named by its attributes. The id is printed.
    Create(CreateArgs),
    /// Remove a node or an attribute
    Remove(RemoveArgs),
    /// Watch pools live: demand, usage, fair share, guarantees
    ///
    /// Keys: q quits, arrows and page keys scroll, space pauses. The bar is the usage, the mark in it
    /// the fair share. Where there is no terminal one picture is printed, as with --once.
    Top(TopArgs),
    /// Replay a real workload on a cluster of this machine
    Demo(DemoArgs),
    /// Burn CPU and hold memory for a while: what the jobs of the demo do
    #[command(hide = true)]
    Burn(BurnArgs),
    /// Compute by hand what the cluster would
    #[command(subcommand)]
    Calc(CalcCommand),
    /// Simulate a cluster: the shipped core in virtual time
    #[command(subcommand)]
    Sim(SimCommand),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the version
    Version,
}

/// `millpond completions`.
#[derive(Args, Debug)]
#[command(after_help = epilogue![
    "millpond completions bash > /etc/bash_completion.d/millpond",
    "millpond completions zsh > \"${fpath[1]}/_millpond\"",
    "millpond completions fish > ~/.config/fish/completions/millpond.fish",
])]
pub struct CompletionsArgs {
    /// Which shell
    pub shell: Shell,
}

/// Shells with completions.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}
