//! Random scripts of users, jobs, nodes and crashes between any two effects.
//!
//! Invariants, checked after every step:
//!
//! - `KERNEL-1`: no unit of work (operation, task, cookie) runs on two nodes at one time, unless one of
//!   the two was ordered to stop and is not exclusive (S19), or its node was away for longer than the kernel waits. What the
//!   kernel itself believes is checked by [`kernel::Kernel::check_invariants`].
//! - `KERNEL-2`: every completed unit is counted exactly once; operations that were acknowledged, and
//!   ends that were shown, survive.
//! - `KERNEL-3`: when users and crashes rest, every operation ends; then nothing is in use and nobody
//!   remembers a job.
//! - `KERNEL-4`: a reply or an order is never delivered before what it depends on is durable, and never
//!   waits for what does not come (checked by the [`World`] itself).
//! - `KERNEL-8`: in the end no node owes anything, and every finished job has the stderr that its record tells of.
//!
//! Each script runs twice, and its effects must be the same.
//!
//! `MILLPOND_KERNEL_SCRIPTS=n` runs n scripts, `MILLPOND_KERNEL_SEED=s` runs that one and tells it.

mod acts;
mod calm;
mod checks;

use crate::node::Node;
use crate::random::Random;
use crate::world::{Event, World};
use kernel::{Body, Command, OperationRef};
use std::collections::{BTreeMap, BTreeSet};
use vocab::batch::Table;
use vocab::{Failure, Guid, JobId, JobOutcome, OperationId, OperationType, Resources, Span, Time};
use wire::{AbortJob, JobEvent, NodeMessage, ServerMessage, StartJob};
use yson::ypath::YPath;
use yson::{Map, Value};

const NODES: [&str; 3] = ["n1", "n2", "n3"];
const POOLS: [&str; 3] = ["a", "b", "q"];

