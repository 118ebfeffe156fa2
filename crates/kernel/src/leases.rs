//! Exclusive work and nodes that are not heard (S19).
//!
//! A unit of exclusive work must not run twice at once. Its jobs have leases ([`vocab::lease`]): a job proxy stops its job when
//! the server has not confirmed for that long that it hears the node. So the kernel
//!
//! - confirms heartbeats of nodes that run such jobs ([`Kernel::acknowledge`]),
//! - keeps the job of a lost node until its lease and a margin are over; a node that is back before that goes on with it,
//! - fences the unit of a job that was given up before its node has told the end ([`Fence`]),
//! - revives an exclusive operation of the life before only when every node of that life is back, or leases that were given
//!   then must be over: which of its units run there is not stored.
//!
//! An administrator can extend all leases before planned work, and can say that a node is lost for certain.

use crate::nodes::{Node, NodeSettings};
use crate::{Effect, Kernel, Topic};
use std::collections::{BTreeMap, BTreeSet};
use vocab::batch::Table;
use vocab::lease::{MAX_LEASE, margin};
use vocab::planted::{Bug, strikes};
use vocab::{
    AbortReason, Failure, InterruptionReason, JobId, JobIdentity, JobOutcome, OperationId, Span, Time,
};
use wire::{Hello, JobReport, ServerMessage};
use yson::{Map, Value};

/// Key of the time to which leases are extended, in `Table::Meta`.
const KEY: &[u8] = b"leases_extended_until";
/// Attribute of the error of a job that has stopped at the end of its lease: the length of that, milliseconds.
const LEASE_PERIOD: &str = "lease_period";
/// The alert about such jobs goes away this long after the newest of them.
const STOPPED_SHOWN: Span = Span::from_secs(86_400);
/// Jobs that this alert counts.
const STOPPED_KEPT: usize = 10_000;
/// Units that are named in answers about one operation.
const WAITS_SHOWN: usize = 20;
/// Longest time by which leases can be extended.
const MAX_EXTENSION: Span = Span::from_secs(7 * 86_400);

/// A job that was given up and may still run on its node: its unit is not started again before its end.
#[derive(Clone, PartialEq, Debug)]
struct Fence {
    operation: OperationId,
    node: String,
    lease: Span,
    /// The node has spoken of the job, so its silence about it means that the job is over.
    confirmed: bool,
    /// Nothing but time ends the fence: the agent that ran the job is gone for good, and its successor knows nothing of it.
    until: Option<Time>,
}

/// See the module page.
#[derive(Default)]
pub(crate) struct Leases {
    /// The server counts as heard until then: leases begin then. Durable.
    extended_until: Time,
    /// The batch that has it.
    extension_seq: crate::Seq,
    fences: BTreeMap<JobId, Fence>,
    by_node: BTreeMap<String, BTreeSet<JobId>>,
    /// Lost nodes that may still run exclusive jobs.
    silent: BTreeSet<String>,
    /// Nodes whose newest agents do not know the jobs of the agents before them (`Node::distrusted_until`).
    pub distrusted: BTreeSet<String>,
    /// Jobs of a node that another node reports, and the time of its newest report: the agent was given another name.
    elsewhere: BTreeMap<JobId, (String, Time)>,
    /// Operations of the life before that wait for nodes of that life.
    pub held_back: BTreeSet<OperationId>,
    /// Jobs that have stopped at the end of their leases, and when the newest of them was reported.
    stopped: BTreeSet<JobId>,
    stopped_on: BTreeSet<String>,
    stopped_at: Time,
}

impl Leases {
    /// Takes a record of `Table::Meta`, if it is that of the extension.
    pub fn restore(&mut self, key: &[u8], value: &[u8]) {
        if key == KEY
            && let Ok(bytes) = value.try_into()
        {
            self.extended_until = Time(u64::from_be_bytes(bytes));
        }
    }

    /// Time at which a unit may be given away whose node was heard last at `heard`.
    fn over_at(&self, heard: Time, lease: Span) -> Time {
        heard.max(self.extended_until) + lease + margin(lease)
    }

    /// Time at which the unit of a job may be given away whose node was heard last at `heard`.
    fn job_over_at(&self, job_id: JobId, heard: Time, lease: Span) -> Time {
        let elsewhere = self.elsewhere.get(&job_id).map_or(Time::ZERO, |(_, reported)| *reported);
        self.over_at(heard.max(elsewhere), lease)
    }

    /// Jobs that were given up and may still run on a node.
    fn fenced_on(&self, node: &str) -> impl Iterator<Item = JobId> {
        self.by_node.get(node).into_iter().flatten().copied()
    }

