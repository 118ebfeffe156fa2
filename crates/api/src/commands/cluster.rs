//! Commands of administrators about the cluster's nodes and leases.

use super::params::{Params, Result, required};
use kernel::command::Command;

/// Before planned work: leases of exclusive work begin when the period is over.
pub(super) fn extend_leases(params: &Params) -> Result<Command> {
    Ok(Command::ExtendLeases { period: required("period", params.milliseconds("period"))? })
}

/// A node that is not connected is forgotten.
pub(super) fn remove_node(params: &Params) -> Result<Command> {
    Ok(Command::RemoveNode {
        address: required("address", params.string("address"))?,
        lost: params.flag("lost")?,
    })
}
