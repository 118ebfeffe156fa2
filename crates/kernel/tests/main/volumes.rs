//! Volumes of integral pools through crashes between any two effects (fair-share.md 7.1): nothing is
//! spent twice, and only some seconds of accumulation are lost.

use crate::node::Node;
use crate::random::Random;
use crate::world::World;
use kernel::{Body, Command};
use vocab::batch::Table;
use vocab::{Cpu, OperationId, OperationType, Resources, Span};
use yson::ypath::YPath;
use yson::{Map, Value};

/// Of a cluster of ten cores.
const FLOW: f64 = 0.1;
const BURST: f64 = 0.5;
const STEP: Span = Span::from_millis(200);
/// Volumes are kept in hundredths of a core-second.
const ROUNDING: f64 = 0.01;

struct Cluster {
    world: World,
    pool: String,
    operation: Option<OperationId>,
}

fn value(text: &str) -> Value {
    yson::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn path(text: &str) -> YPath {
    YPath::parse(text.as_bytes()).expect("a path")
}

impl Cluster {
    fn new() -> Cluster {
        let mut world = World::new(|_| ());
        let limits = Resources { user_slots: 1000, cpu: Cpu(1000), memory: 1 << 40, ..Resources::ZERO };
        world.nodes.insert("n1".into(), Node::new("n1", limits));
        let mut cluster = Cluster { world, pool: "b".into(), operation: None };
        cluster.world.connect("n1");
        cluster.set("//sys/pool_trees/physical/@config/integral_guarantees/smooth_period", "2000");
        cluster.create();
        cluster
    }

    /// None if the server died before it could say, or refused: the pool may not be there.
    fn change(&mut self, command: Command) -> Option<Value> {
        match self.world.ask("root", command)? {
            Ok(Body::Value(value)) => Some(value),
            _ => None,
        }
    }

    fn set(&mut self, at: &str, text: &str) {
        let command = Command::Set { path: path(at), value: value(text), recursive: false, force: false };
        self.change(command);
    }

    fn create_pool(&mut self, name: &str, integral: &str) {
        let attributes = yson::map! {
            "name" => name, "pool_tree" => "physical", "integral_guarantees" => value(integral),
        };
        self.change(Command::Create {
            object_type: "scheduler_pool".into(),
            path: None,
            attributes,
            recursive: false,
            ignore_existing: true,
            force: false,
            ignore_type_mismatch: false,
            lock_existing: false,
        });
    }

    fn create(&mut self) {
        let name = self.pool.clone();
        let integral = "{guarantee_type=burst;resource_flow={cpu=1};burst_guarantee_resources={cpu=5}}";
        self.create_pool(&name, integral);
    }

    /// A number of the pool, if the server answers and has the pool.
    fn number(&mut self, name: &str) -> Option<f64> {
        let base = "//sys/scheduler/orchid/scheduler/pool_trees/physical/pools";
        let path = path(&format!("{base}/{}/{name}", self.pool));
        let command = Command::Get { path, attributes: Vec::new(), max_size: None, fields: None };
        match self.world.ask("root", command)? {
            Ok(Body::Value(value)) => value.as_f64(),
            _ => None,
        }
    }

    fn volume(&mut self) -> Option<f64> {
        self.number("accumulated_resource_ratio_volume")
    }

    fn granted(&mut self) -> Option<f64> {
        self.number("detailed_dominant_fair_share/integral_guarantee")
    }

    fn start(&mut self) {
        let spec = value("{tasks={t={command=x;job_count=20;cpu_limit=1.0;memory_limit=1000000}}}");
        let spec: Map = spec.as_map().cloned().unwrap_or_default().with("pool", self.pool.as_str());
        let reply = self.change(Command::StartOperation { operation_type: OperationType::Vanilla, spec });
        self.operation =
            reply.and_then(|r| r.get("operation_id").and_then(|id| id.as_str()?.parse::<OperationId>().ok()));
    }

    fn abort(&mut self) {
        if let Some(id) = self.operation.take() {
            let operation = kernel::OperationRef::Id(id);
            // It may be unknown: a crash has undone its start.
            let _ = self.world.ask("root", Command::AbortOperation { operation, message: None });
        }
    }

    fn rise(&mut self) {
        self.world.fuse = None;
        self.world.restart();
        self.world.connect("n1");
        self.world.settle();
    }

    fn crash(&mut self) {
        if self.world.is_up() {
            self.world.crash(0);
        }
        self.rise();
    }
}

/// Volume and what was spent are together never more than what flowed in.
fn storm(seed: u64, steps: usize) -> (usize, f64) {
    let mut random = Random::new(seed);
    let mut c = Cluster::new();
    let (mut inflow, mut spent, mut crashes) = (0.0, 0.0, 0);
    // Granted by the last periodic update of this life.
    let (mut share, mut life) = (0.0, 0);
    for step in 0..steps {
        match random.below(10) {
            0 | 1 if c.operation.is_none() => c.start(),
            2 => c.abort(),
            3 => {
                c.crash();
                crashes += 1;
            }
            4 | 5 => c.world.fuse = Some(random.below(12)),
            6 => {
                c.world.stop();
                c.rise();
            }
            7 if c.operation.is_none() => {
                let (old, new) = if c.pool == "b" { ("b", "c") } else { ("c", "b") };
                let at = format!("//sys/pool_trees/physical/{old}/@name");
                c.set(&at, new);
                // The server may have died before the change was durable, or after it.
                if !c.world.is_up() {
                    c.rise();
                    crashes += 1;
                }
                let there = Command::Exists { path: path(&format!("//sys/pool_trees/physical/{new}")) };
                let there = c.change(there).and_then(|v| v.as_bool());
                c.pool = if there == Some(true) { new } else { old }.to_owned();
            }
            8 if c.operation.is_none() => {
                let at = path(&format!("//sys/pool_trees/physical/{}", c.pool));
                c.change(Command::Remove { path: at, recursive: false, force: true });
                if random.below(2) == 0 || !c.world.is_up() {
                    c.crash();
                    crashes += 1;
                }
                c.create();
            }
            _ => {}
        }
        for _ in 0..=random.below(20) {
            if !c.world.is_up() {
                c.rise();
                crashes += 1;
            }
            // What an extra update grants is charged from the next periodic one on (7.2).
            if !c.world.is_up() || c.world.config.life != life {
                (share, life) = (0.0, c.world.config.life);
            }
            c.world.pass(STEP);
            inflow += FLOW * STEP.as_secs_f64();
            spent += share * STEP.as_secs_f64();
            share = c.granted().unwrap_or(0.0);
            if let Some(volume) = c.volume() {
                assert!(
                    volume + spent <= inflow + ROUNDING,
                    "seed {seed}, step {step}: {volume} left, {spent} spent, {inflow} came in"
                );
            }
        }
    }
    assert!(c.world.violations.is_empty(), "{:?}", c.world.violations);
    (crashes, spent)
}

#[test]
fn nothing_is_spent_twice() {
    let (mut crashes, mut spent) = (0, 0.0);
    for seed in 0..12 {
        let (died, used) = storm(seed, 40);
        crashes += died;
        spent += used;
    }
    // Otherwise this would show nothing.
    assert!(crashes > 50 && spent > 10.0, "{crashes} crashes, {spent} spent");
}

/// A crash costs at most the accumulation, and the allowance, of a write period.
#[test]
fn little_is_lost() {
    for (busy, seconds) in [(false, 33), (false, 38), (true, 3), (true, 6)] {
        let mut c = Cluster::new();
        c.world.pass(Span::from_secs(60));
        if busy {
            c.start();
        }
        for _ in 0..seconds * 5 {
            c.world.pass(STEP);
        }
        let (before, share) = (c.volume().expect("a volume"), c.granted().expect("a share"));
        c.crash();
        c.world.pass(STEP);
        let after = c.volume().expect("a volume");
        let allowed = 5.5 * share.max(FLOW) + 0.1;
        assert!(after >= before - allowed, "busy {busy}: {before} became {after}");
        assert!(after <= before + FLOW * 0.5, "busy {busy}: {before} became {after}");
        assert_eq!(busy, share > 0.4, "the burst is what the test is about");
    }
}

#[test]
fn a_stop_that_was_asked_for_loses_nothing() {
    let mut c = Cluster::new();
    c.world.pass(Span::from_secs(60));
    let before = c.volume().expect("a volume");
    c.world.stop();
    c.rise();
    let after = c.volume().expect("a volume");
    assert!((after - before).abs() < ROUNDING, "{before} became {after}");
}

/// A share that rises is written at once, not at the end of the period.
#[test]
fn a_burst_that_begins_is_written_at_once() {
    let mut c = Cluster::new();
    c.world.pass(Span::from_secs(61));
    let record = |c: &Cluster| {
        c.world.durable.iter().find(|((table, _), _)| *table == Table::Volumes).map(|(_, bytes)| {
            yson::parse(bytes).ok().and_then(|v| v.get("cpu").and_then(Value::as_f64)).expect("cores")
        })
    };
    let idle = record(&c).expect("a record");
    c.start();
    c.world.pass(STEP);
    c.world.pass(Span::from_millis(20));
    let burst = record(&c).expect("a record");
    assert!(idle - burst > 5.0 * BURST * 10.0 - 2.0, "{idle} became {burst}");
}

/// The volume of a removed pool waits for a pool of its name; others do not get it.
#[test]
fn a_pool_that_comes_back_has_its_volume() {
    let mut c = Cluster::new();
    c.world.pass(Span::from_secs(60));
    let before = c.volume().expect("a volume");
    let at = path("//sys/pool_trees/physical/b");
    c.change(Command::Remove { path: at, recursive: false, force: false });
    c.crash();
    c.pool = "other".into();
    c.create();
    c.world.pass(STEP);
    assert!(c.volume().is_some_and(|v| v < 0.1), "another name, another volume");
    c.pool = "b".into();
    c.create();
    c.world.pass(STEP);
    let after = c.volume().expect("a volume");
    assert!((after - before).abs() < 0.2, "{before} became {after}");
    // It is taken over, not copied: one record for each pool.
    c.world.pass(Span::from_secs(6));
    let records = c.world.durable.keys().filter(|(table, _)| *table == Table::Volumes).count();
    assert_eq!(records, 2);
}
