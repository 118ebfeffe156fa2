//! A node agent as a child process and a server in the test, with everything cleaned up at the end.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use cage::{Driver, EnvironmentConfig};
use vocab::*;
use wire::{AbortJob, FinishedJob, Hello, JobEvent, NodeMessage, ServerMessage, StartJob};

use crate::server::{Ear, Server, World, ear};

pub const PATIENCE: Duration = Duration::from_secs(120);

static NUMBER: AtomicU32 = AtomicU32::new(1);

/// Ids that differ between tests of one run and between runs.
pub fn new_id(kind: u16) -> Guid {
    let n = NUMBER.fetch_add(1, Ordering::Relaxed);
    Guid([n, std::process::id(), u32::from(kind), 7])
}

pub struct Bench {
    pub world: Arc<World>,
    pub server: Option<Server>,
    heard: std::sync::mpsc::Sender<NodeMessage>,
    ear: Ear,
    pub directory: tempfile::TempDir,
    driver: Driver,
    root_group: String,
    slots: u32,
    agent: Option<Child>,
    address: std::net::SocketAddr,
    /// Everything heard and not yet asked for.
    events: Vec<JobEvent>,
}

/// Drivers that work on this host; the others are named on stderr.
pub fn drivers() -> Vec<Driver> {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let config =
        EnvironmentConfig::new(&format!("millpond-node-tests/probe-{}-{number}", std::process::id()));
    let mut usable = vec![Driver::Simple];
    match cage::open(Driver::Hybrid, &config).and_then(|e| e.prepare().map(|()| e)) {
        Ok(environment) => {
            let _ = environment.remove_root();
            usable.push(Driver::Hybrid);
        }
        Err(e) => eprintln!("skipped for driver hybrid: {e}"),
    }
    usable
}

impl Bench {
    /// A server, a node, and their handshake done.
    pub fn new(driver: Driver, slots: u32) -> Bench {
        let world = Arc::new(World::default());
        let (heard, ear) = ear();
        let server = Server::start(&world, heard.clone(), None);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut bench = Bench {
            address: server.address,
            server: Some(server),
            world,
            heard,
            ear,
            directory: tempfile::Builder::new().prefix("mpn").tempdir().expect("a directory"),
            driver,
            root_group: format!("millpond-node-tests/{}-{number}", std::process::id()),
            slots,
            agent: None,
            events: Vec::new(),
        };
        std::fs::create_dir(bench.shared()).expect("made");
        std::fs::set_permissions(bench.shared(), std::fs::Permissions::from_mode(0o777)).expect("ours");
        bench.start_agent();
        bench.hello();
        bench
    }

