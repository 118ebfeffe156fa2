//! `millpond up`: one server and some nodes as child processes, for as long as somebody wants them.
//!
//! Order of things: check everything that can be checked (options, data directory, port), start the
//! server, start the nodes, wait until they are online, say so; then start again whatever dies, until
//! a signal: nodes stop their jobs and end, the server ends. A second signal kills.
//!
//! Children are in process groups of their own, so that Ctrl-C reaches the supervisor alone and the
//! order above can be kept. They read our stdin pipe and end with it: a supervisor that is killed
//! leaves no server behind.
//!
//! [`plan`] says what to run (no IO), [`child`] keeps one process alive, [`lock`] the data directory.

mod banner;
mod child;
mod lock;
mod plan;

use crate::bodies::{DEFAULT_LISTEN, wanted_auth};
use crate::config::FileConfig;
use crate::{machine, told};
use banner::Ready;
use child::{Child, Event, Order};
use cli::CliError;
use cli::args::{Common, UpArgs};
use cli::error::exit;
use cli::output::Screen;
use client::{Client, Retries};
use plan::{Options, Plan};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use vocab::Span;
use yson::Value;

/// How long the server may take to answer at first: it reads its store.
const SERVER_START: Duration = Duration::from_secs(120);
/// How long nodes may take to come online before we say that they are late.
const NODES_START: Duration = Duration::from_secs(30);
/// How long nodes may take to stop their jobs, and the server to write.
const STOP: Duration = Duration::from_secs(60);
/// A port may still be held by the server of a supervisor that has just been killed.
const PORT_PATIENCE: Duration = Duration::from_secs(5);

/// Runs a cluster until a signal.
pub fn run(common: &Common, args: &UpArgs) -> Result<(), CliError> {
    let screen = Screen::new(cli::commands::form(common));
    let file = FileConfig::load(args.config.as_deref())?;
    let mut options = options(args, &file)?;
    datadir::close_new_files();
    crate::bodies::keep_memory(true);
    // Server and nodes look into their own directories.
    let is_childrens =
        |path: &std::path::Path| path.is_dir() && path.file_name().is_none_or(|name| name != "logs");
    let was_open = datadir::take(&options.data, &is_childrens).map_err(told)?;
    if let Err(error) = datadir::announce(&options.data) {
        screen.tell(&format!(
            "other nodes of this host may show {} to jobs of the same user: {error}",
            options.data.display()
        ));
    }
    // Children may have other ideas of where they are.
    options.data = options.data.canonicalize().map_err(told)?;
    if let Some(warning) = was_open.warning(&options.data) {
        screen.tell(&warning);
    }
    let lock = lock::take(&options.data)?;
    let socket = listen(options.listen, if lock.was_killed { PORT_PATIENCE } else { Duration::ZERO })?;
    options.listen = socket.local_addr().map_err(told)?;
    let _held = server::hold_other_family(options.listen).unwrap_or_else(|error| {
        screen.tell(&error.to_string());
        None
    });
    let plan = plan::plan(&options);
    child::keep_old_logs(&plan.logs).map_err(told)?;

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(told)?;
    let result = runtime.block_on(supervise(&screen, &options, plan, socket));
    // A request to a server that has gone may still be waiting for its timeout.
    runtime.shutdown_background();
    drop(lock);
    result
}

fn options(args: &UpArgs, file: &FileConfig) -> Result<Options, CliError> {
    let data = match args.data.clone().or_else(|| file.up.data.clone()) {
        Some(data) => data,
        None => machine::data_directory(|name| std::env::var(name).ok())?,
    };
    let nodes = args.nodes.or(file.up.nodes).unwrap_or(1);
    if file.server.tls_cert.is_some() || file.server.tls_key.is_some() {
        let text = "a cluster of one machine does not speak TLS: tls_cert is for `millpond server`";
        return Err(CliError::usage(text));
    }
    let offered = args.node_resources.clone().or_else(|| file.node.resources.clone()).unwrap_or_default();
    Ok(Options {
        listen: args.listen.or(file.server.listen).unwrap_or(DEFAULT_LISTEN),
        data,
        nodes,
        resources: offered.over(machine::resources(nodes, file.node.node_dedicated_cpu)),
        job_environment: args.job_environment.clone(),
        isolation: args.isolation.clone(),
        auth: wanted_auth(args.auth, args.no_auth).or(file.server.auth),
        new_cluster: args.new_cluster,
        new_node_authority: args.new_node_authority,
        new_vault_key: args.new_vault_key,
        abandon_locked_vaults: args.abandon_locked_vaults,
        config: args.config.as_ref().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())),
        verbose: args.verbose,
        host: machine::host_name(),
    })
}

