//! The kernel: metadata tree, scheduler and operation controllers composed into one deterministic
//! state machine. It routes inputs, collects effects and holds no policy of its own.
//!
//! ```ignore
//! let mut kernel = Kernel::recover(config, records, now, &mut effects)?;
//! loop {
//!     for input in what_came_in() {
//!         kernel.handle(now, input, &mut effects);   // cheap: changes state, asks for a pass
//!     }
//!     let flushed = kernel.flush(now, extra_update_allowed, &mut effects); // decides and commits
//!     carry_out(effects.drain(..));                  // replies and orders wait for their commit
//!     sleep_until(flushed.wake);
//! }
//! ```
//!
//! All changes of one turn of that loop go into one batch, so what belongs together is durable
//! together. The kernel performs no IO and never waits; a reply or an order that depends on
//! durability carries the number of its batch ([`Effect`]).
//!
//! Reading order: [`command`], [`input`], [`effect`]; `access` (who may do what); then `operations` (the life of an operation),
//! `nodes` and `jobs` (what nodes report), `pass` (who gets what), `tree` and `mounts` (what paths
//! mean), `preemption` (orders to give way, kept over restarts), `events` (the event log), `recover`
//! (the way back from the store).
#![forbid(unsafe_code)]

pub mod changes;
pub mod command;
pub mod config;
pub mod effect;
mod events;
mod expiration;
mod explanations;
mod file_cache;
pub mod input;

mod access;
mod account_transfer;
mod alerts;
mod alerts_attribute;
mod artifacts;
mod audit;
mod audit_log;
mod column_statistics;
mod concatenate;
mod finished;
mod garbage;
mod history_chart;
mod id_times;
mod invariants;
mod job_archive;
mod job_input;
mod job_owners;
mod jobs;
mod leases;
mod listing;
mod lost_content;
mod metrics;
mod mounts;
mod mutations;
mod node_identities;
mod nodes;
mod operation;
mod operations;
mod orchid;
mod output_room;
mod owed;
mod parameters;
mod pass;
mod places;
mod pool_history;
mod pool_savings;
mod pools;
mod preemption;
mod records;
mod recover;
mod retention;
mod shared_value;
mod shells;
mod signatures;
mod subjects;
mod summary;
mod table;
mod transactions;
mod tree;
mod uids;
mod uploads;
mod usage_history;
mod volumes;
mod words;

pub use changes::{Topic, Versions};
pub use command::{Command, ListJobs, ListOperations, OperationRef, Request};
pub use concatenate::{FileParts, Joined};
pub use config::Config;
pub use cypress::Chunk;
pub use cypress::Limits as TreeLimits;
pub use cypress::attributes::COMMON as COMMON_ATTRIBUTES;
pub use effect::{Body, Effect, NodeKey, OperationRow, Seq, StderrPlace};
pub use events::{EventFilter, events_of};
pub use garbage::{GarbageDecision, HeldGarbage};
pub use history_chart::Range;
pub use input::{Input, RefusedSignIn};
pub use job_archive::{FailContext, STDERR_BLOB, STDERR_INLINE};
pub use job_input::{no_job_input, rows_of_input};
pub use job_owners::JobTicketKey;
pub use listing::{EventsOfOperation, is_listed, no_fail_context};
pub use metrics::{MetricFamily, MetricKind, Metrics};
pub use node_identities::{JoinRequest, NodeProof};
pub use operations::tables::NOT_KEPT;
pub use orchid::SnapshotQuery;
pub use records::without_clear_vault;
pub use records::{
    archived_job, archived_job_in_full, input_key, job_key, listed_key, operation_of_vault,
    rows_of_archived_job, split_clear_vault,
};
pub use recover::{Records, RecoverError};
pub use retention::Retention;
pub use shared_value::SharedValue;
pub use table::TableRows;
pub use uploads::Upload;
pub use usage_history::HistoryOf;

use access::Who;
use audit_log::denied_change;
use controller::ControllerOptions;
use cypress::GetOptions;
use finished::Finished;
use jobs::Jobs;
use mutations::Mutations;
use nodes::Nodes;
use operation::Operation;
use scheduler::Scheduler;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vocab::batch::Batch;
use vocab::code::ACCESS_DENIED;
use vocab::{Failure, GuidGenerator, OperationId, Span, Time};

