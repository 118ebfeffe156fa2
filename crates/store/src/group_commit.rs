//! Group commit: everything that waits is written by one transaction.
//!
//! One commit costs one sync of the disk, however many batches are in it. A thread takes what has
//! arrived while the last commit was running, writes it at once and says up to which number all is
//! durable. There is no waiting for more: under little load latency is one commit, under much load
//! the groups grow by themselves.

use crate::{Batch, Store, StoreError};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// How much goes into one transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupBounds {
    /// Batches.
    pub max_batches: usize,
    /// Bytes of keys and values; a single larger batch still goes alone.
    pub max_bytes: usize,
}

impl Default for GroupBounds {
    fn default() -> GroupBounds {
        GroupBounds { max_batches: 4096, max_bytes: 16 << 20 }
    }
}

/// The handle of the thread that writes. Dropping it writes what has been submitted and ends it.
pub struct GroupCommit {
    sender: Option<Sender<(u64, Batch)>>,
    thread: Option<JoinHandle<()>>,
}

impl GroupCommit {
    /// Starts the thread.
    ///
    /// `report` is called on that thread: with `Ok(seq)` when all batches up to `seq` are durable,
    /// and once with the error when a write failed; after that nothing is written or reported any
    /// more, so nothing more is acknowledged.
    pub fn start(
        store: Arc<dyn Store>,
        bounds: GroupBounds,
        report: impl FnMut(Result<u64, StoreError>) + Send + 'static,
    ) -> GroupCommit {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new()
            .name("commit".to_owned())
            .spawn(move || run(&*store, bounds, &receiver, report))
            .expect("the system has room for one more thread");
        GroupCommit { sender: Some(sender), thread: Some(thread) }
    }

    /// Hands over a batch; numbers must grow. Never blocks.
    pub fn submit(&self, seq: u64, batch: Batch) {
        if let Some(sender) = &self.sender {
            // The thread is gone only after a reported failure: then nobody waits for this one.
            let _ = sender.send((seq, batch));
        }
    }
}

impl Drop for GroupCommit {
    fn drop(&mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(
    store: &dyn Store,
    bounds: GroupBounds,
    receiver: &Receiver<(u64, Batch)>,
    mut report: impl FnMut(Result<u64, StoreError>),
) {
    let mut group = Vec::new();
    let mut durable = 0;
    while let Ok((seq, batch)) = receiver.recv() {
        let mut last = seq;
        let mut bytes = batch.byte_size();
        group.push(batch);
        while group.len() < bounds.max_batches && bytes < bounds.max_bytes {
            let Ok((seq, batch)) = receiver.try_recv() else { break };
            last = seq;
            bytes += batch.byte_size();
            group.push(batch);
        }
        assert!(last > durable, "batch {last} was submitted after {durable} was durable");
        if let Err(error) = store.write_taken(&mut group) {
            return report(Err(error));
        }
        group.clear();
        durable = last;
        report(Ok(durable));
    }
}
