//! Permissions and guarantees (http-api.md 8.4, 8.8).

use super::params::{Params, Result, required};
use crate::secrets;
use kernel::command::Command;
use vocab::Failure;

pub(super) fn check_permission(params: &Params) -> Result<Command> {
    Ok(Command::CheckPermission {
        user: required("user", params.string("user"))?,
        permission: required("permission", params.string("permission"))?,
        path: required("path", params.path("path"))?,
        columns: params.strings("columns")?,
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

pub(super) fn check_permission_by_acl(params: &Params) -> Result<Command> {
    Ok(Command::CheckPermissionByAcl {
        user: required("user", params.string("user"))?,
        permission: required("permission", params.string("permission"))?,
        acl: required("acl", Ok(params.value("acl").cloned()))?,
    })
}

pub(super) fn check_operation_permission(params: &Params) -> Result<Command> {
    Ok(Command::CheckOperationPermission {
        user: required("user", params.string("user"))?,
        permission: required("permission", params.string("permission"))?,
        operation: params.required_operation()?,
    })
}

pub(super) fn transfer_account_resources(params: &Params) -> Result<Command> {
    Ok(Command::TransferAccountResources {
        source_account: required("source_account", params.string("source_account"))?,
        destination_account: required("destination_account", params.string("destination_account"))?,
        resource_delta: required("resource_delta", params.map("resource_delta"))?,
    })
}

pub(super) fn add_member(params: &Params) -> Result<Command> {
    Ok(Command::AddMember {
        group: required("group", params.string("group"))?,
        member: required("member", params.string("member"))?,
    })
}

pub(super) fn remove_member(params: &Params) -> Result<Command> {
    Ok(Command::RemoveMember {
        group: required("group", params.string("group"))?,
        member: required("member", params.string("member"))?,
    })
}

pub(super) fn revoke_token(params: &Params) -> Result<Command> {
    Ok(Command::RevokeToken {
        user: required("user", params.string("user"))?,
        token_sha256: required("token_sha256", params.string("token_sha256"))?,
    })
}

pub(super) fn list_user_tokens(params: &Params) -> Result<Command> {
    let with_metadata = params.flag("with_metadata")?;
    Ok(Command::ListUserTokens { user: required("user", params.string("user"))?, with_metadata })
}

/// Millpond's meaning of the command: garbage that waits for a confirmation is collected, as is all else by itself.
pub(super) fn gc_collect(_: &Params) -> Result<Command> {
    Ok(Command::CollectGarbage)
}

/// The command, and the secret of the token that only the client gets to see.
pub fn create_join_token(params: &Params, secret: String) -> Result<(Command, String)> {
    let command = Command::CreateJoinToken {
        token_sha256: secrets::sha256(&secret),
        name: params.string("name")?,
        ttl: params.milliseconds("ttl")?,
        replace: params.flag("replace")?,
    };
    Ok((command, secret))
}

pub(super) fn revoke_join_token(params: &Params) -> Result<Command> {
    Ok(Command::RevokeJoinToken { token_sha256: required("token_sha256", params.string("token_sha256"))? })
}

pub(super) fn approve_node(params: &Params) -> Result<Command> {
    let name = required("name", params.string("name"))?;
    Ok(Command::ApproveNode { name, key_sha256: params.string("key_sha256")? })
}

pub(super) fn revoke_node(params: &Params) -> Result<Command> {
    Ok(Command::RevokeNode { name: required("name", params.string("name"))? })
}

pub(super) fn list_node_identities(_: &Params) -> Result<Command> {
    Ok(Command::ListNodeIdentities)
}

/// The command, and the token that only the client gets to see.
pub fn issue_token(params: &Params, token: String) -> Result<(Command, String)> {
    let command = Command::IssueToken {
        user: required("user", params.string("user"))?,
        token_sha256: secrets::sha256(&token),
        description: params.string("description")?.filter(|text| !text.is_empty()),
        ttl: params.milliseconds("ttl")?,
    };
    Ok((command, token))
}

/// The command, and the new token that only the client gets to see.
pub fn rotate_token(params: &Params, token: String) -> Result<(Command, String)> {
    let command = Command::RotateToken {
        user: required("user", params.string("user"))?,
        old_sha256: required("token_sha256", params.string("token_sha256"))?,
        token_sha256: secrets::sha256(&token),
        ttl: params.milliseconds("ttl")?,
        grace: params.milliseconds("grace")?,
    };
    Ok((command, token))
}

/// The user, and the digest of the password that clients send: this is what is hashed.
pub fn set_user_password(params: &Params) -> Result<(String, String)> {
    let user = required("user", params.string("user"))?;
    let password = required("new_password_sha256", params.string("new_password_sha256"))?;
    if password.len() != 64 || !password.bytes().all(|b| b.is_ascii_hexdigit()) {
        let text = "Parameter \"new_password_sha256\" must be 64 hexadecimal digits";
        return Err(Failure::new(text).with("parameter", "new_password_sha256"));
    }
    Ok((user, password.to_ascii_lowercase()))
}
