//! The life of the process: open the store, recover the kernel, listen, stop cleanly.

use crate::access::{Access, ensure_root_token, node_token};
use crate::archive::Archive;
use crate::backend::ServerBackend;
use crate::configured_tokens::{ConfiguredTokens, ENOUGH};
use crate::core_thread::{CoreThread, Mailbox, Recovery, Restored, mailbox, not_writable, now};
use crate::event_log::{EventFiles, EventLog, Limits, News, Outbox, Reader};
use crate::exposure::exposure;
use crate::files::Files;
use crate::garbage::{Collected, Garbage, References, collect};
use crate::hub::{Errand, Hub};
use crate::metrics::{Measures, measured};
use crate::node_authority;
use crate::node_authority::NodeAuthority;
use crate::node_service::{Entrance, Nodes, admission};
use crate::page::with_page;
use crate::refusals::Refusals;
use crate::room::Rooms;
use crate::security_headers::with_security_headers;
use crate::tables::Tables;
use crate::vaults::{self, SealingStore, VaultKeys};
use anyhow::Context;
use api::{Doors, InFlightLimits, NodeDoor, RequestLimits, Tls};
use kernel::{Config, GarbageDecision, HeldGarbage, Input, Kernel, Records, Retention, TreeLimits};
use std::net::SocketAddr;
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::{OpenOptions, RedbStore, Store, Table};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tonic::service::interceptor::InterceptedService;
use vocab::join_token::NODE_SERVER_NAME;
use vocab::{Failure, Span, UidRange, code};
use wire::proto::MAX_MESSAGE_SIZE;
use wire::proto::pb::node_service_server::NodeServiceServer;

/// How long running requests may take after the order to stop.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// Settings of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Address of the API and of the node protocol, which share a port.
    pub listen: SocketAddr,
    /// Directory of the store; made if missing.
    pub data: PathBuf,
    /// Pool tree that a new cluster gets.
    pub default_tree: String,
    /// Name of a new cluster.
    pub cluster_name: String,
    /// Period of nodes' heartbeats.
    pub heartbeat_period: Span,
    /// How much of the event log is kept; none: there is no event log.
    pub event_log: Option<Limits>,
    /// How long finished operations are kept.
    pub retention: Retention,
    /// Bytes of replies that wait for their readers.
    pub in_flight: InFlightLimits,
    /// How large requests may be.
    pub requests: RequestLimits,
    /// How big things may be, and how much one account or user may have.
    pub limits: TreeLimits,
    /// Bytes of files and tables of an account that does not say how many it may have; `None`: a quarter of the disk that
    /// the data lies on.
    pub account_disk_space: Option<i64>,
    /// Must users and nodes show who they are? None: if the server listens not only on this machine.
    pub authentication: Option<bool>,
    /// Files with the certificate (and those above it) and its private key, in PEM form; none: no TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// File with tokens that nobody had to issue: lines `USER TOKEN`.
    pub tokens_file: Option<PathBuf>,
    /// Let nodes in that come in clear, with the token that all of them share: for nodes of release 0.1 while they are
    /// given identities. Whoever gets that token gets the jobs of all users.
    pub insecure_plaintext_nodes: bool,
    /// May nodes without a join token ask for an approval?
    pub node_approval: bool,
    /// Life of a node's certificate.
    pub node_certificate_ttl: Span,
    /// Users of nodes' hosts that jobs run as; `None`: a range that follows from the id of the cluster.
    pub job_uids: Option<UidRange>,
    /// If the data directory does not hold one whole cluster, move what is there aside and begin a new one.
    pub new_cluster: bool,
    /// Begin with a new key of secure vaults; operations whose vaults cannot be decrypted fail.
    pub new_vault_key: bool,
}

impl ServerConfig {
    /// With defaults for what is not an argument.
    pub fn new(listen: SocketAddr, data: PathBuf) -> ServerConfig {
        ServerConfig {
            listen,
            data,
            default_tree: "physical".into(),
            cluster_name: "millpond".into(),
            heartbeat_period: Span::from_secs(5),
            event_log: Some(Limits::default()),
            retention: Retention::default(),
            in_flight: InFlightLimits::default(),
            requests: RequestLimits::default(),
            limits: TreeLimits::default(),
            account_disk_space: None,
            authentication: None,
            tls: None,
            tokens_file: None,
            insecure_plaintext_nodes: false,
            node_approval: true,
            node_certificate_ttl: Span::from_secs(90 * 24 * 3600),
            job_uids: None,
            new_cluster: false,
            new_vault_key: false,
        }
    }
}

