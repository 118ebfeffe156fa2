//! The node's logic: 200 jobs from the order to start them to their release, in 20 slots.

use crate::meter::Meter;
use nodecore::{JobResult, KeptStderr, NodeCore, NodeEffect, NodeInput, Settings};
use vocab::*;
use wire::{JobEvent, NodeMessage, ServerMessage, StartJob};

const SLOTS: i64 = 20;
const JOBS: u32 = 200;

/// The order to start job `n`.
pub fn start(n: u32) -> StartJob {
    StartJob {
        waiting_timeout: None,
        has_started_elsewhere: false,
        lease: None,
        uid: None,
        identity: JobIdentity {
            job_id: JobId(Guid([n, 0, 0, 0x384])),
            allocation_id: AllocationId(Guid([n, 0, 0, 1])),
            operation_id: OperationId(Guid([1, 0, 0, 0x3e8])),
            tree: "physical".into(),
            task: "task".into(),
            cookie: n,
            job_index: u64::from(n),
            task_job_index: u64::from(n),
            ticket: None,
        },
        resources: Resources { user_slots: 1, cpu: Cpu(100), memory: 1 << 28, ..Resources::ZERO },
        description: JobDescription {
            command: "./run --shard $YT_JOB_COOKIE".to_owned(),
            environment: Default::default(),
            files: Vec::new(),
            cpu_limit: Cpu(100),
            cpu_cap: None,
            memory_limit: 1 << 28,
            user_job_memory_reserve: 1 << 27,
            job_proxy_memory_reserve: 0,
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
        },
    }
}

/// What the edge answers to an effect if everything goes well.
fn answers(now: Time, effect: NodeEffect) -> Vec<NodeInput> {
    match effect {
        NodeEffect::PrepareSandbox { job_id, .. } => vec![NodeInput::SandboxReady { job_id, result: Ok(()) }],
        NodeEffect::SpawnProxy { job_id, .. } => {
            vec![NodeInput::ProxyConnected { job_id }, NodeInput::JobStarted { job_id, start_time: now }]
        }
        NodeEffect::Cleanup { job_id, .. } => vec![NodeInput::CleanedUp { job_id, result: Ok(()) }],
        NodeEffect::Send(NodeMessage::Jobs(events)) => {
            let ended = events.into_iter().filter_map(|event| match event {
                JobEvent::Finished(job) => Some(job.identity.job_id),
                _ => None,
            });
            let ended: Vec<JobId> = ended.collect();
            let release = (!ended.is_empty()).then(|| NodeInput::Server(ServerMessage::Release(ended)));
            release.into_iter().collect()
        }
        _ => Vec::new(),
    }
}

pub fn jobs(meter: &mut Meter) {
    let all = Resources { user_slots: SLOTS, cpu: Cpu(100 * SLOTS), memory: 16 << 30, ..Resources::ZERO };
    let mut core = NodeCore::new(Settings::new("node:9012", all));
    let mut now = Time::from_secs(1_000_000);
    let welcome = ServerMessage::Welcome { heartbeat_period: Span::from_secs(5), job_uids: None };
    let orders = ServerMessage::Start((0..JOBS).map(start).collect());
    let mut inputs = vec![NodeInput::Connected, NodeInput::Server(welcome), NodeInput::Server(orders)];
    let mut running: Vec<JobId> = Vec::new();
    while !inputs.is_empty() {
        now += Span::from_millis(10);
        let mut effects = Vec::new();
        meter.measure(|| {
            for input in inputs.drain(..) {
                core.handle(now, input, &mut effects);
            }
            core.flush(now, &mut effects);
        });
        for effect in effects {
            if let NodeEffect::SpawnProxy { job_id, .. } = &effect {
                running.push(*job_id);
            }
            inputs.extend(answers(now, effect));
        }
        if inputs.is_empty() {
            let ends = running.drain(..).map(|job_id| NodeInput::JobEnded { job_id, result: completed(now) });
            inputs.extend(ends);
        }
    }
    assert_eq!(core.job_ids().count(), 0, "every job was run and released");
}

fn completed(now: Time) -> JobResult {
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
