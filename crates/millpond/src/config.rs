//! The configuration file: TOML with a section for each process. Unknown keys are errors, units are in
//! the values (`"30s"`, `"16GiB"`), and what is on the command line wins.

mod elsewhere;

use cli::CliError;
use cli::units::{Amounts, parse_listen, parse_resources, parse_server, parse_size, parse_span};
use serde::{Deserialize, Deserializer};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use vocab::Span;

/// The whole file.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct FileConfig {
    /// `[server]`.
    pub server: ServerSection,
    /// `[node]`.
    pub node: NodeSection,
    /// `[up]`.
    pub up: UpSection,
}

/// `[server]`: the server process.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSection {
    /// Address of the API and of the node protocol, `"127.0.0.1:8000"`.
    #[serde(deserialize_with = "listen")]
    pub listen: Option<SocketAddr>,
    /// Directory of the store.
    pub data: Option<PathBuf>,
    /// Pool tree that a new cluster gets, `"physical"`.
    pub default_tree: Option<String>,
    /// Name of a new cluster, `"millpond"`.
    pub cluster_name: Option<String>,
    /// Ask who people and nodes are; without it only if the address can be reached from elsewhere.
    pub auth: Option<bool>,
    /// File with the certificate, in PEM form: speak TLS.
    pub tls_cert: Option<PathBuf>,
    /// File with its private key.
    pub tls_key: Option<PathBuf>,
    /// File with tokens of the configuration, a line `USER TOKEN` for each.
    pub tokens_file: Option<PathBuf>,
    /// Let nodes in that come in clear with the token that all of them share.
    pub insecure_plaintext_nodes: Option<bool>,
    /// May nodes without a join token ask for an approval? `true`.
    pub node_approval: Option<bool>,
    /// Life of a node's certificate, `"90d"`. It is renewed when half of it is over.
    #[serde(deserialize_with = "certificate_ttl")]
    pub node_certificate_ttl: Option<Span>,
    /// Users of nodes' hosts that jobs run as, `"200000-265535"`; a range that follows from the id of the cluster.
    #[serde(deserialize_with = "uid_range")]
    pub job_uids: Option<vocab::UidRange>,
    /// Period of nodes' heartbeats, `"5s"`; preemption and what else is decided by heartbeat follows it.
    #[serde(deserialize_with = "heartbeat_period")]
    pub heartbeat_period: Option<Span>,
    /// Bytes after which the event log goes on in a new file, `"64MiB"`.
    #[serde(deserialize_with = "size")]
    pub event_log_file_size: Option<i64>,
    /// Files of the event log that are kept, 16; 0: there is no event log.
    pub event_log_files: Option<u32>,
    /// Bytes of large replies that one user has not read yet, `"64MiB"`.
    #[serde(deserialize_with = "size")]
    pub max_unread_bytes_per_user: Option<i64>,
    /// Bytes of large replies that all users together have not read yet, `"512MiB"`.
    #[serde(deserialize_with = "size")]
    pub max_unread_bytes: Option<i64>,
    /// Bytes of a request that starts an operation or patches its specification, `"16MiB"`.
    #[serde(deserialize_with = "size")]
    pub max_spec_size: Option<i64>,
    /// Values in one request, 100000.
    #[serde(deserialize_with = "at_least_one")]
    pub max_values_per_request: Option<u32>,
    /// Requests of one batch, 10000.
    #[serde(deserialize_with = "at_least_one")]
    pub max_batch_requests: Option<u32>,
    /// Nodes that one request makes, changes or removes, 2000; larger subtrees are removed in slices.
    #[serde(deserialize_with = "at_least_one")]
    pub max_nodes_per_request: Option<u32>,
    /// Nodes that one transaction changes, and that it has locks on, 2000.
    #[serde(deserialize_with = "at_least_one")]
    pub max_nodes_per_transaction: Option<u32>,
    /// Nodes and attributes that one request shows, 50000.
    #[serde(deserialize_with = "at_least_one")]
    pub max_values_per_read: Option<u32>,
    /// Attributes of users of one node, 1000.
    #[serde(deserialize_with = "at_least_one")]
    pub max_attributes_per_node: Option<u32>,
    /// Entries of one access control list, 1000.
    #[serde(deserialize_with = "at_least_one")]
    pub max_acl_entries: Option<u32>,
    /// Subjects, permissions and columns in one access control list, 10000.
    #[serde(deserialize_with = "at_least_one")]
    pub max_acl_names: Option<u32>,
    /// Transactions of one user at a time, 5000.
    #[serde(deserialize_with = "at_least_one")]
    pub max_transactions_per_user: Option<u32>,
    /// Locks of the transactions of one user, 10000.
    #[serde(deserialize_with = "at_least_one")]
    pub max_locks_per_user: Option<u32>,
    /// Nodes of an account that has no limit of its own, 500000.
    #[serde(deserialize_with = "at_least_one")]
    pub account_node_count: Option<u32>,
    /// Bytes of files and tables of an account that has no limit of its own, a quarter of the disk.
    #[serde(deserialize_with = "size")]
    pub account_disk_space: Option<i64>,
    /// Bytes of values and attributes of an account that has no limit of its own, `"1GiB"`.
    #[serde(deserialize_with = "size")]
    pub account_memory: Option<i64>,
    /// Finished operations that are kept, 100000.
    pub archive_operations: Option<u32>,
    /// How long they are kept after their end, `"30d"`.
    #[serde(deserialize_with = "span")]
    pub archive_age: Option<Span>,
    /// Bytes that they may take, with their jobs and stderrs, `"16GiB"`.
    #[serde(deserialize_with = "size")]
    pub archive_size: Option<i64>,
    /// Bytes of records, stderrs and fail contexts of one user's unfinished operations, `"8GiB"`.
    #[serde(deserialize_with = "size")]
    pub archive_size_per_user: Option<i64>,
}

