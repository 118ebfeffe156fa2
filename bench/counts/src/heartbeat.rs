//! The scheduler alone: 200 pools, 1,000 running operations of which 100 want something, 200 nodes of 20 slots.

use crate::meter::Meter;
use scheduler::config::SchedulerConfig;
use scheduler::*;
use vocab::*;
use yson::Map;

const TREE: &str = "physical";
const PARENTS: u32 = 10;
const POOLS: u32 = 200;
const OPERATIONS: u32 = 1_000;
const WANTING: u32 = 100;
const NODES: u32 = 200;
const SLOTS: i64 = 20;

struct World {
    s: Scheduler,
    now: Time,
    ids: u32,
    names: Vec<String>,
}

fn map(text: &str) -> Map {
    let value = yson::parse(format!("{{{text}}}").as_bytes()).expect("YSON");
    value.as_map().expect("a map").clone()
}

fn operation(n: u32) -> OperationId {
    OperationId(Guid([n, 0, 0x1_03e8, 7]))
}

fn one_slot() -> Resources {
    Resources { user_slots: 1, cpu: Cpu(100), memory: 1 << 30, ..Resources::ZERO }
}

impl World {
    /// Pools, operations and idle nodes.
    fn new(tree: &str) -> World {
        let now = Time::from_secs(1_000_000);
        let (config, _) = SchedulerConfig::parse(&map("max_operation_count=20000")).expect("options");
        let mut world = World { s: Scheduler::new(config, now), now, ids: 0, names: Vec::new() };
        let counts = format!("max_running_operation_count=20000;{tree}");
        world.s.create_tree(TREE, &map(&counts)).expect("a tree");
        for n in 0..POOLS {
            let counts = "max_running_operation_count=5000;max_operation_count=5000";
            match n < PARENTS {
                true => world.pool(n, &format!("top{n}"), "<Root>", counts),
                false => world.pool(n, &format!("p{n}"), &format!("top{}", n % PARENTS), counts),
            }
        }
        for n in 0..NODES {
            let name = format!("node-{n:03}:9012");
            let report = NodeReport { resource_limits: one_slot().times(SLOTS), ..NodeReport::default() };
            world.s.heartbeat(now, &name, &report);
            world.names.push(name);
        }
        for n in 0..OPERATIONS {
            let pool = format!("p{}", PARENTS + n % (POOLS - PARENTS));
            world.register(n, TreeParameters::new(TREE, &pool), None);
        }
        for n in 0..WANTING {
            world.want(n, one_slot(), i64::from(NODES) * SLOTS / i64::from(WANTING));
        }
        world.update();
        world
    }

    /// Every slot is taken, and the operations that hold them want more.
    fn full(tree: &str) -> World {
        let mut world = World::new(tree);
        assert_eq!(world.fill(), NODES as usize * SLOTS as usize);
        for n in 0..WANTING {
            world.want(n, one_slot(), 100);
        }
        for name in world.names.clone() {
            for id in world.s.allocations_on(&name) {
                world.s.allocation_usage(id, one_slot());
            }
            world.s.heartbeat(world.now, &name, &report());
        }
        world.update();
        world
    }

    fn pool(&mut self, n: u32, name: &str, parent: &str, options: &str) {
        let id = ObjectId(Guid([n, 0, 0, 1]));
        let desc = PoolDesc { id, name: name.into(), parent: parent.into(), options: map(options) };
        self.s.create_pool(TREE, &desc).expect("a pool");
    }

    fn register(&mut self, n: u32, parameters: TreeParameters, tolerance: Option<f64>) {
        let mut desc = OperationDesc::new(operation(n), "alice", self.now, parameters);
        desc.fair_share_starvation_tolerance = tolerance;
        self.s.register_operation(desc).expect("admitted");
        self.s.set_enabled(operation(n), true).expect("known");
    }

    fn want(&mut self, n: u32, min_needed: Resources, count: i64) {
        let group = DemandGroup { task: 0, min_needed, count };
        self.s.set_demand(operation(n), &[group]).expect("known");
    }

    fn update(&mut self) {
        self.now += Span::from_millis(200);
        self.s.update(self.now, UpdateKind::Periodic);
    }

    fn pass(&mut self, node: usize) -> usize {
        let ids = &mut self.ids;
        let next = || {
            *ids += 1;
            AllocationId(Guid([*ids, 0, 0, 3]))
        };
        self.s.schedule(self.now, &self.names[node], next).len()
    }

    fn fill(&mut self) -> usize {
        (0..self.names.len()).map(|node| self.pass(node)).sum()
    }
}

fn report() -> NodeReport {
    let all = one_slot().times(SLOTS);
    NodeReport { resource_limits: all, resource_usage: all, ..NodeReport::default() }
}

/// Allocations for all slots of an idle cluster.
pub fn fill(meter: &mut Meter) {
    let mut world = World::new("");
    let started = meter.measure(|| world.fill());
    assert_eq!(started, NODES as usize * SLOTS as usize);
}

/// Heartbeats of full nodes, each with the pass that finds nothing to start.
pub fn nothing_to_start(meter: &mut Meter) {
    let mut world = World::full("fair_share_starvation_timeout=120000");
    let report = report();
    for _ in 0..5 {
        world.now += Span::from_secs(6);
        meter.measure(|| {
            for node in 0..world.names.len() {
                world.s.heartbeat(world.now, &world.names[node], &report);
                assert_eq!(world.pass(node), 0);
            }
        });
    }
}

/// Passes that take slots back for a starving operation with a guarantee.
pub fn preemption(meter: &mut Meter) {
    let mut world = World::full("fair_share_starvation_timeout=0;preemptive_scheduling_backoff=0");
    world.pool(POOLS, "starving", "<Root>", "strong_guarantee_resources={cpu=1000}");
    world.register(OPERATIONS, TreeParameters::new(TREE, "starving"), Some(1.0));
    world.want(OPERATIONS, one_slot().times(2), 100);
    world.update();
    world.update();
    let mut orders = 0;
    meter.measure(|| {
        for node in 0..world.names.len() {
            world.pass(node);
            orders += world.s.drain_orders().len();
        }
    });
    assert!(orders >= 20, "{orders} orders to preempt");
}

/// An update of the whole tree with the snapshot that heartbeats read.
pub fn snapshot(meter: &mut Meter) {
    let mut world = World::full("");
    for _ in 0..5 {
        meter.measure(|| world.update());
    }
}
