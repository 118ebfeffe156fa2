//! Exec nodes: who is connected, who is expected back, who is lost.

use crate::tree::only;
use crate::{Effect, Kernel, NodeKey, Seq, Topic};
use rustc_hash::FxHashMap;
use scheduler::NodeReport;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::batch::Table;
use vocab::{AbortReason, Failure, InterruptionReason, JobId, JobPhase, Resources, Span, Time};
use wire::{Heartbeat, Hello, JobReport, NodeMessage, PROTOCOL_VERSION, ServerMessage};
use yson::{Map, Value};

/// All nodes that are connected or may come back.
#[derive(Default)]
pub(crate) struct Nodes {
    /// In the order of their addresses: for lists.
    by_address: BTreeMap<Arc<str>, usize>,
    /// Places in `slots`. Every heartbeat of every node looks here: a big cluster's tree of names is slow.
    places: FxHashMap<Arc<str>, usize>,
    slots: Vec<Option<Node>>,
    vacant: Vec<usize>,
    by_key: FxHashMap<NodeKey, Arc<str>>,
    /// Nodes of the life before that have not come back yet: until they have, or the time is up,
    /// nothing is started, so that no unit of work runs twice. Exclusive operations wait for them longer
    /// (`leases`).
    expected: BTreeSet<String>,
    recovery_deadline: Option<Time>,
    /// No registered node was seen for the last time before this.
    seen_since: Time,
}

/// How long jobs that are asked to leave a node with disabled jobs may take (jobs-and-nodes.md 3.9).
const DISABLED_JOBS_INTERRUPTION_TIMEOUT: Span = Span::from_secs(60);

/// Types of the alerts of nodes that start no jobs.
const DISABLING_ALERTS: [&str; 3] = ["job_environment_disabled", "job_uids_refused", JOB_UIDS_NOT_SUPPORTED];
const JOB_UIDS_NOT_SUPPORTED: &str = "job_uids_not_supported";

/// One exec node.
pub(crate) struct Node {
    pub address: String,
    /// Its connection, if there is one.
    pub key: Option<NodeKey>,
    pub incarnation: u64,
    pub report: NodeReport,
    pub job_environment: String,
    /// Bytes of disk that jobs may ask for together; `None` if the node does not count them.
    pub disk_capacity: Option<i64>,
    pub alerts: Vec<Failure>,
    pub register_time: Time,
    pub last_seen: Time,
    /// The welcome counts: the node reckons its first one from there.
    pub last_heartbeat: Time,
    /// Set by administrators; durable.
    pub settings: NodeSettings,
    /// The tree that it is in, or was before it lost it; durable, and forgotten with the node.
    pub tree: Option<String>,
    /// Newest order that depends on something: later ones may not overtake it.
    pub last_order: Seq,
    /// It would start jobs as other users than the server names, in a cluster whose users are kept apart.
    pub lacks_job_uids: bool,
    /// It has said that it leaves: it gets nothing more, and is gone when its stream ends.
    pub leaving: bool,
    /// Its own clock when it said its newest Hello or heartbeat: time since the start of its host.
    pub stamp: Span,
    /// The newest stamp that was sent back.
    pub acknowledged: Span,
    /// The end of the newest extension of leases that it has confirmed.
    pub leases_extended_until: Time,
    /// Confirmations of its stamps do not overtake this: the orders that followed its registration.
    pub heard_after: Seq,
    /// Data directory of its newest agent, empty if that agent is of an older version; durable.
    pub data_id: String,
    /// Another agent has its name since, and jobs of the agent before may have leases until then; durable.
    pub distrusted_until: Time,
    /// Units that it runs for us.
    pub jobs: BTreeSet<JobId>,
    /// Those of them that waited for resources there at its last report.
    pub waiting: BTreeSet<JobId>,
}

/// What administrators may say about a node, `//sys/cluster_nodes/<address>/@...`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct NodeSettings {
    pub banned: bool,
    pub ban_message: String,
    pub disable_scheduler_jobs: bool,
    pub resource_limits_overrides: BTreeMap<String, f64>,
    pub user_tags: BTreeSet<String>,
}

