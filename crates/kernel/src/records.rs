//! Keys and forms of the kernel's durable records.
//!
//! `Operations`: `id + 's'` the static part (spec, user), written once; `id + 'v'` the secure vault, if there is one;
//! `id + 'd'` the changing part of the kernel (state, events, runtime parameters); `id + 'c' + part` what the controller
//! keeps;
//! `id + 'o' + first row + table` a chunk that a job has written, of a unit that is done;
//! `id + 'a'` how many bytes its finished jobs take in the archive.
//!
//! `OperationArchive`: `id` all attributes of a finished operation; `id + 'l'` those of them that
//! `list_operations` shows unless it is asked for others: a page of a thousand reads little; `id + 'i'` where
//! the rows were that its jobs have read.

use crate::operation::{Event, InTree, Operation, Pinned, unknown_payer};
use crate::operations::tables::WorkTables;
use cypress::Payer;
use std::ops::Range;
use std::sync::Arc;
use vocab::batch::Table;
use vocab::{Artifact, Failure, Guid, JobId, OperationId, Time};
use yson::{Map, Value};

pub(crate) const STATIC: u8 = b's';
pub(crate) const VAULT: u8 = b'v';
pub(crate) const DYNAMIC: u8 = b'd';
pub(crate) const CONTROLLER: u8 = b'c';
pub(crate) const ARCHIVED: u8 = b'a';
pub(crate) const OUTPUT: u8 = b'o';

pub(crate) fn operation_prefix(id: OperationId) -> Vec<u8> {
    id.0.to_bytes().to_vec()
}

pub(crate) fn operation_key(id: OperationId, part: u8, rest: &[u8]) -> Vec<u8> {
    let mut key = operation_prefix(id);
    key.push(part);
    key.extend_from_slice(rest);
    key
}

/// Id, part and the rest of a key of `Operations`.
pub(crate) fn parse_operation_key(key: &[u8]) -> Option<(OperationId, u8, &[u8])> {
    let id: [u8; 16] = key.get(..16)?.try_into().ok()?;
    let (part, rest) = key[16..].split_first()?;
    Some((OperationId(Guid::from_bytes(id)), *part, rest))
}

/// The operation whose secure vault this record holds. Such records are for the kernel alone: the server encrypts them before
/// the store gets them, and decrypts them for [`crate::Records::add`].
pub fn operation_of_vault(table: Table, key: &[u8]) -> Option<OperationId> {
    match parse_operation_key(key)? {
        (id, VAULT, []) if table == Table::Operations => Some(id),
        _ => None,
    }
}

/// Takes the vault out of the record of an unfinished operation as versions before the encryption of vaults have written it.
/// `None` if there is none in it; otherwise the records that replace it, in this order: the one with the same key, and the one of
/// the vault.
pub fn split_clear_vault(table: Table, key: &[u8], value: &[u8]) -> Option<[(Vec<u8>, Vec<u8>); 2]> {
    let (id, STATIC, []) = parse_operation_key(key).filter(|_| table == Table::Operations)? else {
        return None;
    };
    let mut record = record_with_clear_vault(value)?;
    let of_its_own = record.remove(CLEAR_VAULT);
    let in_spec = remove_clear_vault(&mut record, "spec");
    let vault = of_its_own.or(in_spec)?;
    record.insert(HAS_VAULT, true);
    let rest = yson::to_binary(&record.into());
    Some([(key.to_vec(), rest), (operation_key(id, VAULT, &[]), yson::to_binary(&vault))])
}

/// Takes the vault out of the record of a finished operation. Those versions have shown it, and put it into the archive, if the
/// server was restarted while the operation ran. `None` if there is none in it; otherwise the record that replaces it.
pub fn without_clear_vault(table: Table, value: &[u8]) -> Option<Vec<u8>> {
    let mut record = record_with_clear_vault(value).filter(|_| table == Table::OperationArchive)?;
    // In both of them.
    let found = ["spec", "provided_spec"].map(|name| remove_clear_vault(&mut record, name));
    found.iter().any(Option::is_some).then(|| yson::to_binary(&record.into()))
}

