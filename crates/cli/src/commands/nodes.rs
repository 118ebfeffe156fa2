//! `node list`.

use super::Session;
use crate::error::CliError;
use crate::views::NodeTable;
use yson::Value;

pub fn list(session: &Session) -> Result<(), CliError> {
    let reply = session.client.get("//sys/scheduler/orchid/scheduler/nodes", &[])?;
    let Value::Map(nodes) = reply.into_bare() else {
        return Err(CliError::failed("the server's list of nodes is not a map"));
    };
    session.screen.show(&NodeTable { nodes })
}