impl Node {
    fn new(address: &str, settings: NodeSettings) -> Node {
        Node {
            address: address.to_owned(),
            key: None,
            incarnation: 0,
            report: NodeReport::default(),
            job_environment: String::new(),
            disk_capacity: None,
            alerts: Vec::new(),
            register_time: Time::ZERO,
            last_seen: Time::ZERO,
            last_heartbeat: Time::ZERO,
            settings,
            tree: None,
            last_order: 0,
            lacks_job_uids: false,
            leaving: false,
            stamp: Span::ZERO,
            acknowledged: Span::ZERO,
            leases_extended_until: Time::ZERO,
            heard_after: 0,
            data_id: String::new(),
            distrusted_until: Time::ZERO,
            jobs: BTreeSet::new(),
            waiting: BTreeSet::new(),
        }
    }

    pub fn state(&self) -> &'static str {
        match self.key {
            Some(_) => "online",
            None => "offline",
        }
    }

    /// What the scheduler may use: the node's own limits under the administrators' overrides; no
    /// slots if it is banned or disabled.
    fn effective_limits(&self, reported: Resources) -> Resources {
        let mut limits = reported;
        for (name, amount) in &self.settings.resource_limits_overrides {
            if let Some(r) = vocab::Resource::parse(name.as_bytes()) {
                let raw =
                    if r == vocab::Resource::Cpu { vocab::Cpu::from_f64(*amount).0 } else { *amount as i64 };
                limits.set_raw(r, raw);
            }
        }
        if self.settings.banned || self.leaving {
            limits.user_slots = 0;
        } else if self.settings.disable_scheduler_jobs {
            // Nothing more than what is on its way out: without any slots it would lose that at once.
            limits.user_slots = self.jobs.len() as i64;
        } else if self.lacks_job_uids {
            // What was started before may end there.
            limits.user_slots = limits.user_slots.min(self.jobs.len() as i64);
        }
        limits
    }

    /// It is connected, and nothing speaks against more jobs there.
    pub fn may_start_jobs(&self) -> bool {
        let refuses = self.leaving
            || self.lacks_job_uids
            || self.settings.banned
            || self.settings.disable_scheduler_jobs;
        self.key.is_some() && !refuses
    }

    /// Why it offers no slots, as far as that is known.
    pub fn why_no_slots(&self) -> Option<Failure> {
        if self.key.is_none() || self.report.resource_limits.user_slots != 0 {
            return None;
        }
        if self.settings.banned {
            let why = Some(&self.settings.ban_message).filter(|message| !message.is_empty());
            let banned = Failure::new("It is banned");
            return Some(match why {
                Some(why) => banned.because(Failure::new(why.clone())),
                None => banned,
            });
        }
        if self.settings.disable_scheduler_jobs {
            return Some(Failure::new("An administrator has disabled jobs on it"));
        }
        let disables = |alert: &&Failure| {
            let kind = alert.attributes.get("alert_type").and_then(Value::as_str);
            kind.is_some_and(|kind| DISABLING_ALERTS.contains(&kind))
        };
        self.alerts.iter().find(disables).cloned()
    }

    /// Jobs that are accepted and have not got their resources yet.
    fn note_waiting(&mut self, jobs: &[JobReport]) {
        let waiting = jobs.iter().filter(|job| job.phase == JobPhase::Created);
        self.waiting = waiting.map(|job| job.identity.job_id).collect();
        self.report.has_waiting_allocations =
            !self.waiting.is_empty() || self.settings.disable_scheduler_jobs || self.lacks_job_uids;
    }

    /// What the node says of itself, and what the server has found.
    fn note_alerts(&mut self, reported: Vec<Failure>) {
        self.alerts = reported;
        if self.lacks_job_uids {
            let text = "No jobs are started on this node: it is of an older version, which gives jobs the users of slots, so jobs of \
                        different users would have the same user of the host; update the node";
            self.alerts.push(Failure::new(text).with("alert_type", JOB_UIDS_NOT_SUPPORTED));
        }
    }

    fn tags(&self, reported: &[String]) -> BTreeSet<String> {
        reported.iter().chain(&self.settings.user_tags).cloned().chain([self.address.clone()]).collect()
    }
}