/// Most records have none, and are not parsed.
fn record_with_clear_vault(value: &[u8]) -> Option<Map> {
    if !value.windows(CLEAR_VAULT.len()).any(|bytes| bytes == CLEAR_VAULT.as_bytes()) {
        return None;
    }
    match yson::parse_record(value) {
        Ok(Value::Map(record)) => Some(record),
        _ => None,
    }
}

fn remove_clear_vault(record: &mut Map, name: &str) -> Option<Value> {
    record.get_mut(name)?.as_map_mut()?.remove(CLEAR_VAULT)
}

/// In the static part: there is a record with the vault.
pub(crate) const HAS_VAULT: &str = "has_secure_vault";
/// Where the vault was in records of those versions.
pub(crate) const CLEAR_VAULT: &str = "secure_vault";

/// Key of the attributes of a finished operation that are usually listed.
pub fn listed_key(id: OperationId) -> Vec<u8> {
    operation_key(id, b'l', &[])
}

/// Key of where the input of a finished operation was.
pub fn input_key(id: OperationId) -> Vec<u8> {
    operation_key(id, b'i', &[])
}

/// Key of a finished job, in `JobArchive` and `Stderr`: all of an operation lie together.
pub fn job_key(operation: OperationId, job: JobId) -> Vec<u8> {
    let mut key = operation_prefix(operation);
    key.extend_from_slice(&job.0.to_bytes());
    key
}

/// The part of an operation that never changes. The secure vault is not in it: it has a record of its own, which is encrypted.
pub(crate) fn static_record(operation: &Operation) -> Vec<u8> {
    let map = yson::map! {
        "type" => operation.operation_type,
        "user" => operation.user.as_str(),
        "start_time" => operation.start_time.as_micros(),
        "spec" => operation.spec.provided.clone(),
        "files" => operation.pinned.iter().map(pinned_value).collect::<Vec<_>>(),
    }
    .with_some(HAS_VAULT, operation.secure_vault.is_some().then_some(true))
    .with_some("lease_period", operation.lease.map(|lease| lease.0))
    .with_some("job_tickets", operation.has_job_tickets.then_some(true))
    .with_some("tables", operation.tables.as_ref().map(WorkTables::to_value))
    .with_some("user_transaction_id", operation.user_transaction)
    .with_some("user_id", operation.user_id);
    yson::to_binary(&map.into())
}

fn pinned_value(pinned: &Pinned) -> Value {
    let file = &pinned.artifact;
    yson::map! {
        "task" => pinned.task,
        "file_id" => file.file_id,
        "revision" => file.revision,
        "size" => file.size,
        "file_name" => file.file_name.as_str(),
        "executable" => file.executable,
        "bypass_cache" => file.bypass_cache,
        "blob" => pinned.blob,
        "payer" => payer_value(&pinned.payer),
    }
    .into()
}

/// The release 0.1 accepted names that were not in their plain form.
fn plain(name: &str) -> String {
    vocab::sandbox_path::plain_directory(name).unwrap_or_else(|_| name.to_owned())
}

pub(crate) fn payer_value(payer: &Payer) -> Value {
    Value::List(vec![payer.account.as_str().into(), payer.owner.as_str().into()])
}

/// Records of older versions have none.
pub(crate) fn payer_from_value(value: Option<&Value>, user: &str) -> Option<Payer> {
    let Some(value) = value else { return Some(unknown_payer(user)) };
    let [account, owner] = value.as_list()? else { return None };
    Some(Payer { account: account.as_str()?.to_owned(), owner: owner.as_str()?.to_owned() })
}

