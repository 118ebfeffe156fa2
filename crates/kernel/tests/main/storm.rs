//! Random scripts of users, jobs, nodes and crashes between any two effects.
//!
//! Invariants, checked after every step:
//!
//! - `KERNEL-1`: no unit of work (operation, task, cookie) runs on two nodes at one time, unless one of
//!   the two was ordered to stop, or its node was away for longer than the kernel waits. What the
//!   kernel itself believes is checked by [`kernel::Kernel::check_invariants`].
//! - `KERNEL-2`: every completed unit is counted exactly once; operations that were acknowledged, and
//!   ends that were shown, survive.
//! - `KERNEL-3`: when users and crashes rest, every operation ends; then nothing is in use and nobody
//!   remembers a job.
//! - `KERNEL-4`: a reply or an order is never delivered before what it depends on is durable, and never
//!   waits for what does not come (checked by the [`World`] itself).
//!
//! Each script runs twice, and its effects must be the same.
//!
//! `MILLPOND_KERNEL_SCRIPTS=n` runs n scripts, `MILLPOND_KERNEL_SEED=s` runs that one and tells it.

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

    // --- what may happen

    fn step(&mut self) {
        if !self.world.is_up() && self.random.chance(40) {
            self.say("restart".into());
            self.world.restart();
        }
        match self.random.below(100) {
            0..=9 => self.wish(),
            10..=13 => self.ask_again(),
            14..=19 => self.ambush(),
            20..=37 => self.end_a_job(),
            38..=45 => self.act_on_an_operation(),
            46..=48 => self.act_on_a_job(),
            49..=53 => self.look_at_an_operation(),
            54..=60 => self.lose_a_connection(),
            61..=70 => self.connect_a_node(),
            71..=72 => self.reboot_a_node(),
            73..=74 => self.slow_down_a_node(),
            75..=78 => self.reap(),
            79..=81 => self.die(),
            82..=85 => {
                let count = self.random.below(3);
                self.say(format!("commit {count}"));
                self.world.commit(count);
            }
            86..=89 => {
                self.world.hold = !self.world.hold;
                self.say(format!("hold commits: {}", self.world.hold));
            }
            90..=91 => {
                let name = NODES[self.random.below(NODES.len())];
                let heartbeat = self.world.nodes[name].heartbeat();
                self.say(format!("{name} heartbeats"));
                self.world.say(name, NodeMessage::Heartbeat(heartbeat));
            }
            _ => {
                let spans = [1, 5, 100, 1_000, 1_000, 5_000, 20_000, 35_000, 70_000];
                let span = Span::from_millis(spans[self.random.below(spans.len())]);
                self.say(format!("{span} pass"));
                self.world.pass(span);
            }
        }
        // Several things may come together in one turn.
        if self.random.chance(75) {
            if self.world.is_up() && self.random.chance(12) {
                let fuse = self.random.below(14);
                self.say(format!("the server dies after {fuse} effects"));
                self.world.fuse = Some(fuse);
            }
            if self.random.chance(50) {
                self.world.turn()
            } else {
                self.world.settle()
            }
            if self.world.fuse.is_none() && !self.world.is_up() {
                self.seen.crashes += 1;
                self.say("the server is dead".into());
            }
            self.world.fuse = None;
        }
        self.listen();
    }

    fn wish(&mut self) {
        let gang = self.random.chance(10);
        let jobs = 1 + self.random.below(4);
        let mut task = yson::map! { "command" => "true", "job_count" => jobs, "cpu_limit" => 1.0 };
        if gang {
            task.insert("gang_options", Map::new());
        }
        let spec = yson::map! {
            "pool" => POOLS[self.random.below(POOLS.len())],
            "max_failed_job_count" => 1 + self.random.below(4),
            "gang" => gang,
            "tasks" => yson::map! { "t" => task },
        };
        let number = self.wishes.len() as u32;
        self.say(format!("wish {number}: {jobs} jobs, gang: {gang}"));
        let mutation_id = Guid([number + 1, 0, 0, 0]);
        self.wishes.push(Wish { mutation_id, spec, request: None, id: None, ended: false });
        self.request(number as usize);
    }

    fn request(&mut self, number: usize) {
        let wish = &mut self.wishes[number];
        let command =
            Command::StartOperation { operation_type: OperationType::Vanilla, spec: wish.spec.clone() };
        wish.request = Some(self.world.send("ann", Some(wish.mutation_id), command));
    }

    /// A client without an answer repeats its request.
    fn ask_again(&mut self) {
        if !self.world.is_up() {
            return;
        }
        for number in 0..self.wishes.len() {
            if self.wishes[number].id.is_none() {
                self.say(format!("wish {number} is sent again"));
                self.request(number);
            }
        }
    }

    fn running(&self) -> Vec<(String, JobId)> {
        let of_node = |n: &Node| n.running.keys().map(|id| (n.name.clone(), *id)).collect::<Vec<_>>();
        self.world.nodes.values().flat_map(of_node).collect()
    }

    fn end_a_job(&mut self) {
        let running = self.running();
        let Some((node, job)) = self.random.pick(&running).cloned() else { return };
        let outcome = match self.random.below(6) {
            0 => JobOutcome::Failed { error: Failure::coded(1205, "User job failed") },
            _ => JobOutcome::Completed { interrupted: None, restart_needed: false },
        };
        if matches!(outcome, JobOutcome::Completed { .. }) {
            self.done.insert(job);
        }
        self.say(format!("job {job} on {node} ends: {outcome:?}"));
        self.world.end_job(&node, job, outcome);
        if self.random.chance(20) {
            self.seen.repeats += 1;
            let ends = self.world.nodes[&node]
                .finished
                .values()
                .map(|k| JobEvent::Finished(k.report.clone()))
                .collect();
            self.world.say(&node, NodeMessage::Jobs(ends));
        }
    }

    fn an_operation(&mut self) -> Option<OperationId> {
        let ids: Vec<OperationId> = self.wishes.iter().filter_map(|w| w.id).collect();
        self.random.pick(&ids).copied()
    }

    fn act_on_an_operation(&mut self) {
        let Some(id) = self.an_operation() else { return };
        let operation = OperationRef::Id(id);
        let command = match self.random.below(12) {
            0 => Command::AbortOperation { operation, message: None },
            1 => Command::CompleteOperation { operation },
            2..=4 => {
                let abort_running_jobs = self.random.chance(50);
                if abort_running_jobs {
                    self.loose.insert(id);
                }
                Command::SuspendOperation { operation, abort_running_jobs, reason: None }
            }
            5..=8 => Command::ResumeOperation { operation },
            9..=10 => {
                let parameters = yson::map! {
                    "pool" => POOLS[self.random.below(POOLS.len())],
                    "weight" => 1.0 + self.random.below(3) as f64,
                };
                Command::UpdateOperationParameters { operation, parameters }
            }
            _ => {
                let count = 1 + self.random.below(5);
                let tasks = yson::map! { "t" => yson::map! { "job_count" => count } };
                Command::UpdateOperationParameters { operation, parameters: yson::map! { "tasks" => tasks } }
            }
        };
        self.say(format!("{command:?}"));
        self.world.send("ann", None, command);
    }

    fn act_on_a_job(&mut self) {
        let running = self.running();
        let Some((_, job_id)) = self.random.pick(&running).cloned() else { return };
        let command = match self.random.below(3) {
            0 => {
                self.done.insert(job_id);
                Command::AbandonJob { job_id }
            }
            _ => Command::AbortJob { job_id, interrupt_timeout: None },
        };
        self.say(format!("{command:?}"));
        self.world.send("ann", None, command);
    }

    fn look_at_an_operation(&mut self) {
        let Some(id) = self.an_operation() else { return };
        let command = Command::GetOperation { operation: OperationRef::Id(id), attributes: None };
        let request = self.world.send("ann", None, command);
        self.reads.insert(request, id);
    }

    fn lose_a_connection(&mut self) {
        let name = NODES[self.random.below(NODES.len())];
        self.say(format!("{name} is away"));
        self.world.disconnect(name);
    }

    fn connect_a_node(&mut self) {
        let name = NODES[self.random.below(NODES.len())];
        if self.world.nodes[name].key.is_none() || self.random.chance(10) {
            self.say(format!("{name} connects"));
            self.world.connect(name);
        }
    }

    fn reboot_a_node(&mut self) {
        let name = NODES[self.random.below(NODES.len())];
        self.say(format!("{name} reboots"));
        self.world.disconnect(name);
        if let Some(node) = self.world.nodes.get_mut(name) {
            node.running.clear();
            node.finished.clear();
            node.dying.clear();
            node.incarnation += 1;
        }
    }

    fn slow_down_a_node(&mut self) {
        let name = NODES[self.random.below(NODES.len())];
        self.say(format!("{name} kills slowly"));
        if let Some(node) = self.world.nodes.get_mut(name) {
            node.slow = true;
        }
    }

    fn reap(&mut self) {
        let now = self.world.now;
        for name in NODES {
            let Some(node) = self.world.nodes.get_mut(name) else { continue };
            let dead: Vec<JobEvent> = node.reap(now).into_iter().map(JobEvent::Finished).collect();
            if !dead.is_empty() {
                self.say(format!("{name}: {} jobs have died", dead.len()));
                self.world.say(name, NodeMessage::Jobs(dead));
            }
        }
    }

    fn die(&mut self) {
        if !self.world.is_up() {
            return;
        }
        if self.random.chance(20) {
            self.say("the server stops".into());
            self.world.stop();
            return;
        }
        let landed = self.random.below(self.world.commits.len() + 1);
        self.say(format!("the server dies, {landed} commits have landed"));
        self.world.crash(landed);
        self.seen.crashes += 1;
    }

    /// The server dies right after something has begun and before it is written down, and nodes come
    /// back in any order: chance alone would seldom find these.
    fn ambush(&mut self) {
        if !self.world.is_up() {
            return;
        }
        self.say("ambush".into());
        self.world.hold = true;
        for _ in 0..=self.random.below(2) {
            match self.random.below(5) {
                0 => self.wish(),
                1 => self.end_a_job(),
                2 => self.connect_a_node(),
                _ => {
                    let Some(id) = self.an_operation() else { continue };
                    let command = Command::ResumeOperation { operation: OperationRef::Id(id) };
                    self.say(format!("{command:?}"));
                    self.world.send("ann", None, command);
                }
            }
        }
        if self.random.chance(70) {
            self.world.turn()
        } else {
            self.world.settle()
        }
        self.listen();
        self.check();
        self.die();
        self.listen();
        if !self.world.is_up() {
            self.say("restart".into());
            self.world.restart();
        }
        self.world.hold = false;
        for _ in 0..self.random.below(5) {
            if self.random.chance(70) {
                self.connect_a_node()
            } else {
                self.end_a_job()
            }
            self.world.settle();
            self.listen();
            self.check();
        }
    }

    /// Clients read their replies.
    fn listen(&mut self) {
        for event in std::mem::take(&mut self.world.events) {
            let Event::Replied(request) = event else {
                if self.tell {
                    self.history.push(format!("    {}", brief(&event)));
                }
                continue;
            };
            let Some(reply) = self.world.replies.remove(&request) else { continue };
            if let Some(id) = self.reads.remove(&request) {
                match reply {
                    Ok(Body::ArchivedOperation { .. }) => {
                        self.wishes.iter_mut().filter(|w| w.id == Some(id)).for_each(|w| w.ended = true);
                    }
                    Ok(_) => {}
                    Err(failure) => {
                        self.world
                            .violations
                            .push(format!("KERNEL-2: operation {id} was acknowledged: {failure}"));
                    }
                }
                continue;
            }
            let Some(wish) = self.wishes.iter_mut().find(|w| w.request == Some(request)) else { continue };
            match reply {
                Ok(Body::Value(value)) => {
                    let id = value.get("operation_id").and_then(Value::as_str).and_then(|id| id.parse().ok());
                    if wish.id.is_some() && wish.id != id {
                        self.world.violations.push("KERNEL-2: one mutation has two operations".into());
                    }
                    wish.id = id;
                    if wish.spec.get("gang").and_then(Value::as_bool) == Some(true) {
                        self.loose.extend(id);
                    }
                }
                other => self.world.violations.push(format!("an operation cannot start: {other:?}")),
            }
        }
        // What was on its way when the server died will never come.
        if !self.world.is_up() {
            self.seen.lost_replies += self.wishes.iter().filter(|w| w.id.is_none()).count();
            self.reads.clear();
        }
    }

    // --- what must hold

    fn check(&mut self) {
        if self.world.is_up() {
            let found = self.world.kernel().check_invariants();
            self.world.violations.extend(found);
        }
        self.check_units();
        self.check_records();
    }

    /// KERNEL-1, on the nodes themselves.
    fn check_units(&mut self) {
        let patience = self.world.config.node_recovery_grace;
        let now = self.world.now;
        let mut units: BTreeMap<(OperationId, String, u32), (JobId, String)> = BTreeMap::new();
        for node in self.world.nodes.values() {
            if node.away_since.is_some_and(|since| now.since(since) >= patience) {
                self.overdue.extend(node.running.keys().copied());
            }
            for (id, job) in &node.running {
                if node.key.is_none() && self.loose.contains(&job.start.identity.operation_id) {
                    self.world.given_up.insert(*id);
                }
                if self.overdue.contains(id) || self.world.given_up.contains(id) {
                    continue;
                }
                let identity = &job.start.identity;
                let unit = (identity.operation_id, identity.task.clone(), identity.cookie);
                if let Some((other, place)) = units.insert(unit, (*id, node.name.clone())) {
                    self.world.violations.push(format!(
                        "KERNEL-1: unit {} of operation {} runs twice: job {other} on {place}, job {id} on {}",
                        identity.cookie, identity.operation_id, node.name
                    ));
                }
            }
        }
    }

    /// KERNEL-2, on the records.
    fn check_records(&mut self) {
        let mut broken = Vec::new();
        for wish in &self.wishes {
            let Some(id) = wish.id else { continue };
            let key = |table: Table| (table, id.0.to_bytes().to_vec());
            let archived = self.world.durable.contains_key(&key(Table::OperationArchive));
            let mut live = key(Table::Operations);
            live.1.push(b's');
            if !archived && !self.world.durable.contains_key(&live) {
                broken.push(format!("KERNEL-2: operation {id} was acknowledged and is gone"));
            }
            if wish.ended && !archived {
                broken.push(format!("KERNEL-2: operation {id} had ended and lives again"));
            }
        }
        for job in self.world.completed.drain(..).filter(|job| !self.done.contains(job)) {
            broken.push(format!("KERNEL-2: job {job} counts as completed and is not"));
        }
        self.world.violations.extend(broken);
    }

    // --- the calm after

    /// KERNEL-3: everybody comes back, nothing more goes wrong.
    fn rest(&mut self) {
        self.say("--- calm".into());
        self.world.hold = false;
        if !self.world.is_up() {
            self.world.restart();
        }
        self.world.settle();
        for name in NODES {
            if let Some(node) = self.world.nodes.get_mut(name) {
                node.slow = false;
            }
            self.world.connect(name);
        }
        self.reap();
        self.world.settle();
        for round in 0.. {
            self.listen();
            self.ask_again();
            let ids: Vec<OperationId> = self.wishes.iter().filter_map(|w| w.id).collect();
            for id in &ids {
                self.world.send("ann", None, Command::ResumeOperation { operation: OperationRef::Id(*id) });
            }
            for (node, job) in self.running() {
                self.done.insert(job);
                let outcome = JobOutcome::Completed { interrupted: None, restart_needed: false };
                self.world.end_job(&node, job, outcome);
            }
            self.world.pass(Span::from_secs(1));
            self.check();
            let archived = |id: &OperationId| {
                self.world.durable.contains_key(&(Table::OperationArchive, id.0.to_bytes().to_vec()))
            };
            if ids.len() == self.wishes.len() && ids.iter().all(archived) {
                break;
            }
            if round == 200 {
                let open: Vec<&OperationId> = ids.iter().filter(|id| !archived(id)).collect();
                let line = format!(
                    "KERNEL-3: never end: {open:?}, {} never answered",
                    self.wishes.len() - ids.len()
                );
                return self.world.violations.push(line);
            }
            if !self.world.violations.is_empty() {
                return;
            }
        }
        self.world.pass(Span::from_secs(10));
        self.check();
        self.check_calm();
        self.check_mutations();
        for wish in 0..self.wishes.len() {
            self.check_counts(wish);
        }
        self.world.stop();
        self.world.restart();
        self.check();
        self.world.check_log();
    }

    fn check_calm(&mut self) {
        for node in self.world.nodes.values() {
            if !node.running.is_empty() || !node.finished.is_empty() {
                let line = format!(
                    "KERNEL-3: {} holds {:?} {:?}",
                    node.name,
                    node.running.keys(),
                    node.finished.keys()
                );
                self.world.violations.push(line);
            }
        }
        for (path, what) in [
            ("//sys/scheduler/orchid/scheduler/cell/resource_usage", "is in use"),
            ("//sys/cluster_nodes/n1/orchid/exec_node/job_controller/active_jobs", "is remembered on n1"),
            ("//sys/cluster_nodes/n2/orchid/exec_node/job_controller/active_jobs", "is remembered on n2"),
            ("//sys/cluster_nodes/n3/orchid/exec_node/job_controller/active_jobs", "is remembered on n3"),
            ("//sys/scheduler/orchid/scheduler/operations", "is unfinished"),
        ] {
            let path = YPath::parse(path.as_bytes()).expect("a path");
            let command = Command::Get { path, attributes: Vec::new(), max_size: None, fields: None };
            let value = match self.world.ask("root", command) {
                Some(Ok(Body::Value(value))) => value,
                other => panic!("the kernel does not answer: {other:?}"),
            };
            let empty = value.as_map().is_some_and(|m| m.iter().all(|(_, v)| v.as_f64() == Some(0.0)));
            if !empty {
                self.world.violations.push(format!("KERNEL-3: {value:?} {what}"));
            }
        }
    }

    /// Records of an operation's finished jobs.
    fn ends_of(&self, id: OperationId) -> Vec<Map> {
        let prefix = id.0.to_bytes().to_vec();
        let records = self.world.durable.range((Table::JobArchive, prefix.clone())..);
        let of_operation =
            records.take_while(|((table, key), _)| *table == Table::JobArchive && key.starts_with(&prefix));
        of_operation.map(|(_, record)| kernel::archived_job(record).unwrap_or_default()).collect()
    }

    /// A repeated request is answered and not executed, after a crash too.
    fn check_mutations(&mut self) {
        let operations =
            self.world.durable.keys().filter(|(table, _)| *table == Table::OperationIndex).count();
        let answers_are_kept = self.world.now.since(self.began) < Span::from_secs(600);
        if operations != self.wishes.len() && answers_are_kept {
            let line = format!("KERNEL-2: {} wishes have made {operations} operations", self.wishes.len());
            self.world.violations.push(line);
        }
    }

    /// Each unit of a completed operation was done once, and the operation says so.
    fn check_counts(&mut self, number: usize) {
        let wish = &self.wishes[number];
        let Some(id) = wish.id else { return };
        let prefix = id.0.to_bytes().to_vec();
        let record = &self.world.durable[&(Table::OperationArchive, prefix)];
        let operation = yson::parse(record).expect("records are YSON");
        let state = operation.get("state").and_then(Value::as_str).unwrap_or_default();
        let jobs = operation.get("brief_progress").and_then(|p| p.get("jobs")).cloned().unwrap_or_default();
        let count = |key: &str| jobs.get(key).and_then(Value::as_i64).unwrap_or(-1);
        if state == "completed" {
            self.seen.completed += 1
        } else {
            self.seen.failed += 1
        }
        let mut failed = 0;
        for job in self.ends_of(id) {
            failed += i64::from(job.get("state").and_then(Value::as_str) == Some("failed"));
        }
        if count("failed") != failed {
            let line = format!("KERNEL-2: operation {id} shows {jobs:?}, {failed} jobs have failed");
            self.world.violations.push(line);
        }
        // The units of a gang are done again when one of its jobs is lost.
        let wish = &self.wishes[number];
        if wish.spec.get("gang").and_then(Value::as_bool) == Some(true) {
            return;
        }
        let mut units: BTreeMap<i64, i64> = BTreeMap::new();
        for job in self.ends_of(id) {
            if job.get("state").and_then(Value::as_str) == Some("completed") {
                let cookie = job.get("job_cookie").and_then(Value::as_i64).unwrap_or(-1);
                *units.entry(cookie).or_default() += 1;
            }
        }
        let twice = units.values().any(|n| *n != 1);
        if twice || count("completed") != units.len() as i64 {
            let line =
                format!("KERNEL-2: operation {id} shows {jobs:?}, its units were completed {units:?} times");
            self.world.violations.push(line);
        }
        let by_user =
            operation.get("alerts").and_then(|a| a.get("operation_completed_by_user_request")).is_some();
        if state == "completed" && !by_user && count("completed") != count("total") {
            self.world.violations.push(format!("KERNEL-2: operation {id} completed with {jobs:?}"));
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
