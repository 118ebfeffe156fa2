//! A store that encrypts vaults before another one writes them.

use super::VaultKeys;
use kernel::operation_of_vault;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use store::{Batch, BlobWriter, Op, Result, Store, Table};

/// Writes through another store. Reads give vaults as they lie there; [`VaultKeys::open`] decrypts them.
pub struct SealingStore {
    inner: Arc<dyn Store>,
    keys: Arc<VaultKeys>,
}

impl SealingStore {
    /// Writes into `inner`.
    pub fn new(inner: Arc<dyn Store>, keys: Arc<VaultKeys>) -> SealingStore {
        SealingStore { inner, keys }
    }
}

fn is_vault(op: &Op) -> bool {
    matches!(op, Op::Put { table, key, .. } if operation_of_vault(*table, key).is_some())
}

impl Store for SealingStore {
    fn write(&self, batches: &[Batch]) -> Result<()> {
        match batches.iter().flat_map(|batch| &batch.ops).any(is_vault) {
            true => self.write_taken(&mut batches.to_vec()),
            false => self.inner.write(batches),
        }
    }

    fn write_taken(&self, batches: &mut [Batch]) -> Result<()> {
        for op in batches.iter_mut().flat_map(|batch| &mut batch.ops).filter(|op| is_vault(op)) {
            if let Op::Put { key, value, .. } = op {
                *value = self.keys.seal(key, value)?;
            }
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
