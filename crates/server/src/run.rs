//! The life of the process: open the store, recover the kernel, listen, stop cleanly.

use crate::access::{Access, ensure_root_token, node_token};
use crate::archive::Archive;
use crate::backend::ServerBackend;
use crate::configured_tokens::ENOUGH;
use crate::core_thread::{CoreThread, Mailbox, Recovery, Restored, mailbox, now};
use crate::event_log::{EventLog, Limits, News, Outbox, Reader};
use crate::exposure::exposure;
use crate::files::Files;
use crate::garbage::Garbage;
use crate::hub::{Errand, Hub};
use crate::metrics::{Measures, measured};
use crate::node_authority::{self, NodeAuthority};
use crate::node_gate;
use crate::node_service::{Entrance, Nodes};
use crate::other_family::hold_other_family;
use crate::page::with_page;
use crate::readers::Readers;
use crate::refusals::Refusals;
use crate::room::Rooms;
use crate::security_headers::with_security_headers;
use crate::start::{Started, adopt, read_kernel, start};
use crate::tables::Tables;
use crate::vaults::{self, During, Found, SealingStore, VaultKeys};
use anyhow::Context;
use api::{Doors, Grace, InFlightLimits, NodeDoor, RequestLimits, Tls};
use kernel::{GarbageDecision, HeldGarbage, Input, Kernel, Retention, TreeLimits};
use std::net::SocketAddr;
use std::ops::{Bound, ControlFlow};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::{RedbStore, Store, Table};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use vocab::join_token::NODE_SERVER_NAME;
use vocab::{Failure, Span, UidRange, code};

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
    /// given identities. A thief of that token gets the jobs of all users.
    pub insecure_plaintext_nodes: bool,
    /// May nodes without a join token ask for an approval?
    pub node_approval: bool,
    /// Life of a node's certificate.
    pub node_certificate_ttl: Span,
    /// Users of nodes' hosts that jobs run as; `None`: a range that follows from the id of the cluster.
    pub job_uids: Option<UidRange>,
    /// If the data directory does not hold one whole cluster, move what is there aside and begin a new one.
    pub new_cluster: bool,
    /// If the authority of nodes is lost, or is another one than the nodes know: go on with a new one, or with this one.
    pub new_node_authority: bool,
    /// Begin with a new key of secure vaults.
    pub new_vault_key: bool,
    /// Let operations fail whose secure vaults need a key that is lost.
    pub abandon_locked_vaults: bool,
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
            new_node_authority: false,
            new_vault_key: false,
            abandon_locked_vaults: false,
        }
    }
}

impl ServerConfig {
    /// Is it known who asks? By default where others than the people of this machine may ask.
    pub fn is_authenticated(&self) -> bool {
        self.authentication.unwrap_or(!self.listen.ip().to_canonical().is_loopback())
    }
    /// What a server with these settings that listens there lets others do without asking who they are.
    pub fn exposure(&self, address: SocketAddr) -> Option<Failure> {
        if self.is_authenticated() { None } else { exposure(address) }
    }
}

/// The token of `root`, in the directory of the data.
pub(crate) const ROOT_TOKEN: &str = "root.token";
/// The token that all nodes share, there as well: of release 0.1, and of servers that let such nodes in.
pub(crate) const NODE_TOKEN: &str = "node.token";

/// Runs the server until SIGTERM or SIGINT, or until it cannot go on.
pub fn run(mut config: ServerConfig) -> anyhow::Result<()> {
    // The port first: two servers on one port is the more frequent mistake, and its message the clearer.
    let listener = listener(&mut config)?;
    let tls = config.tls.as_ref().map(|(certificate, key)| Tls::read(certificate, key)).transpose();
    let tls = tls.map_err(|failure| anyhow::anyhow!("{failure}")).context("cannot use TLS")?;
    listener.set_nonblocking(true).context("cannot use the listener")?;
    datadir::close_new_files();
    // Keys that others could read are not made good by closing them.
    for key in [node_authority::FILE, vaults::FILE] {
        datadir::demand_closed(&config.data.join(key))?;
    }
    let was_open = datadir::take(&config.data, &|_| false)?;
    if let Some(warning) = was_open.warning(&config.data) {
        tracing::warn!("{warning}");
    }
    if let Err(error) = datadir::announce(&config.data) {
        tracing::warn!(
            "nodes of this host may show the data directory to jobs that run as the server's user: {error}"
        );
    }
    let address = listener.local_addr().context("cannot use the listener")?;
    let started = start(&config, address)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .thread_name("server")
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(config, listener, tls, started))
}

/// The socket that systemd or `millpond up` has handed over (`LISTEN_FDS`), whose address counts then; else a new one. Only a
/// socket that outlives the server keeps the port: jobs share the host's network and could take it while the server restarts.
fn listener(config: &mut ServerConfig) -> anyhow::Result<std::net::TcpListener> {
    let handed = listenfd::ListenFd::from_env().take_tcp_listener(0);
    let Some(listener) = handed.context("cannot use the socket that was handed over in LISTEN_FDS")? else {
        let listener = std::net::TcpListener::bind(config.listen).with_context(|| {
            format!("cannot listen on {}: is another server running there?", config.listen)
        })?;
        match hold_other_family(listener.local_addr().context("cannot use the listener")?) {
            // Until the process ends.
            Ok(held) => std::mem::forget(held),
            Err(error) => tracing::warn!("{error}"),
        }
        return Ok(listener);
    };
    config.listen =
        listener.local_addr().context("cannot use the socket that was handed over in LISTEN_FDS")?;
    Ok(listener)
}

