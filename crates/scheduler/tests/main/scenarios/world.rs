//! A cluster in virtual time: jobs end, operations come and go, the scheduler is asked and obeyed.
//!
//! Order within an instant: ends of jobs, submissions and aborts, the update, then the nodes, as in
//! simulator.md 5.1. A node reports when something changed on it or could be started on it, and
//! periodically while somebody has less than is due; its other reports would change nothing.

use super::scenario::{Operation, Scenario};
use scheduler::config::SchedulerConfig;
use scheduler::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::{
    AllocationId, Guid, GuidGenerator, ObjectId, OperationId, Resources, Span, Time, Volume, object_type,
};

pub struct World<'a> {
    scenario: &'a Scenario,
    scheduler: Scheduler,
    now: Time,
    ids: GuidGenerator,
    pool_ids: Vec<ObjectId>,
    nodes: BTreeMap<Arc<str>, Node>,
    running: BTreeMap<AllocationId, Running>,
    /// Ends of jobs in their order.
    ends: BTreeSet<(Time, AllocationId)>,
    /// Comings and goings of operations, by time; goings before comings.
    agenda: BTreeSet<(Span, bool, usize)>,
    pub started: u64,
    pub preempted: u64,
}

struct Node {
    limits: Resources,
    usage: Resources,
}

struct Running {
    node: Arc<str>,
    operation: usize,
}

/// Numbers of a pool at an instant, in cores and core-seconds.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Numbers {
    pub demand: f64,
    pub fair_share: f64,
    pub strong: f64,
    pub integral: f64,
    pub free: f64,
    pub volume: f64,
    pub usage: f64,
}

fn id(operation: usize) -> OperationId {
    OperationId(Guid([operation as u32, 0, object_type::OTHER as u32, 1]))
}

