//! What heartbeats cost in a large cluster, and what its books weigh.
//!
//! `cargo bench -p millpond-scheduler`. The cluster: 2,000 pools in two levels, 10,000 running operations of
//! which 1,000 want something, 5,000 nodes of 100 slots, 500,000 allocations of one slot when it is full.
//! Memory is printed first, then the times: of `fill` for all 500,000 allocations, of the others for
//! each node.

// The crate has no unsafe code; counting bytes needs an allocator. A bench looks at the clock.
#![allow(unsafe_code, clippy::disallowed_methods)]

use divan::Bencher;
use divan::counter::ItemsCount;
use scheduler::config::SchedulerConfig;
use scheduler::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use vocab::*;
use yson::Map;

const TREE: &str = "physical";
const PARENTS: u32 = 40;
const POOLS: u32 = 2_000;
const OPERATIONS: u32 = 10_000;
const SCHEDULABLE: u32 = 1_000;
const NODES: u32 = 5_000;
const SLOTS: i64 = 100;

struct Counting;
static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    memory();
    divan::main();
}

/// A cluster and the clock in front of it.
#[derive(Clone)]
struct World {
    s: Scheduler,
    now: Time,
    ids: u32,
    names: Vec<String>,
}

fn map(text: &str) -> Map {
    let value = yson::parse(format!("{{{text}}}").as_bytes()).expect("yson");
    value.as_map().expect("a map").clone()
}

fn operation(n: u32) -> OperationId {
    OperationId(Guid([n, 0, 0x1_03e8, 7]))
}

fn one_slot() -> Resources {
    Resources { user_slots: 1, cpu: Cpu(100), memory: 1 << 30, ..Resources::ZERO }
}

fn limits() -> Resources {
    one_slot().times(SLOTS)
}

/// Pools and nodes; `idle` of the operations want nothing.
fn empty(operations: u32, idle: u32, tree: &str) -> World {
    let now = Time::from_secs(1_000_000);
    let (config, _) = SchedulerConfig::parse(&map("max_operation_count=20000")).expect("options");
    let mut s = Scheduler::new(config, now);
    s.create_tree(TREE, &map(&format!("max_running_operation_count=20000;{tree}"))).expect("a tree");
    let pool = |s: &mut Scheduler, n: u32, name: &str, parent: &str, options: &str| {
        let id = ObjectId(Guid([n, 0, 0, 1]));
        let desc = PoolDesc { id, name: name.into(), parent: parent.into(), options: map(options) };
        s.create_pool(TREE, &desc).expect("a pool");
    };
    for n in 0..PARENTS {
        let counts = "max_running_operation_count=5000;max_operation_count=5000";
        pool(&mut s, n, &format!("top{n}"), "<Root>", counts);
    }
    for n in PARENTS..POOLS {
        pool(&mut s, n, &format!("p{n}"), &format!("top{}", n % PARENTS), "resource_limits={cpu=50000}");
    }
    let mut names = Vec::new();
    for n in 0..NODES {
        let name = format!("node-{n:04}.example.org:9012");
        let report = NodeReport { resource_limits: limits(), ..NodeReport::default() };
        s.heartbeat(now, &name, &report);
        names.push(name);
    }
    let mut world = World { s, now, ids: 0, names };
    for n in 0..operations {
        world.register(n, n < idle);
    }
    world.update();
    world
}

impl World {
    fn register(&mut self, n: u32, idle: bool) {
        let pool = format!("p{}", PARENTS + n % (POOLS - PARENTS));
        let desc = OperationDesc::new(operation(n), "alice", self.now, TreeParameters::new(TREE, &pool));
        self.s.register_operation(desc).expect("admitted");
        self.s.set_enabled(operation(n), true).expect("known");
        if !idle {
            self.want(n, i64::from(NODES) * SLOTS / i64::from(SCHEDULABLE));
        }
    }

