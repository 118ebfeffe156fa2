//! Shells beside a running job: what is asked of one, and what it answers (http-api.md 8.7).
//!
//! The words travel unchanged from the API over the node to the job proxy, which has the shell.

use crate::{Guid, Span};

/// One call of `poll_job_shell`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ShellRequest {
    /// Start one.
    Spawn {
        /// How it is to be called.
        shell_id: Guid,
        /// Run this by `bash -c` instead of an interactive bash.
        command: Option<String>,
        /// On a terminal; none: without input, output and errors in one pipe.
        terminal: Option<Terminal>,
        /// `NAME=value`, over the environment of the job.
        environment: Vec<String>,
        /// It sees the operation's `YT_SECURE_VAULT...` variables, as the job does.
        secrets: bool,
        /// A shell that nobody has asked for so long is ended.
        inactivity_timeout: Option<Span>,
    },
    /// Keys, or a new size.
    Update {
        /// Which.
        shell_id: Guid,
        /// Position of the first of `keys` in all that was ever typed: what was taken before is skipped.
        input_offset: u64,
        /// What was typed.
        keys: Vec<u8>,
        /// Rows and columns; zero: as before.
        size: (u32, u32),
    },
    /// Wants output; waits for some.
    Poll {
        /// Which.
        shell_id: Guid,
    },
    /// End it.
    Terminate {
        /// Which.
        shell_id: Guid,
    },
}

impl ShellRequest {
    /// May be said twice: the first answer was lost.
    pub fn is_repeatable(&self) -> bool {
        !matches!(self, ShellRequest::Spawn { .. })
    }
}

/// A terminal to make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Terminal {
    /// `TERM`.
    pub name: String,
    /// Rows and columns; zero: not known.
    pub size: (u32, u32),
}

/// What comes back.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShellAnswer {
    /// Which.
    pub shell_id: Guid,
    /// It is the job's first, second, ...
    pub shell_index: u32,
    /// What it has printed since the last answer.
    pub output: Vec<u8>,
    /// Bytes of input that were taken in all; none if the answer does not know.
    pub consumed_offset: Option<u64>,
}
