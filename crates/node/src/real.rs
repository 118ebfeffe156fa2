//! The hands that have processes and files.

mod beneath;
mod cache;
mod calls;
mod claims;
mod clearing;
mod confirmed;
mod download;
mod environment;
mod layers;
mod layout;
mod lock;
mod outlet;
mod ports;
mod pressure;
mod processes;
mod proxies;
mod quota;
mod records;
mod recovery;
mod remover;
mod room;
mod rows;
mod sandbox;
mod seal;
mod shells;
mod slots;
mod spawning;
mod stderr;
mod users;

pub(crate) use claims::{Claims, data_directory, data_id, group_name};
pub(crate) use confirmed::read as read_confirmed;
#[cfg(fuzzing)]
pub use layers::unpack_layer;
pub(crate) use layout::Layout;
pub(crate) use proxies::{accept, bind};
pub(crate) use recovery::{Found, recover};
pub(crate) use room::Isolator;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cage::JobEnvironment;
use jobproxy::protocol::{DiskQuota, FromProxy, FromSpawner, SpawnerConfig};
use nodecore::{JobRecord, NodeEffect, NodeInput, Source, Supply};
use rustc_hash::FxHashMap;
use tokio::sync::mpsc::UnboundedSender;
use vocab::{Artifact, Failure, JobId};
use wire::NodeMessage;

use crate::agent::News;
use crate::hands::{Hands, Outcome};
use crate::link::CurrentClient;
use crate::{NodeConfig, NodeError};
use cache::{Cache, Key, Want};
use calls::say;
use download::Fetched;
use layers::Layers;
use outlet::Outlet;
use proxies::{Call, CallId};
use quota::Quotas;
use remover::Remover;
use room::Owner;
use spawning::SpawnerLink;
use stderr::StderrSource;
use users::Users;

/// Memory that the job proxies of a node may take together, for each slot: sixteen times what one promises
/// to need, and half of what the controller counts for it (2.6).
const PROXY_MEMORY: i64 = 64 << 20;
/// And the process that forks them.
const SPAWNER_MEMORY: i64 = 128 << 20;

/// See jobs-and-nodes.md 4.10.
const WATCHDOG_PERIOD_ROOTLESS: vocab::Span = vocab::Span::from_millis(250);

/// What work beside the loop reports.
#[derive(Debug)]
pub(crate) enum RealNews {
    /// A proxy calls.
    Called(Call),
    /// A proxy says something.
    Said(JobId, FromProxy),
    /// A connection has ended.
    HungUp(JobId, CallId),
    /// The spawner says something.
    Spawner(FromSpawner),
    /// The spawner is dead.
    SpawnerGone,
    /// The process of a proxy is dead, and had time for its last words.
    ProxyGone(JobId),
    /// A download has ended.
    Fetched(Key, Result<Fetched, Failure>),
    /// A slot's sandbox was emptied beside the loop.
    Emptied(JobId, u32, Result<(), Failure>),
    /// A slot's sandbox was made beside the loop, or not; who keeps its bounds, if the kernel does.
    Prepared { job_id: JobId, slot: u32, quota: Option<DiskQuota>, result: Result<(), Failure> },
    /// Uids were claimed on the host, or not.
    UidsClaimed(users::Claimed),
    /// Whether jobs can have a uid.
    UidLooked(users::Looked),
    /// An answer for the core.
    Input(NodeInput),
    /// An answer for the server.
    Send(NodeMessage),
}

/// A job that has a slot.
#[derive(Debug, Default)]
struct Held {
    slot: u32,
    max_stderr_size: u64,
    /// Newest count of the proxy.
    stderr_total: u64,
    call: Option<(CallId, Outlet)>,
    /// Pid and start time, once it has called.
    proxy: Option<(u32, u64)>,
    /// A spawn was ordered from the spawner that lives now.
    spawned: bool,
    /// The result has been handed to the core.
    ended: bool,
    /// Mount points of its memory file systems.
    volumes: Vec<PathBuf>,
    /// The kernel keeps the bounds of its disk space.
    quota: Option<DiskQuota>,
    /// As the server named it.
    uid: Option<u32>,
    /// User and group, when they were found to be the job's; `None`: the node's.
    owner: Option<Owner>,
    /// It has a root file system that it can write to.
    writes_root: bool,
    /// It was given files.
    has_files: bool,
    /// It reads or writes tables.
    has_rows: bool,
    /// Requests for stderr that the proxy has not answered: number, offset, limit.
    questions: Vec<(u64, u64, u64)>,
    /// Requests for shells that the proxy has not answered.
    shells: shells::Asked,
}

