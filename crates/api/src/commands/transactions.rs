//! Commands of transactions and locks (http-api.md 8.1, 8.2).

use super::params::{Params, Result, required};
use kernel::command::{Command, LockMode, LockOptions, StartOptions};
use vocab::{Failure, ObjectId, Span};

/// Timeout of a transaction whose owner names none.
const DEFAULT_TIMEOUT: Span = Span::from_secs(30);

/// Transactions that must be active for a command to do anything.
pub fn prerequisites(params: &Params) -> Result<Vec<ObjectId>> {
    // To do it all the same is what whoever asks for it fears.
    if params.value("prerequisite_revisions").is_some_and(|list| list.as_list().is_none_or(|l| !l.is_empty()))
    {
        let message = "Parameter \"prerequisite_revisions\" is not supported: lock the node in a transaction, and name \
                       it in \"prerequisite_transaction_ids\"";
        return Err(Failure::new(message).with("parameter", "prerequisite_revisions"));
    }
    let ids = params.strings("prerequisite_transaction_ids")?.unwrap_or_default();
    let parse = |id: &String| {
        id.parse::<ObjectId>()
            .map_err(|e| Failure::new(format!("Parameter \"prerequisite_transaction_ids\": {e}")))
    };
    ids.iter().map(parse).collect()
}

/// For commands that cannot wait for it.
pub fn refuse_prerequisites(params: &Params, command: &str) -> Result<()> {
    match prerequisites(params)?.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "Parameter \"prerequisite_transaction_ids\" is not supported by {command:?}: give it to the commands of a \
             batch, or to the one that commits the transaction of a write"
        ))
        .with("parameter", "prerequisite_transaction_ids")),
    }
}

pub(super) fn start(params: &Params) -> Result<Command> {
    Ok(Command::StartTransaction(Box::new(StartOptions {
        parent: params.transaction()?,
        timeout: params.milliseconds("timeout")?.unwrap_or(DEFAULT_TIMEOUT),
        deadline: params.time("deadline")?,
        prerequisites: prerequisites(params)?,
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
    let mode = params.string("mode")?.unwrap_or_else(|| "exclusive".to_owned());
    Ok(Command::Lock {
        path: required("path", params.path("path"))?,
        options: LockOptions {
            mode: LockMode::parse(&mode, params.bytes("child_key")?, params.bytes("attribute_key")?)?,
            waitable: params.flag("waitable")?,
        },
    })
}

pub(super) fn unlock(params: &Params) -> Result<Command> {
    Ok(Command::Unlock { path: required("path", params.path("path"))? })
}
