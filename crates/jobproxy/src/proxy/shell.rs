//! Shells beside the job: `poll_job_shell` (jobs-and-nodes.md 5.5, http-api.md 8.7).
//!
//! A shell is one more process of the job's container, born where the user's command was, on a
//! terminal whose other end is here. It is bounded by the job's limits, counted with the job, and dies
//! with it; nobody waits for it, so it does not keep a job alive either.
//!
//! Nothing grows without bound: input that the shell does not take is not accepted, and output that
//! nobody fetches stays in the terminal, where it makes the shell wait.
//!
//! Whose a shell is, is no question here: the server gives it an id that says so (`server/src/shells.rs`).

use super::launch;
use super::terminal;
use crate::protocol::{FromProxy, JobStart};
use cage::sys::{self, Exit};
use cage::{Container, Spawned};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use vocab::{Failure, Guid, JobId, ShellAnswer, ShellRequest, Span, code};

/// How long a question for output waits for some (jobs-and-nodes.md 5.5).
const IDLE_POLL: Duration = Duration::from_secs(12);
/// A shell that nobody asks for so long is ended, unless its request says another time.
const INACTIVITY: Duration = Duration::from_secs(3600);
/// From asking a shell to end to killing it.
const GRACE: Duration = Duration::from_secs(1);
/// Living shells of one job.
const SHELLS_MAX: usize = 16;
/// Questions that wait for the output of one shell.
const POLLS_MAX: usize = 16;
/// Output that waits to be fetched, and input that waits for the shell.
const OUTPUT_MAX: usize = 64 << 10;
const INPUT_MAX: usize = 64 << 10;

/// All shells of one job.
pub(super) struct Shells {
    job_id: JobId,
    /// Each that there ever was, by its number, and how it has ended; none: it has not, or nobody knows.
    known: Vec<(Guid, Option<Exit>)>,
    living: Vec<Shell>,
}

struct Shell {
    id: Guid,
    index: u32,
    process: Spawned,
    /// Our end; none when there is nobody at the other one.
    line: Option<File>,
    on_terminal: bool,
    /// Printed, not fetched yet.
    output: Vec<u8>,
    /// Typed, not taken by the terminal yet.
    input: Vec<u8>,
    /// Bytes of input that were accepted in all.
    consumed: u64,
    /// Questions that wait for output, and how long.
    polls: Vec<(u64, Instant)>,
    ended: Option<Option<Exit>>,
    last_asked: Instant,
    inactivity: Duration,
    kill_at: Option<Instant>,
}

impl Shells {
    pub fn new(job_id: JobId) -> Shells {
        Shells { job_id, known: Vec::new(), living: Vec::new() }
    }

    /// The end of this process is ours to take.
    pub fn owns(&self, pid: u32) -> bool {
        self.living.iter().any(|shell| shell.ended.is_none() && shell.process.pid == pid)
    }

