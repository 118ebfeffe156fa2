//! A server without its network, controllers and disks: the scheduler, called as the kernel calls it.
//!
//! Whatever comes in is taken in at once and acted on in [`World::turn`], which is the kernel's `flush`:
//! operations that are stuck fail, those that were let in materialize, demand is told, the fair share is updated if that is due or
//! something waits for it, then nodes that were heard of are planned for, and all nodes with room after
//! an update. Before the script's first event that is not a description nothing is decided, as after a
//! restart of the server.
//!
//! Here is what can come in, and time; [`turn`] is the rest.

mod turn;

use super::log::{End, Log};
use super::names::Names;
use super::node::{Held, SimulatedNode};
use scheduler::config::SchedulerConfig;
use scheduler::{Admission, OperationDesc, RevivedAllocation, Scheduler};
use std::collections::{BTreeMap, BTreeSet};
use vocab::{AllocationId, Failure, OperationId, Resources, Span, Time};
use yson::Map;

/// The pool tree of every script.
pub(super) const TREE: &str = "physical";
/// The least time until the scheduler hears that an allocation is gone which was told to go.
const WORD_TRAVELS: Span = Span::from_millis(1);
/// How often nodes report if the script does not say it: their period of 5 s, and the way of the message.
/// Without the latter every second report would come just within a backoff of 5 s.
pub(super) const HEARTBEAT_PERIOD: Span = Span::from_millis(5_001);
/// The beginning of every script. The scheduler has been up for long by then: what holds only after a
/// restart (`node_reconnection_timeout`) is over.
pub(super) const BEGINNING: Time = Time::from_secs(1_000_000);

const NOT_STARVING: &str = "non_starving";

/// One task of an operation and how many allocations of it are still to be started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub job: Resources,
    pub count: i64,
}

/// How far an operation has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Not running in the tree yet.
    Pending,
    Running,
    Completed,
    /// It was stuck (scheduling.md 20).
    Failed,
    Aborted,
}

impl Phase {
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Pending => "pending",
            Phase::Running => "running",
            Phase::Completed => "completed",
            Phase::Failed => "failed",
            Phase::Aborted => "aborted",
        }
    }
}

/// An operation with what its controller would know.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub name: String,
    pub phase: Phase,
    pub suspended: bool,
    pub tasks: Vec<Task>,
    /// How long its jobs take to end when they must; none: as long as they may.
    pub gives_way: Option<Span>,
    pub parameters: scheduler::RuntimeParameters,
    /// Allocations that have got a name.
    pub named: u32,
}

/// An allocation that is somewhere.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub operation: OperationId,
    pub task: u32,
    pub node: String,
}

/// See the module page.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub scheduler: Scheduler,
    pub now: Time,
    pub names: Names,
    pub operations: BTreeMap<OperationId, Operation>,
    pub nodes: BTreeMap<String, SimulatedNode>,
    pub places: BTreeMap<AllocationId, Place>,
    pub log: Log,
    /// Options as the script has set them.
    pub scheduler_options: Map,
    pub tree_options: Map,
    pub pools: BTreeMap<String, Map>,
    pub heartbeat_period: Option<Span>,
    started: bool,
    next_update: Time,
    /// Who starves how, by kind and name, as of the newest update.
    starving: BTreeMap<(&'static str, String), String>,
    // What the next turn must do.
    update_wanted: bool,
    schedule_wanted: bool,
    heard: BTreeSet<String>,
    demand: BTreeSet<OperationId>,
}

impl World {
    pub fn new(heartbeat_period: Option<Span>) -> World {
        let mut scheduler = Scheduler::new(SchedulerConfig::default(), Time::ZERO);
        scheduler.create_tree(TREE, &Map::new()).expect("a tree without options is a good one");
        World {
            scheduler,
            now: BEGINNING,
            names: Names::default(),
            operations: BTreeMap::new(),
            nodes: BTreeMap::new(),
            places: BTreeMap::new(),
            log: Log::default(),
            scheduler_options: Map::new(),
            tree_options: Map::new(),
            pools: BTreeMap::new(),
            heartbeat_period,
            started: false,
            next_update: BEGINNING,
            starving: BTreeMap::new(),
            update_wanted: false,
            schedule_wanted: false,
            heard: BTreeSet::new(),
            demand: BTreeSet::new(),
        }
    }