#[test]
fn storm() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    if let Some(seed) = number("MILLPOND_KERNEL_SEED") {
        let outcome = script(seed, true);
        println!("{}", outcome.history.join("\n"));
        assert_eq!(outcome.violations, [""; 0]);
        return;
    }
    let scripts = number("MILLPOND_KERNEL_SCRIPTS").unwrap_or(200);
    let mut seen = Seen::default();
    std::thread::scope(|scope| {
        let halves =
            [0, 1].map(|half| scope.spawn(move || storms((0..scripts).filter(|seed| seed % 2 == half))));
        for half in halves {
            match half.join() {
                Ok(what) => seen.add(&what),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    // A storm in which nothing happens proves nothing.
    let Seen { crashes, completed, failed, lost_replies, repeats } = seen;
    for (what, count) in [
        ("crashes", crashes),
        ("completed operations", completed),
        ("failed or aborted operations", failed),
        ("lost replies", lost_replies),
        ("ends reported again", repeats),
    ] {
        assert!(count > scripts as usize / 10, "only {count} {what} in {scripts} scripts");
    }
}

/// Runs each script twice.
fn storms(seeds: impl Iterator<Item = u64>) -> Seen {
    let mut seen = Seen::default();
    for seed in seeds {
        let (first, second) = (script(seed, false), script(seed, false));
        let again = format!("MILLPOND_KERNEL_SEED={seed} cargo test -p millpond-kernel storm");
        assert!(first.violations.is_empty(), "{:#?}\n{again}", first.violations);
        assert_eq!(first.fingerprint, second.fingerprint, "two runs of one script differ\n{again}");
        seen.add(&first.seen);
    }
    seen
}

struct Outcome {
    violations: Vec<String>,
    fingerprint: u64,
    history: Vec<String>,
    seen: Seen,
}

/// What happened at all.
#[derive(Default)]
struct Seen {
    crashes: usize,
    completed: usize,
    failed: usize,
    lost_replies: usize,
    repeats: usize,
}

impl Seen {
    fn add(&mut self, other: &Seen) {
        self.crashes += other.crashes;
        self.completed += other.completed;
        self.failed += other.failed;
        self.lost_replies += other.lost_replies;
        self.repeats += other.repeats;
    }
}

fn script(seed: u64, tell: bool) -> Outcome {
    let mut storm = Storm::new(seed, tell);
    let steps = 30 + storm.random.below(60);
    for _ in 0..steps {
        storm.step();
        storm.check();
        if !storm.world.violations.is_empty() {
            break;
        }
    }
    if storm.world.violations.is_empty() {
        storm.rest();
    }
    Outcome {
        violations: storm.world.violations,
        fingerprint: storm.world.fingerprint,
        history: storm.history,
        seen: storm.seen,
    }
}

/// An operation that a user wants.
struct Wish {
    mutation_id: Guid,
    spec: Map,
    /// The newest request for it.
    request: Option<u64>,
    /// Acknowledged.
    id: Option<OperationId>,
    /// Somebody was told that it has ended.
    ended: bool,
}

struct Storm {
    world: World,
    random: Random,
    wishes: Vec<Wish>,
    /// Reads of operations on their way.
    reads: BTreeMap<u64, OperationId>,
    /// Jobs that have done their work, whoever knows.
    done: BTreeSet<JobId>,
    /// Operations whose jobs may be given up without asking: gangs, and those suspended with abort.
    /// A node that is away hears of it later.
    loose: BTreeSet<OperationId>,
    gangs: BTreeSet<OperationId>,
    /// Jobs on nodes that were away for too long.
    overdue: BTreeSet<JobId>,
    history: Vec<String>,
    /// Keep the history.
    tell: bool,
    began: Time,
    seen: Seen,
}

impl Storm {
    fn new(seed: u64, tell: bool) -> Storm {
        let mut random = Random::new(seed);
        let mut world = World::new(|_| ());
        for name in NODES {
            let cpu = 1 + random.below(3) as i64;
            let limits = Resources {
                user_slots: 10,
                cpu: vocab::Cpu::from_f64(cpu as f64),
                memory: 64 << 30,
                ..Resources::ZERO
            };
            world.nodes.insert(name.into(), Node::new(name, limits));
        }
        for pool in POOLS {
            let mut attributes = yson::map! { "name" => pool, "pool_tree" => "physical" };
            if pool == "q" {
                attributes.insert("max_running_operation_count", 1i64);
            }
            let command = Command::Create {
                object_type: "scheduler_pool".into(),
                path: None,
                attributes,
                recursive: false,
                ignore_existing: false,
                force: false,
                ignore_type_mismatch: false,
                lock_existing: false,
            };
            world.send("root", None, command);
        }
        world.settle();
        // The others come when they come.
        world.hold = random.chance(30);
        world.connect(NODES[0]);
        world.turn();
        Storm {
            tell,
            began: world.now,
            world,
            random,
            wishes: Vec::new(),
            reads: BTreeMap::new(),
            done: BTreeSet::new(),
            loose: BTreeSet::new(),
            gangs: BTreeSet::new(),
            overdue: BTreeSet::new(),
            history: Vec::new(),
            seen: Seen::default(),
        }
    }

    fn say(&mut self, line: String) {
        if self.tell {
            self.history.push(format!("{} {line}", self.world.now));
        }
    }
}

/// One line for the history.
fn brief(event: &Event) -> String {
    match event {
        Event::Ordered(message) => format!("ordered {}", brief_order(message)),
        Event::Arrived(node, message) => format!("{node} <- {}", brief_order(message)),
        other => format!("{other:?}"),
    }
}

fn brief_order(message: &ServerMessage) -> String {
    match message {
        ServerMessage::Start(starts) => {
            let one = |s: &StartJob| {
                let id = &s.identity;
                format!("{} = {}/{}#{}", id.job_id, id.operation_id, id.cookie, id.job_index)
            };
            format!("start {}", starts.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        ServerMessage::Abort(orders) => {
            let one = |o: &AbortJob| format!("{} {}", o.job_id, o.reason);
            format!("abort {}", orders.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        other => format!("{other:?}"),
    }
}