/// The server's socket, before anything is started. This process keeps it open: jobs share the host's network, and between two
/// lives of the server one of them could take the port and be shown tokens.
fn listen(listen: SocketAddr, patience: Duration) -> Result<TcpListener, CliError> {
    let give_up = std::time::Instant::now() + patience;
    loop {
        match TcpListener::bind(listen) {
            Ok(listener) => return Ok(listener),
            Err(e) if e.kind() == std::io::ErrorKind::AddrInUse => {
                if std::time::Instant::now() < give_up {
                    std::thread::sleep(Duration::from_millis(200));
                    continue;
                }
                let other = SocketAddr::new(listen.ip(), listen.port().wrapping_add(1).max(1024));
                return Err(CliError::failed(format!("port {} is in use by another program", listen.port()))
                    .with_hint(format!(
                        "if it is a cluster, use it; else take another port: --listen {other}"
                    )));
            }
            Err(e) => return Err(CliError::failed(format!("cannot listen on {listen}: {e}"))),
        }
    }
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    async fn next(&mut self) {
        tokio::select! { _ = self.interrupt.recv() => {}, _ = self.terminate.recv() => {} }
    }
}

async fn supervise(
    screen: &Screen,
    options: &Options,
    plan: Plan,
    socket: TcpListener,
) -> Result<(), CliError> {
    let mut signals = Signals {
        interrupt: signal(SignalKind::interrupt()).map_err(told)?,
        terminate: signal(SignalKind::terminate()).map_err(told)?,
    };
    let (sender, mut events) = unbounded_channel();
    screen.tell(&format!("starting a cluster in {}", options.data.display()));
    if !options.is_authenticated()
        && let Some(exposed) = server::exposure(options.listen)
    {
        screen.tell(&exposed.message);
    }
    let mut server = Child::start(plan.server, Some(Arc::new(socket)), sender.clone());
    let mut nodes = Vec::new();

    let begun = tokio::select! {
        answer = wait_for_server(options, &mut events) => answer.map(|()| true),
        () = signals.next() => Ok(false),
    };
    let mut result = Ok(());
    match begun {
        Ok(true) => {
            server.keep_alive();
            let written = tokio::select! {
                written = write_join_tokens(options) => Some(written),
                () = signals.next() => None,
            };
            let Some(written) = written else {
                return match stop(screen, &mut signals, &mut server, nodes).await {
                    true => Ok(()),
                    false => Err(CliError::Silent(exit::INTERRUPTED)),
                };
            };
            if let Err(error) = written {
                // Nodes that have joined before need none; others wait for it.
                screen.tell(&format!(
                    "nodes have no join tokens yet: {}",
                    error.render(false).unwrap_or_default().trim_end()
                ));
                tokio::spawn(write_join_tokens_later(options.clone()));
            }
            nodes = plan.nodes.into_iter().map(|plan| Child::start(plan, None, sender.clone())).collect();
            let count = nodes.len();
            let online = tokio::select! {
                answer = wait_for_nodes(options, count, &mut events, screen) => answer.map(Some),
                () = signals.next() => Ok(None),
            };
            match online {
                Ok(Some(are_all_online)) => {
                    nodes.iter().for_each(Child::keep_alive);
                    if are_all_online {
                        tokio::spawn(end_join_tokens(options.clone()));
                    }
                    result = screen.show(&Ready::new(options));
                    tokio::select! {
                        () = report(screen, &mut events) => {}
                        () = signals.next() => {}
                    }
                }
                Ok(None) => {}
                Err(error) => result = Err(error),
            }
        }
        Ok(false) => {}
        Err(error) => result = Err(error),
    }
    // Whoever closes our stdout does not want the cluster to end.
    match stop(screen, &mut signals, &mut server, nodes).await {
        true => result,
        false => Err(CliError::Silent(exit::INTERRUPTED)),
    }
}

