//! A node at a desk: commands in, one line per effect out.

use std::fmt::Write;

use vocab::*;
use wire::{AbortJob, JobEvent, NodeMessage, ServerMessage, StartJob};

use nodecore::*;

pub fn job_id(n: u32) -> JobId {
    JobId(Guid([n, 0, 0, 0x384]))
}
pub fn number(id: JobId) -> u32 {
    id.0.0[0]
}
pub fn cores(slots: i64, cpu: i64, memory: i64) -> Resources {
    Resources { user_slots: slots, cpu: Cpu(cpu * 100), memory, ..Resources::ZERO }
}

/// Job `n`: one slot, one core, ten bytes; even ones can be interrupted.
pub fn start(n: u32, files: usize) -> StartJob {
    let artifact = |i: usize| Artifact {
        file_id: ObjectId(Guid([i as u32, 0, 0, 0x190])),
        revision: 1,
        size: 3,
        file_name: format!("file{i}"),
        executable: false,
        bypass_cache: false,
    };
    StartJob {
        waiting_timeout: None,
        has_started_elsewhere: false,
        lease: None,
        uid: None,
        identity: JobIdentity {
            job_id: job_id(n),
            allocation_id: AllocationId(Guid([n, 0, 0, 1])),
            operation_id: OperationId(Guid([1, 0, 0, 0x3e8])),
            tree: "default".into(),
            task: "task".into(),
            cookie: n,
            job_index: u64::from(n),
            task_job_index: u64::from(n),
            ticket: None,
        },
        resources: cores(1, 1, 10),
        description: JobDescription {
            command: "true".to_owned(),
            environment: Default::default(),
            files: (0..files).map(artifact).collect(),
            cpu_limit: Cpu(100),
            cpu_cap: None,
            memory_limit: 100,
            user_job_memory_reserve: 10,
            job_proxy_memory_reserve: 0,
            job_time_limit: None,
            max_stderr_size: 1000,
            interruption_signal: n.is_multiple_of(2).then(|| "SIGINT".to_owned()),
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
        },
    }
}

/// A file that was not there yet.
pub fn downloaded(size: u64) -> Supply {
    Supply { source: Source::Server, size }
}

pub fn completed(now: Time) -> JobResult {
    JobResult {
        outcome: JobOutcome::Completed { interrupted: None, restart_needed: false },
        start_time: Some(now),
        finish_time: now,
        statistics: JobStatistics::default(),
        stderr_size: 0,
        stderr: KeptStderr::None,
        survivors: false,
        fail_context_size: 0,
    }
}

pub struct Desk {
    pub core: NodeCore,
    pub now: Time,
    pub transcript: String,
}

impl Desk {
    /// Two slots, two cores, twenty bytes; connected and welcome.
    pub fn new() -> Desk {
        Desk::with(|_| {})
    }

    /// The same with other settings.
    pub fn with(change: impl FnOnce(&mut Settings)) -> Desk {
        let mut settings = Settings::new("n1:1", cores(2, 2, 20));
        change(&mut settings);
        let mut desk =
            Desk { core: NodeCore::new(settings), now: Time::from_secs(100), transcript: String::new() };
        desk.tell(NodeInput::Connected);
        desk.tell(NodeInput::Server(ServerMessage::Welcome {
            heartbeat_period: Span::from_secs(5),
            job_uids: None,
        }));
        desk.transcript.clear();
        desk
    }

    /// Something happens; what the core does is written down.
    pub fn tell(&mut self, input: NodeInput) -> Vec<NodeEffect> {
        self.tell_all([input])
    }
    pub fn tell_all(&mut self, inputs: impl IntoIterator<Item = NodeInput>) -> Vec<NodeEffect> {
        let mut effects = Vec::new();
        for input in inputs {
            self.core.handle(self.now, input, &mut effects);
        }
        self.core.flush(self.now, &mut effects);
        for effect in &effects {
            let _ = writeln!(self.transcript, "  {}", line(effect));
        }
        effects
    }
    pub fn order(&mut self, message: ServerMessage) -> Vec<NodeEffect> {
        self.tell(NodeInput::Server(message))
    }
    pub fn start(&mut self, jobs: impl IntoIterator<Item = (u32, usize)>) {
        self.note("start");
        self.order(ServerMessage::Start(jobs.into_iter().map(|(n, files)| start(n, files)).collect()));
    }
    pub fn abort(&mut self, n: u32, reason: AbortReason, text: &str) {
        self.note(&format!("abort {n}"));
        self.order(ServerMessage::Abort(vec![AbortJob { job_id: job_id(n), reason, text: text.to_owned() }]));
    }
    pub fn interrupt(&mut self, n: u32, seconds: u64) {
        self.note(&format!("interrupt {n}"));
        self.order(ServerMessage::Interrupt {
            job_id: job_id(n),
            timeout: Span::from_secs(seconds),
            reason: InterruptionReason::Preemption,
            text: "somebody starves".to_owned(),
        });
    }
    pub fn release(&mut self, n: u32) {
        self.note(&format!("release {n}"));
        self.order(ServerMessage::Release(vec![job_id(n)]));
    }
    /// Everything up to the user's process.
    pub fn bring_up(&mut self, n: u32) {
        let id = job_id(n);
        self.note(&format!("job {n} comes up"));
        self.tell(NodeInput::SandboxReady { job_id: id, result: Ok(()) });
        let now = self.now;
        self.tell_all([
            NodeInput::ProxyConnected { job_id: id },
            NodeInput::JobStarted { job_id: id, start_time: now },
        ]);
    }
    pub fn end(&mut self, n: u32, result: JobResult) {
        self.note(&format!("job {n} ends"));
        self.tell(NodeInput::JobEnded { job_id: job_id(n), result });
    }
    pub fn clean(&mut self, n: u32) {
        self.note(&format!("job {n} is cleaned up"));
        self.tell(NodeInput::CleanedUp { job_id: job_id(n), result: Ok(()) });
    }
    pub fn pass(&mut self, seconds: u64) {
        self.now += Span::from_secs(seconds);
        self.note(&format!("{seconds} s later"));
        self.tell(NodeInput::Wake);
    }
    pub fn note(&mut self, text: &str) {
        let _ = writeln!(self.transcript, "{text}");
    }
    pub fn expect(&mut self, expected: expect_test::Expect) {
        expected.assert_eq(&std::mem::take(&mut self.transcript));
    }
}

