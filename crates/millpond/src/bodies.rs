//! `millpond server` and `millpond node`: settings from defaults, file and command line, in this order.

use crate::config::{FileConfig, NodeSection};
use crate::{logging, machine, told};
use cli::CliError;
use cli::args::{Common, DEFAULT_PROXY, NodeArgs, NodeJoinArgs, ServerArgs};
use datadir::memory;
use node::{Accounting, DriverChoice, NodeConfig, NodeError, Stop};
use server::{EventLogLimits, InFlightLimits, RequestLimits, Retention, ServerConfig, TreeLimits};
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};

/// Where the API is if nobody says otherwise.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8000);

/// Exit code of a node that must be started again to act on what the server has told it: EX_TEMPFAIL of sysexits.h.
pub const START_AGAIN: u8 = 75;

/// Runs the server process until it is told to stop.
pub fn server(common: &Common, args: &ServerArgs) -> Result<(), CliError> {
    let config = server_config(args, FileConfig::load(args.config.as_deref())?)?;
    logging::init(common);
    keep_memory(true);
    if args.supervised {
        stop_with_stdin()?;
    }
    server::run(config).map_err(told)
}

fn server_config(args: &ServerArgs, file: FileConfig) -> Result<ServerConfig, CliError> {
    let file = file.server;
    let data = match args.data.clone().or(file.data) {
        Some(data) => data,
        None => machine::data_directory(|name| std::env::var(name).ok())?.join("server"),
    };
    let mut config = ServerConfig::new(args.listen.or(file.listen).unwrap_or(DEFAULT_LISTEN), data);
    config.default_tree = file.default_tree.unwrap_or(config.default_tree);
    config.cluster_name = file.cluster_name.unwrap_or(config.cluster_name);
    config.heartbeat_period = file.heartbeat_period.unwrap_or(config.heartbeat_period);
    config.tokens_file = file.tokens_file;
    config.job_uids = file.job_uids;
    config.tls = match (args.tls_cert.clone().or(file.tls_cert), args.tls_key.clone().or(file.tls_key)) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err(CliError::usage("TLS needs both the certificate, tls_cert, and its key, tls_key")),
    };
    config.authentication = wanted_auth(args.auth, args.no_auth).or(file.auth);
    config.new_cluster = args.new_cluster;
    config.insecure_plaintext_nodes =
        args.insecure_plaintext_nodes || file.insecure_plaintext_nodes.unwrap_or(false);
    config.node_approval = file.node_approval.unwrap_or(config.node_approval);
    config.node_certificate_ttl = file.node_certificate_ttl.unwrap_or(config.node_certificate_ttl);
    config.new_node_authority = args.new_node_authority;
    config.new_vault_key = args.new_vault_key;
    config.abandon_locked_vaults = args.abandon_locked_vaults;
    let usual = config.in_flight;
    config.in_flight = InFlightLimits {
        per_user: file.max_unread_bytes_per_user.map_or(usual.per_user, i64::unsigned_abs),
        total: file.max_unread_bytes.map_or(usual.total, i64::unsigned_abs),
    };
    let count = |given: Option<u32>, usual: usize| given.map_or(usual, |count| count as usize);
    let usual = config.requests;
    config.requests = RequestLimits {
        spec_size: file.max_spec_size.map_or(usual.spec_size, |size| size.unsigned_abs() as usize),
        values: count(file.max_values_per_request, usual.values),
        batch_requests: count(file.max_batch_requests, usual.batch_requests),
    };
    let usual = TreeLimits::default();
    config.limits = TreeLimits {
        max_nodes_per_request: count(file.max_nodes_per_request, usual.max_nodes_per_request),
        max_nodes_per_transaction: count(file.max_nodes_per_transaction, usual.max_nodes_per_transaction),
        max_values_per_read: count(file.max_values_per_read, usual.max_values_per_read),
        max_attribute_count: count(file.max_attributes_per_node, usual.max_attribute_count),
        max_acl_entries: count(file.max_acl_entries, usual.max_acl_entries),
        max_acl_names: count(file.max_acl_names, usual.max_acl_names),
        max_transactions_per_user: count(file.max_transactions_per_user, usual.max_transactions_per_user),
        max_locks_per_user: count(file.max_locks_per_user, usual.max_locks_per_user),
        account_node_count: file.account_node_count.map_or(usual.account_node_count, i64::from),
        account_memory: file.account_memory.unwrap_or(usual.account_memory),
        ..usual
    };
    config.account_disk_space = file.account_disk_space;
    let usual = EventLogLimits::default();
    let files = file.event_log_files.map_or(usual.files, |n| n as usize);
    let file_size = file.event_log_file_size.map_or(usual.file_size, i64::unsigned_abs);
    let usual = config.retention;
    config.retention = Retention {
        max_operations: file.archive_operations.map_or(usual.max_operations, |n| n as usize),
        max_age: file.archive_age.or(usual.max_age),
        max_bytes: file.archive_size.map(i64::unsigned_abs).or(usual.max_bytes),
        max_unfinished_bytes_per_user: file
            .archive_size_per_user
            .map_or(usual.max_unfinished_bytes_per_user, i64::unsigned_abs),
    };
    config.event_log = (files > 0).then_some(EventLogLimits { file_size, files });
    Ok(config)
}