    /// What to wait for; when something of it is ready, call [`Shells::work`].
    pub fn watch<'f>(&'f self, fds: &mut Vec<PollFd<'f>>) {
        for shell in &self.living {
            if shell.ended.is_none() {
                fds.push(PollFd::from_borrowed_fd(shell.process.pidfd.as_fd(), PollFlags::IN));
            }
            let reads = if shell.output.len() < OUTPUT_MAX { PollFlags::IN } else { PollFlags::empty() };
            let writes = if shell.input.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            // Without a wish a hung-up line would still wake us, for ever.
            if let (Some(line), false) = (&shell.line, (reads | writes).is_empty()) {
                fds.push(PollFd::from_borrowed_fd(line.as_fd(), reads | writes));
            }
        }
    }

    /// When [`Shells::work`] has something to do though nothing is ready.
    pub fn next_deadline(&self) -> Option<Instant> {
        self.living.iter().filter_map(Shell::next_deadline).min()
    }

    /// Answers a request, now or, if it waits for output, later by [`Shells::work`].
    pub fn handle(
        &mut self,
        (request_id, request): (u64, ShellRequest),
        now: Instant,
        start: &JobStart,
        container: &mut dyn Container,
        answers: &mut Vec<FromProxy>,
    ) {
        let answered = match &request {
            ShellRequest::Spawn { .. } => self.spawn(&request, now, start, container).map(Some),
            ShellRequest::Update { shell_id, input_offset, keys, size } => {
                self.living(*shell_id, now).and_then(|shell| {
                    shell.take_keys(*input_offset, keys);
                    shell.resize(*size)?;
                    Ok(Some(shell.answer(Vec::new())))
                })
            }
            ShellRequest::Poll { shell_id } => self.living(*shell_id, now).map(|shell| {
                if shell.polls.len() < POLLS_MAX {
                    shell.polls.push((request_id, now + IDLE_POLL));
                    None
                } else {
                    Some(shell.answer(Vec::new()))
                }
            }),
            ShellRequest::Terminate { shell_id } => self.living(*shell_id, now).map(|shell| {
                shell.hang_up(now);
                Some(shell.answer(Vec::new()))
            }),
        };
        match answered {
            Ok(Some(answer)) => answers.push(FromProxy::Shell { request_id, answer }),
            Ok(None) => {}
            Err(error) => answers.push(FromProxy::ShellRefused { request_id, error }),
        }
        self.work(now, answers);
    }

    /// Moves what can be moved, takes ends, answers who has waited.
    pub fn work(&mut self, now: Instant, answers: &mut Vec<FromProxy>) {
        for shell in &mut self.living {
            shell.write();
            shell.read();
            shell.take_end();
            shell.check_clock(now);
            shell.answer_polls(now, answers);
        }
        // What it has printed is fetched, and whoever asks again is told by its number that it was there.
        let Shells { known, living, .. } = self;
        living.retain(|shell| {
            known[shell.index as usize - 1].1 = shell.ended.flatten();
            !shell.is_over()
        });
    }

    /// The job is over: takes the ends of its shells, if all of it is dead, and says so to who waits.
    pub fn finish(&mut self, all_dead: bool, answers: &mut Vec<FromProxy>) {
        for shell in self.living.drain(..) {
            if shell.ended.is_none() && (all_dead || sys::ended_child_is(shell.process.pid)) {
                let _ = sys::reap(shell.process.pid);
            }
            let error =
                Failure::coded(code::SHELL_MANAGER_SHUT_DOWN, "The job is over, and its shells with it");
            answers.extend(shell.polls.iter().map(|(request_id, _)| FromProxy::ShellRefused {
                request_id: *request_id,
                error: error.clone(),
            }));
        }
    }

    fn living(&mut self, id: Guid, now: Instant) -> Result<&mut Shell, Failure> {
        if let Some(shell) = self.living.iter_mut().find(|shell| shell.id == id) {
            shell.last_asked = now;
            return Ok(shell);
        }
        Err(match self.known.iter().find(|(known, _)| *known == id) {
            Some((_, exit)) => exited(*exit),
            None => Failure::new(format!("No such shell of job {}", self.job_id)),
        })
    }

    fn spawn(
        &mut self,
        request: &ShellRequest,
        now: Instant,
        start: &JobStart,
        container: &mut dyn Container,
    ) -> Result<ShellAnswer, Failure> {
        let ShellRequest::Spawn { shell_id, command, terminal, environment, secrets, inactivity_timeout } =
            request
        else {
            return Err(Failure::new("Not a request for a new shell"));
        };
        if start.isolation.is_none() {
            return Err(Failure::new(
                "Job shells need namespaces, and the node of this job runs jobs without isolation",
            ));
        }
        if self.known.iter().any(|(known, _)| known == shell_id) {
            return Err(Failure::new(format!("Job {} has such a shell already", self.job_id)));
        }
        if self.living.len() >= SHELLS_MAX {
            let text =
                format!("Job {} has {SHELLS_MAX} shells, and at most {SHELLS_MAX} are allowed", self.job_id);
            return Err(Failure::new(text));
        }
        let fault =
            |what: &str, e: io::Error| Failure::new(format!("Cannot make {what} for a job shell: {e}"));
        let line = match terminal {
            Some(terminal) => terminal::terminal(container, start.user, terminal.size)
                .map_err(|e| fault("a terminal", e))?,
            None => terminal::pipe().map_err(|e| fault("a pipe", e))?,
        };
        let wanted = launch::ShellPlan {
            command: command.as_deref(),
            terminal: terminal.as_ref().map(|t| t.name.as_str()),
            environment,
            secrets: *secrets,
        };
        let (ours, theirs) = line;
        let process = launch::launch_shell(start, container, &wanted, theirs.as_fd())?;
        self.known.push((*shell_id, None));
        let inactivity = inactivity_timeout.filter(|t| *t > Span::ZERO);
        let shell = Shell {
            id: *shell_id,
            index: self.known.len() as u32,
            process,
            line: Some(ours),
            on_terminal: terminal.is_some(),
            output: Vec::new(),
            input: Vec::new(),
            consumed: 0,
            polls: Vec::new(),
            ended: None,
            last_asked: now,
            inactivity: inactivity.map_or(INACTIVITY, |t| Duration::from_micros(t.as_micros())),
            kill_at: None,
        };
        let mut answer = shell.answer(Vec::new());
        answer.consumed_offset = None;
        self.living.push(shell);
        Ok(answer)
    }
}

