//! `millpond node ...`, seen from outside, and `millpond node join`.

use super::epilogue;
use crate::units::{parse_server, parse_span};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use vocab::Span;

/// `millpond node ...`.
#[derive(Subcommand, Clone, Debug)]
pub enum NodeCommand {
    /// List nodes with their resources, and those that wait for an approval
    #[command(after_help = epilogue!["millpond node list", "millpond node list --json"])]
    List,
    /// Make, list and revoke join tokens
    ///
    /// With a join token a new node gets its own key and certificate, once. It also tells the node which server to trust. Needs the
    /// rights of an administrator.
    #[command(subcommand)]
    Token(NodeTokenCommand),
    /// Give this host's node its identity, without starting it
    ///
    /// The node makes a key, shows the join token to the server, and keeps the certificate that it gets in its data directory. After
    /// that `millpond node` needs no token. Also for nodes of release 0.1, which had a copy of node.token.
    Join(Box<NodeJoinArgs>),
    /// List identities of nodes, nodes that wait for an approval, and join tokens
    #[command(after_help = epilogue!["millpond node identities", "millpond node identities --json"])]
    Identities,
    /// Let a node in that waits for an approval
    ///
    /// Compare the key with the one in the log of the node. Needs the rights of an administrator.
    #[command(after_help = epilogue!["millpond node approve worker-7", "millpond node approve worker-7 --key SHA256"])]
    Approve {
        /// Name of the node
        name: String,
        /// SHA-256 of its key, if several nodes wait under this name
        #[arg(long, value_name = "SHA256")]
        key: Option<String>,
    },
    /// Refuse a node from now on, and close its link
    ///
    /// Its identity is refused for good; unused tokens for its name, and nodes that wait under it, are dropped. The node comes back
    /// only with a new token or approval. Needs the rights of an administrator.
    #[command(after_help = epilogue!["millpond node revoke worker-7"])]
    Revoke {
        /// Name of the node
        name: String,
    },
    /// Forget a node that is not connected
    ///
    /// Units of exclusive work that the node may still run wait for the ends of their leases, so that none runs twice at
    /// once; until then the command is refused without --lost. Needs the rights of an administrator.
    #[command(after_help = epilogue!["millpond node remove worker-7", "millpond node remove worker-7 --lost"])]
    Remove {
        /// Name of the node
        #[arg(value_name = "NODE")]
        name: String,
        /// Nothing runs there any more, for certain: its units are given away at once
        #[arg(long)]
        lost: bool,
    },
}

/// `millpond node token ...`.
#[derive(Subcommand, Clone, Debug)]
pub enum NodeTokenCommand {
    /// Make a join token and print it
    ///
    /// It is shown once: the server keeps only a digest. Give it to the node in a file that only the node's user can read.
    Create(NodeTokenCreateArgs),
    /// List join tokens that have not ended
    #[command(after_help = epilogue!["millpond node token list", "millpond node token list --json"])]
    List,
    /// Revoke a join token
    #[command(after_help = epilogue!["millpond node token revoke SHA256"])]
    Revoke {
        /// SHA-256 of its secret, from `millpond node token list`
        token_sha256: String,
    },
}

/// `millpond node token create`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue![
    "millpond node token create --name worker-7 > worker-7.token",
    "millpond node token create --name worker-7 --replace --ttl 1h > worker-7.token",
])]
pub struct NodeTokenCreateArgs {
    /// The only node that may use it [default: any node whose name is free]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Time until the end of the token [default: 24h]
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub ttl: Option<Span>,
    /// The node takes its name over from the identity that has it: for a node whose data are lost, or whose certificate has ended
    #[arg(long, requires = "name")]
    pub replace: bool,
}

/// `millpond node join`.
#[derive(Args, Clone, Debug)]
#[command(after_help = epilogue!["millpond node join --server 10.0.0.1:8000 --name worker-7 --join-token-file worker-7.token"])]
pub struct NodeJoinArgs {
    /// Address of the server [default: 127.0.0.1:8000]
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_server)]
    pub server: Option<String>,
    /// Unique name of this node in the cluster [default: the name of the host]
    #[arg(long)]
    pub name: Option<String>,
    /// Data directory of the node [env: MILLPOND_DATA, with /node-NAME] [default:
    /// ~/.local/share/millpond/node-NAME]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// File with the join token; without one the node waits for an approval
    #[arg(long, value_name = "FILE")]
    pub join_token_file: Option<PathBuf>,
    /// SHA-256 of the certificate of the server's authority, which the server's log says: the server to trust without a token
    #[arg(long, value_name = "SHA256", value_parser = parse_sha256)]
    pub authority_sha256: Option<String>,
    /// Configuration file in TOML, section [node]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// A SHA-256 in hexadecimal.
pub fn parse_sha256(text: &str) -> Result<String, String> {
    let text = text.trim().to_ascii_lowercase();
    match vocab::join_token::is_sha256(&text) {
        true => Ok(text),
        false => Err(format!("expected 64 hexadecimal digits, found {} characters", text.chars().count())),
    }
}
