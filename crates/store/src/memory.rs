//! A store in memory that fails and crashes when told to: for tests and the simulator.

use crate::store::blob_id;
use crate::{BlobWriter, Result, Store, StoreError, prefix_end};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use vocab::{Batch, Op, Table};

type Tables = BTreeMap<(Table, Vec<u8>), Vec<u8>>;
type Blobs = BTreeMap<u64, Arc<Vec<u8>>>;

/// What a failing write leaves on the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Nothing: the disk was full.
    Refused,
    /// Everything: the power failed between the write and the answer.
    LostAnswer,
}

/// See the module page. Cheap to clone: clones share the contents.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    /// What reads see.
    view: Tables,
    /// What a crash leaves, without the tail.
    durable: Tables,
    /// Written but not yet durable batches, while durability is held back.
    tail: VecDeque<Batch>,
    hold: bool,
    blobs: Blobs,
    next_blob: u64,
    /// Crashes so far; the first life is 1.
    crashes: u64,
    writes: u64,
    fault: Option<(u64, Fault)>,
    poisoned: Option<String>,
}

impl MemoryStore {
    /// An empty store in its first life.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// Makes the `nth` write from now (1 is the next) fail; all later ones are refused as poisoned.
    pub fn fail_write(&self, nth: u64, fault: Fault) {
        let mut inner = self.lock();
        inner.fault = Some((inner.writes + nth, fault));
    }

    /// While held, writes return at once but stay in a tail that a crash may cut; releasing makes
    /// the tail durable. This is how the simulator puts time between a write and its durability.
    pub fn hold_durability(&self, hold: bool) {
        let mut inner = self.lock();
        inner.hold = hold;
        if !hold {
            let all = inner.tail.len();
            inner.settle(all);
        }
    }

    /// Makes the oldest `batches` of the tail durable.
    pub fn settle(&self, batches: usize) {
        self.lock().settle(batches);
    }

    /// Batches that a crash may lose.
    pub fn tail_len(&self) -> usize {
        self.lock().tail.len()
    }

