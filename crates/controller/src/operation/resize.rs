//! Changing a task's `job_count` at run time (jobs-and-nodes.md 6.10).

use super::limits::Life;
use super::{OperationController, OperationEvent};
use vocab::{Failure, JobId, Time};

/// What follows from a new `job_count`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Resized {
    /// Jobs whose units are not wanted any more: their nodes are to abort them, reason
    /// `job_count_changed_by_user_request`.
    pub jobs_to_abort: Vec<JobId>,
    /// Completed, if nothing is left to do.
    pub operation_event: Option<OperationEvent>,
}

impl OperationController {
    /// Sets the number of jobs of a task. Growing adds pending units; shrinking takes pending ones
    /// first, then running ones, those with the largest cookies. Units that are done stay done.
    pub fn set_job_count(&mut self, now: Time, task_name: &str, job_count: i64) -> Result<Resized, Failure> {
        if self.life != Life::Running {
            return Err(Failure::new("Cannot change job_count: operation is not running"));
        }
        let index = self.tasks.iter().position(|t| t.spec.name == task_name).ok_or_else(|| {
            let names: Vec<&str> = self.task_names().collect();
            Failure::new(format!("Unknown task {task_name:?}: expected one of {names:?}"))
        })?;
        let refuse = |why: &str| {
            Err(Failure::new(format!("Cannot change job_count of task {task_name:?} to {job_count}: {why}"))
                .with("task_name", task_name))
        };
        let others: u64 = self.tasks.iter().map(|t| u64::from(t.job_count)).sum::<u64>()
            - u64::from(self.tasks[index].job_count);
        let room = u64::from(self.options.max_total_job_count).saturating_sub(others);
        if job_count < 1 {
            return refuse("expected int64 of at least 1");
        }
        if job_count as u64 > room {
            return refuse(&format!("at most {room} jobs are left for it of the operation's total"));
        }
        if self.tasks[index].spec.job_type != "vanilla" {
            return refuse("its jobs are as many as its input was cut into");
        }
        if self.has_gangs() {
            return refuse("it is fixed in operations with gangs");
        }
        if self.root.fail_on_job_restart || self.tasks[index].spec.script.fail_on_job_restart {
            return refuse("it is fixed with \"fail_on_job_restart\"");
        }
        let jobs_to_abort = self.resize(now, index, job_count as u32);
        let operation_event = self.end_if_done();
        self.heed(operation_event.as_ref());
        Ok(Resized { jobs_to_abort, operation_event })
    }

    fn resize(&mut self, now: Time, index: usize, job_count: u32) -> Vec<JobId> {
        let task = &mut self.tasks[index];
        task.job_count = job_count;
        task.dirty = true;
        let unwanted = task.units.resize(job_count);
        unwanted.iter().for_each(|cookie| task.copies.unwant(*cookie));
        task.note_time(now);
        let mine = self.jobs.values().filter(|j| j.task as usize == index);
        mine.filter(|j| unwanted.binary_search(&j.identity.cookie).is_ok())
            .map(|j| j.identity.job_id)
            .collect()
    }
}