/// Sandbox of a slot, as far as is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum SandboxState {
    #[default]
    Missing,
    Empty,
    /// In use, or left by an earlier life.
    Used,
}

/// See the module.
pub(crate) struct RealHands {
    config: NodeConfig,
    boot_id: String,
    /// The newest time of the file `confirmed` was written, as far as is known.
    confirmed_is_kept: bool,
    layout: Layout,
    environment: Arc<dyn JobEnvironment>,
    spawner_config: SpawnerConfig,
    spawner: Option<SpawnerLink>,
    cache: Cache,
    current: CurrentClient,
    news: UnboundedSender<News<RealNews>>,
    held: FxHashMap<JobId, Held>,
    sandboxes: Vec<SandboxState>,
    /// None: jobs are not kept apart from the host.
    isolator: Option<Isolator>,
    /// None: jobs have the user of the node.
    users: Option<Users>,
    /// Preparations that wait for the clerk of uids, by uid; an entry for each question that is asked.
    waiting_for_uid: FxHashMap<u32, Vec<slots::Waiting>>,
    /// None: the kernel keeps no bounds of disk space here.
    quotas: Option<Quotas>,
    layers: Arc<Layers>,
    remover: Remover,
    /// Preparations at a time: copies and archives must leave threads to kills.
    preparing: Arc<tokio::sync::Semaphore>,
}

/// Release 0.1 gave each slot a user. What jobs with such users have left is removed before the next job of the slot.
/// Gives the users.
fn users_of_slots(layout: &Layout, first: u32, found: &Found) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;
    let named = found.jobs.iter().filter(|job| job.record.start.uid.is_some());
    let named: Vec<u32> = named.map(|job| job.record.slot).collect();
    let user_of = |slot: &u32| {
        let user = std::fs::symlink_metadata(layout.sandbox(*slot)).ok()?.uid();
        (user == first.saturating_add(*slot) && !named.contains(slot)).then_some(user)
    };
    let users: Vec<u32> = found.slots.iter().filter_map(user_of).collect();
    if !users.is_empty() {
        tracing::warn!(
            slots = users.len(),
            "sandboxes of these slots belong to users of slots, of release 0.1: jobs have the users of the cluster's job_uids now, \
             and files that the users of slots have in shared directories stay theirs"
        );
    }
    users
}

/// Of the blocking threads of the runtime.
const PREPARING: usize = 8;

impl RealHands {
    /// Ends the spawner and waits for it; living proxies are not touched.
    pub fn end_spawner(mut self) {
        if let Some(mut spawner) = self.spawner.take() {
            spawner.reap();
        }
        if let Some(users) = &mut self.users {
            users.release();
        }
    }

