//! Jobs that nodes abort: pauses of tasks and nodes, and the end of an operation whose jobs never start (S4, S12).

use super::limits::Life;
use super::rules::located;
use super::{OperationController, OperationEvent};
use crate::job::Joblet;
use vocab::{AbortReason, Failure, JobOutcome, Time};

/// A pause after aborts.
#[derive(Clone, PartialEq, Debug)]
pub struct Setback<'a> {
    /// Task that pauses. `None` if the operation pauses on one node.
    pub task: Option<&'a str>,
    /// Node on which the operation pauses. `None` if the task pauses everywhere.
    pub node: Option<&'a str>,
    /// Rounds of aborts in a row.
    pub aborts: u32,
    /// The number of rounds that fails the operation. `None` if none does.
    pub limit: Option<u32>,
    /// End of the pause; in the past if the next round is at work.
    pub until: Time,
    /// The newest abort.
    pub last: Option<&'a Failure>,
}

impl OperationController {
    /// A job of the task has started on a node.
    pub(super) fn note_start(&mut self, task: u32, node: &str) {
        self.node_pauses.note_start(node);
        let task = &mut self.tasks[task as usize];
        task.dirty |= task.first_start.note_start(node);
    }

    /// The end of a job, as far as pauses go. Returns the time before which the operation starts nothing on its node.
    pub(super) fn back_off(&mut self, now: Time, joblet: &Joblet, outcome: &JobOutcome) -> Option<Time> {
        if joblet.exec_start_time.is_some() {
            let task = &mut self.tasks[joblet.task as usize];
            task.dirty |= task.first_start.note_start(&joblet.node);
        }
        let error = match outcome {
            JobOutcome::Aborted { reason, error } if reason.consequences().backs_off => error,
            JobOutcome::Aborted { .. } => return None,
            // The node is as good as any other.
            JobOutcome::Completed { .. } | JobOutcome::Failed { .. } => {
                self.node_pauses.note_start(&joblet.node);
                return None;
            }
        };
        let (error, settled) = (located(error, joblet), joblet.start_time);
        let options = self.options.job_abort_backoff;
        let task = &mut self.tasks[joblet.task as usize];
        task.dirty |= task.first_start.note_abort(now, settled, error.clone(), &options);
        Some(self.node_pauses.note_abort(now, (&joblet.node, settled), error, &options))
    }

    /// Fails the operation if jobs of the task were aborted too often before one of them started.
    pub(super) fn after_many_aborts(&self, joblet: &Joblet, reason: AbortReason) -> Option<OperationEvent> {
        let aborts = &self.tasks[joblet.task as usize].first_start.aborts;
        let limit = self.root.max_aborts_before_start;
        if !reason.consequences().counts_for_operation || aborts.rounds < limit {
            return None;
        }
        let text = "No job of the task could be started: too many of them were aborted by nodes, one after the other";
        let failure = Failure::new(text)
            .with("task_name", &*joblet.identity.task)
            .with("max_aborts_before_start", i64::from(limit));
        let last = aborts.last.iter().map(|last| (**last).clone());
        Some(OperationEvent::Failed(last.fold(failure, Failure::because)))
    }

    /// Ends pauses of tasks that are over. True if there was one: the demand is another one now.
    pub fn resume_tasks(&mut self, now: Time) -> bool {
        if self.life != Life::Running {
            return false;
        }
        let resumed = |task: &mut crate::task::Task| {
            let over = task.first_start.resume(now);
            task.dirty |= over;
            over
        };
        self.tasks.iter_mut().fold(false, |any, task| resumed(task) | any)
    }

    /// A job of the task has started on another node than this one: an abort here speaks against the node.
    pub fn has_started_elsewhere(&self, task: &str, node: &str) -> bool {
        let task = self.tasks.iter().find(|t| t.spec.name == task);
        task.is_some_and(|task| task.first_start.started_elsewhere(node))
    }

    /// Tasks whose jobs were aborted before one of them started, and nodes that pause now.
    pub fn setbacks(&self, now: Time) -> Vec<Setback<'_>> {
        let of_tasks =
            self.tasks.iter().filter(|task| task.first_start.aborts.rounds > 0).map(|task| Setback {
                task: Some(&task.spec.name),
                node: None,
                aborts: task.first_start.aborts.rounds,
                limit: Some(self.root.max_aborts_before_start),
                until: task.first_start.aborts.until,
                last: task.first_start.aborts.last.as_deref(),
            });
        let of_nodes = self.node_pauses.paused(now).map(|(node, series)| Setback {
            task: None,
            node: Some(node),
            aborts: series.rounds,
            limit: None,
            until: series.until,
            last: series.last.as_deref(),
        });
        of_tasks.chain(of_nodes).collect()
    }
}
