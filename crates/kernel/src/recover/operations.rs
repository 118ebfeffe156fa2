//! Operations come back: specification, state, what the controller had counted.

use super::{Records, broken::Broken, parse};
use crate::Kernel;
use crate::alerts::Alerts;
use crate::operation::Operation;
use crate::operations::note_admission;
use crate::operations::tables::{WorkTables, parse_output};
use crate::records::{
    ARCHIVED, CLEAR_VAULT, CONTROLLER, DYNAMIC, HAS_VAULT, OUTPUT, STATIC, VAULT, event_from_value,
    parse_operation_key, pinned_from_value, tree_from_value,
};
use crate::summary::Summary;
use crate::uids::NO_UID;
use controller::spec::ParsedSpec;
use controller::{OperationController, StatePart};
use cypress::Chunk;
use scheduler::{Admission, OperationDesc};
use std::collections::BTreeMap;
use vocab::batch::Table;
use vocab::{Failure, OperationId, OperationState, Span, Time};
use yson::{Map, Value};

/// Options that an earlier version has taken unseen, whatever they were.
fn is_unseen(name: &[u8]) -> bool {
    matches!(
        name,
        b"add_authenticated_user_to_acl"
            | b"tentative_tree_eligibility"
            | b"allow_concurrent_attempts"
            | b"job_lease_period"
    )
}

/// Records of one operation.
#[derive(Default)]
pub(super) struct StoredOperation {
    pub fixed: Value,
    pub changing: Value,
    /// Its secure vault, from a record of its own.
    vault: Option<Map>,
    parts: Vec<StatePart>,
    /// Chunks of units that are done.
    outputs: BTreeMap<(u64, u32), Chunk>,
    /// Bytes that its jobs take in the archive.
    pub archived_bytes: u64,
    /// The first of its records that could not be read.
    unreadable: Option<Failure>,
}

impl StoredOperation {
    fn add(&mut self, part: u8, rest: &[u8], value: Vec<u8>) -> Result<(), Failure> {
        match (part, <[u8; 4]>::try_from(rest)) {
            (STATIC, _) => self.fixed = parse(&value)?,
            (DYNAMIC, _) => self.changing = parse(&value)?,
            (VAULT, _) => match parse(&value)? {
                Value::Map(vault) => self.vault = Some(vault),
                other => {
                    let found = other.type_name();
                    return Err(Failure::new(format!(
                        "Malformed record of a secure vault: expected map, found {found}"
                    )));
                }
            },
            (ARCHIVED, _) => {
                let bytes = <[u8; 8]>::try_from(value.as_slice());
                self.archived_bytes = bytes
                    .map(u64::from_be_bytes)
                    .map_err(|_| Failure::new(format!("Malformed count of archived bytes: {value:02x?}")))?;
            }
            (OUTPUT, _) => {
                let (place, chunk) = parse_output(rest, &value)
                    .ok_or_else(|| Failure::new(format!("Malformed chunk of an output table: {rest:?}")))?;
                self.outputs.insert(place, chunk);
            }
            (CONTROLLER, Ok(number)) => {
                self.parts.push(StatePart { part: u32::from_be_bytes(number), bytes: value });
            }
            _ => return Err(Failure::new(format!("Malformed key: part {part}, {rest:?}"))),
        }
        Ok(())
    }
}

impl Kernel {
    /// No single operation keeps the others from coming back: one that cannot be restored fails. An error is one of the
    /// configuration, and no operation has changed then.
    pub(super) fn recover_operations(&mut self, now: Time, records: &mut Records) -> Result<(), Failure> {
        self.recover_finished(records);
        let mut stored = self.stored_operations(records);
        let mut descriptions = Vec::new();
        for (id, record) in &stored {
            match self.restore_and_describe(*id, record) {
                Ok((operation, description)) => {
                    if let Some(alias) = operation.alias() {
                        self.aliases.insert(alias.to_owned(), *id);
                    }
                    self.tree.hold(operation.holds());
                    self.operations.insert(*id, operation);
                    descriptions.push(description);
                }
                Err(why) => self.fail_broken(now, *id, Broken { record, why }),
            }
        }
        self.give_uids_to_restored()?;
        for (id, revived) in self.scheduler.revive_operations(descriptions) {
            let record = stored.remove(&id).unwrap_or_default();
            match revived {
                Ok(registered) => {
                    if let Some(operation) = self.operations.get_mut(&id) {
                        note_admission(now, operation, &registered.trees);
                        for joined in &registered.trees {
                            if let Some(own) = operation.trees.iter_mut().find(|t| *t.tree == *joined.tree) {
                                own.pool = joined.pool.to_string();
                                own.slot_index = joined.slot_index;
                                own.running = joined.admission == Admission::Running;
                            }
                        }
                    }
                    self.revive(now, id);
                }
                Err(why) => {
                    if let Some(operation) = self.operations.remove(&id) {
                        // What nothing else needs is removed as garbage of the start.
                        self.tree.let_go(operation.holds());
                    }
                    self.fail_broken(now, id, Broken { record: &record, why });
                }
            }
        }
        self.keep_leases_confirmable();
        self.reviving = !self.operations.is_empty();
        Ok(())
    }

