//! The state and the front door.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashSet;
use vocab::{AbortReason, Failure, JobId, JobOutcome, Resources, Time};
use wire::{JobEvent, NodeMessage, ServerMessage, StartJob};

use crate::disk::DiskLedger;
use crate::job::{Job, Stage};
use crate::lease::Leases;
use crate::mistrust::Mistrust;
use crate::overdraft::Overdraft;
use crate::registration::Registration;
use crate::timers::Timers;
use crate::uids::UidClaim;
use crate::{IndexPool, Ledger, NodeEffect, NodeInput, PortPool, Settings};

/// The node's logic. See the crate's front page for the calls.
#[derive(Debug)]
pub struct NodeCore {
    pub(crate) settings: Settings,
    pub(crate) ledger: Ledger,
    pub(crate) slots: IndexPool,
    pub(crate) gpus: IndexPool,
    pub(crate) ports: PortPool,
    pub(crate) disk: DiskLedger,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    /// Jobs without resources, in the order of acceptance.
    pub(crate) waiting: VecDeque<JobId>,
    pub(crate) mistrust: Mistrust,
    pub(crate) uids: UidClaim,
    /// Free memory of the host when it was last looked at, less what was asked for by jobs that have
    /// started since; none: it does not matter.
    pub(crate) free_memory: Option<i64>,
    /// Something was freed, or somebody came: look at `waiting` again.
    pub(crate) look_at_waiting: bool,
    /// Released jobs of the last minute, oldest first (9.4).
    removed: VecDeque<(Time, JobId)>,
    removed_ids: FxHashSet<JobId>,
    pub(crate) timers: Timers,
    pub(crate) overdraft: Overdraft,
    pub(crate) registration: Registration,
    pub(crate) leases: Leases,
    /// News that the next flush sends.
    pub(crate) outbox: Vec<JobEvent>,
    /// When the first of them came.
    pub(crate) outbox_since: Option<Time>,
    /// Alerts that arose here, beside those of the settings.
    pub(crate) alerts: Vec<Failure>,
    /// Until then nobody has to go because of memory pressure.
    pub(crate) pressure_until: Option<Time>,
    stopping: bool,
    pub(crate) last_wake: Option<Time>,
    /// Nothing came in since the last heartbeat.
    pub(crate) nothing_new: bool,
}

impl NodeCore {
    /// A node without jobs; if there were some, tell it by [`NodeInput::Recovered`] first of all.
    pub fn new(settings: Settings) -> NodeCore {
        NodeCore {
            ledger: Ledger::new(settings.resource_limits),
            ports: PortPool::new(settings.start_port, settings.port_count, begin_of(&settings.address)),
            disk: DiskLedger::new(settings.disk_capacity),
            settings,
            slots: IndexPool::default(),
            gpus: IndexPool::default(),
            jobs: BTreeMap::new(),
            waiting: VecDeque::new(),
            mistrust: Mistrust::default(),
            uids: UidClaim::default(),
            free_memory: None,
            look_at_waiting: false,
            removed: VecDeque::new(),
            removed_ids: FxHashSet::default(),
            timers: Timers::default(),
            overdraft: Overdraft::default(),
            registration: Registration::default(),
            leases: Leases::default(),
            outbox: Vec::new(),
            outbox_since: None,
            alerts: Vec::new(),
            pressure_until: None,
            stopping: false,
            last_wake: None,
            nothing_new: false,
        }
    }