impl<'a> World<'a> {
    pub fn new(scenario: &'a Scenario) -> World<'a> {
        let (config, rest) = SchedulerConfig::parse(&scenario.scheduler_options).expect("good options");
        assert!(rest.is_empty(), "unknown options of the scheduler: {rest:?}");
        let mut scheduler = Scheduler::new(config, scenario.start);
        scheduler.create_tree(&scenario.tree, &scenario.tree_options).expect("good options");
        assert!(scheduler.alerts().is_empty(), "{:?}", scheduler.alerts());
        let mut ids = GuidGenerator::new(1);
        let mut pool_ids = Vec::new();
        for pool in &scenario.pools {
            let id = ObjectId(ids.next(object_type::SCHEDULER_POOL));
            let (name, parent, options) = (pool.name.clone(), pool.parent.clone(), pool.options.clone());
            scheduler
                .create_pool(&scenario.tree, &PoolDesc { id, name, parent, options })
                .expect("a good pool");
            let mut volume = Volume::default();
            for r in vocab::RESOURCES {
                volume.set(r, scenario.total().get(r) * pool.ratio_volume);
            }
            scheduler.import_volume(&scenario.tree, id, volume).expect("the tree is there");
            pool_ids.push(id);
        }
        let mut agenda = BTreeSet::new();
        for (index, operation) in scenario.operations.iter().enumerate() {
            agenda.insert((operation.at, true, index));
            agenda.insert((operation.until, false, index));
        }
        let mut world = World {
            scenario,
            scheduler,
            now: scenario.start,
            ids,
            pool_ids,
            nodes: BTreeMap::new(),
            running: BTreeMap::new(),
            ends: BTreeSet::new(),
            agenda,
            started: 0,
            preempted: 0,
        };
        for (name, limits) in &scenario.nodes {
            let name: Arc<str> = name.as_str().into();
            world.nodes.insert(name.clone(), Node { limits: *limits, usage: Resources::ZERO });
            world.report(&name);
        }
        world
    }

    /// Everything up to an instant, which is one of an update.
    pub fn advance_to(&mut self, elapsed: Span) {
        let instant = self.scenario.start + elapsed;
        // Jobs that end before it: their nodes are served from the snapshot that there is.
        while self.ends.first().is_some_and(|(end, _)| *end < instant) {
            let end = self.ends.first().expect("just seen").0;
            for node in self.finish_until(end) {
                self.report(&node);
                self.serve(&node);
            }
        }
        let mut touched = self.finish_until(instant);
        while let Some(entry) = self.agenda.first().copied().filter(|(at, _, _)| *at <= elapsed) {
            self.agenda.remove(&entry);
            assert_eq!(entry.0, elapsed, "operations come and go at updates");
            match entry {
                (_, true, index) => self.submit(index),
                (_, false, index) => touched.extend(self.abort(index)),
            }
        }
        self.scheduler.update(self.now, UpdateKind::Periodic);
        for node in &touched {
            self.report(node);
            self.serve(node);
        }
        for node in self.nodes_with_room() {
            self.serve(&node);
        }
        if self.somebody_is_behind() {
            self.heartbeats(elapsed);
        }
    }

    /// Is less used somewhere than is due, by more than a job? If not, nobody is preempted, and what
    /// nodes with nothing new could say would change nothing.
    fn somebody_is_behind(&self) -> bool {
        let job = self.scenario.operations.iter().map(|o| o.job.cpu).max().unwrap_or_default();
        self.numbers().iter().any(|n| n.usage + job.as_f64() < n.fair_share)
    }

    /// The periodic reports of the nodes whose turn it is.
    fn heartbeats(&mut self, elapsed: Span) {
        let turns = (self.scenario.heartbeat_period.0 / self.scenario.update_period().0).max(1);
        let turn = elapsed.0 / self.scenario.update_period().0 % turns;
        let names: Vec<Arc<str>> = self.nodes.keys().cloned().collect();
        for name in names.iter().skip(turn as usize).step_by(turns as usize) {
            self.report(name);
            self.serve(name);
        }
    }

    /// Moves to an instant and ends the jobs that end there; gives their nodes.
    fn finish_until(&mut self, instant: Time) -> BTreeSet<Arc<str>> {
        self.now = instant;
        let mut touched = BTreeSet::new();
        while let Some((end, allocation)) = self.ends.first().copied().filter(|(end, _)| *end <= instant) {
            self.ends.remove(&(end, allocation));
            touched.insert(self.finish(allocation));
        }
        touched
    }

    fn submit(&mut self, index: usize) {
        let operation = self.operation(index);
        let tree = TreeParameters::new(&self.scenario.tree, &operation.pool);
        let desc = OperationDesc::new(id(index), &operation.user, self.now, tree);
        let registered = self.scheduler.register_operation(desc).expect("admitted");
        assert_eq!(registered.trees[0].admission, Admission::Running);
        self.scheduler.set_enabled(id(index), true).expect("known");
        self.want(index, operation.job_count);
    }

    fn abort(&mut self, index: usize) -> BTreeSet<Arc<str>> {
        let dropped = self.scheduler.unregister_operation(id(index)).expect("known");
        let nodes = dropped.iter().map(|allocation| self.remove(*allocation)).collect();
        self.ends.retain(|(_, allocation)| self.running.contains_key(allocation));
        nodes
    }

    /// A job is over; its unit of work begins anew (`restart_completed_jobs`).
    fn finish(&mut self, allocation: AllocationId) -> Arc<str> {
        let operation = self.running[&allocation].operation;
        assert!(self.scheduler.allocation_finished(allocation), "the scheduler knows what runs");
        let more =
            self.scheduler.demand_of(id(operation)).expect("known").iter().map(|g| g.count).sum::<i64>();
        self.want(operation, more + 1);
        self.remove(allocation)
    }

    fn remove(&mut self, allocation: AllocationId) -> Arc<str> {
        let running = self.running.remove(&allocation).expect("it runs");
        let job = self.operation(running.operation).job;
        let node = self.nodes.get_mut(&running.node).expect("a node");
        node.usage -= job;
        running.node
    }

    fn want(&mut self, index: usize, count: i64) {
        let group = DemandGroup { task: 0, min_needed: self.operation(index).job, count };
        self.scheduler.set_demand(id(index), &[group]).expect("good demand");
    }

    fn operation(&self, index: usize) -> &'a Operation {
        &self.scenario.operations[index]
    }

