//! The start of the server: everything is read and checked first, and only then something is written. A start that is refused
//! leaves the data directory as it was, so that the operator can put right what is wrong, or start the version that wrote it.
//!
//! 1. Read: tokens of the configuration, the store ([`RedbStore::look`]), the authority of nodes, the keys of vaults, the end
//!    of the event log. The kernel is made from these, and blobs are compared with what it refers to.
//! 2. Write: the key of vaults if it is new, the beginning of the store's life, the authority of nodes, the event log. Vaults
//!    that are stale are encrypted, ids of the cluster are placed, garbage is removed.
//!
//! On a full disk a start ends behind the first step: questions are answered, and the rest follows when there is room.

use crate::configured_tokens::ConfiguredTokens;
use crate::core_thread::{Restored, not_writable, now};
use crate::event_log::EventFiles;
use crate::garbage::{Collected, References, collect};
use crate::node_authority::{self, NodeAuthority};
use crate::run::{NODE_TOKEN, ROOT_TOKEN, ServerConfig, insecure_plaintext_nodes, number_of_key};
use crate::secret_file::remove_drafts;
use crate::vaults::{self, During, Orders, VaultKeys};
use anyhow::Context;
use kernel::{Config, HeldGarbage, Input, Kernel, Records, TreeLimits};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{OpenOptions, RedbStore, Store, StoreError, Table};
use vocab::{Failure, UidRange};

/// Files with secrets in the data directory.
pub(crate) const SECRETS: [&str; 4] = [ROOT_TOKEN, NODE_TOKEN, node_authority::FILE, vaults::FILE];

/// Grace periods of a kernel begin when it is made: an older one is made again.
const FRESH: Duration = Duration::from_secs(5);

/// A server that is ready to serve.
pub(crate) struct Started {
    pub store: Arc<RedbStore>,
    pub vaults: Arc<VaultKeys>,
    pub authority: Arc<NodeAuthority>,
    pub tokens: ConfiguredTokens,
    pub event_files: Option<EventFiles>,
    /// The kernel, or why the store cannot be written.
    pub begin: Result<Restored, Failure>,
    pub kept: Kept,
}

/// See the module page.
pub(crate) fn start(config: &ServerConfig, address: SocketAddr) -> anyhow::Result<Started> {
    let tokens = config.tokens_file.as_deref().map(ConfiguredTokens::read).transpose()?.unwrap_or_default();
    let options = OpenOptions {
        traces: &[ROOT_TOKEN, EVENT_LOG],
        secrets: &[NODE_TOKEN, node_authority::FILE, vaults::FILE],
        new_cluster: config.new_cluster,
    };
    let store = Arc::new(RedbStore::look(&config.data, options)?);
    tell_of_new_cluster(config, &store);
    let authority = NodeAuthority::open(&*store, &config.data, config.new_node_authority)?;
    let orders = Orders { new_key: config.new_vault_key, abandon: config.abandon_locked_vaults };
    let keys = vaults::prepare(&config.data, orders)?;
    let first_event = look_at_event_log(config, &*store)?;
    let (records, found) = vaults::read(&*store, &keys)?;
    if let Some(refusal) = found.refusal(&keys).filter(|_| !orders.abandon) {
        anyhow::bail!(refusal);
    }
    let mut made = Instant::now();
    let mut restored = read_kernel(config, address, (&store, &keys, records), first_event)?;
    check_blobs(&store, &restored.0)?;

    remove_drafts(&config.data, &SECRETS);
    match keys.write() {
        Err(error) if is_lack_of_room(&error) && store.known_life() > 0 => {
            store.start_to_read(format!("Cannot write {}: {error}", keys.path().display()))?;
        }
        written => {
            written.with_context(|| format!("cannot write {}", keys.path().display()))?;
            store.start()?;
        }
    }
    if found.lost() > 0 {
        let operations = found.lost();
        tracing::warn!(operations, "operations fail, since the keys of their secure vaults are lost");
    }
    tracing::info!(
        authority_sha256 = authority.digest(),
        "nodes know this server by the digest of its authority"
    );
    let event_files = open_event_log(config, &*store)?;
    let (begin, kept) = match store.failure() {
        Some(error) => {
            tracing::error!(%error, "the store cannot be written: the server answers questions only");
            (Err(not_writable(&error)), Kept::default())
        }
        None => {
            let is_changed = keys.take_over(&store, &found, During::Start)?;
            if is_changed || made.elapsed() > FRESH {
                made = Instant::now();
                let (records, _) = vaults::read(&*store, &keys)?;
                restored = read_kernel(config, address, (&store, &keys, records), first_event)?;
            }
            adopt(&store, &restored.0)?;
            if let Err(error) = authority.keep(&*store) {
                tracing::error!(error = format!("{error:#}"), "nodes cannot connect until this is mended");
            }
            let (restored, kept) = settle(&store, restored)?;
            tracing::debug!(age = ?made.elapsed(), "the kernel is ready");
            (Ok(restored), kept)
        }
    };
    let (authority, vaults) = (Arc::new(authority), Arc::new(keys));
    Ok(Started { store, vaults, authority, tokens, event_files, begin, kept })
}