/// `[node]`: exec nodes.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct NodeSection {
    /// Address of the server, `"10.0.0.1:8000"`.
    #[serde(deserialize_with = "server")]
    pub server: Option<String>,
    /// File with a join token: with it the node gets its own key and certificate, once.
    pub join_token_file: Option<PathBuf>,
    /// SHA-256 of the certificate of the server's authority: the server to trust without a join token.
    #[serde(deserialize_with = "sha256")]
    pub authority_sha256: Option<String>,
    /// Speak with the server in clear, with the token that all nodes share.
    pub insecure_plaintext: Option<bool>,
    /// With `insecure_plaintext`: file with that token.
    pub token_file: Option<PathBuf>,
    /// File with the authorities that the server's certificate may be from.
    pub ca_file: Option<PathBuf>,
    /// Unique name of the node.
    pub name: Option<String>,
    /// Directory of records, sandboxes and cached files.
    pub data: Option<PathBuf>,
    /// What the node offers, `"cpu=8,memory=16GiB"`.
    #[serde(deserialize_with = "resources")]
    pub resources: Option<Amounts>,
    /// Tags for node filters.
    pub tags: Vec<String>,
    /// `"auto"`, `"hybrid"`, `"cgroup_v2"`, `"cgroup_v1"`, `"rootless"` or `"simple"`.
    pub job_environment: Option<String>,
    /// `"auto"`, `"full"` or `"none"`: whether jobs are kept apart from the host.
    #[serde(deserialize_with = "isolation")]
    pub isolation: Option<node::IsolationChoice>,
    /// Project of the disk quota of the job in slot i is this plus i, 10000.
    pub start_project_id: Option<u32>,
    /// Release 0.1: first user of jobs, and first project. Jobs have the users of `job_uids` now.
    pub start_uid: Option<u32>,
    /// Isolated jobs keep the node's user, without its capabilities.
    pub do_not_set_user_id: Option<bool>,
    /// Mount memory file systems; otherwise they are plain directories.
    pub enable_tmpfs: Option<bool>,
    /// Free space on the disk of the sandboxes below which no job is started, `"100MiB"`.
    #[serde(deserialize_with = "size")]
    pub min_required_disk_space: Option<i64>,
    /// Space on that disk that jobs may ask for together, all there is.
    #[serde(deserialize_with = "size")]
    pub disk_quota: Option<i64>,
    /// The part of it that no job is promised, `"10GiB"`.
    #[serde(deserialize_with = "size")]
    pub disk_usage_watermark: Option<i64>,
    /// First port that jobs are given, 20000.
    pub start_port: Option<u16>,
    /// How many ports from there on, 10000.
    pub port_count: Option<u16>,
    /// Cores of the host that are left out of what the node offers.
    #[serde(deserialize_with = "cores")]
    pub node_dedicated_cpu: Option<vocab::Cpu>,
    /// Directories of the host that all jobs see, `"/data"`, or `"/data:rw"` to let them write.
    #[serde(deserialize_with = "shared_directories")]
    pub shared_directories: Vec<node::SharedDirectory>,
    /// Bytes that cached files may take, `"10GiB"`.
    #[serde(deserialize_with = "size")]
    pub cache_limit: Option<i64>,
    /// Copy files into sandboxes instead of linking to the cache.
    pub copy_files: Option<bool>,
    /// Longest wait of a job for resources, `"30s"`.
    #[serde(deserialize_with = "span")]
    pub waiting_jobs_timeout: Option<Span>,
    /// Longest time from the order to spawn a job proxy to its call, `"3m"`.
    #[serde(deserialize_with = "span")]
    pub job_proxy_preparation_timeout: Option<Span>,
    /// Longest time from the grant of resources to the start of the user's process, `"45m"`.
    #[serde(deserialize_with = "span")]
    pub prepare_time_limit: Option<Span>,
    /// Longest time for killing a job, `"30s"`.
    #[serde(deserialize_with = "span")]
    pub kill_timeout: Option<Span>,
    /// A sandbox that is not clean so long after its job is an alert, `"15m"`.
    #[serde(deserialize_with = "span")]
    pub waiting_for_job_cleanup_timeout: Option<Span>,
    /// How long a file may be impossible to fetch, `"60s"`.
    #[serde(deserialize_with = "span")]
    pub artifact_timeout: Option<Span>,
    /// Period of samples of jobs, `"1s"`.
    #[serde(deserialize_with = "span")]
    pub memory_watchdog_period: Option<Span>,
    /// Job proxies without a node kill their job after this long, `"10m"`.
    #[serde(deserialize_with = "span")]
    pub supervisor_lost_timeout: Option<Span>,
    /// A job above its memory limit fails.
    pub check_user_job_memory_limit: Option<bool>,
    /// A job whose proxy died is aborted and run again instead of failed.
    pub treat_job_proxy_failure_as_abort: Option<bool>,
    /// Period of reports of a job proxy, `"5s"`.
    #[serde(deserialize_with = "span")]
    pub job_proxy_heartbeat_period: Option<Span>,
    /// The CPU monitor's limit is a hard quota too, not only a weight.
    pub cpu_monitor_sets_cap: Option<bool>,
    /// A running job is counted with so much more than it was seen with, `"0"`.
    #[serde(deserialize_with = "size")]
    pub ahead_memory_reserve: Option<i64>,
    /// A job above its reserve is aborted at once, whether the node has memory or not.
    pub always_abort_on_memory_reserve_overdraft: Option<bool>,
    /// CPU above the node's limit is endured this long, `"10m"`.
    #[serde(deserialize_with = "span")]
    pub cpu_overdraft_timeout: Option<Span>,
    /// Memory above the node's limit is endured this long, `"5m"`.
    #[serde(deserialize_with = "span")]
    pub memory_overdraft_timeout: Option<Span>,
    /// Statistics of one running job go to the server at most this often, `"30s"`.
    #[serde(deserialize_with = "span")]
    pub running_job_statistics_sending_backoff: Option<Span>,
    /// Percentage of time in which the whole host waits for memory, above which a job above its
    /// reserve is aborted.
    #[serde(deserialize_with = "percentage")]
    pub memory_pressure_abort_threshold: Option<f64>,
    /// After more aborts in a row that nobody ordered the node starts no jobs for ten minutes, 500.
    pub max_consecutive_job_aborts: Option<u32>,
    /// Free memory of the host that is left alone when jobs start.
    #[serde(deserialize_with = "size")]
    pub free_memory_watermark: Option<i64>,
    /// What is said of a running job between two samples is not older than this, `"100ms"`.
    #[serde(deserialize_with = "span")]
    pub memory_tracker_cache_period: Option<Span>,
    /// `oom_score_adj` of processes above their memory reserve, -1000 to 1000.
    #[serde(deserialize_with = "oom_score")]
    pub oom_score_adj_on_exceeded_memory_reserve: Option<i32>,
    /// Slow jobs down at 98 % of their memory limit; needs the job environment `cgroup_v2`.
    pub use_memory_high: Option<bool>,
    /// Jobs that read their own pages again and again.
    pub job_thrashing_detector: ThrashingSection,
}

