//! Secure vaults at rest. The kernel knows them in clear; in the store they are encrypted with a key that lies in a file beside
//! it ([`FILE`]).
//!
//! - [`SealingStore`] encrypts vaults on their way into the store, [`VaultKeys::open`] decrypts them for the kernel of the next
//!   start. The kernel, which has no random numbers, has no part in it.
//! - [`prepare`] reads the key, or makes one at the first start. A server that cannot decrypt a vault does not start: with the
//!   right file its operation could go on, without it the operation would fail for good.
//! - [`VaultKeys::take_over`] encrypts what an earlier version has written in clear, or an older key has encrypted, and removes
//!   from the archive what does not belong there.

mod keys;
mod seal;
mod sealing_store;

pub use keys::{FILE, VaultKeys};
pub use sealing_store::SealingStore;

use self::seal::{KeyId, NoRandomNumbers, key_of};
use kernel::{operation_of_vault, split_clear_vault, without_clear_vault};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use store::{Batch, RedbStore, Store, StoreError, Table};

/// The keys of this server's vaults. `new_key`: a new one encrypts from now on, and vaults whose key is lost are given up.
pub fn prepare(store: &dyn Store, directory: &Path, new_key: bool) -> anyhow::Result<VaultKeys> {
    let path = directory.join(FILE);
    let read = VaultKeys::read(&path);
    let mut keys = match read {
        Ok(keys) => keys,
        Err(error) if error.is_damage() && new_key => {
            let aside = move_aside(&path)?;
            tracing::warn!(file = %aside.display(), "the damaged file of the keys of vaults was moved here");
            VaultKeys::read(&path)?
        }
        Err(error) if !error.is_damage() => return Err(error.into()),
        Err(error) => {
            let advice = "put back the file from a backup; to give up the operations whose vaults it decrypts, start the server \
                          once with --new-vault-key";
            return Err(anyhow::anyhow!("the key of secure vaults cannot be used: {error}: {advice}"));
        }
    };
    let lost = lost_vaults(store, &keys)?;
    if !lost.is_empty() && !new_key {
        anyhow::bail!("{}", refusal(&path, &keys, &lost));
    }
    if keys.is_empty() || new_key {
        keys.add_new().map_err(|NoRandomNumbers| {
            anyhow::anyhow!("the system has no random numbers for a key of vaults")
        })?;
        keys.write(&path).map_err(|error| anyhow::anyhow!("cannot write {}: {error}", path.display()))?;
        tracing::info!(file = %path.display(), "a new key of secure vaults is in this file: copies of the store need it");
    }
    if !lost.is_empty() {
        let operations = lost.values().sum::<usize>();
        tracing::warn!(operations, "operations fail, since the keys of their secure vaults are lost");
    }
    Ok(keys)
}

/// Numbers of vaults by the key that is not there.
fn lost_vaults(store: &dyn Store, keys: &VaultKeys) -> Result<BTreeMap<KeyId, usize>, StoreError> {
    let mut lost = BTreeMap::new();
    store.scan(Table::Operations, Bound::Unbounded, Bound::Unbounded, false, &mut |key, value| {
        // A damaged record has no key: it costs its operation alone.
        if operation_of_vault(Table::Operations, key).is_some()
            && let Some(id) = key_of(value).filter(|id| !keys.has(*id))
        {
            *lost.entry(id).or_default() += 1;
        }
        ControlFlow::Continue(())
    })?;
    Ok(lost)
}

fn refusal(path: &Path, keys: &VaultKeys, lost: &BTreeMap<KeyId, usize>) -> String {
    let count = lost.values().sum::<usize>();
    let names: Vec<String> = lost.keys().map(KeyId::to_string).collect();
    let what = if keys.is_empty() { "is missing" } else { "does not have that key" };
    format!(
        "secure vaults of unfinished operations ({count}) are encrypted with key {}, and {} {what}: put back the file from a backup; to \
         give up these operations, start the server once with --new-vault-key. Nothing was changed",
        names.join(", "),
        path.display()
    )
}

fn move_aside(path: &Path) -> anyhow::Result<PathBuf> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let aside = path.with_extension(format!("key.damaged-{seconds}"));
    std::fs::rename(path, &aside)
        .map_err(|error| anyhow::anyhow!("cannot move {} to {}: {error}", path.display(), aside.display()))?;
    Ok(aside)
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
    /// Encrypts vaults that lie in the store in clear, or are encrypted with an older key. Of a store that was written by a
    /// version without encryption the file is copied once, since its free pages may hold vaults in clear.
    pub fn take_over(&self, store: &RedbStore) -> Result<(), StoreError> {
        if store.needs_rewrite(ENCRYPTED)? {
            let cleaned = clean_archive(store)?;
            if cleaned > 0 {
                tracing::info!(
                    operations = cleaned,
                    "secure vaults were removed from the archive of finished operations"
                );
            }
        }
        let taken = self.encrypt_all(store)?;
        if taken.clear > 0 {
            tracing::info!(
                vaults = taken.clear,
                "secure vaults of unfinished operations lay in the store in clear: they are encrypted now"
            );
        }
        if taken.older > 0 {
            tracing::info!(vaults = taken.older, "secure vaults were encrypted with the new key");
        }
        match store.rewrite_once(ENCRYPTED) {
            Ok(true) => tracing::info!(
                "the file of the store was copied once: free pages of the old one could hold secure vaults in clear"
            ),
            Ok(false) => {}
            // Everything else is encrypted, and the next start tries again.
            Err(error) => tracing::warn!(
                %error,
                "the file of the store cannot be copied: its free pages may hold secure vaults in clear until the next start"
            ),
        }
        Ok(())
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

/// Name of the store's note that no page of its file holds a vault in clear.
const ENCRYPTED: &str = "vaults_encrypted";

#[cfg(test)]
mod tests;
