//! A desk to work at with transactions: commands by paths and texts.

use std::collections::{BTreeMap, BTreeSet};

use cypress::transactions::locks::Mode;
use cypress::*;
use vocab::{Failure, GuidGenerator, ObjectId, Span, Time};
use yson::Value;
use yson::ypath::YPath;

/// A forest to work at by paths and texts. After every command: a refused one changed nothing, and
/// the records written so far restore to the same forest.
pub struct Desk {
    pub forest: Forest,
    /// Owner of new nodes and transactions.
    pub user: &'static str,
    pub ids: GuidGenerator,
    pub now: Time,
    nodes: BTreeMap<Vec<u8>, Vec<u8>>,
    transactions: BTreeMap<Vec<u8>, Vec<u8>>,
    pub released: BTreeSet<u64>,
}

/// Outside of all transactions, or in one.
pub type Tx = Option<ObjectId>;

impl Desk {
    pub fn new() -> Desk {
        Desk::with_limits(Limits::default())
    }

    pub fn with_limits(limits: Limits) -> Desk {
        let mut ids = GuidGenerator::new(1);
        let now = Time::from_secs(1_767_323_045);
        let done = Tree::new(Context { now, user: "root", ids: &mut ids }, limits);
        let mut desk = Desk {
            forest: Forest::new(done.value.clone()),
            user: "alice",
            ids,
            now,
            nodes: BTreeMap::new(),
            transactions: BTreeMap::new(),
            released: BTreeSet::new(),
        };
        desk.store(done);
        let context = Context { now, user: "root", ids: &mut desk.ids };
        let done = desk.forest.ensure_layout(context, &Layout::default()).expect("the layout is sound");
        desk.store(done);
        desk
    }

    fn store<T>(&mut self, done: Committed<T>) -> T {
        let write = |table: &mut BTreeMap<_, _>, change: Change| match change.value {
            Some(value) => drop(table.insert(change.key, value)),
            None => drop(table.remove(&change.key)),
        };
        done.changes.into_iter().for_each(|change| write(&mut self.nodes, change));
        done.transactions.into_iter().for_each(|change| write(&mut self.transactions, change));
        for id in done.ended {
            self.transactions.retain(|key, _| !key.starts_with(&id.0.to_bytes()));
        }
        for blob in done.released_blobs {
            assert!(self.released.insert(blob), "content {blob} was released twice");
        }
        done.value
    }

