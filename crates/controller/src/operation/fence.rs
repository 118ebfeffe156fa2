//! Units of exclusive work whose last job may still run (S19).
//!
//! The controller can give a job up while the job still runs on its node: the operation was suspended with its jobs, its gang
//! started again, or the node left the pool tree. The unit must not start elsewhere until the node has reported the end of the
//! job, or cannot run the job any more. The owner of the controller knows that time and then
//! [lifts the fence](OperationController::lift_fence).

use super::OperationController;
use crate::job::Joblet;
use vocab::{JobId, JobIdentity};

/// A unit that waits for the end of a job that was given up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Fence {
    /// Task's number.
    task: u32,
    cookie: u32,
    node: Box<str>,
}

/// The same, for display.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FencedUnit<'a> {
    /// The job that was given up.
    pub job_id: JobId,
    /// Name of the task.
    pub task: &'a str,
    /// The unit.
    pub cookie: u32,
    /// `host:port` of the node that may still run the job.
    pub node: &'a str,
}

impl OperationController {
    /// Whether no unit of this task may run twice at once.
    pub fn is_exclusive(&self, task: &str) -> bool {
        self.tasks.iter().any(|t| t.spec.exclusive && t.spec.name == task)
    }

    /// Whether jobs of before a restart may still be reported.
    pub fn is_reviving(&self) -> bool {
        self.reviving
    }

    /// Fences the unit of a job that is given up here and that its node has not ended.
    pub(super) fn fence(&mut self, joblet: &Joblet) {
        if self.tasks[joblet.task as usize].spec.exclusive {
            self.add_fence(joblet.identity.job_id, joblet.task, joblet.identity.cookie, &joblet.node);
        }
    }

    /// Fences the unit of a job that a node runs and that does not count here. False if the unit needs no fence: its task is
    /// not exclusive or not known, or the unit is done, or the job has a fence already.
    pub fn fence_stranger(&mut self, identity: &JobIdentity, node: &str) -> bool {
        let Some(number) = self.tasks.iter().position(|t| *t.spec.name == *identity.task) else {
            return false;
        };
        let task = &self.tasks[number];
        let is_open = task.units.is_pending(identity.cookie) || task.units.is_running(identity.cookie);
        let wanted = task.spec.exclusive && is_open;
        if !wanted || self.jobs.contains_key(&identity.job_id) || self.fences.contains_key(&identity.job_id) {
            return false;
        }
        self.add_fence(identity.job_id, number as u32, identity.cookie, node);
        true
    }

    fn add_fence(&mut self, job_id: JobId, task: u32, cookie: u32, node: &str) {
        self.tasks[task as usize].units.fence(cookie);
        self.fences.insert(job_id, Fence { task, cookie, node: node.into() });
    }

    /// The job runs no more. False if it had no fence. The demand may be another one now.
    pub fn lift_fence(&mut self, job_id: JobId) -> bool {
        let Some(fence) = self.fences.remove(&job_id) else { return false };
        self.tasks[fence.task as usize].units.unfence(fence.cookie);
        true
    }

    /// Whether this job has a fence.
    pub fn has_fence(&self, job_id: JobId) -> bool {
        self.fences.contains_key(&job_id)
    }

    /// Jobs that were given up and may still run, by id.
    pub fn fenced_units(&self) -> impl Iterator<Item = FencedUnit<'_>> {
        self.fences.iter().map(|(job_id, fence)| FencedUnit {
            job_id: *job_id,
            task: &self.tasks[fence.task as usize].spec.name,
            cookie: fence.cookie,
            node: &fence.node,
        })
    }

    /// Whether a job of the unit may be ordered on this node: a node does not start it before the earlier job that it holds
    /// is over.
    pub(super) fn may_follow(&self, task: u32, cookie: u32, node: &str) -> bool {
        self.tasks[task as usize].units.is_available(cookie)
            || self.fences.values().filter(|f| f.task == task && f.cookie == cookie).all(|f| &*f.node == node)
    }
}
