//! The loop: events of an instant, then the server, then again until the instant is quiet
//! (simulator.md 5).

mod agent;
mod answers;
mod arrivals;
pub(crate) mod columns;
mod cpu;
mod faults;
mod fragments;
pub(crate) mod ledger;
mod life;
mod look;
mod node;
mod performance;
#[cfg(test)]
mod planted;
mod queue;
mod resume;
mod scripted;
pub(crate) mod series;
mod server;
mod setup;
mod snapshot;
mod stages;
mod summary;
mod usage;
mod work;

pub use look::Stopped;
pub use node::Counts;
pub use performance::Meter;

use crate::error::SimError;
use crate::output::{Beside, Format, Sink, pools::Pools};
use crate::random::name_hash;
use crate::scenario::{MemoryPolicy, Scenario};
use crate::workload::{Operation, Workload, oracle};
use kernel::{Body, Command, Input, NodeKey, OperationRef};
use ledger::Ledger;
use node::{Around, Node};
use queue::{Due, Queue};
use scheduler::Starved;
use server::{Outcome, Server};
use stages::Stages;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use vocab::planted::{Bug, strikes};
use vocab::{Failure, Guid, OperationId, OperationType, Span, Time};
use work::Physics;

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Form of the tables.
    pub format: Format,
    /// End here, if that is before the end of the scenario.
    pub until: Option<Span>,
    /// Leave out what would change nothing. The output is the same without.
    pub shortcuts: bool,
    /// Check the invariants of the core after every share update; slow.
    pub check_invariants: bool,
    /// With more than one, another one writes the tables. What comes out is the same.
    pub threads: usize,
    /// What measures the run; the simulation itself has no clock.
    pub meter: Option<Meter>,
    /// Let things go wrong, by this seed, for the first five minutes.
    pub faults: Option<u64>,
    /// Adds an event of the event log to [`Ran::log`].
    pub on_event: Option<fn(&mut String, &yson::Map)>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            format: Format::Csv,
            until: None,
            shortcuts: true,
            check_invariants: false,
            threads: 1,
            meter: None,
            faults: None,
            on_event: None,
        }
    }
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Virtual time.
    pub elapsed: Span,
    /// The whole of it.
    pub duration: Span,
    /// Jobs that run now.
    pub running_jobs: usize,
    /// Operations that have not ended.
    pub operations: usize,
    /// What was done.
    pub counts: Counts,
    /// Fair-share updates.
    pub updates: u64,
}

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Ran {
    /// At the end.
    pub progress: Progress,
    /// It was ended early.
    pub interrupted: bool,
    /// Violated invariants of the core, by name.
    pub violations: Vec<String>,
    /// `summary.json` without the speed.
    pub summary: yson::Map,
    /// The text that [`Options::on_event`] made of the events.
    pub log: String,
}

/// What a reply is for.
enum Asked {
    Setup,
    Start(Box<Operation>),
    /// An event of the scenario, by its place.
    Scripted(usize),
    /// A part of what an event of the scenario wants to see.
    Snapshot(usize, String),
    /// Jobs that have arrived.
    Arrival(OperationId),
    Other,
}

struct Engine<'a> {
    scenario: &'a Scenario,
    options: Options,
    now: Time,
    end: Time,
    server: Server,
    queue: Queue,
    nodes: Vec<Node>,
    /// Nodes by connection; connections are numbered from 1.
    keys: Vec<Option<u32>>,
    physics: Physics,
    workload: Workload,
    /// Of the workload, by name.
    by_name: BTreeMap<String, OperationId>,
    /// Operations that their owners abort.
    owners: Vec<String>,
    inputs: Vec<Input>,
    asked: BTreeMap<u64, Asked>,
    ledger: Ledger,
    sink: Sink,
    pools: Pools,
    counts: Counts,
    /// By tree, of lives of the server that are over.
    stages: BTreeMap<String, Stages>,
    fragments: fragments::Fragments,
    updates: u64,
    refused: u64,
    refusals: Vec<String>,
    failures: BTreeMap<u32, u64>,
    violations: Vec<String>,
    log: String,
    /// Operations whose submission nobody has answered.
    lost: Vec<Operation>,
    faults: Option<faults::Faults>,
    /// Snapshots of which not everything has been told, by the numbers of their events.
    snapshots: BTreeMap<usize, snapshot::Snapshot>,
    beside: Beside,
    /// Messages on their way to nodes.
    answers: answers::Answers,
}

