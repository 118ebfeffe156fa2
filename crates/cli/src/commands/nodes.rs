//! `node list`, `node remove`.

use super::Session;
use crate::error::CliError;
use crate::views::{Done, NodeTable};
use yson::Value;

pub fn list(session: &Session) -> Result<(), CliError> {
    let reply = session.client.get("//sys/scheduler/orchid/scheduler/nodes", &[])?;
    let Value::Map(nodes) = reply.into_bare() else {
        return Err(CliError::failed("the server's list of nodes is not a map"));
    };
    session.screen.show(&NodeTable { nodes })
}

/// Forgets a node; its exclusive units, if it may still run some, are given away at once with `lost`.
pub fn remove(session: &Session, name: &str, lost: bool) -> Result<(), CliError> {
    let units = session.client.remove_node(name, lost)?;
    if units > 0 {
        session.screen.tell(&format!("{units} units of exclusive work that it ran are given away"));
    }
    session.screen.show(&Done { verb: "removed", names: vec![name.to_owned()] })
}