    /// Summaries of those that were over already.
    fn recover_finished(&mut self, records: &mut Records) {
        for (key, value) in records.take(Table::OperationIndex) {
            match parse(&value).ok().as_ref().and_then(Summary::from_value) {
                Some(summary) => {
                    if let Some(alias) = &summary.alias {
                        self.aliases.insert(alias.clone(), summary.id);
                    }
                    self.finished.insert(summary);
                }
                // Its record stays where it is, for whoever understands it.
                None => self.not_restored.note(Failure::new(format!(
                    "Malformed summary of a finished operation: it is not listed; key {key:02x?}"
                ))),
            }
        }
    }

    fn stored_operations(&mut self, records: &mut Records) -> BTreeMap<OperationId, StoredOperation> {
        let mut stored: BTreeMap<OperationId, StoredOperation> = BTreeMap::new();
        for (key, value) in records.take(Table::Operations) {
            let Some((id, part, rest)) = parse_operation_key(&key) else {
                self.not_restored.note(Failure::new(format!("Malformed key of an operation: {key:02x?}")));
                continue;
            };
            let entry = stored.entry(id).or_default();
            if let Err(failure) = entry.add(part, rest, value) {
                entry.unreadable.get_or_insert(failure);
            }
        }
        for (id, failure) in std::mem::take(&mut records.locked_vaults) {
            stored.entry(id).or_default().unreadable.get_or_insert(failure);
        }
        stored
    }

    /// The operation, and what the scheduler is told of it: where it was, as it was.
    fn restore_and_describe(
        &self,
        id: OperationId,
        record: &StoredOperation,
    ) -> Result<(Operation, OperationDesc), Failure> {
        if let Some(failure) = &record.unreadable {
            return Err(failure.clone());
        }
        let operation = self.restore_operation(id, record)?;
        let mut desc =
            self.describe_for_scheduler(id, &operation.user, operation.start_time, &operation.spec)?;
        desc.trees.retain(|t| operation.in_tree(&t.tree).is_some());
        for tree in &mut desc.trees {
            if let Some(own) = operation.in_tree(&tree.tree) {
                tree.pool = Some(own.pool.clone());
                tree.parameters.weight = own.weight;
                tree.parameters.resource_limits = crate::parameters::amounts(&own.resource_limits)?;
                tree.slot_index = Some(own.slot_index);
                tree.was_running = own.running;
            }
        }
        Ok((operation, desc))
    }

    /// An operation that the scheduler has taken back goes on from where it was.
    fn revive(&mut self, now: Time, id: OperationId) {
        self.charge_outputs(id);
        let Some(operation) = self.operations.get_mut(&id) else { return };
        let was_running = operation.state == OperationState::Running;
        let may_run = operation.trees.iter().any(|t| t.running);
        operation.dirty = true;
        self.pending_work.dirty.insert(id);
        self.pass_options(id);
        let Some(operation) = self.operations.get_mut(&id) else { return };
        for state in [OperationState::Orphaned, OperationState::ReviveInitializing, OperationState::Reviving]
        {
            operation.enter(now, state);
        }
        if was_running || may_run {
            operation.enter(now, OperationState::RevivingJobs);
            let suspended = operation.suspended;
            self.tell_scheduler(|s| s.set_suspended(id, suspended));
        } else {
            operation.enter(now, OperationState::Pending);
        }
    }

