//! What a node is told at its start.

use std::hash::BuildHasher;
use std::path::{Path, PathBuf};

use cage::Driver;
use vocab::{Resources, Span};

use crate::{Accounting, RoomOptions};

/// Which job environment to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DriverChoice {
    /// The first one that works here and enforces something; else `rootless`, and for root an error.
    #[default]
    Auto,
    /// This one, or no node.
    Exactly(Driver),
}

impl std::str::FromStr for DriverChoice {
    type Err = cage::CageError;
    fn from_str(text: &str) -> Result<DriverChoice, cage::CageError> {
        if text == "auto" { Ok(DriverChoice::Auto) } else { text.parse().map(DriverChoice::Exactly) }
    }
}

/// Settings of one node. [`NodeConfig::new`] has the defaults of jobs-and-nodes.md 10.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeConfig {
    /// Address of the server, `host:port`. A scheme counts only with `insecure_plaintext`: `http` or `https`, `http` without one.
    pub server: String,
    /// With `insecure_plaintext` and `https`: file with the authorities, in PEM form, that the server's certificate may be from.
    pub ca_file: Option<PathBuf>,
    /// File with a join token: with it the node gets its own identity, once. Not looked at by a node that has one.
    pub join_token_file: Option<PathBuf>,
    /// SHA-256 of the certificate of the server's authority, in hexadecimal: the server that a node trusts which joins without a
    /// token.
    pub authority_sha256: Option<String>,
    /// Speak with the server in clear (or, with `https`, by the public certificate), with the token that all nodes share. An
    /// attacker who reads the line or has the token can take this node's place.
    pub insecure_plaintext: bool,
    /// File with that token, if the server asks for one.
    pub token_file: Option<PathBuf>,
    /// Users of the cluster need not trust each other: the node keeps their jobs apart or starts none. The server says it to
    /// nodes with an identity; of others it is meant by a `token_file`.
    pub authentication: bool,
    /// Unique name of this node in the cluster, `host:port`.
    pub address: String,
    /// Records, sandboxes, file cache. Belongs to this node alone.
    pub data_directory: PathBuf,
    /// What the node offers; may be more than the host has.
    pub resource_limits: Resources,
    /// Tags for node filters.
    pub tags: Vec<String>,
    /// Job environment.
    pub driver: DriverChoice,
    /// Group of this node in every cgroup hierarchy; default `millpond/<address>-<identifier of the data directory>`.
    pub root_group: Option<String>,
    /// Program that becomes the spawner when given `job-proxy-spawner`; default: this one.
    pub spawner_program: PathBuf,
    /// Unix socket for proxies; default in the data directory, or, where that path is too long for a
    /// socket, in the directory for temporary files.
    pub socket: Option<PathBuf>,
    /// Bytes that cached files may take; files in use are never removed.
    pub cache_limit: u64,
    /// Copy files into sandboxes instead of linking to the cache.
    pub copy_files: bool,
    /// Longest wait of a job for resources.
    pub waiting_jobs_timeout: Span,
    /// Longest time from the order to spawn a proxy to its call.
    pub job_proxy_preparation_timeout: Span,
    /// Longest time from the grant of resources to the start of the user's process.
    pub prepare_time_limit: Span,
    /// Longest time for killing a job.
    pub kill_timeout: Span,
    /// A sandbox that is not clean so long after its job is an alert.
    pub waiting_for_job_cleanup_timeout: Span,
    /// First port that jobs are given.
    pub start_port: u16,
    /// How many from there on.
    pub port_count: u16,
    /// How long a file may be impossible to fetch.
    pub artifact_timeout: Span,
    /// Period of samples of jobs.
    pub memory_watchdog_period: Span,
    /// Proxies without a node kill their job after this long.
    pub supervisor_lost_timeout: Span,
    /// A job above its memory limit fails.
    pub check_user_job_memory_limit: bool,
    /// A job whose proxy died is aborted and run again instead of failed.
    pub treat_job_proxy_failure_as_abort: bool,
    /// How jobs are measured and counted while they run.
    pub accounting: Accounting,
    /// Users, namespaces and file systems of jobs.
    pub room: RoomOptions,
}

impl NodeConfig {
    /// With defaults for what is not an argument.
    pub fn new(server: &str, address: &str, data_directory: &Path, resource_limits: Resources) -> NodeConfig {
        NodeConfig {
            server: server.to_owned(),
            ca_file: None,
            join_token_file: None,
            authority_sha256: None,
            insecure_plaintext: false,
            token_file: None,
            authentication: false,
            address: address.to_owned(),
            data_directory: data_directory.to_owned(),
            resource_limits,
            tags: Vec::new(),
            driver: DriverChoice::Auto,
            root_group: None,
            spawner_program: PathBuf::from("/proc/self/exe"),
            socket: None,
            cache_limit: 10 << 30,
            copy_files: false,
            waiting_jobs_timeout: Span::from_secs(30),
            job_proxy_preparation_timeout: Span::from_secs(180),
            prepare_time_limit: Span::from_secs(45 * 60),
            kill_timeout: Span::from_secs(30),
            waiting_for_job_cleanup_timeout: Span::from_secs(15 * 60),
            start_port: 20_000,
            port_count: 10_000,
            artifact_timeout: Span::from_secs(60),
            memory_watchdog_period: Span::from_secs(1),
            supervisor_lost_timeout: Span::from_secs(600),
            check_user_job_memory_limit: true,
            treat_job_proxy_failure_as_abort: false,
            accounting: Accounting::default(),
            room: RoomOptions::default(),
        }
    }

    /// The node's group in every hierarchy; without an identifier unless `root_group` is set.
    pub fn root_group(&self) -> String {
        match &self.root_group {
            Some(group) => group.clone(),
            // Names of groups are names of directories.
            None => format!("millpond/{}", self.address.replace(['/', '\0'], "_")),
        }
    }

    /// Where proxies call. The same after a restart: proxies of the earlier life try it every second.
    pub fn socket_path(&self) -> PathBuf {
        // Proxies work in their sandboxes: to them a relative path is another one.
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        if let Some(path) = &self.socket {
            return absolute(path);
        }
        let directory = absolute(&self.data_directory);
        let near = directory.join("proxies.sock");
        if near.as_os_str().len() <= MAX_SOCKET_PATH {
            return near;
        }
        let hash = rustc_hash::FxBuildHasher.hash_one(&directory);
        let places = datadir::runtime_paths();
        // Proxies look for it in each life of the node: of root the first place stays, of others the last.
        let place = if rustix::process::geteuid().is_root() { places.first() } else { places.last() };
        place.cloned().unwrap_or_default().join(format!("node-{hash:016x}.sock"))
    }
}

/// Longest path that fits the system's address structure, with its final zero.
pub(crate) const MAX_SOCKET_PATH: usize = 107;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_has_a_path_that_works_from_anywhere() {
        let path = |data: &str| NodeConfig::new("s:1", "n:1", Path::new(data), Resources::ZERO).socket_path();
        assert_eq!(path("/var/lib/node"), Path::new("/var/lib/node/proxies.sock"));
        assert!(path("data").is_absolute());
        let (long, other) = (format!("/{}", "x".repeat(200)), format!("/{}", "y".repeat(200)));
        assert!(path(&long).as_os_str().len() <= MAX_SOCKET_PATH);
        assert_eq!(path(&long), path(&long), "the next life finds its proxies");
        assert_ne!(path(&long), path(&other));
    }
}
