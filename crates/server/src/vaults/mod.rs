//! Secure vaults at rest. The kernel knows them in clear; in the store they are encrypted with a key that lies in a file beside
//! it ([`FILE`]).
//!
//! - [`SealingStore`] encrypts vaults on their way into the store, [`VaultKeys::open`] decrypts them for the kernel of the next
//!   start. The kernel, which has no random numbers, has no part in it.
//! - [`prepare`] reads the key, or makes one at the first start, which [`VaultKeys::write`] puts into the file when all else of
//!   the start has been checked.
//! - [`read`] decrypts. A server that cannot decrypt a vault does not start ([`Found::refusal`]): with the right file its
//!   operation could go on, without it the operation would fail for good.
//! - [`VaultKeys::take_over`] encrypts what an earlier version has written in clear, or an older key has encrypted, and removes
//!   from the archive what does not belong there.

mod keys;
mod seal;
mod sealing_store;

pub use keys::{FILE, VaultKeys};
pub use sealing_store::SealingStore;

use self::keys::KEPT;
use self::seal::{KeyId, NoRandomNumbers, key_of};
use kernel::{Records, operation_of_vault, split_clear_vault, without_clear_vault};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use store::{Batch, RedbStore, Store, StoreError, Table};

/// What the operator has ordered for this start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Orders {
    /// Encrypt with a new key from now on.
    pub new_key: bool,
    /// Give up vaults whose key is lost, and a damaged file of keys.
    pub abandon: bool,
}

/// The keys of this server's vaults. Nothing is written yet.
pub fn prepare(directory: &Path, orders: Orders) -> anyhow::Result<VaultKeys> {
    let path = directory.join(FILE);
    let mut keys = match VaultKeys::read(&path) {
        Ok(keys) => keys,
        Err(error) if !error.is_damage() => return Err(error.into()),
        Err(_) if orders.abandon => VaultKeys::none(&path, true),
        Err(error) => {
            let advice = "put back the file from a backup; to give up the operations whose vaults it decrypts, start the server \
                          once with --abandon-locked-vaults";
            return Err(anyhow::anyhow!("the key of secure vaults cannot be used: {error}: {advice}"));
        }
    };
    if keys.is_empty() || orders.new_key {
        keys.refuse_link().map_err(|error| {
            anyhow::anyhow!("a new key of vaults cannot be written into {}: {error}", path.display())
        })?;
        keys.add_new().map_err(|NoRandomNumbers| {
            anyhow::anyhow!("the system has no random numbers for a key of vaults")
        })?;
    }
    Ok(keys)
}

/// The vaults that [`read`] has found.
#[derive(Debug, Default)]
pub struct Found {
    /// Numbers of vaults by the key that is not there.
    lost: BTreeMap<KeyId, usize>,
    /// Vaults in clear, or encrypted with an older key.
    stale: usize,
}

impl Found {
    /// Number of vaults whose key is not there.
    pub fn lost(&self) -> usize {
        self.lost.values().sum()
    }

    /// Why the server does not start with them; `None` if it has all keys.
    pub fn refusal(&self, keys: &VaultKeys) -> Option<String> {
        let names: Vec<String> = self.lost.keys().map(KeyId::to_string).collect();
        (!names.is_empty()).then(|| {
            let path = keys.path();
            let what = if path.exists() { "does not have that key" } else { "is missing" };
            format!(
                "secure vaults of unfinished operations ({}) are encrypted with key {}, and {} {what}: put back the file from a \
                 backup; to give up these operations, start the server once with --abandon-locked-vaults. Nothing was changed",
                self.lost(),
                names.join(", "),
                path.display()
            )
        })
    }
}