async fn serve(
    config: ServerConfig,
    listener: std::net::TcpListener,
    tls: Option<Tls>,
    Started { store: redb, vaults, authority, tokens, event_files, begin, kept }: Started,
) -> anyhow::Result<()> {
    let store: Arc<dyn Store> = Arc::new(SealingStore::new(redb.clone(), Arc::clone(&vaults)));
    let listener = TcpListener::from_std(listener).context("cannot use the listener")?;
    let address = listener.local_addr()?;
    if let Some(failure) = config.exposure(address) {
        tracing::warn!("{failure}");
    }
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
    let readers = Readers::default();
    let errands = {
        let mailbox = mailbox.clone();
        let collected = move || mailbox.send(Input::GarbageCollected);
        Garbage::start(Arc::clone(&store), readers.clone(), kept.blobs, collected)
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
            authority: Arc::clone(&authority),
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
        files: Files::new(Arc::clone(&store), rooms.clone(), readers.clone()),
        tables: Tables::new(Arc::clone(&store), rooms, readers.clone()),
        readers,
        changes,
        subjects_changed,
        measures: Arc::clone(&measures),
    };
    let settings = api::Settings {
        version: env!("CARGO_PKG_VERSION").into(),
        public_address: None,
        host_name: address.to_string(),
        only_near: !config.is_authenticated() && address.ip().to_canonical().is_loopback(),
        tls: tls.is_some(),
        in_flight: config.in_flight,
        limits: config.requests,
        node_authority: Some(authority.digest()),
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
        authority: Arc::clone(&authority),
        refusals: Arc::clone(&refusals),
        uploads: Arc::default(),
    });
    let in_clear = match config.insecure_plaintext_nodes {
        true => Entrance::Insecure(node_token),
        false => Entrance::Closed,
    };
    let router = with_security_headers(with_page(api.router()));
    let router = node_gate::with_calls(router, &nodes, &in_clear);
    let router = measured(router, Arc::clone(&measures));
    let door = NodeDoor {
        server_name: NODE_SERVER_NAME,
        config: Box::new(move || authority.serving()),
        router: measured(node_gate::door(&nodes), measures),
    };
    if config.insecure_plaintext_nodes {
        tracing::warn!("{}", insecure_plaintext_nodes().message);
    }
    if tls.is_none() && config.is_authenticated() && !address.ip().to_canonical().is_loopback() {
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
    let doors = Doors { public: router, tls, nodes: Some(door) };
    api::serve(listener, doors, most_connections(), shutdown, Grace::of_requests(STOP_GRACE)).await;
    let stop = move || {
        core.stop();
        if let Some(log) = event_log {
            log.stop();
        }
    };
    tokio::task::spawn_blocking(stop).await.context("the kernel did not stop cleanly")?;
    Ok(())
}

/// `insecure_plaintext_nodes`, as long as the option is on.
pub(crate) fn insecure_plaintext_nodes() -> Failure {
    let text = "--insecure-plaintext-nodes: nodes are let in without TLS, by the token that all of them share. A thief of that \
                token can register as any node without an identity and gets jobs and vaults of all users. Give each node an \
                identity with `millpond node join`, and start the server without the option";
    Failure::new(text).with("alert_type", "insecure_plaintext_nodes")
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

pub(crate) fn number_of_key(key: &[u8]) -> Option<u64> {
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

/// The way back from the store while the process goes on.
struct FromStore {
    config: ServerConfig,
    address: SocketAddr,
    store: Arc<RedbStore>,
    vaults: Arc<VaultKeys>,
    authority: Arc<NodeAuthority>,
    hub: Arc<Hub>,
    events: Option<Reader>,
    /// What the start of the process has held back.
    garbage: Option<HeldGarbage>,
    subjects_changed: Arc<AtomicU64>,
}

impl FromStore {
    fn read(&self) -> anyhow::Result<(Restored, Found)> {
        let first_event = self.events.as_ref().map(|events| events.last() + 1);
        let (records, found) = vaults::read(&*self.store, &self.vaults)?;
        let restored =
            read_kernel(&self.config, self.address, (&self.store, &self.vaults, records), first_event)?;
        Ok((restored, found))
    }

    /// Users, groups and tokens are what the store says, which may be older.
    fn forget_users(&self) {
        self.subjects_changed.fetch_add(1, Ordering::AcqRel);
    }

    /// Garbage is not collected here: contents that are being uploaded have no reference yet.
    fn start_anew(&self) -> anyhow::Result<Restored> {
        // A start on a full disk could not.
        self.vaults.write().context("cannot write the key of secure vaults")?;
        self.store.reopen()?;
        self.authority.keep(&*self.store)?;
        let ((mut kernel, mut effects), found) = self.read()?;
        self.vaults.take_over(&self.store, &found, During::Work)?;
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
        read.map(|((kernel, _), _)| kernel)
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
