//! What befalls operations by themselves, looked at now and then: time limits, scheduling that is stuck,
//! banned nodes, demand that no node can meet.

use crate::{Effect, Kernel};
use controller::Deadline;
use vocab::{Failure, OperationId, OperationState, Resources, Span, Time};

impl Kernel {
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

    /// Tasks that have paused long enough after aborts (jobs-and-nodes.md 6.5).
    pub(crate) fn resume_tasks(&mut self, now: Time) {
        for operation in self.operations.values_mut() {
            if operation.controller.resume_tasks(now) {
                self.pending_work.demand.insert(operation.id);
                self.pending_work.dirty.insert(operation.id);
            }
        }
    }

    /// Jobs that take too long get copies (jobs-and-nodes.md 6.7).
    pub(crate) fn copy_slow_jobs(&mut self, now: Time) {
        for operation in self.operations.values_mut() {
            if operation.controller.look_for_slow_jobs(now) {
                self.pending_work.demand.insert(operation.id);
            }
        }
    }

    /// Operations that the scheduler can do nothing for any more (scheduling.md 20).
    pub(crate) fn fail_stuck_operations(&mut self, now: Time, out: &mut Vec<Effect>) {
        for (id, error) in self.scheduler.stuck_operations(now) {
            self.finish_operation(now, id, OperationState::Failed, Some(error), out);
        }
    }

    /// Operations that have banned every node that could run them.
    pub(crate) fn check_bans(&mut self, now: Time, out: &mut Vec<Effect>) {
        let online = || self.nodes.iter().filter(|n| n.key.is_some()).map(|n| n.address.as_str());
        if online().next().is_none() {
            return;
        }
        let mut over = Vec::new();
        for operation in self.operations.values_mut() {
            // Asks for nodes only if it has banned any.
            if let Some(event) = operation.controller.check_banned_nodes(online()) {
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
        let online = || self.nodes.iter().filter(|n| n.key.is_some());
        let limits = || online().map(|n| (n.report.resource_limits, n.disk_capacity));
        let nobody = limits().next().is_none();
        // Nodes are of a few kinds: one that could hold the job of one operation is asked first by the next.
        let mut known: Vec<(Resources, Option<i64>)> = Vec::new();
        let holds = |(limits, capacity): &(Resources, Option<i64>), needed: &Resources, disk: i64| {
            limits.dominates(needed) && capacity.is_none_or(|capacity| disk <= capacity)
        };
        let mut fits = |needed: &Resources, disk: i64| {
            known.iter().any(|kind| holds(kind, needed, disk)) || {
                let found = limits().find(|kind| holds(kind, needed, disk));
                known.extend(found);
                found.is_some()
            }
        };
        let mut over = Vec::new();
        for operation in self.operations.values_mut().filter(|o| o.state == OperationState::Running) {
            let demand = operation.controller.demand();
            let disk = |task: u32| operation.controller.disk_space(task);
            let misfit = demand.iter().find(|d| d.count > 0 && !nobody && !fits(&d.min_needed, disk(d.task)));
            let Some(misfit) = misfit else {
                operation.unsuitable_since = None;
                if operation.clear_alert(now, NO_SUITABLE_NODE) {
                    self.pending_work.dirty.insert(operation.id);
                }
                continue;
            };
            // Retries and copies of a task have demands of their own, numbered behind the tasks.
            let tasks = operation.controller.task_names().count().max(1);
            let number = misfit.task as usize % tasks;
            let task = operation.controller.task_names().nth(number).unwrap_or_default().to_owned();
            let error = Failure::new("No online node can satisfy the resource demand")
                .with("task_name", task)
                .with("needed_resources", misfit.min_needed.to_value());
            let error = match disk(misfit.task) {
                0 => error,
                disk => error.with("disk_space", disk),
            };
            match operation.unsuitable_since {
                Some(since) if now.since(since) > SAFE_ONLINE_TIME => over.push((operation.id, error)),
                Some(_) => {}
                None => {
                    operation.unsuitable_since = Some(now);
                    if operation.raise_alert(now, NO_SUITABLE_NODE, error) {
                        self.pending_work.dirty.insert(operation.id);
                    }
                }
            }
        }
        for (id, error) in over {
            self.finish_operation(now, id, OperationState::Failed, Some(error), out);
        }
    }
}

/// Alert of an operation that waits for a node that does not exist.
const NO_SUITABLE_NODE: &str = "no_suitable_node";
/// How long such an operation may wait: the node may be on its way.
const SAFE_ONLINE_TIME: Span = Span::from_secs(600);