/// Reads the records of the kernel, with vaults in clear.
pub fn read(store: &dyn Store, keys: &VaultKeys) -> Result<(Records, Found), StoreError> {
    let (mut records, mut found) = (Records::default(), Found::default());
    for table in Records::TABLES {
        store.scan(*table, Bound::Unbounded, Bound::Unbounded, false, &mut |key, value| {
            let Some(operation) = operation_of_vault(*table, key) else {
                found.stale += usize::from(split_clear_vault(*table, key, value).is_some());
                records.add(*table, key, value);
                return ControlFlow::Continue(());
            };
            let name = key_of(value);
            // A damaged record has no key: it costs its operation alone.
            if let Some(name) = name.filter(|name| !keys.has(*name)) {
                *found.lost.entry(name).or_default() += 1;
            }
            match keys.open(key, value) {
                Ok(clear) => {
                    found.stale += usize::from(name != keys.current());
                    records.add(*table, key, &clear);
                }
                Err(why) => records.add_locked_vault(operation, why),
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok((records, found))
}

/// When [`VaultKeys::take_over`] is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum During {
    /// The start of the process: nobody else uses the store.
    Start,
    /// The work of the server: the file is not copied, since everybody would wait for it.
    Work,
}

/// What [`VaultKeys::take_over`] has encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Taken {
    /// Vaults that were in clear.
    clear: usize,
    /// Vaults that were encrypted with an older key.
    older: usize,
}

impl VaultKeys {
    /// Encrypts the stale vaults that [`read`] has found. The file of the store is copied once for each key that encrypts: free
    /// pages of the old one may hold vaults in clear, of a version without encryption, or encrypted with an older key. Says
    /// whether there was anything to do.
    pub fn take_over(&self, store: &RedbStore, found: &Found, during: During) -> Result<bool, StoreError> {
        let current = self.current().map(|id| id.to_string()).unwrap_or_default();
        let note = store.note(ENCRYPTED)?;
        let is_noted = note.as_deref() == Some(current.as_bytes());
        if is_noted && found.stale == 0 {
            return Ok(false);
        }
        if note.is_none() && store.known_life() > 0 {
            let cleaned = clean_archive(store)?;
            if cleaned > 0 {
                tracing::info!(
                    operations = cleaned,
                    "secure vaults were removed from the archive of finished operations"
                );
            }
        }
        let taken = if found.stale > 0 { self.encrypt_all(store)? } else { Taken::default() };
        if taken.clear > 0 {
            tracing::info!(
                vaults = taken.clear,
                "secure vaults of unfinished operations lay in the store in clear: they are encrypted now"
            );
        }
        if taken.older > 0 {
            tracing::info!(vaults = taken.older, "secure vaults were encrypted with the new key");
        }
        self.prune_unneeded(store);
        if during == During::Work {
            return Ok(true);
        }
        match store.rewrite_once(ENCRYPTED, current.as_bytes()) {
            Ok(true) => tracing::info!(
                "the file of the store was copied once: free pages of the old one could hold secure vaults, in clear or \
                 encrypted with an older key"
            ),
            Ok(false) => {}
            // Everything else is encrypted, and the next start tries again.
            Err(error) => tracing::warn!(
                %error,
                "the file of the store cannot be copied: its free pages may hold secure vaults, in clear or encrypted with an \
                 older key, until the next start"
            ),
        }
        Ok(true)
    }

    fn prune_unneeded(&self, store: &dyn Store) {
        if self.len() <= KEPT {
            return;
        }
        let mut needed = BTreeSet::new();
        let scanned =
            store.scan(Table::Operations, Bound::Unbounded, Bound::Unbounded, false, &mut |key, value| {
                if operation_of_vault(Table::Operations, key).is_some() {
                    needed.extend(key_of(value));
                }
                ControlFlow::Continue(())
            });
        let pruned = scanned.map_err(std::io::Error::other).and_then(|()| self.prune(&needed));
        if let Err(error) = pruned {
            tracing::warn!(%error, "old keys of secure vaults stay in their file");
        }
    }

    fn encrypt_all(&self, store: &dyn Store) -> Result<Taken, StoreError> {
        let (mut batch, mut taken, mut failed) = (Batch::new(), Taken::default(), None);
        let mut look = |key: &[u8], value: &[u8]| -> Result<(), StoreError> {
            if let Some([rest, vault]) = split_clear_vault(Table::Operations, key, value) {
                let sealed = self.seal(&vault.0, &vault.1)?;
                batch.put(Table::Operations, rest.0, rest.1);
                batch.put(Table::Operations, vault.0, sealed);
                taken.clear += 1;
            } else if operation_of_vault(Table::Operations, key).is_some()
                && key_of(value) != self.current()
                && let Ok(clear) = self.open(key, value)
            {
                batch.put(Table::Operations, key, self.seal(key, &clear)?);
                taken.older += 1;
            }
            Ok(())
        };
        store.scan(
            Table::Operations,
            Bound::Unbounded,
            Bound::Unbounded,
            false,
            &mut |key, value| match look(key, value) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            },
        )?;
        match failed {
            Some(error) => return Err(error),
            None if batch.is_empty() => {}
            None => store.write(&[batch])?,
        }
        Ok(taken)
    }
}

/// Removes vaults from records of finished operations; how many operations had one there.
fn clean_archive(store: &dyn Store) -> Result<usize, StoreError> {
    let (mut batch, mut operations) = (Batch::new(), BTreeSet::new());
    store.scan(Table::OperationArchive, Bound::Unbounded, Bound::Unbounded, false, &mut |key, value| {
        if let Some(cleaned) = without_clear_vault(Table::OperationArchive, value) {
            batch.put(Table::OperationArchive, key, cleaned);
            operations.insert(key.get(..16).unwrap_or_default().to_vec());
        }
        ControlFlow::Continue(())
    })?;
    if !batch.is_empty() {
        store.write(&[batch])?;
    }
    Ok(operations.len())
}

/// Name of the store's note of the key that all vaults in its file are encrypted with, those in free pages too.
const ENCRYPTED: &str = "vaults_encrypted";

#[cfg(test)]
mod tests;
