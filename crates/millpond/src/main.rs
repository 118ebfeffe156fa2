//! The one binary: dispatch to the bodies.
//!
//! * [`bodies`]: `millpond server` and `millpond node`, from arguments to settings of the crates that
//!   do the work.
//! * [`up`]: the supervisor, which runs those two as child processes of this same program.
//! * [`demonstration`]: `millpond demo`, which is a user of such a cluster, and its `millpond burn`.
//! * [`config`]: the configuration file of all three; [`machine`]: what this host has.
//! * Everything else is the command line's ([`cli::execute`]).
#![forbid(unsafe_code)]

mod bodies;
mod config;
mod demonstration;
mod logging;
mod machine;
mod up;

use clap::Parser;
use cli::args::{NodeArgs, NodeCommand};
use cli::output::Screen;
use cli::{Cli, CliError, Command};
use std::hash::{BuildHasher as _, RandomState};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Keys of maps come from requests: without secret numbers a sender could choose keys that collide.
    yson::seed_map_keys([random_number(), random_number()]).expect("no map has been made yet");
    // The spawner forks and so must be alone in its process: before any thread, before anything else.
    if std::env::args_os().nth(1).is_some_and(|a| a == jobproxy::SPAWNER_SUBCOMMAND) {
        return jobproxy::spawner_main();
    }
    let Cli { common, command } = Cli::parse();
    let result = match command {
        Command::Up(args) => up::run(&common, &args),
        Command::Server(args) if args.command.is_none() => bodies::server(&common, &args),
        Command::Node(args) if args.command.is_none() => bodies::node(&common, &args),
        Command::Node(NodeArgs { command: Some(NodeCommand::Join(args)), .. }) => {
            bodies::join(&common, &args)
        }
        Command::Demo(args) => demonstration::run(args),
        Command::Burn(args) => demonstration::burn(args),
        other => return cli::execute(&common, other),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            Screen::new(cli::commands::form(&common)).complain(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

/// A random number, from the source of the standard library: each of its states has other keys.
fn random_number() -> u64 {
    RandomState::new().hash_one(0_u8)
}

/// An error of a body, with its causes on one line.
fn told(error: impl Into<anyhow::Error>) -> CliError {
    CliError::failed(format!("{:#}", error.into()))
}