    /// Starts the spawner; everything else waits for orders.
    pub fn new(
        config: &NodeConfig,
        layout: Layout,
        environment: Arc<dyn JobEnvironment>,
        current: CurrentClient,
        news: UnboundedSender<News<RealNews>>,
        found: &Found,
        isolator: Option<Isolator>,
    ) -> Result<RealHands, NodeError> {
        let socket = config.socket_path();
        let mut spawner_config = SpawnerConfig::new(&socket, environment.driver(), &config.root_group());
        spawner_config.memory_watchdog_period = match environment.driver() {
            // Nobody else stops a job at its limit (4.10).
            cage::Driver::Rootless => config.memory_watchdog_period.min(WATCHDOG_PERIOD_ROOTLESS),
            _ => config.memory_watchdog_period,
        };
        spawner_config.supervisor_lost_timeout = config.supervisor_lost_timeout;
        spawner_config.check_user_job_memory_limit = config.check_user_job_memory_limit;
        spawner_config.kill_timeout = config.kill_timeout;
        config.accounting.tell_proxies(&mut spawner_config);
        let slots = config.resource_limits.user_slots;
        spawner_config.proxies_memory_limit = Some(SPAWNER_MEMORY + slots.saturating_mul(PROXY_MEMORY));
        let cache_directory = layout.cache();
        let layers_directory = layout.layers();
        let remover = Remover::start().map_err(NodeError::io("start a thread in", &layers_directory))?;
        let lives = |slot| found.living_slots().any(|living| living == slot);
        let first_project = config.room.start_project_id;
        let quotas = Quotas::find(&layout, first_project, &found.slots, &lives);
        let boot_id = cage::process::boot_id().unwrap_or_default();
        let of_slots = users_of_slots(&layout, first_project, found);
        let users = match isolator.as_ref().is_some_and(Isolator::gives_users) {
            true => Some(Users::new(layout.root(), &boot_id, of_slots)?),
            false => None,
        };
        let mut hands = RealHands {
            boot_id,
            confirmed_is_kept: true,
            cache: Cache::open(cache_directory.clone(), config.cache_limit)
                .map_err(NodeError::io("read", &cache_directory))?,
            spawner: Some(SpawnerLink::start(&config.spawner_program, &spawner_config, news.clone())?),
            config: config.clone(),
            layout,
            environment,
            spawner_config,
            current,
            news,
            held: FxHashMap::default(),
            sandboxes: Vec::new(),
            isolator,
            users,
            waiting_for_uid: FxHashMap::default(),
            quotas,
            layers: Arc::new(
                Layers::open(&layers_directory, config.cache_limit, remover.clone())
                    .map_err(NodeError::io("read", &layers_directory))?,
            ),
            remover,
            preparing: Arc::new(tokio::sync::Semaphore::new(PREPARING)),
        };
        if let Some(threshold) = config.accounting.memory_pressure_abort_threshold {
            tokio::spawn(pressure::watch(threshold, hands.news.clone()));
        }
        if config.accounting.free_memory_watermark.is_some() {
            tokio::spawn(pressure::watch_free(hands.news.clone()));
        }
        for slot in &found.slots {
            *hands.sandbox_state(*slot) = SandboxState::Used;
        }
        for job in &found.jobs {
            hands.hold(&job.record);
        }
        for proxy in &found.living {
            if let Some(held) = hands.held.get_mut(&proxy.job_id) {
                held.proxy = Some((proxy.pid, proxy.pid_start_time));
            }
            hands.watch(proxy.job_id, proxy.pid, proxy.pid_start_time);
        }
        Ok(hands)
    }

    fn hold(&mut self, record: &JobRecord) {
        let job_id = record.start.identity.job_id;
        let held = self.held.entry(job_id).or_default();
        held.slot = record.slot;
        held.uid = record.start.uid;
        let description = &record.start.description;
        held.max_stderr_size = description.max_stderr_size.max(1).unsigned_abs();
        held.writes_root = description.file_system.writable_root;
        held.has_files = !description.files.is_empty();
        held.has_rows = description.tables.is_some();
        self.layers.pin(job_id, &description.file_system.layers);
        if !description.file_system.tmpfs_volumes.is_empty() {
            held.volumes = room::volume_paths(&self.layout.sandbox(record.slot), &description.file_system);
        }
        if let Some(end) = &record.end {
            held.stderr_total = end.stderr_size;
            held.ended = true;
        }
    }

    fn sandbox_state(&mut self, slot: u32) -> &mut SandboxState {
        let index = slot as usize;
        if self.sandboxes.len() <= index {
            self.sandboxes.resize(index + 1, SandboxState::Missing);
        }
        &mut self.sandboxes[index]
    }

    /// Runs something that may take long beside the loop.
    fn beside(&self, work: impl Future<Output = RealNews> + Send + 'static) {
        let news = self.news.clone();
        tokio::spawn(async move {
            let _ = news.send(News::Hands(work.await));
        });
    }

    /// The same for work that blocks its thread.
    fn blocking(&self, work: impl FnOnce() -> RealNews + Send + 'static) {
        let news = self.news.clone();
        tokio::task::spawn_blocking(move || {
            let _ = news.send(News::Hands(work()));
        });
    }

    /// The same for work on the disk that can take very long: only so many at a time.
    fn preparing(&self, work: impl FnOnce() -> RealNews + Send + 'static) {
        let (news, turns) = (self.news.clone(), Arc::clone(&self.preparing));
        tokio::spawn(async move {
            let _turn = turns.acquire_owned().await;
            if let Ok(done) = tokio::task::spawn_blocking(work).await {
                let _ = news.send(News::Hands(done));
            }
        });
    }

    fn fetch(&mut self, job_id: JobId, artifact: Artifact, outcomes: &mut Vec<Outcome>) {
        let key = Key::for_job(&artifact, job_id);
        match self.cache.want(job_id, key, artifact.size) {
            Want::Present => {
                let supply = Supply { source: Source::Cache, size: artifact.size };
                outcomes.push(Outcome::Input(NodeInput::ArtifactFetched { job_id, result: Ok(supply) }));
            }
            Want::Joined => {}
            Want::Fetch => {
                let (known, path) = (self.cache.path(&key), self.cache.temporary_path(&key));
                let patience = Duration::from_micros(self.config.artifact_timeout.0);
                let work = download::supply(self.current.clone(), artifact, known, path, patience);
                self.beside(async move { RealNews::Fetched(key, work.await) });
            }
        }
    }

