//! Turns of the kernel with everything around it: 50 nodes of 20 slots, 100 operations of 10 jobs in 20 pools.

use crate::meter::Meter;
use kernel::{Body, Command, Config, Effect, Input, Kernel, NodeKey, Records, Request};
use std::collections::BTreeMap;
use std::hint::black_box;
use vocab::batch::{Batch, Op, Table};
use vocab::{Cpu, JobOutcome, OperationType, Resources, Span, Time};
use wire::{JobEvent, NodeMessage};
use yson::Map;
use yson::ypath::YPath;

// The node of the kernel's own tests: it does what it is told.
#[allow(dead_code)]
#[path = "../../../crates/kernel/tests/main/node.rs"]
mod node;
use node::Node;

const NODES: usize = 50;
const SLOTS: i64 = 20;
const OPERATIONS: u32 = 100;
const JOBS: u32 = 10;
const POOLS: u32 = 20;

struct World {
    kernel: Kernel,
    now: Time,
    nodes: Vec<Node>,
    durable: BTreeMap<(Table, Vec<u8>), Vec<u8>>,
    /// Said by nodes and not heard by the kernel yet.
    said: Vec<(NodeKey, NodeMessage)>,
}

fn map(text: &str) -> Map {
    yson::parse(text.as_bytes()).expect("YSON").as_map().cloned().expect("a map")
}

impl World {
    /// Pools, and nodes that have connected.
    fn new() -> World {
        let now = Time::from_secs(1_000_000);
        let config = Config { node_identities: false, ..Config::new("server:9013", 1) };
        let kernel = Kernel::recover(config, Records::default(), now, &mut Vec::new()).expect("no records");
        let (nodes, durable, said) = (Vec::new(), BTreeMap::new(), Vec::new());
        let mut world = World { kernel, now, nodes, durable, said };
        for n in 0..POOLS {
            let attributes = map(&format!("{{name=pool-{n}; pool_tree=physical}}"));
            world.request(Command::Create {
                object_type: "scheduler_pool".into(),
                path: None,
                attributes,
                recursive: false,
                ignore_existing: false,
                force: false,
                ignore_type_mismatch: false,
                lock_existing: false,
            });
        }
        let limit = "//sys/pool_trees/physical/@config/max_running_operation_count_per_pool";
        world.request(Command::Set {
            path: YPath::parse(limit.as_bytes()).expect("a path"),
            value: 1_000.into(),
            recursive: false,
            force: false,
        });
        let slot = Resources { user_slots: 1, cpu: Cpu(100), memory: 1 << 30, ..Resources::ZERO };
        for n in 0..NODES {
            let mut node = Node::new(&format!("node-{n}:9012"), slot.times(SLOTS));
            let key = NodeKey(n as u64);
            node.key = Some(key);
            world.said.push((key, NodeMessage::Hello(node.hello())));
            world.nodes.push(node);
        }
        world.settle();
        world
    }

    /// Submits the operations.
    fn submit(&mut self) {
        for n in 0..OPERATIONS {
            let spec = format!(
                "{{pool=pool-{}; title=\"report {n}\"; tasks={{t={{job_count={JOBS}; command=\"./run $YT_JOB_COOKIE\"; \
                 cpu_limit=1.0; memory_limit=268435456}}}}}}",
                n % POOLS
            );
            self.request(Command::StartOperation {
                operation_type: OperationType::Vanilla,
                spec: map(&spec),
            });
        }
    }

    fn request(&mut self, command: Command) {
        let request = Request { id: 1, user: "root".into(), mutation_id: None, command };
        let mut out = Vec::new();
        self.kernel.handle(self.now, Input::Request(request), &mut out);
        for effect in &out {
            if let Effect::Reply { body: Err(error), .. } = effect {
                panic!("{error}");
            }
        }
        self.carry_out(out);
    }

