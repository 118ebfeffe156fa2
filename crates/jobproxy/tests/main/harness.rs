//! A node agent of a few lines: starts jobs through a real spawner, listens for real proxies.

use cage::{Driver, EnvironmentConfig, JobEnvironment};
use jobproxy::protocol::{
    DEFAULT_PIDS_LIMIT, FrameReader, FromProxy, FromSpawner, JobStart, ProxyResult, SpawnerConfig, ToProxy,
    encode_frame,
};
use jobproxy::spawner::Spawner;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use vocab::{Cpu, Guid, JobId, Span};

static COUNTER: AtomicU32 = AtomicU32::new(1);

/// Longer than anything should take on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// What has come in, with the job that said it.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // the large one is the usual one
pub enum Event {
    Proxy(JobId, FromProxy),
    /// The connection ended.
    Closed(JobId),
    Spawner(FromSpawner),
}

struct Connection {
    stream: UnixStream,
    frames: FrameReader,
    job_id: Option<JobId>,
}

pub struct FakeNode {
    pub directory: tempfile::TempDir,
    pub config: SpawnerConfig,
    pub environment: Box<dyn JobEnvironment>,
    pub spawner: Option<Spawner>,
    from_spawner: FrameReader,
    listener: Option<UnixListener>,
    connections: Vec<Connection>,
    pub events: VecDeque<Event>,
    jobs: Vec<JobId>,
    /// Pids of proxies by job.
    pub proxies: BTreeMap<JobId, u32>,
}

impl FakeNode {
    /// With a driver that is known to work here.
    pub fn new(driver: Driver) -> FakeNode {
        FakeNode::with(driver, |_| {})
    }

    pub fn with(driver: Driver, change: impl FnOnce(&mut SpawnerConfig)) -> FakeNode {
        let directory = tempfile::tempdir().expect("a directory");
        let n = COUNTER.fetch_add(1, Ordering::Relaxed);
        let root = format!("millpond/test-{}-{n}", std::process::id());
        let mut config = SpawnerConfig::new(&directory.path().join("node.sock"), driver, &root);
        config.memory_watchdog_period = Span::from_millis(100);
        change(&mut config);
        let environment = cage::open(driver, &EnvironmentConfig::new(&root)).expect("the driver was probed");
        let listener = listen(&config.node_socket);
        let program = Path::new(env!("CARGO_BIN_EXE_millpond-job-proxy"));
        let spawner = Spawner::start(program, &config).expect("the spawner starts");
        spawner.stream.set_nonblocking(true).expect("a socket");
        FakeNode {
            directory,
            config,
            environment,
            spawner: Some(spawner),
            from_spawner: FrameReader::default(),
            listener: Some(listener),
            connections: Vec::new(),
            events: VecDeque::new(),
            jobs: Vec::new(),
            proxies: BTreeMap::new(),
        }
    }

    pub fn job_directory(&self, job_id: JobId) -> PathBuf {
        self.directory.path().join(job_id.to_string())
    }

    /// Of a job that will be cleaned up after.
    pub fn fresh_id(&mut self) -> JobId {
        let n = COUNTER.fetch_add(1, Ordering::Relaxed);
        let job_id = JobId(Guid([n, std::process::id(), 0x10384, 1]));
        self.jobs.push(job_id);
        job_id
    }

    /// A job with its directories.
    pub fn job(&mut self, command: &str) -> JobStart {
        let job_id = self.fresh_id();
        let job_directory = self.job_directory(job_id);
        let sandbox = job_directory.join("sandbox");
        std::fs::create_dir_all(&sandbox).expect("created");
        JobStart {
            job_id,
            job_directory,
            working_directory: sandbox.clone(),
            sandbox,
            isolation: None,
            disk_space: None,
            inode_count: None,
            disk_quota: None,
            command: command.to_owned(),
            environment: Vec::new(),
            user: None,
            cpu_guarantee: Cpu(100),
            cpu_cap: None,
            memory_limit: 512 << 20,
            pids_limit: DEFAULT_PIDS_LIMIT,
            lease: None,
            job_time_limit: None,
            max_stderr_size: 5 << 20,
            interruption_signal: None,
            signal_root_process_only: false,
            restart_exit_code: None,
            custom_statistics_count_limit: 128,
            cpu_monitor: Default::default(),
            memory_request: 64 << 20,
            user_job_memory_reserve: 32 << 20,
            job_proxy_memory_reserve: 32 << 20,
            job_proxy_memory_overcommit_limit: None,
            include_memory_mapped_files: true,
            tmpfs_volumes: Vec::new(),
            tables: None,
        }
    }