fn outcome(outcome: &JobOutcome) -> String {
    match outcome {
        JobOutcome::Completed { interrupted, .. } => match interrupted {
            Some(reason) => format!("completed, interrupted by {reason}"),
            None => "completed".to_owned(),
        },
        JobOutcome::Failed { error } => format!("failed: {error}"),
        JobOutcome::Aborted { reason, error } => format!("aborted {reason}: {error}"),
    }
}

fn event(e: &JobEvent) -> String {
    match e {
        JobEvent::Started { job_id, .. } => format!("started {}", number(*job_id)),
        JobEvent::ResourceUsage { job_id, resource_usage } => {
            format!("usage {} {resource_usage}", number(*job_id))
        }
        JobEvent::Finished(f) => format!("finished {} ({})", number(f.identity.job_id), outcome(&f.outcome)),
    }
}

fn line(effect: &NodeEffect) -> String {
    use NodeEffect::*;
    match effect {
        Send(NodeMessage::Jobs(events)) => {
            format!("send: {}", events.iter().map(event).collect::<Vec<_>>().join("; "))
        }
        Send(NodeMessage::Hello(h)) => {
            let running: Vec<String> =
                h.running.iter().map(|j| format!("{} {}", number(j.identity.job_id), j.phase)).collect();
            let finished: Vec<String> = h
                .finished
                .iter()
                .map(|f| format!("{} {}", number(f.identity.job_id), outcome(&f.outcome)))
                .collect();
            format!("send: hello, running {running:?}, finished {finished:?}")
        }
        Send(NodeMessage::Heartbeat(h)) => {
            let jobs: Vec<String> =
                h.jobs.iter().map(|j| format!("{} {}", number(j.identity.job_id), j.phase)).collect();
            format!(
                "send: heartbeat, usage {}, jobs {jobs:?}, unreleased {}",
                h.resource_usage,
                h.unreleased.len()
            )
        }
        Send(NodeMessage::Leaving) => "send: leaving".to_owned(),
        Send(NodeMessage::Stderr { request_id, result }) => format!("send: stderr {request_id} {result:?}"),
        Send(NodeMessage::Shell { request_id, result }) => format!("send: shell {request_id} {result:?}"),
        AskShell { request_id, job_id, request } => {
            format!("ask the shells of {} for {request_id}: {request:?}", number(*job_id))
        }
        LeaseIsHalfOver { jobs, left } => format!("half a lease of {jobs} jobs is over, {left} left"),
        KeepConfirmed { from } => format!("keep that leases begin at {from}"),
        WakeAt(time) => format!("wake at {} s", time.0 / 1_000_000),
        ClaimUids(uids) => format!("claim uids {} of {}", uids.claim, uids.range),
        ProbePorts { job_id, ports } => format!("probe {ports:?} for {}", number(*job_id)),
        FetchArtifact { job_id, artifact } => format!("fetch {} for {}", artifact.file_name, number(*job_id)),
        PrepareSandbox { job_id, slot, .. } => format!("sandbox of {} in slot {slot}", number(*job_id)),
        SpawnProxy { job_id, slot, gpus, .. } => {
            format!("spawn {} in slot {slot}, devices {gpus:?}", number(*job_id))
        }
        ProxySend(id, order) => format!("tell {}: {order:?}", number(*id)),
        KillContainer(id) => format!("kill {}", number(*id)),
        FetchRows { job_id, .. } => format!("fetch rows of {}", number(*job_id)),
        Upload { job_id, stderr, rows, fail_context, .. } => {
            let what = [(*stderr, "stderr"), (*rows, "rows"), (*fail_context, "fail context")];
            let what: Vec<&str> = what.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
            format!("upload {} of {}", what.join(" and "), number(*job_id))
        }
        ReadStderr { request_id, job_id, offset, limit, .. } => {
            format!("read stderr of {} for {request_id}: {limit} bytes from {offset}", number(*job_id))
        }
        Cleanup { job_id, slot } => format!("clean {} in slot {slot}", number(*job_id)),
        WriteRecord(record) => format!(
            "record {} in slot {}{}",
            number(record.start.identity.job_id),
            record.slot,
            record.end.as_ref().map_or(String::new(), |end| format!(", {}", outcome(&end.outcome)))
        ),
        RemoveRecord { job_id, slot } => format!("forget {} in slot {slot}", number(*job_id)),
    }
}
