//! Starting the user's process: pipes, directory, environment, and the choice between bash and the
//! direct way.

use crate::command::{self, Plan};
use crate::outcome;
use crate::protocol::JobStart;
use cage::{CageError, Container, ProcessSpec, Spawned};
use rustix::pipe::{PipeFlags, pipe_with};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use vocab::{Failure, JobOutcome};

/// Most open files of a user's process (jobs-and-nodes.md 4.7).
const OPEN_FILES: u64 = 65_536;
/// Descriptor of custom statistics (5.2).
const STATISTICS_FD: i32 = 5;

/// Starts the user's process; gives it and the read ends of its pipes.
pub(super) fn launch(
    start: &JobStart,
    container: &mut dyn Container,
    rows: &super::rows::Ends,
) -> Result<(Spawned, File, File), JobOutcome> {
    let fault = |what: &str, e: &dyn std::fmt::Display| {
        outcome::environment_fault(Failure::new(format!("Cannot {what}: {e}")))
    };
    let (stderr_pipe, stderr_end) = pipe_out_of_job().map_err(|e| fault("create a pipe", &e))?;
    let (statistics_pipe, statistics_end) = pipe_out_of_job().map_err(|e| fault("create a pipe", &e))?;
    let null = File::open("/dev/null").map_err(|e| fault("open /dev/null", &e))?;
    let directory = match &start.isolation {
        // Seen from here it may be somewhere else, or nowhere.
        Some(_) => start.working_directory.clone(),
        None => physical(&start.sandbox).map_err(|e| fault("enter the sandbox", &e))?,
    };
    let working_directory = cage::spawn::c_path(&directory).map_err(|e| fault("enter the sandbox", &e))?;
    let environment = command::environment(&start.environment, &start.job_id.to_string());

    let mut descriptors = vec![
        (null.as_fd(), 0),
        (stderr_end.as_fd(), 1),
        (stderr_end.as_fd(), 2),
        (statistics_end.as_fd(), STATISTICS_FD),
    ];
    // Tables instead of nothing and of stderr.
    descriptors.retain(|(_, number)| rows.iter().all(|(_, of_rows)| of_rows != number));
    descriptors.extend(rows.iter().map(|(end, number)| (end.as_fd(), *number)));
    let processes_limit = processes_limit(start, container);
    let mut attempt = |plan: &Plan| {
        container.spawn(&ProcessSpec {
            program: &plan.program,
            arguments: &plan.arguments,
            environment: &plan.environment,
            working_directory: &working_directory,
            descriptors: &descriptors,
            user: start.user,
            open_files_limit: OPEN_FILES,
            isolation: start.isolation.as_ref(),
            processes_limit,
            terminal: false,
        })
    };
    // Whatever is wrong with the direct way, bash says it in the user's own terms. What is executable
    // in another root file system cannot be seen from here.
    let own_root = start.isolation.as_ref().is_some_and(|i| i.root.is_some());
    let direct = Some(())
        .filter(|()| !own_root)
        .and_then(|()| command::directly(&start.command, &environment, &directory))
        .and_then(|plan| attempt(&plan).ok());
    let process = match direct {
        Some(process) => process,
        None => {
            let plan = command::shell(own_root, Some(&start.command), &environment);
            let plan = plan.map_err(|e| outcome::cannot_start(e.to_string()))?;
            attempt(&plan).map_err(|e| spawn_failure(&e, own_root))?
        }
    };
    Ok((process, stderr_pipe, statistics_pipe))
}

/// The kernel counts processes by user, and all jobs of a user on a host share theirs: so only where nothing else bounds them,
/// or in a user namespace of the job's own, where the kernel counts anew.
fn processes_limit(start: &JobStart, container: &dyn Container) -> Option<u64> {
    let own_users = start.isolation.as_ref().is_some_and(|i| i.own_users);
    let shared = start.user.is_some() && !container.bounds_processes();
    (own_users || shared).then_some(u64::from(start.pids_limit))
}

