//! Group commit: order, joining, failure.

use std::ops::{Bound, ControlFlow};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};
use store::{
    Batch, BlobWriter, Fault, GroupBounds, GroupCommit, MemoryStore, Result, Store, StoreError, Table,
};

fn record(i: u64) -> Batch {
    let mut batch = Batch::new();
    batch.put(Table::Events, i.to_be_bytes(), i.to_string());
    batch
}

#[test]
fn every_number_becomes_durable_in_order() {
    let store = MemoryStore::new();
    let (sender, receiver) = channel();
    let commit = GroupCommit::start(Arc::new(store.clone()), GroupBounds::default(), move |r| {
        sender.send(r.expect("a healthy store")).expect("the test listens");
    });
    for seq in 1..=1000 {
        commit.submit(seq, record(seq));
    }
    let mut last = 0;
    while last < 1000 {
        let durable = receiver.recv().expect("reports come");
        assert!(durable > last, "{durable} after {last}");
        assert!(store.get(Table::Events, &durable.to_be_bytes()).expect("reads").is_some());
        last = durable;
    }
}

/// Blocks inside the first write until told, and notes the sizes of the groups.
struct Gate {
    inner: MemoryStore,
    entered: std::sync::mpsc::SyncSender<()>,
    open: Mutex<std::sync::mpsc::Receiver<()>>,
    groups: Arc<Mutex<Vec<usize>>>,
}

impl Store for Gate {
    fn write(&self, batches: &[Batch]) -> Result<()> {
        let first = {
            let mut groups = self.groups.lock().expect("unpoisoned");
            groups.push(batches.len());
            groups.len() == 1
        };
        if first {
            self.entered.send(()).expect("the test listens");
            self.open.lock().expect("unpoisoned").recv().expect("the test opens");
        }
        self.inner.write(batches)
    }
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.inner.get(table, key)
    }
    fn scan(
        &self,
        table: Table,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reverse: bool,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.inner.scan(table, from, to, reverse, visit)
    }
    fn begin_blob(&self) -> Result<Box<dyn BlobWriter>> {
        self.inner.begin_blob()
    }
    fn read_blob(&self, id: u64, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.inner.read_blob(id, offset, len)
    }
    fn blob_len(&self, id: u64) -> Result<u64> {
        self.inner.blob_len(id)
    }
    fn delete_blob(&self, id: u64) -> Result<()> {
        self.inner.delete_blob(id)
    }
    fn blob_ids(&self) -> Result<Vec<u64>> {
        self.inner.blob_ids()
    }
    fn life(&self) -> u64 {
        self.inner.life()
    }
}

#[test]
fn what_waits_is_joined_up_to_the_bounds() {
    let (entered, has_entered) = sync_channel(0);
    let (open, opened) = channel();
    let groups = Arc::new(Mutex::new(Vec::new()));
    let gate = Gate { inner: MemoryStore::new(), entered, open: Mutex::new(opened), groups: groups.clone() };
    let bounds = GroupBounds { max_batches: 10, max_bytes: 1000 };
    let commit = GroupCommit::start(Arc::new(gate), bounds, |r| {
        r.expect("a healthy store");
    });
    commit.submit(1, record(1));
    has_entered.recv().expect("the first write has begun");
    for seq in 2..=25 {
        commit.submit(seq, record(seq));
    }
    let mut large = Batch::new();
    large.put(Table::Events, "large", vec![0; 5000]);
    commit.submit(26, large);
    commit.submit(27, record(27));
    open.send(()).expect("the gate listens");
    drop(commit); // writes the rest
    assert_eq!(*groups.lock().expect("unpoisoned"), [1, 10, 10, 5, 1]);
}

#[test]
fn after_a_failure_nothing_is_acknowledged() {
    let store = MemoryStore::new();
    store.fail_write(3, Fault::LostAnswer);
    let (sender, receiver) = channel();
    let one_by_one = GroupBounds { max_batches: 1, max_bytes: 1 };
    let commit = GroupCommit::start(Arc::new(store), one_by_one, move |r| {
        sender.send(r).expect("the test listens");
    });
    for seq in 1..=10 {
        commit.submit(seq, record(seq));
    }
    drop(commit);
    let reports: Vec<_> = receiver.iter().collect();
    assert_eq!(reports.len(), 3);
    assert!(matches!(reports[..], [Ok(1), Ok(2), Err(StoreError::Io { .. })]), "{reports:?}");
}
