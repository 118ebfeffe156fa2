//! Bringing a node up and down.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use cage::{Capabilities, Driver, EnvironmentConfig, JobEnvironment};
use datadir::SecretError;
use nodecore::{NodeCore, NodeInput, Settings};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tonic::transport::Endpoint;
use vocab::Failure;
use yson::Value;

use crate::agent::{Agent, News, since_start_of_host, wall_clock};
use crate::config::DriverChoice;
use crate::holder::Holder;
use crate::identity::Place;
use crate::join::obtain;
use crate::link::{CurrentClient, Link, check_address, endpoint, keep_connected};
use crate::real::{
    Claims, Isolator, Layout, RealHands, RealNews, accept, bind, data_directory, data_id, group_name,
    read_confirmed, recover,
};
use crate::{NodeConfig, NodeError, RoomOptions};

/// How a node is to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The agent only: jobs go on, the next life of the node takes them over.
    LeaveJobs,
    /// Jobs are aborted first.
    AbortJobs,
}

/// Runs a node in this thread until SIGTERM or SIGINT; `at_signal` says what becomes of the jobs.
pub fn run(config: NodeConfig, at_signal: Stop) -> Result<(), NodeError> {
    // A signal that comes while the node starts waits until it has started: its self-checks have processes and groups, which
    // nobody would remove.
    block_on(config, || Caller::Signals(Signals::catch(), at_signal))
}

/// Stops the node, and hears when it has started.
enum Caller {
    /// The process is the node's.
    Signals(std::io::Result<Signals>, Stop),
    /// Of [`spawn`].
    Thread(std::sync::mpsc::Sender<Stopper>),
}

impl Caller {
    /// Waits until the node is to stop, although it has not started.
    async fn gives_up(&mut self) {
        match self {
            Caller::Signals(Ok(signals), _) => signals.first().await,
            Caller::Signals(Err(_), _) | Caller::Thread(_) => std::future::pending().await,
        }
    }

    fn started(self, stopper: Stopper) {
        match self {
            Caller::Signals(Ok(mut signals), at_signal) => {
                tokio::spawn(async move {
                    signals.first().await;
                    stopper.stop(at_signal);
                });
            }
            Caller::Signals(Err(error), _) => tracing::warn!(%error, "signals cannot be caught"),
            Caller::Thread(sender) => {
                let _ = sender.send(stopper);
            }
        }
    }
}