    /// Kills the proxy first, so that it starts nothing more, then everything in the container.
    fn kill_container(&self, job_id: JobId) {
        let (proxy, job_directory) = match self.held.get(&job_id) {
            Some(held) => (held.proxy, Some(self.layout.job(held.slot))),
            None => (None, None),
        };
        let remains = self.stderr_source(job_id);
        let environment = Arc::clone(&self.environment);
        let deadline = Duration::from_micros(self.config.kill_timeout.0);
        self.blocking(move || {
            let from_state = || {
                let state = jobproxy::record::read_state(job_directory.as_deref()?).ok()??;
                (state.job_id == job_id).then_some((state.pid, state.pid_start_time))
            };
            if let Some((pid, start_time)) = proxy.or_else(from_state) {
                processes::kill(pid, start_time);
            }
            let result = jobproxy::recovery::kill_job(environment.as_ref(), job_id, deadline)
                .map(|()| remains.map(StderrSource::of_the_dead).unwrap_or_default())
                .map_err(|e| Failure::new(e.to_string()));
            RealNews::Input(NodeInput::ContainerKilled { job_id, result })
        });
    }

    /// Without the file the next agent counts leases from its own start.
    fn keep_confirmed(&mut self, from: vocab::Span) {
        let path = self.layout.confirmed();
        match confirmed::write(&path, &self.boot_id, from) {
            Ok(()) => self.confirmed_is_kept = true,
            Err(e) if std::mem::take(&mut self.confirmed_is_kept) => {
                tracing::warn!(
                    "cannot write {}: {e}; an agent that starts now may end exclusive jobs too early",
                    path.display()
                );
            }
            Err(_) => {}
        }
    }

    fn write_record(&mut self, record: &JobRecord, outcomes: &mut Vec<Outcome>) {
        self.hold(record);
        if let (Err(error), None) = (self.record_in_slot(record), &record.end) {
            // Nothing is started that could not be found again.
            let job_id = record.start.identity.job_id;
            outcomes.push(Outcome::Input(NodeInput::RecordFailed { job_id, error }));
        }
    }

    /// Makes the directories of the slot if it is new. They can also be missing in one that was found at the start: the
    /// agent may have been killed while it made them.
    fn record_in_slot(&mut self, record: &JobRecord) -> Result<(), Failure> {
        let slot = record.slot;
        let job = self.layout.job(slot);
        let mut written = records::write(&job, record, &self.boot_id);
        if written.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
            sandbox::make(&self.layout, slot, None)?;
            let state = self.sandbox_state(slot);
            if *state == SandboxState::Missing {
                *state = SandboxState::Empty;
            }
            written = records::write(&job, record, &self.boot_id);
        }
        written.map_err(|e| Failure::new(format!("Cannot write the job's record in {}: {e}", job.display())))
    }

    fn remove_record(&mut self, job_id: JobId, slot: u32) {
        self.cache.unpin(job_id);
        self.layers.unpin(job_id);
        let job = self.layout.job(slot);
        let held = self.held.remove(&job_id);
        if held.as_ref().is_some_and(|held| held.has_rows)
            && let Err(e) = jobproxy::rows::remove(&job)
        {
            tracing::warn!("rows of job {job_id} cannot be removed: {e}");
        }
        let wrote_nothing = held.is_some_and(|held| held.ended && held.stderr_total == 0);
        let stderr = if wrote_nothing { Ok(()) } else { records::remove_stderr(&job) };
        if let Err(e) = stderr.and_then(|()| records::remove(&job)) {
            tracing::warn!("record of job {job_id} cannot be removed: {e}");
        }
    }
}

impl Hands for RealHands {
    type News = RealNews;

