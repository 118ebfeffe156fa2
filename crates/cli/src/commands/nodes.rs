//! `node ...`.

use super::Session;
use crate::args::{NodeCommand, NodeTokenCommand};
use crate::error::CliError;
use crate::views::{Done, IdentityTable, NodeTable, Scalar};
use yson::Value;

pub fn run(session: &Session, command: NodeCommand) -> Result<(), CliError> {
    let client = &session.client;
    match command {
        NodeCommand::List => list(session),
        NodeCommand::Identities => {
            session.screen.show(&IdentityTable { identities: client.node_identities()?, only_tokens: false })
        }
        NodeCommand::Token(NodeTokenCommand::List) => {
            session.screen.show(&IdentityTable { identities: client.node_identities()?, only_tokens: true })
        }
        NodeCommand::Token(NodeTokenCommand::Create(args)) => {
            let token = client.create_join_token(args.name.as_deref(), args.ttl, args.replace)?;
            session.screen.show(&Scalar(token.into()))
        }
        NodeCommand::Token(NodeTokenCommand::Revoke { token_sha256 }) => {
            client.revoke_join_token(&token_sha256)?;
            session.screen.show(&Done { verb: "revoked", names: vec![token_sha256] })
        }
        NodeCommand::Approve { name, key } => {
            client.approve_node(&name, key.as_deref())?;
            session.screen.show(&Done { verb: "approved", names: vec![name] })
        }
        NodeCommand::Revoke { name } => {
            client.revoke_node(&name)?;
            session.screen.show(&Done { verb: "revoked", names: vec![name] })
        }
        NodeCommand::Remove { name, lost } => remove(session, &name, lost),
        NodeCommand::Join(_) => {
            Err(CliError::failed("this command runs on a node, which this library does not"))
        }
    }
}

fn list(session: &Session) -> Result<(), CliError> {
    let reply = session.client.get("//sys/scheduler/orchid/scheduler/nodes", &[])?;
    let Value::Map(nodes) = reply.into_bare() else {
        return Err(CliError::failed("the server's list of nodes is not a map"));
    };
    // Who may not see them sees the nodes.
    let identities = session.client.node_identities().unwrap_or_default();
    let pending = identities.get("pending").and_then(Value::as_list).unwrap_or_default().to_vec();
    session.screen.show(&NodeTable { nodes, pending })
}

/// Forgets a node; its exclusive units, if it may still run some, are given away at once with `lost`.
fn remove(session: &Session, name: &str, lost: bool) -> Result<(), CliError> {
    let units = session.client.remove_node(name, lost)?;
    if units > 0 {
        session.screen.tell(&format!("{units} units of exclusive work that it ran are given away"));
    }
    session.screen.show(&Done { verb: "removed", names: vec![name.to_owned()] })
}
