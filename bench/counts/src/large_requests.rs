//! Requests at the limits of what one may change or show (docs/limits.md): how long each of them keeps the kernel.

use crate::meter::Meter;
use kernel::command::CopyOptions;
use kernel::{Body, Command, Config, Effect, Input, Kernel, Records, Request, TreeLimits};
use std::hint::black_box;
use vocab::{ObjectId, OperationType, Span, Time};
use yson::ypath::YPath;
use yson::{Map, Value};

struct World {
    kernel: Kernel,
    now: Time,
}

fn path(text: &str) -> YPath {
    YPath::parse(text.as_bytes()).expect("a path")
}

/// A map of `maps` maps of `each` numbers.
fn tree(maps: usize, each: usize) -> Value {
    let inner: Map = (0..each).map(|n| (format!("key-{n:05}"), n as i64)).collect();
    let outer: Map = (0..maps).map(|n| (format!("map-{n:03}"), inner.clone())).collect();
    outer.into()
}

fn set(at: &str, value: Value) -> Command {
    Command::Set { path: path(at), value, recursive: false, force: false }
}

fn copy(from: &str, to: &str, remove_source: bool) -> Command {
    let (source, destination) = (path(from), path(to));
    Command::CopyMove { source, destination, remove_source, options: CopyOptions::default() }
}

fn remove(at: &str) -> Command {
    Command::Remove { path: path(at), recursive: true, force: false }
}

impl World {
    fn new() -> World {
        let now = Time::from_secs(1_000_000);
        let mut out = Vec::new();
        let kernel = Kernel::recover(Config::new("server:9013", 1), Records::default(), now, &mut out);
        World { kernel: kernel.expect("an empty store"), now }
    }

    /// One request and the turn that makes it durable.
    fn ask(&mut self, command: Command) -> Value {
        let request = Request { id: 1, user: "root".into(), mutation_id: None, command };
        let mut out = Vec::new();
        self.now += Span::from_millis(1);
        self.kernel.handle(self.now, Input::Request(request), &mut out);
        let answer = out.iter_mut().find_map(|effect| match effect {
            Effect::Reply { body, .. } => Some(std::mem::replace(body, Ok(Body::Value(Value::Entity)))),
            _ => None,
        });
        self.turn();
        match answer.expect("an answer") {
            Ok(Body::Value(value)) => value,
            Ok(_) => Value::Entity,
            Err(failure) => panic!("{failure}"),
        }
    }

    fn turn(&mut self) {
        let mut out = Vec::new();
        self.now += Span::from_millis(10);
        self.kernel.flush(self.now, false, &mut out);
        black_box(out);
    }

    /// Maps of 1,000 numbers each.
    fn grow(&mut self, top: &str, maps: usize) {
        self.ask(set(top, Value::Map(Map::new())));
        for n in 0..maps {
            self.ask(set(&format!("{top}/m{n}"), tree(1, 1_000)));
        }
    }
}

/// `copy`, `move`, `set` and `remove` of nearly as many nodes as one request may change.
pub fn changes(meter: &mut Meter) {
    let mut world = World::new();
    // The parents count, too.
    let nodes = TreeLimits::default().max_nodes_per_request - 10;
    world.ask(set("//tmp/a", tree(1, nodes - 5)));
    meter.measure(|| world.ask(copy("//tmp/a", "//tmp/b", false)));
    meter.measure(|| world.ask(remove("//tmp/b")));
    let value = tree(1, nodes - 5);
    meter.measure(|| world.ask(set("//tmp/c", value)));
    world.ask(set("//tmp/d", tree(1, nodes / 2 - 5)));
    meter.measure(|| world.ask(copy("//tmp/d", "//tmp/e", true)));
}

/// `remove` of 40,000 nodes, and the slices that take them apart.
pub fn removal(meter: &mut Meter) {
    let mut world = World::new();
    world.grow("//tmp/t", 40);
    meter.measure(|| world.ask(remove("//tmp/t")));
    for _ in 0..5 {
        meter.measure(|| world.turn());
    }
}

/// The commit and the abort of a transaction that has changed as many nodes as it may.
pub fn commit(meter: &mut Meter) {
    let mut world = World::new();
    for commits in [true, false] {
        let started = world.ask(Command::StartTransaction(Box::new(kernel::command::StartOptions {
            timeout: Span::from_secs(3600),
            ..Default::default()
        })));
        let id = started.get("transaction_id").and_then(Value::as_str);
        let transaction: ObjectId = id.and_then(|id| id.parse().ok()).expect("an id");
        let nodes = TreeLimits::default().max_nodes_per_transaction - 10;
        world.ask(set("//tmp/t", tree(1, nodes)).through(Some(transaction)));
        meter.measure(|| {
            world.ask(match commits {
                true => Command::CommitTransaction { transaction },
                false => Command::AbortTransaction { transaction },
            })
        });
        if commits {
            world.ask(remove("//tmp/t"));
        }
    }
}

/// `get` and `list` of as many nodes and attributes as one request may show.
pub fn questions(meter: &mut Meter) {
    let mut world = World::new();
    world.grow("//tmp/t", 49);
    let get = |attributes: Vec<String>, at: &str| Command::Get {
        path: path(at),
        attributes,
        max_size: None,
        fields: None,
    };
    meter.measure(|| world.ask(get(Vec::new(), "//tmp/t")));
    let names: Vec<String> =
        ["type", "account", "resource_usage", "modification_time"].map(str::to_owned).into();
    for n in 0..7 {
        world.ask(set(&format!("//tmp/t/m{n}/more"), tree(1, 1_000)));
    }
    meter.measure(|| {
        for n in 0..4 {
            world.ask(get(names.clone(), &format!("//tmp/t/m{n}")));
        }
    });
}

/// The start of an operation with a specification of as many values as a request may have, read ahead.
pub fn specification(meter: &mut Meter) {
    let mut world = World::new();
    let environment: Map = (0..95_000).map(|n| (format!("OPTION_{n}"), "value")).collect();
    let task = yson::map! {"command" => "true", "job_count" => 1i64};
    let spec = yson::map! {"tasks" => yson::map! {"t" => task}, "unknown" => environment};
    let command = Command::StartOperation { operation_type: OperationType::Vanilla, spec };
    let command = command.read_ahead().expect("a good specification");
    meter.measure(|| world.ask(command));
}