/// SIGTERM and SIGINT, from the moment when they are caught.
struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    fn catch() -> std::io::Result<Signals> {
        Ok(Signals { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    /// Waits for the first one, which may have come already.
    async fn first(&mut self) {
        tokio::select! { _ = self.term.recv() => {}, _ = self.int.recv() => {} }
    }
}

/// A node in a thread of its own.
#[derive(Debug)]
pub struct NodeHandle {
    stopper: Stopper,
    thread: JoinHandle<Result<(), NodeError>>,
}

impl NodeHandle {
    /// Ends the node and waits for it.
    pub fn stop(self, how: Stop) -> Result<(), NodeError> {
        self.stopper.stop(how);
        self.join()
    }
    /// Waits until the node ends by itself.
    pub fn join(self) -> Result<(), NodeError> {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Starts a node beside other things; returns when it listens, or cannot. Signals are the caller's.
pub fn spawn(config: NodeConfig) -> Result<NodeHandle, NodeError> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new()
        .name("node".to_owned())
        .spawn(move || block_on(config, || Caller::Thread(sender)))
        .map_err(NodeError::io("start a thread for", Path::new("node")))?;
    match receiver.recv() {
        Ok(stopper) => Ok(NodeHandle { stopper, thread }),
        // The thread has ended without coming that far.
        Err(_) => match thread.join() {
            Ok(Err(error)) => Err(error),
            Ok(Ok(())) => unreachable!("a node that has not started does not end well"),
            Err(panic) => std::panic::resume_unwind(panic),
        },
    }
}

/// Tells a node to end.
#[derive(Clone, Debug)]
struct Stopper(UnboundedSender<News<RealNews>>);

impl Stopper {
    fn stop(&self, how: Stop) {
        let _ = self.0.send(News::Stop { stop_jobs: how == Stop::AbortJobs });
    }
}

/// One thread for everything: at two thousand jobs per second most of what a second one would win is
/// lost again in waking it up.
///
/// `caller` is made in the runtime before anything is done.
fn block_on(config: NodeConfig, caller: impl FnOnce() -> Caller) -> Result<(), NodeError> {
    // Spawner, job proxies and jobs inherit it: what a job writes is closed to other users unless the job opens it.
    datadir::close_new_files();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // Made when needed. A process that cannot be killed holds one for as long as we wait for it, and must
        // not keep the kills of others waiting.
        .max_blocking_threads(64)
        .build()
        .map_err(NodeError::io("start a runtime in", &config.data_directory))?;
    let result = runtime.block_on(async {
        let caller = caller();
        node(config, caller).await
    });
    // Downloads and deletions that are under way are cut off: they are begun anew.
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

async fn node(mut config: NodeConfig, caller: Caller) -> Result<(), NodeError> {
    if !config.insecure_plaintext && config.token_file.is_some() {
        tracing::warn!(
            "token_file is not used: this node has an identity of its own, or gets one by --join-token-file; \
             the token of all nodes counts only with --insecure-plaintext"
        );
        config.token_file = None;
    }
    // It may come later; one that others can read is a mistake to tell at once.
    if let Some(file) = &config.token_file
        && let Err(open @ SecretError::Open { .. }) = datadir::read_secret(file)
    {
        return Err(NodeError::Secret(open));
    }
    let insecure = match config.insecure_plaintext {
        true => Some(Box::new(endpoint(&config.server, config.ca_file.as_deref())?)),
        false => {
            check_address(&config.server)?;
            None
        }
    };
    Place::new(&config.data_directory).demand_closed()?;
    let was_open = datadir::take_with(&config.data_directory, &Layout::care)?;
    if let Some(warning) = was_open.warning(&config.data_directory) {
        tracing::warn!("{warning}");
    }
    let _lock = data_directory(&config.data_directory)?;
    let layout = Layout::create(&config.data_directory)?;
    config.root_group = Some(group_name(&config, &layout)?);
    let _claims = Claims::take(&config, &layout)?;
    datadir::announce(layout.root())?;
    let (environment, capabilities) = open_environment(&config)?;
    let environment: Arc<dyn JobEnvironment> = Arc::from(environment);
    let ran =
        with_environment((config, insecure), layout, Arc::clone(&environment), capabilities, caller).await;
    if ran.is_err() {
        // Those that are empty: jobs of an earlier life go on.
        let _ = environment.remove_root();
    }
    ran
}

async fn with_environment(
    (mut config, insecure): (NodeConfig, Option<Box<Endpoint>>),
    layout: Layout,
    environment: Arc<dyn JobEnvironment>,
    capabilities: Capabilities,
    mut caller: Caller,
) -> Result<(), NodeError> {
    let slots_directory = layout.slots();
    // Listen first: living proxies try every second and may as well succeed at once.
    let listener = bind(&config.socket_path())?;
    let kill_timeout = Duration::from_micros(config.kill_timeout.0);
    let place = Place::new(layout.root());
    config.authentication = match insecure {
        Some(_) => config.token_file.is_some(),
        None => place.load()?.is_some_and(|identity| identity.authentication),
    };
    let mut chosen = Isolator::choose(&config, &layout, environment.as_ref())?;
    let link = match insecure {
        Some(endpoint) => Link::Insecure { endpoint, token_file: config.token_file.clone() },
        None => {
            // Before anything is offered: whether users must be kept apart is the server's to say.
            let identity = tokio::select! {
                identity = obtain(&config, &place) => identity?,
                // It may wait for an approval for days.
                () = caller.gives_up() => {
                    // Jobs of an earlier life go on: only what is empty is removed.
                    let _ = environment.remove_root();
                    return Ok(());
                }
            };
            if identity.authentication != config.authentication {
                config.authentication = identity.authentication;
                chosen = Isolator::choose(&config, &layout, environment.as_ref())?;
            }
            Link::Identity(Holder::new(&config, place, identity))
        }
    };
    let data_id = data_id(&layout)?;
    let boot_id = cage::process::boot_id().unwrap_or_default();
    let confirmed = read_confirmed(&layout.confirmed(), &boot_id, since_start_of_host());
    let as_nodes_user = match &chosen.isolator {
        None => Some("as --isolation none says: nothing keeps them apart from it"),
        Some(isolator) if !isolator.gives_users() => Some(
            "as do_not_set_user_id says, without its capabilities: they can read and change what is root's",
        ),
        Some(_) => None,
    };
    let found = recover(&layout, environment.as_ref(), kill_timeout)?;
    let (news, queue) = unbounded_channel();
    let current = CurrentClient::default();
    let hands = RealHands::new(
        &config,
        layout,
        Arc::clone(&environment),
        current.clone(),
        news.clone(),
        &found,
        chosen.isolator,
    )?;
    if config.accounting.use_memory_high && environment.driver() != Driver::CgroupV2 {
        return Err(NodeError::Option {
            option: "use_memory_high",
            why: format!("it needs the job environment cgroup_v2, this node has {}", environment.driver()),
        });
    }
    let mut settings = settings(&config, environment.as_ref(), &capabilities);
    settings.data_id = data_id;
    settings.disk_capacity = disk_capacity(&config.room, &slots_directory);
    if let Some(alert) = chosen.alert {
        tracing::warn!("{alert}");
        if chosen.disabled {
            // A node must not offer more than it can enforce (jobs-and-nodes.md 3.2).
            settings.resource_limits.user_slots = 0;
            let message = alert.message.clone();
            tokio::spawn(enable_later(config.clone(), Arc::clone(&environment), message, news.clone()));
        }
        settings.alerts.push(alert);
    }
    let is_root = rustix::process::geteuid().is_root();
    if let (true, Some(why)) = (is_root, as_nodes_user) {
        let text = format!(
            "Jobs run as root of this host, {why}; leave the option out, or run this node as another user"
        );
        tracing::warn!("{text}");
        settings.alerts.push(Failure::new(text).with("alert_type", "jobs_run_as_root"));
    }
    if config.insecure_plaintext {
        let text = "--insecure-plaintext: this node speaks with the server in clear, by the token that all nodes share. An \
                    attacker who has either can take its place, or give it jobs as the server would";
        tracing::warn!("{text}");
        settings.alerts.push(Failure::new(text).with("alert_type", "insecure_node_link"));
    }
    if config.room.enable_tmpfs && !is_root {
        let text = "Memory file systems of jobs are plain directories: mounting them needs root";
        settings.alerts.push(Failure::new(text).with("not_enforced", vec![Value::from("tmpfs volumes")]));
    }
    let mut core = NodeCore::new(settings);
    confirmed.into_iter().for_each(|from| core.recall_confirmed(from));
    tracing::info!(
        address = config.address,
        environment = environment.driver().as_str(),
        recovered = found.jobs.len(),
        "node started"
    );
    let mut agent = Agent::new(core, hands, queue, NodeInput::Recovered(found.jobs));
    tokio::spawn(accept(listener, news.clone()));
    let holder = match &link {
        Link::Identity(holder) => Some(Arc::clone(holder)),
        Link::Insecure { .. } => None,
    };
    if let Some(holder) = &holder {
        tokio::spawn(Arc::clone(holder).keep_renewed(current.clone(), news.clone()));
    }
    tokio::spawn(keep_connected(link, current, news.clone()));
    caller.started(Stopper(news));
    agent.run().await;
    if agent.living_jobs() == 0 {
        // Nobody needs the groups any more, and the spawner must not sit in one.
        agent.into_hands().end_spawner();
        remove_groups(environment.as_ref()).await;
    }
    match holder.is_some_and(|holder| holder.wants_restart()) {
        true => Err(NodeError::StartAgain("authentication is on in this cluster now")),
        false => Ok(()),
    }
}

/// Tries the self-check again until it passes, then offers what the node has and takes the alert back.
async fn enable_later(
    config: NodeConfig,
    environment: Arc<dyn JobEnvironment>,
    alert: String,
    news: UnboundedSender<News<RealNews>>,
) {
    loop {
        tokio::time::sleep(SELF_CHECK_PERIOD).await;
        let (options, environment) = (config.clone(), Arc::clone(&environment));
        let passes = tokio::task::spawn_blocking(move || {
            let layout = Layout::create(&options.data_directory).ok()?;
            let chosen = Isolator::choose(&options, &layout, environment.as_ref()).ok()?;
            Some(!chosen.disabled && chosen.isolator.is_some())
        });
        if passes.await.ok().flatten() == Some(true) {
            tracing::info!("jobs can be isolated again");
            let limits = NodeInput::ResourceLimits(config.resource_limits);
            for input in [NodeInput::FaultPassed(alert.clone()), limits] {
                let _ = news.send(News::Hands(RealNews::Input(input)));
            }
            return;
        }
    }
}

/// Between two self-checks of a node that did not pass the first one.
const SELF_CHECK_PERIOD: Duration = Duration::from_secs(5);

/// Removes the node's groups; proxies that are just leaving keep theirs busy for a moment.
async fn remove_groups(environment: &dyn JobEnvironment) {
    for attempt in 1.. {
        match environment.remove_root() {
            Ok(()) => return,
            Err(error) if attempt == REMOVE_ATTEMPTS => {
                tracing::warn!(%error, "groups of this node are left behind");
                return;
            }
            Err(_) => tokio::time::sleep(REMOVE_PAUSE).await,
        }
    }
}

/// Five seconds in all (jobs-and-nodes.md 4.4).
const REMOVE_ATTEMPTS: u32 = 250;
const REMOVE_PAUSE: Duration = Duration::from_millis(20);

/// What jobs may ask for of the disk under the sandboxes; none if the system does not say how large it is.
fn disk_capacity(room: &RoomOptions, slots: &Path) -> Option<i64> {
    let disk = rustix::fs::statvfs(slots).ok()?;
    let total = disk.f_blocks.saturating_mul(disk.f_frsize);
    let quota = room.disk_quota.map_or(total, |quota| quota.min(total));
    i64::try_from(quota.saturating_sub(room.disk_usage_watermark)).ok()
}

fn open_environment(config: &NodeConfig) -> Result<(Box<dyn JobEnvironment>, Capabilities), NodeError> {
    let where_to = EnvironmentConfig::new(&config.root_group());
    match config.driver {
        DriverChoice::Auto => Ok(cage::environment::open_auto(&where_to)?),
        DriverChoice::Exactly(driver) => {
            let environment = cage::open(driver, &where_to)?;
            environment.prepare().inspect_err(|_| drop(environment.remove_root()))?;
            let capabilities = environment.probe();
            Ok((environment, capabilities))
        }
    }
}

/// The alert of an environment that does not enforce everything (jobs-and-nodes.md 4.1).
fn not_enforced(driver: Driver, capabilities: &Capabilities) -> Option<Failure> {
    let missing = capabilities.missing();
    let text = format!("Job environment {driver} does not enforce {}", missing.join(", "));
    (!missing.is_empty()).then(|| {
        Failure::new(text)
            .with("job_environment", driver.as_str())
            .with("not_enforced", missing.iter().map(|what| Value::from(*what)).collect::<Vec<_>>())
    })
}

fn settings(config: &NodeConfig, environment: &dyn JobEnvironment, capabilities: &Capabilities) -> Settings {
    let mut settings = Settings::new(config.address.clone(), config.resource_limits);
    settings.incarnation = wall_clock().0;
    settings.authentication = config.authentication;
    settings.tags.clone_from(&config.tags);
    settings.job_environment = environment.driver().as_str().to_owned();
    if let Some(alert) = not_enforced(environment.driver(), capabilities) {
        if environment.driver() == Driver::Simple {
            // It is never chosen by itself, and one job can take the whole machine (S8).
            tracing::warn!("{alert}");
        }
        settings.alerts.push(alert);
    }
    settings.waiting_jobs_timeout = config.waiting_jobs_timeout;
    settings.job_proxy_preparation_timeout = config.job_proxy_preparation_timeout;
    settings.prepare_time_limit = config.prepare_time_limit;
    settings.kill_timeout = config.kill_timeout;
    settings.waiting_for_job_cleanup_timeout = config.waiting_for_job_cleanup_timeout;
    (settings.start_port, settings.port_count) = (config.start_port, config.port_count);
    config.accounting.tell_core(&mut settings);
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S16: a v1 kernel without `memory.kmem.tcp.limit_in_bytes` left the buffers of sockets unbounded, in silence.
    #[test]
    fn s16_a_kernel_without_a_bound_of_socket_buffers_is_an_alert() {
        let all = Capabilities {
            cpu_weight: true,
            cpu_cap: true,
            memory_limit: true,
            socket_memory: true,
            pids: true,
            kill_file: true,
            freeze: true,
            tracking: true,
        };
        assert_eq!(not_enforced(Driver::CgroupV1, &all), None);
        let unbounded = Capabilities { socket_memory: false, ..all };
        let alert = not_enforced(Driver::CgroupV1, &unbounded).expect("an alert");
        assert_eq!(alert.message, "Job environment cgroup_v1 does not enforce limit of socket buffers");
        let listed = alert.attributes.get("not_enforced").and_then(Value::as_list).expect("a list");
        assert_eq!(listed, [Value::from("limit of socket buffers")]);
        // Without a bound of memory, buffers are the smaller part of what is said already.
        let nothing = not_enforced(Driver::Simple, &Capabilities::default()).expect("an alert");
        assert!(!nothing.message.contains("socket"), "{nothing}");
        assert!(nothing.message.contains("memory limit"), "{nothing}");
    }
}
