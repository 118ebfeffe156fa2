//! The `millpond` command line: what users type, and how answers look.
//!
//! ```text
//!   args  -->  commands  --client-->  server
//!                 |
//!                 v
//!              views  --Output-->  screen     (human | --json | --quiet)
//! ```
//!
//! * [`args`]: one clap structure per command; a flag, its help and its parser are in one place.
//!   The processes (`up`, `server`, `node`) are described here too, so that there is one `--help`,
//!   but the binary runs them: this crate knows no server and no node.
//! * [`units`]: sizes, cores, resources and durations, as typed and as printed.
//! * [`output`]: the trait [`output::Output`] with the three forms that every answer has.
//! * [`views`]: answers of the server as tables, cards and trees. Pure functions of values.
//! * [`commands`]: from arguments to requests and from replies to views.
//! * [`error`]: what the user sees when something is wrong, with a hint and an exit code.
//!
//! Data goes to stdout, talk to stderr. A broken pipe is success.
//!
//! Where to start: [`args::Command`], then [`execute`].
#![forbid(unsafe_code)]

pub mod args;
pub mod commands;
pub mod error;
pub mod interrupt;
pub mod output;
pub mod quote;
pub mod units;
pub mod views;

pub use args::{Cli, Command};
pub use commands::execute;
pub use error::CliError;