    fn want(&mut self, n: u32, count: i64) {
        let group = DemandGroup { task: 0, min_needed: one_slot(), count };
        self.s.set_demand(operation(n), &[group]).expect("known");
    }

    fn update(&mut self) {
        self.now += Span::from_millis(200);
        self.s.update(self.now, UpdateKind::Periodic);
    }

    fn pass(&mut self, node: usize) -> usize {
        let ids = &mut self.ids;
        self.s
            .schedule(self.now, &self.names[node], || {
                *ids += 1;
                AllocationId(Guid([*ids, 0, 0, 3]))
            })
            .len()
    }

    fn fill(&mut self) -> usize {
        (0..self.names.len()).map(|node| self.pass(node)).sum()
    }

    fn report(&self) -> NodeReport {
        NodeReport { resource_limits: limits(), resource_usage: limits(), ..NodeReport::default() }
    }
}

/// All nodes are full, and every operation that wanted something wants more.
fn full(tree: &str) -> World {
    let mut world = empty(OPERATIONS, OPERATIONS - SCHEDULABLE, tree);
    assert_eq!(world.fill(), NODES as usize * SLOTS as usize);
    for n in OPERATIONS - SCHEDULABLE..OPERATIONS {
        world.want(n, 100);
    }
    for node in 0..world.names.len() {
        for id in world.s.allocations_on(&world.names[node]) {
            world.s.allocation_usage(id, one_slot());
        }
        world.s.heartbeat(world.now, &world.names[node], &world.report());
    }
    world.update();
    world
}

fn memory() {
    let mut world = empty(0, 0, "");
    let before = LIVE.load(Relaxed);
    for n in 0..OPERATIONS {
        world.register(n, n < OPERATIONS - SCHEDULABLE);
    }
    let operations = LIVE.load(Relaxed) - before;
    world.update();
    let with_snapshot = LIVE.load(Relaxed) - before;
    let before = LIVE.load(Relaxed);
    let started = world.fill();
    let allocations = LIVE.load(Relaxed) - before;
    println!(
        "memory: {} bytes per operation ({} with its part of the snapshot), {} bytes per allocation",
        operations / OPERATIONS as usize,
        with_snapshot / OPERATIONS as usize,
        allocations / started
    );
}

/// Filling the empty cluster: plans, applies, and nothing else.
#[divan::bench(sample_count = 3, sample_size = 1)]
fn fill(bencher: Bencher) {
    let world = empty(OPERATIONS, OPERATIONS - SCHEDULABLE, "");
    bencher
        .counter(ItemsCount::new(NODES as usize * SLOTS as usize))
        .with_inputs(|| world.clone())
        .bench_local_refs(|world| assert_eq!(world.fill(), NODES as usize * SLOTS as usize));
}

/// Heartbeats on the full cluster: the node's message and the pass over it. Every one runs the
/// preemptive part too. The number of operations that want nothing must not matter.
#[divan::bench(args = [1_000, 10_000], sample_count = 5, sample_size = 1)]
fn nothing_to_start(bencher: Bencher, operations: u32) {
    let mut world = full("fair_share_starvation_timeout=120000");
    for n in 0..OPERATIONS.saturating_sub(operations) {
        world.s.unregister_operation(operation(n)).expect("known");
    }
    world.update();
    let report = world.report();
    bencher.counter(ItemsCount::new(NODES)).bench_local(|| {
        world.now += Span::from_secs(6);
        for node in 0..world.names.len() {
            world.s.heartbeat(world.now, &world.names[node], &report);
            assert_eq!(world.pass(node), 0);
        }
    });
}

