//! Removing what nobody refers to any more. Runs beside everything else and may be interrupted at
//! any point: what is left is found again at the next start.

use crate::hub::Errand;
use kernel::STDERR_BLOB;
use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use store::{Batch, Store, StoreError, Table, prefix_end};
use vocab::OperationId;

/// The handle of the thread that does errands.
pub struct Garbage {
    sender: Sender<Errand>,
}

impl Garbage {
    /// Starts the thread.
    pub fn start(store: Arc<dyn Store>) -> Garbage {
        let (sender, receiver) = channel();
        let spawned = std::thread::Builder::new().name("garbage".into()).spawn(move || {
            for errand in receiver {
                let done = match errand {
                    Errand::DeleteBlob(blob) => store.delete_blob(blob),
                    Errand::ForgetOperation(id) => forget(&*store, id),
                    Errand::Log(..) => Ok(()), // not garbage: it does not come here
                };
                if let Err(error) = done {
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

/// Removes the archived jobs of an operation, then its large stderrs.
fn forget(store: &dyn Store, id: OperationId) -> Result<(), StoreError> {
    let prefix = id.0.to_bytes();
    let mut blobs = BTreeSet::new();
    stderr_blobs(store, &prefix, &mut blobs)?;
    let mut batch = Batch::new();
    batch.delete_prefix(Table::JobArchive, prefix);
    batch.delete_prefix(Table::Stderr, prefix);
    store.write(&[batch])?;
    blobs.into_iter().try_for_each(|blob| store.delete_blob(blob))
}

fn stderr_blobs(store: &dyn Store, prefix: &[u8], blobs: &mut BTreeSet<u64>) -> Result<(), StoreError> {
    let end = prefix_end(prefix);
    let to = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
    store.scan(Table::Stderr, Bound::Included(prefix), to, false, &mut |_, record| {
        if let [STDERR_BLOB, number @ ..] = record
            && let Ok(number) = number.try_into()
        {
            blobs.insert(u64::from_be_bytes(number));
        }
        ControlFlow::Continue(())
    })
}

/// At start: removes blobs that neither a file nor a stderr refers to (a crash between the end of
/// an upload and the batch that refers to it leaves one behind).
pub fn collect(store: &dyn Store, of_files: impl Iterator<Item = u64>) -> Result<usize, StoreError> {
    let mut live: BTreeSet<u64> = of_files.collect();
    stderr_blobs(store, &[], &mut live)?;
    let dead: Vec<u64> = store.blob_ids()?.into_iter().filter(|blob| !live.contains(blob)).collect();
    dead.iter().try_for_each(|blob| store.delete_blob(*blob))?;
    Ok(dead.len())
}