impl Nodes {
    pub fn get(&self, address: &str) -> Option<&Node> {
        self.slots[*self.places.get(address)?].as_ref()
    }
    pub fn get_mut(&mut self, address: &str) -> Option<&mut Node> {
        self.slots[*self.places.get(address)?].as_mut()
    }
    /// By address.
    pub fn iter(&self) -> impl Iterator<Item = &Node> {
        self.by_address.values().filter_map(|place| self.slots[*place].as_ref())
    }
    pub fn by_key(&self, key: NodeKey) -> Option<&Arc<str>> {
        self.by_key.get(&key)
    }
    /// The node of this address; a new one if there is none.
    fn get_or_add(&mut self, address: &str) -> &mut Node {
        let place = match self.places.get(address) {
            Some(place) => *place,
            None => self.add(Node::new(address, NodeSettings::default())),
        };
        self.slots[place].get_or_insert_with(|| Node::new(address, NodeSettings::default()))
    }
    fn add(&mut self, node: Node) -> usize {
        let address: Arc<str> = node.address.as_str().into();
        let place = match self.places.get(&address) {
            Some(place) => *place,
            None => self.vacant.pop().unwrap_or(self.slots.len()),
        };
        if place == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[place] = Some(node);
        self.by_address.insert(address.clone(), place);
        self.places.insert(address, place);
        place
    }
    fn remove(&mut self, address: &str) {
        self.by_address.remove(address);
        if let Some(place) = self.places.remove(address) {
            self.slots[place] = None;
            self.vacant.push(place);
        }
    }
    /// May jobs be started yet after a restart?
    pub fn recovered(&self) -> bool {
        self.recovery_deadline.is_none()
    }
    /// A node of the life before.
    pub fn expect(&mut self, address: &str, settings: NodeSettings, expected: bool) {
        self.add(Node::new(address, settings));
        if expected {
            self.expected.insert(address.to_owned());
        }
    }
    /// To be called once after all [`Nodes::expect`].
    pub fn start_recovery(&mut self, deadline: Time) {
        self.recovery_deadline = (!self.expected.is_empty()).then_some(deadline);
    }
    /// A node is there, now.
    fn saw(&mut self, now: Time, address: &str) {
        // The clock may go backwards.
        self.seen_since = self.seen_since.min(now);
        if let Some(node) = self.get_mut(address) {
            node.last_seen = now;
        }
    }
    /// Whether a node of the life before has not come back.
    pub fn is_any_missing(&self) -> bool {
        !self.expected.is_empty()
    }
    /// Whether this node of the life before has not come back.
    pub fn is_missing(&self, address: &str) -> bool {
        self.expected.contains(address)
    }
    /// Nodes of the life before that have not come back, by address.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        self.expected.iter().map(String::as_str)
    }
    /// The node will not come back, or as another one.
    pub fn forget(&mut self, address: &str) {
        self.remove(address);
        self.came_back(address);
    }
    pub fn came_back(&mut self, address: &str) {
        self.expected.remove(address);
        if self.expected.is_empty() {
            self.recovery_deadline = None;
        }
    }
}

impl Kernel {
    pub(crate) fn node_message(
        &mut self,
        now: Time,
        key: NodeKey,
        message: NodeMessage,
        out: &mut Vec<Effect>,
    ) {
        self.changes.touch(Topic::Nodes);
        if let NodeMessage::Hello(hello) = message {
            return self.node_hello(now, key, hello, out);
        }
        let Some(address) = self.nodes.by_key(key).cloned() else {
            // Refused or replaced; what it says on this connection does not count any more.
            return;
        };
        self.nodes.saw(now, &address);
        match message {
            NodeMessage::Hello(_) => {}
            NodeMessage::Heartbeat(heartbeat) => self.node_heartbeat(now, &address, heartbeat, out),
            NodeMessage::Jobs(events) => self.job_events(now, &address, events, out),
            NodeMessage::Leaving => self.node_leaving(now, &address),
            NodeMessage::Stderr { .. } | NodeMessage::Shell { .. } => {} // the edge's own business
        }
    }

