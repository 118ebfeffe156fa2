//! The life of an operation (scheduling.md 3): start, transitions, the end.
//!
//! What users do to it meanwhile is in [`actions`], what befalls it by itself in [`checks`], what the
//! scheduler is told of its specification in [`describe`].

pub(crate) mod acl;
mod actions;
mod checks;
mod describe;
mod merge;
mod patch;
pub(crate) mod tables;

use crate::alerts::Alerts;
use crate::job_archive::Left;
use crate::jobs::Job;
use crate::operation::{InTree, Operation};
use crate::{Effect, Kernel};
use controller::spec::ParsedSpec;
use controller::{JobVerdict, OperationController, OperationEvent};
use cypress::Hold;
use scheduler::{Admission, DemandGroup, Joined};
use vocab::{AbortReason, Failure, OperationId, OperationState, Time, code, object_type};
use yson::{Map, Value};

impl Kernel {
    /// `start_operation`. An error means that nothing was registered.
    pub(crate) fn start_operation(
        &mut self,
        now: Time,
        user: &str,
        parsed: ParsedSpec,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        if let Some(acl) = parsed.provided.get("acl").filter(|acl| !acl.is_entity()) {
            self.tree.limits().check_acl(acl).and_then(|()| acl::check(acl)).map_err(|inner| {
                Failure::new("Error parsing operation spec").with("option", "acl").because(inner)
            })?;
        }
        if let Some(alias) = &parsed.spec.root.alias
            && let Some(other) = self.aliases.get(alias).filter(|id| self.operations.contains_key(id))
        {
            let message = format!("Operation alias \"{alias}\" is already used by an operation {other}");
            return Err(Failure::new(message)
                .with("operation_alias", alias.as_str())
                .with("operation_id", *other));
        }
        self.refuse_secret_files(user, &parsed)?;
        self.refuse_secret_tables(user, &parsed.spec)?;
        self.refuse_too_much_disk(&parsed)?;
        self.refuse_short_lease(&parsed.spec)?;
        let id = OperationId(self.ids.next(object_type::OPERATION));
        let desc = self.describe_for_scheduler(id, user, now, &parsed)?;
        for tree in &desc.trees {
            self.demand_pool(user, &tree.tree, tree.pool.as_deref())?;
        }
        let uid = self.uid_for(user)?;
        let registered = self.scheduler.register_operation(desc)?;
        self.keep_uid(user, uid);
        let controller = OperationController::new(id, &parsed.spec, &self.controller_options, now);
        let mut trees = Vec::new();
        for joined in &registered.trees {
            trees.push(in_tree(joined, &parsed));
        }
        let root = &parsed.spec.root;
        let mut operation = Operation {
            id,
            operation_type: parsed.spec.operation_type,
            lease: self.new_lease(&parsed.spec),
            has_job_tickets: true,
            user: user.to_owned(),
            user_id: self.user_node(user),
            uid,
            user_transaction: self.tree.entered(),
            start_time: now,
            finish_time: None,
            state: OperationState::None,
            suspended: false,
            events: Vec::new(),
            alerts: Alerts::default(),
            secure_vault: root.secure_vault.clone(),
            controller,
            trees,
            erased_trees: registered.erased.iter().map(|(tree, _)| tree.to_string()).collect(),
            acl: acl::whole(user, root, &root.acl),
            owners: parsed.provided.get("owners").and_then(Value::as_list).unwrap_or_default().to_vec(),
            annotations: parsed
                .provided
                .get("annotations")
                .and_then(Value::as_map)
                .cloned()
                .unwrap_or_default(),
            options_per_job_shell: Map::new(),
            result: None,
            pinned: Vec::new(),
            tables: None,
            unsuitable_since: None,
            spec_seq: None,
            dirty: true,
            archived_bytes: 0,
            has_archived: false,
            spec: parsed,
        };
        note_admission(now, &mut operation, &registered.trees);
        if let Some(alias) = operation.alias() {
            self.aliases.insert(alias.to_owned(), id);
        }
        // All of these are passed in one go; they are kept as events since users look for them.
        for state in [OperationState::Starting, OperationState::WaitingForAgent, OperationState::Initializing]
        {
            operation.enter(now, state);
        }
        self.operations.insert(id, operation);
        self.log_state(id, OperationState::Starting);
        for (tree, error) in &registered.erased {
            self.log_ban(id, tree, error);
        }
        self.pass_options(id);
        self.pending_work.dirty.insert(id);
        self.prepare_operation(now, id, out);
        Ok(Value::Map(yson::map! { "operation_id" => id }))
    }

