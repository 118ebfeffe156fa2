//! The life of the process: open the store, recover the kernel, listen, stop cleanly.

use crate::archive::Archive;
use crate::backend::ServerBackend;
use crate::core_thread::{CoreThread, now};
use crate::files::Files;
use crate::garbage::{Garbage, collect};
use crate::hub::Hub;
use crate::node_service::Nodes;
use anyhow::Context;
use kernel::{Config, Kernel, Records};
use std::net::SocketAddr;
use std::ops::{Bound, ControlFlow};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::{RedbStore, Store};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use vocab::{Failure, Span};
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
        }
    }
}

/// Runs the server until SIGTERM or SIGINT, or until it cannot go on.
pub fn run(config: ServerConfig) -> anyhow::Result<()> {
    // The port first: two servers on one port is the more frequent mistake, and its message the clearer.
    let listener = std::net::TcpListener::bind(config.listen)
        .with_context(|| format!("cannot listen on {}: is another server running there?", config.listen))?;
    listener.set_nonblocking(true).context("cannot use the listener")?;
    std::fs::create_dir_all(&config.data)
        .with_context(|| format!("cannot make the data directory {}", config.data.display()))?;
    let store: Arc<dyn Store> = Arc::new(RedbStore::open(&config.data)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .thread_name("server")
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve(config, listener, store))
}

async fn serve(
    config: ServerConfig,
    listener: std::net::TcpListener,
    store: Arc<dyn Store>,
) -> anyhow::Result<()> {
    let listener = TcpListener::from_std(listener).context("cannot use the listener")?;
    let address = listener.local_addr()?;
    let (kernel, effects) = recover(&config, address, &*store)?;
    let hub = Arc::new(Hub::default());
    let garbage = Garbage::start(Arc::clone(&store));
    let core = {
        let (deliver_hub, fail_hub) = (Arc::clone(&hub), Arc::clone(&hub));
        let deliver = move |effect| {
            if let Some(errand) = deliver_hub.deliver(effect) {
                garbage.errand(errand);
            }
        };
        let store_failed = move |error: store::StoreError, held| {
            tracing::error!(%error, "the store cannot be written any more: nothing is acknowledged until a restart");
            let failure = Failure::new(format!("The server cannot write its store: {error}"));
            fail_hub.fail(&failure, held);
        };
        CoreThread::start(kernel, effects, Arc::clone(&store), deliver, store_failed)
    };
    let backend = ServerBackend {
        mailbox: core.mailbox(),
        hub: Arc::clone(&hub),
        archive: Archive::new(Arc::clone(&store)),
        files: Files::new(Arc::clone(&store)),
    };
    let settings = api::Settings {
        version: env!("CARGO_PKG_VERSION").into(),
        public_address: None,
        host_name: address.to_string(),
    };
    let api = api::Api::new(Arc::new(backend.clone()), Arc::new(api::OpenAccess), settings);
    let nodes = NodeServiceServer::new(Nodes { backend, store: Arc::clone(&store) })
        .max_decoding_message_size(MAX_MESSAGE_SIZE)
        .max_encoding_message_size(MAX_MESSAGE_SIZE);
    let router = api.router().route_service("/millpond.node.v1.NodeService/{method}", nodes);
    tracing::info!(%address, data = %config.data.display(), "the server is ready");

    let stop_hub = Arc::clone(&hub);
    let shutdown = async move {
        told_to_stop().await;
        tracing::info!("stopping");
        // Nodes keep their jobs and look for the next server.
        stop_hub.close_all();
    };
    api::serve(listener, router, shutdown, STOP_GRACE).await;
    tokio::task::spawn_blocking(move || core.stop()).await.context("the kernel did not stop cleanly")?;
    Ok(())
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

/// Reads the store and brings the kernel back.
fn recover(
    config: &ServerConfig,
    address: SocketAddr,
    store: &dyn Store,
) -> anyhow::Result<(Kernel, Vec<kernel::Effect>)> {
    let mut records = Records::default();
    for table in Records::TABLES {
        store.scan(*table, Bound::Unbounded, Bound::Unbounded, false, &mut |key, value| {
            records.add(*table, key, value);
            ControlFlow::Continue(())
        })?;
    }
    let mut settings = Config::new(&address.to_string(), seed_of_ids(now(), store.life()));
    settings.default_tree.clone_from(&config.default_tree);
    settings.cluster_name.clone_from(&config.cluster_name);
    settings.heartbeat_period = config.heartbeat_period;
    let mut effects = Vec::new();
    let kernel = Kernel::recover(settings, records, now(), &mut effects)?;
    let removed = collect(store, kernel.blobs())?;
    if removed > 0 {
        tracing::info!(removed, "removed contents that nothing refers to");
    }
    Ok((kernel, effects))
}

/// Different for every life of every cluster: the life's number alone would give two clusters the same
/// ids, the clock alone might be set back.
fn seed_of_ids(now: vocab::Time, life: u64) -> u64 {
    (now.as_micros() << 16) ^ life
}