    /// Takes one input. Call [`NodeCore::flush`] after the last one of a batch.
    pub fn handle(&mut self, now: Time, input: NodeInput, fx: &mut Vec<NodeEffect>) {
        // The answer to a heartbeat is no news.
        self.nothing_new &= matches!(input, NodeInput::Server(ServerMessage::Heard { .. }));
        match input {
            NodeInput::Recovered(jobs) => self.recover(now, jobs, fx),
            NodeInput::Connected => self.connected(fx),
            NodeInput::Disconnected => self.disconnected(),
            NodeInput::Server(message) => self.server(now, message, fx),
            NodeInput::Wake => self.wake(now, fx),
            NodeInput::RecordFailed { job_id, error } => {
                self.stop(now, job_id, aborted(AbortReason::Other, error), fx);
            }
            NodeInput::UidsClaimed(result) => self.uids_claimed(now, result),
            NodeInput::PortsProbed { job_id, busy } => self.ports_probed(now, job_id, &busy, fx),
            NodeInput::ArtifactFetched { job_id, result } => self.artifact_fetched(now, job_id, result, fx),
            NodeInput::SandboxReady { job_id, result } => self.sandbox_ready(now, job_id, result, fx),
            NodeInput::SpawnFailed { job_id, error } => self.spawn_failed(now, job_id, error, fx),
            NodeInput::ProxyConnected { job_id } => self.proxy_connected(now, job_id, fx),
            NodeInput::JobStarted { job_id, start_time } => self.job_started(job_id, start_time),
            NodeInput::JobProgress { job_id, statistics, stderr_size } => {
                self.job_progress(job_id, statistics, stderr_size);
            }
            NodeInput::JobUsage { job_id, cpu, total_peak } => {
                self.job_usage(now, job_id, cpu, total_peak, fx);
            }
            NodeInput::JobEnded { job_id, result } => self.job_ended(now, job_id, result, fx),
            NodeInput::ProxyLost { job_id, outcome } => self.proxy_lost(now, job_id, outcome, fx),
            NodeInput::ContainerKilled { job_id, result } => self.container_killed(now, job_id, result, fx),
            NodeInput::Uploaded { job_id, result } => self.uploaded(job_id, result, fx),
            NodeInput::CleanedUp { job_id, result } => self.cleaned_up(now, job_id, result, fx),
            NodeInput::ResourceLimits(limits) => self.set_limits(limits),
            NodeInput::FreeMemory(bytes) => self.host_has_free(bytes),
            NodeInput::FaultPassed(message) => self.settings.alerts.retain(|alert| alert.message != message),
            NodeInput::MemoryPressure => self.relieve_pressure(now, fx),
            NodeInput::StopJobs => self.stop_jobs(now, fx),
        }
        self.watch_overdraft(now);
        self.watch_aborts(now);
        self.check_leases(now, fx);
        self.start_waiting(now, fx);
    }

    /// Sends what has gathered and names the next time to wake up.
    pub fn flush(&mut self, now: Time, fx: &mut Vec<NodeEffect>) {
        let held_until = self.starts_held_until(now);
        if held_until.is_none() {
            self.send_news(fx);
        }
        self.forget_old_removals(now);
        let wake = [
            self.timers.next(),
            self.registration.next_heartbeat(),
            self.overdraft.next(&self.settings),
            self.mistrust.ends(),
            self.uids.next_claim(),
            held_until,
            self.leases.wake(now),
        ]
        .into_iter()
        .flatten()
        .min();
        if wake != self.last_wake {
            self.last_wake = wake;
            fx.extend(wake.map(NodeEffect::WakeAt));
        }
    }

    fn server(&mut self, now: Time, message: ServerMessage, fx: &mut Vec<NodeEffect>) {
        match message {
            ServerMessage::Welcome { heartbeat_period, job_uids } => {
                self.welcome(now, heartbeat_period, fx);
                self.claim_uids(job_uids, fx);
            }
            ServerMessage::Refuse(_) => self.disconnected(),
            ServerMessage::Heard { from, extended_until } => self.heard(from, extended_until, fx),
            ServerMessage::Start(jobs) => jobs.into_iter().for_each(|job| self.start(now, job, fx)),
            ServerMessage::Abort(jobs) => jobs.into_iter().for_each(|order| self.abort(now, order, fx)),
            ServerMessage::Interrupt { job_id, timeout, reason, text } => {
                self.interrupt(now, job_id, timeout, reason, text, fx);
            }
            ServerMessage::Fail { job_id, error } => self.fail(now, job_id, error, fx),
            ServerMessage::Release(jobs) => jobs.into_iter().for_each(|id| self.release(now, id, fx)),
            ServerMessage::ReadStderr { request_id, job_id, offset, limit } => {
                self.read_stderr(request_id, job_id, offset, limit, fx);
            }
            ServerMessage::Shell { request_id, job_id, request } => {
                self.ask_shell(request_id, job_id, request, fx);
            }
        }
    }

    /// A new job, or one that we know: the server may repeat itself after a reconnection.
    fn start(&mut self, now: Time, start: StartJob, fx: &mut Vec<NodeEffect>) {
        let id = start.identity.job_id;
        if let Some(job) = self.jobs.get(&id) {
            if let (true, Some(end)) = (job.is_reportable(), &job.end) {
                self.outbox.push(JobEvent::Finished(end.clone()));
            }
            return;
        }
        if self.was_removed(id) {
            return;
        }
        let mut job = Job::new(Arc::new(start), now);
        self.leases.insert(&job.start);
        fx.extend(self.leases.take_news());
        self.ledger.enqueue(job.usage);
        let timeout = job.waiting_timeout(&self.settings);
        self.timers.set(&mut job, Some(now + timeout));
        self.jobs.insert(id, job);
        self.waiting.push_back(id);
        self.look_at_waiting = true;
        if self.stopping {
            let error = Failure::new("Node is shutting down");
            self.stop(now, id, aborted(AbortReason::NodeOffline, error), fx);
        }
    }