/// Keeps what this process knows out of core dumps. Job proxies inherit the limit; jobs have the same one of their own.
pub fn keep_memory(is_closed: bool) {
    let closed =
        memory::no_core_dumps().and_then(|()| if is_closed { memory::close_memory() } else { Ok(()) });
    if let Err(error) = closed {
        tracing::warn!(%error, "cannot switch off core dumps: after a crash a dump of this process may have tokens in it");
    }
}

/// What the two flags say, if one of them is there.
pub fn wanted_auth(auth: bool, no_auth: bool) -> Option<bool> {
    match (auth, no_auth) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// Runs the node process until it is told to stop.
pub fn node(common: &Common, args: &NodeArgs) -> Result<(), CliError> {
    let file = FileConfig::load(args.config.as_deref())?.node;
    let has_start_uid = file.start_uid.is_some();
    let config = node_config(args, file)?;
    let at_signal = if args.stop_jobs { Stop::AbortJobs } else { Stop::LeaveJobs };
    logging::init(common);
    if has_start_uid {
        tracing::warn!(
            "start_uid of [node] does not choose the users of jobs any more: each user of the cluster has one uid of job_uids, \
             an option of [server]; give start_project_id for the projects of disk quotas"
        );
    }
    // Processes that are forked with closed memory can only be looked into with that right.
    keep_memory(memory::may_look_into_processes());
    if args.supervised {
        stop_with_stdin()?;
    }
    node::run(config, at_signal).map_err(|error| match error {
        NodeError::StartAgain(_) => {
            CliError::Told { message: error.to_string(), reasons: Vec::new(), hint: None, code: START_AGAIN }
        }
        other => told(other),
    })
}

/// Gives the node of this host its identity.
pub fn join(common: &Common, args: &NodeJoinArgs) -> Result<(), CliError> {
    let file = FileConfig::load(args.config.as_deref())?.node;
    logging::init(common);
    keep_memory(true);
    let name = args.name.clone().or(file.name).unwrap_or_else(machine::host_name);
    let data = data_of_node(args.data.clone().or(file.data), &name)?;
    let server = args.server.clone().or(file.server).unwrap_or_else(|| DEFAULT_PROXY.to_owned());
    let mut config = NodeConfig::new(&server, &name, &data, vocab::Resources::ZERO);
    config.join_token_file = args.join_token_file.clone().or(file.join_token_file);
    config.authority_sha256 = args.authority_sha256.clone().or(file.authority_sha256);
    datadir::close_new_files();
    let joined = node::join(&config).map_err(told)?;
    let screen = cli::output::Screen::new(cli::commands::form(common));
    screen.tell(&format!(
        "node {joined} has its identity in {}: start it with `millpond node`",
        data.display()
    ));
    Ok(())
}

/// Data directory of a node.
fn data_of_node(given: Option<std::path::PathBuf>, name: &str) -> Result<std::path::PathBuf, CliError> {
    match given {
        Some(data) => Ok(data),
        // A slash in a name must not lead elsewhere.
        None => Ok(machine::data_directory(|name| std::env::var(name).ok())?
            .join(format!("node-{}", name.replace('/', "_")))),
    }
}

fn node_config(args: &NodeArgs, file: NodeSection) -> Result<NodeConfig, CliError> {
    let accounting = accounting(&file);
    let name = args.name.clone().or(file.name).unwrap_or_else(machine::host_name);
    let data = data_of_node(args.data.clone().or(file.data), &name)?;
    let server = args.server.clone().or(file.server).unwrap_or_else(|| DEFAULT_PROXY.to_owned());
    let offered = args
        .resources
        .clone()
        .or(file.resources)
        .unwrap_or_default()
        .over(machine::resources(1, file.node_dedicated_cpu));
    let mut config = NodeConfig::new(&server, &name, &data, offered);
    config.tags = if args.tags.is_empty() { file.tags } else { args.tags.clone() };
    if let Some(name) = args.job_environment.as_ref().or(file.job_environment.as_ref()) {
        config.driver = name.parse::<DriverChoice>().map_err(told)?;
    }
    set(&mut config.cache_limit, file.cache_limit.map(i64::unsigned_abs));
    config.join_token_file = args.join_token_file.clone().or(file.join_token_file);
    config.authority_sha256 = args.authority_sha256.clone().or(file.authority_sha256);
    config.insecure_plaintext = args.insecure_plaintext || file.insecure_plaintext.unwrap_or(false);
    config.token_file = args.token_file.clone().or(file.token_file);
    let ca_file = args.ca_file.clone().or(file.ca_file);
    config.ca_file = ca_file.or_else(|| client::authorities(|name| std::env::var(name).ok()));
    set(&mut config.copy_files, file.copy_files);
    set(&mut config.waiting_jobs_timeout, file.waiting_jobs_timeout);
    set(&mut config.job_proxy_preparation_timeout, file.job_proxy_preparation_timeout);
    set(&mut config.prepare_time_limit, file.prepare_time_limit);
    set(&mut config.kill_timeout, file.kill_timeout);
    set(&mut config.waiting_for_job_cleanup_timeout, file.waiting_for_job_cleanup_timeout);
    set(&mut config.start_port, file.start_port);
    set(&mut config.port_count, file.port_count);
    set(&mut config.artifact_timeout, file.artifact_timeout);
    set(&mut config.memory_watchdog_period, file.memory_watchdog_period);
    set(&mut config.supervisor_lost_timeout, file.supervisor_lost_timeout);
    set(&mut config.check_user_job_memory_limit, file.check_user_job_memory_limit);
    set(&mut config.treat_job_proxy_failure_as_abort, file.treat_job_proxy_failure_as_abort);
    config.accounting = accounting;
    let room = &mut config.room;
    set(&mut room.isolation, file.isolation);
    if let Some(name) = &args.isolation {
        room.isolation = name.parse().map_err(CliError::usage)?;
    }
    set(&mut room.start_project_id, file.start_project_id.or(file.start_uid));
    room.start_project_id = room.start_project_id.saturating_add(args.uid_offset);
    set(&mut room.do_not_set_user_id, file.do_not_set_user_id);
    set(&mut room.enable_tmpfs, file.enable_tmpfs);
    set(&mut room.min_required_disk_space, file.min_required_disk_space.map(i64::unsigned_abs));
    room.disk_quota = file.disk_quota.map(i64::unsigned_abs);
    set(&mut room.disk_usage_watermark, file.disk_usage_watermark.map(i64::unsigned_abs));
    room.shared_directories = file.shared_directories;
    Ok(config)
}

fn accounting(file: &NodeSection) -> Accounting {
    let mut accounting = Accounting::default();
    set(&mut accounting.job_proxy_heartbeat_period, file.job_proxy_heartbeat_period);
    set(&mut accounting.cpu_monitor_sets_cap, file.cpu_monitor_sets_cap);
    set(&mut accounting.ahead_memory_reserve, file.ahead_memory_reserve);
    set(
        &mut accounting.always_abort_on_memory_reserve_overdraft,
        file.always_abort_on_memory_reserve_overdraft,
    );
    set(&mut accounting.cpu_overdraft_timeout, file.cpu_overdraft_timeout);
    set(&mut accounting.memory_overdraft_timeout, file.memory_overdraft_timeout);
    set(&mut accounting.running_job_statistics_sending_backoff, file.running_job_statistics_sending_backoff);
    set(&mut accounting.max_consecutive_job_aborts, file.max_consecutive_job_aborts);
    accounting.free_memory_watermark = file.free_memory_watermark;
    accounting.memory_pressure_abort_threshold = file.memory_pressure_abort_threshold;
    set(&mut accounting.memory_tracker_cache_period, file.memory_tracker_cache_period);
    accounting.oom_score_adj_on_exceeded_memory_reserve = file.oom_score_adj_on_exceeded_memory_reserve;
    set(&mut accounting.use_memory_high, file.use_memory_high);
    let (detector, section) = (&mut accounting.job_thrashing_detector, &file.job_thrashing_detector);
    set(&mut detector.enabled, section.enabled);
    set(&mut detector.check_period, section.check_period);
    set(
        &mut detector.major_page_fault_count_threshold,
        section.major_page_fault_count_threshold.map(i64::from),
    );
    set(
        &mut detector.limit_overflow_count_threshold_to_abort_job,
        section.limit_overflow_count_threshold_to_abort_job.map(i64::from),
    );
    accounting
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// The supervisor holds the other end of stdin. When it is gone, however it went, this process must
/// not stay behind and hold the port and the data directory.
fn stop_with_stdin() -> Result<(), CliError> {
    std::thread::Builder::new()
        .name("supervised".to_owned())
        .spawn(|| {
            let mut byte = [0];
            // Nobody writes; an error means the same as the end.
            while matches!(std::io::stdin().read(&mut byte), Ok(n) if n > 0) {}
            tracing::info!("the supervisor is gone or wants this process to stop");
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM);
        })
        .map(drop)
        .map_err(|e| CliError::failed(format!("cannot watch the supervisor: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use cli::{Cli, Command};
    use vocab::{Cpu, Span};

    fn node_args(line: &str) -> NodeArgs {
        match Cli::try_parse_from(line.split(' ')).expect("a good command line").command {
            Command::Node(args) => args,
            other => panic!("not a node: {other:?}"),
        }
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let file = NodeSection {
            name: Some("file".into()),
            tags: vec!["a".into()],
            kill_timeout: Some(Span::from_secs(5)),
            resources: cli::units::parse_resources("cpu=4,gpu=1").ok(),
            ..NodeSection::default()
        };
        let args =
            node_args("millpond node --server :9000 --name line --data /d --resources cpu=8,user_slots=7");
        let config = node_config(&args, file.clone()).expect("fine");
        assert_eq!((config.address.as_str(), config.server.as_str()), ("line", "127.0.0.1:9000"));
        assert_eq!((config.resource_limits.cpu, config.resource_limits.user_slots), (Cpu(800), 7));
        assert_eq!(config.resource_limits.gpu, 0, "resources are one setting, not five");
        assert_eq!((config.tags, config.kill_timeout), (vec!["a".to_owned()], Span::from_secs(5)));

        let config = node_config(&node_args("millpond node --data /d"), file).expect("fine");
        assert_eq!((config.address.as_str(), config.resource_limits.gpu), ("file", 1));
        assert_eq!(config.server, DEFAULT_PROXY);
    }
}
