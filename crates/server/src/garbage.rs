//! Removing what nobody refers to any more. Runs beside everything else and may be interrupted at
//! any point: what is left is found again at the next start.

use crate::hub::Errand;
use kernel::{FailContext, STDERR_BLOB};
use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use store::{Batch, Store, StoreError, Table, prefix_end};
use vocab::{Guid, OperationId};

/// The handle of the thread that does errands.
pub struct Garbage {
    sender: Sender<Errand>,
}

impl Garbage {
    /// Starts the thread.
    pub fn start(store: Arc<dyn Store>) -> Garbage {
        let (sender, receiver) = channel();
        let spawned = std::thread::Builder::new().name("garbage".into()).spawn(move || {
            while let Ok(first) = receiver.recv() {
                // What came meanwhile is done with it: the store takes one change at a time.
                let errands: Vec<Errand> =
                    std::iter::once(first).chain(receiver.try_iter().take(ERRANDS_AT_ONCE)).collect();
                if let Err(error) = carry_out(&*store, errands) {
                    tracing::warn!(%error, "cannot remove what is not needed any more");
                }
            }
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "no thread for removing garbage");
        }
        Garbage { sender }
    }

    /// Hands over an errand.
    pub fn errand(&self, errand: Errand) {
        let _ = self.sender.send(errand);
    }
}

/// Errands that are done together.
const ERRANDS_AT_ONCE: usize = 256;
/// Rows that are removed in one change of the store: everybody else's changes wait for it.
const ROWS_AT_ONCE: usize = 2_000;

fn carry_out(store: &dyn Store, errands: Vec<Errand>) -> Result<(), StoreError> {
    let mut forgotten = Vec::new();
    for errand in errands {
        match errand {
            Errand::DeleteBlob(blob) => delete_blob(store, blob),
            Errand::ForgetOperation(id) => forgotten.push(id),
            Errand::Log(..) => {} // not garbage: it does not come here
        }
    }
    forget(store, &forgotten)
}

/// What there is of finished jobs, by operation and job.
const OF_JOBS: [Table; 3] = [Table::JobArchive, Table::Stderr, Table::FailContext];

/// Removes the archived jobs of operations, then the blobs that they have left.
fn forget(store: &dyn Store, ids: &[OperationId]) -> Result<(), StoreError> {
    let mut blobs = BTreeSet::new();
    let mut batch = Batch::new();
    for id in ids {
        let prefix = id.0.to_bytes();
        left_blobs(store, &prefix, &mut blobs)?;
        for table in OF_JOBS {
            for key in keys(store, table, &prefix)? {
                if let (Table::JobArchive, Some(job)) = (table, key.get(prefix.len()..)) {
                    batch.delete(Table::JobIndex, job);
                }
                batch.delete(table, key);
                if batch.ops.len() >= ROWS_AT_ONCE {
                    store.write(&[std::mem::take(&mut batch)])?;
                }
            }
        }
    }
    if !batch.is_empty() {
        store.write(&[batch])?;
    }
    blobs.into_iter().for_each(|blob| delete_blob(store, blob));
    Ok(())
}

/// One that cannot be removed now stays until the next start; the others need not.
fn delete_blob(store: &dyn Store, blob: u64) {
    if let Err(error) = store.delete_blob(blob) {
        tracing::warn!(%error, blob, "a blob cannot be removed: the next start tries again");
    }
}