/// The same with news of all 100 allocations of the node.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn nothing_to_start_with_usages(bencher: Bencher) {
    let mut world = full("fair_share_starvation_timeout=120000");
    let report = world.report();
    let on_nodes: Vec<Vec<AllocationId>> = world.names.iter().map(|n| world.s.allocations_on(n)).collect();
    bencher.counter(ItemsCount::new(NODES)).bench_local(|| {
        world.now += Span::from_secs(6);
        for (node, ids) in on_nodes.iter().enumerate() {
            for id in ids {
                world.s.allocation_usage(*id, one_slot());
            }
            world.s.heartbeat(world.now, &world.names[node], &report);
            assert_eq!(world.pass(node), 0);
        }
    });
}

/// A free place on every node, and 1,000 operations that need more than that.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn nothing_fits(bencher: Bencher) {
    let mut world = full("fair_share_starvation_timeout=120000");
    for n in OPERATIONS - SCHEDULABLE..OPERATIONS {
        let group = DemandGroup { task: 0, min_needed: one_slot().times(5), count: 10 };
        world.s.set_demand(operation(n), &[group]).expect("known");
    }
    for name in &world.names {
        for id in world.s.allocations_on(name).into_iter().take(2) {
            world.s.allocation_finished(id);
        }
    }
    world.update();
    bencher.counter(ItemsCount::new(NODES)).bench_local(|| {
        world.now += Span::from_secs(1);
        for node in 0..world.names.len() {
            assert_eq!(world.pass(node), 0);
        }
    });
}

/// A full cluster in which the first 1,000 operations hold everything and one more starves.
fn starving(fits: bool) -> World {
    let mut world = full("fair_share_starvation_timeout=0;preemptive_scheduling_backoff=0");
    let id = OPERATIONS;
    let pool = PoolDesc {
        id: ObjectId(Guid([POOLS, 0, 0, 1])),
        name: "starving".into(),
        parent: "<Root>".into(),
        options: map("strong_guarantee_resources={cpu=100000}"),
    };
    world.s.create_pool(TREE, &pool).expect("a pool");
    let mut desc = OperationDesc::new(operation(id), "bob", world.now, TreeParameters::new(TREE, "starving"));
    desc.fair_share_starvation_tolerance = Some(1.0);
    world.s.register_operation(desc).expect("admitted");
    world.s.set_enabled(operation(id), true).expect("known");
    // What never fits makes the pass try it and give up.
    let size = if fits { 2 } else { 99 };
    let group = DemandGroup { task: 0, min_needed: one_slot().times(size), count: 100_000 / size };
    world.s.set_demand(operation(id), &[group]).expect("known");
    world.update();
    world.update();
    world
}

/// Operations got their allocations one by one, so the last nodes have those beyond the fair shares.
const YOUNGEST: usize = 800;

/// A preemptive pass over a node with 100 allocations that starts something and takes victims.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn preemptive_pass(bencher: Bencher) {
    let mut world = starving(true);
    world.names.drain(..NODES as usize - YOUNGEST);
    bencher.counter(ItemsCount::new(YOUNGEST)).with_inputs(|| world.clone()).bench_local_refs(|world| {
        let started: usize = (0..world.names.len()).map(|node| world.pass(node)).sum();
        assert_eq!((started, world.s.drain_orders().len()), (YOUNGEST, 2 * YOUNGEST));
    });
}

/// A preemptive pass over a node with 100 allocations, all of them candidates, in vain.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn preemptive_pass_in_vain(bencher: Bencher) {
    let mut world = starving(false);
    world.names.drain(..NODES as usize - YOUNGEST);
    // It would need all 100, and one is not among them.
    let mut candidates = 0;
    bencher.counter(ItemsCount::new(YOUNGEST)).bench_local(|| {
        for node in 0..world.names.len() {
            let plan = world.s.plan(world.now, &world.names[node]);
            candidates += black_box(plan).statistics.preemptible_allocation_count;
        }
    });
    assert!(candidates > 0);
}

/// One update of the whole tree, for comparison.
#[divan::bench(sample_count = 3, sample_size = 1)]
fn update(bencher: Bencher) {
    let mut world = full("");
    bencher.bench_local(|| world.update());
}
