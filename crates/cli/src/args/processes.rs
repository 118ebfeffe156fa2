//! Processes of a cluster. The binary runs them; `crates/millpond` says how.

use super::epilogue;
use super::nodes::{NodeCommand, parse_sha256};
use crate::units::{Amounts, parse_listen, parse_resources, parse_server, parse_span};
use clap::{Args, Subcommand};
use std::net::SocketAddr;
use std::path::PathBuf;
use vocab::Span;

/// `millpond up`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue![
        "millpond up",
        "millpond up --nodes 2 --node-resources cpu=8,memory=16GiB,user_slots=32",
        "millpond up --listen 127.0.0.1:9000 --data ./cluster",
    ])]
pub struct UpArgs {
    /// Address of the API; port 0 takes a free one [default: 127.0.0.1:8000]
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_listen)]
    pub listen: Option<SocketAddr>,
    /// Where the cluster keeps its data and logs [env: MILLPOND_DATA] [default: millpond in
    /// $XDG_DATA_HOME, else ~/.local/share/millpond]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Number of exec nodes [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=100))]
    pub nodes: Option<u16>,
    /// What each node offers, e.g. cpu=8,memory=16GiB,user_slots=32,gpu=1,network=100; it may be more
    /// than the machine has [default for what is not named: cores and memory of the machine, divided
    /// among the nodes, and 4 user slots per core but 32 at least]
    #[arg(long, value_name = "RESOURCES", value_parser = parse_resources)]
    pub node_resources: Option<Amounts>,
    /// How jobs are held together: auto, hybrid, cgroup_v2, cgroup_v1, rootless or simple [default: auto]
    #[arg(long, value_name = "NAME", value_parser = parse_job_environment)]
    pub job_environment: Option<String>,
    /// Whether jobs are kept apart from the host by namespaces, users and a read-only view of it:
    /// auto (as far as the host lets us; as root, or with authentication, no job starts without), full or none
    /// [default: auto]
    #[arg(long, value_name = "HOW", value_parser = parse_isolation)]
    pub isolation: Option<String>,
    /// Ask who people and nodes are, by tokens and passwords [default: only if the address can be
    /// reached from other machines]
    #[arg(long)]
    pub auth: bool,
    /// Let everybody in as root who can reach the address
    #[arg(long, conflicts_with = "auth")]
    pub no_auth: bool,
    /// If the server's part of the data does not hold one whole cluster: move what is there into a folder of its own,
    /// and begin a new cluster. A whole cluster is started as without this
    #[arg(long)]
    pub new_cluster: bool,
    /// If the server's authority for its nodes is lost, or is another one than the nodes know: go on with a new one, or
    /// with this one. All nodes must join again; without this option the server does not start then
    #[arg(long)]
    pub new_node_authority: bool,
    /// Encrypt secure vaults of operations with a new key from now on
    #[arg(long)]
    pub new_vault_key: bool,
    /// Let operations fail whose secure vaults need a key that is lost; without this option the server does not start
    /// then. A damaged vault.key is moved aside
    #[arg(long)]
    pub abandon_locked_vaults: bool,
    /// Configuration file in TOML, sections [server], [node] and [up]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Show the logs of all processes here instead of keeping them in files
    #[arg(long, short)]
    pub verbose: bool,
}

/// `millpond server`.
#[derive(Args, Clone, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = epilogue![
        "millpond server --listen 0.0.0.0:8000 --data /var/lib/millpond/server",
        "millpond server --listen 0.0.0.0:8443 --tls-cert chain.pem --tls-key key.pem",
        "millpond server --config /etc/millpond.toml",
        "millpond server gc",
    ],
)]
pub struct ServerArgs {
    /// The other meaning of the command.
    #[command(subcommand)]
    pub command: Option<ServerCommand>,
    /// Address of the API and of the node protocol [default: 127.0.0.1:8000]
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_listen)]
    pub listen: Option<SocketAddr>,
    /// Where the server keeps its data [env: MILLPOND_DATA, with /server] [default:
    /// ~/.local/share/millpond/server]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Speak TLS, with the certificate in this file, those above it behind it, in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// File with the private key of the certificate, in PEM form
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Ask who people and nodes are, by tokens and passwords [default: only if the address can be
    /// reached from other machines]
    #[arg(long)]
    pub auth: bool,
    /// Let everybody in as root who can reach the address
    #[arg(long, conflicts_with = "auth")]
    pub no_auth: bool,
    /// Let nodes in that come in clear with node.token, the token that all of them share, as release 0.1 did. A thief of
    /// that token gets the jobs and vaults of all users. Use this only while nodes are given identities
    #[arg(long)]
    pub insecure_plaintext_nodes: bool,
    /// If the data directory does not hold one whole cluster: move what is there into a folder of its own, and begin a
    /// new cluster. A whole cluster is started as without this
    #[arg(long)]
    pub new_cluster: bool,
    /// If the server's authority for its nodes is lost, or is another one than the nodes know: go on with a new one, or
    /// with this one. All nodes must join again; without this option the server does not start then
    #[arg(long)]
    pub new_node_authority: bool,
    /// Encrypt secure vaults of operations with a new key from now on
    #[arg(long)]
    pub new_vault_key: bool,
    /// Let operations fail whose secure vaults need a key that is lost; without this option the server does not start
    /// then. A damaged vault.key is moved aside
    #[arg(long)]
    pub abandon_locked_vaults: bool,
    /// Configuration file in TOML, section [server]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Stop when stdin ends: the process that started this one is gone
    #[arg(long, hide = true)]
    pub supervised: bool,
}