    /// Whether a node may still run a job that was given up.
    pub fn has_fence_on(&self, node: &str) -> bool {
        self.by_node.contains_key(node)
    }

    /// The node that may still run a job that was given up.
    pub fn node_of_fence(&self, job_id: JobId) -> Option<&str> {
        self.fences.get(&job_id).map(|fence| fence.node.as_str())
    }

    /// The operation of a job that was given up and may still run.
    pub fn operation_of_fence(&self, job_id: JobId) -> Option<OperationId> {
        self.fences.get(&job_id).map(|fence| fence.operation)
    }

    fn insert(&mut self, job_id: JobId, fence: Fence) {
        self.by_node.entry(fence.node.clone()).or_default().insert(job_id);
        self.fences.insert(job_id, fence);
    }

    fn remove(&mut self, job_id: JobId) -> Option<Fence> {
        let fence = self.fences.remove(&job_id)?;
        if let Some(jobs) = self.by_node.get_mut(&fence.node) {
            jobs.remove(&job_id);
            if jobs.is_empty() {
                self.by_node.remove(&fence.node);
            }
        }
        Some(fence)
    }
}

impl Kernel {
    /// The lease of jobs of a task of an operation; `None` if its units may run twice at once.
    pub(crate) fn lease_of(&self, operation: OperationId, task: &str) -> Option<Span> {
        let operation = self.operations.get(&operation)?;
        operation.lease.filter(|_| operation.controller.is_exclusive(task))
    }

    /// Lease of the jobs of an operation that begins now; it keeps it for its life.
    pub(crate) fn new_lease(&self, spec: &controller::OperationSpec) -> Option<Span> {
        let is_exclusive = spec.tasks.iter().any(|task| task.exclusive);
        let wanted = || spec.root.job_lease_period.unwrap_or_else(|| self.scheduler.config().lease());
        is_exclusive.then(|| wanted().max(self.shortest_lease()))
    }

    /// A lease is confirmed by heartbeats, and some of them may be late.
    fn shortest_lease(&self) -> Span {
        Span(self.config.heartbeat_period.0.saturating_mul(3)).min(MAX_LEASE)
    }

    /// Refuses a lease that ends before it can be confirmed.
    pub(crate) fn refuse_short_lease(&self, spec: &controller::OperationSpec) -> Result<(), Failure> {
        let (least, found) = (self.shortest_lease(), spec.root.job_lease_period);
        match found.filter(|lease| *lease < least) {
            None => Ok(()),
            Some(found) => Err(Failure::new(format!(
                "/job_lease_period of the spec: expected at least three periods of heartbeats, {least}, found {found}"
            ))
            .with("path", "/job_lease_period")
            .with("least", least.as_millis() as i64)),
        }
    }

    /// After a restart: leases of operations of the life before are confirmed often enough also if the configured period of
    /// heartbeats is longer now.
    pub(crate) fn keep_leases_confirmable(&mut self) {
        let shortest = self.operations.values().filter_map(|operation| operation.lease).min();
        if let Some(lease) = shortest {
            let period = Span(lease.0 / 3).max(Span(1));
            self.config.heartbeat_period = self.config.heartbeat_period.min(period);
        }
    }

    /// Confirms the newest stamp of a node. An extension of leases is not told before it is durable; the stamp itself need not
    /// wait for that.
    pub(crate) fn acknowledge(&mut self, now: Time, address: &str, out: &mut Vec<Effect>) {
        let until = self.leases.extended_until;
        let extension_seq = self.leases.extension_seq;
        let Some(node) = self.nodes.get_mut(address) else { return };
        // Nodes of older versions have no stamps, and do not know the answer.
        let Some(key) = node.key.filter(|_| node.stamp > Span::ZERO) else { return };
        node.acknowledged = node.stamp;
        let after = node.heard_after;
        self.open.urgent |= after == self.open.seq;
        // A node that has heard of the extension has heard of something durable.
        let is_durable = extension_seq == 0 || node.leases_extended_until >= until;
        let known = if is_durable { until } else { node.leases_extended_until };
        let message = ServerMessage::Heard { from: node.stamp + known.since(now), extended_until: known };
        out.push(Effect::ToNode { node: key, after, message });
        if !is_durable {
            self.tell_extension(now, address, out);
        }
    }

