//! Ten thousand locks, and the ends of those who have them. `cargo bench -p millpond-cypress --bench locks`.

#![allow(missing_docs)]

use cypress::transactions::locks::{Mode, Part};
use cypress::{
    Context, CreateOptions, Forest, Last, Layout, Limits, LockOptions, NodeType, Place, Resolved, SetOptions,
    StartOptions, Tree,
};
use divan::Bencher;
use vocab::{GuidGenerator, ObjectId, Span, Time};
use yson::ypath::YPath;

const LOCKS: usize = 10_000;

fn main() {
    divan::main();
}

struct World {
    forest: Forest,
    ids: GuidGenerator,
}

impl World {
    fn new() -> World {
        let mut ids = GuidGenerator::new(1);
        let limits = Limits {
            max_child_count: 1_000_000,
            max_nodes_per_transaction: 4 * LOCKS,
            max_transactions_per_user: 2 * LOCKS,
            max_locks_per_user: 4 * LOCKS,
            ..Limits::default()
        };
        let done = Tree::new(Context { now: Time(0), user: "root", ids: &mut ids }, limits);
        let mut world = World { forest: Forest::new(done.value), ids };
        let context = Context { now: Time(0), user: "root", ids: &mut world.ids };
        let _ = world.forest.ensure_layout(context, &Layout::default()).expect("a good layout");
        world
    }

    fn place(&self, path: &str) -> Place {
        match self.forest.resolve(&YPath::parse(path.as_bytes()).expect("a path"), Last::Stay) {
            Ok(Resolved::Local(place)) => place,
            other => panic!("{other:?}"),
        }
    }

    fn start(&mut self, parent: Option<ObjectId>) -> ObjectId {
        let options = StartOptions { parent, timeout: Span::from_secs(3600), ..StartOptions::default() };
        let context = Context { now: Time(0), user: "root", ids: &mut self.ids };
        self.forest.start(context, options).expect("it may begin").value
    }

    fn create(&mut self, at: Option<ObjectId>, path: &str) -> ObjectId {
        self.go(at);
        let place = self.place(path);
        let context = Context { now: Time(0), user: "root", ids: &mut self.ids };
        let options = CreateOptions::new(NodeType::Document);
        let made = self.forest.edit(context, |edit| edit.create(&place, &options)).expect("it is not there");
        self.forest.leave();
        made.value
    }

    fn set(&mut self, at: Option<ObjectId>, path: &str) {
        self.go(at);
        let place = self.place(path);
        let context = Context { now: Time(0), user: "root", ids: &mut self.ids };
        let _ = self
            .forest
            .edit(context, |edit| edit.set(&place, 1i64.into(), SetOptions::default()))
            .expect("it may be set");
        self.forest.leave();
    }

    fn lock(&mut self, at: ObjectId, node: ObjectId, mode: Mode) {
        self.go(Some(at));
        let context = Context { now: Time(0), user: "root", ids: &mut self.ids };
        let options = LockOptions { mode, waitable: true };
        let _ = self.forest.lock(context, node, options).expect("it may be asked for");
        self.forest.leave();
    }

    fn go(&mut self, at: Option<ObjectId>) {
        if let Some(id) = at {
            self.forest.enter(id).expect("it lives");
        }
    }

    fn commit(&mut self, id: ObjectId) {
        let context = Context { now: Time(0), user: "root", ids: &mut self.ids };
        let _ = self.forest.commit(context, id, |_| Ok(())).expect("nothing is in the way");
    }
}

fn mode(kind: &str, number: usize) -> Mode {
    match kind {
        "exclusive" => Mode::Exclusive,
        "shared" => Mode::Shared(Part::Unnamed),
        "same child" => Mode::Shared(Part::Child("a".into())),
        "own child" => Mode::Shared(Part::Child(number.to_string().into())),
        _ => Mode::Snapshot,
    }
}

/// As many transactions, each with a lock of one node or waiting for it; all end one after another.
#[divan::bench(args = ["exclusive", "shared", "same child", "own child", "snapshot"], sample_count = 3, sample_size = 1)]
fn of_one_node(bencher: Bencher<'_, '_>, kind: &str) {
    bencher.with_inputs(World::new).bench_local_values(|mut world| {
        let node = world.create(None, "//tmp/n");
        let all: Vec<ObjectId> = (0..LOCKS).map(|_| world.start(None)).collect();
        for (number, id) in all.iter().enumerate() {
            world.lock(*id, node, mode(kind, number));
        }
        all.into_iter().for_each(|id| world.commit(id));
    });
}

/// Half have the node together, the other half wait to have it alone.
#[divan::bench(sample_count = 3, sample_size = 1)]
fn readers_and_writers(bencher: Bencher<'_, '_>) {
    bencher.with_inputs(World::new).bench_local_values(|mut world| {
        let node = world.create(None, "//tmp/n");
        let all: Vec<ObjectId> = (0..LOCKS).map(|_| world.start(None)).collect();
        for (number, id) in all.iter().enumerate() {
            world.lock(*id, node, mode(if number < LOCKS / 2 { "shared" } else { "exclusive" }, number));
        }
        all.into_iter().for_each(|id| world.commit(id));
    });
}

/// One transaction with a lock of each of as many nodes, while others change something else.
#[divan::bench(args = ["exclusive", "shared", "snapshot"], sample_count = 3, sample_size = 1)]
fn of_one_transaction(bencher: Bencher<'_, '_>, kind: &str) {
    bencher.with_inputs(World::new).bench_local_values(|mut world| {
        let nodes: Vec<ObjectId> =
            (0..LOCKS).map(|number| world.create(None, &format!("//tmp/n{number}"))).collect();
        world.create(None, "//tmp/other");
        let id = world.start(None);
        for (number, node) in nodes.into_iter().enumerate() {
            world.lock(id, node, mode(kind, number));
            world.set(None, "//tmp/other");
        }
        world.commit(id);
    });
}

/// One transaction makes as many nodes, alone, beside another or through one inside for each of them.
#[divan::bench(args = ["alone", "beside others", "in turn", "nested"], sample_count = 3, sample_size = 1)]
fn changes(bencher: Bencher<'_, '_>, kind: &str) {
    bencher.with_inputs(World::new).bench_local_values(|mut world| {
        world.create(None, "//tmp/other");
        let (id, second) = (world.start(None), world.start(None));
        for number in 0..LOCKS {
            let path = format!("//tmp/n{number}");
            match kind {
                "beside others" => {
                    world.create(Some(id), &path);
                    world.set(None, "//tmp/other");
                }
                "in turn" => drop(world.create(Some(if number % 2 == 0 { id } else { second }), &path)),
                "nested" => {
                    let inner = world.start(Some(id));
                    world.create(Some(inner), &path);
                    world.commit(inner);
                }
                _ => drop(world.create(Some(id), &path)),
            }
        }
        world.commit(second);
        world.commit(id);
    });
}