fn keys(store: &dyn Store, table: Table, prefix: &[u8]) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut keys = Vec::new();
    let end = prefix_end(prefix);
    let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    store.scan(table, Bound::Included(prefix), to, false, &mut |key, _| {
        keys.push(key.to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(keys)
}

/// Operations with archived jobs that are in no other table: a crash came between their end and the
/// removal of their jobs. From one to the next by look-ups, however many jobs they have.
fn half_forgotten(store: &dyn Store) -> Result<Vec<OperationId>, StoreError> {
    let mut found = Vec::new();
    for table in OF_JOBS {
        let mut from = Vec::new();
        while let Some(key) = first_key(store, table, &from)? {
            let Some(prefix) = key.first_chunk::<16>() else { break };
            let id = OperationId(Guid::from_bytes(*prefix));
            let is_kept = store.get(Table::OperationIndex, prefix)?.is_some()
                || first_key(store, Table::Operations, prefix)?.is_some_and(|k| k.starts_with(prefix));
            if !is_kept && !found.contains(&id) {
                found.push(id);
            }
            match prefix_end(prefix) {
                Some(end) => from = end,
                None => break,
            }
        }
    }
    Ok(found)
}

fn first_key(store: &dyn Store, table: Table, from: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
    let mut first = None;
    store.scan(table, Bound::Included(from), Bound::Unbounded, false, &mut |key, _| {
        first = Some(key.to_vec());
        ControlFlow::Break(())
    })?;
    Ok(first)
}

/// Blobs of large stderrs, and of what failed jobs were reading.
fn left_blobs(store: &dyn Store, prefix: &[u8], blobs: &mut BTreeSet<u64>) -> Result<(), StoreError> {
    let end = prefix_end(prefix);
    let to = || end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    store.scan(Table::Stderr, Bound::Included(prefix), to(), false, &mut |_, record| {
        if let [STDERR_BLOB, number @ ..] = record
            && let Ok(number) = number.try_into()
        {
            blobs.insert(u64::from_be_bytes(number));
        }
        ControlFlow::Continue(())
    })?;
    store.scan(Table::FailContext, Bound::Included(prefix), to(), false, &mut |_, record| {
        blobs.extend(FailContext::decode(record).map(|context| context.blob));
        ControlFlow::Continue(())
    })
}

/// At start: removes what is left of forgotten operations, and blobs that neither a file or table nor
/// a finished job refers to (a crash between the end of an upload and the batch that refers to it leaves one behind).
pub fn collect(store: &dyn Store, of_files: impl Iterator<Item = u64>) -> Result<usize, StoreError> {
    forget(store, &half_forgotten(store)?)?;
    let mut live: BTreeSet<u64> = of_files.collect();
    left_blobs(store, &[], &mut live)?;
    let dead: Vec<u64> = store.blob_ids()?.into_iter().filter(|blob| !live.contains(blob)).collect();
    dead.iter().try_for_each(|blob| store.delete_blob(*blob))?;
    Ok(dead.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::MemoryStore;
    use vocab::JobId;

    fn operation(number: u32) -> OperationId {
        OperationId(Guid([number, 0, 0x103e8, 1]))
    }

    /// An operation with this many finished jobs; every tenth has a stderr and has failed while it read.
    fn with_jobs(store: &MemoryStore, number: u32, jobs: u32) {
        let mut batch = Batch::new();
        for job in 0..jobs {
            let key = kernel::job_key(operation(number), JobId(Guid([job, number, 0x10384, 1])));
            if job.is_multiple_of(10) {
                batch.put(Table::Stderr, key.clone(), vec![0, b'x']);
                let blob = written(store);
                batch.put(Table::FailContext, key.clone(), [blob, 1].map(u64::to_be_bytes).concat());
            }
            batch.put(Table::JobIndex, &key[16..], &key[..16]);
            batch.put(Table::JobArchive, key, b"job".as_slice());
        }
        store.write(&[batch]).expect("a store without faults");
    }

    fn written(store: &MemoryStore) -> u64 {
        let mut writer = store.begin_blob().expect("a store without faults");
        writer.append(b"x").expect("a store without faults");
        writer.finish().expect("a store without faults")
    }

    /// Jobs, stderrs, what failed jobs were reading, jobs in the index, and blobs.
    fn counts(store: &MemoryStore) -> [usize; 5] {
        let [jobs, stderrs, contexts] = OF_JOBS.map(|table| rows(store, table));
        let index = rows(store, Table::JobIndex);
        [jobs, stderrs, contexts, index, store.blob_ids().expect("a store without faults").len()]
    }

    fn rows(store: &MemoryStore, table: Table) -> usize {
        keys(store, table, &[]).expect("a store without faults").len()
    }

    #[test]
    fn of_the_forgotten_nothing_stays_and_of_others_everything() {
        let store = MemoryStore::new();
        with_jobs(&store, 1, 2 * ROWS_AT_ONCE as u32 + 5);
        with_jobs(&store, 2, 10);
        with_jobs(&store, 3, 10);
        forget(&store, &[operation(1), operation(3)]).expect("a store without faults");
        assert_eq!(counts(&store), [10, 1, 1, 10, 1]);
    }

    #[test]
    fn a_start_finishes_what_a_crash_has_left_half_done() {
        let store = MemoryStore::new();
        for number in 1..=4 {
            with_jobs(&store, number, 10);
        }
        let mut batch = Batch::new();
        batch.put(Table::OperationIndex, operation(2).0.to_bytes(), b"finished".as_slice());
        let mut live = operation(3).0.to_bytes().to_vec();
        live.push(b's');
        batch.put(Table::Operations, live, b"running".as_slice());
        store.write(&[batch]).expect("a store without faults");
        assert_eq!(half_forgotten(&store).expect("readable"), [operation(1), operation(4)]);
        collect(&store, std::iter::empty()).expect("a store without faults");
        assert_eq!(counts(&store), [20, 2, 2, 20, 2]);
    }
}