impl Shell {
    fn answer(&self, output: Vec<u8>) -> ShellAnswer {
        ShellAnswer {
            shell_id: self.id,
            shell_index: self.index,
            output,
            consumed_offset: Some(self.consumed),
        }
    }

    /// Each byte once: what was taken before is skipped, and what would leave a gap has to come again.
    fn take_keys(&mut self, offset: u64, keys: &[u8]) {
        let Some(known) = self.consumed.checked_sub(offset) else { return };
        let new = usize::try_from(known).ok().and_then(|known| keys.get(known..)).unwrap_or_default();
        // Without a terminal there is nobody to type for.
        if !self.on_terminal || self.line.is_none() {
            return;
        }
        let room = INPUT_MAX - self.input.len();
        let taken = &new[..new.len().min(room)];
        self.input.extend_from_slice(taken);
        self.consumed += taken.len() as u64;
    }

    fn resize(&self, size: (u32, u32)) -> Result<(), Failure> {
        match &self.line {
            Some(line) if self.on_terminal => terminal::resize(line, size)
                .map_err(|e| Failure::new(format!("Cannot set the size of the terminal: {e}"))),
            _ => Ok(()),
        }
    }

    fn write(&mut self) {
        let Some(line) = &mut self.line else { return self.input.clear() };
        while !self.input.is_empty() {
            match line.write(&self.input) {
                Ok(n) => drop(self.input.drain(..n)),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.input.clear(),
            }
        }
    }

    fn read(&mut self) {
        let Some(line) = &mut self.line else { return };
        let more = match read_line(line, &mut self.output) {
            Drained::Full => true,
            // Whatever it left in the background may hold the line, and is not waited for.
            Drained::Nothing => self.ended.is_none(),
            Drained::Over => false,
        };
        if !more {
            self.line = None;
        }
    }

    /// Its last words are in the line by then: they are read after it.
    fn take_end(&mut self) {
        if self.ended.is_none() && sys::ended_child_is(self.process.pid) {
            self.ended = Some(sys::reap(self.process.pid).ok().map(|(exit, _)| exit));
            self.kill_at = None;
            self.read();
        }
    }

    fn check_clock(&mut self, now: Instant) {
        if self.ended.is_some() {
            return;
        }
        match self.kill_at {
            Some(at) if at <= now => {
                self.signal(Signal::KILL);
                self.kill_at = Some(now + GRACE);
            }
            None if self.is_forgotten_at().is_some_and(|at| at <= now) => self.hang_up(now),
            _ => {}
        }
    }

    /// A question that waits is somebody who asks.
    fn is_forgotten_at(&self) -> Option<Instant> {
        self.polls.is_empty().then(|| self.last_asked.checked_add(self.inactivity)).flatten()
    }

    fn next_deadline(&self) -> Option<Instant> {
        let alive = self.ended.is_none();
        let clock = self.kill_at.or_else(|| self.is_forgotten_at()).filter(|_| alive);
        self.polls.iter().map(|(_, at)| *at).chain(clock).min()
    }

    /// As when somebody closes a terminal: what runs there is told, and after a while killed.
    fn hang_up(&mut self, now: Instant) {
        self.line = None;
        self.output.clear();
        if self.ended.is_none() && self.kill_at.is_none() {
            self.signal(Signal::HUP);
            self.kill_at = Some(now + GRACE);
        }
    }