    /// Tells a node of the extension of leases when that is durable.
    fn tell_extension(&self, now: Time, address: &str, out: &mut Vec<Effect>) {
        let until = self.leases.extended_until;
        let Some(node) = self.nodes.get(address) else { return };
        let Some(key) = node.key.filter(|_| node.stamp > Span::ZERO) else { return };
        let after = node.heard_after.max(self.leases.extension_seq);
        let message = ServerMessage::Heard { from: node.stamp + until.since(now), extended_until: until };
        out.push(Effect::ToNode { node: key, after, message });
    }

    /// Before an order to start exclusive jobs: their leases begin with the newest word of the node.
    pub(crate) fn refresh_lease(
        &mut self,
        now: Time,
        address: &str,
        is_exclusive: bool,
        out: &mut Vec<Effect>,
    ) {
        if is_exclusive && self.nodes.get(address).is_some_and(|node| node.stamp > node.acknowledged) {
            self.acknowledge(now, address, out);
        }
    }

    /// Whether a node runs jobs that have leases.
    pub(crate) fn runs_exclusive_jobs(&self, node: &Node) -> bool {
        node.jobs.iter().any(|job| self.jobs.get(*job).is_some_and(|job| job.lease.is_some()))
    }

    /// Jobs of a lost node that are kept until their leases are over; the others are to be given up.
    pub(crate) fn keep_exclusive_jobs(&mut self, address: &str, jobs: Vec<JobId>) -> Vec<JobId> {
        if strikes(Bug::LeaseIgnored, 1) {
            return jobs;
        }
        let (kept, given_up): (Vec<JobId>, Vec<JobId>) =
            jobs.into_iter().partition(|job| self.jobs.get(*job).is_some_and(|job| job.lease.is_some()));
        for job_id in &kept {
            self.jobs.unbook(*job_id);
        }
        if !kept.is_empty() || self.leases.has_fence_on(address) {
            self.leases.silent.insert(address.to_owned());
        }
        given_up
    }

    /// The fence that the controller has put up for a job that was given up stays until its node has told the end, or goes if
    /// the job cannot run any more.
    pub(crate) fn settle_fence(&mut self, job_id: JobId, job: &crate::jobs::Job, may_run: bool) {
        let lease = job.lease.unwrap_or_default();
        let Some(operation) = self.operations.get_mut(&job.operation) else { return };
        if !operation.controller.has_fence(job_id) {
            return;
        }
        if !may_run || operation.controller.is_over() {
            operation.controller.lift_fence(job_id);
            return;
        }
        let fence = Fence {
            operation: job.operation,
            node: job.node.clone(),
            lease,
            confirmed: job.confirmed,
            until: None,
        };
        self.leases.insert(job_id, fence);
        if self.nodes.get(&job.node).is_none_or(|node| node.key.is_none() && node.register_time == Time::ZERO)
        {
            self.leases.silent.insert(job.node.clone());
        }
    }

    /// A node runs a job that does not count here: its unit must wait for the end of it.
    pub(crate) fn fence_stranger(&mut self, address: &str, identity: &JobIdentity) {
        let Some(lease) = self.lease_of(identity.operation_id, &identity.task) else { return };
        let Some(operation) = self.operations.get_mut(&identity.operation_id) else { return };
        if operation.controller.fence_stranger(identity, address) {
            let (operation, node) = (identity.operation_id, address.to_owned());
            self.leases
                .insert(identity.job_id, Fence { operation, node, lease, confirmed: true, until: None });
            self.pending_work.demand.insert(operation);
        }
    }

    /// A job that was given up is over: its unit may be started.
    pub(crate) fn lift_fence(&mut self, job_id: JobId) {
        let Some(fence) = self.leases.remove(job_id) else { return };
        if let Some(operation) = self.operations.get_mut(&fence.operation)
            && operation.controller.lift_fence(job_id)
        {
            self.pending_work.demand.insert(fence.operation);
            self.changes.touch(Topic::Operations);
        }
    }

    /// A node reports jobs of another node: its agent was given another name, or has a copy of the other's data directory. They
    /// are aborted there. Until that is told, the reports are signs of life of the jobs, and of nothing else.
    ///
    /// Such an agent has the tickets of the jobs. A report without the right one says nothing (S7): a hostile node could keep the
    /// units of a lost node waiting for ever.
    pub(crate) fn note_jobs_elsewhere(
        &mut self,
        now: Time,
        address: &str,
        there: &BTreeSet<JobId>,
        reported: &[JobReport],
    ) {
        self.leases.elsewhere.retain(|job, (node, _)| node != address || there.contains(job));
        let own = self.nodes.get(address).map(|node| &node.jobs);
        let strange: BTreeSet<JobId> =
            own.map_or_else(|| there.clone(), |own| there.difference(own).copied().collect());
        if strange.is_empty() {
            return;
        }
        for JobReport { identity, .. } in reported.iter().filter(|r| strange.contains(&r.identity.job_id)) {
            let job_id = identity.job_id;
            let of_job = self.jobs.get(job_id).filter(|job| job.lease.is_some()).map(|job| &job.node);
            let node = of_job.or_else(|| self.leases.fences.get(&job_id).map(|fence| &fence.node));
            if node.is_some_and(|node| node != address && self.is_job_of(identity, node)) {
                self.leases.elsewhere.insert(job_id, (address.to_owned(), now));
            }
        }
    }

