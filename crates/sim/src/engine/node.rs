//! A node: the shipped [`NodeCore`] with hands that always succeed, and the jobs in them.

use super::agent::{Agent, lease_is_over};
use super::cpu::{Cap, Division};
use super::queue::{Due, Queue};
use super::work::{Fate, Physics};
use crate::metrics::Periods;
use crate::scenario::{CpuModel, Models};
use kernel::{Input, NodeKey};
use nodecore::{
    Holds, JobRecord, JobResult, KeptStderr, NodeCore, NodeEffect, NodeInput, ProxyOrder, RecoveredJob,
    Remains, Settings,
};
use std::collections::BTreeMap;
use vocab::planted::{Bug, strikes};
use vocab::{
    AbortReason, Cpu, Failure, InterruptionReason, JobId, JobOutcome, JobStatistics, Resources, Span, Time,
};
use wire::{NodeMessage, ServerMessage, StartJob};
use yson::Map;

/// See the module page.
pub(super) struct Node {
    pub name: String,
    pub number: u32,
    pub group: usize,
    pub core: NodeCore,
    /// Its connection.
    pub key: Option<NodeKey>,
    pub online: bool,
    pub jobs: BTreeMap<JobId, Job>,
    /// The next call that it wants; older wishes in the queue are void.
    pub(super) wake: Option<Time>,
    pub settings: Settings,
    /// Its limits became smaller once: what runs may be more than it has now.
    pub shrunk: bool,
    /// Its cores among its jobs, if that is modelled.
    cpu: Option<Division>,
    /// Jobs may use what their monitor grants, and no more.
    monitor_sets_cap: bool,
    /// Between heartbeats, if it is not what the server says.
    heartbeat_period: Option<Span>,
    /// From the end of a job to the word of its proxy.
    end_delay: Span,
    /// Ends that nobody has heard of yet.
    pub(super) late_ends: BTreeMap<JobId, JobResult>,
    /// When its jobs had more memory than it has.
    pub overcommitted: Periods,
    pub(super) agent: Agent,
    /// What a stopped agent will hear.
    pub(super) inbox: Vec<NodeInput>,
    /// Where leases begin, as proxies without an agent know it.
    pub(super) heard: Span,
    /// Agents may die: what they have written down, and ends that proxies have written down meanwhile.
    pub keeps_records: bool,
    pub(super) records: BTreeMap<JobId, JobRecord>,
    pub(super) results: BTreeMap<JobId, JobResult>,
}

/// A job whose proxy lives.
pub(super) struct Job {
    pub fate: Fate,
    /// Its unit, and how long it may go on without word from the server.
    pub unit: (vocab::OperationId, std::sync::Arc<str>, u32),
    pub lease: Option<Span>,
    pub start: Option<Time>,
    interrupted: Option<InterruptionReason>,
    /// Cores that it was granted with what it may use, and options of their monitor.
    hard: (Cpu, Cap),
    options: Map,
    /// It has reached its peak.
    peaked: bool,
}

/// What nodes need of the world.
pub(super) struct Around<'a> {
    pub now: Time,
    pub queue: &'a mut Queue,
    /// To the server.
    pub inputs: &'a mut Vec<Input>,
    pub physics: &'a mut Physics,
    pub counts: &'a mut Counts,
}

/// How much was done.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Heartbeats with words.
    pub heartbeats_processed: u64,
    /// Heartbeats that say just what the last one said.
    pub heartbeats_elided: u64,
    /// Jobs that nodes were told to start.
    pub jobs_ordered: u64,
}

impl Node {
    pub fn new(
        number: u32,
        group: usize,
        settings: Settings,
        heartbeat_period: Option<Span>,
        models: Models,
        monitor_sets_cap: bool,
    ) -> Node {
        let name = settings.address.clone();
        let coarse = match models.cpu {
            CpuModel::Coarse(period) => Some(period),
            _ => None,
        };
        let cores = settings.resource_limits.cpu.as_f64();
        let mut own = settings.clone();
        if strikes(Bug::TwiceTheCores, 1) {
            own.resource_limits.cpu.0 *= 2;
        }
        let core = NodeCore::new(own);
        Node {
            name,
            number,
            group,
            core,
            key: None,
            online: true,
            jobs: BTreeMap::new(),
            wake: None,
            settings,
            shrunk: false,
            cpu: (models.cpu != CpuModel::Off).then(|| Division::new(cores, coarse)),
            monitor_sets_cap,
            heartbeat_period,
            end_delay: models.delays.job_end_to_scheduler,
            late_ends: BTreeMap::new(),
            overcommitted: Periods::default(),
            agent: Agent::default(),
            inbox: Vec::new(),
            heard: Span::ZERO,
            keeps_records: false,
            records: BTreeMap::new(),
            results: BTreeMap::new(),
        }
    }

