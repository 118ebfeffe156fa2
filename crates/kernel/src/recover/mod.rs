//! The way back: from the records of the store to a kernel that goes on where the last one stopped.
//!
//! Jobs and allocations are not stored, only orders to give way are (`preemption`): nodes come back
//! and say what runs. Until those that were there before are back, or the grace period is over,
//! nothing is started.
//!
//! Here are the order of things and what belongs to the cluster; in [`operations`] those, in [`broken`]
//! the ones that cannot be understood any more: they fail, the server goes on. Without its other records it does not start,
//! and says which one is the reason ([`damage`]).

mod broken;
mod damage;
mod operations;

pub(crate) use broken::NotRestored;

use crate::events::Events;
use crate::finished::Finished;
use crate::jobs::Jobs;
use crate::mounts::PLACES;
use crate::mutations::Mutations;
use crate::nodes::Nodes;
use crate::pool_history::PoolHistories;
use crate::pools::{Pools, default_tree_key};
use crate::tree::read_scheduler_config;
use crate::usage_history::UsageHistory;
use crate::volumes::Volumes;
use crate::{Config, Effect, Kernel, OpenBatch, PendingWork, Periodic};
use controller::ControllerOptions;
use cypress::{Context, Forest, Last, Layout, Resolved, Tree};
use scheduler::Scheduler;
use std::collections::{BTreeMap, BTreeSet};
use vocab::batch::{Batch, Table};
use vocab::{Failure, Guid, GuidGenerator, ObjectId, OperationId, Time};
use yson::ypath::YPath;
use yson::{Map, Value};

/// Everything that the store holds and the kernel needs, by table, in the order of keys. Archives are
/// not read: only their index is.
#[derive(Default)]
pub struct Records {
    tables: BTreeMap<Table, Vec<Record>>,
    /// Operations whose vaults cannot be decrypted, and why.
    locked_vaults: BTreeMap<OperationId, Failure>,
}

impl Records {
    /// Tables that the kernel reads at start.
    pub const TABLES: &'static [Table] = &[
        Table::Meta,
        Table::JobUids,
        Table::Cypress,
        Table::PoolTrees,
        Table::Pools,
        Table::Volumes,
        Table::Operations,
        Table::OperationIndex,
        Table::Nodes,
        Table::Mutations,
        Table::Preemptions,
        Table::Events,
        Table::Transactions,
        Table::OwedEnds,
        Table::NodeIdentities,
    ];

    /// Adds a record; keys of a table come in order.
    pub fn add(&mut self, table: Table, key: &[u8], value: &[u8]) {
        self.tables.entry(table).or_default().push((key.to_vec(), value.to_vec()));
    }

    /// The secure vault of an operation cannot be decrypted. The operation fails with this reason.
    pub fn add_locked_vault(&mut self, operation: OperationId, why: Failure) {
        self.locked_vaults.insert(operation, why);
    }

    fn take(&mut self, table: Table) -> Vec<Record> {
        self.tables.remove(&table).unwrap_or_default()
    }
}

/// Key and value.
type Record = (Vec<u8>, Vec<u8>);

/// Why there is no kernel.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The store cannot be understood.
    #[error(
        "The state in the store cannot be recovered: {0}. Nothing was changed. Restore the whole data directory of the server from a \
         backup; if another version has written it, start that one"
    )]
    Store(Failure),
    /// The store is well, and an option does not fit what is in it.
    #[error("{0}. Nothing was changed")]
    Configuration(Failure),
}

impl From<Failure> for RecoverError {
    fn from(failure: Failure) -> RecoverError {
        RecoverError::Store(failure)
    }
}

