//! Locks of one node that wait for each other, compared with a list that is searched from its beginning.

use super::desk::{Desk, Tx};
use cypress::NodeType;
use cypress::transactions::locks::{Mode, Part};
use proptest::prelude::*;
use std::collections::BTreeMap;
use vocab::ObjectId;

#[derive(Clone, Debug)]
struct Wanted {
    id: ObjectId,
    transaction: ObjectId,
    mode: Mode,
    acquired: bool,
}

#[derive(Default, Debug)]
struct Model {
    parents: BTreeMap<ObjectId, Tx>,
    locks: Vec<Wanted>,
}

fn against(one: &Mode, other: &Mode) -> bool {
    match (one, other) {
        (Mode::Snapshot, _) | (_, Mode::Snapshot) => false,
        (Mode::Exclusive, _) | (_, Mode::Exclusive) => true,
        (Mode::Shared(Part::Unnamed), _) => false,
        (one, other) => one == other,
    }
}

impl Model {
    fn line(&self, id: ObjectId) -> Vec<ObjectId> {
        std::iter::successors(Some(id), |id| self.parents[id]).collect()
    }

    /// Whose lock is in the way?
    fn blocker(&self, transaction: ObjectId, mode: &Mode) -> Vec<ObjectId> {
        let line = self.line(transaction);
        let blocks = |lock: &&Wanted| {
            let (theirs, asked) = (lock.mode == Mode::Snapshot, *mode == Mode::Snapshot);
            let mine = lock.transaction == transaction;
            lock.acquired
                && match line.contains(&lock.transaction) {
                    true => (theirs && !asked) || (mine && asked && !theirs),
                    false => against(mode, &lock.mode),
                }
        };
        self.locks.iter().filter(blocks).map(|lock| lock.transaction).collect()
    }

    fn grant(&mut self) {
        while let Some(next) = (0..self.locks.len()).find(|at| {
            let lock = &self.locks[*at];
            !lock.acquired && self.blocker(lock.transaction, &lock.mode).is_empty()
        }) {
            self.locks[next].acquired = true;
        }
    }

    fn end(&mut self, id: ObjectId, commit: bool) {
        let family: Vec<ObjectId> =
            self.parents.keys().copied().filter(|other| self.line(*other).contains(&id)).collect();
        if let (true, Some(parent)) = (commit, self.parents[&id]) {
            let passes = |l: &&mut Wanted| l.transaction == id && l.acquired && l.mode != Mode::Snapshot;
            self.locks.iter_mut().filter(passes).for_each(|lock| lock.transaction = parent);
        }
        self.locks.retain(|lock| !family.contains(&lock.transaction));
        self.parents.retain(|other, _| !family.contains(other));
        self.grant();
    }
}

#[derive(Clone, Debug)]
enum Step {
    Start,
    Commit,
    Abort,
    Lock(Mode, bool),
    Unlock,
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let named = |name: &'static str| Mode::Shared(Part::Child(name.into()));
    let attribute = Mode::Shared(Part::Attribute("a".into()));
    let mode = prop_oneof![
        3 => Just(Mode::Exclusive),
        3 => Just(Mode::Shared(Part::Unnamed)),
        2 => Just(named("a")),
        2 => Just(named("b")),
        1 => Just(attribute),
        1 => Just(Mode::Snapshot),
    ];
    let step = prop_oneof![
        4 => Just(Step::Start),
        2 => Just(Step::Commit),
        2 => Just(Step::Abort),
        12 => (mode, prop::bool::weighted(0.8)).prop_map(|(mode, waits)| Step::Lock(mode, waits)),
        2 => Just(Step::Unlock),
    ];
    (any::<usize>(), step)
}

fn play(steps: Vec<(usize, Step)>) {
    let mut desk = Desk::new();
    let node = desk.create(None, NodeType::MapNode, "//tmp/m").expect("a map");
    let mut model = Model::default();
    for (choice, step) in steps {
        let all: Vec<Tx> = std::iter::once(None).chain(model.parents.keys().copied().map(Some)).collect();
        let at = all[choice % all.len()];
        match (step, at) {
            (Step::Start, _) if all.len() < 8 => {
                model.parents.insert(desk.start(at), at);
            }
            (Step::Commit, Some(id)) => {
                desk.commit(id).expect("nothing was changed");
                model.end(id, true);
            }
            (Step::Abort, Some(id)) => {
                desk.abort(id);
                model.end(id, false);
            }
            (Step::Unlock, Some(id)) => {
                desk.unlock(at, "//tmp/m").expect("it is there");
                model.locks.retain(|lock| lock.transaction != id);
                model.grant();
            }
            (Step::Lock(mode, waits), Some(id)) => {
                let blockers = model.blocker(id, &mode);
                let own = blockers.contains(&id);
                match desk.lock(at, "//tmp/m", mode.clone(), waits) {
                    Ok(locked) => {
                        assert!(blockers.is_empty() || waits, "{mode:?} in {at:?}: {model:?}");
                        let acquired = blockers.is_empty();
                        model.locks.push(Wanted { id: locked.lock, transaction: id, mode, acquired });
                    }
                    // Who is in his own way waits for nobody.
                    Err(_) => {
                        assert!(!blockers.is_empty() && (own || !waits), "{mode:?} in {at:?}: {model:?}")
                    }
                }
            }
            _ => continue,
        }
        let found: Vec<(ObjectId, ObjectId, bool)> =
            desk.forest.locks(node).map(|lock| (lock.id, lock.transaction, lock.acquired)).collect();
        let expected: Vec<(ObjectId, ObjectId, bool)> =
            model.locks.iter().map(|lock| (lock.id, lock.transaction, lock.acquired)).collect();
        assert_eq!(found, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn whose_turn_it_is(steps in prop::collection::vec(step(), 1..50)) {
        play(steps);
    }
}