    /// It is the leader of its session and group, and its end was not taken yet: the number is its own.
    fn signal(&self, signal: Signal) {
        if let Some(group) = i32::try_from(self.process.pid).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, signal);
        }
    }

    fn is_over(&self) -> bool {
        self.ended.is_some() && self.line.is_none() && self.output.is_empty()
    }

    /// The first who waits gets what there is, at the end all hear of it.
    fn answer_polls(&mut self, now: Instant, answers: &mut Vec<FromProxy>) {
        if !self.output.is_empty() && !self.polls.is_empty() {
            let (request_id, _) = self.polls.remove(0);
            let output = std::mem::take(&mut self.output);
            answers.push(FromProxy::Shell { request_id, answer: self.answer(output) });
            self.read();
        }
        if self.is_over() {
            let error = exited(self.ended.flatten());
            answers.extend(
                self.polls
                    .drain(..)
                    .map(|(request_id, _)| FromProxy::ShellRefused { request_id, error: error.clone() }),
            );
        }
        while let Some((request_id, at)) = self.polls.first().copied()
            && at <= now
        {
            self.polls.remove(0);
            answers.push(FromProxy::Shell { request_id, answer: self.answer(Vec::new()) });
        }
    }
}

/// How reading a line as far as possible has ended.
#[derive(Debug, PartialEq)]
enum Drained {
    /// As much waits to be fetched as may.
    Full,
    /// Nothing is in it now.
    Nothing,
    /// Nothing is in it, and nobody can write to it.
    Over,
}

/// Adds to `output` what is in the line.
///
/// A terminal gives EIO when nobody is at the other end. The kernel looks for that last, after it has waited
/// for what was written when the call began: what was written in between, by somebody who has closed it since,
/// is still on its way then. Whoever asks once more waits for that, too, so the second EIO in a row counts.
fn read_line(line: &mut impl Read, output: &mut Vec<u8>) -> Drained {
    let mut buffer = [0; 4096];
    let mut refused = false;
    loop {
        let room = (OUTPUT_MAX - output.len()).min(buffer.len());
        if room == 0 {
            return Drained::Full;
        }
        match line.read(&mut buffer[..room]) {
            Ok(0) => return Drained::Over,
            Ok(n) => {
                output.extend_from_slice(&buffer[..n]);
                refused = false;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Drained::Nothing,
            Err(_) if !refused => refused = true,
            Err(_) => return Drained::Over,
        }
    }
}

fn exited(exit: Option<Exit>) -> Failure {
    let error = Failure::coded(code::SHELL_EXITED, "Shell exited");
    match exit {
        None => error,
        Some(Exit::Code(exit_code)) => error.with("exit_code", i64::from(exit_code)),
        Some(Exit::Signal(signal, _)) => error.with("signal", i64::from(signal)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Gives what it is told to, one call after the other.
    struct Script(VecDeque<io::Result<&'static [u8]>>);

    impl Read for Script {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let bytes = self.0.pop_front().expect("it was asked too often")?;
            buffer[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        }
    }

    fn drained(script: Vec<io::Result<&'static [u8]>>) -> (String, Drained) {
        let (mut script, mut output) = (Script(script.into()), Vec::new());
        let how = read_line(&mut script, &mut output);
        assert!(script.0.is_empty(), "it was not asked often enough: {:?}", script.0);
        (String::from_utf8(output).expect("it is text"), how)
    }

    fn closed() -> io::Result<&'static [u8]> {
        Err(io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error()))
    }

    #[test]
    fn what_was_on_its_way_when_the_other_end_was_closed_is_read() {
        let none = || Err(io::ErrorKind::WouldBlock.into());
        assert_eq!(drained(vec![Ok(b"a"), Ok(b"b"), none()]), ("ab".to_owned(), Drained::Nothing));
        assert_eq!(drained(vec![Ok(b"a"), Ok(b"")]), ("a".to_owned(), Drained::Over), "a pipe");
        assert_eq!(drained(vec![Ok(b"a"), closed(), closed()]), ("a".to_owned(), Drained::Over));
        let late = vec![Ok(&b"30 100"[..]), closed(), Ok(b"done"), closed(), closed()];
        assert_eq!(drained(late), ("30 100done".to_owned(), Drained::Over));
        assert_eq!(drained(vec![closed(), none()]), (String::new(), Drained::Nothing));
    }
}
