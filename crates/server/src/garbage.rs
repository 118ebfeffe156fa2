//! Removing what nobody refers to any more. Runs beside everything else and may be interrupted at
//! any point: what is left is found again at the next start.

use crate::hub::Errand;
use crate::readers::Readers;
use kernel::{FailContext, GarbageDecision, STDERR_BLOB};
use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use store::{Batch, Store, StoreError, Table, life_of_blob, prefix_end};
use vocab::{Guid, OperationId};

/// The handle of the thread that does errands.
pub struct Garbage {
    sender: Sender<Errand>,
}

impl Garbage {
    /// Starts the thread. `held` are the blobs that the start has not removed: they go when an administrator has
    /// confirmed it ([`Errand::CollectGarbage`]), and then `collected` is called. Blobs that are read are removed when
    /// `readers` says so.
    pub fn start(
        store: Arc<dyn Store>,
        readers: Readers,
        held: Vec<u64>,
        collected: impl Fn() + Send + 'static,
    ) -> Garbage {
        let (sender, receiver) = channel();
        let mut held = held;
        let spawned = std::thread::Builder::new().name("garbage".into()).spawn(move || {
            while let Ok(first) = next_errand(&receiver, &readers) {
                // What came meanwhile is done with it: the store takes one change at a time.
                let mut errands: Vec<Errand> =
                    first.into_iter().chain(receiver.try_iter().take(ERRANDS_AT_ONCE)).collect();
                let before = errands.len();
                errands.retain(|errand| !matches!(errand, Errand::CollectGarbage));
                if errands.len() < before {
                    let blobs = std::mem::take(&mut held);
                    tracing::info!(
                        removed = blobs.len(),
                        "removed contents that nothing refers to, as confirmed"
                    );
                    blobs.into_iter().for_each(|blob| delete_blob(&*store, blob));
                    collected();
                }
                if let Err(error) = carry_out(&*store, &readers, errands) {
                    tracing::warn!(%error, "cannot remove what is not needed any more");
                }
                readers.due(Instant::now()).into_iter().for_each(|blob| delete_blob(&*store, blob));
            }
            readers.all().into_iter().for_each(|blob| delete_blob(&*store, blob));
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

/// The next errand; none if it is time to look whether blobs are still read.
fn next_errand(receiver: &Receiver<Errand>, readers: &Readers) -> Result<Option<Errand>, RecvTimeoutError> {
    if !readers.delays_any() {
        return receiver.recv().map(Some).map_err(|_| RecvTimeoutError::Disconnected);
    }
    match receiver.recv_timeout(LOOK_AGAIN) {
        Err(RecvTimeoutError::Timeout) => Ok(None),
        next => next.map(Some),
    }
}

/// How often it is looked whether blobs are still read that are to be removed.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Errands that are done together.
const ERRANDS_AT_ONCE: usize = 256;
/// Rows that are removed in one change of the store: everybody else's changes wait for it.
const ROWS_AT_ONCE: usize = 2_000;

fn carry_out(store: &dyn Store, readers: &Readers, errands: Vec<Errand>) -> Result<(), StoreError> {
    let mut forgotten = Vec::new();
    for errand in errands {
        match errand {
            Errand::DeleteBlob(blob) => delete_unread(store, readers, blob),
            Errand::ForgetOperation(id) => forgotten.push(id),
            // The event log has a thread of its own; blobs that were held back are removed above.
            Errand::Log(..) | Errand::CollectGarbage => {}
        }
    }
    forget(store, readers, &forgotten)
}

/// What there is of finished jobs, by operation and job.
const OF_JOBS: [Table; 3] = [Table::JobArchive, Table::Stderr, Table::FailContext];

/// Removes the archived jobs of operations, then the blobs that they have left.
fn forget(store: &dyn Store, readers: &Readers, ids: &[OperationId]) -> Result<(), StoreError> {
    let blobs = forget_rows(store, ids)?;
    blobs.into_iter().for_each(|blob| delete_unread(store, readers, blob));
    Ok(())
}

/// Removes the archived jobs of operations. Returns the blobs that nothing refers to after that.
fn forget_rows(store: &dyn Store, ids: &[OperationId]) -> Result<BTreeSet<u64>, StoreError> {
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
    Ok(blobs)
}

/// Removes a blob, or has it removed when it is not read any more.
fn delete_unread(store: &dyn Store, readers: &Readers, blob: u64) {
    if !readers.postpones(Instant::now(), blob, || store.blob_len(blob).unwrap_or_default()) {
        delete_blob(store, blob);
    }
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

/// What the store refers to, and what of it is there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct References {
    /// Blobs that a file, a table or a finished job refers to.
    pub total: usize,
    /// Those that are not there.
    pub missing: Vec<u64>,
}

impl References {
    /// Looks whether what is referred to is there. Changes nothing.
    pub fn look(store: &dyn Store, of_files: impl Iterator<Item = u64>) -> Result<References, StoreError> {
        let live = live_blobs(store, of_files)?;
        let there: BTreeSet<u64> = store.blob_ids()?.into_iter().collect();
        Ok(References { total: live.len(), missing: live.difference(&there).copied().collect() })
    }

    /// Why store and blobs are not taken for those of one cluster; `None` if they fit. A few contents that got lost are
    /// no reason.
    pub fn refusal(&self) -> Option<String> {
        let example = self.missing.first().filter(|_| is_large_part(self.missing.len(), self.total))?;
        Some(format!(
            "store.redb refers to {} blobs, {} of which are missing in blobs/, {example:016x} for one",
            self.total,
            self.missing.len()
        ))
    }
}

/// Blobs that something refers to. Number 0 is the content of a file that was never written.
fn live_blobs(store: &dyn Store, of_files: impl Iterator<Item = u64>) -> Result<BTreeSet<u64>, StoreError> {
    let mut live: BTreeSet<u64> = of_files.collect();
    left_blobs(store, &[], &mut live)?;
    live.remove(&0);
    Ok(live)
}

/// More than a tenth.
fn is_large_part(part: usize, total: usize) -> bool {
    part * 10 > total
}

/// Blobs that a start removes without a question, whatever part of all they are: as many are left behind by a crash
/// between the end of an upload and the batch that refers to it, or by an interrupted removal. In a small cluster that is
/// soon a tenth of all. Nothing tells them from blobs that an older copy of the store from the same life does not know:
/// both are of the last life that the store knows of, or of an earlier one. So they are named in the log.
const FEW: usize = 10;

/// What a start did about blobs that nothing refers to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Collected {
    /// Removed so many.
    Removed(usize),
    /// So many that the store may be an older copy, or that of another cluster: nothing is removed before an
    /// administrator has confirmed it.
    Held {
        /// The blobs.
        dead: Vec<u64>,
        /// All blobs that there are.
        total: usize,
        /// Those that were written after what the store knows of.
        newer: usize,
    },
}

/// At start: removes what is left of forgotten operations, and blobs that neither a file or table nor
/// a finished job refers to (a crash between the end of an upload and the batch that refers to it leaves one behind).
/// `known_life` is the last life of which the store knows; with `decision` an earlier start, or an administrator, has
/// decided already.
pub fn collect(
    store: &dyn Store,
    of_files: impl Iterator<Item = u64>,
    known_life: u64,
    decision: Option<GarbageDecision>,
) -> Result<Collected, StoreError> {
    forget_rows(store, &half_forgotten(store)?)?;
    let live = live_blobs(store, of_files)?;
    let all = store.blob_ids()?;
    let dead: Vec<u64> = all.iter().copied().filter(|blob| !live.contains(blob)).collect();
    let newer = dead.iter().filter(|blob| life_of_blob(**blob) > known_life).count();
    let is_held = match decision {
        Some(GarbageDecision::Confirmed) => false,
        Some(GarbageDecision::Held) => !dead.is_empty(),
        None => newer > 0 || dead.len() > FEW && is_large_part(dead.len(), all.len()),
    };
    if is_held {
        return Ok(Collected::Held { total: all.len(), newer, dead });
    }
    if decision.is_none() && is_large_part(dead.len(), all.len()) {
        let blobs: Vec<String> = dead.iter().map(|blob| format!("{blob:016x}")).collect();
        tracing::warn!(
            blobs = %blobs.join(" "),
            total = all.len(),
            "removing blobs that nothing refers to: more than a tenth of all, but few enough for what a crash leaves behind"
        );
    }
    dead.iter().try_for_each(|blob| store.delete_blob(*blob))?;
    Ok(Collected::Removed(dead.len()))
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
        forget(&store, &Readers::default(), &[operation(1), operation(3)]).expect("a store without faults");
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
        collect(&store, std::iter::empty(), 1, None).expect("a store without faults");
        assert_eq!(counts(&store), [20, 2, 2, 20, 2]);
    }

    /// A store with so many blobs, and the numbers of them.
    fn with_blobs(count: usize) -> (MemoryStore, Vec<u64>) {
        let store = MemoryStore::new();
        let blobs = (0..count).map(|_| written(&store)).collect();
        (store, blobs)
    }

    /// S17: with a store of another time all blobs were removed in silence.
    #[test]
    fn a_start_asks_before_it_removes_more_than_a_tenth() {
        // All blobs, those that something refers to, whether the start asks.
        for (all, live, asks) in [
            (0, 0, false),
            (1, 0, false),
            (10, 0, false),
            (11, 0, true),
            (11, 1, false),
            (30, 19, true),
            (30, 20, false),
            (109, 98, true),
            (110, 99, false),
            (200, 180, false),
            (200, 179, true),
        ] {
            let (store, blobs) = with_blobs(all);
            let done = collect(&store, blobs[..live].iter().copied(), 1, None).expect("readable");
            let there = store.blob_ids().expect("readable");
            match asks {
                true => {
                    let expected = Collected::Held { dead: blobs[live..].to_vec(), total: all, newer: 0 };
                    assert_eq!((done, there), (expected, blobs), "{live} of {all}");
                }
                false => {
                    let left = blobs[..live].to_vec();
                    assert_eq!((done, there), (Collected::Removed(all - live), left), "{live} of {all}");
                }
            }
        }
    }

    /// S17: a single one that is newer than the store shows that this is an older copy.
    #[test]
    fn a_start_asks_before_it_removes_what_is_newer_than_the_store() {
        let (store, blobs) = with_blobs(50);
        let done = collect(&store, blobs[1..].iter().copied(), 0, None).expect("readable");
        assert_eq!(done, Collected::Held { dead: vec![blobs[0]], total: 50, newer: 1 });
    }

    /// S17.
    #[test]
    fn what_was_held_waits_for_the_answer_over_starts() {
        let (store, blobs) = with_blobs(50);
        let live = || blobs[1..].iter().copied();
        let held = collect(&store, live(), 1, Some(GarbageDecision::Held)).expect("readable");
        assert_eq!(held, Collected::Held { dead: vec![blobs[0]], total: 50, newer: 0 });
        let done = collect(&store, live(), 1, Some(GarbageDecision::Confirmed)).expect("readable");
        assert_eq!(done, Collected::Removed(1));
        let done = collect(&store, live(), 1, Some(GarbageDecision::Held)).expect("readable");
        assert_eq!(done, Collected::Removed(0), "there is nothing to ask about any more");
        let done = collect(&store, std::iter::empty(), 1, Some(GarbageDecision::Confirmed));
        assert_eq!(done.expect("readable"), Collected::Removed(49));
    }

    /// S17: the store of one cluster beside the blobs of another one is not adopted.
    #[test]
    fn references_without_blobs_are_counted() {
        let (store, blobs) = with_blobs(20);
        let look = |of_files: Vec<u64>| References::look(&store, of_files.into_iter()).expect("readable");
        assert_eq!(look(vec![0]), References::default(), "a file that was never written has no blob");
        assert_eq!(look(blobs.clone()).refusal(), None);
        let one_lost = look([blobs.clone(), vec![77]].concat());
        assert_eq!((one_lost.total, one_lost.missing.as_slice()), (21, [77].as_slice()));
        assert_eq!(one_lost.refusal(), None, "a lost blob or two do not stop a cluster");
        let text = look(vec![blobs[0], 0x77, 0x78]).refusal().expect("most are missing");
        assert!(
            text.contains("3 blobs") && text.contains("2 of which") && text.contains("0000000000000077"),
            "{text}"
        );
    }
}