impl Kernel {
    /// A kernel over the records of the store; an empty store makes a new cluster.
    pub fn recover(
        config: Config,
        mut records: Records,
        now: Time,
        out: &mut Vec<Effect>,
    ) -> Result<Kernel, RecoverError> {
        let mut ids = GuidGenerator::new(config.life);
        let (tree, first_changes) = recover_tree(&config, &mut ids, now, &mut records)?;
        let mut kernel = Kernel {
            controller_options: ControllerOptions::default(),
            ids,
            id_times: Default::default(),
            started: now,
            tree,
            scheduler: Scheduler::new(scheduler::config::SchedulerConfig::default(), now),
            operations: BTreeMap::new(),
            alerts_due: BTreeSet::new(),
            aliases: BTreeMap::new(),
            finished: Finished::default(),
            nodes: Nodes::default(),
            node_identities: Default::default(),
            foreign_reports: Default::default(),
            oversized_uploads: Default::default(),
            jobs: Jobs::default(),
            owed: Default::default(),
            mutations: Mutations::default(),
            preemptions: Default::default(),
            audit: Default::default(),
            events: Events::new(config.event_log, config.first_event),
            open: OpenBatch {
                seq: 1,
                batch: first_changes,
                urgent: false,
                since: None,
                releases: BTreeMap::new(),
                tree_seq: 0,
            },
            pools: Pools::default(),
            pending_work: PendingWork::default(),
            starvations: Default::default(),
            periodic: Periodic { update: now, last_update: now, housekeeping: now, alerts: now },
            expired_until: None,
            expired_later: BTreeMap::new(),
            leases: Default::default(),
            reviving: false,
            not_restored: Default::default(),
            garbage: Default::default(),
            lost_contents: Default::default(),
            store_failing: None,
            volumes: Volumes::new(now),
            uids: Default::default(),
            pool_history: PoolHistories::default(),
            usage_history: UsageHistory::default(),
            pool_savings: Default::default(),
            changes: Default::default(),
            counters: Default::default(),
            closures: Default::default(),
            mount_nodes: Vec::new(),
            scheduler_node: ObjectId::default(),
            controller_agents_node: ObjectId::default(),
            scheduler_config: Value::Map(Map::new()),
            controller_config: Value::Map(Map::new()),
            config,
        };
        kernel.recover_controller_options()?;
        kernel.recover_layout(now, out)?;
        kernel.recover_pools(now, &mut records)?;
        kernel.events.set_time(now);
        for (key, value) in records.take(Table::Events) {
            let event = kernel.events.restore(&key, value);
            out.push(event.map_err(|why| damage::of_record(Table::Events, &key, why))?);
        }
        for (key, value) in records.take(Table::Preemptions) {
            let restored = kernel.restore_preemption(&key, &value);
            restored.map_err(|why| damage::of_record(Table::Preemptions, &key, why))?;
        }
        for (key, value) in records.take(Table::JobUids) {
            let restored = parse(&value).and_then(|record| kernel.restore_uid(&key, &record));
            restored.map_err(|why| damage::of_record(Table::JobUids, &key, why))?;
        }
        kernel.show_uids();
        kernel.recover_operations(now, &mut records).map_err(RecoverError::Configuration)?;
        for (_, value) in records.take(Table::OwedEnds) {
            kernel.restore_owed(&value);
        }
        for (key, value) in records.take(Table::Nodes) {
            let restored = parse(&value).and_then(|record| kernel.restore_node(&key, &record));
            restored.map_err(|why| damage::of_record(Table::Nodes, &key, why))?;
        }
        for (key, value) in records.take(Table::NodeIdentities) {
            let restored = parse(&value).and_then(|record| kernel.restore_node_identity(&key, &record));
            restored.map_err(|why| damage::of_record(Table::NodeIdentities, &key, why))?;
        }
        // Orders to start are not stored: an unfinished operation may run more jobs than it knows of.
        if kernel.operations.is_empty() {
            kernel.forget_lost_orders();
        } else {
            kernel.nodes.start_recovery(now + kernel.config.node_recovery_grace);
        }
        for (key, value) in records.take(Table::Mutations) {
            kernel.mutations.restore(&key, &value);
        }
        kernel.mutations.restored();
        kernel.pending_work.update = true;
        kernel.pending_work.schedule = true;
        Ok(kernel)
    }

    /// Nodes that every cluster has, and the mounts.
    fn recover_layout(&mut self, now: Time, out: &mut Vec<Effect>) -> Result<(), Failure> {
        let layout = Layout {
            cluster_name: self.config.cluster_name.clone(),
            default_pool_tree: self.config.default_tree.clone(),
            operation_link_template: None,
        };
        let done = self.tree.ensure_layout(Context { now, user: "root", ids: &mut self.ids }, &layout)?;
        self.absorb(done, out);
        let instances = [
            format!("//sys/scheduler/instances/{}/orchid", yson::ypath::escape_literal(&self.config.address)),
            format!(
                "//sys/controller_agents/instances/{}/orchid",
                yson::ypath::escape_literal(&self.config.address)
            ),
        ];
        for path in &instances {
            let parsed = YPath::parse(path.as_bytes()).map_err(|e| Failure::new(e.to_string()))?;
            if let Resolved::Local(place) = self.tree.resolve(&parsed, Last::Stay)?
                && !place.rest.is_empty()
            {
                let mut options = cypress::CreateOptions::new(cypress::NodeType::Orchid);
                options.recursive = true;
                let context = Context { now, user: "root", ids: &mut self.ids };
                let done = self.tree.overrule(context, |edit| edit.create(&place, &options))?;
                self.absorb(done, out);
            }
        }
        let places = PLACES.iter().map(|(path, mount)| ((*path).to_owned(), *mount));
        let instance_places = instances.into_iter().map(|path| (path, crate::mounts::ORCHID));
        for (path, mount) in places.chain(instance_places) {
            let node = self.node_at_path(&path)?;
            self.tree.mount(node, mount);
            self.mount_nodes.push((mount, node));
        }
        self.scheduler_node = self.node_at_path("//sys/scheduler")?;
        self.controller_agents_node = self.node_at_path("//sys/controller_agents")?;
        self.scheduler_config = self.wanted_scheduler_config();
        let config = read_scheduler_config(&self.scheduler_config)?;
        self.scheduler.set_config(config);
        Ok(())
    }