/// `[node.job_thrashing_detector]`.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct ThrashingSection {
    /// Abort them.
    pub enabled: Option<bool>,
    /// Length of a period, `"60s"`.
    #[serde(deserialize_with = "span")]
    pub check_period: Option<Span>,
    /// A period with more major page faults is a bad one, 500.
    pub major_page_fault_count_threshold: Option<u32>,
    /// More bad periods than this one after another abort the job, 5.
    pub limit_overflow_count_threshold_to_abort_job: Option<u32>,
}

/// `[up]`: the supervisor. The address is the server's, resources are the nodes'.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct UpSection {
    /// Where the cluster keeps its data and logs.
    pub data: Option<PathBuf>,
    /// Number of exec nodes, 1.
    pub nodes: Option<u16>,
}

impl FileConfig {
    /// The file, if one is named.
    pub fn load(path: Option<&Path>) -> Result<FileConfig, CliError> {
        let Some(path) = path else { return Ok(FileConfig::default()) };
        let text = std::fs::read_to_string(path).map_err(|e| {
            CliError::usage(format!("cannot read the configuration file {}: {e}", path.display()))
        })?;
        FileConfig::parse(&text)
            .map_err(|e| CliError::usage(format!("configuration file {}:\n{}", path.display(), e.trim_end())))
    }