    /// Opens a connection.
    pub fn connect(&mut self, key: NodeKey, around: &mut Around<'_>) {
        self.key = Some(key);
        self.tell(NodeInput::Connected, around);
    }

    /// The server is gone; the jobs go on.
    pub fn disconnected(&mut self, around: &mut Around<'_>) {
        self.key = None;
        if self.online {
            self.tell(NodeInput::Disconnected, around);
        }
    }

    /// All processes die; the next life has another incarnation and nothing in its hands.
    pub fn break_down(&mut self, now: Time) {
        self.online = false;
        self.overcommitted.now(now, false);
        self.jobs.clear();
        self.late_ends.clear();
        if let Some(cpu) = &mut self.cpu {
            cpu.clear();
        }
        self.wake = None;
        self.agent = Agent::default();
        self.inbox.clear();
        self.records.clear();
        self.results.clear();
        self.settings.incarnation += 1;
        self.core = NodeCore::new(self.settings.clone());
    }

    /// The agent is asked to end with its jobs.
    pub fn shut_down(&mut self, around: &mut Around<'_>) {
        self.tell(NodeInput::StopJobs, around);
    }

    /// The agent starts and finds jobs whose processes have run for so long.
    pub fn wake_up_with(&mut self, jobs: Vec<(StartJob, Span)>, around: &mut Around<'_>) {
        let now = around.now;
        let (mut found, mut ids, mut gpus) = (Vec::new(), Vec::new(), 0..);
        for (slot, (start, ran)) in (0..).zip(jobs) {
            let id = start.identity.job_id;
            let began = Time(now.0.saturating_sub(ran.0));
            let mut fate = around.physics.fate(&start, self.group, &self.name);
            let mut seen = 0;
            while let Some((_, bytes)) = fate.steps.pop_if(|(after, _)| *after <= ran) {
                seen = bytes;
            }
            // What is left of it; one that should have ended ends now.
            let left = Span(fate.runs_for.0.saturating_sub(ran.0).max(1));
            let cores = start.resources.cpu;
            let (hard, options) = ((cores, self.cap(&start)), start.description.cpu_monitor.clone());
            match (&mut self.cpu, fate.curve.take()) {
                (Some(cpu), Some(curve)) => cpu.start(now, id, curve, left, hard, &options),
                _ => around.queue.push(now + left, Due::JobEnds(self.number, id)),
            }
            if let Some((after, _)) = fate.steps.last() {
                around.queue.push(began + *after, Due::MemoryStep(self.number, id));
            }
            let peaked = fate.steps.is_empty();
            let (unit, lease) = (unit_of(&start), start.lease);
            let start_time = Some(began);
            self.jobs.insert(
                id,
                Job { fate, unit, lease, start: start_time, interrupted: None, hard, options, peaked },
            );
            let record = JobRecord {
                gpus: gpus.by_ref().take(start.resources.gpu as usize).collect(),
                start: start.into(),
                accepted_time: began,
                acquired_time: began,
                slot,
                ports: Vec::new(),
                fetched_time: None,
                preparation: Default::default(),
                end: None,
            };
            let holds = Some(Holds { cpu: cores, total_peak: seen });
            let fate = nodecore::Fate::Alive { start_time: Some(began), holds };
            found.push(RecoveredJob { record, fate, survivors: false });
            ids.push(id);
        }
        self.tell(NodeInput::Recovered(found), around);
        for job_id in ids {
            self.tell(NodeInput::ProxyConnected { job_id }, around);
        }
    }

    pub fn set_limits(&mut self, limits: Resources, around: &mut Around<'_>) {
        self.shrunk |= !limits.dominates(&self.settings.resource_limits);
        self.settings.resource_limits = limits;
        if let Some(cpu) = &mut self.cpu {
            cpu.set_cores(around.now, limits.cpu.as_f64());
        }
        self.tell(NodeInput::ResourceLimits(limits), around);
        self.wake = Some(around.now);
        around.queue.push(around.now, Due::NodeWakes(self.number));
    }

    /// A message of the server.
    pub fn hear(&mut self, message: ServerMessage, around: &mut Around<'_>) {
        if let ServerMessage::Start(starts) = &message {
            around.counts.jobs_ordered += starts.len() as u64;
        }
        let message = match (message, self.heartbeat_period) {
            (ServerMessage::Welcome { job_uids, .. }, Some(heartbeat_period)) => {
                ServerMessage::Welcome { heartbeat_period, job_uids }
            }
            (message, _) => message,
        };
        self.tell(NodeInput::Server(message), around);
    }

