//! Permissions and guarantees (http-api.md 8.4, 8.8).

use super::params::{Params, Result, required};
use kernel::command::Command;

pub(super) fn check_permission(params: &Params) -> Result<Command> {
    Ok(Command::CheckPermission {
        user: required("user", params.string("user"))?,
        permission: required("permission", params.string("permission"))?,
        path: required("path", params.path("path"))?,
    })
}

pub(super) fn transfer_pool_resources(params: &Params) -> Result<Command> {
    Ok(Command::TransferPoolResources {
        source_pool: required("source_pool", params.string("source_pool"))?,
        destination_pool: required("destination_pool", params.string("destination_pool"))?,
        pool_tree: required("pool_tree", params.string("pool_tree"))?,
        resource_delta: required("resource_delta", params.map("resource_delta"))?,
    })
}