    /// Runs something in a transaction, one second after the last one.
    pub fn run<T>(
        &mut self,
        at: Tx,
        work: impl FnOnce(&mut Forest, Context<'_>) -> Result<Committed<T>, Failure>,
    ) -> Result<T, Failure> {
        self.now = Time(self.now.0 + 1_000_000);
        let before: Vec<_> = self.pictures();
        if let Some(id) = at {
            self.forest.enter(id)?;
        }
        let result = work(&mut self.forest, Context { now: self.now, user: self.user, ids: &mut self.ids });
        self.forest.leave();
        let result = match result {
            Ok(done) => Ok(self.store(done)),
            Err(failure) => {
                assert_eq!(self.pictures(), before, "a refused command must change nothing: {failure}");
                Err(failure)
            }
        };
        self.check();
        result
    }

    /// What the trunk and every view look like, with locks.
    fn pictures(&mut self) -> Vec<(Tx, String)> {
        let all: Vec<Tx> = std::iter::once(None).chain(self.forest.transactions().map(Some)).collect();
        all.into_iter().map(|at| (at, self.picture(at))).collect()
    }

    pub fn picture(&mut self, at: Tx) -> String {
        picture(&mut self.forest, at)
    }

    fn check(&mut self) {
        let limits = self.forest.trunk().limits().clone();
        let trunk = Tree::restore(&self.nodes, limits).expect("good records of nodes");
        let mut restored =
            Forest::restore(trunk, &self.transactions, self.now).expect("good records of transactions");
        assert_eq!(
            restored.records().collect::<BTreeMap<_, _>>(),
            self.forest.records().collect::<BTreeMap<_, _>>()
        );
        let all: Vec<Tx> = std::iter::once(None).chain(self.forest.transactions().map(Some)).collect();
        for at in all {
            assert_eq!(picture(&mut restored, at), picture(&mut self.forest, at), "seen from {at:?}");
        }
        for sums in [self.forest.check_sums([]), restored.check_sums([])] {
            assert_eq!(sums, [""; 0], "what is kept of users and accounts is what a recount finds");
        }
        let usage = |forest: &Forest| {
            let trunk = forest.trunk();
            // What a branch adds in memory depends on the version of the trunk when it was made.
            let of =
                |account: &str| (account.to_owned(), Usage { memory: 0, ..trunk.account_usage(account) });
            trunk.used_accounts().into_iter().map(of).collect::<BTreeMap<_, _>>()
        };
        let charged = usage(&self.forest);
        assert_eq!(usage(&restored), charged, "a restart changes no usage");
        let used: BTreeSet<u64> = self.forest.all_blobs().collect();
        let chunks: i64 = charged.values().map(|usage| usage.chunks).sum();
        assert!(
            chunks >= used.len() as i64,
            "a content is kept and charged to no account: {used:?}, {charged:?}"
        );
        assert!(used.is_disjoint(&self.released), "a content that was released is in use");
    }

    pub fn start(&mut self, parent: Tx) -> ObjectId {
        let options = StartOptions { parent, timeout: Span::from_secs(30), ..StartOptions::default() };
        self.run(None, |forest, context| forest.start(context, options)).expect("it can begin")
    }

    pub fn commit(&mut self, id: ObjectId) -> Result<(), Failure> {
        self.run(None, |forest, context| forest.commit(context, id, |_| Ok(())))
    }

    pub fn abort(&mut self, id: ObjectId) {
        self.run(None, |forest, _| forest.abort(id)).expect("it is there");
    }

    pub fn create(&mut self, at: Tx, node_type: NodeType, path: &str) -> Result<ObjectId, Failure> {
        self.run(at, |forest, context| {
            let place = place(forest, path, Last::Stay)?;
            forest.edit(context, |edit| edit.create(&place, &CreateOptions::new(node_type)))
        })
    }

    pub fn set(&mut self, at: Tx, path: &str, value: &str) -> Result<(), Failure> {
        self.run(at, |forest, context| {
            let place = place(forest, path, Last::Follow)?;
            let value = yson::parse(value.as_bytes()).expect("a value");
            forest.edit(context, |edit| edit.set(&place, value, SetOptions::default()))
        })
    }

    pub fn remove(&mut self, at: Tx, path: &str) -> Result<(), Failure> {
        self.run(at, |forest, context| {
            let place = place(forest, path, Last::Stay)?;
            forest.edit(context, |edit| edit.remove(&place, RemoveOptions { recursive: true, force: false }))
        })
    }

    pub fn write(&mut self, at: Tx, path: &str, blob: u64) -> Result<(), Failure> {
        self.run(at, |forest, context| {
            let place = place(forest, path, Last::Follow)?;
            let content = Content { blob, size: 1, md5: None };
            forest.edit(context, |edit| edit.set_file_content(place.node, Some(content)))
        })
    }

    pub fn lock(&mut self, at: Tx, path: &str, mode: Mode, waitable: bool) -> Result<Locked, Failure> {
        self.run(at, |forest, context| {
            let place = place(forest, path, Last::Stay)?;
            forest.lock(context, place.node, LockOptions { mode, waitable })
        })
    }

    pub fn unlock(&mut self, at: Tx, path: &str) -> Result<(), Failure> {
        self.run(at, |forest, _| {
            let place = place(forest, path, Last::Stay)?;
            forest.unlock(place.node)
        })
    }

    pub fn get(&mut self, at: Tx, path: &str) -> String {
        if let Some(id) = at {
            self.forest.enter(id).expect("it is there");
        }
        let found = place(&self.forest, path, Last::Follow)
            .and_then(|place| self.forest.get(&place, &GetOptions::default()));
        self.forest.leave();
        found.map_or_else(|failure| failure.code.to_string(), |value| text(&value))
    }
}

fn text(value: &Value) -> String {
    String::from_utf8(yson::to_text(value)).expect("text")
}

pub fn place(forest: &Forest, path: &str, last: Last) -> Result<Place, Failure> {
    match forest.resolve(&YPath::parse(path.as_bytes()).expect("a path"), last)? {
        Resolved::Local(place) => Ok(place),
        Resolved::Mount(_) => Err(Failure::new("a mount")),
        Resolved::Foreign(foreign) => Err(foreign.failure()),
    }
}

fn picture(forest: &mut Forest, at: Tx) -> String {
    if let Some(id) = at {
        forest.enter(id).expect("it is there");
    }
    let mut lines = String::new();
    for id in forest.subtree(forest.root()) {
        let node = forest.node(id).expect("it is in the tree");
        if node.builtin {
            continue;
        }
        let mut attributes = node.user_attributes.clone();
        attributes.sort_keys();
        let locks: Vec<_> = forest.locks(id).map(|lock| text(&lock.to_map().into())).collect();
        lines += &format!("{} {:?} {:?} {locks:?}\n", forest.path(id), node.body, attributes);
    }
    forest.leave();
    lines
}

/// Code of an error, 0 if there is none.
pub fn code(result: Result<impl Sized, Failure>) -> i64 {
    result.map_or_else(|failure| failure.code, |_| 0)
}