impl ServerConfig {
    /// Is it known who asks? By default where others than the people of this machine may ask.
    pub fn is_authenticated(&self) -> bool {
        self.authentication.unwrap_or(!self.listen.ip().is_loopback())
    }
    /// What a server with these settings that listens there lets others do without asking who they are.
    pub fn exposure(&self, address: SocketAddr) -> Option<Failure> {
        if self.is_authenticated() { None } else { exposure(address, self.authentication == Some(false)) }
    }
}

/// The token of `root`, in the directory of the data.
const ROOT_TOKEN: &str = "root.token";
/// The token that all nodes share, there as well: of release 0.1, and of servers that let such nodes in.
const NODE_TOKEN: &str = "node.token";

/// Runs the server until SIGTERM or SIGINT, or until it cannot go on.
pub fn run(mut config: ServerConfig) -> anyhow::Result<()> {
    // The port first: two servers on one port is the more frequent mistake, and its message the clearer.
    let listener = listener(&mut config)?;
    let tls = config.tls.as_ref().map(|(certificate, key)| Tls::read(certificate, key)).transpose();
    let tls = tls.map_err(|failure| anyhow::anyhow!("{failure}")).context("cannot use TLS")?;
    listener.set_nonblocking(true).context("cannot use the listener")?;
    datadir::close_new_files();
    let was_open = datadir::take(&config.data, &|_| false)?;
    if let Some(warning) = was_open.warning(&config.data) {
        tracing::warn!("{warning}");
    }
    if let Err(error) = datadir::announce(&config.data) {
        tracing::warn!(
            "nodes of this host may show the data directory to jobs that run as the server's user: {error}"
        );
    }
    let options = OpenOptions {
        traces: &[ROOT_TOKEN, EVENT_LOG],
        secrets: &[NODE_TOKEN, node_authority::FILE, vaults::FILE],
        new_cluster: config.new_cluster,
    };
    let store = Arc::new(RedbStore::open_as(&config.data, options)?);
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
    let authority = NodeAuthority::open(&config.data)?.map(Arc::new);
    if let Some(authority) = &authority {
        tracing::info!(
            authority_sha256 = authority.digest(),
            "nodes know this server by the digest of its authority"
        );
    }
    let vaults = Arc::new(vaults::prepare(&*store, &config.data, config.new_vault_key)?);
    if store.failure().is_none() {
        vaults.take_over(&store)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .thread_name("server")
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(config, listener, (tls, authority), (store, vaults)))
}

/// The socket that systemd or `millpond up` has handed over (`LISTEN_FDS`), whose address counts then; else a new one. Only a
/// socket that outlives the server keeps the port: jobs share the host's network and could take it while the server restarts.
fn listener(config: &mut ServerConfig) -> anyhow::Result<std::net::TcpListener> {
    let handed = listenfd::ListenFd::from_env().take_tcp_listener(0);
    let Some(listener) = handed.context("cannot use the socket that was handed over in LISTEN_FDS")? else {
        return std::net::TcpListener::bind(config.listen).with_context(|| {
            format!("cannot listen on {}: is another server running there?", config.listen)
        });
    };
    config.listen =
        listener.local_addr().context("cannot use the socket that was handed over in LISTEN_FDS")?;
    Ok(listener)
}