    pub fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_millpond-node-for-tests"));
        command
            .arg(format!("http://{}", self.address))
            .arg(self.data())
            .arg(self.driver.as_str())
            .arg(&self.root_group)
            .arg(self.slots.to_string());
        command
    }
    /// The directory that jobs and tests share; agents know it by the name.
    pub fn shared(&self) -> PathBuf {
        self.directory.path().join("shared")
    }
    pub fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }
    pub fn start_agent(&mut self) {
        self.agent = Some(self.command().stdin(Stdio::null()).spawn().expect("the agent starts"));
    }
    pub fn agent_pid(&self) -> u32 {
        self.agent.as_ref().expect("an agent").id()
    }
    /// As the kernel would do it when memory is short.
    pub fn kill_agent(&mut self) {
        let mut agent = self.agent.take().expect("an agent");
        agent.kill().expect("killed");
        agent.wait().expect("dead");
    }
    /// SIGTERM; gives whether it ended well.
    pub fn stop_agent(&mut self) -> bool {
        let mut agent = self.agent.take().expect("an agent");
        cage::sys::kill(agent.id(), 15).expect("signalled");
        agent.wait().expect("ended").success()
    }
    pub fn server_dies(&mut self) {
        self.server = None;
    }
    pub fn server_returns(&mut self) {
        self.server = Some(Server::start(&self.world, self.heard.clone(), Some(self.address)));
    }

    fn hear(&mut self, until: Instant) -> Option<NodeMessage> {
        let left = until.saturating_duration_since(Instant::now());
        self.ear.0.recv_timeout(left).ok()
    }

    /// The next Hello; what came before is of another life.
    pub fn hello(&mut self) -> Hello {
        let until = Instant::now() + PATIENCE;
        while let Some(message) = self.hear(until) {
            match message {
                NodeMessage::Hello(hello) => {
                    self.events.clear();
                    return hello;
                }
                NodeMessage::Jobs(events) => self.events.extend(events),
                _ => {}
            }
        }
        panic!("no Hello within {PATIENCE:?}");
    }

    /// Waits for an event that the test looks for.
    pub fn wait<T>(&mut self, what: &str, mut pick: impl FnMut(&JobEvent) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some((i, found)) = self.events.iter().enumerate().find_map(|(i, e)| Some((i, pick(e)?))) {
                self.events.remove(i);
                return found;
            }
            match self.hear(until) {
                Some(NodeMessage::Jobs(events)) => self.events.extend(events),
                Some(_) => {}
                None => panic!("{what}: not within {PATIENCE:?}; heard {:?}", self.events),
            }
        }
    }
    pub fn started(&mut self, id: JobId) -> Time {
        self.wait("start of the job", |e| match e {
            JobEvent::Started { job_id, start_time, .. } if *job_id == id => Some(*start_time),
            _ => None,
        })
    }
    pub fn finished(&mut self, id: JobId) -> FinishedJob {
        self.wait("end of the job", |e| match e {
            JobEvent::Finished(end) if end.identity.job_id == id => Some(end.as_ref().clone()),
            _ => None,
        })
    }
    /// Everything heard within the time that is not an answer.
    pub fn ends_within(&mut self, time: Duration) -> Vec<JobId> {
        let until = Instant::now() + time;
        while let Some(message) = self.hear(until) {
            if let NodeMessage::Jobs(events) = message {
                self.events.extend(events);
            }
        }
        self.events
            .iter()
            .filter_map(|e| match e {
                JobEvent::Finished(end) => Some(end.identity.job_id),
                _ => None,
            })
            .collect()
    }
    pub fn stderr(&mut self, id: JobId, offset: u64, limit: u64) -> Result<Vec<u8>, Failure> {
        self.world.order(&ServerMessage::ReadStderr { request_id: 5, job_id: id, offset, limit });
        let until = Instant::now() + PATIENCE;
        loop {
            match self.hear(until) {
                Some(NodeMessage::Stderr { request_id: 5, result }) => return result,
                Some(NodeMessage::Jobs(events)) => self.events.extend(events),
                Some(_) => {}
                None => panic!("no stderr within {PATIENCE:?}"),
            }
        }
    }

    /// Waits until the job has printed this from there on, and no more.
    pub fn wait_stderr(&mut self, id: JobId, offset: u64, text: &[u8]) {
        let until = Instant::now() + PATIENCE;
        while self.stderr(id, offset, 1 << 20).expect("readable") != text {
            assert!(Instant::now() < until, "{:?} does not come", String::from_utf8_lossy(text));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn start(&self, description: JobDescription) -> JobId {
        let start = start_job(description);
        let id = start.identity.job_id;
        self.world.order(&ServerMessage::Start(vec![start]));
        id
    }
    pub fn run(&self, command: &str) -> JobId {
        self.start(description(command))
    }
    pub fn abort(&self, id: JobId) {
        let text = "Aborted by the test".to_owned();
        let order = AbortJob { job_id: id, reason: AbortReason::UserRequest, text };
        self.world.order(&ServerMessage::Abort(vec![order]));
    }
    pub fn release(&self, ids: &[JobId]) {
        self.world.order(&ServerMessage::Release(ids.to_vec()));
    }

    /// The self-check of a starting agent is under way.
    pub fn has_probe(&self) -> bool {
        let is_probe = |group: &PathBuf| {
            group.file_name().is_some_and(|name| name.to_string_lossy().starts_with("probe-"))
        };
        groups_of(&self.root_group).iter().any(is_probe)
    }
    /// An agent has connected since the last question.
    pub fn has_said_hello(&mut self) -> bool {
        self.ear.0.try_iter().any(|message| matches!(message, NodeMessage::Hello(_)))
    }

    /// Nothing of any job of this node lives or lies around.
    pub fn assert_clean(&mut self) {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = processes_with(self.data().to_str().expect("text"));
            let groups = groups_of(&self.root_group);
            if left.is_empty() && groups.is_empty() {
                return;
            }
            assert!(Instant::now() < until, "left over: processes {left:?}, groups {groups:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            let _ = agent.kill();
            let _ = agent.wait();
        }
        // Proxies of a test that failed in the middle.
        for pid in processes_with(self.directory.path().to_str().expect("text")) {
            let _ = cage::sys::kill(pid, 9);
        }
        let config = EnvironmentConfig::new(&self.root_group);
        if let Ok(environment) = cage::open(self.driver, &config)
            && self.driver != Driver::Simple
        {
            let _ = environment.cleanup_leftovers(&|_| false, Duration::from_secs(5));
            let _ = environment.remove_root();
        }
    }
}

/// Processes that have the text in their environment or command line: jobs know their sandbox, agents
/// their directory. The test itself does not count.
fn processes_with(text: &str) -> Vec<u32> {
    let contains = |path: PathBuf| {
        std::fs::read(path).is_ok_and(|bytes| bytes.windows(text.len()).any(|w| w == text.as_bytes()))
    };
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != std::process::id())
        .filter(|pid| {
            let process = PathBuf::from(format!("/proc/{pid}"));
            contains(process.join("environ")) || contains(process.join("cmdline"))
        })
        .collect()
}