    /// What a node's list of unfinished jobs says about jobs that were given up. `is_hello`: it has just registered, and says
    /// everything that it has.
    pub(crate) fn heed_silence(&mut self, address: &str, there: &BTreeSet<JobId>, is_hello: bool) {
        if !self.leases.has_fence_on(address) {
            return;
        }
        let mut over = Vec::new();
        for job_id in self.leases.fenced_on(address).collect::<Vec<_>>() {
            let Some(fence) = self.leases.fences.get_mut(&job_id) else { continue };
            if there.contains(&job_id) {
                fence.confirmed = true;
                fence.until = None;
            } else if fence.until.is_none() && (fence.confirmed || is_hello) {
                over.push(job_id);
            }
        }
        over.into_iter().for_each(|job_id| self.lift_fence(job_id));
    }

    /// An agent with another data directory has the node's name: jobs of the agent before it may live on, here or on another
    /// host, and the new agent knows nothing of them. They are given up; time alone frees their units. That holds for all agents
    /// that come until then, also after a restart of the server.
    pub(crate) fn note_new_agent(&mut self, now: Time, hello: &Hello, heard: Time, out: &mut Vec<Effect>) {
        let address = hello.address.as_str();
        let Some(node) = self.nodes.get(address) else { return };
        if knows_jobs_of_agent_before(&node.data_id, hello) {
            return;
        }
        // The life before may have heard the old agent until this life began.
        let heard = heard.max(self.started);
        let told: BTreeSet<JobId> = hello
            .running
            .iter()
            .map(|report| report.identity.job_id)
            .chain(hello.finished.iter().map(|end| end.identity.job_id))
            .collect();
        let of_jobs = node.jobs.iter().filter_map(|job| Some((*job, self.jobs.get(*job)?.lease?)));
        let of_fences =
            self.leases.fenced_on(address).filter_map(|job| Some((job, self.leases.fences.get(&job)?.lease)));
        let leases: Vec<(JobId, Span)> = of_jobs.chain(of_fences).collect();
        let ends = leases.iter().map(|(job_id, lease)| self.leases.job_over_at(*job_id, heard, *lease));
        let revival = self.nodes.is_missing(address).then(|| self.last_revival().until).flatten();
        if let Some(until) = ends.chain(revival).max() {
            self.leases.distrusted.insert(address.to_owned());
            if let Some(node) = self.nodes.get_mut(address) {
                node.distrusted_until = node.distrusted_until.max(until);
            }
        }
        for (job_id, lease) in leases.into_iter().filter(|(job_id, _)| !told.contains(job_id)) {
            if self.jobs.get(job_id).is_some() {
                let text = format!("Another agent runs as node {address}, with another data directory");
                self.abort_unheard_job(now, job_id, AbortReason::NodeOffline, &text, out);
            }
            let until = self.leases.job_over_at(job_id, heard, lease);
            if let Some(fence) = self.leases.fences.get_mut(&job_id) {
                fence.until = Some(until);
            }
        }
    }

    /// The jobs of the agents before are over: what the newest agent says counts.
    fn trust_again(&mut self, now: Time) {
        for address in self.leases.distrusted.clone() {
            let Some(node) = self.nodes.get_mut(&address) else {
                self.leases.distrusted.remove(&address);
                continue;
            };
            if now < node.distrusted_until {
                continue;
            }
            node.distrusted_until = Time::ZERO;
            let (is_connected, is_lost) = (node.key.is_some(), node.register_time == Time::ZERO);
            self.leases.distrusted.remove(&address);
            if is_connected {
                self.nodes.came_back(&address);
                self.pending_work.schedule = true;
            }
            // A node of the life before that has not come at all is still awaited.
            let is_done = is_lost && !self.nodes.is_missing(&address) && self.forget_node_if_idle(&address);
            if !is_done {
                self.persist_node(&address);
            }
        }
    }