/// Runs a scenario; `watch` is called now and then and says whether to go on. Files are complete and
/// valid however the run ends.
pub fn run(
    scenario: &Scenario,
    folder: &Path,
    options: Options,
    watch: &mut dyn FnMut(&Progress) -> bool,
    performance: &mut dyn FnMut(&Progress) -> yson::Map,
) -> Result<Ran, SimError> {
    let begun = options.meter.map_or(0, |meter| (meter.now)());
    let sink = Sink::create(folder, scenario, options.format, options.threads)?;
    let mut engine = Engine::new(scenario, sink, Beside::create(folder)?, options)?;
    let mut interrupted = false;
    let mut instants = 0u64;
    while !engine.is_over() {
        engine.step()?;
        instants += 1;
        if instants.is_multiple_of(512) && !watch(&engine.progress()) {
            interrupted = true;
            break;
        }
    }
    engine.beside.finish()?;
    engine.finish(interrupted, begun, performance)
}

impl Engine<'_> {
    fn progress(&self) -> Progress {
        Progress {
            elapsed: self.now.since(self.scenario.start),
            duration: self.end.since(self.scenario.start),
            running_jobs: self.ledger.running(),
            operations: self.ledger.unfinished(),
            counts: self.counts,
            updates: self.updates,
        }
    }

    fn next_time(&self) -> Time {
        self.queue.next_time().unwrap_or(Time::MAX).min(self.server.wake())
    }

    fn is_over(&self) -> bool {
        let idle = self.scenario.stop_when_idle
            && self.workload.next_time().is_none()
            && self.ledger.unfinished() == 0
            && self.asked.is_empty()
            && self.lost.is_empty();
        // Faults are a story up to the first thing that must not happen.
        let found = self.faults.is_some() && !self.violations.is_empty();
        idle || found || self.next_time() >= self.end
    }

    /// One instant.
    fn step(&mut self) -> Result<(), SimError> {
        self.now = self.next_time().max(self.now);
        // An instant that never gets quiet would be a mistake of the simulator or of the core.
        for round in 0.. {
            assert!(round < 100_000, "nodes and server never stop talking at {}", self.now);
            let mut busy = false;
            while let Some(due) = self.queue.pop(self.now, false) {
                busy = true;
                self.act(due)?;
            }
            if !busy && self.inputs.is_empty() && self.server.wake() > self.now {
                break;
            }
            self.turn()?;
        }
        while let Some(due) = self.queue.pop(self.now, true) {
            self.act(due)?;
        }
        Ok(())
    }

    fn turn(&mut self) -> Result<(), SimError> {
        let mut outcomes = Vec::new();
        if let Some(faults) = &mut self.faults {
            self.inputs.iter().for_each(|input| faults.note_input(input));
            faults.hold_back(&self.keys, &mut self.inputs);
        }
        let updated = self.server.turn(self.now, &mut self.inputs, &mut outcomes);
        for outcome in outcomes {
            self.hear(outcome)?;
        }
        if self.server.has_died() {
            self.server_dies(Span::from_secs(2));
        }
        if self.faults.is_some() {
            self.check_nodes();
        }
        let touched = std::mem::take(&mut self.ledger.touched);
        if let Some(kernel) = self.server.kernel() {
            if updated {
                self.updates += 1;
                self.pools.updated(self.now, kernel);
                let snapshot = kernel.scheduler().snapshot();
                let starving = snapshot.trees().flat_map(|tree| tree.starving());
                let operations = starving.filter_map(|(who, aggressively)| match who {
                    Starved::Operation(id) => Some((id, aggressively)),
                    Starved::Pool(_) => None,
                });
                self.ledger.starving(self.now, operations);
            } else {
                touched.into_iter().for_each(|place| self.pools.touched(self.now, kernel, place));
            }
        }
        // When things go wrong, what holds after the next update may not hold now.
        if self.options.check_invariants && (updated || self.faults.is_some()) {
            self.check_core();
        }
        if self.faults.is_some() {
            self.check_exclusive_units();
        }
        Ok(())
    }

    fn check_core(&mut self) {
        let Some(kernel) = self.server.kernel() else { return };
        let at = self.now.since(self.scenario.start).as_millis();
        let found = kernel.check_invariants();
        self.violations.extend(found.into_iter().map(|what| format!("{at} ms: {what}")));
    }

    fn hear(&mut self, outcome: Outcome) -> Result<(), SimError> {
        match outcome {
            Outcome::ToNode(key, message) => {
                if let Some(node) = self.node_of(key)
                    && !self.is_late(key, node, &message)
                {
                    self.tell_node(key, node, message);
                }
            }
            Outcome::Closed(key) => {
                if let Some(node) = self.node_of(key) {
                    self.keys[key.0 as usize] = None;
                    // A node that is cut off does not hear of it.
                    if self.faults.as_ref().is_some_and(|faults| faults.is_deaf(node)) {
                        return Ok(());
                    }
                    self.with_node(node, Node::disconnected);
                    self.inputs.push(Input::NodeDisconnected(key));
                    self.queue.push(self.now + Span::from_secs(1), Due::NodeConnects(node));
                }
            }
            Outcome::Events { first, known, stored } => {
                // What the kernel has written it can read.
                for event in kernel::events_of(first, &stored).map_while(Result::ok).skip(known) {
                    self.hear_event(&event)?;
                }
            }
            Outcome::Reply(request, body) => match self.asked.remove(&request) {
                Some(Asked::Start(operation)) => self.started(*operation, body)?,
                Some(Asked::Scripted(event)) => self.scripted_done(event, body.err()),
                Some(Asked::Snapshot(event, part)) => self.snapshot_told(event, &part, body)?,
                Some(Asked::Arrival(id)) => self.arrival_told(id, body.err()),
                Some(Asked::Setup | Asked::Other) | None => {}
            },
        }
        Ok(())
    }

    /// An event of the log.
    fn hear_event(&mut self, event: &yson::Map) -> Result<(), SimError> {
        let is_end = event.get("event").and_then(yson::Value::as_str) == Some("job_completed");
        if is_end {
            self.owner_hears(event);
        }
        if is_end && strikes(Bug::LostEvent, 20) {
            return Ok(());
        }
        if let Some(on_event) = self.options.on_event {
            on_event(&mut self.log, event);
        }
        self.sink.event(event)?;
        self.ledger.hear(event, &mut self.physics.told, &mut self.sink)?;
        for (id, task, cookie) in std::mem::take(&mut self.ledger.completed) {
            self.physics.forget_rest(id, &task, cookie as u32);
            // A gang begins anew as a whole, also with what is done.
            let gang = self.physics.is_gang(id);
            let violated = self.faults.as_mut().and_then(|f| f.completed(id, &task, cookie));
            self.violations.extend(violated.filter(|_| gang == Some(false)));
        }
        for (id, units) in std::mem::take(&mut self.ledger.ended) {
            self.physics.remove(id);
            let check = |f: &faults::Faults| f.operation_completed(id, units?);
            self.violations.extend(self.faults.as_ref().and_then(check));
        }
        Ok(())
    }

    /// The node at the other end of a connection, if it still is.
    fn node_of(&self, key: NodeKey) -> Option<u32> {
        let node = self.keys.get(key.0 as usize).copied().flatten()?;
        let there = &self.nodes[node as usize];
        (there.online && there.key == Some(key)).then_some(node)
    }

    fn with_node(&mut self, number: u32, act: impl FnOnce(&mut Node, &mut Around<'_>)) {
        let mut around = Around {
            now: self.now,
            queue: &mut self.queue,
            inputs: &mut self.inputs,
            physics: &mut self.physics,
            counts: &mut self.counts,
        };
        act(&mut self.nodes[number as usize], &mut around);
    }

    fn connect(&mut self, number: u32) {
        let key = NodeKey(self.keys.len() as u64);
        self.keys.push(Some(number));
        self.with_node(number, |node, around| node.connect(key, around));
    }

    fn act(&mut self, due: Due) -> Result<(), SimError> {
        match due {
            Due::Scenario(event) => self.scripted(event)?,
            Due::ServerStarts => self.server_starts()?,
            Due::NodeFails(node) => self.node_fails(node, false),
            Due::NodeRepaired(node) => self.node_repaired(node),
            Due::Fault => self.fault(),
            Due::NodeConnects(node) => self.node_connects(node),
            Due::NodeHears(node) => self.node_hears(node),
            Due::AgentRevives(node) => self.agent_revives(node),
            Due::CutEnds(node) => self.cut_ends(node),
            Due::LeaseEnds(node, job) => self.with_node(node, |node, around| node.lease_ends(job, around)),
            Due::NodeIsTold(node) => self.node_is_told(node),
            Due::StoreLands => self.server.hold(false),
            Due::Resubmit => {
                for operation in std::mem::take(&mut self.lost) {
                    self.start(operation);
                }
            }
            Due::JobStarts(node, job) => self.with_node(node, |node, around| node.job_starts(job, around)),
            Due::JobEnds(node, job) => self.with_node(node, |node, around| node.job_ends(job, around)),
            Due::MemoryStep(node, job) => self.with_node(node, |node, around| node.memory_step(job, around)),
            Due::CpuMoves(node, number) => {
                self.with_node(node, |node, around| node.cpu_moves(number, around));
            }
            Due::EndIsHeard(node, job) => self.with_node(node, |node, around| node.end_is_heard(job, around)),
            Due::JobYields(node, job) => self.with_node(node, |node, around| node.job_yields(job, around)),
            Due::NodeWakes(node) => {
                // Each heartbeat may get lost, and its answer.
                let shortcuts = self.options.shortcuts && self.faults.is_none();
                self.with_node(node, |node, around| node.wake(around, shortcuts));
            }
            Due::Submit => self.submit()?,
            Due::Until(owner) => {
                let name = self.owners[owner].clone();
                if let Some(id) = self.by_name.get(&name).copied() {
                    let operation = OperationRef::Id(id);
                    self.ask("owner", Command::AbortOperation { operation, message: None }, Asked::Other);
                }
            }
            Due::Arrival(id) => self.arrival(id),
            Due::Sample => self.sample()?,
        }
        Ok(())
    }

    fn ask(&mut self, user: &str, command: Command, asked: Asked) {
        let (number, input) = self.server.request(user, None, command);
        if self.server.kernel().is_some() {
            self.asked.insert(number, asked);
            self.inputs.push(input);
        }
    }

    fn submit(&mut self) -> Result<(), SimError> {
        if self.server.kernel().is_none() {
            // Clients try again.
            self.queue.push(self.now + Span::from_millis(100), Due::Submit);
            return Ok(());
        }
        let Some(operation) = self.next_operation()? else { return Ok(()) };
        self.note_owner(&operation);
        match self.scenario.models.delays.operation_prepare {
            Span::ZERO => self.start(operation),
            delay => {
                self.lost.push(operation);
                self.queue.push(self.now + delay, Due::Resubmit);
            }
        }
        self.plan_submission();
        Ok(())
    }

    /// The next one of the workload, with the tasks that it is submitted with.
    fn next_operation(&mut self) -> Result<Option<Operation>, SimError> {
        let operation = self.workload.take_next()?;
        Ok(match self.scenario.models.memory_policy {
            MemoryPolicy::Oracle => operation.map(|o| oracle::known_before(o, self.scenario.seed)),
            MemoryPolicy::Digest | MemoryPolicy::Limit => operation,
        })
    }

    /// The owner may want to abort it at its time.
    fn note_owner(&mut self, operation: &Operation) {
        if let Some(until) = operation.until {
            self.owners.push(operation.id.clone());
            self.queue.push(self.scenario.start + until, Due::Until(self.owners.len() - 1));
        }
    }

    /// The same request twice is one operation.
    fn start(&mut self, operation: Operation) {
        if self.server.kernel().is_none() {
            self.lost.push(operation);
            return;
        }
        let spec = operation.spec(self.scenario);
        let command = Command::StartOperation { operation_type: OperationType::Vanilla, spec };
        let hash = name_hash(&operation.id);
        let mutation = Guid([hash as u32, (hash >> 32) as u32, 1, 1]);
        let (number, input) = self.server.request(&operation.user, Some(mutation), command);
        self.asked.insert(number, Asked::Start(Box::new(operation)));
        self.inputs.push(input);
    }

    fn plan_submission(&mut self) {
        if let Some(at) = self.workload.next_time() {
            self.queue.push((self.scenario.start + at).max(self.now), Due::Submit);
        }
    }

    fn started(&mut self, operation: Operation, body: Result<Body, Failure>) -> Result<(), SimError> {
        let id = match &body {
            Ok(Body::Value(value)) => value.get("operation_id").and_then(|id| id.as_str()?.parse().ok()),
            _ => None,
        };
        let Some(id) = id else {
            self.refused += 1;
            let why = body.err().map_or("no reply".to_owned(), |failure| in_full(&failure));
            if self.refusals.len() < 100 {
                self.refusals.push(format!("operation {:?}: {why}", operation.id));
            }
            return Ok(());
        };
        self.beside.meta(&operation.id, &operation.meta)?;
        let operation = Arc::new(operation);
        self.by_name.insert(operation.id.clone(), id);
        self.physics.add(id, operation.clone(), self.now);
        self.first_arrival(id);
        self.ledger.accepted(id, operation, &mut self.sink)
    }
}

/// A failure with its causes.
fn in_full(failure: &Failure) -> String {
    let inner: Vec<String> = failure.inner_errors.iter().map(in_full).collect();
    match inner.is_empty() {
        true => failure.message.clone(),
        false => format!("{}: {}", failure.message, inner.join("; ")),
    }
}
