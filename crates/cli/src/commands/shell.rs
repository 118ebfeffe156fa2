//! `job shell`: this terminal becomes that of a shell beside a running job.
//!
//! Two loops: one fetches output for as long as the shell lives, the other, on a thread of its own,
//! sends what is typed and how large the window is. The server takes each byte once, whatever is
//! repeated on the way.

use super::Session;
use crate::error::CliError;
use client::{Client, ClientError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{IsTerminal, Write, stderr, stdin, stdout};
use vocab::{JobId, code};
use yson::{Map, Value, map};

/// Ctrl-] leaves, as in telnet: shells and editors need all the usual keys.
const LEAVE: u8 = 0x1d;
/// How often the size of the window is looked at, and what was not taken is sent again.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

pub fn run(session: &Session, job: JobId, name: Option<&str>, command: &[String]) -> Result<(), CliError> {
    let command = (!command.is_empty()).then(|| command.join(" "));
    if stdin().is_terminal() && stdout().is_terminal() {
        return interact(session, job, name, command.as_deref());
    }
    let Some(command) = command else {
        return Err(CliError::usage("a shell needs a terminal")
            .with_hint("without one, name a command: millpond job shell JOB -- COMMAND"));
    };
    let mut out = stdout().lock();
    session.client.run_job_shell_command(job, name, &command, &mut out)?;
    out.flush().map_err(|e| CliError::output(&e))
}

fn interact(
    session: &Session,
    job: JobId,
    name: Option<&str>,
    command: Option<&str>,
) -> Result<(), CliError> {
    let shell = Remote { client: session.client.clone(), job, name: name.map(str::to_owned) };
    let term = std::env::var("TERM").unwrap_or_else(|_| "xterm".to_owned());
    let (height, width) = window();
    let request = map! {"operation" => "spawn", "term" => term, "height" => height, "width" => width}
        .with_some("command", command);
    let spawned = shell.ask(request)?;
    let shell_id = crate::views::text(&spawned, "shell_id").to_owned();
    if command.is_none() {
        session.screen.tell("a shell beside the job; Ctrl-] leaves it");
    }
    let raw = Raw::enter()?;
    let typing = std::thread::spawn({
        let (shell, shell_id) = (shell.clone(), shell_id.clone());
        move || type_keys(&shell, &shell_id, (height, width))
    });
    let result = print_output(&shell, &shell_id);
    drop(raw);
    if typing.is_finished() && result.is_ok() {
        let _ = writeln!(stderr());
    }
    result
}

/// Until the shell ends.
fn print_output(shell: &Remote, shell_id: &str) -> Result<(), CliError> {
    loop {
        match shell.ask(map! {"operation" => "poll", "shell_id" => shell_id}) {
            Ok(answer) => {
                let Some(Value::String(output)) = answer.get("output") else { continue };
                let mut out = stdout().lock();
                out.write_all(output).and_then(|()| out.flush()).map_err(|e| CliError::output(&e))?;
            }
            Err(error) if error.contains_code(code::SHELL_EXITED) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Until the shell ends, or somebody wants to leave it.
fn type_keys(shell: &Remote, shell_id: &str, mut size: (u64, u64)) {
    let (mut typed, mut offset) = (Vec::new(), 0_u64);
    let mut buffer = [0; 4096];
    loop {
        let ready = {
            let input = stdin();
            let mut fds = [PollFd::new(&input, PollFlags::IN)];
            poll(&mut fds, Some(&LOOK)).is_ok_and(|n| n > 0)
        };
        let mut leave = false;
        if ready {
            // What stands in the buffer of the standard library would be missed by the poll.
            let Ok(n) = rustix::io::read(stdin(), &mut buffer) else { return };
            leave = n == 0 || buffer[..n].contains(&LEAVE);
            typed.extend(buffer[..n].iter().take_while(|key| **key != LEAVE));
        }
        let now = window();
        if typed.is_empty() && now == size && !leave {
            continue;
        }
        size = now;
        let request = map! {
            "operation" => "update", "shell_id" => shell_id, "height" => size.0, "width" => size.1,
            "keys" => hex(&typed), "input_offset" => offset,
        };
        let Ok(answer) = shell.ask(request) else { return };
        if let Some(consumed) = answer.get("consumed_offset").and_then(Value::as_u64) {
            let taken = usize::try_from(consumed.saturating_sub(offset)).unwrap_or(usize::MAX);
            typed.drain(..taken.min(typed.len()));
            offset = offset.max(consumed);
        }
        if leave {
            let _ = shell.ask(map! {"operation" => "terminate", "shell_id" => shell_id});
            return;
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Rows and columns of this terminal; zero if it does not know.
fn window() -> (u64, u64) {
    tcgetwinsize(stdin()).map_or((0, 0), |size| (u64::from(size.ws_row), u64::from(size.ws_col)))
}

/// Keys come one by one, and Ctrl-C is a key; as it was when dropped.
struct Raw(Termios);

impl Raw {
    fn enter() -> Result<Raw, CliError> {
        let cannot = |e: rustix::io::Errno| CliError::failed(format!("the terminal cannot be used: {e}"));
        let before = tcgetattr(stdin()).map_err(cannot)?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw).map_err(cannot)?;
        Ok(Raw(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = tcsetattr(stdin(), OptionalActions::Now, &self.0);
    }
}

#[derive(Clone)]
struct Remote {
    client: Client,
    job: JobId,
    name: Option<String>,
}

impl Remote {
    fn ask(&self, parameters: Map) -> Result<Map, ClientError> {
        self.client.poll_job_shell(self.job, self.name.as_deref(), parameters)
    }
}
