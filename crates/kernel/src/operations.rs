//! The life of an operation (scheduling.md 3): start, transitions, the five actions of users, the end.

use crate::operation::{InTree, Operation};
use crate::{Effect, Kernel, OperationRef};
use controller::{Deadline, JobVerdict, OperationController, OperationEvent};
use scheduler::{Admission, Joined, OperationDesc, RuntimeParameters, TreeParameters};
use std::collections::BTreeMap;
use vocab::{
    AbortReason, Failure, OperationId, OperationState, OperationType, Span, Time, code, object_type,
};
use yson::{Map, Value};

impl Kernel {
    /// `start_operation`. An error means that nothing was registered.
    pub(crate) fn start_operation(
        &mut self,
        now: Time,
        user: &str,
        operation_type: OperationType,
        spec: &Map,
        out: &mut Vec<Effect>,
    ) -> Result<Value, Failure> {
        let parsed = controller::spec::parse(operation_type, spec, &self.controller_options)
            .map_err(|inner| Failure::new("Error parsing operation spec").because(inner))?;
        if let Some(alias) = &parsed.spec.root.alias
            && let Some(other) = self.aliases.get(alias).filter(|id| self.operations.contains_key(id))
        {
            let message = format!("Operation alias \"{alias}\" is already used by an operation {other}");
            return Err(Failure::new(message)
                .with("operation_alias", alias.as_str())
                .with("operation_id", *other));
        }
        let id = OperationId(self.ids.next(object_type::OPERATION));
        let desc = self.describe_for_scheduler(id, user, now, &parsed)?;
        let registered = self.scheduler.register_operation(desc)?;
        let controller = OperationController::new(id, &parsed.spec, &self.controller_options, now);
        let mut trees = Vec::new();
        for joined in &registered.trees {
            trees.push(in_tree(joined, &parsed));
        }
        let root = &parsed.spec.root;
        let mut operation = Operation {
            id,
            operation_type,
            user: user.to_owned(),
            start_time: now,
            finish_time: None,
            state: OperationState::None,
            suspended: false,
            events: Vec::new(),
            alerts: BTreeMap::new(),
            secure_vault: root.secure_vault.clone(),
            controller,
            trees,
            erased_trees: registered.erased.iter().map(|(tree, _)| tree.to_string()).collect(),
            acl: initial_acl(user, &parsed.provided),
            owners: parsed.provided.get("owners").and_then(Value::as_list).unwrap_or_default().to_vec(),
            annotations: parsed
                .provided
                .get("annotations")
                .and_then(Value::as_map)
                .cloned()
                .unwrap_or_default(),
            result: None,
            pinned: Vec::new(),
            unsuitable_since: None,
            spec_seq: None,
            dirty: true,
            spec: parsed,
        };
        for joined in &registered.trees {
            note_admission(&mut operation, joined);
        }
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
        match self.attach_files(id) {
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
            pinned.extend(self.resolve_files(task, files)?);
        }
        match self.operations.get_mut(&id) {
            Some(operation) => operation.pin(pinned),
            None => Ok(()),
        }
    }