    /// Gives away the units whose leases are over, and forgets lost nodes that hold none any more.
    pub(crate) fn check_leases(&mut self, now: Time, out: &mut Vec<Effect>) {
        self.check_held_back(now);
        self.forget_old_stops(now);
        self.trust_again(now);
        let Leases { elsewhere, fences, .. } = &mut self.leases;
        elsewhere.retain(|job_id, _| self.jobs.get(*job_id).is_some() || fences.contains_key(job_id));
        // Units of an operation that has ended wait for nothing.
        let is_over = |fence: &Fence| {
            fence.until.is_some_and(|until| now >= until) || !self.operations.contains_key(&fence.operation)
        };
        let over = self.leases.fences.iter().filter(|(_, fence)| is_over(fence));
        let over: Vec<JobId> = over.map(|(job_id, _)| *job_id).collect();
        over.into_iter().for_each(|job_id| self.lift_fence(job_id));
        for address in self.leases.silent.clone() {
            let Some(node) = self.nodes.get(&address) else {
                self.leases.silent.remove(&address);
                self.time_fences(now, &address);
                continue;
            };
            // It is back, or away for a moment.
            if node.key.is_some() || node.register_time > Time::ZERO {
                self.leases.silent.remove(&address);
                continue;
            }
            let heard = node.last_seen;
            let is_over = |job: JobId, lease: Span| now >= self.leases.job_over_at(job, heard, lease);
            let jobs = node.jobs.iter().copied();
            let lease_of_job = |job: &JobId| self.jobs.get(*job).and_then(|job| job.lease);
            let over: Vec<JobId> =
                jobs.filter(|job| lease_of_job(job).is_none_or(|lease| is_over(*job, lease))).collect();
            let fences = self.leases.fenced_on(&address);
            let is_done = |job: &JobId| {
                self.leases.fences.get(job).is_some_and(|f| f.until.is_none() && is_over(*job, f.lease))
            };
            let free: Vec<JobId> = fences.filter(is_done).collect();
            let text = format!("Node {address} is offline, and the lease of the job is over");
            for job in over {
                self.abort_lost_job(now, job, AbortReason::NodeOffline, &text, out);
            }
            free.into_iter().for_each(|job_id| self.lift_fence(job_id));
            if self.forget_node_if_idle(&address) {
                self.leases.silent.remove(&address);
            }
        }
    }

    /// Nothing is known of the node of these fences any more: time alone ends them.
    fn time_fences(&mut self, now: Time, address: &str) {
        for job_id in self.leases.fenced_on(address).collect::<Vec<_>>() {
            let Some(lease) = self.leases.fences.get(&job_id).map(|fence| fence.lease) else { continue };
            let until = self.leases.job_over_at(job_id, now, lease);
            if let Some(fence) = self.leases.fences.get_mut(&job_id) {
                fence.until.get_or_insert(until);
            }
        }
    }

    /// Exclusive operations of the life before that are not revived yet, and the time at which the last of them is, whatever
    /// nodes are missing.
    fn last_revival(&self) -> Revivals {
        let reviving = self.operations.values().filter(|operation| operation.controller.is_reviving());
        let ends = reviving.filter_map(|operation| self.revival_deadline(operation.id));
        ends.fold(Revivals::default(), |sum, end| Revivals {
            operations: sum.operations + 1,
            until: sum.until.max(Some(end)),
        })
    }

    /// Time at which an operation of the life before is revived though nodes of that life are missing.
    fn revival_deadline(&self, operation: OperationId) -> Option<Time> {
        let lease = self.operations.get(&operation)?.lease?;
        Some(self.leases.over_at(self.started, lease))
    }

    /// Whether an operation of the life before must wait for nodes of that life.
    pub(crate) fn is_held_back(&self, now: Time, operation: OperationId) -> bool {
        self.nodes.is_any_missing() && self.revival_deadline(operation).is_some_and(|deadline| now < deadline)
    }

    fn check_held_back(&mut self, now: Time) {
        if self.leases.held_back.is_empty() {
            return;
        }
        if !self.leases.held_back.iter().all(|operation| self.is_held_back(now, *operation)) {
            self.pending_work.schedule = true;
        }
    }

