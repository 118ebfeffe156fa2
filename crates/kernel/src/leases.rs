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

use crate::nodes::Node;
use crate::{Effect, Kernel, Topic};
use std::collections::{BTreeMap, BTreeSet};
use vocab::batch::Table;
use vocab::lease::{MAX_LEASE, margin};
use vocab::planted::{Bug, strikes};
use vocab::{AbortReason, Failure, JobId, JobIdentity, JobOutcome, OperationId, Span, Time};
use wire::{Hello, ServerMessage};
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

/// A job that was given up and may still run on its node: its unit is not started anew before.
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

    /// Confirms the newest stamp of a node. Sent at once, but not before an extension that it contains is durable.
    pub(crate) fn acknowledge(&mut self, now: Time, address: &str, out: &mut Vec<Effect>) {
        let until = self.leases.extended_until;
        let after = self.leases.extension_seq;
        let Some(node) = self.nodes.get_mut(address) else { return };
        // Nodes of older versions have no stamps, and do not know the answer.
        let Some(key) = node.key.filter(|_| node.stamp > Span::ZERO) else { return };
        node.acknowledged = node.stamp;
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

    /// An agent with another data directory has the node's name, and the host has not been restarted: jobs of the agent before
    /// it may live on without an agent, and the new one knows nothing of them. They are given up; time alone frees their units.
    pub(crate) fn heed_new_lineage(&mut self, now: Time, hello: &Hello, heard: Time, out: &mut Vec<Effect>) {
        let address = hello.address.as_str();
        let Some(node) = self.nodes.get(address) else { return };
        if node.lineage.is_continued_by(&Lineage::of(hello)) {
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
        let lost: Vec<JobId> = node.jobs.difference(&told).copied().collect();
        for job_id in lost {
            if self.jobs.get(job_id).is_some_and(|job| job.lease.is_some()) {
                let text = format!("Another agent runs as node {address}, with another data directory");
                self.abort_unheard_job(now, job_id, AbortReason::NodeOffline, &text, out);
            }
        }
        let fenced: Vec<JobId> = self.leases.fenced_on(address).filter(|job| !told.contains(job)).collect();
        for job_id in fenced {
            if let Some(lease) = self.leases.fences.get(&job_id).map(|fence| fence.lease) {
                let until = self.leases.over_at(heard, lease);
                if let Some(fence) = self.leases.fences.get_mut(&job_id) {
                    fence.until = Some(until);
                }
            }
        }
    }

    /// Gives away the units whose leases are over, and forgets lost nodes that hold none any more.
    pub(crate) fn check_leases(&mut self, now: Time, out: &mut Vec<Effect>) {
        self.check_held_back(now);
        self.forget_old_stops(now);
        let timed =
            self.leases.fences.iter().filter(|(_, fence)| fence.until.is_some_and(|until| now >= until));
        let timed: Vec<JobId> = timed.map(|(job_id, _)| *job_id).collect();
        timed.into_iter().for_each(|job_id| self.lift_fence(job_id));
        for address in self.leases.silent.clone() {
            let Some(node) = self.nodes.get(&address) else {
                self.leases.silent.remove(&address);
                continue;
            };
            // It is back, or away for a moment.
            if node.key.is_some() || node.register_time > Time::ZERO {
                self.leases.silent.remove(&address);
                continue;
            }
            let heard = node.last_seen;
            let is_over = |lease: Span| now >= self.leases.over_at(heard, lease);
            let jobs = node.jobs.iter().copied();
            let lease_of_job = |job: &JobId| self.jobs.get(*job).and_then(|job| job.lease);
            let over: Vec<JobId> = jobs.filter(|job| lease_of_job(job).is_none_or(is_over)).collect();
            let fences = self.leases.fenced_on(&address);
            let is_done = |job: &JobId| {
                self.leases.fences.get(job).is_some_and(|f| f.until.is_none() && is_over(f.lease))
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
            self.acknowledge(now, address, out);
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
                0 => format!("{} operations wait for it", self.leases.held_back.len()),
                1 => "a unit of exclusive work waits for the end of its lease".to_owned(),
                n => format!("{n} units of exclusive work wait for the ends of their leases"),
            };
            let text = format!(
                "Node \"{address}\" may still run jobs: {what}, until {until}. If the host is off for certain, remove the node \
                 as lost"
            );
            return Err(Failure::new(text).with("address", address).with("until", until));
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
        self.nodes.forget(address);
        self.open.batch.delete(Table::Nodes, address.as_bytes());
        self.changes.touch(Topic::Nodes);
        self.pending_work.update = true;
        self.pending_work.schedule = true;
        Ok(yson::map! {"address" => address, "unit_count" => count}.into())
    }

    /// What waits for a node that is not connected.
    pub(crate) fn waits_of_node(&self, node: &Node) -> NodeWaits {
        let lease_of_job = |job: &JobId| self.jobs.get(*job).and_then(|job| job.lease);
        let jobs = node.jobs.iter().filter_map(lease_of_job);
        let jobs = jobs.map(|lease| self.leases.over_at(node.last_seen, lease));
        let fences = self.leases.fenced_on(&node.address).filter_map(|job| self.leases.fences.get(&job));
        let fences = fences.map(|f| f.until.unwrap_or_else(|| self.leases.over_at(node.last_seen, f.lease)));
        let ends: Vec<Time> = jobs.chain(fences).collect();
        let held = self.leases.held_back.iter().filter(|_| self.nodes.is_missing(&node.address));
        let held = held.filter_map(|operation| self.revival_deadline(*operation)).max();
        NodeWaits { units: ends.len(), until: ends.into_iter().max().max(held) }
    }

    /// A job has stopped because its lease was over, for the alert.
    pub(crate) fn note_stop_by_lease(
        &mut self,
        now: Time,
        address: &str,
        job_id: JobId,
        outcome: &JobOutcome,
    ) {
        let JobOutcome::Aborted { error, .. } = outcome else { return };
        if error.find_attribute(LEASE_PERIOD).is_some() && self.leases.stopped.len() < STOPPED_KEPT {
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

    /// `jobs_stopped_by_lease`, `exclusive_work_waits`.
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
        stopped.into_iter().chain(waiting)
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
                "until" => self.leases.over_at(node.last_seen, lease),
            });
        }
        for unit in operation.controller.fenced_units() {
            let Some(fence) = self.leases.fences.get(&unit.job_id) else { continue };
            let silent = self.nodes.get(&fence.node).filter(|node| node.key.is_none());
            let until = fence.until.or(silent.map(|node| self.leases.over_at(node.last_seen, fence.lease)));
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
                "  Its jobs of before the restart of the server may still run on {}, which have not come back: it starts no job \
                 {until}",
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
    /// Until then; `None` if nothing waits.
    pub until: Option<Time>,
}

/// Which agent a node is: a boot of its host, and a data directory. Empty if the agent does not say it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Lineage {
    pub boot_id: String,
    pub data_id: String,
}

impl Lineage {
    pub fn of(hello: &Hello) -> Lineage {
        Lineage { boot_id: hello.boot_id.clone(), data_id: hello.data_id.clone() }
    }

    /// Whether the next agent knows all jobs that may live: it has the same data directory, or the host was restarted and
    /// none of them lives. Agents of older versions are believed.
    pub fn is_continued_by(&self, next: &Lineage) -> bool {
        let is_known = |text: &str| !text.is_empty();
        let same_boot = self.boot_id == next.boot_id;
        let all_known =
            [&self.boot_id, &self.data_id, &next.boot_id, &next.data_id].into_iter().all(|t| is_known(t));
        !all_known || !same_boot || self.data_id == next.data_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S19.
    #[test]
    fn an_agent_with_another_data_directory_is_believed_only_after_a_restart_of_the_host() {
        let lineage = |boot: &str, data: &str| Lineage { boot_id: boot.into(), data_id: data.into() };
        let old = lineage("b1", "d1");
        assert!(old.is_continued_by(&lineage("b1", "d1")));
        assert!(old.is_continued_by(&lineage("b2", "d1")), "the host was restarted");
        assert!(old.is_continued_by(&lineage("b2", "d2")), "the host was restarted with a new disk");
        assert!(!old.is_continued_by(&lineage("b1", "d2")));
        assert!(old.is_continued_by(&lineage("", "")), "an older agent does not say it");
        assert!(lineage("", "").is_continued_by(&old), "nothing is known of the agent before");
    }

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