    /// The time has come that it named, unless it has named another one since.
    pub fn wake(&mut self, around: &mut Around<'_>, shortcuts: bool) {
        // The clock may have jumped over its time.
        if !self.online || !self.agent_lives() || self.wake.is_none_or(|at| at > around.now) {
            return;
        }
        self.core.set_since_boot(Span(around.now.0));
        if shortcuts && let (Some(key), Some(next)) = (self.key, self.core.skip_heartbeat(around.now)) {
            around.counts.heartbeats_elided += 1;
            around.inputs.push(Input::NodeUnchanged(key));
            // The answer would be as empty as the heartbeat.
            self.core.confirm(Span(around.now.0));
            self.wake = Some(next);
            around.queue.push(next, Due::NodeWakes(self.number));
            return;
        }
        self.wake = None;
        self.tell(NodeInput::Wake, around);
    }

    /// Tells the core, and does what it wants until it wants no more.
    pub(super) fn tell(&mut self, input: NodeInput, around: &mut Around<'_>) {
        match self.agent {
            Agent::Lives => {}
            Agent::Stopped => return self.inbox.push(input),
            Agent::Dead => {
                if let NodeInput::JobEnded { job_id, result } = input {
                    self.results.insert(job_id, result);
                }
                return;
            }
        }
        let mut effects = Vec::new();
        self.core.set_since_boot(Span(around.now.0));
        self.core.handle(around.now, input, &mut effects);
        loop {
            let mut answers = Vec::new();
            for effect in effects.drain(..) {
                self.act(effect, &mut answers, around);
            }
            if answers.is_empty() {
                self.core.flush(around.now, &mut effects);
                if effects.is_empty() {
                    break;
                }
            }
            for answer in answers {
                self.core.handle(around.now, answer, &mut effects);
            }
        }
        let (holds, has) = (self.core.ledger().acquired().memory, self.settings.resource_limits.memory);
        self.overcommitted.now(around.now, self.online && holds > has);
        self.settle_cpu(around);
    }

    fn settle_cpu(&mut self, around: &mut Around<'_>) {
        if let Some((at, number)) = self.cpu.as_mut().and_then(|cpu| cpu.settle(around.now)) {
            around.queue.push(at, Due::CpuMoves(self.number, number));
        }
    }

    /// A step of a curve, a check of a monitor, or the end of a job's work.
    pub fn cpu_moves(&mut self, number: u32, around: &mut Around<'_>) {
        let Some(cpu) = &mut self.cpu else { return };
        let happened = cpu.wake(around.now, number);
        // New guarantees of one instant go out together (5.7).
        for (job_id, cores) in happened.moved {
            self.tell(NodeInput::JobUsage { job_id, cpu: Some(cores), total_peak: None }, around);
        }
        for id in happened.ended {
            self.job_ends(id, around);
        }
        self.settle_cpu(around);
    }

    fn act(&mut self, effect: NodeEffect, answers: &mut Vec<NodeInput>, around: &mut Around<'_>) {
        let now = around.now;
        match effect {
            NodeEffect::Send(message) => {
                if matches!(message, NodeMessage::Heartbeat(_)) {
                    around.counts.heartbeats_processed += 1;
                }
                let is_deaf = matches!(message, NodeMessage::Jobs(_)) && strikes(Bug::DeafServer, 1);
                if let Some(node) = self.key.filter(|_| !is_deaf) {
                    around.inputs.push(Input::Node { node, message });
                }
            }
            NodeEffect::WakeAt(at) => {
                let at = at.max(now);
                if self.wake != Some(at) {
                    self.wake = Some(at);
                    around.queue.push(at, Due::NodeWakes(self.number));
                }
            }
            NodeEffect::ProbePorts { job_id, .. } => {
                answers.push(NodeInput::PortsProbed { job_id, busy: Vec::new() });
            }
            NodeEffect::FetchArtifact { job_id, artifact } => {
                let supply = nodecore::Supply { source: nodecore::Source::Cache, size: artifact.size };
                answers.push(NodeInput::ArtifactFetched { job_id, result: Ok(supply) });
            }
            NodeEffect::PrepareSandbox { job_id, .. } => {
                answers.push(NodeInput::SandboxReady { job_id, result: Ok(()) });
            }
            NodeEffect::SpawnProxy { job_id, start, .. } => {
                answers.push(NodeInput::ProxyConnected { job_id });
                self.spawn(job_id, &start, answers, around);
            }
            NodeEffect::ProxySend(job_id, order) => self.order(job_id, order, answers, around),
            NodeEffect::KillContainer(job_id) => {
                self.jobs.remove(&job_id);
                self.late_ends.remove(&job_id);
                if let Some(cpu) = &mut self.cpu {
                    cpu.stop(now, job_id);
                }
                answers.push(NodeInput::ContainerKilled { job_id, result: Ok(Remains::default()) });
            }
            NodeEffect::Cleanup { job_id, .. } => {
                answers.push(NodeInput::CleanedUp { job_id, result: Ok(()) });
            }
            NodeEffect::FetchRows { job_id, .. } => {
                let supply = nodecore::Supply { source: nodecore::Source::Rows, size: 0 };
                answers.push(NodeInput::ArtifactFetched { job_id, result: Ok(supply) });
            }
            NodeEffect::Upload { job_id, .. } => {
                answers.push(NodeInput::Uploaded { job_id, result: Ok(()) });
            }
            NodeEffect::WriteRecord(record) => {
                if self.keeps_records {
                    self.records.insert(record.start.identity.job_id, *record);
                }
            }
            NodeEffect::RemoveRecord { job_id, .. } => drop(self.records.remove(&job_id)),
            NodeEffect::ReadStderr { .. }
            | NodeEffect::AskShell { .. }
            | NodeEffect::LeaseIsHalfOver { .. }
            | NodeEffect::KeepConfirmed { .. } => {}
            // Each node has a host of its own.
            NodeEffect::ClaimUids(_) => answers.push(NodeInput::UidsClaimed(Ok(()))),
        }
    }