fn tell_of_new_cluster(config: &ServerConfig, store: &RedbStore) {
    match store.moved_aside() {
        Some(folder) => {
            tracing::warn!(folder = %folder.display(), "a new cluster begins: what was left of another one is in this folder");
        }
        None if config.new_cluster => {
            tracing::warn!(
                "--new-cluster changes nothing: the data directory held one whole cluster, or none"
            );
        }
        None => {}
    }
}

fn is_lack_of_room(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// Directory of the event log in that of the data.
const EVENT_LOG: &str = "event-log";

/// Number of the next event, before the log is opened; `None` without an event log.
fn look_at_event_log(config: &ServerConfig, store: &dyn Store) -> anyhow::Result<Option<u64>> {
    if config.event_log.is_none() {
        return Ok(None);
    }
    let directory = config.data.join(EVENT_LOG);
    let last = EventFiles::look(&directory, first_kept_event(store)?)
        .with_context(|| format!("cannot read the event log {}", directory.display()))?;
    Ok(Some(last + 1))
}

fn open_event_log(config: &ServerConfig, store: &dyn Store) -> anyhow::Result<Option<EventFiles>> {
    let Some(limits) = config.event_log else { return Ok(None) };
    let directory = config.data.join(EVENT_LOG);
    EventFiles::open(&directory, limits, first_kept_event(store)?)
        .map(Some)
        .with_context(|| format!("cannot open the event log {}", directory.display()))
}

/// Number of the first event that the store keeps for the log.
fn first_kept_event(store: &dyn Store) -> Result<Option<u64>, StoreError> {
    let mut kept = None;
    store.scan(Table::Events, Bound::Unbounded, Bound::Unbounded, false, &mut |key, _| {
        kept = number_of_key(key);
        ControlFlow::Break(())
    })?;
    Ok(kept)
}

/// Brings the kernel back from the records of the store. `first_event` is the number of the next event; `None` without an event log.
pub(crate) fn read_kernel(
    config: &ServerConfig,
    address: SocketAddr,
    (store, keys, records): (&RedbStore, &VaultKeys, Records),
    first_event: Option<u64>,
) -> anyhow::Result<Restored> {
    let mut settings = Config::new(&address.to_string(), seed_of_ids(now(), store.life()));
    settings.default_tree.clone_from(&config.default_tree);
    settings.cluster_name.clone_from(&config.cluster_name);
    settings.heartbeat_period = config.heartbeat_period;
    settings.event_log = first_event.is_some();
    settings.retention = config.retention;
    settings.limits = config.limits.clone();
    settings.limits.account_disk_space =
        config.account_disk_space.unwrap_or_else(|| usual_disk_space(&config.data, &config.limits));
    settings.access_control = config.is_authenticated();
    settings.alerts.extend(config.exposure(address));
    settings.alerts.extend(config.insecure_plaintext_nodes.then(insecure_plaintext_nodes));
    settings.node_identities = true;
    settings.job_ticket_keys = keys.job_ticket_keys();
    settings.node_approval = config.node_approval;
    settings.node_certificate_ttl = config.node_certificate_ttl;
    settings.first_event = first_event.unwrap_or(1);
    settings.cluster_id = store.cluster_id();
    settings.job_uids = config.job_uids.unwrap_or_else(|| UidRange::of_cluster(store.cluster_id()));
    settings.claim_all_uids = config.job_uids.is_some();
    let mut effects = Vec::new();
    let kernel = Kernel::recover(settings, records, now(), &mut effects)?;
    Ok((kernel, effects))
}

/// A quarter of the disk: one account must not fill it.
fn usual_disk_space(data: &Path, usual: &TreeLimits) -> i64 {
    match rustix::fs::statvfs(data) {
        Ok(disk) => i64::try_from(disk.f_blocks.saturating_mul(disk.f_frsize) / 4).unwrap_or(i64::MAX),
        Err(error) => {
            tracing::warn!(%error, "cannot tell the size of the disk: accounts have another default of disk space");
            usual.account_disk_space
        }
    }
}

/// Garbage that a start has not removed.
#[derive(Default)]
pub(crate) struct Kept {
    /// For the alert; `None` without any.
    pub garbage: Option<HeldGarbage>,
    pub blobs: Vec<u64>,
}

/// What a start does with the store before the kernel runs: tells of new users of the host, and removes garbage.
fn settle(store: &RedbStore, (mut kernel, mut effects): Restored) -> anyhow::Result<(Restored, Kept)> {
    let operations = kernel.operations_with_new_uids();
    if operations > 0 {
        tracing::warn!(
            operations,
            "the jobs of these unfinished operations had no user of the host, or one outside of job_uids: from now on they \
             have the uid of their operation's user"
        );
    }
    let decision = kernel.garbage_decision();
    match collect(store, kernel.blobs(), store.known_life(), decision)? {
        Collected::Removed(removed) => {
            if removed > 0 {
                tracing::info!(removed, "removed contents that nothing refers to");
            }
            if decision.is_some() {
                kernel.handle(now(), Input::GarbageCollected, &mut effects);
            }
            Ok(((kernel, effects), Kept::default()))
        }
        Collected::Held { dead, total, newer } => {
            let garbage = HeldGarbage { blobs: dead.len(), total, newer };
            tracing::warn!(
                blobs = garbage.blobs,
                total,
                newer,
                "nothing refers to these blobs; they are so many that they are kept until \
                 \"millpond server gc --confirm\": is the store an older copy?"
            );
            kernel.handle(now(), Input::GarbageHeld(garbage), &mut effects);
            Ok(((kernel, effects), Kept { garbage: Some(garbage), blobs: dead }))
        }
    }
}

/// Looks whether store and blobs fit, and changes nothing.
fn check_blobs(store: &RedbStore, kernel: &Kernel) -> anyhow::Result<()> {
    let references = References::look(store, kernel.blobs())?;
    if let Some(example) = references.missing.first() {
        let (missing, total) = (references.missing.len(), references.total);
        tracing::warn!(
            missing,
            total,
            example = format!("{example:016x}"),
            "the store refers to blobs that are missing"
        );
    }
    if let Some(refusal) = references.refusal().filter(|_| !store.is_whole()) {
        let id = store.cluster_id();
        return Err(store
            .not_whole(format!(
                "{refusal}; to go on without them, write {id} into the files cluster_id and blobs/cluster_id of the directory"
            ))
            .into());
    }
    Ok(())
}

/// A directory without the id of its cluster (of release 0.1, or of an interrupted first start) gets it if store and blobs fit.
pub(crate) fn adopt(store: &RedbStore, kernel: &Kernel) -> anyhow::Result<()> {
    if store.is_adopted() {
        return Ok(());
    }
    check_blobs(store, kernel)?;
    store.adopt()?;
    tracing::info!(cluster_id = %store.cluster_id(), "the data directory has the id of its cluster");
    Ok(())
}

/// Different for every life of every cluster: the life's number alone would give two clusters the same
/// ids, the clock alone might be set back.
fn seed_of_ids(now: vocab::Time, life: u64) -> u64 {
    (now.as_micros() << 16) ^ life
}

#[cfg(test)]
mod tests;