    fn node_hello(&mut self, now: Time, key: NodeKey, hello: Hello, out: &mut Vec<Effect>) {
        let admitted = self
            .admit_version(&hello)
            .and_then(|()| self.admit_identity(now, key, &hello.address))
            .and_then(|()| self.admit_name(key, &hello))
            .and_then(|()| self.admit_mode(key, &hello));
        if let Err(refusal) = admitted {
            out.push(Effect::ToNode { node: key, after: 0, message: ServerMessage::Refuse(refusal) });
            out.push(Effect::Disconnect(key));
            return;
        }
        let address = hello.address.clone();
        let heard = self.nodes.get(&address).map_or(Time::ZERO, |node| node.last_seen);
        self.note_new_agent(now, &hello, heard, out);
        if let Some(old) = self.nodes.get_or_add(&address).key.replace(key) {
            self.nodes.by_key.remove(&old);
            out.push(Effect::Disconnect(old));
        }
        let needs_job_uids = self.config.access_control;
        let node = self.nodes.get_or_add(&address);
        node.incarnation = hello.incarnation;
        node.job_environment = hello.job_environment.clone();
        node.disk_capacity = hello.disk_capacity;
        node.lacks_job_uids = needs_job_uids && !hello.knows_job_uids;
        node.note_alerts(hello.alerts.clone());
        node.stamp = hello.stamp;
        node.leases_extended_until = Time::ZERO;
        if !hello.data_id.is_empty() {
            node.data_id = hello.data_id.clone();
        }
        node.register_time = now;
        // Nothing is started on a node that the next life would not wait for.
        node.last_order = self.open.seq;
        node.heard_after = self.open.seq;
        node.leaving = false;
        node.report = NodeReport {
            resource_limits: node.effective_limits(hello.resource_limits),
            resource_usage: Resources::ZERO,
            tags: node.tags(&hello.tags).into(),
            has_waiting_allocations: false,
        };
        if node.lacks_job_uids {
            // Jobs of the server's life before are not among those of the node yet.
            let running = hello.running.len() as i64;
            node.report.resource_limits.user_slots = hello.resource_limits.user_slots.min(running);
        }
        node.note_waiting(&hello.running);
        node.last_heartbeat = now;
        let report = node.report.clone();
        self.nodes.saw(now, &address);
        self.nodes.by_key.insert(key, address.as_str().into());
        self.persist_node(&address);
        let message = ServerMessage::Welcome {
            heartbeat_period: self.config.heartbeat_period,
            job_uids: Some(self.job_uids()),
        };
        out.push(Effect::ToNode { node: key, after: 0, message });
        if let Some(tree) = self.nodes.get(&address).and_then(|node| node.tree.clone()) {
            self.scheduler.recall_tree(&address, &tree);
        }
        // Ends first: they may free units of work that are reported running elsewhere.
        let update = self.scheduler.heartbeat(now, &address, &report);
        self.note_tree(&address, update.tree.as_deref());
        self.abort_allocations(now, &update.lost, AbortReason::NodeFairShareTreeChanged, out);
        for finished in hello.finished {
            self.job_finished(now, &address, finished, out);
        }
        self.forget_unknown_to(&address, &hello.running, out);
        self.reconcile_jobs(now, &address, hello.running, out);
        self.repeat_orders(&address, out);
        // Behind the orders to abort jobs that do not count: these must not get a lease while they wait for the store.
        self.acknowledge(now, &address, out);
        if self.nodes.get(&address).is_some_and(|node| now >= node.distrusted_until) {
            self.nodes.came_back(&address);
        }
        self.pending_work.update = true;
        self.pending_work.schedule = true;
    }

    fn admit_version(&self, hello: &Hello) -> Result<(), Failure> {
        if hello.protocol_version != PROTOCOL_VERSION {
            return Err(Failure::new(format!(
                "Node {} speaks version {} of the node protocol, this server speaks {PROTOCOL_VERSION}",
                hello.address, hello.protocol_version
            )));
        }
        Ok(())
    }

