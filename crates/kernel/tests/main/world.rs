//! A kernel with all that it needs around it and nothing that decides: a durable map, commits that
//! can be held back, the outbox of the server, and nodes that do as they are told.
//!
//! Time is a number. A crash may come between any two effects: what was not carried out is gone,
//! the next life knows only the durable map and what nodes say when they come back.

use crate::node::{Kept, Node};
use kernel::{
    Body, Command, Config, Effect, Input, JoinRequest, Kernel, NodeKey, NodeProof, Records, Request, Seq,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use vocab::batch::{Batch, Op, Table};
use vocab::{Failure, Guid, JobId, OperationId, Span, Time};
use wire::{NodeMessage, ServerMessage};

/// Contents of a store.
pub type Store = BTreeMap<(Table, Vec<u8>), Vec<u8>>;

/// Puts a batch into a store.
pub fn apply(store: &mut Store, batch: &Batch) {
    for op in &batch.ops {
        match op.clone() {
            Op::Put { table, key, value } => drop(store.insert((table, key), value)),
            Op::Delete { table, key } => drop(store.remove(&(table, key))),
            Op::DeletePrefix { table, prefix } => {
                store.retain(|(t, key), _| *t != table || !key.starts_with(&prefix));
            }
        }
    }
}

/// What the world saw, for transcripts and for those who check.
#[derive(Debug)]
pub enum Event {
    /// The kernel gave an order; it may never arrive.
    Ordered(ServerMessage),
    /// An order arrived.
    Arrived(String, ServerMessage),
    /// A reply arrived at the client.
    Replied(u64),
    /// Something is to be deleted, said in words.
    Deleted(String),
    /// The kernel closed a connection.
    Closed(String),
}

/// SHA-256 of the key of a node, if nodes have identities.
fn key_of(name: &str) -> String {
    let digits: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("{digits:0<64}")
}

/// What a node proves, if nodes have identities.
pub fn proof_of(name: &str) -> NodeProof {
    NodeProof::Certificate { key_sha256: key_of(name) }
}

/// See the module page.
pub struct World {
    pub now: Time,
    pub config: Config,
    kernel: Option<Kernel>,
    /// What a crash leaves.
    pub durable: Store,
    /// The same with everything that is on its way there.
    pub ahead: Store,
    /// On their way, oldest first.
    pub commits: VecDeque<(Seq, Batch)>,
    durable_seq: Seq,
    held: VecDeque<(Seq, Effect)>,
    /// Not heard by the kernel yet.
    pub inputs: VecDeque<Input>,
    pub nodes: BTreeMap<String, Node>,
    keys: BTreeMap<NodeKey, String>,
    next_key: u64,
    next_request: u64,
    /// Arrived and not looked at yet.
    pub replies: BTreeMap<u64, Result<Body, Failure>>,
    /// How many of them the kernel has left for others to make, as is done here.
    pub made_by_others: usize,
    pub events: Vec<Event>,
    /// The files of the event log: a crash does not touch them.
    pub log: Vec<yson::Map>,
    /// Commits wait until [`World::commit`].
    pub hold: bool,
    /// When the kernel wants to be called again.
    pub wake: Time,
    /// What the kernel says has changed.
    pub versions: kernel::Versions,
    /// Steps until the next crash.
    pub fuse: Option<usize>,
    /// Sum over all effects so far, in order: equal for equal histories.
    pub fingerprint: u64,
    /// Jobs that the kernel does not want any more: they may overlap with the next run of their unit.
    pub given_up: BTreeSet<JobId>,
    /// Jobs whose completion was newly counted.
    pub completed: Vec<JobId>,
    /// Violations that the world itself notices.
    pub violations: Vec<String>,
    /// Vaults that the edge cannot decrypt at the next start.
    pub locked_vaults: BTreeMap<OperationId, Failure>,
}

impl World {
    /// A new cluster with its server running.
    pub fn new(change: impl FnOnce(&mut Config)) -> World {
        let mut config = Config::new("server:9013", 0);
        config.node_identities = false;
        change(&mut config);
        let mut world = World {
            now: Time::from_secs(1_000_000),
            config,
            kernel: None,
            durable: Store::new(),
            ahead: Store::new(),
            commits: VecDeque::new(),
            durable_seq: 0,
            held: VecDeque::new(),
            inputs: VecDeque::new(),
            nodes: BTreeMap::new(),
            keys: BTreeMap::new(),
            next_key: 0,
            next_request: 0,
            replies: BTreeMap::new(),
            made_by_others: 0,
            events: Vec::new(),
            log: Vec::new(),
            hold: false,
            wake: Time::MAX,
            versions: kernel::Versions::default(),
            fuse: None,
            fingerprint: 0xcbf2_9ce4_8422_2325,
            given_up: BTreeSet::new(),
            completed: Vec::new(),
            violations: Vec::new(),
            locked_vaults: BTreeMap::new(),
        };
        world.restart();
        world
    }

    pub fn is_up(&self) -> bool {
        self.kernel.is_some()
    }

    pub fn kernel(&self) -> &Kernel {
        self.kernel.as_ref().expect("the server runs")
    }

    // --- the server's life

    /// The next life of the server, from what is durable.
    pub fn restart(&mut self) {
        self.try_restart().unwrap_or_else(|error| panic!("{error}"));
    }

    /// The same, if the server starts.
    pub fn try_restart(&mut self) -> Result<(), Failure> {
        assert!(self.kernel.is_none(), "the server runs already");
        self.config.life += 1;
        let mut records = Records::default();
        for ((table, key), value) in &self.durable {
            if Records::TABLES.contains(table) {
                match kernel::operation_of_vault(*table, key)
                    .and_then(|id| Some((id, self.locked_vaults.get(&id)?)))
                {
                    Some((id, why)) => records.add_locked_vault(id, why.clone()),
                    None => records.add(*table, key, value),
                }
            }
        }
        let mut out = Vec::new();
        let recovered = Kernel::recover(self.config.clone(), records, self.now, &mut out);
        self.kernel = Some(recovered.map_err(|error| Failure::new(error.to_string()))?);
        self.carry_out_all(out);
        self.settle();
        Ok(())
    }

    /// `kill -9`. Of the commits on their way, the first `landed` have made it; nobody heard of that.
    pub fn crash(&mut self, landed: usize) {
        for (_, batch) in self.commits.drain(..).take(landed) {
            apply(&mut self.durable, &batch);
        }
        self.kernel = None;
        self.commits.clear();
        self.held.clear();
        self.inputs.clear();
        self.durable_seq = 0;
        self.ahead.clone_from(&self.durable);
        self.keys.clear();
        self.fuse = None;
        for node in self.nodes.values_mut().filter(|n| n.key.is_some()) {
            node.key = None;
            node.away_since = Some(self.now);
        }
    }

    /// A stop that was asked for: everything is written.
    pub fn stop(&mut self) {
        self.settle();
        let mut out = Vec::new();
        if let Some(kernel) = &mut self.kernel {
            kernel.stop(self.now, &mut out);
        }
        self.carry_out_all(out);
        self.commit(usize::MAX);
        self.crash(0);
    }

    // --- the loop of the edge

    /// Turns until nothing is left to do at once: a batch that lingers is committed, too.
    pub fn settle(&mut self) {
        self.turn();
        while self.is_up() && self.wake <= self.now + Span::from_millis(10) {
            self.now = self.now.max(self.wake);
            self.turn();
        }
        if self.is_up() && self.commits.is_empty() {
            for (after, effect) in &self.held {
                self.violations
                    .push(format!("KERNEL-4: waits for batch {after}, which does not come: {effect:?}"));
            }
        }
    }

    /// Lets the kernel hear everything that came in, and carries out what it wants, until it is quiet.
    pub fn turn(&mut self) {
        for _ in 0..1000 {
            let mut out = Vec::new();
            let Some(kernel) = &mut self.kernel else { return };
            for input in self.inputs.drain(..) {
                kernel.handle(self.now, input, &mut out);
            }
            let flushed = kernel.flush(self.now, true, &mut out);
            (self.wake, self.versions) = (flushed.wake, flushed.versions);
            self.carry_out_all(out);
            if !self.hold {
                self.commit(usize::MAX);
            }
            if self.inputs.is_empty() {
                return;
            }
        }
        self.violations.push("LIVE: server and nodes never stop talking".into());
    }

    /// Counts a step; true when the server dies before it.
    fn dies_here(&mut self) -> bool {
        match &mut self.fuse {
            Some(0) => {
                // Half of the commits on their way, at most: their replies are lost in any case.
                let landed = self.commits.len() / 2;
                self.crash(landed);
                true
            }
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        }
    }

    fn carry_out_all(&mut self, out: Vec<Effect>) {
        for effect in out {
            self.fingerprint(&effect);
            if self.dies_here() {
                return;
            }
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        let after = match effect {
            Effect::Commit { seq, batch, .. } => {
                apply(&mut self.ahead, &batch);
                self.note_ends(&batch);
                let expected = self.commits.back().map_or(self.durable_seq, |(last, _)| *last) + 1;
                if seq != expected {
                    self.violations.push(format!("KERNEL-4: batch {seq} comes where {expected} should"));
                }
                self.commits.push_back((seq, batch));
                return;
            }
            Effect::ToNode { after, ref message, .. } => {
                self.note_order(message);
                self.events.push(Event::Ordered(message.clone()));
                after
            }
            Effect::Reply { after, .. }
            | Effect::Events { after, .. }
            | Effect::ForgetOperation { after, .. }
            | Effect::DeleteBlob { after, .. }
            | Effect::CollectGarbage { after } => after,
            Effect::Disconnect(_) => 0,
        };
        if after > self.durable_seq {
            self.held.push_back((after, effect));
        } else {
            self.deliver(effect);
        }
    }

    /// Makes the oldest commits durable, at most so many, and lets go what waited for them.
    pub fn commit(&mut self, count: usize) {
        for _ in 0..count {
            if self.commits.is_empty() || self.dies_here() {
                break;
            }
            let Some((seq, batch)) = self.commits.pop_front() else { break };
            apply(&mut self.durable, &batch);
            self.durable_seq = seq;
            while self.held.front().is_some_and(|(after, _)| *after <= seq) {
                if self.dies_here() {
                    return;
                }
                if let Some((_, effect)) = self.held.pop_front() {
                    self.deliver(effect);
                }
            }
        }
    }

    fn deliver(&mut self, effect: Effect) {
        match effect {
            Effect::Commit { .. } => {}
            Effect::Reply { request, body, .. } => {
                if let Ok(Body::Value(value)) = &body
                    && let Some(id) = value.get("operation_id").and_then(|id| id.as_str()?.parse().ok())
                {
                    self.must_be_durable(id, "was acknowledged");
                }
                let body = match body {
                    Ok(Body::Snapshot(query)) => {
                        self.made_by_others += 1;
                        Ok(Body::Value(query.answer()))
                    }
                    other => other,
                };
                self.replies.insert(request, body);
                self.events.push(Event::Replied(request));
            }
            Effect::ToNode { node: key, message, .. } => {
                let Some(name) = self.keys.get(&key).cloned() else { return };
                match &message {
                    ServerMessage::Start(starts) => {
                        for start in starts {
                            self.must_be_durable(start.identity.operation_id, "has a job");
                        }
                    }
                    ServerMessage::Release(jobs) => self.must_be_counted(jobs),
                    _ => {}
                }
                // On a dead connection, or to somebody who only claims to be a node.
                if let Some(node) = self.nodes.get_mut(&name) {
                    if node.key != Some(key) {
                        return;
                    }
                    if let Some(answer) = node.hear(self.now, &message) {
                        self.inputs.push_back(Input::Node { node: key, message: answer });
                    }
                }
                self.events.push(Event::Arrived(name, message));
            }
            Effect::Disconnect(key) => {
                if let Some(name) = self.keys.remove(&key) {
                    if let Some(node) = self.nodes.get_mut(&name).filter(|n| n.key == Some(key)) {
                        node.key = None;
                        node.away_since = Some(self.now);
                    }
                    self.inputs.push_back(Input::NodeDisconnected(key));
                    self.events.push(Event::Closed(name));
                }
            }
            Effect::ForgetOperation { id, .. } => {
                let prefix = id.0.to_bytes();
                for store in [&mut self.durable, &mut self.ahead] {
                    store.retain(|(table, key), _| {
                        !matches!(table, Table::JobArchive | Table::Stderr | Table::FailContext)
                            || !key.starts_with(&prefix)
                    });
                }
                self.events.push(Event::Deleted(format!("operation {id}")));
            }
            Effect::Events { first, stored, .. } => self.write_log(first, &stored),
            Effect::CollectGarbage { .. } => self.events.push(Event::Deleted("garbage".to_owned())),
            Effect::DeleteBlob { blob, .. } => self.events.push(Event::Deleted(format!("blob {blob}"))),
        }
    }

    /// Appends what is not there yet, and says so.
    fn write_log(&mut self, first: u64, stored: &[u8]) {
        for event in kernel::events_of(first, stored) {
            let event = event.expect("the kernel reads what it writes");
            let number = event.get("number").and_then(|n| n.as_u64()).expect("events are numbered");
            let next = self.log.len() as u64 + 1;
            if number > next {
                self.violations.push(format!("LOG: event {number} comes where {next} should"));
            }
            if number >= next {
                self.log.push(event);
                self.inputs.push_back(Input::EventsWritten(number));
            }
        }
    }

    /// Every end that is durable is in the log once, and nothing that is not.
    pub fn check_log(&mut self) {
        let text = |event: &yson::Map, key: &str| {
            event.get(key).and_then(|v| v.as_str()).unwrap_or_default().to_owned()
        };
        let ends: Vec<String> = self
            .log
            .iter()
            .filter(|e| ["job_completed", "job_failed", "job_aborted"].contains(&&*text(e, "event")))
            .map(|e| text(e, "job_id"))
            // Those that nobody has reported after a restart have no ids.
            .filter(|id| !id.is_empty())
            .collect();
        let logged: BTreeSet<&String> = ends.iter().collect();
        if logged.len() < ends.len() {
            self.violations.push("LOG: the end of a job is there twice".to_owned());
        }
        let started: BTreeSet<String> = self
            .log
            .iter()
            .filter(|e| ["job_started", "job_adopted"].contains(&&*text(e, "event")))
            .map(|e| text(e, "job_id"))
            .collect();
        for job in logged.iter().filter(|job| !started.contains(**job)) {
            self.violations.push(format!("LOG: job {job} ended and never started"));
        }
        for ((table, _), value) in &self.durable {
            if *table == Table::JobArchive {
                let job = kernel::archived_job(value).unwrap_or_default();
                let id = text(&job, "id");
                if !logged.contains(&id) {
                    self.violations.push(format!("LOG: the end of job {id} is missing"));
                }
            }
        }
    }

    // --- what must never happen (KERNEL-4)

    fn must_be_durable(&mut self, id: OperationId, what: &str) {
        let prefix = id.0.to_bytes().to_vec();
        let there = |table: Table| {
            let mut from = self.durable.range((table, prefix.clone())..);
            from.next().is_some_and(|((t, key), _)| *t == table && key.starts_with(&prefix))
        };
        if !there(Table::Operations) && !there(Table::OperationArchive) {
            self.violations.push(format!("KERNEL-4: operation {id} {what} and is not durable"));
        }
    }

    fn must_be_counted(&mut self, jobs: &[JobId]) {
        for job in jobs {
            let end = job.0.to_bytes();
            let of_job = |((table, key), _): &(&(Table, Vec<u8>), _)| {
                *table == Table::JobArchive && key.ends_with(&end)
            };
            let on_its_way = self.commits.iter().flat_map(|(_, batch)| &batch.ops).any(|op| match op {
                Op::Put { table, key, .. } => *table == Table::JobArchive && key.ends_with(&end),
                _ => false,
            });
            if on_its_way && !self.durable.iter().any(|entry| of_job(&entry)) {
                self.violations
                    .push(format!("KERNEL-4: the end of job {job} was released and is not durable"));
            }
        }
    }

    /// A job that was told to stop may still run for a while.
    fn note_order(&mut self, message: &ServerMessage) {
        if let ServerMessage::Abort(orders) = message {
            self.given_up.extend(orders.iter().map(|o| o.job_id));
        }
    }

    /// Jobs that were given up while their node was away are told when it is back.
    fn note_ends(&mut self, batch: &Batch) {
        for op in &batch.ops {
            let Op::Put { table: Table::JobArchive, key, value } = op else { continue };
            let job = kernel::archived_job(value).unwrap_or_default();
            let text = |key: &str| job.get(key).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
            // Only decisions: that a job has disappeared is a belief, and may be wrong.
            let decided = ["operation_suspended", "operation_incarnation_changed"]
                .contains(&text("abort_reason").as_str());
            // Made complete later, when its node has told the rest.
            let is_known = self.ahead.contains_key(&(Table::JobArchive, key.clone()));
            if text("state") == "completed" && !is_known {
                self.completed.extend(text("id").parse::<JobId>());
            }
            if decided && let Ok(id) = text("id").parse() {
                self.given_up.insert(id);
            }
        }
    }

    fn fingerprint(&mut self, effect: &Effect) {
        let mut add = |bytes: &[u8]| {
            for byte in bytes {
                self.fingerprint = (self.fingerprint ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            }
        };
        let Effect::Commit { seq, batch, .. } = effect else { return add(format!("{effect:?}").as_bytes()) };
        add(&seq.to_be_bytes());
        // Most bytes are here, and printing them takes longer than all else.
        for op in &batch.ops {
            match op {
                Op::Put { table, key, value } => [table.as_str().as_bytes(), key, value].map(&mut add),
                Op::Delete { table, key } => [table.as_str().as_bytes(), key, b"-"].map(&mut add),
                Op::DeletePrefix { table, prefix } => [table.as_str().as_bytes(), prefix, b"*"].map(&mut add),
            };
        }
    }

    // --- clients

    /// Sends a request; the reply, if one comes, is in `replies` under the number.
    pub fn send(&mut self, user: &str, mutation_id: Option<Guid>, command: Command) -> u64 {
        self.next_request += 1;
        let request = Request { id: self.next_request, user: user.to_owned(), mutation_id, command };
        if self.kernel.is_some() {
            self.inputs.push_back(Input::Request(request));
        }
        self.next_request
    }

    /// Sends, lets the world turn, and gives the reply; none if the server holds it back.
    pub fn ask(&mut self, user: &str, command: Command) -> Option<Result<Body, Failure>> {
        let request = self.send(user, None, command);
        self.settle();
        self.replies.remove(&request)
    }

    // --- nodes

    pub fn connect(&mut self, name: &str) {
        let Some(node) = self.nodes.get_mut(name) else { return };
        if self.kernel.is_none() {
            return;
        }
        self.next_key += 1;
        let key = NodeKey(self.next_key);
        // The server may not have noticed that an older connection is dead: it stays in `keys`.
        node.key = Some(key);
        node.next_heartbeat = self.now + Span::from_secs(5);
        self.keys.insert(key, name.to_owned());
        let hello = node.hello();
        if self.config.node_identities {
            // Where nobody has to prove who they are it joins by itself.
            let request = JoinRequest {
                name: name.to_owned(),
                key_sha256: key_of(name),
                token_sha256: None,
                address: None,
            };
            self.send("root", None, Command::JoinNode(Box::new(request)));
            self.inputs.push_back(Input::NodeConnected { node: key, proof: proof_of(name) });
        }
        self.inputs.push_back(Input::Node { node: key, message: NodeMessage::Hello(hello) });
    }

    /// A second node that claims the name of one that is connected.
    pub fn impostor(&mut self, name: &str) {
        self.next_key += 1;
        let key = NodeKey(self.next_key);
        let Some(node) = self.nodes.get(name) else { return };
        let hello = wire::Hello { incarnation: node.incarnation + 1, ..node.hello() };
        self.keys.insert(key, format!("impostor of {name}"));
        self.inputs.push_back(Input::Node { node: key, message: NodeMessage::Hello(hello) });
    }

    pub fn disconnect(&mut self, name: &str) {
        let Some(node) = self.nodes.get_mut(name) else { return };
        if let Some(key) = node.key.take() {
            node.away_since = Some(self.now);
            self.keys.remove(&key);
            self.inputs.push_back(Input::NodeDisconnected(key));
        }
    }

    /// A message of a node, if it is connected.
    pub fn say(&mut self, name: &str, message: NodeMessage) {
        if let Some(key) = self.nodes.get(name).and_then(|n| n.key) {
            self.inputs.push_back(Input::Node { node: key, message });
        }
    }

    /// The job's end happens on its node, whoever hears of it.
    pub fn end_job(&mut self, name: &str, job: JobId, outcome: vocab::JobOutcome) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(name) else { return };
        if let Some(Kept { report, .. }) = node.end(now, job, outcome) {
            let report = report.clone();
            self.say(name, NodeMessage::Jobs(vec![wire::JobEvent::Finished(Box::new(report))]));
        }
    }

    /// Lets time pass in small steps: heartbeats, periodic work of the kernel.
    pub fn pass(&mut self, span: Span) {
        let end = self.now + span;
        // Never longer than the period of heartbeats.
        let step = Span::from_micros((span.as_micros() / 10).clamp(500_000, 5_000_000));
        while self.now < end {
            self.now = end.min(self.now + step);
            let due: BTreeSet<String> = self
                .nodes
                .values()
                .filter(|n| n.key.is_some() && n.next_heartbeat <= self.now)
                .map(|n| n.name.clone())
                .collect();
            for name in due {
                if let Some(node) = self.nodes.get_mut(&name) {
                    node.next_heartbeat = self.now + Span::from_secs(5);
                    let heartbeat = node.heartbeat();
                    self.say(&name, NodeMessage::Heartbeat(heartbeat));
                }
            }
            self.inputs.push_back(Input::Tick);
            self.settle();
            if self.kernel.is_none() {
                self.inputs.clear();
            }
        }
    }
}
