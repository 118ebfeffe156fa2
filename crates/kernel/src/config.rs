//! Settings of the kernel.

use crate::{JobTicketKey, Retention};
use vocab::{Failure, Guid, Span, UidRange};

/// See the fields. Scheduler options that administrators change at run time are in the tree
/// (`//sys/scheduler/config`, `//sys/pool_trees/<tree>/@config`), not here.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Public name of the cluster, `//sys/@cluster_name`.
    pub cluster_name: String,
    /// Address of the server, `host:port`, as it appears in the Orchid.
    pub address: String,
    /// Tree that a new cluster gets, and the default one.
    pub default_tree: String,
    /// Version of the product.
    pub version: String,
    /// Id of the cluster, by which nodes of clusters that share a host are told apart.
    pub cluster_id: Guid,
    /// Users of nodes' hosts that jobs run as.
    pub job_uids: UidRange,
    /// Nodes claim all of `job_uids` on their hosts, and not only those that are in use.
    pub claim_all_uids: bool,
    /// Different for every life of the server; makes ids unique for ever.
    pub life: u64,
    /// Period of nodes' heartbeats.
    pub heartbeat_period: Span,
    /// After a start: how long to wait for the nodes that were there before.
    pub node_recovery_grace: Span,
    /// Is there an event log?
    pub event_log: bool,
    /// Are permissions asked for? Otherwise everybody may do everything.
    pub access_control: bool,
    /// Must nodes prove who they are ([`NodeProof`](crate::NodeProof)) before they register? Off in simulations and benchmarks,
    /// whose nodes have no connections.
    pub node_identities: bool,
    /// Keys of the tickets of jobs, by which a job of an earlier life is adopted from its own node. The first one makes tickets,
    /// all of them verify. Without a key, jobs of an earlier life are not adopted where nodes have identities.
    pub job_ticket_keys: Vec<JobTicketKey>,
    /// May nodes without a join token ask for an approval?
    pub node_approval: bool,
    /// Life of a node's certificate.
    pub node_certificate_ttl: Span,
    /// Number of the first event if the store does not know better: behind those in the files.
    pub first_event: u64,
    /// How long finished operations are kept.
    pub retention: Retention,
    /// How big things may be, and how much one account or user may have.
    pub limits: cypress::Limits,
    /// What is wrong with the settings of the server, for `//sys/scheduler/@alerts`, with `alert_type`.
    pub alerts: Vec<Failure>,
}

impl Config {
    /// Defaults for a cluster with this address in this life.
    pub fn new(address: &str, life: u64) -> Config {
        Config {
            cluster_name: "millpond".into(),
            address: address.into(),
            default_tree: "physical".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            cluster_id: Guid::NULL,
            job_uids: UidRange::of_cluster(Guid::NULL),
            claim_all_uids: false,
            life,
            heartbeat_period: Span::from_secs(5),
            node_recovery_grace: Span::from_secs(30),
            event_log: true,
            access_control: false,
            node_identities: true,
            job_ticket_keys: Vec::new(),
            node_approval: true,
            node_certificate_ttl: Span::from_secs(90 * 24 * 3600),
            first_event: 1,
            retention: Retention::default(),
            limits: cypress::Limits::default(),
            alerts: Vec::new(),
        }
    }
}