    fn report(&mut self, name: &Arc<str>) {
        let node = &self.nodes[name];
        let report = NodeReport {
            resource_limits: node.limits,
            resource_usage: node.usage,
            tags: Default::default(),
            has_waiting_allocations: false,
        };
        self.scheduler.heartbeat(self.now, name, &report);
    }

    /// Plans for a node and does what the plan says. Jobs cannot be interrupted here, so those that must
    /// give way are aborted at once (simulator.md 5.5) and begin anew elsewhere.
    fn serve(&mut self, name: &Arc<str>) {
        let plan = self.scheduler.plan(self.now, name);
        let ids = &mut self.ids;
        let starts = self.scheduler.apply(plan, || AllocationId(ids.next(object_type::OTHER)));
        for order in self.scheduler.drain_orders() {
            let allocation = order.allocation();
            self.finish(allocation);
            self.ends.retain(|(_, a)| *a != allocation);
            self.preempted += 1;
        }
        for start in starts {
            let operation = start.operation.0.0[0] as usize;
            let node = self.nodes.get_mut(name).expect("a node");
            node.usage += start.resources;
            assert!(node.limits.dominates(&node.usage), "{name} is overcommitted: {}", node.usage);
            self.running.insert(start.allocation, Running { node: name.clone(), operation });
            self.ends.insert((self.now + self.operation(operation).job_duration, start.allocation));
            self.scheduler.allocation_usage(start.allocation, start.resources);
            self.started += 1;
        }
    }

    fn nodes_with_room(&self) -> Vec<Arc<str>> {
        if !self.scheduler.has_candidates(&self.scenario.tree).expect("the tree is there") {
            return Vec::new();
        }
        let need = self.scenario.operations.iter().map(|o| o.job).reduce(Resources::min);
        let need = need.unwrap_or(Resources::ZERO);
        self.scheduler
            .nodes_with_room(&self.scenario.tree, need)
            .expect("the tree is there")
            .cloned()
            .collect()
    }

    /// By pool, in the order of the scenario: the numbers of the last update, and what is used now.
    pub fn numbers(&self) -> Vec<Numbers> {
        let total = self.scenario.total().cpu.as_f64();
        let snapshot = self.scheduler.snapshot();
        let tree = snapshot.tree(&self.scenario.tree).expect("the tree is there");
        let volumes = self.scheduler.export_volumes(None);
        let numbers = self.scenario.pools.iter().zip(&self.pool_ids).map(|(pool, id)| {
            let view = tree.pool(&pool.name).expect("the pool is there");
            let cores = |share: &vocab::Share| share[vocab::Resource::Cpu] * total;
            let usage =
                self.scheduler.pool_usage(&self.scenario.tree, &pool.name).expect("the pool is there");
            let volume = volumes.iter().find(|(_, pool, _)| pool == id).map(|(_, _, volume)| volume.cpu);
            Numbers {
                demand: view.resource_demand.cpu.as_f64(),
                fair_share: cores(&view.fair_share.total),
                strong: cores(&view.fair_share.strong_guarantee),
                integral: cores(&view.fair_share.integral_guarantee),
                free: cores(&view.fair_share.weight_proportional),
                volume: volume.map_or(0.0, |v| v.as_f64()),
                usage: usage.cpu.as_f64(),
            }
        });
        numbers.collect()
    }

    /// The books of the scheduler agree with what runs.
    pub fn check(&self) {
        let violated = self.scheduler.check_invariants();
        assert!(violated.is_empty(), "{violated:#?}");
        for (name, node) in &self.nodes {
            let known = self.scheduler.node(name).expect("it has reported").resource_usage;
            assert_eq!(known, node.usage, "usage of {name}");
        }
    }
}