    /// Resolves files; from here on an error fails the operation instead of the call.
    fn prepare_operation(&mut self, now: Time, id: OperationId, out: &mut Vec<Effect>) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        operation.enter(now, OperationState::Preparing);
        match self.attach_files(id).and_then(|()| self.attach_tables(now, id, out)) {
            Ok(()) => {
                if let Some(operation) = self.operations.get_mut(&id) {
                    operation.enter(now, OperationState::Pending);
                }
                self.log_state(id, OperationState::Pending);
                self.materialize_if_running(now, id);
            }
            Err(inner) => {
                let error =
                    Failure::coded(code::OPERATION_FAILED_TO_PREPARE, "Operation has failed to prepare")
                        .because(inner);
                self.finish_operation(now, id, OperationState::Failed, Some(error), out);
            }
        }
    }

    /// Gives the controller the contents of its files and keeps them from being deleted.
    fn attach_files(&mut self, id: OperationId) -> Result<(), Failure> {
        let Some(operation) = self.operations.get(&id) else { return Ok(()) };
        let mut pinned = Vec::new();
        for (task, files) in operation.controller.file_requests() {
            pinned.extend(self.resolve_files(&operation.user, task, files)?);
        }
        self.note_use_of(pinned.iter().map(|file| file.artifact.file_id).collect());
        let Some(operation) = self.operations.get_mut(&id) else { return Ok(()) };
        // Those that it has already are held for their tables.
        let before: Vec<Hold> = operation.holds().collect();
        let done = operation.pin(pinned);
        self.tree.hold(operation.holds());
        self.tree.let_go(before);
        done
    }

    /// `pending -> materializing -> running`, when the scheduler lets it run in some tree.
    fn materialize_if_running(&mut self, now: Time, id: OperationId) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        if operation.state != OperationState::Pending || !operation.trees.iter().any(|t| t.running) {
            return;
        }
        operation.enter(now, OperationState::Materializing);
        let scheduling = &operation.spec.spec.scheduling;
        if scheduling.schedule_in_single_tree {
            let consider_guarantees = scheduling.consider_guarantees_for_single_tree;
            self.keep_best_tree(id, consider_guarantees);
        }
        let Some(operation) = self.operations.get_mut(&id) else { return };
        operation.enter(now, OperationState::Running);
        let suspend = operation.spec.spec.scheduling.suspend_operation_after_materialization;
        operation.suspended |= suspend;
        self.log_state(id, OperationState::Running);
        if suspend {
            self.tell_scheduler(|s| s.set_suspended(id, true));
        }
        self.tell_scheduler(|s| s.set_enabled(id, true));
        self.note_merge(id);
        self.pending_work.dirty.insert(id);
        self.pending_work.demand.insert(id);
        self.pending_work.update = true;
        self.pending_work.schedule = true;
    }

    /// `schedule_in_single_tree`: the others are erased as soon as it is known what is needed
    /// (scheduling.md 2.5).
    fn keep_best_tree(&mut self, id: OperationId, consider_guarantees: bool) {
        self.pass_demand(id);
        let Ok(Some(best)) = self.scheduler.best_tree(id, consider_guarantees) else { return };
        let Some(operation) = self.operations.get_mut(&id) else { return };
        let others = operation.trees.extract_if(.., |t| *t.tree != *best).map(|t| t.tree);
        let others: Vec<String> = others.collect();
        operation.erased_trees.extend(others.iter().cloned());
        operation.dirty = true;
        for tree in others {
            // Nothing of it runs yet: no allocations come back.
            self.tell_scheduler(|s| s.erase_tree(id, &tree).map(drop));
        }
    }

    /// Tells the scheduler what an operation still wants.
    fn pass_demand(&mut self, id: OperationId) {
        let Some(operation) = self.operations.get(&id) else { return };
        let groups = operation.controller.demand().into_iter();
        let groups: Vec<DemandGroup> =
            groups.map(|d| DemandGroup { task: d.task, min_needed: d.min_needed, count: d.count }).collect();
        if let Ok(true) = self.scheduler.set_demand(id, &groups) {
            self.pending_work.update = true;
            self.pending_work.schedule = true;
        }
    }

    /// What the scheduler decided without being asked: operations leave queues, or wait elsewhere.
    pub(crate) fn advance_operations(&mut self, now: Time) {
        for event in self.scheduler.drain_events() {
            match event {
                scheduler::Event::Running { operation: id, tree } => {
                    if let Some(operation) = self.operations.get_mut(&id) {
                        operation.clear_alert(now, OPERATION_PENDING);
                        operation.dirty = true;
                        for t in operation.trees.iter_mut().filter(|t| *t.tree == *tree) {
                            t.running = true;
                        }
                    }
                    self.pending_work.dirty.insert(id);
                    self.materialize_if_running(now, id);
                }
                scheduler::Event::Pending { operation: id, tree, pool, limit } => {
                    if let Some(operation) = self.operations.get_mut(&id) {
                        let running = operation.trees.iter().any(|t| t.running);
                        let alert = pending_alert(&tree, &pool, limit);
                        if !running && operation.raise_alert(now, OPERATION_PENDING, alert) {
                            self.pending_work.dirty.insert(id);
                        }
                    }
                }
                scheduler::Event::EphemeralPoolCreated { .. }
                | scheduler::Event::EphemeralPoolRemoved { .. } => {}
            }
        }
        for id in std::mem::take(&mut self.pending_work.demand) {
            self.pass_demand(id);
        }
    }

    /// Tells the scheduler about an operation that it must know; the kernel registers and
    /// unregisters, so an error here is a mistake of the kernel's own.
    pub(crate) fn tell_scheduler<T>(
        &mut self,
        what: impl FnOnce(&mut scheduler::Scheduler) -> Result<T, Failure>,
    ) {
        if let Err(failure) = what(&mut self.scheduler) {
            debug_assert!(false, "the scheduler does not agree: {failure}");
        }
    }

    /// What the end of a job means for the operation.
    pub(crate) fn operation_event(
        &mut self,
        now: Time,
        id: OperationId,
        event: OperationEvent,
        out: &mut Vec<Effect>,
    ) {
        match event {
            // It has no jobs, and its turn to be done is still to come.
            OperationEvent::Completed if self.is_merge_of_chunks(id) => {
                self.pending_work.merges.insert(id);
            }
            OperationEvent::Completed => self.finish_operation(now, id, OperationState::Completed, None, out),
            OperationEvent::Failed(error) => {
                self.finish_operation(now, id, OperationState::Failed, Some(error), out);
            }
            OperationEvent::Suspend(error) => self.suspend(now, id, Some(error)),
        }
    }

    /// Ends an operation whatever it is doing: its jobs are killed, its places are given back, its
    /// record moves to the archive.
    pub(crate) fn finish_operation(
        &mut self,
        now: Time,
        id: OperationId,
        end: OperationState,
        error: Option<Failure>,
        out: &mut Vec<Effect>,
    ) {
        let (finishing, reason) = match end {
            OperationState::Completed => (OperationState::Completing, AbortReason::OperationCompleted),
            OperationState::Failed => (OperationState::Failing, AbortReason::OperationFailed),
            _ => (OperationState::Aborting, AbortReason::OperationAborted),
        };
        let Some(operation) = self.operations.get_mut(&id) else { return };
        if operation.state.is_finished() || operation.state.is_finishing() {
            return;
        }
        if end == OperationState::Completed {
            if let Err(inner) = self.publish_tables(now, id, out) {
                let error = Failure::new("Output of the operation cannot be written").because(inner);
                return self.finish_operation(now, id, OperationState::Failed, Some(error), out);
            }
        } else {
            self.drop_tables(id, out);
        }
        let Some(operation) = self.operations.get_mut(&id) else { return };
        operation.enter(now, finishing);
        // Before the nodes are back: their jobs will be killed when they are, and counted by nobody.
        self.log_unreported(id, reason);
        let Some(operation) = self.operations.get_mut(&id) else { return };
        operation.controller.close_operation();
        // Before the last jobs are aborted, for which the operation is not to blame.
        operation.look_for_alerts(now);
        // There is no news of an operation that is closed.
        let _ = self.abort_all_jobs(now, id, reason, out);
        self.tell_scheduler(|s| s.unregister_operation(id));
        let Some(operation) = self.operations.get_mut(&id) else { return };
        operation.result = error;
        operation.finish_time = Some(now);
        operation.clear_alert(now, OPERATION_PENDING);
        operation.enter(now, end);
        self.log_state(id, end);
        self.archive_operation(now, id, out);
        self.pending_work.dirty.remove(&id);
        self.pending_work.demand.remove(&id);
        // Somebody else may have what it leaves, or its place among the running.
        self.pending_work.update = true;
        self.pending_work.schedule = true;
    }

    /// Counts all running jobs as aborted, and has their nodes kill them. What that means for the operation.
    fn abort_all_jobs(
        &mut self,
        now: Time,
        id: OperationId,
        reason: AbortReason,
        out: &mut Vec<Effect>,
    ) -> Option<OperationEvent> {
        let (verdicts, event) = self.operations.get_mut(&id)?.controller.abort_all(now, reason);
        self.pending_work.dirty.insert(id);
        self.pending_work.demand.insert(id);
        for verdict in verdicts {
            self.drop_job(verdict, out);
        }
        event
    }

    /// A job that the controller has given up: archived, its place given back, its node told. One that
    /// does not count as aborted was abandoned.
    pub(crate) fn drop_job(&mut self, verdict: JobVerdict, out: &mut Vec<Effect>) {
        if let Some(place) = self.give_up_job(verdict, out) {
            self.leave_place(&place);
        }
    }

    /// The same, but for its place: that is given back.
    pub(crate) fn give_up_job(&mut self, mut verdict: JobVerdict, out: &mut Vec<Effect>) -> Option<Job> {
        let reason = verdict.record.abort_reason.unwrap_or(AbortReason::Abandoned);
        let job_id = verdict.record.identity.job_id;
        self.order_abort(job_id, reason, &format!("Job aborted: {reason}"), out);
        let job = self.vacate(job_id);
        if let Some(job) = &job {
            self.settle_fence(job_id, job, true);
        }
        self.archive_job(&mut verdict, job.as_ref(), Left::default(), out);
        for other in verdict.aborted_with_it {
            self.drop_job(other, out);
        }
        job
    }
}