    /// Refuses a second agent under a name. A stranger is refused before this, and hears nothing of other nodes.
    fn admit_name(&self, key: NodeKey, hello: &Hello) -> Result<(), Failure> {
        if let Some(node) = self.nodes.get(&hello.address)
            && let Some(old) = node.key
            && node.incarnation != hello.incarnation
            && !self.displaces(key, old)
        {
            return Err(Failure::new(format!(
                "Another node with the name {} is connected: names of nodes must be unique",
                hello.address
            )));
        }
        Ok(())
    }

    fn node_heartbeat(&mut self, now: Time, address: &str, heartbeat: Heartbeat, out: &mut Vec<Effect>) {
        let Some(node) = self.nodes.get_mut(address) else { return };
        node.last_heartbeat = now;
        node.note_alerts(heartbeat.alerts);
        node.stamp = heartbeat.stamp;
        node.leases_extended_until = heartbeat.leases_extended_until;
        node.report.resource_limits = node.effective_limits(heartbeat.resource_limits);
        node.report.resource_usage = heartbeat.resource_usage;
        node.note_waiting(&heartbeat.jobs);
        let report = node.report.clone();
        self.record_node(now, address);
        self.reconcile_jobs(now, address, heartbeat.jobs, out);
        if self.nodes.get(address).is_some_and(|node| self.runs_exclusive_jobs(node)) {
            self.acknowledge(now, address, out);
        }
        // Ends that were heard but whose release got lost: their news came before this message.
        for job_id in heartbeat.unreleased {
            self.release_end(address, job_id);
        }
        let update = self.scheduler.heartbeat(now, address, &report);
        self.note_tree(address, update.tree.as_deref());
        self.abort_allocations(now, &update.lost, AbortReason::NodeFairShareTreeChanged, out);
        self.pending_work.heard.insert(address.into());
    }

    /// A heartbeat that would repeat the last one, without its words.
    pub(crate) fn node_unchanged(&mut self, now: Time, key: NodeKey) {
        let Some(address) = self.nodes.by_key(key).cloned() else { return };
        if let Some(node) = self.nodes.get_mut(&address) {
            node.last_heartbeat = now;
        }
        self.nodes.saw(now, &address);
        self.pending_work.heard.insert(address);
    }

    /// A job waits for resources no more: it runs, or it is over.
    pub(crate) fn waits_no_more(&mut self, address: &str, job_id: JobId) {
        let Some(node) = self.nodes.get_mut(address) else { return };
        if node.waiting.remove(&job_id) && node.waiting.is_empty() && !node.lacks_job_uids {
            node.report.has_waiting_allocations = false;
            self.scheduler.nothing_waits(address);
            self.pending_work.heard.insert(address.into());
        }
    }

    fn node_leaving(&mut self, now: Time, address: &str) {
        let Some(node) = self.nodes.get_mut(address) else { return };
        node.leaving = true;
        node.report.resource_limits = node.effective_limits(node.report.resource_limits);
        let report = node.report.clone();
        self.scheduler.heartbeat(now, address, &report);
    }

    /// The connection is gone; the jobs go on, the node has until the timeout to come back.
    pub(crate) fn node_disconnected(&mut self, now: Time, key: NodeKey, out: &mut Vec<Effect>) {
        self.forget_link(key);
        let Some(address) = self.nodes.by_key.remove(&key) else { return };
        self.changes.touch(Topic::Nodes);
        if let Some(node) = self.nodes.get_mut(&address)
            && node.key == Some(key)
        {
            node.key = None;
            let leaving = node.leaving;
            self.nodes.saw(now, &address);
            self.scheduler.set_away(&address);
            self.end_node_history(now, &address);
            if leaving {
                self.lose_node(now, &address, out);
            }
        }
    }