/// What a path leads to inside of a value, with the errors that users see.
pub fn walk(value: &yson::Value, at: &str, steps: &[yson::ypath::Step]) -> Result<yson::Value, Failure> {
    cypress::walk::value_get(value, at, steps).map(std::borrow::Cow::into_owned)
}

/// What the edge must know after [`Kernel::flush`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flushed {
    /// Call again not later than this, even if nothing comes in.
    pub wake: Time,
    /// A fair-share update was made.
    pub updated: bool,
    /// An extra update would help somebody but was not allowed yet.
    pub wants_update: bool,
    /// Numbers of the topics of [`changes`].
    pub versions: Versions,
}

/// Parts of a turn, in their order: what its time went into.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Phase {
    /// Inputs; not a part of [`Kernel::flush_in_phases`].
    Inputs,
    /// What befalls operations by themselves.
    Operations,
    /// An update of fair shares, if there was one.
    Shares,
    /// Passes over nodes.
    Heartbeats,
    /// What is to be written.
    Records,
}

impl Phase {
    /// The public name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Phase::Inputs => "inputs",
            Phase::Operations => "operations",
            Phase::Shares => "fair_share_update",
            Phase::Heartbeats => "heartbeats",
            Phase::Records => "records",
        }
    }
}

/// See the crate's page.
pub struct Kernel {
    config: Config,
    controller_options: ControllerOptions,
    ids: GuidGenerator,
    id_times: id_times::IdTimes,
    started: Time,
    tree: cypress::Forest,
    scheduler: Scheduler,
    operations: BTreeMap<OperationId, Operation>,
    /// Operations that have changed since somebody looked whether they should raise alerts.
    alerts_due: BTreeSet<OperationId>,
    /// Aliases of unfinished operations, and the last finished one that had each.
    aliases: BTreeMap<String, OperationId>,
    finished: Finished,
    nodes: Nodes,
    node_identities: node_identities::NodeIdentities,
    jobs: Jobs,
    owed: owed::Owed,
    foreign_reports: job_owners::ForeignReports,
    oversized_uploads: uploads::OversizedUploads,
    mutations: Mutations,
    preemptions: preemption::Preemptions,
    events: events::Events,
    audit: audit::Audit,
    open: OpenBatch,
    pools: pools::Pools,
    pending_work: PendingWork,
    /// Who starved when.
    starvations: explanations::StarvationLog,
    periodic: Periodic,
    /// The last expired node that was looked at, if there were too many for one pass.
    expired_until: Option<(Time, vocab::ObjectId)>,
    /// Large ones that could not be removed, and when that is tried again.
    expired_later: BTreeMap<vocab::ObjectId, Time>,
    /// Exclusive work of nodes that are not heard.
    leases: leases::Leases,
    /// Jobs of the life before may still be reported.
    reviving: bool,
    /// Operations of the life before that this one could not make sense of.
    not_restored: recover::NotRestored,
    /// Blobs that the start has not removed.
    garbage: garbage::Garbage,
    /// Files without content.
    lost_contents: lost_content::LostContents,
    /// Since when the store cannot be written, and why.
    store_failing: Option<(Time, Failure)>,
    /// Volumes as they stand in the store.
    volumes: volumes::Volumes,
    /// Users of the host that jobs run as.
    uids: uids::Uids,
    pool_history: pool_history::PoolHistories,
    usage_history: usage_history::UsageHistory,
    pool_savings: pool_savings::PoolSavings,
    changes: changes::Changes,
    counters: metrics::Counters,
    /// Who is in which groups.
    closures: access::Closures,
    mount_nodes: Vec<(cypress::MountId, vocab::ObjectId)>,
    /// `//sys/scheduler`.
    scheduler_node: vocab::ObjectId,
    /// `//sys/controller_agents`.
    controller_agents_node: vocab::ObjectId,
    /// `//sys/scheduler/config` as it is in force.
    scheduler_config: yson::Value,
    /// `//sys/controller_agents/config` as it is in force.
    controller_config: yson::Value,
}

/// The batch that collects the changes of this turn.
struct OpenBatch {
    /// Its number, if it is not empty at the end of the turn.
    seq: Seq,
    batch: Batch,
    /// Somebody waits for it; otherwise it may grow for [`LINGER`].
    urgent: bool,
    /// When its first change came.
    since: Option<Time>,
    /// Ends of jobs that are in it: their nodes may forget them when it is durable.
    releases: BTreeMap<NodeKey, Vec<vocab::JobId>>,
    /// Number of the last batch with a change of the tree or of pools.
    tree_seq: Seq,
}

