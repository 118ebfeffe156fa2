//! The event log: what happened to jobs and operations, for whoever reads it later (scheduling.md 20,
//! jobs-and-nodes.md 7.3).
//!
//! Events of a turn become durable in the batch of that turn, under the number of the first of them;
//! when that is done an effect hands them to the edge, which appends them to files and says how far
//! it has come. Only then are the records dropped. So an event is never lost with a crash between
//! the two, and since numbers grow by one a writer that is told something again knows it.
//!
//! A record is what the store holds: small maps, and of a job that is over its record of the archive,
//! which is encoded anyway. [`events_of`] makes full events of it, on the writer's time.
//!
//! Here is what events say, in [`filter`] who wants to see which, in [`outbox`] how they get to the writer, in [`full`] how they are written out.

mod filter;
mod full;
mod outbox;

pub use filter::EventFilter;
pub use full::events_of;
pub(crate) use outbox::Events;

use crate::Kernel;
use crate::jobs::Job;
use controller::JobRecord;
use scheduler::StarvationNotice;
use vocab::{AbortReason, Failure, JobIdentity, JobState, OperationId, OperationState, Time};
use yson::{Map, Value};

impl Kernel {
    /// Adds an event.
    pub(crate) fn log(&mut self, event: &str, fields: Map) {
        let events = &mut self.events;
        if events.is_enabled() {
            let head = yson::map! {"event" => event, "time" => events.now()};
            events.add(head.into_iter().chain(fields).collect());
        }
    }

    /// `job_started`: it was settled into its allocation; `job_adopted`: it was taken over from a life that
    /// may not have got round to writing down its start.
    pub(crate) fn log_start(&mut self, identity: &JobIdentity, job: &Job, start: Time, adopted: bool) {
        if !self.events.is_enabled() {
            return;
        }
        let operation = self.operations.get(&job.operation);
        let view = operation.and_then(|o| o.controller.job(identity.job_id));
        let predecessor = view.and_then(|view| view.predecessor());
        let competition = view.and_then(|view| view.competition());
        let fields = yson::map! {
            "job_id" => identity.job_id,
            "allocation_id" => identity.allocation_id,
            "operation_id" => identity.operation_id,
            "task_name" => identity.task.as_ref(),
            "job_type" => "vanilla",
            "job_cookie" => identity.cookie,
            "task_job_index" => identity.task_job_index,
            "job_competition_id" => competition.unwrap_or(identity.job_id),
            "tree_id" => identity.tree.as_ref(),
            "pool" => job.pool.as_str(),
            "node_address" => job.node.as_str(),
            "start_time" => start,
            "resource_limits" => job.resources.to_value(),
        }
        .with_some("predecessor_type", predecessor.map(|_| AbortReason::ResourceOverdraft))
        .with_some("predecessor_job_id", predecessor);
        self.log(if adopted { "job_adopted" } else { "job_started" }, fields);
    }

    /// `job_completed`, `job_failed` or `job_aborted`; `job` is what the kernel knew of it.
    pub(crate) fn log_end(&mut self, record: &JobRecord, encoded: &[u8], job: Option<&Job>) {
        if !self.events.is_enabled() {
            return;
        }
        let event = match record.state {
            JobState::Completed => "job_completed",
            JobState::Failed => "job_failed",
            _ => "job_aborted",
        };
        let preemptor = record.preempted_for.map(|(allocation, operation)| {
            let job = self.preemptions.jobs_of(record.identity.allocation_id).preemptor;
            yson::map! {"operation_id" => operation, "allocation_id" => allocation}.with_some("job_id", job)
        });
        let index = record.identity.task_job_index;
        let fields = yson::map! {"record" => Value::String(encoded.to_vec()), "task_job_index" => index}
            .with_some("pool", job.map(|j| j.pool.as_str()))
            .with_some("resource_limits", job.map(|j| j.resources.to_value()))
            .with_some("preempted_for", preemptor);
        self.log(event, fields);
    }

    /// `job_aborted` of jobs that were open when the server stopped and that no node has reported since,
    /// nor ever will. Their ids died with the last life: operation, task and index in the task name them.
    pub(crate) fn log_unreported(&mut self, id: OperationId, reason: AbortReason) {
        let Some(operation) = self.operations.get(&id).filter(|_| self.events.is_enabled()) else { return };
        let lost: Vec<Map> = operation
            .controller
            .awaited_jobs()
            .map(|(task, index)| {
                yson::map! {
                    "operation_id" => id,
                    "task_name" => task,
                    "job_type" => "vanilla",
                    "task_job_index" => index,
                    "finish_time" => self.events.now(),
                    "reason" => reason,
                }
            })
            .collect();
        lost.into_iter().for_each(|fields| self.log("job_aborted", fields));
    }

    /// Events of the life of an operation; nothing if the state is not one of them.
    pub(crate) fn log_state(&mut self, id: OperationId, state: OperationState) {
        self.changes.touch(crate::Topic::Operations);
        self.counters.operation_entered(state);
        let Some(operation) = self.operations.get(&id).filter(|_| self.events.is_enabled()) else { return };
        let event = match state {
            OperationState::Starting => "operation_started",
            OperationState::Pending => "operation_prepared",
            OperationState::Running => "operation_materialized",
            OperationState::Completed => "operation_completed",
            OperationState::Failed => "operation_failed",
            OperationState::Aborted => "operation_aborted",
            _ => return,
        };
        let trees = operation.trees.iter().map(|t| {
            let place =
                yson::map! {"pool" => t.pool.as_str(), "resource_limits" => t.resource_limits.clone()};
            (t.tree.as_str(), place.with_some("weight", t.weight))
        });
        let mut fields = yson::map! {
            "operation_id" => id,
            "operation_type" => operation.operation_type,
            "authenticated_user" => operation.user.as_str(),
            "start_time" => operation.start_time,
            "trees" => trees.collect::<Map>(),
        };
        match state {
            OperationState::Starting => {
                fields.insert("spec", operation.spec.provided.clone());
            }
            _ if state.is_finished() => {
                fields.insert("finish_time", self.events.now());
                if let Some(error) = &operation.result {
                    fields.insert("error", error.to_value());
                }
                fields.insert("alerts", operation.alerts.to_map());
                let progress = operation.controller.brief_progress(self.events.now(), state);
                if let Some(jobs) = progress.get("jobs") {
                    fields.insert("jobs", jobs.clone());
                }
            }
            _ => {}
        }
        self.log(event, fields);
    }

    /// `operation_banned_in_tree`: it may not use this tree any more.
    pub(crate) fn log_ban(&mut self, id: OperationId, tree: &str, error: &Failure) {
        let fields = yson::map! {"operation_id" => id, "tree_id" => tree, "error" => error.to_value()};
        self.log("operation_banned_in_tree", fields);
    }

    /// `operation_starvation_started` and `operation_starvation_finished`, of trees that want them.
    pub(crate) fn log_starvation(&mut self, notice: &StarvationNotice) {
        let fields = yson::map! {"operation_id" => notice.operation, "tree_id" => &*notice.tree};
        match notice.ended {
            None => self.log("operation_starvation_started", fields),
            Some((reason, lasted)) => {
                let fields = fields.with("reason", reason.as_str());
                self.log("operation_starvation_finished", fields.with("duration", lasted.as_millis() as i64));
            }
        }
    }
}