    /// One turn: everything that was said is heard, then decisions are made. Gives the effects.
    fn turn(&mut self) -> Vec<Effect> {
        let mut out = Vec::new();
        for (node, message) in std::mem::take(&mut self.said) {
            self.kernel.handle(self.now, Input::Node { node, message }, &mut out);
        }
        self.kernel.flush(self.now, true, &mut out);
        out
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Commit { batch, .. } => self.keep(batch),
                Effect::ToNode { node, message, .. } => {
                    let answer = self.nodes[node.0 as usize].hear(self.now, &message);
                    self.said.extend(answer.map(|answer| (node, answer)));
                }
                _ => {}
            }
        }
    }

    fn keep(&mut self, batch: Batch) {
        for op in batch.ops {
            match op {
                Op::Put { table, key, value } => drop(self.durable.insert((table, key), value)),
                Op::Delete { table, key } => drop(self.durable.remove(&(table, key))),
                Op::DeletePrefix { table, prefix } => {
                    self.durable.retain(|(t, key), _| *t != table || !key.starts_with(&prefix));
                }
            }
        }
    }

    /// Turns until nodes have nothing more to say.
    fn settle(&mut self) {
        loop {
            self.now += Span::from_millis(200);
            let effects = self.turn();
            self.carry_out(effects);
            if self.said.is_empty() {
                return;
            }
        }
    }

    fn running(&self) -> usize {
        self.nodes.iter().map(|node| node.running.len()).sum()
    }

    /// All jobs of the operations run.
    fn busy() -> World {
        let mut world = World::new();
        world.submit();
        world.settle();
        assert_eq!(world.running(), (OPERATIONS * JOBS) as usize);
        world
    }

    /// All running jobs complete.
    fn end_jobs(&mut self) {
        for node in &mut self.nodes {
            let ids: Vec<_> = node.running.keys().copied().collect();
            let outcome = || JobOutcome::Completed { interrupted: None, restart_needed: false };
            let events = ids.iter().filter_map(|id| {
                let kept = node.end(self.now, *id, outcome())?;
                Some(JobEvent::Finished(Box::new(kept.report.clone())))
            });
            let events = events.collect();
            self.said.extend(node.key.map(|key| (key, NodeMessage::Jobs(events))));
        }
    }
}

/// 100 operations are submitted, up to the batch that makes them durable.
pub fn submit(meter: &mut Meter) {
    let mut world = World::new();
    meter.measure(|| {
        world.submit();
        world.turn()
    });
}

/// The turns that give 1,000 jobs to idle nodes and hear that they have started.
pub fn schedule(meter: &mut Meter) {
    let mut world = World::new();
    world.submit();
    while world.running() < (OPERATIONS * JOBS) as usize || !world.said.is_empty() {
        world.now += Span::from_millis(200);
        let effects = meter.measure(|| world.turn());
        world.carry_out(effects);
    }
}

/// The ends of 1,000 jobs and so of 100 operations.
pub fn finish(meter: &mut Meter) {
    let mut world = World::busy();
    world.end_jobs();
    while world.running() > 0 || !world.said.is_empty() {
        world.now += Span::from_millis(200);
        let effects = meter.measure(|| world.turn());
        world.carry_out(effects);
    }
}

/// Heartbeats of all nodes with their 1,000 running jobs.
pub fn heartbeats(meter: &mut Meter) {
    let mut world = World::busy();
    for _ in 0..3 {
        world.now += Span::from_secs(5);
        let beats = world.nodes.iter().filter_map(|n| Some((n.key?, NodeMessage::Heartbeat(n.heartbeat()))));
        world.said = beats.collect();
        let effects = meter.measure(|| world.turn());
        world.carry_out(effects);
    }
}

/// Turns in which nothing happens but time.
pub fn idle(meter: &mut Meter) {
    let mut world = World::busy();
    for _ in 0..20 {
        world.now += Span::from_millis(200);
        let effects = meter.measure(|| world.turn());
        world.carry_out(effects);
    }
}

/// A page of `list_operations` and the attributes of one operation.
pub fn list_operations(meter: &mut Meter) {
    let mut world = World::busy();
    let query = kernel::ListOperations { limit: 100, include_counters: true, ..Default::default() };
    for _ in 0..5 {
        let command = Command::ListOperations(Box::new(query.clone()));
        let request = Request { id: 1, user: "root".into(), mutation_id: None, command };
        let mut out = Vec::new();
        meter.measure(|| world.kernel.handle(world.now, Input::Request(request), &mut out));
        assert!(matches!(&out[..], [Effect::Reply { body: Ok(Body::OperationList { .. }), .. }]), "{out:?}");
    }
}

/// The way back from the records of a server with 1,000 running jobs.
pub fn recovery(meter: &mut Meter) {
    let world = World::busy();
    meter.measure(|| {
        let mut records = Records::default();
        for ((table, key), value) in &world.durable {
            if Records::TABLES.contains(table) {
                records.add(*table, key, value);
            }
        }
        let config = Config { node_identities: false, ..Config::new("server:9013", 2) };
        let kernel = Kernel::recover(config, records, world.now, &mut Vec::new()).expect("good records");
        black_box(kernel)
    });
}