    pub fn start(&mut self, job: JobStart) -> JobId {
        let job_id = job.job_id;
        let spawner = self.spawner.as_mut().expect("the spawner lives");
        spawner.stream.set_nonblocking(false).expect("a socket");
        spawner.start_job(job).expect("the spawner listens");
        spawner.stream.set_nonblocking(true).expect("a socket");
        job_id
    }

    /// Starts it and waits for the end.
    pub fn run(&mut self, job: JobStart) -> ProxyResult {
        let job_id = self.start(job);
        self.finished(job_id)
    }

    /// To a proxy that is connected, or about to be again.
    pub fn send(&mut self, job_id: JobId, message: ToProxy) {
        self.send_together(job_id, &[message]);
    }

    /// Several messages that the proxy reads at once, so that it cannot end between two of them.
    pub fn send_together(&mut self, job_id: JobId, messages: &[ToProxy]) {
        let give_up = Instant::now() + PATIENCE;
        while !self.connections.iter().any(|c| c.job_id == Some(job_id)) {
            assert!(Instant::now() < give_up, "no connection within {PATIENCE:?}");
            self.pump(Duration::from_millis(200));
        }
        let connection = self.connections.iter_mut().find(|c| c.job_id == Some(job_id)).expect("connected");
        let mut frames = Vec::new();
        messages.iter().for_each(|message| encode_frame(message, &mut frames));
        connection.stream.set_nonblocking(false).expect("a socket");
        connection.stream.write_all(&frames).expect("the proxy listens");
        connection.stream.set_nonblocking(true).expect("a socket");
    }

    /// Waits for an event that `pick` accepts; others are dropped.
    pub fn wait<T>(&mut self, what: &str, mut pick: impl FnMut(&Event) -> Option<T>) -> T {
        let give_up = Instant::now() + PATIENCE;
        loop {
            while let Some(event) = self.events.pop_front() {
                if let Some(found) = pick(&event) {
                    return found;
                }
            }
            assert!(Instant::now() < give_up, "no {what} within {PATIENCE:?}");
            self.pump(Duration::from_millis(200));
        }
    }

    pub fn started(&mut self, job_id: JobId) -> u32 {
        self.wait("start", |e| match e {
            Event::Proxy(j, FromProxy::Started { user_pid, .. }) if *j == job_id => Some(*user_pid),
            Event::Proxy(j, FromProxy::Finished { result }) if *j == job_id => {
                panic!("ended early: {result:?}")
            }
            _ => None,
        })
    }

    pub fn finished(&mut self, job_id: JobId) -> ProxyResult {
        self.wait("end", |e| match e {
            Event::Proxy(j, FromProxy::Finished { result }) if *j == job_id => Some((**result).clone()),
            Event::Spawner(other) => panic!("{other:?}"),
            _ => None,
        })
    }

    /// The node goes away: no listener, no connections.
    pub fn vanish(&mut self) {
        self.listener = None;
        self.connections.clear();
        let _ = std::fs::remove_file(&self.config.node_socket);
    }

    /// The node is back on the same path.
    pub fn come_back(&mut self) {
        self.listener = Some(listen(&self.config.node_socket));
    }

