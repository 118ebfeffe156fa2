//! What to run: names, arguments and places of all processes. No IO.

use cli::units::resource;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use vocab::{RESOURCES, Resource, Resources};

/// Everything that was decided from options, file and machine.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address of the API.
    pub listen: SocketAddr,
    /// Data directory of the cluster.
    pub data: PathBuf,
    /// Number of nodes.
    pub nodes: u16,
    /// What each offers.
    pub resources: Resources,
    /// Given to nodes, if given to us.
    pub job_environment: Option<String>,
    /// `--isolation` of the nodes.
    pub isolation: Option<String>,
    /// `--auth` or `--no-auth` of the server.
    pub auth: Option<bool>,
    /// `--new-cluster` of the server.
    pub new_cluster: bool,
    /// `--new-node-authority` of the server.
    pub new_node_authority: bool,
    /// `--new-vault-key` of the server.
    pub new_vault_key: bool,
    /// `--abandon-locked-vaults` of the server.
    pub abandon_locked_vaults: bool,
    /// Given to everybody.
    pub config: Option<PathBuf>,
    /// Logs go to our stderr.
    pub verbose: bool,
    /// Name of this host.
    pub host: String,
}

impl Options {
    /// Does the server ask who people and nodes are? (`ServerConfig::is_authenticated`)
    pub fn is_authenticated(&self) -> bool {
        self.auth.unwrap_or(!self.listen.ip().to_canonical().is_loopback())
    }
    /// File with the token of `root`, if the server is such a one.
    pub fn root_token(&self) -> PathBuf {
        self.data.join("server").join("root.token")
    }
    /// Name of a node. Groups of nodes are named after it: two clusters on a host must not share names.
    pub fn node_name(&self, number: u16) -> String {
        format!("{}-{}-{number}", self.host, self.listen.port())
    }
    /// File with the join token of a node.
    pub fn join_token(&self, number: u16) -> PathBuf {
        self.data.join(format!("node-{number}.join-token"))
    }
    /// Directory of logs.
    pub fn logs(&self) -> PathBuf {
        self.data.join("logs")
    }
    /// Log of one child.
    pub fn log(&self, child: &str) -> PathBuf {
        self.logs().join(format!("{child}.log"))
    }
}

/// One child process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildPlan {
    /// `server`, `node-1`, ...
    pub name: String,
    /// Arguments of our own program.
    pub arguments: Vec<OsString>,
    /// More of them for the first start alone: orders that are not to be repeated when the process is started again.
    pub first_arguments: Vec<OsString>,
    /// File for its log; our stderr if absent.
    pub log: Option<PathBuf>,
}

/// All child processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The server.
    pub server: ChildPlan,
    /// The nodes.
    pub nodes: Vec<ChildPlan>,
    /// Where logs go.
    pub logs: PathBuf,
}

/// Projects of disk quotas: more than a node has slots.
const PROJECTS_OF_A_NODE: u32 = 100_000;

/// What to run for these options.
pub fn plan(options: &Options) -> Plan {
    let child = |name: String, mut arguments: Vec<OsString>| {
        arguments.push("--supervised".into());
        if let Some(config) = &options.config {
            arguments.extend(["--config".into(), config.into()]);
        }
        let log = (!options.verbose).then(|| options.log(&name));
        ChildPlan { name, arguments, first_arguments: Vec::new(), log }
    };
    let mut server = vec![
        "server".into(),
        "--listen".into(),
        options.listen.to_string().into(),
        "--data".into(),
        options.data.join("server").into(),
    ];
    match options.auth {
        Some(true) => server.push("--auth".into()),
        Some(false) => server.push("--no-auth".into()),
        None => {}
    }
    let orders = [
        (options.new_cluster, "--new-cluster"),
        (options.new_node_authority, "--new-node-authority"),
        (options.new_vault_key, "--new-vault-key"),
        (options.abandon_locked_vaults, "--abandon-locked-vaults"),
    ];
    let orders = orders.into_iter().filter(|(is_given, _)| *is_given).map(|(_, order)| order.into());
    let node = |number: u16| {
        let name = format!("node-{number}");
        let mut arguments: Vec<OsString> = vec![
            "node".into(),
            "--server".into(),
            reachable(options.listen).to_string().into(),
            "--name".into(),
            options.node_name(number).into(),
            "--data".into(),
            options.data.join(&name).into(),
            "--resources".into(),
            offered(&options.resources).into(),
            "--stop-jobs".into(),
            "--uid-offset".into(),
            (u32::from(number - 1) * PROJECTS_OF_A_NODE).to_string().into(),
        ];
        arguments.extend(["--join-token-file".into(), options.join_token(number).into()]);
        if let Some(environment) = &options.job_environment {
            arguments.extend(["--job-environment".into(), environment.into()]);
        }
        if let Some(isolation) = &options.isolation {
            arguments.extend(["--isolation".into(), isolation.into()]);
        }
        child(name, arguments)
    };
    Plan {
        server: ChildPlan { first_arguments: orders.collect(), ..child("server".to_owned(), server) },
        nodes: (1..=options.nodes).map(node).collect(),
        logs: options.logs(),
    }
}