/// Until the server answers, or has ended instead.
async fn wait_for_server(options: &Options, events: &mut UnboundedReceiver<Event>) -> Result<(), CliError> {
    let give_up = tokio::time::Instant::now() + SERVER_START;
    loop {
        tokio::select! {
            Some(event) = events.recv() => return Err(event.into_error("could not be started")),
            // Until the server accepts connections, the question waits in the queue of the socket.
            online = online_nodes(options) => if online.is_some() { return Ok(()) },
            () = tokio::time::sleep(SERVER_START) => {}
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
        if tokio::time::Instant::now() > give_up {
            let log = options.log("server");
            return Err(CliError::failed(format!("the server does not answer on {}", options.listen))
                .with_hint(format!("its log is {}", log.display())));
        }
    }
}

/// Until all nodes are online (true), or one has ended instead. Late nodes are no reason to stop.
async fn wait_for_nodes(
    options: &Options,
    count: usize,
    events: &mut UnboundedReceiver<Event>,
    screen: &Screen,
) -> Result<bool, CliError> {
    let give_up = tokio::time::Instant::now() + NODES_START;
    loop {
        if online_nodes(options).await.is_some_and(|n| n >= count) {
            return Ok(true);
        }
        if tokio::time::Instant::now() > give_up {
            screen.tell(&format!(
                "not all nodes are online yet; their logs are in {}",
                options.logs().display()
            ));
            return Ok(false);
        }
        tokio::select! {
            Some(event) = events.recv() => match event.child.as_str() {
                "server" => screen.tell(&event.describe()),
                _ if !event.is_final() => screen.tell(&event.describe()),
                _ => return Err(event.into_error("could not be started")),
            },
            () = tokio::time::sleep(Duration::from_millis(30)) => {}
        }
    }
}

/// How long the join tokens of a start are valid: as long as a node may take to start.
const TOKEN_TTL: Span = Span::from_secs(600);

/// A join token for each node, in a file that only the node's user can read. A node that has its identity does not use it, one
/// without, or with one that does not count any more, gets another one.
async fn write_join_tokens(options: &Options) -> Result<(), CliError> {
    let (options, token) = (options.clone(), token(options));
    let write = move || {
        let client = Client::new(&plan::reachable(options.listen).to_string(), token.as_deref())?;
        for number in 1..=options.nodes {
            let file = options.join_token(number);
            let failed =
                |error| CliError::failed(format!("cannot write the join token {}: {error}", file.display()));
            match std::fs::remove_file(&file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
            let token = client.create_join_token(Some(&options.node_name(number)), Some(TOKEN_TTL), true)?;
            datadir::write_secret(&file, format!("{token}\n")).map_err(failed)?;
        }
        Ok(())
    };
    tokio::task::spawn_blocking(write).await.map_err(told)?
}

/// The same until it succeeds: the disk of the server may be full at the start.
async fn write_join_tokens_later(options: Options) {
    loop {
        tokio::time::sleep(TOKEN_PAUSE).await;
        if write_join_tokens(&options).await.is_ok() {
            return;
        }
    }
}

/// All nodes have their identities: ends the tokens that they did not need. Each could replace one of the nodes.
async fn end_join_tokens(options: Options) {
    let token = token(&options);
    let end = move || -> Result<(), client::ClientError> {
        let client = Client::new(&plan::reachable(options.listen).to_string(), token.as_deref())?;
        let names: Vec<String> = (1..=options.nodes).map(|number| options.node_name(number)).collect();
        let known = client.node_identities()?;
        let tokens = known.get("tokens").and_then(Value::as_list).into_iter().flatten();
        for token in tokens {
            let text = |key: &str| token.get(key).and_then(Value::as_str);
            let is_unused = token.get("used").and_then(Value::as_bool) == Some(false);
            if let (true, Some(name), Some(digest)) = (is_unused, text("name"), text("token_sha256"))
                && names.iter().any(|own| own == name)
            {
                client.revoke_join_token(digest)?;
            }
        }
        Ok(())
    };
    // If it fails, they end by themselves.
    let _ = tokio::task::spawn_blocking(end).await;
}

/// Between two attempts to get join tokens.
const TOKEN_PAUSE: Duration = Duration::from_secs(5);

/// Number of nodes that are online, if the server answers. Old records of nodes do not count.
async fn online_nodes(options: &Options) -> Option<usize> {
    let address = options.listen;
    let token = token(options);
    let ask = move || {
        let client = Client::new(&plan::reachable(address).to_string(), token.as_deref()).ok()?;
        let path = "//sys/scheduler/orchid/scheduler/cluster/exec_node_count";
        client.with_retries(Retries::NONE).get(path, &[]).ok()?.as_u64()
    };
    let count = tokio::task::spawn_blocking(ask).await.ok()??;
    usize::try_from(count).ok()
}

/// Ours, as root, if the server asks for one; else that of the environment.
fn token(options: &Options) -> Option<String> {
    match options.is_authenticated() {
        true => std::fs::read_to_string(options.root_token()).ok().map(|text| text.trim().to_owned()),
        false => Common::default().token(|name| std::env::var(name).ok()),
    }
}

/// Says what happens to children, for ever.
async fn report(screen: &Screen, events: &mut UnboundedReceiver<Event>) {
    while let Some(event) = events.recv().await {
        screen.tell(&event.describe());
    }
    std::future::pending().await
}

/// Nodes first, then the server. False if somebody had to be killed.
async fn stop(screen: &Screen, signals: &mut Signals, server: &mut Child, mut nodes: Vec<Child>) -> bool {
    screen.tell(match nodes.len() {
        0 => "stopping",
        _ => "stopping; nodes stop their jobs first (Ctrl-C again kills)",
    });
    let mut patience = Box::pin(async {
        tokio::select! { () = signals.next() => {}, () = tokio::time::sleep(STOP) => {} }
    });
    nodes.iter().for_each(|node| node.order(Order::Stop));
    let in_time = tokio::select! { () = all_ended(&mut nodes) => true, () = &mut patience => false };
    if !in_time {
        screen
            .tell("killing; jobs that are left end within ten minutes, or when the nodes are started again");
        nodes.iter().for_each(|node| node.order(Order::Kill));
        all_ended(&mut nodes).await;
    }
    server.order(if in_time { Order::Stop } else { Order::Kill });
    let in_time = in_time && tokio::select! { () = server.ended() => true, () = &mut patience => false };
    server.order(Order::Kill);
    server.ended().await;
    screen.tell("stopped");
    in_time
}

async fn all_ended(children: &mut [Child]) {
    for child in children {
        child.ended().await;
    }
}

/// Path for messages.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