    fn restore_operation(&self, id: OperationId, record: &StoredOperation) -> Result<Operation, Failure> {
        let broken = |what: &str| Failure::new(format!("Malformed record of operation {id}: {what}"));
        let fixed = |key: &str| record.fixed.get(key).ok_or_else(|| broken(key));
        let operation_type =
            fixed("type")?.as_str().and_then(|t| t.parse().ok()).ok_or_else(|| broken("type"))?;
        let user = fixed("user")?.as_str().ok_or_else(|| broken("user"))?.to_owned();
        let start_time = Time(fixed("start_time")?.as_u64().ok_or_else(|| broken("start_time"))?);
        let mut provided = fixed("spec")?.as_map().cloned().ok_or_else(|| broken("spec"))?;
        // Earlier versions have written it into the static part, and after a restart into the spec there as well. It gets a
        // record of its own with the next change.
        let in_spec = provided.remove(CLEAR_VAULT);
        let clear_vault = record.fixed.get(CLEAR_VAULT).or(in_spec.as_ref()).and_then(Value::as_map);
        let is_clear = clear_vault.is_some();
        let secure_vault = record.vault.as_ref().or(clear_vault).cloned();
        // Its jobs would run without their secrets.
        let is_lost =
            secure_vault.is_none() && record.fixed.get(HAS_VAULT).and_then(Value::as_bool) == Some(true);
        if is_lost {
            return Err(broken("secure_vault: the record of the vault is missing"));
        }
        // What was accepted stays accepted.
        let any_size = self.controller_options.for_any_size();
        // The provided spec is shown: the vault is not put into it.
        let mut plain = controller::spec::with_plain_names(&provided);
        if let Some(vault) = &secure_vault {
            plain.insert(CLEAR_VAULT, vault.clone());
        }
        let spec = controller::spec::parse(operation_type, &plain, &any_size).or_else(|failure| {
            let known = plain.iter().filter(|(name, _)| !is_unseen(name));
            let known: Map = known.map(|(name, value)| (name, value.clone())).collect();
            if known.len() == plain.len() {
                return Err(failure);
            }
            controller::spec::parse(operation_type, &known, &any_size)
        })?;
        let spec = ParsedSpec { provided, ..spec };
        let controller =
            OperationController::restore(id, &spec.spec, &self.controller_options, start_time, &record.parts)
                .map_err(|e| Failure::new(e.to_string()))?;
        let changing = &record.changing;
        let list = |key: &str| changing.get(key).and_then(Value::as_list).unwrap_or_default();
        let pinned = record.fixed.get("files").and_then(Value::as_list).unwrap_or_default();
        let pinned: Option<Vec<_>> = pinned.iter().map(|file| pinned_from_value(file, &user)).collect();
        let stored_lease = record.fixed.get("lease_period").and_then(Value::as_u64).map(Span);
        // Records of release 0.1 have none. The lease that is chosen now is written with the next change of the operation, before
        // any job has it: the configuration may be another one at the next start.
        let lease = stored_lease.or_else(|| self.new_lease(&spec.spec));
        let is_new_lease = lease.is_some() && stored_lease.is_none();
        let user_id = match record.fixed.get("user_id") {
            Some(id) => Some(id.as_str().and_then(|id| id.parse().ok()).ok_or_else(|| broken("user_id"))?),
            None => self.user_node_at(&user, start_time),
        };
        let uid = changing.get("uid").and_then(Value::as_u64).and_then(|uid| u32::try_from(uid).ok());
        let mut operation = Operation {
            id,
            operation_type,
            lease,
            has_job_tickets: record.fixed.get("job_tickets").and_then(Value::as_bool).unwrap_or(false),
            user,
            user_id,
            // Others get one of the range when all have been read.
            uid: uid.filter(|uid| self.config.job_uids.contains(*uid)).unwrap_or(NO_UID),
            user_transaction: record
                .fixed
                .get("user_transaction_id")
                .and_then(Value::as_str)
                .and_then(|id| id.parse().ok()),
            start_time,
            finish_time: None,
            state: changing
                .get("state")
                .and_then(Value::as_str)
                .and_then(|s| s.parse().ok())
                .ok_or_else(|| broken("state"))?,
            suspended: changing.get("suspended").and_then(Value::as_bool).unwrap_or(false),
            events: list("events").iter().filter_map(event_from_value).collect(),
            alerts: Alerts::from_values(changing.get("alerts"), changing.get("alert_events")),
            secure_vault,
            controller,
            trees: list("trees").iter().filter_map(tree_from_value).collect(),
            erased_trees: list("erased_trees").iter().filter_map(|t| t.as_str().map(str::to_owned)).collect(),
            acl: list("acl").to_vec(),
            owners: list("owners").to_vec(),
            annotations: changing.get("annotations").and_then(Value::as_map).cloned().unwrap_or_default(),
            options_per_job_shell: changing
                .get("options_per_job_shell")
                .and_then(Value::as_map)
                .cloned()
                .unwrap_or_default(),
            result: changing.get("result").map(Failure::from_value),
            pinned: Vec::new(),
            tables: None,
            unsuitable_since: None,
            spec_seq: (!is_clear && !is_new_lease).then_some(0),
            dirty: false,
            archived_bytes: record.archived_bytes,
            has_archived: false,
            spec,
        };
        operation.pin(pinned.ok_or_else(|| broken("files"))?)?;
        if let Some(value) = record.fixed.get("tables") {
            let tables = WorkTables::from_value(value, &operation.user, record.outputs.clone());
            operation.set_tables(tables.ok_or_else(|| broken("tables"))?);
        }
        Ok(operation)
    }
}