    /// Loses nodes that were silent or away for too long, and ends the wait after a restart.
    pub(crate) fn check_nodes(&mut self, now: Time, out: &mut Vec<Effect>) {
        if self.nodes.recovery_deadline.is_some_and(|deadline| now >= deadline) {
            self.nodes.recovery_deadline = None;
            self.pending_work.schedule = true;
        }
        self.check_leases(now, out);
        self.stop_expecting(now);
        self.forget_owed_by_lost_nodes(now, out);
        let timeout = self.scheduler.config().node_heartbeat_timeout;
        if now.since(self.nodes.seen_since) <= timeout || !self.nodes.recovered() {
            return;
        }
        let registered = || self.nodes.iter().filter(|n| n.register_time > Time::ZERO);
        let is_lost = |n: &&Node| now.since(n.last_seen) > timeout;
        let lost: Vec<String> = registered().filter(is_lost).map(|n| n.address.clone()).collect();
        let others = registered().filter(|n| !is_lost(n)).map(|n| n.last_seen);
        self.nodes.seen_since = others.min().unwrap_or(now);
        for address in lost {
            self.lose_node(now, &address, out);
        }
    }

    /// Nodes of the life before that are still missing when no operation waits for them: the next life need not wait for them.
    fn stop_expecting(&mut self, now: Time) {
        let may_come = now < self.started + self.config.node_recovery_grace;
        let is_needed = self.reviving || !self.leases.held_back.is_empty() || !self.nodes.recovered();
        if may_come || is_needed || self.nodes.expected.is_empty() {
            return;
        }
        self.changes.touch(Topic::Nodes);
        for address in std::mem::take(&mut self.nodes.expected) {
            self.persist_node(&address);
        }
    }

    /// The node is not there any more. Jobs of exclusive work are kept until their leases are over.
    pub(crate) fn lose_node(&mut self, now: Time, address: &str, out: &mut Vec<Effect>) {
        let Some(node) = self.nodes.get_mut(address) else { return };
        if let Some(key) = node.key.take() {
            self.nodes.by_key.remove(&key);
            out.push(Effect::Disconnect(key));
        }
        let Some(node) = self.nodes.get_mut(address) else { return };
        node.register_time = Time::ZERO;
        let jobs: Vec<JobId> = node.jobs.iter().copied().collect();
        self.scheduler.remove_node(address);
        self.end_node_history(now, address);
        for job in self.keep_exclusive_jobs(address, jobs) {
            self.abort_lost_job(
                now,
                job,
                AbortReason::NodeOffline,
                &format!("Node {address} is offline"),
                out,
            );
        }
        if !self.forget_node_if_idle(address) {
            self.persist_node(address);
        }
        self.pending_work.update = true;
        self.pending_work.schedule = true;
    }

    /// Forgets a lost node that can run nothing for us any more; what administrators have set stays. False if it may still
    /// run something.
    pub(crate) fn forget_node_if_idle(&mut self, address: &str) -> bool {
        let Some(node) = self.nodes.get(address) else { return true };
        let may_run = !node.jobs.is_empty() || self.leases.has_fence_on(address);
        if node.key.is_some() || may_run || node.distrusted_until > Time::ZERO {
            return false;
        }
        if node.settings != NodeSettings::default() {
            self.persist_node(address);
        } else {
            self.nodes.remove(address);
            self.open.batch.delete(Table::Nodes, address.as_bytes());
        }
        true
    }

    /// Applies changed settings of administrators to the scheduler's view at once.
    pub(crate) fn set_node_settings(
        &mut self,
        now: Time,
        address: &str,
        settings: NodeSettings,
        out: &mut Vec<Effect>,
    ) {
        let Some(node) = self.nodes.get_mut(address) else { return };
        let disabled = settings.banned || settings.disable_scheduler_jobs;
        let reason =
            if settings.banned { AbortReason::NodeBanned } else { AbortReason::NodeWithDisabledJobs };
        node.settings = settings;
        // Other limits come with the node's next heartbeat: only it knows what it has.
        if disabled {
            let leaving = if node.settings.banned { 0 } else { node.jobs.len() as i64 };
            node.report.resource_limits.user_slots = leaving;
            node.report.has_waiting_allocations = true;
        }
        let (report, jobs) = (node.report.clone(), node.jobs.clone());
        if node.key.is_some() {
            self.scheduler.heartbeat(now, address, &report);
        }
        self.persist_node(address);
        let text = "Jobs are disabled on this node";
        match (disabled, reason) {
            (false, _) => {}
            // Those that can be asked to stop are, the others go at once (jobs-and-nodes.md 3.9).
            (true, AbortReason::NodeWithDisabledJobs) => {
                let why = InterruptionReason::JobsDisabledOnNode;
                for job in jobs {
                    self.note_interruption(job, why, None);
                    self.interrupt(job, DISABLED_JOBS_INTERRUPTION_TIMEOUT, why, text.into(), out);
                }
            }
            (true, reason) => jobs.into_iter().for_each(|job| self.order_abort(job, reason, text, out)),
        }
    }