/// What this turn has made necessary.
#[derive(Default)]
struct PendingWork {
    /// Operations whose demand the scheduler does not know yet.
    demand: BTreeSet<OperationId>,
    /// Operations with changes that are not in the batch yet.
    dirty: BTreeSet<OperationId>,
    /// Merges that may run.
    merges: BTreeSet<OperationId>,
    /// Nodes that are kept as long as they are used, and were.
    used: BTreeSet<vocab::ObjectId>,
    /// Somebody became schedulable: an extra fair-share update would help.
    update: bool,
    /// Demand or shares changed: look at all nodes that have room.
    schedule: bool,
    /// Nodes that were heard of or whose jobs ended: each is processed once in this turn, as one
    /// heartbeat (scheduling.md 8).
    heard: BTreeSet<Arc<str>>,
}

/// Clocks of periodic work.
struct Periodic {
    update: Time,
    last_update: Time,
    housekeeping: Time,
    alerts: Time,
}

/// What a reply waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waits {
    /// Nothing: it shows what is only in memory anyway (Orchid).
    Nothing,
    /// The last change of the tree.
    Tree,
    /// Everything so far.
    All,
}

/// How long changes that nobody waits for may be joined with later ones.
const LINGER: Span = Span::from_millis(5);
/// A batch of this size is closed at once.
const BATCH_BYTES: usize = 1 << 20;
/// Between two slices of a large removal others get their turn.
const NEXT_SLICE: Span = Span::from_millis(1);
const HOUSEKEEPING_PERIOD: Span = Span::from_millis(500);
/// Volumes are written so often (fair-share.md 7.1).
const VOLUMES_PERIOD: Span = Span::from_secs(5);