    /// Takes in what is there, waiting at most `timeout` for something.
    pub fn pump(&mut self, timeout: Duration) {
        let timeout =
            Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        let mut fds = Vec::new();
        fds.extend(self.listener.iter().map(|l| PollFd::from_borrowed_fd(l.as_fd(), PollFlags::IN)));
        fds.extend(self.spawner.iter().map(|s| PollFd::from_borrowed_fd(s.stream.as_fd(), PollFlags::IN)));
        fds.extend(
            self.connections.iter().map(|c| PollFd::from_borrowed_fd(c.stream.as_fd(), PollFlags::IN)),
        );
        poll(&mut fds, Some(&timeout)).expect("poll");
        let offset = usize::from(self.listener.is_some()) + usize::from(self.spawner.is_some());
        let ready: Vec<bool> = fds.iter().map(|f| !f.revents().is_empty()).collect();
        drop(fds);
        for i in (0..self.connections.len()).rev() {
            if ready[offset + i] && self.read_connection(i) {
                let closed = self.connections.remove(i);
                self.events.extend(closed.job_id.map(Event::Closed));
            }
        }
        if let Some(listener) = &self.listener
            && ready[0]
        {
            while let Ok((stream, _)) = listener.accept() {
                stream.set_nonblocking(true).expect("a socket");
                self.connections.push(Connection { stream, frames: FrameReader::default(), job_id: None });
            }
        }
        self.read_spawner();
    }

    /// True at its end.
    fn read_connection(&mut self, i: usize) -> bool {
        let connection = &mut self.connections[i];
        let mut buffer = [0; 16384];
        let ended = loop {
            match connection.stream.read(&mut buffer) {
                Ok(0) => break true,
                Ok(n) => connection.frames.push(&buffer[..n]),
                Err(e) => break e.kind() != ErrorKind::WouldBlock,
            }
        };
        while let Some(message) = connection.frames.next_message().expect("good frames") {
            if let FromProxy::Hello { job_id, pid, .. } = &message {
                connection.job_id = Some(*job_id);
                self.proxies.insert(*job_id, *pid);
            }
            self.events.push_back(Event::Proxy(connection.job_id.expect("Hello is first"), message));
        }
        ended
    }

    fn read_spawner(&mut self) {
        let Some(spawner) = &mut self.spawner else { return };
        let mut buffer = [0; 4096];
        match spawner.stream.read(&mut buffer) {
            Ok(0) => panic!("the spawner ended"),
            Ok(n) => self.from_spawner.push(&buffer[..n]),
            Err(_) => return,
        }
        while let Some(message) = self.from_spawner.next_message().expect("good frames") {
            self.events.push_back(Event::Spawner(message));
        }
    }
}

fn listen(path: &Path) -> UnixListener {
    let listener = UnixListener::bind(path).expect("a free path");
    listener.set_nonblocking(true).expect("a socket");
    listener
}

/// Nothing may be left, whatever the test did; a leftover of a passing test fails it.
impl Drop for FakeNode {
    fn drop(&mut self) {
        self.vanish();
        if let Some(spawner) = self.spawner.take() {
            let _ = spawner.stop();
        }
        // A proxy that said its last word is about to exit; others are killed.
        let grace = Instant::now() + PATIENCE;
        for pid in self.proxies.values() {
            let ours = |pid: u32| {
                std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|c| c.trim() == "mp-job-proxy")
                    && cage::ProcessId::of(pid).is_some_and(|p| p.is_alive())
            };
            while ours(*pid) && Instant::now() < grace && !std::thread::panicking() {
                std::thread::sleep(Duration::from_millis(1));
            }
            if ours(*pid) {
                let _ = cage::sys::kill(*pid, 9);
            }
        }
        let mut left = Vec::new();
        for job_id in &self.jobs {
            if self.environment.driver().has_groups() && self.environment.existing().contains(job_id) {
                left.push(*job_id);
            }
            let _ = jobproxy::recovery::kill_job(self.environment.as_ref(), *job_id, PATIENCE);
        }
        let give_up = Instant::now() + PATIENCE;
        let mut removed = self.environment.remove_root();
        while removed.is_err() && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(2));
            removed = self.environment.remove_root();
        }
        if !std::thread::panicking() {
            assert!(removed.is_ok(), "{removed:?}");
            assert!(left.is_empty(), "groups of these jobs were left: {left:?}");
        }
    }
}
