//! What the core is told once, at its birth.

use vocab::{Failure, Resources, Span};

/// Identity, limits and timeouts of a node (jobs-and-nodes.md 10).
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Unique name in the cluster, `host:port`.
    pub address: String,
    /// Identifier of the data directory; empty if it is not known.
    pub data_id: String,
    /// Users of the cluster need not trust each other: their jobs are kept apart. The server is told.
    pub authentication: bool,
    /// Differs between lives of the agent; start time in microseconds.
    pub incarnation: u64,
    /// What the node offers; can be changed later by [`crate::NodeInput::ResourceLimits`].
    pub resource_limits: Resources,
    /// Tags for node filters.
    pub tags: Vec<String>,
    /// Name of the job environment in use.
    pub job_environment: String,
    /// What is wrong or not enforced, known from the start.
    pub alerts: Vec<Failure>,
    /// Longest wait for resources.
    pub waiting_jobs_timeout: Span,
    /// Longest time from the grant of resources to the start of the user's process.
    pub prepare_time_limit: Span,
    /// Longest time from the order to spawn a proxy to its call.
    pub job_proxy_preparation_timeout: Span,
    /// Longest time for a proxy, and then for the container, to kill a job.
    pub kill_timeout: Span,
    /// Running statistics of one job are sent at most this often.
    pub running_job_statistics_sending_backoff: Span,
    /// CPU above its limit is endured this long.
    pub cpu_overdraft_timeout: Span,
    /// Memory above its limit is endured this long.
    pub memory_overdraft_timeout: Span,
    /// Bytes that jobs may use together before some have to go, if that is more than they may reserve (the limit).
    pub physical_memory: Option<i64>,
    /// A running job is counted with so many bytes more than it was seen with (3.4).
    pub ahead_memory_reserve: i64,
    /// A job above its reserve is aborted at once, whether the node has memory or not.
    pub always_abort_on_memory_reserve_overdraft: bool,
    /// After more aborts in a row, of several operations whose jobs start on other nodes, the node starts no jobs for a
    /// while (3.9). Aborts that are ordered do not count.
    pub max_consecutive_job_aborts: u32,
    /// A job starts only if the host has so much free memory beside what the job asks for (3.3); none: the
    /// ledger alone decides.
    pub free_memory_watermark: Option<i64>,
    /// First port that jobs are given (3.10).
    pub start_port: u16,
    /// How many from there on.
    pub port_count: u16,
    /// Bytes of disk that jobs may ask for together (3.10); none: nobody counts.
    pub disk_capacity: Option<i64>,
    /// From the registration to the first heartbeat; none: a period. Different ones spread the load of many
    /// nodes that come together.
    pub first_heartbeat: Option<Span>,
    /// A sandbox that is not clean after this long is an alert.
    pub waiting_for_job_cleanup_timeout: Span,
    /// Released jobs are remembered this long, so that a late order does not start them again (9.4).
    pub recently_removed_jobs_store_timeout: Span,
}

impl Settings {
    /// The defaults of the specification.
    pub fn new(address: impl Into<String>, resource_limits: Resources) -> Settings {
        Settings {
            address: address.into(),
            data_id: String::new(),
            authentication: false,
            incarnation: 0,
            resource_limits,
            tags: Vec::new(),
            job_environment: String::new(),
            alerts: Vec::new(),
            waiting_jobs_timeout: Span::from_secs(30),
            prepare_time_limit: Span::from_secs(45 * 60),
            job_proxy_preparation_timeout: Span::from_secs(3 * 60),
            kill_timeout: Span::from_secs(30),
            running_job_statistics_sending_backoff: Span::from_secs(30),
            cpu_overdraft_timeout: Span::from_secs(10 * 60),
            memory_overdraft_timeout: Span::from_secs(5 * 60),
            physical_memory: None,
            ahead_memory_reserve: 0,
            always_abort_on_memory_reserve_overdraft: false,
            max_consecutive_job_aborts: 500,
            free_memory_watermark: None,
            disk_capacity: None,
            first_heartbeat: None,
            waiting_for_job_cleanup_timeout: Span::from_secs(15 * 60),
            start_port: 20_000,
            port_count: 10_000,
            recently_removed_jobs_store_timeout: Span::from_secs(60),
        }
    }
}