    fn act(&mut self, effect: NodeEffect, outcomes: &mut Vec<Outcome>) {
        match effect {
            NodeEffect::Send(_) | NodeEffect::WakeAt(_) | NodeEffect::LeaseIsHalfOver { .. } => {
                unreachable!("the agent's own")
            }
            NodeEffect::ClaimUids(uids) => match &mut self.users {
                None => outcomes.push(Outcome::Input(NodeInput::UidsClaimed(Ok(())))),
                Some(users) => {
                    let news = self.news.clone();
                    let living = self.held.values().filter_map(|held| held.uid);
                    users.claim(uids, living, move |claimed| {
                        let _ = news.send(News::Hands(RealNews::UidsClaimed(claimed)));
                    });
                }
            },
            NodeEffect::ProbePorts { job_id, ports } => {
                let busy = ports.into_iter().filter(|port| !ports::is_free(*port)).collect();
                outcomes.push(Outcome::Input(NodeInput::PortsProbed { job_id, busy }));
            }
            NodeEffect::FetchArtifact { job_id, artifact } => self.fetch(job_id, artifact, outcomes),
            NodeEffect::PrepareSandbox { job_id, slot, artifacts, file_system } => {
                self.prepare_sandbox(job_id, slot, artifacts, file_system, outcomes);
            }
            NodeEffect::SpawnProxy { job_id, slot, gpus, ports, lease, start } => {
                self.spawn(job_id, slot, (&gpus, &ports), lease, &start, outcomes);
            }
            NodeEffect::ProxySend(job_id, order) => self.order(job_id, order),
            NodeEffect::KillContainer(job_id) => self.kill_container(job_id),
            NodeEffect::FetchRows { job_id, slot } => self.fetch_rows(job_id, slot),
            NodeEffect::Upload { job_id, slot, stderr, rows, fail_context } => {
                self.upload(job_id, slot, rows::Remainder { stderr, rows, fail_context });
            }
            NodeEffect::ReadStderr { request_id, job_id, offset, limit, .. } => {
                self.read_stderr(request_id, job_id, offset, limit);
            }
            NodeEffect::AskShell { request_id, job_id, request } => {
                self.ask_shell(request_id, job_id, request, outcomes);
            }
            NodeEffect::Cleanup { job_id, slot } => self.cleanup(job_id, slot, outcomes),
            NodeEffect::KeepConfirmed { from } => self.keep_confirmed(from),
            NodeEffect::WriteRecord(record) => self.write_record(&record, outcomes),
            NodeEffect::RemoveRecord { job_id, slot } => self.remove_record(job_id, slot),
        }
    }

    fn hear(&mut self, news: RealNews, outcomes: &mut Vec<Outcome>) {
        match news {
            RealNews::Called(call) => self.called(call, outcomes),
            RealNews::Said(job_id, message) => self.said(job_id, message, outcomes),
            RealNews::HungUp(job_id, id) => self.hung_up(job_id, id),
            RealNews::Spawner(FromSpawner::StartFailed { job_id, error }) => {
                outcomes.push(Outcome::Input(NodeInput::SpawnFailed { job_id, error }));
            }
            RealNews::Spawner(FromSpawner::ProxyDied { job_id, exit, .. }) => {
                self.proxy_dead(job_id, Some(exit), outcomes);
            }
            RealNews::SpawnerGone => self.spawner_gone(),
            RealNews::ProxyGone(job_id) => self.proxy_gone(job_id, outcomes),
            RealNews::Fetched(key, result) => {
                let size = result.as_ref().map_or(0, |fetched| fetched.size);
                let (jobs, result) = self.cache.fetched(key, result);
                let begun_for = if key.only_for.is_some() { Source::Bypass } else { Source::Server };
                let sources = std::iter::once(begun_for).chain(std::iter::repeat(Source::Cache));
                outcomes.extend(jobs.into_iter().zip(sources).map(|(job_id, source)| {
                    let result = result.clone().map(|()| Supply { source, size });
                    Outcome::Input(NodeInput::ArtifactFetched { job_id, result })
                }));
            }
            RealNews::Emptied(job_id, slot, result) => {
                if result.is_ok() {
                    *self.sandbox_state(slot) = SandboxState::Empty;
                }
                outcomes.push(Outcome::Input(NodeInput::CleanedUp { job_id, result }));
            }
            RealNews::UidsClaimed(claimed) => {
                let result = self.users.as_mut().map_or(Ok(()), |users| users.claimed(claimed));
                outcomes.push(Outcome::Input(NodeInput::UidsClaimed(result)));
            }
            RealNews::UidLooked(looked) => self.uid_looked(looked, outcomes),
            RealNews::Prepared { job_id, slot, quota, result } => {
                self.prepared(job_id, slot, quota);
                outcomes.push(Outcome::Input(NodeInput::SandboxReady { job_id, result }));
            }
            RealNews::Input(input) => outcomes.push(Outcome::Input(input)),
            RealNews::Send(message) => outcomes.push(Outcome::Send(message)),
        }
    }
}