/// Groups of jobs in all hierarchies.
fn groups_of(root_group: &str) -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (path, kind) = (fields.next()?, fields.next()?);
            kind.starts_with("cgroup").then(|| PathBuf::from(path).join(root_group).join("jobs"))
        })
        .filter_map(|path| std::fs::read_dir(path).ok())
        .flat_map(|entries| entries.flatten().filter(|e| e.path().is_dir()).map(|e| e.path()))
        .collect()
}

pub fn description(command: &str) -> JobDescription {
    JobDescription {
        command: command.to_owned(),
        environment: Default::default(),
        files: Vec::new(),
        cpu_limit: Cpu(100),
        cpu_cap: None,
        memory_limit: 512 << 20,
        user_job_memory_reserve: 256 << 20,
        job_proxy_memory_reserve: 1 << 20,
        job_time_limit: None,
        max_stderr_size: 1 << 20,
        interruption_signal: None,
        signal_root_process_only: false,
        restart_exit_code: None,
        custom_statistics_count_limit: 128,
        cpu_monitor: Default::default(),
        include_memory_mapped_files: true,
        job_proxy_memory_overcommit_limit: None,
        prepare_time_limit: None,
        port_count: 0,
        file_system: Default::default(),
        tables: None,
    }
}

pub fn start_job(description: JobDescription) -> StartJob {
    StartJob {
        waiting_timeout: None,
        has_started_elsewhere: false,
        lease: None,
        uid: Some(crate::server::job_uids().range.first()),
        identity: JobIdentity {
            job_id: JobId(new_id(object_type::JOB)),
            allocation_id: AllocationId(new_id(object_type::OTHER)),
            operation_id: OperationId(new_id(object_type::OPERATION)),
            tree: "default".into(),
            task: "task".into(),
            cookie: 0,
            job_index: 0,
            task_job_index: 0,
            ticket: None,
        },
        resources: Resources { user_slots: 1, cpu: Cpu(100), memory: 256 << 20, ..Resources::ZERO },
        description,
    }
}
