//! Options of the operation's root (jobs-and-nodes.md 8.1, http-api.md 9.7).

use super::memory::{CpuMonitorOptions, ProxyDigestOptions, cpu_monitor, job_proxy_digest};
use super::reader::{Reader, child_path, expected, refuse_at};
use crate::options::ControllerOptions;
use vocab::lease::{MAX_LEASE, MIN_LEASE};
use vocab::{Failure, Span};
use yson::{Map, Value};

/// Options of the whole operation, without those of tasks and of scheduling.
#[derive(Clone, PartialEq, Debug)]
pub struct RootOptions {
    /// Short text for people.
    pub title: Option<String>,
    /// Second name; starts with `*`.
    pub alias: Option<String>,
    /// What users attach to the operation.
    pub annotations: Map,
    /// The access control list, as given.
    pub acl: Vec<Value>,
    /// Whoever starts the operation may read and manage it, whatever the list says.
    pub add_authenticated_user_to_acl: bool,
    /// The failure that reaches this number ends the operation.
    pub max_failed_job_count: i64,
    /// Aborts in a row that nodes cause, before the first start of a job of a task: this many end the operation.
    pub max_aborts_before_start: u32,
    /// Stderrs kept of jobs that did not fail.
    pub max_stderr_count: i64,
    /// Any restart fails the operation.
    pub fail_on_job_restart: bool,
    /// A failure suspends the operation.
    pub suspend_on_job_failure: bool,
    /// A node where a job failed gets no more jobs of the operation.
    pub ban_nodes_with_failed_jobs: bool,
    /// Failures on such a node count as aborts.
    pub ignore_job_failures_at_banned_nodes: bool,
    /// Fail when no node is left.
    pub fail_on_all_nodes_banned: bool,
    /// Longest life of the operation.
    pub time_limit: Option<Span>,
    /// How long jobs may take to end when the life is over.
    pub time_limit_job_fail_timeout: Span,
    /// The CPU monitor of all jobs.
    pub job_cpu_monitor: CpuMonitorOptions,
    /// The job proxy's reserve factor, for tasks that do not say their own.
    pub job_proxy_memory_digest: ProxyDigestOptions,
    /// Factor of the job proxy's reserve after its first overdraft.
    pub job_proxy_overdraft_multiplier: Option<f64>,
    /// Bytes above its reserve at which a job proxy gives its job up.
    pub job_proxy_memory_overcommit_limit: Option<i64>,
    /// A job that takes so long is slow; tasks may say otherwise.
    pub job_speculation_timeout: Option<Span>,
    /// Copies of slow jobs of one task at a time.
    pub max_speculative_job_count_per_task: u64,
    /// Nothing is run twice at once.
    pub try_avoid_duplicating_jobs: bool,
    /// A unit of work may run twice at once for a while: it is given away as soon as its node is lost. `None` leaves the
    /// choice to the type of the operation.
    pub allow_concurrent_attempts: Option<bool>,
    /// How long a job of exclusive work may go on without word from the server; `None` takes the cluster's.
    pub job_lease_period: Option<Span>,
    /// An allocation whose job has completed gets the next job of its task.
    pub enable_multiple_jobs: bool,
    /// Jobs that are late are looked for.
    pub enable_job_splitting: bool,
    /// Secrets that jobs see as variables, as given. Never shown.
    pub secure_vault: Option<Map>,
    /// Job shells see the secrets too.
    pub enable_secure_vault_variables_in_job_shell: bool,
}

const EVER: Span = Span(u64::MAX);

impl RootOptions {
    pub(crate) fn read(r: &mut Reader<'_>, limits: &ControllerOptions) -> Result<RootOptions, Failure> {
        accept_by_the_way(r)?;
        let options = RootOptions {
            title: read_title(r, limits.max_title_length)?,
            alias: read_alias(r)?,
            annotations: read_annotations(r, limits.max_annotations_size)?,
            acl: r.list("acl").or(Vec::new())?,
            add_authenticated_user_to_acl: r.bool("add_authenticated_user_to_acl").or(true)?,
            max_failed_job_count: r.int("max_failed_job_count", 0..=10_000).or(10)?,
            max_aborts_before_start: r.int("max_aborts_before_start", 1..=10_000).or(20)? as u32,
            max_stderr_count: r.int("max_stderr_count", 0..=150).or(10)?,
            fail_on_job_restart: r.bool("fail_on_job_restart").or(false)?,
            suspend_on_job_failure: r.bool("suspend_on_job_failure").or(false)?,
            ban_nodes_with_failed_jobs: r.bool("ban_nodes_with_failed_jobs").or(false)?,
            ignore_job_failures_at_banned_nodes: r.bool("ignore_job_failures_at_banned_nodes").or(false)?,
            fail_on_all_nodes_banned: r.bool("fail_on_all_nodes_banned").or(true)?,
            time_limit: r.span("time_limit", Span::from_millis(1)..=EVER).optional()?,
            time_limit_job_fail_timeout: r
                .span("time_limit_job_fail_timeout", Span::ZERO..=EVER)
                .or(Span::from_secs(120))?,
            job_cpu_monitor: cpu_monitor(r)?,
            job_proxy_memory_digest: job_proxy_digest(r, &ProxyDigestOptions::default())?,
            job_proxy_overdraft_multiplier: r
                .number("job_proxy_resource_overdraft_memory_multiplier", 1.0..=10.0)
                .optional()?,
            job_proxy_memory_overcommit_limit: r
                .int("job_proxy_memory_overcommit_limit", 0..=i64::MAX)
                .optional()?,
            job_speculation_timeout: r
                .span("job_speculation_timeout", Span::from_millis(1)..=EVER)
                .optional()?,
            max_speculative_job_count_per_task: r
                .int("max_speculative_job_count_per_task", 0..=i64::MAX)
                .or(10)?
                .unsigned_abs(),
            try_avoid_duplicating_jobs: r.bool("try_avoid_duplicating_jobs").or(false)?,
            allow_concurrent_attempts: r.bool("allow_concurrent_attempts").optional()?,
            job_lease_period: r.span("job_lease_period", MIN_LEASE..=MAX_LEASE).optional()?,
            enable_multiple_jobs: r.section("allocation", |r| r.bool("enable_multiple_jobs").or(false))?,
            enable_job_splitting: r.bool("enable_job_splitting").or(true)?,
            secure_vault: read_vault(r)?,
            enable_secure_vault_variables_in_job_shell: r
                .bool("enable_secure_vault_variables_in_job_shell")
                .or(true)?,
        };
        Ok(options)
    }
}