    fn spawn(&mut self, id: JobId, start: &StartJob, answers: &mut Vec<NodeInput>, around: &mut Around<'_>) {
        let fate = around.physics.fate(start, self.group, &self.name);
        let delay = fate.start_delay;
        let hard = (start.resources.cpu, self.cap(start));
        let options = start.description.cpu_monitor.clone();
        let (unit, lease) = (unit_of(start), start.lease);
        self.jobs.insert(
            id,
            Job { fate, unit, lease, start: None, interrupted: None, hard, options, peaked: false },
        );
        if delay == Span::ZERO {
            answers.extend(self.begin(id, around));
        } else {
            around.queue.push(around.now + delay, Due::JobStarts(self.number, id));
        }
    }

    /// What a job may use here.
    fn cap(&self, start: &StartJob) -> Cap {
        match start.description.cpu_cap {
            _ if self.monitor_sets_cap => Cap::Guarantee,
            Some(cores) => Cap::Cores(cores.as_f64()),
            None => Cap::None,
        }
    }

    /// The user's process starts.
    fn begin(&mut self, id: JobId, around: &mut Around<'_>) -> Option<NodeInput> {
        let lease = self.jobs.get(&id).filter(|job| job.start.is_none())?.lease;
        if let Some(lease) = lease.filter(|lease| self.is_over(*lease, around.now)) {
            return self.ended(id, lease_is_over(lease), around);
        }
        let job = self.jobs.get_mut(&id)?;
        let now = around.now;
        job.start = Some(now);
        match (&mut self.cpu, job.fate.curve.take()) {
            (Some(cpu), Some(curve)) => cpu.start(now, id, curve, job.fate.runs_for, job.hard, &job.options),
            _ => around.queue.push(now + job.fate.runs_for, Due::JobEnds(self.number, id)),
        }
        if let Some((after, _)) = job.fate.steps.last() {
            around.queue.push(now + *after, Due::MemoryStep(self.number, id));
        }
        Some(NodeInput::JobStarted { job_id: id, start_time: now })
    }

    pub fn job_starts(&mut self, id: JobId, around: &mut Around<'_>) {
        if let Some(input) = self.begin(id, around) {
            self.tell(input, around);
        }
    }

    pub fn memory_step(&mut self, id: JobId, around: &mut Around<'_>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let (Some(start), Some((_, bytes))) = (job.start, job.fate.steps.pop()) else { return };
        job.peaked = job.fate.steps.is_empty();
        if let Some((after, _)) = job.fate.steps.last() {
            around.queue.push(start + *after, Due::MemoryStep(self.number, id));
        }
        self.tell(NodeInput::JobUsage { job_id: id, cpu: None, total_peak: Some(bytes) }, around);
    }

    /// The proxy says that a job is over.
    pub fn end_is_heard(&mut self, id: JobId, around: &mut Around<'_>) {
        if let Some(result) = self.late_ends.remove(&id) {
            self.tell(NodeInput::JobEnded { job_id: id, result }, around);
        }
    }