    fn wake(&mut self, now: Time, fx: &mut Vec<NodeEffect>) {
        self.last_wake = None;
        while let Some(id) = self.timers.pop_due(now) {
            if let Some(job) = self.jobs.get_mut(&id) {
                job.deadline = None;
                self.deadline_passed(now, id, fx);
            }
        }
        self.adjust_to_limits(now, fx);
        self.claim_uids_again(now, fx);
        // Before the heartbeat, which says what is offered from now on.
        self.watch_aborts(now);
        self.heartbeat(now, fx);
    }

    fn set_limits(&mut self, limits: Resources) {
        self.settings.resource_limits = limits;
        self.ledger.set_limits(limits);
        self.look_at_waiting = true;
    }

    fn stop_jobs(&mut self, now: Time, fx: &mut Vec<NodeEffect>) {
        self.stopping = true;
        // First of all, so that the ends of our jobs do not bring new ones.
        if self.registration.is_registered() {
            fx.push(NodeEffect::Send(NodeMessage::Leaving));
        }
        let living: Vec<JobId> =
            self.jobs.iter().filter(|(_, job)| job.end.is_none()).map(|(id, _)| *id).collect();
        for id in living {
            let error = Failure::new("Node is shutting down");
            self.stop(now, id, aborted(AbortReason::NodeOffline, error), fx);
        }
    }

    /// Forgets a job altogether, but for its id.
    pub(crate) fn remove(&mut self, now: Time, id: JobId, fx: &mut Vec<NodeEffect>) {
        let Some(mut job) = self.jobs.remove(&id) else { return };
        self.leases.remove(&job.start);
        self.timers.set(&mut job, None);
        if let Some(slot) = job.slot {
            fx.push(NodeEffect::RemoveRecord { job_id: id, slot });
            if job.room != crate::job::Room::Broken {
                self.slots.give_back(slot);
            }
        }
        self.removed.push_back((now, id));
        self.removed_ids.insert(id);
    }

    /// Released within the last minute: an order about it has crossed with the server's release.
    pub(crate) fn was_removed(&self, id: JobId) -> bool {
        self.removed_ids.contains(&id)
    }

    fn forget_old_removals(&mut self, now: Time) {
        while let Some(&(time, id)) = self.removed.front()
            && now.since(time) > self.settings.recently_removed_jobs_store_timeout
        {
            self.removed.pop_front();
            self.removed_ids.remove(&id);
        }
    }

    /// The ledger, for display and tests.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
    /// What the core was told at its birth, with the limits of today.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
    /// Jobs of which something may still live.
    pub fn living_jobs(&self) -> usize {
        self.jobs.values().filter(|job| job.end.is_none() || job.stage == Stage::Killing).count()
    }
    /// All jobs that are known: living, and finished but not released.
    pub fn job_ids(&self) -> impl Iterator<Item = JobId> {
        self.jobs.keys().copied()
    }
    /// Slots that are not free.
    pub fn slots_taken(&self) -> usize {
        self.slots.taken()
    }
    /// Alerts that the node has raised itself, beside those of its settings.
    pub fn alerts(&self) -> &[Failure] {
        &self.alerts
    }
    /// Ports given to jobs.
    pub fn ports(&self) -> &PortPool {
        &self.ports
    }
    /// Bytes of disk promised to jobs.
    pub fn promised_disk(&self) -> i64 {
        self.disk.promised()
    }
    /// Is the job known?
    pub fn knows(&self, id: JobId) -> bool {
        self.jobs.contains_key(&id)
    }
    /// Does the server listen?
    pub fn is_registered(&self) -> bool {
        self.registration.is_registered()
    }
}

/// An abort with the attribute that the classification of results looks for (3.8).
pub(crate) fn aborted(reason: AbortReason, error: Failure) -> JobOutcome {
    JobOutcome::Aborted { reason, error: error.with("abort_reason", reason) }
}

/// Where in its range a node begins to give away ports: elsewhere than others of the same host.
fn begin_of(address: &str) -> u64 {
    address.bytes().fold(0, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)))
}