/// `user` is that of the operation.
pub(crate) fn pinned_from_value(value: &Value, user: &str) -> Option<Pinned> {
    let number = |key: &str| value.get(key).and_then(Value::as_u64);
    let artifact = Artifact {
        file_id: value.get("file_id")?.as_str()?.parse().ok()?,
        revision: number("revision")?,
        size: number("size")?,
        file_name: plain(value.get("file_name")?.as_str()?),
        executable: value.get("executable")?.as_bool()?,
        // Not in records of older versions.
        bypass_cache: value.get("bypass_cache").and_then(Value::as_bool).unwrap_or(false),
    };
    let payer = Arc::new(payer_from_value(value.get("payer"), user)?);
    Some(Pinned { task: number("task")?.try_into().ok()?, artifact, blob: number("blob")?, payer })
}

/// The part of an operation that changes with its life cycle.
pub(crate) fn dynamic_record(operation: &Operation) -> Vec<u8> {
    let events: Vec<Value> = operation.events.iter().map(event_value).collect();
    let trees: Vec<Value> = operation.trees.iter().map(tree_value).collect();
    let map = yson::map! {
        "state" => operation.state,
        "uid" => operation.uid,
        "suspended" => operation.suspended,
        "events" => events,
        "trees" => trees,
        "erased_trees" => operation.erased_trees.iter().map(String::as_str).collect::<Vec<_>>(),
        "acl" => operation.acl.clone(),
        "owners" => operation.owners.clone(),
        "annotations" => operation.annotations.clone(),
        "options_per_job_shell" => operation.options_per_job_shell.clone(),
        "alerts" => operation.alerts.to_map(),
        "alert_events" => operation.alerts.events_to_value(),
    }
    .with_some("result", operation.result.as_ref().map(Failure::to_value));
    yson::to_binary(&map.into())
}

/// `{time; state; attributes}`.
pub(crate) fn event_value(event: &Event) -> Value {
    yson::map! { "time" => event.time, "state" => event.state, "attributes" => event.attributes.clone() }
        .into()
}

pub(crate) fn event_from_value(value: &Value) -> Option<Event> {
    Some(Event {
        time: Time::parse(value.get("time")?.as_str()?)?,
        state: value.get("state")?.as_str()?.parse().ok()?,
        attributes: value.get("attributes").and_then(Value::as_map).cloned().unwrap_or_default(),
    })
}

fn tree_value(tree: &InTree) -> Value {
    yson::map! {
        "tree" => tree.tree.as_str(),
        "pool" => tree.pool.as_str(),
        "weight" => tree.weight,
        "resource_limits" => tree.resource_limits.clone(),
        "slot_index" => tree.slot_index,
        "running" => tree.running,
        "tentative" => tree.tentative,
    }
    .into()
}

pub(crate) fn tree_from_value(value: &Value) -> Option<InTree> {
    Some(InTree {
        tree: value.get("tree")?.as_str()?.to_owned(),
        pool: value.get("pool")?.as_str()?.to_owned(),
        weight: value.get("weight").and_then(Value::as_f64),
        resource_limits: value.get("resource_limits").and_then(Value::as_map).cloned().unwrap_or_default(),
        slot_index: value.get("slot_index").and_then(Value::as_u64).and_then(|i| u32::try_from(i).ok())?,
        running: value.get("running").and_then(Value::as_bool).unwrap_or(false),
        tentative: value.get("tentative").and_then(Value::as_bool).unwrap_or(false),
    })
}

/// What is shown of an archived job: an element of `list_jobs`.
pub fn archived_job(record: &[u8]) -> Result<Map, Failure> {
    Ok(decode_job(record)?.to_value())
}

/// What `get_job` shows of an archived job.
pub fn archived_job_in_full(record: &[u8]) -> Result<Map, Failure> {
    let job = decode_job(record)?;
    Ok(job.to_value().with("job_id", job.identity.job_id).with("statistics", job.statistics()))
}

/// Which rows of the operation's input an archived job was given; none if it reads no tables.
pub fn rows_of_archived_job(record: &[u8]) -> Result<Option<Range<u64>>, Failure> {
    Ok(decode_job(record)?.rows)
}

fn decode_job(record: &[u8]) -> Result<controller::JobRecord, Failure> {
    controller::JobRecord::decode(record).map_err(|e| Failure::new(e.to_string()))
}