async fn serve(
    config: ServerConfig,
    listener: std::net::TcpListener,
    (tls, authority): (Option<Tls>, Option<Arc<NodeAuthority>>),
    (redb, vaults): (Arc<RedbStore>, Arc<VaultKeys>),
) -> anyhow::Result<()> {
    let store: Arc<dyn Store> = Arc::new(SealingStore::new(redb.clone(), Arc::clone(&vaults)));
    let listener = TcpListener::from_std(listener).context("cannot use the listener")?;
    let address = listener.local_addr()?;
    if let Some(failure) = config.exposure(address) {
        tracing::warn!("{failure}");
    }
    let event_files = open_event_log(&config, &*store)?;
    let first_event = event_files.as_ref().map(|files| files.last() + 1);
    let (begin, kept) = match redb.failure() {
        Some(error) => {
            tracing::error!(%error, "the store cannot be written: the server answers questions only");
            (Err(not_writable(&error)), Kept::default())
        }
        None => {
            let (restored, kept) = recover(&config, address, (&redb, &vaults), first_event)?;
            (Ok(restored), kept)
        }
    };
    let hub = Arc::new(Hub::default());
    let (mailbox, inbox) = mailbox();
    let event_log = match event_files {
        Some(files) => {
            let log = EventLog::start(files, outbox_of_events(Arc::clone(&store)), news_to(mailbox.clone()))
                .context("cannot start the writer of the event log")?;
            Some(Arc::new(log))
        }
        None => None,
    };
    let errands = {
        let mailbox = mailbox.clone();
        Garbage::start(Arc::clone(&store), kept.blobs, move || mailbox.send(Input::GarbageCollected))
    };
    let measures = Arc::new(Measures::new());
    let (tell_changes, changes) = tokio::sync::watch::channel(kernel::Versions::default());
    let subjects_changed = Arc::default();
    let core = {
        let deliver_hub = Arc::clone(&hub);
        let log = event_log.clone();
        let deliver = move |effect| match deliver_hub.deliver(effect) {
            Some(Errand::Log(first, stored)) => {
                if let Some(log) = &log {
                    log.append(first, stored);
                }
            }
            Some(errand) => errands.errand(errand),
            None => {}
        };
        let recovery = FromStore {
            config: config.clone(),
            address,
            store: redb,
            vaults,
            hub: Arc::clone(&hub),
            events: event_log.as_ref().map(|log| log.reader()),
            garbage: kept.garbage,
            subjects_changed: Arc::clone(&subjects_changed),
        };
        let inbox = (mailbox.clone(), inbox);
        CoreThread::start(
            inbox,
            begin,
            Arc::clone(&store),
            deliver,
            (tell_changes, Arc::clone(&measures)),
            recovery,
        )
    };
    let rooms = Rooms::default();
    let backend = ServerBackend {
        mailbox,
        event_log: event_log.as_ref().map(|log| log.reader()),
        hub: Arc::clone(&hub),
        archive: Archive::new(Arc::clone(&store)),
        files: Files::new(Arc::clone(&store), rooms.clone()),
        tables: Tables::new(Arc::clone(&store), rooms),
        changes,
        subjects_changed,
        measures: Arc::clone(&measures),
    };
    let settings = api::Settings {
        version: env!("CARGO_PKG_VERSION").into(),
        public_address: None,
        host_name: address.to_string(),
        only_near: !config.is_authenticated() && address.ip().is_loopback(),
        tls: tls.is_some(),
        in_flight: config.in_flight,
        limits: config.requests,
        node_authority: authority.as_ref().map(|authority| authority.digest()),
    };
    let refusals = Arc::new(Refusals::new(Arc::clone(&measures), backend.mailbox.clone()));
    let (authenticator, node_token): (Arc<dyn api::Authenticator>, _) = match config.is_authenticated() {
        false => (Arc::new(api::OpenAccess), None),
        true => {
            ensure_root_token(&backend, &config.data.join(ROOT_TOKEN))
                .await
                .context("cannot give root a token")?;
            let token = match config.insecure_plaintext_nodes {
                true => Some(
                    node_token(&config.data.join(NODE_TOKEN)).context("cannot make the token of nodes")?,
                ),
                false => None,
            };
            let tokens = config.tokens_file.as_deref().map(ConfiguredTokens::read).transpose()?;
            let tokens = tokens.unwrap_or_default();
            if let users @ [_, ..] = &tokens.users_with_short_tokens()[..] {
                tracing::warn!(
                    users = users.join(", "),
                    "tokens_file: tokens of less than {ENOUGH} characters can be guessed: replace them"
                );
            }
            (Arc::new(Access::new(backend.clone(), tokens, Arc::clone(&refusals))), token)
        }
    };
    let api = api::Api::new(Arc::new(backend.clone()), authenticator, settings);
    let nodes = Arc::new(Nodes {
        backend,
        store: Arc::clone(&store),
        authority: authority.clone(),
        refusals: Arc::clone(&refusals),
    });
    let nodes_by = |entrance: Entrance| {
        let nodes = NodeServiceServer::from_arc(Arc::clone(&nodes))
            .max_decoding_message_size(MAX_MESSAGE_SIZE)
            .max_encoding_message_size(MAX_MESSAGE_SIZE);
        InterceptedService::new(nodes, admission(entrance, Arc::clone(&refusals), Arc::clone(&hub)))
    };
    let in_clear = match config.insecure_plaintext_nodes {
        true => Entrance::Insecure(node_token),
        false => Entrance::Closed,
    };
    let router = with_security_headers(with_page(api.router()));
    let router = router.route_service(NODE_METHODS, nodes_by(in_clear));
    let router = measured(router, Arc::clone(&measures));
    let door = authority.map(|authority| NodeDoor {
        server_name: NODE_SERVER_NAME,
        config: Box::new(move || authority.serving()),
        router: measured(
            axum::Router::new().route_service(NODE_METHODS, nodes_by(Entrance::Identities)),
            measures,
        ),
    });
    if config.insecure_plaintext_nodes {
        tracing::warn!("{}", insecure_plaintext_nodes().message);
    }
    if tls.is_none() && config.is_authenticated() && !address.ip().is_loopback() {
        tracing::warn!(
            "tokens and passwords travel as they are: give --tls-cert and --tls-key, or let a proxy speak TLS"
        );
    }
    tracing::info!(%address, data = %config.data.display(), "the server is ready");

    let stop_hub = Arc::clone(&hub);
    let shutdown = async move {
        told_to_stop().await;
        tracing::info!("stopping");
        // Nodes keep their jobs and look for the next server.
        stop_hub.close_all();
        api.end_streams();
    };
    let doors = Doors { public: router, tls, nodes: door };
    api::serve(listener, doors, most_connections(), shutdown, STOP_GRACE).await;
    let stop = move || {
        core.stop();
        if let Some(log) = event_log {
            log.stop();
        }
    };
    tokio::task::spawn_blocking(stop).await.context("the kernel did not stop cleanly")?;
    Ok(())
}