    /// Extends all leases (`millpond server pause`): they begin when this time is over. Gives the time.
    pub(crate) fn extend_leases(
        &mut self,
        now: Time,
        period: Span,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        if period == Span::ZERO || period > MAX_EXTENSION {
            let text =
                format!("period: expected a duration of more than 0 and at most 7 days, found {period}");
            return Err(Failure::new(text).with("period", period.as_millis() as i64));
        }
        // A lease that was given cannot be taken back: a node that is cut off would not hear of it.
        let until = self.leases.extended_until.max(now + period);
        self.leases.extended_until = until;
        self.open.batch.put(Table::Meta, KEY, until.0.to_be_bytes());
        self.leases.extension_seq = self.open.seq;
        self.changes.touch(Topic::Nodes);
        let online: Vec<String> =
            self.nodes.iter().filter(|node| node.key.is_some()).map(|node| node.address.clone()).collect();
        for address in &online {
            self.tell_extension(now, address, out);
        }
        Ok(yson::map! {"until" => until, "node_count" => online.len()}.into())
    }

    /// Forgets a node (`millpond node remove`). With `lost` its exclusive units are given away at once: the administrator
    /// says that nothing runs there any more.
    pub(crate) fn remove_node(
        &mut self,
        now: Time,
        address: &str,
        lost: bool,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        let Some(node) = self.nodes.get(address) else {
            return Err(Failure::resolve(format!("No such node \"{address}\"")).with("address", address));
        };
        if node.key.is_some() {
            let text = format!("Node \"{address}\" is connected: stop its agent first");
            return Err(Failure::new(text).with("address", address));
        }
        let waits = self.waits_of_node(node);
        if !lost && let Some(until) = waits.until {
            let what = match waits.units {
                0 if waits.operations == 1 => "an operation waits for it".to_owned(),
                0 => format!("{} operations wait for it", waits.operations),
                1 => "a unit of exclusive work waits for the end of its lease".to_owned(),
                n => format!("{n} units of exclusive work wait for the ends of their leases"),
            };
            let text = format!(
                "Node \"{address}\" may still run jobs: {what}, until {until}. If the host is off for certain, remove the node \
                 as lost"
            );
            return Err(Failure::new(text).with("address", address).with("until", until));
        }
        let of_node =
            |job: &JobId| node.jobs.contains(job) || self.leases.fenced_on(address).any(|id| id == *job);
        let is_connected = |other: &str| self.nodes.get(other).is_some_and(|node| node.key.is_some());
        let mut elsewhere = self.leases.elsewhere.iter();
        if let Some((job, (other, _))) =
            elsewhere.find(|(job, (other, _))| of_node(job) && is_connected(other))
        {
            let text = format!(
                "Node \"{address}\" is not lost: node \"{other}\" reports its job {job}, and is told to abort it. Try again when \
                 that job is over"
            );
            return Err(Failure::new(text).with("address", address).with("job_id", *job));
        }
        self.lose_node(now, address, out);
        let jobs: Vec<JobId> =
            self.nodes.get(address).map(|n| n.jobs.iter().copied().collect()).unwrap_or_default();
        let count = jobs.len();
        let text = format!("Node {address} was removed as lost");
        for job in jobs {
            self.abort_lost_job(now, job, AbortReason::NodeOffline, &text, out);
        }
        let fenced: Vec<JobId> = self.leases.fenced_on(address).collect();
        let count = count + fenced.len();
        fenced.into_iter().for_each(|job_id| self.lift_fence(job_id));
        self.leases.silent.remove(address);
        self.leases.distrusted.remove(address);
        let settings = self.nodes.get(address).map(|node| node.settings.clone()).unwrap_or_default();
        self.nodes.forget(address);
        if settings == NodeSettings::default() {
            self.open.batch.delete(Table::Nodes, address.as_bytes());
        } else {
            // A banned node that comes back is banned.
            self.nodes.expect(address, settings, false);
            self.persist_node(address);
        }
        self.changes.touch(Topic::Nodes);
        self.pending_work.update = true;
        self.pending_work.schedule = true;
        Ok(yson::map! {"address" => address, "unit_count" => count}.into())
    }

    /// What waits for a node that is not connected.
    pub(crate) fn waits_of_node(&self, node: &Node) -> NodeWaits {
        let lease_of_job = |job: &JobId| self.jobs.get(*job).and_then(|job| job.lease);
        let over_at = |job: JobId, lease: Span| self.leases.job_over_at(job, node.last_seen, lease);
        let jobs = node.jobs.iter().filter_map(|job| Some(over_at(*job, lease_of_job(job)?)));
        let fences = self.leases.fenced_on(&node.address);
        let fences = fences.filter_map(|job| Some((job, self.leases.fences.get(&job)?)));
        let fences = fences.map(|(job, fence)| fence.until.unwrap_or_else(|| over_at(job, fence.lease)));
        let ends: Vec<Time> = jobs.chain(fences).collect();
        // Which units of these ran there is not known, whether the time in which all of them wait is over or not.
        let is_missing = self.nodes.is_missing(&node.address);
        let revivals = if is_missing { self.last_revival() } else { Revivals::default() };
        let until = ends.iter().copied().max().max(revivals.until);
        NodeWaits { units: ends.len(), operations: revivals.operations, until }
    }