fn in_tree(joined: &Joined, parsed: &controller::spec::ParsedSpec) -> InTree {
    let options = &parsed.spec.scheduling;
    let own = options.per_tree.iter().find(|(name, _)| **name == *joined.tree).map(|(_, o)| o);
    let limits = own.and_then(|o| o.resource_limits).or(options.common.resource_limits);
    InTree {
        tree: joined.tree.to_string(),
        pool: joined.pool.to_string(),
        weight: own.and_then(|o| o.weight).or(options.common.weight),
        resource_limits: limits.map(|l| l.to_map()).unwrap_or_default(),
        slot_index: joined.slot_index,
        running: joined.admission == Admission::Running,
        tentative: options.tentative_pool_trees.iter().any(|t| **t == *joined.tree),
    }
}

/// Alert of an operation that waits in all its trees.
const OPERATION_PENDING: &str = "operation_pending";

/// A pending operation carries an alert that names the limit (scheduling.md 20).
pub(crate) fn note_admission(now: Time, operation: &mut Operation, trees: &[Joined]) {
    if trees.iter().any(|joined| joined.admission == Admission::Running) {
        operation.clear_alert(now, OPERATION_PENDING);
        return;
    }
    for joined in trees {
        if let Admission::Pending { pool, limit } = &joined.admission {
            operation.raise_alert(now, OPERATION_PENDING, pending_alert(&joined.tree, pool, *limit));
        }
    }
}

fn pending_alert(tree: &str, pool: &str, limit: i64) -> Failure {
    Failure::new(format!(
        "Operation is pending: max running operation count {limit} is reached in pool \"{pool}\" of tree \"{tree}\""
    ))
    .with("pool", pool)
    .with("limit", limit)
    .with("pool_tree", tree)
}
