//! The spawner: one small process per node that forks the proxies.
//!
//! [`Spawner`] is the node's end, [`spawner_main`] the process itself. They share a stream socket,
//! the spawner's standard input. When the node dies the socket ends and the spawner leaves; the
//! proxies are then children of init and do not care.
//!
//! Why not let the node start the proxies: a fork of a multi-threaded, big process is slow and may
//! only exec, and exec of a whole binary costs as much as the job `true` itself. A fork of the
//! spawner is about 100 microseconds, and everything that is common to all jobs (settings, mount
//! table) is in its memory already.

use crate::codec::{FrameReader, encode_frame};
use crate::protocol::{FromSpawner, JobStart, SpawnerConfig, ToSpawner};
use crate::proxy;
use cage::{EnvironmentConfig, JobEnvironment, sys};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use vocab::JobId;

/// Subcommand of the binary that becomes the spawner.
pub const SPAWNER_SUBCOMMAND: &str = "job-proxy-spawner";

/// The node's end of a running spawner.
#[derive(Debug)]
pub struct Spawner {
    /// The process, for its pid, `wait` and `kill`. Dropping it does not end the spawner, closing
    /// the stream does.
    pub child: Child,
    /// Frames of [`ToSpawner`] out, of [`FromSpawner`] in. Blocking here; an asynchronous node sets it to
    /// non-blocking and wraps it.
    pub stream: UnixStream,
}

impl Spawner {
    /// Starts `program job-proxy-spawner` (usually `/proc/self/exe`) and configures it.
    ///
    /// Its standard error is inherited, its standard output is nothing.
    pub fn start(program: &Path, config: &SpawnerConfig) -> io::Result<Spawner> {
        let (mut stream, theirs) = UnixStream::pair()?;
        let child = Command::new(program)
            .arg(SPAWNER_SUBCOMMAND)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .spawn()?;
        let mut frame = Vec::new();
        encode_frame(&ToSpawner::Configure { config: config.clone() }, &mut frame);
        stream.write_all(&frame)?;
        Ok(Spawner { child, stream })
    }

    /// Asks for a proxy, blocking; an asynchronous node writes the frame itself.
    pub fn start_job(&mut self, job: JobStart) -> io::Result<()> {
        let mut frame = Vec::new();
        encode_frame(&ToSpawner::Start { job: Box::new(job) }, &mut frame);
        self.stream.write_all(&frame)
    }

    /// Closes the stream and waits for the process.
    pub fn stop(mut self) -> io::Result<()> {
        drop(self.stream);
        self.child.wait().map(|_| ())
    }
}

/// The process: never returns to its caller's business. Call it before any thread exists.
///
/// Serves until its standard input ends. In a forked proxy it runs the job and exits.
pub fn spawner_main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("job proxy spawner: {e}");
            ExitCode::FAILURE
        }
    }
}

/// What all proxies share with the spawner: made once, inherited by every fork.
pub(crate) struct Shared {
    pub config: SpawnerConfig,
    pub environment: Box<dyn JobEnvironment>,
    pub boot_id: String,
}

/// Where the loop ended.
enum Turn {
    /// The node has gone.
    End,
    /// This is a new proxy.
    Proxy(Box<JobStart>),
}

fn serve() -> io::Result<()> {
    let threads = sys::thread_count()?;
    if threads != 1 {
        return Err(io::Error::other(format!(
            "started with {threads} threads, must be the only one to fork safely"
        )));
    }
    sys::reset_signals();
    // Not in the terminal's session: Ctrl-C is for the node. A process group leader cannot and need not.
    let _ = rustix::process::setsid();
    let stream = UnixStream::from(sys::adopt_fd(0)?);
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    sys::replace_standard_fd(null.as_fd(), 0)?;
    sys::replace_standard_fd(null.as_fd(), 1)?;

    let mut frames = FrameReader::default();
    let Some(config) = configuration(&stream, &mut frames)? else { return Ok(()) };
    let opened = open_environment(&config);
    let (shared, fault) = match opened {
        Ok(environment) => (
            Some(Shared { environment, boot_id: cage::process::boot_id().unwrap_or_default(), config }),
            None,
        ),
        Err(e) => (None, Some(vocab::Failure::new(e.to_string()))),
    };
    let child_ended = sys::child_signal_fd()?;
    let turn = match (&shared, fault) {
        (Some(_), _) => event_loop(&stream, &mut frames, &child_ended)?,
        (None, fault) => refuse_all(&stream, &mut frames, &fault.unwrap_or_else(|| vocab::Failure::new("")))?,
    };
    match (turn, shared) {
        (Turn::Proxy(job), Some(shared)) => {
            // Only the descriptors of the spawner are ours to close: nothing else is open.
            drop((stream, frames, child_ended));
            sys::unblock_signals();
            // The node's log must not stay open as long as the longest job.
            let _ = sys::replace_standard_fd(null.as_fd(), 2);
            drop(null);
            sys::exit_now(proxy::run(*job, &shared))
        }
        _ => Ok(()),
    }
}