/// The address to call for one that is listened on: all interfaces have this host's among them.
pub fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

/// As `--resources` reads it.
fn offered(resources: &Resources) -> String {
    let one = |r: Resource| match r {
        // Exactly: bytes, not "15.6 GiB".
        Resource::Memory => format!("memory={}", resources.memory),
        _ => format!("{r}={}", resource(r, resources.raw(r)).replace(' ', "")),
    };
    RESOURCES.map(one).join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use cli::{Cli, Command};
    use vocab::Cpu;

    fn options() -> Options {
        Options {
            listen: "0.0.0.0:8000".parse().expect("an address"),
            data: "/data".into(),
            nodes: 2,
            resources: Resources { cpu: Cpu(150), memory: 3 << 30, user_slots: 12_345, ..Resources::ZERO },
            job_environment: Some("simple".into()),
            auth: None,
            new_cluster: true,
            new_node_authority: true,
            new_vault_key: true,
            abandon_locked_vaults: true,
            isolation: Some("none".into()),
            config: Some("/etc/m.toml".into()),
            verbose: false,
            host: "host".into(),
        }
    }

    #[test]
    fn children_understand_their_arguments() {
        let plan = plan(&options());
        let parse = |child: &ChildPlan| {
            let line = [OsString::from("millpond")].into_iter().chain(child.arguments.clone());
            let line = line.chain(child.first_arguments.clone());
            Cli::try_parse_from(line).expect("arguments that parse").command
        };
        match parse(&plan.server) {
            Command::Server(args) => {
                assert_eq!((args.listen, args.supervised), (Some(options().listen), true));
                assert!(args.new_cluster && args.new_node_authority);
                assert!(args.new_vault_key && args.abandon_locked_vaults);
                assert_eq!(args.data, Some("/data/server".into()));
                assert_eq!(args.config, Some("/etc/m.toml".into()));
            }
            other => panic!("not a server: {other:?}"),
        }
        assert_eq!(plan.nodes.len(), 2);
        match parse(&plan.nodes[1]) {
            Command::Node(args) => {
                assert_eq!(
                    args.server.as_deref(),
                    Some("127.0.0.1:8000"),
                    "nodes call an address that can be called"
                );
                assert_eq!(args.name.as_deref(), Some("host-8000-2"));
                assert_eq!(args.resources.map(|r| r.over(Resources::ZERO)), Some(options().resources));
                assert!(args.stop_jobs && args.supervised);
                assert_eq!(args.join_token_file, Some("/data/node-2.join-token".into()));
            }
            other => panic!("not a node: {other:?}"),
        }
        // A server that is started again must not make one more key of vaults, or one more cluster.
        let again: Vec<_> = plan.server.arguments.iter().filter_map(|argument| argument.to_str()).collect();
        for order in ["--new-cluster", "--new-vault-key", "--abandon-locked-vaults"] {
            assert!(!again.contains(&order), "{again:?}");
            assert!(plan.server.first_arguments.iter().any(|argument| argument == order), "{order}");
        }
        assert_eq!(plan.nodes[1].log, Some("/data/logs/node-2.log".into()));
    }
}
