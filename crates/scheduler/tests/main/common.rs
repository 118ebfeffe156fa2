//! A small world: one tree, readable shorthands, invariants checked after every step.

use scheduler::config::SchedulerConfig;
use scheduler::*;
use std::collections::BTreeSet;
use vocab::*;
use yson::Map;

pub const TREE: &str = "physical";

pub struct World {
    pub s: Scheduler,
    pub now: Time,
    ids: GuidGenerator,
}

pub fn map(text: &str) -> Map {
    let value = yson::parse(format!("{{{text}}}").as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"));
    value.as_map().expect("a map").clone()
}

pub fn cores(n: f64) -> Resources {
    Resources { user_slots: 1, cpu: Cpu::from_f64(n), memory: 1 << 30, ..Resources::ZERO }
}

pub fn op(n: u32) -> OperationId {
    OperationId(Guid([n, 0, 0x1_03e8, 7]))
}

/// Allocations that tests name themselves.
pub fn allocation(n: u32) -> AllocationId {
    AllocationId(Guid([n, 0, 0, 0x77]))
}

impl World {
    pub fn new() -> World {
        World::with(&Map::new(), &Map::new())
    }

    pub fn with(scheduler: &Map, tree: &Map) -> World {
        let now = Time::from_secs(1_000_000);
        let (config, rest) = SchedulerConfig::parse(scheduler).expect("good options");
        assert!(rest.is_empty(), "{rest:?}");
        let mut s = Scheduler::new(config, now);
        s.create_tree(TREE, tree).expect("a good tree");
        World { s, now, ids: GuidGenerator::new(1) }
    }

    pub fn pool(&mut self, name: &str, parent: &str, options: &str) -> Result<(), Failure> {
        let id = ObjectId(self.ids.next(object_type::SCHEDULER_POOL));
        let parent = if parent.is_empty() { "<Root>" } else { parent };
        let desc = PoolDesc { id, name: name.into(), parent: parent.into(), options: map(options) };
        let result = self.s.create_pool(TREE, &desc);
        self.check();
        result
    }

    pub fn desc(&self, n: u32, pool: &str) -> OperationDesc {
        OperationDesc::new(
            op(n),
            "alice",
            self.now + Span::from_secs(u64::from(n)),
            TreeParameters::new(TREE, pool),
        )
    }

    pub fn register(&mut self, n: u32, pool: &str) -> Result<Registered, Failure> {
        let desc = self.desc(n, pool);
        self.register_desc(desc)
    }

    pub fn register_desc(&mut self, desc: OperationDesc) -> Result<Registered, Failure> {
        let result = self.s.register_operation(desc);
        self.check();
        result
    }

    /// Registers a running operation with `count` allocations of `cores` to start.
    pub fn run(&mut self, n: u32, pool: &str, cpu: f64, count: i64) {
        self.register(n, pool).expect("admitted");
        self.s.set_enabled(op(n), true).expect("known");
        self.want(n, cpu, count);
    }

    pub fn want(&mut self, n: u32, cpu: f64, count: i64) {
        let group = DemandGroup { task: 0, min_needed: cores(cpu), count };
        self.s.set_demand(op(n), &[group]).expect("good demand");
    }

    pub fn unregister(&mut self, n: u32) {
        self.s.unregister_operation(op(n)).expect("known");
        self.check();
    }

    pub fn node(&mut self, name: &str, cpu: f64, slots: i64) {
        self.tagged_node(name, cpu, slots, &[]);
    }

    pub fn tagged_node(&mut self, name: &str, cpu: f64, slots: i64, tags: &[&str]) {
        let resource_limits =
            Resources { user_slots: slots, cpu: Cpu::from_f64(cpu), memory: 1000 << 30, ..Resources::ZERO };
        let tags: BTreeSet<String> = tags.iter().map(|t| (*t).to_owned()).collect();
        let report = NodeReport { resource_limits, tags: tags.into(), ..NodeReport::default() };
        self.s.heartbeat(self.now, name, &report);
        self.check();
    }

    pub fn update(&mut self) -> std::sync::Arc<Snapshot> {
        self.now += Span::from_millis(200);
        let snapshot = self.s.update(self.now, UpdateKind::Periodic);
        self.check();
        snapshot
    }

    pub fn schedule(&mut self, node: &str) -> Vec<Start> {
        let ids = &mut self.ids;
        let starts = self.s.schedule(self.now, node, || AllocationId(ids.next(object_type::OTHER)));
        self.check();
        starts
    }

    /// Schedules and takes the orders; both by what they are about.
    pub fn pass(&mut self, node: &str) -> (Vec<Start>, Vec<Preempt>) {
        let starts = self.schedule(node);
        let orders = self.s.drain_orders();
        let preempts = orders.into_iter().map(|o| match o {
            Order::Preempt(p) => p,
            Order::Abort { .. } => panic!("an abort: {o:?}"),
        });
        (starts, preempts.collect())
    }

    /// Puts a running allocation with number `n` on a node.
    pub fn place(&mut self, n: u32, operation: u32, node: &str, cpu: f64) {
        let revived = RevivedAllocation {
            allocation: allocation(n),
            operation: op(operation),
            tree: TREE.into(),
            node: node.into(),
            task: 0,
            resources: cores(cpu),
            ordered_cpu: cores(cpu).cpu,
            preempted: None,
        };
        self.s.revive_allocation(&revived).expect("good");
        self.check();
    }

    /// A running operation that wants nothing more.
    pub fn idle(&mut self, n: u32, pool: &str) {
        self.register(n, pool).expect("admitted");
        self.s.set_enabled(op(n), true).expect("known");
    }

    pub fn wait(&mut self, seconds: f64) {
        self.now += Span((seconds * 1e6) as u64);
    }

    /// Numbers of an operation's allocations in the three groups.
    pub fn groups(&self, n: u32) -> [i64; 3] {
        self.s.preemption_groups_of(op(n)).expect("known")[0].sizes
    }

    /// Attributes of an operation in the newest snapshot.
    pub fn attribute(&self, n: u32, name: &str) -> yson::Value {
        let snapshot = self.s.snapshot();
        let map = snapshot.tree(TREE).and_then(|t| t.operation_attributes(op(n), Some(&[name])));
        map.and_then(|m| m.get(name).cloned()).unwrap_or(yson::Value::Entity)
    }

    pub fn counts(&mut self, pool: &str) -> (i64, i64, i64) {
        let snapshot = self.update();
        let attributes = snapshot.tree(TREE).expect("the tree").pool_attributes(pool, None);
        let attributes = attributes.unwrap_or_else(|| panic!("no pool {pool}"));
        let get = |name: &str| attributes.get(name).and_then(|v| v.as_i64()).expect("a count");
        (
            get("total_operation_count"),
            get("running_operation_count"),
            get("lightweight_running_operation_count"),
        )
    }

    /// `running`, or the pool that the operation waits for.
    pub fn standing(&self, n: u32) -> String {
        match &self.s.admissions(op(n)).expect("known")[0].1 {
            Admission::Running => "running".to_owned(),
            Admission::Pending { pool, .. } => format!("waits for {pool}"),
        }
    }

    pub fn check(&self) {
        let violated = self.s.check_invariants();
        assert!(violated.is_empty(), "{violated:#?}");
    }
}

/// The error's text contains all the parts.
#[track_caller]
pub fn refused<T: std::fmt::Debug>(result: Result<T, Failure>, parts: &[&str]) -> Failure {
    let error = result.expect_err("a refusal");
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{text:?} does not contain {part:?}");
    }
    error
}