/// The first message; none if the node left before it.
fn configuration(mut stream: &UnixStream, frames: &mut FrameReader) -> io::Result<Option<SpawnerConfig>> {
    loop {
        match frames.next_message().map_err(io::Error::other)? {
            Some(ToSpawner::Configure { config }) => return Ok(Some(config)),
            Some(ToSpawner::Start { .. }) => {
                return Err(io::Error::other("a job came before the configuration"));
            }
            None => {}
        }
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer)? {
            0 => return Ok(None),
            n => frames.push(&buffer[..n]),
        }
    }
}

fn open_environment(config: &SpawnerConfig) -> Result<Box<dyn JobEnvironment>, cage::CageError> {
    let places =
        EnvironmentConfig { root_group: config.root_group.clone(), mount_table: config.mount_table.clone() };
    let environment = cage::open(config.driver.parse()?, &places)?;
    environment.prepare()?;
    environment.enter_proxies(config.proxies_memory_limit)?;
    Ok(environment)
}

fn event_loop(stream: &UnixStream, frames: &mut FrameReader, child_ended: &OwnedFd) -> io::Result<Turn> {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut proxies: HashMap<u32, JobId> = HashMap::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        while let Some(message) = frames.next_message().map_err(io::Error::other)? {
            let ToSpawner::Start { job } = message else {
                return Err(io::Error::other("configured twice"));
            };
            match sys::fork() {
                Ok(sys::Fork::Child) => return Ok(Turn::Proxy(job)),
                Ok(sys::Fork::Parent(pid)) => {
                    proxies.insert(pid, job.job_id);
                }
                Err(e) => {
                    let error = vocab::Failure::new(format!("Cannot create a job proxy: {e}"));
                    send(stream, &FromSpawner::StartFailed { job_id: job.job_id, error })?;
                }
            }
        }
        let mut ready = [
            PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(child_ended.as_fd(), PollFlags::IN),
        ];
        match poll(&mut ready, None) {
            Err(rustix::io::Errno::INTR) => continue,
            other => other?,
        };
        let (from_node, ended) = (!ready[0].revents().is_empty(), !ready[1].revents().is_empty());
        if ended {
            // Several ends may share one signal: empty the descriptor first, then reap all.
            let _ = rustix::io::read(child_ended, &mut buffer);
            while let Some((pid, exit, _)) = sys::reap_any()? {
                let job_id = proxies.remove(&pid);
                let exit = match exit {
                    sys::Exit::Code(0) => continue,
                    sys::Exit::Code(n) => n,
                    sys::Exit::Signal(n, _) => -n,
                };
                if let Some(job_id) = job_id {
                    send(stream, &FromSpawner::ProxyDied { job_id, pid, exit })?;
                }
            }
        }
        if from_node {
            let mut reader = stream;
            match reader.read(&mut buffer) {
                Ok(0) => return Ok(Turn::End),
                Ok(n) => frames.push(&buffer[..n]),
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return Ok(Turn::End),
                Err(e) => return Err(e),
            }
        }
    }
}

/// The environment is unusable: says so for each job, until the node gives up.
fn refuse_all(mut stream: &UnixStream, frames: &mut FrameReader, error: &vocab::Failure) -> io::Result<Turn> {
    let mut buffer = [0; 4096];
    loop {
        while let Some(message) = frames.next_message().map_err(io::Error::other)? {
            if let ToSpawner::Start { job } = message {
                send(stream, &FromSpawner::StartFailed { job_id: job.job_id, error: error.clone() })?;
            }
        }
        match stream.read(&mut buffer)? {
            0 => return Ok(Turn::End),
            n => frames.push(&buffer[..n]),
        }
    }
}

fn send(mut stream: &UnixStream, message: &FromSpawner) -> io::Result<()> {
    let mut frame = Vec::new();
    encode_frame(message, &mut frame);
    match stream.write_all(&frame) {
        // The node has gone: the next read says so.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