    fn node_at_path(&self, path: &str) -> Result<ObjectId, Failure> {
        let parsed = YPath::parse(path.as_bytes()).map_err(|e| Failure::new(e.to_string()))?;
        match self.tree.resolve(&parsed, Last::Stay)? {
            Resolved::Local(place) if place.rest.is_empty() => Ok(place.node),
            Resolved::Mount(mounted) if mounted.rest.is_empty() => Ok(mounted.node),
            _ => Err(Failure::resolve(format!("{path} does not exist"))),
        }
    }

    fn recover_pools(&mut self, now: Time, records: &mut Records) -> Result<(), Failure> {
        for (key, value) in records.take(Table::PoolTrees) {
            let restored = parse(&value).and_then(|record| self.restore_tree(&key, &record));
            restored.map_err(|why| damage::of_record(Table::PoolTrees, &key, why))?;
        }
        let mut default_tree = None;
        for (key, value) in records.take(Table::Meta) {
            if key == default_tree_key() {
                default_tree = Some(String::from_utf8_lossy(&value).into_owned());
            }
            self.id_times.restore(&key, &value);
            self.garbage.restore(&key, &value);
            self.leases.restore(&key, &value);
        }
        self.begin_id_times(now);
        self.restore_default_tree(now, default_tree)?;
        let mut pools = Vec::new();
        for (key, value) in records.take(Table::Pools) {
            let record = object_id(&key).and_then(|id| Ok((id, parse(&value)?)));
            pools.push(record.map_err(|why| damage::of_record(Table::Pools, &key, why))?);
        }
        self.restore_pools(pools).map_err(|why| damage::of_table(Table::Pools, why))?;
        for (key, value) in records.take(Table::Volumes) {
            let restored = object_id(&key).and_then(|pool| self.restore_volume(pool, &parse(&value)?));
            restored.map_err(|why| damage::of_record(Table::Volumes, &key, why))?;
        }
        Ok(())
    }
}

/// The tree of the records, or that of a new cluster.
fn recover_tree(
    config: &Config,
    ids: &mut GuidGenerator,
    now: Time,
    records: &mut Records,
) -> Result<(Forest, Batch), Failure> {
    let nodes = records.take(Table::Cypress);
    if !nodes.is_empty() {
        let failure =
            |table| move |e: cypress::RestoreError| damage::of_table(table, Failure::new(e.to_string()));
        let trunk = Tree::restore(nodes, config.limits.clone()).map_err(failure(Table::Cypress))?;
        let transactions = records.take(Table::Transactions);
        let forest = Forest::restore(trunk, transactions, now).map_err(failure(Table::Transactions))?;
        return Ok((forest, Batch::new()));
    }
    let created = Tree::new(Context { now, user: "root", ids }, config.limits.clone());
    let mut batch = Batch::new();
    for change in created.changes {
        match change.value {
            Some(value) => batch.put(Table::Cypress, change.key, value),
            None => batch.delete(Table::Cypress, change.key),
        }
    }
    Ok((Forest::new(created.value), batch))
}

fn parse(bytes: &[u8]) -> Result<Value, Failure> {
    yson::parse_record(bytes).map_err(|e| Failure::new(format!("Malformed record: {e}")))
}

fn object_id(key: &[u8]) -> Result<ObjectId, Failure> {
    let bytes: [u8; 16] =
        key.try_into().map_err(|_| Failure::new(format!("Malformed key of an object: {key:?}")))?;
    Ok(ObjectId(Guid::from_bytes(bytes)))
}