    // --- time

    /// Ends the description, if nobody has: from here on things are decided. True if it was this call.
    pub fn start(&mut self) -> bool {
        let first = !std::mem::replace(&mut self.started, true);
        if first {
            self.update_wanted = true;
            self.schedule_wanted = true;
            self.turn();
        }
        first
    }

    /// Lets time pass: reports, departures and updates happen when they are due.
    pub fn run_until(&mut self, end: Time) {
        loop {
            let leaves = self.nodes.values().flat_map(|n| n.held.iter().filter_map(|h| h.leaves));
            let reports = self.nodes.values().filter_map(|n| n.next_report);
            let next = leaves.chain(reports).fold(self.next_update, Time::min);
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            self.nodes_speak();
            self.turn();
        }
        self.now = self.now.max(end);
    }

    /// Lets time pass until so many periodic updates have been made.
    pub fn run_updates(&mut self, count: u32) {
        for _ in 0..count {
            self.run_until(self.next_update);
        }
    }

    fn nodes_speak(&mut self) {
        let now = self.now;
        let is_due = |time: Option<Time>| time.is_some_and(|t| t <= now);
        let gone: Vec<AllocationId> = self
            .nodes
            .values()
            .flat_map(|n| n.held.iter().filter(|h| is_due(h.leaves)).map(|h| h.id))
            .collect();
        for id in gone {
            self.leave(id);
        }
        let due = self.nodes.iter().filter(|(_, n)| is_due(n.next_report));
        let due: Vec<String> = due.map(|(name, _)| name.clone()).collect();
        for name in due {
            self.heartbeat(&name);
        }
    }

    // --- operations

    /// Registers an operation; it begins at once if the counts of its pools let it.
    pub fn add_operation(&mut self, desc: OperationDesc, operation: Operation) -> Result<(), Failure> {
        let id = desc.id;
        let suspended = operation.suspended;
        let registered = self.scheduler.register_operation(desc)?;
        self.operations.insert(id, operation);
        if registered.trees.iter().any(|t| t.admission == Admission::Running) {
            self.materialize(id);
        }
        if suspended {
            // A flag of its own: the operation may still wait for its pool.
            self.scheduler.set_suspended(id, true)?;
        }
        Ok(())
    }

    fn materialize(&mut self, id: OperationId) {
        let Some(operation) = self.operations.get_mut(&id).filter(|o| o.phase == Phase::Pending) else {
            return;
        };
        operation.phase = Phase::Running;
        // Both know the operation: it was registered.
        let known = self.scheduler.set_enabled(id, true);
        debug_assert!(known.is_ok());
        self.demand.insert(id);
        self.want_all();
    }

    pub fn set_suspended(&mut self, id: OperationId, suspended: bool) -> Result<(), Failure> {
        self.scheduler.set_suspended(id, suspended)?;
        if let Some(operation) = self.operations.get_mut(&id) {
            operation.suspended = suspended;
        }
        self.update_wanted = true;
        self.schedule_wanted |= !suspended;
        Ok(())
    }

    /// Ends an operation and everything that it runs.
    pub fn end_operation(&mut self, id: OperationId, phase: Phase) -> Result<(), Failure> {
        if let Some(operation) = self.operations.get_mut(&id) {
            operation.phase = phase;
            operation.tasks.iter_mut().for_each(|t| t.count = 0);
        }
        self.end_all_of(id, false);
        self.scheduler.unregister_operation(id)?;
        self.demand.remove(&id);
        self.want_all();
        Ok(())
    }

    /// Ends all allocations of an operation.
    pub fn end_all_of(&mut self, id: OperationId, again: bool) {
        let all = self.places.iter().filter(|(_, p)| p.operation == id);
        let all: Vec<AllocationId> = all.map(|(allocation, _)| *allocation).collect();
        for allocation in all {
            self.end_allocation(allocation, "aborted", again);
        }
    }

    /// Demand has changed in the books of the controller.
    pub fn demand_changed(&mut self, id: OperationId) {
        self.demand.insert(id);
    }