    /// The end that was its fate from the beginning.
    pub fn job_ends(&mut self, id: JobId, around: &mut Around<'_>) {
        let Some(job) = self.jobs.get(&id) else { return };
        let outcome = match &job.fate.failure {
            Some(why) => {
                JobOutcome::Failed { error: Failure::new("User job failed").because(Failure::new(*why)) }
            }
            None => JobOutcome::Completed { interrupted: job.interrupted, restart_needed: false },
        };
        self.end(id, outcome, around);
    }

    /// It was asked to stop, and does: what is not done is done by the next run.
    pub fn job_yields(&mut self, id: JobId, around: &mut Around<'_>) {
        let Some(job) = self.jobs.get(&id) else { return };
        // Lack of CPU has slowed it down.
        let worked = self.cpu.as_ref().and_then(|cpu| cpu.worked(around.now, id));
        let done = worked.unwrap_or_else(|| job.start.map_or(Span::ZERO, |start| around.now.since(start)));
        around.physics.keep_rest(&job.fate, done);
        around.physics.told.yielded.insert(id);
        let outcome = JobOutcome::Completed { interrupted: job.interrupted, restart_needed: true };
        self.end(id, outcome, around);
    }

    pub(super) fn end(&mut self, id: JobId, outcome: JobOutcome, around: &mut Around<'_>) {
        match self.ended(id, outcome, around) {
            Some(NodeInput::JobEnded { job_id, result }) if self.end_delay > Span::ZERO => {
                self.late_ends.insert(job_id, result);
                around.queue.push(around.now + self.end_delay, Due::EndIsHeard(self.number, id));
                self.settle_cpu(around);
            }
            Some(input) => self.tell(input, around),
            None => {}
        }
    }

    fn ended(&mut self, id: JobId, outcome: JobOutcome, around: &mut Around<'_>) -> Option<NodeInput> {
        let job = self.jobs.remove(&id)?;
        let exec = job.start.map_or(Span::ZERO, |start| around.now.since(start));
        let ended_well = matches!(outcome, JobOutcome::Completed { .. });
        let peak = if job.peaked || ended_well || job.fate.failure.is_some() { job.fate.peak } else { 0 };
        let figures = self.cpu.as_mut().and_then(|cpu| cpu.stop(around.now, id));
        let cpu_s = figures.map_or(exec.as_secs_f64() * job.fate.cpu_used, |figures| figures.used);
        let cpu = Span::from_micros((cpu_s * 1e6) as u64);
        if let Some(figures) = figures {
            around.physics.told.cpu.insert(id, figures);
        }
        let statistics = JobStatistics {
            exec,
            user_job_cpu_user: cpu,
            user_job_max_memory: peak,
            user_job_peak_memory: peak,
            job_proxy_max_memory: if peak > 0 { job.fate.proxy_memory } else { 0 },
            ..JobStatistics::default()
        };
        let result = JobResult {
            outcome,
            start_time: job.start,
            finish_time: around.now,
            statistics,
            stderr_size: 0,
            stderr: KeptStderr::None,
            survivors: false,
            fail_context_size: 0,
        };
        Some(NodeInput::JobEnded { job_id: id, result })
    }

    fn order(&mut self, id: JobId, order: ProxyOrder, answers: &mut Vec<NodeInput>, around: &mut Around<'_>) {
        if self.late_ends.contains_key(&id) {
            // It is over already; its proxy says so soon.
            return;
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        match order {
            ProxyOrder::Interrupt { reason, timeout, .. } => {
                let takes = job.fate.interrupt_time;
                job.interrupted = Some(reason);
                around.physics.told.asked.entry(id).or_insert(around.now);
                // Otherwise the node's own deadline aborts it.
                if takes <= timeout {
                    around.queue.push(around.now + takes, Due::JobYields(self.number, id));
                }
            }
            ProxyOrder::Abort { reason, text } => {
                answers.extend(self.ended(id, aborted(reason, text), around));
            }
            ProxyOrder::Fail { error } => {
                let failure = Failure::new("Job failed by external request");
                let error = error.map_or(failure.clone(), |inner| failure.because(inner));
                answers.extend(self.ended(id, JobOutcome::Failed { error }, around));
            }
            // An agent that lives keeps the leases.
            ProxyOrder::Heard { .. } => {}
        }
    }
}

fn unit_of(start: &StartJob) -> (vocab::OperationId, std::sync::Arc<str>, u32) {
    let id = &start.identity;
    (id.operation_id, id.task.clone(), id.cookie)
}

fn aborted(reason: AbortReason, text: String) -> JobOutcome {
    JobOutcome::Aborted { reason, error: Failure::new(text).with("abort_reason", reason) }
}
