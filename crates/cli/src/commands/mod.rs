//! From arguments to requests, from replies to views.

mod calc;
mod events;
mod files;
mod follow;
mod jobs;
mod logs;
mod nodes;
mod operations;
mod pools;
mod preemptions;
mod progress;
mod run;
mod server;
mod shell;
mod sim;
mod snapshot;
mod tokens;
mod top;
mod tree;

pub use run::spec;

use crate::args::{Cli, Command, Common, NodeArgs, NodeCommand, ServerArgs, ServerCommand, Shell};
use crate::error::CliError;
use crate::output::{Form, Screen};
use crate::views::Scalar;
use clap::CommandFactory;
use client::Client;
use std::process::ExitCode;

/// What commands work with.
pub(crate) struct Session {
    pub client: Client,
    pub screen: Screen,
}

/// Runs a command that talks to a server, or to nobody. `up`, `server` and `node` are the binary's.
pub fn execute(common: &Common, command: Command) -> ExitCode {
    let screen = Screen::new(form(common));
    match run(common, command, screen) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            screen.complain(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

/// The form that the flags ask for.
pub fn form(common: &Common) -> Form {
    match (common.json, common.quiet) {
        (true, _) => Form::Json,
        (_, true) => Form::Quiet,
        _ => Form::Human,
    }
}

fn run(common: &Common, command: Command, screen: Screen) -> Result<(), CliError> {
    match command {
        Command::Version => return screen.show(&Scalar(env!("CARGO_PKG_VERSION").into())),
        Command::Completions(args) => return completions(args.shell, screen),
        Command::Calc(command) => return calc::run(screen, command),
        Command::Sim(command) => return sim::run(common, screen, command),
        _ => {}
    }
    let session = Session { client: client(common)?, screen };
    match command {
        Command::Run(args) => run::run(&session, *args),
        Command::Op(command) => operations::run(&session, command),
        Command::Job(command) => jobs::run(&session, command),
        Command::Pool(command) => pools::run(&session, command),
        Command::Token(command) => tokens::run(&session, common, command),
        Command::Events(args) => events::run(&session, &args),
        Command::Audit(args) => events::audit(&session, &args),
        Command::Get(args) => tree::get(&session, &args),
        Command::Set(args) => tree::set(&session, &args),
        Command::List(args) => tree::list(&session, &args),
        Command::Exists(args) => tree::exists(&session, &args),
        Command::Create(args) => tree::create(&session, args),
        Command::Remove(args) => tree::remove(&session, &args),
        Command::Top(args) => top::run(&session, &args),
        Command::Server(ServerArgs { command: Some(command), .. }) => match command {
            ServerCommand::Gc { confirm } => server::gc(&session, confirm),
            ServerCommand::Pause { period } => server::pause(&session, period),
        },
        Command::Node(NodeArgs { command: Some(command), .. })
            if !matches!(command, NodeCommand::Join(_)) =>
        {
            nodes::run(&session, command)
        }
        Command::Up(_)
        | Command::Server(_)
        | Command::Node(_)
        | Command::Demo(_)
        | Command::Burn(_)
        | Command::Calc(_)
        | Command::Sim(_)
        | Command::Version
        | Command::Completions(_) => {
            Err(CliError::failed("this command runs processes, which this library does not"))
        }
    }
}

/// A client of the server that the flags and the environment name.
pub fn client(common: &Common) -> Result<Client, CliError> {
    let env = |name: &str| std::env::var(name).ok();
    let client = Client::new(&common.address(env), common.token(env).as_deref())?;
    match client::authorities(env).filter(|_| client.address().starts_with("https://")) {
        Some(file) => {
            let text = std::fs::read(&file)
                .map_err(|e| CliError::failed(format!("cannot read {}: {e}", file.display())))?;
            Ok(client.trusting(&text)?)
        }
        None => Ok(client),
    }
}

fn completions(shell: Shell, screen: Screen) -> Result<(), CliError> {
    let mut script = Vec::new();
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    clap_complete::generate(shell, &mut Cli::command(), "millpond", &mut script);
    screen.print(&script)
}