impl Kernel {
    /// Takes one input. Decisions are made in [`Kernel::flush`].
    pub fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Effect>) {
        self.events.set_time(now);
        match input {
            Input::Request(request) => self.request(now, request, out),
            Input::NodeConnected { node, proof } => self.node_connected(node, proof),
            Input::Node { node, message } => self.node_message(now, node, message, out),
            Input::NodeUnchanged(node) => self.node_unchanged(now, node),
            Input::NodeDisconnected(node) => self.node_disconnected(now, node, out),
            Input::StderrUploaded { from, job_id, blob, size } => {
                if self.takes_upload(now, (&from, job_id), blob, out)
                    && let Some((_, lost)) = self.jobs.uploaded.insert(job_id, (size, blob))
                {
                    self.delete_blob(lost, out);
                }
            }
            Input::FailContextUploaded { from, job_id, context } => {
                if self.takes_upload(now, (&from, job_id), context.blob, out)
                    && let Some(lost) = self.jobs.keep_fail_context(job_id, context)
                {
                    self.delete_blob(lost.blob, out);
                }
            }
            Input::RowsUploaded { from, job_id, table, chunk } => {
                if self.takes_upload(now, (&from, job_id), chunk.blob, out) {
                    self.rows_uploaded(job_id, table, *chunk, out);
                }
            }
            Input::UploadTooLarge { from, job_id, upload } => {
                self.note_oversized(now, &from, job_id, upload);
            }
            Input::EventsWritten(number) => self.events.written(number),
            Input::EventsFailing(why) => self.events.failing(why),
            Input::EventsLost { from, to } => self.events.lost(from, to),
            Input::StoreFailing(why) => self.store_failing = Some((now, why)),
            Input::GarbageHeld(held) => self.hold_garbage(now, held),
            Input::GarbageCollected => self.garbage_collected(),
            Input::SignInRefused(refused) => self.log_refused_sign_in(*refused),
            Input::Tick => {}
        }
    }

    /// Acts on everything that came in: updates fair shares, starts jobs, writes the batch.
    pub fn flush(&mut self, now: Time, extra_update_allowed: bool, out: &mut Vec<Effect>) -> Flushed {
        self.flush_in_phases(now, extra_update_allowed, out, &mut |_| ())
    }

    /// The same for somebody with a clock: `over` hears of the end of each phase.
    pub fn flush_in_phases(
        &mut self,
        now: Time,
        extra_update_allowed: bool,
        out: &mut Vec<Effect>,
        over: &mut dyn FnMut(Phase),
    ) -> Flushed {
        self.events.set_time(now);
        self.renew_used(now);
        self.housekeeping(now, out);
        self.empty_trash(now, out);
        self.advance_operations(now);
        self.run_merges(now, out);
        over(Phase::Operations);
        let updated = self.update_shares(now, extra_update_allowed);
        if updated {
            self.counters.updated();
            over(Phase::Shares);
        }
        self.schedule(now, out);
        self.drop_stray_output(out);
        over(Phase::Heartbeats);
        if updated {
            self.record_pool_history(now);
        }
        self.persist_volumes(now, updated);
        if !self.pending_work.dirty.is_empty() {
            self.changes.touch(Topic::Operations);
        }
        self.commit(now, false, out);
        over(Phase::Records);
        let versions = self.changes.versions();
        Flushed { wake: self.wake(now), updated, wants_update: self.pending_work.update, versions }
    }

    /// Makes the figures that questions about pools are answered from, and decides nothing: for a kernel that only
    /// answers questions and is never flushed.
    pub fn show_shares(&mut self, now: Time) {
        self.update_shares(now, true);
    }

    /// The last call: writes what is written only now and then.
    pub fn stop(&mut self, now: Time, out: &mut Vec<Effect>) {
        self.persist_volumes_at_stop(now);
        self.commit(now, true, out);
    }

    /// The scheduler, to look at: what its snapshot, its books and its counters say.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// The id of a pool, unless it is ephemeral.
    pub fn pool_id(&self, tree: &str, pool: &str) -> Option<vocab::ObjectId> {
        self.pools.pool(tree, pool).map(|object| object.id)
    }

    /// Where a pool stands in the tree, unless it is ephemeral.
    pub fn pool_path(&self, tree: &str, pool: &str) -> Option<String> {
        self.pool_id(tree, pool).map(|_| self.pools.path(tree, pool))
    }

    /// Gives a pool a volume, in whole clusters times seconds of each resource (fair-share.md 7): the
    /// beginning of a simulation.
    pub fn set_volume(&mut self, tree: &str, pool: &str, volume: vocab::Volume) -> Result<(), Failure> {
        let unknown = || Failure::resolve(format!("No such pool \"{pool}\" in tree \"{tree}\""));
        let id = self.pool_id(tree, pool).ok_or_else(unknown)?;
        self.scheduler.import_volume(tree, id, volume)
    }

    fn request(&mut self, now: Time, request: Request, out: &mut Vec<Effect>) {
        let Request { id, user, mutation_id, command } = request;
        // What was done and answered is answered again, whatever its maker may do by now, and whatever
        // has become of his transaction.
        if let Some(mutation) = mutation_id.filter(|_| command.is_mutation())
            && let Some((after, reply)) = self.mutations.find(&user, mutation)
        {
            out.push(Effect::Reply { request: id, after, body: reply.map(Body::Value) });
            return;
        }
        let (transaction, prerequisites, in_words, command) = match command {
            Command::In { transaction, prerequisites, in_words, command } => {
                (transaction, prerequisites, in_words, *command)
            }
            command => (None, Vec::new(), false, command),
        };
        let command = if in_words { self.out_of_words(command) } else { command };
        let entered = self
            .demand_prerequisites(&user, &prerequisites)
            .and_then(|()| transaction.map_or(Ok(()), |id| self.enter_transaction(&user, id, &command)));
        if let Err(failure) = entered {
            if failure.contains_code(ACCESS_DENIED) {
                self.log_denial(&user, denied_change(&command), &failure);
            }
            out.push(Effect::Reply { request: id, after: self.open.tree_seq, body: Err(failure) });
            return;
        }
        self.answer(now, Request { id, user, mutation_id, command }, out);
        self.tree.leave();
    }

    /// Answers a request with the eyes of its transaction.
    fn answer(&mut self, now: Time, request: Request, out: &mut Vec<Effect>) {
        let Request { id, user, mutation_id, command } = request;
        let who = self.config.access_control.then(|| self.known_who(&user));
        if let Some(who) = &who
            && let Some(answer) = self.answer_about_nobody(who, &command)
        {
            // A path with the id of something that is hidden from the user: a denial in other words.
            if let Err(failure) = &answer {
                self.log_denial(&user, denied_change(&command), failure);
            }
            let body = answer.map(Body::Value);
            out.push(Effect::Reply { request: id, after: self.open.tree_seq, body });
            return;
        }
        if let Some(who) = &who
            && let Err(failure) = self.authorize(who, &command)
        {
            if failure.contains_code(ACCESS_DENIED) {
                self.log_denial(&user, denied_change(&command), &failure);
            }
            out.push(Effect::Reply { request: id, after: self.open.tree_seq, body: Err(failure) });
            return;
        }
        self.note_use(&command);
        if !command.is_mutation() {
            let (waits, body) = self.read(now, who.as_ref(), command);
            let after = match waits {
                Waits::Nothing => 0,
                Waits::Tree => self.open.tree_seq,
                Waits::All => {
                    self.open.urgent = true;
                    self.current_seq()
                }
            };
            out.push(Effect::Reply { request: id, after, body });
            return;
        }
        // A sign of life repeated is one more.
        let mutation_id = mutation_id.filter(|_| !matches!(command, Command::PingTransaction { .. }));
        if mutation_id.is_some()
            && let Err(failure) = self.mutations.demand_room(&user)
        {
            out.push(Effect::Reply { request: id, after: self.open.tree_seq, body: Err(failure) });
            return;
        }
        if let Some(parts) = self.to_join(&command) {
            let body = Ok(Body::FilesToJoin(parts));
            out.push(Effect::Reply { request: id, after: self.open.tree_seq, body });
            return;
        }
        let audited = self.before_change(now, &command);
        // What only the command itself finds out, as the pools of a specification.
        let deniable = who.as_ref().filter(|who| !who.is_superuser()).and_then(|_| denied_change(&command));
        let reply = self.execute(now, &user, command, out);
        match (&reply, audited) {
            (Ok(_), Some(audited)) => self.after_change(now, &user, audited),
            (Err(failure), _) if failure.contains_code(ACCESS_DENIED) => {
                self.log_denial(&user, deniable, failure);
            }
            _ => {}
        }
        if let Some(mutation) = mutation_id {
            let seq = self.open.seq;
            self.mutations.keep(now, &user, mutation, seq, &reply, &mut self.open.batch);
        }
        self.open.urgent = true;
        out.push(Effect::Reply { request: id, after: self.current_seq(), body: reply.map(Body::Value) });
    }

    /// Commands that change nothing. Nobody in particular may read everything.
    fn read(&self, now: Time, who: Option<&Who>, command: Command) -> (Waits, Result<Body, Failure>) {
        match command {
            Command::Get { path, attributes, max_size, fields } => {
                if let Err(failure) = self.check_read(who, &path, &attributes, max_size) {
                    return (Waits::Tree, Err(failure));
                }
                let hidden = self.closed_to(who, &path, true);
                let hidden =
                    hidden.and_then(|closed| Ok((closed, self.blind_links(who, &path, &attributes, true)?)));
                let (closed, blind) = match hidden {
                    Ok(hidden) => hidden,
                    Err(failure) => return (Waits::Tree, Err(failure)),
                };
                self.get(now, &path, GetOptions { attributes, max_size, closed, blind }, fields)
            }
            Command::List { path, attributes, max_size } => {
                let closed = match attributes.is_empty() {
                    true => Ok(BTreeSet::new()),
                    false => self.closed_to(who, &path, false),
                };
                let hidden =
                    closed.and_then(|closed| Ok((closed, self.blind_links(who, &path, &attributes, false)?)));
                let (closed, blind) = match hidden {
                    Ok(hidden) => hidden,
                    Err(failure) => return (Waits::Tree, Err(failure)),
                };
                self.list(now, &path, GetOptions { attributes, max_size, closed, blind })
            }
            Command::Exists { path } => self.exists(now, &path),
            Command::LocateFile { path, .. } => (Waits::Tree, self.locate_file(&path).map(Body::Value)),
            Command::LocateTable { path, .. } => {
                (Waits::Tree, self.locate_table(who, &path).map(Body::Value))
            }
            Command::GetTableColumnarStatistics { paths } => {
                (Waits::Tree, self.table_columnar_statistics(&paths).map(Body::Value))
            }
            Command::GetFileFromCache { md5, cache_path } => {
                (Waits::Tree, self.get_file_from_cache(&md5, &cache_path).map(Body::Value))
            }
            Command::LocateUpload { from, job_id, upload } => {
                (Waits::Nothing, self.locate_upload(now, &from, job_id, upload).map(Body::Value))
            }
            Command::LocateJobInput { from, job_id } => {
                let located =
                    self.demand_node_of_job(now, &from, job_id).and_then(|()| self.locate_job_input(job_id));
                (Waits::Nothing, located.map(Body::Value))
            }
            Command::LocateArtifact { from, file_id, revision } => {
                (Waits::Tree, self.locate_artifact(now, &from, file_id, revision).map(Body::Value))
            }
            Command::CheckPermission { user, permission, path, columns } => {
                let asker = who.map(|who| who.user.as_str());
                let checked = self.check_permission(asker, &user, &permission, &path, columns.as_deref());
                (Waits::Tree, checked.map(Body::Value))
            }
            Command::CheckPermissionByAcl { user, permission, acl } => {
                (Waits::Tree, self.check_permission_by_acl(&user, &permission, &acl).map(Body::Value))
            }
            Command::CheckOperationPermission { user, permission, operation } => {
                let checked = self.check_operation_permission(&user, &permission, &operation);
                (Waits::Tree, checked.map(Body::Value))
            }
            Command::ListUserTokens { user, with_metadata } => {
                (Waits::Tree, self.list_user_tokens(&user, with_metadata).map(Body::Value))
            }
            // It has passed, or it would not be here.
            Command::Authorize(_) => (Waits::Tree, Ok(Body::Value(yson::Value::Entity))),
            Command::DescribeUser { user } => (Waits::Tree, Ok(Body::Value(self.describe_user(&user)))),
            // Who is let in, and by what, must not be forgotten by a crash.
            Command::Identify { proof, act_as } => {
                (Waits::Tree, self.identify(now, &proof, act_as.as_deref()).map(Body::Value))
            }
            Command::IdentifyNode { from } => {
                (Waits::Nothing, self.identify_node(now, &from).map(Body::Value))
            }
            Command::ListNodeIdentities => (Waits::All, Ok(Body::Value(self.list_node_identities(now)))),
            Command::PasswordHash { user } => (Waits::Tree, Ok(Body::Value(self.password_hash(&user)))),
            Command::ExplainOperation { operation } => {
                (Waits::Nothing, self.explain_operation(now, &operation))
            }
            Command::GetEvents { from, limit, filter } => {
                (Waits::Nothing, Ok(Body::Events { from, limit, filter }))
            }
            Command::GetPreemptionLog(query) => (Waits::Nothing, Ok(Body::Value(self.preemptions(&query)))),
            Command::ExplainJob { job_id } => (Waits::Nothing, self.explain_job(now, job_id)),
            Command::ExplainPool { tree, pool } => (Waits::Nothing, self.explain_pool(tree, &pool)),
            Command::GetHistory { of, range } => {
                (Waits::Nothing, self.usage_history(now, &of, range).map(Body::Value))
            }
            Command::GetPoolHistory { tree, pool, range } => {
                (Waits::Nothing, self.get_pool_history(now, tree, &pool, range))
            }
            Command::GetOperation { operation, attributes } => {
                (Waits::All, self.get_operation(now, &operation, attributes))
            }
            Command::ListOperations(query) => (Waits::All, self.list_operations(now, *query)),
            Command::GetMetrics => (Waits::Nothing, Ok(self.metrics(who))),
            Command::ListOperationEvents { operation, query } => {
                (Waits::All, self.list_operation_events(&operation, query))
            }
            Command::ListJobs(query) => (Waits::All, self.list_jobs(now, query)),
            Command::GetJob { operation, job_id, attributes } => {
                (Waits::All, self.get_job(now, operation, job_id, attributes))
            }
            Command::LocateJobShell { user, job_id, shell_name } => {
                let located = self.locate_job_shell(&user, job_id, shell_name.as_deref());
                (Waits::Nothing, located.map(Body::Value))
            }
            Command::GetJobStderr { operation, job_id, limit, offset } => {
                (Waits::All, self.get_job_stderr(operation, job_id, limit, offset))
            }
            Command::GetJobInput { operation, job_id } => (Waits::All, self.get_job_input(operation, job_id)),
            Command::LocateInput { operation_id, rows } => {
                (Waits::All, Ok(Body::Value(self.locate_input(operation_id, rows))))
            }
            Command::GetJobFailContext { operation, job_id } => {
                (Waits::All, self.get_job_fail_context(operation, job_id))
            }
            other => (Waits::Nothing, Err(Failure::new(format!("{other:?} is not a read command")))),
        }
    }

    /// Commands that change something. An error leaves everything as it was.
    fn execute(
        &mut self,
        now: Time,
        user: &str,
        command: Command,
        out: &mut Vec<Effect>,
    ) -> Result<yson::Value, Failure> {
        let nothing = |()| yson::Value::Entity;
        self.check_names(&command)?;
        match command {
            Command::StartOperation { operation_type, spec } => {
                let parsed = controller::spec::parse(operation_type, &spec, &self.controller_options)
                    .map_err(|inner| Failure::new("Error parsing operation spec").because(inner))?;
                self.start_operation(now, user, parsed, out)
            }
            Command::StartReadOperation(mut parsed) => {
                controller::spec::check_limits(&mut parsed, &self.controller_options)
                    .map_err(|inner| Failure::new("Error parsing operation spec").because(inner))?;
                self.start_operation(now, user, *parsed, out)
            }
            Command::AbortOperation { operation, message } => {
                self.abort_operation(now, &operation, message, out).map(nothing)
            }
            Command::SuspendOperation { operation, abort_running_jobs, reason } => {
                self.suspend_operation(now, &operation, abort_running_jobs, reason, out).map(nothing)
            }
            Command::ResumeOperation { operation } => self.resume_operation(now, &operation).map(nothing),
            Command::CompleteOperation { operation } => {
                self.complete_operation(now, &operation, out).map(nothing)
            }
            Command::UpdateOperationParameters { operation, parameters } => {
                self.update_operation_parameters(now, user, &operation, &parameters, out).map(nothing)
            }
            Command::PatchOperationSpec { operation, patches } => {
                self.patch_operation_spec(now, &operation, &patches, out).map(nothing)
            }
            Command::AbortJob { operation, job_id, interrupt_timeout } => {
                self.operation_of_job(operation.as_ref(), job_id)?;
                self.abort_job(job_id, interrupt_timeout, out).map(nothing)
            }
            Command::OpenJobShell { job_id, shell_name, command } => {
                self.open_job_shell(user, job_id, shell_name.as_deref(), command.as_deref())
            }
            Command::AbandonJob { operation, job_id } => {
                self.operation_of_job(operation.as_ref(), job_id)?;
                self.abandon_job(now, job_id, out).map(nothing)
            }
            Command::TransferPoolResources { source_pool, destination_pool, pool_tree, resource_delta } => {
                self.transfer_pool_resources(&pool_tree, &source_pool, &destination_pool, &resource_delta)
                    .map(nothing)
            }
            Command::TransferAccountResources { source_account, destination_account, resource_delta } => {
                let accounts = (source_account.as_str(), destination_account.as_str());
                self.transfer_account_resources(now, user, accounts, &resource_delta, out).map(nothing)
            }
            Command::AddMember { group, member } => {
                self.add_member(now, user, (&group, &member), out).map(nothing)
            }
            Command::RemoveMember { group, member } => {
                self.remove_member(now, user, (&group, &member), out).map(nothing)
            }
            Command::IssueToken { user, token_sha256, description, ttl } => {
                self.issue_token(now, &user, &token_sha256, (description, ttl), out).map(nothing)
            }
            Command::RotateToken { user, old_sha256, token_sha256, ttl, grace } => {
                self.rotate_token(now, &user, (&old_sha256, &token_sha256), (ttl, grace), out).map(nothing)
            }
            Command::RevokeToken { user, token_sha256 } => {
                self.revoke_token(now, &user, &token_sha256, out).map(nothing)
            }
            Command::CreateJoinToken { token_sha256, name, ttl, replace } => {
                self.create_join_token(now, &token_sha256, (name, ttl, replace))
            }
            Command::RevokeJoinToken { token_sha256 } => self.revoke_join_token(&token_sha256),
            Command::ApproveNode { name, key_sha256 } => {
                self.approve_node(now, &name, key_sha256.as_deref(), out)
            }
            Command::RevokeNode { name } => self.revoke_node(now, &name, out),
            Command::JoinNode(request) => self.join_node(now, &request, out),
            Command::RenewNode { key_sha256 } => self.renew_node(now, &key_sha256),
            Command::CollectGarbage => self.collect_garbage(out),
            Command::ExtendLeases { period } => self.extend_leases(now, period, out),
            Command::RemoveNode { address, lost } => self.remove_node(now, &address, lost, out),
            Command::SetUserPassword { user, hash } => {
                self.set_user_password(now, &user, hash, out).map(nothing)
            }
            Command::StartTransaction(options) => self.start_transaction(now, user, *options, out),
            Command::PingTransaction { transaction, ancestors } => {
                self.ping_transaction(now, user, transaction, ancestors).map(nothing)
            }
            Command::CommitTransaction { transaction } => {
                self.commit_transaction(now, user, transaction, out).map(nothing)
            }
            Command::AbortTransaction { transaction } => {
                self.abort_transaction(now, user, transaction, out).map(nothing)
            }
            Command::PutFileToCache { path, md5, cache_path, preserve_expiration_timeout } => {
                let place = (&path, md5.as_str(), &cache_path);
                self.put_file_to_cache(now, user, place, preserve_expiration_timeout, out)
            }
            Command::TableWritten { path, rows } => {
                let taken = rows.chunks.first().map_or(yson::Value::Entity, |chunk| chunk.blob.into());
                self.table_written(now, user, &path, *rows, out).map(|()| taken)
            }
            Command::AlterTable { path, schema } => {
                self.alter_table(now, user, &path, schema, out).map(nothing)
            }
            Command::Concatenate { sources, destination, append, joined } => {
                let joined = joined.map(|joined| *joined);
                self.concatenate(now, user, (&sources, &destination), (append, joined), out)
            }
            Command::Lock { path, options } => self.lock(now, user, &path, options, out),
            Command::Unlock { path } => self.unlock(&path, out).map(nothing),
            tree_command => self.tree_command(now, user, tree_command, out),
        }
    }

    /// Number that a reply about "now" has to wait for.
    fn current_seq(&self) -> Seq {
        if self.open.batch.is_empty() && self.pending_work.dirty.is_empty() && self.events.is_empty() {
            self.open.seq - 1
        } else {
            self.open.seq
        }
    }

    /// Closes the batch, unless nobody waits for it: then changes of the next turns may join it for a
    /// while, so that a thousand ends of jobs a second do not cost a thousand commits.
    fn commit(&mut self, now: Time, at_once: bool, out: &mut Vec<Effect>) {
        let urgent = std::mem::take(&mut self.open.urgent);
        if self.open.batch.is_empty() && self.pending_work.dirty.is_empty() && self.events.is_empty() {
            return self.release(self.open.seq - 1, out);
        }
        let since = *self.open.since.get_or_insert(now);
        let full = self.open.batch.byte_size() > BATCH_BYTES;
        if !urgent && !at_once && !full && now < since + LINGER {
            return;
        }
        self.persist_operations();
        let seq = self.open.seq;
        let events = self.events.close(seq, &mut self.open.batch);
        let batch = std::mem::take(&mut self.open.batch);
        out.push(Effect::Commit { seq, batch });
        out.extend(events);
        self.release(seq, out);
        self.open.seq += 1;
        self.open.since = None;
    }

    /// Nodes may forget the ends that are durable with this number.
    fn release(&mut self, after: Seq, out: &mut Vec<Effect>) {
        for (node, jobs) in std::mem::take(&mut self.open.releases) {
            out.push(Effect::ToNode { node, after, message: wire::ServerMessage::Release(jobs) });
        }
    }

    pub(crate) fn delete_blob(&self, blob: u64, out: &mut Vec<Effect>) {
        // Rows that were not kept have none.
        if blob != NOT_KEPT {
            out.push(Effect::DeleteBlob { after: self.open.seq, blob });
        }
    }

    fn housekeeping(&mut self, now: Time, out: &mut Vec<Effect>) {
        if now < self.periodic.housekeeping {
            return;
        }
        self.periodic.housekeeping = now + HOUSEKEEPING_PERIOD;
        self.mutations.expire(now, &mut self.open.batch);
        self.mark_id_times(now);
        self.expire_transactions(now, out);
        self.remove_expired(now, out);
        self.check_nodes(now, out);
        self.check_node_identities(now, out);
        self.forget_old_foreign_reports(now);
        self.forget_old_oversized(now);
        self.check_deadlines(now, out);
        self.resume_tasks(now);
        self.copy_slow_jobs(now);
        self.check_bans(now, out);
        self.fail_stuck_operations(now, out);
        self.check_suitable_nodes(now, out);
        self.forget_old_operations(now, out);
        self.clear_old_alerts(now);
        self.look_for_alerts(now);
        self.settle_savings();
        self.audit(now);
        self.note_alerts();
    }

    fn wake(&self, now: Time) -> Time {
        let slice = if self.tree.trunk().has_discarded() { now + NEXT_SLICE } else { Time::MAX };
        let commit = self.open.since.map_or(Time::MAX, |since| since + LINGER);
        self.periodic.update.min(self.periodic.housekeeping).min(commit).min(slice)
    }
}