    /// A job has stopped because its lease was over, for the alert.
    pub(crate) fn note_stop_by_lease(
        &mut self,
        now: Time,
        address: &str,
        job_id: JobId,
        outcome: &JobOutcome,
    ) {
        let is_stopped = match outcome {
            JobOutcome::Aborted { error, .. } => error.find_attribute(LEASE_PERIOD).is_some(),
            // It was asked to stop, and saved its state: proxies ask for this reason only then.
            JobOutcome::Completed { interrupted, .. } => *interrupted == Some(InterruptionReason::Unknown),
            JobOutcome::Failed { .. } => false,
        };
        if is_stopped && self.leases.stopped.len() < STOPPED_KEPT {
            self.leases.stopped.insert(job_id);
            self.leases.stopped_on.insert(address.to_owned());
            self.leases.stopped_at = now;
        }
    }

    fn forget_old_stops(&mut self, now: Time) {
        if !self.leases.stopped.is_empty() && now.since(self.leases.stopped_at) > STOPPED_SHOWN {
            self.leases.stopped.clear();
            self.leases.stopped_on.clear();
        }
    }

    /// `jobs_stopped_by_lease`, `exclusive_work_waits`, `exclusive_work_held_back`.
    pub(crate) fn alerts_of_leases(&self) -> impl Iterator<Item = Failure> {
        let stopped = (!self.leases.stopped.is_empty()).then(|| {
            let (jobs, nodes) = (self.leases.stopped.len(), self.leases.stopped_on.len());
            let text = format!(
                "{jobs} jobs of exclusive work on {nodes} nodes have stopped because the server could not be reached for longer \
                 than their leases; their units run again. Before planned work extend the leases with \"millpond server \
                 pause\""
            );
            Failure::new(text)
                .with("alert_type", "jobs_stopped_by_lease")
                .with("job_count", jobs)
                .with("nodes", self.leases.stopped_on.iter().take(WAITS_SHOWN).map(String::as_str).collect::<Vec<_>>())
                .with("time", self.leases.stopped_at)
        });
        let waiting = self.leases.silent.iter().filter_map(move |address| {
            let node = self.nodes.get(address)?;
            let waits = self.waits_of_node(node);
            let until = waits.until.filter(|_| waits.units > 0)?;
            let units = waits.units;
            let text = format!(
                "Node {address} is offline and may still run {units} units of exclusive work: they wait until {until}. If the \
                 host is off for certain, run \"millpond node remove {address} --lost\""
            );
            Some(
                Failure::new(text)
                    .with("alert_type", "exclusive_work_waits")
                    .with("node", address.as_str())
                    .with("unit_count", units)
                    .with("until", until),
            )
        });
        let held_back = (!self.leases.held_back.is_empty()).then(|| {
            let operations = self.leases.held_back.len();
            let nodes: Vec<&str> = self.nodes.missing().take(WAITS_SHOWN).collect();
            let until = self.leases.held_back.iter().filter_map(|id| self.revival_deadline(*id)).max();
            let text = format!(
                "{operations} operations with exclusive work start no jobs until {} at the latest: jobs that ran before the restart \
                 of the server may still run on {}. If a host is off for certain, run \"millpond node remove NODE --lost\"",
                until.unwrap_or_default(),
                nodes.join(", ")
            );
            Failure::new(text)
                .with("alert_type", "exclusive_work_held_back")
                .with("operation_count", operations)
                .with("nodes", nodes)
                .with("until", until.unwrap_or_default())
        });
        stopped.into_iter().chain(waiting).chain(held_back)
    }