/// `millpond server ...`, seen from outside.
#[derive(Subcommand, Clone, Debug)]
pub enum ServerCommand {
    /// Show the garbage that waits for a confirmation, or confirm that it is removed
    ///
    /// At its start the server removes contents that nothing refers to. If they are more than a tenth of all, or newer
    /// than the store, they are kept, and the alert garbage_collection_held says so: the store may be an older copy.
    /// Needs the rights of an administrator.
    #[command(after_help = epilogue!["millpond server gc", "millpond server gc --confirm"])]
    Gc {
        /// Remove it
        #[arg(long)]
        confirm: bool,
    },
    /// Extend the leases of all running jobs before planned work on the server or the network
    ///
    /// A job of exclusive work stops when the server cannot be reached for longer than its lease, 5 minutes by default.
    /// After this command that time begins only when the period is over. Waits until all nodes have confirmed it: stop the
    /// server then. An extension cannot be taken back, and units of nodes that are lost in the period wait for its end.
    /// Needs the rights of an administrator.
    #[command(after_help = epilogue!["millpond server pause --for 2h"])]
    Pause {
        /// How long the server may be away, at most 7d
        #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
        period: Span,
    },
}

/// `millpond node`.
#[derive(Args, Clone, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = epilogue![
        "millpond node --server 10.0.0.1:8000 --name worker-7 --join-token-file worker-7.token",
        "millpond node --server 10.0.0.1:8000 --resources cpu=8,memory=16GiB --tags ssd,rack-4",
        "millpond node list",
    ],
)]
pub struct NodeArgs {
    /// The other meaning of the command.
    #[command(subcommand)]
    pub command: Option<NodeCommand>,
    /// Address of the server [default: 127.0.0.1:8000]
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_server)]
    pub server: Option<String>,
    /// Unique name of this node in the cluster [default: the name of the host]
    #[arg(long)]
    pub name: Option<String>,
    /// Where the node keeps sandboxes, records and cached files [env: MILLPOND_DATA, with
    /// /node-NAME] [default: ~/.local/share/millpond/node-NAME]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// What the node offers, e.g. cpu=8,memory=16GiB,user_slots=32,gpu=1,network=100 [default for what
    /// is not named: cores and memory of the machine, and 4 user slots per core but 32 at least]
    #[arg(long, value_name = "RESOURCES", value_parser = parse_resources)]
    pub resources: Option<Amounts>,
    /// Tags for node filters, separated by commas
    #[arg(long, value_name = "TAGS", value_delimiter = ',')]
    pub tags: Vec<String>,
    /// How jobs are held together: auto, hybrid, cgroup_v2, cgroup_v1, rootless or simple [default: auto]
    #[arg(long, value_name = "NAME", value_parser = parse_job_environment)]
    pub job_environment: Option<String>,
    /// Whether jobs are kept apart from the host by namespaces, users and a read-only view of it:
    /// auto (as far as the host lets us; as root, or with authentication, no job starts without), full or none
    /// [default: auto]
    #[arg(long, value_name = "HOW", value_parser = parse_isolation)]
    pub isolation: Option<String>,
    /// Added to the projects of disk quotas: nodes of one host should not share them
    #[arg(long, hide = true, value_name = "N", default_value_t = 0)]
    pub uid_offset: u32,
    /// Abort the jobs when the node is stopped
    #[arg(long)]
    pub stop_jobs: bool,
    /// File with a join token, from `millpond node token create`: with it the node gets its own key and certificate,
    /// once. Not needed any more after that
    #[arg(long, value_name = "FILE")]
    pub join_token_file: Option<PathBuf>,
    /// SHA-256 of the certificate of the server's authority, which the server's log says: the server that a node
    /// trusts which has no join token and waits for an approval
    #[arg(long, value_name = "SHA256", value_parser = parse_sha256)]
    pub authority_sha256: Option<String>,
    /// Speak with the server in clear, with the token that all nodes share, as release 0.1 did. An attacker who reads the
    /// line or has the token can take this node's place. The server needs --insecure-plaintext-nodes
    #[arg(long)]
    pub insecure_plaintext: bool,
    /// With --insecure-plaintext: file with the token that the server asks all nodes for, a copy of its node.token
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// With --insecure-plaintext and https://: file with the certificates of the authorities that the server's certificate
    /// may be from, in PEM form [env: MILLPOND_CA_FILE] [default: those that the system trusts]
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Configuration file in TOML, section [node]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Stop when stdin ends: the process that started this one is gone
    #[arg(long, hide = true)]
    pub supervised: bool,
}

/// Names of jobs-and-nodes.md 4.1. The node knows which of them work on its host.
pub const JOB_ENVIRONMENTS: [&str; 7] =
    ["auto", "hybrid", "cgroup_v2", "cgroup_v1", "rootless", "oci", "simple"];

/// Names of jobs-and-nodes.md 4.7 [MP].
pub const ISOLATIONS: [&str; 3] = ["auto", "full", "none"];

fn parse_isolation(text: &str) -> Result<String, String> {
    match ISOLATIONS.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("expected one of {}", ISOLATIONS.join(", "))),
    }
}

pub(super) fn parse_job_environment(text: &str) -> Result<String, String> {
    match JOB_ENVIRONMENTS.contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(format!("expected one of {}", JOB_ENVIRONMENTS.join(", "))),
    }
}
