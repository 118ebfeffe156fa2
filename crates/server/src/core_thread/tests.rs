//! The store fails under the kernel, and comes back (S18).

use super::*;
use kernel::{Body, Config, Records};
use std::ops::{Bound, ControlFlow};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{Batch, BlobWriter, Fault, MemoryStore, Result, Table};
use yson::Value;
use yson::ypath::YPath;

/// A store that can be opened again after a failure.
#[derive(Clone, Default)]
struct Reopened(Arc<Mutex<MemoryStore>>);

impl Reopened {
    fn now(&self) -> MemoryStore {
        self.0.lock().expect("unpoisoned").clone()
    }

    fn reopen(&self) {
        let mut store = self.0.lock().expect("unpoisoned");
        *store = store.crash(usize::MAX);
    }
}

impl Store for Reopened {
    fn write(&self, batches: &[Batch]) -> Result<()> {
        self.now().write(batches)
    }
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.now().get(table, key)
    }
    fn scan(
        &self,
        table: Table,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reverse: bool,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.now().scan(table, from, to, reverse, visit)
    }
    fn begin_blob(&self) -> Result<Box<dyn BlobWriter>> {
        self.now().begin_blob()
    }
    fn read_blob(&self, id: u64, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.now().read_blob(id, offset, len)
    }
    fn blob_len(&self, id: u64) -> Result<u64> {
        self.now().blob_len(id)
    }
    fn delete_blob(&self, id: u64) -> Result<()> {
        self.now().delete_blob(id)
    }
    fn blob_ids(&self) -> Result<Vec<u64>> {
        self.now().blob_ids()
    }
    fn life(&self) -> u64 {
        self.now().life()
    }
}

fn restored(store: &Reopened) -> Restored {
    let mut records = Records::default();
    for table in Records::TABLES {
        let read = store.scan(*table, Bound::Unbounded, Bound::Unbounded, false, &mut |key, value| {
            records.add(*table, key, value);
            ControlFlow::Continue(())
        });
        read.expect("a store that can be read");
    }
    let mut effects = Vec::new();
    let kernel = Kernel::recover(Config::new("host:1", store.life()), records, now(), &mut effects);
    (kernel.expect("sound records"), effects)
}

/// What the edge is told, and whether there is room again.
#[derive(Clone, Default)]
struct Edge {
    store: Reopened,
    has_room: Arc<AtomicBool>,
    is_failed: Arc<AtomicBool>,
}

impl Recovery for Edge {
    fn failed(&self, _: &Failure) {
        self.is_failed.store(true, Ordering::SeqCst);
    }
    fn durable_state(&self) -> std::result::Result<Kernel, Failure> {
        // A view of the file, as after a crash.
        self.store.reopen();
        Ok(restored(&self.store).0)
    }
    fn resume(&self) -> std::result::Result<Restored, Failure> {
        match self.has_room.load(Ordering::SeqCst) {
            true => Ok(restored(&self.store)),
            false => Err(Failure::new("No space left on device")),
        }
    }
    fn resumed(&self) {
        self.is_failed.store(false, Ordering::SeqCst);
    }
}

/// Longer than anything takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

type Answer = std::result::Result<Body, Failure>;

struct Server {
    edge: Edge,
    core: CoreThread,
    mailbox: Mailbox,
    answers: Receiver<(u64, Answer)>,
    last: u64,
}

impl Server {
    fn start(edge: Edge, begin: std::result::Result<Restored, Failure>) -> Server {
        let (sender, answers) = channel();
        let sender = Mutex::new(sender);
        let deliver = move |effect| {
            if let Effect::Reply { request, body, .. } = effect {
                let _ = sender.lock().expect("unpoisoned").send((request, body));
            }
        };
        let (mailbox, inbox) = mailbox();
        let measures = (watch::channel(Versions::default()).0, Arc::new(Measures::new()));
        let store = Arc::new(edge.store.clone());
        let core = CoreThread::start((mailbox.clone(), inbox), begin, store, deliver, measures, edge.clone());
        Server { edge, core, mailbox, answers, last: 0 }
    }

    fn send(&mut self, command: Command) -> u64 {
        self.last += 1;
        let request = Request { id: self.last, user: "root".into(), mutation_id: None, command };
        self.mailbox.send(Input::Request(request));
        self.last
    }

    fn ask(&mut self, command: Command) -> Answer {
        let id = self.send(command);
        let (answered, body) = self.answers.recv_timeout(PATIENCE).expect("an answer");
        assert_eq!(answered, id);
        body
    }

    fn set(&mut self, name: &str) -> Answer {
        self.ask(set(name))
    }

    fn exists(&mut self, name: &str) -> bool {
        match self.ask(Command::Exists { path: path(name) }).expect("an answer") {
            Body::Value(value) => value.as_bool().expect("a truth"),
            other => panic!("{other:?}"),
        }
    }