    /// Remembers the tree of a node: if several want it, it stays where it was (scheduling.md 2.1).
    fn note_tree(&mut self, address: &str, tree: Option<&str>) {
        let Some(tree) = tree else { return };
        let Some(node) = self.nodes.get_mut(address).filter(|node| node.tree.as_deref() != Some(tree)) else {
            return;
        };
        node.tree = Some(tree.to_owned());
        self.persist_node(address);
    }

    /// Filters of trees have changed.
    pub(crate) fn note_trees(&mut self) {
        let addresses: Vec<String> = self.nodes.iter().map(|node| node.address.clone()).collect();
        for address in addresses {
            let tree = self.scheduler.tree_of_node(&address).cloned();
            self.note_tree(&address, tree.as_deref());
        }
    }

    pub(crate) fn persist_node(&mut self, address: &str) {
        let Some(node) = self.nodes.get(address) else { return };
        let record = yson::map! {
            // The next life waits for nodes that may run something.
            "registered" => node.register_time > Time::ZERO
                || !node.jobs.is_empty()
                || self.leases.has_fence_on(address)
                || self.nodes.is_missing(address),
            "settings" => node.settings.to_map(),
        }
        .with_some("tree", node.tree.clone())
        .with_some("data_id", Some(node.data_id.as_str()).filter(|id| !id.is_empty()))
        .with_some("distrusted_until", Some(node.distrusted_until.0).filter(|until| *until > 0));
        self.open.batch.put(Table::Nodes, address.as_bytes(), yson::to_binary(&record.into()));
    }

    /// Reads a node's record back.
    pub(crate) fn restore_node(&mut self, key: &[u8], value: &Value) -> Result<(), Failure> {
        let address = String::from_utf8_lossy(key).into_owned();
        let settings = value.get("settings").and_then(Value::as_map).cloned().unwrap_or_default();
        let settings = NodeSettings::default().changed(&settings)?;
        let registered = value.get("registered").and_then(Value::as_bool).unwrap_or(false);
        let until = Time(value.get("distrusted_until").and_then(Value::as_u64).unwrap_or(0));
        let is_distrusted = until > self.started;
        self.nodes.expect(&address, settings, registered || is_distrusted);
        if is_distrusted {
            self.leases.distrusted.insert(address.clone());
        }
        if let Some(node) = self.nodes.get_mut(&address) {
            node.tree = value.get("tree").and_then(Value::as_str).map(str::to_owned);
            node.data_id = value.get("data_id").and_then(Value::as_str).unwrap_or_default().to_owned();
            node.distrusted_until = if is_distrusted { until } else { Time::ZERO };
        }
        Ok(())
    }

