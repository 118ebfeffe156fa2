//! Commands of transactions and locks (http-api.md 8.1, 8.2).

use super::params::{Params, Result, required};
use kernel::command::{Command, LockMode, LockOptions, StartOptions};
use vocab::{ObjectId, Span};
use yson::Value;

/// Timeout of a transaction whose owner names none.
const DEFAULT_TIMEOUT: Span = Span::from_secs(30);

pub(super) fn start(params: &Params) -> Result<Command> {
    let prerequisites = params.strings("prerequisite_transaction_ids")?.unwrap_or_default();
    let parse = |id: &String| {
        id.parse::<ObjectId>()
            .map_err(|e| vocab::Failure::new(format!("Parameter \"prerequisite_transaction_ids\": {e}")))
    };
    Ok(Command::StartTransaction(Box::new(StartOptions {
        parent: params.transaction()?,
        timeout: params.milliseconds("timeout")?.unwrap_or(DEFAULT_TIMEOUT),
        deadline: params.time("deadline")?,
        prerequisites: prerequisites.iter().map(parse).collect::<Result<_>>()?,
        attributes: params.map("attributes")?.unwrap_or_default(),
    })))
}

fn transaction(params: &Params) -> Result<ObjectId> {
    required("transaction_id", params.transaction())
}

pub(super) fn ping(params: &Params) -> Result<Command> {
    let ancestors = params.flag("ping_ancestor_transactions")?;
    Ok(Command::PingTransaction { transaction: transaction(params)?, ancestors })
}

pub(super) fn commit(params: &Params) -> Result<Command> {
    Ok(Command::CommitTransaction { transaction: transaction(params)? })
}

pub(super) fn abort(params: &Params) -> Result<Command> {
    Ok(Command::AbortTransaction { transaction: transaction(params)? })
}

pub(super) fn lock(params: &Params) -> Result<Command> {
    let bytes = |name: &str| params.value(name).and_then(Value::as_bytes).map(<[u8]>::to_vec);
    let mode = params.string("mode")?.unwrap_or_else(|| "exclusive".to_owned());
    Ok(Command::Lock {
        path: required("path", params.path("path"))?,
        options: LockOptions {
            mode: LockMode::parse(&mode, bytes("child_key"), bytes("attribute_key"))?,
            waitable: params.flag("waitable")?,
        },
    })
}

pub(super) fn unlock(params: &Params) -> Result<Command> {
    Ok(Command::Unlock { path: required("path", params.path("path"))? })
}