/// Options that are checked and shown, and nothing else here: descriptions for people, or features
/// of table operations.
fn accept_by_the_way(r: &mut Reader<'_>) -> Result<(), Failure> {
    r.any("description").optional()?;
    r.any("started_by").optional()?;
    r.strings("owners").or(Vec::new())?;
    r.int("max_core_info_count", 0..=150).or(10)?;
    r.int("job_count", 1..=i64::MAX).optional()?;
    r.string(["debug_artifacts_account", "job_node_account"]).or("tmp".to_owned())?;
    r.bool("suspend_operation_if_account_limit_exceeded").or(false)?;
    r.map("job_io").optional()?;
    r.map("testing").optional()?;
    r.any("stderr_table_path").optional()?;
    let core_table = r.any("core_table_path").optional()?;
    if r.bool("enable_cuda_gpu_core_dump").or(false)? && core_table.is_none() {
        return Err(r.refuse("enable_cuda_gpu_core_dump", "it needs \"core_table_path\""));
    }
    check_job_shells(r)
}

fn check_job_shells(r: &mut Reader<'_>) -> Result<(), Failure> {
    let shells = r.list("job_shells").or(Vec::new())?;
    r.check_count("job_shells", shells.len())?;
    let mut names: Vec<&str> = Vec::new();
    for (i, shell) in shells.iter().enumerate() {
        let at = format!("{}/{i}", r.path_of("job_shells"));
        let name = shell.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| refuse_at(&at, expected("map with a string \"name\"", shell)))?;
        if names.contains(&name) {
            return Err(refuse_at(&at, format_args!("the name {name:?} is there twice")));
        }
        names.push(name);
    }
    Ok(())
}

fn read_alias(r: &mut Reader<'_>) -> Result<Option<String>, Failure> {
    let alias = r.with("alias", |v| match v.as_str() {
        Some(s) if s.starts_with('*') => Ok(s.to_owned()),
        _ => Err(expected("string that starts with \"*\"", v)),
    });
    alias.optional()
}

fn read_title(r: &mut Reader<'_>, limit: usize) -> Result<Option<String>, Failure> {
    let title = r.with("title", |v| match v.as_str() {
        Some(title) if title.len() > limit => Err(too_long_title(title, limit)),
        Some(title) => Ok(title.to_owned()),
        None => Err(expected("UTF-8 string", v)),
    });
    title.optional()
}

fn read_annotations(r: &mut Reader<'_>, limit: usize) -> Result<Map, Failure> {
    let annotations = r.with("annotations", |v| {
        let map = v.as_map().ok_or_else(|| expected("map", v))?;
        match annotations_size(map, limit) {
            size if size > limit => Err(too_large_annotations(size, limit)),
            _ => Ok(map.clone()),
        }
    });
    annotations.or(Map::new())
}

pub(super) fn too_long_title(title: &str, limit: usize) -> String {
    format!("expected at most {limit} bytes (max_title_length), found {}", title.len())
}

pub(super) fn too_large_annotations(size: usize, limit: usize) -> String {
    format!("expected at most {limit} bytes of text YSON (max_annotations_size), found {size}")
}

/// Bytes of annotations as text YSON (jobs-and-nodes.md 6.12). Of those that are much larger than `limit` it is only said
/// that they are.
pub fn annotations_size(annotations: &Map, limit: usize) -> usize {
    let least: usize = annotations.iter().map(|(name, value)| name.len() + least_bytes(value)).sum();
    // The longer of two forms is not made of what is too long in the shorter one.
    if least > limit { least } else { yson::to_text(&Value::Map(annotations.clone())).len() }
}

/// Bytes that a value has at least in text YSON.
fn least_bytes(value: &Value) -> usize {
    let of_map = |map: &Map| map.iter().map(|(name, value)| name.len() + least_bytes(value)).sum::<usize>();
    match value {
        Value::String(text) => text.len(),
        Value::List(items) => items.iter().map(|item| 1 + least_bytes(item)).sum(),
        Value::Map(map) => of_map(map),
        Value::Attributed(both) => of_map(&both.0) + least_bytes(&both.1),
        _ => 1,
    }
}

/// The vault is not shown anywhere, so it goes past the full spec, and errors name keys only.
fn read_vault(r: &mut Reader<'_>) -> Result<Option<Map>, Failure> {
    let Some(value) = r.raw("secure_vault")? else { return Ok(None) };
    let Some(map) = value.as_map() else {
        return Err(r.refuse("secure_vault", format_args!("expected map, found {}", value.type_name())));
    };
    let at = r.path_of("secure_vault");
    for key in map.keys() {
        let name = [b"YT_SECURE_VAULT_", key].concat();
        if !std::str::from_utf8(&name).is_ok_and(super::files::is_variable_name) {
            let why = "a key must make a variable's name: letters, digits and \"_\"";
            return Err(refuse_at(&child_path(&at, key), why));
        }
    }
    Ok(Some(map.clone()))
}