    /// What an operation waits for because it may still run somewhere: at most 20 units, each with its reason.
    pub(crate) fn lease_waits(&self, operation: OperationId) -> Vec<Map> {
        let mut waits = Vec::new();
        if self.leases.held_back.contains(&operation) {
            let nodes: Vec<&str> = self.nodes.missing().take(WAITS_SHOWN).collect();
            waits.push(
                yson::map! {"reason" => "revival", "nodes" => nodes}
                    .with_some("until", self.revival_deadline(operation)),
            );
        }
        let Some(operation) = self.operations.get(&operation) else { return waits };
        let lost = self.leases.silent.iter().filter_map(|address| self.nodes.get(address));
        let lost = lost.flat_map(|node| node.jobs.iter().map(move |job| (node, *job)));
        for (node, job_id) in lost {
            let Some(job) = self.jobs.get(job_id).filter(|job| job.operation == operation.id) else {
                continue;
            };
            let (Some(lease), Some(view)) = (job.lease, operation.controller.job(job_id)) else { continue };
            let identity = view.identity();
            waits.push(yson::map! {
                "reason" => "node_offline",
                "node" => node.address.as_str(),
                "job_id" => job_id,
                "task_name" => identity.task.as_ref(),
                "job_cookie" => u64::from(identity.cookie),
                "until" => self.leases.job_over_at(job_id, node.last_seen, lease),
            });
        }
        for unit in operation.controller.fenced_units() {
            let Some(fence) = self.leases.fences.get(&unit.job_id) else { continue };
            let silent = self.nodes.get(&fence.node).filter(|node| node.key.is_none());
            let over_at = |node: &Node| self.leases.job_over_at(unit.job_id, node.last_seen, fence.lease);
            let until = fence.until.or(silent.map(over_at));
            waits.push(
                yson::map! {
                    "reason" => "job_given_up",
                    "node" => unit.node,
                    "job_id" => unit.job_id,
                    "task_name" => unit.task,
                    "job_cookie" => u64::from(unit.cookie),
                }
                .with_some("until", until),
            );
        }
        waits.truncate(WAITS_SHOWN);
        waits
    }
}

/// A sentence for each thing that an operation waits for.
pub(crate) fn wait_text(wait: &Map) -> String {
    let text = |key: &str| wait.get(key).and_then(Value::as_str).unwrap_or_default();
    let until = match text("until") {
        "" => "until its node tells that the job is over".to_owned(),
        until => format!("until {until} at the latest"),
    };
    let cookie = wait.get("job_cookie").and_then(Value::as_u64).unwrap_or_default();
    match text("reason") {
        "revival" => {
            let nodes = wait.get("nodes").and_then(Value::as_list).unwrap_or_default();
            let nodes: Vec<&str> = nodes.iter().filter_map(Value::as_str).collect();
            format!(
                "  Jobs that it ran before the restart of the server may still run on {}, whose agents have not come back: it \
                 starts no job {until}",
                nodes.join(", ")
            )
        }
        "node_offline" => format!(
            "  Unit {cookie} of task \"{}\" waits for the end of the lease of job {} on node {}, which is offline: {until}",
            text("task_name"),
            text("job_id"),
            text("node")
        ),
        _ => format!(
            "  Unit {cookie} of task \"{}\" waits for the end of job {} on node {}, which was given up: {until}",
            text("task_name"),
            text("job_id"),
            text("node")
        ),
    }
}

/// What waits for a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NodeWaits {
    /// Units of exclusive work.
    pub units: usize,
    /// Operations of the life before that may have jobs there.
    pub operations: usize,
    /// Until then; `None` if nothing waits.
    pub until: Option<Time>,
}

/// Exclusive operations of the life before that are not revived yet.
#[derive(Clone, Copy, Default)]
struct Revivals {
    operations: usize,
    /// The last of them is revived then; `None` if there are none.
    until: Option<Time>,
}

/// Whether the agent that registers knows all jobs of the agent before it, of this data directory, that may live. A restart of
/// the host is no proof of their end: the name may be that of another host now. An agent of an older version is believed.
fn knows_jobs_of_agent_before(data_id: &str, hello: &Hello) -> bool {
    let is_of_older_version = hello.data_id.is_empty() && hello.stamp == Span::ZERO;
    data_id.is_empty() || data_id == hello.data_id || is_of_older_version
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S19.
    #[test]
    fn an_extension_moves_the_beginning_of_leases() {
        let mut leases = Leases::default();
        let (heard, lease) = (Time::from_secs(1000), Span::from_secs(300));
        assert_eq!(leases.over_at(heard, lease), heard + lease + margin(lease));
        leases.restore(KEY, &Time::from_secs(5000).0.to_be_bytes());
        assert_eq!(leases.over_at(heard, lease), Time::from_secs(5000) + lease + margin(lease));
        assert_eq!(
            leases.over_at(Time::from_secs(6000), lease),
            Time::from_secs(6000) + lease + margin(lease)
        );
        leases.restore(KEY, b"odd");
        leases.restore(b"other", &[0; 8]);
        assert_eq!(leases.extended_until, Time::from_secs(5000), "what cannot be read changes nothing");
    }
}