    /// An operation has other parameters or another pool.
    pub fn parameters_changed(&mut self, id: OperationId) {
        self.demand.insert(id);
        self.want_all();
    }

    /// Pools or the tree have changed.
    pub fn pools_changed(&mut self) {
        self.scheduler.scan_pending();
        self.want_all();
    }

    fn want_all(&mut self) {
        self.update_wanted = true;
        self.schedule_wanted = true;
    }

    // --- allocations

    /// An allocation that runs already, as nodes report them after a restart.
    pub fn place(
        &mut self,
        operation: OperationId,
        task: u32,
        node: &str,
        resources: Resources,
    ) -> Result<(), Failure> {
        let allocation = self.names.next_allocation();
        self.scheduler.revive_allocation(&RevivedAllocation {
            allocation,
            operation,
            tree: TREE.to_owned(),
            node: node.to_owned(),
            task,
            resources,
            ordered_cpu: resources.cpu,
            preempted: None,
        })?;
        self.add_allocation(allocation, operation, task, node);
        if let Some(n) = self.nodes.get_mut(node) {
            n.held.push(Held { id: allocation, resources, waiting: false, leaves: None });
        }
        self.demand.insert(operation);
        Ok(())
    }

    /// An allocation that was told to go is gone; its work is to be done again (scheduling.md 15.3).
    pub fn leave(&mut self, id: AllocationId) {
        let preempted = self.scheduler.allocation(id).is_some_and(|a| a.preempted.is_some());
        self.end_allocation(id, if preempted { "preempted" } else { "aborted" }, true);
    }

    /// An allocation is over. `again`: what it did is to be done again.
    pub fn end_allocation(&mut self, id: AllocationId, outcome: &'static str, again: bool) {
        let Some(place) = self.places.remove(&id) else { return };
        if let Some(node) = self.nodes.get_mut(&place.node) {
            node.remove(id);
        }
        // Not there any more if its node was taken away first.
        self.scheduler.allocation_finished(id);
        self.heard.insert(place.node);
        if let Some(operation) = self.operations.get_mut(&place.operation)
            && again
            && let Some(task) = operation.tasks.get_mut(place.task as usize)
        {
            task.count += 1;
        }
        self.demand.insert(place.operation);
        let allocation = self.names.allocation(id).to_owned();
        self.log.ends.push(End { time: self.now, allocation, outcome });
    }

    /// What an allocation holds has changed.
    pub fn set_usage(&mut self, id: AllocationId, usage: Resources) {
        let node = self.places.get(&id).and_then(|p| self.nodes.get_mut(&p.node));
        if let Some(held) = node.and_then(|n| n.get_mut(id)) {
            held.resources = usage;
        }
        self.scheduler.allocation_usage(id, usage);
    }

    // --- nodes

    /// A node comes.
    pub fn add_node(&mut self, name: &str, limits: Resources, tags: BTreeSet<String>) {
        let next_report = self.heartbeat_period.map(|period| self.now + period);
        let node = SimulatedNode { limits, tags, held: Vec::new(), next_report };
        let report = node.report();
        self.nodes.insert(name.to_owned(), node);
        self.scheduler.heartbeat(self.now, name, &report);
        self.want_all();
    }

    /// A node reports: everything that it holds, then its own state (scheduling.md 8.2).
    pub fn heartbeat(&mut self, name: &str) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(name) else { return };
        node.next_report = self.heartbeat_period.map(|period| now + period);
        let (held, report) = (node.held.clone(), node.report());
        for h in held {
            self.scheduler.allocation_usage(h.id, h.resources);
        }
        let lost = self.scheduler.heartbeat(now, name, &report).lost;
        self.lose(&lost);
        self.heard.insert(name.to_owned());
    }

    /// A node is gone with everything on it.
    pub fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
        let lost = self.scheduler.remove_node(name);
        self.lose(&lost);
        self.heard.remove(name);
        self.want_all();
    }

    /// Allocations that the scheduler has forgotten together with their node.
    pub fn lose(&mut self, lost: &[AllocationId]) {
        for id in lost {
            self.end_allocation(*id, "lost", true);
        }
    }
}