    fn wait_for(&self, is_failed: bool) {
        let give_up = Instant::now() + PATIENCE;
        while self.edge.is_failed.load(Ordering::SeqCst) != is_failed {
            assert!(Instant::now() < give_up, "the edge was not told");
            std::thread::yield_now();
        }
    }
}

fn path(name: &str) -> YPath {
    YPath::parse(format!("//tmp/{name}").as_bytes()).expect("a path")
}

fn set(name: &str) -> Command {
    Command::Set { path: path(name), value: Value::from(1), recursive: false, force: false }
}

fn is_refused(answer: Answer) {
    let failure = answer.expect_err("the store cannot be written");
    assert_eq!(failure.code, code::UNAVAILABLE, "{failure}");
    assert_eq!(failure.attributes.get("retry_after").and_then(Value::as_u64), Some(5_000), "{failure}");
    assert!(failure.message.contains("Try again"), "{failure}");
}

/// S18: the client reads files and tables in a transaction. One that is lost with the next life must not be acknowledged.
#[test]
fn s18_a_transaction_is_refused_with_advice_for_readers() {
    let cause = store::StoreError::NoSuchBlob(1);
    let start = Command::StartTransaction(Box::default());
    let refused = refusal_of(&start.through(None), &not_writable(&cause));
    is_refused(Err(refused.clone()));
    assert!(refused.message.contains("create_transaction_and_take_snapshot_lock"), "{refused}");
    let refused = refusal_of(&set("x"), &not_writable(&cause));
    is_refused(Err(refused.clone()));
    assert!(!refused.message.contains("transaction"), "{refused}");
}

/// S18: questions waited for what never became durable, and changes for a restart.
#[test]
fn questions_are_answered_from_what_is_durable_and_changes_refused_until_there_is_room() {
    for fault in [Fault::Refused, Fault::LostAnswer] {
        let edge = Edge::default();
        let begin = restored(&edge.store);
        let mut server = Server::start(edge.clone(), Ok(begin));
        server.set("before").expect("made");
        for round in 0..3 {
            edge.has_room.store(false, Ordering::SeqCst);
            edge.store.now().fail_write(1, fault);
            let name = |what: &str| format!("{what}-{round}");
            // Many at once: whatever the kernel has done with them, none is acknowledged.
            let ids: Vec<u64> = (0..20).map(|i| server.send(set(&name(&format!("lost{i}"))))).collect();
            let mut answered: Vec<u64> = Vec::new();
            while answered.len() < ids.len() {
                let (id, body) = server.answers.recv_timeout(PATIENCE).expect("an answer");
                is_refused(body);
                answered.push(id);
            }
            answered.sort_unstable();
            assert_eq!(answered, ids, "each once");
            server.wait_for(true);
            assert!(server.exists("before"));
            let shown: Vec<bool> = (0..20).map(|i| server.exists(&name(&format!("lost{i}")))).collect();
            assert!(
                fault == Fault::LostAnswer || shown.iter().all(|there| !there),
                "nothing of it is durable"
            );
            is_refused(server.set(&name("refused")));
            let write = Command::FileWritten { path: path("f"), blob: 0, size: 0, md5: None, behind: None };
            is_refused(server.ask(Command::Authorize(Box::new(write))));
            edge.has_room.store(true, Ordering::SeqCst);
            server.wait_for(false);
            let now: Vec<bool> = (0..20).map(|i| server.exists(&name(&format!("lost{i}")))).collect();
            assert_eq!(now, shown, "what was shown as durable is so");
            assert!(!server.exists(&name("refused")));
            server.set(&name("after")).expect("made");
        }
        server.core.stop();
        let mut next = Server::start(edge.clone(), Ok(restored(&edge.store)));
        for name in ["before", "after-0", "after-1", "after-2"] {
            assert!(next.exists(name), "{name} was acknowledged");
        }
        next.core.stop();
    }
}

/// S18: the process starts on a full disk.
#[test]
fn a_start_without_room_answers_questions() {
    let edge = Edge::default();
    let mut server = Server::start(edge.clone(), Ok(restored(&edge.store)));
    server.set("before").expect("made");
    server.core.stop();
    let error = StoreError::Poisoned { cause: "No space left on device".into() };
    let mut server = Server::start(edge.clone(), Err(not_writable(&error)));
    assert!(server.exists("before"));
    is_refused(server.set("after"));
    edge.has_room.store(true, Ordering::SeqCst);
    server.wait_for(false);
    server.set("after").expect("made");
    server.core.stop();
}

/// A server that is stopped while the store fails stops.
#[test]
fn it_can_be_stopped_while_the_store_fails() {
    let edge = Edge::default();
    let mut server = Server::start(edge.clone(), Err(Failure::new("No space left on device")));
    assert!(!server.exists("nothing"));
    server.core.stop();
}