    fn parse(text: &str) -> Result<FileConfig, String> {
        let known = toml::from_str(text).map_err(|e| e.to_string());
        let config: FileConfig = known.map_err(|why| elsewhere::explain(text).unwrap_or(why))?;
        match &config.node.job_environment {
            Some(name) if !cli::args::JOB_ENVIRONMENTS.contains(&name.as_str()) => Err(format!(
                "node.job_environment is {name:?}: expected one of {}",
                cli::args::JOB_ENVIRONMENTS.join(", ")
            )),
            _ => Ok(config),
        }
    }
}

fn typed<'de, D: Deserializer<'de>, T>(
    from: D,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(from)?;
    parse(&text).map(Some).map_err(|e| serde::de::Error::custom(format!("{text:?}: {e}")))
}
fn listen<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    typed(from, parse_listen)
}
fn server<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    typed(from, parse_server)
}
fn resources<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Amounts>, D::Error> {
    typed(from, parse_resources)
}
fn at_least_one<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    match u32::deserialize(from)? {
        0 => Err(serde::de::Error::custom("expected an integer of at least 1, found 0")),
        count => Ok(Some(count)),
    }
}
fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    typed(from, parse_size)
}
fn heartbeat_period<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Span>, D::Error> {
    typed(from, |text| match parse_span(text)? {
        period if (Span::from_millis(100)..=Span::from_secs(60)).contains(&period) => Ok(period),
        _ => Err("expected a period from 100ms to 60s".to_owned()),
    })
}
fn certificate_ttl<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Span>, D::Error> {
    typed(from, |text| match parse_span(text)? {
        ttl if (Span::from_secs(5)..=Span::from_secs(10 * 365 * 24 * 3600)).contains(&ttl) => Ok(ttl),
        _ => Err("expected a time from 5s to 3650d".to_owned()),
    })
}
fn sha256<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    typed(from, cli::args::parse_sha256)
}
fn uid_range<'de, D: Deserializer<'de>>(from: D) -> Result<Option<vocab::UidRange>, D::Error> {
    typed(from, str::parse)
}
fn isolation<'de, D: Deserializer<'de>>(from: D) -> Result<Option<node::IsolationChoice>, D::Error> {
    typed(from, str::parse)
}
fn shared_directories<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<node::SharedDirectory>, D::Error> {
    let list = Vec::<String>::deserialize(from)?;
    list.iter().map(|text| text.parse().map_err(serde::de::Error::custom)).collect()
}
fn percentage<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let found = f64::deserialize(from)?;
    match (0.0..=100.0).contains(&found) {
        true => Ok(Some(found)),
        false => Err(serde::de::Error::custom(format!("{found}: expected a percentage from 0 to 100"))),
    }
}
fn cores<'de, D: Deserializer<'de>>(from: D) -> Result<Option<vocab::Cpu>, D::Error> {
    let found = f64::deserialize(from)?;
    match (0.0..=1e6).contains(&found) {
        true => Ok(Some(vocab::Cpu::from_f64(found))),
        false => Err(serde::de::Error::custom(format!("{found}: expected cores, from 0.0 to 1000000.0"))),
    }
}
fn oom_score<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i32>, D::Error> {
    let found = i32::deserialize(from)?;
    match (-1000..=1000).contains(&found) {
        true => Ok(Some(found)),
        false => Err(serde::de::Error::custom(format!("{found}: expected a score from -1000 to 1000"))),
    }
}
fn span<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Span>, D::Error> {
    typed(from, parse_span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file() {
        let text = r#"
            [server]
            listen = "0.0.0.0:9000"
            cluster_name = "lab"
            [node]
            resources = "cpu=8,memory=16GiB"
            tags = ["ssd"]
            kill_timeout = "5s"
            [up]
            nodes = 3
        "#;
        let config = FileConfig::parse(text).expect("a good file");
        assert_eq!(config.server.listen, "0.0.0.0:9000".parse().ok());
        assert_eq!(config.server.cluster_name.as_deref(), Some("lab"));
        assert_eq!(config.node.resources.map(|r| r.to_string()).as_deref(), Some("cpu=8,memory=17179869184"));
        assert_eq!(config.node.kill_timeout, Some(Span::from_secs(5)));
        assert_eq!(config.up.nodes, Some(3));
        assert_eq!(FileConfig::parse(""), Ok(FileConfig::default()));
    }

    #[test]
    fn mistakes_are_named() {
        let check = |text: &str, parts: &[&str]| {
            let error = FileConfig::parse(text).expect_err(text);
            for part in parts {
                assert!(error.contains(part), "{part:?} is not in {error:?}");
            }
        };
        check("[server]\nport = 1", &["port", "listen"]);
        check("[server]\narchive_age = \"0s\"", &["archive_age", "longer"]);
        check("[server]\narchive_size = \"much\"", &["archive_size", "much"]);
        check("[server]\nmax_nodes_per_request = 0", &["max_nodes_per_request", "at least 1", "found 0"]);
        check("[server]\nmax_spec_size = 5", &["max_spec_size"]);
        check("[node]\nkill_timeout = \"5\"", &["kill_timeout", "unit"]);
        check("[node]\nresources = \"cores=8\"", &["resources", "cores", "cpu"]);
        check("[node]\njob_environment = \"docker\"", &["node.job_environment", "docker", "simple"]);
        check("[node]\njob_proxy_heartbeat_period = \"0s\"", &["job_proxy_heartbeat_period", "0s", "longer"]);
        check("[node]\nmemory_pressure_abort_threshold = 101.0", &["threshold", "101", "0 to 100"]);
        check("[node]\nisolation = \"some\"", &["isolation", "some", "auto, full, none"]);
        check("[node]\nshared_directories = [\"data\"]", &["shared_directories", "data", "absolute"]);
        check("[node.job_thrashing_detector]\nfaults = 1", &["faults", "check_period"]);
        check("[node]\nidle_cpu_fraction = 0.1", &["node.idle_cpu_fraction", "not an option here"]);
        check("[node]\nnode_dedicated_cpu = -1.0", &["node_dedicated_cpu", "-1", "from 0.0"]);
        check(
            "[node]\noom_score_adj_on_exceeded_memory_reserve = 2000",
            &["oom_score", "2000", "-1000 to 1000"],
        );
        check("[node]\nstart_port = 70000", &["start_port", "70000"]);
        check("[server]\nheartbeat_period = \"5ms\"", &["heartbeat_period", "5ms", "100ms to 60s"]);
        check("[server]\njob_uids = \"0-65535\"", &["line 2", "job_uids", "from 1000", "0-65535"]);
        check("[server]\njob_uids = \"60000-70000\"", &["job_uids", "65534"]);
        check("[server]\njob_uids = \"many\"", &["job_uids", "first-last", "many"]);
        check("[up]\nnodes = -1", &["nodes"]);
    }
}