    /// Attributes of a node as the tree shows them (http-api.md 7.1).
    pub(crate) fn node_attributes(&self, node: &Node, wanted: &[String]) -> Map {
        let settings = node.settings.to_map();
        let used = self.scheduler.node(&node.address).map(|n| n.resource_usage).unwrap_or_default();
        // Whoever lists nodes as he lists folders looks for it. What jobs write to disk is not counted.
        let resource_usage = used.to_value().as_map().cloned().unwrap_or_default().with("disk_space", 0i64);
        let map = yson::map! {
            "type" => "cluster_node",
            "address" => node.address.as_str(),
            "state" => node.state(),
            "tags" => node.report.tags.iter().map(String::as_str).collect::<Vec<_>>(),
            "flavors" => vec!["exec"],
            "resource_limits" => node.report.resource_limits.to_value(),
            "resource_usage" => resource_usage,
            "job_environment" => node.job_environment.as_str(),
            "alerts" => node.alerts.iter().map(Failure::to_value).collect::<Vec<_>>(),
            "last_seen_time" => node.last_seen,
            "register_time" => node.register_time,
            "job_count" => node.jobs.len(),
            // Nobody says where nodes stand.
            "rack" => yson::Value::Entity,
            "data_center" => yson::Value::Entity,
            "opaque" => true,
        }
        .with_some("leases_extended_until", Some(node.leases_extended_until).filter(|t| *t > Time::ZERO))
        // Agents of release 0.1: their jobs have no leases.
        .with_some("knows_leases", Some(false).filter(|_| node.key.is_some() && node.stamp == Span::ZERO));
        let waits = match node.key {
            Some(_) => None,
            None => Some(self.waits_of_node(node)),
        };
        let map = map
            .with_some("waiting_unit_count", waits.map(|w| w.units).filter(|units| *units > 0))
            .with_some("waiting_until", waits.and_then(|w| w.until));
        only(settings.into_iter().chain(map).collect(), wanted)
    }
}

impl NodeSettings {
    pub fn to_map(&self) -> Map {
        yson::map! {
            "banned" => self.banned,
            "ban_message" => self.ban_message.as_str(),
            "disable_scheduler_jobs" => self.disable_scheduler_jobs,
            "resource_limits_overrides" => self.resource_limits_overrides.iter().map(|(k, v)| (k.as_str(), *v)).collect::<Map>(),
            "user_tags" => self.user_tags.iter().map(String::as_str).collect::<Vec<_>>(),
        }
    }

    /// These settings with the given ones replaced; an error names the attribute and what is allowed.
    pub fn changed(&self, changes: &Map) -> Result<NodeSettings, Failure> {
        let mut out = self.clone();
        for (key, value) in changes.iter() {
            let name = String::from_utf8_lossy(key).into_owned();
            let wrong = |expected: &str| {
                Failure::new(format!(
                    "Attribute \"{name}\" of a node: expected {expected}, found {} {value:?}",
                    value.type_name()
                ))
                .with("attribute", name.as_str())
            };
            match name.as_str() {
                "banned" => out.banned = value.as_bool().ok_or_else(|| wrong("a boolean"))?,
                "disable_scheduler_jobs" => {
                    out.disable_scheduler_jobs = value.as_bool().ok_or_else(|| wrong("a boolean"))?;
                }
                "ban_message" => {
                    out.ban_message = value.as_str().ok_or_else(|| wrong("a string"))?.to_owned()
                }
                "user_tags" => {
                    let list = value.as_list().ok_or_else(|| wrong("a list of strings"))?;
                    let tags = list.iter().map(|v| v.as_str().map(str::to_owned)).collect::<Option<_>>();
                    out.user_tags = tags.ok_or_else(|| wrong("a list of strings"))?;
                }
                "resource_limits_overrides" => {
                    let expected =
                        "a map from cpu, memory, user_slots, gpu, network to amounts of at least 0";
                    let map = value.as_map().ok_or_else(|| wrong(expected))?;
                    let mut overrides = BTreeMap::new();
                    for (resource, amount) in map.iter() {
                        let known = vocab::Resource::parse(resource).ok_or_else(|| wrong(expected))?;
                        let amount = amount.as_f64().filter(|a| a.is_finite() && *a >= 0.0);
                        overrides.insert(known.as_str().to_owned(), amount.ok_or_else(|| wrong(expected))?);
                    }
                    out.resource_limits_overrides = overrides;
                }
                other => {
                    return Err(Failure::new(format!(
                        "Attribute \"{other}\" of a node cannot be set: expected one of banned, ban_message, \
                         disable_scheduler_jobs, resource_limits_overrides, user_tags"
                    ))
                    .with("attribute", other));
                }
            }
        }
        Ok(out)
    }
}