/// A shell beside the job.
pub(super) struct ShellPlan<'a> {
    /// None: an interactive one.
    pub command: Option<&'a str>,
    /// `TERM` of its terminal; none: it has no terminal.
    pub terminal: Option<&'a str>,
    /// `NAME=value`.
    pub environment: &'a [String],
    /// It sees what [`SECRETS`] begins.
    pub secrets: bool,
}

/// Variables that show the operation's `secure_vault` (jobs-and-nodes.md 5.3).
const SECRETS: &str = "YT_SECURE_VAULT";
/// What an interactive shell says before each command, unless its files say otherwise.
const PROMPT: &str = r"\h:\w\$ ";

/// Starts a shell where the user's process was started, as that user; `line` is its input, output and
/// errors.
pub(super) fn launch_shell(
    start: &JobStart,
    container: &mut dyn Container,
    wanted: &ShellPlan<'_>,
    line: BorrowedFd<'_>,
) -> Result<Spawned, Failure> {
    let mut variables: Vec<(String, String)> = start
        .environment
        .iter()
        .filter(|(name, _)| wanted.secrets || !name.starts_with(SECRETS))
        .cloned()
        .collect();
    variables.extend(wanted.terminal.map(|name| ("TERM".to_owned(), name.to_owned())));
    if wanted.command.is_none() {
        variables.push(("PS1".to_owned(), PROMPT.to_owned()));
    }
    for entry in wanted.environment {
        let (name, value) = entry.split_once('=').unwrap_or((entry, ""));
        variables.push((name.to_owned(), value.to_owned()));
    }
    let environment = command::environment(&variables, &start.job_id.to_string());
    let own_root = start.isolation.as_ref().is_some_and(|i| i.root.is_some());
    let plan =
        command::shell(own_root, wanted.command, &environment).map_err(|e| Failure::new(e.to_string()))?;
    let cannot = |e: &dyn std::fmt::Display| Failure::new(format!("Cannot start a job shell: {e}"));
    let working_directory = cage::spawn::c_path(&start.working_directory).map_err(|e| cannot(&e))?;
    let null = File::open("/dev/null").map_err(|e| cannot(&e))?;
    let input = if wanted.terminal.is_some() { line } else { null.as_fd() };
    let spec = ProcessSpec {
        program: &plan.program,
        arguments: &plan.arguments,
        environment: &plan.environment,
        working_directory: &working_directory,
        descriptors: &[(input, 0), (line, 1), (line, 2)],
        user: start.user,
        open_files_limit: OPEN_FILES,
        isolation: start.isolation.as_ref(),
        processes_limit: processes_limit(start, container),
        terminal: wanted.terminal.is_some(),
    };
    container.spawn(&spec).map_err(|e| cannot(&e))
}

/// Too long a command or environment is the user's doing, and so is a root file system without a
/// shell; everything else is ours.
fn spawn_failure(e: &CageError, own_root: bool) -> JobOutcome {
    match e {
        CageError::Spawn { source, .. }
            if source.raw_os_error() == Some(rustix::io::Errno::TOOBIG.raw_os_error()) =>
        {
            outcome::cannot_start("Command and environment are too long for the system (E2BIG)".to_owned())
        }
        CageError::Spawn { .. } if own_root => {
            outcome::cannot_start(format!("The root file system of the layers cannot run the command: {e}"))
        }
        other => outcome::environment_fault(Failure::coded(
            vocab::code::PROCESS_CANNOT_RESOLVE_BINARY,
            other.to_string(),
        )),
    }
}

/// Read end (non-blocking) and write end (blocking: the user's programs expect that).
pub(super) fn pipe_out_of_job() -> io::Result<(File, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&read, rustix::fs::OFlags::NONBLOCK)?;
    Ok((File::from(read), write))
}

/// Write end (non-blocking) and read end (blocking).
pub(super) fn pipe_into_job() -> io::Result<(File, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&write, rustix::fs::OFlags::NONBLOCK)?;
    Ok((File::from(write), read))
}

/// The directory's path as `getcwd` gives it inside.
fn physical(directory: &Path) -> io::Result<PathBuf> {
    rustix::process::chdir(directory)?;
    let path = std::env::current_dir();
    rustix::process::chdir("/")?;
    path
}