    /// What the next process finds after a crash that saved the first `kept` batches of the tail.
    ///
    /// The tail may be torn between two batches of one transaction, never inside a batch: this is
    /// all that a kernel may rely on. Unfinished blobs are gone, faults are cleared. The old store
    /// takes no further writes.
    pub fn crash(&self, kept: usize) -> MemoryStore {
        let mut inner = self.lock();
        inner.settle(kept);
        inner.tail.clear();
        inner.poisoned = Some("the process crashed".to_owned());
        MemoryStore(Arc::new(Mutex::new(Inner {
            view: inner.durable.clone(),
            durable: inner.durable.clone(),
            blobs: inner.blobs.clone(),
            crashes: inner.crashes + 1,
            ..Inner::default()
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic of another test thread leaves consistent data: all changes are single statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn settle(&mut self, batches: usize) {
        for _ in 0..batches {
            let Some(batch) = self.tail.pop_front() else { return };
            apply(&mut self.durable, &batch);
        }
    }

    fn take(&mut self, batches: &[Batch]) {
        for batch in batches {
            apply(&mut self.view, batch);
            if self.hold {
                self.tail.push_back(batch.clone());
            } else {
                apply(&mut self.durable, batch);
            }
        }
    }

    fn refuse_if_poisoned(&self) -> Result<()> {
        match &self.poisoned {
            Some(cause) => Err(StoreError::Poisoned { cause: cause.clone() }),
            None => Ok(()),
        }
    }
}

fn apply(tables: &mut Tables, batch: &Batch) {
    for op in &batch.ops {
        match op {
            Op::Put { table, key, value } => {
                tables.insert((*table, key.clone()), value.clone());
            }
            Op::Delete { table, key } => {
                tables.remove(&(*table, key.clone()));
            }
            Op::DeletePrefix { table, prefix } => {
                let doomed: Vec<_> =
                    range(tables, *table, Bound::Included(prefix), end_bound(&prefix_end(prefix)))
                        .map(|(k, _)| k.clone())
                        .collect();
                for key in doomed {
                    tables.remove(&key);
                }
            }
        }
    }
}

fn end_bound(end: &Option<Vec<u8>>) -> Bound<&[u8]> {
    end.as_deref().map_or(Bound::Unbounded, Bound::Excluded)
}

/// The part of one table within the bounds; empty when they are the wrong way round.
fn range<'a>(
    tables: &'a Tables,
    table: Table,
    from: Bound<&[u8]>,
    to: Bound<&[u8]>,
) -> impl DoubleEndedIterator<Item = (&'a (Table, Vec<u8>), &'a Vec<u8>)> {
    let with_table = |b: Bound<&[u8]>| b.map(|k| (table, k.to_vec()));
    let low = match from {
        Bound::Unbounded => Bound::Included((table, Vec::new())),
        bound => with_table(bound),
    };
    let high = with_table(to);
    let empty = crate::store::is_empty_range(from, to);
    // An open upper end would run into the next table, hence take_while below; from the back that
    // would stop at once, so the upper end is made explicit.
    let high = match high {
        Bound::Unbounded => match Table::ALL.iter().find(|t| **t > table) {
            Some(next) => Bound::Excluded((*next, Vec::new())),
            None => Bound::Unbounded,
        },
        bound => bound,
    };
    let slice = if empty { None } else { Some(tables.range((low, high))) };
    slice.into_iter().flatten()
}

impl Store for MemoryStore {
    fn write(&self, batches: &[Batch]) -> Result<()> {
        let mut inner = self.lock();
        inner.refuse_if_poisoned()?;
        inner.writes += 1;
        let fault = inner.fault.filter(|(at, _)| *at == inner.writes).map(|(_, fault)| fault);
        if fault != Some(Fault::Refused) {
            inner.take(batches);
        }
        if fault.is_none() {
            return Ok(());
        }
        let error = StoreError::Io {
            action: "write",
            path: "(memory)".into(),
            source: io::Error::from(io::ErrorKind::StorageFull),
        };
        inner.poisoned = Some(error.to_string());
        Err(error)
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.lock().view.get(&(table, key.to_vec())).cloned())
    }

    fn scan(
        &self,
        table: Table,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reverse: bool,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        // A copy, because `visit` may call the store.
        let found: Vec<_> = {
            let inner = self.lock();
            let pairs = range(&inner.view, table, from, to).map(|((_, k), v)| (k.clone(), v.clone()));
            if reverse { pairs.rev().collect() } else { pairs.collect() }
        };
        for (key, value) in &found {
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn begin_blob(&self) -> Result<Box<dyn BlobWriter>> {
        let mut inner = self.lock();
        inner.refuse_if_poisoned()?;
        inner.next_blob += 1;
        let id = blob_id(inner.crashes + 1, inner.next_blob);
        Ok(Box::new(MemoryBlob { store: self.clone(), id, content: Vec::new() }))
    }

    fn read_blob(&self, id: u64, offset: u64, len: usize) -> Result<Vec<u8>> {
        let inner = self.lock();
        let blob = inner.blobs.get(&id).ok_or(StoreError::NoSuchBlob(id))?;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(blob.len());
        Ok(blob[from..from.saturating_add(len).min(blob.len())].to_vec())
    }

    fn blob_len(&self, id: u64) -> Result<u64> {
        self.lock().blobs.get(&id).map(|b| b.len() as u64).ok_or(StoreError::NoSuchBlob(id))
    }

    fn delete_blob(&self, id: u64) -> Result<()> {
        self.lock().blobs.remove(&id);
        Ok(())
    }

    fn blob_ids(&self) -> Result<Vec<u64>> {
        Ok(self.lock().blobs.keys().copied().collect())
    }

    fn life(&self) -> u64 {
        self.lock().crashes + 1
    }
}

struct MemoryBlob {
    store: MemoryStore,
    id: u64,
    content: Vec<u8>,
}

impl BlobWriter for MemoryBlob {
    fn id(&self) -> u64 {
        self.id
    }
    fn append(&mut self, chunk: &[u8]) -> Result<()> {
        self.content.extend_from_slice(chunk);
        Ok(())
    }
    fn len(&self) -> u64 {
        self.content.len() as u64
    }
    fn finish(self: Box<Self>) -> Result<u64> {
        let mut inner = self.store.lock();
        inner.refuse_if_poisoned()?;
        inner.blobs.insert(self.id, Arc::new(self.content));
        Ok(self.id)
    }
}