/// Path of the calls of nodes.
const NODE_METHODS: &str = "/millpond.node.v1.NodeService/{method}";

/// `insecure_plaintext_nodes`, as long as the option is on.
fn insecure_plaintext_nodes() -> Failure {
    let text = "--insecure-plaintext-nodes: nodes are let in without TLS, by the token that all of them share. Whoever gets that \
                token can register as any node without an identity and gets jobs and vaults of all users. Give each node an \
                identity with `millpond node join`, and start the server without the option";
    Failure::new(text).with("alert_type", "insecure_plaintext_nodes")
}

/// Directory of the event log in that of the data.
const EVENT_LOG: &str = "event-log";

fn open_event_log(config: &ServerConfig, store: &dyn Store) -> anyhow::Result<Option<EventFiles>> {
    let Some(limits) = config.event_log else { return Ok(None) };
    let directory = config.data.join(EVENT_LOG);
    let mut kept = None;
    store.scan(Table::Events, Bound::Unbounded, Bound::Unbounded, false, &mut |key, _| {
        kept = number_of_key(key);
        ControlFlow::Break(())
    })?;
    EventFiles::open(&directory, limits, kept)
        .map(Some)
        .with_context(|| format!("cannot open the event log {}", directory.display()))
}

/// Events that the store has, for a log that has fallen behind.
fn outbox_of_events(store: Arc<dyn Store>) -> Box<Outbox> {
    // Records are asked for in order, so the next ones are behind the last ones.
    let begin = std::sync::Mutex::new(0u64);
    Box::new(move |from, size| {
        let mut begin = begin.lock().unwrap_or_else(|e| e.into_inner());
        *begin = (*begin).min(from);
        let key = begin.to_be_bytes();
        let mut records: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut bytes = 0;
        let mut visit = |key: &[u8], value: &[u8]| {
            let Some(first) = number_of_key(key) else { return ControlFlow::Continue(()) };
            if first <= from {
                // Whatever comes before this one ends before it.
                (bytes, *begin) = (0, first);
                records.clear();
            }
            bytes += value.len();
            records.push((first, value.to_vec()));
            if bytes > size { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        store
            .scan(Table::Events, Bound::Included(&key), Bound::Unbounded, false, &mut visit)
            .map_err(std::io::Error::other)?;
        Ok(records)
    })
}

fn number_of_key(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

fn news_to(mailbox: Mailbox) -> impl Fn(News) + Send + 'static {
    move |news| {
        mailbox.send(match news {
            News::Written(number) => Input::EventsWritten(number),
            News::Failing(why) => Input::EventsFailing(Failure::new(why)),
            News::Lost { from, to } => Input::EventsLost { from, to },
        });
    }
}

async fn told_to_stop() {
    let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::error!("cannot listen for signals: only SIGKILL will stop this server");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
    }
}

/// Reads the store and brings the kernel back. `first_event` is the number of the next event; `None` without an event log.
fn read_kernel(
    config: &ServerConfig,
    address: SocketAddr,
    (store, vaults): (&RedbStore, &VaultKeys),
    first_event: Option<u64>,
) -> anyhow::Result<Restored> {
    let mut records = Records::default();
    for table in Records::TABLES {
        store.scan(*table, Bound::Unbounded, Bound::Unbounded, false, &mut |key, value| {
            match kernel::operation_of_vault(*table, key) {
                None => records.add(*table, key, value),
                Some(operation) => match vaults.open(key, value) {
                    Ok(clear) => records.add(*table, key, &clear),
                    Err(why) => records.add_locked_vault(operation, why),
                },
            }
            ControlFlow::Continue(())
        })?;
    }
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
struct Kept {
    /// For the alert; `None` without any.
    garbage: Option<HeldGarbage>,
    blobs: Vec<u64>,
}

/// The kernel of a start, and the garbage that waits for a confirmation.
fn recover(
    config: &ServerConfig,
    address: SocketAddr,
    (store, vaults): (&RedbStore, &VaultKeys),
    first_event: Option<u64>,
) -> anyhow::Result<(Restored, Kept)> {
    let (mut kernel, mut effects) = read_kernel(config, address, (store, vaults), first_event)?;
    adopt(store, &kernel)?;
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

/// The way back from the store while the process goes on.
struct FromStore {
    config: ServerConfig,
    address: SocketAddr,
    store: Arc<RedbStore>,
    vaults: Arc<VaultKeys>,
    hub: Arc<Hub>,
    events: Option<Reader>,
    /// What the start of the process has held back.
    garbage: Option<HeldGarbage>,
    subjects_changed: Arc<AtomicU64>,
}

impl FromStore {
    fn read(&self) -> anyhow::Result<Restored> {
        let first_event = self.events.as_ref().map(|events| events.last() + 1);
        read_kernel(&self.config, self.address, (&self.store, &self.vaults), first_event)
    }

    /// Users, groups and tokens are what the store says, which may be older.
    fn forget_users(&self) {
        self.subjects_changed.fetch_add(1, Ordering::AcqRel);
    }

    /// Garbage is not collected here: contents that are being uploaded have no reference yet.
    fn start_anew(&self) -> anyhow::Result<Restored> {
        self.store.reopen()?;
        // A start on a full disk could not.
        self.vaults.take_over(&self.store)?;
        let (mut kernel, mut effects) = self.read()?;
        adopt(&self.store, &kernel)?;
        match (kernel.garbage_decision(), self.garbage) {
            (Some(GarbageDecision::Held), Some(garbage)) => {
                kernel.handle(now(), Input::GarbageHeld(garbage), &mut effects);
            }
            // The order may not have come through. Twice is as good as once.
            (Some(GarbageDecision::Confirmed), Some(_)) => {
                effects.push(kernel::Effect::CollectGarbage { after: 0 });
            }
            _ => {}
        }
        Ok((kernel, effects))
    }
}

impl Recovery for FromStore {
    fn failed(&self, failure: &Failure) {
        if self.hub.failure().is_none() {
            tracing::error!(%failure, "the store cannot be written: changes are refused until it can be");
        }
        self.hub.fail(failure);
    }

    fn durable_state(&self) -> Result<Kernel, Failure> {
        let read = self.read().map_err(|error| {
            tracing::error!(error = format!("{error:#}"), "the store cannot be read either");
            Failure::coded(code::UNAVAILABLE, format!("The server cannot read its store: {error:#}"))
        });
        self.forget_users();
        read.map(|(kernel, _)| kernel)
    }

    fn resume(&self) -> Result<Restored, Failure> {
        self.start_anew().map_err(|error| Failure::new(format!("{error:#}")))
    }

    fn resumed(&self) {
        self.forget_users();
        self.hub.recover();
        tracing::info!("the store can be written again: work goes on");
    }
}

/// Looks whether store and blobs fit. A directory without the id of its cluster (of release 0.1, or of an interrupted first
/// start) gets it then.
fn adopt(store: &RedbStore, kernel: &Kernel) -> anyhow::Result<()> {
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
    if store.is_adopted() {
        return Ok(());
    }
    if let Some(refusal) = references.refusal() {
        let id = store.cluster_id();
        return Err(store
            .not_whole(format!(
                "{refusal}; to go on without them, write {id} into the files cluster_id and blobs/cluster_id of the directory"
            ))
            .into());
    }
    store.adopt()?;
    tracing::info!(cluster_id = %store.cluster_id(), "the data directory has the id of its cluster");
    Ok(())
}

/// Different for every life of every cluster: the life's number alone would give two clusters the same
/// ids, the clock alone might be set back.
fn seed_of_ids(now: vocab::Time, life: u64) -> u64 {
    (now.as_micros() << 16) ^ life
}

/// Memory is the bound where files are not.
const MOST_CONNECTIONS: u64 = 50_000;

/// As many files may be open as the system lets us have; a connection takes one, and what is read or written through
/// it another one. The rest is for the store.
fn most_connections() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let found = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: found.maximum, maximum: found.maximum };
    let files = match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => found.maximum,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            found.current
        }
    };
    usize::try_from((files.unwrap_or(u64::MAX) / 2).clamp(16, MOST_CONNECTIONS)).unwrap_or(usize::MAX)
}