    /// `pending -> materializing -> running`, when the scheduler lets it run in some tree.
    fn materialize_if_running(&mut self, now: Time, id: OperationId) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        if operation.state != OperationState::Pending || !operation.trees.iter().any(|t| t.running) {
            return;
        }
        operation.enter(now, OperationState::Materializing);
        operation.enter(now, OperationState::Running);
        let suspend = operation.spec.spec.scheduling.suspend_operation_after_materialization;
        operation.suspended |= suspend;
        self.log_state(id, OperationState::Running);
        if suspend {
            self.tell_scheduler(|s| s.set_suspended(id, true));
        }
        self.tell_scheduler(|s| s.set_enabled(id, true));
        self.pending_work.dirty.insert(id);
        self.pending_work.demand.insert(id);
        self.pending_work.update = true;
        self.pending_work.schedule = true;
    }

    /// What the scheduler decided without being asked: operations leave queues, or wait elsewhere.
    pub(crate) fn advance_operations(&mut self, now: Time) {
        for event in self.scheduler.drain_events() {
            match event {
                scheduler::Event::Running { operation: id, tree } => {
                    if let Some(operation) = self.operations.get_mut(&id) {
                        operation.alerts.remove("operation_pending");
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
                        if !running {
                            operation
                                .alerts
                                .insert("operation_pending".into(), pending_alert(&tree, &pool, limit));
                            operation.dirty = true;
                            self.pending_work.dirty.insert(id);
                        }
                    }
                }
                scheduler::Event::EphemeralPoolCreated { .. }
                | scheduler::Event::EphemeralPoolRemoved { .. } => {}
            }
        }
        for id in std::mem::take(&mut self.pending_work.demand) {
            if let Some(operation) = self.operations.get(&id) {
                let groups: Vec<scheduler::DemandGroup> = operation
                    .controller
                    .demand()
                    .into_iter()
                    .map(|d| scheduler::DemandGroup {
                        task: d.task,
                        min_needed: d.min_needed,
                        count: d.count,
                    })
                    .collect();
                if let Ok(true) = self.scheduler.set_demand(id, &groups) {
                    self.pending_work.update = true;
                    self.pending_work.schedule = true;
                }
            }
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

    // --- what users do

    /// `abort_operation`.
    pub(crate) fn abort_operation(
        &mut self,
        now: Time,
        operation: &OperationRef,
        message: Option<String>,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let id = self.live_operation(operation)?;
        let mut error = Failure::new("Operation aborted by user request");
        if let Some(text) = message {
            error = error.because(Failure::new(text));
        }
        self.finish_operation(now, id, OperationState::Aborted, Some(error), out);
        Ok(())
    }

    /// `suspend_operation`.
    pub(crate) fn suspend_operation(
        &mut self,
        now: Time,
        operation: &OperationRef,
        abort_running_jobs: bool,
        reason: Option<String>,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let id = self.live_operation(operation)?;
        self.suspend(id, None);
        if let (Some(operation), Some(reason)) = (self.operations.get_mut(&id), reason) {
            let text = format!("Operation suspended by user request: {reason}");
            operation.alerts.insert("operation_suspended".into(), Failure::new(text));
        }
        if abort_running_jobs {
            self.abort_all_jobs(now, id, AbortReason::OperationSuspended, out);
        }
        Ok(())
    }

    fn suspend(&mut self, id: OperationId, alert: Option<Failure>) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        operation.suspended = true;
        operation.dirty = true;
        if let Some(alert) = alert {
            operation.alerts.insert("operation_suspended".into(), alert);
        }
        self.tell_scheduler(|s| s.set_suspended(id, true));
        self.pending_work.dirty.insert(id);
        self.pending_work.update = true;
    }

    /// `resume_operation`.
    pub(crate) fn resume_operation(&mut self, _now: Time, operation: &OperationRef) -> Result<(), Failure> {
        let id = self.live_operation(operation)?;
        let Some(operation) = self.operations.get_mut(&id) else { return Ok(()) };
        if !operation.suspended {
            let message = format!("Operation {id} is not suspended");
            return Err(Failure::coded(code::INVALID_OPERATION_STATE, message).with("operation_id", id));
        }
        operation.suspended = false;
        operation.dirty = true;
        operation.alerts.remove("operation_suspended");
        self.tell_scheduler(|s| s.set_suspended(id, false));
        self.pending_work.dirty.insert(id);
        self.pending_work.update = true;
        self.pending_work.schedule = true;
        Ok(())
    }

    /// `complete_operation`.
    pub(crate) fn complete_operation(
        &mut self,
        now: Time,
        operation: &OperationRef,
        out: &mut Vec<Effect>,
    ) -> Result<(), Failure> {
        let id = self.live_operation(operation)?;
        let Some(operation) = self.operations.get_mut(&id) else { return Ok(()) };
        if operation.state != OperationState::Running {
            let message = format!(
                "Operation {id} cannot be completed: its state is \"{}\", expected \"running\"",
                operation.state
            );
            return Err(Failure::coded(code::INVALID_OPERATION_STATE, message).with("state", operation.state));
        }
        operation.alerts.insert(
            "operation_completed_by_user_request".into(),
            Failure::new("Operation completed by user request"),
        );
        self.finish_operation(now, id, OperationState::Completed, None, out);
        Ok(())
    }

    // --- the end

    /// What the end of a job means for the operation.
    pub(crate) fn operation_event(
        &mut self,
        now: Time,
        id: OperationId,
        event: OperationEvent,
        out: &mut Vec<Effect>,
    ) {
        match event {
            OperationEvent::Completed => self.finish_operation(now, id, OperationState::Completed, None, out),
            OperationEvent::Failed(error) => {
                self.finish_operation(now, id, OperationState::Failed, Some(error), out);
            }
            OperationEvent::Suspend(error) => self.suspend(id, Some(error)),
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
        operation.enter(now, finishing);
        operation.controller.close_operation();
        self.abort_all_jobs(now, id, reason, out);
        self.tell_scheduler(|s| s.unregister_operation(id));
        let Some(operation) = self.operations.get_mut(&id) else { return };
        operation.result = error;
        operation.finish_time = Some(now);
        operation.alerts.remove("operation_pending");
        operation.enter(now, end);
        self.log_state(id, end);
        self.archive_operation(now, id, out);
        self.pending_work.dirty.remove(&id);
        self.pending_work.demand.remove(&id);
        // Somebody else may have what it leaves, or its place among the running.
        self.pending_work.update = true;
        self.pending_work.schedule = true;
    }

    /// Counts all running jobs as aborted, and has their nodes kill them.
    fn abort_all_jobs(&mut self, now: Time, id: OperationId, reason: AbortReason, out: &mut Vec<Effect>) {
        let Some(operation) = self.operations.get_mut(&id) else { return };
        let verdicts = operation.controller.abort_all(now, reason);
        self.pending_work.dirty.insert(id);
        self.pending_work.demand.insert(id);
        for verdict in verdicts {
            self.drop_job(verdict, reason, out);
        }
    }

    /// A job that the controller has given up: archived, its place given back, its node told.
    pub(crate) fn drop_job(&mut self, verdict: JobVerdict, reason: AbortReason, out: &mut Vec<Effect>) {
        let job_id = verdict.record.identity.job_id;
        self.order_abort(job_id, reason, &format!("Job aborted: {reason}"), out);
        let job = self.release_job(job_id);
        self.archive_job(&verdict, job.as_ref(), None);
        for other in verdict.aborted_with_it {
            self.drop_job(other, reason, out);
        }
    }

    /// Time limits of operations.
    pub(crate) fn check_deadlines(&mut self, now: Time, out: &mut Vec<Effect>) {
        let due: Vec<OperationId> = self
            .operations
            .values()
            .filter(|o| o.controller.next_deadline().is_some_and(|deadline| deadline <= now))
            .map(|o| o.id)
            .collect();
        for id in due {
            let Some(operation) = self.operations.get_mut(&id) else { continue };
            match operation.controller.on_deadline(now) {
                Some(Deadline::EndJobs(jobs)) => {
                    for job in jobs {
                        self.end_gracefully(job, out);
                    }
                    self.pending_work.demand.insert(id);
                }
                Some(Deadline::Operation(event)) => self.operation_event(now, id, event, out),
                None => {}
            }
        }
    }

    /// Operations that the scheduler can do nothing for any more (scheduling.md 20).
    pub(crate) fn fail_stuck_operations(&mut self, now: Time, out: &mut Vec<Effect>) {
        for (id, error) in self.scheduler.stuck_operations(now) {
            self.finish_operation(now, id, OperationState::Failed, Some(error), out);
        }
    }

    /// Options of an operation that the scheduler takes apart from its description.
    pub(crate) fn pass_options(&mut self, id: OperationId) {
        let Some(operation) = self.operations.get(&id) else { return };
        let options = scheduler::OperationOptions {
            enable_limiting_ancestor_check: operation.spec.spec.scheduling.enable_limiting_ancestor_check,
            ..scheduler::OperationOptions::default()
        };
        self.tell_scheduler(|s| s.set_operation_options(id, options));
    }

    /// Operations that have banned every node that could run them.
    pub(crate) fn check_bans(&mut self, now: Time, out: &mut Vec<Effect>) {
        let online: Vec<String> =
            self.nodes.iter().filter(|n| n.key.is_some()).map(|n| n.address.clone()).collect();
        if online.is_empty() {
            return;
        }
        let mut over = Vec::new();
        for operation in self.operations.values_mut() {
            if let Some(event) = operation.controller.check_banned_nodes(online.iter().map(String::as_str)) {
                over.push((operation.id, event));
            }
        }
        for (id, event) in over {
            self.operation_event(now, id, event, out);
        }
    }

    /// Operations of which no node could ever hold a job: an alert at once, failure when it lasts
    /// (jobs-and-nodes.md 6.2).
    pub(crate) fn check_suitable_nodes(&mut self, now: Time, out: &mut Vec<Effect>) {
        let limits: Vec<vocab::Resources> =
            self.nodes.iter().filter(|n| n.key.is_some()).map(|n| n.report.resource_limits).collect();
        let mut over = Vec::new();
        for operation in self.operations.values_mut().filter(|o| o.state == OperationState::Running) {
            let demand = operation.controller.demand();
            let misfit =
                demand.iter().find(|d| d.count > 0 && !limits.iter().any(|l| l.dominates(&d.min_needed)));
            let Some(misfit) = misfit.filter(|_| !limits.is_empty()) else {
                if operation.unsuitable_since.take().is_some() {
                    operation.alerts.remove(NO_SUITABLE_NODE);
                    operation.dirty = true;
                    self.pending_work.dirty.insert(operation.id);
                }
                continue;
            };
            // Retries of a task have a demand of their own, numbered behind the tasks.
            let tasks = operation.controller.task_names().count().max(1);
            let number = misfit.task as usize % tasks;
            let task = operation.controller.task_names().nth(number).unwrap_or_default().to_owned();
            let error = Failure::new("No online node can satisfy the resource demand")
                .with("task_name", task)
                .with("needed_resources", misfit.min_needed.to_value());
            match operation.unsuitable_since {
                Some(since) if now.since(since) > SAFE_ONLINE_TIME => over.push((operation.id, error)),
                Some(_) => {}
                None => {
                    operation.unsuitable_since = Some(now);
                    operation.alerts.insert(NO_SUITABLE_NODE.into(), error);
                    operation.dirty = true;
                    self.pending_work.dirty.insert(operation.id);
                }
            }
        }
        for (id, error) in over {
            self.finish_operation(now, id, OperationState::Failed, Some(error), out);
        }
    }

    // --- finding one

    /// The id that a reference means, finished or not.
    pub(crate) fn find_operation(&self, operation: &OperationRef) -> Result<OperationId, Failure> {
        match operation {
            OperationRef::Id(id) if self.operations.contains_key(id) || self.finished.contains(*id) => {
                Ok(*id)
            }
            OperationRef::Id(id) => Err(no_such_operation(&id.to_string())),
            OperationRef::Alias(alias) => {
                self.aliases.get(alias).copied().ok_or_else(|| no_such_operation(alias))
            }
        }
    }

    /// An operation that users may still act on.
    pub(crate) fn live_operation(&self, operation: &OperationRef) -> Result<OperationId, Failure> {
        let id = self.find_operation(operation)?;
        if let Some(summary) = self.finished.get(id) {
            let message = format!("Operation {id} is already finished: its state is \"{}\"", summary.state);
            return Err(Failure::coded(code::NO_SUCH_OPERATION, message)
                .with("operation_id", id)
                .with("state", summary.state));
        }
        Ok(id)
    }

    /// Everything that the scheduler must know of a spec.
    pub(crate) fn describe_for_scheduler(
        &self,
        id: OperationId,
        user: &str,
        start_time: Time,
        parsed: &controller::spec::ParsedSpec,
    ) -> Result<OperationDesc, Failure> {
        let options = &parsed.spec.scheduling;
        let default_tree = self.default_tree();
        let names: Vec<String> = options.pool_trees.clone().unwrap_or_else(|| vec![default_tree]);
        let amounts = |limits: &controller::spec::ResourceLimits| {
            let mut out = scheduler::Amounts::default();
            for r in vocab::RESOURCES {
                if let Some(raw) = limits.raw(r) {
                    out.set(r, Some(raw));
                }
            }
            out
        };
        let filter = match &options.scheduling_tag_filter {
            Some(text) => scheduler::TagFilter::parse(text).map_err(|e| {
                Failure::new(format!("/scheduling_tag_filter: {e}")).with("path", "/scheduling_tag_filter")
            })?,
            None => scheduler::TagFilter::default(),
        };
        let trees = names
            .iter()
            .map(|tree| {
                let own = options.per_tree.iter().find(|(name, _)| name == tree).map(|(_, o)| o);
                let limits = own.and_then(|o| o.resource_limits).or(options.common.resource_limits);
                TreeParameters {
                    tree: tree.clone(),
                    pool: own.and_then(|o| o.pool.clone()).or_else(|| options.pool.clone()),
                    parameters: RuntimeParameters {
                        weight: own.and_then(|o| o.weight).or(options.common.weight),
                        resource_limits: limits.as_ref().map(amounts).unwrap_or_default(),
                        scheduling_tag_filter: filter.clone(),
                    },
                    tentative: options.tentative_pool_trees.contains(tree),
                    slot_index: None,
                    was_running: false,
                }
            })
            .collect();
        let common = &options.common;
        Ok(OperationDesc {
            id,
            user: user.to_owned(),
            operation_type: parsed.spec.operation_type,
            title: parsed.spec.root.title.clone(),
            start_time,
            is_gang: options.is_gang || parsed.spec.tasks.iter().any(|t| t.gang_size.is_some()),
            preemption_mode: match options.preemption_mode {
                controller::spec::PreemptionMode::Normal => scheduler::PreemptionMode::Normal,
                controller::spec::PreemptionMode::Graceful => scheduler::PreemptionMode::Graceful,
            },
            apply_specified_resource_limits_to_demand: options.apply_specified_resource_limits_to_demand,
            erase_trees_with_pool_limit_violations: options.erase_trees_with_pool_limit_violations,
            require_specified_pools_existence: options.require_specified_pools_existence,
            fair_share_starvation_timeout: common.fair_share_starvation_timeout,
            fair_share_starvation_tolerance: common.fair_share_starvation_tolerance,
            non_preemptible_resource_usage_threshold: common
                .non_preemptible_resource_usage_threshold
                .as_ref()
                .map(amounts),
            waiting_job_timeout: options.waiting_job_timeout,
            allocation_preemption_timeout: options.allocation_preemption_timeout,
            allocation_graceful_preemption_timeout: options.allocation_graceful_preemption_timeout,
            trees,
        })
    }
}

/// Alert of an operation that waits for a node that does not exist.
const NO_SUITABLE_NODE: &str = "no_suitable_node";
/// How long such an operation may wait: the node may be on its way.
const SAFE_ONLINE_TIME: Span = Span::from_secs(600);

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

/// A pending operation carries an alert that names the limit (scheduling.md 20).
pub(crate) fn note_admission(operation: &mut Operation, joined: &Joined) {
    if let Admission::Pending { pool, limit } = &joined.admission {
        operation.alerts.insert("operation_pending".into(), pending_alert(&joined.tree, pool, *limit));
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

/// Unknown id or alias: 1915 with an inner 200 (http-api.md 3.2 [X]).
pub(crate) fn no_such_operation(name: &str) -> Failure {
    Failure::coded(code::API_NO_SUCH_OPERATION, format!("No such operation {name}"))
        .with("operation", name)
        .because(Failure::coded(code::NO_SUCH_OPERATION, format!("No such operation {name}")))
}

/// The starter may do everything, unless the spec says otherwise (http-api.md 8.4).
fn initial_acl(user: &str, spec: &Map) -> Vec<Value> {
    let mut acl = Vec::new();
    if spec.get("add_authenticated_user_to_acl").and_then(Value::as_bool).unwrap_or(true) {
        acl.push(
            yson::map! {
                "action" => "allow",
                "subjects" => vec![user],
                "permissions" => vec!["read", "manage"],
            }
            .into(),
        );
    }
    acl.extend(spec.get("acl").and_then(Value::as_list).unwrap_or_default().iter().cloned());
    acl
}
